/* Time that grows no faster than n log n, and memory that is a few times the file, at sizes where what once was
 * quadratic took minutes and gigabytes: each in a process of its own, which may take 5 s of the processor and takes
 * some hundredths. That chosen names do not flood the index, tests/unit/test_names.c counts. */
#include "tests/common/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "eval/document/table.h"
#include "eval/stats/resampling/bootstrap.h"
#include "eval/stats/tests/multiple.h"
#include "tools/cli/stats/stats.h"

static const char *path;

/* How a process that does it ends: its status, or minus the signal. */
static int ends(int (*what)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_CPU, &(struct rlimit){5, 6});
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        _exit(what());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int bca(void) {
    enum { N = 500000 };
    double *values = malloc(N * sizeof *values);
    for (int i = 0; i < N; i++) values[i] = i % 7;
    struct lk_resampling how = LK_RESAMPLING;
    struct lk_number number;
    how.n_replicates = 8;
    how.n_threads = 1;
    int bad = lk_bootstrap_mean(values, N, &how, LK_INTERVAL_BCA, &number) || !(number.low < number.high);
    free(values);
    return bad;
}

static int adjusted(void) {
    enum { N = 200000 };
    double *p = malloc(2 * N * sizeof *p);
    int bad = 0;
    for (int i = 0; i < N; i++) p[i] = (double)((int64_t)i * 7919 % N) / N;
    for (int m = LK_ADJUST_BONFERRONI; m <= LK_ADJUST_BENJAMINI_YEKUTIELI; m++)
        bad |= lk_adjust_p(p, N, (enum lk_adjustment)m, p + N) || p[N] != 0;
    free(p);
    return bad;
}

static int printed_table(void) {
    enum { N = 50000 };
    static const char *const keys[] = {"line", "p", "label"};
    struct stats_cell *cells = malloc((size_t)N * 3 * sizeof *cells);
    for (size_t i = 0; i < N; i++) {
        cells[3 * i] = stats_count(i);
        cells[3 * i + 1] = stats_number((double)i / N);
        cells[3 * i + 2] = stats_text("a label");
    }
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    stats_print_table(&(struct stats_out){.json = false}, "tests", keys, 3, cells, N);
    free(cells);
    return fflush(stdout) != 0;
}

static int report_table(void) {
    struct lk_table *table;
    struct lk_text html = {0}, csv = {0};
    if (lk_table_new(&table, "t", "A table", "Rater|>Mean|>Ratings")) return 1;
    for (int i = 0; i < 100000; i++) {
        lk_table_row(table);
        lk_table_text(table, "r%d", i);
        lk_table_fixed(table, i % 5, 2);
        lk_table_count(table, i);
    }
    enum lk_code rc = lk_table_finish(table);
    lk_table_html(table, &html);
    lk_table_csv(table, &csv);
    int bad = rc || html.rc || csv.rc || html.n < csv.n;
    lk_text_free(&html);
    lk_text_free(&csv);
    lk_table_free(table);
    return bad;
}

static void time_of_a_line_is_the_same_among_many(void **state) {
    (void)state;
    assert_int_equal(ends(bca), 0);
    assert_int_equal(ends(adjusted), 0);
    assert_int_equal(ends(printed_table), 0);
    assert_int_equal(ends(report_table), 0);
}

/* Megabytes that reading one column of the file takes. */
static int reads(void) {
    struct rusage before, after;
    const struct cli_stats_options options = {.value = "c3"};
    struct stats s = {.o = &options, .test = "describe", .file = path};
    getrusage(RUSAGE_SELF, &before);
    if (stats_read(&s) || s.n_rows != 100000 || strcmp(s.value.cells[99999], "99999.3")) return 255;
    getrusage(RUSAGE_SELF, &after);
    stats_free(&s);
    return (int)((after.ru_maxrss - before.ru_maxrss) / 1024);
}

static void a_table_takes_a_few_times_its_bytes(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its own memory */
#endif
    path = test_path("growth.csv");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int c = 0; c < 10; c++) fprintf(f, "c%d%c", c, c < 9 ? ',' : '\n');
    for (int i = 0; i < 100000; i++)
        for (int c = 0; c < 10; c++) fprintf(f, "%d.%d%c", i, c, c < 9 ? ',' : '\n');
    assert_int_equal(fclose(f), 0);
    assert_in_range(ends(reads), 6, 24); /* of 8; 240 once */
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_of_a_line_is_the_same_among_many),
        cmocka_unit_test(a_table_takes_a_few_times_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
