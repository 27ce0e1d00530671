/* Stable Cascade's networks, its scheduler and whole runs from prompts against diffusers' (generate_cascade.py). */
#include <math.h>

#include "engine/bf16.h"
#include "models/cascade/paella.h"
#include "models/cascade/released.h"
#include "models/cascade/sampler.h"
#include "models/cascade/unet.h"
#include "models/pipeline.h"
#include "tests/common/cuda.h"
#include "tests/common/golden.h"
#include "tests/common/test.h"

#define FOLDER        "golden/data/cascade/checkpoint"
#define PRIOR_AT      FOLDER "/stable-cascade-prior/"
#define DECODER_AT    FOLDER "/stable-cascade/"
#define BOUND         2e-5 /* observed: 5e-7 */
#define PICTURE_BOUND 3e-4
#define BF16_RATIO    1.05

struct networks {
    struct lk_checkpoint checkpoints[3];
    struct lk_cascade_unet prior, decoder;
    struct lk_paella vqgan;
    enum lk_dtype dtype;
};

static struct golden golden, whole_golden;
static bool on_cuda; /* "cuda" as the program's argument: the networks and one run in f32 (the test cuda/cascade) */

static int open_all(void **state) {
    (void)state;
    golden_open(&golden, "golden/data/cascade/networks.safetensors", "networks");
    golden_open(&whole_golden, "golden/data/cascade/runs.safetensors", "runs");
    return 0;
}

static int close_all(void **state) {
    (void)state;
    golden_close(&golden);
    golden_close(&whole_golden);
    return 0;
}

static struct lk_config *config_of(const char *path) {
    struct lk_config *config;
    assert_ok(lk_config_open(&config, path));
    return config;
}

static void networks_open(struct networks *n, enum lk_dtype dtype) {
    struct lk_cascade_config prior, decoder;
    struct lk_paella_config vqgan;
    n->dtype = dtype;
    assert_ok(lk_checkpoint_open(&n->checkpoints[0], PRIOR_AT "prior", "diffusion_pytorch_model.bf16"));
    assert_ok(lk_checkpoint_open(&n->checkpoints[1], DECODER_AT "decoder", "diffusion_pytorch_model"));
    assert_ok(lk_checkpoint_open(&n->checkpoints[2], DECODER_AT "vqgan", "diffusion_pytorch_model"));
    assert_ok(lk_cascade_config_read(&prior, config_of(PRIOR_AT "prior/config.json")));
    assert_ok(lk_cascade_config_read(&decoder, config_of(DECODER_AT "decoder/config.json")));
    assert_ok(lk_paella_config_read(&vqgan, config_of(DECODER_AT "vqgan/config.json")));
    assert_ok(lk_cascade_unet_bind(&n->prior, &prior, &n->checkpoints[0], dtype));
    assert_ok(lk_cascade_unet_bind(&n->decoder, &decoder, &n->checkpoints[1], dtype));
    assert_ok(lk_paella_bind(&n->vqgan, &vqgan, &n->checkpoints[2], dtype));
}

static void networks_close(struct networks *n) {
    lk_cascade_unet_free(&n->prior);
    lk_cascade_unet_free(&n->decoder);
    lk_paella_free(&n->vqgan);
    for (int i = 0; i < 3; i++) lk_checkpoint_close(&n->checkpoints[i]);
}

static enum lk_code upload(struct lk_device *dev, const struct lk_tensor *t, const float *values) {
    const size_t n = (size_t)lk_tensor_numel(t);
    uint16_t *half = malloc(n * sizeof *half);
    assert_non_null(half);
    for (size_t i = 0; i < n; i++) half[i] = lk_f32_to_bf16(values[i]);
    const enum lk_code rc =
        dev->kind == LK_DEVICE_PLAN ? LK_OK : lk_upload(dev, t, t->dtype == LK_BF16 ? (const void *)half : values);
    free(half);
    return rc;
}

