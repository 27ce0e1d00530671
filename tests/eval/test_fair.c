/* Fair instructions: the file, which rule hits, who gets which level, and what it does to scripted predictions. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/t2i/fair.h"
#include "eval/t2i/report.h"
#include "models/sd/sega.h"
#include "tests/common/test.h"

#define GENDER                                                                                                         \
    "\"gender\":{\"target\":{\"male\":0.5,\"female\":0.5},\"concepts\":{\"male\":\"man\",\"female\":\"woman\"},"       \
    "\"decrease\":\"none\"}"
#define AGE                                                                                                            \
    "\"age\":{\"target\":{\"young\":0.25,\"old\":0.5,\"child\":0.25},\"concepts\":{\"young\":\"young person\","        \
    "\"old\":\"old person\",\"child\":\"child\"}}"
#define FAIR(rules) "{\"version\":1,\"attributes\":{" GENDER "," AGE "},\"rules\":[" rules "]}"

static void read_ok(struct lk_fair *f, const char *text) { assert_ok(lk_fair_read(f, text, strlen(text), "fair")); }

static int rule_of(const struct lk_fair *f, const char *prompt) {
    int rule;
    assert_ok(lk_fair_rule(f, prompt, &rule));
    return rule;
}

static void lookup(void **state) {
    (void)state;
    struct lk_fair f;
    read_ok(&f, FAIR("{\"match\":[\"a thief\",\"drug dealer\"],\"attributes\":[\"age\"],\"unless\":[\"old\"]},"
                     "{\"match\":[\"The thief\"],\"attributes\":[\"gender\",\"age\"]},"
                     "{\"match\":[\"A caf\xc3\xa9 owner!\"],\"attributes\":[\"age\"]}"));
    static const struct {
        const char *prompt;
        int rule;
    } known[] = {{"A photo of a thief.", 0},
                 {"A photo of the THIEF", 0},
                 {"thief", 0},
                 {"A thieflike person", -1},
                 {"a chief", -1},
                 {"a Drug  dealer, smiling", 0},
                 {"a drug-dealer", 0},
                 {"a drug and a dealer", -1},
                 {"drugdealer", -1},
                 {"an old thief", 1},
                 {"a bold thief", 0},
                 {"a prisoner", -1},
                 {"a thief\xc3\xa9", -1},
                 {"a thiefe\xcc\x81", -1},
                 {"a thief\xcc\xb1", -1}, /* a mark with which f has no letter of its own */
                 {"a thief2", -1},
                 {"A photo of a thief\xe2\x80\x94smiling", 0},
                 {"\xe2\x80\x9cthief\xe2\x80\x9d", 0},
                 {"a CAF\xc3\x89 owner", 2},
                 {"a cafe\xcc\x81 owner", 2},
                 {"a cafe owner", -1},
                 {"", -1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (rule_of(&f, known[i].prompt) != known[i].rule)
            fail_msg("\"%s\": rule %d", known[i].prompt, rule_of(&f, known[i].prompt));
    assert_fails(lk_fair_rule(&f, "a \xff thief", &(int){0}), LK_E_INPUT, "expected UTF-8");
    const char *concepts[LK_SEGA_MAX_CONCEPTS];
    assert_int_equal(lk_fair_concepts(&f, 1, (const int8_t[]){1, 2}, concepts), 4);
    assert_string_equal(concepts[0], "woman;scale=4;threshold=0.95;warmup=5");
    assert_string_equal(concepts[1], "young person;reverse;scale=4;threshold=0.95;warmup=5");
    assert_string_equal(concepts[3], "child;scale=4;threshold=0.95;warmup=5");
    for (int i = 0; i < 4; i++) assert_ok(lk_sega_concept_check("", concepts[i], NULL));
    lk_fair_free(&f);
    read_ok(&f, lk_fair_gender);
    assert_int_equal(rule_of(&f, "A photo of a woman who is a thief"), -1);
    assert_int_equal(rule_of(&f, "A photo of a male thief"), -1);
    assert_int_equal(rule_of(&f, "A photo of a human thief"), 0);
    lk_fair_free(&f);
}

