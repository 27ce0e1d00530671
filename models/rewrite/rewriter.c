/* The rewriter that runs here: a chat. */
#include "engine/base/alloc.h"
#include "models/recipe.h"
#include "models/rewrite/rewrite.h"

struct rewriter {
    struct lk_chat *chat;
    struct lk_device *dev;
    struct lk_token_bytes tokens;
};

static enum lk_code ask(void *context, const struct lk_chat_question *questions, int n, int n_slots,
                        enum lk_code (*tick)(void), struct lk_chat_answer *answers) {
    const struct rewriter *r = context;
    return lk_chat_ask(r->chat, r->dev, &r->tokens, questions, n, n_slots, tick, answers);
}

static enum lk_code check(void *context, const char *text) {
    return lk_chat_check_text(((const struct rewriter *)context)->chat, text);
}

static enum lk_code plan(void *context, const struct lk_device *target, const struct lk_chat_question *questions, int n,
                         int n_slots, struct lk_plan *out) {
    return lk_chat_plan(((const struct rewriter *)context)->chat, target, questions, n, n_slots, out);
}

enum lk_code lk_rewriter_open_plan(struct lk_rewriter *out, const char *model, const char *prompts,
                                   enum lk_dtype compute) {
    struct lk_chat_request request;
    *out = (struct lk_rewriter){.ask = ask,
                                .check = check,
                                .plan = plan,
                                .n_slots = LK_REWRITE_SLOTS,
                                .dtype = compute == LK_F32 ? "f32" : "bf16"};
    LK_TRY(lk_rewrite_texts_read(&out->texts, prompts));
    struct rewriter *r = out->context = lk_calloc(1, sizeof *r);
    if (!r) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    LK_TRY(lk_chat_open(&r->chat, model, compute));
    lk_chat_request_init(&request, r->chat);
    out->generation = request.generation;
    lk_recipe_model_name(model, out->name);
    return LK_OK;
}

enum lk_code lk_rewriter_open(struct lk_rewriter *out, const char *model, const char *prompts, enum lk_dtype compute,
                              struct lk_device *dev) {
    unsigned quantized;
    LK_TRY(lk_rewriter_open_plan(out, model, prompts, compute));
    struct rewriter *r = out->context;
    r->dev = dev;
    out->architecture = dev->architecture;
    LK_TRY(lk_chat_tokens(r->chat, &r->tokens));
    return lk_chat_weights_identity(r->chat, out->weights, &quantized);
}

void lk_rewriter_close(struct lk_rewriter *out) {
    struct rewriter *r = out->context;
    if (r) {
        lk_token_bytes_free(&r->tokens);
        lk_chat_close(r->chat);
        lk_free(r);
    }
    lk_rewrite_texts_free(&out->texts);
    *out = (struct lk_rewriter){0};
}