/* A tensor in the arena with the golden's values. */
static struct lk_tensor given(struct lk_device *dev, enum lk_dtype dtype, const char *name) {
    const struct lk_tensor *stored = &lk_safetensors_find(&golden.st, name)->tensor;
    struct lk_tensor t;
    assert_ok(lk_arena_tensor(&dev->arena, &t, dtype, stored->n_dims, stored->shape));
    assert_ok(upload(dev, &t, stored->data));
    return t;
}

static struct lk_tensor run_prior(struct lk_device *dev, const struct networks *n) {
    const struct lk_tensor text = given(dev, n->dtype, "prior.text"), pooled = given(dev, n->dtype, "pooled");
    const struct lk_tensor x = given(dev, n->dtype, "prior.x");
    struct lk_tensor clip, y;
    assert_int_equal(lk_cascade_clip_rows(&n->prior, 77), 85);
    assert_ok(LK_NEW(&dev->arena, &clip, n->dtype, 85, n->prior.config.conditioning_dim));
    assert_ok(LK_NEW(&dev->arena, &y, n->dtype, x.shape[0], x.shape[1], 16));
    assert_ok(lk_cascade_condition(dev, &n->prior, &text, &pooled, &clip));
    assert_ok(
        lk_cascade_forward(dev, &n->prior, &(struct lk_cascade_pass){.x = &x, .time = 0.65f, .clip = &clip, .y = &y}));
    return y;
}

static struct lk_tensor run_decoder(struct lk_device *dev, const struct networks *n) {
    const struct lk_tensor pooled = given(dev, n->dtype, "pooled"), x = given(dev, n->dtype, "decoder.x");
    const struct lk_tensor *stored = &lk_safetensors_find(&golden.st, "decoder.effnet")->tensor;
    const struct lk_cascade_sizes sizes = {stored->shape[0], stored->shape[1], x.shape[0] / 2, x.shape[1] / 2, 16};
    struct lk_tensor clip, y, effnet;
    float *large = malloc((size_t)(sizes.to_h * sizes.to_w * 16) * sizeof *large);
    assert_non_null(large);
    lk_cascade_enlarge(stored->data, &sizes, large);
    assert_int_equal(lk_cascade_clip_rows(&n->decoder, 0), 4);
    assert_ok(LK_NEW(&dev->arena, &effnet, n->dtype, sizes.to_h * sizes.to_w, 16));
    assert_ok(LK_NEW(&dev->arena, &clip, n->dtype, 4, n->decoder.config.conditioning_dim));
    assert_ok(LK_NEW(&dev->arena, &y, n->dtype, x.shape[0], x.shape[1], 4));
    assert_ok(upload(dev, &effnet, large));
    free(large);
    assert_ok(lk_cascade_condition(dev, &n->decoder, NULL, &pooled, &clip));
    struct lk_cascade_pass pass = {.x = &x, .time = 0.35f, .clip = &clip, .effnet = &effnet, .y = &y};
    assert_ok(lk_cascade_forward(dev, &n->decoder, &pass));
    return y;
}

static struct lk_tensor run_vqgan(struct lk_device *dev, const struct networks *n) {
    const struct lk_tensor x = given(dev, n->dtype, "vqgan.x");
    struct lk_tensor y;
    assert_ok(LK_NEW(&dev->arena, &y, n->dtype, 4 * x.shape[0], 4 * x.shape[1], 3));
    assert_ok(lk_paella_decode(dev, &n->vqgan, &x, &y));
    return y;
}

static const struct network {
    const char *name;
    struct lk_tensor (*run)(struct lk_device *dev, const struct networks *n);
} networks[] = {{"prior", run_prior}, {"decoder", run_decoder}, {"vqgan", run_vqgan}};

