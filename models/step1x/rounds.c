#include "models/step1x/rounds.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

/* The verdict on a round whose replies stayed malformed. */
static const char gave_up[] = "<#Think> The process encountered repeated errors and could not complete.<#Failed>";

struct session {
    const struct lk_request *request;
    const struct lk_step1x_instructions *instructions;
    const struct lk_step1x_player *player;
    const char *prompt; /* of the first round, rewritten or not */
};

/* One call with the pictures that it looks at. values[LK_STEP1X_LANGUAGE] is filled in. */
static enum lk_code ask(const struct session *s, enum lk_step1x_call call, const char *values[LK_STEP1X_N_VALUES],
                        const struct lk_image *first, const struct lk_image *second, char **reply) {
    struct lk_step1x_question q = {.images = {first, second}, .n_images = second ? 2 : 1};
    char *texts[LK_STEP1X_N_ROLES] = {0};
    enum lk_code rc = LK_OK;
    *reply = NULL;
    values[LK_STEP1X_LANGUAGE] = lk_step1x_language(values[LK_STEP1X_INSTRUCTION]);
    for (int i = 0; !rc && i < LK_STEP1X_N_ROLES; i++)
        rc = lk_step1x_fill(s->instructions->texts[call][i], values, &texts[i]);
    q.system = texts[LK_STEP1X_SYSTEM];
    q.user = texts[LK_STEP1X_USER];
    q.text_first = call == LK_STEP1X_SCORE;
    if (!rc) rc = s->player->ask(s->player->context, &q, reply);
    for (int i = 0; i < LK_STEP1X_N_ROLES; i++) lk_free(texts[i]);
    return rc;
}

/* The reply without the white space around it. */
static enum lk_code ask_stripped(const struct session *s, enum lk_step1x_call call,
                                 const char *values[LK_STEP1X_N_VALUES], const struct lk_image *first,
                                 const struct lk_image *second, char **reply) {
    LK_TRY(ask(s, call, values, first, second, reply));
    size_t n;
    const char *start = lk_utf8_strip(*reply, strlen(*reply), &n);
    memmove(*reply, start, n);
    (*reply)[n] = 0;
    return LK_OK;
}

static enum lk_code rewrite(const struct session *s, const char *prompt, char **out) {
    const char *values[] = {prompt, "", "", "", ""};
    LK_TRY(ask_stripped(s, LK_STEP1X_REWRITE, values, s->request->images, NULL, out));
    if (!lk_step1x_is_error(*out)) return LK_OK;
    enum lk_code rc = lk_fail(LK_E_INPUT, "thinking: the model answered with an error: %.200s", *out);
    lk_free(*out);
    *out = NULL;
    return rc;
}

/* What a result is measured against. *out stays NULL when no try gave it. */
static enum lk_code describe(const struct session *s, char **out) {
    const char *values[] = {s->prompt, "", "", "", ""};
    for (int i = 0; i < LK_STEP1X_TRIES && !*out; i++) {
        LK_TRY(ask_stripped(s, LK_STEP1X_DESCRIBE, values, s->request->images, NULL, out));
        if (!lk_step1x_is_error(*out)) break;
        lk_free(*out);
        *out = NULL;
    }
    return LK_OK;
}

