#include "eval/stats/tests/groups.h"
#include "eval/stats/result.h"

#include "engine/base/alloc.h"

static enum lk_code rank_sums(const char *what, const double *values, const size_t *n, size_t n_groups,
                              struct lk_ranked_groups *out) {
    double *ranks = lk_calloc(out->n, sizeof *ranks);
    out->rank_sums = lk_calloc(n_groups, sizeof *out->rank_sums);
    enum lk_code rc = LK_OK;
    if (!ranks || !out->rank_sums) rc = lk_fail(LK_E_NOMEM, "%s: out of memory for %zu values", what, out->n);
    if (!rc) rc = lk_rank(values, out->n, ranks, &out->ties);
    for (size_t g = 0, i = 0, end = 0; !rc && g < n_groups; g++)
        for (end += n[g]; i < end; i++) out->rank_sums[g] += 2 * ranks[i] - (double)(out->n + 1);
    lk_free(ranks);
    if (!rc && out->ties.largest == out->n) out->undefined = "all values are equal";
    return rc;
}

enum lk_code lk_rank_groups(const char *what, const double *values, const size_t *n, size_t n_groups,
                            struct lk_ranked_groups *out) {
    *out = (struct lk_ranked_groups){0};
    for (size_t g = 0; g < n_groups; g++) {
        out->n += n[g];
        if (!n[g]) out->undefined = "a group is empty";
    }
    LK_TRY(lk_check_finite(what, values, out->n));
    if (n_groups < 2) out->undefined = "fewer than two groups";
    if (out->undefined) return LK_OK;
    enum lk_code rc = rank_sums(what, values, n, n_groups, out);
    if (rc) lk_ranked_groups_free(out);
    return rc;
}

void lk_ranked_groups_free(struct lk_ranked_groups *groups) {
    lk_free(groups->rank_sums);
    groups->rank_sums = NULL;
}
