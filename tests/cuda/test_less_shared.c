/* GPUs that give a block less shared memory than an A100: linear layers with other tiles and the same bits (attention:
 * test_attention.c), and what `likeness devices` says of them. */
#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/ops.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gemm/gemm.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"

#define A100        ((size_t)163 << 10) /* bytes that a block may ask for */
#define RTX         ((size_t)99 << 10)
#define ARENA_BYTES ((size_t)48 << 20)

static struct lk_device *cuda;

static struct lk_tensor normals(uint64_t *seed, int64_t rows, int64_t columns, double scale) {
    struct lk_tensor t;
    const size_t n = (size_t)(rows * columns);
    uint16_t *host = lk_malloc(n * sizeof *host);
    assert_non_null(host);
    for (size_t i = 0; i < n; i++) host[i] = lk_f32_to_bf16((float)(scale * test_normal(seed)));
    assert_ok(LK_NEW(&cuda->arena, &t, LK_BF16, rows, columns));
    assert_ok(lk_upload(cuda, &t, host));
    lk_free(host);
    return t;
}

/* A layer that takes the largest tile on an A100, with an adapter whose rank ends inside a stage. */
static void same_bits(void **state) {
    (void)state;
    enum { M = 33, N = 4104, K = 4104, RANK = 40 };
    static uint16_t usual[M * N], lesser[M * N];
    struct lk_cuda_device *device = lk_cuda_device_of(cuda);
    const size_t most = device->most_shared;
    uint64_t seed = 61;
    struct lk_tensor y, x = normals(&seed, M, K, 1), w = normals(&seed, N, K, 0.0156);
    struct lk_tensor low = normals(&seed, M, RANK, 1), up = normals(&seed, N, RANK, 0.158);
    assert_ok(LK_NEW(&cuda->arena, &y, LK_BF16, M, N));
    const struct lk_linear op = {.y = &y, .x = &x, .w = &w, .low = &low, .up = &up};
    device->n_multiprocessors = 1; /* the usual tile for few rows too */
    device->most_shared = A100;
    assert_ok(lk_linear(cuda, &op));
    assert_string_equal(device->last_kernel, "linear_256_bf16");
    assert_ok(lk_download(cuda, usual, &y));
    device->most_shared = RTX;
    assert_ok(lk_linear(cuda, &op));
    assert_string_equal(device->last_kernel, "linear_128_bf16");
    assert_ok(lk_download(cuda, lesser, &y));
    device->most_shared = most;
    assert_memory_equal(lesser, usual, sizeof usual);
}

static void every_tile_fits(void **state) {
    (void)state;
    assert_int_equal(lk_cuda_linear_tile(6144, 6144, A100)->shared, 144 << 10); /* of 163 KiB */
    assert_int_equal(lk_cuda_linear_tile(3072, 64, A100)->shared, 80 << 10);    /* two of 82 KiB */
    for (int64_t n = 1; n < 20000; n += 61) {
        assert_true(lk_cuda_conv2d_tile(n, false)->shared <= RTX && lk_cuda_conv2d_tile(n, true)->shared <= RTX);
        for (int64_t k = 64; k < 30000; k *= 4) assert_true(lk_cuda_linear_tile(n, k, RTX)->shared <= RTX);
    }
    assert_true(lk_cuda_linear_tile_few()->shared <= RTX);
}

/* What `likeness devices` prints of a GPU that gives a block so much shared memory. */
static void list_devices(const char *shared, const char *flags, char text[4096]) {
    char command[1024];
    snprintf(command, sizeof command, "GPUSIM_SHARED=%s \"$BUILD_DIR/likeness\" devices %s", shared, flags);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, 4095, f)] = 0;
    assert_int_equal(pclose(f), 0);
}

static void unusable_devices_are_listed_as_such(void **state) {
    if (!simulated_gpu()->hooks) skip();
    (void)state;
    char text[4096];
    list_devices("98K", "", text);
    assert_non_null(strstr(text, "\n      cannot be used: cuda:0: "));
    list_devices("98K", "--json", text);
    assert_non_null(strstr(text, "\"usable\":\tfalse"));
    assert_non_null(strstr(text, "\"why_not\":\t\"cuda:0: "));
    list_devices("99K", "", text);
    assert_null(strstr(text, "cannot be used"));
    list_devices("99K", "--json", text);
    assert_non_null(strstr(text, "\"block_shared_bytes\":\t101376"));
    assert_non_null(strstr(text, "\"usable\":\ttrue"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(every_tile_fits),
                                       cmocka_unit_test(unusable_devices_are_listed_as_such)};
    cuda = test_cuda_open();
    if (lk_device_prepare(cuda, ARENA_BYTES)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lk_device_free(cuda);
    return failed;
}
