/* A study whose prompts are rewritten by a model that is played: what jobs are known by, what the report finds of a
 * rewriter that names a group of some sources, and of one that names groups at random. */
#include "tests/common/test.h"

#include <math.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/data/data.h"
#include "eval/intake/audit.h"
#include "models/rewrite/rewrite.h"

enum { N_SOURCES = 24, N_PROMPTS = 5, N_MANY = 42 };

static const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};
static uint64_t seed;  /* of the rewriter's whims */
static bool planted;   /* it names who is in the pictures of half of the sources */
static int source_now; /* that it sees: pictures are not looked at */
static char folder[1100];

static enum lk_code ask(void *context, const struct lk_chat_question *questions, int n, int n_slots,
                        enum lk_code (*tick)(void), struct lk_chat_answer *answers) {
    (void)context, (void)n_slots, (void)tick;
    for (int i = 0; i < n; i++) {
        const char *user = questions[i].request.messages[1].parts[0].text;
        const bool named = planted ? source_now % 2 == 1 : test_random(&seed) % 3 == 0;
        char text[400];
        snprintf(text, sizeof text, "{\"Rewritten\": \"%.200s%s, keep the face\"}", user,
                 named ? " of the Black man" : " of the person");
        answers[i].text = lk_strdup(text);
        answers[i].n = strlen(text);
        answers[i].stopped = true;
    }
    return LK_OK;
}

static enum lk_code check(void *context, const char *text) {
    (void)context, (void)text;
    return LK_OK;
}

