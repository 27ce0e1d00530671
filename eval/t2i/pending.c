#include "eval/t2i/pending.h"

#include <string.h>

#include "engine/base/alloc.h"

enum { MAX_UNITS = 1 << 23 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i: out of memory for labels"); }

void lk_t2i_pending_free(struct lk_t2i_pending *pending) {
    lk_free(pending->list);
    lk_store_free(&pending->groups);
    *pending = (struct lk_t2i_pending){0};
}

static size_t last_row(const struct lk_t2i_metrics *m, enum lk_t2i_output output) {
    if (output == LK_T2I_CELL) return m->n_cells - 1;
    if (output == LK_T2I_CHANGE) return m->n_changes - 1;
    return (output < LK_T2I_CFG_SPD ? m->n_sensitivity : m->n_cfg) - 1;
}

/* Where numbers go, now that the lists do not move. */
static void set_outputs(struct lk_t2i_metrics *m, enum lk_t2i_output output, size_t row,
                        struct lk_representation *set) {
    struct lk_t2i_change *change;
    switch (output) {
    case LK_T2I_CELL:
        set->bounds[0] = &m->cells[row].spd;
        set->spd[0] = &m->cells[row].percentiles;
        break;
    case LK_T2I_CHANGE:
        change = &m->changes[row];
        set->bounds[0] = &change->change.base;
        set->bounds[1] = &change->change.other;
        set->bounds[2] = &change->change.change;
        set->spd[2] = &change->percentiles;
        set->h = change->h;
        set->test = &change->change.test;
        break;
    case LK_T2I_SENSITIVITY_SPD:
        set->bounds[0] = &m->sensitivity[row].spd;
        break;
    case LK_T2I_SENSITIVITY_CHANGE:
        set->bounds[2] = &m->sensitivity[row].change;
        break;
    case LK_T2I_CFG_SPD:
        set->bounds[0] = &m->cfg[row].spd;
        break;
    case LK_T2I_CFG_CHANGE:
        set->bounds[2] = &m->cfg[row].change;
        break;
    case LK_T2I_CFG_MITIGATION:
        set->bounds[2] = &m->cfg[row].mitigation;
        break;
    }
}

enum lk_code lk_t2i_pending_run(struct lk_t2i_pending *pending, struct lk_t2i_metrics *metrics) {
    struct lk_representation *sets = lk_malloc(pending->n * sizeof *sets);
    if (!sets) return out_of_memory();
    for (size_t i = 0; i < pending->n; i++) {
        sets[i] = pending->list[i].set;
        set_outputs(metrics, pending->list[i].output, pending->list[i].row, &sets[i]);
    }
    enum lk_code rc = lk_representation_resample(sets, pending->n, &metrics->options.how);
    lk_free(sets);
    lk_store_free(&pending->groups);
    pending->n = pending->n_units = 0;
    return rc;
}

static int32_t *copy(struct lk_store *store, const int32_t *groups, size_t n) {
    int32_t *out = lk_store_alloc(store, n * sizeof *out);
    if (out && n) memcpy(out, groups, n * sizeof *out);
    return out;
}

enum lk_code lk_t2i_pending_add(struct lk_t2i_pending *pending, struct lk_t2i_metrics *metrics,
                                enum lk_t2i_output output, int attribute, const int32_t *base, const int32_t *other,
                                size_t n) {
    if (pending->n_units > MAX_UNITS) LK_TRY(lk_t2i_pending_run(pending, metrics));
    LK_TRY(lk_grow(&pending->list, &pending->capacity, pending->n + 1, sizeof *pending->list));
    struct lk_representation set = {.base = copy(&pending->groups, base, n),
                                    .n = n,
                                    .n_groups = lk_t2i_levels(attribute),
                                    .target = metrics->options.target.shares[attribute]};
    if (other) set.other = copy(&pending->groups, other, n);
    if (!set.base || (other && !set.other)) return out_of_memory();
    pending->list[pending->n++] = (struct lk_t2i_pending_set){set, output, last_row(metrics, output)};
    pending->n_units += n;
    return LK_OK;
}
