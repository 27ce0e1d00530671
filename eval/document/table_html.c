#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"

/* Pipe tables. Markdown has no spanning rows: a heading stands in bold in the first cell of its row. */

static void member(struct lk_text *out, const char *key, double value) {
    lk_text_add(out, ", \"%s\": ", key);
    lk_text_number(out, value);
}

static void cell_value(struct lk_text *out, const struct lk_cell *cell) {
    if (cell->kind == LK_CELL_TEXT && !cell->note) {
        lk_text_json(out, cell->text);
        return;
    }
    lk_text_add(out, "{\"value\": ");
    if (cell->kind == LK_CELL_NUMBER)
        lk_text_number(out, cell->value);
    else if (cell->kind == LK_CELL_TEXT)
        lk_text_json(out, cell->text);
    else
        lk_text_add(out, "null");
    if (cell->low != 0 || cell->high != 0) {
        member(out, "low", cell->low);
        member(out, "high", cell->high);
    }
    if (cell->n) lk_text_add(out, ", \"k\": %lld, \"n\": %lld", (long long)cell->count, (long long)cell->n);
    if (cell->note) {
        lk_text_add(out, ", \"note\": ");
        lk_text_json(out, cell->note);
    }
    lk_text_add(out, "}");
}

static void row_value(struct lk_text *out, const struct lk_table_row *row) {
    lk_text_add(out, row->heading ? "{\"heading\": [" : "[");
    for (int i = 0; i < row->n_cells; i++) {
        if (i) lk_text_add(out, ", ");
        if (row->heading)
            lk_text_json(out, row->cells[i].text);
        else
            cell_value(out, &row->cells[i]);
    }
    lk_text_add(out, row->heading ? "]}" : "]");
}

static void run_value(struct lk_text *out, const struct lk_run *run) {
    lk_text_add(out, ",\n  \"run\": {\"name\": ");
    lk_text_json(out, run->name);
    lk_text_add(out, ", \"configuration\": \"%s\", \"nominal\": %lld, \"valid\": %lld}", run->configuration,
                (long long)run->n_nominal, (long long)run->n_valid);
}

void lk_table_json(const struct lk_table *table, struct lk_text *out) {
    lk_text_add(out, "{\n  \"id\": ");
    lk_text_json(out, table->id);
    lk_text_add(out, ",\n  \"caption\": ");
    lk_text_json(out, table->caption);
    lk_text_add(out, ",\n  \"note\": ");
    if (table->note)
        lk_text_json(out, table->note);
    else
        lk_text_add(out, "null");
    if (table->run) run_value(out, table->run);
    lk_text_add(out, ",\n  \"columns\": [");
    for (int c = 0; c < table->n_columns; c++) {
        lk_text_add(out, "%s{\"name\": ", c ? ", " : "");
        lk_text_json(out, table->columns[c]);
        lk_text_add(out, ", \"align\": \"%s\"}", table->align[c] == LK_ALIGN_RIGHT ? "right" : "left");
    }
    lk_text_add(out, "],\n  \"no_data\": %s,\n  \"rows\": [", table->no_data ? "true" : "false");
    for (int r = 0; r < table->n_rows; r++) {
        lk_text_add(out, r ? ",\n    " : "\n    ");
        row_value(out, &table->rows[r]);
    }
    lk_text_add(out, table->n_rows ? "\n  ]\n}\n" : "]\n}\n");
}

/* Characters that some Markdown reader would take for markup are escaped; a line break becomes a space. */
static void escaped(struct lk_text *out, const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '\n' || *c == '\r' || *c == '\t')
            lk_text_bytes(out, " ", 1);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            lk_text_bytes(out, "\xef\xbf\xbd", 3);
        else {
            if (strchr("\\`*_{}[]<>|#~&$", *c)) lk_text_bytes(out, "\\", 1);
            lk_text_bytes(out, c, 1);
        }
    }
}

static void cell_text(struct lk_text *out, const struct lk_cell *cell, bool bold, const struct lk_table_notes *notes) {
    char interval[2 * LK_NUMBER_MAX + 8], mark[8];
    bold = bold && cell->text[0];
    if (bold) lk_text_add(out, "**");
    escaped(out, cell->text);
    if (bold) lk_text_add(out, "**");
    if (lk_print_interval(interval, cell)) {
        lk_text_add(out, " ");
        escaped(out, interval);
    }
    int note = lk_table_notes_index(notes, cell->note);
    if (note < 0) return;
    lk_print_note_mark(mark, note);
    lk_text_add(out, "<sup>%s</sup>", mark);
}

static void row_text(struct lk_text *out, const struct lk_table_row *row, const struct lk_table_notes *notes) {
    lk_text_add(out, "|");
    for (int i = 0; i < row->n_cells; i++) {
        lk_text_add(out, " ");
        cell_text(out, &row->cells[i], row->heading || row->cells[i].bold, notes);
        lk_text_add(out, " |");
        for (int s = 1; s < row->cells[i].span; s++) lk_text_add(out, "  |");
    }
    lk_text_add(out, "\n");
}

void lk_table_markdown(const struct lk_table *table, struct lk_text *out) {
    struct lk_table_notes notes;
    enum lk_code rc = lk_table_notes(table, &notes);
    if (rc && !out->rc) out->rc = rc;
    lk_text_add(out, "**");
    escaped(out, table->caption);
    lk_text_add(out, "**\n\n|");
    for (int c = 0; c < table->n_columns; c++) {
        lk_text_add(out, " ");
        escaped(out, table->columns[c]);
        lk_text_add(out, " |");
    }
    lk_text_add(out, "\n|");
    for (int c = 0; c < table->n_columns; c++) lk_text_add(out, table->align[c] == LK_ALIGN_RIGHT ? "---:|" : "---|");
    lk_text_add(out, "\n");
    for (int r = 0; r < table->n_rows; r++) row_text(out, &table->rows[r], &notes);
    if (table->no_data) lk_text_add(out, "\nno data\n");
    if (table->note) {
        lk_text_add(out, "\n");
        escaped(out, table->note);
        lk_text_add(out, "\n");
    }
    for (int i = 0; i < notes.n; i++) {
        char mark[8];
        lk_print_note_mark(mark, i);
        lk_text_add(out, "\n<sup>%s</sup> ", mark);
        escaped(out, notes.list[i]);
        lk_text_add(out, "\n");
    }
    if (table->run) {
        lk_text_add(out, "\nRun: ");
        escaped(out, table->run->name);
        lk_text_add(out, "; configuration %s; ", table->run->configuration);
        if (table->run->n_nominal) lk_text_add(out, "nominal N %lld, ", (long long)table->run->n_nominal);
        lk_text_add(out, "valid N %lld\n", (long long)table->run->n_valid);
    }
    lk_table_notes_free(&notes);
}

/* A table for the page: scope on every header, numbers right-aligned, remarks as lettered notes in the foot, the full
 * value of a number in data-v, by which the page sorts. */

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
