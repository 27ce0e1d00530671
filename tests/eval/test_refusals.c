/* Refusals by group: counted from the manifest, never scored, compared by tests that count sources, and bounds for what
 * is said of the rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/intake/audit.h"
#include "eval/stats/proportion.h"
#include "tests/common/test.h"

enum { N_SOURCES = 40, N_PROMPTS = 6 };

/* Two hosted models. "strict" refuses group b far more often than a; "even" refuses all alike. */
static void make_study(struct lk_text *out) {
    lk_text_add(out,
                "{\"schema\": 2, \"study\": \"asked\", \"attributes\": [{\"name\": \"team\", \"display\": \"Team\", "
                "\"levels\": [\"a\", \"b\"]}], \"sources\": [");
    for (int i = 0; i < N_SOURCES; i++)
        lk_text_add(out, "%s{\"id\": \"s%02d\", \"path\": \"s%d.png\", \"team\": \"%s\"}", i ? ", " : "", i, i,
                    i % 2 ? "b" : "a");
    lk_text_add(out, "], \"prompts\": [");
    for (int i = 0; i < N_PROMPTS; i++)
        lk_text_add(out, "%s{\"id\": \"p%d\", \"text\": \"Prompt %d\", \"category\": \"%s\"}", i ? ", " : "", i, i,
                    i % 2 ? "odd" : "even");
    lk_text_add(out, "], \"models\": {");
    for (int m = 0; m < 2; m++)
        lk_text_add(out,
                    "%s\"%s\": {\"label\": \"%s\", \"hosted\": {\"images_url\": \"http://h/v1\", \"model\": \"m\"}}",
                    m ? ", " : "", m ? "even" : "strict", m ? "Even" : "Strict");
    lk_text_add(
        out,
        "}, \"experiments\": {\"exp1\": {}, \"exp2\": {\"models\": [\"strict\"], \"preserve_with\": \"generic\"}}}");
}

static void add_line(struct lk_text *out, const char *model, int s, int p, const char *arm, const char *status,
                     const char *outcome, const char *stage) {
    lk_text_add(
        out,
        "{\"item_id\":\"%s_s%02d_p%d%s\",\"status\":\"%s\",\"hosted\":{\"outcome\":\"%s\",\"stage\":\"%s\",\"code\":"
        "\"c\",\"http_status\":200,\"n_sent\":1,\"asked_at\":\"2026-11-0%dT10:00:00Z\",\"api_model\":\"m\","
        "\"revised_prompt\":\"Prompt %d%s\"}}\n",
        model, s, p, arm, status, outcome, stage, 1 + s % 3, p, s % 4 ? "" : " of a white man");
}

static void make_manifest(struct lk_text *out) {
    uint64_t random = 4;
    for (int m = 0; m < 2; m++)
        for (int s = 0; s < N_SOURCES; s++)
            for (int p = 0; p < N_PROMPTS; p++) {
                const double u = (double)(test_random(&random) % 1000) / 1000;
                const bool refused = u < (m ? 0.3 : s % 2 ? 0.55 : 0.1);
                const char *model = m ? "even" : "strict";
                if (s == 39 && p == 5)
                    add_line(out, model, s, p, "", "failed", "fault", "");
                else if (!m && p == 0)
                    add_line(out, model, s, p, "", "refused", "refused", "input");
                else if (refused && s % 5 == 4)
                    add_line(out, model, s, p, "", "placeholder", "placeholder", "placeholder");
                else if (refused)
                    add_line(out, model, s, p, "", "refused", "refused", s % 3 ? "input" : "output");
                else
                    add_line(out, model, s, p, "", "success", "made", "");
            }
    for (int s = 0; s < N_SOURCES; s++) /* with what keeps the person, every fifth source is refused */
        for (int p = 0; p < N_PROMPTS; p++)
            add_line(out, "strict", s, p, ".preserved", s % 5 ? "success" : "refused", s % 5 ? "made" : "refused",
                     "input");
}

static void open_audit(struct lk_audit **audit, struct lk_study **study, struct lk_text *manifest) {
    struct lk_text text = {0};
    make_study(&text);
    test_write(test_path("refusals.json"), text.bytes, text.n);
    assert_ok(lk_study_parse(study, text.bytes, text.n, test_path("refusals.json")));
    lk_text_free(&text);
    assert_ok(lk_audit_open(audit, NULL));
    assert_ok(lk_audit_add_study(*audit, *study));
    make_manifest(manifest);
    assert_ok(lk_audit_add_manifest(*audit, manifest->bytes, manifest->n, "manifest.jsonl"));
}

static const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};

static enum lk_code take(void *context, const struct lk_audit_row *row) {
    double *out = context;
    if (!lk_audit_number(row, "x", out)) *out = NAN;
    return LK_OK;
}

static double number_of(struct lk_audit *audit, const char *sql) {
    double x = NAN;
    assert_ok(lk_audit_each(audit, sql, take, &x));
    return x;
}

static int n_with(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
    return n;
}

