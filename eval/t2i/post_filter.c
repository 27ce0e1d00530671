#include "eval/t2i/post_filter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/t2i/rebalance.h"

/* Groups of the target that have a share, by number. */
struct groups {
    const char *names[LK_T2I_MAX_LEVELS];
    double shares[LK_T2I_MAX_LEVELS];
    int of_level[LK_T2I_MAX_LEVELS];
    int n;
};

static enum lk_code take_groups(const struct lk_t2i_distribution *target, int attribute, struct groups *out) {
    *out = (struct groups){0};
    if (!target->has[attribute])
        return lk_fail(LK_E_INPUT, "post-filter: the target has no shares of %s", lk_t2i_attribute_key(attribute));
    for (int g = 0; g < lk_t2i_levels(attribute); g++) {
        out->of_level[g] = -1;
        if (!target->names[attribute][g]) continue;
        out->names[out->n] = lk_t2i_level_name(attribute, g);
        out->shares[out->n] = target->shares[attribute][g];
        out->of_level[g] = out->n++;
    }
    return LK_OK;
}

static bool same_set(const struct lk_t2i_image *x, const struct lk_t2i_image *y) {
    return x->model == y->model && x->prompt == y->prompt && x->arm == y->arm && x->cfg == y->cfg;
}

static enum lk_code take_set(const struct lk_t2i_images *images, size_t from, size_t n, const struct groups *groups,
                             const struct lk_t2i_post_filter *how, int32_t *numbers, bool *kept,
                             struct lk_t2i_post_filtered *out) {
    int64_t counts[LK_T2I_MAX_LEVELS], n_kept;
    const struct lk_t2i_image *first = &images->list[from];
    for (size_t i = 0; i < n; i++) {
        int level = images->list[from + i].level[how->attribute];
        numbers[i] = level < 0 ? -1 : groups->of_level[level];
        if (level >= 0 && numbers[i] < 0)
            return lk_fail(LK_E_INPUT, "%s: line %d: %s: \"%s\" has no share in the target; give it one (0 if need be)",
                           images->files.list[images->list[from + i].file], (int)images->list[from + i].line,
                           lk_t2i_attribute_key(how->attribute), lk_t2i_level_name(how->attribute, level));
        out->n_before += level >= 0;
    }
    out->n_sets++;
    enum lk_code rc = lk_rebalance(numbers, n, groups->names, groups->shares, groups->n, how->tolerance, how->seed,
                                   kept + from, counts, &n_kept);
    if (rc != LK_E_INPUT) {
        out->n_kept += rc ? 0 : (size_t)n_kept;
        return rc;
    }
    struct lk_text item = {0};
    memset(kept + from, 0, n * sizeof *kept);
    out->n_failed++;
    lk_text_add(&item, "%s, prompt %s", images->models.list[first->model], images->ids.list[first->prompt]);
    rc = item.rc ? lk_fail(item.rc, "post-filter: out of memory")
                 : lk_rejects_add(&out->failed, (size_t)first->line, item.bytes, lk_error_text());
    lk_text_free(&item);
    return rc;
}

enum lk_code lk_t2i_post_filter(const struct lk_t2i_images *images, const struct lk_t2i_distribution *target,
                                const struct lk_t2i_post_filter *how, bool *kept, struct lk_t2i_post_filtered *out) {
    struct groups groups;
    *out = (struct lk_t2i_post_filtered){0};
    LK_TRY(take_groups(target, how->attribute, &groups));
    int32_t *numbers = lk_malloc(images->n * sizeof *numbers);
    enum lk_code rc = numbers ? LK_OK : lk_fail(LK_E_NOMEM, "post-filter: out of memory");
    memset(kept, 0, images->n * sizeof *kept);
    for (size_t from = 0, to; from < images->n && !rc; from = to) {
        for (to = from; to < images->n && same_set(&images->list[from], &images->list[to]);) to++;
        if (images->list[from].arm == LK_T2I_NONE)
            rc = take_set(images, from, to - from, &groups, how, numbers, kept, out);
    }
    lk_free(numbers);
    return rc;
}

