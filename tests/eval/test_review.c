/* Reviewers' decisions: what a journal may hold, which decision stands, and that the judges' scores come back. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/file.h"
#include "eval/judge/answers.h"
#include "eval/judge/ensemble.h"
#include "eval/judge/review.h"
#include "eval/report/report.h"
#include "tests/common/test.h"

#define ITEM "flux_20s_male_black_O-01"

static const char journal[] =
    "{\"item_id\": \"" ITEM "\", \"axis\": \"race_drift\", \"score\": 2, \"reviewer\": \"A\", \"reason\": \"light\"}\n"
    "{\"item_id\": \"" ITEM "\", \"axis\": \"Race Change\", \"score\": \"4\", \"reviewer\": \"B\"}\n"
    "{\"item_id\": \"" ITEM ".edited\", \"axis\": \"skin_stone\", \"score\": 1.0, \"reviewer\": \"A\"}\n"
    "{\"item_id\": \"" ITEM "\", \"axis\": \"skin_tone\", \"score\": null, \"reviewer\": \"B\"}\n"
    "{\"item_id\": \"flux_pair_latino_20s_W-07\", \"axis\": \"assigned\", \"score\": \"Female\", \"reviewer\": \"A\"}\n"
    "{\"item_id\": \"flux_20s_male_black_V-03\", \"axis\": \"age_accuracy\", \"score\": 5, \"reviewer\": \"A\"}\n"
    "{\"item_id\": \"flux_20s_male_black_O-09\", \"axis\": \"age_drift\", \"score\": 5, \"reviewer\": \"A\"}\n";

static const char answers[] =
    "{\"item_id\": \"" ITEM "\", \"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 1, "
    "\"age_drift\": 3}\n"
    "{\"item_id\": \"flux_pair_latino_20s_W-07\", \"assigned\": \"male\"}\n"
    "{\"item_id\": \"flux_20s_male_black_V-03\", \"edit_success\": 4, \"skin_tone\": 3, \"race_drift\": 1, "
    "\"gender_drift\": 1, \"age_accuracy\": 3}\n";

static void judged(struct lk_dataset *data) {
    struct lk_judge_report report = {0};
    lk_dataset_init(data);
    assert_ok(lk_judge_answers_read(data, answers, sizeof answers - 1, "a", &(struct lk_judge_import){0}, &report));
    assert_int_equal(report.n_matched, 3);
    lk_judge_report_free(&report);
    lk_ensemble_apply(data, &(struct lk_ensemble){0}, NULL);
}

static void the_last_decision_stands(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_review review = {0};
    struct lk_review_counts counts;
    judged(&data);
    assert_ok(lk_review_read(&review, journal, sizeof journal - 1, "r.jsonl"));
    assert_int_equal(review.n, 7);
    assert_int_equal(review.n_invalid, 0);
    assert_string_equal(review.list[0].reason, "light");
    assert_int_equal(review.list[3].score, LK_REVIEW_WITHDRAWN);
    assert_int_equal(review.list[4].line, 5);
    assert_ok(lk_review_apply(&data, &review, &counts));
    assert_int_equal(counts.n_standing, 3); /* race, role, age; the skin tone is withdrawn */
    assert_int_equal(counts.n_replaced, 2);
    assert_int_equal(counts.n_unknown, 1);
    const struct lk_item *items = data.items;
    assert_int_equal(items[0].reviewed_axes, 1 << LK_AXIS_RACE_DRIFT);
    assert_int_equal(items[0].reviewed[LK_AXIS_RACE_DRIFT], 4);
    assert_int_equal(items[1].reviewed_axes, 1 << LK_REVIEW_ROLE);
    assert_int_equal(items[1].reviewed_role, LK_ROLE_FEMALE);
    assert_int_equal(items[2].reviewed[LK_AXIS_AGE_DRIFT], 5);

    assert_int_equal(items[0].score[LK_AXIS_RACE_DRIFT], 1); /* beside, not over it */
    lk_review_swap(&data);
    assert_int_equal(items[0].score[LK_AXIS_RACE_DRIFT], 4);
    assert_int_equal(items[0].score[LK_AXIS_SKIN_TONE], 3);
    assert_int_equal(items[1].role, LK_ROLE_FEMALE);
    assert_int_equal(items[2].score[LK_AXIS_AGE_DRIFT], 5);
    assert_int_equal(items[0].judge[0][LK_AXIS_RACE_DRIFT], 1);
    lk_review_swap(&data);
    assert_int_equal(items[0].score[LK_AXIS_RACE_DRIFT], 1);
    assert_int_equal(items[1].role, LK_ROLE_MALE);
    assert_int_equal(items[2].score[LK_AXIS_AGE_DRIFT], 3);
    lk_review_free(&review);
    lk_dataset_free(&data);
}

