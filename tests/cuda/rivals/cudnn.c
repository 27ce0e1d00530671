/* Stands in for libcudnn: convolutions of one picture, channels last. Filters of 5 x 5 are not supported. */
#include "stand_in.h"

#include <cudnn.h>

struct cudnnContext {
    cudaStream_t stream;
};
struct tensor {
    int type, c, h, w;
};
struct convolution {
    int pad_h, pad_w, stride;
    cudnnMathType_t math;
};

#define DONE return CUDNN_STATUS_SUCCESS
#define MAKE(out, type)                                                                                                \
    *(out) = calloc(1, sizeof(type));                                                                                  \
    DONE

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) { MAKE(handle, struct cudnnContext); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    free(handle);
    DONE;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    DONE;
}
const char *cudnnGetErrorString(cudnnStatus_t status) { return status ? "stand-in failure" : "stand-in"; }

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out) { MAKE(out, struct tensor); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out) { MAKE(out, struct tensor); }
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *out) { MAKE(out, struct convolution); }
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *out) { MAKE(out, int); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc) {
    free(desc);
    DONE;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc) {
    free(desc);
    DONE;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc) {
    free(desc);
    DONE;
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc) {
    free(desc);
    DONE;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w) {
    *(struct tensor *)(void *)desc = (struct tensor){(int)type, c, h, w};
    return n == 1 && format == CUDNN_TENSOR_NHWC ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w) {
    (void)k;
    *(struct tensor *)(void *)desc = (struct tensor){(int)type, c, h, w};
    return format == CUDNN_TENSOR_NHWC ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    *(struct convolution *)(void *)desc = (struct convolution){.pad_h = pad_h, .pad_w = pad_w, .stride = u};
    const int good =
        u == v && dilation_h == 1 && dilation_w == 1 && mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT;
    return good ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math) {
    ((struct convolution *)(void *)desc)->math = math;
    DONE;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient) {
    (void)desc, (void)nan, (void)coefficient;
    return mode == CUDNN_ACTIVATION_IDENTITY ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t convolution,
                                                      const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes) {
    (void)handle, (void)x, (void)convolution, (void)y, (void)algo;
    *bytes = 1000;
    return ((const struct tensor *)(const void *)w)->h == 5 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

static float one_output(const struct tensor *tx, const void *x, const struct tensor *tw, const void *w,
                        const struct convolution *conv, int row, int column, int filter, int bf16) {
    float sum = 0;
    for (int dy = 0; dy < tw->h; dy++)
        for (int dx = 0; dx < tw->w; dx++) {
            const int iy = row * conv->stride + dy - conv->pad_h, ix = column * conv->stride + dx - conv->pad_w;
            if (iy < 0 || ix < 0 || iy >= tx->h || ix >= tx->w) continue;
            for (int c = 0; c < tx->c; c++)
                sum += stand_in_get(x, ((int64_t)iy * tx->w + ix) * tx->c + c, bf16) *
                       stand_in_get(w, (((int64_t)filter * tw->h + dy) * tw->w + dx) * tw->c + c, bf16);
        }
    return sum;
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x_desc, const void *x_data,
    const cudnnFilterDescriptor_t w_desc, const void *w_data, const cudnnConvolutionDescriptor_t conv_desc,
    cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t workspace_bytes, const void *alpha2,
    const cudnnTensorDescriptor_t z_desc, const void *z, const cudnnTensorDescriptor_t bias_desc, const void *bias_data,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y_desc, void *y_data) {
    (void)algo, (void)workspace, (void)z_desc, (void)z, (void)bias_desc, (void)activation;
    const struct tensor *tx = (const void *)x_desc, *tw = (const void *)w_desc, *ty = (const void *)y_desc;
    const struct convolution *conv = (const void *)conv_desc;
    const int bf16 = ty->type == CUDNN_DATA_BFLOAT16, size = bf16 ? 2 : 4;
    if (*(const float *)alpha1 != 1.0f || *(const float *)alpha2 != 0.0f || workspace_bytes != 1000 || tx->c != tw->c ||
        conv->math != (bf16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH))
        return CUDNN_STATUS_BAD_PARAM;
    const size_t n_x = (size_t)tx->c * (size_t)tx->h * (size_t)tx->w,
                 n_y = (size_t)ty->c * (size_t)ty->h * (size_t)ty->w;
    const size_t n_w = (size_t)ty->c * (size_t)tw->c * (size_t)tw->h * (size_t)tw->w;
    void *x = stand_in_read(handle->stream, x_data, n_x * (size_t)size), *y = malloc(n_y * (size_t)size);
    void *w = stand_in_read(handle->stream, w_data, n_w * (size_t)size);
    void *bias = bias_data ? stand_in_read(handle->stream, bias_data, (size_t)ty->c * (size_t)size) : NULL;
    for (int64_t i = 0; i < (int64_t)n_y; i++) {
        const int filter = (int)(i % ty->c), column = (int)(i / ty->c % ty->w), row = (int)(i / ty->c / ty->w);
        const float sum = one_output(tx, x, tw, w, conv, row, column, filter, bf16);
        stand_in_set(y, i, bf16, bias ? sum + stand_in_get(bias, filter, bf16) : sum);
    }
    stand_in_write(y_data, y, n_y * (size_t)size);
    free(x);
    free(y);
    free(w);
    free(bias);
    DONE;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void *x, const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t conv_desc, cudnnConvolutionFwdAlgo_t algo,
                                      void *workspace, size_t workspace_bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y_desc, void *y) {
    return cudnnConvolutionBiasActivationForward(handle, alpha, x_desc, x, w_desc, w, conv_desc, algo, workspace,
                                                 workspace_bytes, beta, NULL, NULL, NULL, NULL, NULL, y_desc, y);
}
