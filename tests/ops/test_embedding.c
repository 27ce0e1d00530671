#include "tests/common/oracle.h"

static void embedding_case(struct oracle *o) {
    int64_t n = oracle_int(o, 1, 40), width = oracle_int(o, 1, 300), vocabulary = oracle_int(o, 1, 50);
    if (!oracle_int(o, 0, 20)) width = 2300;
    struct lk_tensor *table = TENSOR(o, oracle_int(o, 0, 1) ? LK_BF16 : o->dtype, true, FILL_NORMAL, vocabulary, width);
    struct lk_tensor *y = TENSOR(o, o->dtype, true, FILL_NONE, n, width), *ids = TENSOR(o, LK_I32, false, 0, n);
    for (int64_t i = 0; i < n; i++) oracle_set(ids, i, (double)oracle_int(o, 0, vocabulary - 1));
    struct lk_embedding op = {y, table, ids};
    assert_ok(lk_embedding(o->dev, &op));
    for (int64_t i = 0; i < n * width; i++)
        oracle_exact(oracle_get(y, i), oracle_get(table, (int64_t)oracle_get(ids, i / width) * width + i % width));
    oracle_record(o, y);
    oracle_set(ids, n - 1, oracle_int(o, 0, 1) ? -1.0 : (double)vocabulary);
    assert_fails(lk_embedding(o->dev, &op), LK_E_INTERNAL, "ids[");
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(embedding_case, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
