/* LoRA of Stable Diffusion: published layouts that give the same bits, and files that are refused by name. Pictures
 * against diffusers': the cases f32_lora_* of test_sd (generate_lora_sd.py). */
#include <math.h>
#include <stdio.h>

#include "engine/base/alloc.h"
#include "models/pipeline.h"
#include "models/quantize.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"
#include "weights/lora/lora.h"
#include "weights/safetensors.h"

enum { MOST = 300, N_CONFIGS = 2 };
static const char *const configs[] = {"sd15", "sdxl"};

static const char *file_of(int k, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "golden/data/sd/%s/loras/%s.safetensors", configs[k], name);
    return path;
}

static enum lk_code open_with(int k, const char *lora, enum lk_dtype dtype, struct tiny_job *job) {
    const struct lk_pipeline_options options = {.compute = dtype, .loras = &lora, .n_loras = lora != NULL};
    struct lk_pipeline *pipeline;
    LK_TRY(lk_pipeline_open_with(&pipeline, tiny_pictures[k].checkpoint, &options));
    lk_pipeline_close(pipeline);
    if (job) tiny_job_open_with(job, &tiny_pictures[k], tiny_pictures[k].checkpoint, &options, 2);
    return LK_OK;
}

/* The picture's pixels, malloc'ed. */
static unsigned char *picture(int k, const char *lora, enum lk_dtype dtype) {
    struct lk_device *dev;
    struct tiny_job job;
    struct lk_result result;
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(open_with(k, lora, dtype, &job));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
    unsigned char *out = malloc(64 * 64 * 3);
    memcpy(out, result.image.pixels, 64 * 64 * 3);
    lk_result_free(&result);
    tiny_job_close(&job);
    lk_device_free(dev);
    return out;
}

/* text with the first `from` in it replaced, in place; false: it has none. */
static bool replace(char text[512], const char *from, const char *to) {
    char *at = strstr(text, from), rest[512];
    if (!at) return false;
    strcpy(rest, at + strlen(from));
    strcpy(at, to);
    strcat(at, rest);
    return true;
}

/* What becomes of a key; false: the tensor is left out. */
typedef bool rename_fn(char key[512]);

static bool as_saved_today(char key[512]) { /* by save_lora_weights of diffusers 0.42 */
    return replace(key, ".lora_A.", ".lora.down.") || replace(key, ".lora_B.", ".lora.up.");
}

static bool as_of_old(char key[512]) { /* processors in the UNet, lora_linear_layer in text encoders */
    const bool text = !strncmp(key, "text_encoder", 12);
    const char *roles[] = {text ? ".lora_linear_layer.down." : "_lora.down.",
                           text ? ".lora_linear_layer.up." : "_lora.up."};
    if (!text) {
        replace(key, ".to_out.0.", ".to_out.");
        if (!replace(key, "attn1.", "attn1.processor.")) replace(key, "attn2.", "attn2.processor.");
    } else if (!strstr(key, ".text_model.")) {
        replace(key, "encoder.layers", "text_model.encoder.layers");
    }
    return replace(key, ".lora_A.", roles[0]) || replace(key, ".lora_B.", roles[1]);
}

static bool unet_alone(char key[512]) { return !strncmp(key, "unet.", 5); }
static bool text_alone(char key[512]) { return strncmp(key, "unet.", 5) != 0; }
static bool second_alone(char key[512]) { return !strncmp(key, "text_encoder_2.", 15); }
static bool down_alone(char key[512]) { return strstr(key, ".lora_A.") != NULL; }
static bool another_module(char key[512]) { return replace(key, "unet.mid_block", "unet.end_block") || true; }
static bool third_encoder(char key[512]) { return replace(key, "text_encoder.", "text_encoders.") || true; }
static bool loha(char key[512]) { return replace(key, ".lora_A.weight", ".hada_w1_a") || true; }

static const char *write_as(int k, const char *name, rename_fn *rename) {
    static char keys[MOST][512];
    struct lk_safetensors st;
    struct lk_st_named tensors[MOST];
    char metadata[16384];
    const char *path = test_path("renamed.safetensors");
    size_t n = 0;
    assert_ok(lk_safetensors_open(&st, file_of(k, name)));
    assert_true(st.n_tensors <= MOST && strlen(st.metadata_json) < sizeof metadata);
    strcpy(metadata, st.metadata_json);
    for (size_t i = 0; i < st.n_tensors; i++) {
        strcpy(keys[n], st.tensors[i].name);
        if (rename(keys[n])) tensors[n] = (struct lk_st_named){keys[n], st.tensors[i].tensor}, n++;
    }
    assert_ok(lk_safetensors_write(path, tensors, n, metadata));
    lk_safetensors_close(&st);
    return path;
}

static void layouts(void **state) {
    static rename_fn *const all[] = {as_saved_today, as_of_old};
    (void)state;
    for (int k = 0; k < N_CONFIGS; k++)
        for (int dtype = LK_F32; dtype <= LK_BF16; dtype++) {
            unsigned char *plain = picture(k, NULL, (enum lk_dtype)dtype),
                          *adapted = picture(k, file_of(k, "peft"), (enum lk_dtype)dtype);
            assert_true(memcmp(plain, adapted, 64 * 64 * 3) != 0);
            for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                unsigned char *other = picture(k, write_as(k, "peft", all[i]), (enum lk_dtype)dtype);
                assert_memory_equal(adapted, other, 64 * 64 * 3);
                free(other);
            }
            for (int part = 0; part < 2; part++) { /* either alone is another picture */
                unsigned char *other =
                    picture(k, write_as(k, "peft", part ? text_alone : unet_alone), (enum lk_dtype)dtype);
                assert_true(memcmp(plain, other, 64 * 64 * 3) && memcmp(adapted, other, 64 * 64 * 3));
                free(other);
            }
            free(plain);
            free(adapted);
        }
}

