/* Shared by the host sides of the CUDA kernels.
 *
 * NAME.cu holds an op's kernels. What decides grid and variant and launches them stands by family: elementwise.c,
 * rows.c, group_norm.c, conv2d.c, gemm/ and attention/. Each .cu is a module of its own inside the program (modules.h).
 * A kernel takes one struct of arguments, declared in arguments.h for both sides, and its name says its dtype:
 * NAME_bf16, NAME_f32. Kernel names are unique over all modules.
 *
 * Ops see tensors whose addresses are the device's: device_cuda.c has replaced those of weights (weights.h). */
#pragma once

#include "engine/ops.h"
#include "kernels/cuda/runtime/driver.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/placed.h"
#include "kernels/cuda/runtime/pulse.h"
#include "kernels/cuda/runtime/ranks.h"
#include "kernels/cuda/runtime/report.h"
#include "kernels/cuda/runtime/rivals.h"
#include "kernels/cuda/runtime/staging.h"
#include "kernels/cuda/runtime/weights.h"

#define LK_CUDA_MAX_KERNELS 1024 /* in the table of functions met so far; a power of two */

struct lk_cuda_function {
    const char *name; /* NULL: free */
    lk_cu_function function;
    size_t shared; /* dynamic bytes that it may have, above the 48 KiB that all may have */
};

/* A quantised weight that was turned into a bf16 matrix, and where in the arena that still lies: slabs of rows,
 * branches and jobs read a layer one after the other, and the matrix is made once for all of them. */
struct lk_cuda_plain {
    const void *weight; /* in host memory; NULL: none */
    uintptr_t at;
    size_t bytes;
    uint64_t epoch; /* of the weights */
};
#define LK_CUDA_PLAIN 2 /* that are known at a time, the last one first: a feed-forward has two layers */

struct lk_cuda_device {
    struct lk_device device;
    lk_cu_device ordinal;
    lk_cu_context context;
    lk_cu_stream stream;
    lk_cu_module *modules; /* as lk_cuda_modules; NULL: not loaded */
    lk_cu_address report;  /* struct lk_cuda_report in device memory */
    int n_multiprocessors;
    size_t most_shared; /* dynamic bytes a block may ask for */
    struct lk_cuda_near near;
    struct lk_cuda_staging staging;
    struct lk_cuda_weights *weights;
    struct lk_cuda_placed placed;
    struct lk_cuda_ranks *ranks; /* NULL: it has its weights for itself */
    int rank;
    struct lk_cuda_pulse pulse; /* of a rank */
    bool lost;                  /* a rank's GPU answers no more: nothing is waited for, nor given back to the driver */
    uint64_t beside; /* bytes that the process takes on the device beside what is allocated here: context and code */
    struct lk_cublaslt *cublaslt; /* rivals.h; NULL: own kernels */
    struct lk_cudnn *cudnn;
    struct lk_cuda_plain plain[LK_CUDA_PLAIN];
    const void *packed; /* the quantised weight of the op at hand, in host memory; NULL: it has none */
    struct lk_cuda_function functions[LK_CUDA_MAX_KERNELS];
    const char *last_kernel; /* launched, for messages */
};

static inline struct lk_cuda_device *lk_cuda_device_of(struct lk_device *dev) { return (struct lk_cuda_device *)dev; }

#define LK_CUDA_OP(name, last)                                                                                         \
    enum lk_code lk_cuda_##name(struct lk_device *dev, const struct lk_##name *op, void *scratch);
LK_OPS(LK_CUDA_OP)
#undef LK_CUDA_OP

size_t lk_cuda_linear_scratch(const struct lk_device *dev, const struct lk_linear *op);
/* Something else is written to those bytes of the arena. */
void lk_cuda_plain_forget(struct lk_cuda_device *cuda, uintptr_t at, size_t bytes);
size_t lk_cuda_conv2d_scratch(const struct lk_device *dev, const struct lk_conv2d *op);
size_t lk_cuda_group_norm_scratch(const struct lk_device *dev, const struct lk_group_norm *op);
size_t lk_cuda_response_norm_scratch(const struct lk_device *dev, const struct lk_response_norm *op);

/* The name of a kernel's variant: LK_CUDA_VARIANT("rms_norm", LK_BF16) is "rms_norm_bf16". */
#define LK_CUDA_VARIANT(kernel, dtype) ((dtype) == LK_BF16 ? kernel "_bf16" : kernel "_f32")

struct lk_cuda_grid {
    unsigned grid[3], block[3]; /* 0 counts as 1 */
    size_t shared;              /* dynamic bytes */
};

/* Puts a launch on the device's stream. module: the .cu file's name without its ending; both names are string literals
 * or live as long as the program. args: the kernel's one argument, copied. LK_E_DEVICE. */
enum lk_code lk_cuda_launch(struct lk_device *dev, const char *module, const char *kernel,
                            const struct lk_cuda_grid *grid, const void *args);
/* Registers, occupancy and the like are asked of the function itself. */
enum lk_code lk_cuda_function(struct lk_device *dev, const char *module, const char *kernel,
                              struct lk_cuda_function **out);

/* Waits for the stream; the report is reset. LK_E_DEVICE when a kernel failed since the last time, LK_E_INTERNAL for a
 * bad id. */
enum lk_code lk_cuda_wait(struct lk_cuda_device *cuda, struct lk_cuda_report *out);

static inline int64_t lk_cuda_div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* Whether rows of t may be read and written 16 bytes at a time. */
static inline bool lk_cuda_aligned(const struct lk_tensor *t) {
    return (uintptr_t)t->data % 16 == 0 && (t->shape[0] <= 1 || (size_t)t->ld * lk_dtype_size(t->dtype) % 16 == 0);
}
