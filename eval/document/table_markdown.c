/* Pipe tables. Markdown has no spanning rows: a heading stands in bold in the first cell of its row. */
#include <string.h>

#include "eval/document/table_print.h"

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
