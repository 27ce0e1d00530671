/* Relabelled sources and prompts, rates near 0, what could have been seen, raters: vectors of small tables by the
 * reference to 12 digits, and the same answers for what must not change them. */
#include <math.h>
#include <omp.h>

#include "engine/base/alloc.h"
#include "eval/stats/crossed/relabel.h"
#include "eval/study/random.h"
#include "tests/common/test.h"

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
static const char t4[] = "0000"
                         "0000"
                         "0000"
                         "0000"
                         "0000"
                         "0000"
                         "0000"
                         "0000"
                         "0011"
                         "0000"
                         "1000"
                         "0000"
                         "0010"
                         "0000"
                         "1000"
                         "0010"
                         "1010"
                         "1001";

static void near(double got, double want) {
    if (!(fabs(got - want) <= 5e-12 * fmax(fabs(want), 1))) fail_msg("expected %.12g, got %.12g", want, got);
}

static void near_all(const double *got, const double *want, int n) {
    for (int i = 0; i < n; i++) near(got[i], want[i]);
}

/* t2's outcomes of model 0, model 1 and their mean. */
static void t2_tables(double z[3][45]) {
    static const double u[3][2] = {{1, 0}, {0, 1}, {0.5, 0.5}};
    double y[90];
    for (int i = 0; i < 90; i++) y[i] = t2[i] - '0';
    for (int c = 0; c < 3; c++) lk_crossed_cells(y, 9, 5, 2, 1, u[c], z[c], NULL);
}

static void relabelled_sources_are_the_references(void **state) {
    static const double t[9] = {.222834405812, .280155685305, .0950169098958, .810884854079, .364098047815,
                                .432203079429, .886194286901, .541161654681,  .302299610876},
                        p[9] = {1, 1, 1, .923015873016, 1, 1, .888888888889, .980158730159, 1};
    const struct lk_levels group = {t2_group, 3}, kind = {t2_kind, 2};
    double z[3][45];
    const double *const list[] = {z[0], z[1], z[2]};
    struct lk_relabelled r;
    (void)state;
    t2_tables(z);
    assert_ok(lk_relabel_sources(&(struct lk_crossed_tables){9, 5, 3, list}, &group, NULL, 0, &kind,
                                 &(struct lk_relabel){0}, &r));
    assert_null(r.refused);
    assert_true(r.exact);
    assert_int_equal(r.n, 1260);
    near_all(r.t, t, 9);
    near_all(r.p, p, 9);
    near(r.difference[2], -.0166666666667);
    /* The largest t that is reached with so small a chance, and no smaller one. */
    const double critical = lk_relabelled_critical(&r, 0.05);
    size_t n = 0;
    for (size_t b = 0; b < r.n; b++) n += r.largest[b] >= critical - 1e-9;
    assert_true((double)n / 1260 <= 0.05 && critical > r.t[6]);
    assert_true(isinf(lk_relabelled_critical(&r, 1e-6)));
    lk_relabelled_free(&r);
}

static void relabelled_prompts_are_the_references(void **state) {
    static const double t[3] = {.367423461417, 1.22474487139, 1.13293614286}, p[3] = {.9, .4, .4};
    const struct lk_levels group = {t2_group, 3}, kind = {t2_kind, 2};
    double z[3][45];
    const double *const list[] = {z[0], z[1], z[2]};
    struct lk_relabelled r;
    (void)state;
    t2_tables(z);
    assert_ok(lk_relabel_prompts(&(struct lk_crossed_tables){9, 5, 3, list}, &kind, NULL, &group, 1,
                                 &(struct lk_relabel){0}, &r));
    assert_null(r.refused);
    assert_int_equal(r.n, 10);
    for (int c = 0; c < 3; c++) {
        near(r.t[2 * c + 1], t[c]);
        near(r.p[2 * c + 1], p[c]);
    }
    near(r.difference[5], .12037037037);
    lk_relabelled_free(&r);
    /* A balanced table: the statistic is that of the contrast itself. */
    static const double t1[24] = {3, 2, 4, 1, 2, 2, 5, 3, 4, 1, 3, 2, 1, 2, 2, 1, 2, 1, 4, 2, 1, 1, 3, 3};
    static const int32_t t1_group[6] = {0, 0, 0, 1, 1, 1}, t1_kind[4] = {0, 0, 1, 1};
    const struct lk_levels two = {t1_group, 2}, kinds = {t1_kind, 2};
    const double *const one[] = {t1};
    assert_ok(lk_relabel_prompts(&(struct lk_crossed_tables){6, 4, 1, one}, &kinds, NULL, &two, 1,
                                 &(struct lk_relabel){0}, &r));
    near(r.t[1], .916666666667 / sqrt(.763888888889));
    assert_int_equal(r.n, 6);
    lk_relabelled_free(&r);
}

