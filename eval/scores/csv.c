#include "eval/scores/csv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "engine/base/content.h"
#include "engine/base/utf8.h"
#include "eval/scores/json_lines.h"
#include "eval/scores/words.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_space(struct lk_json_lines *lines) {
    for (; lines->at < lines->end && is_space(*lines->at); lines->at++) lines->line += *lines->at == '\n';
}

static size_t mark_bytes(const char *text, size_t n) { return n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0; }

bool lk_is_json(const char *text, size_t n) {
    size_t i = n ? mark_bytes(text, n) : 0;
    while (i < n && is_space(text[i])) i++;
    return i < n && (text[i] == '{' || text[i] == '[');
}

void lk_json_lines_open(struct lk_json_lines *lines, const void *text, size_t n, const char *name) {
    *lines = (struct lk_json_lines){.name = name, .at = text, .line = 1};
    lines->end = n ? lines->at + n : lines->at;
    if (n) lines->at += mark_bytes(lines->at, n);
    skip_space(lines);
    lines->is_array = lines->at < lines->end && *lines->at == '[';
}

size_t lk_json_balanced(const char *text, size_t n) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"') {
            in_string = true;
        } else if (text[i] == '{') {
            depth++;
        } else if (text[i] == '}' && !--depth) {
            return i + 1;
        }
    }
    return 0;
}

static enum lk_code not_an_array(const struct lk_json_lines *lines, const char *expected) {
    return lk_fail(LK_E_JSON, "%s: line %zu: expected %s", lines->name, lines->line, expected);
}

static enum lk_code next_element(struct lk_json_lines *lines, struct lk_json_record *out, bool *more) {
    skip_space(lines);
    if (lines->at == lines->end) {
        if (lines->started && !lines->is_array) return LK_OK; /* the array was closed before */
        return not_an_array(lines, "',' or ']', got the end of the file");
    }
    if (!lines->is_array) return not_an_array(lines, "nothing after the array");
    bool first = !lines->started;
    lines->started = true;
    if (*lines->at == (first ? '[' : ',')) {
        lines->at++;
        skip_space(lines);
        if (!first || lines->at == lines->end || *lines->at != ']') {
            size_t n = lines->at < lines->end && *lines->at == '{'
                           ? lk_json_balanced(lines->at, (size_t)(lines->end - lines->at))
                           : 0;
            if (!n) return not_an_array(lines, "an object that is closed");
            *out = (struct lk_json_record){lines->at, n, lines->line};
            for (const char *end = lines->at + n; lines->at < end; lines->at++) lines->line += *lines->at == '\n';
            *more = true;
            return LK_OK;
        }
    }
    if (*lines->at != ']') return not_an_array(lines, "',' or ']' after an object");
    lines->at++;
    lines->is_array = false;
    return next_element(lines, out, more);
}

enum lk_code lk_json_lines_next(struct lk_json_lines *lines, struct lk_json_record *out, bool *more) {
    *more = false;
    *out = (struct lk_json_record){0};
    if (lines->is_array || lines->started) return next_element(lines, out, more);
    skip_space(lines);
    if (lines->at == lines->end) return LK_OK;
    size_t rest = (size_t)(lines->end - lines->at);
    const char *newline = memchr(lines->at, '\n', rest);
    size_t n = newline ? (size_t)(newline - lines->at) : rest;
    *out = (struct lk_json_record){lines->at, n, lines->line};
    while (out->n && is_space(out->text[out->n - 1])) out->n--;
    lines->at += n;
    *more = true;
    return LK_OK;
}

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

/* A fault of the record that is being read; the first one counts. */
static void note_fault(struct lk_csv *csv, const char *what) {
    if (csv->fault) return;
    csv->fault = what;
    csv->fault_column = (int)csv->n_cells;
}

static enum lk_code add_byte(struct lk_csv *csv, char c) {
    LK_TRY(lk_grow(&csv->bytes, &csv->bytes_capacity, csv->n_bytes + 1, sizeof *csv->bytes));
    csv->bytes[csv->n_bytes++] = c;
    return LK_OK;
}

