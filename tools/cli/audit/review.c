#include "tools/cli/audit/review.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/text.h"
#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/log.h"
#include "tools/cli/cli.h"
#include "tools/cli/audit/known.h"
#include "tools/cli/audit/pairs.h"

/* A file that holds lines but no decision. */
static enum lk_code no_review(const struct lk_review *review, const char *path) {
    return lk_fail(LK_E_INPUT, "%s: line %zu: %s; expected a review file, nothing was done with it", path,
                   review->rejects.list[0].line, review->rejects.list[0].reason);
}

enum lk_code cli_review_read(struct lk_dataset *data, const char *path) {
    struct lk_review review = {.data = data};
    struct lk_review_counts counts;
    enum lk_code rc = lk_review_file(&review, path);
    if (!rc && !review.n && review.n_invalid) rc = no_review(&review, path);
    if (!rc) rc = lk_review_apply(data, &review, &counts);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%s: %zu decisions stand, %zu replaced, %zu of other items, %zu invalid", path,
               counts.n_standing, counts.n_replaced, counts.n_unknown, review.n_invalid);
        cli_print_rejects(path, &review.rejects);
    }
    lk_review_free(&review);
    return rc;
}

static bool fill(cJSON *line, const struct lk_decision *d) {
    if (!cJSON_AddStringToObject(line, "item_id", d->item_id) ||
        !cJSON_AddStringToObject(line, "axis", lk_review_axis_key(d->axis)))
        return false;
    const char *text = lk_review_score_text(d->axis, d->score);
    bool scored = d->score == LK_REVIEW_WITHDRAWN ? cJSON_AddNullToObject(line, "score") != NULL
                  : d->axis == LK_REVIEW_ROLE     ? cJSON_AddStringToObject(line, "score", text) != NULL
                                                  : cJSON_AddNumberToObject(line, "score", d->score) != NULL;
    return scored && cJSON_AddStringToObject(line, "reviewer", d->reviewer) &&
           (!*d->time || cJSON_AddStringToObject(line, "time", d->time)) &&
           (!*d->reason || cJSON_AddStringToObject(line, "reason", d->reason));
}

static enum lk_code add_line(struct lk_text *lines, const struct lk_decision *d) {
    cJSON *object = cJSON_CreateObject();
    char *text = object && fill(object, d) ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (text) lk_text_add(lines, "%s\n", text);
    bool made = text;
    cJSON_free(text);
    return made ? lines->rc : lk_fail(LK_E_NOMEM, "review: out of memory");
}

/* The journal as it is. A file that holds lines but no decision is not one, and nothing is to be added to it. */
static enum lk_code read_journal(struct lk_review *journal, const char *path) {
    struct stat st;
    if (stat(path, &st) && errno == ENOENT) return LK_OK;
    LK_TRY(lk_review_file(journal, path));
    if (!journal->n && journal->n_invalid) return no_review(journal, path);
    cli_print_rejects(path, &journal->rejects);
    return LK_OK;
}

static enum lk_code decide(const struct lk_dataset *data, const struct cli_arguments *a, struct lk_decision *d) {
    int prompt;
    *d = (struct lk_decision){
        .item_id = a->more[0], .reviewer = a->stats.by, .time = a->review.time, .reason = a->review.note};
    LK_TRY(lk_dataset_id_prompt(data, d->item_id, strlen(d->item_id), &prompt));
    d->axis = lk_review_axis(a->more[1], prompt);
    if (d->axis < 0) return lk_fail(LK_E_INPUT, "review set: \"%.40s\" is no axis of %s", a->more[1], d->item_id);
    d->score = lk_review_score_parse(d->axis, a->more[2]);
    if (d->score == -1)
        return lk_fail(LK_E_INPUT, "review set: expected %s, or none, got \"%.40s\"",
                       d->axis == LK_REVIEW_ROLE ? "male, female or unclear" : "a score from 1 to 5", a->more[2]);
    const enum lk_code rc = lk_review_check(d);
    return rc ? lk_fail_prefix(rc, "--by, --time, --note") : LK_OK;
}

enum lk_code cli_review_set(const struct cli_arguments *a) {
    struct lk_dataset data;
    struct lk_review journal = {.data = &data};
    struct lk_text lines = {0};
    struct lk_decision d;
    lk_dataset_init(&data);
    enum lk_code rc = cli_known_read(&data, &a->report);
    if (!rc) rc = decide(&data, a, &d);
    if (!rc) rc = read_journal(&journal, a->review.file);
    if (!rc) rc = add_line(&lines, &d);
    if (!rc) rc = lk_append_lines(a->review.file, lines.bytes, lines.n);
    if (!rc) printf("%.*s", (int)lines.n, lines.bytes);
    lk_text_free(&lines);
    lk_review_free(&journal);
    lk_dataset_free(&data);
    return rc;
}

static bool is_same(const struct lk_decision *a, const struct lk_decision *b) {
    return a->score == b->score && !strcmp(a->reviewer, b->reviewer) && !strcmp(a->time, b->time) &&
           !strcmp(a->reason, b->reason);
}

/* The filled table's decisions that the journal does not hold already. */
static enum lk_code collect(struct lk_dataset *data, const struct lk_review *journal, const struct lk_review *filled,
                            struct lk_text *out, size_t *n_added) {
    int32_t *standing = NULL, item;
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < filled->n && !rc; i++)
        rc = lk_dataset_item(data, filled->list[i].item_id, strlen(filled->list[i].item_id), &item);
    if (!rc) standing = lk_malloc((data->n_items + 1) * LK_N_REVIEW_AXES * sizeof *standing);
    if (!rc && !standing) rc = lk_fail(LK_E_NOMEM, "review: out of memory");
    if (!rc) lk_review_standing(data, journal, standing, NULL);
    for (size_t i = 0; i < filled->n && !rc; i++) {
        const struct lk_decision *d = &filled->list[i];
        rc = lk_dataset_find(data, d->item_id, strlen(d->item_id), &item);
        int32_t known = rc ? -1 : standing[(size_t)item * LK_N_REVIEW_AXES + (size_t)d->axis];
        if (rc || (known >= 0 && is_same(d, &journal->list[known]))) continue;
        rc = add_line(out, d);
        ++*n_added;
    }
    lk_free(standing);
    return rc;
}

enum lk_code cli_review_import(const struct cli_arguments *a) {
    struct lk_dataset data;
    struct lk_review journal = {.data = &data}, filled = {.data = &data, .by = a->stats.by, .when = a->review.time};
    struct lk_text lines = {0};
    size_t n_added = 0;
    const char *path = a->more[0];
    lk_dataset_init(&data);
    enum lk_code rc = cli_known_read(&data, &a->report);
    if (!rc) rc = read_journal(&journal, a->review.file);
    if (!rc) rc = lk_review_file(&filled, path);
    if (!rc) rc = collect(&data, &journal, &filled, &lines, &n_added);
    if (!rc && lines.n) rc = lk_append_lines(a->review.file, lines.bytes, lines.n);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%s: %zu decisions added, %zu known, %zu left open, %zu invalid", path, n_added,
               filled.n - n_added, filled.n_open, filled.n_invalid);
        cli_print_rejects(path, &filled.rejects);
        if (filled.n_invalid)
            rc = lk_fail(filled.n ? LK_E_PARTIAL : LK_E_INPUT, "%s: %zu of %zu decisions could not be read%s", path,
                         filled.n_invalid, filled.n + filled.n_invalid, filled.n ? "; the others were added" : "");
    }
    lk_text_free(&lines);
    lk_review_free(&filled);
    lk_review_free(&journal);
    lk_dataset_free(&data);
    return rc;
}
