/* Sigmas, mu, time embedding and RoPE tables against diffusers and transformers: golden/data/flow_match.txt, made by
 * golden/generate_flow_match.py. */
#include "tests/common/test.h"

#include <inttypes.h>
#include <math.h>

#include "engine/flow_match.h"
#include "engine/rope_table.h"
#include "models/flux2/flux2.h"
#include "models/schedule.h"

static const struct lk_flow_match_config flux2 = {
    .num_train_timesteps = 1000,
    .use_dynamic_shifting = true,
    .shift = 3.0,
    .exponential = true,
    .base_image_seq_len = 256,
    .max_image_seq_len = 4096,
    .base_shift = 0.5,
    .max_shift = 1.15,
};

static struct lk_flow_match_config config_named(const char *name) {
    struct lk_flow_match_config config = flux2;
    if (strcmp(name, "linear") == 0)
        config.exponential = false;
    else if (strcmp(name, "terminal") == 0)
        config.shift_terminal = 0.02;
    else if (strcmp(name, "flux2") != 0 && strcmp(name, "step1x") != 0)
        config.use_dynamic_shifting = false;
    if (strcmp(name, "lightning") == 0)
        return (struct lk_flow_match_config){1000, true, 1.0, 0, true, 256, 8192, log(3), log(3)};
    if (strcmp(name, "qwen") == 0)
        return (struct lk_flow_match_config){1000, true, 1.0, 0.02, true, 256, 8192, 0.5, 0.9};
    if (strcmp(name, "shift1") == 0) config.shift = 1.0;
    if (strcmp(name, "shift3_terminal") == 0) config.shift_terminal = 0.1;
    return config;
}

struct sum {
    uint64_t value, position;
};

static void add_to_sum(struct sum *sum, uint64_t bits) {
    sum->value += (bits + 1) * (sum->position++ * 0x9e3779b97f4a7c16u + 1);
}

static void add_floats(struct sum *sum, const float *values, int n) {
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof bits);
        add_to_sum(sum, bits);
    }
}

static void check_mu(const char *line) {
    int first, end, step;
    uint64_t expected;
    assert_int_equal(sscanf(line, "mu %d %d %d %" SCNu64, &first, &end, &step, &expected), 4);
    struct sum sum = {0, 0};
    for (int length = first; length < end; length += step) {
        for (int n = 1; n <= 100; n++) {
            double mu = lk_flux2_mu(length, n);
            uint64_t bits;
            memcpy(&bits, &mu, sizeof bits);
            add_to_sum(&sum, bits);
        }
    }
    assert_true(sum.value == expected);
}

static void check_sigmas(const char *line) {
    char name[32];
    int length, first;
    uint64_t expected;
    assert_int_equal(sscanf(line, "sigmas %31s %d %d %" SCNu64, name, &length, &first, &expected), 4);
    struct lk_flow_match_config config = config_named(name);
    struct sum sum = {0, 0};
    for (int n = first; n <= 100; n++) {
        float sigmas[101], timesteps[100];
        assert_ok(lk_flow_match_sigmas(&config, n, NULL, lk_flux2_mu(length, n), sigmas, timesteps));
        add_floats(&sum, sigmas, n + 1);
        add_floats(&sum, timesteps, n);
    }
    if (sum.value != expected) fail_msg("%s: got %" PRIu64, line, sum.value);
}

static const char *read_floats(const char *text, float *out, int n) {
    for (int i = 0; i < n; i++) {
        char *end;
        uint32_t bits = (uint32_t)strtoul(text, &end, 16);
        assert_ptr_not_equal(text, end);
        memcpy(out + i, &bits, sizeof bits);
        text = end;
    }
    return text;
}

static void assert_near(const char *what, const float *actual, const float *expected, int n, double tolerance) {
    for (int i = 0; i < n; i++)
        if (!(fabs((double)actual[i] - expected[i]) <= tolerance))
            fail_msg("%s: element %d is %.9g, expected %.9g", what, i, actual[i], expected[i]);
}

