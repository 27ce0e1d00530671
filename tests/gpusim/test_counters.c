/* Counts of kernels that can be counted by hand (counters.cu). */
#include "gpusim.h"
#include "counters/counts.h"
#include "tests/gpusim/common/device.h"

#include <cjson/cJSON.h>
#include <math.h>

static CUmodule module;
static CUdeviceptr from, to;
enum { BYTES = 1 << 20 };

static int open_all(void **state) {
    (void)state;
    device_open();
    module = device_fatbin("counters");
    from = device_zeros(BYTES);
    to = device_zeros(BYTES);
    gpusim_count(true);
    return 0;
}
static int close_all(void **state) {
    (void)state;
    gpusim_forget();
    cu_ok(cuMemFree_v2(from));
    cu_ok(cuMemFree_v2(to));
    if (module) cu_ok(cuModuleUnload(module));
    device_close();
    return 0;
}

#define RUN(kernel, blocks, threads, shared, ...)                                                                      \
    do {                                                                                                               \
        if (!module) skip();                                                                                           \
        gpusim_forget();                                                                                               \
        cu_ok(device_run(device_function(module, kernel), blocks, threads, shared, __VA_ARGS__, NULL));                \
        c = gpusim_counts_of(kernel);                                                                                  \
        assert_non_null(c);                                                                                            \
    } while (0)

