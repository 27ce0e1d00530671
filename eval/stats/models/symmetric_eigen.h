/* Eigenvalues and eigenvectors of symmetric matrices of up to a few hundred rows. */
#pragma once

#include <stdbool.h>

/* a [n, n], row-major and symmetric, is used up. values [n], in no order; row i of vectors [n, n] is the eigenvector of
 * values[i], of length 1. Both to about n x 1e-16 of the largest eigenvalue. scratch [2, n]. False when it does not
 * converge, which no finite matrix is known to do. */
bool lk_symmetric_eigen(double *a, int n, double *values, double *vectors, double *scratch);
