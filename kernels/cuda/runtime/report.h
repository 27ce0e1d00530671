/* What kernels report without being waited for; read where the host waits anyway. In device memory, and as the host's
 * copy of it. */
#pragma once

struct lk_cuda_report {
    unsigned long long nonfinite; /* counted since the last look */
};
