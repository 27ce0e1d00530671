/* Contrasts of people and prompts, both samples: vectors of small integer tables by the reference to 12 digits, and
 * tables that have no answer. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/crossed.h"
#include "tests/common/test.h"

static const double t1[24] = {3, 2, 4, 1, 2, 2, 5, 3, 4, 1, 3, 2, 1, 2, 2, 1, 2, 1, 4, 2, 1, 1, 3, 3};
static const int32_t t1_group[6] = {0, 0, 0, 1, 1, 1}, t1_kind[4] = {0, 0, 1, 1}, t1_gender[6] = {0, 0, 1, 0, 1, 1};
static const char t2[] = "0100101001"
                         "1010010000"
                         "0000011001"
                         "0110000111"
                         "0010011100"
                         "0100010111"
                         "0011101011"
                         "1000000000"
                         "0001110101";
static const int32_t t2_group[9] = {0, 0, 0, 1, 1, 2, 2, 2, 2}, t2_kind[5] = {0, 0, 0, 1, 1};

static void near(double got, double want) {
    if (!(fabs(got - want) <= 5e-12 * fmax(fabs(want), 1))) fail_msg("expected %.12g, got %.12g", want, got);
}

/* t2's outcomes, combined over the two models. */
static void t2_table(double u0, double u1, double *z) {
    double y[90], u[2] = {u0, u1};
    for (int i = 0; i < 90; i++) y[i] = t2[i] - '0';
    lk_crossed_cells(y, 9, 5, 2, 1, u, z, NULL);
}

/* One contrast: level a of the first source factor against b (-1: the others; a = -1: the mean of all), kinds likewise.
 */
struct asked {
    int n_sources, n_prompts;
    const double *z;
    double share_seen;
    const struct lk_levels *factors;
    int n_factors;
    struct lk_levels kind;
    int a, b, kind_a, kind_b;
};

static const char *weights(int n, const struct lk_levels *factors, int n_factors, int a, int b, double *w) {
    const char *why = NULL;
    double contrast[16];
    if (a < 0 || b == -2) {
        lk_mean_weights(n, factors->of, a, w);
        return NULL;
    }
    lk_level_contrast(n, factors, a, b, contrast);
    assert_ok(lk_contrast_weights(n, factors, n_factors, contrast, w, &why));
    return why;
}

static const char *ask(struct asked q, struct lk_crossed *out) {
    double w[64], v[64];
    struct lk_residual_maker people, prompts;
    const char *why = weights(q.n_sources, q.factors, q.n_factors, q.a, q.b, w);
    if (!why) why = weights(q.n_prompts, &q.kind, 1, q.kind_a, q.kind_b, v);
    if (why) return why;
    assert_ok(lk_residual_maker(q.n_sources, q.factors, q.n_factors, &people));
    assert_ok(lk_residual_maker(q.n_prompts, &q.kind, 1, &prompts));
    struct lk_crossed_table table = {q.n_sources, q.n_prompts, q.z, q.share_seen, false};
    assert_ok(lk_crossed_contrast(&table, w, v, &people, &prompts, out));
    lk_residual_maker_free(&people);
    lk_residual_maker_free(&prompts);
    return out->undefined;
}

struct expected {
    double estimate, source, prompt, cell, source_df, prompt_df, variance, df, p;
};

static void expect(struct asked q, struct expected want) {
    struct lk_crossed r;
    assert_null(ask(q, &r));
    near(r.estimate, want.estimate);
    near(r.source, want.source);
    near(r.prompt, want.prompt);
    near(r.cell, want.cell);
    near(r.source_df, want.source_df);
    near(r.prompt_df, want.prompt_df);
    near(r.cell_df, want.source_df * want.prompt_df);
    near(r.variance, want.variance);
    near(r.df, want.df);
    near(r.p, want.p);
    assert_null(r.no_test);
    assert_null(r.no_interval);
}

static const struct lk_levels t1_factors[2] = {{t1_group, 2}, {t1_gender, 2}}, t2_factors[1] = {{t2_group, 3}};

static void contrasts_of_a_table(void **state) {
    (void)state;
    struct asked q = {6, 4, t1, 1, t1_factors, 1, {t1_kind, 2}, 0, 1, -1, 0};
    expect(q, (struct expected){.75, .0763888888888889, .173611111111111, .111111111111111, 4, 2, .173611111111111, 2,
                                .213666349005});
    q.kind_a = 1;
    expect(q, (struct expected){-.5, .805555555555556, .694444444444444, .444444444444444, 4, 2, 1.05555555555556,
                                2.60297431275, .6644794179});
    q.a = -1;
    expect(q, (struct expected){.916666666666667, .201388888888889, .673611111111111, .111111111111111, 4, 2,
                                .763888888888889, 2.44605043716, .386693829446});
    struct lk_crossed r;
    double low, high;
    ask(q, &r);
    assert_true(lk_crossed_interval(&r, .95, &low, &high));
    near(low, -2.25746527124);
    near(high, 4.09079860458);
    struct lk_crossed_shares shares = lk_crossed_shares(&r);
    near(shares.people, (.201388888888889 - .111111111111111) / .763888888888889);
    near(shares.prompts, (.673611111111111 - .111111111111111) / .763888888888889);
    near(shares.people + shares.prompts + shares.outputs, 1);
    q = (struct asked){6, 4, t1, 1, t1_factors, 1, {t1_kind, 2}, 0, -2, -1, 0};
    expect(q, (struct expected){2.66666666666667, .0277777777777778, .361111111111111, .0694444444444444, 2, 2,
                                .361111111111111, 2, .0472138653193});
}