static void count(const int32_t *levels, size_t n, int out[3]) {
    out[0] = out[1] = out[2] = 0;
    for (size_t k = 0; k < n; k++) out[levels[k]]++;
}

/* The counts are exact for every number of seeds, and who gets what is the stream's alone. */
static void quota(void **state) {
    (void)state;
    struct lk_fair f;
    int32_t levels[1000], again[1000];
    int counts[3], n_in_order = 0, n_same = 0;
    read_ok(&f, FAIR("{\"match\":\"*\",\"attributes\":[\"gender\",\"age\"]}"));
    for (size_t n = 1; n <= 40; n++) {
        lk_fair_deal(&f, 0, "quota", 42, "17", levels, n);
        count(levels, n, counts);
        assert_true(counts[0] == (int)(n + 1) / 2 && counts[1] == (int)n / 2);
        lk_fair_deal(&f, 0, "quota", 42, "17", again, n);
        assert_memory_equal(levels, again, n * sizeof *levels);
        lk_fair_deal(&f, 0, "quota", 42, "18", again, n);
        n_same += !memcmp(levels, again, n * sizeof *levels);
        bool in_order = true;
        for (size_t k = 1; k < n; k++) in_order = in_order && levels[k - 1] <= levels[k];
        n_in_order += in_order;
        lk_fair_deal(&f, 1, "quota", 42, "17", levels, n);
        count(levels, n, counts);
        assert_true(fabs(counts[0] - 0.25 * (double)n) < 1 && fabs(counts[1] - 0.5 * (double)n) < 1);
    }
    assert_true(n_in_order < 6 && n_same < 8);
    lk_fair_deal(&f, 1, "old", 42, "17", levels, 40);
    count(levels, 40, counts);
    assert_int_equal(counts[1], 40);
    lk_fair_deal(&f, 1, "draw", 42, "17", levels, 1000);
    count(levels, 1000, counts);
    assert_true(abs(counts[0] - 250) < 55 && abs(counts[1] - 500) < 64 && counts[1] != 500);
    assert_ok(lk_fair_check_assign(&f, "child"));
    assert_fails(lk_fair_check_assign(&f, "Male"), LK_E_USAGE, "expected quota, draw or a level");
    lk_fair_free(&f);
}

#define ONE(key, value) "{\"version\":1,\"attributes\":{\"gender\":{\"" key "\":" value "}}}"

static void labels(void **state) {
    (void)state;
    struct lk_fair f;
    read_ok(&f, "{\"version\":1,\"attributes\":{\"presentation\":{\"target\":{\"woman\":0.5,\"man\":0.5},"
                "\"label\":{\"woman\":\"Female\"},\"concepts\":{\"woman\":\"woman\",\"man\":\"man\"}}},"
                "\"rules\":[{\"match\":\"*\",\"attributes\":[\"presentation\"]}]}");
    assert_string_equal(f.attributes[0].labels[0], "Female");
    assert_string_equal(f.attributes[0].labels[1], "man");
    lk_fair_free(&f);
}

