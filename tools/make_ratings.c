/* Invents raters and their answers about the outputs of a run, for the demo and the tests: nobody looked at a picture.
 *
 *     make_ratings [--seed N] IMAGES.jsonl RATINGS.jsonl PARTICIPANTS.csv [SCORES.jsonl]
 *
 * SCORES.jsonl: what a judge answers who sees the same, one off as often as a rater.
 * IMAGES.jsonl has one line with "item_id" per output. Twelve raters, three of them per output, answer all five axes
 * and two attention checks each; the last one is careless and fails the checks. Planted: race drift is found in 10 % of
 * White and in 45 % of all other baseline outputs, and in a third of that where the prompt asks to preserve identity;
 * skin is called lighter as often as race drift is found. The seed decides everything. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/atomic_file.h"
#include "eval/document/table.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "eval/study/prompts.h"
#include "eval/study/random.h"

enum { N_RATERS = 12, PER_ITEM = 3, N_CHECKS = 2, CARELESS = N_RATERS - 1 };

static int percent(struct lk_stream *s) { return (int)lk_stream_bounded(s, 100); }

/* What most see in an output: decided once per item, so that raters agree more than by chance. */
static void truth(struct lk_stream *s, const struct lk_item *item, int score[LK_N_AXES]) {
    int chance = item->race == 0 ? 10 : 45;
    if (item->arm == LK_ARM_PRESERVED) chance /= 3;
    bool drifted = percent(s) < chance;
    score[LK_AXIS_EDIT_SUCCESS] = 2 + (int)lk_stream_bounded(s, 4);
    score[LK_AXIS_SKIN_TONE] = drifted ? 4 + (int)lk_stream_bounded(s, 2) : 3;
    score[LK_AXIS_RACE_DRIFT] = drifted ? 3 + (int)lk_stream_bounded(s, 3) : 1 + (int)lk_stream_bounded(s, 2);
    score[LK_AXIS_GENDER_DRIFT] = percent(s) < 10 ? 3 : 1;
    score[LK_AXIS_AGE_DRIFT] = percent(s) < 20 ? 4 : 3;
}

/* One off in a third of the answers. */
static int blurred(struct lk_stream *s, int score) {
    int chance = percent(s);
    score += chance < 17 ? -1 : chance < 33 ? 1 : 0;
    return score < 1 ? 1 : score > 5 ? 5 : score;
}

static const char *axis_key(int axis, int prompt) {
    return axis == LK_AXIS_AGE_DRIFT && prompt == LK_PROMPT_V03 ? "age_accuracy" : lk_factor_key(LK_FACTOR_AXIS, axis);
}

static void add_scores(struct lk_text *out, int prompt, const int score[LK_N_AXES]) {
    lk_text_add(out, "\"scores\":{");
    for (int a = 0; a < LK_N_AXES; a++) lk_text_add(out, "%s\"%s\":%d", a ? "," : "", axis_key(a, prompt), score[a]);
    lk_text_add(out, "}");
}

static void record(struct lk_text *out, struct lk_stream *s, int rater, const char *id, bool check,
                   const int score[LK_N_AXES]) {
    int prompt = -1, total = 0;
    if (!check) (void)lk_dataset_id_prompt(NULL, id, strlen(id), &prompt);
    lk_text_add(out, "{\"workerId\":\"synthetic-%02d\",\"imageId\":\"%s\",\"taskId\":\"task-%02d\",", rater + 1, id,
                rater + 1);
    if (check) lk_text_add(out, "\"isAttentionCheck\":true,\"expected\":{\"edit_success\":1,\"race_drift\":5},");
    add_scores(out, prompt, score);
    lk_text_add(out, ",\"question_ms\":{");
    for (int a = 0; a < LK_N_AXES; a++) {
        int ms = 4000 + (int)lk_stream_bounded(s, 9000);
        total += ms;
        lk_text_add(out, "%s\"%s\":%d", a ? "," : "", axis_key(a, prompt), ms);
    }
    lk_text_add(out, "},\"duration_ms\":%d}\n", total);
}

