/* Who is depicted: shares of perceived groups among generated pictures, their distance from a target, and what
 * mitigations and CFG change about it.
 *
 *     struct lk_t2i_metrics metrics;
 *     LK_TRY(lk_t2i_metrics_compute(&metrics, &images, &options));
 *     rc = lk_t2i_report_write(&metrics, folder);          // eval/t2i/report.h
 *     lk_t2i_metrics_free(&metrics);
 *
 * Every number belongs to a scope: one prompt, or all prompts of one gender_spec of a model (of all, when the prompt
 * table is not given). Numbers of one scope and arm use pictures of the model's reference CFG: the one that most of its
 * pictures have, the lowest of several. */
#pragma once

#include "eval/stats/resampling/representation.h"
#include "eval/t2i/images.h"

struct lk_t2i_options {
    struct lk_t2i_distribution target;            /* p*; its attributes are analysed */
    struct lk_t2i_distribution reference;         /* SPD_reference is its distance from the target */
    const struct lk_t2i_images *reference_images; /* or that of these pictures (of the same model, if there are any) */
    struct lk_resampling how;
    double alpha;
};

enum {
    LK_T2I_POOLED = -LK_N_T2I_GENDERS - 1
}; /* a scope's prompt: all; POOLED + 1 + gender: those of one gender_spec */

struct lk_t2i_scope {
    int32_t model, prompt;
};

/* Pictures of one scope, arm and attribute. */
struct lk_t2i_cell {
    struct lk_t2i_scope scope;
    int arm, attribute;
    double cfg;
    size_t n_images, n_faces, n; /* n: with a label */
    int64_t counts[LK_T2I_MAX_LEVELS];
    struct lk_number spd, amplification; /* in bounds that hold them (representation.h) */
    struct lk_number percentiles;        /* SPD in percentiles of resamples, the study's own interval */
    struct lk_test fit;                  /* chi-square against p* */
    size_t n_small;                      /* groups with an expected count under 5 */
    double adjusted;                     /* p of the fit; NaN without */
};

/* A mitigation against its base. Pictures are paired by prompt and seed; those without a partner are left out, but for
 * the post-filter, whose pictures are some of the base's. */
struct lk_t2i_change {
    struct lk_t2i_scope scope;
    int arm, attribute;
    double cfg;
    size_t n_unpaired;
    struct lk_spd_change change;  /* base, other, other - base in bounds, the permutation's p; n of change: pairs */
    struct lk_number percentiles; /* other - base, as above */
    struct lk_number h[LK_T2I_MAX_LEVELS];
    int64_t counts[2][LK_T2I_MAX_LEVELS]; /* of base and other, among the pairs */
    double adjusted;
};

enum { LK_N_T2I_THRESHOLDS = 4 };
extern const double lk_t2i_thresholds[LK_N_T2I_THRESHOLDS]; /* 0, 0.5, 0.7, 0.9 */

/* The same with labels below a confidence removed; of pooled scopes. */
struct lk_t2i_sensitivity {
    struct lk_t2i_scope scope;
    int arm, attribute, threshold;
    size_t n_before, n;
    struct lk_number spd, change; /* change: against the base at the same threshold; undefined of the base */
};

/* Pictures of one CFG against the reference CFG, and a mitigation against the base at it; of pooled scopes and arms
 * that have more than one. */
struct lk_t2i_cfg {
    struct lk_t2i_scope scope;
    int arm, attribute;
    double cfg;
    bool reference;
    size_t n;
    struct lk_number spd, change, mitigation;
    bool safe; /* the interval of change includes 0 or lies below it */
};

struct lk_t2i_metrics {
    const struct lk_t2i_images *images;
    struct lk_t2i_options options;
    bool analysed[LK_N_T2I_ATTRIBUTES];                     /* the target has shares, and some picture has a label */
    double *reference_cfg;                                  /* [models.n] */
    struct lk_number (*reference_spd)[LK_N_T2I_ATTRIBUTES]; /* [models.n] */
    struct lk_t2i_cell *cells;
    struct lk_t2i_change *changes;
    struct lk_t2i_sensitivity *sensitivity;
    struct lk_t2i_cfg *cfg;
    size_t n_cells, n_changes, n_sensitivity, n_cfg;
    size_t cells_capacity, changes_capacity, sensitivity_capacity, cfg_capacity;
    struct lk_t2i_pending *pending; /* inside of lk_t2i_metrics_compute: what is yet to be resampled */
};

enum { LK_T2I_MAX_CFG = 100 }; /* of a model */

/* Both are borrowed. LK_E_INPUT for a label that the target gives no share, for a target whose attributes the reference
 * lacks, and for too many CFG values. Empty after a failure. */
enum lk_code lk_t2i_metrics_compute(struct lk_t2i_metrics *out, const struct lk_t2i_images *images,
                                    const struct lk_t2i_options *options);
void lk_t2i_metrics_free(struct lk_t2i_metrics *metrics);

static inline bool lk_t2i_pooled(const struct lk_t2i_scope *scope) { return scope->prompt < 0; }
/* "all prompts", "neutral prompts", or the prompt's id and role; out holds 200 bytes. */
void lk_t2i_scope_name(const struct lk_t2i_images *images, const struct lk_t2i_scope *scope, char out[200]);
