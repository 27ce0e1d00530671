/* The store of an audit: what is put in comes out as queries, and nothing else can be done with it. */
#include <math.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/intake/internal.h"
#include "eval/intake/gallery.h"
#include "eval/intake/internal.h"
#include "eval/intake/tables.h"
#include "eval/judge/answers.h"
#include "eval/judge/ensemble.h"
#include "eval/judge/prompt.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/study/random.h"
#include "tests/common/html_check.h"
#include "tests/common/test.h"

static const char text[] =
    "{\"schema\": 2, \"study\": \"any\", \"attributes\": [{\"name\": \"tone\", \"display\": \"Tone\", \"levels\": "
    "[\"I\", "
    "\"II\"]}], \"sources\": [{\"id\": \"S1\", \"path\": \"a.png\", \"tone\": \"I\"}, {\"id\": \"S2\", \"path\": "
    "\"b.png\", \"tone\": \"II\"}, {\"id\": \"S3\", \"path\": \"c.png\", \"tone\": \"II\"}], \"prompts\": [{\"id\": "
    "\"K-01\", \"text\": \"Make it a cook.\", \"category\": \"kitchen\"}], \"models\": {\"quick\": {\"path\": "
    "\"black-forest-labs/FLUX.2-dev\", \"label\": \"Quick\"}}, \"experiments\": {\"edits\": {\"kind\": \"edit\", "
    "\"seeds\": "
    "\"0:1\"}}}";
/* Of six outputs five are judged, one by both judges. */
static const char primary[] = "{\"item_id\":\"quick_S1_K-01_s0\",\"scores\":{\"edit_success\":5,\"skin_tone\":3,\"race_"
                              "drift\":1,\"gender_drift\":4,"
                              "\"age_drift\":3}}\n"
                              "{\"item_id\":\"quick_S1_K-01_s1\",\"scores\":{\"edit_success\":1,\"skin_tone\":4,\"race_"
                              "drift\":3,\"gender_drift\":1,"
                              "\"age_drift\":2}}\n"
                              "{\"item_id\":\"quick_S2_K-01_s0\",\"scores\":{\"edit_success\":4,\"skin_tone\":3,\"race_"
                              "drift\":1,\"gender_drift\":1,"
                              "\"age_drift\":3}}\n"
                              "{\"item_id\":\"quick_S3_K-01_s0\",\"scores\":{\"edit_success\":2,\"skin_tone\":3,\"race_"
                              "drift\":1,\"gender_drift\":1,"
                              "\"age_drift\":3}}\n"
                              "{\"item_id\":\"quick_S3_K-01_s1\",\"scores\":{\"edit_success\":5,\"skin_tone\":3,\"race_"
                              "drift\":1,\"gender_drift\":1,"
                              "\"age_drift\":3}}\n";
static const char secondary[] = "{\"item_id\":\"quick_S1_K-01_s0\",\"scores\":{\"edit_success\":3,\"skin_tone\":3,"
                                "\"race_drift\":1,\"gender_drift\":1,"
                                "\"age_drift\":3}}\n";
static const char manifest[] =
    "{\"item_id\":\"quick_S1_K-01_s0\",\"status\":\"success\",\"output_path\":\"x.png\"}\n"
    "{\"item_id\":\"quick_S2_K-01_s1\",\"status\":\"failed\",\"error\":\"no \\\"memory\\\"\"}\n";

static enum lk_code read_answers(struct lk_dataset *data, const char *answers, int slot) {
    struct lk_judge_report report = {0};
    const struct lk_judge_import import = {.slot = slot};
    enum lk_code rc = lk_judge_answers_read(data, answers, strlen(answers), "judge", &import, &report);
    if (!rc && report.n_invalid) rc = lk_fail(LK_E_INPUT, "%zu invalid", report.n_invalid);
    lk_judge_report_free(&report);
    return rc;
}

static const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};

