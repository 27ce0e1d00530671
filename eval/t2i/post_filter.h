/* Reject and resample. Offline: of the base pictures of each model and prompt, as many as have the target's shares to a
 * tolerance. Online: of pictures that are still being made, in the order of their seeds, those whose group's quota is
 * open. */
#pragma once

#include "eval/t2i/images.h"

struct lk_t2i_post_filter {
    int attribute;
    double tolerance;
    uint64_t seed;
};

struct lk_t2i_post_filtered {
    size_t n_sets, n_failed;  /* sets: pictures of one model, prompt and CFG */
    size_t n_before, n_kept;  /* pictures with a label, and those of them that are kept */
    struct lk_rejects failed; /* sets from which nothing can be kept: the missing group */
};

/* kept [images->n]. The pictures of other arms are not kept. LK_E_INPUT: the target has no shares of the attribute, or
 * a label has none. A set that cannot be filtered is no failure of the call. Free with lk_rejects_free. */
enum lk_code lk_t2i_post_filter(const struct lk_t2i_images *images, const struct lk_t2i_distribution *target,
                                const struct lk_t2i_post_filter *how, bool *kept, struct lk_t2i_post_filtered *out);
/* The lines of labels (the text that lk_t2i_images_labels read as file number `file`) whose pictures are kept, under
 * its header, with the column arm last (in its place, when there is one): post_filter. */
enum lk_code lk_t2i_post_filter_csv(const struct lk_t2i_images *images, const bool *kept, int32_t file,
                                    const char *text, size_t n, struct lk_text *out);

/* The lines of a generator's log whose file_path is one of `paths`, in the same way. LK_E_INPUT when it lacks one. */
enum lk_code lk_t2i_post_filter_log(const struct lk_names *paths, const char *text, size_t n, const char *name,
                                    struct lk_text *out);

/* How far the pictures of one prompt fill its quotas. */
struct lk_t2i_quota {
    int64_t quotas[LK_T2I_MAX_LEVELS], counts[LK_T2I_MAX_LEVELS]; /* of levels: wanted, kept */
    int64_t n_kept, n_open;                                       /* n_open: still wanted */
    double distance; /* the largest one of a kept share from the target's; NaN when none is kept */
};
/* Quotas of `wanted` pictures by largest remainder (rebalance.h), filled with the prompt's base pictures of one model
 * and CFG. kept [images->n]: true for those that are kept, others stay. LK_E_INPUT: the target has no shares of the
 * attribute. */
enum lk_code lk_t2i_quota_fill(const struct lk_t2i_images *images, const char *prompt_id,
                               const struct lk_t2i_distribution *target, int attribute, int64_t wanted, bool *kept,
                               struct lk_t2i_quota *out);
