#include "models/rewrite/rewrite.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/rewrite/reply.h"

enum { MAX_NEW_TOKENS = 512, MAX_PIXELS = 1003520, SHOWN_BYTES = 200 };

/* A job's part of a round of questions. */
struct asked {
    struct lk_image pictures[LK_VLM_MAX_IMAGES];
    struct lk_chat_part system, parts[LK_VLM_MAX_IMAGES + 1], text;
    struct lk_chat_message messages[3];
    char *user;
    struct lk_rewrite *job;
};

/* The user's text around the prompt, from which FLUX.2's code takes each "[IMG]". */
static char *fill(const char *user, const char *prompt, bool take_images_out) {
    static const char image[] = "[IMG]";
    const char *at = strstr(user, "{prompt}");
    struct lk_text out = {0};
    lk_text_bytes(&out, user, (size_t)(at - user));
    while (*prompt) {
        const char *next = take_images_out ? strstr(prompt, image) : NULL;
        const size_t n = next ? (size_t)(next - prompt) : strlen(prompt);
        lk_text_bytes(&out, prompt, n);
        prompt += n + (next ? sizeof image - 1 : 0);
    }
    lk_text_add(&out, "%s", at + strlen("{prompt}"));
    if (out.rc) lk_text_free(&out);
    return out.bytes;
}

/* Pictures and text in one message, as Qwen's polisher has it. */
static enum lk_code message_of_all(struct asked *a, struct lk_chat_request *q) {
    const struct lk_rewrite *job = a->job;
    for (int i = 0; i < job->n_images; i++) {
        LK_TRY(lk_rewrite_picture_qwen(&job->images[i], &a->pictures[i]));
        a->parts[i].image = a->pictures[i].pixels ? &a->pictures[i] : &job->images[i];
    }
    a->parts[job->n_images] = a->text;
    a->messages[q->n_messages++] = (struct lk_chat_message){"user", a->parts, job->n_images + 1};
    return LK_OK;
}

/* A message of all pictures as one, then one of the text, as FLUX.2 has it. */
static enum lk_code message_of_each(struct asked *a, struct lk_chat_request *q) {
    const struct lk_rewrite *job = a->job;
    if (job->n_images) {
        LK_TRY(lk_rewrite_picture_flux2(job->images, job->n_images, &a->pictures[0]));
        a->parts[0].image = a->pictures[0].pixels ? &a->pictures[0] : job->images;
        a->messages[q->n_messages++] = (struct lk_chat_message){"user", a->parts, 1};
    }
    a->messages[q->n_messages++] = (struct lk_chat_message){"user", &a->text, 1};
    return LK_OK;
}

static enum lk_code make_question(const struct lk_rewriter *r, struct asked *a, struct lk_chat_question *out) {
    const struct lk_rewrite_texts *t = &r->texts;
    struct lk_chat_request *q = &out->request;
    const int try = a->job->n_tries;
    if (a->job->n_images > LK_VLM_MAX_IMAGES)
        return lk_fail(LK_E_USAGE, "images: expected at most %d, got %d", LK_VLM_MAX_IMAGES, a->job->n_images);
    *out = (struct lk_chat_question){.plain = true, .request.generation = r->generation};
    if (!(a->user = fill(t->user, a->job->prompt, t->system_pictures != NULL)))
        return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    a->text.text = a->user;
    a->system.text = a->job->n_images && t->system_pictures ? t->system_pictures : t->system;
    a->messages[q->n_messages++] = (struct lk_chat_message){"system", &a->system, 1};
    LK_TRY(t->system_pictures ? message_of_each(a, q) : message_of_all(a, q));
    q->messages = a->messages;
    q->max_pixels = MAX_PIXELS;
    q->generation.max_new_tokens = MAX_NEW_TOKENS;
    q->generation.do_sample = try || r->temperature > 0;
    q->generation.temperature = try ? 0.7 : r->temperature > 0 ? r->temperature : 1;
    if (q->generation.do_sample) q->generation.top_k = 50; /* a model whose own is 1 would draw the same again */
    if (try) q->generation.top_p = 0.9;
    q->seed = r->seed + (uint64_t)try;
    return LK_OK;
}

