/* How often a null study has a sentence, and how often a planted one has the right one: studies of known truth. With
 * LIKENESS_TEST_FULL there are 200 to 400 of each kind. */
#include <math.h>

#include "tests/common/claims_study.h"
#include "tests/common/test.h"

struct counts {
    int n, any, named, other_model, other_family, by_kind; /* by_kind: what is planted is larger on kind 1 */
    int of_factor[5];                                      /* studies with a sentence about it */
};

static struct counts simulate(const struct claims_design *d, const double *rates, int n, uint64_t seed) {
    struct counts c = {.n = n};
    lk_rng_seed(&claims_study.rng, seed);
    for (int i = 0; i < n; i++) {
        const struct lk_outcomes o = claims_draw(d, rates);
        struct lk_claims claims;
        bool named = false, model = false, family = false, kind = false, factor[5] = {false};
        assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .seed = 1, .n_relabel = 999}, &claims));
        for (size_t k = 0; k < claims.n_found; k++) {
            const struct lk_claim *x = &claims.list[k];
            const bool race_3 = x->family == LK_CLAIM_GROUP && x->attribute == 0 && x->level == 3 && x->outcome == 2;
            const bool by_model = x->family == LK_CLAIM_MODEL && x->outcome == 2 && d->planted > 0; /* which is true */
            named |= race_3 && x->model == 1;
            model |= race_3 && x->model >= 0 && x->model != 1;
            family |= !race_3 && !by_model;
            kind |= race_3 && x->model == 1 && x->by_kind && x->kind == 1;
            for (int f = 0; f < claims.n_families; f++)
                factor[f] |= claims.families[f].family == x->family && claims.families[f].attribute == x->attribute;
        }
        for (int f = 0; f < 5; f++) c.of_factor[f] += factor[f];
        c.by_kind += kind;
        c.any += claims.n_found > 0, c.named += named, c.other_model += model, c.other_family += family;
        lk_claims_free(&claims);
    }
    return c;
}

static const double common[OUTCOMES] = {0.1, 0.25, 0.1, 0.45, 0.25}, rare[OUTCOMES] = {0.02, 0.05, 0.1, 0.25, 0.45};

/* Of 100 null studies at most 5 in the mean, of 40 hardly ever more than 6. */
static void a_null_study_has_no_sentence(void **state) {
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    const struct claims_design designs[] = {{12, 10, 3, 0, false}, {7, 5, 3, 0, false}, {3, 5, 3, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++)
        for (int k = 0; k < 2; k++) {
            const int n = full ? 400 : 20;
            const struct counts c = simulate(&designs[i], k ? rare : common, n, 10 * i + (size_t)k);
            printf("null, %d a race, %d prompts a kind, %s outcomes: %d of %d studies have a sentence\n",
                   designs[i].per_race, designs[i].per_kind, k ? "rare" : "common", c.any, n);
            assert_true(c.any <= (full ? 0.075 * n : 4));
        }
}

/* Ten models, and outcomes that few people have. Of 2,000 studies 85 have a sentence: 20 about race, 21 gender, 24 age,
 * 19 the kind of prompt, 6 models; with every outcome at 2 and 5 % 83 of 2,000, and 22, 16, 22, 22, 0. */
static void ten_models_and_rare_outcomes_are_no_finding(void **state) {
    static const double all_rare[OUTCOMES] = {0.02, 0.05, 0.05, 0.02, 0.05};
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    const int n = full ? 400 : 12;
    (void)state;
    for (int k = 0; k < 2; k++) {
        const struct counts c =
            simulate(&(struct claims_design){12, 10, 10, 0, false}, k ? all_rare : rare, n, 500 + (uint64_t)k);
        printf("null, ten models, %s: %d of %d studies have a sentence;", k ? "outcomes at 2 and 5 %" : "2 to 45 %",
               c.any, n);
        for (int f = 0; f < 5; f++) {
            printf(" %d", c.of_factor[f]);
            assert_true(c.of_factor[f] <= (full ? 0.025 * n : 2));
        }
        printf("\n");
        assert_true(c.any <= (full ? 0.075 * n : 3));
    }
}

/* 33 points more for one race in one model. In 200 to 400 studies each: from 10 % in one of five models named in 94.8
 * %, of ten in 92.5; from 5 % of ten in 98.5, from 2 % in all; another model never, another factor in 3.5 to 5 %. */
static void a_planted_bias_is_named(void **state) {
    static const struct {
        int n_models;
        double rate, planted, least;
    } cases[] = {{5, 0.10, 1.603, 0.92}, {10, 0.10, 1.603, 0.88}, {10, 0.05, 1.942, 0.95}, {10, 0.02, 2.42, 0.97}};
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double rates[OUTCOMES] = {0.02, 0.05, cases[i].rate, 0.02, 0.05};
        const int n = full ? 200 : 6;
        const struct counts c =
            simulate(&(struct claims_design){12, 10, cases[i].n_models, cases[i].planted, false}, rates, n, 99 + i);
        printf("33 pp over %g in one of %d models: named in %d of %d, another model %d, another factor %d, a kind %d\n",
               cases[i].rate, cases[i].n_models, c.named, n, c.other_model, c.other_family, c.by_kind);
        assert_true(c.named >= (full ? cases[i].least * n : n - 1));
        assert_true(c.other_model <= 0.02 * n && c.other_family <= 0.08 * n + 1 && c.by_kind <= 0.02 * n);
    }
}

