#include "eval/intake/audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/document/files.h"
#include "eval/document/page.h"
#include "eval/document/table_print.h"
#include "eval/intake/internal.h"
#include "eval/scores/csv.h"

/* --- what a report leaves --- */

enum { PIECE = 1 << 20 }; /* bytes of a file that are written together */

struct outcomes_file {
    struct lk_atomic_file *file;
    struct lk_text text; /* what is not written yet */
    bool any;
};

static enum lk_code write_text(struct outcomes_file *f) {
    enum lk_code rc = f->text.rc;
    if (!rc && f->text.n) rc = lk_atomic_write(f->file, f->text.bytes, f->text.n);
    f->text.n = 0;
    return rc;
}

static enum lk_code outcome_line(void *context, const struct lk_audit_row *row) {
    struct outcomes_file *f = context;
    sqlite3_stmt *q = row->statement;
    const int n = sqlite3_column_count(q);
    for (int i = 0; i < n && !f->any; i++) {
        lk_print_csv_text(&f->text, sqlite3_column_name(q, i), "");
        lk_text_add(&f->text, i + 1 < n ? "," : "\r\n");
    }
    f->any = true;
    for (int i = 0; i < n; i++) {
        const int type = sqlite3_column_type(q, i);
        if (type == SQLITE_FLOAT)
            lk_text_number(&f->text, sqlite3_column_double(q, i));
        else if (type == SQLITE_TEXT)
            lk_print_csv_text(&f->text, lk_sql_text(q, i), "");
        else if (type == SQLITE_INTEGER)
            lk_text_add(&f->text, "%lld", (long long)sqlite3_column_int64(q, i));
        lk_text_add(&f->text, i + 1 < n ? "," : "\r\n");
    }
    return f->text.n < PIECE ? f->text.rc : write_text(f);
}

enum lk_code lk_audit_outcomes_csv(struct lk_audit *audit, const struct lk_study *study, const char *path) {
    struct lk_text sql = {0};
    struct outcomes_file f = {0};
    int n;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    lk_text_add(&sql,
                "SELECT model_key, model, coalesce(source_id, '') AS source_id, prompt_id, arm, seed, who, measure, "
                "measure_display, value");
    for (int i = 0; i < n; i++)
        lk_text_add(&sql, ", coalesce(\"%s\", '') AS \"%s\"", attributes[i].name, attributes[i].name);
    lk_text_add(&sql,
                " FROM measured WHERE source2_id IS NULL ORDER BY model_position, source_id, prompt_id, arm, seed, "
                "who, measure_position");
    enum lk_code rc = sql.rc ? sql.rc : lk_atomic_open(&f.file, path);
    if (!rc) rc = lk_audit_each(audit, sql.bytes, outcome_line, &f);
    if (!rc && !f.any) lk_text_add(&f.text, "no rows\r\n");
    if (!rc) rc = write_text(&f);
    if (!rc)
        rc = lk_atomic_commit(f.file);
    else
        lk_atomic_discard(f.file);
    lk_text_free(&f.text);
    lk_text_free(&sql);
    return rc;
}

/* --- both in one store --- */

enum { FIXED = 10 };
static const char *const fixed[FIXED] = {"model_key", "model", "source_id", "prompt_id",       "arm",
                                         "seed",      "who",   "measure",   "measure_display", "value"};

struct both {
    const struct lk_any_compare *how;
    struct lk_audit *audit;
    struct lk_table *tables[LK_MAX_ATTRIBUTES + 1];
    int n_tables;
    char attributes[LK_MAX_ATTRIBUTES][64];
    int n_attributes;
    struct lk_text lead; /* lines of what differs */
};

/* An apostrophe that keeps spreadsheets from computing a text is none of it. */
static const char *plain(const char *cell) {
    return *cell == '\'' && cell[1] && strchr("=+-@", cell[1]) ? cell + 1 : cell;
}

