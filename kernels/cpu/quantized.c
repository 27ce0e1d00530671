#include "kernels/cpu/quantized.h"

#include "engine/base/isa.h"

lk_dequantize_fn *lk_cpu_dequantize(void) {
#if defined(__x86_64__)
    enum lk_isa isa = lk_cpu_isa();
    if (isa >= LK_ISA_AVX512) return lk_dequantize_avx512;
    if (isa >= LK_ISA_AVX2) return lk_dequantize_avx2;
#endif
    return lk_dequantize;
}
