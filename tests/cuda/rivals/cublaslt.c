/* Stands in for libcublasLt: D [n, m] = A^T B, all column by column, with a bias of n. No algorithm for K of 104; a
 * product of 1000 columns fails. */
#include "stand_in.h"

#include <cublasLt.h>

struct product {
    cublasOperation_t transposed;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};

struct layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}
const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_EXECUTION_FAILED ? "stand-in failure" : "stand-in";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
    *out = calloc(1, sizeof(struct product));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    free(product);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
    struct product *p = (struct product *)desc;
    void *to = attribute == CUBLASLT_MATMUL_DESC_TRANSA         ? (void *)&p->transposed
               : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE     ? (void *)&p->epilogue
               : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? (void *)&p->bias
                                                                : NULL;
    if (!to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
    struct layout *l = malloc(sizeof *l);
    if (!l || ld < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
    *l = (struct layout){type, rows, columns, ld};
    *out = (cublasLtMatrixLayout_t)(void *)l;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
    *out = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes) {
    (void)preference, (void)attribute, (void)value, (void)bytes;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *n) {
    (void)handle, (void)product, (void)b, (void)c, (void)d, (void)preference, (void)most;
    memset(&results[0], 0, sizeof results[0]);
    *n = ((const struct layout *)(void *)a)->rows != 104;
    return CUBLAS_STATUS_SUCCESS;
}

static size_t bytes_of(const struct layout *l) {
    return (size_t)((int64_t)(l->columns - 1) * l->ld + (int64_t)l->rows) * (l->type == CUDA_R_16BF ? 2 : 4);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a_data,
                              cublasLtMatrixLayout_t a_layout, const void *b_data, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c_data, cublasLtMatrixLayout_t c_layout, void *d_data,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    (void)handle, (void)c_data, (void)c_layout, (void)algorithm, (void)workspace, (void)workspace_bytes;
    const struct product *p = (const struct product *)desc;
    const struct layout *la = (void *)a_layout, *lb = (void *)b_layout, *ld = (void *)d_layout;
    const int bf16 = ld->type == CUDA_R_16BF;
    if (ld->rows == 1000) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (p->transposed != CUBLAS_OP_T || *(const float *)alpha != 1.0f || *(const float *)beta != 0.0f ||
        la->rows != lb->rows || la->columns != ld->rows || lb->columns != ld->columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    void *a = stand_in_read(stream, a_data, bytes_of(la)), *b = stand_in_read(stream, b_data, bytes_of(lb));
    const int biased = p->epilogue == CUBLASLT_EPILOGUE_BIAS;
    void *bias = biased ? stand_in_read(stream, p->bias, ld->rows * (bf16 ? 2 : 4)) : NULL, *column;
    column = malloc(ld->rows * 4);
    for (int64_t j = 0; j < (int64_t)ld->columns; j++) {
        for (int64_t i = 0; i < (int64_t)ld->rows; i++) {
            float sum = 0;
            for (int64_t k = 0; k < (int64_t)la->rows; k++)
                sum += stand_in_get(a, i * la->ld + k, bf16) * stand_in_get(b, j * lb->ld + k, bf16);
            stand_in_set(column, i, bf16, bias ? sum + stand_in_get(bias, i, bf16) : sum);
        }
        stand_in_write((char *)d_data + j * ld->ld * (bf16 ? 2 : 4), column, ld->rows * (bf16 ? 2 : 4));
    }
    free(a);
    free(b);
    free(bias);
    free(column);
    return CUBLAS_STATUS_SUCCESS;
}
