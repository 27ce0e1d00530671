#include "eval/stats/quantile.h"

#include <math.h>
#include <string.h>

static void swap(double *a, double *b) {
    double value = *a;
    *a = *b;
    *b = value;
}

/* Hoare's selection: afterwards values[k] is the k-th smallest, with none larger before it and none smaller behind. */
static void select_kth(double *values, size_t n, size_t k) {
    size_t low = 0, high = n - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (values[middle] < values[low]) swap(&values[middle], &values[low]);
        if (values[high] < values[low]) swap(&values[high], &values[low]);
        if (values[high] < values[middle]) swap(&values[high], &values[middle]);
        double pivot = values[middle];
        size_t i = low, j = high;
        for (;;) {
            while (values[i] < pivot) i++;
            while (pivot < values[j]) j--;
            if (i >= j) break;
            swap(&values[i++], &values[j--]);
        }
        /* values[low..j] <= pivot <= values[j + 1..high], and both parts are smaller than the whole */
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
}

/* The k-th smallest and the next one (itself when it is the last); values is reordered. */
static void neighbours(double *values, size_t n, size_t k, double *a, double *b) {
    select_kth(values, n, k);
    *a = *b = values[k];
    if (k + 1 == n) return;
    *b = values[k + 1];
    for (size_t i = k + 2; i < n; i++)
        if (values[i] < *b) *b = values[i];
}

enum { SAMPLE = 256, SMALL = 2 * SAMPLE };

/* A value with about k + 1 values at most as large, and a margin on the side of the median. */
static double pivot_near(const double *values, size_t n, size_t k) {
    double sample[SAMPLE], share = ((double)k + 1) / (double)n;
    double margin = 2 + 2 * sqrt(SAMPLE * share * (1 - share));
    double rank = SAMPLE * share + (k < n / 2 ? margin : -margin);
    for (size_t i = 0; i < SAMPLE; i++) sample[i] = values[i * (n / SAMPLE)];
    size_t at = rank < 0 ? 0 : rank > SAMPLE - 1 ? SAMPLE - 1 : (size_t)rank;
    select_kth(sample, SAMPLE, at);
    return sample[at];
}

/* Without branches: they would be right no more often than a coin. */
static size_t keep_at_most(const double *values, size_t n, double pivot, double *kept) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        kept[n_kept] = values[i];
        n_kept += values[i] <= pivot;
    }
    return n_kept;
}

static size_t keep_at_least(const double *values, size_t n, double pivot, double *kept) {
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        kept[n_kept] = values[i];
        n_kept += values[i] >= pivot;
    }
    return n_kept;
}

/* As neighbours, from the values on one side of a pivot, or from all of them when the pivot was a bad guess. */
static void neighbours_in_tail(const double *values, size_t n, size_t k, double *scratch, double *a, double *b) {
    if (n >= SMALL) {
        double pivot = pivot_near(values, n, k);
        if (k < n / 2) {
            size_t n_kept = keep_at_most(values, n, pivot, scratch);
            if (k + 1 < n_kept) {
                neighbours(scratch, n_kept, k, a, b);
                return;
            }
        } else {
            size_t n_left_out = n - keep_at_least(values, n, pivot, scratch);
            if (n_left_out <= k) {
                neighbours(scratch, n - n_left_out, k - n_left_out, a, b);
                return;
            }
        }
    }
    memcpy(scratch, values, n * sizeof *scratch);
    neighbours(scratch, n, k, a, b);
}

/* Where the quantile lies: its share of the way from value k to value k + 1. */
static double place(size_t n, double q, size_t *k) {
    double position = (double)(n - 1) * q, whole = floor(position);
    *k = (size_t)whole;
    if (*k < n - 1) return position - whole;
    *k = n - 1;
    return 0;
}

/* The two forms are numpy's, which is exact at both ends; a distance beyond all numbers is not needed. */
static double between(double a, double b, double t) {
    if (isinf(b - a)) return a * (1 - t) + b * t;
    return t >= 0.5 ? b - (b - a) * (1 - t) : a + (b - a) * t;
}

double lk_quantile(double *values, size_t n, double q) {
    double a, b;
    size_t k;
    double t = place(n, q, &k);
    neighbours(values, n, k, &a, &b);
    return between(a, t > 0 ? b : a, t);
}

double lk_quantile_of(const double *values, size_t n, double q, double *scratch) {
    double a, b;
    size_t k;
    double t = place(n, q, &k);
    neighbours_in_tail(values, n, k, scratch, &a, &b);
    return between(a, t > 0 ? b : a, t);
}
