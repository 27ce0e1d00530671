/* Study files: the jobs of each experiment, what decides a job's id, what is refused. */
#include <cjson/cJSON.h>

#include "engine/base/digest.h"
#include "eval/data/data.h"
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

/* Sources of three cells: one drawn, one that is no picture, one that is not there; two of them by aliases. */
static const char *write_tables(void) {
    static const char sources[] = "path,race,gender,age\n"
                                  "a.png,white,MALE,20-29\n"
                                  "b.png,South-east Asian,Female,more than 70\n"
                                  "none.png,Latino_Hispanic,Male,40s\n";
    static const char features[] =
        "{\"source_id\":\"White_Male_20s\",\"skin_tone\":\"x\",\"face_shape\":\"x\",\"eyes\":\"x\",\"nose\":\"x\","
        "\"lips\":\"x\",\"hair\":\"x\",\"distinctive_features\":\"x\",\"identity_prompt\":\" Maintain the person's "
        "fair skin \"}\n{\"source_id\":\"SoutheastAsian_Female_70plus\",\"no_feature_prompt\":true}\n";
    test_write(test_path("sources.csv"), sources, sizeof sources - 1);
    test_write(test_path("features.jsonl"), features, sizeof features - 1);
    test_write(test_path("a.png"), "aaa", 3);
    test_write(test_path("b.png"), "bbb", 3);
    return "\"sources\": \"sources.csv\",";
}

static struct lk_study_job named_job(const struct lk_study *study, const char *name) {
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
        struct lk_study_job job = job_of(study, i);
        if (!strcmp(job.name, name)) return job;
    }
    fail_msg("no job %s", name);
    return job_of(study, 0);
}

static void sources_are_read_with_aliases(void **state) {
    struct lk_study *study = open_study(write_tables(), THREE, "\"exp1\": {}");
    (void)state;
    assert_string_equal(lk_study_source(study, lk_source(0, 0, 0))->id, "White_Male_20s");
    assert_string_equal(lk_study_source(study, lk_source(3, 1, 5))->id, "SoutheastAsian_Female_70plus");
    assert_string_equal(lk_study_source(study, lk_source(6, 0, 2))->sha256, "");
    assert_null(lk_study_source(study, 1)->id);
    assert_null(job_of(study, 0).problem);
    assert_string_equal(job_of(study, 20).problem, "the study has no source of this cell");
    assert_string_equal(named_job(study, "flux_40s_male_latino_O-01").problem,
                        "its source's file cannot be read ('likeness study check' says why)");
    lk_study_close(study);
}

/* What a pair's arms may differ in: prompt, arm, paths, hashes. The baseline's job is the one of experiment 1. */
static void arms_of_a_pair_differ_in_the_prompt_only(void **state) {
    struct lk_study *study = open_study(
        write_tables(), "\"flux\": {\"seed\": 7, \"num_inference_steps\": 4, \"guidance_scale\": 2.5}, \"qwen\": {}",
        "\"exp1\": {}, \"exp2\": {\"preset\": \"grid336\", \"prompts\": [\"O-01\", \"O-06\", \"V-02\", \"V-09\"], "
        "\"baseline\": \"make\", \"feature_prompts\": \"features.jsonl\"}");
    struct lk_study_job made = named_job(study, "flux_20s_male_white_O-06.edited"),
                        kept = named_job(study, "flux_20s_male_white_O-06.preserved"),
                        first = named_job(study, "flux_20s_male_white_O-06");
    (void)state;
    assert_string_equal(kept.baseline, made.name);
    assert_string_equal(kept.pair, made.pair);
    assert_string_equal(made.id, first.id); /* the same pixels */
    assert_string_not_equal(kept.id, made.id);
    assert_string_equal(kept.output, "exp2/flux/O/flux_20s_male_white_O-06.preserved.png");
    assert_ptr_equal(kept.prompt, made.prompt);
    assert_null(made.feature_prompt);
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (strcmp(lk_parameters[i].key, "prompt"))
            assert_true(lk_parameter_equal(&lk_parameters[i], &kept.job, &made.job));
    assert_int_equal(kept.job.request.seed, 7);
    assert_int_equal(kept.job.request.num_inference_steps, 4);
    assert_true(kept.job.request.guidance_scale == 2.5);
    assert_int_equal(named_job(study, "qwen_20s_male_white_O-06").job.request.num_inference_steps, 40);
    char expected[1000];
    snprintf(expected, sizeof expected, "Maintain the person's fair skin. %s", made.prompt->text);
    assert_string_equal(kept.job.request.prompt, expected);
    assert_string_equal(named_job(study, "flux_70plus_female_southeastasian_V-02.preserved").problem,
                        "no feature prompt could be extracted from its source");
    lk_study_close(study);
}

