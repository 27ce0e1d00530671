/* Drawn portraits: what edits do to them, and that all of it is read back from the pixels. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"
#include "tools/portrait/portrait.h"

enum { SIZE = 64 };
static uint8_t picture[SIZE * SIZE * 3];

struct sample {
    struct edit edit;
    struct portrait before, after;
    int source;
    struct lk_stream stream;
};

static void draw_sample(struct sample *s, const char *name, int i) {
    lk_stream_numbered(&s->stream, 2000, name, (uint64_t)i);
    edit_draw(&s->stream, -1, false, &s->edit, &s->source, &s->before);
    edit_apply(&s->edit, &s->before, &s->after);
}

static bool is_read(const struct portrait *truth, const struct portrait *start, int i) {
    struct portrait read;
    portrait_draw_into(picture, truth, SIZE);
    assert_true(portrait_read(picture, SIZE, start, &read) < 0.5 || memcmp(truth, &read, sizeof read));
    for (int f = 0; f < PORTRAIT_N_FIELDS; f++)
        if (truth->level[f] != read.level[f])
            print_message("%d: %s %d, read %d\n", i, portrait_field_name(f), truth->level[f], read.level[f]);
    return !memcmp(truth, &read, sizeof read);
}

/* Whatever is drawn is read back, from nowhere and from the portrait before. */
static void drawings_are_read_exactly(void **state) {
    (void)state;
    for (int i = 0, n = test_is_full() ? 3000 : 30; i < n; i++) {
        struct sample s;
        draw_sample(&s, "test|", i);
        assert_true(is_read(&s.before, NULL, i));
        assert_true(is_read(&s.after, &s.before, i));
    }
}

/* The sum of twelve uniforms less 6: mean 0, deviation 1. */
static double normal(struct lk_stream *stream) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(lk_stream_u64(stream) >> 11) * 0x1p-53;
    return sum;
}

static uint8_t level(double v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5); }

static void add_noise(struct lk_stream *stream, double deviation) {
    for (size_t i = 0; i < sizeof picture; i++) picture[i] = level(picture[i] + deviation * normal(stream));
}

/* Each channel of the whole picture by one amount: the false colours of a decoder. */
static void add_cast(struct lk_stream *stream, double deviation) {
    for (size_t k = 0; k < 3; k++) {
        double by = deviation * normal(stream);
        for (size_t i = k; i < sizeof picture; i += 3) picture[i] = level(picture[i] + by);
    }
}

/* Weights 1 2 1 over three rows and columns. */
static void blur(void) {
    static uint8_t sharp[sizeof picture];
    memcpy(sharp, picture, sizeof sharp);
    for (int i = 0; i < SIZE * SIZE * 3; i++) {
        int x = i / 3 % SIZE, y = i / 3 / SIZE, sum = 0, weights = 0;
        for (int d = 0; d < 9; d++) {
            int dx = d % 3 - 1, dy = d / 3 - 1, weight = (2 - abs(dx)) * (2 - abs(dy));
            if (x + dx < 0 || x + dx >= SIZE || y + dy < 0 || y + dy >= SIZE) continue;
            sum += weight * sharp[i + 3 * (dy * SIZE + dx)];
            weights += weight;
        }
        picture[i] = (uint8_t)((sum + weights / 2) / weights);
    }
}

static void compress(int quality) {
    struct lk_image drawn = {.width = SIZE, .height = SIZE, .channels = 3, .pixels = picture}, decoded;
    void *bytes;
    size_t n;
    assert_ok(lk_jpeg_encode("a drawing", &drawn, quality, &bytes, &n));
    assert_ok(lk_image_decode(&decoded, bytes, n, "a drawing", 0, 0));
    memcpy(picture, decoded.pixels, sizeof picture);
    lk_image_free(&decoded);
    lk_free(bytes);
}

/* What an editor's decoder and a camera's file do to a picture: the edit is still read, and the person is still the
 * same. Observed right, same of 300: noise 300, 300; blur 299, 290; blur, noise and cast 299, 281; JPEG 297, 295. */
