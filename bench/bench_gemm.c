/* Matrix products of FLUX.2's layers on the CPU: bench_gemm [-o md|csv|json] [-r REPETITIONS] [-m ROWS[,ROWS...]]
 * [-t THREADS] [-p f32|bf16w|bf16|nf4|q8|fp8|q8_0|q4_0|q4_k|q5_k|q6_k] [-s N,K]
 *
 * Between the repetitions a probe measures what the arithmetic units can do at that moment; "of peak" is the median of
 * the repetitions over the median of the probes. "by CPU time" is the same with seconds of the process's CPU time, in
 * which waiting for cores that other programs hold does not count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/probe.h"
#include "engine/ops.h"
#include "kernels/cpu/cpu.h"

#define MAX_REPETITIONS 100

struct path {
    const char *name;
    enum lk_dtype x, w;
};
static const struct path paths[] = {
    {"f32", LK_F32, LK_F32},    {"bf16w", LK_F32, LK_BF16},   {"bf16", LK_BF16, LK_BF16}, {"nf4", LK_BF16, LK_NF4},
    {"q8", LK_BF16, LK_Q8},     {"fp8", LK_BF16, LK_F8_E4M3}, {"q8_0", LK_BF16, LK_Q8_0}, {"q4_0", LK_BF16, LK_Q4_0},
    {"q4_k", LK_BF16, LK_Q4_K}, {"q5_k", LK_BF16, LK_Q5_K},   {"q6_k", LK_BF16, LK_Q6_K}};

/* Output and input width of FLUX.2's layers, D = 6144. */
static const int64_t shapes[][2] = {{6144, 6144},  {18432, 6144}, {36864, 6144},
                                    {55296, 6144}, {6144, 18432}, {6144, 24576}};

struct options {
    const char *format, *path;
    int repetitions, threads;
    int64_t rows[8], n, k;
    int n_rows;
};

struct result {
    double ms[MAX_REPETITIONS], probe[MAX_REPETITIONS];         /* GFLOP/s */
    double cpu_ms[MAX_REPETITIONS], cpu_probe[MAX_REPETITIONS]; /* of one core, by CPU time */
};

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill(const struct lk_tensor *t) {
    int64_t n = lk_tensor_numel(t);
    uint32_t state = 1;
    if (lk_tensor_is_quantized(t)) { /* codes and f16 fields that are sane */
        memset(t->data, 0x2c, lk_tensor_bytes(t));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        lk_cpu_set(t, i, (float)(int32_t)state * 4e-10f);
    }
}

static enum lk_code measure(struct lk_device *dev, const struct path *path, int64_t m, int64_t n, int64_t k,
                            int repetitions, bool tile_probe, struct result *out) {
    struct lk_tensor x, w, y;
    enum lk_code rc;
    size_t mark = lk_arena_mark(&dev->arena);
    if ((rc = LK_NEW(&dev->arena, &x, path->x, m, k)) || (rc = LK_NEW(&dev->arena, &w, path->w, n, k)) ||
        (rc = LK_NEW(&dev->arena, &y, path->x, m, n)))
        return rc;
    fill(&x);
    fill(&w);
    if (path->w == LK_NF4 || path->w == LK_Q8) {
        struct lk_tensor scales;
        if ((rc = LK_NEW(&dev->arena, &scales, LK_BF16, (n * k + 63) / 64))) return rc;
        fill(&scales);
        w.scales = (struct lk_scales){scales.data, LK_BF16, 64};
    }
    for (int i = -1; i < repetitions && !rc; i++) {
        double start = omp_get_wtime(), cpu_start = probe_cpu_seconds();
        rc = lk_linear(dev, &(struct lk_linear){.y = &y, .x = &x, .w = &w});
        double ms = 1e3 * (omp_get_wtime() - start), cpu_ms = 1e3 * (probe_cpu_seconds() - cpu_start);
        struct probe probe = tile_probe ? probe_amx(dev->n_threads) : probe_fma(dev->n_threads);
        if (i < 0) continue;
        out->ms[i] = ms;
        out->cpu_ms[i] = cpu_ms;
        out->probe[i] = probe.gflops;
        out->cpu_probe[i] = probe.core_gflops;
    }
    lk_arena_release(&dev->arena, mark);
    return rc;
}

