/* Workers of a study: one that dies of a job, four runs of one study at the same time that are killed at random, a disk
 * that is full, signals. */
#include "tests/common/test.h"

#include <signal.h>
#include <unistd.h>

#include "eval/study/journal.h"
#include "tests/common/tiny_study.h"

static char folder[1100];

static int make(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_path("study-workers"));
    tiny_study_make(folder, 4, 1); /* 16 jobs */
    tiny_faults_set(0, 0, 0);
    if (tiny_study_run(folder, "whole", NULL)) fail_msg("see %s/whole.log", folder);
    return 0;
}

static struct lk_journal *journal_of(const char *out) {
    struct lk_journal *journal;
    char path[1200];
    snprintf(path, sizeof path, "%s/%s/journal.sqlite", folder, out);
    return lk_journal_open(&journal, path, NULL) ? NULL : journal;
}

static int64_t count_of(const char *out, enum lk_job_state state) {
    struct lk_journal *journal = journal_of(out);
    struct lk_journal_counts counts = {0};
    if (journal && lk_journal_count(journal, &counts)) counts.all[state] = 0;
    lk_journal_close(journal);
    return counts.all[state];
}

static bool log_has(const char *out, const char *text) {
    char path[1200];
    size_t n;
    snprintf(path, sizeof path, "%s/%s.log", folder, out);
    char *log = test_read(path, &n);
    bool found = strstr(log, text) != NULL;
    free(log);
    return found;
}

static enum lk_code check_innocent(void *context, const struct lk_journal_row *row) {
    if (strcmp(row->entry.name, context) && row->crashes > 1)
        fail_msg("%s: in hand at %d deaths", row->entry.name, row->crashes);
    return LK_OK;
}

/* A job that kills its worker is tried three times, at last alone, and the others are made. */
static void a_poison_job_is_found(void **state) {
    static char name[] = "flux_30s_female_white_V-01";
    char path[1300];
    (void)state;
    tiny_faults_set(0, 0, 0);
    snprintf(tiny_faults->poison, sizeof tiny_faults->poison, "%s", name);
    int code = tiny_study_run(folder, "poison", NULL);
    tiny_faults->poison[0] = 0;
    assert_int_equal(code, 6);
    assert_int_equal(count_of("poison", LK_JOB_FAILED), 1);
    assert_int_equal(count_of("poison", LK_JOB_DONE), 15);
    assert_true(log_has("poison", "died by signal 11"));
    struct lk_journal *journal = journal_of("poison");
    assert_ok(lk_journal_each(journal, -1, false, check_innocent, name));
    lk_journal_close(journal);
    snprintf(path, sizeof path,
             "grep -q '\"item_id\":\"%s\".*\"status\":\"failed\",\"error\":\"the worker died of it 3 times, the last "
             "time by signal 11' %s/poison/manifest.jsonl",
             name, folder);
    assert_int_equal(system(path), 0);
    const char *const retry[] = {"--retry-failed", NULL};
    assert_int_equal(tiny_study_run(folder, "poison", retry), 0);
    tiny_study_same(folder, "poison", "whole");
    tiny_study_remove(folder, "poison");
}

static enum lk_code check_row(void *context, const struct lk_journal_row *row) {
    if (row->state != LK_JOB_DONE || row->attempts != 1)
        fail_msg("%s: state %d, ended %d times", row->entry.name, (int)row->state, row->attempts);
    ++*(int *)context;
    return LK_OK;
}

/* Two of them take one job at a time: the next of the same source or prompt finds what that left encoded. */
static void four_runs_of_one_study(void **state) {
    uint64_t random = 3;
    pid_t pids[4] = {0};
    static const char *const more[2][3] = {{"--queue", "2", NULL}, {"--queue", "1", NULL}};
    int n_kills = getenv("LIKENESS_TEST_FULL") ? 60 : 8, n_rows = 0;
    (void)state;
    tiny_faults_set(0, 0, 0);
    for (int k = 0; k < n_kills; k++) {
        for (int i = 0; i < 4; i++)
            if (!pids[i]) pids[i] = tiny_study_start(folder, "four", "run", more[i % 2]);
        usleep((useconds_t)(test_random(&random) % 200000));
        int victim = (int)(test_random(&random) % 4);
        kill(-pids[victim], SIGKILL);
        tiny_study_wait(pids[victim]);
        pids[victim] = 0;
        if (count_of("four", LK_JOB_DONE) < 16) continue;
        for (int i = 0; i < 4; i++) /* a whole study once more */
            if (pids[i]) tiny_study_wait(pids[i]);
        memset(pids, 0, sizeof pids);
        assert_int_equal(tiny_study_run(folder, "four", NULL), 0);
        tiny_study_same(folder, "four", "whole");
        tiny_study_remove(folder, "four");
    }
    for (int i = 0; i < 4; i++)
        if (pids[i]) assert_int_equal(tiny_study_wait(pids[i]), 0);
    assert_int_equal(tiny_study_run(folder, "four", NULL), 0);
    tiny_study_same(folder, "four", "whole");
    struct lk_journal *journal = journal_of("four");
    assert_ok(lk_journal_each(journal, -1, false, check_row, &n_rows));
    assert_int_equal(n_rows, 16);
    lk_journal_close(journal);
    tiny_study_remove(folder, "four");
}

static void the_disk_is_full(void **state) {
    int n = getenv("LIKENESS_TEST_FULL") ? 40 : 6;
    (void)state;
    tiny_faults_set(0, 0, 0);
    assert_int_equal(tiny_study_run(folder, "full", NULL), 0);
    long long all = atomic_load(&tiny_faults->n_bytes);
    assert_in_range(all, 50000, 1LL << 40);
    tiny_study_remove(folder, "full");
    for (int k = 0; k < n; k++) {
        tiny_faults_set(0, 0, 1 + all * k / n);
        assert_int_equal(tiny_study_run(folder, "full", NULL), 7);
        tiny_faults_set(0, 0, 0); /* space is freed */
        assert_int_equal(tiny_study_run(folder, "full", NULL), 0);
        tiny_study_same(folder, "full", "whole");
        tiny_study_remove(folder, "full");
    }
}

/* The run ends after the step, gives its jobs back and says so; a second signal does not wait. */
static void signals_stop_a_run(void **state) {
    static const struct {
        int number, code;
    } signals[] = {{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}, {SIGHUP, 143}};
    char slow[1100];
    (void)state;
    tiny_faults_set(0, 0, 0);
    snprintf(slow, sizeof slow, "%.1000s-slow", folder);
    tiny_study_make(slow, 1, 1000);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        char path[1300];
        pid_t run = tiny_study_start(slow, "out", "run", NULL);
        memcpy(folder, slow, sizeof slow);
        while (count_of("out", LK_JOB_LEASED) < 2) usleep(1000);
        kill(run, signals[i].number);
        if (i == 0) usleep(20000);
        if (i == 0) kill(run, signals[i].number);
        assert_int_equal(tiny_study_wait(run), signals[i].code);
        assert_int_equal(count_of("out", LK_JOB_DONE), 0);
        if (i) assert_int_equal(count_of("out", LK_JOB_QUEUED), 4);
        if (i) assert_true(log_has("out", "with 4 of 4 jobs left; the same command goes on from here"));
        snprintf(path, sizeof path, "%s/out.log", slow);
        unlink(path);
        tiny_study_remove(folder, "out");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poison_job_is_found),
        cmocka_unit_test(four_runs_of_one_study),
        cmocka_unit_test(the_disk_is_full),
        cmocka_unit_test(signals_stop_a_run),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
