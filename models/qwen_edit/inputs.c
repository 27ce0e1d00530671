/* Qwen-Image-Edit: the prompt as tokens, and the reference images as text encoder and VAE see them. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "models/qwen_edit/qwen_edit.h"
#include "models/qwen_edit/sizes.h"

#define DEFAULT_LATENT_SIDE 128

/* Protocol constants of the models. */
static const char edit_system[] =
    "Describe the key features of the input image (color, shape, size, texture, objects, background), then explain how "
    "the user's text instruction should alter or modify the image. Generate a new image that meets the user's "
    "requirements while maintaining consistency with the original input where appropriate.";
static const char image_system[] = "Describe the image by detailing the color, shape, size, texture, quantity, text, "
                                   "spatial relationships of the objects and background:";
static const char image_token[] = "<|vision_start|><|image_pad|><|vision_end|>";

/* What the released tokenizer makes of the parts of the chat. */
enum { EDIT_DROP = 64, IMAGE_DROP = 34, IDS_AFTER_PROMPT = 5, IDS_AROUND_IMAGE = 2, IDS_OF_PICTURE_NUMBER = 5 };

int64_t lk_qwen_edit_drop(enum lk_qwen_edit_kind kind) { return kind == LK_QWEN_IMAGE ? IMAGE_DROP : EDIT_DROP; }

int64_t lk_qwen_edit_planned_ids(enum lk_qwen_edit_kind kind, const struct lk_qwen_edit_reference *references,
                                 int n_references, int64_t n_prompt_ids) {
    int64_t n = lk_qwen_edit_drop(kind) + n_prompt_ids + IDS_AFTER_PROMPT;
    for (int i = 0; i < n_references; i++)
        n += references[i].n_tokens + IDS_AROUND_IMAGE + (kind == LK_QWEN_EDIT_PLUS ? IDS_OF_PICTURE_NUMBER : 0);
    return n;
}

/* The chat with one image token per reference. */
static char *chat_text(enum lk_qwen_edit_kind kind, const char *prompt, int n_references) {
    const char *system = kind == LK_QWEN_IMAGE ? image_system : edit_system;
    size_t size = strlen(system) + strlen(prompt) + (size_t)n_references * (sizeof image_token + 16) + 128;
    char *text = lk_malloc(size), *at = text;
    if (!text) return NULL;
    at += sprintf(at, "<|im_start|>system\n%s<|im_end|>\n<|im_start|>user\n", system);
    for (int i = 0; i < n_references; i++) {
        if (kind == LK_QWEN_EDIT_PLUS) at += sprintf(at, "Picture %d: ", i + 1);
        at = stpcpy(at, image_token);
    }
    sprintf(at, "%s<|im_end|>\n<|im_start|>assistant\n", prompt);
    return text;
}

static enum lk_code check_ids(const struct lk_qwen_edit *m, const int32_t *ids, size_t n, int n_references) {
    int64_t vocabulary = m->text.config.vocab_size, n_images = 0;
    int32_t video = m->kind == LK_QWEN_IMAGE ? -1 : lk_tokenizer_id(m->tokenizer, "<|video_pad|>");
    for (size_t i = 0; i < n; i++) {
        n_images += ids[i] == m->text.config.image_token_id;
        if (ids[i] == video) /* the reference's processor stops here, too */
            return lk_fail(LK_E_PROMPT, "prompt: holds \"<|video_pad|>\", which stands for a video; take it out");
        if (ids[i] >= vocabulary)
            return lk_fail(LK_E_TOKENIZER,
                           "prompt: token id %d is outside the text encoder's vocabulary of %lld: tokenizer and text "
                           "encoder do not belong together",
                           ids[i], (long long)vocabulary);
    }
    if (n_images > n_references)
        return lk_fail(LK_E_PROMPT, "prompt: holds \"<|image_pad|>\", which stands for a reference image; take it out");
    if (n_images < n_references || (int64_t)n <= lk_qwen_edit_drop(m->kind))
        return lk_fail(LK_E_TOKENIZER,
                       "prompt: %zu token ids with %lld image tokens, expected more than %lld and %d: tokenizer and "
                       "text encoder do not belong together",
                       n, (long long)n_images, (long long)lk_qwen_edit_drop(m->kind), n_references);
    return LK_OK;
}

/* Every image token as often as its image has tokens. */
static enum lk_code expand(const struct lk_qwen_edit *m, const int32_t *ids, size_t n,
                           const struct lk_qwen_edit_reference *references, int n_references, int32_t **out,
                           int64_t *n_out) {
    int64_t total = (int64_t)n;
    for (int i = 0; i < n_references; i++) total += references[i].n_tokens - 1;
    *out = lk_malloc((size_t)total * sizeof **out);
    if (!*out) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    int64_t at = 0;
    for (size_t i = 0, image = 0; i < n; i++) {
        int64_t copies = ids[i] == m->text.config.image_token_id ? references[image++].n_tokens : 1;
        while (copies--) (*out)[at++] = ids[i];
    }
    *n_out = total;
    return LK_OK;
}