static void a_bad_decision_is_named(void **state) {
    (void)state;
#define RECORD(id, axis, score, rest)                                                                                  \
    "{\"item_id\": " id ", \"axis\": " axis ", \"score\": " score ", \"reviewer\": " rest "}"
    const struct {
        const char *text, *reason;
    } cases[] = {
        {RECORD("\"nonsense\"", "\"race_drift\"", "2", "\"A\""), "is no prompt"},
        {RECORD("7", "\"race_drift\"", "2", "\"A\""), "item_id: expected a string"},
        {RECORD("\"" ITEM "\"", "\"hair\"", "2", "\"A\""), "\"hair\" is no axis of this item"},
        {RECORD("\"" ITEM "\"", "\"role\"", "\"male\"", "\"A\""), "\"role\" is no axis of this item"},
        {RECORD("\"" ITEM "\"", "\"age_accuracy\"", "3", "\"A\""), "is no axis of this item"},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "0", "\"A\""), "expected an integer from 1 to 5, or none, got \"0\""},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "3.5", "\"A\""), "got \"3.5\""},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "true", "\"A\""), "got \"nothing\""},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "\"\"", "\"A\""), "got \"nothing\""},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "2", "\"\""), "reviewer: expected a name"},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "2", "\"A\\nB\""), "reviewer: expected a name"},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "2", "\"A\", \"time\": \"2026-13-01\""), "time: expected"},
        {RECORD("\"" ITEM "\"", "\"race_drift\"", "2", "\"A\", \"time\": \"2026-01-17T10:00:00\""), "time: expected"},
        {RECORD("\"flux_pair_latino_20s_W-07\"", "\"role\"", "\"both\"", "\"A\""), "male, female or unclear"},
        {"{\"item_id\": \"" ITEM "\", \"axis\": \"race_drift\", \"reviewer\": \"A\"}", "got \"nothing\""},
        {"{\"item_id\": \"cut", "record: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_review review = {0};
        assert_ok(lk_review_read(&review, cases[i].text, strlen(cases[i].text), "r.jsonl"));
        assert_int_equal(review.n, 0);
        assert_int_equal(review.n_invalid, 1);
        if (!strstr(review.rejects.list[0].reason, cases[i].reason))
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].reason, review.rejects.list[0].reason);
        lk_review_free(&review);
    }
}

static void a_table_that_was_filled_in(void **state) {
    (void)state;
    static const char table[] =
        "item_id,axis,score,reviewer,time,reason\n" ITEM ",race_drift,2,A,2026-01-17,\"x, y\"\n" ITEM
        ",skin_tone,,,,\n" ITEM ",age_drift,4,,,\n" ITEM ",age_drift,none,,,\n";
    struct lk_review review = {.by = "C", .when = ""};
    assert_ok(lk_review_read(&review, table, sizeof table - 1, "r.csv"));
    assert_int_equal(review.n, 3);
    assert_int_equal(review.n_open, 1);
    assert_string_equal(review.list[0].reviewer, "A");
    assert_string_equal(review.list[0].reason, "x, y");
    assert_string_equal(review.list[1].reviewer, "C");
    assert_int_equal(review.list[2].score, LK_REVIEW_WITHDRAWN);
    lk_review_free(&review);
    static const char other[] = "item,score\na,1\n";
    assert_fails(lk_review_read(&review, other, sizeof other - 1, "r.csv"), LK_E_INPUT, "item_id");
    lk_review_free(&review);
}

static void a_journal_only_grows(void **state) {
    (void)state;
    const char *path = test_path("review.jsonl");
    char *text;
    size_t n;
    unlink(path);
    assert_ok(lk_append_lines(path, "one\n", 4));
    assert_ok(lk_append_lines(path, "two\nthree\n", 10));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "cut", 3), 3);
    close(fd);
    assert_ok(lk_append_lines(path, "four\n", 5));
    assert_ok(lk_read_file(path, 1000, &text, &n));
    assert_string_equal(text, "one\ntwo\nthree\ncut\nfour\n");
    lk_free(text);
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){30, limit.rlim_max}; /* holds half of the line */
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum lk_code rc = lk_append_lines(path, "five, which is long\n", 20);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_fails(rc, LK_E_IO, "cannot write");
    assert_ok(lk_read_file(path, 1000, &text, &n));
    assert_string_equal(text, "one\ntwo\nthree\ncut\nfour\n");
    lk_free(text);
    assert_fails(lk_append_lines(test_path(""), "x\n", 2), LK_E_IO, "cannot open");
    assert_fails(lk_append_lines("/dev/null", "x\n", 2), LK_E_NOT_REGULAR, "regular");
}

