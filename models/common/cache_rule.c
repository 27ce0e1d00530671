/* --accel as text. */
#include <stdio.h>
#include <string.h>

#include "models/common/cache.h"
#include "models/parameters.h"

static const char expected[] = "region, or fbcache, dbcache or teacache with threshold=X";

static const struct {
    const char *name;
    enum lk_cache_method method;
    struct lk_cache_rule rule;
    const char *keys; /* that it has beside threshold, warmup, row, last and steps */
} methods[] = {
    {"fbcache", LK_CACHE_FIRST_BLOCK, {.first = 1, .warmup = 1, .interval = 1, .last = true}, ""},
    {"dbcache", LK_CACHE_DUAL_BLOCK, {.threshold = 0.08, .first = 8, .warmup = 8, .interval = 1}, "f b interval max"},
    {"teacache", LK_CACHE_TEA, {.warmup = 1, .interval = 1, .last = true}, "poly"},
};
enum { N_METHODS = sizeof methods / sizeof *methods };

/* "0:1:5": each number by `take`, in order. */
static enum lk_code read_list(const char *name, const char *value, struct lk_cache_rule *out, bool steps) {
    int64_t before = -1;
    for (const char *at = value;;) {
        const size_t n = strcspn(at, ":");
        char one[40];
        int64_t whole = 0;
        snprintf(one, sizeof one, "%.*s", n < 39 ? (int)n : 39, at);
        if (steps) {
            LK_TRY(lk_read_int(name, one, strlen(one), before + 1, LK_MAX_STEPS - 1, &whole));
            if (before < 0 && whole)
                return lk_fail(LK_E_USAGE, "%s: expected 0 as the first step, which adds what others add again, got %s",
                               name, one);
            out->steps[before = whole] = true;
        } else if (out->n_poly == LK_CACHE_POLY) {
            return lk_fail(LK_E_USAGE, "%s: expected at most %d coefficients", name, LK_CACHE_POLY);
        } else {
            LK_TRY(lk_read_number(name, one, -1e9, 1e9, &out->poly[out->n_poly++]));
        }
        if (!at[n]) break;
        at += n + 1;
    }
    if (!steps && out->n_poly < 2)
        return lk_fail(LK_E_USAGE, "%s: expected 2 to %d coefficients, the highest power first, got %d", name,
                       LK_CACHE_POLY, out->n_poly);
    out->listed |= steps;
    return LK_OK;
}

static enum lk_code read_whole(const char *name, const char *value, int64_t min, int64_t max, int *out) {
    int64_t whole = 0;
    LK_TRY(lk_read_int(name, value, strlen(value), min, max, &whole));
    *out = (int)whole;
    return LK_OK;
}

static bool has_key(const char *keys, const char *key) {
    const size_t n = strlen(key);
    for (const char *at = keys; n && (at = strstr(at, key)); at += n)
        if ((at == keys || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

static enum lk_code read_setting(const char *flag, int method, const char *key, const char *value,
                                 struct lk_cache_rule *out, bool *threshold) {
    const char *choice;
    char name[200];
    enum lk_code rc = LK_OK;
    snprintf(name, sizeof name, "%.120s: %.20s", flag, key);
    if (!strcmp(key, "threshold")) {
        *threshold = true;
        rc = lk_read_number(name, value, 0, 1, &out->threshold);
    } else if (!strcmp(key, "warmup")) {
        rc = read_whole(name, value, 1, LK_MAX_STEPS, &out->warmup);
    } else if (!strcmp(key, "row")) {
        rc = read_whole(name, value, 1, LK_MAX_STEPS, &out->row);
    } else if (!strcmp(key, "last")) {
        rc = lk_read_choice(name, value, "on|off", &choice);
        out->last = !rc && !strcmp(choice, "on");
    } else if (!strcmp(key, "steps")) {
        rc = read_list(name, value, out, true);
    } else if (!has_key(methods[method].keys, key)) {
        rc =
            lk_fail(LK_E_USAGE, "%s: expected threshold, warmup, row, last, steps%s%s of %s, got the setting \"%.20s\"",
                    flag, *methods[method].keys ? ", " : "", methods[method].keys, methods[method].name, key);
    } else if (!strcmp(key, "poly")) {
        rc = read_list(name, value, out, false);
    } else {
        int *const to = *key == 'f'   ? &out->first
                        : *key == 'b' ? &out->behind
                        : *key == 'i' ? &out->interval
                                      : &out->most;
        rc = read_whole(name, value, *key != 'b', LK_MAX_STEPS, to);
    }
    return rc;
}

enum lk_code lk_accel_read(const char *flag, const char *text, struct lk_cache_rule *out) {
    const size_t n = strcspn(text, ",");
    bool threshold = false;
    int method = 0;
    *out = (struct lk_cache_rule){.method = LK_CACHE_NONE};
    if (!strcmp(text, "region")) return LK_OK;
    while (method < N_METHODS && (strlen(methods[method].name) != n || memcmp(methods[method].name, text, n) != 0))
        method++;
    if (method == N_METHODS) return lk_fail(LK_E_USAGE, "%s: expected %s, got \"%.60s\"", flag, expected, text);
    *out = methods[method].rule;
    for (const char *at = text + n; *at;) {
        const char *one = at + 1, *equals = strchr(one, '=');
        const size_t length = strcspn(one, ",");
        char key[24], value[1000];
        if (!equals || equals > one + length)
            return lk_fail(LK_E_USAGE, "%s: expected KEY=VALUE behind each comma, got \"%.40s\"", flag, one);
        snprintf(key, sizeof key, "%.*s", (int)(equals - one < 23 ? equals - one : 23), one);
        snprintf(value, sizeof value, ",%s=", key);
        const char *earlier = strstr(text, value);
        if (earlier && earlier < at) return lk_fail(LK_E_USAGE, "%s: %s: given twice; leave one out", flag, key);
        const int n_value = (int)(one + length - equals - 1);
        if (n_value >= (int)sizeof value)
            return lk_fail(LK_E_USAGE, "%s: %s: expected at most %zu bytes, got %d", flag, key, sizeof value - 1,
                           n_value);
        snprintf(value, sizeof value, "%.*s", n_value, equals + 1);
        LK_TRY(read_setting(flag, method, key, value, out, &threshold));
        at = one + length;
    }
    if (!threshold && !out->listed && !out->threshold)
        return lk_fail(LK_E_USAGE, "%s: expected %s, got no threshold", flag, expected);
    out->method = methods[method].method;
    return LK_OK;
}

enum lk_code lk_accel_check(const char *flag, const char *text, char **own) {
    struct lk_cache_rule rule;
    (void)own;
    return lk_accel_read(flag, text, &rule);
}
