/* CSV: what pandas reads from 200 generated files (tests/golden/generate_scores.py), what is refused and where the
 * message points, and memory that runs out. */
#include "engine/base/alloc.h"
#include "eval/scores/csv.h"
#include "eval/scores/words.h"
#include "tests/common/test.h"

static uint64_t hash(uint64_t h, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return h;
}

static void files_as_pandas_reads_them(void **state) {
    (void)state;
    size_t n, n_cases = 0;
    char *all = test_read("golden/data/csv_cases.bin", &n);
    for (char *at = all; at < all + n; n_cases++) {
        size_t n_bytes, n_rows, n_columns, rows = 1;
        unsigned long long expected;
        assert_int_equal(sscanf(at, "%zu %zu %zu %llx\n", &n_bytes, &n_rows, &n_columns, &expected), 4);
        const char *text = strchr(at, '\n') + 1;
        struct lk_csv csv;
        uint64_t h = 0xcbf29ce484222325u;
        assert_ok(lk_csv_open(&csv, text, n_bytes, "case.csv"));
        assert_int_equal(csv.n_columns, n_columns);
        for (size_t i = 0; i < csv.n_columns; i++) {
            h = hash(h, csv.columns[i], strlen(csv.columns[i]));
            h = hash(h, "\x1f", 1);
        }
        h = hash(h, "\x1e", 1);
        for (bool more = true; more;) {
            assert_ok(lk_csv_next(&csv, &more));
            if (!more) break;
            for (size_t i = 0; i < csv.n_cells; i++) {
                assert_int_equal(strlen(lk_csv_cell(&csv, (int)i)), csv.cells[i].n);
                h = hash(h, lk_csv_cell(&csv, (int)i), csv.cells[i].n);
                h = hash(h, "\x1f", 1);
            }
            h = hash(h, "\x1e", 1);
            rows++;
        }
        if (rows != n_rows || h != expected)
            fail_msg("case %zu: %zu rows for %zu, or other cells:\n%.*s", n_cases, rows, n_rows, (int)n_bytes, text);
        lk_csv_close(&csv);
        at += (size_t)(text - at) + n_bytes + 1;
    }
    assert_int_equal(n_cases, 200);
    free(all);
}

static enum lk_code read_all(const char *text, size_t n, size_t *n_rows) {
    struct lk_csv csv;
    bool more = true;
    *n_rows = 0;
    LK_TRY(lk_csv_open(&csv, text, n, "t.csv"));
    enum lk_code rc = LK_OK;
    while (!rc && more) {
        rc = lk_csv_next(&csv, &more);
        *n_rows += !rc && more;
    }
    lk_csv_close(&csv);
    return rc;
}

static void faults_are_placed(void **state) {
    (void)state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.csv: expected a header line, got an empty file"},
        {"\xef\xbb\xbf", "empty file"},
        {"a,b,A\n", "t.csv: line 1, column 3 (\"A\"): column 1 has the same name"},
        {"a,b\n1\n", "t.csv: line 2: expected 2 cells as in the header, got 1"},
        {"a,b\n1,2,3\n", "line 2: expected 2 cells as in the header, got 3"},
        {"a,b\n1,2,,x\n", "line 2: expected 2 cells as in the header, got 4"},
        {"a,b\n1,2\n\"3,4\n", "t.csv: line 3, column 1 (\"a\"): a quoted cell is not closed"},
        {"a,b\n\"1\n2\",\"x\"y\n", "line 2, column 2 (\"b\"): expected a delimiter"},
        {"a,b\n\"1\n2\",3\n4\n", "line 4: expected 2 cells"},
        {"a,b\n1,\xff\n", "line 2, column 2 (\"b\"): a cell is not UTF-8"},
        {"a,b\n1,\xc3\n", "not UTF-8"},
    };
    size_t n_rows;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(read_all(cases[i].text, strlen(cases[i].text), &n_rows), LK_E_INPUT, cases[i].message);
    assert_fails(read_all("a\n\0\n", 4, &n_rows), LK_E_INPUT, "holds NUL");
    assert_ok(read_all("a,b\n1,2\n\r\n\n", 11, &n_rows));
    assert_int_equal(n_rows, 1);
    assert_ok(read_all("a\n\n\n", 4, &n_rows)); /* two empty cells of one column */
    assert_int_equal(n_rows, 2);
    assert_ok(read_all("a,b", 3, &n_rows));
    assert_int_equal(n_rows, 0);
}