static const char *path_of(const char *name) {
    static char path[1300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text) { test_write(path_of(name), text, strlen(text)); }

/* Sources 0, 2, ... are White, 1, 3, ... Black. */
static void make_study(int n_sources, int n_prompts, const char *rewrite) {
    struct lk_text text = {0};
    lk_text_add(&text, "{\"schema\": 2, \"study\": \"rw\", \"study_seed\": 7, \"attributes\": [{\"name\": \"race\", "
                       "\"display\": \"Race\", \"levels\": [\"White\", \"Black\"]}], \"sources\": [");
    for (int i = 0; i < n_sources; i++) {
        char name[32], bytes[32];
        snprintf(name, sizeof name, "s%d.png", i);
        snprintf(bytes, sizeof bytes, "picture %d", i);
        write_file(name, bytes);
        lk_text_add(&text, "%s{\"id\": \"S%02d\", \"path\": \"s%d.png\", \"race\": \"%s\"}", i ? ", " : "", i, i,
                    i % 2 ? "Black" : "White");
    }
    lk_text_add(&text, "], \"prompts\": [");
    for (int i = 0; i < n_prompts; i++)
        lk_text_add(&text, "%s{\"id\": \"P-%02d\", \"text\": \"Change hat %d\", \"category\": \"hat\"}", i ? ", " : "",
                    i, i);
    lk_text_add(
        &text,
        "], \"models\": {\"plain\": {\"path\": \"m\", \"family\": \"flux2-dev\"}, \"polished\": {\"path\": \"m\", "
        "\"family\": \"flux2-dev\", \"rewrite\": {\"prompts\": \"texts.json\", \"model\": \"writer\"%s}}}, "
        "\"experiments\": {\"exp1\": {\"seeds\": \"0:1\"}}}",
        rewrite);
    write_file("study.json", text.bytes);
    lk_text_free(&text);
    write_file("texts.json", "{\"style\": \"custom:played\", \"source\": \"here\", \"system\": \"SYS\", \"user\": "
                             "\"{prompt}\", \"reply\": \"json:Rewritten\"}");
}

/* What `study rewrite` would write, by the player, of every source and prompt. */
static void write_rewrites(int n_sources, int n_prompts, const char *weights, int fail_source) {
    struct lk_text lines = {0};
    struct lk_rewriter r = {
        .ask = ask, .check = check, .n_slots = 1, .seed = 7, .dtype = "f32", .architecture = "here"};
    assert_ok(lk_rewrite_texts_read(&r.texts, path_of("texts.json")));
    lk_generation_config_init(&r.generation);
    snprintf(r.name, sizeof r.name, "writer");
    snprintf(r.weights, sizeof r.weights, "%s", weights);
    for (int s = 0; s < n_sources; s++)
        for (int p = 0; p < n_prompts; p++) {
            char bytes[32], sha256[65], prompt[40];
            snprintf(bytes, sizeof bytes, "picture %d", s);
            snprintf(prompt, sizeof prompt, "Change hat %d", p);
            lk_sha256(bytes, strlen(bytes), sha256);
            struct lk_rewrite job = {.prompt = prompt};
            source_now = s;
            assert_ok(lk_rewrite(&r, &job, 1, NULL));
            if (s == fail_source) {
                lk_free(job.text);
                job.text = NULL;
                snprintf(job.error, sizeof job.error, "no usable prompt in 5 tries");
            }
            lk_text_add(&lines, "{\"sources\":[\"%s\"],\"rewrite\":", sha256);
            lk_rewrite_record(&r, &job, &lines);
            lk_text_add(&lines, "}\n");
            lk_rewrite_free(&job);
        }
    write_file("rewrites.jsonl", lines.bytes);
    lk_text_free(&lines);
    lk_rewrite_texts_free(&r.texts);
}

static struct lk_study *open_study(void) {
    struct lk_study *study;
    assert_ok(lk_study_open(&study, path_of("study.json")));
    return study;
}

/* Job i: of `plain` the first half. */
static void job_of(const struct lk_study *study, size_t i, struct lk_study_job *job) {
    assert_ok(lk_study_job(study, i, job));
}

static void jobs_are_known_by_the_rewritten_text(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_fresh("rewritten"));
    planted = true;
    make_study(2, 1, "");
    struct lk_study *study = open_study();
    struct lk_study_job job;
    struct lk_text text = {0};
    size_t n;
    assert_int_equal(lk_study_n_jobs(study), 8);
    job_of(study, 4, &job);
    assert_true(job.rewrite_missing && job.problem && !*job.id);
    assert_ok(lk_study_check(study, &text, &n));
    assert_non_null(strstr(text.bytes, "models.polished.rewrite: the prompts of 4 of 4 jobs are not rewritten yet"));
    lk_text_free(&text);
    lk_study_close(study);
    write_rewrites(2, 1, "w1", -1);
    study = open_study();
    char ids[8][65], again[65];
    for (size_t i = 0; i < 8; i++) {
        job_of(study, i, &job);
        assert_null(job.problem);
        memcpy(ids[i], job.id, sizeof ids[i]);
    }
    assert_string_equal(job.final_prompt, "Change hat 0 of the Black man, keep the face");
    assert_string_equal(job.original_prompt, "Change hat 0");
    assert_string_equal(job.job.request.prompt, job.final_prompt);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(ids[i], ids[k]);
    assert_ok(lk_study_treatment(study, 1, &text));
    assert_non_null(strstr(text.bytes, "prompts rewritten by writer in style custom:played"));
    lk_text_free(&text);
    lk_study_close(study);
    /* The rewriter's weights, and its text, are a part of what a job is; where the list lies is not. */
    write_rewrites(2, 1, "w2", -1);
    study = open_study();
    job_of(study, 4, &job);
    assert_string_not_equal(job.id, ids[4]);
    job_of(study, 0, &job);
    assert_string_equal(job.id, ids[0]);
    lk_study_close(study);
    make_study(2, 1, ", \"file\": \"other.jsonl\"");
    write_rewrites(2, 1, "w1", -1);
    char from[1300];
    snprintf(from, sizeof from, "%s", path_of("rewrites.jsonl"));
    assert_int_equal(rename(from, path_of("other.jsonl")), 0);
    study = open_study();
    job_of(study, 4, &job);
    assert_string_equal(job.id, ids[4]);
    lk_study_close(study);
    planted = false, seed = 4; /* other texts */
    make_study(2, 1, "");
    write_rewrites(2, 1, "w1", -1);
    study = open_study();
    job_of(study, 7, &job);
    memcpy(again, job.id, sizeof again);
    assert_string_not_equal(again, ids[7]);
    lk_study_close(study);
    /* Another temperature is another list of texts. */
    make_study(2, 1, ", \"temperature\": 0.15");
    study = open_study();
    job_of(study, 4, &job);
    assert_true(job.rewrite_missing);
    lk_study_close(study);
}

