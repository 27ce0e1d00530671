/* A conversation as ids and pixels. */
#include <string.h>

#include "engine/base/alloc.h"
#include "models/text/chat_internal.h"

/* A special token in a message would be obeyed as if the template had written it. */
enum lk_code lk_chat_check_text(const struct lk_chat *chat, const char *text) {
    const struct lk_tokenizer *tokenizer = chat->tokenizer;
    int32_t *ids;
    size_t n, n_bytes, i = 0;
    char *token;
    LK_TRY(lk_tokenizer_encode(tokenizer, text, strlen(text), &ids, &n));
    while (i < n && !lk_tokenizer_is_special(tokenizer, ids[i])) i++;
    enum lk_code rc = LK_OK;
    if (i < n) rc = lk_tokenizer_decode(tokenizer, &ids[i], 1, false, &token, &n_bytes);
    lk_free(ids);
    if (rc || i == n) return rc;
    rc = lk_fail(LK_E_PROMPT, "prompt: holds \"%s\", which controls the model; take it out", token);
    lk_free(token);
    return rc;
}

static enum lk_code add_image(struct chat_prompt *p, const struct lk_chat *chat, const struct lk_chat_request *request,
                              const struct lk_image *image) {
    float *rows;
    if (p->n_images == LK_VLM_MAX_IMAGES) return lk_fail(LK_E_USAGE, "images: expected at most %d", LK_VLM_MAX_IMAGES);
    struct lk_vlm_image *out = &p->images[p->n_images];
    enum lk_code rc = chat->family->rows(chat, request, image, &rows, &out->grid_h, &out->grid_w);
    if (rc) return lk_fail_prefix(rc, "image %d", p->n_images + 1);
    out->rows = rows;
    p->n_images++;
    p->n_image_tokens += chat->vlm.image_tokens(chat->vlm.model, out);
    return LK_OK;
}

static enum lk_code check_message(struct chat_prompt *p, const struct lk_chat *chat,
                                  const struct lk_chat_request *request, const struct lk_chat_message *message) {
    for (int i = 0; i < message->n_parts; i++) {
        const struct lk_chat_part *part = &message->parts[i];
        if (part->text) LK_TRY(lk_chat_check_text(chat, part->text));
        if (part->image) LK_TRY(add_image(p, chat, request, part->image));
    }
    return LK_OK;
}

/* Every image token as the ids of its image. */
static enum lk_code repeat_image_tokens(struct chat_prompt *p, const struct lk_chat *chat, const int32_t *ids,
                                        size_t n) {
    const struct lk_vlm *m = &chat->vlm;
    int64_t n_images = 0;
    int image = 0;
    for (int i = 0; i < p->n_images; i++) n_images += chat->family->image_ids(chat, &p->images[i], NULL);
    p->ids = lk_malloc((n + (size_t)n_images) * sizeof *p->ids);
    if (!p->ids) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= m->vocab_size)
            return lk_fail(LK_E_TOKENIZER,
                           "prompt: token id %d is outside the model's vocabulary of %lld: tokenizer and model do not "
                           "belong together",
                           ids[i], (long long)m->vocab_size);
        if (ids[i] == m->image_token_id) {
            p->n_ids += chat->family->image_ids(chat, &p->images[image], p->ids + p->n_ids);
            p->after_image[image++] = p->n_ids;
        } else {
            p->ids[p->n_ids++] = ids[i];
        }
    }
    return LK_OK;
}

enum lk_code lk_chat_prompt_make(struct chat_prompt *out, const struct lk_chat *chat,
                                 const struct lk_chat_request *request) {
    char *text;
    int32_t *ids;
    size_t n;
    *out = (struct chat_prompt){0};
    for (int i = 0; i < request->n_messages; i++) LK_TRY(check_message(out, chat, request, &request->messages[i]));
    LK_TRY(chat->family->string(request->messages, request->n_messages, request->number_images, &text));
    enum lk_code rc = lk_tokenizer_encode(chat->tokenizer, text, strlen(text), &ids, &n);
    lk_free(text);
    if (rc) return rc;
    rc = repeat_image_tokens(out, chat, ids, n);
    lk_free(ids);
    return rc;
}

void lk_chat_prompt_free(struct chat_prompt *prompt) {
    for (int i = 0; i < prompt->n_images; i++) lk_free((void *)(uintptr_t)prompt->images[i].rows);
    lk_free(prompt->ids);
    *prompt = (struct chat_prompt){0};
}
