/* CSV: what pandas reads from 200 generated files (tests/golden/generate_scores.py), what is refused and where the
 * message points, and memory that runs out. */
#include "engine/base/alloc.h"
#include "eval/scores/csv.h"
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
        {"a,b\n\n1,2\n", "line 2: expected 2 cells as in the header, got 1 (an empty line)"},
        {"a,b\n1,2\n\"3,4\n", "t.csv: line 3, column 1 (\"a\"): a quoted cell is not closed"},
        {"a,b\n1,x\"y\"\n", "line 2, column 2 (\"b\"): a quote inside"},
        {"a,b\n\"1\n2\",\"x\"y\n", "line 2, column 2 (\"b\"): expected a comma"},
        {"a,b\n\"1\n2\",3\n4\n", "line 4: expected 2 cells"},
        {"a,b\r1,2\r", "line 1, column 2: a carriage return without a line feed"},
        {"a,b\n1,2\r", "line 2, column 2 (\"b\"): a carriage return"},
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
        cmocka_unit_test(sizes_have_limits),          cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(no_memory_leaves_nothing),   cmocka_unit_test(one_record_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
