/* The report's tables of refusals against pandas, statsmodels and CR2 written from its papers: each cell of each table
 * of tests/golden/data/refusals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/intake/audit.h"
#include "tests/common/served.h"
#include "tests/common/test.h"

enum { CELLS = 40, LINES = 1000, SOURCES = 28, PROMPTS = 8 };

/* A table without quoted cells, in place. */
struct csv {
    char *text, *cells[LINES][CELLS];
    int n_lines, n_columns;
};

static void read_csv(const char *path, struct csv *out) {
    size_t n;
    *out = (struct csv){.text = test_read(path, &n)};
    for (char *line = out->text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (end > line && end[-1] == '\r') end[-1] = 0;
        if (*end) *end++ = 0;
        int k = 0;
        for (char *at = line; at; k++) {
            char *comma = strchr(at, ',');
            if (comma) *comma++ = 0;
            assert_in_range(k, 0, CELLS - 1);
            out->cells[out->n_lines][k] = at;
            at = comma;
        }
        if (!out->n_lines) out->n_columns = k;
        assert_int_equal(k, out->n_columns);
        assert_in_range(out->n_lines++, 0, LINES - 1);
    }
}

static const char *cell(const struct csv *c, int line, const char *column) {
    for (int k = 0; k < c->n_columns; k++)
        if (!strcmp(c->cells[0][k], column)) return c->cells[line][k];
    fail_msg("there is no column \"%s\"", column);
    return NULL;
}

static void make_study(const struct csv *a, struct lk_text *out) {
    lk_text_add(out, "{\"schema\": 2, \"study\": \"asked\", \"attributes\": [{\"name\": \"race\", \"levels\": [\"r0\", "
                     "\"r1\", \"r2\", \"r3\"]}, {\"name\": \"gender\", \"levels\": [\"f\", \"m\"]}], \"sources\": [");
    for (int s = 0; s < SOURCES; s++)
        for (int i = 1; i < a->n_lines; i++) {
            if (atoi(cell(a, i, "source") + 1) != s) continue;
            lk_text_add(out, "%s{\"id\": \"s%02d\", \"path\": \"s%d.png\", \"race\": \"%s\", \"gender\": \"%s\"}",
                        s ? ", " : "", s, s, cell(a, i, "race"), cell(a, i, "gender"));
            break;
        }
    lk_text_add(out, "], \"prompts\": [");
    for (int p = 0; p < PROMPTS; p++)
        lk_text_add(out, "%s{\"id\": \"p%d\", \"text\": \"Prompt %d\", \"category\": \"c%d\"}", p ? ", " : "", p, p,
                    p % 2);
    lk_text_add(out, "], \"models\": {");
    for (int m = 0; m < 2; m++)
        lk_text_add(out,
                    "%s\"%s\": {\"label\": \"%s\", \"hosted\": {\"images_url\": \"http://h/v1\", \"model\": \"m\"}}",
                    m ? ", " : "", m ? "even" : "strict", m ? "Even" : "Strict");
    lk_text_add(out, "}, \"experiments\": {\"exp1\": {}, \"exp2\": {\"models\": [\"strict\"], \"preserve_with\": "
                     "\"generic\"}}}");
    assert_int_equal(out->rc, LK_OK);
}

static void item_of(const struct csv *a, int i, char out[80]) {
    snprintf(out, 80, "%s_%s_%s%s", cell(a, i, "model"), cell(a, i, "source"), cell(a, i, "prompt"),
             strcmp(cell(a, i, "arm"), "edited") ? ".preserved" : "");
}

static void make_manifest(const struct csv *a, struct lk_text *out) {
    char item[80];
    for (int i = 1; i < a->n_lines; i++) {
        const char *outcome = cell(a, i, "outcome");
        item_of(a, i, item);
        lk_text_add(out,
                    "{\"item_id\":\"%s\",\"status\":\"%s\",\"hosted\":{\"outcome\":\"%s\",\"stage\":\"%s\",\"code\":"
                    "\"c\",\"http_status\":200,\"n_sent\":1,\"asked_at\":\"2026-11-0%sT10:00:00Z\",\"api_model\":\"m\""
                    "}}\n",
                    item,
                    !strcmp(outcome, "made")    ? "success"
                    : !strcmp(outcome, "fault") ? "failed"
                                                : outcome,
                    outcome, cell(a, i, "stage"), cell(a, i, "day"));
    }
}

