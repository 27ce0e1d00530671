/* Householder reflections to a tridiagonal matrix, then QR steps with Wilkinson's shift (Golub and Van Loan, Matrix
 * Computations, 8.3). Vectors are kept as rows, so that a rotation runs along memory. */
#include "eval/stats/models/symmetric_eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A <- H A H for the block [m, m] at a, H = I - scale v v', scale = 2 / v'v. p [m] is scratch. */
static void reflect(double *a, int n, int m, const double *v, double scale, double *p) {
    double along = 0;
    memset(p, 0, (size_t)m * sizeof *p);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) p[j] += scale * v[i] * a[i * n + j];
    for (int i = 0; i < m; i++) along += p[i] * v[i];
    for (int i = 0; i < m; i++) p[i] -= scale / 2 * along * v[i];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) a[i * n + j] -= v[i] * p[j] + p[i] * v[j];
}

/* vectors <- H vectors, where v [m] concerns the last m rows. p [n] is scratch. */
static void reflect_rows(double *vectors, int n, int m, const double *v, double scale, double *p) {
    memset(p, 0, (size_t)n * sizeof *p);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) p[j] += v[i] * vectors[(n - m + i) * n + j];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) vectors[(n - m + i) * n + j] -= scale * v[i] * p[j];
}

/* a = vectors' T vectors; the diagonal of T stays in a, what lies beside it goes to beside [n - 1]. p [n] is scratch.
 */
static void tridiagonal(double *a, int n, double *beside, double *vectors, double *p) {
    for (int k = 0; k + 2 < n; k++) {
        int m = n - k - 1;
        double *v = a + k * n + k + 1, squares = 0, rest = 0; /* row k is column k */
        for (int i = 0; i < m; i++) squares += v[i] * v[i];
        for (int i = 1; i < m; i++) rest += v[i] * v[i];
        beside[k] = v[0];
        if (rest <= DBL_MIN) continue;
        double length = sqrt(squares), first = v[0] > 0 ? v[0] + length : v[0] - length;
        beside[k] = v[0] > 0 ? -length : length;
        v[0] = first;
        double scale = 2 / (first * first + rest);
        reflect(a + (k + 1) * n + k + 1, n, m, v, scale, p);
        reflect_rows(vectors, n, m, v, scale, p);
    }
    if (n > 1) beside[n - 2] = a[(n - 2) * n + n - 1];
}

/* Rows i and i + 1 <- (c, s; -s, c) rows. */
static void rotate_rows(double *vectors, int n, int i, double c, double s) {
    double *x = vectors + i * n, *y = x + n;
    for (int j = 0; j < n; j++) {
        double u = x[j], w = y[j];
        x[j] = c * u + s * w;
        y[j] = c * w - s * u;
    }
}

/* One QR step on rows low..high of the tridiagonal matrix. */
static void step(double *d, double *e, int low, int high, double *vectors, int n) {
    double half = (d[high - 1] - d[high]) / 2, last = e[high - 1];
    double root = sqrt(half * half + last * last);
    double x = d[low] - d[high] + last * last / (half >= 0 ? half + root : half - root), z = e[low];
    for (int k = low; k < high; k++) {
        double r = sqrt(x * x + z * z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
        if (k > low) e[k - 1] = r;
        double a = d[k], b = e[k], f = d[k + 1];
        d[k] = c * c * a + 2 * c * s * b + s * s * f;
        d[k + 1] = s * s * a - 2 * c * s * b + c * c * f;
        e[k] = c * s * (f - a) + (c * c - s * s) * b;
        x = e[k];
        if (k + 1 < high) {
            z = s * e[k + 1];
            e[k + 1] *= c;
        }
        rotate_rows(vectors, n, k, c, s);
    }
}

bool lk_symmetric_eigen(double *a, int n, double *values, double *vectors, double *scratch) {
    double *beside = scratch + n, largest = 0;
    memset(vectors, 0, (size_t)n * (size_t)n * sizeof *vectors);
    for (int i = 0; i < n; i++) vectors[i * n + i] = 1;
    tridiagonal(a, n, beside, vectors, scratch);
    for (int i = 0; i < n; i++) {
        values[i] = a[i * n + i];
        largest = fmax(largest, fabs(values[i]));
        if (i + 1 < n) largest = fmax(largest, fabs(beside[i]));
    }
    int steps = 0;
    for (int high = n - 1; high > 0;) {
        int low = high;
        while (low > 0 && fabs(beside[low - 1]) > DBL_EPSILON / 2 * largest) low--;
        if (low == high) {
            high--;
            continue;
        }
        if (++steps > 60 * n) return false;
        step(values, beside, low, high, vectors, n);
    }
    return true;
}