static void contrasts_of_two_models(void **state) {
    (void)state;
    double z[45];
    t2_table(1, -1, z);
    struct asked q = {9, 5, z, 1, t2_factors, 1, {t2_kind, 2}, -1, 0, -1, 0};
    expect(q, (struct expected){-.0888888888888889, .0156378600823, .0108641975309, .0129218106996, 5.85542168675,
                                2.94117647059, .0156378600823, 5.85542168675, .504510651473});
    q.a = 2, q.b = -1;
    expect(q, (struct expected){-.1, .075, .0702777777778, .0452777777778, 5.26086956522, 2.94117647059, .1,
                                3.47107011275, .769913260996});
    t2_table(1, 0, z);
    expect(q, (struct expected){-.0166666666667, .0236111111111, .0311111111111, .0261111111111, 5.26086956522,
                                2.94117647059, .0311111111111, 2.94117647059, .930787184869});
    t2_table(.5, .5, z);
    q.a = -1, q.kind_a = 1, q.kind_b = 0;
    expect(q, (struct expected){.12037037037, .0112882944673, .00317215363512, .0128315043439, 5.85542168675,
                                2.27272727273, .0112882944673, 5.85542168675, .301489208003});
}

static void adjusted_for_another_attribute(void **state) {
    (void)state;
    static const double want[6] = {.25, .25, .5, -.5, -.25, -.25};
    double w[6];
    assert_null(weights(6, t1_factors, 2, 0, 1, w));
    for (int i = 0; i < 6; i++) near(w[i], want[i]);
    struct asked q = {6, 4, t1, 1, t1_factors, 2, {t1_kind, 2}, 0, 1, -1, 0};
    expect(q, (struct expected){.8125, .153459821429, .28515625, .0597098214286, 1.81481481481, 2, .37890625,
                                2.62872576726, .290023786392});
}

static void missing_cells(void **state) {
    (void)state;
    double z[24], share;
    memcpy(z, t1, sizeof z);
    z[1] = z[19] = NAN;
    assert_ok(lk_crossed_fill(z, 6, 4, &share));
    near(share, 22. / 24);
    near(z[1], 1.53571428571);
    near(z[19], 1.96428571429);
    struct lk_crossed r;
    ask((struct asked){6, 4, z, share, t1_factors, 1, {t1_kind, 2}, 0, 1, -1, 0}, &r);
    near(r.estimate, .714285714286);
    near(r.variance, .217551793445);
    near(r.df, 2);
    near(r.p, .265341726546);

    bool source[6], prompt[4];
    memcpy(z, t1, sizeof z);
    z[4] = z[5] = z[6] = z[8] = z[9] = z[12] = z[16] = NAN;
    lk_crossed_sparse(z, 6, 4, source, prompt);
    for (int s = 0; s < 6; s++) assert_int_equal(source[s], s == 1);
    for (int p = 0; p < 4; p++) assert_int_equal(prompt[p], p == 0);
    for (int i = 0; i < 24; i++) z[i] = NAN;
    assert_ok(lk_crossed_fill(z, 6, 4, &share));
    near(share, 0);
}

static void seeds_are_averaged_first(void **state) {
    (void)state;
    const double y[12] = {1, 3, 0, NAN, 2, 2, 5, 6, NAN, NAN, 1, 1}, u[2] = {1, -1};
    double z[3], within;
    lk_crossed_cells(y, 1, 3, 2, 2, u, z, &within);
    near(z[0], 2);
    near(z[1], -3.5);
    assert_true(isnan(z[2]));
    near(within, 2.5 / 4);
}