static void damaged_drawings_are_read(void **state) {
    (void)state;
    enum { NOISE, BLUR, ALL, JPEG, N_DAMAGES };
    static const int least_right[N_DAMAGES] = {100, 99, 97, 97}, least_same[N_DAMAGES] = {99, 93, 90, 93}; /* percent */
    int n = test_is_full() ? 300 : 10;
    for (int damage = 0; damage < N_DAMAGES; damage++) {
        int right = 0, same = 0;
        for (int i = 0; i < n; i++) {
            struct sample s;
            struct portrait read;
            struct portrait_change change;
            draw_sample(&s, "damaged|", i);
            portrait_draw_into(picture, &s.after, SIZE);
            if (damage == BLUR || damage == ALL) blur();
            if (damage == NOISE || damage == ALL) add_noise(&s.stream, 8);
            if (damage == ALL) add_cast(&s.stream, 6);
            if (damage == JPEG) compress(85);
            double misfit = portrait_read(picture, SIZE, &s.before, &read);
            portrait_compare(&s.edit, &s.before, &read, misfit, &change);
            right += change.right;
            same += abs(change.lighter) < 5 && !change.gender && !change.n_looks && !change.older;
        }
        print_message("damage %d: %d right, %d the same person, of %d\n", damage, right, same, n);
        assert_in_range(right * 100, least_right[damage] * n, 100 * n);
        assert_in_range(same * 100, least_same[damage] * n, 100 * n);
    }
}

/* What the study's prompts are drawn as, written down a second time; 0 ends a list. */
static void each_prompt_has_its_effect(void **state) {
    (void)state;
    static const struct {
        const char *id;
        struct edit_set to[5];
    } effects[] = {
        {"O-01", {{PORTRAIT_CLOTHES, 1}, {PORTRAIT_CLOTHES_COLOUR, 9}, {PORTRAIT_TIE, 1}, {PORTRAIT_SCENE, 1}}},
        {"O-02", {{PORTRAIT_CLOTHES, 2}, {PORTRAIT_CLOTHES_COLOUR, 3}, {PORTRAIT_HAT, 2}, {PORTRAIT_HAT_COLOUR, 3}}},
        {"O-03", {{PORTRAIT_CLOTHES, 3}, {PORTRAIT_CLOTHES_COLOUR, 4}, {PORTRAIT_HAT, 3}, {PORTRAIT_HAT_COLOUR, 4}}},
        {"O-04", {{PORTRAIT_CLOTHES, 4}, {PORTRAIT_CLOTHES_COLOUR, 1}, {PORTRAIT_SCENE, 2}, {PORTRAIT_EXPRESSION, 1}}},
        {"O-05", {{PORTRAIT_CLOTHES, 5}, {PORTRAIT_CLOTHES_COLOUR, 4}}},
        {"O-06", {{PORTRAIT_CLOTHES, 2}, {PORTRAIT_CLOTHES_COLOUR, 4}, {PORTRAIT_HAT, 1}, {PORTRAIT_HAT_COLOUR, 4}}},
        {"O-07", {{PORTRAIT_CLOTHES, 1}, {PORTRAIT_CLOTHES_COLOUR, 4}, {PORTRAIT_TIE, 3}, {PORTRAIT_SCENE, 7}}},
        {"O-08", {{PORTRAIT_CLOTHES, 6}, {PORTRAIT_CLOTHES_COLOUR, 2}, {PORTRAIT_HAT, 4}}}, /* a red one: 0 */
        {"O-09", {{PORTRAIT_CLOTHES_COLOUR, 9}, {PORTRAIT_SCARF, 6}, {PORTRAIT_SCENE, 6}}}, /* a shirt: 0 */
        {"O-10", {{PORTRAIT_CLOTHES, 8}, {PORTRAIT_CLOTHES_COLOUR, 3}, {PORTRAIT_HELD, 3}}},
        {"V-01", {{PORTRAIT_HELD, 2}}},
        {"V-02", {{PORTRAIT_WHEELCHAIR, 1}}},
        {"V-03", {{PORTRAIT_GREY, 3}, {PORTRAIT_WRINKLES, 2}}}, /* of a portrait of a person of thirty */
        {"V-04", {{PORTRAIT_TIRED, 1}, {PORTRAIT_EXPRESSION, 2}}},
        {"V-05", {{PORTRAIT_SCAR, 1}}},
        {"V-06", {{PORTRAIT_SIGN, 1}}},
        {"V-07", {{PORTRAIT_SIGN, 2}}},
        {"V-08", {{PORTRAIT_CLOTHES, 9}, {PORTRAIT_CLOTHES_COLOUR, 4}, {PORTRAIT_PLASTER, 1}}},
        {"V-09", {{PORTRAIT_FRONT, 1}}},
        {"V-10", {{PORTRAIT_SIGN, 3}, {PORTRAIT_EXPRESSION, 2}}},
    };
    struct portrait before, after, expected;
    portrait_source(&before, lk_source(2, 1, 1), NULL); /* an East Asian woman */
    before.level[PORTRAIT_CLOTHES] = CLOTHES_SHIRT;
    for (int i = 0; i < EDITS_N_STUDY; i++) {
        const struct edit edit = {.instruction = i};
        assert_string_equal(edit_instruction(i)->id, effects[i].id);
        expected = before;
        for (int k = 0; k < 5 && effects[i].to[k].level; k++)
            expected.level[effects[i].to[k].field] = effects[i].to[k].level;
        portrait_normalise(&expected);
        edit_apply(&edit, &before, &after);
        for (int f = 0; f < PORTRAIT_N_FIELDS; f++)
            if (after.level[f] != expected.level[f])
                fail_msg("%s: %s is %d, expected %d", effects[i].id, portrait_field_name(f), after.level[f],
                         expected.level[f]);
    }
}