/* A judge of what was made: erased or done. */
static void judge(const struct lk_study *study, const struct csv *a, struct lk_dataset *data) {
    struct lk_study_job job;
    char item[80];
    int32_t at;
    for (size_t k = 0; k < lk_study_n_jobs(study); k++) {
        assert_ok(lk_study_job(study, k, &job));
        for (int i = 1; i < a->n_lines; i++) {
            item_of(a, i, item);
            if (strcmp(item, job.name) != 0 || !*cell(a, i, "erased")) continue;
            assert_ok(lk_dataset_add(data, job.name, (int32_t)k, job.arm, &at));
            for (int axis = 0; axis < LK_N_AXES; axis++)
                data->items[at].judge[0][axis] = *cell(a, i, "erased") == '1' ? 1 : 5;
        }
    }
}

static char folder[1100];

static int begin(void **state) {
    (void)state;
    static struct csv a;
    struct lk_text text = {0}, manifest = {0};
    struct lk_audit *audit;
    struct lk_study *study;
    struct lk_dataset data = {0};
    struct lk_report_options options;
    const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};
    read_csv("golden/data/refusals/answers.csv", &a);
    make_study(&a, &text);
    test_write(test_path("refusal-tables.json"), text.bytes, text.n);
    assert_ok(lk_study_parse(&study, text.bytes, text.n, test_path("refusal-tables.json")));
    make_manifest(&a, &manifest);
    judge(study, &a, &data);
    assert_ok(lk_audit_open(&audit, NULL));
    assert_ok(lk_audit_add_study(audit, study));
    assert_ok(lk_audit_add_manifest(audit, manifest.bytes, manifest.n, "manifest.jsonl"));
    assert_ok(lk_audit_add_scores(audit, &data));
    assert_ok(lk_audit_complete(audit, &settings));
    lk_report_options_init(&options);
    options.title = "Refusals", options.run = "", options.alpha = 0.05;
    snprintf(folder, sizeof folder, "%s", test_path("refusal-tables"));
    assert_ok(lk_any_report_write(audit, study, &options, folder));
    lk_audit_close(audit);
    lk_study_close(study);
    lk_dataset_free(&data);
    lk_text_free(&text);
    lk_text_free(&manifest);
    free(a.text);
    return 0;
}

/* The line that has the same texts in its first columns; its numbers are the reference's. */
static int expect_line(const struct csv *want, int line, const struct csv *got, const char *name) {
    int n = 0;
    for (int i = 1; i < got->n_lines; i++) {
        bool same = true;
        for (int k = 0; k < want->n_columns && same; k++) {
            char *end;
            strtod(want->cells[line][k], &end);
            if (*end) same = !strcmp(cell(got, i, want->cells[0][k]), want->cells[line][k]);
        }
        if (!same) continue;
        for (int k = 0; k < want->n_columns; k++) {
            char *end;
            const double x = strtod(want->cells[line][k], &end), y = atof(cell(got, i, want->cells[0][k]));
            if (*end) continue;
            /* statsmodels' Clopper-Pearson by SciPy's beta and the tails of F are good to nine digits */
            if (!(fabs(y - x) <= 1e-9 * fmax(fabs(x), 1e-3)))
                fail_msg("%s, line %d, %s: expected %.15g, got %.15g", name, line, want->cells[0][k], x, y);
            n++;
        }
        return n;
    }
    fail_msg("%s: there is no line as line %d", name, line);
    return 0;
}

/* Each number of the references' tables, found in the folder's. */
static const struct table {
    const char *name;
    int n; /* numbers in it */
} report_tables[] = {{"refusals_by_stage_race", 8 * 25},
                     {"refusal_differences_race", 8 * 9},
                     {"refusal_factors", 10 * 4},
                     {"refusal_pairs", 3},
                     {"refusal_changes", 6},
                     {"refusals_over_time", 3 * 10},
                     {"refusal_bounds_race", 8 * 5}},
  compare_tables[] = {{"compare_models", 5 * 6}, {"compare_race", 20 * 6}};

static void expect_tables(const char *of, const struct table *tables, size_t n_tables) {
    static struct csv want, got;
    for (size_t t = 0; t < n_tables; t++) {
        char path[1300];
        int n = 0;
        snprintf(path, sizeof path, "golden/data/refusals/%s.csv", tables[t].name);
        read_csv(path, &want);
        snprintf(path, sizeof path, "%s/tables/%s.csv", of, tables[t].name);
        read_csv(path, &got);
        for (int i = 1; i < want.n_lines; i++) n += expect_line(&want, i, &got, tables[t].name);
        assert_int_equal(n, tables[t].n);
        free(want.text);
        free(got.text);
    }
}

static void tables_are_the_references(void **state) {
    (void)state;
    expect_tables(folder, report_tables, sizeof report_tables / sizeof *report_tables);
}

