/* The study that bench_stats makes up: 84 sources, each edited by 20 prompts and 3 models, five axes scored by two
 * judges, and 1,000 of the items rated by three people. Scores depend on race and model, so that tests have something
 * to find; one in a hundred is missing. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "eval/study/random.h"

enum {
    N_SOURCES = 84,
    N_PROMPTS = 20,
    N_MODELS = 3,
    N_ITEMS = N_SOURCES * N_PROMPTS * N_MODELS,
    N_AXES = 5,
    N_RACES = 7,
    N_RATED = 1000,
    N_RATERS = 3,
};

struct study {
    int32_t source[N_ITEMS], race[N_ITEMS], gender[N_ITEMS], prompt[N_ITEMS], model[N_ITEMS];
    double judge[2][N_AXES][N_ITEMS];          /* NaN: missing */
    double rating[N_AXES][N_RATED * N_RATERS]; /* of items 0, 5, 10, ... */
};

static inline int score_near(struct lk_stream *stream, int level) {
    int score = level + (int)lk_stream_bounded(stream, 3) - 1;
    return score < 1 ? 1 : score > 5 ? 5 : score;
}

static inline void study_make(struct study *s) {
    struct lk_stream stream;
    lk_stream_named(&stream, 42, "bench/stats");
    for (int i = 0; i < N_ITEMS; i++) {
        s->source[i] = i / (N_PROMPTS * N_MODELS);
        s->prompt[i] = i / N_MODELS % N_PROMPTS;
        s->model[i] = i % N_MODELS;
        s->race[i] = s->source[i] / 12;
        s->gender[i] = s->source[i] % 2;
        for (int axis = 0; axis < N_AXES; axis++) {
            int level = 1 + (int)lk_stream_bounded(&stream, 5);
            if (s->race[i] >= 5 && lk_stream_bounded(&stream, 4) == 0) level = level > 1 ? level - 1 : 1;
            if (s->model[i] == 2 && lk_stream_bounded(&stream, 4) == 0) level = level < 5 ? level + 1 : 5;
            for (int judge = 0; judge < 2; judge++) {
                int score = score_near(&stream, level);
                s->judge[judge][axis][i] = lk_stream_bounded(&stream, 100) ? score : NAN;
            }
            if (i % 5 || i / 5 >= N_RATED) continue;
            for (int r = 0; r < N_RATERS; r++) {
                int score = score_near(&stream, level);
                s->rating[axis][i / 5 * N_RATERS + r] = lk_stream_bounded(&stream, 100) ? score : NAN;
            }
        }
    }
}

static inline void study_cell(FILE *out, double value) {
    if (isnan(value))
        fputs(",", out);
    else
        fprintf(out, ",%.0f", value);
}

/* FOLDER/items.csv and FOLDER/ratings.csv; false when one cannot be written. */
static inline bool study_dump(const struct study *s, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/items.csv", folder);
    FILE *out = fopen(path, "w");
    if (!out) return false;
    fputs("item,source,race,gender,prompt,model", out);
    for (int k = 0; k < 2 * N_AXES; k++) fprintf(out, ",%s_%d", k < N_AXES ? "primary" : "secondary", k % N_AXES);
    for (int i = 0; i < N_ITEMS; i++) {
        fprintf(out, "\n%d,%d,%d,%d,%d,%d", i, s->source[i], s->race[i], s->gender[i], s->prompt[i], s->model[i]);
        for (int k = 0; k < 2 * N_AXES; k++) study_cell(out, s->judge[k / N_AXES][k % N_AXES][i]);
    }
    fputc('\n', out);
    if (fclose(out)) return false;
    snprintf(path, sizeof path, "%s/ratings.csv", folder);
    out = fopen(path, "w");
    if (!out) return false;
    fputs("item,rater", out);
    for (int axis = 0; axis < N_AXES; axis++) fprintf(out, ",axis_%d", axis);
    for (int k = 0; k < N_RATED * N_RATERS; k++) {
        fprintf(out, "\n%d,%d", k / N_RATERS, k % N_RATERS);
        for (int axis = 0; axis < N_AXES; axis++) study_cell(out, s->rating[axis][k]);
    }
    fputc('\n', out);
    return !fclose(out);
}