/* Values of a forward with as many threads, by an arena of exactly what the plan says; n gets how many. */
static float *forward(const struct network *what, const struct networks *all, int n_threads, size_t *n) {
    struct lk_device *dev, *plan;
    if (on_cuda)
        dev = test_cuda_open();
    else
        assert_ok(lk_device_cpu_create(n_threads, &dev));
    assert_ok(lk_device_plan_create(dev, &plan));
    what->run(plan, all);
    assert_ok(lk_device_plan_show(plan, dev));
    assert_ok(lk_device_prepare(dev, plan->arena.peak));
    const struct lk_tensor y = what->run(dev, all);
    assert_int_equal(dev->arena.peak, plan->arena.peak);
    *n = (size_t)lk_tensor_numel(&y);
    float *values = malloc(*n * sizeof *values);
    assert_non_null(values);
    assert_ok(lk_download(dev, values, &y));
    if (y.dtype == LK_BF16)
        for (size_t i = *n; i-- > 0;) values[i] = lk_bf16_to_f32(((const uint16_t *)values)[i]);
    lk_device_free(plan);
    lk_device_free(dev);
    return values;
}

static void each_network(void **state) {
    (void)state;
    for (int bf16 = 0; bf16 < (on_cuda ? 1 : 2); bf16++) {
        struct networks all;
        networks_open(&all, bf16 ? LK_BF16 : LK_F32);
        for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
            const struct network *what = &networks[i];
            size_t n, n_expected;
            char key[32];
            snprintf(key, sizeof key, "%s.f32", what->name);
            float *got = forward(what, &all, 1, &n), *again = forward(what, &all, 3, &n);
            float *expected = golden_values(&golden, key, &n_expected);
            assert_int_equal(n, n_expected);
            assert_memory_equal(got, again, n * sizeof *got);
            snprintf(key, sizeof key, "%s.bf16", what->name);
            float *theirs = golden_values(&golden, key, &n_expected);
            const double error = test_relative_error(got, expected, n);
            const double bound = bf16 ? BF16_RATIO * test_relative_error(theirs, expected, n) : BOUND;
            print_message("%s %s: %.3g, allowed %.3g; to the bf16 run %.3g\n", what->name, bf16 ? "bf16" : "f32", error,
                          bound, test_relative_error(got, theirs, n));
            if (!(error <= bound)) fail_msg("%s: %.3g, allowed %.3g", what->name, error, bound);
            if (bf16 && i == 2) assert_memory_equal(got, theirs, n * sizeof *got);
            free(got);
            free(again);
            free(expected);
            free(theirs);
        }
        networks_close(&all);
    }
}

static void every_step(void **state) {
    (void)state;
    static const int steps[] = {1, 10, 20};
    size_t width;
    float *noise = golden_values(&golden, "steps.noise", &width),
          *start = golden_values(&golden, "steps.start", &width);
    float *predictions = golden_values(&golden, "steps.predictions", &width), times[21];
    free(golden_values(&golden, "steps.start", &width));
    for (int k = 0; k < 6; k++) {
        const bool bf16 = k >= 3;
        const int n = steps[k % 3];
        char key[32];
        size_t n_times;
        snprintf(key, sizeof key, "times.%d", n);
        float *known = golden_values(&golden, key, &n_times), x[64], e[64], z[64];
        assert_ok(lk_cascade_times("steps", n, bf16, times));
        assert_int_equal(n_times, n + 1);
        for (int i = 0; i <= n; i++) assert_true(times[i] == known[i]);
        snprintf(key, sizeof key, "steps.%s.%d", bf16 ? "bf16" : "f32", n);
        float *expected = golden_values(&golden, key, &n_times);
        for (size_t j = 0; j < width; j++) x[j] = bf16 ? lk_round_bf16(start[j]) : start[j];
        for (int i = 0; i < n; i++) {
            for (size_t j = 0; j < width; j++) {
                const float p = predictions[(size_t)i * width + j], d = noise[(size_t)i * width + j];
                e[j] = bf16 ? lk_round_bf16(p) : p;
                z[j] = bf16 ? lk_round_bf16(d) : d;
            }
            struct lk_cascade_step step = {.x = x, .prediction = e, .noise = z, .n = (int64_t)width, .bf16 = bf16};
            step.time = times[i];
            step.next = times[i + 1];
            lk_cascade_advance(&step);
            const double error = test_relative_error(x, expected + (size_t)i * width, width);
            if (!(error <= (bf16 ? 1e-3 : 2e-6))) fail_msg("%s, step %d: %.3g", key, i, error);
        }
        free(known);
        free(expected);
    }
    free(start);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        static const float scales[] = {4.0f, 1.5f, 1.1f};
        size_t n, all;
        float *expected = golden_values(&golden, bf16 ? "guided.bf16" : "guided.f32", &all), y[600];
        n = all / 3;
        assert_true(n <= 600);
        for (size_t j = 0; j < n && bf16; j++)
            noise[j] = lk_round_bf16(noise[j]), predictions[j] = lk_round_bf16(predictions[j]);
        for (int s = 0; s < 3; s++) {
            lk_cascade_guide(predictions, noise, scales[s], bf16, (int64_t)n, y);
            assert_memory_equal(y, expected + (size_t)s * n, n * sizeof *y);
        }
        free(expected);
    }
    free(noise);
    free(predictions);
    assert_fails(lk_cascade_times("steps", 251, true, NULL), LK_E_USAGE, "1 to 250 in bf16, got 251");
    assert_fails(lk_cascade_times("steps", 0, false, NULL), LK_E_USAGE, "1 to 1000, got 0");
}