/* Subcategories move within their kind alone: where one kind has several, all is as of its prompts by themselves. */
static void subcategories_stay_in_their_kind(void **state) {
    static const int32_t kind[8] = {0, 1, 0, 1, 0, 1, 0, 0}, one[8] = {0, 3, 1, 3, 0, 3, 1, 2},
                         two[8] = {0, 3, 1, 4, 0, 3, 1, 2}, inside[5] = {0, 1, 0, 1, 2},
                         alone[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct lk_levels group = {t2_group, 3}, kinds = {kind, 2}, of_one = {one, 4}, of_two = {two, 5},
                           part = {inside, 3}, singles = {alone, 8};
    double whole[72], left[45];
    const double *const list[] = {whole}, *const of_part[] = {left};
    const struct lk_crossed_tables tables = {9, 8, 1, list};
    struct lk_relabelled r, q;
    (void)state;
    for (int s = 0, at = 0; s < 9; s++)
        for (int p = 0; p < 8; p++) {
            whole[s * 8 + p] = (7 * s + 5 * p + s * p) % 11 / 10.0;
            if (kind[p] == 0) left[at++] = whole[s * 8 + p];
        }
    assert_ok(lk_relabel_prompts(&tables, &of_one, &kinds, &group, 1, &(struct lk_relabel){0}, &r));
    assert_ok(lk_relabel_prompts(&(struct lk_crossed_tables){9, 5, 1, of_part}, &part, NULL, &group, 1,
                                 &(struct lk_relabel){0}, &q));
    assert_int_equal(r.n, 30); /* 5! / (2! 2!) */
    assert_int_equal(q.n, 30);
    near_all(r.t, q.t, 3);
    near_all(r.p, q.p, 3);
    near_all(r.difference, q.difference, 3);
    assert_true(r.t[3] == 0 && r.p[3] == 1);
    lk_relabelled_free(&q);
    assert_ok(lk_relabel_prompts(&tables, &of_two, &kinds, &group, 1, &(struct lk_relabel){0}, &q));
    assert_int_equal(q.n, 90);
    near_all(q.difference, r.difference, 3);
    near(q.difference[3], -q.difference[4]);
    assert_true(q.t[3] > 0 && q.t[0] != r.t[0]); /* prompts of both kinds tell how prompts vary */
    lk_relabelled_free(&q);
    lk_relabelled_free(&r);
    assert_ok(lk_relabel_prompts(&tables, &kinds, &kinds, &group, 1, &(struct lk_relabel){0}, &r));
    assert_string_equal(r.refused, "one subcategory a kind");
    assert_ok(lk_relabel_prompts(&tables, &singles, &kinds, &group, 1, &(struct lk_relabel){0}, &r));
    assert_string_equal(r.refused, "each subcategory has one prompt");
}

/* A planted group: its cell alone is found, by drawn relabellings too, and the same whatever the others are called. */
static void a_planted_group_is_found(void **state) {
    enum { S = 48, P = 8 };
    int32_t race[S], gender[S], kinds[P], renamed[S];
    double z[2][S * P];
    const double *const list[] = {z[0], z[1]};
    struct lk_stream stream;
    (void)state;
    lk_stream_named(&stream, 5, "planted");
    for (int p = 0; p < P; p++) kinds[p] = p / 4;
    for (int s = 0; s < S; s++) {
        race[s] = s % 4, gender[s] = s / 4 % 2;
        renamed[s] = race[s] == 3 ? 4 : race[s] == 0 ? 2 : race[s] == 2 ? 1 : 0; /* level 3 has nobody */
        for (int p = 0; p < P; p++)
            for (int c = 0; c < 2; c++)
                z[c][s * P + p] = (double)lk_stream_bounded(&stream, 100) / 100 + (c == 1 && race[s] == 3 ? 0.5 : 0) +
                                  0.3 * gender[s];
    }
    const struct lk_levels of = {race, 4}, other = {gender, 2}, kind = {kinds, 2}, again = {renamed, 5};
    const struct lk_crossed_tables tables = {S, P, 2, list};
    struct lk_relabelled r, q;
    assert_ok(lk_relabel_sources(&tables, &of, &other, 1, &kind, &(struct lk_relabel){.n = 999, .seed = 1}, &r));
    assert_ok(lk_relabel_sources(&tables, &again, &other, 1, &kind, &(struct lk_relabel){.n = 999, .seed = 1}, &q));
    assert_false(r.exact);
    for (int i = 0; i < 7; i++) assert_true(r.p[i] > 0.01 || i >= 4);
    assert_true(r.p[7] == 0.001 && q.p[9] == 0.001);
    near(q.t[9], r.t[7]);
    near(q.difference[5 + 2], r.difference[4 + 0]);
    assert_true(q.t[8] == 0 && q.p[8] == 1);
    lk_relabelled_free(&r);
    /* For these prompts alone the test is of people; without a second prompt of a kind it is refused for others. */
    const int32_t singles[P] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct lk_levels alone = {singles, 8};
    assert_ok(lk_relabel_sources(&tables, &of, &other, 1, &alone, &(struct lk_relabel){.n = 99}, &r));
    assert_string_equal(r.refused, "each kind has one prompt");
    assert_ok(lk_relabel_sources(&tables, &of, &other, 1, &alone,
                                 &(struct lk_relabel){.n = 99, .prompts_are_all = true}, &r));
    assert_null(r.refused);
    assert_true(r.p[7] == 0.01);
    lk_relabelled_free(&r);
    lk_relabelled_free(&q);
}

/* Labels move among people who are alike in all else, unless hardly anybody has such a partner. */
static void labels_move_within_strata(void **state) {
    static const int32_t groups[8] = {0, 1, 0, 1, 0, 1, 0, 1}, genders[8] = {0, 0, 0, 0, 1, 1, 1, 1},
                         names[8] = {0, 1, 2, 3, 4, 5, 6, 6}, kinds[2] = {0, 0};
    const struct lk_levels group = {groups, 2}, gender = {genders, 2}, name = {names, 2}, kind = {kinds, 1};
    double z[16];
    const double *const list[] = {z};
    const struct lk_crossed_tables tables = {8, 2, 1, list};
    struct lk_relabelled r;
    (void)state;
    for (int i = 0; i < 16; i++) z[i] = i * i % 7;
    assert_ok(lk_relabel_sources(&tables, &group, &gender, 1, &kind, &(struct lk_relabel){0}, &r));
    assert_int_equal(r.n, 36);
    lk_relabelled_free(&r);
    assert_fails(lk_relabel_sources(&tables, &group, &name, 1, &kind, &(struct lk_relabel){0}, &r), LK_E_INPUT,
                 "expected a level below 2, got 2");
    const struct lk_levels whole = {names, 7};
    assert_ok(lk_relabel_sources(&tables, &group, &whole, 1, &kind, &(struct lk_relabel){0}, &r));
    assert_string_equal(r.refused, "no more sources than attributes");
    lk_relabelled_free(&r);
}

static void rates_near_zero_borrow(void **state) {
    static const int32_t groups[18] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}, kinds[4] = {0, 0, 1, 1};
    static const double want[3][4] = {{0, 0, .35481667156, 12.015503876},
                                      {.125, .020333641206, .495778862464, 12.015503876},
                                      {.291666666667, .0339867143947, .828154156782, 9.15384615385}};
    const struct lk_levels group = {groups, 3}, kind = {kinds, 2};
    int64_t n_outputs[18];
    double z[72], low, high;
    struct lk_residual_maker prompts;
    struct lk_crossed_rate r[3], others[3];
    (void)state;
    for (int i = 0; i < 72; i++) z[i] = t4[i] - '0';
    for (int i = 0; i < 18; i++) n_outputs[i] = 4;
    assert_ok(lk_residual_maker(4, &kind, 1, &prompts));
    assert_ok(
        lk_crossed_rates(&(struct lk_crossed_table){18, 4, z, 1, false}, &group, &prompts, n_outputs, 0.95, r, others));
    for (int g = 0; g < 3; g++) {
        near_all((const double[]){r[g].rate, r[g].low, r[g].high, r[g].effective_n}, want[g], 4);
        assert_int_equal(r[g].few, g < 2);
    }
    lk_crossed_mover(&r[2], &r[0], &low, &high);
    near(low, -.146846535209);
    near(high, .828154156782);
    lk_crossed_mover(&r[2], &r[1], &low, &high);
    near(low, -.284859548135);
    near(high, .713268783122);
    near(others[0].rate, (r[1].rate + r[2].rate) / 2);
    assert_true(others[0].low < others[0].rate && others[0].high > others[0].rate);
    /* All or nothing: an interval all the same. */
    for (int i = 0; i < 72; i++) z[i] = 1;
    assert_ok(
        lk_crossed_rates(&(struct lk_crossed_table){18, 4, z, 1, false}, &group, &prompts, n_outputs, 0.95, r, NULL));
    assert_true(r[1].rate == 1 && r[1].high == 1 && r[1].low > 0.3 && r[1].low < 0.9);
    lk_residual_maker_free(&prompts);
}

