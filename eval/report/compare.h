/* Two runs of one study beside each other: another version, another precision, with and without a mitigation. Outputs
 * are compared with their own counterpart, and sources are what is counted.
 *
 *     struct lk_compare how = {.runs = {&a, &b}, .names = {"bf16", "nf4"}, .margin = 0.05, ...};
 *     rc = lk_report_compare(&how, "compared");        // compared/report.html, compared/tables/compare_all.csv, ... */
#pragma once

#include "eval/report/report.h"

struct lk_compare {
    const struct lk_dataset *runs[2];
    const char *names[2], *hashes[2]; /* the runs, and their configurations */
    const char *title, *date;         /* date "" for none */
    struct lk_thresholds thresholds;
    double alpha;
    double margin; /* two rates are called equivalent when they differ by less: a share */
    bool png;      /* the chart as PNG too */
};

/* An output's counterpart has its id, or, where there is none, that of the other arm: before and after a mitigation.
 * Each measure's difference (second minus first run) has an interval and a test by source (CR2, Student's t with
 * Satterthwaite's degrees of freedom; Holm over the measures of a group of rows) and two one-sided tests of
 * equivalence. LK_E_INPUT when no output is in both. */
enum lk_code lk_report_compare(const struct lk_compare *how, const char *folder);

/* The scores of a report's outputs, as the report writes them. LK_E_INPUT names the line. */
enum lk_code lk_report_items_read(struct lk_dataset *data, const char *text, size_t n, const char *name);
/* 1, 2 (the preserved arm), 3. */
int lk_report_experiment(const struct lk_item *item);
/* The table of items.csv, of one experiment (0: all) and model (-1: all); freed by the caller. */
enum lk_code lk_report_items(const struct lk_dataset *data, const struct lk_run *run, int experiment, int model,
                             struct lk_table **out);
/* items.csv: of every output the ensemble's scores and the raters' majority. */
enum lk_code lk_report_items_write(const struct lk_dataset *data, const struct lk_run *run, const char *folder);
