/* The p of Pearson's r, shared by the values and their ranks. */
#pragma once

#include "eval/stats/stats.h"

/* r, and 1 - r^2 as a number of its own, because p is in its digits where r is near 1. Fills statistic, df and p of
 * test, whose n is set. */
void lk_product_moment(double r, double rest, struct lk_test *test);