static void what_decides_pixels_decides_the_id(void **state) {
    static const char *const models[] = {"\"flux\": {}",
                                         "\"flux\": {\"vram\": \"8G\", \"threads\": 2, \"device\": \"cuda\"}",
                                         "\"flux\": {\"num_inference_steps\": 50, \"dtype\": \"bf16\"}",
                                         "\"flux\": {\"path\": \"other\"}",
                                         "\"flux\": {\"path\": \"./other/../other\"}",
                                         "\"flux\": {\"seed\": 43}",
                                         "\"flux\": {\"dtype\": \"f32\"}",
                                         "\"flux\": {\"quantize\": \"nf4\"}",
                                         "\"flux\": {\"width\": 512}",
                                         "\"flux\": {\"weights_identity\": \"00\"}"};
    enum { N = sizeof models / sizeof *models, SAME = 5 };
    char ids[N + 1][65], hashes[N + 1][65];
    (void)state;
    for (size_t i = 0; i <= N; i++) {
        const char *tables = write_tables();
        if (i == N) test_write(test_path("a.png"), "ccc", 3);
        struct lk_study *study = open_study(tables, models[i % N], "\"exp1\": {}");
        strcpy(ids[i], job_of(study, 0).id);
        strcpy(hashes[i], lk_study_hash(study));
        lk_study_close(study);
        for (size_t k = 0; k < i; k++) {
            if (i < SAME)
                assert_string_equal(ids[i], ids[k]);
            else
                assert_string_not_equal(ids[i], ids[k]);
            assert_int_equal(!strcmp(hashes[i], hashes[k]), i < SAME);
        }
    }
}

static void the_analysis_is_part_of_the_configuration(void **state) {
    struct lk_study *a = open_study("", THREE, "\"exp1\": {}");
    struct lk_study *b = open_study("\"analysis\": {\"rounding\": \"half_up\"},", THREE, "\"exp1\": {}");
    (void)state;
    assert_string_not_equal(lk_study_hash(a), lk_study_hash(b));
    assert_non_null(strstr(lk_study_resolved(a), "\"rounding\": \"half_even\""));
    assert_non_null(strstr(lk_study_resolved(a), "\"num_inference_steps\":28"));
    lk_study_close(a);
    lk_study_close(b);
}

/* The resolved copy is a study file that says all: read again, it is the same configuration. */
static void the_resolved_copy_is_the_study(void **state) {
    static const char *const experiments[] = {
        "\"exp1\": {}, \"exp3\": {}", "\"exp1\": {\"preset\": \"legacy\"}, \"t2i\": {\"cfg\": [3, 4.5]}",
        "\"exp1\": {\"preset\": \"custom\", \"sources\": [\"White_Male_20s\"], \"prompts\": [\"O-01\"]}"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct lk_study *again,
            *study =
                open_study(write_tables(), "\"flux\": {\"width\": 512, \"height\": 512}, \"step1x\": {}, \"qwen\": {}",
                           experiments[i]);
        test_write(test_path("resolved.json"), lk_study_resolved(study), strlen(lk_study_resolved(study)));
        assert_ok(lk_study_open(&again, test_path("resolved.json")));
        assert_string_equal(lk_study_resolved(again), lk_study_resolved(study));
        assert_string_equal(lk_study_hash(again), lk_study_hash(study));
        assert_string_equal(job_of(again, 0).id, job_of(study, 0).id);
        lk_study_close(study);
        lk_study_close(again);
    }
}

static void differing_settings_are_named(void **state) {
    struct lk_study *a = open_study("", THREE, "\"exp1\": {}"),
                    *b = open_study("\"analysis\": {\"rounding\": \"half_up\"},",
                                    "\"flux\": {\"seed\": 7}, \"step1x\": {}", "\"exp1\": {}");
    struct lk_text text = {0};
    size_t n;
    (void)state;
    assert_ok(lk_study_compare(a, a, NULL, &text, &n));
    assert_int_equal(n, 0);
    assert_ok(lk_study_compare(a, b, NULL, &text, &n));
    assert_int_equal(n, 3);
    assert_non_null(strstr(text.bytes, "models.flux.seed: 42 and 7\n"));
    assert_non_null(strstr(text.bytes, "models.qwen: {"));
    assert_non_null(strstr(text.bytes, "analysis.rounding: \"half_even\" and \"half_up\"\n"));
    assert_ok(lk_study_compare(b, a, "rounding", &text, &n));
    assert_int_equal(n, 2);
    assert_ok(lk_study_compare(a, b, "ounding", &text, &n));
    assert_int_equal(n, 3);
    assert_ok(lk_study_compare(a, b, "analysis.rounding,models.qwen,models.flux.seed", &text, &n));
    assert_int_equal(n, 0);
    lk_text_free(&text);
    lk_study_close(a);
    lk_study_close(b);
}

