/* Candidate pools, the log of a selection, the final set. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/image/image.h"
#include "eval/design/selection.h"
#include "tests/common/test.h"

/* Some 500 lines and files are written here: that each is synced is counted, not waited for. */
static int n_synced;
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) { return fd < 0 ? -1 : (n_synced++, 0); }

static const char now[] = "2026-01-17T10:00:00Z";

/* Five pictures a cell, and a child; without the cell `left_out` (-1: none). */
static struct lk_text labels(int left_out) {
    struct lk_text text = {0};
    lk_text_add(&text, "file,age,gender,race,service_test\nchild.png,3-9,Male,Black,True\n");
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < LK_N_SOURCES; i++) {
            int race, gender, age;
            lk_source_factors(i, &race, &gender, &age);
            if (i != left_out)
                lk_text_add(&text, "p%d.png,%s,%s,%s,True\n", i,
                            age == 5 ? "more than 70" : lk_factor_key(LK_FACTOR_AGE, age),
                            lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_RACE, race));
        }
    assert_int_equal(text.rc, LK_OK);
    return text;
}

static void pools_are_seeded(void **state) {
    struct lk_text table = labels(-1), first = {0}, again = {0}, other = {0};
    size_t lines = 0;
    (void)state;
    assert_ok(lk_pools_draw(table.bytes, table.n, "labels.csv", 42, &first));
    assert_ok(lk_pools_draw(table.bytes, table.n, "labels.csv", 42, &again));
    assert_ok(lk_pools_draw(table.bytes, table.n, "labels.csv", 43, &other));
    for (size_t i = 0; i < first.n; i++) lines += first.bytes[i] == '\n';
    assert_int_equal(lines, 7 * 84);
    assert_string_equal(first.bytes, again.bytes);
    lk_text_free(&table);
    table = labels(lk_source(1, 0, 2));
    assert_fails(lk_pools_draw(table.bytes, table.n, "labels.csv", 42, &again), LK_E_INPUT, "Black_Male_40s");
    lk_text_free(&table);
    lk_text_free(&first);
    lk_text_free(&again);
    lk_text_free(&other);
}

/* Each row of a cell is a file of its own: which are drawn, by the definition of the stream, computed elsewhere. */
static void draws_are_the_streams(void **state) {
    struct lk_text text = {0}, out = {0};
    char expected[200];
    (void)state;
    lk_text_add(&text, "file,age,gender,race\n");
    for (int i = 0; i < LK_N_SOURCES; i++)
        for (int k = 0; k < 5; k++) {
            int race, gender, age;
            lk_source_factors(i, &race, &gender, &age);
            lk_text_add(&text, "%d.png,%s,%s,%s\n", k, lk_factor_key(LK_FACTOR_AGE, age),
                        lk_factor_key(LK_FACTOR_GENDER, gender), lk_factor_key(LK_FACTOR_RACE, race));
        }
    assert_ok(lk_pools_draw(text.bytes, text.n, "labels.csv", 42, &out));
    static const int drawn[LK_N_POOLS] = {2, 0, 0, 3, 4, 0, 1}; /* Black_Male_40s */
    for (int v = 0; v < LK_N_POOLS; v++) {
        snprintf(expected, sizeof expected, "{\"pool\": %d, \"source_id\": \"Black_Male_40s\", \"file\": \"%d.png\"}\n",
                 v + 1, drawn[v]);
        if (!strstr(out.bytes, expected)) fail_msg("no line %s", expected);
    }
    lk_text_free(&text);
    lk_text_free(&out);
}

static char pools[4096], log_path[4096];

static struct lk_selection *begin(void) {
    struct lk_text table = labels(-1), out = {0};
    struct lk_selection *s;
    snprintf(pools, sizeof pools, "%s", test_path("pools.jsonl"));
    snprintf(log_path, sizeof log_path, "%s", test_path("selection_log.jsonl"));
    remove(log_path);
    assert_ok(lk_pools_draw(table.bytes, table.n, "labels.csv", 42, &out));
    test_write(pools, out.bytes, out.n);
    lk_text_free(&table);
    lk_text_free(&out);
    assert_ok(lk_selection_open(&s, pools, log_path));
    return s;
}

