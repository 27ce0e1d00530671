/* Stratified samples of items for raters, and the draw for the mosaic.
 *
 *     const struct lk_sample_column columns[] = {{"skin_type", 6, keys, true}, {"model", 2, models, false}};
 *     const struct lk_sample_design design = {.columns = columns, .by = (const int[]){0, 1}, .n_by = 2, .each = 4};
 *     LK_TRY(lk_sample_strata(items, n, &design, 42, &sample));
 *     for (size_t i = 0; i < sample.n; i++) use(items[sample.items[i]]);
 *     lk_sample_free(&sample); */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* A factor of the items. */
struct lk_sample_column {
    const char *name; /* "race" */
    int n;
    const char *const *keys; /* [n] */
    bool ordered;            /* pandas keeps the order of the levels; of others it sorts the keys */
};

struct lk_sample_item {
    const char *id;
    const int16_t *level; /* of each column; -1: none */
};

/* The study's own generator; or what pandas draws with random_state in each stratum anew, for replication only. */
enum lk_sampler { LK_SAMPLER_STREAM, LK_SAMPLER_PANDAS };

struct lk_sample_design {
    const struct lk_sample_column *columns;
    const int *by;  /* [n_by] columns whose levels make the strata, the first outermost */
    int n_by, each; /* items of each stratum */
    enum lk_sampler sampler;
};

enum { LK_SAMPLE_MAX_STRATA = 100000, LK_SAMPLE_MAX_BY = 40, LK_STRATUM_NAME_BYTES = 256 };
struct lk_stratum {
    char name[LK_STRATUM_NAME_BYTES]; /* "White|Male|Young|flux" */
    size_t size;                      /* items that there are */
    size_t n;                         /* items drawn: fewer than asked for in a short stratum */
};

struct lk_sample {
    int32_t *items;   /* indices of the input, stratum by stratum in the order drawn */
    int32_t *stratum; /* of each */
    size_t n;
    struct lk_stratum *strata; /* all, empty ones too, in the order of the levels; with pandas in that of its keys */
    int n_strata, n_short;
};

/* Every item needs the levels of the design. LK_E_INPUT, LK_E_NOMEM. */
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