/* T9 of the reference. */
static void errors_of_groups(void **state) {
    (void)state;
    static const double t2_source[] = {0.00111111111111, 0.0025, 0.0122916666667};
    static const double t2_shared[] = {0.00252314814815, -0.00261574074074, 9.25925925926e-05,
                                       0.0055787037037,  -0.00296296296296, 0.00287037037037};
    double z[45];
    struct lk_crossed_table table = {9, 5, z, 1, false};
    const struct lk_levels groups = {t2_group, 3}, kinds = {t2_kind, 2}, groups1 = {t1_group, 2}, kinds1 = {t1_kind, 2};
    struct lk_residual_maker prompts;
    struct lk_crossed_errors e;
    t2_table(.5, .5, z);
    assert_ok(lk_residual_maker(5, &kinds, 1, &prompts));
    assert_ok(lk_crossed_errors_of(&table, &groups, &prompts, &e));
    for (int g = 0, at = 0; g < 3; g++) {
        near(e.source[g], t2_source[g]);
        for (int h = g; h < 3; h++, at++) near(e.shared[g * 3 + h], t2_shared[at]);
    }
    near(e.kept, 0);
    lk_crossed_errors_free(&e);
    table.prompts_are_all = true;
    assert_ok(lk_crossed_errors_of(&table, &groups, &prompts, &e));
    near(e.source[2], t2_source[2]);
    near(e.shared[0], 0);
    lk_crossed_errors_free(&e);
    lk_residual_maker_free(&prompts);
    table = (struct lk_crossed_table){6, 4, t1, 1, false};
    assert_ok(lk_residual_maker(4, &kinds1, 1, &prompts));
    assert_ok(lk_crossed_errors_of(&table, &groups1, &prompts, &e));
    near(e.source[0], 0.0277777777778);
    near(e.source[1], 0.0486111111111);
    near(e.shared[0], 0.0434027777778);
    near(e.shared[1], -0.0434027777778);
    near(e.kept, 0.36);
    lk_crossed_errors_free(&e);
    static const int32_t alone[6] = {0, 0, 0, 0, 0, 1}, one[6] = {0};
    const struct lk_levels with_one[] = {{alone, 2}, {one, 1}};
    static const char *const why[] = {"a level has one source", "fewer than two levels"};
    for (int i = 0; i < 2; i++) {
        assert_ok(lk_crossed_errors_of(&table, &with_one[i], &prompts, &e));
        assert_string_equal(e.undefined, why[i]);
    }
    lk_residual_maker_free(&prompts);
}

static void tables_without_an_answer(void **state) {
    (void)state;
    double z[24] = {0}, low, high;
    struct lk_crossed r;
    struct asked q = {6, 4, z, 1, t1_factors, 1, {t1_kind, 2}, 0, 1, -1, 0};
    assert_null(ask(q, &r));
    assert_true(r.p == 1 && r.variance == 0 && !r.no_test);
    assert_string_equal(r.no_interval, "all equal");
    assert_false(lk_crossed_interval(&r, .95, &low, &high));
    assert_true(low == 0 && high == 0 && lk_crossed_shares(&r).people == 0);
    for (int i = 0; i < 12; i++) z[i] = 1;
    assert_null(ask(q, &r));
    near(r.estimate, 1);
    assert_string_equal(r.no_test, "no variation between sources or prompts");
    assert_true(r.p == 0);
    for (int i = 0; i < 24; i++) z[i] = t1[i] * 1e200;
    assert_string_equal(ask(q, &r), "the values are too large");
    assert_true(r.variance == 0 && r.df == 0 && r.p == 0);

    static const int32_t zero[6] = {0}, one_alone[6] = {0, 0, 0, 0, 0, 1}, one_kind[4] = {0, 0, 0, 1};
    const struct lk_levels single[1] = {{zero, 1}}, alone[1] = {{one_alone, 2}}, empty[1] = {{one_alone, 4}};
    q.z = t1, q.factors = alone;
    assert_string_equal(ask(q, &r), "a level has one source");
    near(r.estimate, 47. / 20 - 2);
    q.factors = empty, q.a = 2;
    assert_string_equal(ask(q, &r), "a level of the comparison has no member");
    q = (struct asked){6, 4, t1, 1, t1_factors, 1, {one_kind, 2}, 0, 1, 0, 1};
    assert_string_equal(ask(q, &r), "a kind has one prompt");
    q = (struct asked){1, 4, t1, 1, single, 1, {t1_kind, 2}, -1, 0, -1, 0};
    assert_string_equal(ask(q, &r), "a level has one source");
    q = (struct asked){6, 1, t1, 1, t1_factors, 1, {zero, 1}, 0, 1, -1, 0};
    assert_string_equal(ask(q, &r), "one prompt");
    const struct lk_levels aliased[2] = {{t1_group, 2}, {t1_group, 2}};
    q = (struct asked){6, 4, t1, 1, aliased, 2, {t1_kind, 2}, 0, 1, -1, 0};
    assert_string_equal(ask(q, &r), "this attribute cannot be told from the other attributes");

    struct lk_residual_maker maker;
    const struct lk_levels bad[1] = {{t1_group, 1}};
    assert_fails(lk_residual_maker(6, bad, 1, &maker), LK_E_INPUT, "below 1, got 1");
    assert_fails(lk_residual_maker(0, bad, 0, &maker), LK_E_INPUT, "at least one");
    lk_alloc_fail_at(1);
    assert_int_equal(lk_residual_maker(6, t1_factors, 1, &maker), LK_E_NOMEM);
    lk_alloc_fail_at(0);
    assert_null(maker.q);
    assert_ok(lk_residual_maker(6, aliased, 2, &maker));
    assert_int_equal(maker.rank, 2);
    lk_residual_maker_free(&maker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contrasts_of_a_table),
        cmocka_unit_test(contrasts_of_two_models),
        cmocka_unit_test(adjusted_for_another_attribute),
        cmocka_unit_test(missing_cells),
        cmocka_unit_test(seeds_are_averaged_first),
        cmocka_unit_test(tables_without_an_answer),
        cmocka_unit_test(errors_of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