enum lk_code lk_t2i_quota_fill(const struct lk_t2i_images *images, const char *prompt_id,
                               const struct lk_t2i_distribution *target, int attribute, int64_t wanted, bool *kept,
                               struct lk_t2i_quota *out) {
    const double *shares = target->shares[attribute];
    const int32_t prompt = lk_names_find(&images->ids, prompt_id, strlen(prompt_id));
    *out = (struct lk_t2i_quota){.n_open = wanted, .distance = NAN};
    if (!target->has[attribute])
        return lk_fail(LK_E_INPUT, "post-filter: the target has no shares of %s", lk_t2i_attribute_key(attribute));
    lk_quotas(shares, lk_t2i_levels(attribute), wanted, out->quotas);
    for (size_t i = 0; i < images->n && out->n_open; i++) {
        const struct lk_t2i_image *image = &images->list[i];
        const int level = image->level[attribute];
        if (image->prompt != prompt || image->arm != LK_T2I_NONE) continue;
        if (level < 0 || out->counts[level] == out->quotas[level]) continue;
        kept[i] = true;
        out->counts[level]++;
        out->n_kept++;
        out->n_open--;
    }
    for (int g = 0; g < lk_t2i_levels(attribute) && out->n_kept; g++)
        out->distance = fmax(out->distance, fabs((double)out->counts[g] / (double)out->n_kept - shares[g]));
    return LK_OK;
}

/* The record with post_filter as its arm; without `record` the header. */
static void csv_line(const struct lk_csv *csv, int arm, bool record, struct lk_text *out) {
    for (size_t c = 0; c < csv->n_columns; c++) {
        const char *cell = record ? lk_csv_cell(csv, (int)c) : csv->columns[c];
        if (c) lk_text_add(out, ",");
        lk_print_csv_field(out, record && (int)c == arm ? lk_t2i_arm_key(LK_T2I_POST_FILTER) : cell, "");
    }
    if (arm < 0) lk_text_add(out, ",%s", record ? lk_t2i_arm_key(LK_T2I_POST_FILTER) : "arm");
    lk_text_add(out, "\n");
}

enum lk_code lk_t2i_post_filter_csv(const struct lk_t2i_images *images, const bool *kept, int32_t file,
                                    const char *text, size_t n, struct lk_text *out) {
    struct lk_csv csv;
    struct lk_key_index lines = {0};
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < images->n && !rc; i++) {
        if (!kept[i] || images->list[i].file != file) continue;
        rc = lk_key_index_reserve(&lines);
        if (!rc) lk_key_index_put(&lines, (uint64_t)images->list[i].line, 0);
    }
    if (!rc) rc = lk_csv_open(&csv, text, n, images->files.list[file]);
    if (!rc) {
        int arm = lk_csv_column(&csv, "arm");
        csv_line(&csv, arm, false, out);
        for (bool more = true; !rc && more;) {
            rc = lk_csv_next(&csv, &more);
            if (!rc && more && lk_key_index_find(&lines, csv.line) >= 0) csv_line(&csv, arm, true, out);
        }
        lk_csv_close(&csv);
    }
    lk_key_index_free(&lines);
    if (!rc && out->rc) rc = lk_fail(out->rc, "post-filter: out of memory for the table");
    return rc;
}

enum lk_code lk_t2i_post_filter_log(const struct lk_names *paths, const char *text, size_t n, const char *name,
                                    struct lk_text *out) {
    struct lk_csv csv;
    size_t n_found = 0;
    int path;
    LK_TRY(lk_csv_open(&csv, text, n, name));
    const int arm = lk_csv_column(&csv, "arm");
    enum lk_code rc = lk_csv_require(&csv, "file_path", &path);
    if (!rc) csv_line(&csv, arm, false, out);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        const char *own = !rc && more ? lk_csv_cell(&csv, path) : "";
        if (rc || !more || lk_names_find(paths, own, strlen(own)) < 0) continue;
        csv_line(&csv, arm, true, out);
        n_found++;
    }
    lk_csv_close(&csv);
    if (!rc && n_found < paths->n)
        rc = lk_fail(LK_E_INPUT, "%s: has only %zu of the %zu pictures that are kept", name, n_found, paths->n);
    if (!rc && out->rc) rc = lk_fail(out->rc, "post-filter: out of memory for the log");
    return rc;
}
