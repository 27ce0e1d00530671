#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"
#include "eval/document/table_print.h"

__extension__ typedef unsigned __int128 wide;

int64_t lk_percent_tenths(int64_t k, int64_t n) {
    return (int64_t)(((wide)2000 * (uint64_t)k + (uint64_t)n) / ((wide)2 * (uint64_t)n));
}

void lk_print_fixed(char out[LK_NUMBER_MAX], double value, int decimals, bool sign) {
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
    double magnitude = fabs(value), scaled = magnitude * power[decimals];
    if (scaled >= 1e15) { /* no decimals left that could be rounded */
        snprintf(out, LK_NUMBER_MAX, "%s%.*f", value < 0 ? "-" : sign ? "+" : "", decimals, magnitude);
        return;
    }
    uint64_t units = (uint64_t)(scaled + 0.5 + 1e-9), one = (uint64_t)power[decimals];
    const char *mark = !units ? "" : value < 0 ? "-" : sign ? "+" : "";
    if (decimals)
        snprintf(out, LK_NUMBER_MAX, "%s%llu.%0*llu", mark, (unsigned long long)(units / one), decimals,
                 (unsigned long long)(units % one));
    else
        snprintf(out, LK_NUMBER_MAX, "%s%llu", mark, (unsigned long long)units);
}

void lk_print_count(char out[LK_NUMBER_MAX], int64_t count) {
    char digits[24];
    uint64_t magnitude = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude);
    char *to = out;
    if (count < 0) *to++ = '-';
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

void lk_print_p(char out[LK_NUMBER_MAX], double p) {
    if (p < 0.001)
        strcpy(out, "< 0.001");
    else
        lk_print_fixed(out, p, 3, false);
}

bool lk_print_interval(char out[2 * LK_NUMBER_MAX + 8], const struct lk_cell *cell) {
    if (cell->kind != LK_CELL_NUMBER || (cell->low == 0 && cell->high == 0)) return false;
    size_t n = strlen(cell->text);
    bool percent = n && cell->text[n - 1] == '%';
    bool points = n > 3 && !strcmp(cell->text + n - 3, " pp");
    const char *dot = strchr(cell->text, '.');
    int decimals = dot ? (int)strspn(dot + 1, "0123456789") : 0;
    double scale = percent || points ? 100 : 1;
    char low[LK_NUMBER_MAX], high[LK_NUMBER_MAX];
    lk_print_fixed(low, cell->low * scale, decimals, cell->text[0] == '+');
    lk_print_fixed(high, cell->high * scale, decimals, cell->text[0] == '+');
    snprintf(out, 2 * LK_NUMBER_MAX + 8, "[%s, %s]", low, high);
    return true;
}

void lk_print_fragment(struct lk_text *out, const char *key) {
    for (size_t left = strlen(key); left;) {
        uint32_t c;
        size_t n = lk_utf8_decode(key, left, &c); /* 0, and c U+FFFD, where it is no UTF-8 */
        char bytes[4];
        size_t n_bytes = lk_utf8_encode(c, bytes);
        for (size_t i = 0; i < n_bytes; i++) {
            unsigned char b = (unsigned char)bytes[i];
            if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') || b == '-' || b == '_')
                lk_text_bytes(out, bytes + i, 1);
            else
                lk_text_add(out, ".%02x", b);
        }
        key += n ? n : 1;
        left -= n ? n : 1;
    }
}

int lk_table_notes_index(const struct lk_table_notes *notes, const char *note) {
    for (int i = 0; note && i < notes->n; i++)
        if (!strcmp(notes->list[i], note)) return i;
    return -1;
}

enum lk_code lk_table_notes(const struct lk_table *table, struct lk_table_notes *out) {
    *out = (struct lk_table_notes){0};
    for (int r = 0; r < table->n_rows; r++)
        for (int c = 0; c < table->rows[r].n_cells; c++) {
            const char *note = table->rows[r].cells[c].note;
            if (!note || lk_table_notes_index(out, note) >= 0) continue;
            LK_TRY(lk_grow(&out->list, &out->capacity, (size_t)out->n + 1, sizeof *out->list));
            out->list[out->n++] = note;
        }
    return LK_OK;
}

void lk_print_note_mark(char out[8], int index) {
    char reversed[8];
    int n = 0;
    for (int left = index + 1; left > 0 && n < 7; left = (left - 1) / 26) reversed[n++] = (char)('a' + (left - 1) % 26);
    for (int i = 0; i < n; i++) out[i] = reversed[n - 1 - i];
    out[n] = '\0';
}

void lk_table_notes_free(struct lk_table_notes *notes) {
    lk_free(notes->list);
    *notes = (struct lk_table_notes){0};
}

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
