/* A token's state has the same bits whether it came alone after cached keys or with all others in one pass, at every
 * instruction level, in both dtypes, and beyond the chunks in which attention goes through the keys. */
#include "tests/common/test.h"

#include "engine/base/isa.h"
#include "models/text/generate.h"
#include "models/text/qwen25_vl_language.h"

#define CHECKPOINT "golden/data/qwen25_vl/nested/checkpoint"
#define N_PROMPT   520 /* attention takes 512 keys at a time */
#define N_AT_ONCE  509
#define MAX_LAYERS 8

struct model {
    struct lk_checkpoint checkpoint;
    struct lk_qwen25_vl m;
    enum lk_dtype dtype;
    int32_t ids[N_PROMPT];
};

static void open_model(struct model *model, enum lk_dtype dtype) {
    struct lk_config *json;
    struct lk_qwen25_vl_config config;
    uint64_t random = 1;
    assert_ok(lk_config_open(&json, CHECKPOINT "/config.json"));
    assert_ok(lk_qwen25_vl_config_read(&config, json));
    assert_ok(lk_checkpoint_open(&model->checkpoint, CHECKPOINT, "model"));
    assert_ok(lk_qwen25_vl_bind(&model->m, &config, true, &model->checkpoint, dtype));
    assert_true(config.num_hidden_layers <= MAX_LAYERS);
    model->dtype = dtype;
    for (int i = 0; i < N_PROMPT; i++) model->ids[i] = (int32_t)(test_random(&random) % 200);
}

static void close_model(struct model *model) {
    lk_qwen25_vl_free(&model->m);
    lk_checkpoint_close(&model->checkpoint);
}

static void new_cache(struct lk_device *dev, const struct model *model, struct lk_tensor tensors[2 * MAX_LAYERS],
                      struct lk_qwen25_vl_cache *cache) {
    const struct lk_qwen25_vl_config *c = &model->m.config;
    *cache = (struct lk_qwen25_vl_cache){.k = tensors, .v = tensors + MAX_LAYERS};
    for (int64_t i = 0; i < c->num_hidden_layers; i++) {
        assert_ok(LK_NEW(&dev->arena, &cache->k[i], model->dtype, N_PROMPT, c->num_key_value_heads, c->head_dim));
        assert_ok(LK_NEW(&dev->arena, &cache->v[i], model->dtype, N_PROMPT, c->num_key_value_heads, c->head_dim));
    }
}

static void compare(const struct model *model, int threads) {
    struct lk_device *dev;
    struct lk_tensor tensors[2 * MAX_LAYERS], whole, part, row, logits, again;
    struct lk_qwen25_vl_cache cache;
    const struct lk_qwen25_vl *m = &model->m;
    int64_t d = m->config.hidden_size, vocab = m->config.vocab_size;
    size_t bytes = (size_t)d * lk_dtype_size(model->dtype);
    struct lk_qwen25_vl_prompt prompt = {.ids = model->ids, .n = N_PROMPT, .uncounted_id = -1};
    assert_ok(lk_device_cpu_create(threads, &dev));
    assert_ok(lk_device_prepare(dev, 16 << 20));
    assert_ok(LK_NEW(&dev->arena, &whole, model->dtype, N_PROMPT, d));
    assert_ok(LK_NEW(&dev->arena, &part, model->dtype, N_AT_ONCE, d));
    assert_ok(LK_NEW(&dev->arena, &row, model->dtype, 1, d));
    assert_ok(LK_NEW(&dev->arena, &logits, model->dtype, 1, vocab));
    assert_ok(LK_NEW(&dev->arena, &again, model->dtype, 1, vocab));
    new_cache(dev, model, tensors, &cache);
    assert_ok(lk_qwen25_vl_prefill(dev, m, &prompt, &cache, &whole));
    prompt.n = N_AT_ONCE;
    assert_ok(lk_qwen25_vl_prefill(dev, m, &prompt, &cache, &part));
    assert_memory_equal(part.data, whole.data, N_AT_ONCE * bytes);
    for (int i = N_AT_ONCE; i < N_PROMPT; i++) {
        struct lk_tensor same = lk_tensor_rows(&whole, i, 1);
        assert_int_equal(cache.n, i);
        assert_ok(lk_qwen25_vl_decode(dev, m, model->ids[i], i, &cache, &row));
        assert_memory_equal(row.data, same.data, bytes);
    }
    struct lk_tensor last = lk_tensor_rows(&whole, N_PROMPT - 1, 1);
    assert_ok(lk_qwen25_vl_logits(dev, m, &row, &logits));
    assert_ok(lk_qwen25_vl_logits(dev, m, &last, &again));
    assert_memory_equal(logits.data, again.data, (size_t)vocab * lk_dtype_size(model->dtype));
    assert_fails(lk_qwen25_vl_decode(dev, m, 0, 0, &cache, &row), LK_E_INTERNAL, "do not fit a cache");
    lk_device_free(dev);
}

static void one_token_after_cached_ones_is_as_in_one_pass(void **state) {
    (void)state;
    enum lk_isa most = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= most; isa++) {
        lk_cpu_isa_set(isa);
        for (enum lk_dtype dtype = LK_F32; dtype <= LK_BF16; dtype++) {
            struct model model;
            open_model(&model, dtype);
            compare(&model, 1 + (int)isa % 2);
            close_model(&model);
        }
    }
    lk_cpu_isa_set(most);
}

static void same_ids_for_any_number_of_threads(void **state) {
    (void)state;
    struct model model;
    open_model(&model, LK_BF16);
    struct lk_generate_request request = {.ids = model.ids, .n_ids = 30, .compute = LK_BF16, .n_valid_ids = 200};
    lk_generation_config_init(&request.config);
    request.config.do_sample = true;
    request.config.max_new_tokens = 40;
    struct lk_generation first, again;
    for (int threads = 1; threads <= 3; threads++) {
        struct lk_device *dev;
        assert_ok(lk_device_cpu_create(threads, &dev));
        assert_ok(lk_generate(dev, &model.m, &request, threads == 1 ? &first : &again));
        lk_device_free(dev);
        if (threads == 1) continue;
        assert_int_equal(again.n, 40);
        assert_memory_equal(first.ids, again.ids, 40 * sizeof *again.ids);
        lk_generation_free(&again);
    }
    lk_generation_free(&first);
    close_model(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_token_after_cached_ones_is_as_in_one_pass),
        cmocka_unit_test(same_ids_for_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