/* A table as one text: names and cells parted by bars, lines ended by semicolons; a bad record is "!". */
static const char *table_of(const char *text, size_t n) {
    static char out[4000];
    struct lk_csv csv;
    size_t at = 0;
    if (lk_csv_open(&csv, text, n, "t.csv")) return lk_error_text();
    for (size_t i = 0; i < csv.n_columns; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%s", i ? "|" : "", csv.columns[i]);
    for (bool more = true, bad; more;) {
        assert_ok(lk_csv_next_or_bad(&csv, &more, &bad));
        at += (size_t)snprintf(out + at, sizeof out - at, more ? ";" : "");
        if (bad) at += (size_t)snprintf(out + at, sizeof out - at, "!%zu", csv.line);
        for (size_t i = 0; more && !bad && i < csv.n_columns; i++)
            at += (size_t)snprintf(out + at, sizeof out - at, "%s%s", i ? "|" : "", lk_csv_cell(&csv, (int)i));
    }
    lk_csv_close(&csv);
    return out;
}

/* As spreadsheets, platforms and people write tables. */
static void what_people_have(void **state) {
    (void)state;
#define TABLE(text, expected)                                                                                          \
    { text, sizeof(text) - 1, expected }
    static const struct {
        const char *text;
        size_t n;
        const char *expected;
    } cases[] = {
        TABLE("a,b\n1,2\n", "a|b;1|2"),
        TABLE("a,b\n1,2", "a|b;1|2"),
        TABLE("a,b\r\n1,2\r\n", "a|b;1|2"),
        TABLE("a,b\r1,2\r3,4\r", "a|b;1|2;3|4"),
        TABLE("a,b\r1,2\r\r3,4", "a|b;1|2;3|4"),
        TABLE("a,b\r\n1,2\n3,4\r5,6", "a|b;1|2;3|4;5|6"),
        TABLE("\xef\xbb\xbf"
              "a,b\n1,2\n",
              "a|b;1|2"),
        TABLE("\n\r\n  \na,b\n\n1,2\n \n\n3,4\n\n\n", "a|b;1|2;3|4"),
        TABLE("sep=;\r\na;b\r\n1;2\r\n", "a|b;1|2"),
        TABLE("SEP=|\na|b\n1|2\n", "a|b;1|2"),
        TABLE("\"sep=;\"\na;b,c\n1;2\n", "a|b,c;1|2"),
        TABLE("sep=\t\na\tb\n1,5\t2\n", "a|b;1,5|2"),
        TABLE("\xef\xbb\xbfsep=,\na,b;c\n1,2\n", "a|b;c;1|2"),
        TABLE("sep=x\n1\n", "sep=x;1"),
        TABLE("a;b\n1;2\n", "a|b;1|2"),
        TABLE("a\tb\n1\t2\n", "a|b;1|2"),
        TABLE("a|b\n1|2\n", "a|b;1|2"),
        TABLE("a;b\n1,5;-2,25\n1,5e3;x\n", "a|b;1.5|-2.25;1.5e3|x"),
        TABLE("a;b\n1,2,3;1.234,5\n,5;5,\n1,x;e,5\n", "a|b;1,2,3|1.234,5;,5|5,;1,x|e,5"),
        TABLE("a;b\n\"1,5\";+0,5\n", "a|b;1.5|+0.5"),
        TABLE("a,b\n\"1,5\",x\n", "a|b;1,5|x"),
        TABLE("a,b,,\n1,2,,\n", "a|b;1|2"),
        TABLE("a,b,,\n1,2\n3,4,\n", "a|b;1|2;3|4"),
        TABLE("a,b\n1,2,,,\n", "a|b;1|2"),
        TABLE("a,b,,\n1,2,x,\n3,4,,\n", "a|b;!2;3|4"),
        TABLE(",a\n1,x\n", "|a;1|x"),
        TABLE(",a,,b\n1,x,y,z\n", "|a||b;1|x|y|z"),
        TABLE(" a , \"b\" \n1,2\n", "a|b;1|2"),
        TABLE("a,b\n1, \"x, y\" \n", "a|b;1|x, y"),
        TABLE("a,b\n5 foot 6\" tall,2\n", "a|b;5 foot 6\" tall|2"),
        TABLE("a,b\nsay \"hi\",2\n", "a|b;say \"hi\"|2"),
        TABLE("a,b\n\"say \"\"hi\"\"\",2\n", "a|b;say \"hi\"|2"),
        TABLE("a,b\n\"6\" tall\",2\n3,4\n", "a|b;!2;3|4"),
        TABLE("a,b\n\"x,2\n3,4\n5,6\n", "a|b;!2;3|4;5|6"),
        TABLE("a,b\n\"x,2\n3,\"4\"\n5,6\n", "a|b;!2;3|4;5|6"),
        TABLE("a,b\n\"x\ny\",2\n3,4\n", "a|b;x\ny|2;3|4"),
        TABLE("a,b\n\"x\r\ny\",2\r\n3\r\n", "a|b;x\r\ny|2;!4"),
        TABLE("a,b\nna\xefve,2\n3,4\n", "a|b;!2;3|4"),
        TABLE("a,b\n\"na\xefve\",\"x\"\n3,4\n", "a|b;!2;3|4"),
        TABLE("a,b\n1\0,2\n3,4\n", "a|b;!2;3|4"),
        TABLE("a,b\n1\n3,4\n5,6,7\n", "a|b;!2;3|4;!4"),
        TABLE("\xff\xfe"
              "a\0\t\0b\0\r\0\n\0"
              "1\0\t\0\xe9\0\n\0",
              "a|b;1|\xc3\xa9"),
        TABLE("\xfe\xff\0a\0,\0b\0\n\0"
              "1\0,\x20\xac",
              "a|b;1|\xe2\x82\xac"),
        TABLE("\xff\xfe"
              "a\0\n\0\x3d\xd8\0\xde",
              "a;\xf0\x9f\x98\x80"),
        TABLE("\xff\xfe"
              "a\0\n\0\x3d\xd8x\0\n\0y\0",
              "a;!2;y"),
        TABLE("\xff\xfes\0e\0p\0=\0;\0\n\0"
              "a\0;\0b\0\n\0"
              "1\0;\0"
              "2\0",
              "a|b;1|2"),
        TABLE("a\n\n\n", "a;;"),
        TABLE("a,b", "a|b"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = table_of(cases[i].text, cases[i].n);
        if (strcmp(got, cases[i].expected)) fail_msg("case %zu: expected %s, got %s", i, cases[i].expected, got);
    }
}

/* Stray quotes cost time, so that a file may not have many of them. */
static void stray_quotes_have_a_limit(void **state) {
    (void)state;
    for (int n = LK_CSV_MAX_BROKEN; n <= LK_CSV_MAX_BROKEN + 1; n++) {
        char text[2000] = "a,b\n";
        struct lk_csv csv;
        enum lk_code rc = LK_OK;
        for (int i = 0; i < n; i++) strcat(text, "\"x,2\n");
        assert_ok(lk_csv_open(&csv, text, strlen(text), "t.csv"));
        for (bool more = true, bad; more && !rc;) rc = lk_csv_next_or_bad(&csv, &more, &bad);
        assert_int_equal(rc, n > LK_CSV_MAX_BROKEN ? LK_E_INPUT : LK_OK);
        lk_csv_close(&csv);
    }
}

static void words_of_nothing_and_names(void **state) {
    (void)state;
    static const char *const missing[] = {"",     " ",    "\t",   "NA",     "na",           "N/A",
                                          "n/a",  "#N/A", "<NA>", "NaN",    "nan",          "NULL",
                                          "null", "None", "-",    " - ",    " NA ",         "\xc2\xa0",
                                          "NaT",  "-nan", "#NA",  "#NULL!", "\xe2\x80\x94", "\xc2\xa0NA\xc2\xa0"};
    static const char *const there[] = {"none", "0",  "no",   "N",       "A",  "NAN1", "nil",
                                        "x",    "--", "NA 1", "Namibia", "-1", "?"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (!lk_is_missing(missing[i], strlen(missing[i]))) fail_msg("\"%s\" is missing", missing[i]);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (lk_is_missing(there[i], strlen(there[i]))) fail_msg("\"%s\" is not missing", there[i]);
    static const char *const same[][2] = {{"editQuality", "Edit Quality"},
                                          {"raceDrift", "race_drift"},
                                          {"imageId", "ImageID"},
                                          {"Ethnicity (simplified)", "ethnicity simplified"},
                                          {"PROLIFIC_PID", "prolific pid"},
                                          {"TIMED-OUT", "Timed Out"},
                                          {"a", "A "},
                                          {"\xc3\xa9", "\xc3\xa9"}};
    static const char *const other[][2] = {
        {"race", "races"}, {"", "a"}, {"\xc3\xa9", "e"}, {"a.b", "ab"}, {"x1", "x2"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) assert_true(lk_same_name(same[i][0], same[i][1]));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) assert_false(lk_same_name(other[i][0], other[i][1]));
    static const char *const damaged[] = {"5.60E+23", "5,6E+23", "5e+23", " 1.23457E+17 "};
    static const char *const whole[] = {"5f3c00000000000000000000", "5E23", "A1B2", "5.6", "E+23", "5.6E+", "5.6E+2x"};
    for (size_t i = 0; i < 4; i++) assert_true(lk_is_damaged_id(damaged[i], strlen(damaged[i])));
    for (size_t i = 0; i < 7; i++) assert_false(lk_is_damaged_id(whole[i], strlen(whole[i])));
}

static void sizes_have_limits(void **state) {
    (void)state;
    size_t n_rows, n = LK_CSV_MAX_CELL + 4;
    char *text = malloc(n);
    memset(text, 'x', n);
    memcpy(text, "a\n", 2);
    assert_fails(read_all(text, n, &n_rows), LK_E_INPUT, "longer than 1 MiB");
    assert_ok(read_all(text, n - 4, &n_rows));
    for (int i = 0; i < 1001; i++) memcpy(text + 2 * i, ",x", 2);
    assert_fails(read_all(text, 2002, &n_rows), LK_E_INPUT, "more than 1000 columns");
    free(text);
}

static void columns_are_found_by_name(void **state) {
    (void)state;
    struct lk_csv csv;
    int column;
    bool more;
    assert_ok(lk_csv_open(&csv, "Item_ID,score\nx,4\n", 18, "t.csv"));
    assert_ok(lk_csv_require(&csv, "item_id", &column));
    assert_int_equal(column, 0);
    assert_fails(lk_csv_require(&csv, "axis", &column), LK_E_INPUT, "expected a column \"axis\", got: Item_ID, score");
    assert_int_equal(column, -1);
    assert_ok(lk_csv_require(&csv, "item id", &column));
    assert_int_equal(column, 0);
    assert_ok(lk_csv_next(&csv, &more));
    assert_string_equal(lk_csv_cell(&csv, 1), "4");
    assert_string_equal(lk_csv_cell(&csv, -1), "");
    lk_csv_close(&csv);
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    enum lk_code rc = LK_E_NOMEM;
    char text[4000] = "a,b\n\"";
    memset(text + 5, 'x', 3000);
    strcpy(text + 3005, "\",2\n");
    for (int64_t n = 1; rc; n++) {
        size_t n_rows;
        lk_alloc_fail_at(n);
        rc = read_all(text, strlen(text), &n_rows);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
}

/* A file of any length is read in the memory of its longest record. */
static void one_record_is_held(void **state) {
    (void)state;
    enum { N = 20000 };
    char *text = malloc(12 * N + 8);
    int64_t made[2];
    for (int k = 0; k < 2; k++) {
        int n_rows = k ? N : 10;
        size_t n = (size_t)sprintf(text, "a,b\n");
        for (int i = 0; i < n_rows; i++) n += (size_t)sprintf(text + n, "12345,12345\n");
        made[k] = lk_alloc_count();
        struct lk_csv csv;
        assert_ok(lk_csv_open(&csv, text, n, "t.csv"));
        for (bool more = true; more; n_rows--) assert_ok(lk_csv_next(&csv, &more));
        assert_int_equal(n_rows, -1);
        lk_csv_close(&csv);
        made[k] = lk_alloc_count() - made[k];
    }
    assert_int_equal(made[0], made[1]);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_as_pandas_reads_them), cmocka_unit_test(faults_are_placed),
        cmocka_unit_test(what_people_have),           cmocka_unit_test(stray_quotes_have_a_limit),
        cmocka_unit_test(words_of_nothing_and_names), cmocka_unit_test(sizes_have_limits),
        cmocka_unit_test(columns_are_found_by_name),  cmocka_unit_test(no_memory_leaves_nothing),
        cmocka_unit_test(one_record_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
