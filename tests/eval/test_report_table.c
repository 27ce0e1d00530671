/* The table builder: how numbers are printed, what each writer makes of hostile texts, and that a failure stays. */
#include <cjson/cJSON.h>
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "tests/common/test.h"

static struct lk_table *one_column(void) {
    struct lk_table *table;
    assert_ok(lk_table_new(&table, "t", "A table", ">Value"));
    return table;
}

static const char *last(const struct lk_table *table) { return table->rows[table->n_rows - 1].cells[0].text; }

/* The tie is decided by the integers: 3 of 240 is 1.25%, 15 of 240 is 6.25%. */
static void percentages_are_half_up(void **state) {
    (void)state;
    assert_int_equal(lk_percent_tenths(225, 1680), 134);
    assert_int_equal(lk_percent_tenths(3, 240), 13);
    assert_int_equal(lk_percent_tenths(15, 240), 63);
    assert_int_equal(lk_percent_tenths(0, 1), 0);
    assert_int_equal(lk_percent_tenths(INT64_MAX, INT64_MAX), 1000);
    for (int64_t n = 1; n <= 400; n++)
        for (int64_t k = 0; k <= n; k++) assert_int_equal(lk_percent_tenths(k, n), (2000 * k + n) / (2 * n));
    struct lk_table *table = one_column();
    lk_table_row(table), lk_table_percent(table, 104, 1680);
    assert_string_equal(last(table), "6.2%");
    assert_true(table->rows[0].cells[0].value == 104.0 / 1680.0 && table->rows[0].cells[0].n == 1680);
    lk_table_row(table), lk_table_percent(table, 7, 7);
    assert_string_equal(last(table), "100.0%");
    lk_table_row(table), lk_table_percent(table, 0, 0);
    assert_string_equal(last(table), "–");
    assert_ok(lk_table_finish(table));
    lk_table_percent(table, 2, 1);
    assert_int_equal(table->rc, LK_E_INTERNAL);
    lk_table_free(table);
}