#define EXPECT(expected, value)                                                                                        \
    do {                                                                                                               \
        double e_ = (expected), v_ = (value);                                                                          \
        if (e_ != v_) fail_msg("%s: expected %.17g, got %.17g", #value, e_, v_);                                       \
    } while (0)

static void test_sectors(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    /* stride in words, first word, sectors of one warp's load */
    static const int cases[][3] = {{1, 0, 4}, {1, 1, 5}, {2, 0, 8}, {8, 0, 32}, {32, 0, 32}, {0, 3, 1}, {1, 8, 4}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int stride = cases[k][0], offset = cases[k][1], sectors = cases[k][2];
        RUN("copy_words", 6, 64, 0, (void *)&from, (void *)&to, (void *)&stride, (void *)&offset);
        EXPECT(12, c->global[GPUSIM_LOADS].requests);
        EXPECT(12 * sectors, c->global[GPUSIM_LOADS].sectors);
        EXPECT(12 * (stride ? 128 : 4), c->global[GPUSIM_LOADS].bytes);
        EXPECT(12, c->global[GPUSIM_STORES].requests);
        EXPECT(48, c->global[GPUSIM_STORES].sectors);
        EXPECT(12 * 128, c->global[GPUSIM_STORES].bytes);
        EXPECT(12 * 128, c->unique_written);
        double last = (stride * 383 + offset) / 8, first = offset / 8;
        EXPECT(stride >= 8 ? 384 * 32 : (last - first + 1) * 32, c->unique_read);
        EXPECT(6, c->blocks);
        EXPECT(6, c->blocks_run);
    }
}

static void test_vectors_and_partial_warps(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    RUN("copy_vectors", 3, 48, 0, (void *)&from, (void *)&to); /* a warp of 32 and one of 16 lanes per block */
    EXPECT(6, c->global[GPUSIM_LOADS].requests);
    EXPECT(3 * (16 + 8), c->global[GPUSIM_LOADS].sectors);
    EXPECT(3 * 48 * 16, c->global[GPUSIM_LOADS].bytes);
    EXPECT(3 * 48 * 16, c->unique_read);
    double issued = 0;
    for (int k = 0; k < GPUSIM_N_CLASSES; k++) issued += c->issued[k];
    EXPECT(issued / 2 * 16, c->idle_lanes); /* every second warp lacks 16 */
}

static void test_l1(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    int stride = 0, offset = 0;
    RUN("copy_words", 2, 256, 0, (void *)&from, (void *)&to, (void *)&stride, (void *)&offset);
    EXPECT(16, c->global[GPUSIM_LOADS].sectors);
    EXPECT(2, c->global[GPUSIM_LOADS].l2_sectors); /* once per block */
    EXPECT(64, c->global[GPUSIM_STORES].l2_sectors);
}

static void test_conflicts(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    static const int cases[][2] = {{1, 1}, {2, 2}, {4, 4}, {8, 8}, {16, 16}, {32, 32}, {0, 1}, {33, 1}, {3, 1}, {6, 2}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int stride = cases[k][0], ways = cases[k][1], rounds = 5;
        RUN("shared_words", 2, 32, 0, (void *)&to, (void *)&stride, (void *)&rounds);
        EXPECT(10, c->shared[GPUSIM_LOADS].requests);
        EXPECT(10 * ways, c->shared[GPUSIM_LOADS].wavefronts);
        EXPECT(10, c->shared[GPUSIM_LOADS].least);
        if (ways > 1) {
            double conflicts = 0; /* of all copies of the loop's body */
            for (const struct gpusim_site *s = c->sites; s; s = s->next) conflicts += s->conflicts;
            EXPECT(10 * (ways - 1), conflicts);
        } else
            assert_null(c->sites);
    }
}

static void test_matrix_conflicts(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    /* bytes between rows, wavefronts of each of the 4 matrices */
    static const int cases[][2] = {{16, 1}, {32, 2}, {64, 4}, {128, 8}, {144, 1}, {80, 1}, {272, 1}, {96, 2}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int pitch = cases[k][0];
        RUN("matrix_rows", 1, 64, 32 * 272, (void *)&to, (void *)&pitch);
        EXPECT(2, c->issued[GPUSIM_CLASS_MATRIX_LOAD]);
        EXPECT(2 * 4 * cases[k][1], c->shared[GPUSIM_MATRICES].wavefronts);
        EXPECT(2 * 4, c->shared[GPUSIM_MATRICES].least);
    }
}

static void test_async_copies(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    for (int pitch = 16; pitch <= 128; pitch *= 2) {
        RUN("async_copy", 1, 64, 64 * 128, (void *)&from, (void *)&to, (void *)&pitch);
        EXPECT(2, c->global[GPUSIM_COPIES].requests);
        EXPECT(32, c->global[GPUSIM_COPIES].sectors);
        EXPECT(1024, c->global[GPUSIM_COPIES].bytes);
        EXPECT(32, c->global[GPUSIM_COPIES].l2_sectors);
        EXPECT(2, c->shared[GPUSIM_COPIES].requests);
        EXPECT(2 * 4 * (pitch / 16), c->shared[GPUSIM_COPIES].wavefronts);
        EXPECT(2 * 4 * (pitch / 16), c->shared[GPUSIM_LOADS].wavefronts); /* 16 bytes a lane: quarter warps */
        EXPECT(2 * 4, c->shared[GPUSIM_LOADS].least);
        EXPECT(2, c->issued[GPUSIM_CLASS_BARRIER]);
        EXPECT(1024, c->unique_read);
    }
}

static void test_tensor(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    int rounds = 7;
    RUN("products", 3, 128, 0, (void *)&to, (void *)&rounds);
    EXPECT(3 * 4 * 8, c->issued[GPUSIM_CLASS_MMA]);
    EXPECT(3. * 4 * 7 * 2 * 16 * 8 * 16, c->tensor_flops[GPUSIM_TENSOR_BF16]);
    EXPECT(3. * 4 * 1 * 2 * 16 * 8 * 8, c->tensor_flops[GPUSIM_TENSOR_TF32]);
    EXPECT(0, c->tensor_flops[GPUSIM_TENSOR_F16]);
    /* 3 blocks are one turn of 108 SMs: the SM with a block does 4 warps' products at 1,024 multiply-adds per clock */
    double clocks = 4. * 7 * 2048 / 1024 + 4. * 1024 / 512;
    assert_true(fabs(c->seconds[GPUSIM_BOUND_TENSOR] - clocks / 1.41e9) < 1e-15);
    EXPECT(108, c->quantised_blocks);
}

static void test_divergence(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    for (int lanes = 0; lanes <= 32; lanes += 8) {
        RUN("diverge", 1, 64, 0, (void *)&to, (void *)&lanes);
        /* With 0 lanes the branch is not taken at all. */
        EXPECT(lanes ? 2 * 64 : 0, c->issued[GPUSIM_CLASS_F64]);
        if (lanes == 32) EXPECT(0, c->idle_lanes);
        if (lanes == 8) assert_true(c->idle_lanes >= 2 * 64 * 24 && c->idle_lanes < 2 * 70 * 24);
        if (lanes == 0) EXPECT(0, c->idle_lanes);
    }
}

static void test_atomics(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    for (int stride = 0; stride <= 2; stride++) {
        RUN("add_atomically", 1, 32, 0, (void *)&to, (void *)&stride);
        EXPECT(stride == 0 ? 32 : stride, c->shared[GPUSIM_ATOMICS].wavefronts);
        EXPECT(stride == 0 ? 1 : 4 * stride, c->global[GPUSIM_ATOMICS].sectors);
        EXPECT(stride == 0 ? 32 : 32 * 4 * stride, c->unique_written);
        EXPECT(c->unique_written, c->unique_read);
    }
}

/* The machine code is read for registers and for how many instructions a PTX line becomes. */
static void test_machine_code(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    RUN("copy_vectors", 3, 64, 0, (void *)&from, (void *)&to);
    assert_true(c->registers_exact);
    assert_in_range(c->registers, 8, 24);
    EXPECT(0, c->spill_bytes);
    EXPECT(32, c->blocks_per_sm);
    assert_string_equal("blocks", c->limit);
    double each = c->machine_issued / 6, ptx = 0; /* straight code: every warp issues all of it */
    for (int k = 0; k < GPUSIM_N_CLASSES; k++) ptx += c->issued[k] / 6;
    EXPECT(floor(each), each);
    assert_true(each >= 8 && each < ptx + 3 && each != ptx);
    double issued[2];
    for (int i = 0; i < 2; i++) {
        int rounds = i ? 1024 : 512;
        RUN("products", 1, 32, 0, (void *)&to, (void *)&rounds);
        issued[i] = c->machine_issued;
    }
    /* The assembler makes about three instructions of a product here and several copies of the loop's body: were they
     * not seen as copies, there would be more than twelve. */
    double each_round = (issued[1] - issued[0]) / 512;
    if (each_round < 1 || each_round > 6) fail_msg("expected 1 to 6 instructions per product, got %g", each_round);
}

static void test_too_many_registers(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    RUN("reverse", 1, 128, 0, (void *)&to);
    assert_in_range(c->registers, 65, 255);
    uint64_t before = gpusim_report_count();
    assert_cu(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
              device_run(device_function(module, "reverse"), 1, 1024, 0, (void *)&to, NULL));
    assert_int_equal(gpusim_report_count(), before + 1);
}

static void test_sample(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    int stride = 1, offset = 0;
    gpusim_sample(5);
    RUN("copy_words", 1000, 256, 0, (void *)&from, (void *)&to, (void *)&stride, (void *)&offset);
    gpusim_sample(0);
    EXPECT(1000, c->blocks);
    EXPECT(5, c->blocks_run);
    EXPECT(1000 * 8, c->global[GPUSIM_LOADS].requests);
    EXPECT(1000 * 32, c->global[GPUSIM_LOADS].sectors);
    EXPECT(1000 * 1024, c->unique_read);
    EXPECT(10, c->quantised_blocks / 108);
    /* no more than there is: a word that all read */
    stride = 0;
    gpusim_sample(5);
    gpusim_forget();
    gpusim_region(from, 256);
    cu_ok(device_run(device_function(module, "copy_words"), 1000, 256, 0, (void *)&from, (void *)&to, (void *)&stride,
                     (void *)&offset, NULL));
    gpusim_sample(0);
    EXPECT(256, gpusim_counts_of("copy_words")->unique_read);
}

static void test_launches_add_up(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    int stride = 1, offset = 0;
    RUN("copy_words", 2, 128, 0, (void *)&from, (void *)&to, (void *)&stride, (void *)&offset);
    double once = c->bound_seconds;
    cu_ok(device_run(device_function(module, "copy_words"), 2, 128, 0, (void *)&from, (void *)&to, (void *)&stride,
                     (void *)&offset, NULL));
    EXPECT(2, c->launches);
    EXPECT(16, c->global[GPUSIM_LOADS].requests);
    EXPECT(2 * 1024, c->unique_read); /* once per launch */
    EXPECT(2 * once, c->bound_seconds);
    gpusim_count(false);
    cu_ok(device_run(device_function(module, "copy_words"), 2, 128, 0, (void *)&from, (void *)&to, (void *)&stride,
                     (void *)&offset, NULL));
    gpusim_count(true);
    EXPECT(2, c->launches);
}

static void test_report(void **state) {
    (void)state;
    const struct gpusim_counts *c;
    int rounds = 1;
    RUN("products", 1, 32, 0, (void *)&to, (void *)&rounds);
    char *text = gpusim_counts_text("text"), *json = gpusim_counts_text("json");
    assert_non_null(strstr(text, "products: 1 launches"));
    assert_non_null(strstr(text, "modelled"));
    cJSON *root = cJSON_Parse(json), *kernel = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "kernels"), 0);
    assert_non_null(kernel);
    assert_string_equal("products", cJSON_GetObjectItem(kernel, "kernel")->valuestring);
    EXPECT(4096, cJSON_GetObjectItem(cJSON_GetObjectItem(kernel, "tensor_flops"), "bf16")->valuedouble);
    cJSON_Delete(root);
    free(text);
    free(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_vectors_and_partial_warps),
        cmocka_unit_test(test_l1),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_matrix_conflicts),
        cmocka_unit_test(test_async_copies),
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_machine_code),
        cmocka_unit_test(test_too_many_registers),
        cmocka_unit_test(test_launches_add_up),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