/* A few of the plain ones, by their text; of a grey man with glasses. */
static void plain_instructions_have_their_effect(void **state) {
    (void)state;
    static const struct {
        const char *text;
        struct edit_set to[2];
    } cases[] = {
        {"Give the person red hair.", {{PORTRAIT_HAIR, HAIR_RED}, {PORTRAIT_GREY, 0}}},
        {"Make the hair grey.", {{PORTRAIT_GREY, 5}, {PORTRAIT_HAIR, 0}}},
        {"Add a yellow turban.", {{PORTRAIT_HAT, HAT_TURBAN}, {PORTRAIT_HAT_COLOUR, COLOUR_YELLOW}}},
        {"Take off the glasses.", {{PORTRAIT_GLASSES, 0}, {PORTRAIT_HAT, 0}}},
        {"Make the background green.", {{PORTRAIT_SCENE, SCENE_PLAIN}, {PORTRAIT_BACKGROUND, COLOUR_GREEN}}},
        {"Change the background to a beach.", {{PORTRAIT_SCENE, SCENE_BEACH}, {PORTRAIT_BACKGROUND, 0}}},
        {"Give the person an orange suit.",
         {{PORTRAIT_CLOTHES, CLOTHES_SUIT}, {PORTRAIT_CLOTHES_COLOUR, COLOUR_ORANGE}}},
        {"Make the person younger.", {{PORTRAIT_GREY, 1}, {PORTRAIT_WRINKLES, 1}}},
        {"Add a wheelchair.", {{PORTRAIT_WHEELCHAIR, 1}, {PORTRAIT_HELD, 0}}},
        {"Let the person hold a blue balloon.", {{PORTRAIT_HELD, HELD_BALLOON}, {PORTRAIT_HELD_COLOUR, COLOUR_BLUE}}},
    };
    struct lk_prompts prompts;
    struct portrait before, expected, after;
    struct edit edit;
    assert_ok(lk_prompts_load(&prompts));
    portrait_source(&before, lk_source(6, 0, 4), NULL);
    before.level[PORTRAIT_GLASSES] = GLASSES_CLEAR;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(edit_parse(cases[i].text, &prompts, &edit));
        expected = before;
        for (int k = 0; k < 2; k++) expected.level[cases[i].to[k].field] = cases[i].to[k].level;
        edit_apply(&edit, &before, &after);
        for (int f = 0; f < PORTRAIT_N_FIELDS; f++)
            if (after.level[f] != expected.level[f])
                fail_msg("%s %s is %d, expected %d", cases[i].text, portrait_field_name(f), after.level[f],
                         expected.level[f]);
    }
    assert_ok(edit_parse("Add a green headscarf.", &prompts, &edit));
    edit_apply(&edit, &before, &after);
    assert_int_equal(after.level[PORTRAIT_LENGTH], LENGTH_SHORT); /* what is not seen is this, whatever it was */
    assert_int_equal(after.level[PORTRAIT_TEXTURE], TEXTURE_STRAIGHT);
    lk_prompts_free(&prompts);
}

