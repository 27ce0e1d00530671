/* How many answers a second the two judges give on an A100, modelled from the released models' own forward passes: two
 * pictures of 1024 x 1024, 200 tokens out, 32 answers together. FLOPs and bytes are those that the plan device counts,
 * at the speeds that plans of edits go by (models/timeline.c); nothing was measured on such a GPU. */
#include "models/placement.h"
#include "models/text/mistral3.h"
#include "models/text/qwen25_vl.h"
#include "tests/common/test.h"

enum { SIDE = 74, N_IMAGES = 2, BATCH = 32, N_OUT = 200, MOST_LAYERS = 64 };

struct cost {
    double flops, bytes;
};

static struct cost taken(struct lk_device *plan) {
    struct cost out = {(double)plan->cost.flops, (double)plan->cost.bytes};
    plan->cost = (struct lk_cost){0};
    return out;
}

/* Of a prompt of n tokens, with its pictures. */
static struct cost prefill(struct lk_device *plan, const struct lk_vlm *m, const struct lk_vlm_cache *cache, int64_t n,
                           int64_t capacity) {
    const struct lk_vlm_image images[N_IMAGES] = {{.grid_h = SIDE, .grid_w = SIDE}, {.grid_h = SIDE, .grid_w = SIDE}};
    const int64_t each = m->image_tokens(m->model, &images[0]);
    struct lk_tensor features, h, logits;
    assert_ok(LK_NEW(&plan->arena, &features, LK_BF16, N_IMAGES * each, m->hidden_size));
    for (int i = 0; i < N_IMAGES; i++) {
        struct lk_tensor part = lk_tensor_rows(&features, i * each, each);
        assert_ok(m->vision(plan, m->model, &images[i], i, &part));
    }
    const struct lk_vlm_prompt prompt = {.n = n, .images = images, .n_images = N_IMAGES, .features = &features};
    assert_ok(LK_NEW(&plan->arena, &h, LK_BF16, n, m->hidden_size));
    assert_ok(LK_NEW(&plan->arena, &logits, LK_BF16, 1, m->vocab_size));
    assert_ok(lk_vlm_embed(plan, m, &prompt, 0, &h));
    const struct lk_decoder_rows rows = {.n = n, .capacity = capacity};
    assert_ok(lk_vlm_layers(plan, m, &h, NULL, cache, &rows, 1, NULL));
    struct lk_tensor last = lk_tensor_rows(&h, n - 1, 1);
    assert_ok(lk_vlm_logits(plan, m, &last, &logits));
    return taken(plan);
}

/* One token of each answer, half of which is there. */
static struct cost decode(struct lk_device *plan, const struct lk_vlm *m, const struct lk_vlm_cache *cache, int64_t n,
                          int64_t capacity) {
    struct lk_decoder_rows rows[BATCH];
    struct lk_tensor h, logits;
    for (int i = 0; i < BATCH; i++) rows[i] = (struct lk_decoder_rows){1, i * capacity, n + N_OUT / 2, capacity};
    assert_ok(LK_NEW(&plan->arena, &h, LK_BF16, BATCH, m->hidden_size));
    assert_ok(LK_NEW(&plan->arena, &logits, LK_BF16, BATCH, m->vocab_size));
    assert_ok(lk_vlm_layers(plan, m, &h, NULL, cache, rows, BATCH, NULL));
    assert_ok(lk_vlm_logits(plan, m, &h, &logits));
    return taken(plan);
}

/* Each pass takes as long as its arithmetic or its memory, whichever is longer; all at the slower rate, attention's. */
static double seconds_of(struct cost c, const struct lk_device_rates *rates) {
    const double by_flops = c.flops / rates->attention_flops, by_bytes = c.bytes / rates->memory_bytes;
    return by_flops > by_bytes ? by_flops : by_bytes;
}

/* n: tokens of the rubric with both pictures. */
static double rate(const struct lk_vlm *m, int64_t n) {
    const struct lk_device_rates rates = lk_device_rates("sm_80");
    const int64_t capacity = n + N_OUT;
    struct lk_device *cpu, *plan;
    struct lk_tensor k[MOST_LAYERS], v[MOST_LAYERS];
    const struct lk_vlm_cache cache = {k, v};
    assert_true(m->n_layers <= MOST_LAYERS);
    assert_ok(lk_device_cpu_create(1, &cpu));
    assert_ok(lk_device_plan_create(cpu, &plan));
    for (int64_t i = 0; i < m->n_layers; i++) {
        assert_ok(LK_NEW(&plan->arena, &k[i], LK_BF16, BATCH * capacity, m->n_kv_heads, m->head_dim));
        assert_ok(LK_NEW(&plan->arena, &v[i], LK_BF16, BATCH * capacity, m->n_kv_heads, m->head_dim));
    }
    const struct cost first = prefill(plan, m, &cache, n, capacity), next = decode(plan, m, &cache, n, capacity);
    const double prefill_s = seconds_of(first, &rates), step_s = seconds_of(next, &rates);
    const double out = BATCH / (BATCH * prefill_s + N_OUT * step_s);
    printf("%s: prefill %.1f TFLOP, %.3f s; a step of %d %.1f GB, %.1f ms; %.2f answers a second\n", m->name,
           1e-12 * first.flops, prefill_s, BATCH, 1e-9 * next.bytes, 1e3 * step_s, out);
    lk_device_free(plan);
    lk_device_free(cpu);
    return out;
}

static void answers_a_second(void **state) {
    struct lk_config *json;
    struct lk_mistral3 mistral;
    struct lk_mistral3_config mistral_config;
    struct lk_qwen25_vl qwen;
    struct lk_qwen25_vl_config qwen_config;
    (void)state;
    assert_ok(lk_config_open(&json, "data/mistral_small_3_2_config.json"));
    assert_ok(lk_mistral3_config_read(&mistral_config, json));
    assert_ok(lk_mistral3_bind(&mistral, &mistral_config, NULL, LK_BF16));
    const struct lk_vlm mistral_view = lk_mistral3_view(&mistral);
    assert_true(rate(&mistral_view, 3400) >= 0.7);
    lk_mistral3_free(&mistral);
    assert_ok(lk_config_open(&json, "data/qwen25_vl_7b_config.json"));
    assert_ok(lk_qwen25_vl_config_read(&qwen_config, json));
    assert_ok(lk_qwen25_vl_bind(&qwen, &qwen_config, true, NULL, LK_BF16));
    const struct lk_vlm qwen_view = lk_qwen25_vl_view(&qwen);
    assert_true(rate(&qwen_view, 3324) >= 2);
    lk_qwen25_vl_free(&qwen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_a_second)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
