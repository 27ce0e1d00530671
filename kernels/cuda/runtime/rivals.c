#include "kernels/cuda/runtime/rivals.h"

#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/gemm/gemm.h"

static enum lk_code choose_gemm(struct lk_cuda_device *cuda, const char *name) {
    lk_cublaslt_close(cuda->cublaslt);
    cuda->cublaslt = NULL;
    return strcmp(name, "own") ? lk_cublaslt_open(&cuda->cublaslt) : LK_OK;
}

static enum lk_code choose_conv(struct lk_cuda_device *cuda, const char *name) {
    lk_cudnn_close(cuda->cudnn);
    cuda->cudnn = NULL;
    return strcmp(name, "own") ? lk_cudnn_open(cuda->stream, &cuda->cudnn) : LK_OK;
}

static bool known(const char *name, const char *rival) { return !strcmp(name, "own") || !strcmp(name, rival); }

enum lk_code lk_cuda_choose(struct lk_device *dev, const char *gemm, const char *conv) {
    if (gemm && !known(gemm, "cublaslt")) return lk_fail(LK_E_USAGE, "gemm %s: expected own or cublaslt", gemm);
    if (conv && !known(conv, "cudnn")) return lk_fail(LK_E_USAGE, "conv %s: expected own or cudnn", conv);
    if (dev->kind != LK_DEVICE_CUDA) {
        if ((!gemm || !strcmp(gemm, "own")) && (!conv || !strcmp(conv, "own"))) return LK_OK;
        return lk_fail(LK_E_USAGE, "NVIDIA's libraries compute on a cuda device, not on %s; use --device cuda",
                       dev->name);
    }
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", dev->name));
    LK_TRY(LK_CU(stream_synchronize, (cuda->stream), "before the library is changed"));
    if (gemm) LK_TRY(choose_gemm(cuda, gemm));
    return conv ? choose_conv(cuda, conv) : LK_OK;
}

struct lk_cuda_rival_counts lk_cuda_cublaslt_counts(const struct lk_device *dev) {
    const struct lk_cuda_device *cuda = (const struct lk_cuda_device *)dev;
    return dev->kind == LK_DEVICE_CUDA && cuda->cublaslt ? lk_cublaslt_counts(cuda->cublaslt)
                                                         : (struct lk_cuda_rival_counts){0};
}

struct lk_cuda_rival_counts lk_cuda_cudnn_counts(const struct lk_device *dev) {
    const struct lk_cuda_device *cuda = (const struct lk_cuda_device *)dev;
    return dev->kind == LK_DEVICE_CUDA && cuda->cudnn ? lk_cudnn_counts(cuda->cudnn) : (struct lk_cuda_rival_counts){0};
}

void lk_cuda_rivals_close(struct lk_device *dev) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    lk_cublaslt_close(cuda->cublaslt);
    lk_cudnn_close(cuda->cudnn);
    cuda->cublaslt = NULL;
    cuda->cudnn = NULL;
}

enum lk_code lk_cuda_epilogue(struct lk_device *dev, const struct lk_linear *op, const void *product, int64_t ld,
                              bool without_bias) {
    struct lk_cuda_gemm gemm;
    LK_TRY(lk_cuda_gemm_arguments(&gemm, op, 0));
    struct lk_cuda_after args = {.out = gemm.out,
                                 .product = product,
                                 .rows = op->y->shape[0],
                                 .n = op->y->shape[1],
                                 .ld = ld,
                                 .vector = (uintptr_t)product % 16 == 0 &&
                                           (size_t)ld * lk_dtype_size(op->y->dtype) % 16 == 0};
    if (without_bias) args.out.bias = NULL;
    const struct lk_cuda_grid grid = lk_cuda_elementwise_grid(args.rows, args.n, LK_BF16); /* 8 elements a thread */
    return lk_cuda_launch(dev, "epilogue", LK_CUDA_VARIANT("epilogue", op->y->dtype), &grid, &args);
}

#ifndef LIKENESS_CUBLASLT
enum lk_code lk_cublaslt_open(struct lk_cublaslt **out) {
    *out = NULL;
    return lk_fail(LK_E_DEVICE, "this build cannot use cuBLASLt: cublasLt.h was not found when it was made");
}
void lk_cublaslt_close(struct lk_cublaslt *lt) { (void)lt; }
struct lk_cuda_rival_counts lk_cublaslt_counts(const struct lk_cublaslt *lt) {
    (void)lt;
    return (struct lk_cuda_rival_counts){0};
}
size_t lk_cublaslt_scratch(const struct lk_linear *op) {
    (void)op;
    return 0;
}
enum lk_code lk_cublaslt_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch, bool *taken) {
    (void)dev, (void)op, (void)scratch;
    *taken = false;
    return LK_OK;
}
#endif

#ifndef LIKENESS_CUDNN
enum lk_code lk_cudnn_open(void *stream, struct lk_cudnn **out) {
    (void)stream;
    *out = NULL;
    return lk_fail(LK_E_DEVICE, "this build cannot use cuDNN: cudnn.h was not found when it was made");
}
void lk_cudnn_close(struct lk_cudnn *dnn) { (void)dnn; }
struct lk_cuda_rival_counts lk_cudnn_counts(const struct lk_cudnn *dnn) {
    (void)dnn;
    return (struct lk_cuda_rival_counts){0};
}
size_t lk_cudnn_scratch(const struct lk_cudnn *dnn, const struct lk_conv2d *op) {
    (void)dnn, (void)op;
    return 0;
}
enum lk_code lk_cudnn_conv2d(struct lk_device *dev, const struct lk_conv2d *op, const void *w, int64_t ld,
                             void *scratch, bool *taken) {
    (void)dev, (void)op, (void)w, (void)ld, (void)scratch;
    *taken = false;
    return LK_OK;
}
#endif
