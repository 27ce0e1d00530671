/* Inside the report: what the files tables_*.c and figures.c share. */
#pragma once

#include "engine/base/store.h"
#include "eval/document/figure.h"
#include "eval/report/findings/findings.h"
#include "eval/report/report.h"
#include "eval/stats/stats.h"

enum lk_section {
    LK_SECTION_SUMMARY,
    LK_SECTION_EDITS,      /* edit success, soft erasure, drift by model */
    LK_SECTION_DISPARITY,  /* by race and every other factor */
    LK_SECTION_MITIGATION, /* pairs */
    LK_SECTION_ROLES,      /* experiment 3 */
    LK_SECTION_HUMAN,      /* raters, agreement, quality */
    LK_SECTION_TESTS,
    LK_SECTION_ROBUSTNESS, /* rounding, judges, published values beside ours */
    LK_SECTION_EXAMPLES,
    LK_SECTION_DESIGN,
    LK_N_SECTIONS,
};

struct lk_report_entry {
    enum lk_section section;
    struct lk_table *table;   /* or */
    struct lk_figure *figure; /* one of the two */
};

/* The images behind a cell: outputs of the group for which the measure holds, by the judges or by the raters; or those
 * that are named. */
struct lk_report_images {
    struct lk_group group;
    enum lk_measure measure;
    enum lk_score_source source;
    const char *key, *title; /* of named ones, in the store; NULL */
    const int32_t *items;    /* [n] ascending, in the store */
    size_t n;
};

struct lk_report {
    struct lk_dataset *data;
    struct lk_report_options options;
    struct lk_prompts prompts;
    struct lk_report_entry *entries;
    size_t n_entries, entries_capacity;
    struct lk_report_images *images;
    size_t n_images, images_capacity;
    struct lk_store store; /* texts of the run */
    struct lk_run run;
    char hash[65];                              /* SHA-256 of configuration.json */
    const char *lead[LK_FINDING_SENTENCES + 1]; /* the summary's sentences, in the store */
    int n_lead;
};

/* Completes report->run, and has every table name it. */
enum lk_code lk_report_name_run(struct lk_report *report);

/* Takes the table in any case: checks and appends it, or frees it. In the sections of judges' scores it notes the
 * judges' kin. */
enum lk_code lk_report_add(struct lk_report *report, enum lk_section section, struct lk_table *table);
/* Takes what the figure holds; figure itself is copied. */
enum lk_code lk_report_add_figure(struct lk_report *report, enum lk_section section, struct lk_figure *figure);

/* What a note says where outputs of one source are counted. */
#define LK_REPEATED_SOURCES                                                                                            \
    "Sources repeat across prompts and models, so that outputs of one source are not independent. The study's own "    \
    "tests treat outputs as independent; both are reported."

/* The parts of the report in their order; each is a function lk_report_NAME that adds tables or figures. */
#define LK_REPORT_PARTS(part)                                                                                          \
    part(summary) part(sentences) part(tables_rates) part(tables_disparity) part(tables_mixed) part(tables_pairs)      \
        part(tables_roles) part(tables_human) part(tables_agreement) part(tables_calibrated) part(tables_quality)      \
            part(tables_tests) part(tables_questions) part(tables_robustness) part(tables_judges) part(tables_kinship) \
                part(tables_review) part(tables_examples) part(tables_design) part(tables_published) part(tables_plan) \
                    part(figures_rates) part(figures_scores)
#define LK_REPORT_PART(name) enum lk_code lk_report_##name(struct lk_report *report);
LK_REPORT_PARTS(LK_REPORT_PART)
#undef LK_REPORT_PART

/* Models with outputs that have the measure, in canonical order; returns how many. */
int lk_report_models(const struct lk_report *report, enum lk_measure measure, int models[LK_N_MODELS]);
/* Whether any item of the group has an edit success score. */
bool lk_report_has_items(const struct lk_report *report, const struct lk_group *group);
/* Says below a table which judges are related to which editors, where that is known and there are scores. */
void lk_report_note_kin(const struct lk_report *report, struct lk_table *table);
/* A cell with the number and its interval; none when undefined. */
void lk_report_number(struct lk_table *table, const struct lk_number *number, int decimals);
/* The last cell gets the Wilson interval of a rate (outputs taken as independent). n > 0. */
void lk_report_interval(struct lk_report *report, struct lk_table *table, struct lk_rate rate);
/* The last cell leads to the images behind it. Pages that hold their pictures have those by race and model alone. */
void lk_report_link(struct lk_report *report, struct lk_table *table, const struct lk_group *group,
                    enum lk_measure measure, enum lk_score_source source);
/* Whether an output is behind a count. */
typedef bool (*lk_report_picks)(const struct lk_report *report, const struct lk_item *item, const void *context);
/* The last cell leads to the outputs that are picked, if there are any: their list has the title and " (n)". One key is
 * one list. Pages that hold their pictures have none of these. */
void lk_report_link_picked(struct lk_report *report, struct lk_table *table, lk_report_picks picks, const void *context,
                           const char *title, const char *key_format, ...) __attribute__((format(printf, 6, 7)));
/* "flux-Indian-race_drift"; further levels follow, and "raters"; or the key of named ones. */
void lk_report_images_key(const struct lk_report_images *images, char key[160]);

/* Whether race change depends on race: chi-square of race by change, all models, baseline arm; and by_source, the p of
 * a permutation of the sources. */
struct lk_drift_test {
    struct lk_test test;
    struct lk_number by_source;
};
enum lk_code lk_report_drift_test(const struct lk_report *report, enum lk_score_source source,
                                  struct lk_drift_test *out);
/* "72 outputs a race tell 20% from 15% with power 0.12 ..." in a two-sided test at alpha. n > 0. */
enum lk_code lk_report_power(int64_t n, double alpha, char out[256]);

/* The study's rank tests on the raters' means, for the table of tests and for quality control. */
struct lk_human_test {
    const char *name, *axis;
    struct lk_test test;
    double adjusted; /* p within its family; 1 when the test is undefined */
    struct lk_number by_source;
};

enum { LK_N_HUMAN_TESTS = 3 * LK_N_AXES };
/* Kruskal-Wallis over the races, Mann-Whitney of White against the others, Wilcoxon of the pairs, each on every axis.
 */
enum lk_code lk_report_human_tests(const struct lk_report *report, struct lk_human_test out[LK_N_HUMAN_TESTS]);