/* LF, CRLF and CR end a line. Bytes of the end at `at`, 0 when none is there. */
static size_t line_end(const struct lk_csv *csv, const char *at) {
    if (at == csv->end || (*at != '\n' && *at != '\r')) return 0;
    return *at == '\r' && at + 1 < csv->end && at[1] == '\n' ? 2 : 1;
}

static const char too_long[] = "a cell is longer than 1 MiB";

/* Line ends count where they are, inside quotes too. What is beyond the longest cell is passed over. */
static enum lk_code take(struct lk_csv *csv, size_t from) {
    csv->next_line += *csv->at == '\n' || line_end(csv, csv->at) == 1;
    if (csv->n_bytes - from < LK_CSV_MAX_CELL) return add_byte(csv, *csv->at++);
    note_fault(csv, too_long);
    csv->at++;
    return LK_OK;
}

static void skip_blanks(struct lk_csv *csv) {
    while (csv->at < csv->end && *csv->at == ' ') csv->at++;
}

static enum lk_code quoted_cell(struct lk_csv *csv, size_t from) {
    csv->at++;
    for (;; csv->at++) {
        while (csv->at < csv->end && *csv->at != '"' && csv->n_bytes - from < LK_CSV_MAX_CELL) LK_TRY(take(csv, from));
        csv->broken = csv->at == csv->end || *csv->at != '"';
        if (csv->broken) {
            note_fault(csv, csv->at == csv->end ? "a quoted cell is not closed" : too_long);
            return LK_OK;
        }
        csv->at++;
        if (csv->at == csv->end || *csv->at != '"') break;
        LK_TRY(add_byte(csv, '"'));
    }
    skip_blanks(csv);
    if (csv->at == csv->end || *csv->at == csv->delimiter || line_end(csv, csv->at)) return LK_OK;
    note_fault(csv, "expected a delimiter or the end of the line after a closing quote; write \"...\"\"...\"");
    csv->broken = true;
    return LK_OK;
}

/* A quote inside is a character, as spreadsheets and pandas have it: 5 foot 6". */
static enum lk_code bare_cell(struct lk_csv *csv, size_t from) {
    while (csv->at < csv->end && *csv->at != csv->delimiter && !line_end(csv, csv->at)) LK_TRY(take(csv, from));
    return LK_OK;
}

/* 1,5 where cells are parted by semicolons is 1.5, as in a spreadsheet of most of Europe. */
static void decimal_comma(const struct lk_csv *csv, char *text, size_t n) {
    char *comma = csv->delimiter == ';' && n ? memchr(text, ',', n) : NULL, *end = text + n;
    char *at = n ? text + (*text == '-' || *text == '+') : text;
    if (!comma || comma == at || comma + 1 == end) return;
    for (; at < end; at++)
        if ((*at < '0' || *at > '9') && at != comma) break;
    if (at < end && at > comma + 1 && (*at | 0x20) == 'e') {
        at += at + 1 < end && (at[1] == '-' || at[1] == '+') ? 2 : 1;
        for (comma = at < end ? comma : NULL; at < end && *at >= '0' && *at <= '9';) at++;
    }
    if (at == end && comma) *comma = '.';
}

static enum lk_code read_cell(struct lk_csv *csv) {
    size_t from = csv->n_bytes;
    const char *start = csv->at;
    if (csv->n_cells == LK_CSV_MAX_COLUMNS) note_fault(csv, "more than 1000 columns");
    skip_blanks(csv);
    bool quoted = csv->at < csv->end && *csv->at == '"';
    if (!quoted) csv->at = start;
    LK_TRY(quoted ? quoted_cell(csv, from) : bare_cell(csv, from));
    size_t n = csv->n_bytes - from;
    if (n && !lk_utf8_valid(csv->bytes + from, n))
        note_fault(csv, "a cell is not UTF-8 or holds NUL; save the table as UTF-8");
    if (n) decimal_comma(csv, csv->bytes + from, n);
    if (csv->n_cells == LK_CSV_MAX_COLUMNS) {
        csv->n_bytes = from;
        return LK_OK;
    }
    LK_TRY(add_byte(csv, 0));
    LK_TRY(lk_grow(&csv->cells, &csv->cells_capacity, csv->n_cells + 1, sizeof *csv->cells));
    csv->cells[csv->n_cells++] = (struct lk_csv_span){from, n};
    return LK_OK;
}

