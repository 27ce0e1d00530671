/* Samples: the balanced 500 pairs with every count of the study's sampling table, the strata, and pandas' own choice in
 * 200 generated cases (tests/golden/generate_scores.py). */
#include "engine/base/alloc.h"
#include "eval/study/factors.h"
#include "eval/study/pairs500.h"
#include "eval/study/prompts.h"
#include "eval/study/random.h"
#include "eval/study/sampling.h"
#include "tests/common/test.h"

enum { N_OUTPUTS = LK_N_MODELS * LK_N_SOURCES * LK_N_EDIT_PROMPTS };

static struct lk_sample_item outputs[N_OUTPUTS]; /* experiment 1 in canonical order */
static char output_ids[N_OUTPUTS][64];
static int16_t levels[N_OUTPUTS][4];
static const char *keys[4][7];
static struct lk_sample_column columns[] = {{"race", 7, keys[0], false},
                                            {"gender", 2, keys[1], false},
                                            {"age_group", 3, keys[2], true},
                                            {"model", 3, keys[3], false}};
static const int by[] = {0, 1, 2, 3};

/* strata126, or strata42 without the model. */
static struct lk_sample_design design_of(bool by_model, int each, enum lk_sampler sampler) {
    return (struct lk_sample_design){
        .columns = columns, .by = by, .n_by = 3 + by_model, .each = each, .sampler = sampler};
}

static int make_outputs(void **state) {
    (void)state;
    for (int i = 0; i < N_OUTPUTS; i++) {
        int race, gender, age, model = i / 1680;
        lk_source_factors(i / 20 % 84, &race, &gender, &age);
        snprintf(output_ids[i], sizeof *output_ids, "%s_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_MODEL, model),
                 lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                 lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(i % 20));
        for (char *c = output_ids[i]; c < output_ids[i] + strlen(output_ids[i]) - 4; c++)
            if (*c >= 'A' && *c <= 'Z') *c |= 0x20;
        const int level[4] = {race, gender, lk_age_group(age), model};
        for (int k = 0; k < 4; k++) levels[i][k] = (int16_t)level[k];
        outputs[i] = (struct lk_sample_item){output_ids[i], levels[i]};
    }
    static const enum lk_factor factors[] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE_GROUP, LK_FACTOR_MODEL};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < columns[k].n; i++) keys[k][i] = lk_factor_key(factors[k], i);
    return 0;
}

static void pairs500_of_seed_42(void **state) {
    (void)state;
    struct lk_pair pairs[LK_N_PAIRS];
    char digest[65], *csv;
    size_t n;
    lk_pairs500(42, pairs);
    assert_ok(lk_pairs500_sha256(pairs, digest));
    assert_string_equal(digest, "614f72bc220dcd7040a6612623cb956f6458cad35465940f1826968377add849");
    assert_ok(lk_pairs500_csv(pairs, &csv, &n));
    static const char head[] = "pair_id,race,gender,age,prompt_id,model\n"
                               "P001,Latino,Male,20s,O-03,flux\n"
                               "P002,Latino,Male,20s,V-05,step1x\n"
                               "P003,Latino,Male,20s,O-04,qwen\n";
    assert_memory_equal(csv, head, sizeof head - 1);
    assert_int_equal(strlen(csv), n);
    assert_non_null(strstr(csv, "\nP500,"));
    lk_free(csv);
    int32_t five[4];
    char id[48];
    static const char *const expected[] = {"Black_Male_40s", "SoutheastAsian_Female_20s", "Indian_Male_70plus",
                                           "MiddleEastern_Female_30s"};
    lk_pairs500_fives(42, five);
    for (int i = 0; i < 4; i++) {
        lk_source_id(five[i], id);
        assert_string_equal(id, expected[i]);
    }
}

static void pairs500_without_shuffling(void **state) {
    (void)state;
    struct lk_pair pairs[LK_N_PAIRS];
    int32_t sources[84], prompts[20], five[4];
    char digest[65];
    static const char *const fives[] = {"Black_Male_20s", "SoutheastAsian_Male_30s", "Indian_Female_40s",
                                        "MiddleEastern_Female_70plus"};
    for (int i = 0; i < 84; i++) sources[i] = i;
    for (int i = 0; i < 20; i++) prompts[i] = i / 2 + i % 2 * 10;
    for (int i = 0; i < 4; i++) five[i] = lk_source_parse(fives[i], strlen(fives[i]));
    lk_pairs500_arrange(sources, prompts, five, pairs);
    assert_ok(lk_pairs500_sha256(pairs, digest));
    assert_string_equal(digest, "79cb4a566fe42a2ecd6291088cd61daaf92c16937bd085cc28924173fe887875");
}

