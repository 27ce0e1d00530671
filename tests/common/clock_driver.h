/* A CUDA driver that computes nothing and keeps clocks: the host's, and one of each stream. What the cuda device issues
 * on it, in the order in which it issues it, takes as long as the rates of an A100 say (lk_device_rates): 250 TFLOP/s
 * of matrices and 200 of attention, 1.8 TB/s of memory, 25 GB/s of bus. Weights may be addresses where nothing is. The
 * program that uses it is linked with --wrap=lk_cuda,--wrap=memcpy and, if it launches kernels, --wrap=lk_cuda_launch.
 */
#pragma once

#include "kernels/cuda/cuda.h"

struct clock_driver {
    double host;      /* seconds */
    double kernels_s; /* that kernels have run */
    uint64_t n_copies, n_launches, read_bytes;
};
extern struct clock_driver clock_driver;

/* A described device gets streams and staging, as if it had been opened with 80 GiB; and loses them. */
void clock_driver_open(struct lk_device *dev);
void clock_driver_close(struct lk_device *dev);
double clock_driver_now(const struct lk_device *dev); /* of the stream */
void clock_driver_run(struct lk_device *dev, double seconds);