/* What the golden has of a whole run, as traced. */
enum { EMBEDS, POOLED, PRIOR, DECODER, KEPT };
static const char *const kept_names[KEPT] = {"embeds", "pooled", "prior", "decoder"};
struct kept {
    char wanted[KEPT][40];
    float *values[KEPT];
};

static enum lk_code keep(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct kept *k = context;
    for (int i = 0; i < KEPT; i++) {
        if (strcmp(name, k->wanted[i]) != 0) continue;
        const size_t n = (size_t)lk_tensor_numel(value);
        assert_null(k->values[i]);
        k->values[i] = malloc(n * sizeof(float));
        assert_non_null(k->values[i]);
        LK_TRY(lk_download(dev, k->values[i], value));
        for (size_t j = n; value->dtype == LK_BF16 && j-- > 0;)
            k->values[i][j] = lk_bf16_to_f32(((const uint16_t *)k->values[i])[j]);
    }
    return LK_OK;
}

/* A picture's values are whole numbers, of which some are rounded to another. Of the texts there are no bf16 values:
 * the encoder works in f32. */
static void compare(const char *run, const char *what, bool bf16, const float *got) {
    char key[64];
    size_t n, n_theirs;
    snprintf(key, sizeof key, "%s.%s.f32", run, what);
    float *expected = golden_values(&whole_golden, key, &n);
    const double error = test_relative_error(got, expected, n);
    double bound = !strcmp(what, "picture") ? PICTURE_BOUND : BOUND;
    if (bf16) {
        snprintf(key, sizeof key, "%s.%s.bf16", run, what);
        float *theirs = golden_values(&whole_golden, key, &n_theirs);
        bound = BF16_RATIO * test_relative_error(theirs, expected, n);
        free(theirs);
    }
    print_message("%s %s %s: %.3g, allowed %.3g\n", run, what, bf16 ? "bf16" : "f32", error, bound);
    if (!(error <= bound)) fail_msg("%s %s: %.3g, allowed %.3g", run, what, error, bound);
    free(expected);
}

static void request_of(struct lk_request *q, const struct lk_pipeline *pipeline, const char *run) {
    char key[32];
    unsigned long long seed;
    lk_request_init(q, pipeline);
    assert_int_equal(q->num_inference_steps, 20);
    assert_int_equal(q->decoder_steps, 10);
    assert_true(q->guidance_scale == 4 && q->decoder_guidance == 0);
    assert_int_equal(sscanf(golden_text(&whole_golden, run), "%d %d %d %lf %d %lf %llu", &q->height, &q->width,
                            &q->num_inference_steps, &q->guidance_scale, &q->decoder_steps, &q->decoder_guidance,
                            &seed),
                     7);
    snprintf(key, sizeof key, "%s.prompt", run);
    q->prompt = golden_text(&whole_golden, key);
    snprintf(key, sizeof key, "%s.negative", run);
    q->negative_prompt = *golden_text(&whole_golden, key) ? golden_text(&whole_golden, key) : NULL;
    q->seed = seed;
}