/* What the extractor of features is asked, byte for byte. */
static void the_extractors_instruction_is_known(void **state) {
    struct lk_data_file file;
    char sha256[65];
    (void)state;
    assert_true(lk_data_find("rubric", &file));
    cJSON *root = cJSON_ParseWithLength(file.text, file.n_bytes);
    const cJSON *text = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "feature_prompt"), "prompt_listing_2");
    assert_true(cJSON_IsString(text));
    lk_sha256(text->valuestring, strlen(text->valuestring), sha256);
    assert_string_equal(sha256, "bad6ce96a8025e26ade9e9949ce10ba639eeb41e53dc87e3abc542e273c171f8");
    cJSON_Delete(root);
}

/* Table 8's first row before O-01: the known hash. And the older study's wording. */
static void final_prompts_are_known(void **state) {
    static const char features[] =
        "{\"source_id\":\"Black_Female_30s\",\"skin_tone\":\"x\",\"face_shape\":\"x\",\"eyes\":\"x\",\"nose\":\"x\","
        "\"lips\":\"x\",\"hair\":\"x\",\"distinctive_features\":\"x\",\"identity_prompt\":\"Maintain the "
        "person\xe2\x80\x99s "
        "deep brown skin with warm undertones, round face with full cheeks, broad nose, full lips, and dark "
        "micro-braided hair partially covered by a colorful headwrap.\"}\n";
    char sha256[65];
    (void)state;
    test_write(test_path("table8.jsonl"), features, sizeof features - 1);
    struct lk_study *study = open_study("", "\"flux\": {}",
                                        "\"exp2\": {\"preset\": \"grid336\", \"feature_prompts\": \"table8.jsonl\", "
                                        "\"prompts\": [\"O-01\", \"O-10\", \"V-02\", \"V-09\"]}");
    const char *text = named_job(study, "flux_30s_female_black_O-01.preserved").final_prompt;
    lk_sha256(text, strlen(text), sha256);
    assert_string_equal(sha256, "30107894ac0a18d78f0cde51a0bcebb9ae54035455828bdeec7725b4b94e6650");
    lk_study_close(study);
    study = open_study("", "\"flux\": {}",
                       "\"exp2\": {\"preset\": \"grid336\", \"preserve_with\": \"generic\", "
                       "\"prompts\": [\"O-01\", \"O-10\", \"V-02\", \"V-09\"]}");
    text = named_job(study, "flux_30s_female_black_O-10.preserved").final_prompt;
    assert_non_null(strstr(text, "realism and respect while preserving the person's identity."));
    assert_string_equal(text + strlen(text) - strlen("respect while preserving the person's identity."),
                        "respect while preserving the person's identity.");
    lk_study_close(study);
}

/* By hand: race drift 3 or more, or gender drift; the baseline arm only; the ensemble, not one judge. */
static void drifted_outputs_are_those_of_the_scores(void **state) {
    static const char scores[] = "item_id,kind,who,axis,score\n"
                                 "flux_20s_male_white_O-01,judge,primary,race_drift,3\n"
                                 "flux_20s_male_white_O-02,judge,primary,race_drift,2\n"
                                 "flux_20s_male_white_O-03,judge,primary,gender_drift,5\n"
                                 "flux_20s_male_white_O-04,judge,primary,race_drift,2\n"
                                 "flux_20s_male_white_O-04,judge,secondary,race_drift,3\n"
                                 "flux_20s_male_white_O-05.preserved,judge,primary,race_drift,5\n"
                                 "flux_20s_male_white_O-06,judge,primary,skin_tone,5\n";
    (void)state;
    test_write(test_path("scores.csv"), scores, sizeof scores - 1);
    expect_jobs("\"flux\": {}", "\"exp2\": {\"preset\": \"drift\", \"scores\": \"scores.csv\"}", 2,
                "flux_20s_male_white_O-01.preserved", "flux_20s_male_white_O-03.preserved");
    static const char list[] = "model,source_id,prompt_id\nstep1x,Latino_Male_40s,V-03\nflux,White_Male_20s,catB_002\n";
    test_write(test_path("list.csv"), list, sizeof list - 1);
    expect_jobs(THREE, "\"exp2\": {\"preset\": \"list\", \"list\": \"list.csv\"}", 2,
                "flux_20s_male_white_O-02.preserved", "step1x_40s_male_latino_V-03.preserved");
}