/* What the study says of its samples, for any seed. */
static void pairs500_is_balanced(void **state) {
    (void)state;
    const int races[] = {72, 71, 72, 71, 71, 71, 72}, ages[] = {83, 83, 83, 84, 84, 83}, models[] = {167, 167, 166};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct lk_pair pairs[LK_N_PAIRS];
        static uint8_t seen[84][20][3];
        int race_n[7] = {0}, age_n[6] = {0}, gender_n[2] = {0}, model_n[3] = {0}, prompt_n[20][3] = {{0}};
        int cell_n[84][2] = {{0}};
        memset(seen, 0, sizeof seen);
        lk_pairs500(seed, pairs);
        for (int i = 0; i < LK_N_PAIRS; i++) {
            int race, gender, age;
            const struct lk_pair *p = &pairs[i];
            lk_source_factors(p->source, &race, &gender, &age);
            race_n[race]++;
            gender_n[gender]++;
            age_n[age]++;
            model_n[p->model]++;
            prompt_n[p->prompt][p->model]++;
            cell_n[p->source][p->prompt / 10]++;
            for (int m = 0; m < 3; m++) assert_int_equal(seen[p->source][p->prompt][m], 0); /* no prompt twice */
            seen[p->source][p->prompt][p->model] = 1;
        }
        assert_memory_equal(race_n, races, sizeof races);
        assert_memory_equal(age_n, ages, sizeof ages);
        assert_memory_equal(model_n, models, sizeof models);
        assert_int_equal(gender_n[0], 250);
        int n_category[2] = {0}, n_five = 0;
        for (int p = 0; p < 20; p++) {
            int *m = prompt_n[p];
            assert_int_equal(m[0] + m[1] + m[2], 25);
            for (int i = 0; i < 3; i++) assert_true(m[i] == 8 || m[i] == 9);
            n_category[p / 10] += 25;
        }
        assert_int_equal(n_category[0], 250);
        int32_t five[4];
        lk_pairs500_fives(seed, five);
        for (int s = 0; s < 84; s++) {
            bool is_five = s == five[0] || s == five[1] || s == five[2] || s == five[3];
            assert_int_equal(cell_n[s][0] + cell_n[s][1], is_five ? 5 : 6);
            assert_true(is_five ? cell_n[s][0] == 2 || cell_n[s][0] == 3 : cell_n[s][0] == 3);
            n_five += is_five;
        }
        assert_int_equal(n_five, 4);
    }
}

static void numpys_permutation(void **state) {
    (void)state;
    int32_t out[40];
    const int32_t of_40[] = {19, 16, 15, 26, 4, 12, 37, 27}, of_8[] = {1, 5, 0, 7, 2, 4, 3, 6};
    lk_numpy_permutation(42, out, 40);
    assert_memory_equal(out, of_40, sizeof of_40);
    lk_numpy_permutation(42, out, 8);
    assert_memory_equal(out, of_8, sizeof of_8);
    lk_numpy_permutation(42, out, 1);
    assert_int_equal(out[0], 0);
    lk_numpy_permutation(42, out, 0);
}

static void strata126_of_experiment_1(void **state) {
    (void)state;
    struct lk_sample sample;
    int per_prompt[20] = {0};
    static bool drawn[N_OUTPUTS];
    const struct lk_sample_design design = design_of(true, 4, LK_SAMPLER_STREAM);
    assert_ok(lk_sample_strata(outputs, N_OUTPUTS, &design, 42, &sample));
    assert_int_equal(sample.n, 504);
    assert_int_equal(sample.n_strata, 126);
    assert_int_equal(sample.n_short, 0);
    assert_string_equal(sample.strata[0].name, "White|Male|Young|flux");
    assert_string_equal(sample.strata[125].name, "Latino|Female|Old|qwen");
    assert_int_equal(sample.strata[0].size, 40);
    int fewest = 504, most = 0;
    for (size_t i = 0; i < sample.n; i++) {
        assert_false(drawn[sample.items[i]]); /* every stratum has outputs of its own */
        drawn[sample.items[i]] = true;
        per_prompt[sample.items[i] % 20]++;
    }
    for (int p = 0; p < 20; p++) {
        if (per_prompt[p] < fewest) fewest = per_prompt[p];
        if (per_prompt[p] > most) most = per_prompt[p];
    }
    assert_int_equal(fewest, 18);
    assert_int_equal(most, 39);
    /* the first stratum: its 40 ids sorted, shuffled as the test vector of the generator says */
    const int32_t first4[] = {27, 17, 9, 11};
    for (int i = 0; i < 4; i++) {
        int smaller = 0;
        for (int k = 0; k < 40; k++) smaller += strcmp(output_ids[k], output_ids[sample.items[i]]) < 0;
        assert_int_equal(smaller, first4[i]);
        assert_true(sample.items[i] < 40);
    }
    lk_sample_free(&sample);
}

