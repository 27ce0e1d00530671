#include "eval/stats/quantile.h"

#include <math.h>

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

double lk_quantile(double *values, size_t n, double q) {
    double position = (double)(n - 1) * q, whole = floor(position), t = position - whole;
    size_t k = (size_t)whole;
    if (k >= n - 1) {
        k = n - 1;
        t = 0;
    }
    select_kth(values, n, k);
    double a = values[k], b = a;
    if (t > 0) {
        b = values[k + 1];
        for (size_t i = k + 2; i < n; i++)
            if (values[i] < b) b = values[i];
    }
    /* the two forms are numpy's, which is exact at both ends */
    return t >= 0.5 ? b - (b - a) * (1 - t) : a + (b - a) * t;
}
