/* Ops that memory bounds, on the CPU: GB/s of what a call must read and write once (engine/ops_check.c), next to a
 * plain read of as many bytes by as many threads, taken in between.
 *
 *     bench_memory [-o md|csv|json] [-r repetitions] [-t threads]
 *
 * One row of a linear layer is a step of text generation, as is attention of one query; the other shapes are those of
 * an image of 1024 x 1024. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/probe.h"
#include "engine/ops.h"
#include "kernels/cpu/cpu.h"

struct run {
    struct lk_device *dev;
    struct bench_table table;
    int repetitions;
    enum lk_dtype dtype; /* of activations */
};

static enum lk_code fill(struct lk_device *dev, struct lk_tensor *t, enum lk_dtype dtype, int n_dims,
                         const int64_t *shape) {
    enum lk_code rc = lk_arena_tensor(&dev->arena, t, dtype, n_dims, shape);
    int64_t n = rc ? 0 : lk_tensor_numel(t);
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        lk_cpu_set(t, i, (float)(int32_t)state * 4e-10f);
    }
    return rc;
}
#define FILL(t, dtype, ...)                                                                                            \
    if ((rc = fill(r->dev, t, dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                        \
                   (int64_t[]){__VA_ARGS__})))                                                                         \
    return rc

typedef enum lk_code call_fn(struct lk_device *dev, const void *op);

static enum lk_code measure(struct run *r, const char *what, call_fn *call, const void *op, const void *probe_data,
                            uint64_t probe_bytes) {
    double samples[BENCH_MAX_SAMPLES], probe = 0.0;
    enum lk_code rc = call(r->dev, op); /* warms up */
    r->dev->cost = (struct lk_cost){0};
    for (int i = 0; i < r->repetitions && !rc; i++) {
        double start = bench_now_ns();
        rc = call(r->dev, op);
        samples[i] = bench_now_ns() - start;
        probe = fmax(probe, probe_read(r->dev->n_threads, probe_data, probe_bytes));
    }
    if (rc) return rc;
    struct bench_statistics s = bench_statistics(samples, r->repetitions);
    double gbs = (double)r->dev->cost.bytes / r->repetitions / s.min;
    bench_text(&r->table, "what", "%s", what);
    bench_text(&r->table, "dtype", "%s", lk_dtype_name(r->dtype));
    bench_number(&r->table, "MB", 1, (double)r->dev->cost.bytes / r->repetitions * 1e-6);
    bench_number(&r->table, "median_ms", 3, s.median * 1e-6);
    bench_number(&r->table, "best_ms", 3, s.min * 1e-6);
    bench_number(&r->table, "gb_per_s", 1, gbs);
    bench_number(&r->table, "read_gb_per_s", 1, probe);
    bench_number(&r->table, "of_read", 3, gbs / probe);
    bench_samples(&r->table, samples, r->repetitions);
    bench_end_row(&r->table);
    return LK_OK;
}

#define CALL(name)                                                                                                     \
    static enum lk_code call_##name(struct lk_device *dev, const void *op) { return lk_##name(dev, op); }
CALL(linear)
CALL(attention)
CALL(l2_norm)
CALL(rms_norm)
CALL(mean_rows)
CALL(posterior_sample)
CALL(guidance)
CALL(channel_affine)

static enum lk_code bench_linear(struct run *r, int64_t m, int64_t n, int64_t k) {
    struct lk_tensor x, w, y;
    enum lk_code rc;
    char what[64];
    snprintf(what, sizeof what, "linear %d x %d x %d", (int)m, (int)n, (int)k);
    FILL(&x, r->dtype, m, k);
    FILL(&w, LK_BF16, n, k);
    FILL(&y, r->dtype, m, n);
    return measure(r, what, call_linear, &(struct lk_linear){.y = &y, .x = &x, .w = &w}, w.data, lk_tensor_bytes(&w));
}

static enum lk_code bench_attention(struct run *r, int64_t n_q, int64_t n_k, int64_t heads, int64_t kv, int64_t hd) {
    struct lk_tensor q, k, v, y;
    enum lk_code rc;
    char what[64];
    snprintf(what, sizeof what, "attention %d x %d, %d/%d heads of %d", (int)n_q, (int)n_k, (int)heads, (int)kv,
             (int)hd);
    FILL(&q, r->dtype, n_q, heads, hd);
    FILL(&k, r->dtype, n_k, kv, hd);
    FILL(&v, r->dtype, n_k, kv, hd);
    FILL(&y, r->dtype, n_q, heads, hd);
    struct lk_attention op = {&y, &q, &k, &v, 1.0f / sqrtf((float)hd), n_q == 1};
    return measure(r, what, call_attention, &op, k.data, lk_tensor_bytes(&k));
}