/* Every fourth row of a picture as numbers. */
static float *thin(const struct lk_image *image) {
    const size_t row = 3 * (size_t)image->width;
    float *out = malloc(row * (size_t)image->height / 4 * sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < row * (size_t)image->height / 4; i++) out[i] = image->pixels[i / row * 4 * row + i % row];
    return out;
}

/* On two devices, which must not matter: of one thread and of two; on cuda with all weights resident, and with as few
 * as can be. */
static struct lk_device *device_of_run(int i, uint64_t least_bytes) {
    struct lk_device *dev;
    if (!on_cuda) {
        assert_ok(lk_device_cpu_create(i + 1, &dev));
    } else {
        dev = test_cuda_open();
        dev->budget.bytes = i ? least_bytes : 0;
    }
    return dev;
}

static void one_run(struct lk_pipeline *pipeline, const char *run, bool bf16) {
    struct lk_request q;
    struct lk_result results[2];
    struct lk_plan plan = {0};
    struct kept kept = {{"positive.prompt_embeds", "positive.pooled"}, {NULL}};
    request_of(&q, pipeline, run);
    snprintf(kept.wanted[PRIOR], sizeof kept.wanted[0], "step.%d.latents", q.num_inference_steps - 1);
    snprintf(kept.wanted[DECODER], sizeof kept.wanted[0], "decoder.step.%d.latents", q.decoder_steps - 1);
    for (int i = 0; i < 2; i++) {
        struct lk_device *dev = device_of_run(i, plan.least_bytes);
        dev->trace = i ? NULL : keep;
        dev->trace_context = &kept;
        assert_ok(lk_pipeline_plan(pipeline, dev, &q, &plan));
        assert_ok(lk_pipeline_edit(pipeline, dev, &q, &results[i]));
        if (!on_cuda) assert_int_equal(plan.arena_bytes, results[i].peak_bytes);
        lk_device_free(dev);
    }
    assert_memory_equal(results[0].image.pixels, results[1].image.pixels, (size_t)(3 * q.width * q.height));
    for (int i = 0; i < KEPT; i++) {
        assert_non_null(kept.values[i]);
        if (!bf16 || i >= PRIOR) compare(run, kept_names[i], bf16, kept.values[i]);
        free(kept.values[i]);
    }
    float *picture = thin(&results[0].image);
    compare(run, "picture", bf16, picture);
    free(picture);
    for (int i = 0; i < 2; i++) lk_result_free(&results[i]);
}

static void whole_runs(void **state) {
    (void)state;
    static const char *const runs[] = {"both", "wide", "plain"};
    for (int bf16 = 0; bf16 < (on_cuda ? 1 : 2); bf16++) {
        struct lk_pipeline *pipeline;
        assert_ok(lk_pipeline_open(&pipeline, FOLDER, bf16 ? LK_BF16 : LK_F32));
        for (size_t i = 0; i < (on_cuda ? 1 : sizeof runs / sizeof *runs); i++) one_run(pipeline, runs[i], bf16);
        lk_pipeline_close(pipeline);
    }
}

static struct lk_config *parse(const char *text) {
    struct lk_config *config;
    assert_ok(lk_config_parse(&config, text, strlen(text), "config.json"));
    return config;
}

/* FLOPs of a forward of the released networks at 1024 x 1024, counted in bf16. */
static double tera(const struct lk_cascade_unet *u, int64_t side, int64_t n_text) {
    struct lk_device *cpu, *plan;
    struct lk_tensor x, y, clip, effnet;
    assert_ok(lk_device_cpu_create(1, &cpu));
    assert_ok(lk_device_plan_create(cpu, &plan));
    const int64_t patches = side / u->config.patch_size;
    assert_ok(LK_NEW(&plan->arena, &x, LK_BF16, side, side, u->config.in_channels));
    assert_ok(LK_NEW(&plan->arena, &y, LK_BF16, side, side, u->config.in_channels));
    assert_ok(LK_NEW(&plan->arena, &clip, LK_BF16, lk_cascade_clip_rows(u, n_text), u->config.conditioning_dim));
    assert_ok(LK_NEW(&plan->arena, &effnet, LK_BF16, patches * patches, 16));
    const uint64_t before = plan->cost.flops;
    struct lk_cascade_pass pass = {.x = &x, .time = 1, .clip = &clip, .effnet = &effnet, .y = &y};
    assert_ok(lk_cascade_forward(plan, u, &pass));
    const double flops = (double)(plan->cost.flops - before);
    lk_device_free(plan);
    lk_device_free(cpu);
    return flops * 1e-12;
}

