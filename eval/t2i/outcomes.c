#include "eval/t2i/outcomes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/level.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/tests/multiple.h"

/* The row of the prompt that metrics names by its id, or by its id and its role; -1: none has both. */
static int32_t prompt_of(const struct lk_t2i_prompts *prompts, const char *name) {
    int32_t at = lk_names_find(&prompts->ids, name, strlen(name));
    for (const char *space = name; at < 0 && (space = strchr(space, ' ')); space++) {
        char whole[200];
        at = lk_names_find(&prompts->ids, name, (size_t)(space - name));
        if (at >= 0) lk_t2i_prompt_name(&prompts->list[at], whole);
        if (at >= 0 && strcmp(name, whole)) at = -1;
    }
    return at;
}

static enum lk_code add_outcome(struct lk_t2i_outcomes *o, const char *key, int32_t unit, double value) {
    int32_t number;
    const size_t known = o->names.n;
    LK_TRY(lk_grow(&o->list, &o->capacity, known + 1, sizeof *o->list));
    LK_TRY(lk_names_number(&o->names, key, strlen(key), &number));
    struct lk_t2i_outcome *of = &o->list[number];
    if ((size_t)number == known) {
        of->sum = lk_store_alloc(&o->store, o->n_units * sizeof *of->sum);
        of->n = lk_store_alloc(&o->store, o->n_units * sizeof *of->n);
        if (!of->sum || !of->n) return lk_fail(LK_E_NOMEM, "t2i: out of memory");
    }
    of->sum[unit] += value;
    of->n[unit]++;
    return LK_OK;
}

struct columns {
    int model, prompt, attribute, group, arm, value;
};

static enum lk_code read_outcome(struct lk_t2i_outcomes *o, const struct lk_csv *csv, const struct columns *c) {
    const char *value = lk_csv_cell(csv, c->value), *group = lk_csv_cell(csv, c->group);
    double number;
    int32_t prompt = prompt_of(o->prompts, lk_csv_cell(csv, c->prompt));
    if (prompt < 0)
        return lk_csv_fail(
            csv, c->prompt,
            "no prompt of the prompt table is \"%.80s\"; name the table that the results are of with --csv",
            lk_csv_cell(csv, c->prompt));
    if ((c->arm >= 0 && strcmp(lk_csv_cell(csv, c->arm), lk_t2i_arm_name(LK_T2I_NONE))) || !*value) return LK_OK;
    if (!lk_decimal_of_text(value, strlen(value), &number))
        return lk_csv_fail(csv, c->value, "expected a number, got \"%.64s\"", value);
    if (o->unit_of[prompt] < 0) return LK_OK;
    struct lk_text key = {0};
    lk_text_add(&key, "%s\t%s\t%s%s", lk_csv_cell(csv, c->model), lk_csv_cell(csv, c->attribute),
                c->group < 0 ? "SPD" : "RR ", group);
    enum lk_code rc = key.rc ? key.rc : add_outcome(o, key.bytes, o->unit_of[prompt], number);
    lk_text_free(&key);
    return rc;
}

enum lk_code lk_t2i_outcomes_read(struct lk_t2i_outcomes *o, const char *text, size_t n, const char *name) {
    struct lk_csv csv;
    struct columns c;
    LK_TRY(lk_csv_open(&csv, text, n, name));
    c.group = lk_csv_column(&csv, "Group");
    c.arm = lk_csv_column(&csv, "Arm");
    enum lk_code rc = lk_csv_require(&csv, "Model", &c.model);
    if (!rc) rc = lk_csv_require(&csv, "Prompt", &c.prompt);
    if (!rc) rc = lk_csv_require(&csv, "Attribute", &c.attribute);
    if (!rc) rc = lk_csv_require(&csv, c.group < 0 ? "SPD" : "Base", &c.value);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        if (!rc && more) rc = read_outcome(o, &csv, &c);
    }
    lk_csv_close(&csv);
    return rc;
}

enum lk_code lk_t2i_outcomes_correlate(const struct lk_t2i_outcomes *o, size_t i, const double *x, double *scratch,
                                       struct lk_test *test) {
    const struct lk_t2i_outcome *of = &o->list[i];
    double *y = scratch + o->n_units;
    size_t n = 0;
    for (size_t u = 0; u < o->n_units; u++) {
        scratch[n] = x[u];
        y[n] = of->n[u] ? of->sum[u] / (double)of->n[u] : NAN;
        n += !isnan(scratch[n]) && !isnan(y[n]);
    }
    return lk_spearman(scratch, y, n, test);
}

enum lk_code lk_t2i_adjust(const struct lk_test *tests, size_t n, double *adjusted) {
    size_t n_defined = 0;
    double *p = lk_malloc((n + 1) * sizeof *p);
    if (!p) return lk_fail(LK_E_NOMEM, "t2i: out of memory");
    for (size_t i = 0; i < n; i++)
        if (!tests[i].undefined) p[n_defined++] = tests[i].p;
    enum lk_code rc = lk_adjust_p(p, n_defined, LK_ADJUST_BENJAMINI_HOCHBERG, p);
    for (size_t i = 0, k = 0; i < n && !rc; i++) adjusted[i] = tests[i].undefined ? NAN : p[k++];
    lk_free(p);
    return rc;
}

void lk_t2i_outcomes_free(struct lk_t2i_outcomes *o) {
    lk_names_free(&o->names);
    lk_free(o->list);
    lk_store_free(&o->store);
    *o = (struct lk_t2i_outcomes){0};
}

void lk_t2i_cell_number(struct lk_text *out, double value) {
    lk_text_add(out, ",");
    if (isfinite(value)) lk_text_number(out, value);
}

void lk_t2i_cell_text(struct lk_text *out, const char *cell) {
    lk_text_add(out, ",");
    lk_print_csv_field(out, cell, "");
}

void lk_t2i_cells_outcome(struct lk_text *out, const struct lk_t2i_outcomes *o, size_t i) {
    const char *at = o->names.list[i];
    for (int k = 0; k < 3; k++, at += at[0] == '\t') {
        char cell[512];
        const size_t n = strcspn(at, "\t");
        snprintf(cell, sizeof cell, "%.*s", (int)n, at);
        lk_t2i_cell_text(out, cell);
        at += n;
    }
}

void lk_t2i_cells_test(struct lk_text *out, const struct lk_test *test, double adjusted) {
    lk_text_add(out, ",%zu", test->n);
    lk_t2i_cell_number(out, test->undefined ? NAN : test->statistic);
    lk_t2i_cell_number(out, test->undefined ? NAN : test->p);
    lk_t2i_cell_number(out, adjusted);
    lk_t2i_cell_text(out, test->undefined ? test->undefined : "");
    lk_t2i_cell_text(out, LK_T2I_CORRELATIONAL);
    lk_text_add(out, "\r\n");
}
