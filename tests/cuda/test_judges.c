/* Mistral-Small-3 with pictures on the cuda device: transformers' greedy ids, several replies together and with a
 * shared beginning as one alone. */
#include "tests/common/cuda.h"
#include "tests/common/golden.h"

#include "models/text/generate.h"
#include "models/text/mistral3.h"

#define FOLDER "golden/data/mistral3/silu/"
#define N_NEW  5

static struct lk_device *device;

static void replies_are_those_of_the_reference(void **state) {
    (void)state;
    struct lk_config *json;
    struct lk_mistral3_config config;
    struct lk_checkpoint checkpoint;
    struct lk_mistral3 m;
    struct golden golden;
    size_t n, n_expected;
    assert_ok(lk_config_open(&json, FOLDER "checkpoint/config.json"));
    assert_ok(lk_mistral3_config_read(&config, json));
    assert_ok(lk_checkpoint_open(&checkpoint, FOLDER "checkpoint", "model"));
    assert_ok(lk_mistral3_bind(&m, &config, &checkpoint, LK_F32));
    struct lk_vlm view = lk_mistral3_view(&m);
    golden_open(&golden, FOLDER "cases/one.safetensors", "one");
    float *values = golden_values(&golden, "input.ids", &n), *expected;
    int32_t *ids = calloc(n, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)values[i];
    free(values);
    size_t n_values;
    float *rows = golden_values(&golden, "input.image.0", &n_values);
    for (size_t i = 0; i < n_values; i++) rows[i] = (rows[i] - 117.25f) / 53;
    expected = golden_values(&golden, "input.reply.greedy", &n_expected);
    const struct lk_vlm_image image = {.grid_h = 6, .grid_w = 4, .rows = rows};
    struct lk_generate_request requests[2];
    struct lk_generation out[2];
    for (int i = 0; i < 2; i++) {
        requests[i] = (struct lk_generate_request){.ids = ids, .n_ids = (int64_t)n, .images = &image, .n_images = 1};
        lk_generation_config_init(&requests[i].config);
        requests[i].config.max_new_tokens = N_NEW;
        requests[i].n_valid_ids = config.text.vocab_size;
        requests[i].shared_key = 1;
        requests[i].n_shared = (int64_t)n - 2;
        requests[i].n_shared_images = 1;
    }
    for (int slots = 1; slots <= 2; slots++) {
        assert_ok(lk_generate(device, &view, LK_F32, requests, slots, slots, out));
        for (int i = 0; i < slots; i++) {
            assert_int_equal(out[i].n, N_NEW);
            for (int k = 0; k < N_NEW; k++) assert_int_equal(out[i].ids[k], (int32_t)expected[k]);
            lk_generation_free(&out[i]);
        }
    }
    free(rows);
    free(expected);
    free(ids);
    golden_close(&golden);
    lk_mistral3_free(&m);
    lk_checkpoint_close(&checkpoint);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(replies_are_those_of_the_reference)};
    device = test_cuda_open();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(device);
    return failed;
}
