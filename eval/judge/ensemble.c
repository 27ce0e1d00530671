#include "eval/judge/ensemble.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"half_even", "half_up", "half_down"};

const char *lk_rounding_name(enum lk_rounding rounding) { return names[rounding]; }

int lk_rounding_parse(const char *name) {
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

/* The one that is there when the other is missing; 0 when neither counts. */
static int single(int g, int o, const struct lk_ensemble *ensemble) {
    if (g) return g;
    return ensemble->secondary_only ? o : 0;
}

int lk_ensemble_score(int g, int o, const struct lk_ensemble *ensemble, bool *review) {
    *review = false;
    if (!g || !o) {
        *review = !g && o && ensemble->secondary_only;
        return single(g, o, ensemble);
    }
    if (abs(g - o) > 1) {
        *review = true;
        return g;
    }
    int sum = g + o;
    if (sum % 2 == 0) return sum / 2;
    switch (ensemble->rounding) {
    case LK_HALF_UP:
        return (sum + 1) / 2;
    case LK_HALF_DOWN:
        return (sum - 1) / 2;
    default:
        return sum % 4 == 1 ? (sum - 1) / 2 : (sum + 1) / 2;
    }
}

int lk_ensemble_bound(int g, int o, const struct lk_ensemble *ensemble, enum lk_bound bound) {
    if (!g || !o) return single(g, o, ensemble);
    return (bound == LK_BOUND_MIN) == (g < o) ? g : o;
}

int lk_ensemble_role(int g, int o, const struct lk_ensemble *ensemble, bool *review) {
    *review = false;
    if (g == LK_ROLE_NONE) {
        if (!ensemble->secondary_only) return LK_ROLE_NONE;
        *review = o != LK_ROLE_NONE;
        return o;
    }
    *review = o != LK_ROLE_NONE && o != g;
    return g;
}

void lk_ensemble_apply(struct lk_dataset *data, const struct lk_ensemble *ensemble, struct lk_ensemble_counts *counts) {
    struct lk_ensemble_counts c = {0};
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = &data->items[i];
        bool review, has_g = item->judge[0][0] || item->judge_role[0] != LK_ROLE_NONE;
        bool has_o = item->judge[1][0] || item->judge_role[1] != LK_ROLE_NONE;
        item->review = 0;
        for (int a = 0; a < LK_N_AXES; a++) {
            item->score[a] = (uint8_t)lk_ensemble_score(item->judge[0][a], item->judge[1][a], ensemble, &review);
            if (review) item->review |= (uint8_t)(1u << a);
            c.n_review_axis[a] += review;
        }
        item->role = (int8_t)lk_ensemble_role(item->judge_role[0], item->judge_role[1], ensemble, &review);
        if (review) item->review |= (uint8_t)(1u << LK_N_AXES);
        c.n_review += item->review != 0;
        c.n_both += has_g && has_o;
        c.n_primary_only += has_g && !has_o;
        c.n_secondary_only += !has_g && has_o;
        c.n_none += !has_g && !has_o;
    }
    if (counts) *counts = c;
}