/* What the reply is worth. */
static enum lk_code read_reply(const struct lk_rewriter *r, const struct lk_chat_answer *answer, char **text,
                               const char **why) {
    const char *reply = answer->text ? answer->text : "";
    *text = NULL;
    *why = "expected an end of the reply, got none within the limit of tokens";
    if (!answer->stopped) return LK_OK;
    LK_TRY(r->texts.key ? lk_rewrite_reply_json(reply, answer->n, r->texts.key, text, why)
                        : lk_rewrite_reply_text(reply, answer->n, text, why));
    if (!*text) return LK_OK;
    enum lk_code rc = r->check(r->context, *text);
    if (!rc) {
        *why = NULL;
        return LK_OK;
    }
    lk_free(*text);
    *text = NULL;
    *why = "expected a text, got one with a token that controls the model";
    return rc == LK_E_PROMPT ? LK_OK : rc;
}

static enum lk_code take_answer(const struct lk_rewriter *r, struct lk_rewrite *job, struct lk_chat_question *question,
                                struct lk_chat_answer *answer) {
    job->refused = answer->code != LK_OK; /* whatever would be drawn */
    if (job->refused) {
        snprintf(job->error, sizeof job->error, "%s", answer->error);
        return LK_OK;
    }
    const int try = job->n_tries++;
    LK_TRY(read_reply(r, answer, &job->text, &job->tries[try].why));
    job->tries[try].reply = answer->text ? answer->text : lk_strdup("");
    job->tries[try].n_tokens = answer->n_tokens;
    job->tries[try].seed = question->request.seed;
    job->tries[try].drawn = question->request.generation.do_sample;
    answer->text = NULL;
    if (!job->tries[try].reply) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    if (job->text) return LK_OK;
    snprintf(job->error, sizeof job->error, "no usable prompt in %d tries: %s: \"%.*s\"", job->n_tries,
             job->tries[try].why, SHOWN_BYTES, job->tries[try].reply);
    return LK_OK;
}

static enum lk_code ask_round(const struct lk_rewriter *r, struct lk_rewrite *const *open, int n,
                              enum lk_code (*tick)(void), struct asked *asked, struct lk_chat_question *questions,
                              struct lk_chat_answer *answers) {
    enum lk_code rc = LK_OK;
    int n_asked = 0;
    for (int i = 0; i < n && !rc; i++) {
        struct asked *a = &asked[n_asked];
        *a = (struct asked){.job = open[i]};
        rc = make_question(r, a, &questions[n_asked]);
        n_asked++;
        if (rc == LK_E_USAGE || rc == LK_E_IMAGE_SIZE) { /* of this job */
            struct lk_chat_answer refused = {.code = rc};
            snprintf(refused.error, sizeof refused.error, "%s", lk_error_text());
            rc = take_answer(r, open[i], NULL, &refused);
            for (int k = 0; k < LK_VLM_MAX_IMAGES; k++) lk_image_free(&a->pictures[k]);
            lk_free(a->user);
            n_asked--;
        }
    }
    if (!rc) rc = r->ask(r->context, questions, n_asked, r->n_slots, tick, answers);
    for (int i = 0; i < n_asked; i++) {
        if (!rc) rc = take_answer(r, asked[i].job, &questions[i], &answers[i]);
        lk_chat_answer_free(&answers[i]);
        for (int k = 0; k < LK_VLM_MAX_IMAGES; k++) lk_image_free(&asked[i].pictures[k]);
        lk_free(asked[i].user);
    }
    return rc;
}

