/* Findings of studies of known truth: latent normal outcomes with people, prompts, models and their interactions as
 * random effects. How often a null study has a sentence, and how often a planted one has the right one. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/rng.h"
#include "eval/findings/crossed.h"
#include "eval/stats/special/special.h"
#include "tests/common/test.h"

enum { RACES = 7, MAX_S = 84, MAX_P = 20, MAX_M = 10, OUTCOMES = 5 };

/* Standard deviations, of the noise of a single output 1. */
static const struct {
    double source, prompt, source_model, prompt_model, source_prompt, race_prompt, source_kind;
} sd = {0.6, 0.5, 0.35, 0.35, 0.35, 0.25, 0.25};

struct design {
    int per_race, per_kind, n_models;
    double planted; /* on the latent scale: race 3 of model 1 in outcome 2 */
};

static struct lk_rng rng;
static double y[OUTCOMES * MAX_M * MAX_S * MAX_P];
static int32_t race[MAX_S], gender[MAX_S], age[MAX_S], kinds[MAX_P];
static const char *const races[] = {"R0", "R1", "R2", "R3", "R4", "R5", "R6"}, *const genders[] = {"F", "M"},
                         *const ages[] = {"A0", "A1", "A2", "A3", "A4", "A5"}, *const kind_names[] = {"K0", "K1"},
                         *const models[] = {"M0", "M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M9"},
                         *const outcomes[] = {"erased", "race change", "gender change", "lightening", "age change"};
static const char *names[MAX_S];

static const float *normals(size_t n) {
    static float pool[4096];
    assert_true(n <= 4096);
    lk_rng_normal_f32(&rng, pool, n);
    return pool;
}

static void copy_normals(float *out, size_t n) { memcpy(out, normals(n), n * sizeof *out); }

static void draw_outcome(const struct design *d, int outcome, double rate) {
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
                                   sd.race_prompt * rp[race[i] * n_p + k] + sd.source_kind * sk[i * 2 + kinds[k]] +
                                   (outcome == 2 && m == 1 && race[i] == 3 ? d->planted : 0) + e[i * n_p + k];
                y[((outcome * n_m + m) * n_s + i) * n_p + k] = eta > cut;
            }
    }
}

static struct lk_outcomes draw(const struct design *d, const double *rates) {
    const int n_s = RACES * d->per_race, n_p = 2 * d->per_kind;
    for (int i = 0; i < n_s; i++) {
        race[i] = i % RACES, gender[i] = i / RACES % 2, age[i] = i / RACES / 2 % 6;
        names[i] = "someone";
    }
    for (int k = 0; k < n_p; k++) kinds[k] = k / d->per_kind;
    for (int o = 0; o < OUTCOMES; o++) draw_outcome(d, o, rates[o]);
    return (struct lk_outcomes){.n_sources = n_s,
                                .n_prompts = n_p,
                                .n_models = d->n_models,
                                .n_outcomes = OUTCOMES,
                                .n_attributes = d->per_race >= 6 ? 3 : 2,
                                .y = y,
                                .attributes = {{race, RACES}, {gender, 2}, {age, 6}},
                                .kinds = {kinds, 2},
                                .attribute_names = {"race", "gender", "age"},
                                .level_names = {races, genders, ages},
                                .kind_names = kind_names,
                                .model_names = models,
                                .outcome_names = outcomes,
                                .source_names = names,
                                .prompt_names = names};
}

struct counts {
    int n, any, named, other_model, other_family;
};

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12)) fail_msg("expected %.15g, got %.15g", want, got);
}

static struct counts simulate(const struct design *d, const double *rates, int n, uint64_t seed) {
    struct counts c = {.n = n};
    lk_rng_seed(&rng, seed);
    for (int i = 0; i < n; i++) {
        const struct lk_outcomes o = draw(d, rates);
        struct lk_claims claims;
        bool named = false, model = false, family = false;
        assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .seed = 1, .n_relabel = 999}, &claims));
        for (size_t k = 0; k < claims.n_found; k++) {
            const struct lk_claim *x = &claims.list[k];
            const bool race_3 = x->family == LK_CLAIM_GROUP && x->attribute == 0 && x->level == 3 && x->outcome == 2;
            const bool by_model = x->family == LK_CLAIM_MODEL && x->outcome == 2 && d->planted > 0; /* which is true */
            named |= race_3 && x->model == 1;
            model |= race_3 && x->model >= 0 && x->model != 1;
            family |= !race_3 && !by_model;
        }
        c.any += claims.n_found > 0, c.named += named, c.other_model += model, c.other_family += family;
        lk_claims_free(&claims);
    }
    return c;
}