static void numbers_as_printed(void **state) {
    (void)state;
    struct lk_table *table = one_column();
    const struct {
        double value;
        int decimals;
        const char *fixed, *with_sign;
    } cases[] = {
        {2.125, 2, "2.13", "+2.13"},
        {-2.125, 2, "-2.13", "-2.13"},
        {1.005, 2, "1.01", "+1.01"},
        {-0.004, 2, "0.00", "0.00"},
        {-0.43, 2, "-0.43", "-0.43"},
        {0.72, 2, "0.72", "+0.72"},
        {99.995, 2, "100.00", "+100.00"},
        {24.65, 1, "24.7", "+24.7"},
        {0.5, 0, "1", "+1"},
        {1e16, 1, "10000000000000000.0", "+10000000000000000.0"},
        {-0.0, 1, "0.0", "0.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lk_table_row(table), lk_table_fixed(table, cases[i].value, cases[i].decimals);
        assert_string_equal(last(table), cases[i].fixed);
        lk_table_row(table), lk_table_signed(table, cases[i].value, cases[i].decimals);
        assert_string_equal(last(table), cases[i].with_sign);
    }
    const struct {
        int64_t value;
        const char *text;
    } counts[] = {
        {0, "0"}, {999, "999"}, {5040, "5,040"}, {-1234567, "-1,234,567"}, {INT64_MIN, "-9,223,372,036,854,775,808"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        lk_table_row(table), lk_table_count(table, counts[i].value);
        assert_string_equal(last(table), counts[i].text);
    }
    lk_table_row(table), lk_table_points(table, 41.0 / 238.0);
    assert_string_equal(last(table), "17.2 pp");
    lk_table_row(table), lk_table_points(table, 3.0 / 240.0);
    assert_string_equal(last(table), "1.3 pp");
    lk_table_row(table), lk_table_points(table, -0.05);
    assert_string_equal(last(table), "-5.0 pp");
    const struct {
        double p;
        const char *text;
    } ps[] = {{0.0235, "0.024"}, {0.001, "0.001"}, {0.00099999, "< 0.001"},
              {0, "< 0.001"},    {1, "1.000"},     {0.9996, "1.000"}};
    for (size_t i = 0; i < sizeof ps / sizeof *ps; i++) {
        lk_table_row(table), lk_table_p(table, ps[i].p);
        assert_string_equal(last(table), ps[i].text);
    }
    lk_table_row(table), lk_table_fixed(table, (double)NAN, 2);
    assert_int_equal(table->rows[table->n_rows - 1].cells[0].kind, LK_CELL_NONE);
    struct lk_number number = {.undefined = "all values equal"};
    lk_table_row(table), lk_report_number(table, &number, 2);
    assert_string_equal(table->rows[table->n_rows - 1].cells[0].note, "all values equal");
    assert_ok(lk_table_finish(table));
    lk_table_free(table);
}

static void a_failure_stays(void **state) {
    (void)state;
    struct lk_table *table;
    assert_ok(lk_table_new(&table, "t", NULL, "A|>B"));
    lk_table_row(table);
    lk_table_text(table, "only one");
    lk_table_row(table);
    lk_table_text(table, "x");
    lk_table_bold(table);
    assert_fails(lk_table_finish(table), LK_E_INTERNAL, "row 1: expected cells over 2 columns, got 1");
    lk_table_free(table);

    assert_ok(lk_table_new(&table, "t", "", "A"));
    lk_table_row(table);
    lk_table_text(table, "a");
    lk_table_text(table, "b");
    assert_fails(lk_table_finish(table), LK_E_INTERNAL, "beyond the 1 columns");
    lk_table_free(table);

    assert_ok(lk_table_new(&table, "t", "", NULL));
    lk_table_text(table, "a");
    assert_int_equal(table->rc, LK_E_INTERNAL);
    lk_table_free(table);

    assert_ok(lk_table_new(&table, "t", "", NULL));
    assert_fails(lk_table_finish(table), LK_E_INTERNAL, "no columns");
    lk_table_free(table);
}

static struct lk_table *hostile(void) {
    struct lk_table *table;
    if (lk_table_new(&table, "a\"b <id>", "Cap<script>alert(1)</script>|\\", NULL)) return NULL;
    lk_table_column(table, "A|\"x\"", LK_ALIGN_LEFT);
    lk_table_column(table, "50% & _more_", LK_ALIGN_RIGHT);
    lk_table_heading(table, "group, \"one\"");
    lk_table_row(table);
    lk_table_text(table, "</td><script>%s\n=1+1 \xe2\x80\xa8\xff\xc3", "'x'");
    lk_table_percent(table, 1, 3);
    lk_table_interval(table, 0.0625, 0.25);
    lk_table_bold(table);
    lk_table_link(table, "a b\"><img>");
    lk_table_row(table);
    lk_table_text(table, "\\evil{} #1 ~^ $x$ \xe2\x89\xa5 \xe2\x80\xae");
    lk_table_none(table, "no <valid> items");
    lk_table_note(table, "Note & \"more\" <%s>", "tag");
    return table;
}

static char *render(const struct lk_table *table, void (*writer)(const struct lk_table *, struct lk_text *)) {
    struct lk_text text = {0};
    writer(table, &text);
    assert_int_equal(text.rc, LK_OK);
    return text.bytes;
}

static void hostile_texts(void **state) {
    (void)state;
    struct lk_table *table = hostile();
    assert_ok(lk_table_finish(table));
    char *html = render(table, lk_table_html), *csv = render(table, lk_table_csv), *json = render(table, lk_table_json);
    char *latex = render(table, lk_table_latex), *markdown = render(table, lk_table_markdown);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "<img"));
    assert_null(strstr(html, "\xff"));
    assert_null(strstr(html, "\xe2\x80\xa8"));
    assert_null(strstr(html, "\xe2\x80\xae"));
    assert_non_null(strstr(html, "&lt;/td&gt;&lt;script&gt;&#39;x&#39;"));
    assert_non_null(strstr(html, "><b>33.3%</b></a> <span class=\"interval\">[6.3, 25.0]</span>"));
    assert_non_null(strstr(html, "href=\"#images-a.20b.22.3e.3cimg.3e\""));
    assert_non_null(strstr(html, "<p id=\"a.22b.20.3cid.3e-note-a\"><sup>a</sup> no &lt;valid&gt; items</p>"));
    assert_string_equal(csv, "group,\"A|\"\"x\"\"\",50% & _more_,50% & _more_ k,50% & _more_ n,50% & _more_ low,"
                             "50% & _more_ high\r\n"
                             "\"group, \"\"one\"\"\",\"</td><script>'x'\n=1+1 \xe2\x80\xa8\xef\xbf\xbd\xef\xbf\xbd\","
                             "0.33333333333333331,1,3,0.0625,0.25\r\n"
                             "\"group, \"\"one\"\"\",\\evil{} #1 ~^ $x$ \xe2\x89\xa5 \xe2\x80\xae,,,,,\r\n");
    cJSON *parsed = cJSON_Parse(json);
    assert_non_null(parsed);
    cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(parsed, "rows"), 1), *rate = cJSON_GetArrayItem(row, 1);
    assert_true(cJSON_GetObjectItem(rate, "value")->valuedouble == 1.0 / 3.0);
    assert_int_equal(cJSON_GetObjectItem(rate, "n")->valueint, 3);
    assert_string_equal(cJSON_GetObjectItem(parsed, "caption")->valuestring, table->caption);
    cJSON_Delete(parsed);
    assert_non_null(
        strstr(latex, "\\textbackslash{}evil\\{\\} \\#1 \\textasciitilde{}\\textasciicircum{} \\$x\\$ $\\geq$"));
    assert_non_null(strstr(latex, "\\textbf{33.3\\%} {\\footnotesize {[}6.3, 25.0{]}}"));
    assert_non_null(strstr(markdown, "\\</td\\>\\<script\\>'x' =1+1"));
    assert_non_null(strstr(markdown, "| **33.3%** \\[6.3, 25.0\\] |"));
    lk_free(html), lk_free(csv), lk_free(json), lk_free(latex), lk_free(markdown);
    lk_table_free(table);
}