/* The instruction of tools/docs/text-to-image.md. */
static void documented(void **state) {
    (void)state;
    char path[600];
    struct lk_fair f;
    snprintf(path, sizeof path, "%s/tools/docs/text-to-image.md", getenv("SOURCE_DIR"));
    char *page = test_read(path, &(size_t){0}), *from = strstr(page, "    {\"version\""), *end = strstr(from, "]}\n\n");
    assert_ok(lk_fair_read(&f, from, (size_t)(end + 2 - from), path));
    assert_int_equal(rule_of(&f, "A photo of the drug dealer"), 0);
    assert_int_equal(rule_of(&f, "A photo of a woman"), -1);
    lk_fair_free(&f);
    free(page);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{}", "expected \"version\": 1 and rules"},
        {"{\"version\":2,\"attributes\":{" GENDER "},\"rules\":[{\"match\":\"*\",\"attributes\":[\"gender\"]}]}",
         "got version 2"},
        {"{\"version\":1,\"rule\":[]}", "field \"rule\": unknown"},
        {"{\"version\":1,\"defaults\":{\"threshold\":1.5}}", "field \"threshold\": expected a number from 0 to 1"},
        {"{\"version\":1,\"defaults\":{\"warmup\":1001}}", "field \"warmup\": expected a whole number"},
        {"{\"version\":1,\"defaults\":{\"weight\":1}}", "field \"weight\": unknown"},
        {"{\"version\":1,\"attributes\":{\"g\":{\"target\":{\"a\":0.5,\"b\":0.6},\"concepts\":{\"a\":\"x\",\"b\":"
         "\"y\"}}}}",
         "expected shares that sum to 1, got 1.1"},
        {"{\"version\":1,\"attributes\":{\"g\":{\"target\":{\"a\":1},\"concepts\":{\"a\":\"x\",\"b\":\"y\"}}}}",
         "level \"b\" has no share"},
        {"{\"version\":1,\"attributes\":{\"g\":{\"target\":{\"a\":1},\"concepts\":{}}}}", "level \"a\" has no text"},
        {"{\"version\":1,\"attributes\":{\"g\":{\"decrease\":\"all\"}}}", "expected others or none, got \"all\""},
        {FAIR("{\"match\":\"thief\",\"attributes\":[\"age\"]}"), "match: expected \"*\" or a list"},
        {FAIR("{\"match\":\"*\",\"attributes\":[\"race\"]}"), "got \"race\""},
        {FAIR("{\"match\":\"*\",\"attributes\":[\"age\",\"age\"]}"), "at most once"},
        {FAIR("{\"match\":\"*\"}"), "attributes (listed before the rules) of 1 to 8 concepts, got 0"},
        {FAIR("{\"match\":[],\"attributes\":[\"age\"]}"), "expected a match"},
        {FAIR("{\"match\":[\"!\"],\"attributes\":[\"age\"]}"), "phrase \"!\": expected a word"},
        {ONE("target", "{\"quota\":1}"), "and not quota or draw"},
        {ONE("target", "{\"a+b\":1}"), "expected at most 30 bytes without"},
        {ONE("target", "{\"a level of more bytes than thirty\":1}"), "expected at most 30 bytes"},
        {ONE("label", "{\"a\":\"Woman\"}"), "label of \"a\": expected a level of labels as Female, got \"Woman\""},
        {ONE("label", "{\"a\":\"20-29\"}"), "got \"20-29\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lk_fair f;
        const enum lk_code rc = lk_fair_read(&f, bad[i].text, strlen(bad[i].text), "fair.json");
        if (!rc || !strstr(lk_error_text(), bad[i].says) || strncmp(lk_error_text(), "fair.json", 9) != 0)
            fail_msg("%s: %s", bad[i].text, rc ? lk_error_text() : "no error");
        lk_fair_free(&f);
    }
}

/* A model of 64 values whose prompt leans to one end of a direction, and whose concepts lie along it: every step moves
 * the latents by the prediction. Seeds that end at the direction's positive side are labelled as women; their share. */
static double share(const struct lk_fair *f, const char *arm, struct lk_text *labels) {
    const bool fair = !strcmp(arm, "fair");
    const float lean = strcmp(arm, "diversity") ? -0.01f : -0.009f; /* of the prompt */
    enum { N = 64, SEEDS = 200, STEPS = 20 };
    int32_t levels[SEEDS];
    int n_positive = 0;
    lk_fair_deal(f, 0, "quota", 42, "17", levels, SEEDS);
    for (int seed = 0; seed < SEEDS; seed++) {
        const int8_t level = (int8_t)levels[seed];
        struct lk_sega s = {.guidance_scale = 7, .momentum_scale = 0.5, .momentum_beta = 0.6};
        const char *concepts[LK_SEGA_MAX_CONCEPTS];
        const int n = lk_fair_concepts(f, 0, &level, concepts);
        /* A deviate of this seed, evenly spaced from -1 to 1: the base ends on the positive side for a tenth. */
        double at = 2 * (seed + 0.5) / SEEDS - 1;
        assert_ok(lk_sega_begin(&s, concepts, n, &(struct lk_sega_shape){STEPS, N, 1}));
        for (int i = 0; i < STEPS; i++) {
            float p[4 * N];
            for (int j = 0; j < N; j++) {
                const float along = (float)(j % 4 == 0 ? 1 + j : 0) / N; /* the direction */
                p[j] = 0;
                p[N + j] = lean * along;
                p[2 * N + j] = -0.05f * along; /* male */
                p[3 * N + j] = 0.05f * along;  /* female */
            }
            if (fair)
                lk_sega_step(&s, i, p, NULL);
            else
                for (int j = 0; j < N; j++) p[j] += 7 * (p[N + j] - p[j]);
            for (int j = 0; j < N; j++) at += (double)p[j] / 15;
        }
        n_positive += at > 0;
        lk_text_add(labels, "%s%d,17,sd,%d,7,true,%s,%s,%s,%s\n", arm, seed, seed, at > 0 ? "Female" : "Male", arm,
                    fair ? "gender" : "", fair ? f->attributes[0].levels[level] : "");
        lk_sega_free(&s);
    }
    return (double)n_positive / SEEDS;
}

