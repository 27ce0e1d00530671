/* The layout test: every published table (eval/data/paper_tables.json), built as a table of the report and written as
 * Markdown, HTML, LaTeX and CSV, gives back the printed cells. The JSON is read here with another parser, and each
 * format by a small reader of its own. */
#include <cjson/cJSON.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "tests/common/paper_tables.h"
#include "tests/common/html_check.h"
#include "tests/common/test.h"

#define CELLS 4096
#define BYTES 2048

/* Cells in reading order; a spanning row gives one cell. `heading` marks those of heading rows and of the header. */
struct cells {
    char (*text)[BYTES];
    bool bold[CELLS];
    int n;
};

static void put(struct cells *cells, const char *text, size_t n, bool bold) {
    assert_true(cells->n < CELLS && n < BYTES);
    memcpy(cells->text[cells->n], text, n);
    cells->text[cells->n][n] = '\0';
    cells->bold[cells->n++] = bold;
}

static struct cells *new_cells(void) {
    struct cells *cells = calloc(1, sizeof *cells);
    cells->text = calloc(CELLS, BYTES);
    assert_non_null(cells->text);
    return cells;
}

static void free_cells(struct cells *cells) {
    free(cells->text);
    free(cells);
}

static bool listed_bold(const cJSON *table, const cJSON *row, int column) {
    const cJSON *pair, *name = cJSON_GetArrayItem(cJSON_GetObjectItem(table, "columns"), column);
    cJSON_ArrayForEach(pair, cJSON_GetObjectItem(table, "bold")) {
        if (!strcmp(cJSON_GetArrayItem(pair, 0)->valuestring, cJSON_GetArrayItem(row, 0)->valuestring) &&
            !strcmp(cJSON_GetArrayItem(pair, 1)->valuestring, name->valuestring))
            return true;
    }
    return false;
}

/* What is printed. numbers: as CSV carries it, without separators and units. */
static struct cells *expected_cells(const cJSON *table) {
    struct cells *cells = new_cells();
    const cJSON *row, *cell;
    cJSON_ArrayForEach(cell, cJSON_GetObjectItem(table, "columns"))
        put(cells, cell->valuestring, strlen(cell->valuestring), false);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(table, "rows")) {
        if (cJSON_IsArray(row)) {
            int column = 0;
            cJSON_ArrayForEach(cell, row)
                put(cells, cell->valuestring, strlen(cell->valuestring), listed_bold(table, row, column++));
        } else if (cJSON_GetObjectItem(row, "group")) {
            const char *text = cJSON_GetObjectItem(row, "group")->valuestring;
            put(cells, text, strlen(text), true);
        } else
            cJSON_ArrayForEach(cell, cJSON_GetObjectItem(row, "columns"))
                put(cells, cell->valuestring, strlen(cell->valuestring), true);
    }
    return cells;
}

static void compare(const char *id, const char *format, const struct cells *expected, const struct cells *got) {
    for (int i = 0; i < expected->n && i < got->n; i++)
        if (strcmp(expected->text[i], got->text[i]) != 0)
            fail_msg("%s, %s: cell %d: expected \"%s\", got \"%s\"", id, format, i, expected->text[i], got->text[i]);
    if (expected->n != got->n) fail_msg("%s, %s: expected %d cells, got %d", id, format, expected->n, got->n);
}

static char *render(const struct lk_table *table, void (*writer)(const struct lk_table *, struct lk_text *)) {
    struct lk_text text = {0};
    writer(table, &text);
    assert_int_equal(text.rc, LK_OK);
    return text.bytes;
}