static struct lk_selection *reopen(struct lk_selection *s) {
    lk_selection_close(s);
    assert_ok(lk_selection_open(&s, pools, log_path));
    return s;
}

static enum lk_code act(struct lk_selection *s, enum lk_selection_kind kind, int source, int pool, int failing) {
    struct lk_selection_action a = {
        .time = now, .actor = "A.B.", .kind = kind, .source = source, .pool = pool, .note = ""};
    for (int i = 0; i < LK_N_CRITERIA; i++) a.criteria[i] = i != failing;
    return lk_selection_act(s, &a);
}

static size_t count_lines(void) {
    size_t n, lines = 0;
    char *text = test_read(log_path, &n);
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    free(text);
    return lines;
}

/* 84 choices by the pools of the paper's table, nine of them taken back and made again: 102 actions. */
static void choose_all(struct lk_selection *s) {
    static const int counts[LK_N_POOLS] = {12, 9, 21, 13, 7, 10, 12};
    int source = 0, undone;
    for (int v = 0; v < LK_N_POOLS; v++)
        for (int k = 0; k < counts[v]; k++, source++) assert_ok(act(s, LK_SELECT_CHOOSE, source, v + 1, -1));
    for (int k = 0; k < 9; k++) {
        assert_ok(lk_selection_undo(s, "2026-01-17T12:00:59Z", "A.B.", &undone));
        assert_int_equal(undone, 83 - k);
    }
    assert_int_equal(lk_selection_n_done(s), 75);
    for (int k = 75; k < 84; k++) assert_ok(act(s, LK_SELECT_CHOOSE, k, 7, -1));
}

static void draw_pictures(void) {
    for (int i = 0; i < LK_N_SOURCES; i++) {
        struct lk_image image;
        char name[32];
        assert_ok(lk_image_new(&image, 16, 8, 3));
        memset(image.pixels, i, 16 * 8 * 3);
        snprintf(name, sizeof name, "p%d.png", i);
        assert_ok(lk_png_write(test_path(name), &image, NULL, 0));
        lk_image_free(&image);
    }
}

static void the_final_set_is_written(void **state) {
    struct lk_selection *s = begin();
    struct lk_text summary = {0};
    (void)state;
    draw_pictures();
    choose_all(s);
    assert_int_equal(count_lines(), 102);
    assert_true(n_synced >= 102);
    s = reopen(s);
    assert_int_equal(lk_selection_n_actions(s), 102);
    assert_ok(lk_selection_finalize(s, test_path("final"), &summary));
    assert_string_equal(summary.bytes, "V1 12\nV2 9\nV3 21\nV4 13\nV5 7\nV6 10\nV7 12\nsum 84\nactions 102\nwall time "
                                       "0:00:00\n");
    summary.n = 0;
    assert_ok(lk_source_manifest_validate(test_path("final/source_manifest.json"), &summary));
    assert_string_equal(summary.bytes, "V1 12\nV2 9\nV3 21\nV4 13\nV5 7\nV6 10\nV7 12\nsum 84\n");
    /* One picture for two cells. */
    struct lk_image image;
    size_t n_first, n_manifest;
    char *first = test_read(test_path("final/source/White_Male_20s.png"), &n_first), digest[65];
    char *manifest = test_read(test_path("final/source_manifest.json"), &n_manifest);
    char *second = strstr(strchr(strstr(manifest, "\"sha256\"") + 1, '\n'), "\"sha256\"");
    test_write(test_path("final/source/White_Male_30s.png"), first, n_first);
    lk_sha256(first, n_first, digest);
    memcpy(second + 11, digest, 64);
    test_write(test_path("final/source_manifest.json"), manifest, n_manifest);
    assert_fails(lk_source_manifest_validate(test_path("final/source_manifest.json"), &summary), LK_E_INPUT,
                 "line 3: source/White_Male_30s.png: expected a picture of its own, got that of source 1 of the set");
    free(first);
    free(manifest);
    /* Another picture in a source's place. */
    assert_ok(lk_image_new(&image, 16, 8, 3));
    memset(image.pixels, 200, 16 * 8 * 3);
    assert_ok(lk_png_write(test_path("final/source/White_Male_20s.png"), &image, NULL, 0));
    lk_image_free(&image);
    assert_fails(lk_source_manifest_validate(test_path("final/source_manifest.json"), &summary), LK_E_CHANGED,
                 "White_Male_20s.png");
    unlink(test_path("final/source/White_Male_20s.png"));
    enum lk_code rc = lk_source_manifest_validate(test_path("final/source_manifest.json"), &summary);
    assert_fails(rc, LK_E_NOT_FOUND, "final/source_manifest.json: line 2: ");
    assert_non_null(strstr(lk_error_text(), "White_Male_20s.png"));
    lk_text_free(&summary);
    lk_selection_close(s);
}

