/* A table for the page: scope on every header, numbers right-aligned, remarks as lettered notes in the foot, the full
 * value of a number in data-v, by which the page sorts. */
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"

/* Texts wider than this wrap; all others stay on one line. */
#define WRAP_BYTES 28
/* Tables of more columns have their intervals below the numbers, so that they fit a page. */
#define DENSE_COLUMNS 5

static void note_mark(struct lk_text *out, const struct lk_table *table, const struct lk_table_notes *notes,
                      const struct lk_cell *cell) {
    char mark[8];
    int note = lk_table_notes_index(notes, cell->note);
    if (note < 0) return;
    lk_print_note_mark(mark, note);
    lk_text_add(out, "<sup><a href=\"#");
    lk_print_fragment(out, table->id);
    lk_text_add(out, "-note-%s\">%s</a></sup>", mark, mark);
}

/* aligned: a number without an interval leaves room for one, so that it stands under those that have one. */
static void cell_content(struct lk_text *out, const struct lk_table *table, const struct lk_table_notes *notes,
                         const struct lk_cell *cell, bool aligned) {
    char interval[2 * LK_NUMBER_MAX + 8];
    if (cell->link) {
        lk_text_add(out, "<a class=\"drill\" href=\"#images-");
        lk_print_fragment(out, cell->link);
        lk_text_add(out, "\">");
    }
    if (cell->bold) lk_text_add(out, "<b>");
    lk_text_escaped(out, cell->text);
    if (cell->bold) lk_text_add(out, "</b>");
    if (cell->link) lk_text_add(out, "</a>");
    note_mark(out, table, notes, cell);
    if (lk_print_interval(interval, cell))
        lk_text_add(out, " <span class=\"interval\">%s</span>", interval);
    else if (aligned)
        lk_text_add(out, "<span class=\"interval\"></span>");
}

/* What the cells of a table are written with. */
struct context {
    const struct lk_table *table;
    struct lk_table_notes notes;
    struct lk_column_kind *columns;
};

static void cell_element(struct lk_text *out, const struct context *x, const struct lk_table_row *row, int i,
                         int column) {
    const struct lk_cell *cell = &row->cells[i];
    bool row_header = !row->heading && i == 0 && cell->kind == LK_CELL_TEXT && cell->text[0];
    bool column_header = row->heading && cell->text[0];
    const char *element = row_header || column_header ? "th" : "td";
    bool right = cell->span == 1 && x->table->align[column] == LK_ALIGN_RIGHT;
    bool wrap = cell->span == 1 && strlen(cell->text) > WRAP_BYTES;
    lk_text_add(out, "<%s", element);
    if (row_header) lk_text_add(out, " scope=\"row\"");
    if (column_header) lk_text_add(out, cell->span > 1 ? " scope=\"colgroup\"" : " scope=\"col\"");
    if (cell->span > 1) lk_text_add(out, " colspan=\"%d\"", cell->span);
    if (right || wrap) lk_text_add(out, " class=\"%s\"", right ? "r" : "w");
    if (cell->kind == LK_CELL_NUMBER) {
        lk_text_add(out, " data-v=\"");
        lk_text_number(out, cell->value);
        lk_text_add(out, "\"");
    }
    lk_text_add(out, ">");
    bool number = cell->kind != LK_CELL_TEXT;
    cell_content(out, x->table, &x->notes, cell, right && number && x->columns[column].interval);
    lk_text_add(out, "</%s>", element);
}

static void head(struct lk_text *out, const struct lk_table *table) {
    lk_text_add(out, "<thead><tr>");
    for (int c = 0; c < table->n_columns; c++) {
        lk_text_add(out, "<th scope=\"col\"%s>", table->align[c] == LK_ALIGN_RIGHT ? " class=\"r\"" : "");
        lk_text_html(out, "%s</th>", table->columns[c]);
    }
    lk_text_add(out, "</tr></thead>\n");
}

static void foot(struct lk_text *out, const struct lk_table *table, const struct lk_table_notes *notes) {
    if (!table->note && !notes->n) return;
    lk_text_add(out, "<tfoot><tr><td colspan=\"%d\">", table->n_columns);
    if (table->note) {
        lk_text_html(out, "<p>%s</p>", table->note);
    }
    for (int i = 0; i < notes->n; i++) {
        char mark[8];
        lk_print_note_mark(mark, i);
        lk_text_add(out, "<p id=\"");
        lk_print_fragment(out, table->id);
        lk_text_add(out, "-note-%s\"><sup>%s</sup> ", mark, mark);
        lk_text_html(out, "%s</p>", notes->list[i]);
    }
    lk_text_add(out, "</td></tr></tfoot>\n");
}

void lk_table_html(const struct lk_table *table, struct lk_text *out) {
    struct context x = {.table = table, .columns = lk_table_column_kinds(table)};
    enum lk_code rc = lk_table_notes(table, &x.notes);
    if (!rc && !x.columns) rc = LK_E_NOMEM;
    if (rc && !out->rc) out->rc = rc;
    lk_text_add(out, "<table id=\"");
    lk_print_fragment(out, table->id);
    lk_text_add(out, table->n_columns > DENSE_COLUMNS ? "\" class=\"dense\">\n<caption>" : "\">\n<caption>");
    lk_text_html(out, "%s</caption>\n", table->caption);
    head(out, table);
    lk_text_add(out, "<tbody>\n");
    for (int r = 0; r < table->n_rows && x.columns; r++) {
        const struct lk_table_row *row = &table->rows[r];
        lk_text_add(out, row->heading ? "<tr class=\"group\">" : "<tr>");
        for (int i = 0, column = 0; i < row->n_cells; column += row->cells[i++].span)
            cell_element(out, &x, row, i, column);
        lk_text_add(out, "</tr>\n");
    }
    if (table->no_data)
        lk_text_add(out, "<tr><td class=\"none\" colspan=\"%d\">no data</td></tr>\n",
                    table->n_columns ? table->n_columns : 1);
    lk_text_add(out, "</tbody>\n");
    foot(out, table, &x.notes);
    lk_text_add(out, "</table>\n");
    lk_table_notes_free(&x.notes);
    lk_free(x.columns);
}
