#include "tools/cli/stats/stats_print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"

enum { LABEL_WIDTH = 24 };

static void json_cell(struct lk_text *out, struct stats_cell cell) {
    if (cell.kind == STATS_TEXT)
        lk_text_json(out, cell.text);
    else if (cell.kind == STATS_NUMBER && isinf(cell.number)) /* JSON has no word for it */
        lk_text_add(out, cell.number > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else if (cell.kind != STATS_NONE && !isnan(cell.number))
        lk_text_number(out, cell.number);
    else
        lk_text_add(out, "null");
}

/* Of a cell but text; a number that does not exist is a dash. */
static const char *digits(struct stats_cell cell, char out[32]) {
    if (cell.kind == STATS_COUNT)
        snprintf(out, 32, "%.0f", cell.number);
    else if (cell.kind == STATS_NUMBER && isinf(cell.number))
        snprintf(out, 32, "%s", cell.number > 0 ? "infinite" : "-infinite");
    else if (cell.kind == STATS_NUMBER && !isnan(cell.number))
        snprintf(out, 32, "%.6g", cell.number);
    else
        snprintf(out, 32, "-");
    return out;
}

static void text_cell(struct stats_cell cell) {
    char out[32];
    if (cell.kind == STATS_TEXT)
        cli_print_text(stdout, cell.text);
    else
        fputs(digits(cell, out), stdout);
}

/* Characters, not bytes: every byte but those that continue one. */
static int width(struct stats_cell cell) {
    char out[32];
    const char *text = cell.kind == STATS_TEXT ? cell.text : digits(cell, out);
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void key_of(struct stats_out *out, const char *key) {
    lk_text_add(&out->text, out->n_fields++ ? ",\n  " : "\n  ");
    lk_text_json(&out->text, key);
    lk_text_add(&out->text, ": ");
}

void stats_open(struct stats_out *out, const char *test, const char *title, const char *of) {
    out->n_fields = 0;
    if (out->json) {
        lk_text_add(&out->text, "{");
        stats_field(out, "test", NULL, stats_text(test));
        stats_field(out, "name", NULL, stats_text(title));
        stats_field(out, "of", NULL, stats_text(of));
        return;
    }
    fputs(title, stdout);
    if (of) {
        fputs(": ", stdout);
        cli_print_text(stdout, of);
    }
    putchar('\n');
}

void stats_field(struct stats_out *out, const char *key, const char *label, struct stats_cell cell) {
    if (out->json) {
        key_of(out, key);
        json_cell(&out->text, cell);
    } else if (label && cell.kind != STATS_NONE) {
        printf("  %-*s ", LABEL_WIDTH, label);
        text_cell(cell);
        putchar('\n');
    }
}

static void json_table(struct lk_text *out, const char *const *keys, int n_columns, const struct stats_cell *cells,
                       size_t n_rows) {
    lk_text_add(out, "[");
    for (size_t r = 0; r < n_rows; r++) {
        lk_text_add(out, r ? ",\n    {" : "\n    {");
        for (int c = 0; c < n_columns; c++) {
            if (c) lk_text_add(out, ", ");
            lk_text_json(out, keys[c]);
            lk_text_add(out, ": ");
            json_cell(out, cells[r * (size_t)n_columns + (size_t)c]);
        }
        lk_text_add(out, "}");
    }
    lk_text_add(out, n_rows ? "\n  ]" : "]");
}

void stats_print_table(struct stats_out *out, const char *key, const char *const *keys, int n_columns,
                       const struct stats_cell *cells, size_t n_rows) {
    if (out->json) {
        key_of(out, key);
        json_table(&out->text, keys, n_columns, cells, n_rows);
        return;
    }
    int widest[STATS_MAX_COLUMNS];
    for (int c = 0; c < n_columns; c++) widest[c] = (int)strlen(keys[c]);
    for (size_t i = 0; i < n_rows * (size_t)n_columns; i++) {
        int w = width(cells[i]), *column = &widest[i % (size_t)n_columns];
        if (w > *column) *column = w;
    }
    for (size_t r = 0; r <= n_rows; r++) {
        for (int c = 0; c < n_columns; c++) {
            struct stats_cell cell = r ? cells[(r - 1) * (size_t)n_columns + (size_t)c] : stats_text(keys[c]);
            bool left = n_rows && cells[c].kind == STATS_TEXT;
            int pad = widest[c] - width(cell);
            printf("  %*s", left ? 0 : pad, "");
            text_cell(cell);
            if (left && c + 1 < n_columns) printf("%*s", pad, "");
        }
        putchar('\n');
    }
}

enum lk_code stats_close(struct stats_out *out, enum lk_code rc) {
    if (!rc && out->json) {
        lk_text_add(&out->text, "\n}\n");
        rc = out->text.rc;
        if (!rc) fputs(out->text.bytes, stdout);
    }
    lk_text_free(&out->text);
    return rc;
}
