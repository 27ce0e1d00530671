#include "tests/common/paper_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "eval/document/table_print.h"
#include "engine/base/json.h"

/* A printed number: "1,680", "14.2", "-1.48", "92.0%", "17.2 pp". */
struct printed {
    double value;
    int decimals;
    bool percent, points;
};

static bool parse_printed(const char *text, struct printed *out) {
    char digits[32];
    size_t n = 0, length = strlen(text);
    *out = (struct printed){0};
    if (length >= sizeof digits) return false;
    if (length > 3 && !strcmp(text + length - 3, " pp")) {
        out->points = true;
        length -= 3;
    } else if (length > 1 && text[length - 1] == '%') {
        out->percent = true;
        length--;
    }
    bool dot = false;
    for (size_t i = 0; i < length; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (text[i] == ',' && i) continue;
        if (text[i] == '.' && i && !dot)
            dot = true;
        else if (digit && dot)
            out->decimals++;
        else if (!digit && !(text[i] == '-' && i == 0))
            return false;
        digits[n++] = text[i];
    }
    digits[n] = '\0';
    if (!n || digits[n - 1] == '.' || digits[n - 1] == '-') return false;
    out->value = strtod(digits, NULL);
    return true;
}

/* Whether the number's own printing gives the text back; only then the cell may be a number. */
static bool prints_as(const struct printed *number, const char *text) {
    char out[LK_NUMBER_MAX + 4];
    if (number->decimals || number->percent || number->points)
        lk_print_fixed(out, number->value, number->decimals, false);
    else
        lk_print_count(out, (int64_t)number->value);
    if (number->points && number->decimals != 1) return false;
    if (number->percent && (number->decimals != 1 || number->value < 0 || number->value > 100)) return false;
    strcat(out, number->percent ? "%" : number->points ? " pp" : "");
    return !strcmp(out, text);
}

static void add_cell(struct lk_table *table, const char *text) {
    struct printed number;
    if (!strcmp(text, LK_EN_DASH))
        lk_table_none(table, NULL);
    else if (!parse_printed(text, &number) || !prints_as(&number, text))
        lk_table_text(table, "%s", text);
    else if (number.percent)
        lk_table_rate(table, number.value / 100);
    else if (number.points)
        lk_table_points(table, number.value / 100);
    else if (number.decimals)
        lk_table_fixed(table, number.value, number.decimals);
    else
        lk_table_count(table, (int64_t)number.value);
}

static void read_row(struct lk_json *j, struct lk_table *table) {
    const char *text;
    lk_table_row(table);
    if (!lk_json_enter(j, '[')) return;
    while (lk_json_next(j) && lk_json_string(j, &text)) add_cell(table, text);
}

/* {"group": TEXT} or {"columns": [TEXT, ...]} */
static void read_spanning_row(struct lk_json *j, struct lk_table *table) {
    const char *key, *text;
    if (!lk_json_enter(j, '{')) return;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "columns")) {
            read_row(j, table);
            lk_table_subheading(table);
        } else if (strcmp(key, "group") != 0)
            lk_json_fail(j, LK_E_JSON, "expected a spanning row's \"group\" or \"columns\", got \"%s\"", key);
        else if (lk_json_string(j, &text))
            lk_table_heading(table, text);
    }
}

/* [[ROW, COLUMN], ...]: cells printed bold, named by the text of their row's first cell and by their column. */
static void read_bold(struct lk_json *j, struct lk_table *table) {
    if (!lk_json_enter(j, '[')) return;
    while (lk_json_next(j) && lk_json_enter(j, '[')) {
        const char *name;
        int found_row = -1;
        for (int part = 0; lk_json_next(j) && lk_json_string(j, &name); part++) {
            for (int r = 0; part == 0 && r < table->n_rows; r++)
                if (!strcmp(table->rows[r].cells[0].text, name)) found_row = r;
            for (int c = 0; part == 1 && found_row >= 0 && c < table->rows[found_row].n_cells; c++)
                if (!strcmp(table->columns[c], name)) table->rows[found_row].cells[c].bold = true;
        }
    }
}

static void read_columns(struct lk_json *j, struct lk_table *table) {
    const char *text;
    if (!lk_json_enter(j, '[')) return;
    while (lk_json_next(j) && lk_json_string(j, &text)) lk_table_column(table, text, LK_ALIGN_LEFT);
}

