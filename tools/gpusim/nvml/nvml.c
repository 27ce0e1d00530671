/* A look-alike of libnvidia-ml.so.1 over the simulated devices: their energy, which grows by 7 J from one reading to
 * the next. Values are those of nvml.h. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gpusim.h"

#define EXPORT __attribute__((visibility("default")))

typedef enum { NVML_SUCCESS = 0, NVML_ERROR_INVALID_ARGUMENT = 2, NVML_ERROR_NOT_FOUND = 6 } nvmlReturn_t;
typedef atomic_ullong *nvmlDevice_t;

EXPORT nvmlReturn_t nvmlInit_v2(void);
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules);

static atomic_ullong used[GPUSIM_MAX_DEVICES];

nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }

/* The driver's bytes are "gpusim-device-N". */
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    unsigned last, zero;
    if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(uuid, "GPU-67707573-696d-2d64-6576-6963652d%2x%2x", &last, &zero) != 2 || zero || last < '0' ||
        last >= '0' + GPUSIM_MAX_DEVICES)
        return NVML_ERROR_NOT_FOUND;
    *device = &used[last - '0'];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules) {
    if (!device || !millijoules) return NVML_ERROR_INVALID_ARGUMENT;
    *millijoules = atomic_fetch_add(device, 7000) + 7000;
    return NVML_SUCCESS;
}
