/* Edits under a mask against diffusers' inpaint pipelines (generate_mask.py): Qwen-Image-Edit's whole, latents after
 * every step and the picture; of klein's the blending, with masks of quarters. */
#include "tests/common/golden.h"
#include "tests/common/test.h"

#include <math.h>

#include "engine/bf16.h"
#include "engine/ops.h"
#include "models/common/mask.h"

enum { STEPS = 5, WIDTH = 96, HEIGHT = 64, MOST = 1 << 14, AREA = WIDTH * HEIGHT };
#define F32_BOUND (4 * GOLDEN_F32_BOUND) /* guidance of 4 makes four of each difference; observed: 3.8e-5 */
#define BF16_BOUND                                                                                                     \
    1.1 /* our distance to the f32 run, by that of the reference's own bf16 run; observed: 1.072, of 384 values */

#define PICTURE_BOUND 1.25 /* likewise; observed: 1.21, and 62 of 18,432 values in f32 */

static struct golden golden;

static void image_of(const char *key, int channels, struct lk_image *out) {
    size_t n;
    float *values = golden_values(&golden, key, &n);
    assert_int_equal(n, AREA * channels);
    assert_ok(lk_image_new(out, WIDTH, HEIGHT, channels));
    for (size_t i = 0; i < n; i++) out->pixels[i] = (uint8_t)values[i];
    free(values);
}

/* What the trace of an edit has, as f32. */
struct seen {
    float noise[MOST], source[MOST], keep[MOST], latents[STEPS][MOST];
    size_t n;
    int n_steps;
};

static enum lk_code look(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct seen *s = context;
    int step;
    float *to = !strcmp(name, "noise")                 ? s->noise
                : !strcmp(name, "reference.0.latents") ? s->source
                : !strcmp(name, "mask.keep")           ? s->keep
                                                       : NULL;
    (void)dev;
    if (sscanf(name, "step.%d.latents", &step) == 1 && strstr(name, ".latents") && step < STEPS) {
        to = s->latents[step];
        s->n_steps = step + 1;
    }
    if (!to) return LK_OK;
    const size_t n = (size_t)lk_tensor_numel(value);
    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++)
        to[i] = value->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)value->data)[i])
                                        : ((const float *)value->data)[i];
    s->n = n;
    return LK_OK;
}

static float *values_of(const char *name, const char *dtype, const char *what, size_t n_expected) {
    char key[160];
    size_t n;
    snprintf(key, sizeof key, "%s.%s.%s", name, dtype, what);
    float *values = golden_values(&golden, key, &n);
    assert_int_equal(n, n_expected);
    return values;
}

/* The final picture, by one level at most in f32; in bf16 as near to the f32 run as the reference's own. */
static void check_picture(const char *name, bool bf16, const struct lk_image *got) {
    const size_t n = 3 * AREA;
    float *exact = values_of(name, "f32", "picture", n), *theirs = values_of(name, "bf16", "picture", n);
    size_t n_apart = 0;
    double ours = 0, reference = 0;
    assert_int_equal(got->width * got->height, AREA);
    for (size_t i = 0; i < n; i++) {
        const double d = fabs(got->pixels[i] - (double)exact[i]);
        if (!bf16 && d > 1) fail_msg("%s: value %zu of the picture: beyond their bounds", name, i);
        n_apart += d > 0;
        ours += d * d;
        reference += ((double)theirs[i] - (double)exact[i]) * ((double)theirs[i] - (double)exact[i]);
    }
    if (bf16 && sqrt(ours) > PICTURE_BOUND * sqrt(reference))
        fail_msg("%s: picture: beyond their bounds: %g > %g", name, sqrt(ours), sqrt(reference));
    if (!bf16 && n_apart * 200 > n) fail_msg("%s: %zu values of the picture: beyond their bounds", name, n_apart);
    printf("%s %s: picture: %zu of %zu values differ, %.2f of the reference's distance\n", name, bf16 ? "bf16" : "f32",
           n_apart, n, bf16 ? sqrt(ours / reference) : 0);
    free(exact), free(theirs);
}

