/* Shared by the special functions: the exponents of densities, without the cancellation of logarithms of factorials
 * (after Loader's saddle-point expansion, 2000). */
#pragma once

/* log(gamma(a + 1)) - ((a + 1/2) log a - a + log(2 pi) / 2), a > 0. */
double lk_stirling_error(double a);
/* a log(a / x) + x - a with x = a + excess, a, x > 0; excess is given apart because it may be known better. */
double lk_deviance(double a, double x, double excess);