/* The same asked again, by another answer for some and none for others. */
static void two_runs_compared(void **state) {
    struct lk_any_compare how = {
        .files = {"first", "second"}, .names = {"October", "November"}, .title = "t", .alpha = 0.05};
    char *texts[2], to[1100], path[1300];
    (void)state;
    snprintf(to, sizeof to, "%s", test_path("refusals-compared"));
    for (int r = 0; r < 2; r++) {
        snprintf(path, sizeof path, "golden/data/refusals/outcomes_%s.csv", how.files[r]);
        how.texts[r] = texts[r] = test_read(path, &how.n[r]);
    }
    assert_ok(lk_any_compare(&how, to));
    expect_tables(to, compare_tables, sizeof compare_tables / sizeof *compare_tables);
    snprintf(path, sizeof path, "%s/findings.txt", to);
    char *found = test_read(path, NULL);
    assert_non_null(strstr(found, "Strict, Refused: 16.7%, then 7.4%: -9.3 pp [-14.9, -3.6]."));
    assert_non_null(strstr(found, "Strict, Refused, preserved: 14.6%, then 9.1%: -5.5 pp [-10.4, -0.5]."));
    assert_null(strstr(found, "Even"));
    free(found);
    /* Nothing in common; what is no report's. */
    how.texts[1] =
        "model_key,model,source_id,prompt_id,arm,seed,who,measure,measure_display,value\nx,X,s,p,edited,0,asked,"
        "refused,Refused,1\n";
    how.n[1] = strlen(how.texts[1]);
    assert_fails(lk_any_compare(&how, to), LK_E_INPUT, "no output of first is in second");
    how.texts[1] =
        "model_key,model,source_id,prompt_id,arm,seed,who,measure,measure_display,value\nx,X,s,p,edited,0,asked,"
        "refused,Refused,7\n";
    assert_fails(lk_any_compare(&how, to), LK_E_INPUT,
                 "second: line 2, column 10 (\"value\"): expected a number from 0 to 1");
    how.texts[1] = "a,b\n1,2\n", how.n[1] = 8;
    assert_fails(lk_any_compare(&how, to), LK_E_INPUT, "model_key");
    for (int r = 0; r < 2; r++) free(texts[r]);
}

/* The command reads what the report has written; beside itself nothing differs. */
static void the_command_compares_reports(void **state) {
    char to[1100], line[200], path[1300];
    (void)state;
    snprintf(to, sizeof to, "%s", test_path("refusals-same"));
    const char *const argv[] = {"likeness", "report", "compare", folder, folder, "-o", to, NULL};
    assert_int_equal(served_end(served_start(argv, line)), 0);
    assert_string_equal(line, "No outcome is seen to differ.\n");
    static struct csv t;
    snprintf(path, sizeof path, "%s/tables/compare_models.csv", to);
    read_csv(path, &t);
    assert_in_range(t.n_lines, 4, LINES);
    for (int i = 1; i < t.n_lines; i++) assert_true(atof(cell(&t, i, "Difference")) == 0);
    free(t.text);
}

/* What the differences are of people and prompts, beside what counts alone say; who is judged and who stands first. */
static void differences_count_people(void **state) {
    static struct csv t;
    char path[1300];
    int n_found = 0, n_ranges = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/tables/refusal_differences_race.csv", folder);
    read_csv(path, &t);
    for (int i = 1; i < t.n_lines; i++) {
        const bool range = !strcmp(cell(&t, i, "Level"), "Largest minus smallest");
        const double low = atof(cell(&t, i, "Difference low")), high = atof(cell(&t, i, "Difference high")),
                     value = atof(cell(&t, i, "Difference"));
        assert_true(!*cell(&t, i, "Difference low") || (low <= value && value <= high));
        n_ranges += range;
        if (range) continue;
        const double p = atof(cell(&t, i, "Adjusted p"));
        assert_in_range((int)(10000 * p), 0, 10000);
        assert_true(fabs(value - atof(cell(&t, i, "By counts alone"))) < 0.05); /* faults are few */
        if (p > 0.01) continue;
        n_found++;
        assert_string_equal(cell(&t, i, "group"), "Strict");
        assert_string_equal(cell(&t, i, "Level"), "r2");
    }
    assert_int_equal(n_found, 1);
    assert_int_equal(n_ranges, 2);
    free(t.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_are_the_references), cmocka_unit_test(two_runs_compared),
                                       cmocka_unit_test(the_command_compares_reports),
                                       cmocka_unit_test(differences_count_people)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
