/* For tests that need a CUDA device. */
#pragma once

#include "engine/device.h"
#include "tests/common/test.h"

#define TEST_SKIPPED 77 /* exit code that ctest counts as skipped */

/* Opens device 0 and says on stdout which it is; prints why and ends the program as skipped when there is none. */
struct lk_device *test_cuda_open(void);

/* How many GPUs there are; prints why and ends the program as skipped when there are fewer than `least`. */
int test_cuda_gpus(int least);
