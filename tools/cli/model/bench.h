/* What `likeness bench` has measured, printed and compared. */
#pragma once

#include "models/pipeline.h"

#define BENCH_MAX_STAGES      8
#define BENCH_MAX_REPETITIONS 1000

struct bench_stage {
    char name[24];
    double seconds[BENCH_MAX_REPETITIONS]; /* of an image, in each repetition */
    double tflop;                          /* of an image */
    uint64_t planned_bytes;                /* of activations */
};

struct bench_result {
    char device[200], model[64];
    const char *dtype, *quantize;
    bool on_gpu;
    int n_repetitions, n_stages;
    struct bench_stage stages[BENCH_MAX_STAGES];
    double image[BENCH_MAX_REPETITIONS];  /* seconds of a whole image */
    double load_seconds, first_seconds;   /* configs and headers read; the first image, which also reads the weights */
    double peak_tflops;                   /* of a product of matrices in the dtype, measured before */
    double joules[BENCH_MAX_REPETITIONS]; /* of the GPU, for an image */
    bool has_joules;                      /* in each repetition */
    uint64_t arena_bytes, rss_bytes;      /* peak of activations, and of the process's memory */
    struct lk_plan plan;
};

/* What a result in JSON says of one image. */
struct bench_rate {
    char model[64], device[200], dtype[16], quantize[16];
    int width, height, n_references, n_steps, n_stages;
    struct {
        char name[24];
        double seconds, tflop; /* the median */
    } stages[BENCH_MAX_STAGES];
    double other_seconds;     /* outside of the stages */
    double quickest, slowest; /* of the images, over the median */
};
enum lk_code bench_rate_read(const char *path, struct bench_rate *out);

/* format: "md", "json" or "csv". */
enum lk_code bench_print(const struct bench_result *result, const char *format);
/* The second of two results in JSON over the first: ratios of times with 95 % intervals (Welch, of logarithms). Results
 * of different jobs are LK_E_INPUT. */
enum lk_code bench_compare(const char *first, const char *second);
