/* Studies of one's own: attributes, sources, models, prompts, seeds and experiments from the study file. */
#include "eval/design/study.h"
#include "tests/common/test.h"

static const char attributes[] =
    "[{\"name\": \"skin_type\", \"display\": \"Skin type\", \"kind\": \"ordered\", \"levels\": [\"I\", \"II\", "
    "\"III\"]},"
    " {\"name\": \"head_covering\", \"levels\": [{\"key\": \"none\", \"display\": \"No covering\"}, \"hijab\"]}]";
static const char sources[] =
    "[{\"id\": \"S1\", \"path\": \"a.png\", \"skin_type\": \"ii\", \"head_covering\": \"none\"},"
    " {\"id\": \"S2\", \"file\": \"b.png\", \"skin_type\": \"I\", \"head_covering\": "
    "\"no covering\"}]";
static const char prompts[] =
    "[{\"id\": \"K-01\", \"text\": \"Make it a cook.\", \"category\": \"kitchen\", \"subcategory\": \"heat\"},"
    " {\"id\": \"V-01\", \"text\": \"Make it older.\", \"category\": \"time\"}]";
static const char models[] = "\"quick\": {\"path\": \"black-forest-labs/FLUX.2-dev\", \"num_inference_steps\": 4},"
                             "\"slow\": {\"path\": \"black-forest-labs/FLUX.2-dev\", \"label\": \"FLUX, 50 steps\", "
                             "\"seeds\": \"7:8\"}";

static const char *write_study(const char *attribute_list, const char *source_list, const char *prompt_list,
                               const char *model_list, const char *experiments) {
    char text[6000];
    const char *path = test_path("any.json");
    test_write(test_path("a.png"), "aaa", 3);
    test_write(test_path("b.png"), "bbb", 3);
    int n = snprintf(text, sizeof text,
                     "{\"schema\": 2, \"study\": \"any\", \"attributes\": %s, \"sources\": %s, \"prompts\": %s, "
                     "\"models\": {%s}, \"experiments\": {%s}}",
                     attribute_list, source_list, prompt_list, model_list, experiments);
    test_write(path, text, (size_t)n);
    return path;
}

static struct lk_study *open_study(const char *experiments) {
    struct lk_study *study;
    assert_ok(lk_study_open(&study, write_study(attributes, sources, prompts, models, experiments)));
    return study;
}

static struct lk_study_job job_of(const struct lk_study *study, size_t i) {
    struct lk_study_job job;
    assert_ok(lk_study_job(study, i, &job));
    return job;
}

static void everything_is_the_files(void **state) {
    struct lk_study *study = open_study("\"exp1\": {\"seeds\": \"0:2\"}");
    int n;
    const struct lk_attribute *a = lk_study_attributes(study, &n);
    (void)state;
    assert_int_equal(n, 2);
    assert_string_equal(a[0].display, "Skin type");
    assert_true(a[0].ordered && !a[1].ordered);
    assert_string_equal(a[1].displays[0], "No covering");
    assert_false(lk_study_is_portrait(study));
    assert_int_equal(lk_study_n_sources(study), 2);
    assert_int_equal(lk_study_source(study, 0)->level[0], 1);
    assert_int_equal(lk_study_source(study, 1)->level[1], 0);
    /* Three seeds of the first model, two of the other, which has its own. */
    assert_int_equal(lk_study_n_jobs(study), 2 * 2 * (3 + 2));
    const struct lk_study_job first = job_of(study, 0), second = job_of(study, 1), last = job_of(study, 19);
    assert_string_equal(first.name, "quick_S1_K-01_s0");
    assert_string_equal(first.output, "exp1/quick/kitchen/quick_S1_K-01_s0.png");
    assert_string_equal(first.family, "flux2-dev");
    assert_string_equal(first.final_prompt, "Make it a cook.");
    assert_int_equal(second.job.request.seed, 1);
    assert_string_not_equal(first.id, second.id);
    assert_string_equal(last.name, "slow_S2_V-01_s8");
    assert_string_equal(last.prompt->text, "Make it older."); /* not the portrait study's V-01 */
    assert_int_equal(last.job.request.seed, 8);
    assert_string_equal(lk_study_model_label(study, 1), "FLUX, 50 steps");
    assert_string_equal(lk_study_model_label(study, 0), "quick");
    lk_study_close(study);
}