static enum lk_code bench_rows(struct run *r) {
    struct lk_tensor x, y, z, w, v;
    enum lk_code rc;
    size_t mark = lk_arena_mark(&r->dev->arena);
    FILL(&x, r->dtype, 512 * 512, 192);
    FILL(&w, LK_BF16, 192);
    struct lk_l2_norm l2 = {&x, &x, &w, LK_ACT_SILU};
    if ((rc = measure(r, "l2_norm, SiLU", call_l2_norm, &l2, x.data, lk_tensor_bytes(&x)))) return rc;
    struct lk_rms_norm rms = {&x, &x, &w, 1e-6f, false};
    if ((rc = measure(r, "rms_norm", call_rms_norm, &rms, x.data, lk_tensor_bytes(&x)))) return rc;
    lk_arena_release(&r->dev->arena, mark);
    FILL(&x, r->dtype, 640, 3584);
    FILL(&y, r->dtype, 1, 3584);
    struct lk_mean_rows mean = {&y, &x};
    if ((rc = measure(r, "mean_rows", call_mean_rows, &mean, x.data, lk_tensor_bytes(&x)))) return rc;
    FILL(&x, r->dtype, 128, 128, 32);
    FILL(&y, r->dtype, 128, 128, 16);
    FILL(&z, r->dtype, 128, 128, 16);
    struct lk_posterior_sample sample = {&z, &x, &y};
    if ((rc = measure(r, "posterior_sample", call_posterior_sample, &sample, x.data, lk_tensor_bytes(&x)))) return rc;
    FILL(&w, r->dtype, 16);
    FILL(&v, r->dtype, 16);
    struct lk_tensor pixels = LK_VIEW(&z, 128 * 128, 16);
    struct lk_channel_affine affine = {&pixels, &pixels, &w, &v, true, false};
    if ((rc = measure(r, "channel_affine", call_channel_affine, &affine, x.data, lk_tensor_bytes(&x)))) return rc;
    FILL(&x, r->dtype, 4096, 64);
    FILL(&y, r->dtype, 4096, 64);
    FILL(&z, r->dtype, 4096, 64);
    struct lk_guidance guidance = {&z, &x, &y, LK_GUIDANCE_RESCALE, 4.0f, 0.4f};
    return measure(r, "guidance", call_guidance, &guidance, x.data, lk_tensor_bytes(&x));
}

static enum lk_code bench_all(struct run *r) {
    static const int64_t linears[][3] = {{1, 3584, 3584}, {1, 37888, 3584}, {1, 3584, 18944}, {1, 152064, 3584}};
    static const int64_t attentions[][5] = {{1, 512, 28, 4, 128}, {1, 4096, 28, 4, 128}, {64, 64, 16, 16, 80}};
    size_t mark = lk_arena_mark(&r->dev->arena);
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < sizeof linears / sizeof *linears && !rc; i++) {
        rc = bench_linear(r, linears[i][0], linears[i][1], linears[i][2]);
        lk_arena_release(&r->dev->arena, mark);
    }
    for (size_t i = 0; i < sizeof attentions / sizeof *attentions && !rc; i++) {
        const int64_t *a = attentions[i];
        rc = bench_attention(r, a[0], a[1], a[2], a[3], a[4]);
        lk_arena_release(&r->dev->arena, mark);
    }
    if (!rc) rc = bench_rows(r);
    lk_arena_release(&r->dev->arena, mark);
    return rc;
}

int main(int argc, char **argv) {
    struct run r = {.table = {.format = "md"}, .repetitions = 5};
    int threads = 0;
    for (int c; (c = getopt(argc, argv, "o:r:t:")) != -1;) {
        if (c == 'o') r.table.format = optarg;
        if (c == 'r') r.repetitions = atoi(optarg);
        if (c == 't') threads = atoi(optarg);
        if (c == '?') return 2;
    }
    if (!bench_format_known(r.table.format) || r.repetitions < 1 || r.repetitions > BENCH_MAX_SAMPLES) {
        fprintf(stderr, "usage: bench_memory [-o md|csv|json] [-r 1..%d] [-t threads]\n", BENCH_MAX_SAMPLES);
        return 2;
    }
    enum lk_code rc = lk_device_cpu_create(threads, &r.dev);
    if (!rc) {
        rc = lk_device_prepare(r.dev, (size_t)1200 << 20);
        r.dtype = LK_BF16;
        if (!rc) rc = bench_all(&r);
        r.dtype = LK_F32;
        if (!rc) rc = bench_all(&r);
        bench_end(&r.table);
        lk_device_free(r.dev);
    }
    if (rc) fprintf(stderr, "bench_memory: %s\n", lk_error_text());
    return rc ? lk_exit_code(rc) : 0;
}
