/* The sampler's rules one by one, on logits small enough to follow by hand. */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "models/text/generate.h"
#include "models/text/sampler.h"

static struct lk_generation_config drawing(void) {
    struct lk_generation_config c;
    lk_generation_config_init(&c);
    c.do_sample = true;
    c.top_k = 0;
    return c;
}

static struct lk_sampler make(const struct lk_generation_config *config, int64_t n_vocab, int64_t n_valid) {
    struct lk_sampler s;
    assert_ok(lk_sampler_init(&s, config, n_vocab, n_valid, 1));
    return s;
}

static void greedy_takes_the_first_of_the_highest(void **state) {
    (void)state;
    struct lk_generation_config c;
    lk_generation_config_init(&c);
    assert_false(c.do_sample);
    struct lk_sampler s = make(&c, 5, 5);
    assert_ok(lk_sampler_process(&s, (float[]){1, 3, 2, 3, -5}));
    assert_int_equal(lk_sampler_pick(&s), 1);
    lk_sampler_free(&s);
}

static void the_penalty_counts_each_id_once(void **state) {
    (void)state;
    struct lk_generation_config c;
    lk_generation_config_init(&c);
    c.repetition_penalty = 2;
    struct lk_sampler s = make(&c, 4, 4);
    lk_sampler_see(&s, (int32_t[]){0, 0, 0, 1, -3, 4, 1 << 30}, 7);
    assert_ok(lk_sampler_process(&s, (float[]){8, -1, 3, 3.5f}));
    assert_true(s.scores[0] == 4 && s.scores[1] == -2 && s.scores[2] == 3 && s.scores[3] == 3.5f);
    assert_int_equal(lk_sampler_pick(&s), 0);
    /* What was picked counts from now on. */
    assert_ok(lk_sampler_process(&s, (float[]){1, -1, 3, 3.5f}));
    assert_int_equal(lk_sampler_pick(&s), 3);
    assert_ok(lk_sampler_process(&s, (float[]){1, -1, 3, 3.5f}));
    assert_int_equal(lk_sampler_pick(&s), 2);
    lk_sampler_free(&s);
}

static void ids_without_a_token_never_come(void **state) {
    (void)state;
    struct lk_generation_config c = drawing();
    float logits[6] = {0, 0, 0, 50, NAN, INFINITY};
    struct lk_sampler s = make(&c, 6, 3);
    assert_ok(lk_sampler_process(&s, logits));
    for (int i = 0; i < 200; i++) assert_true(lk_sampler_pick(&s) < 3);
    lk_sampler_free(&s);
    c.do_sample = false;
    s = make(&c, 6, 3);
    assert_ok(lk_sampler_process(&s, logits));
    assert_int_equal(lk_sampler_pick(&s), 0);
    lk_sampler_free(&s);
}

static void kept(const struct lk_sampler *s, const char *expected) {
    for (int i = 0; expected[i]; i++)
        if ((s->scores[i] > -INFINITY) != (expected[i] == '1'))
            fail_msg("id %d of %s: score %g", i, expected, s->scores[i]);
}

static void top_k_keeps_what_is_as_high_as_the_kth(void **state) {
    (void)state;
    const float logits[] = {5, 1, 4, 4, 2, 4};
    const char *const expected[] = {"111111", "100000", "101101", "101101", "101101", "101111", "111111", "111111"};
    for (int k = 0; k < 8; k++) {
        struct lk_generation_config c = drawing();
        c.top_k = k;
        struct lk_sampler s = make(&c, 6, 6);
        assert_ok(lk_sampler_process(&s, logits));
        kept(&s, expected[k]);
        lk_sampler_free(&s);
    }
}