static void counted_and_never_scored(void **state) {
    (void)state;
    struct lk_audit *audit;
    struct lk_study *study;
    struct lk_text manifest = {0};
    struct lk_dataset data = {0};
    struct lk_study_job job;
    int32_t at;
    open_audit(&audit, &study, &manifest);
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) { /* a judge that saw all, what was refused too */
        assert_ok(lk_study_job(study, i, &job));
        assert_ok(lk_dataset_add(&data, job.name, (int32_t)i, job.arm, &at));
        for (int axis = 0; axis < LK_N_AXES; axis++) data.items[at].judge[0][axis] = 1;
    }
    assert_ok(lk_audit_add_scores(audit, &data));
    assert_ok(lk_audit_complete(audit, &settings));
    const int refused =
        n_with(manifest.bytes, "\"status\":\"refused\"") + n_with(manifest.bytes, "\"status\":\"placeholder\"");
    assert_true(number_of(audit, "SELECT count(*) AS x FROM outcome WHERE who='asked'") ==
                3 * N_SOURCES * N_PROMPTS - 2);
    assert_true(number_of(audit, "SELECT sum(value) AS x FROM outcome WHERE who='asked'") == refused);
    assert_true(number_of(audit, "SELECT count(*) AS x FROM outcome o JOIN outcome r USING(item) WHERE r.who='asked' "
                                 "AND r.value=1 AND o.who<>'asked'") == 0);
    assert_true(number_of(audit, "SELECT count(*) AS x FROM outcome WHERE measure='soft_erasure' AND who='judges'") ==
                3 * N_SOURCES * N_PROMPTS - refused);
    assert_true(number_of(audit, "SELECT sum(n_sent) AS x FROM answer") == 3 * N_SOURCES * N_PROMPTS);
    lk_audit_close(audit);
    lk_study_close(study);
    lk_dataset_free(&data);
    lk_text_free(&manifest);
}

static char *file_of(const char *folder, const char *name) {
    char path[1300];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return test_read(path, &n);
}

static void found_on_the_first_screen(void **state) {
    (void)state;
    struct lk_audit *audit;
    struct lk_study *study;
    struct lk_text manifest = {0};
    struct lk_report_options options;
    char folder[1100];
    snprintf(folder, sizeof folder, "%s", test_path("refusals-report"));
    open_audit(&audit, &study, &manifest);
    assert_ok(lk_audit_complete(audit, &settings));
    lk_report_options_init(&options);
    options.title = "Refusals", options.run = "", options.alpha = 0.05;
    assert_ok(lk_any_report_write(audit, study, &options, folder));
    char *page = file_of(folder, "report.html"), *by_team = file_of(folder, "tables/refusals_by_attribute_team.csv"),
         *findings = file_of(folder, "tables/findings.csv"), *days = file_of(folder, "tables/refusals_over_time.csv"),
         *revised = file_of(folder, "tables/revised_prompts.csv"),
         *prompts = file_of(folder, "tables/refusals_by_prompt.csv");
    const char *found = strstr(page, "Strict: refused, a "), *counted = strstr(page, "Strict refused ");
    if (!found) found = strstr(page, "Strict: refused, b ");
    assert_non_null(found);
    assert_non_null(counted);
    assert_true(counted < found && found < strstr(page, "id=\"section-refusals\""));
    assert_null(strstr(page, "Even: refused, "));
    assert_non_null(strstr(page, "of 479 requests"));
    assert_non_null(strstr(page, "1 more ended in faults"));
    assert_non_null(strstr(page, "prompts refused for all: 1."));
    assert_non_null(strstr(findings, "Team,Refused,Strict,"));
    assert_int_equal(n_with(by_team, "\n"), 5);
    assert_int_equal(n_with(days, "2026-11-0"), 3);
    assert_non_null(strstr(revised, "Strict,480,120,120,0,120,0,"));
    assert_non_null(strstr(prompts, "p0,1,40,40,"));
    char *pairs = file_of(folder, "tables/refusal_pairs.csv");
    assert_non_null(strstr(pairs, "Strict,-0."));
    free(pairs);
    free(page), free(by_team), free(findings), free(days), free(revised), free(prompts);
    lk_audit_close(audit);
    lk_study_close(study);
    lk_text_free(&manifest);
}

/* Rates and a difference as studies of refusals meet them. */
static void rare_rates(void **state) {
    (void)state;
    static const struct {
        int64_t k, n;
        double low, high;
    } cases[] = {{5, 720, 0.297, 1.615}, {19, 720, 1.696, 4.085}, {36, 720, 3.633, 6.844}, {0, 60, 0, 6.017}};
    struct lk_number x;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(lk_proportion(cases[i].k, cases[i].n, LK_WILSON, 0.95, &x));
        assert_true(fabs(100 * x.low - cases[i].low) < 6e-4);
        assert_true(fabs(100 * x.high - cases[i].high) < 6e-4);
    }
    assert_ok(lk_proportion_difference(36, 720, 5, 720, 0.95, &x));
    assert_true(fabs(100 * x.value - 4.306) < 6e-4 && fabs(100 * x.low - 2.658) < 6e-4 &&
                fabs(100 * x.high - 6.192) < 6e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counted_and_never_scored),
                                       cmocka_unit_test(found_on_the_first_screen), cmocka_unit_test(rare_rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