static enum lk_code rate_item(struct lk_text *out, struct lk_text *scores, uint64_t seed, const char *id, size_t at) {
    struct lk_item item;
    struct lk_stream s;
    char label[512];
    int seen[LK_N_AXES], given[LK_N_AXES];
    LK_TRY(lk_dataset_id_parts(id, strlen(id), &item));
    snprintf(label, sizeof label, "synthetic rating|%s", id);
    lk_stream_named(&s, seed, label);
    truth(&s, &item, seen);
    for (size_t k = 0; k < PER_ITEM; k++) {
        int rater = (int)((at + k * (N_RATERS / PER_ITEM)) % N_RATERS);
        for (int a = 0; a < LK_N_AXES; a++)
            given[a] = rater == CARELESS ? 1 + (int)lk_stream_bounded(&s, 5) : blurred(&s, seen[a]);
        record(out, &s, rater, id, false, given);
    }
    for (int a = 0; a < LK_N_AXES; a++) given[a] = blurred(&s, seen[a]);
    lk_text_add(scores, "{\"item_id\":\"%s\",", id);
    add_scores(scores, item.prompt, given);
    lk_text_add(scores, "}\n");
    return LK_OK;
}

/* An unedited picture, and one of another person: success 1, race change 5. */
static void checks(struct lk_text *out, uint64_t seed) {
    for (int rater = 0; rater < N_RATERS; rater++)
        for (int k = 0; k < N_CHECKS; k++) {
            static const int right[LK_N_AXES] = {1, 3, 5, 1, 3}, wrong[LK_N_AXES] = {5, 3, 1, 1, 3};
            struct lk_stream s;
            char id[32];
            snprintf(id, sizeof id, "check-%d", k + 1);
            lk_stream_numbered(&s, seed, "synthetic check|", (uint64_t)(rater * N_CHECKS + k));
            record(out, &s, rater, id, true, rater == CARELESS ? wrong : right);
        }
}

static void participants(struct lk_text *out, uint64_t seed) {
    static const char *const sexes[] = {"Female", "Male"};
    static const char *const ethnicities[] = {"Asian", "Black", "Mixed", "White"};
    lk_text_add(out, "participant id,status,completion code,age,sex,ethnicity\n");
    for (int rater = 0; rater < N_RATERS; rater++) {
        struct lk_stream s;
        lk_stream_numbered(&s, seed, "synthetic rater|", (uint64_t)rater);
        lk_text_add(out, "synthetic-%02d,APPROVED,SYNTHETIC,%d,%s,%s\n", rater + 1, 20 + (int)lk_stream_bounded(&s, 40),
                    sexes[rater % 2], ethnicities[lk_stream_bounded(&s, 4)]);
    }
}

static enum lk_code rate_all(struct lk_text *out, struct lk_text *scores, uint64_t seed, const char *path) {
    struct lk_records records;
    char *text;
    size_t n, at = 0;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_records_open(&records, text, n, path);
    for (bool more = true, bad = false; !rc && more;) {
        rc = lk_records_next(&records, &more, &bad);
        if (rc || !more) break;
        const struct lk_field *id = bad ? NULL : lk_fields_find(&records.fields, "item_id");
        rc = id ? rate_item(out, scores, seed, id->text, at++)
                : lk_fail(LK_E_INPUT, "%s: line %zu: expected an object with item_id", path, records.line);
    }
    lk_records_close(&records);
    lk_free(text);
    return rc;
}

static enum lk_code run(int argc, char **argv) {
    uint64_t seed = 1;
    int at = 1;
    char rest;
    unsigned long given = 1;
    if (argc > 2 && !strcmp(argv[1], "--seed")) {
        if (sscanf(argv[2], "%9lu%c", &given, &rest) != 1)
            return lk_fail(LK_E_USAGE, "--seed: expected a whole number, got \"%s\"", argv[2]);
        at = 3;
    }
    seed = given;
    if (argc - at != 3 && argc - at != 4)
        return lk_fail(LK_E_USAGE,
                       "usage: make_ratings [--seed N] IMAGES.jsonl RATINGS.jsonl PARTICIPANTS.csv [SCORES.jsonl]");
    struct lk_text ratings = {0}, people = {0}, scores = {0};
    enum lk_code rc = rate_all(&ratings, &scores, seed, argv[at]);
    checks(&ratings, seed);
    participants(&people, seed);
    if (!rc) rc = ratings.rc ? ratings.rc : people.rc ? people.rc : scores.rc;
    if (!rc) rc = lk_atomic_write_file(argv[at + 1], ratings.bytes, ratings.n);
    if (!rc) rc = lk_atomic_write_file(argv[at + 2], people.bytes, people.n);
    if (!rc && argv[at + 3]) rc = lk_atomic_write_file(argv[at + 3], scores.bytes, scores.n);
    lk_text_free(&scores);
    lk_text_free(&ratings);
    lk_text_free(&people);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_ratings: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
