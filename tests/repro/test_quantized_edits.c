/* Pictures of all families with packed weights: packing them as they are read, reading what the packing wrote for
 * bitsandbytes, and running the bf16 weights that the packed ones stand for give one picture, with any number of
 * threads. Text encoders too, as published four-bit models have them. */
#include "tests/common/tiny_edit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/quantized.h"
#include "models/flux2/transformer.h"
#include "models/qwen_edit/transformer.h"
#include "models/step1x/transformer.h"
#include "tests/common/test.h"
#include "weights/bind.h"
#include "weights/quant/write.h"

static const char *const *const kept_of_transformer[TINY_FAMILIES] = {lk_flux2_kept, lk_qwen_kept, lk_step1x_kept};
static const char *const kept_of_text[] = {"embed_tokens", "lm_head", NULL};

/* What is packed: the transformer or the text encoder. */
static bool texts;
static const char *component(void) { return texts ? "text_encoder" : "transformer"; }
static const char *stem(void) { return texts ? "model" : "diffusion_pytorch_model"; }
static const char *const *kept(int family) { return texts ? kept_of_text : kept_of_transformer[family]; }

static const char *transformer_file; /* NULL: the folder's */

/* The picture's digest; `formats`, if given, are what the pipeline says of its weights. */
static void picture(int family, const char *folder, enum lk_quantize how, int threads, const char *formats,
                    char out[65]) {
    struct tiny_job job;
    struct lk_device *dev;
    struct lk_result result = {0};
    char said[96];
    tiny_job_open_with(
        &job, &tiny_edits[family], folder,
        &(struct lk_pipeline_options){.compute = LK_BF16, .quantize = how, .transformer = transformer_file}, 0);
    assert_ok(lk_device_cpu_create(threads, &dev));
    assert_ok(lk_pipeline_edit(job.pipeline, dev, &job.request, &result));
    lk_sha256(result.image.pixels, (size_t)result.image.width * (size_t)result.image.height * 3, out);
    lk_pipeline_quantization(job.pipeline, said);
    if (formats) assert_string_equal(said, formats);
    lk_result_free(&result);
    lk_device_free(dev);
    tiny_job_close(&job);
}

/* A copy of the checkpoint in which the component is still to be written; its config with `about` put in. */
static const char *copy_model(int family, bool quantized) {
    static char folder[1100];
    char command[4096], *config, *changed;
    size_t n;
    snprintf(folder, sizeof folder, "%s", test_path("quantized_model"));
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s' && rm -f '%s'/%s/*.safetensors*", folder,
             tiny_edits[family].checkpoint, folder, folder, component());
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/%s/config.json", folder, component());
    if (!quantized) return folder;
    config = test_read(command, &n);
    assert_ok(lk_quantize_config(config, kept(family), "config.json", &changed));
    test_write(command, changed, strlen(changed));
    assert_non_null(strstr(changed, "\"llm_int8_threshold\":\t6.0")); /* which diffusers wants to be a float */
    assert_fails(lk_quantize_config(changed, kept(family), "config.json", &(char *){NULL}), LK_E_CONFIG_VALUE,
                 "already");
    lk_free(changed);
    free(config);
    return folder;
}

static struct lk_checkpoint open_component(int family) {
    struct lk_checkpoint cp;
    char folder[1100];
    snprintf(folder, sizeof folder, "%s/%s", tiny_edits[family].checkpoint, component());
    assert_ok(lk_checkpoint_open(&cp, folder, stem()));
    return cp;
}

/* The weights that packing leaves, as a plain checkpoint. */
static void write_plain(int family, const char *folder, enum lk_quantize how) {
    struct lk_checkpoint cp = open_component(family);
    struct lk_st_named *all = lk_calloc(cp.n_tensors, sizeof *all);
    char path[1200];
    for (size_t i = 0; i < cp.n_tensors; i++) {
        const struct lk_st_tensor *t = cp.tensors[i].tensor;
        all[i] = (struct lk_st_named){t->name, t->tensor};
        if (t->tensor.n_dims != 2 || lk_bind_keeps(t->name, kept(family))) continue;
        const int64_t n = lk_tensor_numel(&t->tensor);
        uint16_t *values = lk_malloc((size_t)n * 2), *scales = lk_malloc((size_t)n);
        unsigned char *codes = lk_malloc((size_t)n);
        assert_int_equal(t->tensor.dtype, LK_BF16);
        memcpy(values, t->tensor.data, (size_t)n * 2);
        assert_int_equal(lk_quantize(how, values, n, LK_QUANTIZE_BLOCK, codes, scales), -1);
        struct lk_tensor packed = LK_TENSOR(codes, lk_quantize_dtype(how), n);
        packed.scales = (struct lk_scales){scales, LK_BF16, LK_QUANTIZE_BLOCK};
        lk_dequantize(&packed, 0, n, values);
        all[i].tensor.data = values;
        lk_free(codes);
        lk_free(scales);
    }
    snprintf(path, sizeof path, "%s/%s/%s.safetensors", folder, component(), stem());
    assert_ok(lk_safetensors_write(path, all, cp.n_tensors, NULL));
    for (size_t i = 0; i < cp.n_tensors; i++)
        if (all[i].tensor.data != cp.tensors[i].tensor->tensor.data) lk_free(all[i].tensor.data);
    lk_free(all);
    lk_checkpoint_close(&cp);
}