static void top_p_keeps_what_makes_up_the_probability(void **state) {
    (void)state;
    /* 0.5, 0.25, 0.125, 0.125 */
    const float logits[] = {logf(8), logf(4), logf(2), logf(2)};
    const struct {
        double top_p;
        const char *expected;
    } cases[] = {{1, "1111"}, {0.9, "1111"}, {0.8, "1101"}, {0.7, "1100"}, {0.4, "1000"}, {0.01, "1000"}, {0, "1000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_generation_config c = drawing();
        c.top_p = cases[i].top_p;
        struct lk_sampler s = make(&c, 4, 4);
        assert_ok(lk_sampler_process(&s, logits));
        kept(&s, cases[i].expected);
        lk_sampler_free(&s);
    }
}

static void draws_follow_the_distribution(void **state) {
    (void)state;
    struct lk_generation_config c = drawing();
    c.temperature = 0.5;
    struct lk_sampler s = make(&c, 3, 3);
    assert_ok(lk_sampler_process(&s, (float[]){0, 0.5f * logf(2), 0.5f * logf(5)})); /* 1 : 2 : 5 */
    int count[3] = {0}, n = 40000;
    for (int i = 0; i < n; i++) count[lk_sampler_pick(&s)]++;
    for (int i = 0; i < 3; i++) {
        double p = (double[]){0.125, 0.25, 0.625}[i];
        assert_true(fabs(count[i] - n * p) < 5 * sqrt(n * p * (1 - p)));
    }
    lk_sampler_free(&s);
}

static void what_is_not_finite_is_an_error(void **state) {
    (void)state;
    struct lk_generation_config c = drawing();
    struct lk_sampler s = make(&c, 3, 3);
    assert_fails(lk_sampler_process(&s, (float[]){1, NAN, 2}), LK_E_NONFINITE, "1 values are NaN or Inf");
    assert_fails(lk_sampler_process(&s, (float[]){1, INFINITY, -INFINITY}), LK_E_NONFINITE, "2 values");
    lk_sampler_free(&s);
    c.temperature = 1e-8;
    s = make(&c, 3, 3);
    assert_fails(lk_sampler_process(&s, (float[]){1, 1e35f, 2}), LK_E_NONFINITE, "1 values");
    lk_sampler_free(&s);
}

static void settings_out_of_range_are_refused(void **state) {
    (void)state;
    struct lk_sampler s;
#define REFUSED(change, part)                                                                                          \
    do {                                                                                                               \
        struct lk_generation_config c = drawing();                                                                     \
        change;                                                                                                        \
        assert_fails(lk_sampler_init(&s, &c, 3, 3, 1), LK_E_USAGE, part);                                              \
        assert_null(s.scores);                                                                                         \
    } while (0)
    REFUSED(c.temperature = 0, "temperature");
    REFUSED(c.temperature = NAN, "temperature");
    REFUSED(c.top_k = -1, "top_k");
    REFUSED(c.top_p = 1.5, "top_p");
    REFUSED(c.top_p = -0.1, "top_p");
    REFUSED(c.repetition_penalty = 0, "repetition_penalty");
    REFUSED(c.max_new_tokens = -1, "max_new_tokens");
    int64_t live = lk_alloc_live();
    struct lk_generation_config c = drawing();
    for (int n = 1; n <= 4; n++) {
        lk_alloc_fail_at(n);
        assert_fails(lk_sampler_init(&s, &c, 3, 3, 1), LK_E_NOMEM, "sampler");
        lk_alloc_fail_at(0);
        assert_int_equal(lk_alloc_live(), live);
    }
}

static void limits_of_a_reply(void **state) {
    (void)state;
    struct lk_generation_config c = drawing();
    assert_int_equal(lk_generate_limit(&c, 10), LK_DEFAULT_NEW_TOKENS);
    c.max_length = 30;
    assert_int_equal(lk_generate_limit(&c, 10), 20);
    assert_int_equal(lk_generate_limit(&c, 30), 1);
    assert_int_equal(lk_generate_limit(&c, 90), 1);
    c.max_new_tokens = 7;
    assert_int_equal(lk_generate_limit(&c, 90), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_first_of_the_highest),
        cmocka_unit_test(the_penalty_counts_each_id_once),
        cmocka_unit_test(ids_without_a_token_never_come),
        cmocka_unit_test(top_k_keeps_what_is_as_high_as_the_kth),
        cmocka_unit_test(top_p_keeps_what_makes_up_the_probability),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(what_is_not_finite_is_an_error),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(limits_of_a_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