static enum lk_code fill(struct lk_audit *audit, struct lk_dataset *data, const struct lk_study *study) {
    struct lk_study_job job;
    int32_t at;
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
        LK_TRY(lk_study_job(study, i, &job));
        LK_TRY(lk_dataset_add(data, job.name, (int32_t)i, job.arm, &at));
    }
    LK_TRY(read_answers(data, primary, 0));
    LK_TRY(read_answers(data, secondary, 1));
    lk_dataset_pair(data);
    const struct lk_ensemble ensemble = {.rounding = LK_HALF_EVEN};
    lk_ensemble_apply(data, &ensemble, NULL);
    LK_TRY(lk_audit_add_study(audit, study));
    LK_TRY(lk_audit_add_manifest(audit, manifest, sizeof manifest - 1, "manifest.jsonl"));
    LK_TRY(lk_audit_add_scores(audit, data));
    return lk_audit_complete(audit, &settings);
}

/* data: empty; lk_dataset_free in any case. */
static enum lk_code open_filled(struct lk_audit **out, struct lk_dataset *data) {
    struct lk_study *study;
    *out = NULL;
    test_write(test_path("audit.json"), text, sizeof text - 1);
    LK_TRY(lk_study_open(&study, test_path("audit.json")));
    enum lk_code rc = lk_audit_open(out, NULL);
    if (!rc) rc = fill(*out, data, study);
    lk_study_close(study);
    if (rc) {
        lk_audit_close(*out);
        *out = NULL;
    }
    return rc;
}

static struct lk_audit *audit;
static struct lk_dataset scored;
static int open_one(void **state) {
    (void)state;
    assert_ok(open_filled(&audit, &scored));
    return 0;
}
static int close_one(void **state) {
    (void)state;
    lk_audit_close(audit);
    lk_dataset_free(&scored);
    return 0;
}

static enum lk_code keep_number(void *context, const struct lk_audit_row *row) {
    double *out = context;
    *out = NAN;
    lk_audit_number(row, "v", out);
    return LK_OK;
}

static double number_of(const char *sql) {
    double value = -1;
    assert_ok(lk_audit_each(audit, sql, keep_number, &value));
    return value;
}

static void expect(const char *sql, double value) {
    const double got = number_of(sql);
    if (!(fabs(got - value) < 1e-12)) fail_msg("%s: expected %.17g, got %.17g", sql, value, got);
}

static void what_is_put_in_comes_out(void **state) {
    (void)state;
    expect("SELECT count(*) AS v FROM output", 6);
    expect("SELECT count(*) AS v FROM output WHERE status = 'missing'", 4);
    expect("SELECT count(*) AS v FROM output WHERE status = 'failed' AND reason = 'no \"memory\"'", 1);
    expect("SELECT count(*) AS v FROM item WHERE tone = 'II' AND category = 'kitchen' AND model = 'Quick'", 4);
    expect("SELECT sum(seed) AS v FROM item WHERE source_id = 'S2'", 1);
    /* Success: the first output's judges differ, 5 and 3, so it counts half; then 0, 1, 0, 1. */
    expect("SELECT sum(value) AS v FROM measured WHERE measure = 'edit_success' AND who = 'judges'", 2.5);
    expect("SELECT count(value) AS v FROM measured WHERE measure = 'edit_success' AND who = 'judges'", 5);
    expect("SELECT value AS v FROM measured WHERE measure = 'identity_erasure' AND item_id = 'quick_S1_K-01_s0'", 0.5);
    expect("SELECT sum(value) AS v FROM measured WHERE measure = 'age_drift'", 1);
    expect("SELECT sum(value) AS v FROM measured WHERE measure = 'skin_lightening'", 1);
    expect("SELECT count(*) AS v FROM measured WHERE who = 'raters'", 0);
}

static void published_scores_are_rounded_first(void **state) {
    struct lk_audit_settings published = settings;
    (void)state;
    published.published = true;
    assert_ok(lk_audit_complete(audit, &published));
    expect("SELECT value AS v FROM measured WHERE measure = 'edit_success' AND item_id = 'quick_S1_K-01_s0'", 1);
    assert_ok(lk_audit_complete(audit, &settings));
    expect("SELECT value AS v FROM measured WHERE measure = 'edit_success' AND item_id = 'quick_S1_K-01_s0'", 0.5);
}

