/* What a GPU has used, by NVIDIA's NVML (libnvidia-ml.so.1), found at run time. */
#pragma once

#include "engine/tensor.h"

struct lk_device;
/* Joules since the driver was loaded, of the whole GPU, whoever used it. False where the device is no GPU, the library
 * is not there, or the GPU has no such counter (those before Volta, and parts of one). */
bool lk_cuda_joules(struct lk_device *dev, double *out);