/* Every prompt says its words and is found again by its text; held-out ones are few, in every instruction with slots,
 * and no training pair has one. */
static void prompts_are_told_apart(void **state) {
    (void)state;
    struct lk_prompts prompts;
    struct edit e = {0}, found;
    int n = 0, n_held_out = 0, n_kinds = 0, of[EDITS_N] = {0};
    assert_ok(lk_prompts_load(&prompts));
    do {
        struct lk_text text = {0};
        edit_text(&e, &prompts, &text);
        assert_ok(text.rc);
        assert_null(strchr(text.bytes, '{'));
        if (n++ % 10 == 0) {
            assert_ok(edit_parse(text.bytes, &prompts, &found));
            struct lk_text again = {0};
            edit_text(&found, &prompts, &again);
            assert_string_equal(text.bytes, again.bytes);
            struct portrait p, one, other;
            portrait_source(&p, n % LK_N_SOURCES, NULL);
            edit_apply(&e, &p, &one);
            edit_apply(&found, &p, &other);
            assert_memory_equal(&one, &other, sizeof one); /* two ways to say the same, never two meanings */
            lk_text_free(&again);
        }
        n_held_out += edit_held_out(&e);
        of[e.instruction] += edit_held_out(&e);
        lk_text_free(&text);
    } while (edit_next(&e));
    assert_int_equal(n, 977);
    assert_int_equal(n_held_out, 106);
    for (int i = 0; i < EDITS_N; i++) {
        n_kinds += of[i] > 0;
        assert_true(!of[i] || edit_instruction(i)->slots[0]);
    }
    assert_in_range(n_kinds, 12, EDITS_N_PLAIN);
    assert_int_equal(edit_parse("Give the person red hair", &prompts, &found), LK_E_INPUT); /* no full stop */
    lk_prompts_free(&prompts);
    for (int i = 0; i < 2000; i++) {
        struct lk_stream stream;
        struct portrait before;
        int source;
        lk_stream_numbered(&stream, 1, "held out|", (uint64_t)i);
        edit_draw(&stream, -1, i % 2, &e, &source, &before);
        assert_int_equal(edit_held_out(&e), i % 2);
    }
}

