/* Attention on the CPU: time, GFLOP/s (4 S_q S_k heads head_dim; half of it when causal) and the share of what
 * register-only f32 multiply-adds reach in between on as many threads.
 *
 *     bench_attention [-o md|csv|json] [-r repetitions] [-t threads] [-s S]
 *
 * The processor may be shared: each repetition is followed by the probe, the best of each counts, and the share is
 * taken per core by CPU time, which waiting does not enter. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/probe.h"
#include "engine/base/alloc.h"
#include "engine/ops.h"
#include "kernels/cpu/cpu.h"

struct shape {
    const char *what;
    int64_t s_q, s_k, n_heads, n_kv_heads, head_dim;
    bool causal;
};

static const struct shape shapes[] = {
    {"DiT", 1024, 1024, 48, 48, 128, false},         {"DiT", 4608, 4608, 48, 48, 128, false},
    {"DiT", 8704, 8704, 48, 48, 128, false},         {"text encoder", 512, 512, 32, 8, 128, true},
    {"VAE mid block", 4096, 4096, 1, 1, 512, false}, {"VAE mid block", 16384, 16384, 1, 1, 384, false},
    {"vision tower", 4096, 4096, 16, 16, 80, false}, {"vision window", 64, 64, 16, 16, 80, false},
};

static void *random_values(enum lk_dtype dtype, int64_t n) {
    void *block = lk_malloc((size_t)n * lk_dtype_size(dtype));
    struct lk_tensor t = LK_TENSOR(block, dtype, n);
    uint64_t state = 1;
    for (int64_t i = 0; block && i < n; i++) {
        double sum = -6.0; /* twelve uniforms make a normal; after a million they repeat */
        for (int k = 0; k < 12 && i < 1 << 20; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sum += (double)(state >> 40) / 16777216.0;
        }
        lk_cpu_set(&t, i, i < 1 << 20 ? (float)sum : lk_cpu_get(&t, i & ((1 << 20) - 1)));
    }
    return block;
}

struct result {
    double best_ms, cpu_ms;         /* by the clock; of CPU time of all threads */
    double core_gflops, fma_gflops; /* of one core by CPU time: the op, f32 multiply-adds */
};

static void print_row(struct bench_table *table, const struct shape *s, enum lk_dtype dtype, const struct lk_cost *cost,
                      const struct result *r) {
    bench_text(table, "what", "%s%s", s->what, s->causal ? ", causal" : "");
    bench_number(table, "s_q", 0, (double)s->s_q);
    bench_number(table, "s_k", 0, (double)s->s_k);
    bench_number(table, "n_heads", 0, (double)s->n_heads);
    bench_number(table, "n_kv_heads", 0, (double)s->n_kv_heads);
    bench_number(table, "head_dim", 0, (double)s->head_dim);
    bench_number(table, "causal", 0, s->causal);
    bench_text(table, "dtype", "%s", lk_dtype_name(dtype));
    bench_number(table, "best_ms", 2, r->best_ms);
    bench_number(table, "cpu_ms", 2, r->cpu_ms);
    bench_number(table, "gflops", 1, (double)cost->flops / r->best_ms * 1e-6);
    bench_number(table, "core_gflops", 1, r->core_gflops);
    bench_number(table, "of_fma_probe", 3, r->fma_gflops > 0.0 ? r->core_gflops / r->fma_gflops : 0.0);
    bench_end_row(table);
}

static enum lk_code bench(struct lk_device *dev, const struct shape *s, enum lk_dtype dtype, int repetitions,
                          struct bench_table *table) {
    int64_t n_q = s->s_q * s->n_heads * s->head_dim, n_k = s->s_k * s->n_kv_heads * s->head_dim;
    void *blocks[4] = {random_values(dtype, n_q), random_values(dtype, n_k), random_values(dtype, n_k),
                       random_values(dtype, n_q)};
    enum lk_code rc = LK_OK;
    if (!blocks[0] || !blocks[1] || !blocks[2] || !blocks[3]) rc = lk_fail(LK_E_NOMEM, "bench: out of memory");
    struct lk_tensor q = LK_TENSOR(blocks[0], dtype, s->s_q, s->n_heads, s->head_dim);
    struct lk_tensor k = LK_TENSOR(blocks[1], dtype, s->s_k, s->n_kv_heads, s->head_dim), v = k, out = q;
    v.data = blocks[2], out.data = blocks[3];
    struct lk_attention op = {&out, &q, &k, &v, 1.0f / sqrtf((float)s->head_dim), s->causal};
    struct result r = {.best_ms = INFINITY, .cpu_ms = INFINITY};
    struct lk_cost cost = {0};
    if (!rc) rc = lk_check_attention(&op, &cost);
    if (!rc) rc = lk_device_prepare(dev, lk_cpu_attention_scratch(dev, &op) + (1 << 16));
    for (int i = 0; i < repetitions && !rc; i++) {
        double start = bench_now_ns(), cpu_start = bench_cpu_ns();
        rc = lk_attention(dev, &op);
        double ms = 1e-6 * (bench_now_ns() - start), cpu_ms = 1e-6 * (bench_cpu_ns() - cpu_start);
        struct probe probe = probe_fma(dev->n_threads);
        if (ms < r.best_ms) r.best_ms = ms;
        if (cpu_ms < r.cpu_ms) r.cpu_ms = cpu_ms;
        if (probe.core_gflops > r.fma_gflops) r.fma_gflops = probe.core_gflops;
    }
    r.core_gflops = (double)cost.flops / r.cpu_ms * 1e-6;
    if (!rc) print_row(table, s, dtype, &cost, &r);
    for (int i = 0; i < 4; i++) lk_free(blocks[i]);
    return rc;
}

int main(int argc, char **argv) {
    struct bench_table table = {.format = "md"};
    int repetitions = 5, n_threads = 0, option;
    int64_t only = 0;
    while ((option = getopt(argc, argv, "o:r:t:s:")) != -1) {
        if (option == 'o') table.format = optarg;
        if (option == 'r') repetitions = atoi(optarg);
        if (option == 't') n_threads = atoi(optarg);
        if (option == 's') only = atoll(optarg);
        if (option == '?') return 2;
    }
    struct lk_device *dev;
    enum lk_code rc = lk_device_cpu_create(n_threads, &dev);
    for (size_t i = 0; !rc && i < sizeof shapes / sizeof *shapes; i++)
        for (int dtype = LK_F32; !rc && dtype <= LK_BF16; dtype++) {
            if (only && shapes[i].s_q != only) continue;
            rc = bench(dev, &shapes[i], (enum lk_dtype)dtype, repetitions, &table);
        }
    bench_end(&table);
    if (rc) fprintf(stderr, "%s\n", lk_error_text());
    lk_device_free(dev);
    return lk_exit_code(rc);
}
