/* What findings say, and how: in words, under conventions, of small designs. Studies as in claims_study.h. */
#include <math.h>

#include "engine/base/alloc.h"
#include "tests/common/claims_study.h"
#include "tests/common/test.h"

static const double common[OUTCOMES] = {0.1, 0.25, 0.1, 0.45, 0.25};

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-12)) fail_msg("expected %.15g, got %.15g", want, got);
}

/* One of four models is ignored far less often than the others, which are alike: the sentence names all three. */
static void models_that_differ_alike_are_named(void **state) {
    const struct claims_design d = {12, 10, 4, 0, false};
    static double other[OUTCOMES * MAX_M * MAX_S * MAX_P];
    struct lk_text text = {0};
    struct lk_claims claims;
    size_t at = 0;
    (void)state;
    lk_rng_seed(&claims_study.rng, 11);
    const struct lk_outcomes o = claims_draw(&d, common);
    const size_t cells = (size_t)o.n_sources * (size_t)o.n_prompts, first = 3 * (size_t)o.n_models * cells;
    for (size_t i = 0; i < cells; i++)
        if (i % 5) claims_study.y[first + 2 * cells + i] = 0; /* the third model, of the outcome of 45 % */
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
    memcpy(other, claims_study.y, sizeof other);
    memcpy(other + first, other + first + 2 * cells, cells * sizeof *other);
    for (size_t i = 0; i + 1 < cells; i += 7) /* not the same, and not another rate */
        other[first + i] = claims_study.y[first + 2 * cells + i + 1],
                      other[first + i + 1] = claims_study.y[first + 2 * cells + i];
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
    const struct claims_design d = {12, 10, 5, 2.5, false};
    struct lk_text text = {0};
    struct lk_claims claims;
    (void)state;
    lk_rng_seed(&claims_study.rng, 4);
    const struct lk_outcomes o = claims_draw(&d, common);
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
    const struct claims_design d = {7, 5, 3, 2.5, false};
    const int n_s = 49, n_p = 10;
    struct lk_claims before, after;
    (void)state;
    lk_rng_seed(&claims_study.rng, 8);
    struct lk_outcomes o = claims_draw(&d, common);
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    assert_ok(lk_claims_of(&o, &options, &before));
    for (int k = 0; k < OUTCOMES; k++)
        for (int m = 0; m < 3; m++)
            memcpy(turned + (k * 3 + (m + 1) % 3) * n_s * n_p, claims_study.y + (k * 3 + m) * n_s * n_p,
                   (size_t)(n_s * n_p) * sizeof *turned);
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
    const struct claims_design d = {12, 1, 3, 0, false};
    struct lk_claims claims;
    (void)state;
    lk_rng_seed(&claims_study.rng, 3);
    const struct lk_outcomes o = claims_draw(&d, common);
    for (int k = 0; k < OUTCOMES; k++)
        for (int m = 0; m < 3; m++)
            for (int i = 0; i < 84; i++)
                for (int p = 0; p < 2; p++)
                    claims_study.y[((k * 3 + m) * 84 + i) * 2 + p] =
                        k == 2 && m == 1 && claims_study.race[i] == 3 && p == 0;
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
    const struct claims_design d = {12, 10, 2, 0, false};
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    struct lk_text text = {0};
    struct lk_claims claims;
    int32_t alone[20];
    (void)state;
    lk_rng_seed(&claims_study.rng, 5);
    struct lk_outcomes o = claims_draw(&d, common);
    for (int i = 0; i < 84 * 2; i++) /* in four of five of the second subcategory, and of one that has two prompts */
        for (int p = 5; p < 10; p++)
            if (i % 5) claims_study.y[(2 * 84 * 2 + i) * 20 + p] = p < 8;
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
    const struct claims_design d = {3, 10, 2, 0, false};
    struct lk_claims claims;
    struct lk_text text = {0};
    int n_refused = 0, n_stand = 0;
    (void)state;
    lk_rng_seed(&claims_study.rng, 12);
    const struct lk_claims_options options = {.alpha = 0.05, .n_relabel = 99, .measured = true};
    struct lk_outcomes o = claims_draw(&d, common);
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
        claims_study.y[2 * 2 * 420 + i] =
            claims_study.race[i / 20 % 21] == 3 ? i < 420 ? i % 5 > 0 : i % 3 == 0 : i % 7 == 0;
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
            if (claims_study.gender[k / 20] == x->level) n++, sum += claims_study.y[k];
        near(x->rate, sum / n);
    }
    lk_claims_free(&claims);
}