/* The pictures fit below the limit of size, their manifest does not. */
static void a_set_is_whole_or_absent(void **state) {
    struct lk_selection *s = begin();
    struct lk_text summary = {0};
    struct rlimit limit;
    char set[4096], sources[4200];
    (void)state;
    draw_pictures();
    choose_all(s);
    snprintf(set, sizeof set, "%s-%d", test_path("set"), (int)getpid());
    snprintf(sources, sizeof sources, "%s/source", set);
    signal(SIGXFSZ, SIG_IGN); /* as the program does */
    getrlimit(RLIMIT_FSIZE, &limit);
    for (int there = 0; there < 2; there++) {
        if (there) assert_int_equal(mkdir(set, 0777), 0);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 10000, .rlim_max = limit.rlim_max});
        enum lk_code rc = lk_selection_finalize(s, set, &summary);
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_int_equal(lk_exit_code(rc), 7);
        assert_non_null(strstr(lk_error_text(), set));
        if (there) assert_int_equal(rmdir(sources) || rmdir(set), 0); /* they are empty */
        assert_int_not_equal(access(set, F_OK), 0);
    }
    lk_text_free(&summary);
    lk_selection_close(s);
}

static void what_is_not_done_is_named(void **state) {
    struct lk_selection *s = begin();
    struct lk_text summary = {0};
    struct lk_image image;
    char bad[4096]; /* a folder that no earlier run has left behind */
    (void)state;
    snprintf(bad, sizeof bad, "%s-%d", test_path("bad"), (int)getpid());
    for (int i = 0; i < LK_N_SOURCES; i++) assert_ok(act(s, LK_SELECT_CHOOSE, i, 1, -1));
    assert_ok(act(s, LK_SELECT_UNCHOOSE, lk_source(1, 0, 2), 1, -1));
    assert_fails(lk_selection_finalize(s, bad, &summary), LK_E_INPUT,
                 "1 of 84 cells are not done: Black_Male_40s (none is chosen)");
    assert_ok(act(s, LK_SELECT_CHOOSE, lk_source(1, 0, 2), 3, 4));
    assert_fails(lk_selection_finalize(s, bad, &summary), LK_E_INPUT, "Black_Male_40s (without neutral_expression)");
    assert_ok(act(s, LK_SELECT_UNCHOOSE, lk_source(1, 0, 2), 3, -1));
    assert_ok(act(s, LK_SELECT_CHOOSE, lk_source(1, 0, 2), 3, -1));
    assert_ok(act(s, LK_SELECT_CHOOSE, lk_source(1, 0, 2), 4, -1));
    assert_fails(lk_selection_finalize(s, bad, &summary), LK_E_INPUT, "Black_Male_40s (several are chosen)");
    assert_int_equal(lk_selection_n_done(s), 83);
    draw_pictures();
    assert_ok(act(s, LK_SELECT_UNCHOOSE, lk_source(1, 0, 2), 4, -1));
    assert_ok(lk_image_read(&image, test_path("p0.png"), true, 0));
    assert_ok(lk_png_write(test_path("p1.png"), &image, NULL, 0));
    lk_image_free(&image);
    assert_fails(lk_selection_finalize(s, bad, &summary), LK_E_INPUT,
                 "expected a picture of its own, got that of source");
    assert_int_equal(access(bad, F_OK), -1);
    lk_selection_close(s);
}

