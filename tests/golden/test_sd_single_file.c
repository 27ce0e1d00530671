/* Single files under their authors' names: made here from the folder's tensors by the names that diffusers' converters
 * take (generate_sd_names.py). The same pictures as of the folder, bit for bit; and files that are refused. */
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "models/pipeline.h"
#include "tests/common/test.h"
#include "weights/checkpoint.h"

#define MOST 1200

/* The parts of a folder, and the file in the making. */
struct file {
    struct lk_checkpoint parts[4];
    struct lk_st_named named[MOST];
    size_t n;
    void *owned[MOST];
    size_t n_owned;
    char *names;
    char folder[400], path[500];
};

static const char *const components[] = {"text_encoder", "unet", "vae", "text_encoder_2"};

static void *own(struct file *f, size_t bytes) {
    void *block = malloc(bytes);
    assert_non_null(block);
    return f->owned[f->n_owned++] = block;
}

static void add_transposed(struct file *f, const char *name, const struct lk_tensor *t) {
    const int64_t rows = t->shape[0], columns = t->shape[1];
    uint16_t *to = own(f, lk_tensor_bytes(t));
    assert_int_equal(t->dtype, LK_F16);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + r] = ((const uint16_t *)t->data)[r * columns + c];
    f->named[f->n++] = (struct lk_st_named){name, LK_TENSOR(to, t->dtype, columns, rows)};
}

/* Rows of queries, keys and values, which come in any order, into one tensor of the name that they share. */
static void add_share(struct file *f, const char *name, const char *from, const struct lk_tensor *t) {
    const size_t bytes = lk_tensor_bytes(t), part = strstr(from, "q_proj") ? 0 : strstr(from, "k_proj") ? 1 : 2;
    size_t i = 0;
    while (i < f->n && strcmp(f->named[i].name, name)) i++;
    if (i == f->n) {
        struct lk_tensor all = *t;
        all.shape[0] *= 3;
        all.data = own(f, 3 * bytes);
        f->named[f->n++] = (struct lk_st_named){name, all};
    }
    memcpy((char *)f->named[i].tensor.data + part * bytes, t->data, bytes);
}

static void add(struct file *f, const char *component, const char *from, const char *name) {
    int k = 0;
    while (strcmp(components[k], component)) k++;
    const struct lk_st_tensor *found = lk_checkpoint_find(&f->parts[k], from);
    if (!found) fail_msg("no tensor %s in %s", from, component);
    struct lk_tensor t = found->tensor;
    assert_true(f->n < MOST && f->n_owned < MOST);
    if (strstr(name, "in_proj_")) {
        add_share(f, name, from, &t);
        return;
    }
    if (!strcmp(from, "text_projection.weight")) {
        add_transposed(f, name, &t);
        return;
    }
    if (strstr(name, "mid.attn_1") && t.n_dims == 2) t = LK_VIEW(&t, t.shape[0], t.shape[1], 1, 1);
    f->named[f->n++] = (struct lk_st_named){name, t};
}

/* All tensors of the folder golden/data/sd/CONFIG/checkpoint; the file will lie beside links to its configs. */
static void begin(struct file *f, const char *config) {
    static const char *const linked[] = {"model_index.json", "scheduler", "tokenizer", "tokenizer_2",
                                         "text_encoder",     "unet",      "vae",       "text_encoder_2"};
    char path[512], *rest;
    const bool xl = !strcmp(config, "sdxl");
    memset(f, 0, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "%s", test_fresh("single_file"));
    snprintf(f->path, sizeof f->path, "%s/all.safetensors", f->folder);
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
        char from[600], to[512];
        char *here = getcwd(path, sizeof path);
        assert_non_null(here);
        snprintf(from, sizeof from, "%.400s/golden/data/sd/%s/checkpoint/%s", here, config, linked[i]);
        snprintf(to, sizeof to, "%s/%s", f->folder, linked[i]);
        if (!access(from, F_OK)) assert_int_equal(symlink(from, to), 0);
    }
    for (int k = 0; k < (xl ? 4 : 3); k++) {
        const char *stem = k == 0 || k == 3 ? "model" : "diffusion_pytorch_model";
        char name[64];
        snprintf(path, sizeof path, "golden/data/sd/%s/checkpoint/%s", config, components[k]);
        snprintf(name, sizeof name, "%s%s", stem, xl ? ".fp16" : "");
        assert_ok(lk_checkpoint_open(&f->parts[k], path, name));
    }
    snprintf(path, sizeof path, "golden/data/sd/%s/ldm_names.txt", config);
    f->names = test_read(path, NULL);
    for (char *line = strtok_r(f->names, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *from = strchr(line, ' '), *name = from ? strchr(from + 1, ' ') : NULL;
        assert_non_null(name);
        *from++ = *name++ = 0;
        add(f, line, from, name);
    }
}

static void end(struct file *f) {
    char command[450];
    for (size_t i = 0; i < f->n_owned; i++) free(f->owned[i]);
    for (int k = 0; k < 4; k++) lk_checkpoint_close(&f->parts[k]);
    free(f->names);
    snprintf(command, sizeof command, "rm -r '%s'", f->folder);
    assert_int_equal(system(command), 0);
}

static void write_file(const struct file *f) { assert_ok(lk_safetensors_write(f->path, f->named, f->n, "{}")); }

static size_t find(const struct file *f, const char *name) {
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->named[i].name, name)) return i;
    fail_msg("no tensor %s", name);
    return 0;
}