static void a_set_of_ones_own(void **state) {
    static const char prompts[] =
        "{\"prompts\": [{\"id\": \"catA_001\", \"category\": \"A\", \"text\": \"Convert to black and white.\"}]}";
    (void)state;
    test_write(test_path("own.json"), prompts, sizeof prompts - 1);
    struct lk_study *study = open_study(
        "\"prompts\": \"own.json\",", "\"qwen\": {}",
        "\"exp1\": {\"preset\": \"custom\", \"prompts\": [\"catA_001\"], \"sources\": [\"White_Male_20s\"]}");
    assert_int_equal(lk_study_n_jobs(study), 1);
    assert_string_equal(job_of(study, 0).output, "exp1/qwen/A/qwen_20s_male_white_catA_001.png");
    assert_string_equal(job_of(study, 0).final_prompt, "Convert to black and white.");
    lk_study_close(study);
}

static void refused(const char *top, const char *models, const char *experiments, const char *part) {
    struct lk_study *study;
    enum lk_code rc = lk_study_open(&study, write_study("bad.json", top, models, experiments));
    assert_null(study);
    assert_int_equal(rc / 100, 3);
    if (!strstr(lk_error_text(), part)) fail_msg("expected \"%s\", got: %s", part, lk_error_text());
}

static void what_is_wrong_is_named(void **state) {
    static const char doubled[] = "id,path\nWhite_Male_20s,a.png\nWhite_Male_99,b.png\n";
    (void)state;
    test_write(test_path("bad.csv"), doubled, sizeof doubled - 1);
    refused("", THREE, "\"exp3\": {\"models\": [\"step1x\"]}", "\"separate\"");
    refused("", THREE, "\"exp2\": {\"preset\": \"grid336\"}", "four prompts");
    refused("", "\"flux\": {}", "\"exp2\": {}", "lacks step1x");
    refused("", "\"step1x\": {\"num_inference_steps\": 20}", "\"exp1\": {}", "expected 28");
    refused("", "\"flux\": {\"true_cfg_scale\": 4}", "\"exp1\": {}",
            "field \"models.flux.true_cfg_scale\": FLUX.2-dev has no such parameter");
    refused("", "\"flux\": {\"seed\": \"7\"}", "\"exp1\": {}",
            "field \"models.flux.seed\": expected a number, got \"7\"");
    refused("", "\"flux\": {\"num_inference_steps\": 0}", "\"exp1\": {}", "field \"models.flux.num_inference_steps\"");
    refused("", "\"flux\": {\"colour\": 1}", "\"exp1\": {}", "field \"models.flux.colour\": unknown");
    refused("", "\"sdxl\": {}", "\"exp1\": {}", "field \"models.sdxl\": unknown; expected flux, step1x, qwen");
    refused("", THREE, "\"exp1\": {\"preset\": \"half\"}",
            "field \"experiments.exp1.preset\": expected full|legacy|custom, got \"half\"");
    refused("", THREE, "\"exp1\": {\"presets\": \"full\"}", "field \"experiments.exp1.presets\": unknown");
    refused("", THREE, "\"exp1\": {\"prompts\": [\"O-01\"]}", "expected \"custom\"");
    refused("", THREE, "\"exp1\": {\"preset\": \"custom\", \"prompts\": [\"catA_001\"]}", "got \"catA_001\"");
    refused("", THREE, "\"t2i\": {\"seeds\": \"9:0\"}", "field \"experiments.t2i.seeds\"");
    refused("\"analysis\": {\"bootstrap\": 3},", THREE, "\"exp1\": {}",
            "field \"analysis.bootstrap\": expected a whole number from 10 to 1000000, got 3");
    refused("\"sources\": \"bad.csv\",", THREE, "\"exp1\": {}", "line 3: field \"id\"");
    refused("\"study_seed\": 1, \"study_seed\": 2,", THREE, "\"exp1\": {}", "study_seed");
}

static size_t count_lines(const struct lk_text *text, const char *part) {
    size_t n = 0;
    for (const char *at = text->bytes; (at = strstr(at, part)); at++) n++;
    return n;
}

