/* The store of an audit: one SQLite database of what a study asks for, what was made, and what judges and raters said
 * of it. Readers only insert; everything that is reported is a query.
 *
 *     struct lk_audit *audit;
 *     LK_TRY(lk_audit_open(&audit, NULL));                          // in memory; a path: a file that is made anew
 *     rc = lk_audit_add_study(audit, study);
 *     if (!rc) rc = lk_audit_add_manifest(audit, text, n, "run/manifest.jsonl");
 *     if (!rc) rc = lk_audit_add_scores(audit, &data);
 *     if (!rc) rc = lk_audit_complete(audit, &settings);
 *     if (!rc) rc = lk_audit_query(audit, "SELECT model, avg(value) FROM measured GROUP BY model", &table);
 *     lk_audit_close(audit);
 *
 * Tables: attribute, source, prompt, model, output, answer (what hosted models said), score, measure, outcome,
 * alternative, masked (an output under a mask), cached (one with a step cache), rewrite (a prompt and a source of a
 * model that has a rewriter), rewrite_word (what the rewriter added, removed and kept of group_word); views: item (an
 * output with all its factors, a column each), measured (a measure of an item: 0, 1, or between where judges differ). A
 * source's attributes are columns under their own names. */
#pragma once

#include "eval/design/study.h"
#include "eval/document/table.h"
#include "eval/report/measures.h"
#include "eval/report/report.h"
#include "eval/scores/dataset.h"

struct lk_audit;

struct lk_audit_settings {
    struct lk_thresholds thresholds;
    double alpha;   /* of intervals: 0.05 */
    bool published; /* a measure of two judges is that of their rounded mean, as the documents have it; else the mean of
                       their indicators, which always lies between the judges' own rates */
};

enum lk_code lk_audit_open(struct lk_audit **out, const char *path);
void lk_audit_close(struct lk_audit *audit); /* NULL is allowed */

/* Attributes, sources, prompts, models, and an output for every job: "missing" until a manifest says otherwise. */
enum lk_code lk_audit_add_study(struct lk_audit *audit, const struct lk_study *study);
/* Whether a prompt was rewritten before its output. */
bool lk_audit_any_rewrite(const struct lk_audit *audit);
/* What became of the outputs: a run's manifest.jsonl. LK_E_INPUT names the line that is none, or of no output of the
 * study. */
enum lk_code lk_audit_add_manifest(struct lk_audit *audit, const char *text, size_t n, const char *name);
/* Scores of the judges, of their ensemble, of reviewers, of every rater and of the raters together. */
enum lk_code lk_audit_add_scores(struct lk_audit *audit, const struct lk_dataset *data);
/* Measures by the thresholds, and the outcome of each output on each, by hosted models themselves ("asked": refused,
 * where they answered at all), by the judges ("judges") and by the raters
 * together ("raters"); beside them, in `alternative`, by the judges' rounded mean ("rounded"), by each judge alone
 * ("primary", "secondary") and with reviewers' decisions ("reviewed"). Again after a change of settings. */
enum lk_code lk_audit_complete(struct lk_audit *audit, const struct lk_audit_settings *settings);

/* The rows of one SELECT as a table; nothing else is allowed, and no file is read or written. Beside SQLite's functions
 * there are the aggregates mean_low(value, cluster) and mean_high(value, cluster): the interval of a mean of values of
 * which those of one cluster, a name or a row as source_row, are not independent (CR2, Satterthwaite); rate_low and
 * rate_high: the same cut to 0 and 1, and with a third argument, rate_low(value, source_id, prompt_id), of a share
 * among people and prompts like these, near 0 and 1 too (eval/stats/crossed), both of which interval_low(i) and
 * interval_high(i) are of one i = rate_interval(...), gathered once; boot_low and boot_high(value, cluster):
 * percentiles of 10,000 resamples of the clusters; with a third argument, 0 or 1, of a difference, and boot_p its p.
 * And the functions share_low(k, n) and share_high(k, n), the interval of a share of n independent requests (Wilson;
 * Clopper-Pearson for k up to 5), and mcnemar_p(b, c), exact. LK_E_INPUT: what SQLite says of the statement. */
enum lk_code lk_audit_query(struct lk_audit *audit, const char *sql, struct lk_table **out);

/* Row by row: cells by the names of their columns. */
struct lk_audit_row;
typedef enum lk_code lk_audit_row_fn(void *context, const struct lk_audit_row *row);
enum lk_code lk_audit_each(struct lk_audit *audit, const char *sql, lk_audit_row_fn *fn, void *context);
/* NULL: there is no such column, or it is NULL. Until the next row. */
const char *lk_audit_text(const struct lk_audit_row *row, const char *column);
/* False: there is no such column, or it is NULL. */
bool lk_audit_number(const struct lk_audit_row *row, const char *column, double *out);

/* Two reports of studies of one's own set beside each other, output by output: what a service refuses later, a model
 * after its adapter. */

/* Every outcome of every output into a file. */
enum lk_code lk_audit_outcomes_csv(struct lk_audit *audit, const struct lk_study *study, const char *path);

struct lk_any_compare {
    const char *texts[2]; /* of such files */
    size_t n[2];
    const char *files[2], *names[2]; /* for messages; for people */
    const char *title, *date;        /* date "" for none */
    double alpha;
};
/* FOLDER/report.html, findings.txt, tables/. Pairs of outputs have model, source, prompt, arm and seed in common.
 * LK_E_INPUT: a file is not what a report writes, or nothing is in both. */
enum lk_code lk_any_compare(const struct lk_any_compare *how, const char *folder);

/* The report of any study: its tables are queries over the store (eval/intake/audit.h), one file a table in
 * eval/intake/tables, in the order of lk_any_tables.
 *
 *     rc = lk_any_report_write(audit, study, &options, "report");   // report/report.html, report/tables/NAME.csv, ...
 *
 * A table's file begins with lines "-- key: value": title, section (edits, disparity, mitigation, refusals, human,
 * robustness or design), note, form, and "for: attribute", of which there is one table for each attribute with
 * $attribute and $display in its place. Forms: "list", the columns of the SELECT; "rates" and "differences", cells k of
 * n or value by "row" and "column" under "heading", with the interval low to high. */

/* Uses of the options title, run, date, label, judges, thresholds and alpha. */
enum lk_code lk_any_report_write(struct lk_audit *audit, const struct lk_study *study,
                                 const struct lk_report_options *options, const char *folder);
/* One of its tables that is not of an attribute, by the name of its file; lk_table_free. */
enum lk_code lk_any_table(struct lk_audit *audit, const char *name, struct lk_table **out);
