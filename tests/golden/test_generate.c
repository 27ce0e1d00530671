/* Text generation against transformers' (tests/golden/README.md): ids of whole generations with images, greedy and
 * drawn, the distributions that they were drawn from, and the sampler alone. Arguments choose cases by name. */
#include "tests/common/golden.h"
#include "tests/common/test.h"

#include <math.h>

#include "models/pipeline.h"
#include "models/text/generate.h"
#include "models/text/qwen25_vl.h"
#include "models/text/sampler.h"

#define FOLDER "golden/data/"
#define VOCAB  600 /* of generate_generate.py */
#define N_SEEN 60
#define BOUND  1e-5 /* of a probability, relative; observed: 3e-6 */

/* VALUE of "KEY=VALUE" in a list of settings. */
static const char *setting(const char *settings, const char *key) {
    static char value[64];
    for (const char *at = settings; (at = strstr(at, key)); at++) {
        if ((at > settings && at[-1] != ' ') || at[strlen(key)] != '=') continue;
        assert_int_equal(sscanf(at + strlen(key) + 1, "%63s", value), 1);
        return value;
    }
    return NULL;
}

static double number(const char *settings, const char *key, double otherwise) {
    const char *value = setting(settings, key);
    return value ? strtod(value, NULL) : otherwise;
}

static struct lk_generation_config config_of(const char *settings) {
    struct lk_generation_config c;
    lk_generation_config_init(&c);
    c.do_sample = number(settings, "do_sample", 1) != 0;
    c.temperature = number(settings, "temperature", 1);
    c.top_k = (int64_t)number(settings, "top_k", 50);
    c.top_p = number(settings, "top_p", 1);
    c.repetition_penalty = number(settings, "penalty", number(settings, "repetition_penalty", 1));
    c.max_new_tokens = 64;
    if (setting(settings, "stop_id")) c.stop_ids[c.n_stop_ids++] = (int64_t)number(settings, "stop_id", 0);
    return c;
}

/* What is kept is the same, and every probability within the bound. */
static void check_probabilities(const struct lk_sampler *s, const float *expected, size_t n, const char *what) {
    float *got = calloc(n, sizeof *got);
    assert_non_null(got);
    lk_sampler_probabilities(s, got);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - expected[i]) <= BOUND * expected[i]))
            fail_msg("%s: probability of id %zu: expected %.9g, got %.9g", what, i, expected[i], got[i]);
    free(got);
}

struct generation {
    const char *name, *settings;
    struct golden golden; /* generate.safetensors */
    struct golden input;  /* of data/qwen25_vl */
    struct lk_checkpoint checkpoint;
    struct lk_qwen25_vl m;
    struct lk_vlm view;
    struct lk_generate_request request;
    int32_t *ids;
    float *rows[LK_VLM_MAX_IMAGES];
    struct lk_vlm_image images[LK_VLM_MAX_IMAGES];
    float *expected;
    size_t n_expected;
    int n_compared; /* distributions */
};

/* Compares the distribution of a step, if the golden has it. */
static enum lk_code on_trace(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct generation *g = context;
    char key[96];
    int step;
    (void)dev;
    if (sscanf(name, "generate.%d.logits", &step) != 1) return LK_OK;
    snprintf(key, sizeof key, "%s.%d.probabilities", g->name, step);
    if (!lk_safetensors_find(&g->golden.st, key)) return LK_OK;
    size_t n;
    float *expected = golden_values(&g->golden, key, &n);
    struct lk_sampler s;
    assert_ok(lk_sampler_init(&s, &g->request.config, (int64_t)n, (int64_t)n, 0));
    lk_sampler_see(&s, g->ids, g->request.n_ids);
    for (int i = 0; i < step; i++) lk_sampler_see(&s, (int32_t[]){(int32_t)g->expected[i]}, 1);
    assert_ok(lk_sampler_process(&s, value->data));
    check_probabilities(&s, expected, n, key);
    lk_sampler_free(&s);
    free(expected);
    g->n_compared++;
    return LK_OK;
}

static void open_model(struct generation *g, const char *config) {
    char path[256];
    struct lk_config *json;
    struct lk_qwen25_vl_config c;
    snprintf(path, sizeof path, FOLDER "qwen25_vl/%s/checkpoint/config.json", config);
    assert_ok(lk_config_open(&json, path));
    assert_ok(lk_qwen25_vl_config_read(&c, json));
    snprintf(path, sizeof path, FOLDER "qwen25_vl/%s/checkpoint", config);
    assert_ok(lk_checkpoint_open(&g->checkpoint, path, "model"));
    assert_ok(lk_qwen25_vl_bind(&g->m, &c, true, &g->checkpoint, LK_F32));
    g->request.n_valid_ids = c.vocab_size;
}

static void read_input(struct generation *g) {
    struct lk_generate_request *q = &g->request;
    size_t n;
    float *ids = golden_values(&g->input, "input.ids", &n);
    g->ids = calloc(n, sizeof *g->ids);
    assert_non_null(g->ids);
    for (size_t i = 0; i < n; i++) g->ids[i] = (int32_t)ids[i];
    free(ids);
    q->ids = g->ids;
    q->n_ids = (int64_t)n;
    char grids[128], name[64];
    snprintf(grids, sizeof grids, "%s", golden_text(&g->input, "grids"));
    for (char *rest, *grid = strtok_r(grids, " ", &rest); grid; grid = strtok_r(NULL, " ", &rest)) {
        struct lk_vlm_image *image = &g->images[q->n_images];
        assert_int_equal(sscanf(grid, "%dx%d", &image->grid_h, &image->grid_w), 2);
        snprintf(name, sizeof name, "input.image.%d", q->n_images);
        float *rows = golden_values(&g->input, name, &n);
        for (size_t i = 0; i < n; i++) rows[i] = (rows[i] - 117.25f) / 53; /* pixel_rows of qwen25_vl_models.py */
        image->rows = g->rows[q->n_images++] = rows;
    }
    q->images = g->images;
}

