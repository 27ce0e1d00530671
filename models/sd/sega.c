#include "models/sd/sega.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "models/parameters.h"

/* The published settings of Fair Diffusion. */
static const struct lk_sega_concept published = {
    .scale = 4, .threshold = 0.95, .weight = 1, .warmup = 5, .cooldown = -1};

static enum lk_code read_setting(const char *flag, const char *text, struct lk_sega_concept *c) {
    const struct {
        const char *key;
        double min, max, *number;
        int *whole;
    } settings[] = {{"scale=", 0, 1000, &c->scale, NULL},
                    {"threshold=", 0, 1, &c->threshold, NULL},
                    {"weight=", -1000, 1000, &c->weight, NULL},
                    {"warmup=", 0, 1000, NULL, &c->warmup},
                    {"cooldown=", 0, 1000, NULL, &c->cooldown}};
    if (!strcmp(text, "reverse")) {
        c->reverse = true;
        return LK_OK;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const size_t n = strlen(settings[i].key);
        int64_t whole;
        if (strncmp(text, settings[i].key, n) != 0) continue;
        text += n;
        if (settings[i].number) return lk_read_number(flag, text, settings[i].min, settings[i].max, settings[i].number);
        LK_TRY(lk_read_int(flag, text, strlen(text), (int64_t)settings[i].min, (int64_t)settings[i].max, &whole));
        *settings[i].whole = (int)whole;
        return LK_OK;
    }
    return lk_fail(LK_E_USAGE,
                   "%s: after the text expected reverse, scale=, threshold=, weight=, warmup= or cooldown=, got "
                   "\"%.60s\"",
                   flag, text);
}

/* c->text is to be freed, also after an error. */
static enum lk_code read_concept(const char *flag, const char *text, struct lk_sega_concept *c) {
    *c = published;
    c->text = lk_strdup(text);
    if (!c->text) return lk_fail(LK_E_NOMEM, "%s: out of memory", flag);
    char *rest = strchr(c->text, ';');
    if (rest) *rest++ = 0;
    if (!*c->text) return lk_fail(LK_E_USAGE, "%s: expected " LK_SEGA_SYNTAX ", got \"%.60s\"", flag, text);
    while (rest) {
        char *setting = rest;
        rest = strchr(setting, ';');
        if (rest) *rest++ = 0;
        LK_TRY(read_setting(flag, setting, c));
    }
    return LK_OK;
}

enum lk_code lk_sega_concept_check(const char *flag, const char *text, char **own) {
    struct lk_sega_concept c;
    (void)own;
    const enum lk_code rc = read_concept(flag, text, &c);
    lk_free(c.text);
    return rc;
}

static bool is_ready(const struct lk_sega_concept *c, int i) { return i >= c->warmup; }
static double weight_at(const struct lk_sega_concept *c, int i) {
    return (c->cooldown >= 0 && i >= c->cooldown) || c->weight < 0 ? 0 : c->weight;
}

/* While some concepts warm up, the weights of the others are made to sum to 1: they may not all be 0. */
static enum lk_code check_weights(const struct lk_sega *s, int n_calls) {
    for (int i = 0; i < n_calls; i++) {
        int n_ready = 0;
        double sum = 0;
        const char *ready = "";
        for (int c = 0; c < s->n; c++) {
            if (!is_ready(&s->concepts[c], i)) continue;
            ready = s->concepts[c].text;
            n_ready++;
            sum += weight_at(&s->concepts[c], i);
        }
        if (n_ready && n_ready < s->n && !(sum > 0))
            return lk_fail(LK_E_USAGE,
                           "concept: \"%.60s\" has no weight left at call %d, where other concepts have not begun: "
                           "let its cooldown be later, its weight be above 0, or their warmup end earlier",
                           ready, i);
    }
    return LK_OK;
}

enum lk_code lk_sega_begin(struct lk_sega *s, const char *const *texts, int n, const struct lk_sega_shape *shape) {
    for (int i = 0; i < n; i++) {
        LK_TRY(read_concept("concept", texts[i], &s->concepts[i]));
        s->n = i + 1;
    }
    LK_TRY(check_weights(s, shape->n_calls));
    s->channels = shape->channels;
    s->n_values = (size_t)(shape->positions * shape->channels);
    s->momentum = lk_calloc(s->n_values, sizeof *s->momentum);
    s->directions = lk_malloc((size_t)n * s->n_values * sizeof *s->directions);
    s->sorted = lk_malloc((size_t)shape->positions * sizeof *s->sorted);
    return s->momentum && s->directions && s->sorted ? LK_OK : lk_fail(LK_E_NOMEM, "concepts: out of memory");
}

