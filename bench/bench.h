/* What benchmarks share: time, statistics, and rows printed as Markdown, CSV or JSON.
 *
 *     struct bench_table table = {.format = "md"};
 *     bench_text(&table, "device", "%s", dev->name);
 *     bench_number(&table, "median_ms", 2, bench_statistics(samples, n).median * 1e-6);
 *     bench_samples(&table, samples, n);
 *     bench_end_row(&table);
 *     bench_end(&table); */
#pragma once

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_MAX_SAMPLES 100
#define BENCH_MAX_CELLS   24

static inline double bench_clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static inline double bench_now_ns(void) { return bench_clock_ns(CLOCK_MONOTONIC); }

/* Processor time of all threads of this process: what is left to compare when others use the machine as well. */
static inline double bench_cpu_ns(void) { return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

struct bench_statistics {
    double mean, sd, median, min;
};

static inline int bench_ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 1 <= n <= BENCH_MAX_SAMPLES */
static inline struct bench_statistics bench_statistics(const double *samples, int n) {
    double sorted[BENCH_MAX_SAMPLES], sum = 0, squares = 0;
    memcpy(sorted, samples, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, bench_ascending);
    for (int i = 0; i < n; i++) sum += sorted[i];
    for (int i = 0; i < n; i++) squares += (sorted[i] - sum / n) * (sorted[i] - sum / n);
    double median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return (struct bench_statistics){sum / n, n > 1 ? sqrt(squares / (n - 1)) : 0, median, sorted[0]};
}

struct bench_table {
    const char *format; /* "md", "csv" or "json" */
    int n_rows, n_cells;
    struct {
        char key[32], text[160];
        bool number;
    } cells[BENCH_MAX_CELLS];
    char samples[BENCH_MAX_SAMPLES * 24]; /* only in JSON */
};

static inline bool bench_format_known(const char *format) {
    return !strcmp(format, "md") || !strcmp(format, "csv") || !strcmp(format, "json");
}

static inline void bench_text(struct bench_table *table, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline void bench_text(struct bench_table *table, const char *key, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int i = table->n_cells++;
    snprintf(table->cells[i].key, sizeof table->cells[i].key, "%s", key);
    vsnprintf(table->cells[i].text, sizeof table->cells[i].text, format, args);
    table->cells[i].number = false;
    va_end(args);
}

static inline void bench_number(struct bench_table *table, const char *key, int decimals, double value) {
    bench_text(table, key, "%.*f", decimals, value);
    table->cells[table->n_cells - 1].number = isfinite(value);
}

static inline void bench_samples(struct bench_table *table, const double *samples_ns, int n) {
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof table->samples; i++)
        at += (size_t)snprintf(table->samples + at, sizeof table->samples - at, "%s%.0f", i ? ", " : "", samples_ns[i]);
}

static inline void bench_line(const struct bench_table *table, const char *before, const char *between,
                              const char *after, bool keys) {
    for (int i = 0; i < table->n_cells; i++)
        printf("%s%s", i ? between : before, keys ? table->cells[i].key : table->cells[i].text);
    puts(after);
}

static inline void bench_json_row(const struct bench_table *table) {
    fputs(table->n_rows ? ",\n {" : "[{", stdout);
    for (int i = 0; i < table->n_cells; i++) {
        const char *quote = table->cells[i].number ? "" : "\"";
        printf("%s\"%s\": %s%s%s", i ? ", " : "", table->cells[i].key, quote, table->cells[i].text, quote);
    }
    if (*table->samples) printf(", \"samples_ns\": [%s]", table->samples);
    fputs("}", stdout);
}

/* Prints the cells given since the last row; the first row's keys are the header. */
static inline void bench_end_row(struct bench_table *table) {
    if (!strcmp(table->format, "json")) {
        bench_json_row(table);
    } else if (!strcmp(table->format, "csv")) {
        if (!table->n_rows) bench_line(table, "", ",", "", true);
        bench_line(table, "\"", "\",\"", "\"", false);
    } else {
        if (!table->n_rows) {
            bench_line(table, "| ", " | ", " |", true);
            for (int i = 0; i < table->n_cells; i++) fputs(table->cells[i].number ? "|--:" : "|---", stdout);
            puts("|");
        }
        bench_line(table, "| ", " | ", " |", false);
    }
    table->n_rows++;
    table->n_cells = 0;
    *table->samples = 0;
    fflush(stdout);
}

/* A further table may follow. */
static inline void bench_end(struct bench_table *table) {
    if (!strcmp(table->format, "json"))
        puts(table->n_rows ? "]" : "[]");
    else
        puts("");
    table->n_rows = 0;
}