/* Groups of an attribute's levels are an attribute too, without a column; the run's own copy has them as well. */
static void groups_of_levels(void **state) {
    static const char grouped[] =
        "[{\"name\": \"skin_type\", \"kind\": \"ordered\", \"levels\": [\"I\", \"II\", \"III\"]}, {\"name\": "
        "\"head_covering\", \"levels\": [\"none\", \"hijab\"]}, {\"name\": \"skin\", \"of\": \"skin_type\", "
        "\"levels\": "
        "[{\"key\": \"dark\", \"of\": [\"II\", \"III\"]}, {\"key\": \"light\", \"of\": [\"I\"]}]}]";
    static const char covered[] =
        "[{\"id\": \"S1\", \"path\": \"a.png\", \"skin_type\": \"II\", \"head_covering\": \"none\"},"
        " {\"id\": \"S2\", \"path\": \"b.png\", \"skin_type\": \"I\", \"head_covering\": \"hijab\"}]";
    static const struct {
        const char *was, *is, *part;
    } wrong[] = {
        {"[\"II\", \"III\"]", "[\"II\"]", "expected each level in a group, got \"III\""},
        {"[\"II\", \"III\"]", "[\"II\", \"I\", \"III\"]", "expected each level in one group"},
        {"[\"II\", \"III\"]", "[\"II\", \"IX\"]", "expected levels of the attribute that is pooled, got \"IX"},
        {"[\"II\", \"III\"]", "[]", "expected levels that the group pools"},
        {"\"of\": \"skin_type\", ", "", "expected no \"of\" of levels"},
        {"\"of\": \"skin_type\"", "\"of\": \"hair\"", "expected an attribute before this one"},
        {"{\"key\": \"light\", \"of\": [\"I\"]}", "\"light\"", "expected \"of\" of each level"},
    };
    struct lk_study *study, *again;
    int n;
    (void)state;
    assert_ok(lk_study_open(&study, write_study(grouped, covered, prompts, models, "\"exp1\": {}")));
    const struct lk_attribute *a = lk_study_attributes(study, &n);
    assert_int_equal(n, 3);
    assert_true(a[2].of == &a[0] && !a[0].of);
    assert_int_equal(lk_study_source(study, 0)->level[2], 0);
    assert_int_equal(lk_study_source(study, 1)->level[2], 1);
    const char *copy = lk_study_resolved(study);
    assert_ok(lk_study_parse(&again, copy, strlen(copy), test_path("any.json")));
    assert_string_equal(lk_study_hash(again), lk_study_hash(study));
    assert_int_equal(lk_study_source(again, 0)->level[2], 0);
    lk_study_close(again);
    lk_study_close(study);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[2000];
        const char *at = strstr(grouped, wrong[i].was);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - grouped), grouped, wrong[i].is, at + strlen(wrong[i].was));
        assert_fails(lk_study_open(&study, write_study(text, covered, prompts, models, "\"exp1\": {}")),
                     LK_E_CONFIG_VALUE, wrong[i].part);
    }
}

/* One checkpoint under two keys with the same settings makes the same pictures: one id. */
static void a_key_is_no_part_of_the_id(void **state) {
    struct lk_study *study;
    (void)state;
    assert_ok(lk_study_open(&study, write_study(attributes, sources, prompts,
                                                "\"a\": {\"path\": \"black-forest-labs/FLUX.2-dev\"}, "
                                                "\"b\": {\"path\": \"black-forest-labs/FLUX.2-dev\"}",
                                                "\"mine\": {\"kind\": \"edit\", \"sources\": [\"S2\"], \"prompts\": "
                                                "[\"V-01\"]}")));
    assert_int_equal(lk_study_n_jobs(study), 2);
    const struct lk_study_job a = job_of(study, 0), b = job_of(study, 1);
    assert_string_equal(a.id, b.id);
    assert_string_equal(a.output, "mine/a/time/a_S2_V-01.png");
    assert_string_equal(a.experiment, "mine");
    assert_string_equal(b.name, "b_S2_V-01");
    lk_study_close(study);
}