static const double common[OUTCOMES] = {0.1, 0.25, 0.1, 0.45, 0.25}, rare[OUTCOMES] = {0.02, 0.05, 0.1, 0.25, 0.45};

/* Of 100 null studies at most 5 in the mean, of 40 hardly ever more than 6. */
static void a_null_study_has_no_sentence(void **state) {
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    const struct design designs[] = {{12, 10, 3, 0}, {7, 5, 3, 0}, {3, 5, 3, 0}};
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

static void a_planted_bias_is_named(void **state) {
    const bool full = getenv("LIKENESS_TEST_FULL") != NULL;
    const struct design five = {12, 10, 5, 1.9}; /* from 10 to about 43 % */
    const int n = full ? 200 : 15;
    (void)state;
    const struct counts c = simulate(&five, rare, n, 99);
    printf("planted in one of five models: named in %d of %d, another model %d, another factor %d\n", c.named, n,
           c.other_model, c.other_family);
    assert_true(c.named >= (full ? 0.9 * n : 13));
    assert_true(c.other_model <= 0.05 * n + 1 && c.other_family <= 0.08 * n + 1);
}

/* One of four models is ignored far less often than the others, which are alike: the sentence names all three. */
static void models_that_differ_alike_are_named(void **state) {
    const struct design d = {12, 10, 4, 0};
    static double other[OUTCOMES * MAX_M * MAX_S * MAX_P];
    struct lk_text text = {0};
    struct lk_claims claims;
    size_t at = 0;
    (void)state;
    lk_rng_seed(&rng, 11);
    const struct lk_outcomes o = draw(&d, common);
    const size_t cells = (size_t)o.n_sources * (size_t)o.n_prompts, first = 3 * (size_t)o.n_models * cells;
    for (size_t i = 0; i < cells; i++)
        if (i % 5) y[first + 2 * cells + i] = 0; /* the third model, of the outcome of 45 % */
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .seed = 1, .n_relabel = 999}, &claims));
    while (at < claims.n_found && claims.list[at].family != LK_CLAIM_MODEL) at++;
    assert_true(at < claims.n_found);
    const struct lk_claim *x = &claims.list[at];
    assert_int_equal(x->outcome, 3);
    assert_int_equal(x->against, 2);
    assert_int_equal(x->lower_too, 0);
    assert_int_equal(x->higher_too, (uint64_t)(1 << 0 | 1 << 1 | 1 << 3) & ~((uint64_t)1 << x->level));
    lk_claim_sentence(&o, x, &text);
    assert_non_null(strstr(text.bytes, "; M2 is lower than M"));
    assert_non_null(strstr(text.bytes, " and M"));
    assert_non_null(strstr(text.bytes, " too."));
    /* A convention by which it is as the first model: that one is named no more. */
    memcpy(other, y, sizeof other);
    memcpy(other + first, other + first + 2 * cells, cells * sizeof *other);
    for (size_t i = 0; i + 1 < cells; i += 7) /* not the same, and not another rate */
        other[first + i] = y[first + 2 * cells + i + 1], other[first + i + 1] = y[first + 2 * cells + i];
    const uint64_t before = x->higher_too;
    const struct lk_convention there = {"another rounding", other};
    assert_ok(lk_claims_conventions(&o, &(struct lk_claims_options){.alpha = 0.05, .seed = 1, .n_relabel = 999}, &there,
                                    1, &claims));
    for (at = 0; at < claims.n && claims.list[at].family != LK_CLAIM_MODEL;) at++;
    assert_int_equal(claims.list[at].higher_too, before & ~(uint64_t)1);
    lk_text_free(&text);
    lk_claims_free(&claims);
}

