/* Refusals in studies of known truth, 84 people of 7 groups and 20 prompts, both with effects of their own: how often a
 * difference between groups is found where there is none, how often intervals hold it, how often one of 5 points is
 * found, and what is left to see of drift where refusals hide it. Seeds are fixed, so that a run cannot fail by chance;
 * with LIKENESS_TEST_FULL there are 2,000 data sets of each kind. */
#include <math.h>
#include <stdlib.h>

#include "engine/rng.h"
#include "eval/findings/crossed.h"
#include "eval/intake/audit.h"
#include "eval/stats/special/special.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"

enum { RACES = 7, S = 84, P = 20, RACE = 3 };

/* Standard deviations on the latent scale, that of a single answer 1: of people, of prompts, of a pair, of a group and
 * a prompt. */
struct effects {
    double source, prompt, pair, race_prompt;
};
static const struct effects strong = {.6, .5, .35, .25}, weak = {.3, .3, .2, .1};

static struct lk_rng rng;
static int32_t race[S], gender[S], kinds[P];
static const char *names[S];
static const char *const races[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6"}, *const genders[] = {"f", "m"},
                         *const kind_names[] = {"k0", "k1"}, *const one[] = {"Service"}, *const refused[] = {"Refused"};

static double total(const struct effects *e) {
    return sqrt(1 + e->source * e->source + e->prompt * e->prompt + e->pair * e->pair +
                e->race_prompt * e->race_prompt);
}

static void normals(float *out, size_t n) { lk_rng_normal_f32(&rng, out, n); }

static void begin_set(uint64_t set) {
    lk_rng_seed(&rng, set);
    for (int i = 0; i < S; i++) race[i] = i % RACES, gender[i] = i / RACES % 2, names[i] = "someone";
    for (int k = 0; k < P; k++) kinds[k] = k >= P / 2;
}

/* Latent scores without the noise of single answers, in units of the whole standard deviation: eta [S, P]. */
static void draw_latent(const struct effects *e, double *eta) {
    static float source[S], prompt[P], pair[S * P], mixed[RACES * P];
    const double sd = total(e);
    normals(source, S), normals(prompt, P), normals(pair, S * P), normals(mixed, RACES * P);
    for (int i = 0; i < S; i++)
        for (int k = 0; k < P; k++)
            eta[i * P + k] = (e->source * source[i] + e->prompt * prompt[k] + e->pair * pair[i * P + k] +
                              e->race_prompt * mixed[race[i] * P + k]) /
                             sd;
}

static double noise(const struct effects *e) { return 1 / total(e); }

/* One data set: refused with probability `rate`, of one group `planted`. */
static void draw(const struct effects *e, double rate, double planted, double *y) {
    static double eta[S * P];
    static float single[S * P];
    draw_latent(e, eta);
    normals(single, S * P);
    for (int i = 0; i < S; i++)
        for (int k = 0; k < P; k++)
            y[i * P + k] =
                eta[i * P + k] + noise(e) * single[i * P + k] < lk_normal_quantile(race[i] == RACE ? planted : rate);
}

static struct lk_outcomes outcomes_of(const double *y) {
    return (struct lk_outcomes){.n_sources = S,
                                .n_prompts = P,
                                .n_models = 1,
                                .n_outcomes = 1,
                                .n_attributes = 2,
                                .y = y,
                                .attributes = {{race, RACES}, {gender, 2}},
                                .kinds = {kinds, 2},
                                .attribute_names = {"race", "gender"},
                                .level_names = {races, genders},
                                .kind_names = kind_names,
                                .model_names = one,
                                .outcome_names = refused,
                                .source_names = names,
                                .prompt_names = names};
}

/* As the report asks, each of the three factors at 5 %. */
static const struct lk_claims_options how = {
    .alpha = 0.15, .seed = 1, .n_relabel = 999, .apart = true, .ranges = true, .measured = true};

struct seen {
    int n, any, named, held, intervals, range_held;
};

static struct seen simulate(const struct effects *e, double rate, double planted, int n, uint64_t seed) {
    static double y[S * P];
    struct seen seen = {.n = n};
    const double difference = planted - rate;
    for (int d = 0; d < n; d++) {
        struct lk_claims claims;
        bool any = false;
        begin_set(100000 * seed + (uint64_t)d);
        draw(e, rate, planted, y);
        const struct lk_outcomes o = outcomes_of(y);
        assert_ok(lk_claims_of(&o, &how, &claims));
        assert_true(fabs(claims.family_alpha - 0.05) < 1e-12);
        for (size_t i = 0; i < claims.n_cells; i++) {
            const struct lk_claim_cell *c = &claims.cells[i];
            if (c->family != LK_CLAIM_GROUP || c->attribute != 0 || c->p > 0.05) continue;
            any = true;
            seen.named += c->level == RACE;
        }
        seen.any += any;
        for (size_t i = 0; i < claims.n_measured; i++) {
            const struct lk_claim *x = &claims.measured[i];
            if (x->attribute != 0 || x->level != RACE || x->no_interval) continue;
            seen.intervals++;
            seen.held += x->low <= difference && difference <= x->high;
        }
        const struct lk_crossed_range *range = lk_claims_range(&claims, LK_CLAIM_GROUP, 0, 0, 0);
        assert_non_null(range);
        seen.range_held += range->number.low <= difference + 1e-12 && range->number.high >= difference;
        lk_claims_free(&claims);
    }
    return seen;
}

static const struct {
    const char *name;
    const struct effects *effects;
    double rate, planted;
    double power; /* least that the full run must find */
} kinds_of_sets[] = {
    {"none, 10 %, strong effects", &strong, .10, .10, 0}, {"none, 10 %, weak effects", &weak, .10, .10, 0},
    {"none, 3 %, weak effects", &weak, .03, .03, 0},      {"10 -> 15 %, strong effects", &strong, .10, .15, 0},
    {"10 -> 15 %, weak effects", &weak, .10, .15, 0},     {"1 -> 6 %, weak effects", &weak, .01, .06, 0},
    {"10 -> 20 %, strong effects", &strong, .10, .20, 0}, {"10 -> 30 %, strong effects", &strong, .10, .30, 0}};

static void differences(void **state) {
    const int n = test_is_full() ? 2000 : 40;
    (void)state;
    for (size_t k = 0; k < sizeof kinds_of_sets / sizeof *kinds_of_sets; k++) {
        const struct seen s =
            simulate(kinds_of_sets[k].effects, kinds_of_sets[k].rate, kinds_of_sets[k].planted, n, k + 1);
        const double level = (double)s.any / n, coverage = (double)s.held / s.intervals;
        print_message("%-28s any group %5.2f %%, the group %5.2f %%, interval holds %5.2f %% of %d, range %5.2f %%\n",
                      kinds_of_sets[k].name, 100 * level, 100.0 * s.named / n, 100 * coverage, s.intervals,
                      100.0 * s.range_held / n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
