/* nvcuda::wmma products of small integers, whose sums are exact in every type, against sums on the host. */
#include "tests/gpusim/common/device.h"

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

static void test_wmma(void **state) {
    (void)state;
    device_open();
    CUmodule module = device_fatbin("wmma");
    if (!module) {
        device_close();
        skip();
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check(module, &shapes[i]);
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wmma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