void lk_sega_free(struct lk_sega *s) {
    for (int i = 0; i < LK_SEGA_MAX_CONCEPTS; i++) lk_free(s->concepts[i].text);
    lk_free(s->momentum);
    lk_free(s->directions);
    lk_free(s->sorted);
    *s = (struct lk_sega){0};
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

float lk_sega_quantile(const float *sorted, int64_t n, double q) {
    const double rank = (double)(float)q * (double)(n - 1);
    const int64_t low = (int64_t)rank, high = low + 1 < n && rank > (double)low ? low + 1 : low;
    const float w = (float)(rank - (double)low), a = sorted[low], b = sorted[high];
    return w < 0.5f ? fmaf(w, b - a, a) : fmaf(-(b - a), 1 - w, b);
}

static float r(const struct lk_sega *s, float x) { return s->bf16 ? lk_round_bf16(x) : x; }

/* What concept c alone would add: its scaled distance from the negative prompt where that is among each channel's
 * greatest. */
static void direct(const struct lk_sega *s, int c, const float *negative, const float *concept) {
    const struct lk_sega_concept *k = &s->concepts[c];
    const size_t channels = (size_t)s->channels, positions = s->n_values / channels;
    const float sign = k->reverse ? -1 : 1, scale = (float)k->scale;
    float *out = s->directions + (size_t)c * s->n_values;
    for (size_t j = 0; j < s->n_values; j++) out[j] = r(s, sign * r(s, concept[j] - negative[j]) * scale);
    for (size_t ch = 0; ch < channels; ch++) {
        for (size_t j = 0; j < positions; j++) s->sorted[j] = fabsf(out[j * channels + ch]);
        qsort(s->sorted, positions, sizeof *s->sorted, compare);
        const float least = r(s, lk_sega_quantile(s->sorted, (int64_t)positions, k->threshold));
        for (size_t j = ch; j < s->n_values; j += channels)
            if (!(fabsf(out[j]) >= least)) out[j] = 0;
    }
}

/* Value j of the sum of directions, rounded once. */
static float sum_at(const struct lk_sega *s, const float *weights, size_t j) {
    float sum = 0;
    for (int c = 0; c < s->n; c++) sum += weights[c] * s->directions[(size_t)c * s->n_values + j];
    return r(s, sum);
}

void lk_sega_step(struct lk_sega *s, int i, float *predictions, float *added) {
    float weights[LK_SEGA_MAX_CONCEPTS], shares[LK_SEGA_MAX_CONCEPTS] = {0}, sum = 0;
    float *negative = predictions;
    const float *positive = predictions + s->n_values, guidance = (float)s->guidance_scale;
    const float scale = (float)s->momentum_scale, beta = (float)s->momentum_beta, rest = (float)(1 - s->momentum_beta);
    int n_ready = 0;
    for (int c = 0; c < s->n; c++) {
        weights[c] = r(s, (float)weight_at(&s->concepts[c], i));
        if (weights[c] != 0)
            direct(s, c, negative, predictions + (size_t)(2 + c) * s->n_values);
        else
            memset(s->directions + (size_t)c * s->n_values, 0, s->n_values * sizeof *s->directions);
        if (!is_ready(&s->concepts[c], i)) continue;
        shares[c] = weights[c];
        sum = r(s, sum + weights[c]);
        n_ready++;
    }
    for (int c = 0; c < s->n && sum > 0; c++) shares[c] = r(s, shares[c] / sum);
    for (size_t j = 0; j < s->n_values; j++) {
        float g = r(s, guidance * r(s, positive[j] - negative[j])), e = sum_at(s, weights, j), more = 0;
        e = r(s, e + r(s, scale * s->momentum[j]));
        s->momentum[j] = r(s, r(s, beta * s->momentum[j]) + r(s, rest * e));
        if (n_ready == s->n)
            more = e;
        else if (n_ready)
            more = sum_at(s, shares, j);
        if (n_ready) g = r(s, g + more);
        if (added) added[j] = more;
        negative[j] = r(s, negative[j] + g);
    }
}