static void a_failure_is_a_problem_or_stays_as_it_was(void **state) {
    (void)state;
    struct lk_study_job job;
    snprintf(folder, sizeof folder, "%s", test_fresh("rewritten"));
    planted = true;
    make_study(2, 1, "");
    write_rewrites(2, 1, "w", 1);
    struct lk_study *study = open_study();
    job_of(study, 6, &job);
    assert_string_equal(job.problem, "no usable prompt in 5 tries");
    assert_false(job.rewrite_missing);
    lk_study_close(study);
    make_study(2, 1, ", \"on_failure\": \"keep\"");
    study = open_study();
    job_of(study, 6, &job);
    assert_null(job.problem);
    assert_string_equal(job.final_prompt, "Change hat 0");
    assert_non_null(job.rewrite->failed);
    lk_study_close(study);
}

static void entries_are_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *rewrite, *part;
    } cases[] = {{", \"more\": 1", "expected prompts, model, temperature, on_failure and file, got \"more\""},
                 {", \"temperature\": -1", "temperature: expected a number from 0"},
                 {", \"temperature\": \"0\"", "temperature"},
                 {", \"on_failure\": \"skip\"", "expected fail or keep, got \"skip\""},
                 {", \"on_failure\": 3", "something else"},
                 {", \"file\": \"\"", "something else"}};
    struct lk_study *study;
    snprintf(folder, sizeof folder, "%s", test_fresh("rewritten"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_study(1, 1, cases[i].rewrite);
        assert_fails(lk_study_open(&study, path_of("study.json")), LK_E_CONFIG_VALUE, cases[i].part);
    }
    make_study(1, 1, "");
    write_file("rewrites.jsonl", "{\"sources\":[],\"rewrite\":{}}\n");
    assert_fails(lk_study_open(&study, path_of("study.json")), LK_E_INPUT,
                 "rewrites.jsonl: line 1: expected \"sources\"");
    write_file("rewrites.jsonl", "{\"sources\":[], half a line"); /* of a run that was killed */
    assert_ok(lk_study_open(&study, path_of("study.json")));
    lk_study_close(study);
    write_file("texts.json", "{}");
    assert_ok(lk_study_open(&study, path_of("study.json")));
    struct lk_study_job job;
    job_of(study, 2, &job);
    assert_non_null(strstr(job.problem, "texts.json"));
    lk_study_close(study);
}

/* Tables of the report, of a study with a rewriter as it is now. */
static void report(int n_sources, int n_prompts, char **words, char **differences, char **rewrites) {
    struct lk_audit *audit;
    struct lk_report_options options;
    char to[1200];
    size_t n;
    make_study(n_sources, n_prompts, ", \"on_failure\": \"keep\"");
    write_rewrites(n_sources, n_prompts, "w", planted ? 3 : -1);
    struct lk_study *study = open_study();
    assert_ok(lk_audit_open(&audit, NULL));
    assert_ok(lk_audit_add_study(audit, study));
    assert_ok(lk_audit_complete(audit, &settings));
    lk_report_options_init(&options);
    options.title = "Rewritten", options.run = "", options.alpha = 0.05;
    snprintf(to, sizeof to, "%s/report", folder);
    assert_ok(lk_any_report_write(audit, study, &options, to));
    *words = test_read(path_of("report/tables/rewrite_words_race.csv"), &n);
    *differences = test_read(path_of("report/tables/rewrite_differences_race.csv"), &n);
    *rewrites = test_read(path_of("report/tables/rewrites_race.csv"), &n);
    lk_audit_close(audit);
    lk_study_close(study);
}

static void expect_line(const char *table, const char *line) {
    if (!strstr(table, line)) fail_msg("expected \"%s\" in\n%s", line, table);
}

