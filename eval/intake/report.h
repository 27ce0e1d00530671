/* The report of any study: its tables are queries over the store (eval/intake/audit.h), one file a table in
 * eval/intake/tables, in the order of lk_any_tables.
 *
 *     rc = lk_any_report_write(audit, study, &options, "report");   // report/report.html, report/tables/NAME.csv, ...
 *
 * A table's file begins with lines "-- key: value": title, section (edits, disparity, mitigation, refusals, human,
 * robustness or design), note, form, and "for: attribute", of which there is one table for each attribute with
 * $attribute and $display in its place. Forms: "list", the columns of the SELECT; "rates" and "differences", cells k of
 * n or value by "row" and "column" under "heading", with the interval low to high. */
#pragma once

#include "eval/intake/audit.h"
#include "eval/report/report.h"

/* Uses of the options title, run, date, label, judges, thresholds and alpha. */
enum lk_code lk_any_report_write(struct lk_audit *audit, const struct lk_study *study,
                                 const struct lk_report_options *options, const char *folder);
/* One of its tables that is not of an attribute, by the name of its file; lk_table_free. */
enum lk_code lk_any_table(struct lk_audit *audit, const char *name, struct lk_table **out);
