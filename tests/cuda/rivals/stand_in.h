/* What the stand-ins for NVIDIA's libraries share: device memory by the driver, values as float. They compute on the
 * host what the library would on the device, so that our calls are tested where the library cannot run. */
#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void *stand_in_driver(const char *symbol) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, symbol) : NULL;
}

/* What the stream was given so far is done; n bytes from `from`. The caller frees them. */
static inline void *stand_in_read(CUstream stream, const void *from, size_t n) {
    CUresult (*synchronize)(CUstream), (*copy)(void *, CUdeviceptr, size_t);
    *(void **)&synchronize = stand_in_driver("cuStreamSynchronize");
    *(void **)&copy = stand_in_driver("cuMemcpyDtoH_v2");
    void *out = calloc(1, n);
    if (!out || synchronize(stream) || copy(out, (CUdeviceptr)(uintptr_t)from, n)) abort();
    return out;
}

static inline void stand_in_write(void *to, const void *from, size_t n) {
    CUresult (*copy)(CUdeviceptr, const void *, size_t);
    *(void **)&copy = stand_in_driver("cuMemcpyHtoD_v2");
    if (copy((CUdeviceptr)(uintptr_t)to, from, n)) abort();
}

static inline float stand_in_get(const void *data, int64_t i, int is_bf16) {
    float value;
    uint32_t bits;
    if (!is_bf16) return ((const float *)data)[i];
    bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void stand_in_set(void *data, int64_t i, int is_bf16, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (is_bf16)
        ((uint16_t *)data)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    else
        ((float *)data)[i] = value;
}
