
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/base/atomic_file.h"
#include "engine/base/names.h"
#include "eval/document/files.h"
#include "eval/document/page.h"
#include "eval/intake/audit.h"
#include "eval/intake/internal.h"
#include "eval/intake/tables.h"

enum { MAX_MADE = LK_MAX_AUDIT_TABLES * (LK_MAX_ATTRIBUTES + 1) + LK_MAX_ATTRIBUTES + 2 };

static const struct {
    const char *key, *title, *text;
} sections[] = {
    {"edits", "Edits by model", "Whether edits were made (success), ignored (soft erasure), or changed the person."},
    {"disparity", "Disparities between groups", "The same rates by the attributes of the sources."},
    {"mitigation", "Mitigation: prompts that keep the person",
     "Pairs of edits that differ only in the prompt: as it is, and with what is to be kept."},
    {"refusals", "Refusals",
     "What hosted models would not make. Placeholders, pictures of a safety filter in place of one, count as refused; "
     "faults of the network or the service are no answers and stand apart. All other rates are of what was made."},
    {"rewriting", "Rewritten prompts",
     "What a language model made of the prompts before the edits, and whom it named that the prompts did not."},
    {"masks", "Edits under a mask",
     "What a mask let change, how visible its border is, and what judges say of the person where the kept pixels are "
     "the source's own."},
    {"human", "Raters", "The same by people."},
    {"robustness", "Robustness", "How far results depend on the judge and the seed."},
    {"design", "Design", "What the study asks for and what was made of it."}};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

struct made {
    struct lk_table *table;
    int section;
    char *query, *behind; /* its SELECT, and the command that shows the outputs of its first cell; NULL; lk_free */
};

struct report {
    struct lk_audit *audit;
    const struct lk_study *study;
    const struct lk_report_options *options;
    struct lk_audit_findings *findings;
    struct made made[MAX_MADE];
    int n_made;
    struct lk_run run;
    double n_answers; /* of hosted models */
    double n_masked;  /* outputs under a mask */
};

/* --- cells --- */

struct cell {
    const char *heading, *row;
    int32_t column;
    double k, n, value, low, high, adjusted;
    bool has_value, has_interval, is_adjusted;
};

struct cells {
    struct cell *list;
    size_t n, capacity;
    struct lk_names columns;
    struct lk_store texts;
};

static enum lk_code add_cell(void *context, const struct lk_audit_row *row) {
    struct cells *cells = context;
    const char *column = lk_audit_text(row, "column");
    struct cell cell = {.heading = lk_store_text(&cells->texts, lk_audit_text(row, "heading"))};
    LK_TRY(lk_names_number(&cells->columns, column ? column : "", column ? strlen(column) : 0, &cell.column));
    cell.row = lk_store_text(&cells->texts, lk_audit_text(row, "row"));
    lk_audit_number(row, "k", &cell.k);
    lk_audit_number(row, "n", &cell.n);
    cell.has_value = lk_audit_number(row, "value", &cell.value);
    cell.has_interval = lk_audit_number(row, "low", &cell.low) && lk_audit_number(row, "high", &cell.high);
    cell.is_adjusted = lk_audit_number(row, "adjusted", &cell.adjusted);
    LK_TRY(lk_grow(&cells->list, &cells->capacity, cells->n + 1, sizeof *cells->list));
    cells->list[cells->n++] = cell;
    return LK_OK;
}