/* The copy that a run keeps holds the tables themselves, and is the same study. */
static void the_copy_needs_no_table(void **state) {
    struct lk_study *study = open_study("\"exp1\": {\"seeds\": \"0:2\"}, \"pairs\": {\"kind\": \"pair\", "
                                        "\"preserve_with\": \"generic\", \"models\": [\"slow\"], \"seeds\": \"1:1\"}"),
                    *copy;
    const char *resolved = lk_study_resolved(study);
    (void)state;
    test_write(test_path("copy.json"), resolved, strlen(resolved));
    assert_ok(lk_study_open(&copy, test_path("copy.json")));
    assert_string_equal(lk_study_hash(copy), lk_study_hash(study));
    assert_string_equal(lk_study_resolved(copy), resolved);
    assert_int_equal(lk_study_n_jobs(copy), lk_study_n_jobs(study));
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
        const struct lk_study_job a = job_of(study, i), b = job_of(copy, i);
        assert_string_equal(a.id, b.id);
        assert_string_equal(a.output, b.output);
    }
    const struct lk_study_job pair = job_of(study, 20);
    assert_string_equal(pair.name, "slow_S1_K-01_s7.preserved");
    assert_string_equal(pair.baseline, "slow_S1_K-01_s7");
    assert_string_equal(pair.final_prompt, "Make it a cook while preserving the person's identity.");
    lk_study_close(study);
    lk_study_close(copy);
}

/* The portrait study with a model of one's own: its cells and prompts are the documents', its items are not. */
static void a_fourth_model_joins_the_portraits(void **state) {
    static const struct {
        const char *models, *experiments;
        bool documented;
    } cases[] = {{"\"flux\": {}", "\"exp1\": {\"sources\": [\"White_Male_20s\"], \"prompts\": [\"V-03\"]}", true},
                 {"\"flux\": {}, \"fast\": {\"path\": \"black-forest-labs/FLUX.2-dev\"}",
                  "\"exp1\": {\"sources\": [\"White_Male_20s\"], \"prompts\": [\"V-03\"]}", false},
                 {"\"flux\": {}", "\"exp1\": {\"seeds\": \"0:1\"}", false},
                 {"\"flux\": {}", "\"mine\": {\"kind\": \"edit\"}", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1000];
        struct lk_study *study;
        int n =
            snprintf(json, sizeof json, "{\"schema\": 2, \"study\": \"p\", \"models\": {%s}, \"experiments\": {%s}}",
                     cases[i].models, cases[i].experiments);
        test_write(test_path("portraits.json"), json, (size_t)n);
        assert_ok(lk_study_open(&study, test_path("portraits.json")));
        assert_true(lk_study_is_portrait(study));
        assert_int_equal(lk_study_is_documented(study), cases[i].documented);
        if (i == 1) {
            const struct lk_study_job job = job_of(study, 1);
            assert_string_equal(job.name, "fast_20s_male_white_V-03");
            assert_string_equal(job.documented, "flux_20s_male_white_V-03");
        }
        lk_study_close(study);
    }
}

static void refused(const char *attribute_list, const char *source_list, const char *prompt_list,
                    const char *model_list, const char *experiments, const char *part) {
    struct lk_study *study;
    enum lk_code rc =
        lk_study_open(&study, write_study(attribute_list, source_list, prompt_list, model_list, experiments));
    assert_null(study);
    assert_int_equal(rc / 100, 3);
    if (!strstr(lk_error_text(), part)) fail_msg("expected \"%s\", got: %s", part, lk_error_text());
}

