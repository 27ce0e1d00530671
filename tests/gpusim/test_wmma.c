/* nvcuda::wmma products of small integers, whose sums are exact in every type, against sums on the host. */
#include "tests/gpusim/common/device.h"

#include <math.h>

enum { GRID_M = 2, GRID_N = 3, STEPS = 2, MOST = 32 * 3 * 32 * 2 };

static const struct shape {
    const char *name;
    int m, n, k, kind, half_sum; /* kind: 0 f16, 1 bf16, 2 tf32, 3 s8 */
} shapes[] = {
    {"f16_square", 16, 16, 16, 0, 0},  {"f16_tall", 32, 8, 16, 0, 0},  {"f16_wide", 8, 32, 16, 0, 0},
    {"half_square", 16, 16, 16, 0, 1}, {"half_wide", 8, 32, 16, 0, 1}, {"bf16_square", 16, 16, 16, 1, 0},
    {"bf16_tall", 32, 8, 16, 1, 0},    {"bf16_wide", 8, 32, 16, 1, 0}, {"tf32_square", 16, 16, 8, 2, 0},
    {"s8_square", 16, 16, 16, 3, 0},   {"s8_tall", 32, 8, 16, 3, 0},   {"s8_wide", 8, 32, 16, 3, 0},
};

/* |value| < 2048 as the 16 bits of f16. */
static uint16_t f16(int value) {
    int size = value < 0 ? -value : value, e = 0;
    if (!size) return 0;
    while (size >> (e + 1)) e++;
    return (uint16_t)((value < 0) << 15 | (e + 15) << 10 | ((size << (10 - e)) & 1023));
}
static size_t put(uint8_t *out, int i, int value, int kind) {
    float real = (float)value;
    uint32_t bits;
    uint16_t half = f16(value);
    memcpy(&bits, &real, 4);
    if (kind == 1) half = (uint16_t)(bits >> 16);
    if (kind == 3) out[i] = (uint8_t)value;
    if (kind < 2) memcpy(out + 2 * i, &half, 2);
    if (kind == 2) memcpy(out + 4 * i, &bits, 4);
    return kind == 3 ? 1 : kind == 2 ? 4 : 2;
}

static void check(CUmodule module, const struct shape *s) {
    static int a[MOST], b[MOST], c[MOST];
    static uint8_t bytes[4 * MOST], sums[4 * MOST], got[4 * MOST];
    int m = s->m * GRID_M, n = s->n * GRID_N, k = s->k * STEPS, steps = STEPS, sum_kind = s->half_sum ? 0 : 2;
    uint64_t seed = 3;
    size_t size = 1, sum_size = 4;
    for (int i = 0; i < m * k; i++) size = put(bytes, i, a[i] = (int)(test_random(&seed) % 7) - 3, s->kind);
    CUdeviceptr da = device_put(bytes, size * (size_t)(m * k));
    for (int i = 0; i < n * k; i++) put(bytes, i, b[i] = (int)(test_random(&seed) % 7) - 3, s->kind);
    CUdeviceptr db = device_put(bytes, size * (size_t)(n * k));
    for (int i = 0; i < m * n; i++) {
        c[i] = i % 11;
        sum_size = put(sums, i, c[i], sum_kind);
        if (s->kind == 3) memcpy(sums + 4 * i, &c[i], 4);
    }
    CUdeviceptr dc = device_put(sums, sum_size * (size_t)(m * n));
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int h = 0; h < k; h++) c[i * n + j] += a[i * k + h] * b[j * k + h];
    for (int i = 0; i < m * n; i++) {
        put(sums, i, c[i], sum_kind);
        if (s->kind == 3) memcpy(sums + 4 * i, &c[i], 4);
    }
    void *params[] = {&da, &db, &dc, &steps};
    cu_ok(cuLaunchKernel(device_function(module, s->name), GRID_N, GRID_M, 1, 32, 1, 1, 0, NULL, params, NULL));
    cu_ok(cuCtxSynchronize());
    device_get(got, dc, sum_size * (size_t)(m * n));
    if (memcmp(got, sums, sum_size * (size_t)(m * n))) fail_msg("%s: sums differ", s->name);
    cu_ok(cuMemFree_v2(da));
    cu_ok(cuMemFree_v2(db));
    cu_ok(cuMemFree_v2(dc));
}