static void check_qwen(const char *mask, double strength, bool bf16) {
    struct lk_image picture, grey;
    struct lk_pipeline *pipeline;
    struct lk_request request;
    struct lk_result result;
    struct lk_device *dev;
    struct seen *s = calloc(1, sizeof *s);
    char name[64], key[64];
    assert_non_null(s);
    snprintf(name, sizeof name, "qwen.%s.%.1f", mask, strength);
    snprintf(key, sizeof key, "mask.%s", mask);
    image_of("picture", 3, &picture);
    image_of(key, 1, &grey);
    assert_ok(lk_png_write(test_path("mask.png"), &grey, NULL, 0));
    assert_ok(lk_device_cpu_create(1, &dev));
    dev->trace = look;
    dev->trace_context = s;
    assert_ok(lk_pipeline_open(&pipeline, "golden/data/qwen_edit/edit/checkpoint", bf16 ? LK_BF16 : LK_F32));
    lk_request_init(&request, pipeline);
    request.images = &picture;
    request.n_images = 1;
    request.prompt = "Give the person red hair.";
    request.negative_prompt = " ";
    request.true_cfg_scale = 4;
    request.num_inference_steps = STEPS;
    request.seed = 7;
    request.vae_area = AREA;
    request.width = WIDTH;
    request.height = HEIGHT;
    request.mask = test_path("mask.png");
    request.mask_cell = "sample";
    request.mask_paste = "off";
    request.strength = strength;
    assert_ok(lk_pipeline_edit(pipeline, dev, &request, &result));
    const int n_steps = STEPS - lk_mask_first_step(STEPS, strength);
    assert_int_equal(s->n_steps, n_steps);
    assert_int_equal(result.n_steps, n_steps);
    const char *dtype = bf16 ? "bf16" : "f32";
    float *noise = values_of(name, dtype, "noise", s->n), *source = values_of(name, dtype, "source", s->n);

    assert_true(test_relative_error(s->source, source, s->n) <= (bf16 ? 1e-2 : GOLDEN_F32_BOUND));
    assert_memory_equal(s->noise, noise, s->n * sizeof *noise);
    double worst = 0;
    for (int i = 0; i < n_steps; i++) {
        char step[16];
        snprintf(step, sizeof step, "%d", i);
        float *exact = values_of(name, "f32", step, s->n), *theirs = values_of(name, "bf16", step, s->n);
        const double error = test_relative_error(s->latents[i], exact, s->n),
                     bound = bf16 ? BF16_BOUND * test_relative_error(theirs, exact, s->n) : F32_BOUND;
        if (error > bound) fail_msg("%s %s: step %d: beyond their bounds: %g > %g", name, dtype, i, error, bound);
        if (error / bound > worst) worst = error / bound;
        free(exact), free(theirs);
    }
    /* What is kept at the end is the source's own, bit by bit, and it is kept where the reference keeps it. */
    float *last = values_of(name, dtype, (char[]){(char)('0' + n_steps - 1), 0}, s->n);
    size_t n_kept = 0;
    for (size_t k = 0; k < s->n; k++) {
        if ((s->keep[k] == 1) != (last[k] == source[k]))
            fail_msg("%s %s: latent %zu: kept by one alone", name, dtype, k);
        if (s->keep[k] == 1) assert_true(s->latents[n_steps - 1][k] == s->source[k]);
        n_kept += s->keep[k] == 1;
    }
    check_picture(name, bf16, &result.image);
    assert_false(result.kept_exact);
    printf("%s %s: %d steps, %zu of %zu latents kept, %.2f of the bound\n", name, dtype, n_steps, n_kept, s->n, worst);
    free(last), free(noise), free(source), free(s);
    lk_result_free(&result);
    lk_pipeline_close(pipeline);
    lk_device_free(dev);
    lk_image_free(&picture);
    lk_image_free(&grey);
}

static void latents_are_those_of_the_inpaint_pipeline(void **state) {
    static const struct {
        const char *mask;
        double strength;
    } cases[] = {{"box", 1}, {"box", 0.6}, {"on", 1}, {"beside", 0.6}, {"stripes", 1}, {"hole", 0.8}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++)

        check_qwen(cases[i / 2].mask, cases[i / 2].strength, i % 2);
}

static void *as_dtype(const float *values, size_t n, bool bf16) {
    void *out = malloc(n * 4);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++)
        if (bf16)
            ((uint16_t *)out)[i] = lk_f32_to_bf16(values[i]);
        else
            ((float *)out)[i] = values[i];
    return out;
}

