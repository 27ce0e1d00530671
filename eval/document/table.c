#include "eval/document/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/store.h"
#include "engine/base/utf8.h"
#include "eval/document/table_print.h"

/* Text as HTML and SVG take it. */

/* What HTML does not allow in a text at all, not even by number: it is shown as U+FFFD, as a browser would. */
static bool forbidden(uint32_t c) {
    return (c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0) || (c & 0xfffe) == 0xfffe ||
           (c >= 0xfdd0 && c <= 0xfdef);
}

/* Directional overrides and isolates would let a text change how the text after it reads. */
static bool turns_direction(uint32_t c) { return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069); }

/* ASCII that HTML takes as it is. */
static bool plain(char c) {
    return c >= ' ' && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'' && c != '`';
}

void lk_text_escaped(struct lk_text *text, const char *utf8) {
    for (size_t left = strlen(utf8); left;) {
        uint32_t c;
        size_t n_plain = 0;
        while (n_plain < left && plain(utf8[n_plain])) n_plain++;
        lk_text_bytes(text, utf8, n_plain);
        utf8 += n_plain;
        if (!(left -= n_plain)) return;
        size_t n = lk_utf8_decode(utf8, left, &c);
        const char *entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&quot;"
                             : c == '\'' ? "&#39;"
                             : c == '`'  ? "&#96;"
                                         : NULL;
        if (entity)
            lk_text_bytes(text, entity, strlen(entity));
        else if (!n || forbidden(c) || turns_direction(c))
            lk_text_bytes(text, "\xef\xbf\xbd", 3);
        else if (c == 0x2028 || c == 0x2029)
            lk_text_add(text, "&#x%x;", (unsigned)c);
        else
            lk_text_bytes(text, utf8, n);
        utf8 += n ? n : 1;
        left -= n ? n : 1;
    }
}

void lk_text_html_by(struct lk_text *text, const struct lk_html *how, const char *format, va_list args) {
    for (size_t n; *format; format += n) {
        char name[64];
        n = strcspn(format, how->text_of ? "%{" : "%");
        lk_text_bytes(text, format, n);
        format += n;
        if (*format == '{') {
            snprintf(name, sizeof name, "%.*s", (int)strcspn(format, "}") - 1, format + 1);
            how->escape(text, how->text_of(how->context, name));
            n = strcspn(format, "}") + 1;
        } else if (!*format)
            return;
        else if (format[1] == 's')
            how->escape(text, va_arg(args, const char *));
        else if (format[1] == 'd')
            lk_text_add(text, "%d", va_arg(args, int));
        else if (format[1] == 'z')
            lk_text_add(text, "%zu", va_arg(args, size_t));
        else if (format[1] == 'l')
            lk_text_add(text, "%lld", va_arg(args, long long));
        else
            lk_text_add(text, "%c", format[1] == 'c' ? va_arg(args, int) : '%');
        if (*format == '%') n = 2 + strspn(format + 1, "lz");
    }
}

void lk_text_html(struct lk_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lk_text_html_by(text, &(struct lk_html){.escape = lk_text_escaped}, format, args);
    va_end(args);
}

/* The builder of a table. Columns, rows and texts lie in a store of the table's own; the first failure stays in `rc`.
 */

struct storage {
    struct lk_store store;
    int columns_capacity, rows_capacity;
};

static enum lk_code no_memory(struct lk_table *table) {
    return table->rc = lk_fail(LK_E_NOMEM, "table %s: no memory; free memory and try again", table->id);
}

static const char *keep(struct lk_table *table, const char *text) {
    struct storage *s = table->storage;
    const char *copy = lk_store_text(&s->store, text);
    if (text && !copy) no_memory(table);
    return copy;
}

enum lk_code lk_table_new(struct lk_table **out, const char *id, const char *caption, const char *columns) {
    *out = NULL;
    struct lk_table *table = lk_calloc(1, sizeof *table);
    struct storage *s = lk_calloc(1, sizeof *s);
    if (!table || !s) {
        lk_free(table);
        lk_free(s);
        return lk_fail(LK_E_NOMEM, "table %s: no memory; free memory and try again", id);
    }
    table->storage = s;
    table->id = id;
    const char *kept = keep(table, id);
    table->caption = keep(table, caption ? caption : "");
    if (table->rc) {
        lk_table_free(table);
        return LK_E_NOMEM;
    }
    table->id = kept;
    *out = table;
    if (columns) lk_table_columns(table, columns);
    return LK_OK;
}

void lk_table_free(struct lk_table *table) {
    if (!table) return;
    struct storage *s = table->storage;
    lk_store_free(&s->store);
    lk_free(s);
    lk_free(table);
}

void lk_table_id(struct lk_table *table, const char *id) {
    if (table->rc) return;
    const char *kept = keep(table, id);
    if (kept) table->id = kept;
}

void lk_table_caption(struct lk_table *table, const char *caption) {
    if (table->rc) return;
    const char *kept = keep(table, caption);
    if (kept) table->caption = kept;
}

