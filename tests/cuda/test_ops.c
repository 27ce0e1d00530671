/* Every op of the cuda device against the cpu device (kernels/selftest). Few small cases, since the device is a
 * simulated one where there is no GPU; `test_cuda_ops --full [OP]` runs 200 of each, as the
 * full run does. */
#include "kernels/cuda/cuda.h"
#include "kernels/selftest/selftest.h"
#include "tests/common/cuda.h"
#include "tests/common/simulated_gpu.h"

#define CASES      6
#define FULL_CASES 200
#define MOST_OPS   64

static struct lk_device *cuda, *cpu;
static struct lk_selftest_options options = {.n_cases = CASES, .seed = 1};

static void test_op(void **state) {
    struct lk_selftest_result result;
    int op = *(const int *)*state;
    assert_ok(lk_selftest_op(cuda, cpu, op, &options, &result));
    printf("%-17s %3d cases, NMSE f32 %.1e, bf16 %.1e, %lld of %lld values with other bits\n", lk_selftest_ops[op],
           result.n_cases, result.worst_f32, result.worst_bf16, (long long)result.n_different,
           (long long)result.n_values);
    if (result.n_failed) fail_msg("%d of %d cases: %s", result.n_failed, result.n_cases, result.message);
    /* Once more with the kernels that serve problems for all multiprocessors. */
    const int n = lk_cuda_device_of(cuda)->n_multiprocessors;
    lk_cuda_device_of(cuda)->n_multiprocessors = 1;
    assert_ok(lk_selftest_op(cuda, cpu, op, &options, &result));
    lk_cuda_device_of(cuda)->n_multiprocessors = n;
    if (result.n_failed) fail_msg("%d of %d cases: %s", result.n_failed, result.n_cases, result.message);
}

int main(int argc, char **argv) {
    static struct CMUnitTest tests[MOST_OPS];
    static int ops[MOST_OPS];
    size_t n = 0;
    const char *only = NULL;
    if (test_is_full()) options.n_cases = FULL_CASES;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--full"))
            options.n_cases = FULL_CASES;
        else
            only = argv[i];
    }
    cuda = test_cuda_open();
    if (lk_device_cpu_create(2, &cpu)) return 1;
    for (int op = 0; op < lk_selftest_n_ops; op++) {
        if (only && strcmp(only, lk_selftest_ops[op])) continue;
        ops[n] = op;
        tests[n] = (struct CMUnitTest){.name = lk_selftest_ops[op], .test_func = test_op, .initial_state = &ops[n]};
        n++;
    }
    int failed = n ? _cmocka_run_group_tests("ops", tests, n, NULL, NULL) : 1;
    lk_device_free(cuda);
    lk_device_free(cpu);
    return failed;
}
