#include "models/face/net_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"

enum lk_code lk_net_take(struct lk_net_file *r, float **out, bool needed, int n_dims, const int64_t *shape,
                         int64_t *rows, const char *format, ...) {
    char name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const struct lk_st_tensor *found = lk_safetensors_find(&r->file, name);
    *out = NULL;
    if (!found && !needed) return LK_OK;
    if (!found) return lk_fail(LK_E_BIND, "%s: %s: expected a tensor, found none", r->path, name);
    const struct lk_tensor *t = &found->tensor;
    bool fits = t->dtype == LK_F32 && t->n_dims == n_dims;
    size_t n = 1;
    for (int d = 0; d < n_dims && fits; d++) {
        fits = shape[d] < 0 ? t->shape[d] > 0 && t->shape[d] <= 4096 : t->shape[d] == shape[d];
        n *= (size_t)t->shape[d];
    }
    if (!fits)
        return lk_fail(LK_E_BIND, "%s: %s: expected f32 of the shape of %s's layer, got another one", r->path, name,
                       r->net);
    if (rows) *rows = t->shape[0];
    *out = lk_malloc(n * sizeof **out);
    if (!*out) return lk_fail(LK_E_NOMEM, "%s: out of memory", r->path);
    memcpy(*out, t->data, n * sizeof **out);
    r->n_used++;
    return LK_OK;
}

enum lk_code lk_net_fold(struct lk_net_file *r, float *w, float *b, int n_out, size_t per_channel, bool needed,
                         const char *norm) {
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    float *v[4] = {NULL};
    enum lk_code rc = LK_OK;
    for (int i = 0; i < 4 && !rc; i++)
        rc = lk_net_take(r, &v[i], needed || (i > 0 && v[0]), 1, (int64_t[]){n_out}, NULL, "%s.%s", norm, parts[i]);
    for (int o = 0; o < n_out && !rc && v[0]; o++) {
        double scale = v[0][o] / sqrt((double)v[3][o] + 1e-5);
        for (size_t k = 0; k < per_channel; k++) {
            float *at = &w[(size_t)o * per_channel + k];
            *at = (float)(*at * scale);
        }
        b[o] = (float)(v[1][o] + ((double)b[o] - v[2][o]) * scale);
    }
    for (int i = 0; i < 4; i++) lk_free(v[i]);
    return rc;
}

enum lk_code lk_net_check_rest(const struct lk_net_file *r) {
    static const char count[] = ".num_batches_tracked";
    size_t n_counts = 0;
    for (size_t i = 0; i < r->file.n_tensors; i++) {
        size_t n = strlen(r->file.tensors[i].name);
        n_counts += n >= sizeof count && !strcmp(r->file.tensors[i].name + n - (sizeof count - 1), count);
    }
    if (r->n_used + n_counts == r->file.n_tensors) return LK_OK;
    return lk_fail(LK_E_BIND, "%s: expected %zu tensors of %s, got %zu: this is another net", r->path, r->n_used,
                   r->net, r->file.n_tensors - n_counts);
}