/* A copy of an array in the store with room for twice as many. */
static void *grown(struct lk_table *table, const void *array, int n, int *capacity, size_t size) {
    struct storage *s = table->storage;
    int wanted = *capacity ? 2 * *capacity : 8;
    void *larger = lk_store_alloc(&s->store, (size_t)wanted * size);
    if (!larger) {
        no_memory(table);
        return NULL;
    }
    if (n) memcpy(larger, array, (size_t)n * size);
    *capacity = wanted;
    return larger;
}

void lk_table_column(struct lk_table *table, const char *name, enum lk_align align) {
    if (table->rc) return;
    struct storage *s = table->storage;
    if (table->n_rows) {
        table->rc = lk_fail(LK_E_INTERNAL, "table %s: column \"%s\" after the first row", table->id, name);
        return;
    }
    if (table->n_columns == s->columns_capacity) {
        int same = s->columns_capacity;
        const char **columns = grown(table, table->columns, table->n_columns, &same, sizeof *columns);
        enum lk_align *aligns = grown(table, table->align, table->n_columns, &s->columns_capacity, sizeof *aligns);
        if (!columns || !aligns) return;
        table->columns = columns;
        table->align = aligns;
    }
    const char *kept = keep(table, name);
    if (!kept) return;
    table->columns[table->n_columns] = kept;
    table->align[table->n_columns++] = align;
}

void lk_table_columns(struct lk_table *table, const char *names) {
    for (size_t n; *names; names += n + (names[n] == '|')) {
        char name[128];
        bool right = *names == '>';
        n = strcspn(names, "|");
        snprintf(name, sizeof name, "%.*s", (int)n - right, names + right);
        lk_table_column(table, name, right ? LK_ALIGN_RIGHT : LK_ALIGN_LEFT);
    }
}

static int width(const struct lk_table_row *row) {
    int columns = 0;
    for (int i = 0; i < row->n_cells; i++) columns += row->cells[i].span;
    return columns;
}

/* The last row has as many cells as there are columns. */
static bool last_row_full(struct lk_table *table) {
    if (table->rc) return false;
    if (!table->n_columns) {
        table->rc = lk_fail(LK_E_INTERNAL, "table %s: no columns", table->id);
        return false;
    }
    if (table->n_rows && width(&table->rows[table->n_rows - 1]) != table->n_columns) {
        table->rc = lk_fail(LK_E_INTERNAL, "table %s: row %d: expected cells over %d columns, got %d", table->id,
                            table->n_rows, table->n_columns, width(&table->rows[table->n_rows - 1]));
        return false;
    }
    return true;
}

void lk_table_row(struct lk_table *table) {
    struct storage *s = table->storage;
    if (!last_row_full(table)) return;
    if (table->n_rows == s->rows_capacity) {
        struct lk_table_row *rows = grown(table, table->rows, table->n_rows, &s->rows_capacity, sizeof *rows);
        if (!rows) return;
        table->rows = rows;
    }
    struct lk_cell *cells = lk_store_alloc(&s->store, (size_t)table->n_columns * sizeof *cells);
    if (!cells) {
        no_memory(table);
        return;
    }
    table->rows[table->n_rows++] = (struct lk_table_row){.cells = cells};
}

/* The next cell of the last row, with its text; NULL after a failure. */
static struct lk_cell *add(struct lk_table *table, enum lk_cell_kind kind, const char *text) {
    if (table->rc) return NULL;
    struct lk_table_row *row = table->n_rows ? &table->rows[table->n_rows - 1] : NULL;
    if (!row || width(row) >= table->n_columns) {
        table->rc = lk_fail(LK_E_INTERNAL, "table %s: row %d: a cell \"%s\" beyond the %d columns", table->id,
                            table->n_rows, text, table->n_columns);
        return NULL;
    }
    const char *kept = keep(table, text);
    if (!kept) return NULL;
    struct lk_cell *cell = &row->cells[row->n_cells++];
    *cell = (struct lk_cell){.kind = kind, .text = kept, .span = 1};
    return cell;
}

void lk_table_text_rows(struct lk_table *table, const char *const *cells, int n_columns) {
    for (; *cells; cells += n_columns) {
        lk_table_row(table);
        for (int c = 0; c < n_columns; c++) lk_table_text(table, "%s", cells[c]);
    }
}

void lk_table_heading(struct lk_table *table, const char *text) {
    lk_table_row(table);
    struct lk_cell *cell = add(table, LK_CELL_TEXT, text);
    if (!cell) return;
    cell->span = table->n_columns;
    table->rows[table->n_rows - 1].heading = true;
}

void lk_table_note(struct lk_table *table, const char *format, ...) {
    if (table->rc) return;
    struct storage *s = table->storage;
    va_list args;
    va_start(args, format);
    if (!(table->note = lk_store_format(&s->store, format, args))) no_memory(table);
    va_end(args);
}

void lk_table_text(struct lk_table *table, const char *format, ...) {
    struct lk_cell *cell = add(table, LK_CELL_TEXT, "");
    if (!cell) return;
    struct storage *s = table->storage;
    va_list args;
    va_start(args, format);
    const char *text = lk_store_format(&s->store, format, args);
    va_end(args);
    if (text)
        cell->text = text;
    else
        no_memory(table);
}

