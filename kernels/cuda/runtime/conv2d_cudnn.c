/* conv2d by cuDNN: pictures and filters with channels last, convolution and bias in one call; the residual, which is
 * added to what was rounded, is left to epilogue.cu. f32 is f32, never TF32. One algorithm, which computes in a fixed
 * order and can add a bias: implicit GEMM with precomputed indices. */
#include <cudnn.h>
#include <dlfcn.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "kernels/cuda/cuda.h"

#define ALGORITHM CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define ALIGNED   256 /* bytes, of the product behind the workspace */

#define TEXT_(x)  #x
#define TEXT(x)   TEXT_(x)

#define FUNCTIONS(F)                                                                                                   \
    F(cudnnConvolutionBiasActivationForward)                                                                           \
    F(cudnnConvolutionForward)                                                                                         \
    F(cudnnCreate)                                                                                                     \
    F(cudnnCreateActivationDescriptor)                                                                                 \
    F(cudnnCreateConvolutionDescriptor)                                                                                \
    F(cudnnCreateFilterDescriptor)                                                                                     \
    F(cudnnCreateTensorDescriptor)                                                                                     \
    F(cudnnDestroy)                                                                                                    \
    F(cudnnDestroyActivationDescriptor)                                                                                \
    F(cudnnDestroyConvolutionDescriptor)                                                                               \
    F(cudnnDestroyFilterDescriptor)                                                                                    \
    F(cudnnDestroyTensorDescriptor)                                                                                    \
    F(cudnnGetConvolutionForwardWorkspaceSize)                                                                         \
    F(cudnnGetErrorString)                                                                                             \
    F(cudnnSetActivationDescriptor)                                                                                    \
    F(cudnnSetConvolution2dDescriptor)                                                                                 \
    F(cudnnSetConvolutionMathType)                                                                                     \
    F(cudnnSetFilter4dDescriptor)                                                                                      \
    F(cudnnSetStream)                                                                                                  \
    F(cudnnSetTensor4dDescriptor)

struct lk_cudnn {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
    void *library;
    cudnnHandle_t handle;
    struct lk_cuda_rival_counts counts;
};

static enum lk_code check(const struct lk_cudnn *dnn, cudnnStatus_t status, const char *what) {
    if (status == CUDNN_STATUS_SUCCESS) return LK_OK;
    const char *text = dnn->cudnnGetErrorString(status);
    return lk_fail(LK_E_DEVICE, "cuDNN: %s failed with %d, %s; without --conv cudnn this program's own kernels run",
                   what, (int)status, text ? text : "unknown");
}

static enum lk_code load(struct lk_cudnn *dnn, void *stream) {
    const char *name = "libcudnn.so." TEXT(CUDNN_MAJOR);
    dnn->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!dnn->library)
        return lk_fail(LK_E_DEVICE, "cuDNN: %s cannot be loaded (%s); install it or add its folder to LD_LIBRARY_PATH",
                       name, dlerror());