/* The study's own sampler does not depend on the order of the input. */
static void input_order_does_not_matter(void **state) {
    (void)state;
    static struct lk_sample_item reversed[N_OUTPUTS];
    struct lk_sample sample, again;
    struct lk_sample_design design = design_of(true, 4, LK_SAMPLER_STREAM);
    for (int i = 0; i < N_OUTPUTS; i++) reversed[i] = outputs[N_OUTPUTS - 1 - i];
    assert_ok(lk_sample_strata(outputs, N_OUTPUTS, &design, 7, &sample));
    assert_ok(lk_sample_strata(reversed, N_OUTPUTS, &design, 7, &again));
    for (size_t i = 0; i < sample.n; i++) {
        assert_int_equal(again.items[i], N_OUTPUTS - 1 - sample.items[i]);
        assert_int_equal(again.stratum[i], sample.stratum[i]);
    }
    lk_sample_free(&sample);
    lk_sample_free(&again);
}

static void pandas_shows_four_prompts_only(void **state) {
    (void)state;
    struct lk_sample sample;
    struct lk_sample_design design = design_of(true, 4, LK_SAMPLER_PANDAS);
    bool seen[20] = {0};
    assert_ok(lk_sample_strata(outputs, N_OUTPUTS, &design, 42, &sample));
    assert_int_equal(sample.n, 504);
    assert_string_equal(sample.strata[0].name, "Black|Female|Young|flux");
    assert_string_equal(sample.strata[1].name, "Black|Female|Young|qwen");
    for (size_t i = 0; i < sample.n; i++) seen[sample.items[i] % 20] = true;
    for (int p = 0; p < 20; p++)
        assert_int_equal(seen[p], !strcmp(lk_prompt_id(p), "V-10") || !strcmp(lk_prompt_id(p), "V-07") ||
                                      !strcmp(lk_prompt_id(p), "V-06") || !strcmp(lk_prompt_id(p), "O-07"));
    lk_sample_free(&sample);
    assert_fails(lk_sample_strata(outputs, 5, &design, (uint64_t)1 << 32, &sample), LK_E_INPUT, "below 2^32");
}

static void short_strata_are_reported(void **state) {
    (void)state;
    struct lk_sample sample;
    struct lk_sample_item items[340];
    /* one model and four prompts: 42 strata of exactly 8; one source less makes one short */
    size_t n = 0;
    for (int i = 0; i < 1680; i++)
        if (i % 20 < 4) items[n++] = outputs[i];
    assert_int_equal(n, 336);
    struct lk_sample_design design = design_of(false, 8, LK_SAMPLER_STREAM);
    assert_ok(lk_sample_strata(items, n, &design, 42, &sample));
    assert_int_equal(sample.n, 336);
    assert_int_equal(sample.n_short, 0);
    lk_sample_free(&sample);
    assert_ok(lk_sample_strata(items, n - 4, &design, 42, &sample));
    assert_int_equal(sample.n, 332);
    assert_int_equal(sample.n_short, 1);
    assert_string_equal(sample.strata[41].name, "Latino|Female|Old");
    assert_int_equal(sample.strata[41].size, 4);
    assert_int_equal(sample.strata[41].n, 4);
    lk_sample_free(&sample);
    assert_ok(lk_sample_strata(items, 0, &design, 42, &sample));
    assert_int_equal(sample.n_short, 42);
    lk_sample_free(&sample);
    items[3].level = (const int16_t[]){0, -1, 0, 0};
    assert_fails(lk_sample_strata(items, n, &design, 42, &sample), LK_E_INPUT, "expected a level of gender");
    design.each = 0;
    assert_fails(lk_sample_strata(items, n, &design, 42, &sample), LK_E_INPUT, "at least 1");
    design.each = 1;
    const struct lk_sample_column wide[] = {{"a", 1000, NULL, false}, {"b", 1000, NULL, false}};
    design.columns = wide;
    design.n_by = 2;
    assert_fails(lk_sample_strata(items, n, &design, 42, &sample), LK_E_INPUT, "at most 100000 strata");
}