static void refused(void **state) {
    static const struct {
        int k;
        const char *file;
        rename_fn *rename;
        const char *says;
    } cases[] = {
        {0, "peft", down_alone, "its module has no B"},
        {0, "peft", another_module, "modules are not in this model, the first of \"unet.end_block"},
        {1, "peft", third_encoder, "\"text_encoders.encoder.layers.0"},
        {0, "peft", loha, "(LoHa"},
    };
    const int64_t live = lk_alloc_live();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(open_with(cases[i].k, write_as(cases[i].k, cases[i].file, cases[i].rename), LK_F32, NULL),
                     LK_E_BIND, cases[i].says);
    assert_fails(open_with(0, write_as(1, "peft", second_alone), LK_F32, NULL), LK_E_BIND,
                 "of a second text encoder, which this model has not");
    assert_ok(open_with(1, write_as(1, "peft", second_alone), LK_F32, NULL));
    assert_ok(open_with(1, file_of(1, "kohya"), LK_BF16, NULL));
    assert_ok(open_with(0, file_of(0, "kohya"), LK_BF16, NULL));
    /* Of the other model: SDXL's second text encoder, and other shapes. */
    assert_fails(open_with(0, file_of(1, "peft"), LK_F32, NULL), LK_E_BIND, "a LoRA of another model");
    assert_fails(open_with(1, file_of(0, "kohya"), LK_F32, NULL), LK_E_BIND, "a LoRA of another model");
    assert_fails(open_with(0, "golden/data/flux2/rich/loras/all.safetensors", LK_F32, NULL), LK_E_BIND,
                 "a LoRA of another model");
    char whole[512];
    const char *lora = file_of(0, "kohya");
    snprintf(whole, sizeof whole, "%s", test_path("merged"));
    assert_fails(lk_model_merge(tiny_pictures[0].checkpoint, whole, &lora, 1), LK_E_USAGE, "give it to --lora");
    assert_int_equal(lk_alloc_live(), live);
}

/* A file of filters: A [1, channels, height, width] of ones for conv_in of sd15, [8, 4, 3, 3]. */
static enum lk_code open_filters(int64_t height, int64_t width, float value) {
    float a[4 * 25], b[8];
    for (int i = 0; i < 100; i++) a[i] = value;
    for (int i = 0; i < 8; i++) b[i] = 1;
    const struct lk_st_named tensors[] = {
        {"lora_unet_conv_in.lora_down.weight", LK_TENSOR(a, LK_F32, 1, 4, height, width)},
        {"lora_unet_conv_in.lora_up.weight", LK_TENSOR(b, LK_F32, 8, 1, 1, 1)},
    };
    const char *path = test_path("filters.safetensors");
    assert_ok(lk_safetensors_write(path, tensors, 2, NULL));
    return open_with(0, path, LK_F32, NULL);
}

static void filters(void **state) {
    (void)state;
    assert_ok(open_filters(3, 3, 1));
    assert_fails(open_filters(1, 1, 1), LK_E_BIND, "expected filters as conv_in of this model has");
    assert_fails(open_filters(5, 5, 1), LK_E_BIND, "expected filters as conv_in of this model has");
    assert_fails(open_filters(3, 3, NAN), LK_E_BIND, "conv_in with the adapter is NaN or Inf");
    assert_fails(open_filters(3, 3, INFINITY), LK_E_BIND, "conv_in with the adapter is NaN or Inf");
}

static void no_memory_leaves_nothing(void **state) {
    const int64_t live = lk_alloc_live(), before = lk_alloc_count();
    (void)state;
    assert_ok(open_with(1, file_of(1, "kohya"), LK_F32, NULL));
    const int64_t n = lk_alloc_count() - before;
    int64_t n_failed = 0;
    for (int64_t i = 1; i <= n; i++) {
        lk_alloc_fail_at(i);
        const enum lk_code rc = open_with(1, file_of(1, "kohya"), LK_F32, NULL);
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM); /* some are done without */
        assert_int_equal(lk_alloc_live(), live);
        n_failed += rc == LK_E_NOMEM;
    }
    assert_true(n_failed > n / 2);
}

/* Plans need no values, and say as much memory as without. */
static void planned(void **state) {
    const char *lora = file_of(1, "kohya");
    struct lk_pipeline *p[2];
    struct lk_device *dev;
    (void)state;
    assert_ok(lk_device_cpu_create(1, &dev));
    for (int i = 0; i < 2; i++) {
        const struct lk_pipeline_options options = {.compute = LK_BF16, .configs = true, .loras = &lora, .n_loras = i};
        assert_ok(lk_pipeline_open_with(&p[i], tiny_pictures[1].checkpoint, &options));
    }
    struct lk_request request;
    struct lk_plan plans[2];
    lk_request_init(&request, p[0]);
    request.width = request.height = 64;
    for (int i = 0; i < 2; i++) assert_ok(lk_pipeline_plan(p[i], dev, &request, &plans[i]));
    assert_true(plans[0].arena_bytes == plans[1].arena_bytes);
    for (int i = 0; i < 2; i++) lk_pipeline_close(p[i]);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(refused), cmocka_unit_test(filters),
                                       cmocka_unit_test(planned), cmocka_unit_test(no_memory_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