static void one_picture(int family) {
    static const enum lk_quantize forms[] = {LK_QUANTIZE_NF4, LK_QUANTIZE_NF4_MSE, LK_QUANTIZE_Q8};
    char plain[65], loaded[65], other[65], previous[65] = "";
    picture(family, tiny_edits[family].checkpoint, LK_QUANTIZE_NONE, 2, "", previous);
    for (int i = 0; i < (texts ? 1 : 3); i++) {
        const char *format = i < 2 ? "nf4" : "q8";
        const char *folder = copy_model(family, false);
        write_plain(family, folder, forms[i]);
        picture(family, folder, LK_QUANTIZE_NONE, 1, "", plain);
        assert_string_not_equal(plain, previous); /* packing is not nothing */
        strcpy(previous, plain);
        if (!texts) { /* which alone is packed as it is read */
            picture(family, tiny_edits[family].checkpoint, forms[i], 2, format, loaded);
            assert_string_equal(loaded, plain);
        }
        if (i == 2) break;
        for (int shards = 0; shards < 2; shards++) {
            struct lk_checkpoint cp = open_component(family);
            char path[1200];
            snprintf(path, sizeof path, "%s/%s", copy_model(family, true), component());
            assert_ok(lk_quantize_write(&cp, path, stem(), forms[i], kept(family), shards ? 30000 : (uint64_t)1 << 40));
            lk_checkpoint_close(&cp);
            picture(family, test_path("quantized_model"), LK_QUANTIZE_NONE, 2, "nf4", other);
            assert_string_equal(other, plain);
        }
    }
}

/* The transformer of FLUX.2 as one file under the names of the model's makers gives the picture of the folder. */
struct own_name {
    const char *ours, *theirs; /* from the block's number on, or the whole module */
};
static const struct own_name whole[] = {
    {"x_embedder.weight", "img_in.weight"},
    {"context_embedder.weight", "txt_in.weight"},
    {"time_guidance_embed.timestep_embedder.linear_1.weight", "time_in.in_layer.weight"},
    {"time_guidance_embed.timestep_embedder.linear_2.weight", "time_in.out_layer.weight"},
    {"time_guidance_embed.guidance_embedder.linear_1.weight", "guidance_in.in_layer.weight"},
    {"time_guidance_embed.guidance_embedder.linear_2.weight", "guidance_in.out_layer.weight"},
    {"double_stream_modulation_img.linear.weight", "double_stream_modulation_img.lin.weight"},
    {"double_stream_modulation_txt.linear.weight", "double_stream_modulation_txt.lin.weight"},
    {"single_stream_modulation.linear.weight", "single_stream_modulation.lin.weight"},
    {"norm_out.linear.weight", "final_layer.adaLN_modulation.1.weight"},
    {"proj_out.weight", "final_layer.linear.weight"}};
static const struct own_name in_double[] = {{"attn.to_q.weight", "img_attn.qkv.weight"},
                                            {"attn.to_out.0.weight", "img_attn.proj.weight"},
                                            {"attn.norm_q.weight", "img_attn.norm.query_norm.scale"},
                                            {"attn.norm_k.weight", "img_attn.norm.key_norm.scale"},
                                            {"ff.linear_in.weight", "img_mlp.0.weight"},
                                            {"ff.linear_out.weight", "img_mlp.2.weight"},
                                            {"attn.add_q_proj.weight", "txt_attn.qkv.weight"},
                                            {"attn.to_add_out.weight", "txt_attn.proj.weight"},
                                            {"attn.norm_added_q.weight", "txt_attn.norm.query_norm.scale"},
                                            {"attn.norm_added_k.weight", "txt_attn.norm.key_norm.scale"},
                                            {"ff_context.linear_in.weight", "txt_mlp.0.weight"},
                                            {"ff_context.linear_out.weight", "txt_mlp.2.weight"}};
