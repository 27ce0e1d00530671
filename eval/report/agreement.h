/* How well raters agree with each other and with the judges: what the tables on human data are made of. Excluded raters
 * and attention checks are left out; the raters must have been combined (eval/human/combine.h). */
#pragma once

#include "eval/human/combine.h"
#include "eval/report/measures.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/tests/correlation.h"
#include "eval/stats/agreement/fleiss.h"
#include "eval/stats/agreement/icc.h"
#include "eval/stats/agreement/kappa.h"
#include "eval/stats/agreement/krippendorff.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/models/prediction_powered.h"

/* A question's answers packed by item, for statistics that do not ask who gave which. */
struct lk_answers {
    double *values;  /* [n, width], NaN beyond an item's last answer */
    size_t n;        /* items with two answers or more, by either arm, in the dataset's order */
    int width;       /* answers of the item that has most */
    size_t n_single; /* items with one answer, left out */
};
/* question: an axis, LK_QUESTION_ROLE or LK_QUESTION_PREFERENCE. classes: an axis's answers in classes instead of those
 * on five levels; the other two have nothing else. Values: levels 1..5, or classes 0..2. LK_E_NOMEM. */
enum lk_code lk_answers_gather(const struct lk_dataset *data, int question, bool classes, struct lk_answers *out);
void lk_answers_free(struct lk_answers *answers);

struct lk_reliability {
    size_t n, n_single;
    struct lk_fleiss fleiss;
    struct lk_number alpha[LK_N_MEASUREMENTS]; /* with intervals when how has replicates */
    struct lk_number icc1, icc1k; /* one-way, of the items that Fleiss' kappa counts: one rating, and the mean of all */
};
/* how NULL: without intervals. */
enum lk_code lk_reliability(const struct lk_dataset *data, int question, bool classes, const struct lk_resampling *how,
                            struct lk_reliability *out);

/* The judges' ensemble beside the raters, on items that have both. */
struct lk_judge_human {
    int64_t n;               /* items with a score and a mean of raters */
    struct lk_kappa levels;  /* quadratic, against the raters' majority or median */
    struct lk_kappa classes; /* unweighted, against the majority's class; items without one are left out */
    struct lk_test spearman; /* against the raters' mean */
    double judge_sum, human_sum;
};
enum lk_code lk_judge_human(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                            struct lk_judge_human *out);

/* How the secondary judge's scores lie beside the primary's, over the group's outputs with both. */
struct lk_lean {
    int64_t n, sum[LK_N_JUDGES], higher, lower;
    struct lk_number difference; /* its mean less the primary's, by source (CR2) */
    struct lk_test sign;         /* whether it gives more as often as less (exact) */
};
enum lk_code lk_judges_lean(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                            double confidence, struct lk_lean *out);

/* A measure of the judges and of the raters' majority, as yes or no. */
struct lk_measure_agreement {
    struct lk_rate judge, human; /* each over the items it knows */
    struct lk_kappa kappa;       /* unweighted, over those with both */
};
enum lk_code lk_measure_agreement(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                                  const struct lk_thresholds *thresholds, struct lk_measure_agreement *out);

/* What raters would say of all of the group's outputs, from those they have rated and the judges' scores of all. Strata
 * are race, gender, age group and model, as the study samples. judged: outputs with a score, or pairs. */
struct lk_calibration {
    struct lk_group group;
    enum lk_measure measure; /* its rate (raters' majority), of LK_N_MEASURES the mean of edit success */
    bool change;             /* of the pairs that the outputs belong to: preserved arm less baseline */
    const struct lk_thresholds *thresholds;
    double confidence;
};
enum lk_code lk_calibrated(const struct lk_dataset *data, const struct lk_calibration *c,
                           struct lk_prediction_powered *out, int64_t *judged);

/* Whether judges treat the editors that they share weights with differently: one's score less the other's, averaged by
 * editor, Qwen's mean less that of the other two, or with_step1x that of Qwen and Step1X, which share a text encoder,
 * less that of FLUX.2. A judge who is stricter everywhere cancels. A quality that one judge sees and the other does not
 * does not cancel, so the same is asked of each judge less the raters' mean. Over sources with outputs of all editors;
 * p by Student's t, NaN without an interval. */
enum lk_kin {
    LK_KIN_JUDGES,    /* primary less secondary */
    LK_KIN_PRIMARY,   /* primary less raters */
    LK_KIN_SECONDARY, /* secondary less raters */
    LK_N_KIN,
};
struct lk_kinship {
    struct lk_number difference;
    double p;
};
enum lk_code lk_judges_kinship(const struct lk_dataset *data, enum lk_axis axis, enum lk_kin kin, bool with_step1x,
                               double confidence, struct lk_kinship *out);

/* Answers to "which keeps the person better": for the preserved arm of those that prefer one, and ties. */
struct lk_preference {
    struct lk_rate preserved;
    int64_t n_ties;
};
struct lk_preference lk_preference_of(const struct lk_dataset *data, const struct lk_group *group,
                                      enum lk_score_source source);
