/* ggml's MUL_MAT on the shapes of bench_gemm, beside bench_gemm's own linear, one repetition of each in turn.
 *
 * ggml is not part of this repository; its sources come with the PyPI source package stable-diffusion-cpp-python
 * (vendor/stable-diffusion.cpp/ggml). With GGML its folder:
 *
 *     cmake -S $GGML -B ggml-build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON
 *     cmake --build ggml-build --target ggml
 *     cc -std=c11 -D_GNU_SOURCE -O2 -fopenmp -I. -I$GGML/include bench/peers/ggml_gemm.c build/liblk_kernels.a \
 *        build/liblk_engine.a ggml-build/src/libggml.a ggml-build/src/libggml-cpu.a ggml-build/src/libggml-base.a \
 *        -lstdc++ -lm -ljpeg -lpng -o ggml_gemm
 *     ./ggml_gemm [ROWS [REPETITIONS [THREADS [quantised]]]]
 *
 * "quantised": GGUF's types instead, whose product ggml does in integers, with activations rounded to 8 bits.
 *
 * ggml's activations are f32; with bf16 and f16 weights it rounds them to that type first, so its bf16 product is
 * compared with ours of f32 activations (more accurate) and of bf16 activations (the same accuracy). */
#include <ggml.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/ops.h"

static const int64_t shapes[][2] = {{6144, 6144},  {18432, 6144}, {36864, 6144},
                                    {55296, 6144}, {6144, 18432}, {6144, 24576}};
#define MOST 50

struct timing {
    double wall[MOST], cpu[MOST];
};

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, struct timing *t, int n, double gflop) {
    qsort(t->wall, (size_t)n, sizeof(double), ascending);
    qsort(t->cpu, (size_t)n, sizeof(double), ascending);
    printf(" %s %.0f (best %.0f; %.0f per core by CPU time) |", name, gflop / t->wall[n / 2], gflop / t->wall[0],
           gflop / t->cpu[n / 2]);
    fflush(stdout);
}

struct peer {
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t buffer;
};

static struct peer peer_make(ggml_backend_t backend, enum ggml_type type, int64_t m, int64_t n, int64_t k) {
    struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    struct peer p = {.context = ggml_init(params)};
    struct ggml_tensor *w = ggml_new_tensor_2d(p.context, type, k, n);
    struct ggml_tensor *x = ggml_new_tensor_2d(p.context, GGML_TYPE_F32, k, m);
    p.graph = ggml_new_graph(p.context);
    ggml_build_forward_expand(p.graph, ggml_mul_mat(p.context, w, x));
    p.buffer = ggml_backend_alloc_ctx_tensors(p.context, backend);
    ggml_backend_buffer_clear(p.buffer, 0x11); /* small finite numbers in each type */
    return p;
}

static void peer_drop(struct peer *p) {
    ggml_backend_buffer_free(p->buffer);
    ggml_free(p->context);
}

static enum lk_code measure(struct lk_device *dev, ggml_backend_t backend, enum ggml_type type, enum lk_dtype w_dtype,
                            int64_t m, int64_t n, int64_t k, int repetitions) {
    static struct timing theirs, ours_f32, ours_bf16;
    struct timing *ours[2] = {&ours_f32, &ours_bf16};
    struct peer p = peer_make(backend, type, m, n, k);
    size_t mark = lk_arena_mark(&dev->arena);
    struct lk_tensor w, x[2], y[2];
    enum lk_code rc = LK_NEW(&dev->arena, &w, w_dtype, n, k);
    int n_ours = w_dtype == LK_F32 ? 1 : 2;
    for (int i = 0; i < n_ours && !rc; i++) {
        enum lk_dtype dtype = i ? LK_BF16 : LK_F32;
        if ((rc = LK_NEW(&dev->arena, &x[i], dtype, m, k)) || (rc = LK_NEW(&dev->arena, &y[i], dtype, m, n))) break;
        memset(x[i].data, 0x11, lk_tensor_bytes(&x[i]));
    }
    if (!rc) memset(w.data, 0x11, lk_tensor_bytes(&w)); /* GGUF's blocks hold their scales */
    for (int r = -1; r < repetitions && !rc; r++) {
        double start = omp_get_wtime(), cpu = cpu_seconds();
        ggml_backend_graph_compute(backend, p.graph);
        if (r >= 0) theirs.wall[r] = omp_get_wtime() - start, theirs.cpu[r] = cpu_seconds() - cpu;
        for (int i = 0; i < n_ours && !rc; i++) {
            start = omp_get_wtime(), cpu = cpu_seconds();
            rc = lk_linear(dev, &(struct lk_linear){.y = &y[i], .x = &x[i], .w = &w});
            if (r >= 0) ours[i]->wall[r] = omp_get_wtime() - start, ours[i]->cpu[r] = cpu_seconds() - cpu;
        }
    }
    double gflop = 2e-9 * (double)m * (double)n * (double)k;
    printf("| %s %ld x %ld |", ggml_type_name(type), (long)n, (long)k);
    report("ggml", &theirs, repetitions, gflop);
    report("ours, f32 x", &ours_f32, repetitions, gflop);
    if (n_ours == 2) report("ours, bf16 x", &ours_bf16, repetitions, gflop);
    printf("\n");
    lk_arena_release(&dev->arena, mark);
    peer_drop(&p);
    return rc;
}

static enum lk_code measure_quantised(struct lk_device *dev, ggml_backend_t backend, int64_t m, int repetitions) {
    static const struct {
        enum ggml_type theirs;
        enum lk_dtype ours;
    } types[] = {{GGML_TYPE_Q8_0, LK_Q8_0},
                 {GGML_TYPE_Q4_0, LK_Q4_0},
                 {GGML_TYPE_Q4_K, LK_Q4_K},
                 {GGML_TYPE_Q5_K, LK_Q5_K},
                 {GGML_TYPE_Q6_K, LK_Q6_K}};
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types && !rc; i++)
        rc = measure(dev, backend, types[i].theirs, types[i].ours, m, 3072, 3072, repetitions);
    return rc;
}

int main(int argc, char **argv) {
    int64_t m = argc > 1 ? atoi(argv[1]) : 1024;
    int repetitions = argc > 2 ? atoi(argv[2]) : 5, threads = argc > 3 ? atoi(argv[3]) : 2;
    if (m < 1 || repetitions < 1 || repetitions > MOST || threads < 1) return 2;
    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, threads);
    struct lk_device *dev;
    enum lk_code rc = lk_device_cpu_create(threads, &dev);
    if (!rc) rc = lk_device_prepare(dev, (size_t)4 << 30);
    printf("GFLOP/s by the clock, M = %ld, %d threads\n", (long)m, threads);
    const bool quantised = argc > 4;
    if (!rc && quantised) rc = measure_quantised(dev, backend, m, repetitions);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !rc && !quantised; i++) {
        rc = measure(dev, backend, GGML_TYPE_BF16, LK_BF16, m, shapes[i][0], shapes[i][1], repetitions);
        if (!rc && i < 2)
            rc = measure(dev, backend, GGML_TYPE_F16, LK_BF16, m, shapes[i][0], shapes[i][1], repetitions);
        if (!rc && i < 2) rc = measure(dev, backend, GGML_TYPE_F32, LK_F32, m, shapes[i][0], shapes[i][1], repetitions);
    }
    if (rc) fprintf(stderr, "ggml_gemm: %s\n", lk_error_text());
    lk_device_free(dev);
    ggml_backend_free(backend);
    return rc ? 1 : 0;
}
