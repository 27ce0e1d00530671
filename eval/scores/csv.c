#include "eval/scores/csv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/content.h"
#include "engine/base/utf8.h"

static enum lk_code out_of_memory(const struct lk_csv *csv) {
    return lk_fail(LK_E_NOMEM, "%s: out of memory while reading", csv->name);
}

enum lk_code lk_csv_fail(const struct lk_csv *csv, int column, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (column < 0) return lk_fail(LK_E_INPUT, "%s: line %zu: %s", csv->name, csv->line, text);
    if ((size_t)column >= csv->n_columns)
        return lk_fail(LK_E_INPUT, "%s: line %zu, column %d: %s", csv->name, csv->line, column + 1, text);
    return lk_fail(LK_E_INPUT, "%s: line %zu, column %d (\"%.80s\"): %s", csv->name, csv->line, column + 1,
                   csv->columns[column], text);
}

static enum lk_code cell_fail(const struct lk_csv *csv, const char *what) {
    return lk_csv_fail(csv, (int)csv->n_cells, "%s", what);
}

static enum lk_code add_byte(struct lk_csv *csv, char c) {
    LK_TRY(lk_grow(&csv->bytes, &csv->bytes_capacity, csv->n_bytes + 1, sizeof *csv->bytes));
    csv->bytes[csv->n_bytes++] = c;
    return LK_OK;
}

/* Line ends count where they are, inside quotes too. */
static enum lk_code take(struct lk_csv *csv, size_t from) {
    if (csv->n_bytes - from >= LK_CSV_MAX_CELL) return cell_fail(csv, "a cell is longer than 1 MiB");
    csv->next_line += *csv->at == '\n';
    return add_byte(csv, *csv->at++);
}

static enum lk_code quoted_cell(struct lk_csv *csv, size_t from) {
    csv->at++;
    for (;; csv->at++) {
        while (csv->at < csv->end && *csv->at != '"') LK_TRY(take(csv, from));
        if (csv->at == csv->end) return cell_fail(csv, "a quoted cell is not closed");
        csv->at++;
        if (csv->at == csv->end || *csv->at != '"') break;
        LK_TRY(add_byte(csv, '"'));
    }
    if (csv->at == csv->end || *csv->at == csv->delimiter || *csv->at == '\n' || *csv->at == '\r') return LK_OK;
    return cell_fail(csv, "expected a comma or the end of the line after a closing quote");
}

static enum lk_code bare_cell(struct lk_csv *csv, size_t from) {
    for (; csv->at < csv->end && *csv->at != csv->delimiter && *csv->at != '\n' && *csv->at != '\r';) {
        if (*csv->at == '"')
            return cell_fail(csv, "a quote inside a cell that does not begin with one; write \"...\"\"...\"");
        LK_TRY(take(csv, from));
    }
    return LK_OK;
}

static enum lk_code read_cell(struct lk_csv *csv) {
    size_t from = csv->n_bytes;
    if (csv->n_cells == LK_CSV_MAX_COLUMNS) return cell_fail(csv, "more than 1000 columns");
    LK_TRY(csv->at < csv->end && *csv->at == '"' ? quoted_cell(csv, from) : bare_cell(csv, from));
    size_t n = csv->n_bytes - from;
    if (n && !lk_utf8_valid(csv->bytes + from, n)) return cell_fail(csv, "a cell is not UTF-8 or holds NUL");
    LK_TRY(add_byte(csv, 0));
    LK_TRY(lk_grow(&csv->cells, &csv->cells_capacity, csv->n_cells + 1, sizeof *csv->cells));
    csv->cells[csv->n_cells++] = (struct lk_csv_span){from, n};
    return LK_OK;
}

static enum lk_code read_record(struct lk_csv *csv) {
    csv->line = csv->next_line;
    csv->n_cells = csv->n_bytes = 0;
    for (;; csv->at++) {
        LK_TRY(read_cell(csv));
        if (csv->at == csv->end || *csv->at != csv->delimiter) break;
    }
    if (csv->at == csv->end) return LK_OK;
    if (*csv->at == '\r') {
        if (csv->end - csv->at < 2 || csv->at[1] != '\n') {
            csv->n_cells--;
            return cell_fail(csv, "a carriage return without a line feed");
        }
        csv->at++;
    }
    csv->at++;
    csv->next_line++;
    return LK_OK;
}

/* What stands between the cells: of comma, semicolon and tab the one that the header has, the comma where it has more.
 */