static void sentences_say_where_and_how_much(void **state) {
    const struct design d = {12, 10, 5, 2.5};
    struct lk_text text = {0};
    struct lk_claims claims;
    (void)state;
    lk_rng_seed(&rng, 4);
    const struct lk_outcomes o = draw(&d, common);
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .seed = 1, .n_relabel = 999}, &claims));
    assert_int_equal(claims.n_families, 5);
    assert_true(claims.family_alpha == 0.01 && claims.n_found >= 1);
    lk_claim_sentence(&o, &claims.list[0], &text);
    assert_non_null(strstr(text.bytes, "M1: gender change, R3 "));
    assert_non_null(strstr(text.bytes, "%, the others "));
    assert_non_null(strstr(text.bytes, " pp ["));
    assert_true(claims.list[0].low > 0.2 && claims.list[0].high < 0.9);
    assert_true(fabs(claims.list[0].rate - claims.list[0].other - claims.list[0].difference) < 1e-9);
    for (int f = 0; f < claims.n_families; f++) {
        text.n = 0;
        lk_text_add(&text, "%s", "");
        lk_claims_family_sentence(&claims, &claims.families[f], &text);
        if (f == 0)
            assert_int_equal(text.n, 0); /* something was found by it */
        else if (f < 4)
            assert_non_null(strstr(text.bytes, " pp, by the outcome, would have been, with 80% probability."));
    }
    lk_claims_free(&claims);
    lk_text_free(&text);
}

/* The same study with other numbers for its levels, models in another order: the same claims. */
static void names_do_not_decide(void **state) {
    static double turned[OUTCOMES * MAX_M * MAX_S * MAX_P];
    const struct design d = {7, 5, 3, 2.5};
    const int n_s = 49, n_p = 10;
    struct lk_claims before, after;
    (void)state;
    lk_rng_seed(&rng, 8);
    struct lk_outcomes o = draw(&d, common);
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    assert_ok(lk_claims_of(&o, &options, &before));
    for (int k = 0; k < OUTCOMES; k++)
        for (int m = 0; m < 3; m++)
            memcpy(turned + (k * 3 + (m + 1) % 3) * n_s * n_p, y + (k * 3 + m) * n_s * n_p,
                   (size_t)(n_s * n_p) * sizeof *y);
    o.y = turned;
    assert_ok(lk_claims_of(&o, &options, &after));
    assert_int_equal(before.n, after.n);
    for (size_t i = 0; i < before.n; i++) {
        const struct lk_claim *x = &before.list[i], *z = NULL;
        for (size_t k = 0; k < after.n; k++) {
            const struct lk_claim *c = &after.list[k];
            const bool models_alike = x->family == LK_CLAIM_MODEL
                                          ? c->level == (x->level + 1) % 3
                                          : c->model == (x->model < 0 ? -1 : (x->model + 1) % 3);
            if (c->family == x->family && c->attribute == x->attribute && c->outcome == x->outcome && models_alike &&
                (x->family == LK_CLAIM_MODEL || c->level == x->level))
                z = c;
        }
        assert_non_null(z);
        assert_true(fabs(z->t - x->t) < 1e-9 && fabs(z->low - x->low) < 1e-9 && z->found == x->found);
    }
    lk_claims_free(&before);
    lk_claims_free(&after);
}

/* A model that does it to every one of a group and to nobody else: nothing varies, and the sentence names the model. */
static void a_bias_without_exception_is_the_models(void **state) {
    const struct design d = {12, 1, 3, 0};
    struct lk_claims claims;
    (void)state;
    lk_rng_seed(&rng, 3);
    const struct lk_outcomes o = draw(&d, common);
    for (int k = 0; k < OUTCOMES; k++)
        for (int m = 0; m < 3; m++)
            for (int i = 0; i < 84; i++)
                for (int p = 0; p < 2; p++)
                    y[((k * 3 + m) * 84 + i) * 2 + p] = k == 2 && m == 1 && race[i] == 3 && p == 0;
    assert_ok(lk_claims_of(
        &o, &(struct lk_claims_options){.alpha = 0.05, .seed = 1, .n_relabel = 4999, .prompts_are_all = true},
        &claims));
    int n_races = 0;
    for (size_t i = 0; i < claims.n_found; i++) {
        const struct lk_claim *x = &claims.list[i];
        if (x->family != LK_CLAIM_GROUP) continue;
        assert_true(x->attribute == 0 && x->level == 3 && x->outcome == 2 && x->model == 1);
        n_races++;
    }
    assert_int_equal(n_races, 1);
    lk_claims_free(&claims);
}