static void what_could_have_been_seen(void **state) {
    const struct lk_crossed c = {.variance = .0013, .df = 15, .cell = .25 * .0013};
    (void)state;
    near(lk_crossed_detectable(&c, 6. / 7, .1, .01, .8), .261689756317);
    assert_true(lk_crossed_detectable(&c, 0.5, .1, .01, .8) < .261689756317);
    assert_true(isfinite(lk_crossed_detectable(&c, 0.5, 0, .01, .8)));
}

static void raters_are_a_sample_too(void **state) {
    static const int32_t pairs[15] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5},
                         raters[15] = {0, 1, 2, 1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 3};
    static const double answers[15] = {1, 0, 1, 0, 1, .5, 1, 1, 0, 1, 0, 0, 1, .5, 1};
    double variance, df;
    (void)state;
    assert_ok(lk_rater_part(answers, pairs, raters, 15, 6, 4, &variance, &df));
    near(variance, .0770747599451);
    near(df, 3);
    assert_ok(lk_rater_part(answers + 14, pairs + 14, raters + 14, 1, 6, 4, &variance, &df));
    near(variance, 0);
}

/* Drawn relabellings of 21 people and of 20 prompts: the same bits for any number of threads, however they are run. */
static void threads_share_nothing(void **state) {
    enum { S = 21, P = 20 };
    static double z[S * P];
    int32_t group[S], kind[P], zeros[S] = {0};
    const double *const list[] = {z};
    const struct lk_crossed_tables tables = {S, P, 1, list};
    const struct lk_levels groups = {group, 3}, kinds = {kind, 2}, one = {zeros, 1};
    const struct lk_relabel how = {.n = 400, .seed = 7};
    const int before = omp_get_max_threads();
    struct lk_relabelled first[2];
    (void)state;
    for (int i = 0; i < S; i++) group[i] = i % 3;
    for (int k = 0; k < P; k++) kind[k] = k % 2;
    for (int i = 0; i < S * P; i++) z[i] = i * 7919 % 101 < 30;
    for (int threads = 1; threads <= 5; threads++) {
        struct lk_relabelled r[2];
        omp_set_num_threads(threads);
        assert_ok(lk_relabel_sources(&tables, &groups, NULL, 0, &kinds, &how, &r[0]));
        assert_ok(lk_relabel_prompts(&tables, &kinds, NULL, &one, 1, &how, &r[1]));
        for (int i = 0; i < 2; i++) {
            assert_true(!r[i].refused && !r[i].exact && r[i].n == 400);
            if (threads > 1) {
                assert_memory_equal(r[i].largest, first[i].largest, 400 * sizeof *r[i].largest);
                lk_relabelled_free(&r[i]);
            } else {
                first[i] = r[i];
            }
        }
    }
    omp_set_num_threads(before);
    lk_relabelled_free(&first[0]);
    lk_relabelled_free(&first[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relabelled_sources_are_the_references),
        cmocka_unit_test(relabelled_prompts_are_the_references),
        cmocka_unit_test(subcategories_stay_in_their_kind),
        cmocka_unit_test(a_planted_group_is_found),
        cmocka_unit_test(labels_move_within_strata),
        cmocka_unit_test(rates_near_zero_borrow),
        cmocka_unit_test(what_could_have_been_seen),
        cmocka_unit_test(raters_are_a_sample_too),
        cmocka_unit_test(threads_share_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
