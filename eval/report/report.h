/* The audit's report: every table and figure of the study from a dataset, as files and as one page.
 *
 *     struct lk_report *report;
 *     LK_TRY(lk_report_build(&report, &data, &options));
 *     rc = lk_report_write(report, "report");        // report/report.html, report/tables/NAME.csv, .json, .md, .tex
 *     lk_report_free(report);
 *
 * Equal inputs give equal bytes: no clock, no thread count and no memory address enters. */
#pragma once

#include "eval/human/quality.h"
#include "eval/human/ratings.h"
#include "eval/judge/ensemble.h"
#include "eval/report/measures.h"
#include "eval/document/table.h"
#include "eval/scores/feature_prompts.h"
#include "eval/scores/source_manifest.h"
#include "eval/study/prompts.h"

enum lk_subcategories { LK_SUBCATEGORIES_BOTH, LK_SUBCATEGORIES_PRINTED, LK_SUBCATEGORIES_CONTENT };
enum lk_unclear { LK_UNCLEAR_EXCLUDE, LK_UNCLEAR_HALF, LK_UNCLEAR_NONADHERENT };

struct lk_report_options {
    const char *title;
    const char *run;                 /* its name in every file; "" for the title */
    const char *date;                /* printed as given; "" for none */
    const char *judges[LK_N_JUDGES]; /* as displayed; "" for a slot without judge */
    const char *doubts;              /* what makes a judge's scores say nothing (eval/judge/doubts.h); NULL: nothing */
    const char *studies;             /* hashes of the configurations of the runs that it is of, or NULL */
    const char *label;               /* a sentence that stands on top of everything ("synthetic raters ..."), or "" */
    const char *attribution;         /* whose the sources are, or "" */
    struct lk_thresholds thresholds;
    enum lk_rounding rounding; /* that the dataset's scores were made with */
    enum lk_subcategories subcategories;
    enum lk_unclear unclear;
    bool secondary_only, with_review;  /* what the scores were made with */
    enum lk_score_source score_source; /* of tables 14 and 19; where judges gave none, raters' */
    bool drifted_only;                 /* the same: pairs whose baseline drifted */
    int64_t n_bootstrap;
    uint64_t study_seed;
    double alpha;
    bool prompts_are_all; /* findings are about these prompts alone */
    /* The raters: NULL and 0 without human data. */
    enum lk_protocol protocol;
    enum lk_quality_policy policy; /* that raters were left out by */
    const struct lk_quality_report *quality;
    const struct lk_participant *participants;
    size_t n_participants;
    const struct lk_source_manifest *manifest; /* NULL: not known which pool a source is from */
    const struct lk_feature_prompts *features; /* NULL: none */
    int8_t examples[LK_N_SOURCES];             /* sources whose feature prompts are shown; the three printed */
    int n_examples;
    const char *images; /* folder that item images are found in, or NULL */
    bool embed_images, audit_safe;
    bool png;         /* charts as PNG too */
    bool data_folder; /* scores and ratings once more, in files that the study's protocols name */
    int figure_prompt, figure_gender, figure_age; /* of Figure 6; -1: those with most outputs */
};
void lk_report_options_init(struct lk_report_options *options);

struct lk_report;
/* The dataset must have been completed (ensemble, combination of raters, quality, pairs) and outlive the report. */
enum lk_code lk_report_build(struct lk_report **out, struct lk_dataset *data, const struct lk_report_options *options);
void lk_report_free(struct lk_report *report);
/* NULL when there is no such table. */
const struct lk_table *lk_report_table(const struct lk_report *report, const char *id);
/* folder is made when it is missing. The files appear together, report.html last; after an error the folder's
 * are as they were, but after LK_E_PARTIAL: then pictures that do not fit into memory are left out. */
enum lk_code lk_report_write(const struct lk_report *report, const char *folder);