static void intervals_are_those_of_clusters(void **state) {
    const double y[] = {0.5, 0, 1, 0, 1};
    const int32_t source[] = {0, 0, 1, 2, 2};
    struct lk_cluster_mean mean;
    (void)state;
    assert_ok(lk_cluster_mean(y, source, 5, 0.95, &mean));
    expect("SELECT mean_low(value, source_id) AS v FROM measured WHERE measure = 'edit_success'", mean.cr2.low);
    expect("SELECT mean_high(value, source_id) AS v FROM measured WHERE measure = 'edit_success'", mean.cr2.high);
    expect("SELECT rate_low(value, source_id) AS v FROM measured WHERE measure = 'edit_success'",
           fmax(mean.cr2.low, 0));
    /* Both ends of one gathering. */
    for (int high = 0; high < 2; high++)
        for (int by_both = 0; by_both < 2; by_both++) {
            char sql[2][300];
            const char *end = high ? "high" : "low", *prompt = by_both ? ", item_id" : "";
            snprintf(sql[0], sizeof sql[0],
                     "SELECT rate_%s(value, source_id%s) AS v FROM measured WHERE measure = "
                     "'edit_success'",
                     end, prompt);
            snprintf(sql[1], sizeof sql[1],
                     "SELECT interval_%s(rate_interval(value, source_id%s)) AS v FROM measured "
                     "WHERE measure = 'edit_success'",
                     end, prompt);
            expect(sql[1], number_of(sql[0]));
        }
    assert_true(isnan(number_of("SELECT interval_low(rate_interval(value, source_id)) AS v FROM measured WHERE 0")));
    assert_true(isnan(number_of("SELECT interval_high('0123456789abcdef') AS v")));
    /* Sources by their rows, or by both: a number is no name. */
    expect("SELECT mean_low(value, source_row) AS v FROM measured WHERE measure = 'edit_success'", mean.cr2.low);
    expect("SELECT mean_low(value, CASE source_id WHEN 'S1' THEN 1 WHEN 'S3' THEN '1' END) AS v FROM measured WHERE "
           "measure = 'edit_success'",
           mean.cr2.low);
    assert_true(isnan(number_of("SELECT mean_low(value, source_id) AS v FROM measured WHERE source_id = 'S2'")));
    assert_true(isnan(number_of("SELECT mean_low(value, source_id) AS v FROM measured WHERE source_id = 'S9'")));
}

/* Findings take the mean of an output's seeds: here each has the outcome. */
static void seeds_are_averaged(void **state) {
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 9};
    struct lk_audit_findings *findings;
    struct lk_study *study;
    (void)state;
    assert_ok(lk_study_open(&study, test_path("audit.json")));
    assert_ok(lk_sql_execute(&audit->sql, "UPDATE outcome SET value = 1"));
    assert_ok(lk_audit_findings(audit, study, &options, &findings));
    lk_audit_findings_free(findings);
    assert_ok(lk_audit_complete(audit, &settings));
    lk_study_close(study);
}

static void refused(const char *sql, const char *part) {
    double value;
    assert_fails(lk_audit_each(audit, sql, keep_number, &value), LK_E_INPUT, part);
}

static void only_select_is_allowed(void **state) {
    (void)state;
    /* A table that somebody asks for has an end; what a report reads itself has as many rows as there are outputs. */
    static const char many[] =
        "WITH RECURSIVE c(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM c LIMIT 1000001) SELECT v FROM c";
    struct lk_table *table;
    assert_fails(lk_audit_query(audit, many, &table), LK_E_INPUT, "expected at most 1000000 rows; add LIMIT");
    assert_true(number_of(many) == 1000001);
    refused("DELETE FROM score", "only SELECT");
    refused("UPDATE output SET status = 'made'", "only SELECT");
    refused("ATTACH 'x.sqlite' AS x", "only SELECT");
    refused("PRAGMA journal_mode = OFF", "only SELECT");
    refused("VACUUM INTO 'copy.sqlite'", "only SELECT");
    refused("CREATE TEMP TABLE t(x)", "only SELECT");
    refused("SELECT load_extension('x')", "query: ");
    refused("SELECT writefile('x', 'y')", "no such function");
    refused("SELECT 1; DROP TABLE score", "expected one SELECT");
    refused("", "expected a SELECT, got nothing");
    refused("SELECT nonsense FROM item", "no such column: nonsense");
    expect("SELECT count(*) AS v FROM score", 66);
}

