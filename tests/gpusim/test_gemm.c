/* A tiled bf16 product the way kernels for sm_80 are written: cp.async stages, swizzled shared memory, ldmatrix,
 * mma.sync. */
#include "tests/gpusim/common/device.h"

#include <math.h>

enum { M = 256, N = 128, K = 96 };

static float from_bf16(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float v;
    memcpy(&v, &bits, 4);
    return v;
}

static void test_gemm(void **state) {
    (void)state;
    static uint16_t a[M * K], b[N * K];
    static float c[M * N], got[M * N];
    uint64_t seed = 7;
    device_open();
    CUmodule module = device_fatbin("gemm_bf16");
    if (!module) {
        device_close();
        skip();
    }
    for (int i = 0; i < M * K; i++) a[i] = (uint16_t)(0x3f00 | (test_random(&seed) & 0x80ff));
    for (int i = 0; i < N * K; i++) b[i] = (uint16_t)(0x3f00 | (test_random(&seed) & 0x80ff));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)from_bf16(a[i * K + k]) * (double)from_bf16(b[j * K + k]);
            c[i * N + j] = (float)sum;
        }
    CUdeviceptr da = device_put(a, sizeof a), db = device_put(b, sizeof b), dc = device_zeros(sizeof c);
    int m = M, n = N, k = K;
    void *params[] = {&da, &db, &dc, &m, &n, &k};
    cu_ok(cuLaunchKernel(device_function(module, "gemm"), N / 128, M / 128, 1, 256, 1, 1, 0, NULL, params, NULL));
    device_get(got, dc, sizeof got);
    /* f32 sums of K terms: error at most about sqrt(K) 2^-24. */
    assert_true(test_relative_error(got, c, M * N) < 1e-6);
    device_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gemm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
