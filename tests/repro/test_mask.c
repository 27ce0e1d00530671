/* Edits under a mask: what is kept follows the source through the steps, and has its bytes at the end. */
#include "engine/base/digest.h"
#include "engine/bf16.h"
#include "models/common/mask.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"

/* --- the paste, against numbers of an implementation in Python --- */

static uint8_t top_byte(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint8_t)((z ^ z >> 31) >> 56);
}

static void fill(struct lk_image *image, int width, int height, uint64_t seed) {
    assert_ok(lk_image_new(image, width, height, 3));
    for (int i = 0; i < width * height * 3; i++) image->pixels[i] = top_byte(&seed);
}

static void test_paste(void **state) {
    static const struct {
        int feather;
        const char *alpha, *out;
    } cases[] = {{0, "82de86a72fef0fc0", "fa3bb3e33f662176"},
                 {1, "772406f2c01d3ff8", "8658f41fd689c606"},
                 {3, "077a178c0d50c6fb", "7f3ad5ffc6fb8edb"},
                 {8, "cf0a3509bbc33c88", "ac5db703c93def35"}};
    static const uint8_t row[] = {0, 64, 128, 191, 191, 180, 143, 128, 143, 180};
    const struct lk_mask_window whole = {24, 16, 0, 0, 24, 16};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_image source = {0}, made = {0}, mask = {0};
        uint8_t alpha[16 * 24];
        char sha256[65];
        fill(&source, 24, 16, 42);
        fill(&made, 24, 16, 43);
        assert_ok(lk_image_new(&mask, 24, 16, 1));
        for (int y = 0; y < 16; y++)
            for (int x = 0; x < 24; x++)
                mask.pixels[y * 24 + x] = y >= 3 && y <= 12 && x >= 5 && x <= 19 && !(y == 7 && x == 11) ? 255 : 0;
        assert_ok(lk_mask_paste(&made, &source, &mask, &whole, cases[i].feather, alpha));
        lk_sha256(alpha, sizeof alpha, sha256);
        assert_memory_equal(sha256, cases[i].alpha, 16);
        lk_sha256(made.pixels, sizeof alpha * 3, sha256);
        assert_memory_equal(sha256, cases[i].out, 16);
        if (cases[i].feather == 3) assert_memory_equal(alpha + 5 * 24 + 4, row, sizeof row);
        lk_image_free(&source);
        lk_image_free(&made);
        lk_image_free(&mask);
    }
}

/* By hand: two edited pixels have borders beside and below. */
static void test_seam(void **state) {
    static uint8_t values[] = {10, 20, 40, 5, 110, 70}, of[] = {0, 255, 0, 0, 0, 0}, both[] = {0, 255, 255, 0, 0, 0};
    const struct lk_image picture = {.pixels = values, .width = 3, .height = 2, .channels = 1};
    struct lk_image mask = {.pixels = of, .width = 3, .height = 2, .channels = 1};
    (void)state;
    assert_true(lk_mask_seam(&picture, &mask) == (10 + 20 + 90) / 3.0);
    mask.pixels = both;
    assert_true(lk_mask_seam(&picture, &mask) == (10 + 90 + 30) / 3.0);
    memset(both, 255, sizeof both);
    assert_true(lk_mask_seam(&picture, &mask) == 0);
}

/* Any sizes and windows: kept bytes are the source's, and of what is edited and shown no pixel is. */
static void test_paste_sizes(void **state) {
    uint64_t random = 5;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        const int width = 1 + (int)(test_random(&random) % 90), height = 1 + (int)(test_random(&random) % 90);
        struct lk_mask_window m = {.resized_width = 1 + (int)(test_random(&random) % 90),
                                   .resized_height = 1 + (int)(test_random(&random) % 90)};
        struct lk_image source = {0}, made = {0}, mask = {0};
        m.width = 1 + (int)(test_random(&random) % (uint64_t)m.resized_width);
        m.height = 1 + (int)(test_random(&random) % (uint64_t)m.resized_height);
        m.left = (m.resized_width - m.width) / 2;
        m.top = (m.resized_height - m.height) / 2;
        const int feather = (int)(test_random(&random) % 6);
        fill(&source, width, height, (uint64_t)i);
        fill(&made, m.width, m.height, 1000);
        assert_ok(lk_image_new(&mask, width, height, 1));
        for (int k = 0; k < width * height; k++) mask.pixels[k] = test_random(&random) % 3 ? 255 : 0;
        uint8_t *alpha = malloc((size_t)(width * height));
        assert_ok(lk_mask_paste(&made, &source, &mask, &m, feather, alpha));
        assert_int_equal(made.width, width);
        assert_int_equal(made.height, height);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const int k = y * width + x;
                const double at_x = (x + 0.5) * m.resized_width / width, at_y = (y + 0.5) * m.resized_height / height;
                const bool shown =
                    at_x >= m.left && at_x < m.left + m.width && at_y >= m.top && at_y < m.top + m.height;
                if (!mask.pixels[k]) assert_memory_equal(made.pixels + 3 * k, source.pixels + 3 * k, 3);
                assert_true((alpha[k] > 0) == (mask.pixels[k] && shown));
            }
        free(alpha);
        lk_image_free(&source);
        lk_image_free(&made);
        lk_image_free(&mask);
    }
}

