/* Box-Muller transforms with the bits of PyTorch's CPU kernels. Used by rng.c; results depend on neither the C library
 * nor on compiler flags, as long as floating point expressions are not contracted. */
#pragma once

/* 16 uniforms in [0, 1) become 16 normals: entry j is the radius' and entry j + 8 the angle's uniform of one pair. */
void lk_rng_box_muller16(float values[16]);

/* The cosine (returned) and the sine value (*second) of one pair. `angle` and `radius` are uniforms in [0, 1) with 53
 * bits. */
double lk_rng_box_muller(double angle, double radius, double *second);

/* To about 0.51 ulp. */
double lk_rng_log(double x);                                /* x in [2^-53, 1] */
void lk_rng_sincos(double x, double *sine, double *cosine); /* 0 <= x < 8 */