void lk_table_none(struct lk_table *table, const char *why) {
    struct lk_cell *cell = add(table, LK_CELL_NONE, LK_EN_DASH);
    if (cell) cell->note = keep(table, why);
}

static struct lk_cell *add_number(struct lk_table *table, const char *text, double value) {
    struct lk_cell *cell = add(table, LK_CELL_NUMBER, text);
    if (cell) cell->value = value;
    return cell;
}

void lk_table_count(struct lk_table *table, int64_t count) {
    char text[LK_NUMBER_MAX];
    lk_print_count(text, count);
    add_number(table, text, (double)count);
}

void lk_table_percent(struct lk_table *table, int64_t k, int64_t n) {
    if (table->rc) return;
    if (n < 0 || k < 0 || k > n) {
        table->rc = lk_fail(LK_E_INTERNAL, "table %s: row %d: expected a count within 0 and n, got %lld of %lld",
                            table->id, table->n_rows, (long long)k, (long long)n);
        return;
    }
    if (n == 0) {
        lk_table_none(table, "no valid items");
        return;
    }
    int64_t tenths = lk_percent_tenths(k, n);
    char text[LK_NUMBER_MAX];
    snprintf(text, sizeof text, "%lld.%lld%%", (long long)(tenths / 10), (long long)(tenths % 10));
    struct lk_cell *cell = add_number(table, text, (double)k / (double)n);
    if (!cell) return;
    cell->count = k;
    cell->n = n;
}

/* Whether there is a value to print; otherwise the cell says that there is none. */
static bool is_number(struct lk_table *table, double value) {
    if (!isfinite(value)) lk_table_none(table, "not a finite number");
    return isfinite(value);
}

/* `scale` times the value, with its unit; NULL without a cell. */
static struct lk_cell *add_fixed(struct lk_table *table, double value, double scale, int decimals, bool sign,
                                 const char *unit) {
    char text[LK_NUMBER_MAX + 4];
    if (!is_number(table, value)) return NULL;
    lk_print_fixed(text, scale * value, decimals, sign);
    strcat(text, unit);
    return add_number(table, text, value);
}

void lk_table_rate(struct lk_table *table, double rate) { add_fixed(table, rate, 100, 1, false, "%"); }

void lk_table_rate_of(struct lk_table *table, double rate, double k, double n) {
    struct lk_cell *cell = add_fixed(table, rate, 100, 1, false, "%");
    if (!cell || k != floor(k)) return;
    cell->count = (int64_t)k;
    cell->n = (int64_t)n;
}

void lk_table_points(struct lk_table *table, double difference) { add_fixed(table, difference, 100, 1, false, " pp"); }

void lk_table_fixed(struct lk_table *table, double value, int decimals) {
    add_fixed(table, value, 1, decimals, false, "");
}

void lk_table_signed(struct lk_table *table, double value, int decimals) {
    add_fixed(table, value, 1, decimals, true, "");
}

void lk_table_p(struct lk_table *table, double p) {
    char text[LK_NUMBER_MAX];
    if (!is_number(table, p)) return;
    lk_print_p(text, p);
    add_number(table, text, p);
}

static struct lk_cell *last_cell(struct lk_table *table) {
    if (table->rc) return NULL;
    struct lk_table_row *row = table->n_rows ? &table->rows[table->n_rows - 1] : NULL;
    if (row && row->n_cells) return &row->cells[row->n_cells - 1];
    table->rc =
        lk_fail(LK_E_INTERNAL, "table %s: row %d: no cell yet that could be bold or linked", table->id, table->n_rows);
    return NULL;
}

void lk_table_bold(struct lk_table *table) {
    struct lk_cell *cell = last_cell(table);
    if (cell) cell->bold = true;
}

void lk_table_interval(struct lk_table *table, double low, double high) {
    struct lk_cell *cell = last_cell(table);
    if (!cell || cell->kind != LK_CELL_NUMBER || !isfinite(low) || !isfinite(high)) return;
    cell->low = low;
    cell->high = high;
}

void lk_table_link(struct lk_table *table, const char *key) {
    struct lk_cell *cell = last_cell(table);
    if (cell) cell->link = keep(table, key);
}

void lk_table_remark(struct lk_table *table, const char *format, ...) {
    struct lk_cell *cell = last_cell(table);
    if (!cell) return;
    struct storage *s = table->storage;
    va_list args;
    va_start(args, format);
    if (!(cell->note = lk_store_format(&s->store, format, args))) no_memory(table);
    va_end(args);
}

void lk_table_subheading(struct lk_table *table) {
    if (!table->rc && table->n_rows) table->rows[table->n_rows - 1].heading = true;
}

enum lk_code lk_table_finish(struct lk_table *table) {
    if (!last_row_full(table)) return table->rc;
    if (table->no_data) table->n_rows = 0;
    table->no_data = table->n_rows == 0;
    return LK_OK;
}
