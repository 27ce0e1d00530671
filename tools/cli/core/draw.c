#include "tools/cli/cli.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/study/random.h"

static enum lk_code read_sample(const char *text, size_t n, size_t *out) {
    char *end;
    double value = strtod(text, &end);
    bool percent = *end == '%';
    if (end == text || end[percent] || !(value > 0) || (percent && value > 100) || (!percent && value != floor(value)))
        return lk_fail(LK_E_USAGE, "--sample: expected a share as 1%% or a number, got \"%s\"", text);
    value = ceil(percent ? value * (double)n / 100 : value);
    if (value > (double)n) lk_log(LK_LOG_WARNING, "--sample %s: there are %zu in all: each is taken", text, n);
    *out = value < (double)n ? (size_t)value : n;
    return LK_OK;
}

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

enum lk_code cli_draw(const char *text, size_t n, const char *stream, int32_t **chosen, size_t *n_chosen) {
    struct lk_stream random;
    *chosen = NULL;
    LK_TRY(read_sample(text, n, n_chosen));
    int32_t *order = lk_malloc((n + 1) * sizeof *order);
    if (!order) return lk_fail(LK_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    lk_stream_named(&random, 42, stream);
    lk_stream_shuffle(&random, order, n);
    qsort(order, *n_chosen, sizeof *order, by_value);
    *chosen = order;
    return LK_OK;
}