/* Ten thousand damaged queries: none does anything, and the store is as it was. */
static void mutated_queries_do_nothing(void **state) {
    static const char *const seeds[] = {
        "SELECT model, tone, avg(value) AS v FROM measured WHERE measure = 'edit_success' GROUP BY 1, 2 ORDER BY 3",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT sum(i) AS v FROM n",
        "SELECT rate_low(value, source_id) AS v, rate_high(value, source_id) FROM measured GROUP BY measure",
        "INSERT INTO score SELECT * FROM score", "ATTACH 'y.sqlite' AS y; DELETE FROM output"};
    static const char pieces[] = "SELECT FROM()';,*\"-1 9e9 DROP table score item AS v UNION || x'00' NULL";
    struct lk_stream stream;
    double value;
    (void)state;
    const int64_t all = audit->max_steps;
    audit->max_steps = 100000;
    assert_fails(lk_audit_each(audit,
                               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 0 FROM n) SELECT sum(i) FROM n",
                               keep_number, &value),
                 LK_E_INPUT, "query: expected an end within 100000 steps; give joins a condition and recursive");
    lk_stream_named(&stream, 7, "mutated queries");
    for (int i = 0; i < 10000; i++) {
        char sql[300];
        snprintf(sql, sizeof sql, "%s", seeds[i % 5]);
        for (int k = 0; k < 1 + i % 4; k++) {
            const size_t n = strlen(sql);
            int32_t order[16];
            for (int j = 0; j < 16; j++) order[j] = j;
            lk_stream_shuffle(&stream, order, 16);
            const size_t at = (size_t)(order[0] * 256 + order[1] * 16 + order[2]) % n;
            sql[at] = pieces[(size_t)(order[3] * 16 + order[4]) % (sizeof pieces - 1)];
        }
        (void)lk_audit_each(audit, sql, keep_number, &value);
    }
    audit->max_steps = all;
    expect("SELECT count(*) AS v FROM score", 66);
    expect("SELECT count(*) AS v FROM output", 6);
    assert_int_not_equal(access("y.sqlite", F_OK), 0);
}

static void what_is_wrong_is_named(void **state) {
    static const char other[] = "{\"item_id\":\"slow_S1_K-01_s0\",\"status\":\"success\"}\n",
                      none[] = "\n{\"status\":1}\n";
    (void)state;
    assert_fails(lk_audit_add_manifest(audit, other, sizeof other - 1, "m"), LK_E_INPUT,
                 "m: line 1: field \"item_id\": expected an output of the study, got \"slow_S1_K-01_s0\"");
    assert_fails(lk_audit_add_manifest(audit, none, sizeof none - 1, "m"), LK_E_INPUT,
                 "m: line 2: expected \"item_id\" and \"status\"");
    struct lk_dataset data = {0};
    int32_t at;
    assert_ok(lk_dataset_add(&data, "a", 0, LK_ARM_EDITED, &at));
    assert_fails(lk_dataset_add(&data, "a", 1, LK_ARM_EDITED, &at), LK_E_INPUT, "expected each item once");
    assert_fails(lk_dataset_item(&data, "flux_20s_male_black_O-01", 24, &at), LK_E_INPUT,
                 "expected an output of this study");
    lk_dataset_free(&data);
}

/* Three names with an arm and without: pairs are found. */
static void arms_are_partners(void **state) {
    struct lk_dataset data = {0};
    int32_t at;
    (void)state;
    assert_ok(lk_dataset_add(&data, "a", 0, LK_ARM_EDITED, &at));
    assert_ok(lk_dataset_add(&data, "a.preserved", 1, LK_ARM_PRESERVED, &at));
    assert_ok(lk_dataset_add(&data, "b.edited", 2, LK_ARM_EDITED, &at));
    assert_ok(lk_dataset_add(&data, "b.preserved", 3, LK_ARM_PRESERVED, &at));
    assert_ok(lk_dataset_add(&data, "c", 4, LK_ARM_EDITED, &at));
    lk_dataset_pair(&data);
    const int partners[] = {1, 0, 3, 2, -1};
    for (int i = 0; i < 5; i++) assert_int_equal(data.items[i].partner, partners[i]);
    lk_dataset_free(&data);
}

