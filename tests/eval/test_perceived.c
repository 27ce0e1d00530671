/* What models perceive in a face against transformers (generate_perceived.py): every label's probability, in any
 * company. What is cut out around a face. */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "eval/judge/perceived.h"
#include "eval/study/factors.h"

enum { N = 2 };
static char folders[2][1024];

static int make_models(void **state) {
    static const char *const families[] = {"qwen25_vl", "flux2"};
    const char *build = getenv("BUILD_DIR");
    (void)state;
    for (int i = 0; i < 2; i++) {
        char command[4200];
        snprintf(folders[i], sizeof folders[i], "%s-%s", test_path("perceived"), families[i]);
        snprintf(command, sizeof command, "rm -rf '%s' && '%s/make_checkpoint' --family %s --seed 0 --preset tiny '%s'",
                 folders[i], build ? build : "../build", families[i], folders[i]);
        if (system(command)) return 1;
    }
    return 0;
}

static void make_picture(struct lk_image *image, int number) {
    assert_ok(lk_image_new(image, 84, 56, 3));
    for (int y = 0; y < 56; y++)
        for (int x = 0; x < 84; x++)
            for (int c = 0; c < 3; c++)
                image->pixels[3 * (84 * y + x) + c] = (uint8_t)(x * (7 + number) + y * 13 + c * 29 + x * y / 5);
}

struct bench {
    struct lk_chat *chat;
    struct lk_seeing_judge judge;
    struct lk_image pictures[N];
};

static void begin(struct bench *b, int family) {
    *b = (struct bench){0};
    assert_ok(lk_chat_open(&b->chat, folders[family], LK_F32));
    b->judge = (struct lk_seeing_judge){.chat = b->chat, .n_slots = 1};
    assert_ok(lk_device_cpu_create(1, &b->judge.dev));
    assert_ok(lk_seeing_judge_open(&b->judge));
    for (int i = 0; i < N; i++) make_picture(&b->pictures[i], i);
}

static void end(struct bench *b) {
    for (int i = 0; i < N; i++) lk_image_free(&b->pictures[i]);
    lk_seeing_judge_close(&b->judge);
    lk_device_free(b->judge.dev);
    lk_chat_close(b->chat);
}

static void as_transformers(void **state) {
    (void)state;
    size_t n_bytes;
    char *text = test_read("golden/data/perceived.txt", &n_bytes), *at = strchr(text, '\n');
    double worst = 0;
    for (int family = 0; family < 2; family++) {
        struct bench b;
        struct lk_perceived alone[N], together[N];
        begin(&b, family);
        for (int i = 0; i < N; i++) assert_ok(lk_perceive(&b.judge, &b.pictures[i], 1, &alone[i]));
        b.judge.n_slots = 5;
        assert_ok(lk_perceive(&b.judge, b.pictures, N, together));
        for (int i = 0; i < N; i++) {
            assert_memory_equal(&alone[i], &together[i], sizeof *alone);
            assert_int_equal(alone[i].code, LK_OK);
            for (int kind = 0; kind < LK_N_PERCEIVED; kind++) {
                const int n = lk_perceived_levels(kind);
                double sum = 0, best = 0, confidence;
                worst = fmax(worst, fabs(alone[i].mass[kind] - strtod(at, &at)));
                for (int level = 0; level < n; level++) {
                    double expected = strtod(at, &at), p = alone[i].probability[kind][level];
                    worst = fmax(worst, fabs(p - expected));
                    best = fmax(best, p);
                    sum += p;
                }
                assert_true(fabs(sum - 1) < 1e-12);
                int level = lk_perceived_level(&alone[i], kind, &confidence);
                assert_true(confidence == best && alone[i].probability[kind][level] == best);
            }
        }
        end(&b);
    }
    printf("probabilities at most %.1e off\n", worst);
    assert_true(worst <= 1e-5);
    free(text);
}

/* The question names every level, in the words that labels.csv is read with. */
static void the_question_names_the_levels(void **state) {
    (void)state;
    static const char *const heads[LK_N_PERCEIVED] = {"race: one of ", "gender: one of ", "age: one of "};
    for (int kind = 0; kind < LK_N_PERCEIVED; kind++) {
        const char *at = strstr(lk_perceived_question, heads[kind]);
        assert_non_null(at);
        at += strlen(heads[kind]);
        for (int level = 0; level < lk_perceived_levels(kind); level++) {
            size_t n = strcspn(at, ",\n");
            int parsed = kind == LK_PERCEIVED_AGE    ? lk_age_bracket_parse(at, n)
                         : kind == LK_PERCEIVED_RACE ? lk_factor_parse(LK_FACTOR_RACE, at, n)
                                                     : lk_factor_parse(LK_FACTOR_GENDER, at, n);
            assert_int_equal(parsed, level);
            at += n + (at[n] == ',' ? 2 : 0);
        }
        assert_true(!*at || *at == '\n');
    }
}