/* A subcategory is compared with the others of its kind, in a family of its own. */
static void subcategories_are_named(void **state) {
    static const int32_t of[20] = {0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4};
    static const char *const of_names[] = {"K0 / a", "K0 / b", "K0 / c", "K1 / a", "K1 / b"};
    const struct design d = {12, 10, 2, 0};
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    struct lk_text text = {0};
    struct lk_claims claims;
    int32_t alone[20];
    (void)state;
    lk_rng_seed(&rng, 5);
    struct lk_outcomes o = draw(&d, common);
    for (int i = 0; i < 84 * 2; i++) /* in four of five of the second subcategory, and of one that has two prompts */
        for (int p = 5; p < 10; p++)
            if (i % 5) y[(2 * 84 * 2 + i) * 20 + p] = p < 8;
    o.subcategories = (struct lk_levels){of, 5}, o.subcategory_names = of_names;
    assert_ok(lk_claims_of(&o, &options, &claims));
    const struct lk_claims_family *family = &claims.families[4];
    assert_int_equal(claims.n_families, 6);
    near(claims.family_alpha, 0.05 / 6);
    assert_string_equal(family->name, "subcategory of prompts");
    assert_string_equal(family->refused, "");
    assert_int_equal(family->n_cells, 5 * 3 * (3 + 1)); /* outcomes, models and their mean; of two levels the higher */
    const struct lk_claim *found = NULL, *few = NULL;
    for (size_t i = 0; i < claims.n; i++) {
        const struct lk_claim *x = &claims.list[i];
        if (x->family != LK_CLAIM_KIND || x->attribute != LK_SUBCATEGORIES) continue;
        if (x->found && x->level == 1) found = x;
        if (x->found) assert_true(x->outcome == 2 && x->level <= 2);
        if (x->level == 2) few = x;
    }
    assert_non_null(found);
    lk_claim_sentence(&o, found, &text);
    assert_non_null(strstr(text.bytes, "All models: gender change, prompts of subcategory K0 / b "));
    assert_non_null(strstr(text.bytes, "%, the others "));
    assert_true(found->other < 0.5 * found->rate && !found->no_interval);
    near(found->difference, found->rate - found->other);
    assert_non_null(few);
    assert_string_equal(few->no_interval, "too few prompts");
    lk_claims_free(&claims);
    /* In the kind of two subcategories the other one has a name. */
    text.n = 0;
    lk_claim_sentence(&o, &(struct lk_claim){.family = LK_CLAIM_KIND, .attribute = LK_SUBCATEGORIES, .level = 3},
                      &text);
    assert_non_null(strstr(text.bytes, "prompts of subcategory K1 / a 0.0%, K1 / b 0.0%"));
    lk_text_free(&text);
    /* Prompts that are each alone in their subcategory are not asked about. */
    for (int k = 0; k < 20; k++) alone[k] = k;
    o.subcategories = (struct lk_levels){alone, 20};
    assert_ok(lk_claims_of(&o, &options, &claims));
    assert_int_equal(claims.n_families, 5);
    lk_claims_free(&claims);
}

