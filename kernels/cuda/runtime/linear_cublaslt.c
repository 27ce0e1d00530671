/* linear by cuBLASLt: the product, and the bias where it is added before the first rounding; activation, gate and
 * residual, each of which rounds for itself, are left to epilogue.cu. f32 is f32, never TF32. */
#include <cublasLt.h>
#include <dlfcn.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "kernels/cuda/cuda.h"

#define WORKSPACE ((size_t)32 << 20) /* what NVIDIA advises for an H100, more than an A100 asks for */
#define KNOWN     64                 /* shapes whose algorithm is kept */
#define ALIGNED   16                 /* bytes, of all addresses and rows */
#define CHUNK     8                  /* elements to which rows of the product in scratch are rounded up */

#define TEXT_(x)  #x
#define TEXT(x)   TEXT_(x)

#define FUNCTIONS(F)                                                                                                   \
    F(cublasLtCreate)                                                                                                  \
    F(cublasLtDestroy)                                                                                                 \
    F(cublasLtGetStatusString)                                                                                         \
    F(cublasLtMatmul)                                                                                                  \
    F(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    F(cublasLtMatmulDescCreate)                                                                                        \
    F(cublasLtMatmulDescDestroy)                                                                                       \
    F(cublasLtMatmulDescSetAttribute)                                                                                  \
    F(cublasLtMatmulPreferenceCreate)                                                                                  \
    F(cublasLtMatmulPreferenceDestroy)                                                                                 \
    F(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    F(cublasLtMatrixLayoutCreate)                                                                                      \
    F(cublasLtMatrixLayoutDestroy)

/* What the choice of an algorithm depends on. */
struct shape {
    int64_t m, n, k, ld_x, ld_w, ld_product;
    enum lk_dtype dtype;
    bool bias;
};

struct known {
    struct shape shape;
    cublasLtMatmulAlgo_t algorithm;
    bool none; /* cuBLASLt has none */
};

struct lk_cublaslt {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
    void *library;
    cublasLtHandle_t handle;
    struct known known[KNOWN];
    int n_known, next; /* next: to be replaced when all places are taken */
    struct lk_cuda_rival_counts counts;
};

static enum lk_code check(const struct lk_cublaslt *lt, cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return LK_OK;
    const char *text = lt->cublasLtGetStatusString(status);
    return lk_fail(LK_E_DEVICE,
                   "cuBLASLt: %s failed with %d, %s; without --gemm cublaslt this program's own kernels run", what,
                   (int)status, text ? text : "unknown");
}

static enum lk_code load(struct lk_cublaslt *lt) {
    const char *name = "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR);
    lt->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lt->library)
        return lk_fail(LK_E_DEVICE,
                       "cuBLASLt: %s cannot be loaded (%s); install the CUDA toolkit's cuBLAS or add its "
                       "folder to LD_LIBRARY_PATH",
                       name, dlerror());
#define FIND(symbol)                                                                                                   \
    *(void **)&lt->symbol = dlsym(lt->library, #symbol);                                                               \
    if (!lt->symbol) return lk_fail(LK_E_DEVICE, "cuBLASLt: %s has no function %s", name, #symbol);
    FUNCTIONS(FIND)
    return check(lt, lt->cublasLtCreate(&lt->handle), "starting it");
}

enum lk_code lk_cublaslt_open(struct lk_cublaslt **out) {
    *out = NULL;
    struct lk_cublaslt *lt = lk_calloc(1, sizeof *lt);
    if (!lt) return lk_fail(LK_E_NOMEM, "cuBLASLt: out of memory");
    enum lk_code rc = load(lt);
    if (rc) {
        lk_cublaslt_close(lt);
        return rc;
    }
    *out = lt;
    return LK_OK;
}

void lk_cublaslt_close(struct lk_cublaslt *lt) {
    if (!lt) return;
    if (lt->handle) lt->cublasLtDestroy(lt->handle);
    if (lt->library) dlclose(lt->library);
    lk_free(lt);
}

struct lk_cuda_rival_counts lk_cublaslt_counts(const struct lk_cublaslt *lt) {
    return lt->counts;
}

static int64_t product_row(const struct lk_linear *op) { return lk_cuda_div_up(op->y->shape[1], CHUNK) * CHUNK; }

size_t lk_cublaslt_scratch(const struct lk_linear *op) {
    return WORKSPACE + (op->residual ? (size_t)(op->y->shape[0] * product_row(op)) * lk_dtype_size(op->y->dtype) : 0);
}

/* One call: D [n, m] = A^T B in the library's column-major words, where A is w, B is x and D is the product. */
struct call {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulPreference_t preference;
};

static void close_call(const struct lk_cublaslt *lt, struct call *c) {
    if (c->product) lt->cublasLtMatmulDescDestroy(c->product);
    if (c->w) lt->cublasLtMatrixLayoutDestroy(c->w);
    if (c->x) lt->cublasLtMatrixLayoutDestroy(c->x);
    if (c->y) lt->cublasLtMatrixLayoutDestroy(c->y);
    if (c->preference) lt->cublasLtMatmulPreferenceDestroy(c->preference);
}

static enum lk_code set(const struct lk_cublaslt *lt, const struct call *c, cublasLtMatmulDescAttributes_t attribute,
                        const void *value, size_t bytes) {
    return check(lt, lt->cublasLtMatmulDescSetAttribute(c->product, attribute, value, bytes), "describing a product");
}

static enum lk_code prefer(const struct lk_cublaslt *lt, const struct call *c,
                           cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes) {
    return check(lt, lt->cublasLtMatmulPreferenceSetAttribute(c->preference, attribute, value, bytes),
                 "stating preferences");
}

static enum lk_code describe(const struct lk_cublaslt *lt, const struct shape *s, const void *bias, struct call *c) {
    const cudaDataType_t type = s->dtype == LK_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const uint64_t workspace = WORKSPACE;
    const uint32_t aligned = ALIGNED;
    LK_TRY(
        check(lt, lt->cublasLtMatmulDescCreate(&c->product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product"));
    LK_TRY(set(lt, c, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    if (bias) {
        LK_TRY(set(lt, c, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
        LK_TRY(set(lt, c, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    }
    LK_TRY(check(lt, lt->cublasLtMatrixLayoutCreate(&c->w, type, (uint64_t)s->k, (uint64_t)s->n, s->ld_w), "w"));
    LK_TRY(check(lt, lt->cublasLtMatrixLayoutCreate(&c->x, type, (uint64_t)s->k, (uint64_t)s->m, s->ld_x), "x"));
    LK_TRY(check(lt, lt->cublasLtMatrixLayoutCreate(&c->y, type, (uint64_t)s->n, (uint64_t)s->m, s->ld_product), "y"));
    LK_TRY(check(lt, lt->cublasLtMatmulPreferenceCreate(&c->preference), "stating preferences"));
    LK_TRY(prefer(lt, c, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace));
    static const cublasLtMatmulPreferenceAttributes_t addresses[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        LK_TRY(prefer(lt, c, addresses[i], &aligned, sizeof aligned));
    return LK_OK;
}

static bool same(const struct shape *a, const struct shape *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->ld_x == b->ld_x && a->ld_w == b->ld_w &&
           a->ld_product == b->ld_product && a->dtype == b->dtype && a->bias == b->bias;
}

static enum lk_code algorithm(struct lk_cublaslt *lt, const struct shape *s, const struct call *c,
                              const struct known **out) {
    for (int i = 0; i < lt->n_known; i++) {
        *out = &lt->known[i];
        if (same(&lt->known[i].shape, s)) return LK_OK;
    }
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    cublasStatus_t status = lt->cublasLtMatmulAlgoGetHeuristic(lt->handle, c->product, c->w, c->x, c->y, c->y,
                                                               c->preference, 1, &found, &n);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) LK_TRY(check(lt, status, "choosing an algorithm"));
    struct known *place = &lt->known[lt->next];
    lt->next = (lt->next + 1) % KNOWN;
    if (lt->n_known < KNOWN) lt->n_known++;
    *place = (struct known){.shape = *s, .none = n < 1 || status == CUBLAS_STATUS_NOT_SUPPORTED};
    if (!place->none) place->algorithm = found.algo;
    *out = place;
    return LK_OK;
}

static enum lk_code multiply(struct lk_device *dev, const struct lk_linear *op, const struct shape *s, void *product,
                             void *workspace, bool *taken) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    struct lk_cublaslt *lt = cuda->cublaslt;
    const float one = 1.0f, zero = 0.0f;
    const struct known *known;
    struct call c = {0};
    enum lk_code rc = describe(lt, s, s->bias ? op->bias->data : NULL, &c);
    if (!rc) rc = algorithm(lt, s, &c, &known);
    if (!rc && !known->none) {
        cuda->last_kernel = "cublasLtMatmul";
        *taken = true;
        rc = check(lt,
                   lt->cublasLtMatmul(lt->handle, c.product, &one, op->w->data, c.w, op->x->data, c.x, &zero, product,
                                      c.y, product, c.y, &known->algorithm, workspace, WORKSPACE,
                                      (cudaStream_t)(void *)cuda->stream),
                   "a product");
    }
    close_call(lt, &c);
    return rc;
}

static bool aligned(const struct lk_tensor *t) { return (uintptr_t)t->data % ALIGNED == 0; }

/* The distance of rows; where there is one row, whatever stands there may be no distance at all. */
static int64_t distance(const struct lk_tensor *t) { return t->shape[0] > 1 ? t->ld : t->shape[1]; }

enum lk_code lk_cublaslt_linear(struct lk_device *dev, const struct lk_linear *op, void *scratch, bool *taken) {
    struct lk_cublaslt *lt = lk_cuda_device_of(dev)->cublaslt;
    const enum lk_dtype dtype = op->x->dtype;
    const bool fused = op->bias && op->bias->dtype == dtype && !op->round_before_bias && aligned(op->bias);
    const bool in_place = !op->residual; /* which may be y */
    const bool rounds_once = !op->bias || fused || op->round_before_bias || dtype == LK_F32;
    const struct shape s = {.m = op->x->shape[0],
                            .n = op->w->shape[0],
                            .k = op->x->shape[1],
                            .ld_x = distance(op->x),
                            .ld_w = distance(op->w),
                            .ld_product = in_place ? distance(op->y) : product_row(op),
                            .dtype = dtype,
                            .bias = fused};
    void *product = in_place ? op->y->data : (unsigned char *)scratch + WORKSPACE;
    *taken = false;
    if (rounds_once && op->w->dtype == dtype && lk_cuda_aligned(op->x) && lk_cuda_aligned(op->w) &&
        (!in_place || lk_cuda_aligned(op->y)))
        LK_TRY(multiply(dev, op, &s, product, scratch, taken));
    if (!*taken) {
        lt->counts.declined++;
        return LK_OK;
    }
    lt->counts.taken++;
    if ((op->bias && !fused) || op->act != LK_ACT_NONE || op->gate || op->residual)
        return lk_cuda_epilogue(dev, op, product, s.ld_product, fused);
    return LK_OK;
}