/* Each output alone is the likeliest under its own name; three softmaxes by the definition. */
static void fairfaces_outputs_by_name(void **state) {
    (void)state;
    static const char *const names[LK_FAIRFACE_OUTPUTS] = {"White",
                                                           "Black",
                                                           "Latino_Hispanic",
                                                           "East Asian",
                                                           "Southeast Asian",
                                                           "Indian",
                                                           "Middle Eastern",
                                                           "Male",
                                                           "Female",
                                                           "0-2",
                                                           "3-9",
                                                           "10-19",
                                                           "20-29",
                                                           "30-39",
                                                           "40-49",
                                                           "50-59",
                                                           "60-69",
                                                           "more than 70"};
    for (int i = 0; i < LK_FAIRFACE_OUTPUTS; i++) {
        float logits[LK_FAIRFACE_OUTPUTS] = {0};
        struct lk_perceived p;
        double confidence;
        logits[i] = 90.5f;
        lk_perceived_of_fairface(logits, &p);
        const int kind = i < 7 ? LK_PERCEIVED_RACE : i < 9 ? LK_PERCEIVED_GENDER : LK_PERCEIVED_AGE;
        const size_t n = strlen(names[i]);
        int level = kind == LK_PERCEIVED_AGE    ? lk_age_bracket_parse(names[i], n)
                    : kind == LK_PERCEIVED_RACE ? lk_factor_parse(LK_FACTOR_RACE, names[i], n)
                                                : lk_factor_parse(LK_FACTOR_GENDER, names[i], n);
        assert_int_equal(lk_perceived_level(&p, kind, &confidence), level);
        assert_true(confidence > 1 - 1e-12);
        logits[i] = 2;
        lk_perceived_of_fairface(logits, &p);
        for (int k = 0; k < LK_N_PERCEIVED; k++) {
            const int size = lk_perceived_levels(k);
            double sum = 0;
            for (int j = 0; j < size; j++) sum += p.probability[k][j];
            assert_true(fabs(sum - 1) < 1e-12 && p.mass[k] == 1);
            lk_perceived_level(&p, k, &confidence);
            assert_true(fabs(confidence - (k == kind ? exp(2) / (exp(2) + size - 1) : 1.0 / size)) < 1e-12);
        }
    }
}

static void faces_are_cut_out(void **state) {
    (void)state;
    struct lk_image image, crop;
    make_picture(&image, 0);
    const struct {
        struct lk_face face;
        int left, top, width, height;
    } cases[] = {
        {{.x = 30, .y = 20, .width = 8, .height = 12}, 25, 17, 18, 18},  /* 34 +- 9, 26 +- 9 */
        {{.x = -6, .y = -4, .width = 20, .height = 16}, 0, 0, 19, 19},   /* -11..19 */
        {{.x = 70, .y = 50, .width = 16, .height = 10}, 66, 43, 18, 13}, /* to the edge */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(lk_perceived_crop(&image, &cases[i].face, &crop));
        assert_int_equal(crop.width, cases[i].width);
        assert_int_equal(crop.height, cases[i].height);
        assert_memory_equal(crop.pixels, image.pixels + 3 * (84 * cases[i].top + cases[i].left),
                            (size_t)crop.width * 3);
        lk_image_free(&crop);
    }
    assert_fails(lk_perceived_crop(&image, &(struct lk_face){.x = 200, .y = 5, .width = 9, .height = 9}, &crop),
                 LK_E_INPUT, "outside the picture");
    lk_image_free(&image);
}

/* A picture that cannot be shown spoils nothing; failing allocations are errors. */
static void faults(void **state) {
    (void)state;
    struct bench b;
    struct lk_perceived good[N], some[N];
    begin(&b, 0);
    assert_ok(lk_perceive(&b.judge, b.pictures, N, good));
    lk_image_free(&b.pictures[0]);
    assert_ok(lk_image_new(&b.pictures[0], 2000, 2, 3)); /* too narrow for the model */
    memset(b.pictures[0].pixels, 9, 12000);
    assert_ok(lk_perceive(&b.judge, b.pictures, N, some));
    assert_true(some[0].code && *some[0].error);
    assert_memory_equal(&some[1], &good[1], sizeof *some);
    int64_t live = lk_alloc_live();
    for (int64_t n = 1; n < 2000; n += n < 20 ? 1 : 97) {
        lk_alloc_fail_at(n);
        enum lk_code rc = lk_perceive(&b.judge, &b.pictures[1], 1, some);
        lk_alloc_fail_at(0);
        assert_true(rc == LK_E_NOMEM || some[0].code == LK_E_NOMEM || !memcmp(&some[0], &good[1], sizeof *some));
        assert_int_equal(lk_alloc_live(), live);
    }
    end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_transformers),
        cmocka_unit_test(the_question_names_the_levels),
        cmocka_unit_test(fairfaces_outputs_by_name),
        cmocka_unit_test(faces_are_cut_out),
        cmocka_unit_test(faults),
    };
    return cmocka_run_group_tests(tests, make_models, NULL);
}
