/* The tables of any study's report as files: a head of "-- key: value" and one SELECT (eval/intake/report.h). Private
 * to eval/intake. */
#pragma once

#include "eval/intake/audit.h"

struct lk_audit_table_file {
    char title[200], section[40], note[600], form[20], rows[40];
    bool each_attribute;
    char *sql; /* lk_free */
};

enum { LK_MAX_AUDIT_TABLES = 40 };
/* Their names in the order within a section; the last is NULL. */
extern const char *const lk_audit_tables[];
enum lk_code lk_audit_table_file(const char *name, struct lk_audit_table_file *out);
/* "rates_by_attribute_race"; attribute NULL: the name alone. */
void lk_audit_table_id(const char *name, const struct lk_attribute *attribute, char id[100]);
/* Text with $attribute and $display replaced; lk_free. NULL: out of memory. */
char *lk_audit_fill(const char *text, const struct lk_attribute *attribute);
/* Of each table of rates or differences a view under its id, by the same FROM and WHERE: a row for each output that a
 * cell is of, with the cell's heading, "row" and "column", `counted` (the cell is its mean), and the columns of the
 * rows. */
enum lk_code lk_audit_add_views(struct lk_audit *audit, const struct lk_study *study);
/* Whether there is such a view. */
bool lk_audit_has_view(struct lk_audit *audit, const char *id);