static void test_generation(void **state) {
    struct generation g = {.name = *state};
    char path[256], config[64], key[96];
    golden_open(&g.golden, FOLDER "generate/generate.safetensors", g.name);
    g.settings = golden_text(&g.golden, g.name);
    snprintf(config, sizeof config, "%s", setting(g.settings, "config"));
    snprintf(path, sizeof path, FOLDER "qwen25_vl/%s/cases/%s.safetensors", config, setting(g.settings, "case"));
    golden_open(&g.input, path, g.name);
    open_model(&g, config);
    g.request.config = config_of(g.settings);
    g.view = lk_qwen25_vl_view(&g.m);
    g.request.seed = (uint64_t)number(g.settings, "seed", 0);
    read_input(&g);
    snprintf(key, sizeof key, "%s.ids", g.name);
    g.expected = golden_values(&g.golden, key, &g.n_expected);

    struct lk_device *dev;
    struct lk_generation out;
    assert_ok(lk_device_cpu_create(1, &dev));
    dev->trace = on_trace;
    dev->trace_context = &g;
    assert_ok(lk_generate(dev, &g.view, LK_F32, &g.request, 1, 1, &out));
    for (size_t i = 0; i < g.n_expected && (int64_t)i < out.n; i++)
        if (out.ids[i] != (int32_t)g.expected[i])
            fail_msg("%s: id %zu: expected %d, got %d", g.name, i, (int)g.expected[i], out.ids[i]);
    assert_int_equal(out.n, g.n_expected);
    assert_int_equal(out.stopped, g.request.config.n_stop_ids > 0);
    assert_int_equal(out.peak_bytes, dev->arena.capacity);
    struct lk_plan plan;
    assert_ok(lk_generate_plan(dev, &g.view, LK_F32, &g.request, 1, 1, &plan));
    assert_int_equal(plan.arena_bytes, out.peak_bytes);
    assert_int_equal(plan.n_tokens, g.request.n_ids);
    assert_int_equal(g.n_compared, g.request.config.do_sample ? 4 : 0);

    lk_generation_free(&out);
    lk_device_free(dev);
    lk_qwen25_vl_free(&g.m);
    lk_checkpoint_close(&g.checkpoint);
    for (int i = 0; i < LK_VLM_MAX_IMAGES; i++) free(g.rows[i]);
    free(g.ids);
    free(g.expected);
    golden_close(&g.input);
    golden_close(&g.golden);
}

static void test_sampler(void **state) {
    const char *name = *state;
    struct golden golden;
    char key[96];
    size_t n;
    golden_open(&golden, FOLDER "generate/sampler.safetensors", name);
    const char *settings = golden_text(&golden, name);
    struct lk_generation_config config = config_of(settings);
    uint64_t seed = (uint64_t)number(settings, "seed", 0);
    float logits[VOCAB], scale = (float)number(settings, "scale", 1), grain = (float)number(settings, "grain", 0);
    struct lk_rng rng;
    lk_rng_seed(&rng, seed);
    lk_rng_normal_f32(&rng, logits, VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        logits[i] *= scale;
        if (grain > 0) logits[i] = rintf(logits[i] * grain) / grain;
    }
    struct lk_sampler s;
    assert_ok(lk_sampler_init(&s, &config, VOCAB, VOCAB, seed));
    for (int32_t i = 0; i < N_SEEN; i++) lk_sampler_see(&s, (int32_t[]){i * 7 % VOCAB}, 1);
    assert_ok(lk_sampler_process(&s, logits));
    snprintf(key, sizeof key, "%s.probabilities", name);
    float *expected = golden_values(&golden, key, &n);
    assert_int_equal(n, VOCAB);
    check_probabilities(&s, expected, n, key);
    free(expected);
    snprintf(key, sizeof key, "%s.draws", name);
    float *draws = golden_values(&golden, key, &n);
    for (size_t i = 0; i < n; i++) assert_int_equal(lk_sampler_pick(&s), (int32_t)draws[i]);
    free(draws);
    lk_sampler_free(&s);
    golden_close(&golden);
}

static bool chosen(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(name, argv[i])) return true;
    return argc < 2;
}

int main(int argc, char **argv) {
    static const char *const generations[] = {"greedy",           "greedy_penalty", "greedy_tied", "greedy_text",
                                              "greedy_text_stop", "sample",         "sample_all",  "sample_released"};
    static const char *const samplers[] = {"plain", "penalty",    "reward", "cold",      "hot",
                                           "top_k", "top_k_ties", "top_p",  "top_p_one", "all"};
    enum { N_GENERATIONS = sizeof generations / sizeof *generations, N_SAMPLERS = sizeof samplers / sizeof *samplers };
    struct CMUnitTest tests[N_GENERATIONS + N_SAMPLERS];
    size_t n = 0;
    for (int i = 0; i < N_GENERATIONS + N_SAMPLERS; i++) {
        bool whole = i < N_GENERATIONS;
        const char *name = whole ? generations[i] : samplers[i - N_GENERATIONS];
        if (!chosen(name, argc, argv)) continue;
        tests[n] = (struct CMUnitTest){.name = name, .test_func = whole ? test_generation : test_sampler};
        tests[n++].initial_state = (void *)(uintptr_t)name;
    }
    if (!n) {
        fprintf(stderr, "no case has this name\n");
        return 1;
    }
    return _cmocka_run_group_tests("generate goldens", tests, n, NULL, NULL);
}