/* --- the steps --- */

enum { STEPS = 3, MOST = 1 << 16 };

/* What the trace of an edit has, as f32. */
struct seen {
    float noise[MOST], source[MOST], keep[MOST], velocity[STEPS][MOST], latents[STEPS][MOST];
    size_t n, n_keep;
    enum lk_dtype dtype;
};

static enum lk_code look(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct seen *s = context;
    float *to = NULL;
    (void)dev;
    if (!strcmp(name, "noise")) to = s->noise;
    if (!strcmp(name, "reference.0.latents")) to = s->source;
    if (!strcmp(name, "mask.keep")) to = s->keep;
    for (int i = 0; i < STEPS && !to; i++) {
        char step[40];
        snprintf(step, sizeof step, "step.%d.latents", i);
        if (!strcmp(name, step)) to = s->latents[i];
        snprintf(step, sizeof step, "step.%d.velocity", i);
        if (!strcmp(name, step)) to = s->velocity[i];
    }
    if (!to) return LK_OK;
    const size_t n = (size_t)lk_tensor_numel(value);
    assert_true(n <= MOST);
    assert_true(lk_tensor_is_dense(value));
    s->n = n;
    if (to == s->keep) s->n_keep = n;
    s->dtype = value->dtype;
    for (size_t i = 0; i < n; i++)
        to[i] = value->dtype == LK_BF16 ? lk_bf16_to_f32(((const uint16_t *)value->data)[i])
                                        : ((const float *)value->data)[i];
    return LK_OK;
}

static float rounded(const struct seen *s, float x) {
    return s->dtype == LK_BF16 ? lk_bf16_to_f32(lk_f32_to_bf16(x)) : x;
}

/* Every latent after every step, from the trace's noise, source and velocity: by the formulas of diffusers' inpaint
 * pipelines, (1 - m) p + m x with each product rounded. */
static void check_steps(const struct seen *s, const float *sigmas) {
    for (int i = 0; i < STEPS; i++) {
        const float sigma = rounded(s, sigmas[i + 1]), rest = rounded(s, 1 - sigma),
                    dt = rounded(s, sigmas[i + 1] - sigmas[i]);
        for (size_t k = 0; k < s->n; k++) {
            const float before = i ? s->latents[i - 1][k] : s->noise[k], m = 1 - s->keep[k];
            const float x = rounded(s, before + rounded(s, dt * s->velocity[i][k]));
            const float p = i + 1 == STEPS
                                ? s->source[k]
                                : rounded(s, rounded(s, sigma * s->noise[k]) + rounded(s, rest * s->source[k]));
            const float expected = rounded(s, rounded(s, (1 - m) * p) + rounded(s, m * x));
            if (s->latents[i][k] != expected)
                fail_msg("step %d, latent %zu: beyond their bounds: expected %g, got %g", i, k, (double)expected,
                         (double)s->latents[i][k]);
        }
    }
}

/* A mask of the job's image: white in a part that lies on no grid, with one black pixel in it. */
static const char *write_mask(const struct lk_image *source, const char *name, bool white) {
    struct lk_image mask = {0};
    const char *path = test_path(name);
    assert_ok(lk_image_new(&mask, source->width, source->height, 1));
    for (int y = 0; y < source->height; y++)
        for (int x = 0; x < source->width; x++)
            mask.pixels[y * source->width + x] =
                white || (x > 3 && x < source->width / 2 && y > 5 && y < source->height / 2 && !(x == 9 && y == 11))
                    ? 255
                    : 0;
    if (white) mask.pixels[0] = 0;
    assert_ok(lk_png_write(path, &mask, NULL, 0));
    lk_image_free(&mask);
    return path;
}

static void fit(struct tiny_job *job) {
    job->request.width = job->request.height = job->request.vae_area ? 32 : 0; /* as the source is seen */
}

static void run(struct tiny_job *job, int n_threads, struct seen *seen, struct lk_result *result) {
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(n_threads, &dev));
    dev->trace = seen ? look : NULL;
    dev->trace_context = seen;
    assert_ok(lk_pipeline_edit(job->pipeline, dev, &job->request, result));
    lk_device_free(dev);
}

