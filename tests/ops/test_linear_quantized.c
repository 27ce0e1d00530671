/* linear with a quantised weight has the bits of linear with the bf16 weight that the quantised one stands for: all
 * formats, instruction levels, threads and epilogues, adapters, row windows, M from 1 to 300. */
#include "engine/quantized.h"
#include "tests/common/oracle.h"

static const enum lk_dtype dtypes[] = {LK_F8_E4M3, LK_F8_E5M2, LK_NF4,  LK_Q8,  LK_Q8_0,
                                       LK_Q4_0,    LK_Q4_K,    LK_Q5_K, LK_Q6_K};

/* Where f16 fields lie in a block. */
static void tame_halves(enum lk_dtype dtype, unsigned char *block) {
    const int first = dtype == LK_Q6_K ? 208 : 0, n = dtype == LK_Q4_K || dtype == LK_Q5_K ? 2 : 1;
    for (int i = 0; i < n; i++) {
        unsigned char *high = block + first + 2 * i + 1;
        *high = (unsigned char)((*high & 0x83) | 0x2c);
    }
}

/* A quantised matrix of random codes. */
static struct lk_tensor packed_matrix(struct oracle *o, enum lk_dtype dtype, int64_t rows, int64_t cols, void **data,
                                      void **scales) {
    struct lk_tensor t = LK_TENSOR(NULL, dtype, rows, cols);
    const int64_t n = rows * cols, size = (int64_t)lk_dtype_size(dtype);
    const int64_t bytes = (int64_t)lk_tensor_bytes(&t), n_scales = (n + 31) / 32;
    unsigned char *codes = *data = lk_malloc((size_t)bytes);
    uint16_t *s = *scales = lk_malloc((size_t)n_scales * sizeof *s);
    assert_true(codes && s);
    for (int64_t i = 0; i < bytes; i++) {
        codes[i] = (unsigned char)oracle_int(o, 0, 255);
        if (dtype == LK_F8_E4M3 && (codes[i] & 127) == 127) codes[i] = 0; /* not a number */
        if (dtype == LK_F8_E5M2 && (codes[i] & 127) >= 124) codes[i] = 0;
    }
    for (int64_t i = 0; dtype >= LK_Q8_0 && i < bytes; i += size) tame_halves(dtype, codes + i);
    for (int64_t i = 0; i < n_scales; i++) s[i] = (uint16_t)oracle_int(o, 0x3c00, 0x3d80);
    t.data = codes;
    if (dtype == LK_NF4 || dtype == LK_Q8) t.scales = (struct lk_scales){s, LK_BF16, oracle_int(o, 0, 1) ? 64 : 32};
    if (dtype < LK_NF4 && oracle_int(o, 0, 1)) t.scales = (struct lk_scales){s, LK_BF16, 0};
    return t;
}

static void one_case(struct oracle *o) {
    const enum lk_dtype dtype = dtypes[oracle_int(o, 0, 8)];
    const int64_t m = oracle_int(o, 1, oracle_int(o, 0, 3) ? 24 : 300), first = 64 * oracle_int(o, 0, 2);
    const int64_t n = oracle_int(o, 1, 90), k = oracle_int(o, 0, 2) ? oracle_int(o, 1, 500) : 256 * oracle_int(o, 1, 3);
    const int64_t granted = dtype >= LK_Q8_0 ? lk_dtype_block(dtype) : 1; /* rows of GGUF are whole blocks */
    const int64_t width = (k + granted - 1) / granted * granted;
    void *data, *scales;
    struct lk_tensor fused = packed_matrix(o, dtype, first + n, width, &data, &scales);
    struct lk_tensor w = lk_tensor_rows(&fused, first, n);
    struct lk_tensor *plain = TENSOR(o, LK_BF16, false, FILL_NONE, n, width);
    lk_dequantize(&fused, first * width, n * width, plain->data);
    const struct lk_tensor *x = TENSOR(o, o->dtype, true, FILL_NORMAL, m, width);
    const struct lk_tensor *residual = TENSOR(o, o->dtype, true, FILL_NORMAL, m, n);
    struct lk_tensor *y = TENSOR(o, o->dtype, true, FILL_NONE, m, n), *want = oracle_clone(o, y);
    const int64_t rank = oracle_int(o, 0, 1) ? oracle_int(o, 1, oracle_int(o, 0, 1) ? 40 : 200) : 0; /* 0: no adapter */
    struct lk_linear op = {.y = y,
                           .x = x,
                           .w = &w,
                           .bias = oracle_int(o, 0, 1) ? TENSOR(o, LK_BF16, false, FILL_NORMAL, n) : NULL,
                           .gate = oracle_int(o, 0, 1) ? TENSOR(o, o->dtype, false, FILL_NORMAL, n) : NULL,
                           .residual = oracle_int(o, 0, 1) ? residual : NULL,
                           .low = rank ? TENSOR(o, o->dtype, true, FILL_NORMAL, m, rank) : NULL,
                           .up = rank ? TENSOR(o, o->dtype, true, FILL_NORMAL, n, rank) : NULL,
                           .act = (enum lk_act)oracle_int(o, LK_ACT_NONE, LK_ACT_QUICK_GELU)};
    assert_ok(lk_linear(o->dev, &op));
    op.y = want;
    op.w = plain;
    assert_ok(lk_linear(o->dev, &op));
    oracle_same(y, want);
    oracle_record(o, y);
    lk_free(data);
    lk_free(scales);
}

static void same_bits(void **state) {
    (void)state;
    oracle_run(one_case, 200);
}

/* A window that begins inside a block is refused, not misread. */
static void windows_inside_blocks(void **state) {
    (void)state;
    unsigned char codes[64 * 48 / 2] = {0};
    uint16_t scales[48] = {0}, values[64 * 2];
    struct lk_tensor w = LK_TENSOR(codes, LK_NF4, 64, 48), y = LK_TENSOR(values, LK_BF16, 1, 2);
    struct lk_tensor x = LK_TENSOR(values, LK_BF16, 1, 48);
    w.scales = (struct lk_scales){scales, LK_BF16, 64};
    struct lk_tensor whole = lk_tensor_rows(&w, 4, 2), inside = lk_tensor_rows(&w, 3, 2);
    assert_ptr_equal(whole.data, codes + 4 * 24);
    assert_ptr_equal(whole.scales.data, scales + 3);
    assert_int_equal(inside.n_dims, 0);
    struct lk_cost cost;
    assert_fails(lk_check_linear(&(struct lk_linear){.y = &y, .x = &x, .w = &inside}, &cost), LK_E_INTERNAL,
                 "has_dims(w, 2)");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(windows_inside_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
