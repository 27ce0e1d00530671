#include "tests/common/oracle.h"

static void pack_latents_case(struct oracle *o) {
    int64_t h = oracle_int(o, 1, 12), w = oracle_int(o, 1, 12), c = oracle_int(o, 1, 20);
    struct lk_tensor *latents = TENSOR(o, o->dtype, false, FILL_NORMAL, 2 * h, 2 * w, c);
    struct lk_tensor *tokens = TENSOR(o, o->dtype, false, FILL_NORMAL, h * w, 4 * c);
    struct lk_tensor *back = TENSOR(o, o->dtype, false, FILL_NONE, 2 * h, 2 * w, c);
    assert_ok(lk_pack_latents(o->dev, &(struct lk_pack_latents){tokens, latents, false}));
    for (int64_t y = 0; y < 2 * h; y++)
        for (int64_t x = 0; x < 2 * w; x++)
            for (int64_t k = 0; k < c; k++) {
                int64_t token = y / 2 * w + x / 2, channel = 4 * k + 2 * (y % 2) + x % 2;
                oracle_exact(oracle_get(tokens, token * 4 * c + channel), oracle_get(latents, (y * 2 * w + x) * c + k));
            }
    assert_ok(lk_pack_latents(o->dev, &(struct lk_pack_latents){tokens, back, true}));
    oracle_same(back, latents);
    oracle_record(o, tokens);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(pack_latents_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
