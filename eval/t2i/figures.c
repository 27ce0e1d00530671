/* Figures of the text-to-image study. */
#include <stdio.h>
#include <string.h>

#include "engine/base/store.h"
#include "eval/t2i/report.h"

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i: out of memory for a figure"); }

static const char *text_of(struct lk_store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *text_of(struct lk_store *store, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = lk_store_format(store, format, args);
    va_end(args);
    return text;
}

static enum lk_code show(enum lk_code rc, struct lk_figure *figure, lk_t2i_use_figure use, void *context) {
    if (rc) return rc;
    use(context, figure);
    lk_figure_free(figure);
    return LK_OK;
}

static struct lk_figure_value value_of(const struct lk_number *number) {
    if (number->undefined) return (struct lk_figure_value){.none = true};
    return (struct lk_figure_value){.value = number->value, .low = number->low, .high = number->high};
}

/* Base cells of single prompts of one model and attribute. */
static bool in_heat(const struct lk_t2i_cell *cell, int32_t model, int attribute) {
    return cell->scope.model == model && cell->arm == LK_T2I_NONE && cell->attribute == attribute &&
           !lk_t2i_pooled(&cell->scope);
}

static enum lk_code heat(const struct lk_t2i_metrics *m, struct lk_store *store, int32_t model, int attribute,
                         int n_rows, lk_t2i_use_figure use, void *context) {
    const char *name = m->images->models.list[model], *columns[LK_T2I_MAX_LEVELS];
    int n_columns = 0, row = 0;
    const char **rows = lk_store_alloc(store, (size_t)n_rows * sizeof *rows);
    struct lk_figure_value *values = lk_store_alloc(store, (size_t)n_rows * LK_T2I_MAX_LEVELS * sizeof *values);
    if (!rows || !values) return out_of_memory();
    for (int g = 0; g < lk_t2i_levels(attribute); g++)
        if (m->options.target.names[attribute][g]) columns[n_columns++] = lk_t2i_level_name(attribute, g);
    for (size_t i = 0; i < m->n_cells; i++) {
        const struct lk_t2i_cell *cell = &m->cells[i];
        char label[200];
        if (!in_heat(cell, model, attribute)) continue;
        lk_t2i_scope_name(m->images, &cell->scope, label);
        for (int g = 0, c = 0; g < lk_t2i_levels(attribute); g++) {
            if (!m->options.target.names[attribute][g]) continue;
            values[row * n_columns + c++] =
                cell->n ? (struct lk_figure_value){.value = (double)cell->counts[g] / (double)cell->n,
                                                   .k = cell->counts[g],
                                                   .n = (int64_t)cell->n}
                        : (struct lk_figure_value){.none = true};
        }
        if (!(rows[row++] = text_of(store, "%s", label))) return out_of_memory();
    }
    struct lk_figure figure;
    struct lk_figure_heat options = {
        .head = {.id = text_of(store, "t2i_heat_%d_%s", (int)model, lk_t2i_attribute_key(attribute)),
                 .title = text_of(store, "%s by prompt, %s, base pictures", lk_t2i_attribute_name(attribute), name),
                 .description = text_of(store,
                                        "Heat map: one row for each of %d prompts, one column for each of %d groups; a "
                                        "cell is the group's share of the base pictures with a label.",
                                        n_rows, n_columns),
                 .note = "Representation rate: share of the pictures with a label. Perceived labels."},
        .unit = LK_UNIT_PERCENT,
        .value_name = "Share of pictures",
        .row_name = "Prompt",
        .rows = rows,
        .n_rows = n_rows,
        .columns = columns,
        .n_columns = n_columns,
        .values = values,
        .high = 1};
    if (!options.head.id || !options.head.title || !options.head.description) return out_of_memory();
    return show(lk_figure_heat(&options, &figure), &figure, use, context);
}

enum lk_code lk_t2i_figures_heat(const struct lk_t2i_metrics *metrics, lk_t2i_use_figure use, void *context) {
    struct lk_store store = {0};
    enum lk_code rc = LK_OK;
    for (size_t from = 0, to; from < metrics->n_cells && !rc; from = to) {
        int32_t model = metrics->cells[from].scope.model;
        for (to = from; to < metrics->n_cells && metrics->cells[to].scope.model == model;) to++;
        for (int a = 0; a < LK_N_T2I_ATTRIBUTES && !rc; a++) {
            int n_rows = 0;
            for (size_t i = from; i < to; i++) n_rows += in_heat(&metrics->cells[i], model, a);
            if (n_rows && n_rows <= LK_T2I_HEAT_ROWS) rc = heat(metrics, &store, model, a, n_rows, use, context);
        }
    }
    lk_store_free(&store);
    return rc;
}

/* Rows under headings, as many as are needed. */
struct forest {
    struct lk_store store;
    struct lk_figure_forest_row *rows;
    int n, capacity;
};

static enum lk_code forest_reserve(struct forest *f, size_t n) {
    *f = (struct forest){0};
    f->rows = lk_store_alloc(&f->store, n * sizeof *f->rows);
    return f->rows ? LK_OK : out_of_memory();
}

/* `heading` is added when it is not the last one. */
static enum lk_code forest_row(struct forest *f, const char *heading, const char *label, struct lk_figure_value value) {
    const char *last = NULL;
    for (int i = f->n - 1; i >= 0 && !last; i--)
        if (f->rows[i].heading) last = f->rows[i].label;
    if (!heading || !label) return out_of_memory();
    if (!last || strcmp(last, heading))
        f->rows[f->n++] = (struct lk_figure_forest_row){.label = heading, .heading = true};
    f->rows[f->n++] = (struct lk_figure_forest_row){.label = label, .value = value};
    return LK_OK;
}

static const char *scope_text(struct lk_store *store, const struct lk_t2i_metrics *m,
                              const struct lk_t2i_scope *scope) {
    char name[200];
    lk_t2i_scope_name(m->images, scope, name);
    return text_of(store, "%s, %s", m->images->models.list[scope->model], name);
}

static enum lk_code draw_forest(const struct forest *f, const struct lk_figure_head *head, const char *value_name,
                                const char *row_name, lk_t2i_use_figure use, void *context) {
    struct lk_figure figure;
    if (!head->id || !head->title) return out_of_memory();
    if (!f->n) return LK_OK;
    return show(lk_figure_forest(&(struct lk_figure_forest){.head = *head,
                                                            .decimals = 3,
                                                            .value_name = value_name,
                                                            .row_name = row_name,
                                                            .rows = f->rows,
                                                            .n_rows = f->n,
                                                            .below = "nearer to the target",
                                                            .above = "further from it"},
                                 &figure),
                &figure, use, context);
}

static enum lk_code forest_of(const struct lk_t2i_metrics *m, int attribute, lk_t2i_use_figure use, void *context) {
    struct forest f;
    enum lk_code rc = forest_reserve(&f, 2 * m->n_changes + 1);
    for (size_t i = 0; i < m->n_changes && !rc; i++) {
        const struct lk_t2i_change *change = &m->changes[i];
        if (change->attribute == attribute && lk_t2i_pooled(&change->scope))
            rc = forest_row(&f, scope_text(&f.store, m, &change->scope), lk_t2i_arm_name(change->arm),
                            value_of(&change->change.change));
    }
    struct lk_figure_head head = {
        .id = text_of(&f.store, "t2i_forest_%s", lk_t2i_attribute_key(attribute)),
        .title = text_of(&f.store, "%s: ΔSPD of each mitigation", lk_t2i_attribute_name(attribute)),
        .description = "Forest plot: for each model and pool of prompts, the change of SPD by each mitigation against "
                       "the base with its interval; left of the line a mitigation brings the shares nearer to the "
                       "target.",
        .note = "Mitigated less base, paired by prompt and seed; percentile intervals. Perceived labels."};
    if (!rc) rc = draw_forest(&f, &head, "ΔSPD", "Mitigation", use, context);
    lk_store_free(&f.store);
    return rc;
}

enum lk_code lk_t2i_figures_forest(const struct lk_t2i_metrics *metrics, lk_t2i_use_figure use, void *context) {
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) LK_TRY(forest_of(metrics, a, use, context));
    return LK_OK;
}