static void test_edits(void **state) {
    struct seen *seen = calloc(1, sizeof *seen), *plain = calloc(1, sizeof *plain);
    (void)state;
    for (int f = 0; f < TINY_FAMILIES; f++)
        for (int b = 0; b < 2; b++) {
            struct tiny_job job;
            struct lk_result result, again;
            size_t n_kept = 0, n_pixels;
            tiny_job_open(&job, &tiny_edits[f], b ? LK_BF16 : LK_F32, STEPS);
            fit(&job);
            job.request.mask = write_mask(&job.image, "part.png", false);
            run(&job, 1, seen, &result);
            assert_int_equal(seen->n, seen->n_keep);
            for (size_t i = 0; i < seen->n; i++) n_kept += seen->keep[i] != 0;
            assert_in_range(n_kept, seen->n / 4, seen->n - 1);
            check_steps(seen, result.sigmas);
            /* The picture: bytes of the source, but in the part. */
            assert_int_equal(result.image.width, job.image.width);
            assert_int_equal(result.image.height, job.image.height);
            n_pixels = (size_t)job.image.width * (size_t)job.image.height;
            struct lk_image mask;
            int64_t n_soft;
            assert_ok(lk_mask_read(job.request.mask, &job.image, &mask, &n_soft));
            assert_int_equal(n_soft, 0);
            size_t n_other = 0;
            for (size_t i = 0; i < n_pixels; i++) {
                const bool same = !memcmp(result.image.pixels + 3 * i, job.image.pixels + 3 * i, 3);
                if (!mask.pixels[i] && !same) fail_msg("%s: pixel %zu is not the source's", tiny_edits[f].name, i);
                n_other += !same;
            }
            assert_true(n_other > 50);
            lk_image_free(&mask);
            /* Threads and slices change no bit; a recipe's digest is asked for. */
            job.request.slice_rows = 16;
            job.request.mask_sha256 = result.mask_sha256;
            run(&job, 3, NULL, &again);
            assert_memory_equal(again.image.pixels, result.image.pixels, 3 * n_pixels);
            assert_string_equal(again.mask_sha256, result.mask_sha256);
            lk_result_free(&again);
            job.request.slice_rows = 0;
            /* All white but a pixel, in a cell that is edited: the latents of no mask. */
            job.request.mask = write_mask(&job.image, "white.png", true);
            struct lk_device *dev;
            assert_ok(lk_device_cpu_create(1, &dev));
            assert_fails(lk_pipeline_edit(job.pipeline, dev, &job.request, &again), LK_E_CHANGED, "expected the mask");
            lk_device_free(dev);
            job.request.mask_sha256 = NULL;
            run(&job, 1, seen, &again);
            lk_result_free(&again);
            job.request.mask = NULL;
            run(&job, 1, plain, &again);
            assert_memory_equal(seen->latents, plain->latents, sizeof seen->latents);
            lk_result_free(&again);
            lk_result_free(&result);
            tiny_job_close(&job);
        }
    free(seen);
    free(plain);
}

/* One white pixel at the model's own size: channel 4 c + 2 dy + dx of a token is its quarter (dy, dx), and of FLUX.2 a
 * token is edited whole. */
static void test_cells_of_tokens(void **state) {
    struct seen *seen = calloc(1, sizeof *seen);
    (void)state;
    for (int f = 0; f < TINY_FAMILIES; f++) {
        struct tiny_job job;
        struct lk_result result;
        struct lk_image mask = {0};
        tiny_job_open(&job, &tiny_edits[f], LK_F32, STEPS);
        fit(&job);
        const int side = f ? 32 : 64, x = side / 2 + 1, y = side - 3; /* the last row, the first half of a token */
        lk_image_free(&job.image);
        fill(&job.image, side, side, 3);
        assert_ok(lk_image_new(&mask, side, side, 1));
        memset(mask.pixels, 0, (size_t)(side * side));
        mask.pixels[y * side + x] = 255;
        assert_ok(lk_png_write(job.request.mask = test_path("pixel.png"), &mask, NULL, 0));
        run(&job, 1, seen, &result);
        const int n = side / 16, token = y / 16 * n + x / 16; /* the VAE of each halves three times */
        const size_t channels = seen->n_keep / (size_t)(n * n);
        for (size_t i = 0; i < seen->n_keep; i++) {
            const int dy = (int)(i % channels / 2 % 2), dx = (int)(i % 2);
            const bool quarter = dy == y / 8 % 2 && dx == x / 8 % 2;
            const bool edited = (int)(i / channels) == token && (f == 0 || quarter);
            if ((seen->keep[i] == 0) != edited) fail_msg("%s: latent %zu: beyond their bounds", tiny_edits[f].name, i);
        }
        lk_image_free(&mask);
        lk_result_free(&result);
        tiny_job_close(&job);
    }
    free(seen);
}

