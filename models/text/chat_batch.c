#include "models/text/chat_batch.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/text/chat_internal.h"
#include "models/text/text_stream.h"

/* A question on its way. */
struct asked {
    struct chat_prompt prompt;
    struct lk_form_writer writer;
    struct lk_guide guide;
    int answer; /* whose it is */
};

struct batch {
    const struct lk_chat *chat;
    struct asked *asked;
    struct lk_generate_request *requests;
    struct lk_generation *generations;
    int n;
    enum lk_code (*tick)(void);
};

enum lk_code lk_chat_tokens(const struct lk_chat *chat, struct lk_token_bytes *out) {
    return lk_token_bytes_make(out, chat->tokenizer);
}

static enum lk_code on_token(void *context, int32_t id, int64_t n) {
    const struct batch *b = context;
    (void)id;
    (void)n;
    return b->tick ? b->tick() : LK_OK;
}

/* The form's first text behind the prompt. */
static enum lk_code append(struct chat_prompt *p, const int32_t *ids, size_t n) {
    if (!n) return LK_OK;
    int32_t *grown = lk_realloc(p->ids, ((size_t)p->n_ids + n) * sizeof *grown);
    if (!grown) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    memcpy(grown + p->n_ids, ids, n * sizeof *ids);
    p->ids = grown;
    p->n_ids += (int64_t)n;
    return LK_OK;
}

static enum lk_code prepare(struct batch *b, const struct lk_chat_question *q, const struct lk_token_bytes *tokens,
                            int number) {
    struct asked *a = &b->asked[b->n];
    struct lk_generate_request *r = &b->requests[b->n];
    int32_t *ids;
    size_t n;
    *a = (struct asked){.answer = number};
    LK_TRY(lk_chat_prompt_make(&a->prompt, b->chat, &q->request));
    int64_t shared = q->n_shared_images ? a->prompt.after_image[q->n_shared_images - 1] : a->prompt.n_ids;
    a->writer.tokenizer = b->chat->tokenizer;
    a->writer.tokens = tokens;
    a->writer.form = q->form;
    if (!q->form && !q->plain) LK_TRY(lk_token_digits(tokens, a->writer.digits));
    LK_TRY(lk_form_begin(&a->writer, &ids, &n));
    enum lk_code rc = append(&a->prompt, ids, n);
    lk_free(ids);
    a->guide = lk_form_guide(&a->writer);
    *r = (struct lk_generate_request){.ids = a->prompt.ids,
                                      .n_ids = a->prompt.n_ids,
                                      .images = a->prompt.images,
                                      .n_images = a->prompt.n_images,
                                      .config = q->request.generation,
                                      .n_valid_ids = lk_tokenizer_vocab_size(b->chat->tokenizer),
                                      .seed = q->request.seed,
                                      .shared_key = shared < a->prompt.n_ids ? q->shared_key : 0,
                                      .n_shared = shared,
                                      .n_shared_images = q->n_shared_images ? q->n_shared_images : a->prompt.n_images,
                                      .token = on_token,
                                      .token_context = b,
                                      .guide = q->plain ? NULL : &a->guide};
    return rc;
}

static enum lk_code write_answer(const struct batch *b, const struct asked *a, const struct lk_generation *g,
                                 struct lk_chat_answer *out) {
    struct lk_text_stream stream = {0};
    char *bytes;
    size_t n;
    const char *begin = a->writer.form ? a->writer.form->pieces[0].text : "";
    LK_TRY(lk_tokenizer_decode(b->chat->tokenizer, g->ids, (size_t)g->n, true, &bytes, &n));
    enum lk_code rc = lk_text_stream_add(&stream, begin, strlen(begin));
    if (!rc) rc = lk_text_stream_add(&stream, bytes, n);
    if (!rc) rc = lk_text_stream_end(&stream);
    lk_free(bytes);
    out->text = stream.text.bytes;
    out->n = stream.text.n;
    out->n_prompt_tokens = a->prompt.n_ids;
    out->n_tokens = g->n;
    out->stopped = g->stopped;
    out->n_choices = a->writer.n_choices;
    memcpy(out->choices, a->writer.choices, sizeof out->choices);
    return rc;
}