static void the_group_that_is_named_is_found(void **state) {
    (void)state;
    char *words, *differences, *rewrites;
    snprintf(folder, sizeof folder, "%s", test_fresh("rewritten"));
    planted = true;
    report(N_SOURCES, N_PROMPTS, &words, &differences, &rewrites);
    /* Of 12 Black sources one could not be rewritten. Each source and prompt once, for two seeds. */
    expect_line(words, "polished,race,any,White,12,60,0,0,0,0,0,0,0,0,");
    expect_line(words, "polished,race,any,Black,11,55,55,1,1,1,0,0,55,0,");
    expect_line(words, "polished,race,Black,Black,11,55,55,1,1,1,0,0,55,0,");
    expect_line(words, "polished,gender,male,Black,11,55,55,1,1,1,0,0,0,0,");
    expect_line(words, "polished,keeps,face,White,12,60,60,1,1,1,0,0,0,0,");
    assert_null(strstr(words, "female"));
    expect_line(differences, "polished,race,White - Black,-1,-1,-1,");
    expect_line(rewrites, "polished,custom:played,writer,Black,12,60,5,1,");
    free(words), free(differences), free(rewrites);
}

/* Of four sources a group resampling says nothing. */
static void few_sources_have_no_interval(void **state) {
    (void)state;
    char *words, *differences, *rewrites;
    snprintf(folder, sizeof folder, "%s", test_fresh("rewritten"));
    planted = true;
    report(8, N_PROMPTS, &words, &differences, &rewrites);
    expect_line(words, "polished,race,any,White,4,20,0,0,,,0,0,0,0,");
    expect_line(words, "polished,race,any,Black,3,15,15,1,,,0,0,15,0,");
    assert_null(strstr(differences, "White - Black"));
    free(words), free(differences), free(rewrites);
}

static enum lk_code take_interval(void *context, const struct lk_audit_row *row) {
    double *out = context;
    const char *category = lk_audit_text(row, "Category");
    if (!strcmp(category ? category : "", "race")) {
        assert_true(lk_audit_number(row, "Difference", &out[0]) && lk_audit_number(row, "Low", &out[1]) &&
                    lk_audit_number(row, "High", &out[2]) && lk_audit_number(row, "p", &out[4]));
        out[3]++;
    }
    return LK_OK;
}

/* The query of the table of differences. */
static void difference(double out[5]) {
    struct lk_audit *audit;
    struct lk_data_file file;
    struct lk_text sql = {0};
    assert_true(lk_data_find("rewrite_differences", &file));
    for (const char *at = file.text; *at;) {
        const bool name = !strncmp(at, "$attribute", 10), display = !strncmp(at, "$display", 8);
        lk_text_add(&sql, "%.*s", name || display ? 4 : 1, name ? "race" : display ? "Race" : at);
        at += name ? 10 : display ? 8 : 1;
    }
    struct lk_study *study = open_study();
    assert_ok(lk_audit_open(&audit, NULL));
    assert_ok(lk_audit_add_study(audit, study));
    assert_ok(lk_audit_each(audit, sql.bytes, take_interval, out));
    assert_true(out[3] == 1);
    lk_text_free(&sql);
    lk_audit_close(audit);
    lk_study_close(study);
}

/* Of intervals of a rewriter that knows no group few exclude zero. */
static void a_rewriter_that_knows_no_group_is_found_clean(void **state) {
    (void)state;
    enum { N_ROUNDS = 100 };
    int n_excluded = 0;
    snprintf(folder, sizeof folder, "%s", test_fresh("rewritten"));
    planted = false;
    for (int round = 0; round < N_ROUNDS; round++) {
        double x[5] = {0};
        seed = (uint64_t)round;
        if (!round) make_study(N_MANY, 3, "");
        write_rewrites(N_MANY, 3, "w", -1);
        difference(x);
        assert_true(x[1] <= x[0] && x[0] <= x[2]);
        n_excluded += x[1] > 0 || x[2] < 0;
        if (fabs(x[4] - 0.05) > 0.004) assert_int_equal(x[4]<0.05, x[1]> 0 || x[2] < 0);
    }
    printf("%d of %d intervals exclude zero\n", n_excluded, N_ROUNDS);
    assert_true(n_excluded <= 10); /* 5 % of 100, and two standard deviations */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_known_by_the_rewritten_text),
        cmocka_unit_test(a_failure_is_a_problem_or_stays_as_it_was),
        cmocka_unit_test(entries_are_read_strictly),
        cmocka_unit_test(the_group_that_is_named_is_found),
        cmocka_unit_test(few_sources_have_no_interval),
        cmocka_unit_test(a_rewriter_that_knows_no_group_is_found_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