static enum lk_code read_rows(struct both *b, struct lk_csv *csv, int run) {
    int column[FIXED];
    bool more;
    for (int i = 0; i < FIXED; i++) LK_TRY(lk_csv_require(csv, fixed[i], &column[i]));
    for (size_t i = FIXED; i < csv->n_columns && !run && b->n_attributes < LK_MAX_ATTRIBUTES; i++)
        if (lk_study_is_word(csv->columns[i], strlen(csv->columns[i]), 60))
            snprintf(b->attributes[b->n_attributes++], sizeof *b->attributes, "%s", csv->columns[i]);
    for (;;) {
        const char *cells[FIXED];
        struct lk_text levels = {0};
        LK_TRY(lk_csv_next(csv, &more));
        if (!more) return LK_OK;
        for (int i = 0; i < FIXED; i++) cells[i] = plain(lk_csv_cell(csv, column[i]));
        char *end;
        const double value = strtod(cells[9], &end);
        if (*end || end == cells[9] || !(value >= 0 && value <= 1))
            return lk_csv_fail(csv, column[9], "expected a number from 0 to 1, got \"%.40s\"", cells[9]);
        for (int i = 0; i < b->n_attributes; i++) {
            lk_text_add(&levels, "%s", i ? "," : "[");
            lk_text_json(&levels, plain(lk_csv_cell(csv, lk_csv_column(csv, b->attributes[i]))));
        }
        lk_text_add(&levels, b->n_attributes ? "]" : "[]");
        enum lk_code rc = levels.rc;
        if (!rc)
            rc = lk_sql_run(&b->audit->sql, "INSERT INTO row_of VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
                            "ittttttttdti", (int64_t)run, cells[0], cells[1], cells[2], cells[3], cells[4], cells[5],
                            cells[6], cells[7], value, levels.bytes, (int64_t)csv->line);
        if (!rc)
            rc = lk_sql_run(&b->audit->sql, "INSERT OR IGNORE INTO measure_of VALUES(?1,?2)", "tt", cells[7], cells[8]);
        lk_text_free(&levels);
        LK_TRY(rc);
    }
}

static enum lk_code read_run(struct both *b, int run) {
    struct lk_csv csv;
    LK_TRY(lk_csv_open(&csv, b->how->texts[run], b->how->n[run], b->how->files[run]));
    enum lk_code rc = read_rows(b, &csv, run);
    lk_csv_close(&csv);
    return rc;
}

static enum lk_code pair(struct both *b) {
    int64_t n;
    LK_TRY(lk_sql_execute(
        &b->audit->sql,
        "CREATE TABLE pair AS SELECT a.*, m.display, m.rowid AS place, z.value AS later FROM row_of a JOIN row_of z "
        "ON a.run = 0 AND z.run = 1 AND z.model_key = a.model_key AND z.source_id = a.source_id AND z.prompt_id = "
        "a.prompt_id AND z.arm = a.arm AND z.seed = a.seed AND z.who = a.who AND z.measure = a.measure JOIN measure_of "
        "m ON m.measure = a.measure"));
    LK_TRY(lk_sql_number(&b->audit->sql, &n, 0, "SELECT count(*) FROM pair", ""));
    if (!n)
        return lk_fail(LK_E_INPUT,
                       "report compare: no output of %s is in %s: expected the same models, sources, prompts",
                       b->how->files[0], b->how->files[1]);
    /* Of all rows of the first table the intervals hold together (Bonferroni). */
    LK_TRY(lk_sql_number(&b->audit->sql, &n, 1,
                         "SELECT count(*) FROM (SELECT 1 FROM pair GROUP BY measure, who, model_key, arm)", ""));
    b->audit->alpha = b->how->alpha / (double)n;
    return LK_OK;
}

/* --- tables --- */

static enum lk_code take_row(void *context, const struct lk_audit_row *row) {
    struct both *b = context;
    struct lk_table *t = b->tables[b->n_tables - 1];
    static const char *const texts[] = {"outcome", "who", "model", "arm", "level"};
    double n = 0, first = 0, second = 0, difference = 0, low = 0, high = 0;
    lk_table_row(t);
    for (int i = 0; i < 4 + (b->n_tables > 1); i++) {
        const char *text = lk_audit_text(row, texts[i]);
        lk_table_text(t, "%s", text ? text : "");
    }
    lk_audit_number(row, "n", &n), lk_audit_number(row, "first", &first), lk_audit_number(row, "second", &second);
    lk_audit_number(row, "difference", &difference);
    const bool interval = lk_audit_number(row, "low", &low) && lk_audit_number(row, "high", &high);
    lk_table_count(t, (int64_t)n);
    lk_table_rate(t, first);
    lk_table_rate(t, second);
    lk_table_points(t, difference);
    if (interval)
        lk_table_interval(t, low, high);
    else
        lk_table_remark(t, "no interval: all sources are alike, or there is one");
    if (b->n_tables > 1 || !interval || (low <= 0 && high >= 0)) return t->rc;
    const char *model = lk_audit_text(row, "model"), *outcome = lk_audit_text(row, "outcome"),
               *arm = lk_audit_text(row, "arm");
    lk_text_add(&b->lead, "%s, %s%s%s: %.1f%%, then %.1f%%: %+.1f pp [%.1f, %.1f].\n", model ? model : "",
                outcome ? outcome : "", arm && strcmp(arm, "edited") ? ", " : "",
                arm && strcmp(arm, "edited") ? arm : "", 100 * first, 100 * second, 100 * difference, 100 * low,
                100 * high);
    return t->rc ? t->rc : b->lead.rc;
}

