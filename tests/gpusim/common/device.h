/* What the tests of the simulated GPU share: a context, modules, buffers, launches. */
#pragma once

#include "driver/api.h"
#include "driver/calls.h"
#include "tests/common/test.h"

/* The call gives this result, or the test fails with the error's name. */
#define assert_cu(expected, call)                                                                                      \
    do {                                                                                                               \
        CUresult rc_ = (call);                                                                                         \
        if (rc_ != (expected)) fail_msg("%s: expected %d, got %d", #call, (int)(expected), (int)rc_);                  \
    } while (0)
#define cu_ok(call) assert_cu(CUDA_SUCCESS, call)

/* A fresh context on device 0, current. device_close ends it. */
void device_open(void);
void device_close(void);

/* tests/gpusim/ptx/NAME.ptx, or PTX text. */
CUmodule device_ptx(const char *name);
/* NAME.fatbin made from tests/gpusim/NAME.cu; NULL where it was not built (no nvcc). */
CUmodule device_fatbin(const char *name);
CUfunction device_function(CUmodule module, const char *name);

CUdeviceptr device_put(const void *bytes, size_t n);
CUdeviceptr device_zeros(size_t n);
void device_get(void *bytes, CUdeviceptr address, size_t n);

/* One dimension; arguments are pointers, ended by NULL. Launches and waits; gives the wait's result. */
CUresult device_run(CUfunction function, unsigned blocks, unsigned threads, unsigned shared, ...);
