/* The outputs that raters' samples are drawn from, with their levels of all factors. */
#pragma once

#include "eval/design/study.h"
#include "eval/scores/dataset.h"
#include "eval/study/sampling.h"
#include "engine/base/names.h"
#include "tools/cli/core/options.h"

enum { CLI_POOL_MAX_COLUMNS = LK_MAX_ATTRIBUTES + 16 };

struct cli_pool {
    struct lk_dataset data;
    struct lk_study *study; /* NULL: the portrait study as the documents have it */
    struct lk_sample_column columns[CLI_POOL_MAX_COLUMNS];
    const char **keys[CLI_POOL_MAX_COLUMNS]; /* of columns whose keys are no other's */
    int n_columns;
    struct lk_names categories, prompts;
    struct lk_sample_item *items;
    int16_t *levels; /* [n, n_columns] */
    size_t n;
    char sha256[65]; /* of the list of ids, one a line */
};

/* Of --from the edits that were made, else all that the documents ask for; with --scores those that have one. roles:
 * the documents' experiment 3 instead of 1; of --from its composites too. Free in any case. */
enum lk_code cli_pool_fill(struct cli_pool *pool, const struct cli_report_arguments *arguments, bool roles);
void cli_pool_free(struct cli_pool *pool);
/* The numbers of columns by their names, with commas between. LK_E_USAGE names what there is. */
enum lk_code cli_pool_by(const struct cli_pool *pool, const char *names, int by[CLI_POOL_MAX_COLUMNS], int *n);