/* A spreadsheet computes nothing that a table's texts say; numbers stay numbers. */
static void formulas_are_texts(void **state) {
    (void)state;
    static const struct lk_run run = {"-run", "00ff", 2, 1};
    static const char *const texts[] = {"=1+1", "+1", "-1", "@a", "\ta", "\ra", "a=1"};
    struct lk_table *table;
    assert_ok(lk_table_new(&table, "t", "A table", "=Text|>Value"));
    lk_table_heading(table, "@group");
    for (int i = 0; i < 7; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", texts[i]);
        lk_table_signed(table, -1, 0);
    }
    assert_ok(lk_table_finish(table));
    table->run = &run;
    char *csv = render(table, lk_table_csv);
    static const char *const cells[] = {"'=1+1", "'+1", "'-1", "'@a", "'\ta", "\"'\ra\"", "a=1"};
    const char *line = strstr(csv, "group,'=Text,Value,");
    assert_ptr_equal(line, csv);
    for (int i = 0; i < 7; i++) {
        char expected[64];
        line = strchr(line, '\n') + 1;
        snprintf(expected, sizeof expected, "'@group,%s,-1,'-run,00ff,2,1\r\n", cells[i]);
        assert_memory_equal(line, expected, strlen(expected));
    }
    lk_free(csv);
    lk_table_free(table);
}

static void no_data(void **state) {
    (void)state;
    struct lk_table *table = one_column();
    assert_ok(lk_table_finish(table));
    assert_true(table->no_data);
    char *html = render(table, lk_table_html), *csv = render(table, lk_table_csv),
         *latex = render(table, lk_table_latex);
    char *markdown = render(table, lk_table_markdown);
    assert_non_null(strstr(html, ">no data</td>"));
    assert_non_null(strstr(latex, "no data"));
    assert_non_null(strstr(markdown, "\nno data\n"));
    assert_string_equal(csv, "Value\r\n");
    lk_free(html), lk_free(csv), lk_free(latex), lk_free(markdown);
    lk_table_free(table);
}

