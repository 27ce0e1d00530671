/* Intervals of the largest difference between groups, with people and prompts as samples: how often they hold the truth
 * in data sets whose truth is known. LIKENESS_TEST_FULL: 2,000 data sets of each kind. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"
#include "eval/stats/special/special.h"
#include "eval/study/random.h"
#include "tests/common/test.h"

enum { MOST_SOURCES = 84, MOST_PROMPTS = 20, N_MODELS = 3, N_RACES = 7 };

static double normal(struct lk_stream *stream) {
    return lk_normal_quantile(((double)(lk_stream_u64(stream) >> 11) + 0.5) * 0x1p-53);
}

/* Of people, prompts, both, models of both, kinds of people and single outputs: standard deviations on the latent
 * scale. */
static const double of_source = .6, of_prompt = .5, of_source_model = .35, of_prompt_model = .35, of_pair = .35,
                    of_source_kind = .25, of_race_prompt = .35, of_output = 1;

/* One data set: the share of models with the outcome, [n_sources, n_prompts]. */
static void draw(struct lk_stream *stream, int n_sources, int n_prompts, double cut, const double *raised, double *z) {
    double prompt[MOST_PROMPTS], prompt_model[MOST_PROMPTS][N_MODELS], race_prompt[N_RACES][MOST_PROMPTS];
    for (int p = 0; p < n_prompts; p++) {
        prompt[p] = of_prompt * normal(stream);
        for (int m = 0; m < N_MODELS; m++) prompt_model[p][m] = of_prompt_model * normal(stream);
        for (int r = 0; r < N_RACES; r++) race_prompt[r][p] = of_race_prompt * normal(stream);
    }
    for (int s = 0; s < n_sources; s++) {
        double source = of_source * normal(stream) + raised[s % N_RACES], model[N_MODELS], kind[2];
        for (int m = 0; m < N_MODELS; m++) model[m] = of_source_model * normal(stream);
        for (int k = 0; k < 2; k++) kind[k] = of_source_kind * normal(stream);
        for (int p = 0; p < n_prompts; p++) {
            const double pair = of_pair * normal(stream);
            double n = 0;
            for (int m = 0; m < N_MODELS; m++)
                n += source + prompt[p] + model[m] + prompt_model[p][m] + pair + kind[p >= n_prompts / 2] +
                         race_prompt[s % N_RACES][p] + of_output * normal(stream) >
                     cut;
            z[s * n_prompts + p] = n / N_MODELS;
        }
    }
}

static void intervals_hold_the_truth(void **state) {
    static const struct {
        int a_race, a_kind;
        double rate, raised[N_RACES];
    } kinds[] = {{12, 10, .1, {0}},  {12, 10, .1, {1}}, {12, 10, .4, {0, .2, .4, .6, .8, 1, 1.2}},
                 {7, 5, .1, {1}},    {3, 10, .1, {0}},  {3, 10, .1, {1}},
                 {12, 10, .4, {1.5}}};
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    const int n_sets = full ? 2000 : 100;
    const double sd = sqrt(.6 * .6 + .5 * .5 + .35 * .35 * 4 + .25 * .25 + 1);
    static double z[MOST_SOURCES * MOST_PROMPTS];
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const int n_sources = kinds[k].a_race * N_RACES, n_prompts = 2 * kinds[k].a_kind;
        const double cut = -lk_normal_quantile(kinds[k].rate) * sd;
        int32_t race[MOST_SOURCES], gender[MOST_SOURCES], kind[MOST_PROMPTS];
        double least = 1, most = 0;
        int n_held = 0;
        for (int s = 0; s < n_sources; s++) race[s] = s % N_RACES, gender[s] = s / N_RACES % 2;
        for (int p = 0; p < n_prompts; p++) kind[p] = p >= kinds[k].a_kind;
        for (int r = 0; r < N_RACES; r++) {
            const double rate = lk_normal_sf((cut - kinds[k].raised[r]) / sd);
            least = fmin(least, rate), most = fmax(most, rate);
        }
        const struct lk_levels attributes[] = {{race, N_RACES}, {gender, 2}}, of_kind = {kind, 2};
        struct lk_residual_maker people, prompts;
        assert_ok(lk_residual_maker(n_sources, attributes, 2, &people));
        assert_ok(lk_residual_maker(n_prompts, &of_kind, 1, &prompts));
        for (int d = 0; d < n_sets; d++) {
            struct lk_stream stream;
            struct lk_crossed_range range;
            const struct lk_crossed_table table = {n_sources, n_prompts, z, 1, false};
            lk_stream_numbered(&stream, 7 + k, "data|", (uint64_t)d);
            draw(&stream, n_sources, n_prompts, cut, kinds[k].raised, z);
            assert_ok(lk_crossed_range(&table, &attributes[0], &people, &prompts, 0.95, 42, &range));
            assert_true(range.number.low <= range.number.value && range.number.value <= range.number.high);
            n_held += range.number.low <= most - least + 1e-12 && range.number.high >= most - least;
        }
        print_message("%d people a race, %d prompts a kind: %.1f %% of %d\n", kinds[k].a_race, kinds[k].a_kind,
                      100.0 * n_held / n_sets, n_sets);
        if (n_held < (full ? 0.94 : kinds[k].raised[0] > 1 ? 0.96 : 0.9) * n_sets)
            fail_msg("kind %zu: %d of %d", k, n_held, n_sets);
        lk_residual_maker_free(&people);
        lk_residual_maker_free(&prompts);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(intervals_hold_the_truth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
