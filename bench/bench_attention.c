/* Attention on the CPU: time, GFLOP/s (4 S_q S_k heads head_dim; half of it when causal) and the share of what
 * register-only f32 multiply-adds reach in between on as many threads.
 *
 *     bench_attention [-o md|csv|json] [-r repetitions] [-t threads] [-s S]
 *
 * The processor may be shared: each repetition is followed by the probe, and the best of each is reported. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/probe.h"
#include "engine/alloc.h"
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
    {"VAE mid block", 4096, 4096, 1, 1, 512, false}, {"vision tower", 4096, 4096, 16, 16, 80, false},
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *random_values(enum lk_dtype dtype, int64_t n) {
    void *block = lk_malloc((size_t)n * lk_dtype_size(dtype));
    struct lk_tensor t = LK_TENSOR(block, dtype, n);
    uint64_t state = 1;
    for (int64_t i = 0; block && i < n; i++) {
        double sum = -6.0; /* twelve uniforms make a normal */
        for (int k = 0; k < 12; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sum += (double)(state >> 40) / 16777216.0;
        }
        lk_cpu_set(&t, i, (float)sum);
        if (i >= 1 << 20) { /* the rest repeats */
            lk_cpu_set(&t, i, lk_cpu_get(&t, i & ((1 << 20) - 1)));
        }
    }
    return block;
}

static void print_row(const char *format, bool first, const struct shape *s, enum lk_dtype dtype, double ms,
                      double gflops, double peak) {
    if (!strcmp(format, "csv")) {
        if (first) printf("what,s_q,s_k,n_heads,n_kv_heads,head_dim,causal,dtype,ms,gflops,probe_gflops,share\n");
        printf("%s,%lld,%lld,%lld,%lld,%lld,%d,%s,%.2f,%.1f,%.1f,%.3f\n", s->what, (long long)s->s_q, (long long)s->s_k,
               (long long)s->n_heads, (long long)s->n_kv_heads, (long long)s->head_dim, s->causal, lk_dtype_name(dtype),
               ms, gflops, peak, gflops / peak);
    } else if (!strcmp(format, "json")) {
        printf("%s{\"what\": \"%s\", \"s_q\": %lld, \"s_k\": %lld, \"n_heads\": %lld, \"n_kv_heads\": %lld, "
               "\"head_dim\": %lld, \"causal\": %s, \"dtype\": \"%s\", \"ms\": %.2f, \"gflops\": %.1f, "
               "\"probe_gflops\": %.1f}\n",
               first ? "[" : ", ", s->what, (long long)s->s_q, (long long)s->s_k, (long long)s->n_heads,
               (long long)s->n_kv_heads, (long long)s->head_dim, s->causal ? "true" : "false", lk_dtype_name(dtype), ms,
               gflops, peak);
    } else {
        if (first)
            printf("| what | S_q x S_k | heads x head_dim | dtype | ms | GFLOP/s | of f32 probe "
                   "|\n|---|---|---|---|---|---|---|\n");
        printf("| %s%s | %lld x %lld | %lld x %lld | %s | %.1f | %.0f | %.0f %% |\n", s->what,
               s->causal ? ", causal" : "", (long long)s->s_q, (long long)s->s_k, (long long)s->n_heads,
               (long long)s->head_dim, lk_dtype_name(dtype), ms, gflops, 100.0 * gflops / peak);
    }
    fflush(stdout);
}

static enum lk_code bench(struct lk_device *dev, const struct shape *s, enum lk_dtype dtype, int repetitions,
                          const char *format, bool first) {
    int64_t n_q = s->s_q * s->n_heads * s->head_dim, n_k = s->s_k * s->n_kv_heads * s->head_dim;
    void *blocks[4] = {random_values(dtype, n_q), random_values(dtype, n_k), random_values(dtype, n_k),
                       random_values(dtype, n_q)};
    enum lk_code rc = LK_OK;
    if (!blocks[0] || !blocks[1] || !blocks[2] || !blocks[3]) rc = lk_fail(LK_E_NOMEM, "bench: out of memory");
    struct lk_tensor q = LK_TENSOR(blocks[0], dtype, s->s_q, s->n_heads, s->head_dim);
    struct lk_tensor k = LK_TENSOR(blocks[1], dtype, s->s_k, s->n_kv_heads, s->head_dim), v = k, out = q;
    v.data = blocks[2], out.data = blocks[3];
    struct lk_attention op = {&out, &q, &k, &v, 1.0f / sqrtf((float)s->head_dim), s->causal};
    double best = INFINITY, peak = 0.0;
    if (!rc) rc = lk_device_prepare(dev, lk_cpu_attention_scratch(dev, &op) + (1 << 16));
    for (int i = 0; i < repetitions && !rc; i++) {
        double start = seconds();
        rc = lk_attention(dev, &op);
        double took = seconds() - start, rate = probe_fma(dev->n_threads);
        if (took < best) best = took;
        if (rate > peak) peak = rate;
    }
    struct lk_cost cost = {0};
    if (!rc) rc = lk_check_attention(&op, &cost);
    if (!rc) print_row(format, first, s, dtype, 1e3 * best, (double)cost.flops / best * 1e-9, peak);
    for (int i = 0; i < 4; i++) lk_free(blocks[i]);
    return rc;
}

int main(int argc, char **argv) {
    const char *format = "md";
    int repetitions = 5, n_threads = 0, option;
    int64_t only = 0;
    while ((option = getopt(argc, argv, "o:r:t:s:")) != -1) {
        if (option == 'o') format = optarg;
        if (option == 'r') repetitions = atoi(optarg);
        if (option == 't') n_threads = atoi(optarg);
        if (option == 's') only = atoll(optarg);
        if (option == '?') return 2;
    }
    struct lk_device *dev;
    enum lk_code rc = lk_device_cpu_create(n_threads, &dev);
    bool first = true;
    for (size_t i = 0; !rc && i < sizeof shapes / sizeof *shapes; i++)
        for (int dtype = LK_F32; !rc && dtype <= LK_BF16; dtype++) {
            if (only && shapes[i].s_q != only) continue;
            rc = bench(dev, &shapes[i], (enum lk_dtype)dtype, repetitions, format, first);
            first = false;
        }
    if (!strcmp(format, "json")) printf("]\n");
    if (rc) fprintf(stderr, "%s\n", lk_error_text());
    lk_device_free(dev);
    return lk_exit_code(rc);
}