static void check_names_each_cell(void **state) {
    static const char sources[] = "path,race,gender,age\na.png,White,Male,20s\nb.png,White,Male,20s\n"
                                  "a.png,White,Male,30s\n";
    struct lk_text text = {0};
    size_t n;
    (void)state;
    write_tables();
    test_write(test_path("doubled.csv"), sources, sizeof sources - 1);
    struct lk_study *study = open_study("\"sources\": \"doubled.csv\",", "\"flux\": {\"path\": \"nowhere\"}",
                                        "\"exp1\": {}, \"exp2\": {\"preset\": \"grid336\", \"prompts\": [\"O-01\", "
                                        "\"O-06\", \"V-02\", \"V-09\"], \"feature_prompts\": \"none.jsonl\"}");
    assert_ok(lk_study_check(study, &text, &n));
    assert_int_equal(count_lines(&text, "\n"), n);
    assert_int_equal(count_lines(&text, "expected a source of this cell, got none"), 82);
    assert_int_equal(count_lines(&text, "White_Male_20s: expected one source of this cell, got a.png and b.png"), 1);
    assert_int_equal(count_lines(&text, "White_Male_30s: expected a picture of its own, got that of White_Male_20s"),
                     1);
    assert_int_equal(count_lines(&text, "none.jsonl"), 1);
    assert_int_equal(count_lines(&text, "expected a feature prompt"), 84);
    assert_int_equal(count_lines(&text, "models.flux: "), 1);
    assert_int_equal(count_lines(&text, "a.png: "), 2); /* no pictures */
    lk_text_free(&text);
    lk_study_close(study);
}

static void templates_have_the_documents_numbers(void **state) {
    static const struct {
        const char *name;
        size_t n;
    } templates[] = {{"full", 5640}, {"exp1", 5040}, {"exp2", 500}, {"exp3", 100}, {"t2i", 4320}};
    (void)state;
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        struct lk_text text = {0};
        struct lk_study *study;
        assert_ok(lk_study_template(templates[i].name, &text));
        test_write(test_path("template.json"), text.bytes, text.n);
        assert_ok(lk_study_open(&study, test_path("template.json")));
        assert_int_equal(lk_study_n_jobs(study), templates[i].n);
        lk_study_close(study);
        lk_text_free(&text);
    }
    struct lk_study *study = open_study("", THREE, "\"exp1\": {}");
    static const struct {
        int steps;
        double guidance, true_cfg;
        uint64_t seed;
    } printed[] = {{50, 4, 0, 42}, {28, 0, 6, 42}, {40, 1, 4, 0}};
    for (int m = 0; m < LK_N_MODELS; m++) {
        const struct lk_study_job job = job_of(study, (size_t)m * 1680);
        assert_int_equal(job.job.request.num_inference_steps, printed[m].steps);
        assert_int_equal(job.job.request.seed, printed[m].seed);
        assert_string_equal(job.job.run.dtype, "bf16");
        if (m != 1) assert_true(job.job.request.guidance_scale == printed[m].guidance);
        if (m != 0) assert_true(job.job.request.true_cfg_scale == printed[m].true_cfg);
    }
    lk_study_close(study);
}

static enum lk_code open_and_close(void) {
    struct lk_study *study;
    struct lk_study_job job;
    enum lk_code rc = lk_study_open(&study, test_path("allocations.json"));
    if (!rc) rc = lk_study_job(study, 0, &job);
    lk_study_close(study);
    return rc;
}

static void memory_runs_out(void **state) {
    (void)state;
    write_study("allocations.json", write_tables(), "\"flux\": {}",
                "\"exp1\": {\"preset\": \"custom\", \"sources\": [\"White_Male_20s\"], \"prompts\": [\"O-01\"]}, "
                "\"exp3\": {\"preset\": \"composite1\"}");
    test_every_allocation(open_and_close, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experiments_have_their_sizes),
        cmocka_unit_test(every_model_has_1680),
        cmocka_unit_test(pairs500_is_the_sample),
        cmocka_unit_test(two_people_of_a_sentence_differ_in_gender_only),
        cmocka_unit_test(sources_are_read_with_aliases),
        cmocka_unit_test(arms_of_a_pair_differ_in_the_prompt_only),
        cmocka_unit_test(what_decides_pixels_decides_the_id),
        cmocka_unit_test(the_analysis_is_part_of_the_configuration),
        cmocka_unit_test(the_resolved_copy_is_the_study),
        cmocka_unit_test(differing_settings_are_named),
        cmocka_unit_test(the_extractors_instruction_is_known),
        cmocka_unit_test(final_prompts_are_known),
        cmocka_unit_test(drifted_outputs_are_those_of_the_scores),
        cmocka_unit_test(a_set_of_ones_own),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(check_names_each_cell),
        cmocka_unit_test(templates_have_the_documents_numbers),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