static const struct own_name in_single[] = {{"attn.to_qkv_mlp_proj.weight", "linear1.weight"},
                                            {"attn.to_out.weight", "linear2.weight"},
                                            {"attn.norm_q.weight", "norm.query_norm.scale"},
                                            {"attn.norm_k.weight", "norm.key_norm.scale"}};

/* n tensors of the same size under names that differ in `parts`, as one below the other. */
static struct lk_tensor stacked(const struct lk_checkpoint *cp, const char *name, int n, const char *const *parts) {
    struct lk_tensor out = {0};
    for (int i = 0; i < n; i++) {
        char full[200];
        const char *hole = strstr(name, parts[0]);
        snprintf(full, sizeof full, "%.*s%s%s", (int)(hole - name), name, parts[i], hole + strlen(parts[0]));
        const struct lk_tensor *t = &lk_checkpoint_find(cp, full)->tensor;
        const size_t bytes = lk_tensor_bytes(t);
        if (!i) {
            out = *t;
            out.shape[0] *= n;
            out.data = lk_malloc((size_t)n * bytes);
        }
        memcpy((char *)out.data + (size_t)i * bytes, t->data, bytes);
    }
    return out;
}

static void makers_names(void **state) {
    (void)state;
    static const char *const q[] = {"to_q", "to_k", "to_v"}, *const added[] = {"add_q_", "add_k_", "add_v_"};
    struct lk_checkpoint cp = open_component(0);
    struct lk_st_named all[200];
    static char names[200][120];
    size_t n = 0;
    for (size_t i = 0; i < cp.n_tensors; i++) {
        const char *name = cp.tensors[i].tensor->name;
        int block = 0, at = 0;
        const bool single = sscanf(name, "single_transformer_blocks.%d.%n", &block, &at) == 1;
        const bool is_double = !single && sscanf(name, "transformer_blocks.%d.%n", &block, &at) == 1;
        const struct own_name *table = single ? in_single : is_double ? in_double : whole;
        const size_t rows = single ? 4 : is_double ? 12 : 11;
        for (size_t j = 0; j < rows; j++) {
            if (strcmp(name + at, table[j].ours) != 0) continue;
            snprintf(names[n], sizeof names[n], "model.diffusion_model.");
            if (single || is_double)
                snprintf(names[n] + strlen(names[n]), 90, "%s_blocks.%d.%s", single ? "single" : "double", block,
                         table[j].theirs);
            else
                snprintf(names[n] + strlen(names[n]), 90, "%s", table[j].theirs);
            struct lk_tensor t = cp.tensors[i].tensor->tensor;
            if (strstr(table[j].theirs, "qkv")) t = stacked(&cp, name, 3, strstr(name, "add") ? added : q);
            if (strstr(table[j].theirs, "adaLN")) { /* shift first */
                const size_t half = lk_tensor_bytes(&t) / 2;
                char *turned = lk_malloc(2 * half);
                memcpy(turned, (char *)t.data + half, half);
                memcpy(turned + half, t.data, half);
                t.data = turned;
            }
            all[n] = (struct lk_st_named){names[n], t};
            n++;
        }
    }
    const char *file = test_path("flux2_of_its_makers.safetensors");
    assert_ok(lk_safetensors_write(file, all, n, NULL));
    lk_checkpoint_close(&cp);
    for (size_t i = 0; i < n; i++)
        if (strstr(names[i], "qkv.") || strstr(names[i], "adaLN")) lk_free(all[i].tensor.data);
    char folder[65], single_file[65];
    picture(0, tiny_edits[0].checkpoint, LK_QUANTIZE_NF4, 2, "nf4", folder);
    transformer_file = file;
    picture(0, tiny_edits[0].checkpoint, LK_QUANTIZE_NF4, 2, "nf4", single_file);
    transformer_file = NULL;
    assert_string_equal(single_file, folder);
}

static void flux2(void **state) {
    (void)state;
    one_picture(0);
}
static void qwen_edit(void **state) {
    (void)state;
    one_picture(1);
}
static void step1x(void **state) {
    (void)state;
    one_picture(2);
}

static void text_encoders(void **state) {
    (void)state;
    texts = true;
    for (int family = 0; family < TINY_FAMILIES; family++) one_picture(family);
    texts = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(flux2), cmocka_unit_test(qwen_edit), cmocka_unit_test(step1x),
                                       cmocka_unit_test(makers_names), cmocka_unit_test(text_encoders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