static enum lk_code score_consistency(const struct session *s, const char *description, const struct lk_image *edited,
                                      struct lk_round *round, bool *valid) {
    const char *values[] = {s->prompt, "", description, "", ""};
    *valid = false;
    for (int i = 0; i < LK_STEP1X_TRIES && !*valid; i++) {
        char *reply;
        LK_TRY(ask_stripped(s, LK_STEP1X_SCORE, values, edited, NULL, &reply));
        enum lk_code rc = lk_step1x_read_consistency(reply, valid, &round->consistency, &round->reason);
        lk_free(reply);
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code reflect(const struct session *s, const struct lk_image *edited, struct lk_round *round) {
    char printed[32];
    const char *values[] = {s->prompt, "", "", printed, round->reason};
    bool valid = false;
    lk_step1x_print_score(round->consistency, printed);
    for (int i = 0; i < LK_STEP1X_TRIES && !valid; i++) {
        char *reply;
        LK_TRY(ask_stripped(s, LK_STEP1X_REFLECT, values, s->request->images, edited, &reply));
        enum lk_code rc = lk_step1x_read_reflection(reply, &valid, &round->reflection);
        lk_free(reply);
        if (rc) return rc;
    }
    return LK_OK;
}

/* Description, score, reflection: each is tried until its reply can be read, and the next is not asked when it never
 * could. */
static enum lk_code judge(const struct session *s, const struct lk_image *edited, struct lk_round *round) {
    char *description = NULL;
    bool scored = false;
    enum lk_code rc = describe(s, &description);
    if (!rc && description) rc = score_consistency(s, description, edited, round, &scored);
    lk_free(description);
    if (!rc && scored) rc = reflect(s, edited, round);
    if (rc || round->reflection) return rc;
    round->reflection = lk_strdup(gave_up);
    return round->reflection ? LK_OK : lk_fail(LK_E_NOMEM, "reflection: out of memory");
}

/* The least of the scores of a call, 0 when its replies stayed malformed. */
static enum lk_code least_score(const struct session *s, enum lk_step1x_call call, const struct lk_image *first,
                                const struct lk_image *second, double *least) {
    const char *values[] = {s->prompt, "", "", "", ""};
    bool valid = false;
    for (int i = 0; i < LK_STEP1X_TRIES && !valid; i++) {
        char *reply;
        LK_TRY(ask_stripped(s, call, values, first, second, &reply));
        enum lk_code rc = lk_step1x_read_scores(reply, &valid, least);
        lk_free(reply);
        if (rc) return rc;
    }
    if (!valid) *least = 0;
    return LK_OK;
}

/* Everything that the model is asked about a round's picture. */
static enum lk_code review(const struct session *s, const struct lk_image *edited, struct lk_round *round) {
    LK_TRY(judge(s, edited, round));
    LK_TRY(least_score(s, LK_STEP1X_SCORE1, s->request->images, edited, &round->edit_score));
    LK_TRY(least_score(s, LK_STEP1X_SCORE2, edited, NULL, &round->look_score));
    round->score = round->edit_score * round->look_score;
    return LK_OK;
}

static enum lk_code run_round(const struct session *s, struct lk_step1x_course *course, const struct lk_image *before,
                              struct lk_result *edited, struct lk_round *round) {
    const char *next = NULL;
    round->from_source = course->from_source;
    round->prompt = lk_strdup(course->prompt);
    if (!round->prompt) return lk_fail(LK_E_NOMEM, "prompt: out of memory");
    LK_TRY(
        s->player->edit(s->player->context, course->from_source ? s->request->images : before, course->prompt, edited));
    course->done = true;
    if (!s->request->reflection_mode) return LK_OK;
    LK_TRY(review(s, &edited->image, round));
    round->verdict = lk_step1x_verdict(round->reflection, &next);
    lk_step1x_advance(course, round->verdict, next, s->prompt);
    return LK_OK;
}

/* Moves the best round's picture and facts into *result, which has the rounds. */
static void take_best(struct lk_result *edits, struct lk_result *result) {
    int best = lk_step1x_best_round(result->rounds, result->n_rounds);
    struct lk_result chosen = edits[best];
    edits[best] = (struct lk_result){0};
    memcpy(chosen.rounds, result->rounds, sizeof chosen.rounds);
    chosen.n_rounds = result->n_rounds;
    chosen.best_round = best;
    for (int i = 0; i < result->n_rounds; i++)
        if (edits[i].peak_bytes > chosen.peak_bytes) chosen.peak_bytes = edits[i].peak_bytes;
    *result = chosen;
}

static enum lk_code run(struct session *s, struct lk_result *result) {
    struct lk_step1x_course course = {.prompt = s->prompt, .from_source = true};
    int most = s->request->reflection_mode ? s->request->max_try_cnt : 1;
    struct lk_result *edits = lk_calloc((size_t)most, sizeof *edits);
    enum lk_code rc = edits ? LK_OK : lk_fail(LK_E_NOMEM, "rounds: out of memory");
    for (int i = 0; !rc && i < most && !course.done; i++) {
        result->n_rounds = i + 1;
        rc = run_round(s, &course, i ? &edits[i - 1].image : NULL, &edits[i], &result->rounds[i]);
    }
    if (!rc) take_best(edits, result);
    for (int i = 0; edits && i < most; i++) lk_result_free(&edits[i]);
    lk_free(edits);
    return rc;
}

enum lk_code lk_step1x_run_rounds(const struct lk_request *request, const struct lk_step1x_instructions *instructions,
                                  const struct lk_step1x_player *player, struct lk_result *result) {
    struct session s = {.request = request, .instructions = instructions, .player = player};
    char *rewritten = NULL;
    if (!request->n_images)
        return lk_fail(LK_E_USAGE, "thinking and reflection look at a source image: give one, or switch them off");
    if (request->reflection_mode && (request->max_try_cnt < 1 || request->max_try_cnt > LK_MAX_ROUNDS))
        return lk_fail(LK_E_USAGE, "max_try_cnt: expected 1 to %d, got %d", LK_MAX_ROUNDS, request->max_try_cnt);
    s.prompt = request->prompt ? request->prompt : "";
    if (request->thinking_mode) {
        LK_TRY(rewrite(&s, s.prompt, &rewritten));
        s.prompt = rewritten;
    }
    enum lk_code rc = run(&s, result);
    lk_free(rewritten);
    return rc;
}
