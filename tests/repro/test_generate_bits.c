/* A token's state has the same bits whether it came alone after cached keys, with all others in one pass or beside
 * other sequences, at every instruction level, in both dtypes, and beyond the chunks in which attention goes through
 * the keys. So has a reply, whatever others are written with it. */
#include "tests/common/test.h"

#include "engine/base/isa.h"
#include "models/text/generate.h"
#include "models/text/qwen25_vl.h"

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

/* Keys and values of n sequences of N_PROMPT rows. */
static void new_cache(struct lk_device *dev, const struct model *model, int64_t n,
                      struct lk_tensor tensors[2 * MAX_LAYERS], struct lk_vlm_cache *cache) {
    const struct lk_qwen25_vl_config *c = &model->m.config;
    *cache = (struct lk_vlm_cache){.k = tensors, .v = tensors + MAX_LAYERS};
    for (int64_t i = 0; i < c->num_hidden_layers; i++) {
        assert_ok(LK_NEW(&dev->arena, &cache->k[i], model->dtype, n * N_PROMPT, c->num_key_value_heads, c->head_dim));
        assert_ok(LK_NEW(&dev->arena, &cache->v[i], model->dtype, n * N_PROMPT, c->num_key_value_heads, c->head_dim));
    }
}

/* h: states of the new rows of some sequences, each of which reads the model's ids from where it stands. */
static enum lk_code pass(struct lk_device *dev, const struct lk_vlm *view, const struct model *model,
                         const struct lk_vlm_cache *cache, const struct lk_decoder_rows *sequences, int n,
                         const struct lk_tensor *h) {
    int32_t ids[4 * N_PROMPT], positions[4 * N_PROMPT][3];
    int64_t at = 0;
    for (int s = 0; s < n; s++)
        for (int64_t i = 0; i < sequences[s].n; i++, at++) {
            int32_t place = (int32_t)(sequences[s].n_past + i);
            ids[at] = model->ids[place % N_PROMPT];
            for (int axis = 0; axis < 3; axis++) positions[at][axis] = place;
        }
    assert_int_equal(at, h->shape[0]);
    struct lk_vlm_prompt prompt = {.ids = ids, .n = at};
    assert_ok(lk_vlm_embed(dev, view, &prompt, 0, h));
    return lk_vlm_layers(dev, view, h, (const int32_t(*)[3])positions, cache, sequences, n, NULL);
}

static void same_rows(const struct lk_tensor *a, int64_t from, const struct lk_tensor *b, int64_t at, int64_t n) {
    struct lk_tensor x = lk_tensor_rows(a, from, n), y = lk_tensor_rows(b, at, n);
    assert_memory_equal(x.data, y.data, lk_tensor_bytes(&x));
}