/* "| a | b |" with \-escapes; empty cells after the bold one of a spanning row belong to it. */
static struct cells *read_markdown(const char *text, const struct lk_table *table) {
    struct cells *cells = new_cells();
    const char *line = strstr(text, "\n|") + 1;
    for (int r = -2; *line == '|'; r++) {
        const char *end = line + strcspn(line, "\n");
        if (r != -1) {
            int in_row = 0;
            for (const char *at = line + 1; at < end; in_row++) {
                char cell[BYTES];
                size_t n = 0;
                bool bold = false;
                for (at++; *at != '|'; at++) {
                    if (at[0] == '*' && at[1] == '*') {
                        bold = true;
                        at++;
                        continue;
                    }
                    if (*at == '\\') at++;
                    cell[n++] = *at;
                }
                at++;
                while (n && cell[n - 1] == ' ') n--;
                if (r >= 0 && table->rows[r].n_cells == 1 && in_row > 0)
                    assert_int_equal(n, 0);
                else
                    put(cells, cell, n, bold);
            }
            assert_int_equal(in_row, table->n_columns);
        }
        line = end + 1;
    }
    return cells;
}

/* <th> and <td> up to </tbody>. */
static struct cells *read_html(const char *html, bool *no_data) {
    struct cells *cells = new_cells();
    const char *end = strstr(html, "</tbody>");
    *no_data = strstr(html, "<td class=\"none\"") != NULL;
    for (const char *at = html; (at = strchr(at, '<')) && at < end; at++) {
        if ((strncmp(at, "<th", 3) != 0 && strncmp(at, "<td", 3) != 0) || at[3] == 'e') continue;
        if (!strncmp(at, "<td class=\"none\"", 16)) continue;
        const char *start = strchr(at, '>') + 1, *stop = strstr(start, at[2] == 'h' ? "</th>" : "</td>");
        char text[BYTES];
        html_text(start, (size_t)(stop - start), text, sizeof text);
        put(cells, text, strlen(text), !strncmp(start, "<b>", 3));
    }
    return cells;
}

static const struct {
    const char *latex, *text;
} latex_symbols[] = {{"\\textbackslash{}", "\\"},
                     {"\\&", "&"},
                     {"\\%", "%"},
                     {"\\$", "$"},
                     {"\\#", "#"},
                     {"\\_", "_"},
                     {"\\{", "{"},
                     {"\\}", "}"},
                     {"\\textless{}", "<"},
                     {"\\textgreater{}", ">"},
                     {"$-$", "-"},
                     {"---", "\u2014"},
                     {"--", "\u2013"},
                     {"-{}", "-"},
                     {"``", "\u201c"},
                     {"''", "\u201d"},
                     {"'", "\u2019"},
                     {"$\\pm$", "\u00b1"},
                     {"$\\times$", "\u00d7"},
                     {"$\\geq$", "\u2265"},
                     {"$\\Delta$", "\u0394"},
                     {"$\\kappa$", "\u03ba"},
                     {"{[}", "["},
                     {"{]}", "]"},
                     {"{*}", "*"}};

/* One cell of a row: what \textbf, \textit and \multicolumn hold, without escapes. */
static void latex_cell(struct cells *cells, const char *at, const char *end) {
    char text[BYTES];
    size_t n = 0;
    bool bold = false;
    while (at < end) {
        bool known = false;
        for (size_t i = 0; i < sizeof latex_symbols / sizeof *latex_symbols && !known; i++) {
            size_t length = strlen(latex_symbols[i].latex);
            if (strncmp(at, latex_symbols[i].latex, length) != 0) continue;
            strcpy(text + n, latex_symbols[i].text);
            n += strlen(text + n);
            at += length;
            known = true;
        }
        if (known) continue;
        if (!strncmp(at, "\\multicolumn{", 13))
            at = strchr(strchr(at, '}') + 1, '}') + 2;
        else if (!strncmp(at, "\\textbf{", 8) || !strncmp(at, "\\textit{", 8)) {
            bold = at[5] == 'b' || at[6] == 'f' || bold;
            at += 8;
        } else if (*at == '}')
            at++;
        else {
            if (strchr("&%$#_{~^\\", *at)) fail_msg("LaTeX would not print this: %.60s", at);
            text[n++] = *at++;
        }
        assert_true(n < BYTES - 8);
    }
    put(cells, text, n, bold);
}

