/* Finding entry points by name, and the calls that are only there to say that they are not. */
#include "driver/state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    char name[64];
    if (table) *table = NULL;
    int at = snprintf(name, sizeof name, "cuGetExportTable of ");
    for (int i = 0; id && i < 16; i++)
        at += snprintf(name + at, sizeof name - (size_t)at, "%02x", (uint8_t)id->bytes[i]);
    return gpusim_not_supported(name);
}

/* The newest version of the symbol that this library has. */
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status) {
    static const char *const suffixes[] = {"_v4", "_v3", "_v2", ""};
    char name[128];
    (void)version, (void)flags;
    if (!symbol || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    Dl_info self;
    void *library =
        dladdr((void *)(uintptr_t)cuGetExportTable, &self) ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    for (size_t i = 0; library && !*out && i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", symbol, suffixes[i]);
        *out = dlsym(library, name);
    }
    if (library) dlclose(library);
    if (status) *status = *out ? 0 : 1;
    if (*out) return CUDA_SUCCESS;
    gpusim_say("cuGetProcAddress: %s is not supported", symbol);
    return CUDA_ERROR_NOT_FOUND;
}
EXPORT CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, out, version, flags, NULL);
}

EXPORT CUresult cuProfilerStart(void) { return CUDA_SUCCESS; }
EXPORT CUresult cuProfilerStop(void) { return CUDA_SUCCESS; }

#define MISSING(name)                                                                                                  \
    EXPORT CUresult name(void);                                                                                        \
    EXPORT CUresult name(void) { return gpusim_not_supported(#name); }
MISSING(cuMemAllocManaged)
MISSING(cuMemAllocAsync)
MISSING(cuMemFreeAsync)
MISSING(cuArrayCreate_v2)
MISSING(cuTexObjectCreate)
MISSING(cuSurfObjectCreate)
MISSING(cuLinkCreate_v2)
MISSING(cuLibraryLoadData)
MISSING(cuStreamBeginCapture_v2)
MISSING(cuStreamEndCapture)
MISSING(cuGraphCreate)
MISSING(cuGraphLaunch)
MISSING(cuIpcGetMemHandle)
MISSING(cuMemCreate)
MISSING(cuMemMap)
MISSING(cuMemAddressReserve)
MISSING(cuMemPoolCreate)
MISSING(cuStreamWriteValue32_v2)
MISSING(cuStreamWaitValue32_v2)
