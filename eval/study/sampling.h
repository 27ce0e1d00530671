/* Stratified samples of items for raters, and the draw for the mosaic.
 *
 *     struct lk_sample sample;
 *     LK_TRY(lk_sample_strata(items, n, &(struct lk_sample_design){.by_model = true, .per_stratum = 4}, 42, &sample));
 *     for (size_t i = 0; i < sample.n; i++) use(items[sample.items[i]]);
 *     lk_sample_free(&sample); */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_sample_item {
    const char *id;
    int8_t race, gender, age, model; /* levels of factors.h */
};

/* The study's own generator; or what pandas draws with random_state in each stratum anew, for replication only. */
enum lk_sampler { LK_SAMPLER_STREAM, LK_SAMPLER_PANDAS };

struct lk_sample_design {
    bool by_model; /* race x gender x age group x model (strata126), else without the model (strata42) */
    int per_stratum;
    enum lk_sampler sampler;
};

struct lk_stratum {
    char name[64]; /* "White|Male|Young|flux" */
    size_t size;   /* items that there are */
    size_t n;      /* items drawn: fewer than asked for in a short stratum */
};

struct lk_sample {
    int32_t *items;   /* indices of the input, stratum by stratum in the order drawn */
    int32_t *stratum; /* of each */
    size_t n;
    struct lk_stratum *strata; /* all 126 or 42 in canonical order; with pandas in the order of the sorted keys */
    int n_strata, n_short;
};

/* strata126: {true, 4}; strata42: {false, 8}. Every item needs all four levels. LK_E_INPUT, LK_E_NOMEM. */
enum lk_code lk_sample_strata(const struct lk_sample_item *items, size_t n, const struct lk_sample_design *design,
                              uint64_t seed, struct lk_sample *out);
void lk_sample_free(struct lk_sample *sample);
/* What is to be known of a sample drawn as pandas does: printed with it. */
extern const char lk_sampler_pandas_warning[];

/* n_wanted of n items without repeats, by stream(seed, "mosaic") over the items sorted by id; out [n_wanted] holds
 * indices. LK_E_INPUT when there are fewer. */
enum lk_code lk_mosaic_draw(const struct lk_sample_item *items, size_t n, size_t n_wanted, uint64_t seed, int32_t *out);

/* numpy.random.RandomState(seed).permutation(n) into out [n]. */
void lk_numpy_permutation(uint32_t seed, int32_t *out, size_t n);
