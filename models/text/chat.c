#include "models/text/chat.h"

#include "engine/base/alloc.h"
#include "models/text/chat_internal.h"
#include "models/text/text_stream.h"

struct talk {
    const struct lk_chat *chat;
    const struct lk_chat_request *request;
    struct chat_prompt prompt;
    struct lk_text_stream stream;
};

void lk_chat_request_init(struct lk_chat_request *request, const struct lk_chat *chat) {
    *request = (struct lk_chat_request){.generation = chat->generation};
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
    LK_TRY(lk_chat_prompt_make(&t->prompt, t->chat, t->request));
    struct lk_generate_request request = {.ids = t->prompt.ids,
                                          .n_ids = t->prompt.n_ids,
                                          .images = t->prompt.images,
                                          .n_images = t->prompt.n_images,
                                          .config = t->request->generation,
                                          .n_valid_ids = lk_tokenizer_vocab_size(t->chat->tokenizer),
                                          .seed = t->request->seed,
                                          .token = on_token,
                                          .token_context = t};
    struct lk_generation generation;
    enum lk_code rc = lk_generate(dev, &t->chat->vlm, t->chat->compute, &request, 1, 1, &generation);
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
    out->n_prompt_tokens = t.prompt.n_ids;
    out->n_image_tokens = t.prompt.n_image_tokens;
    lk_chat_prompt_free(&t.prompt);
    return rc;
}

void lk_chat_reply_free(struct lk_chat_reply *reply) {
    lk_free(reply->text);
    *reply = (struct lk_chat_reply){0};
}