/* A column is right-aligned when it has a number and nothing but numbers, dashes and empty cells. */
static void align_numbers(struct lk_table *table) {
    for (int c = 0; c < table->n_columns; c++) {
        bool number = false, other = false;
        for (int r = 0; r < table->n_rows; r++) {
            const struct lk_table_row *row = &table->rows[r];
            if (row->heading || row->n_cells != table->n_columns) continue;
            if (row->cells[c].kind == LK_CELL_NUMBER) number = true;
            if (row->cells[c].kind == LK_CELL_TEXT && row->cells[c].text[0]) other = true;
        }
        if (number && !other) table->align[c] = LK_ALIGN_RIGHT;
    }
}

static enum lk_code append(struct lk_paper_tables *tables, struct lk_table *table) {
    struct lk_table **list = lk_realloc(tables->list, ((size_t)tables->n + 1) * sizeof *list);
    if (!list) {
        lk_table_free(table);
        return lk_fail(LK_E_NOMEM, "published tables: no memory; free memory and try again");
    }
    tables->list = list;
    list[tables->n++] = table;
    return LK_OK;
}

/* One object; kept when it is a table, that is has columns. */
static enum lk_code read_table(struct lk_json *j, struct lk_paper_tables *tables, const char *id, const char *title) {
    const char *key, *text;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, id, title, NULL));
    bool entered = lk_json_enter(j, '{');
    while (entered && lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "columns"))
            read_columns(j, table);
        else if (!strcmp(key, "rows") && table->n_columns && lk_json_enter(j, '[')) {
            while (lk_json_next(j))
                if (lk_json_peek(j) == '{')
                    read_spanning_row(j, table);
                else
                    read_row(j, table);
        } else if (!strcmp(key, "caption") && lk_json_string(j, &text))
            lk_table_caption(table, text);
        else if (!strcmp(key, "note") && lk_json_string(j, &text))
            lk_table_note(table, "%s", text);
        else if (!strcmp(key, "bold"))
            read_bold(j, table);
        else
            lk_json_skip(j);
    }
    if (j->rc || !table->n_columns) {
        enum lk_code rc = table->rc;
        lk_table_free(table);
        return rc;
    }
    align_numbers(table);
    enum lk_code rc = lk_table_finish(table);
    if (!rc) return append(tables, table);
    lk_table_free(table);
    return rc;
}

/* The members of "tables", or those of one seed in "section_results". */
static enum lk_code read_group(struct lk_json *j, struct lk_paper_tables *tables, const char *seed) {
    const char *key;
    char id[96], title[96];
    if (!lk_json_enter(j, '{')) return LK_OK;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        snprintf(id, sizeof id, seed ? "%s_%.60s" : "%s%.60s", seed ? seed : "", key);
        snprintf(title, sizeof title, "Seed %.8s, %.60s", seed && strlen(seed) > 5 ? seed + 5 : "", key);
        if (lk_json_peek(j) == '{')
            LK_TRY(read_table(j, tables, id, title));
        else
            lk_json_skip(j);
    }
    return LK_OK;
}

static enum lk_code read_file(struct lk_json *j, struct lk_paper_tables *tables) {
    const char *key;
    char seed[32];
    if (!lk_json_enter(j, '{')) return LK_OK;
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        if (!strcmp(key, "tables")) {
            LK_TRY(read_group(j, tables, NULL));
        } else if (!strcmp(key, "section_results") && lk_json_enter(j, '{')) {
            while (lk_json_next(j) && lk_json_key(j, &key)) {
                snprintf(seed, sizeof seed, "%.31s", key);
                LK_TRY(read_group(j, tables, seed));
            }
        } else
            lk_json_skip(j);
    }
    lk_json_end(j);
    return LK_OK;
}

enum lk_code lk_paper_tables_read(struct lk_paper_tables *out) {
    struct lk_data_file file;
    struct lk_json j;
    *out = (struct lk_paper_tables){0};
    if (!lk_data_find("paper_tables", &file)) return lk_fail(LK_E_INTERNAL, "the program has no data paper_tables");
    lk_json_init(&j, file.text, file.n_bytes, "paper_tables.json");
    enum lk_code rc = read_file(&j, out), read = lk_json_finish(&j);
    if (!rc) rc = read;
    if (rc) lk_paper_tables_free(out);
    return rc;
}

const struct lk_table *lk_paper_tables_find(const struct lk_paper_tables *tables, const char *id) {
    for (int i = 0; i < tables->n; i++)
        if (!strcmp(tables->list[i]->id, id)) return tables->list[i];
    return NULL;
}

void lk_paper_tables_free(struct lk_paper_tables *tables) {
    for (int i = 0; i < tables->n; i++) lk_table_free(tables->list[i]);
    lk_free(tables->list);
    *tables = (struct lk_paper_tables){0};
}
