/* SIGKILL before and in the middle of every write of a session in which two participants answer, each pair of answers
 * made durable together: no acknowledged answer is lost, none is there twice. Everyday a few of the points of a short
 * session, with LIKENESS_TEST_FULL all of one of 50 items. And the same with 50 participants, a few kills or 100. */
#include <signal.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/survey/store.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

enum { MAX_PEOPLE = 50 };
static int n_items = 5, n_people = 2;
static const int64_t start = 1768608000000;
static int64_t n_calls, kill_at;

static void count(void) {
    if (++n_calls == kill_at) raise(SIGKILL);
}

static ssize_t counted_pwrite(int file, const void *bytes, size_t n, off_t at) {
    if (++n_calls == kill_at) { /* half of it */
        if (pwrite(file, bytes, n / 2, at) < 0) _exit(3);
        raise(SIGKILL);
    }
    return pwrite(file, bytes, n, at);
}
static int counted_ftruncate(int file, off_t n) {
    count();
    return ftruncate(file, n);
}
static int counted_unlink(const char *path) {
    count();
    return unlink(path);
}

static void count_system_calls(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)counted_pwrite), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)counted_pwrite), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "ftruncate", (sqlite3_syscall_ptr)counted_ftruncate), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "unlink", (sqlite3_syscall_ptr)counted_unlink), SQLITE_OK);
}

/* In a process of its own: answers all items, and says each position through the pipe once it is acknowledged. */
static void session(struct test_survey *t, int to) {
    struct lk_survey_visitor who[MAX_PEOPLE];
    char token[65];
    count_system_calls();
    if (lk_survey_open(&t->survey, t->study, t->store, true)) _exit(2);
    for (int k = 0; k < n_people; k++) {
        char id[16];
        snprintf(id, sizeof id, "p%d", k);
        test_survey_person(t, id, 0, start, token, &who[k]);
    }
    for (int i = 0; i < n_items; i++) {
        if (lk_survey_together(t->survey)) _exit(2);
        for (int k = 0; k < n_people; k++)
            if (test_survey_answer_all(t, &who[k], i, i % 5, start + i)) _exit(2);
        if (lk_survey_done(t->survey)) _exit(2);
        if (write(to, &i, sizeof i) != sizeof i) _exit(2);
    }
    if (write(to, &n_calls, sizeof n_calls) != sizeof n_calls) _exit(2);
    _exit(0);
}

/* How many writes a whole session made, 0 when it was killed: a few more or less, for ids are hashed with a new salt.
 */
static int64_t run(int64_t at) {
    struct test_survey t;
    int ends[2], position, n_acknowledged = 0, state;
    int64_t total = 0, n_rows, n_different;
    kill_at = at;
    n_calls = 0;
    test_survey_open(&t, "survey-killed", n_items, "\"tasks\":1,\"places\":50,");
    lk_survey_close(t.survey);
    t.survey = NULL;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) session(&t, ends[1]);
    close(ends[1]);
    while (n_acknowledged < n_items && read(ends[0], &position, sizeof position) == sizeof position) {
        assert_int_equal(position, n_acknowledged);
        n_acknowledged++;
    }
    if (n_acknowledged == n_items && read(ends[0], &total, sizeof total) != sizeof total) total = 0;
    close(ends[0]);
    waitpid(child, &state, 0);
    assert_true(WIFSIGNALED(state) ? at && !total : WIFEXITED(state) && !WEXITSTATUS(state) && (!at || total < at));
    assert_ok(lk_survey_open(&t.survey, t.study, t.store, true));
    assert_ok(lk_sql_number(&t.survey->sql, &n_rows, -1, "SELECT count(*) FROM answers", ""));
    assert_ok(lk_sql_number(&t.survey->sql, &n_different, -1,
                            "SELECT count(*) FROM (SELECT DISTINCT claim, position, key FROM answers)", ""));
    assert_int_equal(n_rows, n_different);
    assert_int_equal(n_rows % (10 * n_people), 0); /* all participants' answers to an item are there or none is */
    assert_in_range(n_rows, 10 * n_people * n_acknowledged, 10 * n_people * (n_acknowledged + 1));
    test_survey_close(&t);
    return total;
}

static void no_acknowledged_answer_is_lost(void **state) {
    (void)state;
    int n_killed = 0;
    if (getenv("LIKENESS_TEST_FULL")) n_items = 50;
    int64_t total = run(0), step = getenv("LIKENESS_TEST_FULL") ? 1 : total / 12 + 1;
    assert_in_range(total, 20, 10000);
    for (int64_t at = 1; !run(at); at += step) n_killed++;
    assert_in_range(n_killed, total / step * 9 / 10, total / step * 11 / 10 + 2);
    print_message("%d sessions were killed, each at a write of its own\n", n_killed);
}

static void nor_under_fifty_participants(void **state) {
    (void)state;
    int n_kills = getenv("LIKENESS_TEST_FULL") ? 100 : 4, n_killed = 0;
    n_items = 5;
    n_people = MAX_PEOPLE;
    int64_t total = run(0);
    assert_true(total > n_kills);
    for (int i = 0; i < n_kills; i++) n_killed += !run(1 + i * (total * 9 / 10) / n_kills);
    assert_int_equal(n_killed, n_kills);
    print_message("%d kills under %d participants\n", n_killed, n_people);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_acknowledged_answer_is_lost),
                                       cmocka_unit_test(nor_under_fifty_participants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