static void check_schedule(const char *line) {
    int n, length, used;
    assert_int_equal(sscanf(line, "schedule %d %d%n", &n, &length, &used), 2);
    assert_int_equal(n, 8);
    float sigmas[9], timesteps[8], expected[17];
    read_floats(line + used, expected, 17);
    assert_ok(lk_flow_match_sigmas(&flux2, n, NULL, lk_flux2_mu(length, n), sigmas, timesteps));
    assert_near("sigmas", sigmas, expected, 9, 0);
    assert_near("timesteps", timesteps, expected + 9, 8, 0);
}

/* Of the 128 frequencies of torch's float exp three are one ulp (6e-8) off the nearest value on the Intel processor
 * that made the file (others elsewhere: flow_match.h), which moves an angle of up to 4000 by at most 2.4e-4. */
static void check_embedding(const char *line) {
    float timestep, expected[256], actual[256];
    read_floats(read_floats(line + strlen("embedding"), &timestep, 1), expected, 256);
    lk_timestep_embedding(timestep, 256, actual);
    assert_near(line, actual, expected, 256, 6e-8 * timestep + 1.2e-7);
    int n_equal = 0;
    for (int i = 0; i < 256; i++) n_equal += actual[i] == expected[i];
    assert_true(n_equal >= 220);
}

static void check_rope(const char *line) {
    static const int axes_dims[4] = {32, 32, 32, 32};
    float ids[8] = {3, 1, 4, 1};
    int used;
    assert_int_equal(sscanf(line, "rope %f %f %f %f%n", &ids[4], &ids[5], &ids[6], &ids[7], &used), 4);
    float expected[128], cosines[128], sines[128];
    read_floats(line + used, expected, 128);
    lk_rope_table(ids, 2, axes_dims, 4, 2000.0, cosines, sines);
    assert_near(line, cosines + 64, expected, 64, 0);
    assert_near(line, sines + 64, expected + 64, 64, 0);
}

static void check_rope_lm(const char *line) {
    int position, used;
    char dtype[8];
    assert_int_equal(sscanf(line, "rope_lm %d %7s%n", &position, dtype, &used), 2);
    bool bf16 = strcmp(dtype, "bf16") == 0;
    float expected[128], cosines[128], sines[128];
    read_floats(line + used, expected, 128);
    int before = position > 0; /* the second row then */
    lk_rope_table_lm(position - before, 1 + before, 128, 1e9, bf16, cosines, sines);
    assert_near(line, cosines + 64 * before, expected, 64, bf16 ? 0 : 6e-8);
    assert_near(line, sines + 64 * before, expected + 64, 64, bf16 ? 0 : 6e-8);
}

/* A job of the preset alone, completed for a model, whose own scheduler it may replace. */
static void check_preset(const char *line) {
    char name[32], text[32];
    int tokens, used;
    assert_int_equal(sscanf(line, "preset %31s %d%n", name, &tokens, &used), 2);
    const bool qwen = !strncmp(name, "qwen", 4);
    struct lk_flow_match_config own = config_named(qwen ? "qwen" : "flux2"), config;
    struct lk_pipeline *pipeline;
    struct lk_job job;
    float expected[9], sigmas[9], timesteps[8], input[8];
    int n;
    assert_ok(lk_pipeline_open_configs(&pipeline, qwen ? "qwen-edit-2511" : "flux2-dev", LK_BF16));
    lk_job_init(&job);
    assert_ok(lk_parameter_parse(lk_parameter_named("preset"), &job, "--preset", name));
    assert_ok(lk_job_complete(&job, pipeline, NULL));
    n = job.request.num_inference_steps;
    snprintf(text, sizeof text, "%d", n);
    assert_string_equal(strrchr(name, '-') + 1, text);
    assert_true(qwen ? job.request.true_cfg_scale == 1 : job.request.guidance_scale == 2.5);
    assert_ok(lk_request_scheduler(&job.request, &own, &config));
    if (job.request.input_sigmas) assert_ok(lk_sigmas_read("", job.request.input_sigmas, input, &n));
    assert_ok(lk_flow_match_sigmas(&config, n, job.request.input_sigmas ? input : NULL,
                                   qwen ? lk_flow_match_mu(&config, tokens) : lk_flux2_mu(tokens, n), sigmas,
                                   timesteps));
    read_floats(line + used, expected, n + 1);
    assert_near(line, sigmas, expected, n + 1, 0);
    lk_job_free(&job);
    lk_pipeline_close(pipeline);
}