static void a_judge_is_told_what_the_study_says(void **state) {
    struct lk_judge_prompts *prompts;
    struct lk_judge_message message;
    const struct lk_judge_facts facts = {"Make {race} a \"cook\"", "Tone=II, Age={age}"};
    const struct lk_judge_ask ask = {.prompt = LK_JUDGE_PROMPT_V1, .facts = &facts},
                              legacy = {.prompt = LK_JUDGE_PROMPT_LEGACY, .facts = &facts};
    (void)state;
    assert_ok(lk_judge_prompts_load(&prompts));
    assert_ok(lk_judge_message(prompts, "whatever", &ask, &message));
    assert_non_null(
        strstr(message.prompt, "EDIT INSTRUCTION: Make {race} a \"cook\"\nSOURCE INFO: Tone=II, Age={age}\n"));
    assert_null(strstr(message.prompt, "Gender={gender}"));
    assert_int_equal(message.number, -1);
    lk_judge_message_free(&message);
    assert_fails(lk_judge_message(prompts, "whatever", &legacy, &message), LK_E_INPUT, "portrait study alone");
    lk_judge_message_free(&message);
    lk_judge_prompts_free(prompts);
}

static enum lk_code fill_and_query(void) {
    struct lk_audit *one;
    struct lk_table *table = NULL;
    struct lk_dataset data = {0};
    enum lk_code rc = open_filled(&one, &data);
    if (!rc) rc = lk_audit_query(one, "SELECT model, count(*) AS \"n | m\", NULL AS x FROM item GROUP BY 1", &table);
    if (!rc) {
        assert_int_equal(table->n_columns, 3);
        assert_string_equal(table->columns[1], "n / m");
        lk_table_free(table);
    }
    lk_audit_close(one);
    lk_dataset_free(&data);
    return rc;
}

static void queries_are_tables(void **state) {
    (void)state;
    assert_ok(fill_and_query());
}

enum { MAX_CELLS = 10 }; /* of a table */
struct cell_check {
    const char *view;
    char sql[MAX_CELLS][700]; /* that gives k - sum(counted), and 0 where n is the number of rows */
    int n;
};

static enum lk_code note_cell(void *context, const struct lk_audit_row *row) {
    struct cell_check *c = context;
    char heading[200] = "";
    double k = 0, n = 0, value = 0;
    if (lk_audit_text(row, "heading"))
        snprintf(heading, sizeof heading, "heading = '%s' AND ", lk_audit_text(row, "heading"));
    const bool difference = lk_audit_number(row, "value", &value);
    if (c->n == MAX_CELLS) return LK_OK;
    assert_true(lk_audit_number(row, "n", &n));
    assert_true(difference || lk_audit_number(row, "k", &k));
    snprintf(c->sql[c->n++], sizeof *c->sql,
             "SELECT coalesce(sum(counted), 0) - %.17g + 1000 * (count(*) - %.17g) AS v FROM %s WHERE %srow = '%s' AND "
             "column = '%s'",
             difference ? n * value : k, n, c->view, heading, lk_audit_text(row, "row"), lk_audit_text(row, "column"));
    return LK_OK;
}

/* The outputs that a view has for a cell are n, and counted is k, in every table that is of outputs. */
static void the_rows_behind_a_cell_are_its_numbers(void **state) {
    struct lk_attribute tone = {.name = "tone", .display = "Tone"};
    int n_views = 0, n_cells = 0;
    (void)state;
    assert_ok(
        lk_sql_execute(&audit->sql, "INSERT INTO outcome SELECT item, measure, 'raters', 1 - value FROM outcome"));
    for (int t = 0; lk_audit_tables[t]; t++) {
        struct lk_audit_table_file file;
        char id[100];
        assert_ok(lk_audit_table_file(lk_audit_tables[t], &file));
        lk_audit_table_id(lk_audit_tables[t], file.each_attribute ? &tone : NULL, id);
        if (lk_audit_has_view(audit, id)) {
            struct cell_check check = {.view = id};
            char *sql = lk_audit_fill(file.sql, &tone);
            assert_ok(lk_audit_each(audit, sql, note_cell, &check));
            for (int i = 0; i < check.n; i++) expect(check.sql[i], 0);
            n_views++;
            n_cells += check.n;
            lk_free(sql);
        }
        lk_free(file.sql);
    }
    assert_ok(lk_sql_execute(&audit->sql, "DELETE FROM outcome WHERE who = 'raters'"));
    assert_int_equal(n_views, 15); /* all forms "rates" and "differences" but refusals_by_stage, whose rows are made */
    assert_true(n_cells >= 40);
}

