#include "kernels/cuda/runtime/energy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

/* Results are nvmlReturn_t, 0 for success; devices are pointers. */
static struct {
    int (*init)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*energy)(void *device, unsigned long long *millijoules);
    bool there;
} nvml;

static void open_once(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *symbol;
        void *to;
    } functions[] = {{"nvmlInit_v2", &nvml.init},
                     {"nvmlDeviceGetHandleByUUID", &nvml.by_uuid},
                     {"nvmlDeviceGetTotalEnergyConsumption", &nvml.energy}};
    nvml.there = library;
    for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].symbol);
        memcpy(functions[i].to, &address, sizeof address);
        nvml.there &= address != NULL;
    }
    nvml.there = nvml.there && !nvml.init(); /* loaded until the program ends */
}

bool lk_cuda_joules(struct lk_device *dev, double *out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned char bytes[16];
    char uuid[64] = "GPU-";
    void *device;
    unsigned long long millijoules;
    if (dev->kind != LK_DEVICE_CUDA) return false;
    pthread_once(&once, open_once);
    if (!nvml.there || lk_cuda()->device_uuid(bytes, lk_cuda_device_of(dev)->ordinal)) return false;
    for (size_t i = 0, n = 4; i < 16; i++)
        n += (size_t)snprintf(uuid + n, sizeof uuid - n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              bytes[i]);
    if (nvml.by_uuid(uuid, &device) || nvml.energy(device, &millijoules)) return false;
    *out = 1e-3 * (double)millijoules;
    return true;
}
