/* The first sentences of the page: whom each model depicts too often, and what mitigations change about it. */
#include "eval/t2i/findings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"

enum { SHOWN = 8 };

struct findings {
    const struct lk_t2i_metrics *m;
    struct lk_page *page;
    const struct lk_t2i_cell **cells;     /* base pictures whose shares are not the target's, the furthest first */
    const struct lk_t2i_change **changes; /* mitigations that change the distance, the strongest first */
    size_t n_cells, n_changes;
    size_t n_cells_asked, n_changes_asked;
};

/* Of all prompts, or where the prompt table is given of those that name no gender. */
static bool is_asked(const struct lk_t2i_scope *scope) {
    return scope->prompt == LK_T2I_POOLED || scope->prompt == LK_T2I_POOLED + 1 + LK_T2I_NEUTRAL;
}

static int by_distance(const void *a, const void *b) {
    const struct lk_t2i_cell *x = *(const struct lk_t2i_cell *const *)a, *y = *(const struct lk_t2i_cell *const *)b;
    if (x->spd.value != y->spd.value) return x->spd.value < y->spd.value ? 1 : -1;
    return x < y ? -1 : 1; /* as the tables have them */
}

static int by_change(const void *a, const void *b) {
    const struct lk_t2i_change *x = *(const struct lk_t2i_change *const *)a,
                               *y = *(const struct lk_t2i_change *const *)b;
    const double u = fabs(x->change.change.value), w = fabs(y->change.change.value);
    if (u != w) return u < w ? 1 : -1;
    return x < y ? -1 : 1;
}

static enum lk_code collect(struct findings *f) {
    const struct lk_t2i_metrics *m = f->m;
    f->cells = lk_calloc(m->n_cells + 1, sizeof *f->cells);
    f->changes = lk_calloc(m->n_changes + 1, sizeof *f->changes);
    if (!f->cells || !f->changes) return lk_fail(LK_E_NOMEM, "t2i: out of memory");
    for (size_t i = 0; i < m->n_cells; i++) {
        const struct lk_t2i_cell *cell = &m->cells[i];
        if (!is_asked(&cell->scope) || cell->arm != LK_T2I_NONE || isnan(cell->adjusted)) continue;
        f->n_cells_asked++;
        if (cell->adjusted <= m->options.alpha && !cell->spd.undefined) f->cells[f->n_cells++] = cell;
    }
    for (size_t i = 0; i < m->n_changes; i++) {
        const struct lk_t2i_change *change = &m->changes[i];
        if (!is_asked(&change->scope) || isnan(change->adjusted)) continue;
        f->n_changes_asked++;
        if (change->adjusted <= m->options.alpha && !change->change.change.undefined)
            f->changes[f->n_changes++] = change;
    }
    if (f->n_cells) qsort(f->cells, f->n_cells, sizeof *f->cells, by_distance);
    if (f->n_changes) qsort(f->changes, f->n_changes, sizeof *f->changes, by_change);
    return LK_OK;
}

/* "SDXL, neutral prompts: gender" */
static void begin(const struct findings *f, const struct lk_t2i_scope *scope, int attribute, struct lk_text *out) {
    char name[200];
    lk_t2i_scope_name(f->m->images, scope, name);
    lk_text_add(out, "%s, %s: %s", f->m->images->models.list[scope->model], name, lk_t2i_attribute_key(attribute));
}

static void interval(const struct lk_number *x, bool sign, struct lk_text *out) {
    char value[LK_NUMBER_MAX], low[LK_NUMBER_MAX], high[LK_NUMBER_MAX];
    lk_print_fixed(value, x->value, 2, sign);
    lk_print_fixed(low, x->low, 2, sign);
    lk_print_fixed(high, x->high, 2, sign);
    if (x->no_interval)
        lk_text_add(out, "%s", value);
    else
        lk_text_add(out, "%s [%s, %s]", value, low, high);
}

