/* The tables that the study's authors published (eval/data/paper_tables.json), as tables of the report: to
 * test that what was printed can be printed again.
 *
 *     struct lk_paper_tables paper;
 *     LK_TRY(lk_paper_tables_read(&paper));
 *     const struct lk_table *table = lk_paper_tables_find(&paper, "table_12");
 *     ...
 *     lk_paper_tables_free(&paper);
 */
#pragma once

#include "eval/document/table.h"

/* Ids: "table_1" to "table_19" as in the file, then "seed_000_1.2", "seed_000_1.3", ... for the tables of its sections.
 * Cells that are numbers as printed ("1,680", "13.4%", "17.2 pp", "-1.48") are numbers here; a published rate is a
 * fraction without counts, for the file has none. */
struct lk_paper_tables {
    struct lk_table **list;
    int n;
};

/* LK_E_JSON and its kin when the data file is not what it should be, LK_E_NOMEM. */
enum lk_code lk_paper_tables_read(struct lk_paper_tables *out);
const struct lk_table *lk_paper_tables_find(const struct lk_paper_tables *tables, const char *id); /* NULL: none */
void lk_paper_tables_free(struct lk_paper_tables *tables);
