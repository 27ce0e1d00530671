/* Fewer rows never need more scratch: plans count the longest of several prompts only. */
#include "engine/base/isa.h"
#include "tests/common/oracle.h"

static size_t scratch_of_linear(const struct oracle *o, int64_t m, int64_t n, int64_t k, enum lk_dtype w_dtype) {
    struct lk_tensor x = LK_TENSOR(NULL, o->dtype, m, k), w = LK_TENSOR(NULL, w_dtype, n, k);
    struct lk_tensor y = LK_TENSOR(NULL, o->dtype, m, n);
    return o->dev->table->linear.scratch(o->dev, &(struct lk_linear){.y = &y, .x = &x, .w = &w});
}

static size_t scratch_of_attention(const struct oracle *o, int64_t n, int64_t n_kv_heads, int64_t group, int64_t hd) {
    struct lk_tensor q = LK_TENSOR(NULL, o->dtype, n, n_kv_heads * group, hd);
    struct lk_tensor k = LK_TENSOR(NULL, o->dtype, n, n_kv_heads, hd);
    return o->dev->table->attention.scratch(o->dev, &(struct lk_attention){&q, &q, &k, &k, 0.1f, true});
}

static void scratch_case(struct oracle *o) {
    const int64_t n = oracle_int(o, 1, 1500), k = oracle_int(o, 1, 2000), step = oracle_int(o, 1, 40);
    const int64_t n_kv_heads = oracle_int(o, 1, 30), group = oracle_int(o, 1, 8), hd = oracle_int(o, 1, 512);
    const int threads = o->dev->n_threads;
    enum lk_dtype w_dtype = oracle_int(o, 0, 1) ? LK_BF16 : o->dtype;
    size_t linear = 0, attention = 0;
    o->dev->n_threads = (int)(int64_t[]){1, 2, 7, 64}[oracle_int(o, 0, 3)];
    for (int64_t m = 1; m < 3000; m += step) {
        size_t now = scratch_of_linear(o, m, n, k, w_dtype);
        if (now < linear) fail_msg("linear [%d, %d, %d]: %zu bytes, %zu before", (int)m, (int)n, (int)k, now, linear);
        linear = now;
        now = scratch_of_attention(o, m, n_kv_heads, group, hd);
        if (now < attention)
            fail_msg("attention of %d, %d heads of %d: %zu bytes, %zu before", (int)m, (int)n_kv_heads, (int)hd, now,
                     attention);
        attention = now;
    }
    o->dev->n_threads = threads;
}

static void test_grows_with_rows(void **state) {
    (void)state;
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++)
        if (lk_cpu_isa_set((enum lk_isa)isa) == (enum lk_isa)isa) oracle_run(scratch_case, 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows_with_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
