/* Times of the cuda device's ops at real sizes, beside cuBLASLt and cuDNN where they are installed.
 *
 *     build/bench_ops [-o md|csv|json] [-r REPETITIONS] [-k WORD] [-d DEVICE] [-s real|tiny] [-b SECONDS]
 *
 * -k: only cases whose op or description has the word. -b: after so many seconds the remaining cases are left out, and
 * the number of those is printed. -s tiny: small shapes, to try the program itself, the only ones that a simulated GPU
 * takes: its times mean nothing.
 *
 * A sample is the time between two events with so many calls between them that it takes 2 ms or more, over their
 * number; a call before them warms up. us, sd: mean and standard deviation of a call. tflops and gbs: the op's FLOPs,
 * and the bytes that it must read and write once, over the mean. ratio: the library's time over ours; above 1 ours is
 * the faster. A library's column is empty where it does not take the call. */
#include <getopt.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/kernels_model.h"
#include "kernels/cuda/cuda.h"

#define SAMPLE_MS  2.0
#define MOST_CALLS 2000 /* of a sample */
#define ARENA_REAL ((size_t)6 << 30)
#define ARENA_TINY ((size_t)64 << 20)

struct options {
    const char *word;
    int repetitions, device;
    bool tiny;
    double seconds; /* 0: no limit */
    struct bench_table table;
};

/* The measurement that the device's ops are in while a case runs. */
static struct {
    const struct lk_op_table *table; /* the device's own */
    lk_cu_event start, stop;
    int repetitions;
    bool cublaslt, cudnn; /* there are */
    double ns[BENCH_MAX_SAMPLES];
} now;

typedef enum lk_code run_fn(struct lk_device *dev, const void *op, void *scratch);

/* Milliseconds of n calls. */
static enum lk_code time_calls(struct lk_device *dev, run_fn *run, const void *op, void *scratch, int n, double *ms) {
    const lk_cu_stream stream = lk_cuda_device_of(dev)->stream;
    float between;
    LK_TRY(LK_CU(event_record, (now.start, stream), "a time"));
    for (int i = 0; i < n; i++) LK_TRY(run(dev, op, scratch));
    LK_TRY(LK_CU(event_record, (now.stop, stream), "a time"));
    LK_TRY(LK_CU(event_synchronize, (now.stop), "a time"));
    LK_TRY(LK_CU(event_elapsed, (&between, now.start, now.stop), "a time"));
    *ms = (double)between;
    return LK_OK;
}

static enum lk_code measure(struct lk_device *dev, run_fn *run, const void *op, void *scratch) {
    double ms;
    LK_TRY(run(dev, op, scratch));
    LK_TRY(time_calls(dev, run, op, scratch, 1, &ms));
    const double wanted = ms > 0 ? ceil(SAMPLE_MS / ms) : MOST_CALLS;
    const int n = wanted < MOST_CALLS ? (int)wanted : MOST_CALLS;
    for (int i = 0; i < now.repetitions; i++) {
        LK_TRY(time_calls(dev, run, op, scratch, n, &ms));
        now.ns[i] = 1e6 * ms / n;
    }
    return LK_OK;
}

