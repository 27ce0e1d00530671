/* The least time an A100-SXM4-80GB needs for a launch, by resource, as if latencies were hidden and everything
 * overlapped. A model, not a measurement:
 *
 *   tensor  multiply-adds per SM and clock of each type (1,024 for bf16 and f16)
 *   issue   4 instructions of warps per SM and clock, machine instructions as machine.c estimates them
 *   units   f32 2, f16 4, f64 1, special functions 1/2, shuffles 1 instructions of warps per SM and clock. Integer
 *           instructions and conversions are left out: the assembler removes and merges too many of them
 *   shared  one wavefront (128 bytes) per SM and clock
 *   l2      sectors that the modelled L1 does not have, 5,120 bytes per clock in all
 *   hbm     unique bytes at the nominal 2,039 GB/s: what a perfect L2 would leave
 *
 * What an SM does by itself is quantised: the SM with the most blocks takes the longest. */
#include "counters/counts.h"

static const double clock_hz = 1.41e9, l2_bytes_per_clock = 5120, hbm_bytes_per_second = 2.039e12;

/* Per SM and clock, times two for multiply and add. */
static const double tensor_flops_per_clock[GPUSIM_N_TENSORS] = {
    [GPUSIM_TENSOR_F16] = 2048,  [GPUSIM_TENSOR_BF16] = 2048, [GPUSIM_TENSOR_TF32] = 1024,
    [GPUSIM_TENSOR_INT8] = 4096, [GPUSIM_TENSOR_F64] = 128,
};
static const struct {
    enum gpusim_class cls;
    double per_clock;
} units[] = {
    {GPUSIM_CLASS_F32, 2},       {GPUSIM_CLASS_F16, 4},  {GPUSIM_CLASS_F64, 1},
    {GPUSIM_CLASS_SPECIAL, 0.5}, {GPUSIM_CLASS_WARP, 1},
};

/* Clocks of one SM if the work were spread evenly. */
static double tensor_clocks(const struct gpusim_counts *c) {
    double clocks = 0;
    for (int t = 0; t < GPUSIM_N_TENSORS; t++) clocks += c->tensor_flops[t] / tensor_flops_per_clock[t];
    return clocks / GPUSIM_N_SMS;
}
static double issue_clocks(const struct gpusim_counts *c) { return c->machine_issued / 4 / GPUSIM_N_SMS; }
static double unit_clocks(const struct gpusim_counts *c) {
    double most = 0;
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        double clocks = c->issued[units[u].cls] / units[u].per_clock / GPUSIM_N_SMS;
        if (clocks > most) most = clocks;
    }
    return most;
}
static double shared_clocks(const struct gpusim_counts *c) {
    double wavefronts = 0;
    for (int t = 0; t < GPUSIM_N_TRAFFIC; t++) wavefronts += c->shared[t].wavefronts;
    return wavefronts / GPUSIM_N_SMS;
}

void gpusim_find_bound(struct gpusim_counts *c) {
    double most_per_sm = (double)(((uint64_t)c->blocks + GPUSIM_N_SMS - 1) / GPUSIM_N_SMS);
    c->quantised_blocks = most_per_sm * GPUSIM_N_SMS;
    double stretch = c->blocks > 0 ? c->quantised_blocks / c->blocks : 1, sectors = 0;
    if (c->blocks_per_sm) {
        uint64_t slots = (uint64_t)GPUSIM_N_SMS * c->blocks_per_sm;
        c->waves = (double)(((uint64_t)c->blocks + slots - 1) / slots);
    }
    for (int t = 0; t < GPUSIM_N_TRAFFIC; t++) sectors += c->global[t].l2_sectors;
    c->seconds[GPUSIM_BOUND_TENSOR] = tensor_clocks(c) * stretch / clock_hz;
    c->seconds[GPUSIM_BOUND_ISSUE] = issue_clocks(c) * stretch / clock_hz;
    c->seconds[GPUSIM_BOUND_UNITS] = unit_clocks(c) * stretch / clock_hz;
    c->seconds[GPUSIM_BOUND_SHARED] = shared_clocks(c) * stretch / clock_hz;
    c->seconds[GPUSIM_BOUND_L2] = sectors * 32 / l2_bytes_per_clock / clock_hz;
    c->seconds[GPUSIM_BOUND_HBM] = (c->unique_read + c->unique_written) / hbm_bytes_per_second;
    for (int b = 0; b < GPUSIM_N_BOUNDS; b++)
        if (c->seconds[b] > c->bound_seconds) c->bound_seconds = c->seconds[b];
}