static uint64_t hash_positions(const struct lk_sample *sample) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sample->n; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d,", sample->items[i]);
        for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    }
    return hash;
}

static void samples_of_pandas(void **state) {
    (void)state;
    size_t n_bytes;
    char *text = test_read("golden/data/sampling.csv", &n_bytes), *at = strchr(text, '\n') + 1;
    static int32_t order[N_OUTPUTS];
    static struct lk_sample_item items[N_OUTPUTS];
    for (int c = 0; c < 200; c++) {
        struct lk_stream stream;
        lk_stream_numbered(&stream, 42, "sampling|", (uint64_t)c);
        for (int i = 0; i < N_OUTPUTS; i++) order[i] = i;
        lk_stream_shuffle(&stream, order, N_OUTPUTS);
        size_t n = 1 + (size_t)lk_stream_bounded(&stream, c < 20 ? 5040 : 700);
        const bool by_model = lk_stream_bounded(&stream, 2);
        const int each = 1 + (int)lk_stream_bounded(&stream, 9);
        const struct lk_sample_design design = design_of(by_model, each, LK_SAMPLER_PANDAS);
        uint64_t seed = c < 100 ? 42 : lk_stream_bounded(&stream, (uint64_t)1 << 32);
        for (size_t i = 0; i < n; i++) items[i] = outputs[order[i]];

        struct lk_sample sample;
        int number, n_drawn;
        unsigned long long expected;
        assert_int_equal(sscanf(at, "%d,%d,%llx\n", &number, &n_drawn, &expected), 3);
        at = strchr(at, '\n') + 1;
        assert_ok(lk_sample_strata(items, n, &design, seed, &sample));
        assert_int_equal(number, c);
        assert_int_equal(sample.n, n_drawn);
        if (hash_positions(&sample) != expected) fail_msg("case %d: another sample than pandas draws", c);
        lk_sample_free(&sample);
    }
    free(text);
}

static void a_mosaic_repeats_nothing(void **state) {
    (void)state;
    int32_t drawn[480], again[480];
    static struct lk_sample_item reversed[N_OUTPUTS];
    static bool seen[N_OUTPUTS];
    assert_ok(lk_mosaic_draw(outputs, N_OUTPUTS, 480, 42, drawn));
    for (int i = 0; i < 480; i++) {
        assert_false(seen[drawn[i]]);
        seen[drawn[i]] = true;
    }
    /* whatever the order of the input */
    for (int i = 0; i < N_OUTPUTS; i++) reversed[i] = outputs[N_OUTPUTS - 1 - i];
    assert_ok(lk_mosaic_draw(reversed, N_OUTPUTS, 480, 42, again));
    for (int i = 0; i < 480; i++) assert_int_equal(again[i], N_OUTPUTS - 1 - drawn[i]);
    assert_fails(lk_mosaic_draw(outputs, 479, 480, 42, drawn), LK_E_INPUT, "takes 480 outputs, there are 479");
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    const struct lk_sample_design design = design_of(false, 2, LK_SAMPLER_STREAM);
    for (int64_t n = 1; n <= 10; n++) {
        struct lk_sample sample;
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_sample_strata(outputs, 100, &design, 42, &sample);
        lk_alloc_fail_at(0);
        assert_int_equal(rc, n <= 8 ? LK_E_NOMEM : LK_OK);
        lk_sample_free(&sample);
        assert_int_equal(lk_alloc_live(), live);
    }
    int32_t drawn[10];
    lk_alloc_fail_at(1);
    assert_int_equal(lk_mosaic_draw(outputs, 100, 10, 42, drawn), LK_E_NOMEM);
    lk_alloc_fail_at(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs500_of_seed_42),
        cmocka_unit_test(pairs500_without_shuffling),
        cmocka_unit_test(pairs500_is_balanced),
        cmocka_unit_test(numpys_permutation),
        cmocka_unit_test(strata126_of_experiment_1),
        cmocka_unit_test(input_order_does_not_matter),
        cmocka_unit_test(pandas_shows_four_prompts_only),
        cmocka_unit_test(short_strata_are_reported),
        cmocka_unit_test(samples_of_pandas),
        cmocka_unit_test(a_mosaic_repeats_nothing),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_outputs, NULL);
}