static void scripted(void **state) {
    (void)state;
    struct lk_fair f;
    struct lk_text labels = {0}, text = {0};
    struct lk_t2i_images images;
    struct lk_t2i_metrics m;
    struct lk_t2i_options options = {.how = {42, 199, 0.95, NULL, 1}, .alpha = 0.05};
    read_ok(&f, lk_fair_gender);
    lk_text_add(&labels, "file_path,prompt_id,model_tag,seed,cfg,face_found,gender,arm,fair_attribute,fair_level\n");
    const double base = share(&f, "none", &labels), cue = share(&f, "diversity", &labels),
                 fair = share(&f, "fair", &labels);
    print_message("share %.3f, with a cue %.3f, with the instruction %.3f\n", base, cue, fair);
    assert_true(fabs(2 * base - 1) > 0.6);
    assert_true(fabs(2 * fair - 1) < 0.21); /* as published: 0.623 to 0.210 */
    assert_ok(lk_t2i_distribution_uniform(&options.target));
    options.reference = options.target;
    lk_t2i_images_init(&images);
    assert_ok(lk_t2i_images_labels(&images, labels.bytes, labels.n, "labels.csv"));
    assert_ok(lk_t2i_images_finish(&images));
    assert_ok(lk_t2i_metrics_compute(&m, &images, &options));
    int n_arms = 0;
    for (size_t i = 0; i < m.n_changes; i++) {
        const struct lk_t2i_change *c = &m.changes[i];
        const double expected = fabs(2 * (c->arm == LK_T2I_FAIR ? fair : cue) - 1) - fabs(2 * base - 1);
        assert_true(fabs(c->change.change.value - expected) < 1e-12);
        if (c->arm == LK_T2I_FAIR) assert_true(c->change.change.high < -0.4 && c->adjusted <= 0.01);
        n_arms += !lk_t2i_pooled(&c->scope);
    }
    assert_int_equal(n_arms, 2);
    struct lk_table *table;
    assert_ok(lk_t2i_table(&m, LK_T2I_TABLE_CHANGES, &table));
    lk_table_markdown(table, &text);
    assert_non_null(strstr(text.bytes, "| sd | 17 | Perceived gender | Diversity cue | 200 |"));
    assert_non_null(strstr(text.bytes, "| sd | 17 | Perceived gender | Fair guidance | 200 |"));
    lk_table_free(table);
    lk_t2i_metrics_free(&m);
    lk_t2i_images_free(&images);
    lk_text_free(&labels);
    lk_text_free(&text);
    lk_fair_free(&f);
}

#define LOG "prompt_id,model_tag,seed,cfg,file_path,arm,fair_attribute,fair_level,fair_label\n"

static enum lk_code read_log(struct lk_t2i_images *images, const char *log) {
    lk_t2i_images_init(images);
    return lk_t2i_images_log(images, log, strlen(log), "log.csv");
}

/* Two attributes at once; a level whose name is no label, one that has none, a face without a label, no face, another
 * CFG, and a prompt that no rule hits. */