/* Three sources a group leave a t interval too little, whatever its width; of rare outcomes Wilson's stands. */
static void small_designs_have_no_interval(void **state) {
    const struct design d = {3, 10, 2, 0};
    struct lk_claims claims;
    struct lk_text text = {0};
    int n_refused = 0, n_stand = 0;
    (void)state;
    lk_rng_seed(&rng, 12);
    const struct lk_claims_options options = {.alpha = 0.05, .n_relabel = 99, .measured = true};
    struct lk_outcomes o = draw(&d, common);
    assert_ok(lk_claims_of(&o, &options, &claims));
    for (size_t i = 0; i < claims.n_measured; i++) {
        const struct lk_claim *x = &claims.measured[i];
        if (x->family != LK_CLAIM_GROUP || x->attribute != 0) continue;
        n_refused += x->no_interval != NULL, n_stand += !x->no_interval;
        if (x->no_interval) assert_string_equal(x->no_interval, "too few people");
    }
    assert_true(n_refused > 20 && n_stand > 0);
    lk_claims_free(&claims);
    /* A group differs in one model and less in the other: whether they differ is not told. */
    for (int i = 0; i < 2 * 420; i++)
        y[2 * 2 * 420 + i] = race[i / 20 % 21] == 3 ? i < 420 ? i % 5 > 0 : i % 3 == 0 : i % 7 == 0;
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.5, .n_relabel = 999}, &claims));
    assert_true(claims.n_found > 0 && claims.list[0].level == 3 && claims.list[0].model == -1);
    lk_claim_sentence(&o, &claims.list[0], &text);
    assert_non_null(strstr(text.bytes, "; too few people or prompts to tell whether models differ in it."));
    lk_text_free(&text);
    lk_claims_free(&claims);
    o.n_models = o.n_outcomes = 1; /* rates of genders, after those of races */
    assert_ok(lk_claims_of(&o, &options, &claims));
    for (size_t i = 0; i < claims.n_measured; i++) {
        const struct lk_claim *x = &claims.measured[i];
        double n = 0, sum = 0;
        if (x->family != LK_CLAIM_GROUP || x->attribute != 1) continue;
        for (int k = 0; k < 21 * 20; k++)
            if (gender[k / 20] == x->level) n++, sum += y[k];
        near(x->rate, sum / n);
    }
    lk_claims_free(&claims);
}

static void what_cannot_be_said_is_refused(void **state) {
    const struct design d = {3, 5, 3, 0};
    struct lk_claims claims;
    int32_t one_each[MAX_P];
    (void)state;
    lk_rng_seed(&rng, 3);
    struct lk_outcomes o = draw(&d, common);
    race[0] = 6, race[7] = 6; /* race 0 has one source left */
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims));
    assert_string_equal(claims.families[0].refused, "a level has 1 source, and 3 are needed");
    lk_claims_free(&claims);
    /* Each kind one prompt: nothing like these; for these prompts alone the groups are compared. */
    for (int k = 0; k < 10; k++) one_each[k] = k;
    race[0] = 0, race[7] = 0;
    o.kinds = (struct lk_levels){one_each, 10};
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims));
    assert_string_equal(claims.families[0].refused, "each kind has one prompt");
    lk_claims_free(&claims);
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99, .prompts_are_all = true},
                           &claims));
    assert_string_equal(claims.families[0].refused, "");
    lk_claims_free(&claims);
    /* A model that hardly answered, a source without answers, a number that is no share. */
    o.kinds = (struct lk_levels){kinds, 2};
    for (int k = 0; k < OUTCOMES; k++) {
        for (int i = 0; i < 21 * 10; i++)
            if (i % 5) y[(k * 3 + 2) * 210 + i] = NAN;
        for (int m = 0; m < 3; m++)
            for (int p = 0; p < 6; p++) y[((k * 3 + m) * 21 + 4) * 10 + p] = NAN;
    }
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims));
    assert_non_null(strstr(claims.notes.bytes, "M2: 19 % of its outcomes are known; it is left out.\n"));
    assert_non_null(strstr(claims.notes.bytes, "someone: 40 % of its outcomes are known; it is left out.\n"));
    assert_int_equal(claims.n_sources, 20);
    lk_claims_free(&claims);
    y[0] = 2;
    assert_fails(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims), LK_E_INPUT,
                 "expected outcomes from 0 to 1, got 2");
    lk_claims_free(&claims);
}