enum lk_code lk_qwen_edit_tokenize(const struct lk_qwen_edit *m, const char *prompt,
                                   const struct lk_qwen_edit_reference *references, int n_references, int32_t **ids,
                                   int64_t *n_ids) {
    size_t n, length = strlen(prompt), valid = lk_utf8_valid_prefix(prompt, length);
    *ids = NULL;
    if (valid < length) /* here, so that the byte is counted in what the user wrote, not in the template */
        return lk_fail(LK_E_PROMPT, "prompt: byte %zu: expected UTF-8, got 0x%02x; convert the text to UTF-8", valid,
                       (unsigned char)prompt[valid]);
    char *text = chat_text(m->kind, prompt, n_references);
    if (!text) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    int32_t *short_ids = NULL;
    enum lk_code rc = lk_tokenizer_encode(m->tokenizer, text, strlen(text), &short_ids, &n);
    lk_free(text);
    if (!rc) rc = check_ids(m, short_ids, n, n_references);
    if (!rc) rc = expand(m, short_ids, n, references, n_references, ids, n_ids);
    lk_free(short_ids);
    if (!rc && m->kind == LK_QWEN_IMAGE && *n_ids > IMAGE_DROP + LK_QWEN_EDIT_MAX_LENGTH)
        *n_ids = IMAGE_DROP + LK_QWEN_EDIT_MAX_LENGTH;
    return rc;
}

enum lk_code lk_qwen_edit_reference_size(const struct lk_qwen_edit *m, const struct lk_request *request, int i,
                                         struct lk_qwen_edit_reference *out) {
    const struct lk_image *image = &request->images[i];
    int merge = m->processor.merge_size, side = m->processor.patch_size, width, height;
    int multiple = 2 * lk_qwen_vae_scale_factor(&m->vae.config);
    *out = (struct lk_qwen_edit_reference){0};
    LK_TRY(lk_qwen_edit_dimensions(request->vae_area ? request->vae_area : LK_QWEN_EDIT_VAE_AREA, image->width,
                                   image->height, &out->width, &out->height));
    out->condition_width = out->width;
    out->condition_height = out->height;
    if (m->kind == LK_QWEN_EDIT_PLUS)
        LK_TRY(lk_qwen_edit_dimensions(request->condition_area ? request->condition_area : LK_QWEN_EDIT_CONDITION_AREA,
                                       image->width, image->height, &out->condition_width, &out->condition_height));
    LK_TRY(lk_qwen2_vl_size(&m->processor, out->condition_width, out->condition_height, &width, &height));
    out->grid.grid_w = width / side;
    out->grid.grid_h = height / side;
    out->n_tokens = (int64_t)(out->grid.grid_w / merge) * (out->grid.grid_h / merge);
    return lk_qwen_edit_output_size(0, 0, 0, out->width, out->height, multiple, &out->width, &out->height);
}

enum lk_code lk_qwen_edit_picture_size(const struct lk_qwen_edit *m, const struct lk_request *request, int *width,
                                       int *height) {
    int factor = lk_qwen_vae_scale_factor(&m->vae.config), side = DEFAULT_LATENT_SIDE * factor;
    struct lk_image square = {.width = side, .height = side};
    const struct lk_image *last = request->n_images ? &request->images[request->n_images - 1] : &square;
    int64_t area = request->n_images ? LK_QWEN_EDIT_VAE_AREA : (int64_t)side * side;
    return lk_qwen_edit_output_size(area, last->width, last->height, request->width, request->height, 2 * factor, width,
                                    height);
}

/* RGB and resized. */
static enum lk_code prepare(const struct lk_image *image, int width, int height, struct lk_image *out) {
    struct lk_image rgb;
    *out = (struct lk_image){0};
    LK_TRY(lk_image_to_rgb(&rgb, image));
    enum lk_code rc = lk_image_resize(out, &rgb, width, height, LK_RESAMPLE_LANCZOS);
    lk_image_free(&rgb);
    return rc;
}

enum lk_code lk_qwen_edit_condition_rows(const struct lk_qwen_edit *m, const struct lk_image *image,
                                         const struct lk_qwen_edit_reference *reference, float **rows) {
    struct lk_image resized;
    int grid_h, grid_w;
    *rows = NULL;
    LK_TRY(prepare(image, reference->condition_width, reference->condition_height, &resized));
    enum lk_code rc = lk_qwen2_vl_rows(&m->processor, &resized, rows, &grid_h, &grid_w);
    lk_image_free(&resized);
    return rc;
}

enum lk_code lk_qwen_edit_vae_image(const struct lk_image *image, const struct lk_qwen_edit_reference *reference,
                                    struct lk_image *out) {
    return prepare(image, reference->width, reference->height, out);
}
