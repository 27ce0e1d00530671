#include "eval/t2i/pairing.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i: out of memory for pictures"); }

enum lk_code lk_t2i_selection_reserve(struct lk_t2i_selection *selection, size_t n) {
    selection->list = lk_malloc(n * sizeof *selection->list);
    selection->groups = lk_malloc(n * sizeof *selection->groups);
    return selection->list && selection->groups ? LK_OK : out_of_memory();
}

void lk_t2i_selection_free(struct lk_t2i_selection *selection) {
    lk_free(selection->list);
    lk_free(selection->groups);
    *selection = (struct lk_t2i_selection){0};
}

enum lk_code lk_t2i_select(const struct lk_t2i_selection *scope, int arm, double cfg, struct lk_t2i_selection *out) {
    LK_TRY(lk_t2i_selection_reserve(out, scope->n));
    out->scope = scope->scope;
    for (size_t i = 0; i < scope->n; i++)
        if (scope->list[i]->arm == arm && scope->list[i]->cfg == cfg) out->list[out->n++] = scope->list[i];
    return LK_OK;
}

/* Both selections have one arm and one CFG, so prompt and seed are their order. */
static int by_prompt_and_seed(const struct lk_t2i_image *x, const struct lk_t2i_image *y) {
    if (x->prompt != y->prompt) return x->prompt < y->prompt ? -1 : 1;
    return x->seed < y->seed ? -1 : x->seed > y->seed;
}

enum lk_code lk_t2i_pair(const struct lk_t2i_selection *base, const struct lk_t2i_selection *other, bool keep_single,
                         struct lk_t2i_pairs *out) {
    size_t room = base->n + other->n, b = 0, o = 0;
    out->scope = other->scope;
    for (int side = 0; side < 2; side++) {
        out->list[side] = lk_malloc(room * sizeof *out->list[side]);
        out->groups[side] = lk_malloc(room * sizeof *out->groups[side]);
        if (!out->list[side] || !out->groups[side]) return out_of_memory();
    }
    while (b < base->n || o < other->n) {
        int order = b == base->n ? 1 : o == other->n ? -1 : by_prompt_and_seed(base->list[b], other->list[o]);
        out->n_unpaired += order != 0;
        if (!order || keep_single) {
            out->list[0][out->n] = order <= 0 ? base->list[b] : NULL;
            out->list[1][out->n++] = order >= 0 ? other->list[o] : NULL;
        }
        b += order <= 0;
        o += order >= 0;
    }
    return LK_OK;
}

void lk_t2i_pairs_free(struct lk_t2i_pairs *pairs) {
    for (int side = 0; side < 2; side++) {
        lk_free(pairs->list[side]);
        lk_free(pairs->groups[side]);
    }
    *pairs = (struct lk_t2i_pairs){0};
}

int32_t lk_t2i_group_of(const struct lk_t2i_image *image, int attribute, double confidence) {
    if (!image || image->level[attribute] < 0) return -1;
    /* the confidence was a decimal: 0.9 reaches 0.9 also as a float */
    if (confidence > 0 && !(image->confidence[attribute] >= (float)confidence)) return -1;
    return image->level[attribute];
}

size_t lk_t2i_pair_groups(const struct lk_t2i_pairs *pairs, int attribute, double confidence) {
    size_t n = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        int32_t base = lk_t2i_group_of(pairs->list[0][i], attribute, confidence);
        int32_t other = lk_t2i_group_of(pairs->list[1][i], attribute, confidence);
        if (base < 0 && other < 0) continue;
        pairs->groups[0][n] = base;
        pairs->groups[1][n++] = other;
    }
    return n;
}

bool lk_t2i_next_cfg(const struct lk_t2i_selection *scope, double *cfg) {
    double next = INFINITY;
    for (size_t i = 0; i < scope->n; i++)
        if (scope->list[i]->cfg > *cfg && scope->list[i]->cfg < next) next = scope->list[i]->cfg;
    if (isinf(next)) return false;
    *cfg = next;
    return true;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

enum lk_code lk_t2i_reference_cfg(const struct lk_t2i_image *pictures, size_t n, double *out) {
    double *all = lk_malloc(n * sizeof *all);
    size_t most = 0;
    if (!all) return out_of_memory();
    for (size_t i = 0; i < n; i++) all[i] = pictures[i].cfg;
    qsort(all, n, sizeof *all, by_value);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && all[to] == all[from];) to++;
        if (to - from > most) {
            most = to - from;
            *out = all[from];
        }
    }
    lk_free(all);
    return LK_OK;
}

int32_t lk_t2i_pool_of(const struct lk_t2i_images *images, const struct lk_t2i_image *image) {
    if (!images->prompts) return LK_T2I_POOLED;
    int gender = lk_t2i_gender_parse(images->prompts->list[image->prompt].cells[LK_T2I_GENDER_SPEC]);
    return LK_T2I_POOLED + 1 + (gender < 0 ? LK_T2I_NEUTRAL : gender);
}
