/* GPUs that read each other's memory: a rank takes what it needs of another one's share itself, by a copy engine, when
 * it needs it. The other does nothing for it, and no kernel runs. */
#pragma once

#include <stdbool.h>

#include "engine/device.h"

/* Gives all devices access to each other's memory. False where two have none, or where NCCL_P2P_DISABLE is set. */
bool lk_cuda_peers_open(struct lk_device *const *devs, int n);
