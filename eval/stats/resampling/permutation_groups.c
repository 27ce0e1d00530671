#include <string.h>

#include "eval/stats/resampling/permutation.h"

struct groups {
    const double *values;
    int n;
};

/* Sum of squares between the groups. scratch: sums and counts. */
static double between(const int32_t *labels, size_t n, const void *context, void *scratch) {
    const struct groups *groups = context;
    double *sum = scratch, *count = sum + groups->n, total = 0, squares = 0;
    memset(sum, 0, 2 * (size_t)groups->n * sizeof *sum);
    for (size_t i = 0; i < n; i++) {
        sum[labels[i]] += groups->values[i];
        count[labels[i]]++;
        total += groups->values[i];
    }
    for (int g = 0; g < groups->n; g++) {
        double shift = count[g] > 0 ? sum[g] / count[g] - total / (double)n : 0;
        squares += count[g] * shift * shift;
    }
    return squares;
}

enum lk_code lk_permutation_groups(const double *values, const int32_t *labels, size_t n, int n_groups,
                                   const struct lk_resampling *how, struct lk_test *out) {
    const struct groups groups = {values, n_groups};
    for (size_t i = 0; i < n; i++)
        if (labels[i] < 0 || labels[i] >= n_groups)
            return lk_fail(LK_E_INPUT, "permutation: unit %zu: expected a group below %d, got %d", i, n_groups,
                           labels[i]);
    return lk_permutation_test(labels, n, how, between, &groups, 2 * (size_t)n_groups * sizeof(double), out);
}
