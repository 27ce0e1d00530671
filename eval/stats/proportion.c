#include "eval/stats/proportion.h"

#include <math.h>
#include <string.h>

#include "eval/stats/result.h"
#include "eval/stats/special/special.h"

static enum lk_code check(int64_t k, int64_t n, double confidence) {
    if (k < 0 || n < 0 || k > n)
        return lk_fail(LK_E_INPUT, "proportion: expected k of n with 0 <= k <= n, got %lld of %lld", (long long)k,
                       (long long)n);
    if (!(confidence > 0 && confidence < 1))
        return lk_fail(LK_E_INPUT, "proportion: confidence: expected a share between 0 and 1, got %g", confidence);
    return LK_OK;
}

static double upper_z(double confidence) { return -lk_normal_quantile((1 - confidence) / 2); }

static void wilson(double k, double n, double confidence, struct lk_number *out) {
    double z = upper_z(confidence), p = k / n, scale = 1 + z * z / n;
    double centre = (p + z * z / (2 * n)) / scale;
    double reach = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale;
    out->low = k == 0 ? 0 : fmax(centre - reach, 0);
    out->high = k == n ? 1 : fmin(centre + reach, 1);
}

static void clopper_pearson(double k, double n, double confidence, struct lk_number *out) {
    double tail = (1 - confidence) / 2;
    out->low = k == 0 ? 0 : lk_beta_inverse(k, n - k + 1, (struct lk_share){tail, 1 - tail}).x;
    out->high = k == n ? 1 : lk_beta_inverse(k + 1, n - k, (struct lk_share){1 - tail, tail}).x;
}

enum lk_code lk_proportion(int64_t k, int64_t n, enum lk_proportion_interval kind, double confidence,
                           struct lk_number *out) {
    memset(out, 0, sizeof *out);
    LK_TRY(check(k, n, confidence));
    out->n = (size_t)n;
    if (!n) {
        out->undefined = "no observation";
        return LK_OK;
    }
    out->value = (double)k / (double)n;
    if (kind == LK_WILSON)
        wilson((double)k, (double)n, confidence, out);
    else
        clopper_pearson((double)k, (double)n, confidence, out);
    return LK_OK;
}

enum lk_code lk_proportion_difference(int64_t k1, int64_t n1, int64_t k2, int64_t n2, double confidence,
                                      struct lk_number *out) {
    struct lk_number first, second;
    memset(out, 0, sizeof *out);
    LK_TRY(lk_proportion(k1, n1, LK_WILSON, confidence, &first));
    LK_TRY(lk_proportion(k2, n2, LK_WILSON, confidence, &second));
    out->n = first.n + second.n;
    if (first.undefined || second.undefined) {
        out->undefined = "a group without observations";
        return LK_OK;
    }
    out->value = first.value - second.value;
    out->low = out->value - lk_length(first.value - first.low, second.high - second.value);
    out->high = out->value + lk_length(second.value - second.low, first.high - first.value);
    return LK_OK;
}

double lk_cohen_angle(double share) { return share >= 0 && share <= 1 ? asin(sqrt(share)) : NAN; }

double lk_cohen_h(double p1, double p2) { return 2 * (lk_cohen_angle(p1) - lk_cohen_angle(p2)); }

const char *lk_cohen_h_label(double h) {
    double size = fabs(h);
    if (isnan(h)) return "undefined";
    if (size < 0.2) return "negligible";
    if (size < 0.5) return "small";
    return size < 0.8 ? "medium" : "large";
}
