/* Which pictures belong together: those of a scope, of an arm and a CFG, and two such sets paired by prompt and seed.
 */
#pragma once

#include "eval/t2i/metrics.h"

/* Pictures in the order of prompt, arm, CFG, seed, with room for a group each. */
struct lk_t2i_selection {
    struct lk_t2i_scope scope;
    const struct lk_t2i_image **list;
    int32_t *groups;
    size_t n;
};
enum lk_code lk_t2i_selection_reserve(struct lk_t2i_selection *selection, size_t n);
void lk_t2i_selection_free(struct lk_t2i_selection *selection);
/* The scope's pictures of that arm and CFG. Frees nothing of the scope; out is freed in any case by the caller. */
enum lk_code lk_t2i_select(const struct lk_t2i_selection *scope, int arm, double cfg, struct lk_t2i_selection *out);

/* Pictures side by side; NULL where a seed has none. */
struct lk_t2i_pairs {
    struct lk_t2i_scope scope;
    const struct lk_t2i_image **list[2];
    int32_t *groups[2];
    size_t n, n_unpaired;
};
/* By prompt and seed. keep_single: pictures without a partner stay; otherwise they are counted only. */
enum lk_code lk_t2i_pair(const struct lk_t2i_selection *base, const struct lk_t2i_selection *other, bool keep_single,
                         struct lk_t2i_pairs *out);
void lk_t2i_pairs_free(struct lk_t2i_pairs *pairs);
/* Fills groups with the pairs of which at least one has a label with that confidence; gives their number. */
size_t lk_t2i_pair_groups(const struct lk_t2i_pairs *pairs, int attribute, double confidence);
/* The level, or -1: none, or a confidence that is lower or, above 0, not given. */
int32_t lk_t2i_group_of(const struct lk_t2i_image *image, int attribute, double confidence);

/* The CFG that most pictures have, the lowest of several. n > 0. */
enum lk_code lk_t2i_reference_cfg(const struct lk_t2i_image *pictures, size_t n, double *out);
/* The next higher CFG of the scope; false when there is none. */
bool lk_t2i_next_cfg(const struct lk_t2i_selection *scope, double *cfg);
/* POOLED, or POOLED + 1 + gender when the prompts are known. */
int32_t lk_t2i_pool_of(const struct lk_t2i_images *images, const struct lk_t2i_image *image);