static char delimiter_of(const char *at, const char *end) {
    static const char delimiters[] = {',', ';', '\t'};
    bool there[3] = {false}, quoted = false;
    for (; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        quoted ^= *at == '"';
        for (int i = 0; i < 3 && !quoted; i++) there[i] |= *at == delimiters[i];
    }
    return delimiters[there[0] ? 0 : there[1] ? 1 : there[2] ? 2 : 0];
}

static enum lk_code read_header(struct lk_csv *csv) {
    const char *other = lk_content_not_text(csv->at, (size_t)(csv->end - csv->at));
    if (other) return lk_fail(LK_E_INPUT, "%s: expected a table (CSV), got %s", csv->name, other);
    if (csv->end - csv->at >= 3 && !memcmp(csv->at, "\xef\xbb\xbf", 3)) csv->at += 3;
    if (csv->at == csv->end) return lk_fail(LK_E_INPUT, "%s: expected a header line, got an empty file", csv->name);
    csv->delimiter = delimiter_of(csv->at, csv->end);
    LK_TRY(read_record(csv));
    const char **columns = lk_calloc(csv->n_cells, sizeof *columns);
    if (!columns) return out_of_memory(csv);
    csv->columns = columns;
    for (size_t i = 0; i < csv->n_cells; i++) {
        columns[i] = lk_store_copy(&csv->texts, lk_csv_cell(csv, (int)i), csv->cells[i].n);
        if (!columns[i]) return out_of_memory(csv);
        csv->n_columns = i + 1;
        for (size_t k = 0; k < i; k++)
            if (!strcasecmp(columns[k], columns[i]))
                return lk_csv_fail(csv, (int)i, "column %zu has the same name", k + 1);
    }
    return LK_OK;
}

enum lk_code lk_csv_open(struct lk_csv *csv, const void *text, size_t n, const char *name) {
    memset(csv, 0, sizeof *csv);
    csv->name = name;
    csv->at = text;
    csv->end = n ? csv->at + n : csv->at;
    csv->line = csv->next_line = 1;
    enum lk_code rc = read_header(csv);
    if (rc) lk_csv_close(csv);
    return rc;
}

/* Nothing but line ends is left. A table of one column may have empty cells there, so it is read to its last byte. */
static bool only_empty_lines(const struct lk_csv *csv) {
    if (csv->n_columns == 1) return csv->at == csv->end;
    for (const char *at = csv->at; at < csv->end; at++)
        if (*at != '\n' && (*at != '\r' || at + 1 == csv->end || at[1] != '\n')) return false;
    return true;
}

enum lk_code lk_csv_next(struct lk_csv *csv, bool *more) {
    *more = false;
    if (csv->at == csv->end) return LK_OK;
    if ((*csv->at == '\n' || *csv->at == '\r') && only_empty_lines(csv)) {
        csv->at = csv->end;
        return LK_OK;
    }
    LK_TRY(read_record(csv));
    if (csv->n_cells != csv->n_columns)
        return lk_csv_fail(csv, -1, "expected %zu cells as in the header, got %zu%s", csv->n_columns, csv->n_cells,
                           csv->n_cells == 1 && !csv->cells[0].n ? " (an empty line)" : "");
    *more = true;
    return LK_OK;
}

void lk_csv_close(struct lk_csv *csv) {
    lk_free(csv->columns);
    lk_free(csv->cells);
    lk_free(csv->bytes);
    lk_store_free(&csv->texts);
    memset(csv, 0, sizeof *csv);
}

int lk_csv_column(const struct lk_csv *csv, const char *name) {
    for (size_t i = 0; i < csv->n_columns; i++)
        if (!strcasecmp(csv->columns[i], name)) return (int)i;
    return -1;
}

enum lk_code lk_csv_require(const struct lk_csv *csv, const char *name, int *out) {
    *out = lk_csv_column(csv, name);
    if (*out >= 0) return LK_OK;
    char there[512] = "";
    for (size_t i = 0, n = 0; i < csv->n_columns && n + 1 < sizeof there; i++)
        n += (size_t)snprintf(there + n, sizeof there - n, "%s%.80s", i ? ", " : "", csv->columns[i]);
    return lk_fail(LK_E_INPUT, "%s: line 1: expected a column \"%s\", got: %s", csv->name, name, there);
}

const char *lk_csv_cell(const struct lk_csv *csv, int column) {
    return column < 0 ? "" : csv->bytes + csv->cells[column].offset;
}