/* Whole; in two parts and a row at a time; beside two others that stand elsewhere. */
static void compare(const struct model *model, int threads) {
    struct lk_device *dev;
    struct lk_tensor tensors[2 * MAX_LAYERS], whole, part, row, three, logits, again;
    struct lk_vlm_cache cache;
    struct lk_vlm view = lk_qwen25_vl_view(&model->m);
    int64_t d = view.hidden_size, vocab = view.vocab_size;
    const int64_t room = N_PROMPT;
    assert_ok(lk_device_cpu_create(threads, &dev));
    assert_ok(lk_device_prepare(dev, 32 << 20));
    assert_ok(LK_NEW(&dev->arena, &whole, model->dtype, N_PROMPT, d));
    assert_ok(LK_NEW(&dev->arena, &part, model->dtype, N_AT_ONCE, d));
    assert_ok(LK_NEW(&dev->arena, &row, model->dtype, 1, d));
    assert_ok(LK_NEW(&dev->arena, &three, model->dtype, 22, d));
    assert_ok(LK_NEW(&dev->arena, &logits, model->dtype, 3, vocab));
    assert_ok(LK_NEW(&dev->arena, &again, model->dtype, 1, vocab));
    new_cache(dev, model, 3, tensors, &cache);
    struct lk_decoder_rows s = {N_PROMPT, room, 0, room};
    assert_ok(pass(dev, &view, model, &cache, &s, 1, &whole));
    assert_ok(pass(dev, &view, model, NULL, &s, 1, &whole));
    s.n = 100;
    struct lk_tensor head = lk_tensor_rows(&part, 0, 100), tail = lk_tensor_rows(&part, 100, N_AT_ONCE - 100);
    assert_ok(pass(dev, &view, model, &cache, &s, 1, &head));
    s = (struct lk_decoder_rows){N_AT_ONCE - 100, room, 100, room};
    assert_ok(pass(dev, &view, model, &cache, &s, 1, &tail));
    same_rows(&part, 0, &whole, 0, N_AT_ONCE);
    for (int i = N_AT_ONCE; i < N_PROMPT; i++) {
        s = (struct lk_decoder_rows){1, room, i, room};
        assert_ok(pass(dev, &view, model, &cache, &s, 1, &row));
        same_rows(&row, 0, &whole, i, 1);
    }
    struct lk_decoder_rows all[] = {{3, 0, 0, room}, {1, room, N_PROMPT - 1, room}, {18, 2 * room, 0, room}};
    assert_ok(pass(dev, &view, model, &cache, all, 3, &three));
    same_rows(&three, 0, &whole, 0, 3);
    same_rows(&three, 3, &whole, N_PROMPT - 1, 1);
    same_rows(&three, 4, &whole, 0, 18);
    struct lk_tensor last = lk_tensor_rows(&whole, N_PROMPT - 1, 1), few = lk_tensor_rows(&three, 2, 3);
    assert_ok(lk_vlm_logits(dev, &view, &few, &logits));
    assert_ok(lk_vlm_logits(dev, &view, &last, &again));
    same_rows(&again, 0, &logits, 1, 1);
    s = (struct lk_decoder_rows){1, room, N_PROMPT, room};
    assert_fails(pass(dev, &view, model, &cache, &s, 1, &row), LK_E_INTERNAL, "do not fit a cache");
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
    struct lk_vlm view = lk_qwen25_vl_view(&model.m);
    struct lk_generate_request request = {.ids = model.ids, .n_ids = 30, .n_valid_ids = 200};
    lk_generation_config_init(&request.config);
    request.config.do_sample = true;
    request.config.max_new_tokens = 40;
    struct lk_generation first, again;
    for (int threads = 1; threads <= 3; threads++) {
        struct lk_device *dev;
        assert_ok(lk_device_cpu_create(threads, &dev));
        assert_ok(lk_generate(dev, &view, LK_BF16, &request, 1, 1, threads == 1 ? &first : &again));
        lk_device_free(dev);
        if (threads == 1) continue;
        assert_int_equal(again.n, 40);
        assert_memory_equal(first.ids, again.ids, 40 * sizeof *again.ids);
        lk_generation_free(&again);
    }
    lk_generation_free(&first);
    close_model(&model);
}

#define N_REPLIES 16

/* Replies of different lengths to prompts that share a beginning or not: the same alone, together, in another order,
 * with and without the beginning computed once. */
static void same_ids_in_any_company(void **state) {
    (void)state;
    for (enum lk_dtype dtype = LK_F32; dtype <= LK_BF16; dtype++) {
        struct model model;
        struct lk_device *dev;
        struct lk_generation alone[N_REPLIES], together[N_REPLIES];
        struct lk_generate_request requests[N_REPLIES] = {0}, turned[N_REPLIES];
        open_model(&model, dtype);
        struct lk_vlm view = lk_qwen25_vl_view(&model.m);
        assert_ok(lk_device_cpu_create(2, &dev));
        for (int i = 0; i < N_REPLIES; i++) {
            struct lk_generate_request *q = &requests[i];
            *q = (struct lk_generate_request){.ids = model.ids + i / 3, .n_ids = 20 + 5 * (i % 4), .n_valid_ids = 200};
            lk_generation_config_init(&q->config);
            q->config.do_sample = true;
            q->config.max_new_tokens = 1 + 7 * (i % 5);
            q->seed = (uint64_t)i % 2;
            assert_ok(lk_generate(dev, &view, dtype, q, 1, 1, &alone[i]));
        }
        for (int slots = 1; slots <= 16; slots *= 4)
            for (int shared = 0; shared < 2; shared++)
                for (int turn = 0; turn < 1 + (slots == 4); turn++) {
                    for (int i = 0; i < N_REPLIES; i++) {
                        turned[i] = requests[turn ? N_REPLIES - 1 - i : i];
                        turned[i].shared_key = shared ? (uint64_t)(turned[i].ids - model.ids) + 1 : 0;
                        turned[i].n_shared = 16;
                    }
                    assert_ok(lk_generate(dev, &view, dtype, turned, N_REPLIES, slots, together));
                    for (int i = 0; i < N_REPLIES; i++) {
                        const struct lk_generation *a = &alone[turn ? N_REPLIES - 1 - i : i], *b = &together[i];
                        assert_int_equal(a->n, b->n);
                        assert_memory_equal(a->ids, b->ids, (size_t)a->n * sizeof *a->ids);
                        lk_generation_free(&together[i]);
                    }
                }
        for (int i = 0; i < N_REPLIES; i++) lk_generation_free(&alone[i]);
        lk_device_free(dev);
        close_model(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_token_after_cached_ones_is_as_in_one_pass),
        cmocka_unit_test(same_ids_for_any_number_of_threads),
        cmocka_unit_test(same_ids_in_any_company),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
