/* Symmetric positive definite matrices of a few dozen rows, row-major [n, n]. */
#pragma once

#include <stdbool.h>

/* The lower factor L of a = L L', in place (above the diagonal is left alone). False when a pivot falls below 1e-10 of
 * its diagonal element: the columns are collinear. */
bool lk_cholesky(double *a, int n);
/* Solves L x = b, in place of b. */
void lk_cholesky_forward(const double *l, int n, double *b);
/* Solves L L' x = b, in place of b. */
void lk_cholesky_solve(const double *l, int n, double *b);
/* The inverse of L L' [n, n]. */
void lk_cholesky_inverse(const double *l, int n, double *inverse);