/* The group that is furthest above the target. */
static void tell_cell(const struct findings *f, const struct lk_t2i_cell *cell, struct lk_text *out) {
    const double *target = f->m->options.target.shares[cell->attribute];
    char share[LK_NUMBER_MAX], wanted[LK_NUMBER_MAX];
    int most = 0;
    for (int g = 1; g < lk_t2i_levels(cell->attribute); g++)
        if ((double)cell->counts[g] / (double)cell->n - target[g] >
            (double)cell->counts[most] / (double)cell->n - target[most])
            most = g;
    lk_print_fixed(share, 100.0 * (double)cell->counts[most] / (double)cell->n, 1, false);
    lk_print_fixed(wanted, 100 * target[most], 1, false);
    begin(f, &cell->scope, cell->attribute, out);
    lk_text_add(out, ", %s %s%% of %zu pictures, target %s%%; distance from the target (SPD) ",
                lk_t2i_level_name(cell->attribute, most), share, cell->n, wanted);
    interval(&cell->spd, false, out);
    lk_text_add(out, ".");
}

static void tell_change(const struct findings *f, const struct lk_t2i_change *change, struct lk_text *out) {
    char p[LK_NUMBER_MAX];
    const bool nearer = change->change.change.value < 0;
    lk_print_p(p, change->adjusted);
    begin(f, &change->scope, change->attribute, out);
    lk_text_add(out, ", %s brings pictures %s the target: SPD ", lk_t2i_arm_name(change->arm),
                nearer ? "nearer to" : "farther from");
    interval(&change->change.change, true, out);
    lk_text_add(out, ", adjusted p %s%s.", *p == '<' ? "" : "= ", p);
}

static void lead(struct findings *f, enum lk_code *rc, struct lk_text *text) {
    if (!*rc) *rc = text->rc;
    if (!*rc) lk_page_lead(f->page, text->bytes);
    lk_text_free(text);
}

static void tell_rest(struct findings *f, enum lk_code *rc) {
    struct lk_text text = {0};
    const size_t n = f->n_cells + f->n_changes,
                 shown = (f->n_cells < SHOWN ? f->n_cells : SHOWN) + (f->n_changes < SHOWN ? f->n_changes : SHOWN);
    if (n > shown) {
        lk_text_add(&text, "%zu more stand in the tables below.", n - shown);
        lead(f, rc, &text);
    }
    lk_text_add(&text,
                "Groups are perceived, by a classifier. The sentences are about these prompts, not about others like "
                "them: pictures are drawn by chance, prompts are not. p is adjusted over all of one kind (Benjamini "
                "and Hochberg), intervals are at %g%%.",
                100 * (1 - f->m->options.alpha));
    lead(f, rc, &text);
}

enum lk_code lk_t2i_findings(const struct lk_t2i_metrics *metrics, struct lk_page *page) {
    struct findings f = {.m = metrics, .page = page};
    struct lk_text text = {0};
    enum lk_code rc = collect(&f);
    if (!rc) {
        lk_text_add(&text, "%zu of %zu comparisons with the target find other shares", f.n_cells, f.n_cells_asked);
        if (f.n_changes_asked)
            lk_text_add(&text, "; %zu of %zu of a mitigation with its base find a change", f.n_changes,
                        f.n_changes_asked);
        lk_text_add(&text, ".");
        lead(&f, &rc, &text);
    }
    for (size_t i = 0; i < f.n_cells && i < SHOWN && !rc; i++) {
        tell_cell(&f, f.cells[i], &text);
        lead(&f, &rc, &text);
    }
    for (size_t i = 0; i < f.n_changes && i < SHOWN && !rc; i++) {
        tell_change(&f, f.changes[i], &text);
        lead(&f, &rc, &text);
    }
    if (!rc) tell_rest(&f, &rc);
    lk_free(f.cells);
    lk_free(f.changes);
    return rc;
}