static enum lk_code ask_all(struct batch *b, struct lk_device *dev, const struct lk_token_bytes *tokens,
                            const struct lk_chat_question *questions, int n, int n_slots,
                            struct lk_chat_answer *answers) {
    for (int i = 0; i < n; i++) {
        enum lk_code rc = prepare(b, &questions[i], tokens, i);
        if (rc == LK_E_NOMEM || rc == LK_E_INTERNAL) {
            b->n++; /* to be freed */
            return rc;
        }
        answers[i].code = rc;
        if (!rc) {
            b->n++;
            continue;
        }
        snprintf(answers[i].error, sizeof answers[i].error, "%s", lk_error_text());
        lk_chat_prompt_free(&b->asked[b->n].prompt);
        lk_form_writer_free(&b->asked[b->n].writer);
    }
    LK_TRY(lk_generate(dev, &b->chat->vlm, b->chat->compute, b->requests, b->n, n_slots, b->generations));
    LK_TRY(lk_checkpoint_check(&b->chat->checkpoint));
    for (int i = 0; i < b->n; i++)
        LK_TRY(write_answer(b, &b->asked[i], &b->generations[i], &answers[b->asked[i].answer]));
    return LK_OK;
}

enum lk_code lk_chat_ask(const struct lk_chat *chat, struct lk_device *dev, const struct lk_token_bytes *tokens,
                         const struct lk_chat_question *questions, int n, int n_slots, enum lk_code (*tick)(void),
                         struct lk_chat_answer *answers) {
    struct batch b = {.chat = chat, .tick = tick};
    for (int i = 0; i < n; i++) answers[i] = (struct lk_chat_answer){0};
    if (n < 1) return LK_OK;
    b.asked = lk_calloc((size_t)n, sizeof *b.asked);
    b.requests = lk_calloc((size_t)n, sizeof *b.requests);
    b.generations = lk_calloc((size_t)n, sizeof *b.generations);
    enum lk_code rc = b.asked && b.requests && b.generations ? LK_OK : lk_fail(LK_E_NOMEM, "questions: out of memory");
    if (!rc) rc = ask_all(&b, dev, tokens, questions, n, n_slots, answers);
    for (int i = 0; i < b.n && b.generations; i++) {
        lk_generation_free(&b.generations[i]);
        lk_chat_prompt_free(&b.asked[i].prompt);
        lk_form_writer_free(&b.asked[i].writer);
    }
    lk_free(b.asked);
    lk_free(b.requests);
    lk_free(b.generations);
    return rc;
}

enum lk_code lk_chat_plan(const struct lk_chat *chat, const struct lk_device *target,
                          const struct lk_chat_question *questions, int n, int n_slots, struct lk_plan *out) {
    struct batch b = {.chat = chat};
    b.asked = lk_calloc((size_t)n, sizeof *b.asked);
    b.requests = lk_calloc((size_t)n, sizeof *b.requests);
    enum lk_code rc = b.asked && b.requests ? LK_OK : lk_fail(LK_E_NOMEM, "questions: out of memory");
    for (int i = 0; i < n && !rc; i++) {
        rc = prepare(&b, &questions[i], NULL, i);
        b.n++;
    }
    if (!rc) rc = lk_generate_plan(target, &chat->vlm, chat->compute, b.requests, n, n_slots, out);
    for (int i = 0; i < b.n; i++) {
        lk_chat_prompt_free(&b.asked[i].prompt);
        lk_form_writer_free(&b.asked[i].writer);
    }
    lk_free(b.asked);
    lk_free(b.requests);
    return rc;
}

void lk_chat_answer_free(struct lk_chat_answer *answer) {
    lk_free(answer->text);
    answer->text = NULL;
}
