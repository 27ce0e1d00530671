#include "eval/document/table_print.h"

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
