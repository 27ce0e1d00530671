#include "tests/common/claims_study.h"

#include <math.h>

#include "eval/stats/special/special.h"
#include "tests/common/test.h"

/* Standard deviations, of the noise of a single output 1. */
static const struct {
    double source, prompt, source_model, prompt_model, source_prompt, race_prompt, source_kind;
} sd = {0.6, 0.5, 0.35, 0.35, 0.35, 0.25, 0.25};

struct claims_study claims_study;
static const char *const races[] = {"R0", "R1", "R2", "R3", "R4", "R5", "R6"}, *const genders[] = {"F", "M"},
                         *const ages[] = {"A0", "A1", "A2", "A3", "A4", "A5"}, *const kind_names[] = {"K0", "K1"},
                         *const models[] = {"M0", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9"},
                         *const outcomes[] = {"erased", "race change", "gender change", "lightening", "age change"};
static const char *names[MAX_S];

static const float *normals(size_t n) {
    static float pool[4096];
    assert_true(n <= 4096);
    lk_rng_normal_f32(&claims_study.rng, pool, n);
    return pool;
}

static void copy_normals(float *out, size_t n) { memcpy(out, normals(n), n * sizeof *out); }

static bool is_planted(const struct claims_design *d, int outcome, int model, int source, int prompt) {
    return outcome == 2 && model == 1 && claims_study.race[source] == 3 &&
           (!d->in_a_kind || claims_study.kinds[prompt] == 1);
}

static void draw_outcome(const struct claims_design *d, int outcome, double rate) {
    float s[MAX_S], p[MAX_P], sm[MAX_S * MAX_M], pm[MAX_P * MAX_M], sp[MAX_S * MAX_P], rp[RACES * MAX_P], sk[MAX_S * 2],
        e[MAX_S * MAX_P];
    const int n_s = RACES * d->per_race, n_p = 2 * d->per_kind, n_m = d->n_models;
    const double cut = -lk_normal_quantile(rate) *
                       sqrt(1 + sd.source * sd.source + sd.prompt * sd.prompt + sd.source_model * sd.source_model +
                            sd.prompt_model * sd.prompt_model + sd.source_prompt * sd.source_prompt +
                            sd.race_prompt * sd.race_prompt + sd.source_kind * sd.source_kind);
    copy_normals(s, (size_t)n_s);
    copy_normals(p, (size_t)n_p);
    copy_normals(sm, (size_t)(n_s * n_m));
    copy_normals(pm, (size_t)(n_p * n_m));
    copy_normals(sp, (size_t)(n_s * n_p));
    copy_normals(rp, (size_t)(RACES * n_p));
    copy_normals(sk, (size_t)(n_s * 2));
    for (int m = 0; m < n_m; m++) {
        copy_normals(e, (size_t)(n_s * n_p));
        for (int i = 0; i < n_s; i++)
            for (int k = 0; k < n_p; k++) {
                const double eta = sd.source * s[i] + sd.prompt * p[k] + sd.source_model * sm[i * n_m + m] +
                                   sd.prompt_model * pm[k * n_m + m] + sd.source_prompt * sp[i * n_p + k] +
                                   sd.race_prompt * rp[claims_study.race[i] * n_p + k] +
                                   sd.source_kind * sk[i * 2 + claims_study.kinds[k]] +
                                   (is_planted(d, outcome, m, i, k) ? d->planted : 0) + e[i * n_p + k];
                claims_study.y[((outcome * n_m + m) * n_s + i) * n_p + k] = eta > cut;
            }
    }
}

struct lk_outcomes claims_draw(const struct claims_design *d, const double *rates) {
    const int n_s = RACES * d->per_race, n_p = 2 * d->per_kind;
    for (int i = 0; i < n_s; i++) {
        claims_study.race[i] = i % RACES, claims_study.gender[i] = i / RACES % 2,
        claims_study.age[i] = i / RACES / 2 % 6;
        names[i] = "someone";
    }
    for (int k = 0; k < n_p; k++) claims_study.kinds[k] = k / d->per_kind;
    for (int o = 0; o < OUTCOMES; o++) draw_outcome(d, o, rates[o]);
    return (struct lk_outcomes){
        .n_sources = n_s,
        .n_prompts = n_p,
        .n_models = d->n_models,
        .n_outcomes = OUTCOMES,
        .n_attributes = d->per_race >= 6 ? 3 : 2,
        .y = claims_study.y,
        .attributes = {{claims_study.race, RACES}, {claims_study.gender, 2}, {claims_study.age, 6}},
        .kinds = {claims_study.kinds, 2},
        .attribute_names = {"race", "gender", "age"},
        .level_names = {races, genders, ages},
        .kind_names = kind_names,
        .model_names = models,
        .outcome_names = outcomes,
        .source_names = names,
        .prompt_names = names};
}
