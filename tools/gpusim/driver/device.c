/* Initialisation, devices, error texts. */
#include "driver/state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct gpusim_driver gpusim_driver = {.mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

void gpusim_lock(void) { pthread_mutex_lock(&gpusim_driver.mutex); }
CUresult gpusim_unlock(CUresult result) {
    pthread_mutex_unlock(&gpusim_driver.mutex);
    return result;
}

CUresult gpusim_not_supported(const char *what) {
    gpusim_say("%s is not supported", what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t gpusim_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

EXPORT CUresult cuInit(unsigned flags) {
    gpusim_lock();
    if (flags) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!gpusim_settings()->n_devices) LEAVE(CUDA_ERROR_NO_DEVICE);
    if (!gpusim_driver.initialised) gpusim_driver.hooks = gpusim_check_start();
    if (!gpusim_driver.initialised) gpusim_driver.random = gpusim_settings()->seed * 0x9e3779b97f4a7c15ull + 1;
    gpusim_driver.initialised = true;
    LEAVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = gpusim_settings()->driver_version;
    return CUDA_SUCCESS;
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define X(name, value, text) {value, "CUDA_" #name, text},
#include "driver/errors.def"
#undef X
};

static CUresult error_text(CUresult error, const char **out, bool name) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == (int)error) {
            *out = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuGetErrorName(CUresult error, const char **out) { return error_text(error, out, true); }
EXPORT CUresult cuGetErrorString(CUresult error, const char **out) { return error_text(error, out, false); }

static bool is_device(CUdevice device) { return device >= 0 && device < gpusim_settings()->n_devices; }

EXPORT CUresult cuDeviceGetCount(int *count) {
    ENTER();
    if (!count) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *count = gpusim_settings()->n_devices;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER();
    if (!device) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(ordinal)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceGetName(char *name, int n, CUdevice device) {
    ENTER();
    if (!name || n < 1) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    snprintf(name, (size_t)n, "NVIDIA A100-SXM4-80GB (simulated)");
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    ENTER();
    if (!uuid) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    memcpy(uuid->bytes, "gpusim-device-0", 16);
    uuid->bytes[14] = (char)('0' + device);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }
EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    ENTER();
    if (!bytes) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    *bytes = gpusim_memory_capacity();
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    ENTER();
    if (!major || !minor) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    *major = GPUSIM_CC_MAJOR;
    *minor = GPUSIM_CC_MINOR;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceGetPCIBusId(char *id, int n, CUdevice device) {
    ENTER();
    if (!id || n < 13) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    snprintf(id, (size_t)n, "0000:%02x:00.0", (unsigned)(device + 1) & 255);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    ENTER();
    if (!can) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device) || !is_device(peer)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    *can = device != peer;
    LEAVE(CUDA_SUCCESS);
}

/* CUdevice_attribute numbers; what is not listed (textures, surfaces, pools ...) is 0. */
static const struct {
    int attribute, value;
} attributes[] = {
    {1, GPUSIM_THREADS_PER_BLOCK},
    {2, 1024},
    {3, 1024},
    {4, 64},
    {5, INT32_MAX},
    {6, 65535},
    {7, 65535}, /* block, grid */
    {8, GPUSIM_SHARED_PER_BLOCK},
    {9, 65536},
    {10, GPUSIM_WARP},
    {11, INT32_MAX},
    {12, GPUSIM_REGISTERS_PER_SM},
    {13, 1410000},
    {14, 512},
    {15, 1},
    {16, GPUSIM_N_SMS},
    {19, 1},
    {30, 512},
    {31, 1},
    {32, 1},
    {36, 1593000},
    {37, 5120},
    {38, 40 << 20},
    {39, GPUSIM_THREADS_PER_SM},
    {40, 3},
    {41, 1},
    {51, 32},
    {75, GPUSIM_CC_MAJOR},
    {76, GPUSIM_CC_MINOR},
    {78, 1},
    {79, 1},
    {80, 1},
    {82, GPUSIM_REGISTERS_PER_SM},
    {87, 2},
    {90, 1},
    {91, 1},
    {95, 1},
    {99, 1},
    {106, GPUSIM_BLOCKS_PER_SM},
    {111, GPUSIM_SHARED_RESERVED},
};
EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    ENTER();
    if (!value || attribute < 1 || attribute > 200) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_device(device)) LEAVE(CUDA_ERROR_INVALID_DEVICE);
    *value = attribute == 33 ? device + 1 : 0; /* PCI bus */
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].attribute == attribute) *value = attributes[i].value;
    if (attribute == 81) *value = (int)gpusim_shared_per_sm();
    if (attribute == 97) *value = gpusim_settings()->shared_optin;
    LEAVE(CUDA_SUCCESS);
}