#define FIND(symbol)                                                                                                   \
    *(void **)&dnn->symbol = dlsym(dnn->library, #symbol);                                                             \
    if (!dnn->symbol) return lk_fail(LK_E_DEVICE, "cuDNN: %s has no function %s", name, #symbol);
    FUNCTIONS(FIND)
    LK_TRY(check(dnn, dnn->cudnnCreate(&dnn->handle), "starting it"));
    return check(dnn, dnn->cudnnSetStream(dnn->handle, (cudaStream_t)stream), "setting its stream");
}

enum lk_code lk_cudnn_open(void *stream, struct lk_cudnn **out) {
    *out = NULL;
    struct lk_cudnn *dnn = lk_calloc(1, sizeof *dnn);
    if (!dnn) return lk_fail(LK_E_NOMEM, "cuDNN: out of memory");
    enum lk_code rc = load(dnn, stream);
    if (rc) {
        lk_cudnn_close(dnn);
        return rc;
    }
    *out = dnn;
    return LK_OK;
}

void lk_cudnn_close(struct lk_cudnn *dnn) {
    if (!dnn) return;
    if (dnn->handle) dnn->cudnnDestroy(dnn->handle);
    if (dnn->library) dlclose(dnn->library);
    lk_free(dnn);
}

struct lk_cuda_rival_counts lk_cudnn_counts(const struct lk_cudnn *dnn) {
    return dnn->counts;
}

/* One call's descriptors. */
struct call {
    cudnnTensorDescriptor_t x, y, bias;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
    cudnnActivationDescriptor_t identity;
    size_t workspace;
};

static void close_call(const struct lk_cudnn *dnn, struct call *c) {
    if (c->x) dnn->cudnnDestroyTensorDescriptor(c->x);
    if (c->y) dnn->cudnnDestroyTensorDescriptor(c->y);
    if (c->bias) dnn->cudnnDestroyTensorDescriptor(c->bias);
    if (c->w) dnn->cudnnDestroyFilterDescriptor(c->w);
    if (c->convolution) dnn->cudnnDestroyConvolutionDescriptor(c->convolution);
    if (c->identity) dnn->cudnnDestroyActivationDescriptor(c->identity);
}

/* channels last, one picture */
static enum lk_code picture(const struct lk_cudnn *dnn, cudnnTensorDescriptor_t *out, cudnnDataType_t type, int64_t h,
                            int64_t w, int64_t c) {
    LK_TRY(check(dnn, dnn->cudnnCreateTensorDescriptor(out), "describing a picture"));
    return check(dnn, dnn->cudnnSetTensor4dDescriptor(*out, CUDNN_TENSOR_NHWC, type, 1, (int)c, (int)h, (int)w),
                 "describing a picture");
}

static enum lk_code describe_convolution(const struct lk_cudnn *dnn, const struct lk_conv2d *op, struct call *c) {
    const bool bf16 = op->x->dtype == LK_BF16;
    LK_TRY(check(dnn, dnn->cudnnCreateConvolutionDescriptor(&c->convolution), "describing a convolution"));
    LK_TRY(check(dnn,
                 dnn->cudnnSetConvolution2dDescriptor(c->convolution, op->pad_top, op->pad_left, op->stride, op->stride,
                                                      1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                 "describing a convolution"));
    LK_TRY(check(dnn, dnn->cudnnSetConvolutionMathType(c->convolution, bf16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH),
                 "describing a convolution"));
    LK_TRY(check(dnn, dnn->cudnnCreateActivationDescriptor(&c->identity), "describing an activation"));
    return check(dnn,
                 dnn->cudnnSetActivationDescriptor(c->identity, CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0),
                 "describing an activation");
}

static enum lk_code describe(const struct lk_cudnn *dnn, const struct lk_conv2d *op, struct call *c, bool *supported) {
    const cudnnDataType_t type = op->x->dtype == LK_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    const int64_t *x = op->x->shape, *y = op->y->shape;
    const struct lk_filters w = lk_filters_of(op);
    LK_TRY(picture(dnn, &c->x, type, x[0], x[1], x[2]));
    LK_TRY(picture(dnn, &c->y, type, y[0], y[1], y[2]));
    if (op->bias) LK_TRY(picture(dnn, &c->bias, type, 1, 1, y[2]));
    LK_TRY(check(dnn, dnn->cudnnCreateFilterDescriptor(&c->w), "describing filters"));
    LK_TRY(check(
        dnn,
        dnn->cudnnSetFilter4dDescriptor(c->w, type, CUDNN_TENSOR_NHWC, (int)w.n, (int)w.channels, (int)w.kh, (int)w.kw),
        "describing filters"));
    LK_TRY(describe_convolution(dnn, op, c));
    cudnnStatus_t status = dnn->cudnnGetConvolutionForwardWorkspaceSize(dnn->handle, c->x, c->w, c->convolution, c->y,
                                                                        ALGORITHM, &c->workspace);
    *supported = status != CUDNN_STATUS_NOT_SUPPORTED;
    return *supported ? check(dnn, status, "asking for its workspace") : LK_OK;
}

/* By shape and dtype, so that a plan knows it. */
static bool possible(const struct lk_conv2d *op) {
    const int64_t most = INT32_MAX; /* elements of a picture */
    return op->upsample == 1 && op->pad_top == op->pad_bottom && op->pad_left == op->pad_right &&
           op->w->dtype == op->x->dtype && (!op->bias || op->bias->dtype == op->x->dtype) &&
           lk_tensor_numel(op->x) <= most && lk_tensor_numel(op->y) <= most;
}

static size_t round_up(size_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

size_t lk_cudnn_scratch(const struct lk_cudnn *dnn, const struct lk_conv2d *op) {
    struct call c = {0};
    bool supported = false;
    if (!possible(op)) return 0;
    if (describe(dnn, op, &c, &supported)) supported = false; /* the call itself will fail as well, and say why */
    close_call(dnn, &c);
    if (!supported) return 0;
    return round_up(c.workspace) + (op->residual ? lk_tensor_bytes(op->y) : 0);
}

static enum lk_code convolve(const struct lk_cudnn *dnn, const struct lk_conv2d *op, const struct call *c,
                             const void *w, void *workspace, void *product) {
    const float one = 1.0f, zero = 0.0f;
    if (!op->bias)
        return check(dnn,
                     dnn->cudnnConvolutionForward(dnn->handle, &one, c->x, op->x->data, c->w, w, c->convolution,
                                                  ALGORITHM, workspace, c->workspace, &zero, c->y, product),
                     "a convolution");
    return check(dnn,
                 dnn->cudnnConvolutionBiasActivationForward(
                     dnn->handle, &one, c->x, op->x->data, c->w, w, c->convolution, ALGORITHM, workspace, c->workspace,
                     &zero, c->y, product, c->bias, op->bias->data, c->identity, c->y, product),
                 "a convolution");
}

static enum lk_code add_residual(struct lk_device *dev, const struct lk_conv2d *op, const void *product) {
    const int64_t pixels = op->y->shape[0] * op->y->shape[1], channels = op->y->shape[2];
    const struct lk_tensor y = LK_TENSOR(op->y->data, op->y->dtype, pixels, channels);
    struct lk_tensor residual = LK_TENSOR(op->residual->data, op->y->dtype, pixels, channels);
    if (op->residual->n_dims == 1) residual.ld = 0; /* one row for all pixels */
    return lk_cuda_epilogue(dev, &(struct lk_linear){.y = &y, .residual = &residual}, product, channels, true);
}

enum lk_code lk_cudnn_conv2d(struct lk_device *dev, const struct lk_conv2d *op, const void *w, int64_t ld,
                             void *scratch, bool *taken) {
    struct lk_cudnn *dnn = lk_cuda_device_of(dev)->cudnn;
    const struct lk_filters f = lk_filters_of(op);
    const bool dense = ld == f.channels * f.kh * f.kw;
    struct call c = {0};
    enum lk_code rc = LK_OK;
    *taken = false;
    if (dense && possible(op)) rc = describe(dnn, op, &c, taken);
    if (!rc && *taken) {
        void *product = op->residual ? (unsigned char *)scratch + round_up(c.workspace) : op->y->data;
        lk_cuda_device_of(dev)->last_kernel = "cudnnConvolutionForward";
        rc = convolve(dnn, op, &c, w, scratch, product);
        if (!rc && op->residual) rc = add_residual(dev, op, product);
    }
    close_call(dnn, &c);
    if (*taken)
        dnn->counts.taken++;
    else
        dnn->counts.declined++;
    return rc;
}
