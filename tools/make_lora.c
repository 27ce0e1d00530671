/* Makes a random LoRA for a model's transformer, in the layout that diffusers writes.
 *
 *     make_lora [--rank N] [--seed N] [--share X] [--only PART] MODEL_DIR FILE.safetensors
 *
 * Every weight of two dimensions whose name has PART ("transformer_blocks") gets one; |B A| is X of |W|. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "weights/checkpoint.h"

struct wanted {
    int rank;
    unsigned long long seed;
    double share;
    const char *only, *model, *path;
};

static double uniform(uint64_t *state) { /* splitmix64, in [-1, 1) */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

static double length_of(const struct lk_tensor *t) {
    double sum = 0;
    for (int64_t i = 0; i < lk_tensor_numel(t); i++) {
        float value;
        if (t->dtype == LK_BF16)
            value = lk_bf16_to_f32(((const uint16_t *)t->data)[i]);
        else
            value = ((const float *)t->data)[i];
        sum += (double)value * (double)value;
    }
    return sqrt(sum);
}

static bool is_matrix(const struct lk_st_tensor *t, const struct wanted *w) {
    const size_t n = strlen(t->name);
    return t->tensor.n_dims == 2 && (t->tensor.dtype == LK_BF16 || t->tensor.dtype == LK_F32) && n > 7 &&
           !strcmp(t->name + n - 7, ".weight") && strstr(t->name, w->only);
}

/* A and B of independent elements: |B A| is about |A| |B| / sqrt(rank). */
static enum lk_code add(const struct lk_st_tensor *t, const struct wanted *w, uint64_t *state,
                        struct lk_st_named out[2]) {
    const int64_t rank = w->rank, rows = t->tensor.shape[0], columns = t->tensor.shape[1];
    float *values = lk_malloc((size_t)(rank * (rows + columns)) * sizeof *values);
    if (!values) return lk_fail(LK_E_NOMEM, "out of memory");
    out[0].tensor = LK_TENSOR(values, LK_F32, rank, columns);
    out[1].tensor = LK_TENSOR(values + rank * columns, LK_F32, rows, rank);
    for (int64_t i = 0; i < rank * (rows + columns); i++) values[i] = (float)uniform(state);
    const double product = length_of(&out[0].tensor) * length_of(&out[1].tensor) / sqrt((double)rank);
    const double scale = w->share * length_of(&t->tensor) / product;
    for (int64_t i = 0; i < rows * rank; i++) values[rank * columns + i] *= (float)scale;
    for (int i = 0; i < 2; i++) {
        out[i].name = lk_format("transformer.%.*s.lora_%c.weight", (int)strlen(t->name) - 7, t->name, "AB"[i]);
        if (!out[i].name) return lk_fail(LK_E_NOMEM, "out of memory");
    }
    return LK_OK;
}

static enum lk_code make(const struct wanted *w) {
    struct lk_checkpoint cp;
    char *folder = lk_format("%s/transformer", w->model);
    uint64_t state = w->seed;
    size_t n = 0;
    LK_TRY(lk_checkpoint_open(&cp, folder, "diffusion_pytorch_model"));
    struct lk_st_named *tensors = lk_calloc(2 * cp.n_tensors + 1, sizeof *tensors);
    enum lk_code rc = tensors ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    for (size_t i = 0; i < cp.n_tensors && !rc; i++) {
        if (!is_matrix(cp.tensors[i].tensor, w)) continue;
        rc = add(cp.tensors[i].tensor, w, &state, tensors + n);
        n += 2;
    }
    if (!rc && !n) rc = lk_fail(LK_E_USAGE, "--only: no weight of %s has \"%s\" in its name", folder, w->only);
    if (!rc) rc = lk_safetensors_write(w->path, tensors, n, NULL);
    for (size_t i = 0; i < n; i++) {
        lk_free((void *)(uintptr_t)tensors[i].name);
        if (i % 2 == 0) lk_free(tensors[i].tensor.data);
    }
    lk_free(tensors);
    lk_free(folder);
    lk_checkpoint_close(&cp);
    return rc;
}

static enum lk_code run(int argc, char **argv) {
    struct wanted w = {.rank = 4, .seed = 1, .share = 0.1, .only = ""};
    char rest;
    for (int i = 1; i < argc; i++) {
        const bool valued = i + 1 < argc;
        bool ok = true;
        if (!strcmp(argv[i], "--rank") && valued)
            ok = sscanf(argv[++i], "%5d%c", &w.rank, &rest) == 1 && w.rank >= 1 && w.rank <= 1024;
        else if (!strcmp(argv[i], "--seed") && valued)
            ok = sscanf(argv[++i], "%llu%c", &w.seed, &rest) == 1;
        else if (!strcmp(argv[i], "--share") && valued)
            ok = sscanf(argv[++i], "%lf%c", &w.share, &rest) == 1;
        else if (!strcmp(argv[i], "--only") && valued)
            w.only = argv[++i];
        else if (argv[i][0] != '-' && !w.path)
            *(w.model ? &w.path : &w.model) = argv[i];
        else
            ok = false;
        if (!ok) return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
    }
    if (!w.path)
        return lk_fail(LK_E_USAGE, "usage: make_lora [--rank N] [--seed N] [--share X] [--only PART] MODEL_DIR "
                                   "FILE.safetensors");
    return make(&w);
}

int main(int argc, char **argv) {
    const enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_lora: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