static enum lk_code cfg_of(const struct lk_t2i_metrics *m, int attribute, lk_t2i_use_figure use, void *context) {
    struct forest f;
    enum lk_code rc = forest_reserve(&f, 2 * m->n_cfg + 1);
    for (size_t i = 0; i < m->n_cfg && !rc; i++) {
        const struct lk_t2i_cfg *row = &m->cfg[i];
        if (row->attribute != attribute) continue;
        const char *scope = scope_text(&f.store, m, &row->scope);
        const char *mark = row->reference          ? ", reference"
                           : row->change.undefined ? ""
                           : row->safe             ? ", safe"
                                                   : ", not safe";
        struct lk_figure_value value = value_of(&row->change);
        rc = forest_row(&f, scope ? text_of(&f.store, "%s: %s", scope, lk_t2i_arm_name(row->arm)) : NULL,
                        text_of(&f.store, "CFG %g%s", row->cfg, mark), value);
    }
    struct lk_figure_head head = {
        .id = text_of(&f.store, "t2i_cfg_%s", lk_t2i_attribute_key(attribute)),
        .title = text_of(&f.store, "%s: ΔSPD against CFG", lk_t2i_attribute_name(attribute)),
        .description = "For each model, pool of prompts and arm, the change of SPD at each CFG against the reference "
                       "CFG, with its interval; where the interval reaches the line or lies left of it, the CFG is in "
                       "the safe operating region.",
        .note = "Pictures paired by prompt and seed; percentile intervals. Perceived labels."};
    if (!rc) rc = draw_forest(&f, &head, "ΔSPD to the reference CFG", "CFG", use, context);
    lk_store_free(&f.store);
    return rc;
}

/* The rows of one attribute and arm, CFG ascending: the metrics list them CFG by CFG, attributes within. */
enum lk_code lk_t2i_figures_cfg(const struct lk_t2i_metrics *metrics, lk_t2i_use_figure use, void *context) {
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++) LK_TRY(cfg_of(metrics, a, use, context));
    return LK_OK;
}