static enum lk_code read_and_apply(void) {
    struct lk_dataset data;
    struct lk_review review = {0};
    lk_dataset_init(&data);
    int32_t at;
    enum lk_code rc = lk_dataset_item(&data, ITEM, sizeof ITEM - 1, &at);
    if (!rc) rc = lk_review_read(&review, journal, sizeof journal - 1, "r.jsonl");
    if (!rc) rc = lk_review_apply(&data, &review, NULL);
    lk_review_free(&review);
    lk_dataset_free(&data);
    return rc;
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    test_every_allocation(read_and_apply, 8);
}

static const struct lk_cell *cell(const struct lk_report *report, const char *id, const char *row, int column) {
    const struct lk_table *table = lk_report_table(report, id);
    assert_non_null(table);
    for (int r = 0; r < table->n_rows; r++)
        if (!strcmp(table->rows[r].cells[0].text, row)) return &table->rows[r].cells[column];
    fail_msg("%s: no row %s", id, row);
    return NULL;
}

static void assert_share(const struct lk_cell *cell, int64_t k, int64_t n) {
    assert_int_equal(cell->count, k);
    assert_int_equal(cell->n, n);
}

/* Race: judges 1, 2, 4, 5 and 1, 4, 1, 5; the second and third are flagged, the second decided as 4, the last as 2. */
static void the_report_shows_both(void **state) {
    (void)state;
    static const char decisions[] =
        "[{\"item_id\": \"flux_20s_male_black_O-02\", \"axis\": \"race_drift\", \"score\": 4, \"reviewer\": \"A\"},"
        "{\"item_id\": \"flux_20s_male_black_O-04\", \"axis\": \"race_drift\", \"score\": 2, \"reviewer\": \"A\"}]";
    const uint8_t race[LK_N_JUDGES][4] = {{1, 2, 4, 5}, {1, 4, 1, 5}};
    struct lk_dataset data;
    struct lk_review review = {0};
    struct lk_report_options options;
    struct lk_report *report;
    lk_dataset_init(&data);
    for (int i = 0; i < 4; i++) {
        char id[64];
        int32_t at;
        snprintf(id, sizeof id, "flux_20s_male_black_O-0%d", i + 1);
        assert_ok(lk_dataset_item(&data, id, strlen(id), &at));
        for (int j = 0; j < LK_N_JUDGES; j++) {
            memset(data.items[at].judge[j], 3, LK_N_AXES);
            data.items[at].judge[j][LK_AXIS_RACE_DRIFT] = race[j][i];
        }
    }
    lk_ensemble_apply(&data, &(struct lk_ensemble){0}, NULL);
    lk_report_options_init(&options);
    options.n_bootstrap = 10;
    assert_ok(lk_report_build(&report, &data, &options));
    assert_null(lk_report_table(report, "review_rates")); /* nobody reviewed */
    assert_true(cell(report, "judge_drift", "Race Change", 2)->value == 3);
    assert_true(cell(report, "judge_drift", "Race Change", 4)->value == -0.25);
    assert_share(cell(report, "judge_drift", "Race Change", 5), 1, 4);
    assert_share(cell(report, "judge_drift", "Race Change", 6), 1, 4);
    lk_report_free(report);

    assert_ok(lk_review_read(&review, decisions, sizeof decisions - 1, "r.json"));
    assert_ok(lk_review_apply(&data, &review, NULL));
    assert_ok(lk_report_build(&report, &data, &options));
    assert_share(cell(report, "review_rates", "Race change", 1), 2, 4); /* 1, 2, 4, 5 */
    assert_share(cell(report, "review_rates", "Race change", 2), 2, 4); /* 1, 4, 4, 2 */
    assert_share(cell(report, "review_rates", "Identity erasure", 2), 2, 4);
    assert_int_equal(cell(report, "review_decisions", "Race Change", 1)->value, 2);
    assert_int_equal(cell(report, "review_decisions", "Race Change", 2)->value, 1);
    assert_int_equal(cell(report, "review_decisions", "Race Change", 3)->value, 2);
    assert_share(cell(report, "review_decisions", "Race Change", 4), 0, 2);
    assert_share(cell(report, "review_decisions", "Race Change", 5), 0, 2);
    assert_share(cell(report, "review_decisions", "Race Change", 6), 1, 2);
    assert_int_equal(data.items[1].score[LK_AXIS_RACE_DRIFT], 2);
    lk_report_free(report);
    lk_review_free(&review);
    lk_dataset_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_decision_stands),   cmocka_unit_test(a_bad_decision_is_named),
        cmocka_unit_test(a_table_that_was_filled_in), cmocka_unit_test(a_journal_only_grows),
        cmocka_unit_test(no_memory_leaves_nothing),   cmocka_unit_test(the_report_shows_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
