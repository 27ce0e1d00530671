#include "eval/intake/gallery.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/intake/internal.h"
#include "eval/report/write.h"

struct outputs {
    struct lk_names ids;
    double *counted; /* [ids.n] */
    size_t capacity;
    struct lk_gallery *sum;
};

static enum lk_code add_output(void *context, const struct lk_audit_row *row) {
    struct outputs *o = context;
    const char *id = lk_audit_text(row, "item_id");
    const size_t n = o->ids.n;
    double counted = 0;
    int32_t i;
    if (!id)
        return lk_fail(LK_E_INPUT, "--gallery: expected the query to give the column item_id of every row, got none; "
                                   "SELECT item_id, counted FROM ...");
    if (n == LK_GALLERY_MAX)
        return lk_fail(LK_E_INPUT, "--gallery: expected at most %d outputs; add a condition or LIMIT", LK_GALLERY_MAX);
    LK_TRY(lk_names_number(&o->ids, id, strlen(id), &i));
    if (o->ids.n == n)
        return lk_fail(LK_E_INPUT,
                       "--gallery: expected each output once, got %s twice; a condition is missing, as heading (the "
                       "outcome), row or column of the cell",
                       id);
    LK_TRY(lk_grow(&o->counted, &o->capacity, n + 1, sizeof *o->counted));
    o->sum->has_counted |= lk_audit_number(row, "counted", &counted);
    o->counted[n] = counted;
    o->sum->counted += counted;
    o->sum->n++;
    return LK_OK;
}

/* The largest value below `top` and how many have it; false: none is left. */
static bool next_value(const struct outputs *o, double top, bool first, double *value, size_t *n) {
    bool any = false;
    *n = 0;
    for (size_t i = 0; i < o->ids.n; i++) {
        if (!first && o->counted[i] >= top) continue;
        if (!any || o->counted[i] > *value) {
            *value = o->counted[i];
            *n = 0;
            any = true;
        }
        *n += o->counted[i] == *value;
    }
    return any;
}

static enum lk_code add_item(const struct lk_report *report, struct lk_audit *audit,
                             const struct lk_raters_answers *raters, const char *folder, struct lk_page *page,
                             const char *id) {
    sqlite3_stmt *statement;
    bool row = false;
    int32_t at = -1;
    const struct lk_item unknown = {.id = id, .job = 0, .role = -1, .prompt = -1};
    LK_TRY(lk_sql_open(&audit->sql, &statement,
                       "SELECT prompt_text || coalesce(' (' || nullif(status, 'made') || ')', '') FROM item WHERE "
                       "item_id=?1",
                       "t", id));
    enum lk_code rc = lk_sql_step(&audit->sql, statement, &row);
    if (!rc && !row) rc = lk_fail(LK_E_INPUT, "--gallery: item_id: expected outputs of the study, got \"%.200s\"", id);
    if (!rc) rc = lk_dataset_find(report->data, id, strlen(id), &at);
    if (!rc)
        lk_report_item(report, raters, folder, page, at < 0 ? &unknown : &report->data->items[at],
                       lk_sql_text(statement, 0), true);
    sqlite3_finalize(statement);
    return rc;
}

static enum lk_code add_groups(const struct lk_report *report, struct lk_audit *audit, const struct outputs *o,
                               const char *folder, struct lk_page *page) {
    struct lk_raters_answers raters = {NULL, NULL};
    double value = 0;
    size_t n;
    enum lk_code rc = lk_raters_answers(report->data, &raters);
    for (bool first = true; !rc && next_value(o, value, first, &value, &n); first = false) {
        char title[100], key[40];
        if (!o->sum->has_counted)
            snprintf(title, sizeof title, "Outputs: %zu", n);
        else if (value == 1 || value == 0)
            snprintf(title, sizeof title, "%s: %zu of %zu", value == 1 ? "Counted" : "Not counted", n, o->ids.n);
        else
            snprintf(title, sizeof title, "Counted as %g: %zu of %zu", value, n, o->ids.n);
        snprintf(key, sizeof key, "counted-%g", value);
        lk_page_section(page, key, title);
        for (size_t i = 0; i < o->ids.n && !rc; i++)
            if (o->counted[i] == value) rc = add_item(report, audit, &raters, folder, page, o->ids.list[i]);
    }
    lk_raters_answers_free(&raters);
    return rc;
}

static enum lk_code write_page(const struct lk_report *report, struct lk_audit *audit, const struct outputs *o,
                               const char *sql, const char *folder, const char *path) {
    const struct lk_report_options *options = &report->options;
    struct lk_page *page;
    LK_TRY(lk_page_new(&page, &(struct lk_page_options){.title = "The pictures behind a number",
                                                        .run = options->title,
                                                        .n_valid = (int64_t)o->ids.n,
                                                        .date = options->date && *options->date ? options->date : NULL,
                                                        .images = lk_report_shows(options)}));
    lk_page_section(page, "section-number", "The number");
    if (o->sum->has_counted)
        lk_page_paragraph(page,
                          "%g of %zu outputs are counted: %.1f%%. Each stands beside its source, with its scores.",
                          o->sum->counted, o->ids.n, 100 * o->sum->counted / (double)o->ids.n);
    else
        lk_page_paragraph(page, "%zu outputs, each beside its source, with its scores.", o->ids.n);
    lk_page_code(page, "The query", sql);
    enum lk_code rc = add_groups(report, audit, o, folder, page);
    if (!rc) rc = lk_page_write(page, path);
    const char *unfit = rc ? NULL : lk_page_unfit(page);
    if (unfit) rc = lk_fail(LK_E_PARTIAL, "%s: does not fit into memory; %s is without it", unfit, path);
    lk_page_free(page);
    return rc;
}

enum lk_code lk_audit_gallery(struct lk_audit *audit, struct lk_dataset *data, const struct lk_report_options *options,
                              const char *sql, const char *path, struct lk_gallery *out) {
    char folder[PATH_MAX], name[PATH_MAX];
    struct lk_report *report = lk_calloc(1, sizeof *report);
    *out = (struct lk_gallery){0};
    struct outputs outputs = {.sum = out};
    if (!report) return lk_fail(LK_E_NOMEM, "--gallery: out of memory");
    *report = (struct lk_report){.data = data, .options = *options};
    snprintf(name, sizeof name, "%s", path);
    enum lk_code rc = realpath(dirname(name), folder)
                          ? lk_audit_each(audit, sql, add_output, &outputs)
                          : lk_fail(LK_E_NOT_FOUND, "--gallery: %s: its folder is not there; make it first", path);
    if (!rc && !out->n) rc = lk_fail(LK_E_INPUT, "--gallery: the query gives no rows; see names by --query alone");
    if (!rc) rc = write_page(report, audit, &outputs, sql, folder, path);
    lk_names_free(&outputs.ids);
    lk_free(outputs.counted);
    lk_free(report);
    return rc;
}