/* Outcomes under a convention: as they are, of the planted group as of the others, or in the others instead. */
enum turn { AS_IT_IS, GONE, OPPOSITE };
static void turn(const struct lk_outcomes *o, const double *from, enum turn how, double *to) {
    const size_t n = (size_t)(o->n_outcomes * o->n_models * o->n_sources * o->n_prompts);
    memcpy(to, from, n * sizeof *to);
    for (int i = 0; i < o->n_sources; i++)
        for (int k = 0; k < o->n_prompts; k++) {
            double *x = &to[((2 * o->n_models + 1) * o->n_sources + i) * o->n_prompts + k];
            if (how == OPPOSITE) *x = 1 - *x;
            if (how == GONE && race[i] == 3) *x = from[(2 * o->n_models * o->n_sources + i) * o->n_prompts + k];
        }
}

/* Twenty cases: whichever of four conventions undoes a finding, its sentence says so. */
static void conventions_stand_in_the_sentence(void **state) {
    static const char *const names_of[4] = {"the primary judge alone", "the secondary judge alone",
                                            "the judges' rounded mean", "raters"};
    static double under[4][OUTCOMES * 5 * MAX_S * MAX_P], plain[OUTCOMES * 5 * MAX_S * MAX_P];
    const struct design d = {7, 5, 3, 3};
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    (void)state;
    lk_rng_seed(&rng, 12);
    struct lk_outcomes o = draw(&d, common);
    memcpy(plain, y, sizeof plain);
    for (int which = 0; which < 20; which++) {
        const int at = which % 4, kind = which / 4; /* undone, turned, undone by two, only there, by none */
        struct lk_convention list[4];
        struct lk_text text = {0};
        struct lk_claims claims;
        if (kind == 3) turn(&o, plain, GONE, y);
        for (int c = 0; c < 4; c++) {
            const bool other = c == at || (kind == 2 && c == (at + 1) % 4);
            turn(&o, plain,
                 !other      ? kind == 3 ? GONE : AS_IT_IS
                 : kind == 1 ? OPPOSITE
                 : kind >= 3 ? AS_IT_IS
                             : GONE,
                 under[c]);
            list[c] = (struct lk_convention){names_of[c], under[c]};
        }
        assert_ok(lk_claims_of(&o, &options, &claims));
        const size_t n_found = claims.n_found;
        assert_int_equal(n_found > 0, kind != 3);
        assert_ok(lk_claims_conventions(&o, &options, list, 4, &claims));
        const struct lk_claim *x = NULL;
        for (size_t i = 0; i < claims.n && kind != 3; i++)
            if (claims.list[i].family == LK_CLAIM_GROUP && claims.list[i].attribute == 0 &&
                claims.list[i].outcome == 2 && claims.list[i].level == 3)
                x = &claims.list[i];
        if (x) lk_claim_sentence(&o, x, &text);
        char part[100];
        snprintf(part, sizeof part, kind == 1 ? "; the opposite with %s: no direction." : "; not with %s (p ",
                 names_of[at]);
        if (kind <= 1) assert_non_null(strstr(text.bytes, part));
        if (kind == 0) assert_true(x->found);
        if (kind == 1) assert_true(!x->found && claims.n_found < n_found);
        if (kind == 2) assert_non_null(strstr(text.bytes, " and 1 more."));
        if (kind == 3) {
            snprintf(part, sizeof part, "Only with %s: M1: gender change, R3 ", names_of[at]);
            assert_non_null(strstr(claims.notes.bytes, part));
        }
        if (kind == 4) assert_null(strstr(text.bytes, "not with"));
        memcpy(y, plain, sizeof plain);
        lk_claims_free(&claims);
        lk_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(conventions_stand_in_the_sentence),
                                       cmocka_unit_test(a_null_study_has_no_sentence),
                                       cmocka_unit_test(a_planted_bias_is_named),
                                       cmocka_unit_test(sentences_say_where_and_how_much),
                                       cmocka_unit_test(models_that_differ_alike_are_named),
                                       cmocka_unit_test(names_do_not_decide),
                                       cmocka_unit_test(subcategories_are_named),
                                       cmocka_unit_test(small_designs_have_no_interval),
                                       cmocka_unit_test(a_bias_without_exception_is_the_models),
                                       cmocka_unit_test(what_cannot_be_said_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