static void next_line(struct lk_csv *csv) {
    csv->at += line_end(csv, csv->at);
    csv->next_line++;
}

/* LK_E_INPUT when something in it is wrong; the next record can be read nevertheless. Where quotes do not match, that
 * is the next line: what a stray quote took with it are records of their own. */
static enum lk_code read_record(struct lk_csv *csv) {
    const char *start = csv->at;
    csv->line = csv->next_line;
    csv->n_cells = csv->n_bytes = 0;
    csv->fault = NULL;
    csv->broken = false;
    for (;; csv->at++) {
        LK_TRY(read_cell(csv));
        if (csv->broken || csv->at == csv->end || *csv->at != csv->delimiter) break;
    }
    if (csv->broken) {
        csv->n_broken++;
        for (csv->at = start; csv->at < csv->end && !line_end(csv, csv->at);) csv->at++;
        csv->next_line = csv->line;
    }
    if (csv->at < csv->end) next_line(csv);
    return csv->fault ? lk_csv_fail(csv, csv->fault_column, "%s", csv->fault) : LK_OK;
}

/* What stands between the cells: of comma, semicolon, tab and bar the one that the header has, the first of these where
 * it has more. */
static char delimiter_of(const char *at, const char *end) {
    static const char delimiters[] = {',', ';', '\t', '|'};
    bool there[4] = {false}, quoted = false;
    for (; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        quoted ^= *at == '"';
        for (int i = 0; i < 4 && !quoted; i++) there[i] |= *at == delimiters[i];
    }
    return delimiters[there[0] ? 0 : there[1] ? 1 : there[2] ? 2 : there[3] ? 3 : 0];
}

/* A spreadsheet's first line sep=; names the delimiter. */
static char take_sep_line(struct lk_csv *csv) {
    const char *at = csv->at + (csv->at < csv->end && *csv->at == '"');
    if (csv->end - at < 5 || strncasecmp(at, "sep=", 4) != 0) return 0;
    const char delimiter = at[4];
    at += 5;
    at += at < csv->end && *at == '"';
    if (!memchr(",;\t|", delimiter, 4) || (at < csv->end && !line_end(csv, at))) return 0;
    csv->at = at;
    if (at < csv->end) next_line(csv);
    return delimiter;
}

static void skip_empty_lines(struct lk_csv *csv) {
    for (;;) {
        const char *at = csv->at;
        while (at < csv->end && *at == ' ') at++;
        if (!line_end(csv, at)) return;
        csv->at = at;
        next_line(csv);
    }
}

static enum lk_code decode_utf16(struct lk_csv *csv) {
    const unsigned char *at = (const unsigned char *)csv->at + 2, *end = (const unsigned char *)csv->end;
    const int high = csv->at[0] == '\xff'; /* which of two bytes is the high one */
    char *out = csv->owned = lk_malloc((size_t)(end - at) / 2 * 3 + 1);
    if (!out) return out_of_memory(csv);
    for (; end - at >= 2; at += 2) {
        uint32_t c = (uint32_t)at[high] << 8 | at[!high];
        if (c >= 0xd800 && c < 0xdc00 && end - at >= 4 && (at[2 + high] & 0xfc) == 0xdc) {
            c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)(at[2 + high] & 3) << 8 | at[2 + !high]);
            at += 2;
        }
        out += lk_utf8_encode(c, out); /* half a pair is no UTF-8 and refuses its record */
    }
    csv->at = csv->owned;
    csv->end = out;
    return LK_OK;
}

