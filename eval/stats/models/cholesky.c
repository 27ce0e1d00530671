#include "eval/stats/models/cholesky.h"

#include <math.h>
#include <string.h>

bool lk_cholesky(double *a, int n) {
    for (int i = 0; i < n; i++) {
        double diagonal = a[i * n + i];
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            if (j < i)
                a[i * n + j] = sum / a[j * n + j];
            else if (sum > 1e-10 * diagonal)
                a[i * n + i] = sqrt(sum);
            else
                return false;
        }
    }
    return true;
}

void lk_cholesky_forward(const double *l, int n, double *b) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) b[i] -= l[i * n + k] * b[k];
        b[i] /= l[i * n + i];
    }
}

void lk_cholesky_solve(const double *l, int n, double *b) {
    lk_cholesky_forward(l, n, b);
    for (int i = n; i-- > 0;) {
        for (int k = i + 1; k < n; k++) b[i] -= l[k * n + i] * b[k];
        b[i] /= l[i * n + i];
    }
}

void lk_cholesky_inverse(const double *l, int n, double *inverse) {
    memset(inverse, 0, (size_t)n * (size_t)n * sizeof *inverse);
    for (int i = 0; i < n; i++) {
        inverse[i * n + i] = 1;
        lk_cholesky_solve(l, n, inverse + i * n); /* a row of a symmetric matrix is a column */
    }
}