enum lk_code lk_rewrite(const struct lk_rewriter *r, struct lk_rewrite *jobs, int n, enum lk_code (*tick)(void)) {
    const size_t size = n > 0 ? (size_t)n : 1;
    struct lk_rewrite **open = lk_calloc(size, sizeof *open);
    struct asked *asked = lk_calloc(size, sizeof *asked);
    struct lk_chat_question *questions = lk_calloc(size, sizeof *questions);
    struct lk_chat_answer *answers = lk_calloc(size, sizeof *answers);
    enum lk_code rc =
        open && asked && questions && answers ? LK_OK : lk_fail(LK_E_NOMEM, "rewrite: out of memory for %d prompts", n);
    for (int n_open = 1; n_open && !rc;) {
        n_open = 0;
        for (int i = 0; i < n; i++)
            if (!jobs[i].text && !jobs[i].refused && jobs[i].n_tries < LK_REWRITE_TRIES) open[n_open++] = &jobs[i];
        memset(answers, 0, size * sizeof *answers);
        if (n_open) rc = ask_round(r, open, n_open, tick, asked, questions, answers);
    }
    lk_free(open);
    lk_free(asked);
    lk_free(questions);
    lk_free(answers);
    return rc;
}

enum lk_code lk_rewrite_plan(const struct lk_rewriter *r, const struct lk_device *target, struct lk_rewrite *job,
                             struct lk_plan *out) {
    struct asked *a = lk_calloc(1, sizeof *a);
    struct lk_chat_question question;
    if (!a) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    a->job = job;
    enum lk_code rc = make_question(r, a, &question);
    if (!rc) rc = r->plan(r->context, target, &question, 1, 1, out);
    for (int k = 0; k < LK_VLM_MAX_IMAGES; k++) lk_image_free(&a->pictures[k]);
    lk_free(a->user);
    lk_free(a);
    return rc;
}

void lk_rewrite_free(struct lk_rewrite *job) {
    lk_free(job->text);
    for (int i = 0; i < LK_REWRITE_TRIES; i++) lk_free(job->tries[i].reply);
    *job = (struct lk_rewrite){0};
}

static void add(struct lk_text *out, const char *key, const char *value) {
    lk_text_add(out, "\"%s\":", key);
    lk_text_json(out, value);
    lk_text_add(out, ",");
}

void lk_rewrite_record(const struct lk_rewriter *r, const struct lk_rewrite *job, struct lk_text *out) {
    const int last = job->n_tries - 1;
    lk_text_add(out, "{");
    add(out, "style", r->texts.style);
    add(out, "prompts_sha256", r->texts.sha256);
    add(out, "source", r->texts.source);
    lk_text_add(out, "\"model\":{");
    add(out, "name", r->name);
    add(out, "weights", r->weights);
    add(out, "dtype", r->dtype);
    lk_text_add(out, "\"quantize\":\"none\"},");
    add(out, "architecture", r->architecture);
    lk_text_add(out, "\"max_pixels\":%d,\"greedy\":%s,\"temperature\":", MAX_PIXELS,
                r->temperature > 0 ? "false" : "true");
    lk_text_number(out, r->temperature);
    lk_text_add(out, ",\"seed\":%llu,\"tries\":%d,", (unsigned long long)r->seed, job->n_tries);
    add(out, "original", job->prompt);
    if (job->text) add(out, "prompt", job->text);
    if (!job->text) add(out, "failed", job->error);
    lk_text_add(out, "\"attempts\":[");
    for (int i = 0; i < job->n_tries; i++) {
        lk_text_add(out, i ? ",{" : "{");
        add(out, "reply", job->tries[i].reply);
        if (job->tries[i].why) add(out, "why", job->tries[i].why);
        lk_text_add(out, "\"drawn\":%s,\"seed\":%llu,\"tokens\":%lld}", job->tries[i].drawn ? "true" : "false",
                    (unsigned long long)job->tries[i].seed, (long long)job->tries[i].n_tokens);
    }
    lk_text_add(out, "],\"tokens\":%lld}", (long long)(last < 0 ? 0 : job->tries[last].n_tokens));
}