/* attribute -1: all. */
static enum lk_code make_table(struct both *b, int attribute) {
    char id[100] = "compare_models", caption[200] = "Outcomes of both", columns[300], sql[1400];
    const char *name = attribute < 0 ? "" : b->attributes[attribute];
    if (attribute >= 0) snprintf(id, sizeof id, "compare_%s", name);
    if (attribute >= 0) snprintf(caption, sizeof caption, "Outcomes of both, by %s", name);
    snprintf(columns, sizeof columns, "Outcome|By|Model|Arm%s%s|>Pairs|>First|>Second|>Difference",
             attribute < 0 ? "" : "|", name);
    snprintf(
        sql, sizeof sql,
        "SELECT display AS outcome, who, model, arm, json_extract(levels, '$[%d]') AS level, count(*) AS n, "
        "avg(value) AS first, avg(later) AS second, avg(later - value) AS difference, mean_low(later - value, "
        "coalesce(nullif(source_id, ''), prompt_id)) AS low, mean_high(later - value, coalesce(nullif(source_id, "
        "''), prompt_id)) AS high FROM pair GROUP BY measure, who, model_key, arm%s ORDER BY measure <> 'refused', "
        "place, who, min(line), level",
        attribute < 0 ? 0 : attribute, attribute < 0 ? "" : ", level");
    struct lk_table *t;
    LK_TRY(lk_table_new(&t, id, caption, columns));
    b->tables[b->n_tables++] = t;
    LK_TRY(lk_audit_each(b->audit, sql, take_row, b));
    lk_table_note(
        t,
        "Outputs that are in both, second minus first. Intervals at %.4g%%, by source (CR2); those of the first "
        "table hold together with %g%%.",
        100 * (1 - b->audit->alpha), 100 * (1 - b->how->alpha));
    return lk_table_finish(t);
}

static enum lk_code write_files(const struct both *b, const char *folder) {
    const struct lk_any_compare *how = b->how;
    struct lk_page *page;
    char path[LK_DOCUMENT_PATH_MAX + 20];
    snprintf(path, sizeof path, "%s/tables", folder);
    LK_TRY(lk_document_folder(path));
    for (int i = 0; i < b->n_tables; i++) LK_TRY(lk_document_table_files(b->tables[i], path));
    LK_TRY(lk_page_new(&page, &(struct lk_page_options){.title = how->title,
                                                        .date = how->date && *how->date ? how->date : NULL,
                                                        .csv_folder = "tables"}));
    lk_page_section(page, "section-summary", "Summary");
    lk_page_paragraph(page, "First: %s. Second: %s.", how->names[0], how->names[1]);
    if (!b->lead.n) lk_page_lead(page, "No outcome is seen to differ.");
    for (const char *line = b->lead.n ? b->lead.bytes : ""; *line;) {
        char text[400];
        const size_t n = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)n, line);
        lk_page_lead(page, text);
        line += n + (line[n] == '\n');
    }
    lk_page_section(page, "section-compared", "Compared");
    for (int i = 0; i < b->n_tables; i++) lk_page_table(page, b->tables[i]);
    snprintf(path, sizeof path, "%s/report.html", folder);
    enum lk_code rc = lk_page_write(page, path);
    lk_page_free(page);
    return rc;
}

enum lk_code lk_any_compare(const struct lk_any_compare *how, const char *folder) {
    struct both *b = lk_calloc(1, sizeof *b);
    if (!b) return lk_fail(LK_E_NOMEM, "report compare: out of memory");
    b->how = how;
    enum lk_code rc = lk_audit_open(&b->audit, NULL);
    if (!rc)
        rc = lk_sql_execute(&b->audit->sql,
                            "CREATE TABLE row_of(run INTEGER, model_key, model, source_id, prompt_id, arm, seed, who, "
                            "measure, value REAL, levels, line INTEGER); CREATE TABLE measure_of(measure TEXT PRIMARY "
                            "KEY, display TEXT); CREATE INDEX rows_of ON row_of(run, model_key, source_id, prompt_id)");
    if (!rc) rc = lk_sql_begin(&b->audit->sql);
    for (int run = 0; run < 2 && !rc; run++) rc = read_run(b, run);
    if (b->audit && b->audit->sql.depth) rc = lk_sql_end(&b->audit->sql, rc);
    if (!rc) rc = pair(b);
    for (int a = -1; a < b->n_attributes && !rc; a++) rc = make_table(b, a);
    if (!rc) rc = lk_document_folder(folder);
    if (!rc) {
        lk_atomic_batch_begin();
        rc = lk_atomic_batch_end(write_files(b, folder));
    }
    for (int i = 0; i < b->n_tables; i++) lk_table_free(b->tables[i]);
    lk_text_free(&b->lead);
    lk_audit_close(b->audit);
    lk_free(b);
    return rc;
}