/* The lists of generate_schedules.py. */
static void check_given(const char *line) {
    char name[32];
    int tokens;
    uint64_t expected, random = 1;
    assert_int_equal(sscanf(line, "given %31s %d %" SCNu64, name, &tokens, &expected), 3);
    const struct lk_flow_match_config config = config_named(name);
    const bool linear = !strcmp(name, "qwen") || !strcmp(name, "lightning") || !strcmp(name, "step1x");
    struct sum sum = {0, 0};
    for (int k = 0; k < 1000; k++) {
        const int n = 1 + k % 40;
        float input[40], sigmas[41], timesteps[40];
        for (int i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            input[i] = (float)((n - i - 0.999 * ((double)(random >> 40) / 0x1p24)) / n);
        }
        if (config.shift_terminal != 0 && n < 2) continue;
        const double mu = linear ? lk_flow_match_mu(&config, tokens) : lk_flux2_mu(tokens, n);
        assert_ok(lk_flow_match_sigmas(&config, n, input, mu, sigmas, timesteps));
        add_floats(&sum, sigmas, n + 1);
        add_floats(&sum, timesteps, n);
    }
    if (sum.value != expected) fail_msg("%s: other bits", line);
}

struct kind {
    const char *word;
    void (*check)(const char *line);
    int n;
};

static void check_lines(const char *path, const struct kind *kinds, int n_kinds) {
    int counts[8] = {0};
    size_t n_bytes;
    char *text = test_read(path, &n_bytes);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        for (int k = 0; k < n_kinds; k++) {
            if (strncmp(line, kinds[k].word, strlen(kinds[k].word)) != 0) continue;
            kinds[k].check(line);
            counts[k]++;
        }
    }
    for (int k = 0; k < n_kinds; k++) assert_int_equal(counts[k], kinds[k].n);
    free(text);
}

static void values_equal_the_reference(void **state) {
    (void)state;
    static const struct kind kinds[] = {{"mu ", check_mu, 1},
                                        {"sigmas ", check_sigmas, 48},
                                        {"schedule ", check_schedule, 1},
                                        {"embedding ", check_embedding, 5},
                                        {"rope ", check_rope, 7},
                                        {"rope_lm ", check_rope_lm, 10}};
    check_lines("golden/data/flow_match.txt", kinds, sizeof kinds / sizeof *kinds);
}

static void few_steps_equal_the_reference(void **state) {
    (void)state;
    static const struct kind kinds[] = {{"preset ", check_preset, 8}, {"given ", check_given, 27}};
    check_lines("golden/data/schedules.txt", kinds, sizeof kinds / sizeof *kinds);
}

static void impossible_schedules_are_named_errors(void **state) {
    (void)state;
    float sigmas[3], timesteps[2];
    assert_fails(lk_flow_match_sigmas(&flux2, 0, NULL, 1.0, sigmas, timesteps), LK_E_CONFIG_VALUE, "at least 1, got 0");
    assert_fails(lk_flow_match_sigmas(&flux2, 2, NULL, INFINITY, sigmas, timesteps), LK_E_CONFIG_VALUE, "not finite");
    assert_fails(lk_flow_match_sigmas(&flux2, 2, NULL, NAN, sigmas, timesteps), LK_E_CONFIG_VALUE, "not finite");
    struct lk_flow_match_config terminal = flux2;
    terminal.shift_terminal = 0.1;
    assert_fails(lk_flow_match_sigmas(&terminal, 1, NULL, 1.0, sigmas, timesteps), LK_E_CONFIG_VALUE,
                 "shift_terminal 0.1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_equal_the_reference),
        cmocka_unit_test(few_steps_equal_the_reference),
        cmocka_unit_test(impossible_schedules_are_named_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
