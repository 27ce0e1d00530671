#include "kernels/cuda/runtime/peers.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/log.h"
#include "kernels/cuda/cuda.h"

static bool give_access(const struct lk_cuda_device *to, const struct lk_cuda_device *of) {
    const struct lk_cuda_driver *driver = lk_cuda();
    int can = 0;
    lk_cu_result result = driver->peer_can(&can, to->ordinal, of->ordinal);
    if (!result && can) result = driver->context_set(to->context);
    if (!result && can) result = driver->peer_enable(of->context, 0);
    const bool has = can && (!result || result == LK_CU_ERROR_PEER_ALREADY);
    if (!has)
        lk_log(LK_LOG_DETAIL, "%s has no access to the memory of %s (%d): weights are gathered by NCCL",
               to->device.name, of->device.name, result);
    return has;
}

bool lk_cuda_peers_open(struct lk_device *const *devs, int n) {
    const char *disabled = getenv("NCCL_P2P_DISABLE");
    if (disabled && *disabled && strcmp(disabled, "0")) return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (i != k && !give_access(lk_cuda_device_of(devs[i]), lk_cuda_device_of(devs[k]))) return false;
    return true;
}
