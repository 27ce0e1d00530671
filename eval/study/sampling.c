#include "eval/study/sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/rng.h"
#include "eval/study/factors.h"
#include "eval/study/random.h"

const char lk_sampler_pandas_warning[] =
    "sampler pandas restarts its generator in every stratum, so strata of equal length give the same positions; where "
    "the input lists each source's prompts in order, a sample of 504 holds only four of the twenty prompts";

/* Fisher-Yates from the end, each index by masked rejection, as NumPy's legacy generator draws it. */
void lk_numpy_permutation(uint32_t seed, int32_t *out, size_t n) {
    struct lk_rng rng;
    lk_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)i;
    for (size_t i = n; i-- > 1;) {
        uint32_t mask = UINT32_MAX >> __builtin_clz((uint32_t)i), j;
        do j = lk_rng_u32(&rng) & mask;
        while (j > i);
        int32_t value = out[i];
        out[i] = out[j];
        out[j] = value;
    }
}

/* Levels by the order of their keys as text, which pandas sorts by; age groups keep theirs. */
static void sorted_levels(enum lk_factor factor, int out[7]) {
    int n = lk_factor_levels(factor);
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at && strcmp(lk_factor_key(factor, out[at - 1]), lk_factor_key(factor, i)) > 0; at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
}

enum { N_STRATUM_KEYS = 4 };
static const enum lk_factor keys[N_STRATUM_KEYS] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE_GROUP,
                                                    LK_FACTOR_MODEL};

struct strata {
    int order[N_STRATUM_KEYS][7]; /* levels in the order of the strata */
    int rank[N_STRATUM_KEYS][7];  /* and where each is in it */
    int n_keys, n;
};

static void make_strata(struct strata *s, const struct lk_sample_design *design) {
    s->n_keys = design->by_model ? 4 : 3;
    s->n = 1;
    for (int k = 0; k < s->n_keys; k++) {
        int n = lk_factor_levels(keys[k]);
        for (int i = 0; i < n; i++) s->order[k][i] = i;
        if (design->sampler == LK_SAMPLER_PANDAS && keys[k] != LK_FACTOR_AGE_GROUP) sorted_levels(keys[k], s->order[k]);
        for (int i = 0; i < n; i++) s->rank[k][s->order[k][i]] = i;
        s->n *= n;
    }
}

static int stratum_of(const struct strata *s, const struct lk_sample_item *item) {
    const int levels[N_STRATUM_KEYS] = {item->race, item->gender, item->age < 0 ? -1 : lk_age_group(item->age),
                                        item->model};
    int at = 0;
    for (int k = 0; k < s->n_keys; k++) {
        if (levels[k] < 0 || levels[k] >= lk_factor_levels(keys[k])) return -1;
        at = at * lk_factor_levels(keys[k]) + s->rank[k][levels[k]];
    }
    return at;
}

static void name_stratum(const struct strata *s, int at, char out[64]) {
    int level[N_STRATUM_KEYS];
    for (int k = s->n_keys; k-- > 0;) {
        level[k] = s->order[k][at % lk_factor_levels(keys[k])];
        at /= lk_factor_levels(keys[k]);
    }
    size_t n = 0;
    for (int k = 0; k < s->n_keys; k++)
        n += (size_t)snprintf(out + n, 64 - n, "%s%s", k ? "|" : "", lk_factor_key(keys[k], level[k]));
}

static int by_id(const void *a, const void *b, void *items) {
    const struct lk_sample_item *all = items;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    int order = strcmp(all[x].id, all[y].id);
    return order ? order : (x > y) - (x < y);
}

static void sort_by_id(const struct lk_sample_item *items, int32_t *indices, size_t n) {
    if (n > 1) qsort_r(indices, n, sizeof *indices, by_id, (void *)(uintptr_t)items);
}

