#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"

void lk_print_csv_field(struct lk_text *out, const char *text, const char *suffix) {
    if (!text[strcspn(text, "\",\r\n")] && text[0] != ' ') {
        lk_text_bytes(out, text, strlen(text));
        lk_text_bytes(out, suffix, strlen(suffix));
        return;
    }
    lk_text_bytes(out, "\"", 1);
    for (const char *c = text; *c; c++) {
        if (*c == '"') lk_text_bytes(out, "\"", 1);
        lk_text_bytes(out, c, 1);
    }
    lk_text_add(out, "%s\"", suffix);
}

void lk_print_csv_text(struct lk_text *out, const char *text, const char *suffix) {
    if (!*text || !strchr("=+-@\t\r", *text)) {
        lk_print_csv_field(out, text, suffix);
        return;
    }
    struct lk_text escaped = {0};
    lk_text_add(&escaped, "'%s", text);
    if (escaped.rc)
        out->rc = escaped.rc;
    else
        lk_print_csv_field(out, escaped.bytes, suffix);
    lk_text_free(&escaped);
}

struct lk_column_kind *lk_table_column_kinds(const struct lk_table *table) {
    struct lk_column_kind *columns = lk_calloc((size_t)table->n_columns + 1, sizeof *columns);
    if (!columns) lk_fail(LK_E_NOMEM, "report: no memory for the columns of a table");
    for (int r = 0; r < table->n_rows && columns; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (row->n_cells != table->n_columns) continue;
        for (int c = 0; c < table->n_columns; c++) {
            if (row->cells[c].n) columns[c].rate = true;
            if (row->cells[c].low != 0 || row->cells[c].high != 0) columns[c].interval = true;
        }
    }
    return columns;
}

static void cell_fields(struct lk_text *out, const struct lk_cell *cell, struct lk_column_kind column) {
    bool number = cell && cell->kind == LK_CELL_NUMBER;
    if (number)
        lk_text_number(out, cell->value);
    else if (cell && cell->kind == LK_CELL_TEXT)
        lk_print_csv_text(out, cell->text, "");
    if (column.rate && number && cell->n)
        lk_text_add(out, ",%lld,%lld", (long long)cell->count, (long long)cell->n);
    else if (column.rate)
        lk_text_add(out, ",,");
    if (column.interval) {
        bool has = number && (cell->low != 0 || cell->high != 0);
        lk_text_add(out, ",");
        if (has) lk_text_number(out, cell->low);
        lk_text_add(out, ",");
        if (has) lk_text_number(out, cell->high);
    }
}

static bool is_group(const struct lk_table *table, const struct lk_table_row *row) {
    return row->heading && row->n_cells == 1 && table->n_columns > 1;
}

/* The end of a line, with the run before it. */
static void line_end(struct lk_text *out, const struct lk_run *run) {
    if (run) {
        lk_text_add(out, ",");
        lk_print_csv_text(out, run->name, "");
        lk_text_add(out, ",%s,%lld,%lld", run->configuration, (long long)run->n_nominal, (long long)run->n_valid);
    }
    lk_text_add(out, "\r\n");
}

static void header_row(const struct lk_table *table, const struct lk_column_kind *columns, bool groups,
                       struct lk_text *out, int *n_columns) {
    static const char *const suffixes[] = {"", " k", " n", " low", " high"};
    *n_columns = groups;
    if (groups) lk_text_add(out, "group,");
    for (int c = 0; c < table->n_columns; c++) {
        for (int s = 0; s < 5; s++) {
            if ((s == 1 || s == 2) && !columns[c].rate) continue;
            if (s >= 3 && !columns[c].interval) continue;
            if (c || s) lk_text_add(out, ",");
            lk_print_csv_text(out, table->columns[c], suffixes[s]);
            ++*n_columns;
        }
    }
    lk_text_add(out, table->run ? ",run,configuration,nominal N,valid N\r\n" : "\r\n");
}

void lk_table_csv(const struct lk_table *table, struct lk_text *out) {
    int n_columns;
    bool groups = false;
    struct lk_column_kind *columns = lk_table_column_kinds(table);
    if (!columns) {
        out->rc = LK_E_NOMEM;
        return;
    }
    for (int r = 0; r < table->n_rows; r++) groups = groups || is_group(table, &table->rows[r]);
    header_row(table, columns, groups, out, &n_columns);
    if (table->no_data && table->run) { /* a row, so that the run is named all the same */
        lk_text_add(out, "no data");
        for (int c = 1; c < n_columns; c++) lk_text_add(out, ",");
        line_end(out, table->run);
    }
    const char *group = "";
    for (int r = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (is_group(table, row)) {
            group = row->cells[0].text;
            continue;
        }
        if (groups) {
            lk_print_csv_text(out, group, "");
            lk_text_add(out, ",");
        }
        for (int i = 0, c = 0; i < row->n_cells; c += row->cells[i++].span)
            for (int s = 0; s < row->cells[i].span; s++) {
                if (c + s) lk_text_add(out, ",");
                cell_fields(out, s ? NULL : &row->cells[i], columns[c + s]);
            }
        line_end(out, table->run);
    }
    lk_free(columns);
}
