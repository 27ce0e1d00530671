#include "models/attended_maps.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"

#define CUBIC      (-0.75)
#define LEAST_SIZE 8 /* a layer this many times smaller than the latents is left out */

struct lk_heat_maps {
    const int *token_words;
    int n_tokens;
    struct cell {
        int64_t n;    /* rows of its layer */
        double *sums; /* [n_tokens, n] over the steps */
    } * cells;
    size_t n_cells, capacity;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "attention: out of memory for maps"); }

enum lk_code lk_heat_maps_new(struct lk_heat_maps **out, const int *token_words, int n_tokens) {
    *out = lk_calloc(1, sizeof **out);
    if (!*out) return out_of_memory();
    (*out)->token_words = token_words;
    (*out)->n_tokens = n_tokens;
    return LK_OK;
}

enum lk_code lk_heat_maps_add(struct lk_heat_maps *maps, int cell, int token, const float *weights, int64_t n) {
    if ((size_t)cell >= maps->n_cells) {
        if (lk_grow(&maps->cells, &maps->capacity, (size_t)cell + 1, sizeof *maps->cells)) return out_of_memory();
        memset(maps->cells + maps->n_cells, 0, ((size_t)cell + 1 - maps->n_cells) * sizeof *maps->cells);
        maps->n_cells = (size_t)cell + 1;
    }
    struct cell *c = &maps->cells[cell];
    if (!c->sums) {
        c->n = n;
        c->sums = lk_calloc((size_t)(n * maps->n_tokens), sizeof *c->sums);
        if (!c->sums) return out_of_memory();
    }
    for (int64_t i = 0; i < n; i++) c->sums[token * n + i] += (double)weights[i];
    return LK_OK;
}

static double near(double x) { return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1; }
static double far(double x) { return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC; }

/* Of place i of n out of n_in: the first of the four places, which may lie outside, and their shares. */
static int taps(int i, int n, int n_in, double shares[4]) {
    const double at = (i + 0.5) * n_in / n - 0.5, whole = floor(at), t = at - whole;
    shares[0] = far(t + 1);
    shares[1] = near(t);
    shares[2] = near(1 - t);
    shares[3] = far(2 - t);
    return (int)whole - 1;
}

static int inside(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

void lk_bicubic(const double *in, int h, int w, double *out, int height, int width) {
    for (int y = 0; y < height; y++) {
        double down[4], across[4];
        const int first = taps(y, height, h, down);
        for (int x = 0; x < width; x++) {
            const int left = taps(x, width, w, across);
            double sum = 0;
            for (int j = 0; j < 4; j++) {
                const double *row = in + (int64_t)inside(first + j, h) * w;
                double line = 0;
                for (int i = 0; i < 4; i++) line += across[i] * row[inside(left + i, w)];
                sum += down[j] * line;
            }
            out[(int64_t)y * width + x] = sum;
        }
    }
}

/* How many times smaller than the latents a layer of n rows is. */
static int shrunk(int64_t n, int height, int width) {
    int factor = 1;
    while ((int64_t)(height / factor) * (width / factor) > n) factor *= 2;
    return factor;
}

/* The cell's maps of all tokens onto those of their words. */
static void add_cell(const struct lk_heat_maps *maps, const struct cell *c, int factor, double *room,
                     const struct lk_attended *attended, double *sums) {
    const int h = attended->map_height, w = attended->map_width;
    for (int token = 0; token < maps->n_tokens; token++) {
        double *of_word = sums + (int64_t)maps->token_words[token] * h * w;
        lk_bicubic(c->sums + token * c->n, h / factor, w / factor, room, h, w);
        for (int64_t i = 0; i < (int64_t)h * w; i++) of_word[i] += fmax(room[i], 0);
    }
}

enum lk_code lk_heat_maps_finish(const struct lk_heat_maps *maps, int height, int width, struct lk_attended *attended) {
    const size_t n = (size_t)height * (size_t)width, n_words = (size_t)attended->n_words;
    double *sums = lk_calloc((n_words + 1) * n, sizeof *sums), *room = sums ? sums + n_words * n : NULL;
    int n_used = 0;
    attended->map_height = height, attended->map_width = width;
    attended->maps = lk_calloc(n_words * n, sizeof *attended->maps);
    if (!sums || !attended->maps) {
        lk_free(sums);
        return out_of_memory();
    }
    for (int layer = 0; layer < attended->n_layers; layer++) {
        if (!strncmp(attended->layers[layer], "mid.", 4)) continue;
        for (int cell = attended->first[layer]; cell < attended->first[layer + 1]; cell++) {
            const struct cell *c = &maps->cells[cell];
            const int factor = shrunk(c->n, height, width);
            if (factor >= LEAST_SIZE) continue;
            add_cell(maps, c, factor, room, attended, sums);
            n_used++;
        }
    }
    for (size_t word = 0; word < n_words; word++) {
        int n_tokens = 0;
        for (int token = 0; token < maps->n_tokens; token++) n_tokens += maps->token_words[token] == (int)word;
        for (size_t i = 0; i < n && n_tokens && n_used; i++)
            attended->maps[word * n + i] = (float)(sums[word * n + i] / n_used / n_tokens);
    }
    lk_free(sums);
    return LK_OK;
}

void lk_heat_maps_free(struct lk_heat_maps *maps) {
    if (!maps) return;
    for (size_t i = 0; i < maps->n_cells; i++) lk_free(maps->cells[i].sums);
    lk_free(maps->cells);
    lk_free(maps);
}
