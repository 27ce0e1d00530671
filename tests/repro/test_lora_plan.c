/* What a plan says of adapters: their arithmetic and bytes are those of a count by hand, and the peak is the run's. */
#include <stdio.h>
#include <string.h>

#include "tests/common/pipeline_checks.h"
#include "tests/common/test.h"
#include "tests/common/tiny_edit.h"
#include "weights/lora/internal.h"

/* One picture of 1024x1024 made of one of the same size, one branch; by the released configs. */
enum { N_NOISE = 4096, N_IMAGE = 2 * N_NOISE };
static const struct {
    const char *name, *last; /* what its last block's layers begin with */
} models[] = {{"flux2-dev", "single_transformer_blocks.47."},
              {"qwen-edit-2511", "transformer_blocks.59."},
              {"step1x-v1p2", "single_transformer_blocks.37."}};
enum { N_MODELS = sizeof models / sizeof *models };

static bool has(const char *layer, const char *part) { return strstr(layer, part) != NULL; }

/* Tokens times (rows + columns) of the matrices that the layer's adapter is multiplied by in a forward. n: all tokens.
 * The last block makes the noise's tokens alone, and no text, of which only keys and values are needed. */
static int64_t products(const struct lk_lora_layer *l, const char *last, int64_t n) {
    const int64_t both = l->rows + l->columns, d = l->columns, n_txt = n - N_IMAGE;
    const bool is_last = !strncmp(l->name, last, strlen(last));
    if (has(l->name, "to_qkv_mlp_proj") && is_last) /* keys and values; queries; MLP */
        return n * (d + 2 * d) + N_NOISE * (d + d) + N_NOISE * (d + l->rows - 3 * d);
    if (has(l->name, "to_qkv_mlp_proj")) return n * (both + d); /* in two parts, each by A again */
    const bool text = has(l->name, "add_") || has(l->name, "context") || has(l->name, "txt_");
    const bool seen = has(l->name, "to_k") || has(l->name, "to_v") || has(l->name, "add_k") || has(l->name, "add_v");
    if (is_last && !seen) return text ? 0 : N_NOISE * both;
    return (has(l->name, "single_") ? n : text ? n_txt : N_IMAGE) * both;
}

static const struct lk_plan_stage *transformer(const struct lk_plan *plan) {
    int i = 0;
    while (strcmp(plan->stages[i].name, "transformer")) assert_true(++i < plan->n_stages);
    return &plan->stages[i];
}

/* work, values: of the adapter's products, and of its matrices that the forward reads. */
static void plan(int model, const char *lora, struct lk_plan *out, uint64_t *work, uint64_t *values) {
    struct lk_pipeline *p;
    struct lk_device *dev;
    struct lk_request request;
    struct lk_image image = {.width = 1024, .height = 1024};
    const struct lk_pipeline_options options = {.compute = LK_BF16, .configs = true, .loras = &lora, .n_loras = !!lora};
    assert_ok(lk_pipeline_open_with(&p, models[model].name, &options));
    assert_ok(lk_device_cpu_create(1, &dev));
    lk_request_init(&request, p);
    request.images = &image;
    request.n_images = 1;
    if (model) request.true_cfg_scale = 1; /* one branch */
    assert_ok(lk_pipeline_plan(p, dev, &request, out));
    const struct lk_loras *loras = lk_pipeline_loras(p);
    *work = *values = 0;
    for (size_t i = 0; loras && i < loras->n_layers; i++) {
        const struct lk_lora_layer *l = &loras->layers[i];
        const int64_t n = l->rank ? products(l, models[model].last, out->n_tokens) : 0;
        *work += 2 * (uint64_t)(n * l->rank);
        *values += n ? (uint64_t)lk_lora_layer_values(loras, i) : 0;
    }
    lk_device_free(dev);
    lk_pipeline_close(p);
}

static void cost_of_a_rank(void **state) {
    static const struct {
        const char *lora;
        double most[N_MODELS]; /* of a forward, in percent: 1.5 times what the arithmetic of rank 64 is */
    } ranks[] = {{"rank=64", {1.6, 3.3, 3.1}}, {"rank=16", {1, 1.5, 1.5}}, {"rank=1", {1, 1.5, 1.5}}};
    (void)state;
    for (int i = 0; i < N_MODELS; i++)
        for (int k = 0; k < 3; k++) {
            struct lk_plan without, with;
            uint64_t work, values, none;
            plan(i, NULL, &without, &none, &none);
            plan(i, ranks[k].lora, &with, &work, &values);
            const struct lk_plan_stage *a = transformer(&without), *b = transformer(&with);
            const double share = 100 * (double)(b->flops - a->flops) / (double)a->flops;
            printf("%s, %s: %.2f %% more arithmetic, %.3f GB\n", models[i].name, ranks[k].lora, share,
                   2e-9 * (double)values);
            assert_int_equal(b->flops - a->flops, work);
            assert_int_equal(b->weight_bytes - a->weight_bytes, 2 * values);
            assert_true(share <= ranks[k].most[i]);
        }
}

/* Of all layers' adapter on a model that is there. */
static void memory_is_as_planned(void **state) {
    (void)state;
    for (int f = 0; f < TINY_FAMILIES; f++)
        for (int twice = 0; twice < 2; twice++) {
            struct tiny_job job;
            struct lk_device *dev;
            struct lk_plan with;
            struct lk_result result;
            const char *loras[] = {tiny_edits[f].lora, tiny_edits[f].lora};
            const struct lk_pipeline_options options = {.compute = LK_BF16, .loras = loras, .n_loras = 1 + twice};
            tiny_job_open_with(&job, &tiny_edits[f], tiny_edits[f].checkpoint, &options, 2);
            assert_ok(lk_device_cpu_create(1, &dev));
            test_plan_is_the_peak(job.pipeline, dev, &job.request, &with, &result);
            lk_result_free(&result);
            lk_device_free(dev);
            tiny_job_close(&job);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cost_of_a_rank), cmocka_unit_test(memory_is_as_planned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