/* Rows between \toprule and \bottomrule, cells at " & ". */
static struct cells *read_latex(const char *latex) {
    struct cells *cells = new_cells();
    const char *line = strstr(latex, "\\toprule\n") + 9, *bottom = strstr(latex, "\\bottomrule");
    while (line < bottom) {
        const char *end = line + strcspn(line, "\n");
        if (!strncmp(line, "\\endfirsthead", 13)) end = strstr(line, "\\endhead\n") + 8; /* the header again */
        if (!strncmp(end - 2, "\\\\", 2) && strncmp(end - 12, "{no data} \\\\", 12) != 0)
            for (const char *at = line, *stop = end - 3; at <= stop;) {
                const char *next = strstr(at, " & ");
                if (!next || next > stop) next = stop;
                latex_cell(cells, at, next);
                at = next + (next < stop ? 3 : 1);
            }
        line = end + 1;
    }
    return cells;
}

/* RFC 4180. */
static struct cells *read_csv(const char *at) {
    struct cells *cells = new_cells();
    while (*at) {
        char text[BYTES];
        size_t n = 0;
        if (*at == '"') {
            for (at++; *at != '"' || at[1] == '"'; at++) {
                if (*at == '"') at++;
                text[n++] = *at;
            }
            at++;
        } else
            while (*at != ',' && *at != '\r') text[n++] = *at++;
        put(cells, text, n, false);
        if (*at == ',') {
            at++;
            continue;
        }
        assert_true(at[0] == '\r' && at[1] == '\n');
        at += 2;
    }
    return cells;
}

/* A printed number, "17.2 pp" or "1,680", as the value that a CSV has; false for texts. */
static bool printed_value(const char *text, double *value) {
    char digits[64], *end;
    size_t n = 0;
    for (const char *c = text; *c && n < 60; c++)
        if (*c != ',') digits[n++] = *c;
    digits[n] = '\0';
    if (strspn(digits, "-0123456789.") == 0 || (!strchr("0123456789", digits[0]) && digits[0] != '-')) return false;
    *value = strtod(digits, &end);
    if (!strcmp(end, "%") || !strcmp(end, " pp"))
        *value /= 100;
    else if (*end)
        return false;
    return end != digits;
}

/* Each printed cell against its CSV field, which has the group in front where a table has groups. */
static void compare_csv(const char *id, const cJSON *table, const struct cells *got) {
    const cJSON *row, *cell;
    bool groups = false;
    const char *group = "";
    int i = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(table, "rows")) groups = groups || cJSON_GetObjectItem(row, "group");
    if (groups) assert_string_equal(got->text[i++], "group");
    cJSON_ArrayForEach(cell, cJSON_GetObjectItem(table, "columns"))
        assert_string_equal(got->text[i++], cell->valuestring);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(table, "rows")) {
        if (cJSON_GetObjectItem(row, "group")) {
            group = cJSON_GetObjectItem(row, "group")->valuestring;
            continue;
        }
        if (groups) assert_string_equal(got->text[i++], group);
        const cJSON *list = cJSON_IsArray(row) ? row : cJSON_GetObjectItem(row, "columns");
        cJSON_ArrayForEach(cell, list) {
            double value;
            const char *text = got->text[i++], *printed = strcmp(cell->valuestring, "\u2013") ? cell->valuestring : "";
            if (!strcmp(text, printed)) continue;
            if (!printed_value(printed, &value) || strtod(text, NULL) != value || strpbrk(text, ",% "))
                fail_msg("%s, CSV: field %d: printed \"%s\", got \"%s\"", id, i, cell->valuestring, text);
        }
    }
    assert_int_equal(i, got->n);
}

static void one_table(const struct lk_table *table, const cJSON *json) {
    struct cells *expected = expected_cells(json), *got;
    bool no_data;
    char *text = render(table, lk_table_markdown);
    compare(table->id, "Markdown", expected, got = read_markdown(text, table));
    for (int i = 0; i < got->n; i++)
        if (got->text[i][0]) assert_int_equal(expected->bold[i], got->bold[i]);
    free_cells(got), lk_free(text);

    text = render(table, lk_table_html);
    html_check(text, NULL);
    compare(table->id, "HTML", expected, got = read_html(text, &no_data));
    assert_int_equal(no_data, cJSON_GetArraySize(cJSON_GetObjectItem(json, "rows")) == 0);
    free_cells(got), lk_free(text);

    text = render(table, lk_table_latex);
    compare(table->id, "LaTeX", expected, got = read_latex(text));
    free_cells(got), lk_free(text);

    text = render(table, lk_table_csv);
    compare_csv(table->id, json, got = read_csv(text));
    free_cells(got), lk_free(text);
    free_cells(expected);
}

