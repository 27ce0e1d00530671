/* Rows of a linear layer that would be a last wave of few tiles, by a smaller tile: which layers, how many rows, and
 * the same bits. */
#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gemm/gemm.h"
#include "tests/common/cuda.h"

#define M           582 /* four rows of 128 x 128 tiles and some */
#define N           256
#define K           2048
#define R           8
#define ARENA_BYTES ((size_t)16 << 20)

static struct lk_device *cuda;

static struct lk_tensor put(int64_t rows, int64_t columns, uint64_t seed) {
    struct lk_tensor t;
    uint16_t *host = lk_malloc((size_t)(rows * columns) * sizeof *host);
    for (int64_t i = 0; i < rows * columns; i++) host[i] = lk_f32_to_bf16((float)test_normal(&seed) / 8);
    assert_ok(LK_NEW(&cuda->arena, &t, LK_BF16, rows, columns));
    assert_ok(lk_upload(cuda, &t, host));
    lk_free(host);
    return t;
}

static void same_bits(void **state) {
    (void)state;
    struct lk_cuda_device *device = lk_cuda_device_of(cuda);
    const struct lk_tensor x = put(M, K, 1), w = put(N, K, 2), low = put(M, R, 3), up = put(N, R, 4);
    const struct lk_tensor residual = put(M, N, 5), bias = put(1, N, 6), y = put(M, N, 7);
    const struct lk_tensor vector = LK_VIEW(&bias, N);
    uint16_t *all = lk_malloc(M * N * sizeof *all), *some = lk_malloc(M * N * sizeof *some);
    for (int i = 0; i < 2; i++) {
        const struct lk_linear op = {.y = &y,
                                     .x = &x,
                                     .w = &w,
                                     .bias = &vector,
                                     .gate = i ? &vector : NULL,
                                     .residual = i ? &residual : NULL,
                                     .low = i ? &low : NULL,
                                     .up = i ? &up : NULL};
        assert_ok(lk_cuda_linear_by(cuda, &op, lk_cuda_linear_tile(N, K, device->most_shared)));
        assert_ok(lk_download(cuda, all, &y));
        const int before = device->n_multiprocessors;
        device->n_multiprocessors = 4;
        assert_ok(lk_linear(cuda, &op));
        device->n_multiprocessors = before;
        assert_string_equal(device->last_kernel, "linear_64_bf16");
        assert_ok(lk_download(cuda, some, &y));
        assert_memory_equal(all, some, M * N * sizeof *all);
    }
    lk_free(all);
    lk_free(some);
}

/* On an A100; and on a card whose SM has room for one block of the tile. */
static void which_rows(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k, whole;
    } cases[] = {
        {8704, 6144, 24576, 67 * 128}, /* 1632 tiles, 15 waves and 12 tiles */
        {8192, 6144, 6144, 63 * 128},  /* 1536, 14 waves and 24 */
        {8704, 55296, 6144, 8704},     /* 14,688: 136 waves */
        {8192, 36864, 6144, 8192},     /* 9216, 85 waves and 36: too many for the small tile */
        {8192, 3072, 3072, 63 * 128},  /* two blocks an SM: 7 waves and 24 */
        {8192, 3072, 256, 8192},       /* less than a launch takes */
        {512, 6144, 6144, 512},        /* less than a wave */
    };
    struct lk_cuda_device *card = lk_calloc(1, sizeof *card);
    card->n_multiprocessors = 108;
    card->most_shared = (size_t)163 << 10;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct lk_cuda_gemm_tile *tile = lk_cuda_linear_tile(cases[i].n, cases[i].k, card->most_shared);
        assert_int_equal(lk_cuda_linear_whole_waves(tile, cases[i].m, cases[i].n, cases[i].k, card), cases[i].whole);
    }
    card->most_shared = (size_t)99 << 10;
    card->n_multiprocessors = 170; /* an RTX 5090: 9 waves and 6 */
    const struct lk_cuda_gemm_tile *tile = lk_cuda_linear_tile(3072, 12288, card->most_shared);
    assert_int_equal(lk_cuda_linear_whole_waves(tile, 8192, 3072, 12288, card), 63 * 128);
    lk_free(card);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(which_rows)};
    cuda = test_cuda_open();
    assert_ok(lk_device_prepare(cuda, ARENA_BYTES));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    return failed;
}