static enum lk_code read_columns(struct lk_csv *csv) {
    const char **columns = lk_calloc(csv->n_cells, sizeof *columns);
    if (!columns) return out_of_memory(csv);
    csv->columns = columns;
    for (size_t i = 0; i < csv->n_cells; i++) {
        size_t n = csv->cells[i].n;
        const char *name = lk_trim(lk_csv_cell(csv, (int)i), &n);
        columns[i] = lk_store_copy(&csv->texts, name, n);
        if (!columns[i]) return out_of_memory(csv);
        csv->n_columns = i + 1;
        for (size_t k = 0; k < i && n; k++)
            if (!strcasecmp(columns[k], columns[i]))
                return lk_csv_fail(csv, (int)i, "column %zu has the same name", k + 1);
    }
    while (csv->n_columns > 1 && !*columns[csv->n_columns - 1]) csv->n_columns--;
    return LK_OK;
}

static enum lk_code read_header(struct lk_csv *csv) {
    const size_t n = (size_t)(csv->end - csv->at);
    const char *other = lk_content_not_text(csv->at, n);
    if (other) return lk_fail(LK_E_INPUT, "%s: expected a table (CSV), got %s", csv->name, other);
    if (n >= 3 && !memcmp(csv->at, "\xef\xbb\xbf", 3))
        csv->at += 3;
    else if (n >= 2 && (!memcmp(csv->at, "\xff\xfe", 2) || !memcmp(csv->at, "\xfe\xff", 2)))
        LK_TRY(decode_utf16(csv));
    csv->delimiter = take_sep_line(csv);
    skip_empty_lines(csv);
    if (csv->at == csv->end) return lk_fail(LK_E_INPUT, "%s: expected a header line, got an empty file", csv->name);
    if (!csv->delimiter) csv->delimiter = delimiter_of(csv->at, csv->end);
    LK_TRY(read_record(csv));
    return read_columns(csv);
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

/* Cells beyond the last named column may be there when they are empty: spreadsheets write them. */
static enum lk_code check_cells(struct lk_csv *csv) {
    while (csv->n_cells > csv->n_columns && !csv->cells[csv->n_cells - 1].n) csv->n_cells--;
    if (csv->n_cells == csv->n_columns) return LK_OK;
    return lk_csv_fail(csv, -1, "expected %zu cells as in the header, got %zu", csv->n_columns, csv->n_cells);
}

enum lk_code lk_csv_next_or_bad(struct lk_csv *csv, bool *more, bool *bad) {
    *more = *bad = false;
    if (csv->n_columns > 1) skip_empty_lines(csv); /* of one column an empty line is an empty cell */
    if (csv->at == csv->end) return LK_OK;
    *more = true;
    enum lk_code rc = read_record(csv);
    if (!rc) rc = check_cells(csv);
    *bad = rc == LK_E_INPUT && csv->n_broken <= LK_CSV_MAX_BROKEN;
    return *bad ? LK_OK : rc;
}

enum lk_code lk_csv_next(struct lk_csv *csv, bool *more) {
    bool bad;
    LK_TRY(lk_csv_next_or_bad(csv, more, &bad));
    if (!bad) return LK_OK;
    *more = false;
    return LK_E_INPUT; /* the message is set */
}

void lk_csv_close(struct lk_csv *csv) {
    lk_free(csv->columns);
    lk_free(csv->cells);
    lk_free(csv->bytes);
    lk_free(csv->owned);
    lk_store_free(&csv->texts);
    memset(csv, 0, sizeof *csv);
}

int lk_csv_column(const struct lk_csv *csv, const char *name) {
    for (size_t i = 0; i < csv->n_columns; i++)
        if (!strcasecmp(csv->columns[i], name)) return (int)i;
    for (size_t i = 0; i < csv->n_columns; i++)
        if (lk_same_name(csv->columns[i], name)) return (int)i;
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
