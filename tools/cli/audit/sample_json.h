/* sample.json: what was drawn, from what, and how often each level of each factor came. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

struct cli_drawn {
    const char *item_id, *stratum;
    int pair; /* from 1; 0: no pair */
};

struct cli_sample_record {
    const char *design, *sampler;
    long long seed;
    const char *input_sha256; /* of the ids to choose from, one a line */
    size_t n_input;
    const struct cli_drawn *items;
    size_t n;
    struct cli_short {
        const char *stratum;
        size_t n, wanted;
    } * short_strata;
    size_t n_short;
};

/* On stdout. LK_E_NOMEM. */
enum lk_code cli_sample_json(const struct cli_sample_record *record);
