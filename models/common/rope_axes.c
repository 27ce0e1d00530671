#include "models/common/rope_axes.h"

#define MAX_AXES 8

void lk_read_rope_axes(struct lk_config *json, int *out, size_t n, const int *otherwise, int64_t head_dim) {
    static const char field[] = "axes_dims_rope";
    int64_t axes[MAX_AXES] = {0}, sum = 0;
    size_t n_axes = 0;
    if (!otherwise || lk_config_has(json, field)) {
        lk_config_ints(json, field, axes, n, &n_axes);
    } else {
        for (; n_axes < n; n_axes++) axes[n_axes] = otherwise[n_axes];
    }
    if (n_axes != n) lk_config_problem(json, field, LK_E_CONFIG_VALUE, "expected %zu entries, got %zu", n, n_axes);
    for (size_t i = 0; i < n_axes && i < n; i++) {
        if (axes[i] < 2 || axes[i] > 4096 || axes[i] % 2)
            lk_config_problem(json, field, LK_E_CONFIG_VALUE, "entry %zu is %lld: expected an even number from 2 on", i,
                              (long long)axes[i]);
        out[i] = (int)axes[i];
        sum += axes[i];
    }
    if (sum != head_dim)
        lk_config_problem(json, field, LK_E_CONFIG_VALUE, "expected a sum of attention_head_dim = %lld, got %lld",
                          (long long)head_dim, (long long)sum);
}