/* One blending on the device; the result as f32 in x. */
static void blend(struct lk_device *dev, bool bf16, float *x, const float *source, const float *noise,
                  const float *keep, float sigma, int64_t n, int64_t channels) {
    struct lk_tensor t[4];
    const float *values[4] = {x, source, noise, keep};
    for (int i = 0; i < 4; i++)
        t[i] = (struct lk_tensor){.data = as_dtype(values[i], (size_t)(n * channels), bf16),
                                  .dtype = bf16 ? LK_BF16 : LK_F32,
                                  .n_dims = 2,
                                  .shape = {n, channels},
                                  .ld = channels};
    assert_ok(lk_blend(dev, &(struct lk_blend){&t[0], &t[1], &t[2], &t[3], sigma}));
    for (int64_t i = 0; i < n * channels; i++)
        x[i] = bf16 ? lk_bf16_to_f32(((const uint16_t *)t[0].data)[i]) : ((const float *)t[0].data)[i];
    for (int i = 0; i < 4; i++) free(t[i].data);
}

static void check_klein(struct lk_device *dev, const char *mask, double strength, bool bf16) {
    const int64_t n = AREA / 256, channels = 16;
    const size_t n_all = (size_t)(n * channels);
    const struct lk_mask_window whole = {WIDTH, HEIGHT, 0, 0, WIDTH, HEIGHT};
    const int first = lk_mask_first_step(STEPS, strength);
    const char *dtype = bf16 ? "bf16" : "f32";
    struct lk_image grey;
    char name[64], key[64];
    float keep[MOST], ones[MOST];
    snprintf(name, sizeof name, "klein.%s.%.1f", mask, strength);
    snprintf(key, sizeof key, "mask.%s", mask);
    image_of(key, 1, &grey);
    assert_ok(lk_mask_cells(&grey, &whole, 16, 16, true, channels, keep));
    float *source = values_of(name, dtype, "source", n_all), *noise = values_of(name, dtype, "noise", n_all),
          *start = values_of(name, dtype, "start", n_all),
          *sigmas = values_of(name, dtype, "sigmas", (size_t)(STEPS - first + 1)), x[MOST];
    for (size_t k = 0; k < n_all; k++) ones[k] = 1;
    memcpy(x, noise, n_all * sizeof *x);
    if (first) blend(dev, bf16, x, source, noise, ones, sigmas[0], n, channels);
    for (size_t k = 0; k < n_all; k++)
        if (x[k] != start[k])
            fail_msg("%s %s: beginning, latent %zu: expected %g, got %g", name, dtype, k, start[k], x[k]);
    int n_parts = 0;
    for (size_t k = 0; k < n_all; k++) n_parts += keep[k] > 0 && keep[k] < 1;
    for (int i = 0; i < STEPS - first; i++) {
        char step[32], after[16];
        snprintf(step, sizeof step, "step.%d", i);
        snprintf(after, sizeof after, "%d", i);
        float *given = values_of(name, dtype, step, n_all), *expected = values_of(name, dtype, after, n_all);
        blend(dev, bf16, given, source, noise, keep, sigmas[i + 1], n, channels);
        for (size_t k = 0; k < n_all; k++)
            if (given[k] != expected[k])
                fail_msg("%s %s: step %d, latent %zu, kept %g: expected %g, got %g", name, dtype, i, k, keep[k],
                         expected[k], given[k]);
        free(given), free(expected);
    }
    printf("%s %s: %d latents kept in part, 0 bits differ\n", name, dtype, n_parts);
    free(source), free(noise), free(start), free(sigmas);
    lk_image_free(&grey);
}

static void blending_is_that_of_kleins_pipeline(void **state) {
    struct lk_device *dev;
    (void)state;
    assert_ok(lk_device_cpu_create(1, &dev));
    for (int b = 0; b < 2; b++) {
        check_klein(dev, "box", 1, b);
        check_klein(dev, "stripes", 0.8, b);
        check_klein(dev, "hole", 0.8, b);
    }
    lk_device_free(dev);
}

/* int(max(n - min(n * strength, n), 0)) in Python. */
static void steps_are_counted_as_diffusers_counts(void **state) {
    static const struct {
        int n;
        double strength;
        int first;
    } cases[] = {{40, 1, 0},      {40, 0.99, 0}, {40, 0.8, 8}, {40, 0.6, 16}, {40, 0.3, 28}, {40, 0.02, 39},
                 {40, 0.001, 39}, {4, 0.6, 1},   {5, 0.6, 2},  {40, 0, 0},    {28, 0.7, 8},  {1, 0.5, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(lk_mask_first_step(cases[i].n, cases[i].strength), cases[i].first);
}

int main(void) {
    golden_open(&golden, "golden/data/mask.safetensors", "mask");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latents_are_those_of_the_inpaint_pipeline),
        cmocka_unit_test(blending_is_that_of_kleins_pipeline),
        cmocka_unit_test(steps_are_counted_as_diffusers_counts),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    golden_close(&golden);
    return failed;
}
