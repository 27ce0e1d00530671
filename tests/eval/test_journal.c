/* The journal of a run: who holds which job, what is tried again, what a kill leaves. */
#include "tests/common/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/study/journal.h"

static char path[1100];
static char hash[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static enum lk_code entry(void *context, size_t k, struct lk_journal_entry *out) {
    static char id[32], name[32], output[40];
    snprintf(id, sizeof id, "%zx", k * 7919);
    snprintf(name, sizeof name, "job-%zu", k);
    snprintf(output, sizeof output, "results/job-%zu.png", k);
    *out = (struct lk_journal_entry){(int64_t)k, id, name, output, (int)(k * 3 / *(const size_t *)context)};
    return LK_OK;
}

static const char *const keys[] = {"flux", "step1x", "qwen"};

static struct lk_journal *fresh(size_t n) {
    struct lk_journal *j;
    snprintf(path, sizeof path, "%s", test_path("test.journal"));
    unlink(path);
    assert_ok(lk_journal_open(&j, path, &(struct lk_journal_list){hash, 1, 1, n, keys, 3, entry, NULL, &n}));
    return j;
}

static enum lk_code again(struct lk_journal **out, size_t n) {
    return lk_journal_open(out, path, &(struct lk_journal_list){hash, 1, 1, n, keys, 3, entry, NULL, &n});
}

static int code_of_failures = LK_E_DEVICE;

static bool finish(struct lk_journal *j, const struct lk_journal_lease *lease, bool good) {
    bool kept;
    char line[64];
    snprintf(line, sizeof line, "{\"job\":%d}", (int)lease->index);
    struct lk_journal_made made = {.started_ms = 5,
                                   .seconds = 1.5,
                                   .stages = "{}",
                                   .sha256 = good ? hash : NULL,
                                   .bytes = 100,
                                   .code = good ? 0 : code_of_failures,
                                   .error = good ? NULL : "no picture",
                                   .line = line};
    assert_ok(lk_journal_end(j, lease, &made, &kept));
    return kept;
}

static int64_t count_of(struct lk_journal *j, enum lk_job_state state) {
    struct lk_journal_counts c;
    assert_ok(lk_journal_count(j, &c));
    return c.all[state];
}

static enum lk_code add_line(void *context, const struct lk_journal_row *row) {
    lk_text_add(context, "%s\n", row->made.line);
    return LK_OK;
}

static void jobs_come_in_order_model_by_model(void **state) {
    (void)state;
    struct lk_journal *j = fresh(9);
    struct lk_journal_lease leases[8];
    int n;
    int64_t n_others;
    assert_ok(lk_journal_take(j, -1, 2, leases, &n, &n_others));
    assert_int_equal(n, 2);
    assert_int_equal(leases[1].index, 1);
    assert_ok(lk_journal_take(j, 1, 8, leases, &n, &n_others)); /* what is left of model 1, not of model 0 */
    assert_int_equal(n, 3);
    assert_int_equal(leases[0].index, 3);
    for (int k = 0; k < n; k++) assert_true(finish(j, &leases[k], true));
    assert_ok(lk_journal_take(j, 1, 8, leases, &n, &n_others)); /* model 1 is done: the first that is not */
    assert_int_equal(n, 1);
    assert_int_equal(leases[0].index, 2);
    assert_int_equal(count_of(j, LK_JOB_DONE), 3);
    assert_int_equal(count_of(j, LK_JOB_LEASED), 3);
    assert_ok(lk_journal_give_back(j));
    assert_int_equal(count_of(j, LK_JOB_QUEUED), 6);
    assert_false(finish(j, &leases[0], true)); /* given back: it is not ours any more */
    assert_int_equal(count_of(j, LK_JOB_DONE), 3);
    lk_journal_close(j);
}

/* Whatever a model answers is final: it is asked once, and a refusal is no failure to try again. */
static void a_refusal_is_an_answer(void **state) {
    (void)state;
    struct lk_journal *j = fresh(2), *other;
    struct lk_journal_lease lease;
    int n;
    int64_t n_others, n_again;
    bool kept;
    for (int k = 0; k < 2; k++) { /* without a picture, and with a placeholder */
        assert_ok(lk_journal_take(j, -1, 1, &lease, &n, &n_others));
        assert_int_equal(lease.index, k);
        assert_ok(lk_journal_end(j, &lease,
                                 &(struct lk_journal_made){.stages = "{}",
                                                           .code = k ? 0 : LK_E_IO,
                                                           .error = k ? NULL : "moderation_blocked",
                                                           .sha256 = k ? hash : NULL,
                                                           .refused = true,
                                                           .line = "{}"},
                                 &kept));
        assert_true(kept);
    }
    assert_int_equal(count_of(j, LK_JOB_REFUSED), 2);
    assert_int_equal(count_of(j, LK_JOB_FAILED) + count_of(j, LK_JOB_DONE), 0);
    assert_ok(lk_journal_requeue(j, -1, &n_again)); /* --retry-failed leaves it alone */
    assert_int_equal(n_again, 0);
    assert_ok(lk_journal_take(j, -1, 1, &lease, &n, &n_others));
    assert_int_equal(n, 0);
    lk_journal_close(j);
    size_t one = 1; /* a study that asks for less keeps what was answered */
    char hash_of_less[65];
    snprintf(hash_of_less, sizeof hash_of_less, "%064d", 7);
    assert_ok(
        lk_journal_open(&other, path, &(struct lk_journal_list){hash_of_less, 1, 1, 1, keys, 3, entry, NULL, &one}));
    struct lk_journal_counts counts;
    assert_ok(lk_journal_count(other, &counts));
    assert_int_equal(counts.all[LK_JOB_REFUSED], 1);
    assert_int_equal(counts.n_kept, 1);
    lk_journal_close(other);
}

static enum lk_code digest_entry(void *context, size_t k, struct lk_journal_entry *out) {
    static const char *const ids[] = {"d", "a", "c", "b"};
    (void)context;
    *out = (struct lk_journal_entry){(int64_t)k, ids[k], ids[k], ids[k], 1};
    return LK_OK;
}

static void shuffled_models_are_taken_by_digest(void **state) {
    (void)state;
    struct lk_journal *j;
    struct lk_journal_lease leases[4];
    const bool shuffled[LK_JOURNAL_MAX_MODELS] = {[1] = true};
    int n;
    int64_t n_others;
    snprintf(path, sizeof path, "%s", test_path("test.journal"));
    unlink(path);
    assert_ok(lk_journal_open(&j, path, &(struct lk_journal_list){hash, 1, 1, 4, keys, 3, digest_entry, NULL, NULL}));
    lk_journal_shuffle(j, shuffled);
    assert_ok(lk_journal_take(j, -1, 3, leases, &n, &n_others));
    assert_int_equal(n, 3);
    for (int k = 0; k < 3; k++) assert_int_equal(leases[k].index, ((int[]){1, 3, 2})[k]);
    lk_journal_close(j);
}

static void a_failure_is_tried_three_times_and_kept(void **state) {
    (void)state;
    struct lk_journal *j = fresh(2);
    struct lk_journal_lease lease;
    int n;
    int64_t n_others, n_again;
    for (int k = 0; k < 3; k++) {
        assert_ok(lk_journal_take(j, -1, 1, &lease, &n, &n_others));
        assert_int_equal(n, 1);
        assert_int_equal(lease.index, 0);
        assert_int_equal(lease.attempts, k);
        assert_true(finish(j, &lease, false));
    }
    assert_int_equal(count_of(j, LK_JOB_FAILED), 1);
    assert_ok(lk_journal_take(j, -1, 1, &lease, &n, &n_others));
    assert_int_equal(lease.index, 1);
    assert_true(finish(j, &lease, true));
    struct lk_text lines = {0};
    assert_ok(lk_journal_each(j, -1, true, add_line, &lines));
    assert_string_equal(lines.bytes, "{\"job\":0}\n{\"job\":1}\n");
    lk_text_free(&lines);
    assert_ok(lk_journal_requeue(j, -1, &n_again));
    assert_int_equal(n_again, 1);
    assert_int_equal(count_of(j, LK_JOB_QUEUED), 1);
    assert_ok(lk_journal_each(j, -1, true, add_line, &lines));
    assert_string_equal(lines.bytes, "{\"job\":1}\n");
    lk_text_free(&lines);
    lk_journal_close(j);
}

/* What would fail again is not tried again; what may pass is. */
static void a_final_failure_is_tried_once(void **state) {
    (void)state;
    static const struct {
        int code, attempts;
    } cases[] = {{LK_E_IMAGE, 1},   {LK_E_USAGE, 1}, {LK_E_NONFINITE, 1}, {LK_E_PROMPT, 1}, {LK_E_NOT_FOUND, 3},
                 {LK_E_CHANGED, 3}, {LK_E_NOMEM, 3}, {LK_E_DEVICE, 3},    {LK_E_IO, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_journal *j = fresh(1);
        struct lk_journal_lease lease;
        int n, attempts = 0;
        int64_t n_others;
        code_of_failures = cases[i].code;
        while (!lk_journal_take(j, -1, 1, &lease, &n, &n_others) && n && attempts < 9) {
            assert_true(finish(j, &lease, false));
            attempts++;
        }
        assert_int_equal(attempts, cases[i].attempts);
        assert_int_equal(count_of(j, LK_JOB_FAILED), 1);
        lk_journal_close(j);
    }
    code_of_failures = LK_E_DEVICE;
}

/* A process that takes jobs and is gone before it has done them. */
static void leave(int n_jobs) {
    pid_t child = fork();
    if (!child) {
        struct lk_journal *j;
        struct lk_journal_lease leases[8];
        int n;
        int64_t n_others;
        _exit(lk_journal_open(&j, path, NULL) || lk_journal_take(j, -1, n_jobs, leases, &n, &n_others));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void what_the_dead_held_is_queued(void **state) {
    (void)state;
    struct lk_journal *j = fresh(6), *other;
    struct lk_journal_lease leases[8];
    struct lk_journal_counts counts;
    int n;
    int64_t n_others;
    lk_journal_close(j);
    leave(2);
    assert_ok(again(&j, 6));
    assert_int_equal(count_of(j, LK_JOB_LEASED), 0); /* nobody is at work on them */
    assert_ok(lk_journal_count(j, &counts));
    assert_int_equal(counts.n_gone, 2);
    assert_ok(lk_journal_take(j, -1, 1, leases, &n, &n_others));
    assert_int_equal(leases[0].index, 0);
    assert_int_equal(leases[0].crashes, 0);
    assert_int_equal(n_others, 0);
    /* This process lives: what it holds is not given to another. */
    pid_t child = fork();
    if (!child) {
        bool right = !lk_journal_open(&other, path, NULL) && !lk_journal_take(other, -1, 8, leases, &n, &n_others) &&
                     n == 1 && leases[0].index == 1 && n_others == 1 && !lk_journal_give_back(other);
        _exit(!right);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_of(j, LK_JOB_LEASED), 1);
    lk_journal_close(j);
}

static enum lk_code poison_line(void *context, int64_t index, const char *error, struct lk_text *out) {
    (void)context;
    lk_text_add(out, "%d %s", (int)index, error);
    return out->rc;
}

static void a_job_that_kills_is_found_and_failed(void **state) {
    (void)state;
    struct lk_journal *j = fresh(9);
    struct lk_journal_lease leases[8];
    char me[LK_JOURNAL_OWNER_BYTES];
    int n;
    int64_t n_others;
    lk_journal_owner(getpid(), me);
    assert_ok(lk_journal_take(j, 0, 3, leases, &n, &n_others));
    assert_ok(lk_journal_crashed(j, me, "signal 11", poison_line, NULL, &n));
    assert_int_equal(n, 3);
    /* Nobody knows which of the three it was: each is tried alone, after those that nobody has died of. */
    for (int k = 0; k < 3; k++) {
        assert_ok(lk_journal_take(j, 0, 3, leases, &n, &n_others));
        assert_int_equal(n, 1);
        assert_int_equal(leases[0].index, k);
        if (k != 1) {
            assert_true(finish(j, &leases[0], true));
            continue;
        }
        assert_ok(lk_journal_crashed(j, me, "signal 11", poison_line, NULL, &n));
        assert_int_equal(count_of(j, LK_JOB_FAILED), 0);
        assert_ok(lk_journal_take(j, 0, 3, leases, &n, &n_others));
        assert_int_equal(leases[0].index, 1);
        assert_int_equal(leases[0].crashes, 2);
        assert_ok(lk_journal_crashed(j, me, "signal 11", poison_line, NULL, &n));
    }
    assert_int_equal(count_of(j, LK_JOB_FAILED), 1);
    struct lk_text lines = {0};
    assert_ok(lk_journal_each(j, LK_JOB_FAILED, true, add_line, &lines));
    assert_string_equal(lines.bytes, "1 the worker died of it 3 times, the last time by signal 11\n");
    lk_text_free(&lines);
    lk_journal_close(j);
}

/* The jobs of another version of the study: from job 2 of the first on, and of models in another order. */
static enum lk_code later_entry(void *context, size_t k, struct lk_journal_entry *out) {
    LK_TRY(entry(context, k + 2, out));
    out->index = (int64_t)k;
    out->model = k ? 0 : 1;
    return LK_OK;
}

static enum lk_code later_line(void *context, size_t k, const char *old, struct lk_text *out) {
    (void)context;
    lk_text_add(out, "%zu was %s", k, old);
    return out->rc;
}

static enum lk_code add_row(void *context, const struct lk_journal_row *row) {
    lk_text_add(context, "%d %s %d %d\n", (int)row->entry.index, row->entry.name, row->entry.model, (int)row->state);
    return LK_OK;
}

static void expect_rows(struct lk_journal *j, const char *rows, const char *kept) {
    struct lk_text text = {0};
    lk_text_add(&text, "%s", "");
    assert_ok(lk_journal_each(j, -1, false, add_row, &text));
    assert_string_equal(text.bytes, rows);
    text.n = 0;
    lk_text_add(&text, "%s", "");
    assert_ok(lk_journal_each_kept(j, false, add_row, &text));
    assert_string_equal(text.n ? text.bytes : "", kept);
    lk_text_free(&text);
}

/* Of five jobs the first four are made and the last is in hand; then the study asks for jobs 2 to 6, and then again for
 * what it asked first. */
static void a_changed_study_takes_over_what_it_asks_for(void **state) {
    (void)state;
    struct lk_journal *j = fresh(5);
    struct lk_journal_lease leases[5];
    struct lk_journal_counts c;
    size_t n = 7;
    int n_taken;
    int64_t n_others;
    char *noted;
    const char *const turned[] = {"qwen", "flux"};
    struct lk_journal_list later = {"bbbb", 1, 1, 5, turned, 2, later_entry, later_line, &n};
    for (int m = 0; m < 3; m++) {
        assert_ok(lk_journal_take(j, m, 5, leases, &n_taken, &n_others));
        for (int k = 0; k < n_taken; k++)
            if (leases[k].index < 4) assert_true(finish(j, &leases[k], true));
    }
    assert_ok(lk_journal_model(j, "flux", "the first flux", &noted));
    lk_free(noted);
    lk_journal_close(j);

    assert_ok(lk_journal_open(&j, path, &later));
    assert_string_equal(lk_journal_study(j), "bbbb");
    expect_rows(j, "0 job-2 1 2\n1 job-3 0 2\n2 job-4 0 0\n3 job-5 0 0\n4 job-6 0 0\n", "-5 job-0 0 2\n-4 job-1 0 2\n");
    struct lk_text lines = {0};
    assert_ok(lk_journal_each(j, LK_JOB_DONE, true, add_line, &lines));
    assert_string_equal(lines.bytes, "0 was {\"job\":2}\n1 was {\"job\":3}\n");
    lk_text_free(&lines);
    assert_ok(lk_journal_count(j, &c));
    assert_int_equal(c.n_kept, 2);
    assert_int_equal(c.total, 5);
    assert_string_equal(c.keys[0], "qwen");
    assert_ok(lk_journal_model(j, "flux", "another flux", &noted));
    assert_string_equal(noted, "the first flux");
    lk_free(noted);
    lk_journal_close(j);

    n = 5;
    assert_ok(again(&j, 5));
    expect_rows(j, "0 job-0 0 2\n1 job-1 0 2\n2 job-2 1 2\n3 job-3 1 2\n4 job-4 2 0\n", "");
    lk_journal_close(j);
    n = 7;
    assert_ok(lk_journal_open(&j, path, &later));
    assert_ok(lk_journal_model(j, "step1x", "a model whose pictures are all gone", &noted));
    lk_free(noted);
    assert_ok(lk_journal_prune(j));
    assert_ok(lk_journal_model(j, "step1x", NULL, &noted));
    assert_null(noted);
    assert_ok(lk_journal_model(j, "flux", NULL, &noted));
    assert_string_equal(noted, "the first flux");
    lk_free(noted);
    expect_rows(j, "0 job-2 1 2\n1 job-3 0 2\n2 job-4 0 0\n3 job-5 0 0\n4 job-6 0 0\n", "");
    lk_journal_close(j);
}

static void another_shard_is_refused(void **state) {
    (void)state;
    struct lk_journal *j = fresh(3), *other;
    size_t n = 3;
    struct lk_journal_list list = {hash, 1, 4, n, keys, 3, entry, NULL, &n};
    assert_fails(lk_journal_open(&other, path, &list), LK_E_CHANGED, "is of shard 1/1, not 1/4");
    assert_fails(lk_journal_open(&other, test_path("no.journal"), NULL), LK_E_NOT_FOUND, "no.journal");
    lk_journal_close(j);
    size_t n_bytes;
    char *bytes = test_read(path, &n_bytes);
    bytes[18] = 9; /* SQLite then only reads */
    test_write(path, bytes, n_bytes);
    free(bytes);
    struct lk_journal_lease leases[3];
    int64_t n_others;
    int n_taken;
    assert_ok(again(&j, 3));
    assert_fails(lk_journal_take(j, 0, 3, leases, &n_taken, &n_others), LK_E_INPUT, "byte 18: expected 1");
    lk_journal_close(j);
    test_write(path, "no database, but long enough to look like one", 45);
    assert_fails(again(&j, 3), LK_E_INPUT, "expected what this program wrote");
}

static void the_manifest_knows_when_it_is_old(void **state) {
    (void)state;
    struct lk_journal *j = fresh(3);
    struct lk_journal_lease leases[3];
    int n;
    int64_t n_others;
    bool current;
    assert_ok(lk_journal_manifest_is_current(j, &current));
    assert_false(current);
    assert_ok(lk_journal_take(j, -1, 3, leases, &n, &n_others));
    assert_ok(lk_journal_manifest_begin(j));
    assert_ok(lk_journal_manifest_end(j));
    assert_ok(lk_journal_manifest_is_current(j, &current));
    assert_true(current);
    assert_ok(lk_journal_manifest_begin(j));
    finish(j, &leases[0], true); /* while it is written */
    assert_ok(lk_journal_manifest_end(j));
    assert_ok(lk_journal_manifest_is_current(j, &current));
    assert_false(current);
    lk_journal_close(j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_come_in_order_model_by_model),
        cmocka_unit_test(a_failure_is_tried_three_times_and_kept),
        cmocka_unit_test(a_refusal_is_an_answer),
        cmocka_unit_test(shuffled_models_are_taken_by_digest),
        cmocka_unit_test(a_final_failure_is_tried_once),
        cmocka_unit_test(what_the_dead_held_is_queued),
        cmocka_unit_test(a_job_that_kills_is_found_and_failed),
        cmocka_unit_test(a_changed_study_takes_over_what_it_asks_for),
        cmocka_unit_test(another_shard_is_refused),
        cmocka_unit_test(the_manifest_knows_when_it_is_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