/* Every file of a table names its run; pandas reads the columns of the table unchanged. */
static void run_is_named(void **state) {
    (void)state;
    static const struct lk_run run = {"a, \"b\"_c", "00ff", 5040, 12};
    struct lk_table *table = one_column(), *empty = one_column();
    lk_table_row(table);
    lk_table_count(table, 1234);
    assert_ok(lk_table_finish(table));
    lk_table_column(empty, "Other", LK_ALIGN_LEFT);
    assert_ok(lk_table_finish(empty));
    table->run = empty->run = &run;
    char *csv = render(table, lk_table_csv), *none = render(empty, lk_table_csv), *json = render(table, lk_table_json);
    char *latex = render(table, lk_table_latex), *markdown = render(table, lk_table_markdown);
    assert_string_equal(csv, "Value,run,configuration,nominal N,valid N\r\n1234,\"a, \"\"b\"\"_c\",00ff,5040,12\r\n");
    assert_string_equal(none, "Value,Other,run,configuration,nominal N,valid N\r\n"
                              "no data,,\"a, \"\"b\"\"_c\",00ff,5040,12\r\n");
    cJSON *parsed = cJSON_Parse(json), *named = cJSON_GetObjectItem(parsed, "run");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(named, "name")), run.name);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(named, "configuration")), run.configuration);
    assert_int_equal(cJSON_GetObjectItem(named, "nominal")->valueint, 5040);
    assert_int_equal(cJSON_GetObjectItem(named, "valid")->valueint, 12);
    cJSON_Delete(parsed);
    assert_int_equal(strncmp(latex, "% run: a, ", 10), 0);
    assert_non_null(strstr(latex, "\n% configuration 00ff; nominal N 5040, valid N 12\n\\begin"));
    assert_non_null(strstr(markdown, "\nRun: a, \"b\"\\_c; configuration 00ff; nominal N 5040, valid N 12\n"));
    lk_free(latex), lk_free(markdown);
    table->run = &(const struct lk_run){"a run", "00ff", 0, 12}; /* nobody said how many there should be */
    latex = render(table, lk_table_latex), markdown = render(table, lk_table_markdown);
    assert_non_null(strstr(latex, "\n% configuration 00ff; valid N 12\n\\begin"));
    assert_non_null(strstr(markdown, "\nRun: a run; configuration 00ff; valid N 12\n"));
    lk_free(csv), lk_free(none), lk_free(json), lk_free(latex), lk_free(markdown);
    lk_table_free(table), lk_table_free(empty);
}

/* Whatever allocation fails, the result is LK_E_NOMEM and nothing leaks. */
static void out_of_memory(void **state) {
    (void)state;
    void (*const writers[])(const struct lk_table *, struct lk_text *) = {
        lk_table_csv, lk_table_json, lk_table_markdown, lk_table_html, lk_table_latex};
    int64_t live = lk_alloc_live();
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        assert_true(n < 200);
        lk_alloc_fail_at(n);
        struct lk_table *table = hostile();
        enum lk_code rc = table ? lk_table_finish(table) : LK_E_NOMEM;
        for (size_t w = 0; !rc && w < sizeof writers / sizeof *writers; w++) {
            struct lk_text text = {0};
            writers[w](table, &text);
            rc = text.rc;
            lk_text_free(&text);
        }
        lk_alloc_fail_at(0);
        lk_table_free(table);
        failed = rc != LK_OK;
        if (failed) assert_int_equal(rc, LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
}

static const char *named(const void *context, const char *name) { return strcmp(name, "who") ? "" : context; }

/* Texts are escaped, whatever stands in them; what the format has is not, and numbers are numbers. */
static void only_texts_are_escaped(void **state) {
    (void)state;
    struct lk_text text = {0};
    lk_text_html(&text, "<p class=\"%s\">%s %d%% of %zu, %lld %c{who}</p>", "a\"b", "<b>%s {who}", -3, (size_t)7,
                 1LL << 40, 'x');
    assert_ok(text.rc);
    assert_string_equal(text.bytes, "<p class=\"a&quot;b\">&lt;b&gt;%s {who} -3% of 7, 1099511627776 x{who}</p>");
    assert_ok(lk_text_free(&text));
}

static void add(struct lk_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    lk_text_html_by(text, &(struct lk_html){lk_text_escaped, named, "<%d>"}, format, args);
    va_end(args);
}

static void names_stand_for_texts(void **state) {
    (void)state;
    struct lk_text text = {0};
    add(&text, "{who}%s%d{nobody}{who}", "&", 2);
    assert_ok(text.rc);
    assert_string_equal(text.bytes, "&lt;%d&gt;&amp;2&lt;%d&gt;");
    assert_ok(lk_text_free(&text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentages_are_half_up),
        cmocka_unit_test(numbers_as_printed),
        cmocka_unit_test(a_failure_stays),
        cmocka_unit_test(hostile_texts),
        cmocka_unit_test(formulas_are_texts),
        cmocka_unit_test(only_texts_are_escaped),
        cmocka_unit_test(names_stand_for_texts),
        cmocka_unit_test(no_data),
        cmocka_unit_test(run_is_named),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