/* Race 3 or the others in model 1 and outcome 2, on prompts of kind 1 or of kind 0. */
static double mean_of(const struct lk_outcomes *o, bool kind, bool of_race) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < o->n_sources; i++)
        for (int k = 0; k < o->n_prompts; k++)
            if ((claims_study.race[i] == 3) == of_race && (claims_study.kinds[k] == 1) == kind) {
                sum += o->y[((2 * o->n_models + 1) * o->n_sources + i) * o->n_prompts + k];
                n++;
            }
    return sum / n;
}

/* What is planted on one kind of prompts alone is said to be larger there (in 200 studies: in 183, all that name it);
 * what is alike on all is not (above: in 5 of 1,162 studies). */
static void where_a_bias_is_larger_is_said(void **state) {
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    const int n = full ? 200 : 8;
    const struct claims_design design = {12, 10, 3, 2.4, true};
    struct lk_text text = {0};
    struct lk_claims claims;
    (void)state;
    const struct counts c = simulate(&design, rare, n, 7);
    printf("planted on one kind of prompts: named in %d of %d, with the kind in %d\n", c.named, n, c.by_kind);
    assert_true(c.named >= 0.85 * n && c.by_kind >= 0.95 * c.named);
    lk_rng_seed(&claims_study.rng, 7);
    struct lk_outcomes o = claims_draw(&design, rare);
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    assert_ok(lk_claims_of(&o, &options, &claims));
    const struct lk_claim *x = &claims.list[0];
    lk_claim_sentence(&o, x, &text);
    assert_true(claims.n_found && x->by_kind && x->kind == 1);
    double percent[4];
    for (int i = 0; i < 4; i++) percent[i] = 100 * mean_of(&o, i < 2, i % 2 == 0);
    char expected[200];
    snprintf(expected, sizeof expected,
             "; larger on prompts of kind K1 (%.1f%% and %.1f%%) than on the rest (%.1f%% and %.1f%%)", percent[0],
             percent[1], percent[2], percent[3]);
    if (!strstr(text.bytes, expected)) fail_msg("expected \"%s\" in \"%s\"", expected, text.bytes);
    lk_claims_free(&claims);
    lk_text_free(&text);
    /* Not where the study is of these prompts alone. */
    const struct lk_claims_options fixed = {.alpha = 0.05, .seed = 1, .n_relabel = 999, .prompts_are_all = true};
    assert_ok(lk_claims_of(&o, &fixed, &claims));
    assert_true(claims.n_found > 0);
    for (size_t i = 0; i < claims.n; i++) assert_false(claims.list[i].by_kind);
    lk_claims_free(&claims);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_null_study_has_no_sentence), cmocka_unit_test(ten_models_and_rare_outcomes_are_no_finding),
        cmocka_unit_test(a_planted_bias_is_named), cmocka_unit_test(where_a_bias_is_larger_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