static int count_of(const char *page, const char *part) {
    int n = 0;
    for (const char *at = page; (at = strstr(at, part)); at += strlen(part)) n++;
    return n;
}

static void a_gallery_has_each_output_of_a_cell(void **state) {
    static const char of[] = "SELECT item_id, counted FROM rates_by_model WHERE row = 'Edit success'";
    static const struct {
        const char *sql, *part;
    } bad[] = {{"SELECT counted FROM rates_by_model", "expected the query to give the column item_id"},
               {"SELECT item_id FROM rates_by_model", "quick_S1_K-01_s0 twice; a condition is missing"},
               {"SELECT item_id FROM item WHERE 0", "the query gives no rows"},
               {"SELECT 'x' AS item_id", "expected outputs of the study, got \"x\""},
               {"DELETE FROM output", "only SELECT is allowed"}};
    struct lk_report_options options;
    struct lk_gallery shown;
    struct html_counts counts;
    char *page;
    size_t n;
    (void)state;
    lk_report_options_init(&options);
    options.title = "any";
    const char *path = test_path("gallery.html");
    unlink(path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(lk_audit_gallery(audit, &scored, &options, bad[i].sql, path, &shown), LK_E_INPUT, bad[i].part);
    assert_int_equal(access(path, F_OK), -1);
    assert_fails(lk_audit_gallery(audit, &scored, &options, of, test_path("none/gallery.html"), &shown), LK_E_NOT_FOUND,
                 "its folder is not there");
    assert_ok(lk_audit_gallery(audit, &scored, &options, of, path, &shown));
    assert_true(shown.n == 5 && shown.counted == 2.5 && shown.has_counted);
    assert_ok(lk_read_file(path, 1 << 20, &page, &n));
    html_check(page, &counts);
    assert_int_equal(count_of(page, "<article class=\"item\""), 5);
    assert_non_null(strstr(page, "2.5 of 5 outputs are counted: 50.0%."));
    /* Two wholly, one by one judge of two, two not, in this order. */
    const char *whole = strstr(page, "<h2>Counted: 2 of 5</h2>"),
               *half = strstr(page, "<h2>Counted as 0.5: 1 of 5</h2>"),
               *none = strstr(page, "<h2>Not counted: 2 of 5</h2>");
    assert_true(whole && half && none && whole < half && half < none);
    assert_int_equal(count_of(half, "<article"), 3);
    assert_int_equal(count_of(none, "<article"), 2);
    assert_non_null(strstr(half, "5 of 5; judges 5, 3"));
    lk_free(page);
    assert_ok(
        lk_audit_gallery(audit, &scored, &options, "SELECT item_id FROM item WHERE status = 'failed'", path, &shown));
    assert_true(shown.n == 1 && !shown.has_counted);
    assert_ok(lk_read_file(path, 1 << 20, &page, &n));
    assert_non_null(strstr(page, "Make it a cook. (failed)"));
    lk_free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_comes_out),
        cmocka_unit_test(published_scores_are_rounded_first),
        cmocka_unit_test(intervals_are_those_of_clusters),
        cmocka_unit_test(seeds_are_averaged),
        cmocka_unit_test(only_select_is_allowed),
        cmocka_unit_test(mutated_queries_do_nothing),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(arms_are_partners),
        cmocka_unit_test(a_judge_is_told_what_the_study_says),
        cmocka_unit_test(queries_are_tables),
        cmocka_unit_test(the_rows_behind_a_cell_are_its_numbers),
        cmocka_unit_test(a_gallery_has_each_output_of_a_cell),
    };
    return cmocka_run_group_tests(tests, open_one, close_one);
}