static void every_published_table(void **state) {
    (void)state;
    struct lk_data_file file;
    struct lk_paper_tables paper;
    assert_true(lk_data_find("paper_tables", &file));
    cJSON *json = cJSON_ParseWithLength(file.text, file.n_bytes);
    assert_non_null(json);
    assert_ok(lk_paper_tables_read(&paper));
    const cJSON *table, *seed;
    int n = 0;
    cJSON_ArrayForEach(table, cJSON_GetObjectItem(json, "tables")) {
        const struct lk_table *found = lk_paper_tables_find(&paper, table->string);
        assert_non_null(found);
        assert_string_equal(found->caption, cJSON_GetObjectItem(table, "caption")->valuestring);
        one_table(found, table);
        n++;
    }
    assert_int_equal(n, 19);
    cJSON_ArrayForEach(seed, cJSON_GetObjectItem(json, "section_results")) cJSON_ArrayForEach(table, seed) {
        char id[128];
        if (!cJSON_GetObjectItem(table, "columns")) continue;
        snprintf(id, sizeof id, "%s_%s", seed->string, table->string);
        assert_non_null(lk_paper_tables_find(&paper, id));
        one_table(lk_paper_tables_find(&paper, id), table);
        n++;
    }
    assert_int_equal(n, paper.n);
    assert_null(lk_paper_tables_find(&paper, "table_20"));
    lk_paper_tables_free(&paper);
    cJSON_Delete(json);
}

/* The cells with numbers are numbers: as many as the JSON has number-like texts, and with their values. */
static void numbers_are_numbers(void **state) {
    (void)state;
    struct lk_paper_tables paper;
    assert_ok(lk_paper_tables_read(&paper));
    const struct lk_table *t12 = lk_paper_tables_find(&paper, "table_12"),
                          *t13 = lk_paper_tables_find(&paper, "table_13");
    assert_true(t12->rows[0].cells[1].value == 1680 && t12->rows[0].cells[2].value == 92.0 / 100);
    assert_int_equal(t12->align[0], LK_ALIGN_LEFT);
    assert_int_equal(t12->align[4], LK_ALIGN_RIGHT);
    assert_true(t13->rows[7].cells[1].bold && !t13->rows[7].cells[2].bold);
    assert_true(t13->rows[7].cells[1].value == 17.2 / 100);
    assert_true(lk_paper_tables_find(&paper, "table_14")->rows[0].cells[1].value == -1.48);
    assert_int_equal(lk_paper_tables_find(&paper, "table_5")->rows[2].cells[2].kind, LK_CELL_NONE);
    for (int i = 0; i < paper.n; i++)
        for (int r = 0; r < paper.list[i]->n_rows; r++)
            for (int c = 0; c < paper.list[i]->rows[r].n_cells; c++) {
                const struct lk_cell *cell = &paper.list[i]->rows[r].cells[c];
                double value;
                if (printed_value(cell->text, &value)) {
                    assert_int_equal(cell->kind, LK_CELL_NUMBER);
                    assert_true(cell->value == value);
                }
            }
    lk_paper_tables_free(&paper);
}

static void out_of_memory(void **state) {
    (void)state;
    int64_t live = lk_alloc_live(), n = 1;
    for (bool failed = true; failed; n++) {
        struct lk_paper_tables paper;
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_paper_tables_read(&paper);
        lk_alloc_fail_at(0);
        lk_paper_tables_free(&paper);
        failed = rc != LK_OK;
        if (failed) assert_int_equal(rc, LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_published_table),
        cmocka_unit_test(numbers_are_numbers),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
