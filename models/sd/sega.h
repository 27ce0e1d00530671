/* Semantic guidance (SEGA): short texts, each pushed towards or away from in every step, beside the prompt's own
 * guidance. Host arithmetic in f32, so that equal predictions give equal bits on every device. Source: Brack et al.
 * 2023, diffusers pipeline_semantic_stable_diffusion.py. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define LK_SEGA_MAX_CONCEPTS 8

struct lk_sega_concept {
    char *text; /* allocated */
    bool reverse;
    double scale, threshold, weight;
    int warmup, cooldown; /* calls of the network before it begins, after which it ends; cooldown -1: never */
};

struct lk_sega {
    struct lk_sega_concept concepts[LK_SEGA_MAX_CONCEPTS];
    int n;
    double guidance_scale, momentum_scale, momentum_beta;
    bool bf16;       /* round as the reference's ops do in bf16 */
    size_t n_values; /* of a prediction: positions times channels */
    int64_t channels;
    float *momentum, *directions, *sorted; /* [n_values], [n, n_values], [positions] */
};

#define LK_SEGA_SYNTAX "TEXT[;reverse][;KEY=X]"

/* lk_parameter.read of a concept, as "male person;reverse;scale=4". LK_E_USAGE that begins with `flag`. */
enum lk_code lk_sega_concept_check(const char *flag, const char *text, char **own);

/* Reads the concepts, refuses what would give NaN at one of n_calls calls of the network, and allocates for predictions
 * [positions, channels]. LK_E_USAGE. Free with lk_sega_free, also after an error. */
struct lk_sega_shape {
    int n_calls;
    int64_t positions, channels;
};
enum lk_code lk_sega_begin(struct lk_sega *s, const char *const *texts, int n, const struct lk_sega_shape *shape);
void lk_sega_free(struct lk_sega *s);

/* Call i, counted from 0: predictions [2 + n, positions, channels] f32 of the negative prompt, the prompt and each
 * concept. The first gets the guided prediction. added: [positions, channels], what the concepts add, or NULL. */
void lk_sega_step(struct lk_sega *s, int i, float *predictions, float *added);

/* torch.quantile (linear) of n sorted values. */
float lk_sega_quantile(const float *sorted, int64_t n, double q);
