/* What kernels report without being waited for; read where the host waits anyway. In device memory, and as the host's
 * copy of it. */
#pragma once

struct lk_cuda_report {
    unsigned long long nonfinite; /* counted since the last look */
};
#define LK_CUDA_REPORT_BYTES (sizeof(struct lk_cuda_report) + 4) /* the last ones are read by pulse.h alone */
