/* W7 on a whole model: each tensor of each component removed, renamed, re-shaped and re-typed in turn. Each is named in
 * the error. */
#include "tests/common/test.h"

#include <sys/stat.h>

#include "engine/quantized_units.h"
#include "models/pipeline.h"
#include "weights/safetensors.h"

#define SOURCE "golden/data/flux2/fast/checkpoint"

static const char *const copied[] = {"model_index.json",
                                     "scheduler/scheduler_config.json",
                                     "text_encoder/config.json",
                                     "transformer/config.json",
                                     "vae/config.json",
                                     "tokenizer/tokenizer.json",
                                     "text_encoder/model.safetensors",
                                     "transformer/diffusion_pytorch_model.safetensors",
                                     "vae/diffusion_pytorch_model.safetensors"};

static char folder[1024];

static void copy(const char *file) {
    char path[2048];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", SOURCE, file);
    char *bytes = test_read(path, &n);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    *strrchr(path, '/') = 0;
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    test_write(path, bytes, n);
    free(bytes);
}

/* Opens the model and edits: the text encoder is bound when the layers that a request needs are known. */
static enum lk_code edit(struct lk_result *result) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    enum lk_code rc = lk_pipeline_open(&p, folder, LK_F32);
    if (rc) return rc;
    assert_ok(lk_device_cpu_create(1, &dev));
    lk_request_init(&request, p);
    request.text_encoder_out_layers[0] = 1;
    request.n_text_encoder_out_layers = 1;
    request.width = request.height = 8;
    request.num_inference_steps = 1;
    request.max_sequence_length = 8;
    rc = lk_pipeline_edit(p, dev, &request, result);
    lk_device_free(dev);
    lk_pipeline_close(p);
    return rc;
}

static enum lk_code try_model(void) {
    struct lk_result result;
    enum lk_code rc = edit(&result);
    if (!rc) lk_result_free(&result);
    return rc;
}

enum change { REMOVED, RENAMED, RESHAPED, RETYPED, N_CHANGES };

static void apply(struct lk_st_named *list, size_t *n, size_t i, enum change change) {
    struct lk_tensor *t = &list[i].tensor;
    switch (change) {
    case REMOVED:
        list[i] = list[--*n];
        break;
    case RENAMED:
        list[i].name = "another.name";
        break;
    case RESHAPED: /* same bytes, another shape */
        *t = lk_tensor_make(t->data, t->dtype, t->n_dims + 1,
                            (int64_t[]){1, t->shape[0], t->shape[1], t->shape[2], t->shape[3]});
        break;
    case RETYPED:
        *t = LK_TENSOR(t->data, LK_U8, (int64_t)lk_tensor_bytes(t));
        break;
    default:
        break;
    }
}

static void vary(const char *file) {
    struct lk_safetensors st;
    char source[2048], target[2048];
    snprintf(source, sizeof source, "%s/%s", SOURCE, file);
    snprintf(target, sizeof target, "%s/%s", folder, file);
    assert_ok(lk_safetensors_open(&st, source));
    struct lk_st_named *list = calloc(st.n_tensors, sizeof *list);
    int n_refused = 0;
    for (size_t i = 0; i < st.n_tensors; i++) {
        const char *name = st.tensors[i].name;
        /* Known and not used: the vision tower, the projector, a training counter. */
        if (strstr(name, "vision_tower.") || strstr(name, "multi_modal") || strstr(name, "lm_head") ||
            strstr(name, "batches_tracked"))
            continue;
        for (enum change change = REMOVED; change < N_CHANGES; change++) {
            size_t n = st.n_tensors;
            for (size_t j = 0; j < n; j++) list[j] = (struct lk_st_named){st.tensors[j].name, st.tensors[j].tensor};
            apply(list, &n, i, change);
            assert_ok(lk_safetensors_write(target, list, n, NULL));
            /* Names are reported without the prefix that all of a component share. */
            static const char prefix[] = "language_model.model.";
            const char *tail = strncmp(name, prefix, strlen(prefix)) ? name : name + strlen(prefix);
            enum lk_code rc = try_model();
            if (rc != LK_E_BIND || !strstr(lk_error_text(), tail))
                fail_msg("%s, change %d: expected code %d naming it, got %d: %s", name, (int)change, LK_E_BIND, (int)rc,
                         lk_error_text());
            n_refused++;
        }
    }
    print_message("%s: %d variations\n", file, n_refused);
    assert_true(n_refused > 40);
    free(list);
    lk_safetensors_close(&st);
    copy(file);
    assert_ok(try_model());
}

static void copy_all(const char *name) {
    snprintf(folder, sizeof folder, "%s", test_path(name));
    mkdir(folder, 0777);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) copy(copied[i]);
    assert_ok(try_model());
}

/* Rounds to bf16 in place; bf16 says whether to store so, too. */
static void round_tensor(struct lk_tensor *t, bool bf16) {
    if (t->dtype != LK_F32) return;
    for (int64_t i = 0; i < lk_tensor_numel(t); i++) {
        float *v = (float *)t->data + i;
        *v = lk_round_bf16(*v);
        if (bf16) ((uint16_t *)t->data)[i] = lk_f32_to_bf16(*v);
    }
    if (bf16) t->dtype = LK_BF16;
}

/* The same values in a bf16 and in an f32 file make the same picture in f32: the VAE's running statistics, too. */
static void bf16_vae_in_f32(void **state) {
    (void)state;
    static const char file[] = "vae/diffusion_pytorch_model.safetensors";
    struct lk_safetensors st;
    struct lk_result result[2];
    char target[2048];
    copy_all("flux2_bf16_vae");
    snprintf(target, sizeof target, "%s/%s", folder, file);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        char source[2048];
        snprintf(source, sizeof source, "%s/%s", SOURCE, file);
        assert_ok(lk_safetensors_open(&st, source));
        struct lk_st_named *list = calloc(st.n_tensors, sizeof *list);
        void **copies = calloc(st.n_tensors, sizeof *copies);
        for (size_t i = 0; i < st.n_tensors; i++) {
            size_t bytes = lk_tensor_bytes(&st.tensors[i].tensor);
            list[i] = (struct lk_st_named){st.tensors[i].name, st.tensors[i].tensor};
            list[i].tensor.data = copies[i] = malloc(bytes);
            memcpy(copies[i], st.tensors[i].tensor.data, bytes);
            round_tensor(&list[i].tensor, bf16);
        }
        assert_ok(lk_safetensors_write(target, list, st.n_tensors, NULL));
        for (size_t i = 0; i < st.n_tensors; i++) free(copies[i]);
        free(copies);
        free(list);
        lk_safetensors_close(&st);
        assert_ok(edit(&result[bf16]));
    }
    assert_memory_equal(result[0].image.pixels, result[1].image.pixels, 8 * 8 * 3);
    for (int i = 0; i < 2; i++) lk_result_free(&result[i]);
}

static void every_tensor_is_named(void **state) {
    (void)state;
    copy_all("flux2_weights");
    vary("text_encoder/model.safetensors");
    vary("transformer/diffusion_pytorch_model.safetensors");
    vary("vae/diffusion_pytorch_model.safetensors");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_tensor_is_named), cmocka_unit_test(bf16_vae_in_f32)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