static void draw(const char *model, enum lk_dtype dtype, struct lk_result *result) {
    struct lk_pipeline *pipeline;
    struct lk_device *dev;
    struct lk_request request;
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_pipeline_open(&pipeline, model, dtype));
    lk_request_init(&request, pipeline);
    request.prompt = "a thief in a store";
    request.width = request.height = 64;
    request.num_inference_steps = 3;
    assert_ok(lk_pipeline_edit(pipeline, dev, &request, result));
    lk_pipeline_close(pipeline);
    lk_device_free(dev);
}

static void same_picture(void **state) {
    const char *config = *state;
    struct file f;
    char folder[128];
    lk_model_follow_links(true);
    begin(&f, config);
    write_file(&f);
    snprintf(folder, sizeof folder, "golden/data/sd/%s/checkpoint", config);
    for (int i = 0; i < 2; i++) {
        struct lk_result a, b;
        draw(folder, i ? LK_BF16 : LK_F32, &a);
        draw(f.path, i ? LK_BF16 : LK_F32, &b);
        assert_memory_equal(a.image.pixels, b.image.pixels, (size_t)(a.width * a.height * 3));
        lk_result_free(&a);
        lk_result_free(&b);
    }
    end(&f);
    lk_model_follow_links(false);
}

/* A folder that has only fp16 files is complete; one that has none has no variant. */
static void variants(void **state) {
    struct lk_pipeline *pipeline;
    struct lk_pipeline_options options = {.compute = LK_F32, .variant = "fp16"};
    char plain[65], named[65];
    (void)state;
    assert_ok(lk_pipeline_open(&pipeline, "golden/data/sd/sdxl/checkpoint", LK_F32));
    assert_ok(lk_pipeline_weights_identity(pipeline, plain));
    lk_pipeline_close(pipeline);
    assert_ok(lk_pipeline_open_with(&pipeline, "golden/data/sd/sdxl/checkpoint", &options));
    assert_ok(lk_pipeline_weights_identity(pipeline, named));
    lk_pipeline_close(pipeline);
    assert_string_equal(plain, named);
    assert_fails(lk_pipeline_open_with(&pipeline, "golden/data/sd/sd15/checkpoint", &options), LK_E_NOT_FOUND,
                 "model.fp16.safetensors");
    assert_fails(lk_pipeline_open_with(&pipeline, "golden/data/flux2/fast/checkpoint", &options), LK_E_USAGE,
                 "--variant: flux2-dev has none");
}

static void open_fails(const struct file *f, enum lk_code code, const char *says) {
    struct lk_pipeline *pipeline;
    write_file(f);
    assert_fails(lk_pipeline_open(&pipeline, f->path, LK_F32), code, says);
}

static void refused_files(void **state) {
    (void)state;
    struct file f;
    lk_model_follow_links(true);
    begin(&f, "sd15");
    const size_t conv_in = find(&f, "model.diffusion_model.input_blocks.0.0.weight");
    const size_t resnet = find(&f, "model.diffusion_model.input_blocks.1.0.in_layers.2.weight");
    const struct lk_st_named whole = f.named[conv_in], other = f.named[resnet];
    f.named[conv_in].tensor = LK_TENSOR(whole.tensor.data, LK_BF16, 4, 9, 2, 2);
    open_fails(&f, LK_E_MODEL_UNKNOWN, "a model for inpainting: expected a single file of");
    f.named[conv_in].tensor = LK_TENSOR(whole.tensor.data, LK_BF16, 4, 8, 3, 3);
    open_fails(&f, LK_E_MODEL_UNKNOWN, "InstructPix2Pix");
    f.named[conv_in] = whole;
    f.named[conv_in].name = "conv_in.weight";
    open_fails(&f, LK_E_MODEL_UNKNOWN, "no Stable Diffusion");
    f.named[conv_in] = whole;
    f.named[resnet].name = "edm_mean";
    open_fails(&f, LK_E_MODEL_UNKNOWN, "Playground");
    f.named[resnet].name = "model.diffusion_model.unheard";
    open_fails(&f, LK_E_BIND, "down_blocks.0.resnets.0.conv1.weight");
    f.named[resnet].name = "unheard.of";
    open_fails(&f, LK_E_BIND, "unexpected tensor \"unheard.of\"");
    f.named[resnet] = other;
    f.named[f.n++] =
        (struct lk_st_named){"conditioner.embedders.0.model.transformer.resblocks.9.mlp.c_proj.bias", other.tensor};
    open_fails(&f, LK_E_MODEL_UNKNOWN, "SDXL's refiner");
    f.named[f.n - 1].name = "model_ema.diffusion_modelout2bias"; /* known, and not read */
    f.named[f.n++] = (struct lk_st_named){"alphas_cumprod", f.named[0].tensor};
    struct lk_pipeline *pipeline;
    write_file(&f);
    assert_ok(lk_pipeline_open(&pipeline, f.path, LK_F32));
    assert_string_equal(lk_pipeline_family(pipeline), "sd-1.5");
    assert_string_equal(lk_pipeline_folder(pipeline), f.path);
    lk_pipeline_close(pipeline);
    end(&f);
    begin(&f, "sdxl");
    const size_t bias = find(&f, "conditioner.embedders.1.model.transformer.resblocks.1.attn.in_proj_bias");
    f.named[bias].tensor.shape[0]--;
    open_fails(&f, LK_E_BIND, "its rows cannot be shared out to 3 layers");
    end(&f);
    lk_model_follow_links(false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {.name = "sd15", .test_func = same_picture, .initial_state = "sd15"},
        {.name = "sdxl", .test_func = same_picture, .initial_state = "sdxl"},
        cmocka_unit_test(variants),
        cmocka_unit_test(refused_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