static const char log_of_seven[] = LOG "1,sd,0,7,a,fair,gender+age,woman+20-29,Female+20-29\n"
                                       "1,sd,1,7,b,fair,gender+age,man+20-29,Male+20-29\n"
                                       "1,sd,2,7,c,fair,gender+mood,woman+glad,Female+glad\n"
                                       "1,sd,3,7,d,fair,gender,woman,Female\n"
                                       "1,sd,4,7,e,fair,,,\n"
                                       "1,sd,5,7,f,fair,gender,woman,Female\n"
                                       "1,sd,5,9,g,fair,gender,woman,Female\n";
static const char labels_of_seven[] = "file_path,face_found,gender,age\na,true,Female,20-29\nb,true,Female,30-39\n"
                                      "c,true,Female,\nd,false,,\ne,true,Male,20-29\nf,true,,20-29\ng,true,Male,\n";

static enum lk_code table_of(struct lk_text *out) {
    struct lk_t2i_options options = {.how = {42, 10, 0.95, NULL, 1}, .alpha = 0.05};
    struct lk_t2i_images images = {0};
    struct lk_t2i_metrics metrics = {0};
    struct lk_table *table = NULL;
    enum lk_code rc = lk_t2i_distribution_uniform(&options.target);
    options.reference = options.target;
    if (!rc) rc = read_log(&images, log_of_seven);
    if (!rc) rc = lk_t2i_images_labels(&images, labels_of_seven, sizeof labels_of_seven - 1, "labels.csv");
    if (!rc) rc = lk_t2i_images_finish(&images);
    if (!rc) rc = lk_t2i_metrics_compute(&metrics, &images, &options);
    if (!rc) rc = lk_t2i_table(&metrics, LK_T2I_TABLE_FAIR, &table);
    if (!rc) lk_table_markdown(table, out);
    lk_table_free(table);
    lk_t2i_metrics_free(&metrics);
    lk_t2i_images_free(&images);
    return rc ? rc : out->rc;
}

#define NONE "–<sup>a</sup>"

static void asked_and_perceived(void **state) {
    (void)state;
    static const char *const rows[] = {
        "| Asked for | Pictures | Male | Female | 0-2 |",
        "| sd | gender | woman | 4 | 0 | 2 | –",
        "| 1 | 1 | 100.0% \\[34.2, 100.0\\] |\n", /* Wilson's interval of n of n: from n / (n + z^2) */
        "| sd | age | 20-29 | 2 | " NONE " | " NONE
        " | 0 | 0 | 0 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 50.0% \\[9.5, 90.5\\] |",
        "| sd | gender | man | 1 | 0 | 1 |",
        "| 0 | 0 | 0.0% \\[0.0, 79.3\\] |\n",
        "| sd | mood | glad | 1 | " NONE " | ",
        NONE " | 1 | 0 | –<sup>b</sup> |",
        "that no rule of the instruction hits: 1.",
    };
    struct lk_text text = {0};
    assert_ok(table_of(&text));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strstr(text.bytes, rows[i])) fail_msg("expected %s\n%s", rows[i], text.bytes);
    lk_text_free(&text);
    static const char *const bad[] = {"gender,,\n",         ",woman,\n",        "gender,a+b,a+b\n",
                                      "gender+age,a+b,a\n", "a++b,c++d,c++d\n", "a+b+c+d+e,a+b+c+d+e,a+b+c+d+e\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lk_t2i_images images;
        char log[300];
        snprintf(log, sizeof log, LOG "1,sd,0,7,a,fair,%s", bad[i]);
        assert_fails(read_log(&images, log), LK_E_INPUT, "names joined by +");
        lk_t2i_images_free(&images);
    }
}

static enum lk_code all_calls(void) {
    struct lk_fair f;
    struct lk_text text = {0};
    int rule;
    enum lk_code rc = lk_fair_read(&f, lk_fair_gender, strlen(lk_fair_gender), "fair");
    if (!rc) rc = lk_fair_rule(&f, "a caf\xc3\xa9 owner", &rule);
    lk_fair_free(&f);
    if (!rc) rc = table_of(&text);
    lk_text_free(&text);
    return rc;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    test_every_allocation(all_calls, 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lookup),
                                       cmocka_unit_test(labels),
                                       cmocka_unit_test(documented),
                                       cmocka_unit_test(quota),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(scripted),
                                       cmocka_unit_test(asked_and_perceived),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