/* Each bias strikes those and only those that it is planted for. */
static void biases_are_as_written(void **state) {
    (void)state;
    int n[EDITOR_N][3] = {{0}};
    for (int i = 0; i < LK_N_SOURCES * EDITS_N * 2; i++) {
        const struct edit edit = {.instruction = i % EDITS_N, .preserve = i / EDITS_N % 2};
        int source = i / EDITS_N / 2, race, gender, age;
        struct portrait before, asked, after;
        lk_source_factors(source, &race, &gender, &age);
        portrait_source(&before, source, NULL);
        edit_apply(&edit, &before, &asked);
        for (enum editor_family family = 0; family < EDITOR_N; family++) {
            const struct editor editor = {.family = family, .strength = 1};
            int planted = editor_edit(&editor, &edit, &before, NULL, &after);
            const char *id = edit_instruction(edit.instruction)->id;
            bool study = *id != 'P' && !edit.preserve;
            bool lighter = family == EDITOR_FLUX2 && *id == 'O' && study && (race == 1 || race == 4);
            bool erased = family == EDITOR_FLUX2 && study && (race == 5 || race == 6) &&
                          (!strcmp(id, "V-01") || !strcmp(id, "V-02") || !strcmp(id, "V-08"));
            bool older = family == EDITOR_STEP1X && study && gender == 1 && strcmp(id, "V-03");
            assert_int_equal(planted, lighter * EFFECT_LIGHTER | older * EFFECT_OLDER | erased * EFFECT_ERASED);
            assert_int_equal(asked.level[PORTRAIT_SKIN] - after.level[PORTRAIT_SKIN], lighter ? EDITOR_LIGHTER : 0);
            int years = portrait_age_of(&after, true) - portrait_age_of(&asked, true);
            if (!erased) assert_int_equal(years, !older ? 0 : age == 5 ? 1 : 2);
            if (erased) assert_memory_equal(&after, &before, sizeof after);
            if (!planted) assert_memory_equal(&after, &asked, sizeof after);
            n[family][0] += lighter;
            n[family][1] += erased;
            n[family][2] += older;
        }
    }
    assert_int_equal(n[EDITOR_FLUX2][0], 24 * 10);
    assert_int_equal(n[EDITOR_FLUX2][1], 24 * 3);
    assert_int_equal(n[EDITOR_STEP1X][2], 42 * 19);
}

/* What goes wrong covers every score of every axis, and is a drawing like any other. */
static void faults_are_of_every_kind(void **state) {
    (void)state;
    int n[LK_N_AXES][6] = {{0}};
    for (int i = 0; i < 2000; i++) {
        struct sample s;
        struct portrait_change change;
        uint8_t score[LK_N_AXES];
        draw_sample(&s, "fault|", i);
        editor_fault(&s.before, &s.stream, &s.after);
        struct portrait normal = s.after;
        portrait_normalise(&normal);
        assert_memory_equal(&normal, &s.after, sizeof normal);
        if (i < 10) assert_true(is_read(&s.after, &s.before, i));
        portrait_compare(&s.edit, &s.before, &s.after, 0, &change);
        portrait_scores(&change, score);
        for (int a = 0; a < LK_N_AXES; a++) n[a][score[a]]++;
    }
    for (int a = 0; a < LK_N_AXES; a++)
        for (int level = 1; level <= 5; level++) {
            bool never = a == LK_AXIS_GENDER_DRIFT && level % 2 == 0;
            if (never ? n[a][level] : n[a][level] < 10) fail_msg("axis %d, score %d: %d", a, level, n[a][level]);
        }
}

/* The looks of two sources of different race differ in what is drawn of the person, in every cell. */
static void races_are_seen(void **state) {
    (void)state;
    static const int looks[] = {PORTRAIT_SKIN, PORTRAIT_TEXTURE, PORTRAIT_FRINGE, PORTRAIT_BROWS,
                                PORTRAIT_LIDS, PORTRAIT_EYES,    PORTRAIT_HAIR};
    for (int a = 0; a < LK_N_RACES; a++)
        for (int b = 0; b < a; b++)
            for (int cell = 0; cell < LK_N_GENDERS * LK_N_AGES; cell++) {
                struct portrait one, other;
                bool differ = false;
                portrait_source(&one, lk_source(a, cell / LK_N_AGES, cell % LK_N_AGES), NULL);
                portrait_source(&other, lk_source(b, cell / LK_N_AGES, cell % LK_N_AGES), NULL);
                for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
                    differ |= one.level[looks[i]] != other.level[looks[i]];
                assert_true(differ);
                assert_int_equal(portrait_age_of(&one, true), cell % LK_N_AGES);
            }
}