static bool same_text(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

/* k is a mean of judges' indicators: a half where two differ. */
static void print_cell(struct lk_table *table, const struct cell *cell, bool difference) {
    if (!cell)
        lk_table_none(table, "no outputs");
    else if (difference)
        lk_table_points(table, cell->value);
    else if (cell->n > 0 && cell->is_adjusted)
        lk_table_rate_of(table, cell->adjusted, cell->k, cell->n);
    else if (cell->n > 0 && cell->k == (double)(int64_t)cell->k)
        lk_table_percent(table, (int64_t)cell->k, (int64_t)cell->n);
    else if (cell->n > 0)
        lk_table_rate(table, cell->k / cell->n);
    else
        lk_table_none(table, "no outputs");
    if (!cell || cell->n <= 0) return;
    if (cell->has_interval) lk_table_interval(table, cell->low, cell->high);
    if (cell->is_adjusted)
        lk_table_remark(table, "n = %.0f, of which %.3g counted; adjusted", cell->n, cell->k);
    else
        lk_table_remark(table, "n = %.0f", cell->n);
}

static void print_cells(struct lk_table *table, const struct cells *cells, bool difference) {
    for (size_t i = 0; i < cells->columns.n; i++) lk_table_column(table, cells->columns.list[i], LK_ALIGN_RIGHT);
    const char *heading = NULL;
    for (size_t i = 0; i < cells->n;) {
        const struct cell *first = &cells->list[i];
        if (first->heading && !same_text(heading, first->heading)) lk_table_heading(table, heading = first->heading);
        lk_table_row(table);
        lk_table_text(table, "%s", first->row ? first->row : "");
        size_t end = i;
        while (end < cells->n && same_text(cells->list[end].row, first->row) &&
               same_text(cells->list[end].heading, first->heading))
            end++;
        for (size_t c = 0; c < cells->columns.n; c++) {
            const struct cell *cell = NULL;
            for (size_t k = i; k < end; k++)
                if (cells->list[k].column == (int32_t)c) cell = &cells->list[k];
            print_cell(table, cell, difference);
        }
        i = end;
    }
}

/* " AND row = 'Black'", within double quotes of a shell. */
static void add_condition(struct lk_text *out, const char *column, const char *value) {
    lk_text_add(out, " AND %s %s", column, value ? "= '" : "IS NULL");
    for (const char *at = value; at && *at; at++)
        lk_text_add(out, "%s%c", *at == '\'' ? "'" : strchr("\"$`\\", *at) ? "\\" : "", *at);
    lk_text_add(out, "%s", value ? "'" : "");
}

/* What shows the outputs that a cell is of; NULL: out of memory. */
static char *behind(const char *id, const struct cell *cell, const char *column, bool headed) {
    struct lk_text out = {0}, where = {0};
    if (headed) add_condition(&where, "heading", cell->heading);
    add_condition(&where, "row", cell->row);
    add_condition(&where, "column", column);
    lk_text_add(&out,
                "likeness report --from RUN --query \"SELECT item_id, path, counted FROM %s WHERE%s\" --gallery "
                "pictures.html",
                id, where.rc ? "" : where.bytes + strlen(" AND"));
    const enum lk_code rc = lk_text_free(&where);
    if (!rc && !out.rc) return out.bytes;
    lk_text_free(&out);
    return NULL;
}

static enum lk_code cells_table(struct report *r, const char *id, const struct lk_audit_table_file *q, const char *rows,
                                const char *sql, struct lk_table **out, char **command) {
    struct cells cells = {0};
    enum lk_code rc = lk_audit_each(r->audit, sql, add_cell, &cells);
    if (!rc) rc = lk_table_new(out, id, q->title, rows);
    if (!rc) print_cells(*out, &cells, !strcmp(q->form, "differences"));
    if (!rc && cells.n && lk_audit_has_view(r->audit, id)) {
        bool headed = false;
        for (size_t i = 0; i < cells.n; i++) headed |= cells.list[i].heading != NULL;
        *command = behind(id, cells.list, cells.columns.list[cells.list->column], headed);
        if (!*command) rc = lk_fail(LK_E_NOMEM, "report: out of memory");
    }
    lk_free(cells.list);
    lk_names_free(&cells.columns);
    lk_store_free(&cells.texts);
    return rc;
}

static int section_of(const char *key) {
    for (int s = 0; s < N_SECTIONS; s++)
        if (!strcmp(sections[s].key, key)) return s;
    return N_SECTIONS - 1;
}

static void free_made(struct made *made) {
    lk_table_free(made->table);
    lk_free(made->query);
    lk_free(made->behind);
}

static enum lk_code make_table(struct report *r, const char *name, const struct lk_audit_table_file *q,
                               const struct lk_attribute *attribute, struct made *out) {
    char id[100];
    struct lk_table *table = NULL;
    *out = (struct made){.section = section_of(q->section)};
    char *sql = lk_audit_fill(q->sql, attribute), *title = lk_audit_fill(q->title, attribute),
         *rows = lk_audit_fill(q->rows, attribute);
    lk_audit_table_id(name, attribute, id);
    for (char *at = rows; at && *at; at++)
        if (*at == '|') *at = '/'; /* it would make two columns */
    enum lk_code rc = sql && title && rows ? LK_OK : lk_fail(LK_E_NOMEM, "report: out of memory");
    if (!rc)
        rc = strcmp(q->form, "list") ? cells_table(r, id, q, rows, sql, &table, &out->behind)
                                     : lk_audit_query(r->audit, sql, &table);
    if (rc && rc != LK_E_NOMEM) rc = lk_fail_prefix(LK_E_INTERNAL, "%s.sql", name);
    if (!rc) {
        lk_table_caption(table, title);
        lk_table_id(table, id);
        if (*q->note) lk_table_note(table, "%s", q->note);
        table->run = &r->run;
        rc = lk_table_finish(table);
    }
    lk_free(title);
    lk_free(rows);
    out->table = table;
    out->query = sql;
    if (rc) free_made(out);
    return rc;
}

static enum lk_code add_table(struct report *r, const char *name, const struct lk_audit_table_file *q,
                              const struct lk_attribute *attribute) {
    LK_TRY(make_table(r, name, q, attribute, &r->made[r->n_made]));
    r->n_made++;
    return LK_OK;
}

enum lk_code lk_any_table(struct lk_audit *audit, const char *name, struct lk_table **out) {
    struct report *r = lk_calloc(1, sizeof *r);
    struct lk_audit_table_file q = {.sql = NULL};
    if (!r) return lk_fail(LK_E_NOMEM, "report: out of memory");
    r->audit = audit;
    enum lk_code rc = lk_audit_table_file(name, &q);
    if (!rc) rc = make_table(r, name, &q, NULL, &r->made[0]);
    if (!rc) {
        *out = r->made[0].table;
        (*out)->run = NULL;
        r->made[0].table = NULL;
        free_made(&r->made[0]);
    }
    lk_free(q.sql);
    lk_free(r);
    return rc;
}

enum { MANY = 20000, OUTPUTS_PER_SECOND = 2000 }; /* outputs: of a report worth waiting for, on one core */

/* What a large report is about to do. */
static void tell(const struct report *r, const char *part) {
    if (r->run.n_nominal >= MANY) lk_log(LK_LOG_INFO, "report: %s", part);
}

static enum lk_code make_tables(struct report *r) {
    int n_attributes;
    const struct lk_attribute *attributes = lk_study_attributes(r->study, &n_attributes);
    for (int t = 0; lk_audit_tables[t]; t++) {
        struct lk_audit_table_file q;
        enum lk_code rc = lk_audit_table_file(lk_audit_tables[t], &q);
        if (!rc && ((!strcmp(q.section, "refusals") && !(r->n_answers > 0)) ||
                    (!strcmp(q.section, "masks") && !(r->n_masked > 0)) ||
                    (!strcmp(q.section, "rewriting") && !lk_audit_any_rewrite(r->audit)))) {
            lk_free(q.sql);
            continue;
        }
        for (int a = 0; a < n_attributes && q.each_attribute && !rc; a++)
            rc = add_table(r, lk_audit_tables[t], &q, &attributes[a]);
        if (!rc && !q.each_attribute) rc = add_table(r, lk_audit_tables[t], &q, NULL);
        lk_free(q.sql);
        if (rc) return rc;
    }
    return LK_OK;
}

/* A table that no file makes; it is taken over, or freed after an error. */
static enum lk_code add_made(struct report *r, const char *section, enum lk_code rc, struct lk_table *const *table) {
    if (rc) return rc;
    (*table)->run = &r->run;
    r->made[r->n_made++] = (struct made){.table = *table, .section = section_of(section)};
    return LK_OK;
}

/* What stands first in its section. */
static enum lk_code find(struct report *r) {
    const struct lk_claims_options options = {
        .alpha = r->options->alpha, .seed = r->options->study_seed, .prompts_are_all = r->options->prompts_are_all};
    const struct lk_outcomes *outcomes;
    const struct lk_claims *claims;
    struct lk_table *table = NULL;
    LK_TRY(lk_audit_findings(r->audit, r->study, &options, &r->findings));
    LK_TRY(add_made(r, "disparity", lk_audit_findings_table(r->findings, &table), &table));
    if (!lk_audit_refusals(r->findings, &outcomes, &claims)) return LK_OK;
    for (int a = 0; a < outcomes->n_attributes; a++) {
        enum lk_code rc = lk_refusal_differences(r->audit, r->findings, r->study, a, r->options->alpha, &table);
        LK_TRY(add_made(r, "refusals", rc, &table));
    }
    return add_made(r, "refusals", lk_refusal_factors(r->findings, &table), &table);
}

/* --- the page --- */

static void add_section(const struct report *r, struct lk_page *page, int section) {
    int n = 0;
    for (int i = 0; i < r->n_made; i++) n += r->made[i].section == section && !r->made[i].table->no_data;
    if (!n) return;
    char id[60];
    snprintf(id, sizeof id, "section-%s", sections[section].key);
    lk_page_section(page, id, sections[section].title);
    lk_page_paragraph(page, "%s", sections[section].text);
    for (int i = 0; i < r->n_made; i++) {
        const struct made *made = &r->made[i];
        if (made->section != section || made->table->no_data) continue;
        lk_page_table(page, made->table);
        if (made->behind)
            lk_page_code(page, "The outputs behind a cell: this command for the first, with other names for others",
                         made->behind);
        if (made->query) lk_page_code(page, "The query of this table", made->query);
    }
}

/* What became of all that a hosted model was asked, in two sentences. */
static enum lk_code add_answers(void *context, const struct lk_audit_row *row) {
    struct lk_page *page = context;
    double n[8];
    static const char *const columns[8] = {"asked",  "input",   "output",          "placeholders",
                                           "faults", "sources", "sources_refused", "prompts_refused"};
    for (int i = 0; i < 8; i++)
        if (!lk_audit_number(row, columns[i], &n[i])) n[i] = 0;
    const char *model = lk_audit_text(row, "model");
    const double refused = n[1] + n[2] + n[3], answered = n[0] - n[4];
    struct lk_text text = {0};
    lk_text_add(&text, "%s refused %.0f of %.0f requests", model ? model : "", refused, answered);
    if (answered > 0) lk_text_add(&text, " (%.1f%%)", 100 * refused / answered);
    if (refused > 0)
        lk_text_add(&text, ": %.0f at the request, %.0f at the picture, %.0f by placeholders", n[1], n[2], n[3]);
    if (n[4] > 0) lk_text_add(&text, "; %.0f more ended in faults", n[4]);
    lk_text_add(&text, ".");
    if (refused > 0 && n[5] > 0)
        lk_text_add(&text, " %.0f of %.0f sources were refused at least once; prompts refused for all: %.0f.", n[6],
                    n[5], n[7]);
    if (refused > 0) lk_text_add(&text, " Its other rates are of what it made; the bounds are below.");
    if (!text.rc) lk_page_lead(page, text.bytes);
    return lk_text_free(&text);
}

static enum lk_code add_refusals(const struct report *r, struct lk_page *page) {
    static const char sql[] =
        "WITH a AS (SELECT i.model, i.model_position, i.source_id, i.prompt_id, i.arm, w.outcome, w.stage, w.outcome "
        "IN "
        "('refused', 'placeholder') AS refused FROM answer w JOIN item i USING(item)), p AS (SELECT model, "
        "prompt_id, min(refused) AS whole FROM a WHERE outcome <> 'fault' AND arm = 'edited' GROUP BY model, "
        "prompt_id) "
        "SELECT model, count(*) AS asked, sum(outcome = 'refused' AND stage IS NOT 'output') AS input, sum(outcome = "
        "'refused' AND stage IS 'output') AS output, sum(outcome = 'placeholder') AS placeholders, sum(outcome = "
        "'fault') AS faults, count(DISTINCT source_id) AS sources, count(DISTINCT CASE WHEN refused THEN source_id "
        "END) "
        "AS sources_refused, (SELECT sum(whole) FROM p WHERE p.model = a.model) AS prompts_refused FROM a GROUP BY "
        "model ORDER BY model_position";
    return r->n_answers > 0 ? lk_audit_each(r->audit, sql, add_answers, page) : LK_OK;
}

static void add_counts(const struct report *r, struct lk_page *page) {
    const struct lk_report_options *o = r->options;
    static const char *const slots[] = {"Primary", "Secondary"};
    lk_page_section(page, "section-summary", "Summary");
    lk_page_leads(page, o->doubts);
    if (add_refusals(r, page)) lk_page_remark(page, "%s", lk_error_text());
    lk_audit_findings_page(r->findings, page);
    for (int j = 0; j < LK_N_JUDGES; j++)
        if (*o->judges[j]) lk_page_paragraph(page, "%s judge: %s.", slots[j], o->judges[j]);
    lk_page_paragraph(page, "Thresholds: success from %d, soft erasure up to %d, drift from %d. Intervals are at %g%%.",
                      o->thresholds.success, o->thresholds.soft_erasure, o->thresholds.drift, 100 * (1 - o->alpha));
}

static enum lk_code write_page(const struct report *r, const char *folder) {
    const struct lk_report_options *o = r->options;
    struct lk_page *page;
    char path[LK_DOCUMENT_PATH_MAX + 20];
    LK_TRY(lk_page_new(&page, &(struct lk_page_options){.title = o->title,
                                                        .run = r->run.name,
                                                        .config_hash = r->run.configuration,
                                                        .date = o->date && *o->date ? o->date : NULL,
                                                        .n_nominal = r->run.n_nominal,
                                                        .n_valid = r->run.n_valid,
                                                        .csv_folder = "tables"}));
    if (o->label && *o->label) lk_page_remark(page, "%s", o->label);
    if (*lk_study_attribution(r->study)) lk_page_remark(page, "%s", lk_study_attribution(r->study));
    add_counts(r, page);
    for (int s = 0; s < N_SECTIONS; s++) add_section(r, page, s);
    snprintf(path, sizeof path, "%s/report.html", folder);
    enum lk_code rc = lk_page_write(page, path);
    lk_page_free(page);
    return rc;
}

static enum lk_code write_files(const struct report *r, const char *folder) {
    char path[LK_DOCUMENT_PATH_MAX + 8];
    snprintf(path, sizeof path, "%s/tables", folder);
    LK_TRY(lk_document_folder(path));
    for (int i = 0; i < r->n_made; i++) LK_TRY(lk_document_table_files(r->made[i].table, path));
    snprintf(path, sizeof path, "%s/outcomes.csv", folder);
    LK_TRY(lk_audit_outcomes_csv(r->audit, r->study, path)); /* what report compare reads */
    tell(r, "the page, 4 of 4");
    return write_page(r, folder);
}

static enum lk_code take_count(void *context, const struct lk_audit_row *row) {
    struct lk_run *run = context;
    double n = 0;
    if (lk_audit_number(row, "asked", &n)) run->n_nominal = (int64_t)n;
    if (lk_audit_number(row, "valid", &n)) run->n_valid = (int64_t)n;
    return LK_OK;
}

static enum lk_code take_number(void *context, const struct lk_audit_row *row) {
    lk_audit_number(row, "n", context);
    return LK_OK;
}

enum lk_code lk_any_report_write(struct lk_audit *audit, const struct lk_study *study,
                                 const struct lk_report_options *options, const char *folder) {
    struct report *r = lk_calloc(1, sizeof *r);
    if (!r) return lk_fail(LK_E_NOMEM, "report: out of memory");
    *r = (struct report){.audit = audit, .study = study, .options = options};
    r->run.name = options->run && *options->run ? options->run : options->title;
    r->run.configuration = lk_study_hash(study);
    enum lk_code rc = lk_audit_each(audit,
                                    "SELECT count(*) AS asked, sum(item IN (SELECT item FROM score)) AS valid FROM "
                                    "output",
                                    take_count, &r->run);
    if (!rc) rc = lk_audit_each(audit, "SELECT count(*) AS n FROM answer", take_number, &r->n_answers);
    if (!rc) rc = lk_audit_each(audit, "SELECT count(*) AS n FROM masked", take_number, &r->n_masked);
    if (!rc && r->run.n_nominal >= MANY)
        lk_log(LK_LOG_INFO, "report: %lld outputs take about %lld s", (long long)r->run.n_nominal,
               (long long)r->run.n_nominal / OUTPUTS_PER_SECOND);
    tell(r, "findings, 1 of 4 parts");
    if (!rc) rc = find(r);
    tell(r, "tables, 2 of 4");
    if (!rc) rc = make_tables(r);
    tell(r, "outcomes.csv and the tables' files, 3 of 4");
    if (!rc) rc = lk_document_folder(folder);
    if (!rc) {
        lk_atomic_batch_begin();
        rc = lk_atomic_batch_end(write_files(r, folder));
    }
    for (int i = 0; i < r->n_made; i++) free_made(&r->made[i]);
    lk_audit_findings_free(r->findings);
    lk_free(r);
    return rc;
}
