/* Control flow, calls, barriers, atomics, asynchronous copies and faults, from PTX text. */
#include "tests/gpusim/common/device.h"

static int open_device(void **state) {
    device_open();
    *state = device_ptx("control");
    return 0;
}
static int close_device(void **state) {
    (void)state;
    device_close();
    return 0;
}

static void test_recursion(void **state) {
    static const uint32_t factorials[8] = {1, 1, 2, 6, 24, 120, 720, 5040};
    uint32_t got[64];
    CUdeviceptr out = device_zeros(sizeof got);
    cu_ok(device_run(device_function(*state, "recursion"), 1, 64, 0, (void *)&out, NULL));
    device_get(got, out, sizeof got);
    for (int t = 0; t < 64; t++) assert_int_equal(got[t], factorials[t % 8] + 3);
}

static void test_divergence(void **state) {
    uint32_t got[64], expected[2] = {0, 0};
    CUdeviceptr out = device_zeros(sizeof got);
    for (uint32_t t = 0; t < 64; t++) {
        static const uint32_t added[4] = {1000, 2000, 5, (uint32_t)-1};
        expected[t / 32] += t * (t % 5 + 1) + added[t % 4];
    }
    cu_ok(device_run(device_function(*state, "divergence"), 1, 64, 0, (void *)&out, NULL));
    device_get(got, out, sizeof got);
    for (int t = 0; t < 64; t++) assert_int_equal(got[t], expected[t / 32]);
}

static void test_spinlock(void **state) {
    uint32_t total = 0;
    CUdeviceptr lock = device_zeros(4), sum = device_zeros(4);
    cu_ok(device_run(device_function(*state, "spinlock"), 4, 48, 0, (void *)&lock, (void *)&sum, NULL));
    device_get(&total, sum, 4);
    assert_int_equal(total, 4 * 48);
}

static void test_barriers(void **state) {
    uint32_t got[128];
    CUdeviceptr out = device_zeros(sizeof got);
    cu_ok(device_run(device_function(*state, "barriers"), 1, 128, 0, (void *)&out, NULL));
    device_get(got, out, sizeof got);
    for (uint32_t t = 0; t < 128; t++) assert_int_equal(got[t], (127 - t) * 1000 + 64);
}

static void test_async(void **state) {
    uint32_t in[128], got[128], wait = 1, old = 0;
    for (uint32_t i = 0; i < 128; i++) in[i] = 100 + i;
    CUdeviceptr din = device_put(in, sizeof in), out = device_zeros(sizeof got);
    CUfunction async = device_function(*state, "async");
    cu_ok(device_run(async, 1, 32, 0, (void *)&din, (void *)&out, (void *)&wait, NULL));
    device_get(got, out, sizeof got);
    for (uint32_t t = 0; t < 32; t++) assert_int_equal(got[4 * t], 100 + 4 * t);
    wait = 0;
    for (int round = 0; round < 20; round++) {
        cu_ok(device_run(async, 1, 32, 0, (void *)&din, (void *)&out, (void *)&wait, NULL));
        device_get(got, out, sizeof got);
        old += got[0] == 7;
    }
    assert_true(old > 0);
}

static void test_globals(void **state) {
    CUdeviceptr address;
    size_t bytes;
    uint32_t value = 0, unused = 0;
    cu_ok(cuModuleGetGlobal_v2(&address, &bytes, *state, "counter"));
    assert_int_equal(bytes, 4);
    cu_ok(device_run(device_function(*state, "bump"), 3, 32, 0, (void *)&unused, NULL));
    device_get(&value, address, 4);
    assert_int_equal(value, 5 + 3 * 32 * 2);
    assert_cu(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&address, &bytes, *state, "no such name"));
}

static void test_shared_out(void **state) {
    uint32_t offset = 60;
    CUfunction f = device_function(*state, "shared_out");
    cu_ok(device_run(f, 1, 1, 0, (void *)&offset, NULL));
    offset = 64;
    assert_cu(CUDA_ERROR_ILLEGAL_ADDRESS, device_run(f, 1, 1, 0, (void *)&offset, NULL));
}
static void test_misaligned(void **state) {
    uint32_t offset = 2;
    assert_cu(CUDA_ERROR_MISALIGNED_ADDRESS,
              device_run(device_function(*state, "shared_out"), 1, 1, 0, (void *)&offset, NULL));
}
static void test_unmet_barrier(void **state) {
    uint32_t unused = 0;
    assert_cu(CUDA_ERROR_LAUNCH_TIMEOUT, device_run(device_function(*state, "unmet"), 1, 64, 0, (void *)&unused, NULL));
}

static void test_bad_modules(void **state) {
    static const struct {
        const char *body;
        CUresult result;
    } bad[] = {{"tex.1d.v4.f32.f32 {a, b, c, d}, [t, {x}];", CUDA_ERROR_NOT_SUPPORTED},
               {"add.s32.wrong r, r, r;", CUDA_ERROR_NOT_SUPPORTED},
               {"add.s32 r, r, nowhere;", CUDA_ERROR_INVALID_PTX},
               {"bra nowhere;", CUDA_ERROR_INVALID_PTX},
               {"add.s32 r, r", CUDA_ERROR_INVALID_PTX},
               {"mov.b64 r, 1;", CUDA_ERROR_INVALID_PTX},
               {".global .b32 none[];", CUDA_ERROR_INVALID_PTX}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[512];
        CUmodule module;
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{ .reg .b32 r; %s ret; }\n",
                 bad[i].body);
        assert_cu(bad[i].result, cuModuleLoadData(&module, text));
    }
}

/* Modules are loaded again as if for the first time: variables as they are initialised, what launches may ask for as it
 * was; and another text of the same length is another module. */
static void test_loaded_again(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        CUmodule with_variables = device_ptx("control"), without;
        CUdeviceptr address, out = device_zeros(4);
        size_t bytes;
        uint32_t value = 0, unused = 0;
        int most = 0;
        char text[256];
        cu_ok(cuModuleGetGlobal_v2(&address, &bytes, with_variables, "counter"));
        cu_ok(device_run(device_function(with_variables, "bump"), 1, 32, 0, (void *)&unused, NULL));
        device_get(&value, address, 4);
        assert_int_equal(value, 5 + 32 * 2);
        cu_ok(cuModuleUnload(with_variables));

        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n"
                 "{ .reg .b64 a; ld.param.u64 a, [out]; st.global.b32 [a], %d; ret; }\n",
                 7 + round / 2);
        cu_ok(cuModuleLoadData(&without, text));
        CUfunction k = device_function(without, "k");
        cu_ok(cuFuncGetAttribute(&most, 8, k));
        assert_int_equal(most, 48 << 10);
        cu_ok(cuFuncSetAttribute(k, 8, 100 << 10));
        cu_ok(device_run(k, 1, 1, 0, (void *)&out, NULL));
        device_get(&value, out, 4);
        assert_int_equal(value, 7 + round / 2);
        cu_ok(cuModuleUnload(without));
    }
}

int main(void) {
    setenv("GPUSIM_CHECKS", "memory", 1); /* here a copy that is not waited for must show as old bytes, before any
                                             checker stops it */
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)
    const struct CMUnitTest tests[] = {TEST(test_recursion),   TEST(test_divergence),  TEST(test_spinlock),
                                       TEST(test_barriers),    TEST(test_async),       TEST(test_globals),
                                       TEST(test_shared_out),  TEST(test_misaligned),  TEST(test_unmet_barrier),
                                       TEST(test_bad_modules), TEST(test_loaded_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
