/* Every planted defect of a kernel is reported with its kind, line and thread, and its clean twin is not; under three
 * seeds. */
#include "tests/gpusim/common/defects.h"

#define ADDRESS CUDA_ERROR_ILLEGAL_ADDRESS
#define FAILED  CUDA_ERROR_LAUNCH_FAILED
#define K(kind) GPUSIM_REPORT_##kind

/* name, kind, block, thread, blocks, threads, shared bytes, error */
static const struct defect core[] = {
    {"oob_read", K(OUT_OF_BOUNDS), 1, 127, 2, 128, 0, ADDRESS, false},
    {"oob_shared", K(OUT_OF_BOUNDS), -1, 127, 2, 128, 512, ADDRESS, false},
    {"use_after_free", K(USE_AFTER_FREE), 0, -1, 1, 128, 0, ADDRESS, true},
    {"misaligned", K(MISALIGNED), -1, -1, 1, 128, 0, CUDA_ERROR_MISALIGNED_ADDRESS, false},
    {"uninitialised", K(UNINITIALISED), 0, 77, 1, 128, 0, FAILED, false},
    {"uninitialised_shared", K(UNINITIALISED), -1, -1, 2, 128, 0, FAILED, false},
    {"race_raw", K(RACE_SHARED), -1, -1, 1, 128, 0, FAILED, false},
    {"race_lanes", K(RACE_WARP), 0, 0, 1, 32, 0, FAILED, false},
    {"race_blocks", K(RACE_GLOBAL), -1, -1, 2, 128, 0, FAILED, false},
    {"async_wait", K(ASYNC_UNWAITED), 0, -1, 1, 128, 0, FAILED, false},
    {"barrier_divergent", K(BARRIER_DIVERGENT), 0, -1, 1, 128, 0, FAILED, false},
    {"barrier_exited", K(BARRIER_EXITED), -1, -1, 2, 128, 0, FAILED, false},
    {"shuffle_inactive", K(INACTIVE_LANES), 0, 0, 1, 32, 0, FAILED, false},
};
static const struct defect more[] = {
    {"oob_write", K(OUT_OF_BOUNDS), 0, 0, 2, 128, 0, ADDRESS, false},
    {"oob_local", K(OUT_OF_BOUNDS), 0, 0, 1, 32, 0, ADDRESS, false},
    {"oob_vector", K(OUT_OF_BOUNDS), 0, 124, 1, 128, 0, ADDRESS, false},
    {"oob_atomic", K(OUT_OF_BOUNDS), 1, 127, 2, 128, 0, ADDRESS, false},
    {"misaligned_shared", K(MISALIGNED), 0, -1, 1, 128, 0, CUDA_ERROR_MISALIGNED_ADDRESS, false},
    {"uninitialised_local", K(UNINITIALISED), 0, 4, 1, 32, 0, FAILED, false},
    {"uninitialised_atomic", K(UNINITIALISED), 0, 0, 1, 32, 0, FAILED, false},
    {"uninitialised_tail", K(UNINITIALISED), 0, 0, 1, 128, 256, FAILED, false},
    {"race_war", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_waw", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_halves", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_lanes_war", K(RACE_WARP), 0, 0, 1, 32, 0, FAILED, false},
    {"race_instruction", K(RACE_WARP), 0, 1, 1, 32, 0, FAILED, false},
    {"race_instruction_global", K(RACE_WARP), 0, -1, 1, 128, 0, FAILED, false},
    {"race_half_warp", K(RACE_WARP), 0, -1, 1, 32, 0, FAILED, false},
    {"race_divergent_lanes", K(RACE_WARP), 0, 16, 1, 32, 0, FAILED, false},
    {"race_named", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_producer", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_atomic_shared", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_epilogue", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_barrier", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_group", K(ASYNC_UNWAITED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_overwrite", K(ASYNC_UNWAITED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_refill", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_mbarrier", K(ASYNC_UNWAITED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_mbarrier_other", K(ASYNC_UNWAITED), 0, -1, 1, 128, 0, FAILED, false},
    {"async_pipeline", K(ASYNC_UNWAITED), 0, -1, 1, 128, 0, FAILED, false},
    {"signal_fence", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"signal_acquire", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"signal_later", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"signal_overwritten", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"tile", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"tile_unsynced", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"tile_reduce", K(RACE_SHARED), 0, -1, 1, 128, 0, FAILED, false},
    {"race_blocks_waw", K(RACE_GLOBAL), -1, -1, 2, 128, 0, FAILED, false},
    {"race_blocks_sum", K(RACE_GLOBAL), -1, 0, 2, 128, 0, FAILED, false},
    {"race_blocks_last", K(RACE_GLOBAL), -1, 0, 4, 64, 0, FAILED, false},
    {"barrier_count", K(BARRIER_MISMATCHED), 0, -1, 1, 128, 0, CUDA_ERROR_LAUNCH_TIMEOUT, false},
    {"barrier_warps", K(BARRIER_MISMATCHED), 0, -1, 1, 128, 0, FAILED, false},
    {"barrier_loop", K(BARRIER_EXITED), 0, -1, 1, 128, 0, FAILED, false},
    {"barrier_twice", K(BARRIER_MISMATCHED), 0, 0, 1, 128, 0, FAILED, false},
    {"barrier_never", K(DEADLOCK), 0, 0, 1, 128, 0, CUDA_ERROR_LAUNCH_TIMEOUT, false},
    {"shuffle_mask", K(INACTIVE_LANES), 0, -1, 1, 32, 0, FAILED, false},
    {"vote_inactive", K(INACTIVE_LANES), 0, 1, 1, 32, 0, FAILED, false},
    {"reduce_inactive", K(INACTIVE_LANES), 0, 0, 1, 32, 0, FAILED, false},
    {"syncwarp_mask", K(INACTIVE_LANES), 0, 16, 1, 32, 0, FAILED, false},
    {"mma_inactive", K(INACTIVE_LANES), 0, 0, 1, 32, 0, FAILED, false},
    {"ldmatrix_inactive", K(INACTIVE_LANES), 0, 0, 1, 32, 0, FAILED, false},
};
static const struct defect own[] = {
    {"tensor_read", K(OUT_OF_BOUNDS), 0, 127, 1, 128, 0, ADDRESS, false},
    {"tensor_vector", K(OUT_OF_BOUNDS), 0, 120, 1, 128, 0, ADDRESS, false},
    {"tensor_write", K(OUT_OF_BOUNDS), 0, 63, 1, 128, 0, ADDRESS, false},
    {"vote_halves", K(INACTIVE_LANES), 0, 16, 1, 32, 0, FAILED, false},
    {"match_halves", K(INACTIVE_LANES), 0, 16, 1, 32, 0, FAILED, false},
    {"reduce_halves", K(INACTIVE_LANES), 0, 16, 1, 32, 0, FAILED, false},
};

static CUmodule core_ptx(void) { return device_ptx("check_core"); }
static CUmodule core_fatbin(void) { return device_fatbin("check_core"); }
static CUmodule more_fatbin(void) { return device_fatbin("check_more"); }
static CUmodule own_fatbin(void) { return device_fatbin("check_own"); }

static bool built(void) {
    device_open();
    CUmodule module = device_fatbin("check_more");
    if (module) cu_ok(cuModuleUnload(module));
    device_close();
    return module != NULL;
}

static void test_ptx(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof core / sizeof core[0]; i++) defect_check(&core[i], "check_core.cu", core_ptx);
}
static void test_built(void **state) {
    (void)state;
    if (!built()) skip();
    for (size_t i = 0; i < sizeof core / sizeof core[0]; i++) defect_check(&core[i], "check_core.cu", core_fatbin);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) defect_check(&more[i], "check_more.cu", more_fatbin);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) defect_check(&own[i], "check_own.cu", own_fatbin);
}

/* One line, in the order that gpusim.h states. */
static void test_text(void **state) {
    (void)state;
    struct gpusim_report r = {.kind = GPUSIM_REPORT_OUT_OF_BOUNDS,
                              .kernel = "k",
                              .ptx_line = 12,
                              .file = "a.cu",
                              .line = 34,
                              .has_block = true,
                              .has_thread = true,
                              .block = {1, 2, 3},
                              .thread = {4, 5, 6},
                              .space = "global",
                              .address = 0x1000,
                              .allocation = 7,
                              .allocation_base = 0x800,
                              .allocation_bytes = 2048,
                              .what = "read"};
    char text[512];
    gpusim_report_text(&r, text, sizeof text);
    assert_string_equal(text, "out-of-bounds: kernel k, PTX line 12 (a.cu:34), block (1,2,3), thread (4,5,6), global "
                              "address 0x1000, allocation 7 of 2048 bytes at 0x800: read");
    gpusim_report_text(&(struct gpusim_report){.kind = GPUSIM_REPORT_LEAK, .what = "w"}, text, sizeof text);
    assert_string_equal(text, "leak: w");
}

int main(int argc, char **argv) {
    int status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_ptx),
                                       cmocka_unit_test(test_built)};
    (void)argc;
    if (defect_seeds(argv, &status)) return status;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