static void print(const struct options *o, const struct lk_device *dev, const char *path, int64_t m, int64_t n,
                  int64_t k, struct result *r) {
    static bool started;
    int count = o->repetitions;
    bool json = !strcmp(o->format, "json"), csv = !strcmp(o->format, "csv");
    char samples[MAX_REPETITIONS * 24] = "";
    for (int i = 0, at = 0; i < count; i++)
        at += snprintf(samples + at, sizeof samples - (size_t)at, "%s%.0f", i ? ", " : "", r->ms[i] * 1e6);
    qsort(r->ms, (size_t)count, sizeof(double), ascending);
    qsort(r->probe, (size_t)count, sizeof(double), ascending);
    qsort(r->cpu_ms, (size_t)count, sizeof(double), ascending);
    qsort(r->cpu_probe, (size_t)count, sizeof(double), ascending);
    double median = r->ms[count / 2], best = r->ms[0], flops = 2e-6 * (double)m * (double)n * (double)k;
    double probe = r->probe[count / 2], core_probe = r->cpu_probe[count / 2];
    double share = probe > 0 ? flops / median / probe : 0;
    double cpu_share = core_probe > 0 ? flops / r->cpu_ms[count / 2] / core_probe : 0;
    if (json)
        printf("%s{\"op\": \"linear\", \"path\": \"%s\", \"device\": \"%s\", \"m\": %ld, \"n\": %ld, \"k\": %ld, "
               "\"median_ms\": %.3f, \"best_ms\": %.3f, \"gflops\": %.1f, \"probe_gflops\": %.1f, \"share\": %.3f, "
               "\"cpu_ms\": %.3f, "
               "\"cpu_share\": %.3f, \"samples_ns\": [%s]}\n",
               started ? ", " : "[", path, dev->name, (long)m, (long)n, (long)k, median, best, flops / median, probe,
               share, r->cpu_ms[count / 2], cpu_share, samples);
    else if (csv)
        printf("%s%s,\"%s\",%ld,%ld,%ld,%.3f,%.3f,%.1f,%.1f,%.1f,%.3f,%.3f,%.3f\n",
               started ? ""
                       : "path,device,m,n,k,median_ms,best_ms,gflops,best_gflops,probe_gflops,share,cpu_ms,cpu_share\n",
               path, dev->name, (long)m, (long)n, (long)k, median, best, flops / median, flops / best, probe, share,
               r->cpu_ms[count / 2], cpu_share);
    else
        printf("%s| %s | %ld x %ld x %ld | %.2f | %.2f | %.0f | %.0f | %.0f | %.1f %% | %.1f %% |\n",
               started ? ""
                       : "| path | M x N x K | median ms | best ms | GFLOP/s | best | probe | of peak | by CPU time |\n"
                         "|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
               path, (long)m, (long)n, (long)k, median, best, flops / median, flops / best, probe, 100 * share,
               100 * cpu_share);
    started = true;
    fflush(stdout);
}

static int usage(void) {
    fprintf(stderr,
            "usage: bench_gemm [-o md|csv|json] [-r REPETITIONS 1..%d] [-m ROWS[,ROWS...]] [-t THREADS] "
            "[-p f32|bf16w|bf16|nf4|q8|fp8|q8_0|q4_0|q4_k|q5_k|q6_k] [-s N,K]\n",
            MAX_REPETITIONS);
    return 2;
}

static bool parse(struct options *o, int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        if (argv[i][0] != '-' || !argv[i][1] || argv[i][2] || i + 1 == argc) return false;
        char *value = argv[i + 1], *end = value;
        switch (argv[i][1]) {
        case 'o':
            o->format = value;
            break;
        case 'p':
            o->path = value;
            break;
        case 'r':
            o->repetitions = atoi(value);
            break;
        case 't':
            o->threads = atoi(value);
            break;
        case 'm':
            for (o->n_rows = 0; o->n_rows < 8 && *end; end += *end == ',')
                if ((o->rows[o->n_rows++] = strtol(end, &end, 10)) < 1) return false;
            break;
        case 's':
            o->n = strtol(value, &end, 10);
            o->k = *end ? strtol(end + 1, NULL, 10) : 0;
            if (o->n < 1 || o->k < 1) return false;
            break;
        default:
            return false;
        }
    }
    return o->repetitions >= 1 && o->repetitions <= MAX_REPETITIONS && o->threads >= 0 && o->n_rows > 0;
}

static enum lk_code run_all(const struct options *o, struct lk_device *dev) {
    struct result r;
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        if (o->path && strcmp(o->path, paths[p].name) != 0) continue;
        bool tile_probe = paths[p].x == LK_BF16 && lk_cpu_isa() >= LK_ISA_AMX;
        for (int i = 0; i < o->n_rows; i++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                int64_t n = o->n ? o->n : shapes[s][0], k = o->n ? o->k : shapes[s][1];
                enum lk_code rc = measure(dev, &paths[p], o->rows[i], n, k, o->repetitions, tile_probe, &r);
                if (rc) return rc;
                print(o, dev, paths[p].name, o->rows[i], n, k, &r);
                if (o->n) break;
            }
    }
    if (!strcmp(o->format, "json")) printf("]\n");
    return LK_OK;
}

int main(int argc, char **argv) {
    struct options o = {.format = "md", .repetitions = 5, .rows = {1024, 1536}, .n_rows = 2};
    if (!parse(&o, argc, argv)) return usage();
    struct lk_device *dev;
    enum lk_code rc = lk_device_cpu_create(o.threads, &dev);
    if (!rc) {
        rc = lk_device_prepare(dev, (size_t)3 << 30);
        if (!rc) rc = run_all(&o, dev);
        lk_device_free(dev);
    }
    if (rc) fprintf(stderr, "bench_gemm: %s\n", lk_error_text());
    return rc ? lk_exit_code(rc) : 0;
}
