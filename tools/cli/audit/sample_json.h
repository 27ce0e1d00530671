/* sample.json: what was drawn, from what, and how often each level of each factor came. */
#pragma once

#include "tools/cli/audit/sample_pool.h"

struct cli_drawn {
    const struct lk_sample_item *item;
    const char *stratum;
    int pair; /* from 1; 0: no pair */
};

struct cli_sample_record {
    const char *design, *sampler;
    long long seed;
    const struct cli_pool *pool;
    const struct cli_drawn *items;
    size_t n;
    const struct lk_sample *sample; /* NULL: not of strata */
    int each;
};

/* Fewer than wanted. A run has no empty strata: nobody asked for these people. */
bool cli_is_short(const struct cli_pool *pool, const struct lk_stratum *stratum, int each);
/* On stdout. LK_E_NOMEM. */
enum lk_code cli_sample_json(const struct cli_sample_record *record);
