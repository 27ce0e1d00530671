#include "tests/common/cuda.h"

struct lk_device *test_cuda_open(void) {
    struct lk_device *dev;
    struct lk_cuda_info info;
    int n;
    if (lk_cuda_info(0, &n, &info)) { /* what is there and cannot be opened is a failure */
        printf("SKIP: cuda: %s\n", lk_error_text());
        exit(TEST_SKIPPED);
    }
    enum lk_code rc = lk_device_cuda_create(0, &dev);
    if (rc) {
        printf("%s\n", lk_error_text());
        exit(1);
    }
    printf("device: %s\n", dev->name);
    return dev;
}

int test_cuda_gpus(int least) {
    struct lk_cuda_info info;
    int n = 0;
    if (lk_cuda_info(0, &n, &info) || n < least) {
        printf("SKIP: cuda: %d GPUs are needed, %d are here\n", least, n);
        exit(TEST_SKIPPED);
    }
    return n;
}