/* What stands after a log stands after it is read again, and so does what can be taken back. */
static void the_log_says_it_all(void **state) {
    struct lk_selection *s = begin();
    int source;
    (void)state;
    assert_fails(lk_selection_undo(s, now, "A.B.", &source), LK_E_INPUT, "no choice");
    assert_ok(act(s, LK_SELECT_CHOOSE, 5, 2, -1));
    assert_ok(act(s, LK_SELECT_CHOOSE, 6, 3, 1));
    assert_fails(act(s, LK_SELECT_CHOOSE, 6, 3, 1), LK_E_INPUT, "chosen already");
    assert_fails(act(s, LK_SELECT_UNCHOOSE, 6, 4, 1), LK_E_INPUT, "not chosen already");
    assert_ok(act(s, LK_SELECT_FLAG, 6, 5, -1));
    struct lk_selection_action note = {now, "A.B.", LK_SELECT_NOTE, 6, 5, {false}, "a \"shadow\"\n"};
    assert_ok(lk_selection_act(s, &note));
    assert_ok(lk_selection_undo(s, now, "A.B.", &source)); /* of 6 */
    assert_int_equal(source, 6);
    s = reopen(s);
    assert_int_equal(lk_selection_n_actions(s), 5);
    assert_int_equal(lk_selection_chosen(s, 5), 2);
    assert_int_equal(lk_selection_chosen(s, 6), 0);
    assert_true(lk_selection_candidate(s, 6, 5)->flagged);
    assert_string_equal(lk_selection_candidate(s, 6, 5)->note, "a \"shadow\"\n");
    assert_false(lk_selection_candidate(s, 6, 3)->criteria[1]);
    assert_ok(lk_selection_undo(s, now, "A.B.", &source));
    assert_int_equal(source, 5);
    s = reopen(s);
    assert_fails(lk_selection_undo(s, now, "A.B.", &source), LK_E_INPUT, "no choice");
    assert_ok(act(s, LK_SELECT_CHOOSE, 5, 2, -1));
    /* A crash in the middle of a line. */
    size_t n;
    char *text = test_read(log_path, &n);
    test_write(log_path, text, n - 20);
    s = reopen(s);
    assert_int_equal(lk_selection_chosen(s, 5), 0);
    assert_ok(act(s, LK_SELECT_CHOOSE, 5, 4, -1));
    s = reopen(s);
    assert_int_equal(lk_selection_chosen(s, 5), 4);
    lk_selection_close(s);
    /* A log of other pools. */
    free(text);
    text = test_read(log_path, &n);
    char *file = strstr(text, "\"file\": \"p");
    file[9] = 'q';
    test_write(log_path, text, n);
    free(text);
    assert_fails(lk_selection_open(&s, pools, log_path), LK_E_INPUT,
                 "line 1: field \"file\": expected p5.png, got \"q5.png\"");
}

static enum lk_code open_and_act(void) {
    struct lk_selection *s;
    remove(log_path);
    enum lk_code rc = lk_selection_open(&s, pools, log_path);
    if (!rc) rc = act(s, LK_SELECT_CHOOSE, 5, 2, -1);
    if (!rc) lk_selection_close(s), rc = lk_selection_open(&s, pools, log_path);
    lk_selection_close(s);
    return rc;
}

static void memory_runs_out(void **state) {
    (void)state;
    lk_selection_close(begin());
    /* Every 41st: a pool has 588 lines. */
    enum lk_code rc = LK_E_NOMEM;
    int64_t live = lk_alloc_live(), n = 1;
    for (; rc; n += 41) {
        lk_alloc_fail_at(n);
        rc = open_and_act();
        lk_alloc_fail_at(0);
        if (rc) assert_int_equal(rc, LK_E_NOMEM);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n > 41 * 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_seeded),          cmocka_unit_test(draws_are_the_streams),
        cmocka_unit_test(the_final_set_is_written),  cmocka_unit_test(a_set_is_whole_or_absent),
        cmocka_unit_test(what_is_not_done_is_named), cmocka_unit_test(the_log_says_it_all),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
