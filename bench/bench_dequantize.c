/* Nanoseconds of CPU time in which one thread turns a packed weight into bf16: bench_dequantize [-o md|csv|json]
 * [-r REPETITIONS]. A matrix of 3072 x 3072, in runs of 128 elements, as products decode their panels. */
#include <getopt.h>

#include "bench/bench.h"
#include "engine/base/alloc.h"
#include "kernels/cpu/quantized.h"

enum { SIDE = 3072, RUN = 128 };

static int measure(struct bench_table *table, enum lk_dtype dtype, int repetitions) {
    struct lk_tensor t = LK_TENSOR(NULL, dtype, SIDE, SIDE);
    static uint16_t scales[SIDE * SIDE / 64], out[RUN];
    double samples[BENCH_MAX_SAMPLES];
    const size_t bytes = lk_tensor_bytes(&t);
    if (!(t.data = lk_malloc(bytes))) return 1;
    memset(t.data, 0x2c, bytes);
    memset(scales, 0x3c, sizeof scales);
    if (dtype < LK_Q8_0) t.scales = (struct lk_scales){scales, LK_BF16, dtype >= LK_NF4 ? 64 : 0};
    for (int r = -1; r < repetitions; r++) {
        const double start = bench_cpu_ns();
        for (int64_t i = 0; i < (int64_t)SIDE * SIDE; i += RUN) lk_cpu_dequantize()(&t, i, RUN, out);
        if (r >= 0) samples[r] = (bench_cpu_ns() - start) / ((double)SIDE * SIDE);
    }
    bench_text(table, "format", "%s", lk_dtype_name(dtype));
    bench_number(table, "ns_per_weight", 3, bench_statistics(samples, repetitions).median);
    bench_number(table, "best", 3, bench_statistics(samples, repetitions).min);
    bench_end_row(table);
    lk_free(t.data);
    return 0;
}

int main(int argc, char **argv) {
    struct bench_table table = {.format = "md"};
    int repetitions = 9, failed = 0;
    for (int option; (option = getopt(argc, argv, "o:r:")) != -1;) {
        if (option == 'o') table.format = optarg;
        if (option == 'r') repetitions = atoi(optarg);
    }
    if (!bench_format_known(table.format) || repetitions < 1 || repetitions > BENCH_MAX_SAMPLES) {
        fprintf(stderr, "usage: bench_dequantize [-o md|csv|json] [-r REPETITIONS]\n");
        return 1;
    }
    for (int d = LK_FIRST_QUANTIZED; d < LK_DTYPE_COUNT; d++) failed |= measure(&table, (enum lk_dtype)d, repetitions);
    bench_end(&table);
    return failed;
}