/* Parameters as the files of the released networks hold them. */
static void released(void **state) {
    (void)state;
    const struct {
        const char *config;
        uint64_t parameters;
        int64_t side, n_text;
        double tera;
    } known[] = {{lk_cascade_released.prior, 3589103632, 24, 77, 4.08},
                 {lk_cascade_released.prior_lite, 1030785040, 24, 77, 1.17},
                 {lk_cascade_released.decoder, 1562941136, 256, 0, 6.17},
                 {lk_cascade_released.decoder_lite, 699471248, 256, 0, 2.22}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct lk_cascade_config config;
        struct lk_cascade_unet u;
        assert_ok(lk_cascade_config_read(&config, parse(known[i].config)));
        assert_ok(lk_cascade_unet_bind(&u, &config, NULL, LK_BF16));
        assert_int_equal(u.totals.parameters, known[i].parameters);
        const double flops = tera(&u, known[i].side, known[i].n_text);
        print_message("%llu parameters, %.4g TFLOP\n", (unsigned long long)u.totals.parameters, flops);
        if (!(fabs(flops - known[i].tera) <= 0.005 * known[i].tera))
            fail_msg("network %zu: %.4g TFLOP, expected %.4g", i, flops, known[i].tera);
        lk_cascade_unet_free(&u);
    }
    struct lk_paella_config config;
    struct lk_paella vqgan;
    assert_ok(lk_paella_config_read(&config, parse(lk_cascade_released.vqgan)));
    assert_true(config.scale_factor == 0.3764);
    assert_ok(lk_paella_bind(&vqgan, &config, NULL, LK_BF16));
    assert_int_equal(vqgan.totals.parameters, 15706842); /* of the file's 18,406,894: the decoder's */
    lk_paella_free(&vqgan);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *old, *new, *says;
    } bad[] = {
        {"\"kernel_size\":3", "\"kernel_size\":5", "\"kernel_size\""},
        {"\"self_attn\":true", "\"self_attn\":null", "\"self_attn\""},
        {"\"switch_level\":[false]", "\"switch_level\":[true ]", "\"switch_level\": expected false"},
        {"SDCascadeTimestepBlock", "SDCascadeResBlock", "\"block_types_per_layer\": level 0: expected"},
        {"[\"sca\",\"crp\"]", "[\"crp\",\"sca\"]", "\"timestep_conditioning_type\""},
        {"\"down_blocks_repeat_mappers\":[1,1]", "\"down_blocks_repeat_mappers\":[1,2]", "expected 1 in every level"},
        {"\"num_attention_heads\":[32,32]", "\"num_attention_heads\":[32,31]", "heads that divide"},
        {"\"patch_size\":1", "\"patch_sizes\":1", "\"patch_size\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[2048];
        struct lk_cascade_config out;
        const char *from = lk_cascade_released.prior, *at = strstr(from, bad[i].old);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - from), from, bad[i].new, at + strlen(bad[i].old));
        const enum lk_code rc = lk_cascade_config_read(&out, parse(text));
        if (!rc || !strstr(lk_error_text(), bad[i].says))
            fail_msg("%s: %s", bad[i].new, rc ? lk_error_text() : "no error");
    }
}

int main(int argc, char **argv) {
    on_cuda = argc > 1 && !strcmp(argv[1], "cuda");
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_network), cmocka_unit_test(whole_runs),
                                       cmocka_unit_test(every_step), cmocka_unit_test(released),
                                       cmocka_unit_test(refusals)};
    return _cmocka_run_group_tests("cascade", tests, on_cuda ? 2 : sizeof tests / sizeof *tests, open_all, close_all);
}
