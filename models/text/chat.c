#include "models/text/chat.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "models/text/chat_internal.h"
#include "models/text/generate.h"
#include "models/text/text_stream.h"

struct talk {
    const struct lk_chat *chat;
    const struct lk_chat_request *request;
    struct lk_qwen25_vl_image images[LK_QWEN25_VL_MAX_IMAGES];
    float *rows[LK_QWEN25_VL_MAX_IMAGES]; /* lk_malloc'ed */
    int n_images;
    int32_t *ids; /* image tokens repeated */
    int64_t n_ids, n_image_tokens;
    struct lk_text_stream stream;
};

void lk_chat_request_init(struct lk_chat_request *request, const struct lk_chat *chat) {
    *request = (struct lk_chat_request){.generation = chat->generation};
}

/* A special token in a message would be obeyed as if the template had written it. */
static enum lk_code check_text(const struct lk_tokenizer *tokenizer, const char *text) {
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

static enum lk_code add_image(struct talk *t, const struct lk_image *image) {
    struct lk_qwen25_vl_image *out = &t->images[t->n_images];
    struct lk_qwen2_vl_processor processor = t->chat->processor;
    struct lk_image rgb;
    if (t->n_images == LK_QWEN25_VL_MAX_IMAGES)
        return lk_fail(LK_E_USAGE, "images: expected at most %d", LK_QWEN25_VL_MAX_IMAGES);
    if (t->request->min_pixels) processor.min_pixels = t->request->min_pixels;
    if (t->request->max_pixels) processor.max_pixels = t->request->max_pixels;
    LK_TRY(lk_image_to_rgb(&rgb, image));
    enum lk_code rc = lk_qwen2_vl_rows(&processor, &rgb, &t->rows[t->n_images], &out->grid_h, &out->grid_w);
    lk_image_free(&rgb);
    if (rc) return lk_fail_prefix(rc, "image %d", t->n_images + 1);
    out->rows = t->rows[t->n_images++];
    t->n_image_tokens += lk_qwen25_vl_image_tokens(&t->chat->model.config, out);
    return LK_OK;
}

/* Every image token as often as its image has tokens. */
static enum lk_code repeat_image_tokens(struct talk *t, const int32_t *ids, size_t n) {
    const struct lk_qwen25_vl_config *c = &t->chat->model.config;
    int image = 0;
    t->ids = lk_malloc((n + (size_t)t->n_image_tokens) * sizeof *t->ids);
    if (!t->ids) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= c->vocab_size)
            return lk_fail(LK_E_TOKENIZER,
                           "prompt: token id %d is outside the model's vocabulary of %lld: tokenizer and model do not "
                           "belong together",
                           ids[i], (long long)c->vocab_size);
        int64_t times = 1;
        if (ids[i] == c->image_token_id) times = lk_qwen25_vl_image_tokens(c, &t->images[image++]);
        while (times--) t->ids[t->n_ids++] = ids[i];
    }
    return LK_OK;
}

static enum lk_code make_prompt(struct talk *t) {
    const struct lk_chat_request *q = t->request;
    char *text;
    int32_t *ids;
    size_t n;
    for (int i = 0; i < q->n_messages; i++) {
        if (q->messages[i].text) LK_TRY(check_text(t->chat->tokenizer, q->messages[i].text));
        for (int j = 0; j < q->messages[i].n_images; j++) LK_TRY(add_image(t, &q->messages[i].images[j]));
    }
    LK_TRY(lk_chat_string(q->messages, q->n_messages, q->number_images, &text));
    enum lk_code rc = lk_tokenizer_encode(t->chat->tokenizer, text, strlen(text), &ids, &n);
    lk_free(text);
    if (rc) return rc;
    rc = repeat_image_tokens(t, ids, n);
    lk_free(ids);
    return rc;
}

static enum lk_code hand_out(struct talk *t, size_t before, int64_t n_tokens) {
    const struct lk_chat_request *q = t->request;
    if (!q->text) return LK_OK;
    return q->text(q->text_context, t->stream.text.bytes + before, t->stream.text.n - before, n_tokens);
}

static enum lk_code on_token(void *context, int32_t id, int64_t n) {
    struct talk *t = context;
    char *bytes;
    size_t n_bytes, before = t->stream.text.n;
    LK_TRY(lk_tokenizer_decode(t->chat->tokenizer, &id, 1, true, &bytes, &n_bytes));
    enum lk_code rc = lk_text_stream_add(&t->stream, bytes, n_bytes);
    lk_free(bytes);
    return rc ? rc : hand_out(t, before, n);
}

static enum lk_code reply(struct talk *t, struct lk_device *dev, struct lk_chat_reply *out) {
    LK_TRY(make_prompt(t));
    struct lk_generate_request request = {.ids = t->ids,
                                          .n_ids = t->n_ids,
                                          .images = t->images,
                                          .n_images = t->n_images,
                                          .config = t->request->generation,
                                          .compute = t->chat->compute,
                                          .n_valid_ids = lk_tokenizer_vocab_size(t->chat->tokenizer),
                                          .seed = t->request->seed,
                                          .token = on_token,
                                          .token_context = t};
    struct lk_generation generation;
    enum lk_code rc = lk_generate(dev, &t->chat->model, &request, &generation);
    if (!rc) rc = lk_checkpoint_check(&t->chat->checkpoint);
    size_t before = t->stream.text.n;
    if (!rc) rc = lk_text_stream_end(&t->stream);
    if (!rc && t->stream.text.n > before) rc = hand_out(t, before, generation.n);
    out->n_tokens = generation.n;
    out->stopped = generation.stopped;
    out->peak_bytes = generation.peak_bytes;
    lk_generation_free(&generation);
    return rc;
}

enum lk_code lk_chat_reply(const struct lk_chat *chat, struct lk_device *dev, const struct lk_chat_request *request,
                           struct lk_chat_reply *out) {
    struct talk t = {.chat = chat, .request = request};
    *out = (struct lk_chat_reply){0};
    enum lk_code rc = reply(&t, dev, out);
    out->text = t.stream.text.bytes;
    out->n = t.stream.text.n;
    out->n_prompt_tokens = t.n_ids;
    out->n_image_tokens = t.n_image_tokens;
    for (int i = 0; i < LK_QWEN25_VL_MAX_IMAGES; i++) lk_free(t.rows[i]);
    lk_free(t.ids);
    return rc;
}

void lk_chat_reply_free(struct lk_chat_reply *reply) {
    lk_free(reply->text);
    *reply = (struct lk_chat_reply){0};
}