/* Puts the stratum's items, in input order, into the order in which they are drawn. */
static void draw(const struct lk_sample_item *items, int32_t *indices, size_t n, const char *name, uint64_t seed,
                 enum lk_sampler sampler, int32_t *scratch) {
    if (sampler == LK_SAMPLER_PANDAS) {
        lk_numpy_permutation((uint32_t)seed, scratch, n);
        for (size_t i = 0; i < n; i++) scratch[i] = indices[scratch[i]];
        if (n) memcpy(indices, scratch, n * sizeof *indices);
        return;
    }
    struct lk_stream stream;
    sort_by_id(items, indices, n);
    lk_stream_named(&stream, seed, name);
    lk_stream_shuffle(&stream, indices, n);
}

static enum lk_code sample_into(const struct lk_sample_item *items, size_t n, const struct lk_sample_design *design,
                                uint64_t seed, const struct strata *s, int32_t *members, struct lk_sample *out) {
    size_t wanted = (size_t)design->per_stratum;
    for (size_t i = 0; i < n; i++) {
        int at = stratum_of(s, &items[i]);
        if (at < 0)
            return lk_fail(LK_E_INPUT, "item \"%s\": expected race, gender, age and model for a stratified sample",
                           items[i].id);
        out->strata[at].size++;
    }
    for (int at = 0; at < s->n; at++) {
        struct lk_stratum *stratum = &out->strata[at];
        size_t size = 0;
        name_stratum(s, at, stratum->name);
        for (size_t i = 0; i < n && size < stratum->size; i++)
            if (stratum_of(s, &items[i]) == at) members[size++] = (int32_t)i;
        draw(items, members, size, stratum->name, seed, design->sampler, members + n);
        stratum->n = size < wanted ? size : wanted;
        out->n_short += size < wanted;
        for (size_t i = 0; i < stratum->n; i++) {
            out->items[out->n] = members[i];
            out->stratum[out->n++] = at;
        }
    }
    return LK_OK;
}

enum lk_code lk_sample_strata(const struct lk_sample_item *items, size_t n, const struct lk_sample_design *design,
                              uint64_t seed, struct lk_sample *out) {
    struct strata s;
    *out = (struct lk_sample){0};
    if (design->per_stratum < 1 || n > INT32_MAX)
        return lk_fail(LK_E_INPUT, "a sample takes at least 1 item per stratum, got %d", design->per_stratum);
    if (design->sampler == LK_SAMPLER_PANDAS && seed > UINT32_MAX)
        return lk_fail(LK_E_INPUT, "sampler pandas: expected a seed below 2^32, got %llu", (unsigned long long)seed);
    make_strata(&s, design);
    int32_t *members = lk_malloc(2 * n * sizeof *members);
    out->items = lk_malloc(n * sizeof *out->items);
    out->stratum = lk_malloc(n * sizeof *out->stratum);
    out->strata = lk_calloc((size_t)s.n, sizeof *out->strata);
    out->n_strata = s.n;
    enum lk_code rc = members && out->items && out->stratum && out->strata
                          ? sample_into(items, n, design, seed, &s, members, out)
                          : lk_fail(LK_E_NOMEM, "out of memory for a sample of %zu items", n);
    lk_free(members);
    if (rc) lk_sample_free(out);
    return rc;
}

void lk_sample_free(struct lk_sample *sample) {
    lk_free(sample->items);
    lk_free(sample->stratum);
    lk_free(sample->strata);
    *sample = (struct lk_sample){0};
}

enum lk_code lk_mosaic_draw(const struct lk_sample_item *items, size_t n, size_t n_wanted, uint64_t seed,
                            int32_t *out) {
    struct lk_stream stream;
    if (n < n_wanted || n > INT32_MAX)
        return lk_fail(LK_E_INPUT, "the mosaic takes %zu outputs, there are %zu", n_wanted, n);
    int32_t *all = lk_malloc(n * sizeof *all);
    if (!all) return lk_fail(LK_E_NOMEM, "out of memory for the mosaic's draw");
    for (size_t i = 0; i < n; i++) all[i] = (int32_t)i;
    sort_by_id(items, all, n);
    lk_stream_named(&stream, seed, "mosaic");
    lk_stream_shuffle(&stream, all, n);
    if (n_wanted) memcpy(out, all, n_wanted * sizeof *out);
    lk_free(all);
    return LK_OK;
}
