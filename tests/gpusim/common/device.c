#include "tests/gpusim/common/device.h"

static CUcontext context;

void device_open(void) {
    cu_ok(cuInit(0));
    cu_ok(cuCtxCreate_v2(&context, 0, 0));
}
void device_close(void) { cu_ok(cuCtxDestroy_v2(context)); }

CUmodule device_ptx(const char *name) {
    char path[256];
    size_t n;
    CUmodule module;
    snprintf(path, sizeof path, "gpusim/ptx/%s.ptx", name);
    char *bytes = test_read(path, &n), *text = calloc(1, n + 1);
    memcpy(text, bytes, n);
    cu_ok(cuModuleLoadData(&module, text));
    free(bytes);
    free(text);
    return module;
}

CUmodule device_fatbin(const char *name) {
    char path[512];
    CUmodule module;
    snprintf(path, sizeof path, "%s/tests/gpusim/%s.fatbin", getenv("BUILD_DIR") ? getenv("BUILD_DIR") : "../build",
             name);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fclose(file);
    cu_ok(cuModuleLoad(&module, path));
    return module;
}

CUfunction device_function(CUmodule module, const char *name) {
    CUfunction function;
    cu_ok(cuModuleGetFunction(&function, module, name));
    return function;
}

CUdeviceptr device_put(const void *bytes, size_t n) {
    CUdeviceptr address;
    cu_ok(cuMemAlloc_v2(&address, n));
    cu_ok(cuMemcpyHtoD_v2(address, bytes, n));
    return address;
}
CUdeviceptr device_zeros(size_t n) {
    CUdeviceptr address;
    cu_ok(cuMemAlloc_v2(&address, n));
    cu_ok(cuMemsetD8_v2(address, 0, n));
    return address;
}
void device_get(void *bytes, CUdeviceptr address, size_t n) { cu_ok(cuMemcpyDtoH_v2(bytes, address, n)); }

CUresult device_run(CUfunction function, unsigned blocks, unsigned threads, unsigned shared, ...) {
    void *params[32];
    int n = 0;
    va_list args;
    va_start(args, shared);
    while (n < 32 && (params[n] = va_arg(args, void *))) n++;
    va_end(args);
    CUresult result = cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, NULL, params, NULL);
    return result ? result : cuCtxSynchronize();
}