/* A job's bits do not depend on others of its visit, with other masks and none; the arena is what was planned. */
static void test_visit(void **state) {
    (void)state;
    for (int f = 0; f < TINY_FAMILIES; f++) {
        struct tiny_job job;
        tiny_job_open(&job, &tiny_edits[f], LK_BF16, STEPS);
        fit(&job);
        struct lk_request requests[3];
        struct lk_queued queued[3] = {{0}}, *list[3];
        char alone[3][65], path[512];
        struct lk_device *dev;
        snprintf(path, sizeof path, "%s", write_mask(&job.image, "part.png", false));
        assert_ok(lk_device_cpu_create(2, &dev));
        for (int i = 0; i < 3; i++) {
            struct lk_result result;
            requests[i] = job.request;
            requests[i].seed = 7;
            requests[i].mask = i == 1 ? NULL : i ? write_mask(&job.image, "white.png", true) : path;
            requests[i].mask_feather = i ? 0 : 3;
            assert_ok(lk_pipeline_edit(job.pipeline, dev, &requests[i], &result));
            lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, alone[i]);
            lk_result_free(&result);
            queued[i].request = &requests[i];
            list[i] = &queued[i];
        }
        assert_string_not_equal(alone[0], alone[1]);
        assert_ok(lk_pipeline_edit_queue(job.pipeline, dev,
                                         &(struct lk_queue){.jobs = list, .n_jobs = 3, .jobs_per_visit = 3}));
        for (int i = 0; i < 3; i++) {
            char sha256[65];
            const struct lk_image *image = &queued[i].result.image;
            lk_sha256(image->pixels, (size_t)image->width * (size_t)image->height * 3, sha256);
            assert_string_equal(sha256, alone[i]);
            lk_result_free(&queued[i].result);
        }
        lk_device_free(dev);
        tiny_job_close(&job);
    }
}

/* --- what is refused --- */

static void write_png(const char *name, int width, int height, int channels, const uint8_t *value) {
    struct lk_image image = {0};
    assert_ok(lk_image_new(&image, width, height, channels));
    for (int i = 0; i < width * height * channels; i++) image.pixels[i] = i < channels ? 255 : value[i % channels];
    assert_ok(lk_png_write(test_path(name), &image, NULL, 0));
    lk_image_free(&image);
}

static void test_refused(void **state) {
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result result;
    (void)state;
    tiny_job_open(&job, &tiny_edits[0], LK_F32, 1);
    fit(&job);
    const int width = job.image.width, height = job.image.height;
    assert_ok(lk_device_cpu_create(1, &dev));
    struct lk_request *q = &job.request;
#define REFUSED(code, part) assert_fails(lk_pipeline_edit(job.pipeline, dev, q, &result), code, part)
    q->mask = test_path("absent.png");
    REFUSED(LK_E_NOT_FOUND, "absent.png");
    q->mask = test_path("mask.png");
    write_png("mask.png", width + 1, height, 1, (const uint8_t[]){0});
    REFUSED(LK_E_IMAGE_SIZE, "expected a mask of the first image's size, 64x65, got 65x65");
    write_png("mask.png", width, height, 1, (const uint8_t[]){255});
    REFUSED(LK_E_INPUT, "white alone");
    write_png("mask.png", width, height, 3, (const uint8_t[]){0, 0, 9});
    REFUSED(LK_E_IMAGE, "got colours");
    write_png("mask.png", width, height, 2, (const uint8_t[]){0, 255});
    REFUSED(LK_E_IMAGE, "an alpha channel");
    assert_ok(lk_jpeg_write(test_path("mask.png"), &job.image, 90));
    REFUSED(LK_E_IMAGE, "got another file");
    test_write(test_path("mask.png"), "\x89PNG\r\n\x1a\n", 8);
    REFUSED(LK_E_IMAGE, "mask.png");
    write_mask(&job.image, "mask.png", false);
    q->width = 32;
    REFUSED(LK_E_USAGE, "the first image is seen at 64x64, the picture is made at 32x64");
    q->width = 0;
    q->n_images = 0;
    REFUSED(LK_E_USAGE, "expected an image to edit");
    q->n_images = 1;
    q->mask = NULL;
    q->mask_feather = 2;
    REFUSED(LK_E_USAGE, "mask_feather: there is no mask");
    lk_device_free(dev);
    tiny_job_close(&job);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paste),           cmocka_unit_test(test_seam),
        cmocka_unit_test(test_paste_sizes),     cmocka_unit_test(test_edits),
        cmocka_unit_test(test_cells_of_tokens), cmocka_unit_test(test_visit),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
