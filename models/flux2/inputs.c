/* FLUX.2-dev: the prompt as tokens and the reference images as the VAE sees them. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "models/flux2/flux2.h"

#define MIN_SIDE   64
#define MAX_ASPECT 8
#define MAX_AREA   (1024 * 1024)

/* A protocol constant of the model; the line break is part of it. */
static const char system_message[] = "You are an AI that reasons about image descriptions. You give structured "
                                     "responses focusing on object relationships, object\n"
                                     "attribution and actions without speculation.";

/* <s>[SYSTEM_PROMPT]...[/SYSTEM_PROMPT][INST]prompt[/INST], with every "[IMG]" taken out of the prompt. */
static char *chat_text(const char *prompt) {
    static const char image_token[] = "[IMG]";
    const char *const before[] = {"<s>[SYSTEM_PROMPT]", system_message, "[/SYSTEM_PROMPT][INST]"};
    char *text = lk_malloc(strlen(prompt) + sizeof system_message + 64);
    if (!text) return NULL;
    char *end = text;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) end = stpcpy(end, before[i]);
    while (*prompt) {
        if (!strncmp(prompt, image_token, strlen(image_token)))
            prompt += strlen(image_token);
        else
            *end++ = *prompt++;
    }
    strcpy(end, "[/INST]");
    return text;
}

enum lk_code lk_flux2_tokenize(const struct lk_flux2 *model, const char *prompt, int max_length, int32_t **ids,
                               int *n_ids, int64_t *n_cut) {
    size_t n, length = strlen(prompt), valid = lk_utf8_valid_prefix(prompt, length);
    if (valid < length) /* here, so that the byte is counted in what the user wrote, not in the template */
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", valid,
                       (unsigned char)prompt[valid]);
    char *text = chat_text(prompt);
    if (!text) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    enum lk_code rc = lk_tokenizer_encode(model->tokenizer, text, strlen(text), ids, &n);
    lk_free(text);
    if (rc) return rc;
    *n_cut = n > (size_t)max_length ? (int64_t)n - max_length : 0;
    n -= (size_t)*n_cut;
    for (size_t i = 0; i < n; i++) {
        if ((*ids)[i] < model->text_config.vocab_size) continue;
        rc = lk_fail(LK_E_TOKENIZER,
                     "prompt: token id %d is outside the text encoder's vocabulary of %lld: tokenizer and text "
                     "encoder do not belong together",
                     (*ids)[i], (long long)model->text_config.vocab_size);
        lk_free(*ids);
        *ids = NULL;
        return rc;
    }
    *n_ids = (int)n;
    return LK_OK;
}

enum lk_code lk_flux2_reference_size(int width, int height, int multiple, struct lk_flux2_reference_size *size) {
    if (width < MIN_SIDE || height < MIN_SIDE)
        return lk_fail(LK_E_IMAGE_SIZE, "reference image: expected at least %d pixels a side, got %dx%d", MIN_SIDE,
                       width, height);
    double aspect = width > height ? (double)width / height : (double)height / width;
    if (aspect > MAX_ASPECT)
        return lk_fail(LK_E_IMAGE_SIZE, "reference image: expected an aspect ratio of at most %d, got %dx%d",
                       MAX_ASPECT, width, height);
    int64_t area = (int64_t)width * height;
    if (area > MAX_AREA) {
        double scale = sqrt((double)MAX_AREA / (double)area);
        width = (int)(width * scale);
        height = (int)(height * scale);
    }
    size->resized_width = width;
    size->resized_height = height;
    size->width = width / multiple * multiple;
    size->height = height / multiple * multiple;
    size->left = (width - size->width) / 2;
    size->top = (height - size->height) / 2;
    if (!size->width || !size->height)
        return lk_fail(LK_E_IMAGE_SIZE, "reference image: %dx%d is smaller than one token of %d pixels", width, height,
                       multiple);
    return LK_OK;
}

enum lk_code lk_flux2_prepare_reference(const struct lk_image *image, const struct lk_flux2_reference_size *size,
                                        struct lk_image *out) {
    struct lk_image resized = {0}, cropped = {0};
    const struct lk_image *at = image;
    enum lk_code rc = LK_OK;
    *out = (struct lk_image){0};
    if (image->width != size->resized_width || image->height != size->resized_height) {
        rc = lk_image_resize(&resized, image, size->resized_width, size->resized_height, LK_RESAMPLE_LANCZOS);
        at = &resized;
    }
    if (!rc) rc = lk_image_crop(&cropped, at, size->left, size->top, size->width, size->height);
    lk_image_free(&resized);
    if (!rc) rc = lk_image_to_rgb(out, &cropped);
    lk_image_free(&cropped);
    return rc;
}
