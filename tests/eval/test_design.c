/* Study files: the jobs of each experiment, what decides a job's id, what is refused. */
#include "eval/design/study.h"
#include "eval/study/pairs500.h"
#include "tests/common/test.h"

#define THREE "\"flux\": {}, \"step1x\": {}, \"qwen\": {}"

static const char *write_study(const char *name, const char *top, const char *models, const char *experiments) {
    char text[4000];
    const char *path = test_path(name);
    int n = snprintf(text, sizeof text, "{\"schema\": 1, \"study\": \"s\", %s \"models\": {%s}, \"experiments\": {%s}}",
                     top, models, experiments);
    test_write(path, text, (size_t)n);
    return path;
}

static struct lk_study *open_study(const char *top, const char *models, const char *experiments) {
    struct lk_study *study;
    assert_ok(lk_study_open(&study, write_study("study.json", top, models, experiments)));
    return study;
}

static struct lk_study_job job_of(const struct lk_study *study, size_t i) {
    struct lk_study_job job;
    assert_ok(lk_study_job(study, i, &job));
    return job;
}

/* Names as lines, hashed: the order and every name. */
static void expect_jobs(const char *models, const char *experiments, size_t n, const char *first, const char *last) {
    struct lk_study *study = open_study("", models, experiments);
    assert_int_equal(lk_study_n_jobs(study), n);
    assert_string_equal(job_of(study, 0).name, first);
    assert_string_equal(job_of(study, n - 1).name, last);
    lk_study_close(study);
}

static void experiments_have_their_sizes(void **state) {
    (void)state;
    expect_jobs(THREE, "\"exp1\": {}", 5040, "flux_20s_male_white_O-01", "qwen_70plus_female_latino_V-10");
    expect_jobs(THREE, "\"exp1\": {\"preset\": \"legacy\"}", 5040, "flux_20s_male_white_catB_001",
                "qwen_70plus_female_latino_catD_010");
    expect_jobs(THREE, "\"exp2\": {\"preset\": \"grid336\", \"prompts\": [\"O-01\", \"O-06\", \"V-02\", \"catD_009\"]}",
                1008, "flux_20s_male_white_O-01.preserved", "qwen_70plus_female_latino_V-09.preserved");
    expect_jobs(THREE, "\"exp3\": {}", 100, "flux_pair_white_20s_W-01", "qwen_pair_white_30s_W-50");
    expect_jobs(THREE, "\"exp3\": {\"preset\": \"composite1\"}", 50, "flux_pair_white_20s_W-01",
                "flux_pair_white_30s_W-50");
    expect_jobs(THREE, "\"exp3\": {\"preset\": \"separate\"}", 300, "flux_20s_male_white_W-01",
                "qwen_70plus_female_latino_W-42");
    expect_jobs(THREE, "\"t2i\": {\"cfg\": [3, 4.5]}", 2160, "flux_1_none_s0_cfg3", "flux_108_none_s9_cfg4.5");
}

static void every_model_has_1680(void **state) {
    struct lk_study *study = open_study("", THREE, "\"exp1\": {}");
    int n[LK_N_MODELS] = {0};
    (void)state;
    for (size_t i = 0; i < 5040; i++) n[job_of(study, i).model]++;
    for (int m = 0; m < LK_N_MODELS; m++) assert_int_equal(n[m], 1680);
    lk_study_close(study);
}

/* The 500 lines of the sample, found again in the jobs: its known hash. */
static void pairs500_is_the_sample(void **state) {
    struct lk_study *study = open_study("", THREE, "\"exp2\": {}");
    struct lk_pair pairs[LK_N_PAIRS];
    char sha256[65];
    (void)state;
    assert_int_equal(lk_study_n_jobs(study), LK_N_PAIRS);
    for (size_t i = 0; i < LK_N_PAIRS; i++) {
        struct lk_study_job job = job_of(study, i);
        int number = atoi(job.pair + 1) - 1;
        assert_in_range(number, 0, LK_N_PAIRS - 1);
        assert_int_equal(job.arm, LK_ARM_PRESERVED);
        pairs[number] = (struct lk_pair){(int16_t)job.sources[0], (int8_t)job.model, (int8_t)job.prompt->number};
    }
    assert_ok(lk_pairs500_sha256(pairs, sha256));
    assert_string_equal(sha256, "614f72bc220dcd7040a6612623cb956f6458cad35465940f1826968377add849");
    lk_study_close(study);
}

static void two_people_of_a_sentence_differ_in_gender_only(void **state) {
    struct lk_study *study = open_study("", THREE, "\"exp3\": {\"order\": \"both\"}");
    int race[2], gender[2], age[2];
    (void)state;
    assert_int_equal(lk_study_n_jobs(study), 200);
    for (size_t i = 0; i < 200; i++) {
        struct lk_study_job job = job_of(study, i);
        int k = job.prompt->number - 20;
        bool swapped = i / 50 % 2;
        assert_int_equal(job.n_sources, 2);
        for (int s = 0; s < 2; s++) {
            lk_source_factors(job.sources[s], &race[s], &gender[s], &age[s]);
            assert_int_equal(race[s], k % 7);
            assert_int_equal(age[s], k % 6);
            assert_int_equal(gender[s], s ^ swapped);
        }
    }
    lk_study_close(study);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experiments_have_their_sizes),
        cmocka_unit_test(every_model_has_1680),
        cmocka_unit_test(pairs500_is_the_sample),
        cmocka_unit_test(two_people_of_a_sentence_differ_in_gender_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