/* Sums that f16 must round: -2048 + 3 x, to nearest even. */
static void check_mixed(CUmodule module, const char *name, bool half_c) {
    uint16_t a[256], b[256], halves[256], half_out[256];
    float floats[256], float_out[256];
    for (int i = 0; i < 256; i++) {
        int row = i / 16, column = i % 16;
        a[i] = f16(column == 0 ? row - 8 : 0), b[i] = f16(column == 0 ? row : 1);
        halves[i] = f16(i % 5), floats[i] = 2048.0f + (float)(i % 5);
    }
    CUdeviceptr da = device_put(a, sizeof a), db = device_put(b, sizeof b), dd = device_zeros(sizeof floats);
    CUdeviceptr dc = half_c ? device_put(halves, sizeof halves) : device_put(floats, sizeof floats);
    cu_ok(
        device_run(device_function(module, name), 1, 32, 0, (void *)&da, (void *)&db, (void *)&dc, (void *)&dd, NULL));
    device_get(float_out, dd, sizeof float_out);
    memcpy(half_out, float_out, sizeof half_out);
    for (int i = 0; i < 256; i++) {
        int sum = (half_c ? 0 : 2048) + i % 5 + (i / 16 - 8) * (i % 16);
        /* above 2048 f16 has even numbers only: half of the sum, ties to even */
        int nearest = sum <= 2048 ? sum : (sum / 2 + (sum % 2 && sum / 2 % 2)) * 2;
        uint16_t expected = nearest < 2048 ? f16(nearest) : (uint16_t)(26 << 10 | (nearest - 2048) / 2);
        if (half_c ? float_out[i] != (float)sum : half_out[i] != expected) fail_msg("%s: element %d", name, i);
    }
    const CUdeviceptr all[] = {da, db, dc, dd};
    for (int i = 0; i < 4; i++) cu_ok(cuMemFree_v2(all[i]));
}

static void check_f64(CUmodule module) {
    enum { M = 16, N = 16, K = 12 };
    double a[M * K], b[N * K], c[M * N], got[M * N];
    uint64_t seed = 5;
    int steps = K / 4;
    for (int i = 0; i < M * K; i++) a[i] = (double)(int64_t)test_random(&seed) * 0x1p-63;
    for (int i = 0; i < N * K; i++) b[i] = (double)(int64_t)test_random(&seed) * 0x1p-63;
    for (int i = 0; i < M * N; i++) c[i] = (double)(int64_t)test_random(&seed) * 0x1p-60;
    CUdeviceptr da = device_put(a, sizeof a), db = device_put(b, sizeof b), dc = device_put(c, sizeof c);
    void *params[] = {&da, &db, &dc, &steps};
    cu_ok(cuLaunchKernel(device_function(module, "f64_square"), N / 8, M / 8, 1, 32, 1, 1, 0, NULL, params, NULL));
    cu_ok(cuCtxSynchronize());
    device_get(got, dc, sizeof got);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = c[i * N + j];
            for (int h = 0; h < K; h++) sum = fma(a[i * K + h], b[j * K + h], sum);
            if (got[i * N + j] != sum) fail_msg("f64_square: row %d, column %d", i, j);
        }
    cu_ok(cuMemFree_v2(da));
    cu_ok(cuMemFree_v2(db));
    cu_ok(cuMemFree_v2(dc));
}

static void check_small(CUmodule module, const char *name, int bits, bool is_signed) {
    enum { STEPS = 3 };
    uint32_t a[8][4 * STEPS], b[8][4 * STEPS];
    int c[8][8], got[8][8], steps = STEPS, per = 32 / bits;
    uint64_t seed = 9;
    for (int i = 0; i < 8; i++)
        for (int w = 0; w < 4 * STEPS; w++)
            a[i][w] = (uint32_t)test_random(&seed), b[i][w] = (uint32_t)test_random(&seed);
    for (int i = 0; i < 64; i++) c[i / 8][i % 8] = i * 1000;
    CUdeviceptr da = device_put(a, sizeof a), db = device_put(b, sizeof b), dc = device_put(c, sizeof c);
    cu_ok(device_run(device_function(module, name), 1, 32, 0, (void *)&da, (void *)&db, (void *)&dc, (void *)&steps,
                     NULL));
    device_get(got, dc, sizeof got);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            for (int h = 0; h < 4 * STEPS * per; h++) {
                int x = (int)(a[i][h / per] >> h % per * bits & ((1u << bits) - 1));
                int y = (int)(b[j][h / per] >> h % per * bits & ((1u << bits) - 1));
                if (is_signed) x = (x ^ 8) - 8, y = (y ^ 8) - 8;
                c[i][j] += strstr(name, "xor") ? x ^ y : x * y;
            }
            if (got[i][j] != c[i][j]) fail_msg("%s: row %d, column %d: %d, not %d", name, i, j, got[i][j], c[i][j]);
        }
    cu_ok(cuMemFree_v2(da));
    cu_ok(cuMemFree_v2(db));
    cu_ok(cuMemFree_v2(dc));
}

static void test_wmma(void **state) {
    (void)state;
    device_open();
    CUmodule module = device_fatbin("wmma");
    if (!module) {
        device_close();
        skip();
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check(module, &shapes[i]);
    check_mixed(module, "mixed_to_f32", true);
    check_mixed(module, "mixed_to_f16", false);
    check_f64(module);
    check_small(module, "s4_square", 4, true);
    check_small(module, "u4_square", 4, false);
    check_small(module, "b1_xor", 1, false);
    check_small(module, "b1_and", 1, false);
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wmma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