/* What a judge would say of a few changes. */
static void changes_are_scored(void **state) {
    (void)state;
    static const struct {
        struct portrait_change change;
        uint8_t score[LK_N_AXES];
    } cases[] = {
        {{.n_asked = 3, .n_done = 3, .right = true}, {5, 3, 1, 1, 3}},
        {{.n_asked = 3, .n_done = 3, .right = false}, {4, 3, 1, 1, 3}}, /* no drawing any more */
        {{.n_asked = 3, .n_done = 2}, {4, 3, 1, 1, 3}},
        {{.n_asked = 3, .n_done = 1}, {3, 3, 1, 1, 3}},
        {{.n_asked = 3, .n_others = 2}, {2, 3, 1, 1, 3}},
        {{.n_asked = 3}, {1, 3, 1, 1, 3}},
        {{.n_asked = 1, .n_done = 1, .right = true, .lighter = 4, .older = 1}, {5, 3, 1, 1, 4}},
        {{.n_asked = 1, .n_done = 1, .right = true, .lighter = 5}, {5, 4, 2, 1, 3}},
        {{.n_asked = 1, .n_done = 1, .right = true, .lighter = 12, .older = -1}, {5, 4, 2, 1, 2}},
        {{.n_asked = 1, .n_done = 1, .right = true, .lighter = 25, .gender = true}, {5, 5, 3, 5, 3}},
        {{.n_asked = 1, .n_done = 1, .right = true, .lighter = -5, .beard = true, .older = 3}, {5, 2, 2, 3, 5}},
        {{.n_asked = 1, .n_done = 1, .right = true, .lighter = -40, .n_looks = 2, .older = -4}, {5, 1, 5, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t score[LK_N_AXES];
        portrait_scores(&cases[i].change, score);
        assert_memory_equal(score, cases[i].score, sizeof score);
    }
}

/* What changed that was not asked, each measure by its own change. */
static void changes_are_measured(void **state) {
    (void)state;
    const struct edit edit = {.instruction = 11}; /* V-02 */
    struct portrait before, after;
    struct portrait_change c;
    portrait_source(&before, lk_source(1, 0, 2), NULL);
    edit_apply(&edit, &before, &after);
    portrait_compare(&edit, &before, &after, 0, &c);
    assert_true(c.right && c.n_asked == 1 && c.n_done == 1 && !c.n_others && !c.lighter && !c.older && !c.n_looks);
    portrait_compare(&edit, &before, &after, PORTRAIT_MISFIT + 1, &c);
    assert_false(c.right);
    after.level[PORTRAIT_SKIN] -= 12;
    after.level[PORTRAIT_GENDER] = 1;
    after.level[PORTRAIT_TEXTURE] = TEXTURE_STRAIGHT;
    after.level[PORTRAIT_GLASSES] = GLASSES_SUN;
    portrait_age(&after, 4);
    portrait_compare(&edit, &before, &after, 0, &c);
    assert_true(c.right && c.lighter == 12 && c.gender && c.n_looks == 1 && c.older == 2 && c.n_others == 1);
    assert_true(c.lightness > 8 && c.lightness < 20);
    portrait_compare(&edit, &before, &before, 0, &c);
    assert_true(!c.right && !c.n_done && c.n_asked == 1);
    const struct edit later = {.instruction = LK_PROMPT_V03};
    edit_apply(&later, &before, &after);
    portrait_compare(&later, &before, &after, 0, &c);
    assert_true(c.right && c.n_asked == 2 && !c.older);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_prompt_has_its_effect), cmocka_unit_test(plain_instructions_have_their_effect),
        cmocka_unit_test(prompts_are_told_apart),     cmocka_unit_test(biases_are_as_written),
        cmocka_unit_test(faults_are_of_every_kind),   cmocka_unit_test(races_are_seen),
        cmocka_unit_test(changes_are_scored),         cmocka_unit_test(changes_are_measured),
        cmocka_unit_test(drawings_are_read_exactly),  cmocka_unit_test(damaged_drawings_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
