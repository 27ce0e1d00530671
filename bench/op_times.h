/* Time per kind of op: a device whose ops are timed on the way to the real ones.
 *
 *     bench_op_times_begin(dev);
 *     ... ops ...
 *     bench_op_times_end(dev);   // bench_op_times[BENCH_OP_linear].ns, ... */
#pragma once

#include "bench/bench.h"
#include "engine/ops.h"

enum bench_op {
#define BENCH_OP_ID(name, last) BENCH_OP_##name,
    LK_OPS(BENCH_OP_ID)
#undef BENCH_OP_ID
        BENCH_OP_COUNT
};

static const char *const bench_op_names[] = {
#define BENCH_OP_NAME(name, last) #name,
    LK_OPS(BENCH_OP_NAME)
#undef BENCH_OP_NAME
};

static struct {
    double ns, cpu_ns, flops, bytes;
    long calls;
} bench_op_times[BENCH_OP_COUNT];

static const struct lk_op_table *bench_timed_table;

#define BENCH_TIMED_OP(name, last)                                                                                     \
    static enum lk_code bench_timed_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch) {         \
        struct lk_cost cost = {0};                                                                                     \
        lk_check_##name(op, &cost);                                                                                    \
        double start = bench_now_ns(), cpu_start = bench_cpu_ns();                                                     \
        enum lk_code rc = bench_timed_table->name.run(dev, op, scratch);                                               \
        bench_op_times[BENCH_OP_##name].ns += bench_now_ns() - start;                                                  \
        bench_op_times[BENCH_OP_##name].cpu_ns += bench_cpu_ns() - cpu_start;                                          \
        bench_op_times[BENCH_OP_##name].flops += (double)cost.flops;                                                   \
        bench_op_times[BENCH_OP_##name].bytes += (double)cost.bytes;                                                   \
        bench_op_times[BENCH_OP_##name].calls++;                                                                       \
        return rc;                                                                                                     \
    }
LK_OPS(BENCH_TIMED_OP)
#undef BENCH_TIMED_OP

static inline void bench_op_times_begin(struct lk_device *dev) {
    static struct lk_op_table table;
    bench_timed_table = dev->table;
    table = *dev->table;
#define BENCH_SET_OP(name, last) table.name.run = bench_timed_##name;
    LK_OPS(BENCH_SET_OP)
#undef BENCH_SET_OP
    memset(bench_op_times, 0, sizeof bench_op_times);
    dev->table = &table;
}

static inline void bench_op_times_end(struct lk_device *dev) { dev->table = bench_timed_table; }