#define MEASURED_OP(name, last)                                                                                        \
    static enum lk_code run_##name(struct lk_device *dev, const void *op, void *scratch) {                             \
        return now.table->name.run(dev, op, scratch);                                                                  \
    }                                                                                                                  \
    static enum lk_code measure_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch) {             \
        return measure(dev, run_##name, op, scratch);                                                                  \
    }
LK_OPS(MEASURED_OP)

/* Runs the case with its op measured; the samples are in now.ns. */
static enum lk_code run_case(struct lk_device *dev, const struct model_case *c, struct lk_cost *cost) {
    struct lk_op_table table = *dev->table;
#define SET_MEASURED(name, last) table.name.run = measure_##name;
    LK_OPS(SET_MEASURED)
    const size_t mark = lk_arena_mark(&dev->arena);
    now.table = dev->table;
    dev->table = &table;
    dev->cost = (struct lk_cost){0};
    enum lk_code rc = c->run(dev, c->sizes);
    *cost = dev->cost;
    dev->table = now.table;
    lk_arena_release(&dev->arena, mark);
    return rc;
}

/* The same by the library for this op, NULL if there is none that takes it. */
static enum lk_code run_library(struct lk_device *dev, const struct model_case *c, const char **library) {
    const bool gemm = !strcmp(c->op, "linear"), conv = !strcmp(c->op, "conv2d");
    struct lk_cost cost;
    *library = NULL;
    if (!(gemm && now.cublaslt) && !(conv && now.cudnn)) return LK_OK;
    LK_TRY(lk_cuda_choose(dev, gemm ? "cublaslt" : NULL, conv ? "cudnn" : NULL));
    enum lk_code rc = run_case(dev, c, &cost);
    const struct lk_cuda_rival_counts counts = gemm ? lk_cuda_cublaslt_counts(dev) : lk_cuda_cudnn_counts(dev);
    if (counts.taken) *library = gemm ? "cublaslt" : "cudnn";
    return rc ? rc : lk_cuda_choose(dev, "own", "own");
}

/* Of the sources in the current folder, "" outside a repository. */
static const char *commit(void) {
    static char text[64];
    FILE *git = popen("git rev-parse --short=10 HEAD 2>/dev/null", "r");
    if (git && !fgets(text, sizeof text, git)) text[0] = 0;
    if (git) pclose(git);
    text[strcspn(text, "\n")] = 0;
    return text;
}

static void optional(struct bench_table *table, const char *key, int decimals, bool there, double value) {
    if (there)
        bench_number(table, key, decimals, value);
    else
        bench_text(table, key, "%s", "");
}

static void print_row(struct bench_table *table, const struct lk_device *dev, const struct model_case *c,
                      const struct lk_cost *cost, const double *own, const char *library, const double *theirs) {
    char sizes[96] = "";
    for (int i = 0, n = 0; i < 5 && c->sizes[i]; i++)
        n += snprintf(sizes + n, sizeof sizes - (size_t)n, "%s%lld", i ? "x" : "", (long long)c->sizes[i]);
    const struct bench_statistics s = bench_statistics(own, now.repetitions);
    bench_text(table, "op", "%s", c->op);
    bench_text(table, "what", "%s", c->what);
    bench_text(table, "sizes", "%s", sizes);
    bench_number(table, "us", 2, 1e-3 * s.mean);
    bench_number(table, "sd", 2, 1e-3 * s.sd);
    bench_number(table, "tflops", 2, 1e-3 * (double)cost->flops / s.mean);
    bench_number(table, "gbs", 1, (double)cost->bytes / s.mean);
    bench_text(table, "library", "%s", library ? library : "");
    const double l = library ? bench_statistics(theirs, now.repetitions).mean : 0;
    const double sd = library ? bench_statistics(theirs, now.repetitions).sd : 0;
    optional(table, "library_us", 2, library, 1e-3 * l);
    optional(table, "library_sd", 2, library, 1e-3 * sd);
    optional(table, "ratio", 3, library, l / s.mean);
    if (strcmp(table->format, "md") != 0) {
        bench_text(table, "device", "%s", dev->name);
        bench_text(table, "commit", "%s", commit());
        bench_samples(table, own, now.repetitions);
    }
    bench_end_row(table);
}

static enum lk_code run_all(struct options *o, struct lk_device *dev) {
    const struct model_case *cases = o->tiny ? tiny_cases : model_cases;
    const size_t n = o->tiny ? n_tiny_cases : n_model_cases;
    const double started = bench_now_ns();
    int n_left_out = 0;
    for (size_t i = 0; i < n; i++) {
        double own[BENCH_MAX_SAMPLES];
        const char *library;
        struct lk_cost cost;
        if (!strstr(cases[i].op, o->word) && !strstr(cases[i].what, o->word)) continue;
        if (o->seconds > 0 && bench_now_ns() - started > 1e9 * o->seconds) {
            n_left_out++;
            continue;
        }
        LK_TRY(run_case(dev, &cases[i], &cost));
        memcpy(own, now.ns, sizeof own);
        LK_TRY(run_library(dev, &cases[i], &library));
        print_row(&o->table, dev, &cases[i], &cost, own, library, now.ns);
    }
    bench_end(&o->table);
    if (n_left_out) fprintf(stderr, "%d cases left out: %.0f seconds were over\n", n_left_out, o->seconds);
    return LK_OK;
}

/* Says which device it is and which libraries there are. */
static enum lk_code open_device(const struct options *o, struct lk_device **out) {
    LK_TRY(lk_device_cuda_create(o->device, out));
    struct lk_device *dev = *out;
    const bool simulated = strstr(dev->name, "(simulated)") != NULL;
    if (simulated && !o->tiny)
        return lk_fail(LK_E_DEVICE,
                       "%s: its times mean nothing; kernels_model has modelled ones; -s tiny tries this "
                       "program",
                       dev->name);
    fprintf(stderr, "%s, commit %s, %d repetitions%s\n", dev->name, commit(), o->repetitions,
            simulated ? "; simulated: times mean nothing" : "");
    now.cublaslt = !lk_cuda_choose(dev, "cublaslt", NULL);
    if (!now.cublaslt) fprintf(stderr, "without cuBLASLt: %s\n", lk_error_text());
    now.cudnn = !lk_cuda_choose(dev, NULL, "cudnn");
    if (!now.cudnn) fprintf(stderr, "without cuDNN: %s\n", lk_error_text());
    LK_TRY(lk_cuda_choose(dev, "own", "own"));
    LK_TRY(LK_CU(event_create, (&now.start, 0), "a time"));
    LK_TRY(LK_CU(event_create, (&now.stop, 0), "a time"));
    return lk_device_prepare(dev, o->tiny ? ARENA_TINY : ARENA_REAL);
}

static bool parse(struct options *o, int argc, char **argv) {
    const struct option long_options[] = {{"shapes", required_argument, NULL, 's'},
                                          {"budget", required_argument, NULL, 'b'},
                                          {"device", required_argument, NULL, 'd'},
                                          {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "o:r:k:d:s:b:", long_options, NULL)) != -1;) {
        if (c == 'o') o->table.format = optarg;
        if (c == 'r') o->repetitions = atoi(optarg);
        if (c == 'k') o->word = optarg;
        if (c == 'd') o->device = atoi(optarg);
        if (c == 's') o->tiny = !strcmp(optarg, "tiny");
        if (c == 'b') o->seconds = atof(optarg);
        if (c == '?' || (c == 's' && !o->tiny && strcmp(optarg, "real") != 0)) return false;
    }
    return optind == argc && bench_format_known(o->table.format) && o->repetitions >= 1 &&
           o->repetitions <= BENCH_MAX_SAMPLES && o->device >= 0 && o->seconds >= 0;
}

int main(int argc, char **argv) {
    struct options o = {.word = "", .repetitions = 10, .table = {.format = "md"}};
    struct lk_device *dev = NULL;
    if (!parse(&o, argc, argv)) {
        fprintf(stderr,
                "usage: bench_ops [-o md|csv|json] [-r REPETITIONS 1..%d] [-k WORD] [-d DEVICE] [-s real|tiny] "
                "[-b SECONDS]\n",
                BENCH_MAX_SAMPLES);
        return 2;
    }
    now.repetitions = o.repetitions;
    model_fill_all = true;
    enum lk_code rc = open_device(&o, &dev);
    if (!rc) rc = run_all(&o, dev);
    if (rc) fprintf(stderr, "bench_ops: %s\n", lk_error_text());
    if (now.start) lk_cuda()->event_destroy(now.start);
    if (now.stop) lk_cuda()->event_destroy(now.stop);
    if (dev) lk_device_free(dev);
    return lk_exit_code(rc);
}