#define EXP1 "\"exp1\": {}"
static void what_is_wrong_is_named(void **state) {
    (void)state;
    refused("[{\"name\": \"a b\", \"levels\": [\"x\"]}]", "[]", "[]", models, EXP1,
            "field \"attributes[0].name\": expected 1 to 40 letters, digits, - or _");
    refused("[{\"name\": \"seed\", \"levels\": [\"x\"]}]", "[]", "[]", models, EXP1,
            "attributes[0].name\": expected a name that no other column has, got \"seed\"");
    refused("[{\"name\": \"a\", \"levels\": [\"x\", \"X\"]}]", "[]", "[]", models, EXP1,
            "attributes[0].levels\": expected each level once, got \"X\"");
    refused("[{\"name\": \"a\", \"levels\": [\"x\"]}, {\"name\": \"b\", \"display\": \"a\", \"levels\": [\"x\"]}]",
            "[]", "[]", models, EXP1,
            "attributes[1].display\": expected a name that no other attribute has, got \"a\"");
    refused("[]", "[]", "[]",
            "\"one\": {\"path\": \"p\", \"family\": \"flux2-dev\"}, \"two\": {\"path\": \"p\", \"family\": "
            "\"flux2-dev\", \"label\": \"one\"}",
            EXP1, "models.two.label\": expected a name that no other model has, got \"one\", which is one's");
    refused("[{\"name\": \"a\"}]", "[]", "[]", models, EXP1, "attributes[0].levels\": expected a list of levels");
    refused("[{\"name\": \"a\", \"kind\": \"sorted\", \"levels\": [\"x\"]}]", "[]", "[]", models, EXP1,
            "attributes[0].kind\": expected nominal or ordered, got \"sorted\"");
    refused("{}", sources, prompts, models, EXP1, "field \"attributes\": expected a list of attributes, got {}");
    refused(attributes, "[]", prompts, models, EXP1, "field \"sources\": expected a table with a source or more");
    refused(attributes, "[{\"id\": \"S1\", \"path\": \"a.png\", \"skin_type\": \"IV\", \"head_covering\": \"none\"}]",
            prompts, models, EXP1, "field \"skin_type\": expected I, II, III, got \"IV\"");
    refused(attributes, "[{\"id\": \"S1\", \"path\": \"a.png\", \"skin_type\": \"I\"}]", prompts, models, EXP1,
            "expected a column or field \"head_covering\" with none, hijab, got none of this name or an empty cell");
    refused(attributes,
            "[{\"id\": \"S1\", \"path\": \"a.png\", \"skin_type\": \"I\", \"head_covering\": \"none\"},"
            " {\"id\": \"S1\", \"path\": \"b.png\", \"skin_type\": \"I\", \"head_covering\": \"none\"}]",
            prompts, models, EXP1, "field \"id\": expected each source once, got \"S1\"");
    refused(attributes, "[{\"id\": \"S 1\", \"path\": \"a.png\"}]", prompts, models, EXP1,
            "field \"id\": expected 1 to 60 letters, digits, - or _, got \"S 1\"");
    refused(attributes, sources,
            "[{\"id\": \"K\", \"text\": \"x\", \"category\": \"c\"}, {\"id\": \"K\", \"text\": "
            "\"y\", \"category\": \"c\"}]",
            models, EXP1, "field \"id\": expected one that no line before has, got \"K\"");
    refused(attributes, sources, prompts, "\"m\": {}", EXP1, "field \"models.m.path\": expected the model's folder");
    refused(attributes, sources, prompts, "\"m\": {\"path\": \"someone/thing\"}", EXP1,
            "field \"models.m.path\": expected a model that is here, got someone/thing");
    refused(attributes, sources, prompts, "\"m\": {\"path\": \"someone/thing\", \"family\": \"sd9\"}", EXP1,
            "field \"models.m.family\": expected a name that 'likeness models' lists, got \"sd9\"");
    refused(attributes, sources, prompts, "\"a/b\": {\"path\": \"x/y\"}", EXP1, "as a model's key");
    refused(attributes, sources, prompts, models, "\"mine\": {}",
            "field \"experiments.mine\": expected a \"kind\" of edit, pair, composite or t2i, got nothing");
    refused(attributes, sources, prompts, models, "\"exp1\": {\"models\": [\"flux\"]}",
            "experiments.exp1.models\": expected a model that \"models\" has (quick, slow), got \"flux\"");
    refused(attributes, sources, prompts, models, "\"exp1\": {\"sources\": [\"S3\"]}",
            "experiments.exp1.sources\": expected a source's id of the table in \"sources\", got \"S3\"");
    refused(attributes, sources, prompts, models, "\"exp1\": {\"seeds\": \"9:0\"}",
            "field \"experiments.exp1.seeds\": expected a whole number, or two as 0:9");
    refused(attributes, sources, prompts, models, "\"exp2\": {\"preset\": \"pairs500\"}",
            "field \"experiments.exp2.preset\": pairs500 is drawn from the 84 sources of the portrait study");
    refused(attributes, sources, prompts, models, "\"exp3\": {}", "fifty sentences are about the 84 sources");
    refused(attributes, sources, prompts, models, "\"exp1\": {}, \"more\": {\"kind\": \"edit\"}",
            "quick_S1_K-01 is an output of exp1 and of more");
}

static enum lk_code open_and_close(void) {
    struct lk_study *study;
    struct lk_study_job job;
    enum lk_code rc = lk_study_open(&study, test_path("any.json"));
    if (!rc) rc = lk_study_job(study, 0, &job);
    lk_study_close(study);
    return rc;
}

static void memory_runs_out(void **state) {
    (void)state;
    write_study(attributes, sources, prompts, models, "\"mine\": {\"kind\": \"edit\", \"seeds\": \"0:1\"}");
    test_every_allocation(open_and_close, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_the_files),
        cmocka_unit_test(groups_of_levels),
        cmocka_unit_test(a_key_is_no_part_of_the_id),
        cmocka_unit_test(the_copy_needs_no_table),
        cmocka_unit_test(a_fourth_model_joins_the_portraits),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
