
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"

/* One axis of one item. */
struct flag {
    int32_t item;
    int axis, difference; /* 0 for a role or a missing score: no distance */
};

struct list {
    struct cli_report_input in;
    struct lk_review review;
    int32_t *standing; /* [n_items, LK_N_REVIEW_AXES] */
    struct flag *flags;
    size_t n, n_open;
};

static int given(const struct lk_item *item, int judge, int axis) {
    return axis == LK_REVIEW_ROLE ? item->judge_role[judge] : item->judge[judge][axis];
}

static int larger_first(const void *a, const void *b) {
    const struct flag *x = a, *y = b;
    if (x->difference != y->difference) return x->difference > y->difference ? -1 : 1;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return x->axis - y->axis;
}

static enum lk_code collect_list(struct list *list) {
    const struct lk_dataset *data = &list->in.data;
    list->flags = lk_malloc((data->n_items + 1) * LK_N_REVIEW_AXES * sizeof *list->flags);
    list->standing = lk_malloc((data->n_items + 1) * LK_N_REVIEW_AXES * sizeof *list->standing);
    if (!list->flags || !list->standing) return lk_fail(LK_E_NOMEM, "review list: out of memory");
    for (size_t i = 0; i < data->n_items; i++)
        for (int a = 0; a < LK_N_REVIEW_AXES; a++) {
            const struct lk_item *item = &data->items[i];
            int g = given(item, 0, a), o = given(item, 1, a);
            if (!(item->review >> a & 1)) continue;
            list->flags[list->n++] = (struct flag){(int32_t)i, a, a == LK_REVIEW_ROLE || !g ? 0 : abs(g - o)};
        }
    qsort(list->flags, list->n, sizeof *list->flags, larger_first);
    return LK_OK;
}

static const struct lk_decision *decision_of(const struct list *list, const struct flag *flag) {
    int32_t at = list->standing[(size_t)flag->item * LK_N_REVIEW_AXES + (size_t)flag->axis];
    return at < 0 ? NULL : &list->review.list[at];
}

static enum lk_code read_decisions(struct list *list, const char *path) {
    list->review.data = &list->in.data;
    if (path) {
        LK_TRY(lk_review_file(&list->review, path));
        cli_print_rejects(path, &list->review.rejects);
    }
    lk_review_standing(&list->in.data, &list->review, list->standing, NULL);
    for (size_t i = 0; i < list->n; i++) list->n_open += !decision_of(list, &list->flags[i]);
    return LK_OK;
}

static bool used_secondary(const struct lk_item *item, int axis) {
    int g = given(item, 0, axis);
    return axis == LK_REVIEW_ROLE ? g == LK_ROLE_NONE : !g;
}

static void print_why(const struct lk_item *item, const struct flag *flag) {
    if (used_secondary(item, flag->axis))
        printf("the secondary judge alone");
    else if (flag->axis == LK_REVIEW_ROLE)
        printf("the judges name different people");
    else
        printf("the judges differ by %d", flag->difference);
}

static void print_cell(const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const struct list *list) {
    puts("item_id,axis,primary,secondary,difference,used,why,score,reviewer,time,reason");
    for (size_t i = 0; i < list->n; i++) {
        const struct flag *flag = &list->flags[i];
        const struct lk_item *item = &list->in.data.items[flag->item];
        const struct lk_decision *d = decision_of(list, flag);
        int axis = flag->axis;
        printf("%s,%s,%s,%s,", item->id, lk_review_axis_key(axis), lk_review_score_text(axis, given(item, 0, axis)),
               lk_review_score_text(axis, given(item, 1, axis)));
        if (flag->difference) printf("%d", flag->difference);
        printf(",%s,", used_secondary(item, axis) ? "secondary" : "primary");
        print_why(item, flag);
        printf(",%s,", d ? lk_review_score_text(axis, d->score) : "");
        print_cell(d ? d->reviewer : "");
        putchar(',');
        print_cell(d ? d->time : "");
        putchar(',');
        print_cell(d ? d->reason : "");
        putchar('\n');
    }
}

static cJSON *score_of(int axis, int score) {
    if (!*lk_review_score_text(axis, score)) return cJSON_CreateNull();
    return axis == LK_REVIEW_ROLE ? cJSON_CreateString(lk_review_score_text(axis, score)) : cJSON_CreateNumber(score);
}

static bool add_decision(cJSON *line, const struct lk_decision *d) {
    if (!d) return true;
    cJSON *decision = cJSON_AddObjectToObject(line, "decision");
    return decision && cJSON_AddItemToObject(decision, "score", score_of(d->axis, d->score)) &&
           cJSON_AddStringToObject(decision, "reviewer", d->reviewer) &&
           cJSON_AddStringToObject(decision, "time", d->time) && cJSON_AddStringToObject(decision, "reason", d->reason);
}

static enum lk_code print_json(const struct list *list) {
    for (size_t i = 0; i < list->n; i++) {
        const struct flag *flag = &list->flags[i];
        const struct lk_item *item = &list->in.data.items[flag->item];
        cJSON *line = cJSON_CreateObject();
        bool ok = line && cJSON_AddStringToObject(line, "item_id", item->id) &&
                  cJSON_AddStringToObject(line, "axis", lk_review_axis_key(flag->axis)) &&
                  cJSON_AddItemToObject(line, "g", score_of(flag->axis, given(item, 0, flag->axis))) &&
                  cJSON_AddItemToObject(line, "o", score_of(flag->axis, given(item, 1, flag->axis))) &&
                  (!flag->difference || cJSON_AddNumberToObject(line, "diff", flag->difference)) &&
                  cJSON_AddStringToObject(line, "used", used_secondary(item, flag->axis) ? "secondary" : "primary") &&
                  add_decision(line, decision_of(list, flag));
        char *text = ok ? cJSON_PrintUnformatted(line) : NULL;
        cJSON_Delete(line);
        if (!text) return lk_fail(LK_E_NOMEM, "review list: out of memory");
        puts(text);
        cJSON_free(text);
    }
    return LK_OK;
}

enum lk_code cli_review_list(const struct cli_arguments *a) {
    struct list list = {.n = 0};
    struct lk_study *study;
    if (!a->report.scores && !a->report.primary && !a->report.secondary && !a->report.runs.n)
        return lk_fail(LK_E_USAGE, "review list: expected --from, --primary and --secondary, or --scores");
    enum lk_code rc = cli_known_study(&study, &a->report);
    if (!rc) rc = cli_report_input(&list.in, &a->report, study);
    if (!rc) rc = collect_list(&list);
    if (!rc) rc = read_decisions(&list, a->review.file);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%zu scores flagged for review, %zu of them open", list.n, list.n_open);
        if (a->json)
            rc = print_json(&list);
        else
            print_csv(&list);
    }
    lk_free(list.flags);
    lk_free(list.standing);
    lk_review_free(&list.review);
    cli_report_input_free(&list.in);
    lk_study_close(study);
    return rc;
}

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
