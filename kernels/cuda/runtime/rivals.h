/* NVIDIA's libraries in the place of this project's kernels, off unless asked for: cuBLASLt for linear, cuDNN for
 * conv2d. They are loaded at run time and computed with behind the same ops, with the rounding points of ops.h where
 * the library allows (what it does not fuse so is done by epilogue.cu). A call that they cannot take goes to our
 * kernels and is counted. Their bits depend on the number of rows and on the library's version, so a result must record
 * that they were used. They hold machine code only: on the simulated GPU, which executes PTX, they cannot run. */
#pragma once

#include "engine/ops.h"

struct lk_cuda_rival_counts {
    int64_t taken, declined; /* calls of linear or conv2d */
};

/* gemm: "own" or "cublaslt"; conv: "own" or "cudnn"; NULL leaves what is. LK_E_USAGE for other names and for a device
 * that is not cuda; LK_E_DEVICE when the library is not there or does not start, or the build had no headers for it. */
enum lk_code lk_cuda_choose(struct lk_device *dev, const char *gemm, const char *conv);

/* Since the library was chosen; 0 where it was not, and on other devices. */
struct lk_cuda_rival_counts lk_cuda_cublaslt_counts(const struct lk_device *dev);
struct lk_cuda_rival_counts lk_cuda_cudnn_counts(const struct lk_device *dev);

/* The rest is for the host sides of linear and conv2d. `taken` says whether the library did it; scratch depends on
 * shapes alone. */
struct lk_cublaslt;
enum lk_code lk_cublaslt_open(struct lk_cublaslt **out);
void lk_cublaslt_close(struct lk_cublaslt *lt);
struct lk_cuda_rival_counts lk_cublaslt_counts(const struct lk_cublaslt *lt);
size_t lk_cublaslt_scratch(const struct lk_linear *op);
enum lk_code lk_cublaslt_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch, bool *taken);

struct lk_cudnn;
enum lk_code lk_cudnn_open(void *stream, struct lk_cudnn **out);
void lk_cudnn_close(struct lk_cudnn *dnn);
struct lk_cuda_rival_counts lk_cudnn_counts(const struct lk_cudnn *dnn);
size_t lk_cudnn_scratch(const struct lk_cudnn *dnn, const struct lk_conv2d *op);
/* w: the filters as [C_out, kh, kw, C_in], `ld` elements from one to the next. */
enum lk_code lk_cudnn_conv2d(struct lk_device *dev, const struct lk_conv2d *op, const void *w, int64_t ld,
                             void *scratch, bool *taken);

/* y = the epilogue of `op` on product [M, N], which has y's dtype and distance of rows ld and is r(product) already;
 * without_bias: the bias is in it. product may be y. */
enum lk_code lk_cuda_epilogue(struct lk_device *dev, const struct lk_linear *op, const void *product, int64_t ld,
                              bool without_bias);

void lk_cuda_rivals_close(struct lk_device *dev);
