/* The Qwen-Image VAE in bands of rows gives the bits of the whole, and takes less memory. */
#include "tests/common/test.h"

#include "engine/base/isa.h"
#include "models/common/files.h"
#include "models/pipeline.h"
#include "models/vae/autoencoder_kl_qwen_image.h"

#define FOLDER "golden/data/qwen_vae"

struct model {
    struct lk_checkpoint checkpoint;
    struct lk_qwen_vae vae;
    struct lk_device *dev;
};

static void open_model(struct model *m, const char *config, enum lk_dtype dtype) {
    struct lk_config *json;
    struct lk_qwen_vae_config c;
    char path[256];
    snprintf(path, sizeof path, "%s/config.json", config);
    assert_ok(lk_component_config(&json, FOLDER, path, NULL));
    assert_ok(lk_qwen_vae_config_read(&c, json));
    assert_ok(lk_component_open(&m->checkpoint, FOLDER, config, "diffusion_pytorch_model"));
    assert_ok(lk_qwen_vae_bind(&m->vae, &c, &m->checkpoint, dtype));
    assert_ok(lk_device_cpu_create(2, &m->dev));
    assert_ok(lk_device_prepare(m->dev, (size_t)32 << 20));
}

static void close_model(struct model *m) {
    lk_device_free(m->dev);
    lk_qwen_vae_free(&m->vae);
    lk_checkpoint_close(&m->checkpoint);
}

static void fill(const struct model *m, const struct lk_tensor *t, uint64_t seed) {
    size_t n = (size_t)lk_tensor_numel(t);
    float *values = malloc(n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = (float)test_normal(&seed);
    struct lk_tensor staging;
    size_t mark = lk_arena_mark(&m->dev->arena);
    assert_ok(lk_arena_tensor(&m->dev->arena, &staging, LK_F32, t->n_dims, t->shape));
    assert_ok(lk_upload(m->dev, &staging, values));
    assert_ok(lk_copy(m->dev, &(struct lk_copy){.y = t, .x = &staging}));
    lk_arena_release(&m->dev->arena, mark);
    free(values);
}

/* Encodes and decodes with tiles; the bytes of both results (free()). */
static unsigned char *run(const struct model *m, int64_t height, int64_t width, int64_t tile_rows, size_t *n) {
    struct lk_arena *arena = &m->dev->arena;
    int64_t f = lk_qwen_vae_scale_factor(&m->vae.config);
    enum lk_dtype dtype = m->vae.latents_mean.dtype;
    struct lk_tensor pixels, latents, mean, decoded;
    size_t mark = lk_arena_mark(arena);
    assert_ok(LK_NEW(arena, &pixels, dtype, height, width, 3));
    assert_ok(LK_NEW(arena, &latents, dtype, height / f, width / f, m->vae.config.z_dim));
    assert_ok(LK_NEW(arena, &mean, dtype, height / f, width / f, m->vae.config.z_dim));
    assert_ok(LK_NEW(arena, &decoded, dtype, height, width, 3));
    fill(m, &pixels, 1);
    fill(m, &latents, 2);
    assert_ok(lk_qwen_vae_encode(m->dev, &m->vae, &pixels, &mean, tile_rows));
    assert_ok(lk_qwen_vae_decode(m->dev, &m->vae, &latents, &decoded, tile_rows));
    *n = lk_tensor_bytes(&mean) + lk_tensor_bytes(&decoded);
    unsigned char *bytes = malloc(*n);
    assert_ok(lk_download(m->dev, bytes, &mean));
    assert_ok(lk_download(m->dev, bytes + lk_tensor_bytes(&mean), &decoded));
    lk_arena_release(arena, mark);
    return bytes;
}

static void compare_tiles(const char *config, enum lk_dtype dtype, int64_t height, int64_t width) {
    static const int64_t tile_rows[] = {8, 40, 1000};
    struct model m;
    size_t n;
    open_model(&m, config, dtype);
    unsigned char *whole = run(&m, height, width, 0, &n);
    for (size_t i = 0; i < sizeof tile_rows / sizeof *tile_rows; i++) {
        unsigned char *tiled = run(&m, height, width, tile_rows[i], &n);
        if (memcmp(whole, tiled, n))
            fail_msg("%s, %lldx%lld, tiles of %lld rows: other bits", config, (long long)width, (long long)height,
                     (long long)tile_rows[i]);
        free(tiled);
    }
    free(whole);
    close_model(&m);
}

static void tiles_change_no_bit(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= most; isa++) {
        lk_cpu_isa_set(isa);
        for (enum lk_dtype dtype = LK_F32; dtype <= LK_BF16; dtype++) {
            compare_tiles("released", dtype, 192, 16);
            compare_tiles("small", dtype, 132, 12);
        }
    }
    lk_cpu_isa_set(most);
}

/* Of the released model at 1024x1024: the transformer, not the VAE, says how much memory an edit takes. */
static void tiles_take_less_memory(void **state) {
    (void)state;
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_plan whole, tiled;
    struct lk_image image = {.width = 1024, .height = 1024};
    assert_ok(lk_pipeline_open_configs(&p, "qwen-edit-2511", LK_BF16));
    assert_ok(lk_device_cpu_create(1, &dev));
    lk_request_init(&request, p);
    request.images = &image;
    request.n_images = 1;
    assert_ok(lk_pipeline_plan(p, dev, &request, &whole));
    request.vae_tiling = true;
    assert_ok(lk_pipeline_plan(p, dev, &request, &tiled));
    for (int i = 0; i < whole.n_stages; i++) {
        const struct lk_plan_stage *before = &whole.stages[i], *after = &tiled.stages[i];
        if (strncmp(before->name, "vae_", 4)) {
            assert_int_equal(before->peak_bytes, after->peak_bytes);
            continue;
        }
        assert_true(5 * after->peak_bytes < 3 * before->peak_bytes);
        assert_true(after->flops > before->flops && 4 * after->flops < 5 * before->flops);
    }
    lk_device_free(dev);
    lk_pipeline_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_change_no_bit), cmocka_unit_test(tiles_take_less_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