static void what_cannot_be_said_is_refused(void **state) {
    const struct claims_design d = {3, 5, 3, 0, false};
    struct lk_claims claims;
    int32_t one_each[MAX_P];
    (void)state;
    lk_rng_seed(&claims_study.rng, 3);
    struct lk_outcomes o = claims_draw(&d, common);
    claims_study.race[0] = 6, claims_study.race[7] = 6; /* race 0 has one source left */
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims));
    assert_string_equal(claims.families[0].refused, "a level has 1 source, and 3 are needed");
    lk_claims_free(&claims);
    /* Each kind one prompt: nothing like these; for these prompts alone the groups are compared. */
    for (int k = 0; k < 10; k++) one_each[k] = k;
    claims_study.race[0] = 0, claims_study.race[7] = 0;
    o.kinds = (struct lk_levels){one_each, 10};
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims));
    assert_string_equal(claims.families[0].refused, "each kind has one prompt");
    lk_claims_free(&claims);
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99, .prompts_are_all = true},
                           &claims));
    assert_string_equal(claims.families[0].refused, "");
    lk_claims_free(&claims);
    /* A model that hardly answered, a source without answers, a number that is no share. */
    o.kinds = (struct lk_levels){claims_study.kinds, 2};
    for (int k = 0; k < OUTCOMES; k++) {
        for (int i = 0; i < 21 * 10; i++)
            if (i % 5) claims_study.y[(k * 3 + 2) * 210 + i] = NAN;
        for (int m = 0; m < 3; m++)
            for (int p = 0; p < 6; p++) claims_study.y[((k * 3 + m) * 21 + 4) * 10 + p] = NAN;
    }
    assert_ok(lk_claims_of(&o, &(struct lk_claims_options){.alpha = 0.05, .n_relabel = 99}, &claims));
    assert_non_null(strstr(claims.notes.bytes, "M2: 19 % of its outcomes are known; it is left out.\n"));
    assert_non_null(strstr(claims.notes.bytes, "someone: 40 % of its outcomes are known; it is left out.\n"));
    assert_int_equal(claims.n_sources, 20);
    lk_claims_free(&claims);
    claims_study.y[0] = 2;
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
            if (how == GONE && claims_study.race[i] == 3)
                *x = from[(2 * o->n_models * o->n_sources + i) * o->n_prompts + k];
        }
}

/* Twenty cases: whichever of four conventions undoes a finding, its sentence says so. */
static void conventions_stand_in_the_sentence(void **state) {
    static const char *const names_of[4] = {"the primary judge alone", "the secondary judge alone",
                                            "the judges' rounded mean", "raters"};
    static double under[4][OUTCOMES * 5 * MAX_S * MAX_P], plain[OUTCOMES * 5 * MAX_S * MAX_P];
    const struct claims_design d = {7, 5, 3, 3, false};
    const struct lk_claims_options options = {.alpha = 0.05, .seed = 1, .n_relabel = 999};
    (void)state;
    lk_rng_seed(&claims_study.rng, 12);
    struct lk_outcomes o = claims_draw(&d, common);
    memcpy(plain, claims_study.y, sizeof plain);
    for (int which = 0; which < 20; which++) {
        const int at = which % 4, kind = which / 4; /* undone, turned, undone by two, only there, by none */
        struct lk_convention list[4];
        struct lk_text text = {0};
        struct lk_claims claims;
        if (kind == 3) turn(&o, plain, GONE, claims_study.y);
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
        memcpy(claims_study.y, plain, sizeof plain);
        lk_claims_free(&claims);
        lk_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(conventions_stand_in_the_sentence),

                                       cmocka_unit_test(sentences_say_where_and_how_much),
                                       cmocka_unit_test(models_that_differ_alike_are_named),
                                       cmocka_unit_test(names_do_not_decide),
                                       cmocka_unit_test(subcategories_are_named),
                                       cmocka_unit_test(small_designs_have_no_interval),
                                       cmocka_unit_test(a_bias_without_exception_is_the_models),
                                       cmocka_unit_test(what_cannot_be_said_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
