/* Gold items built from portraits, mixed into tasks, answered, exported in both forms and read back. */
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/image/image.h"
#include "eval/human/ratings.h"
#include "eval/study/factors.h"
#include "tests/common/survey.h"
#include "tests/common/test.h"

static char folder[400];

static void write_portraits(void) {
    char id[48], path[1000];
    snprintf(folder, sizeof folder, "%s-%d", test_path("gold"), (int)getpid());
    snprintf(path, sizeof path, "rm -rf '%s' && mkdir '%s'", folder, folder);
    assert_int_equal(system(path), 0);
    for (int source = 0; source < 84; source++) {
        struct lk_image image;
        assert_ok(lk_image_new(&image, 40, 32, 3));
        for (int i = 0; i < 40 * 32 * 3; i++) image.pixels[i] = (uint8_t)((i / 3 % 8 < 4 ? 150 : 20) + source + i % 3);
        lk_source_id(source, id);
        snprintf(path, sizeof path, "%s/%s.png", folder, id);
        assert_ok(lk_png_write(path, &image, NULL, 0));
        lk_image_free(&image);
    }
}

static void source_of(const char *path, char id[64]) {
    snprintf(id, 64, "%s", strrchr(path, '/') + 1);
    id[strcspn(id, ".")] = '\0';
}

static void hash_of(const char *path, char sha256[65]) {
    size_t n;
    char *bytes = test_read(path, &n);
    lk_sha256(bytes, n, sha256);
    free(bytes);
}

/* The items of a study about edits as those of experiment 3. */
static void to_scenes(char *text) {
    for (char *at = text; (at = strchr(at, '_')); at++)
        if ((at[1] == 'O' || at[1] == 'V') && at[2] == '-') {
            if (at[1] == 'V') at[3] = (char)(at[3] + 2);
            at[1] = 'W';
        }
}

/* A study with built gold items, in the folder of the common test study. */
static void open_with_gold(struct test_survey *t, const char *name, int experiment, int n_gold, const char *fields) {
    char more[300], perfect[2][700];
    test_survey_open(t, name, 36, "\"tasks\":1,"); /* for its folder */
    lk_survey_close(t->survey);
    lk_survey_study_free(t->study);
    snprintf(perfect[0], sizeof perfect[0], "%s/White_Male_20s.png", folder);
    snprintf(perfect[1], sizeof perfect[1], "%s/White_Male_30s.png", folder);
    struct lk_survey_picked picked = {"flux_20s_male_white_O-02.edited", perfect[0], perfect[1], NULL};
    struct lk_survey_gold_source sources[84];
    int8_t levels[84][3];
    char ids[84][48], paths[84][700];
    struct lk_survey_gold gold = {.folder = t->folder,
                                  .experiment = experiment,
                                  .n = n_gold,
                                  .seed = 42,
                                  .sources = sources,
                                  .n_sources = 84,
                                  .n_attributes = 3,
                                  .gender = 1};
    for (int i = 0; i < 84; i++) {
        int level[3];
        lk_source_id(i, ids[i]);
        lk_source_factors(i, &level[0], &level[1], &level[2]);
        for (int k = 0; k < 3; k++) levels[i][k] = (int8_t)level[k];
        snprintf(paths[i], sizeof paths[i], "%.600s/%.47s.png", folder, ids[i]);
        sources[i] = (struct lk_survey_gold_source){ids[i], paths[i], levels[i]};
    }
    gold.picked = &picked, gold.n_picked = experiment == 1;
    assert_ok(lk_survey_gold(&gold));
    size_t n;
    char *text = test_read(t->file, &n);
    if (experiment == 3) to_scenes(text);
    snprintf(more, sizeof more, "%s\"gold\":\"gold_exp%d.json\",", fields, experiment);
    char *items = strstr(text, "\"items\"");
    char *whole = lk_format("{\"study\":\"%s\",\"tasks\":1,\"min_seconds\":0,%s%s", name, more, items);
    test_write(t->file, whole, strlen(whole));
    lk_free(whole);
    free(text);
    snprintf(t->store, sizeof t->store, "%s/gold-store", t->folder);
    assert_ok(lk_survey_study_read(&t->study, t->file));
    assert_ok(lk_survey_open(&t->survey, t->study, t->store, true));
}

static void five_kinds(void **state) {
    struct test_survey t;
    int n_kinds[5] = {0};
    static const char *const kinds[] = {"identical", "race", "gender", "failed", "perfect"};
    (void)state;
    open_with_gold(&t, "gold-kinds", 1, 50, "\"protocol\":\"000\",");
    assert_int_equal(t.study->n_gold, 50);
    for (size_t i = 0; i < 50; i++) {
        const struct lk_survey_item *item = &t.study->gold[i];
        const char *source = item->picture[LK_PICTURE_SOURCE], *edited = item->picture[LK_PICTURE_EDITED];
        char a[65], b[65], id[2][64];
        int kind = 0, factor[2][3];
        while (strncmp(item->id + 5, kinds[kind], strlen(kinds[kind]))) kind++;
        n_kinds[kind]++;
        hash_of(source, a);
        hash_of(edited, b);
        assert_int_equal(!strcmp(a, b), kind == 0); /* the identical pair is the same file */
        if (kind == 4) continue;
        source_of(source, id[0]);
        source_of(edited, id[1]);
        for (int k = 0; k < 2; k++)
            lk_source_factors(lk_source_parse(id[k], strlen(id[k])), &factor[k][0], &factor[k][1], &factor[k][2]);
        assert_int_equal(factor[0][0] != factor[1][0], kind == 1);
        assert_int_equal(factor[0][1] != factor[1][1], kind == 2);
        assert_int_equal(factor[0][2], factor[1][2]);
        if (kind == 3) assert_string_equal(item->prompt, "Convert to black and white");
    }
    for (int k = 0; k < 5; k++) assert_int_equal(n_kinds[k], 10);
    /* Mixed into a HIT of 40: 4, never first, never adjacent, whoever it is. */
    for (int p = 0; p < 100; p++) {
        const struct lk_survey_item *items[40];
        char worker[16];
        int n_gold = 0;
        snprintf(worker, sizeof worker, "w%d", p);
        assert_int_equal(lk_survey_task_length(t.study, 0), 40);
        assert_ok(lk_survey_task_items(t.study, worker, 0, items));
        assert_int_equal(items[0]->kind, LK_SURVEY_ITEM);
        for (int i = 0; i < 40; i++) {
            n_gold += items[i]->kind == LK_SURVEY_GOLD;
            assert_false(i && items[i]->kind == LK_SURVEY_GOLD && items[i - 1]->kind == LK_SURVEY_GOLD);
        }
        assert_int_equal(n_gold, 4);
    }
    test_survey_close(&t);
}

/* Simulated participants, who know the right answers, are right by the reader of the report, in every instrument. */
static void right_answers_are_right(void **state) {
    static const struct {
        const char *fields;
        int experiment;
    } cases[] = {{"\"protocol\":\"000\",", 1},
                 {"\"protocol\":\"001\",\"gold_per_task\":4,", 1},
                 {"\"protocol\":\"004\",", 1},
                 {"\"gold_per_task\":4,", 2},
                 {"\"protocol\":\"000\",\"experiment\":2,", 2},
                 {"\"protocol\":\"001\",\"experiment\":2,\"gold_per_task\":4,", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_survey t;
        struct lk_survey_counts n;
        open_with_gold(&t, "gold-right", cases[i].experiment, 10, cases[i].fields);
        assert_ok(lk_survey_pilot(t.survey, 3, 1768608000000));
        assert_ok(lk_survey_count(t.survey, 1768608000000, &n));
        assert_true(n.n_checks >= 12);
        if (n.n_checks_right != n.n_checks) fail_msg("case %zu: %d of %d are right", i, n.n_checks_right, n.n_checks);
        test_survey_close(&t);
    }
}

static void read_export(const struct lk_text *text, const char *name, struct lk_dataset *data) {
    struct lk_ratings_import import = {.data = data, .gold_tolerance = 1};
    lk_dataset_init(data);
    assert_ok(lk_ratings_read(&import, text->bytes, text->n, name));
    assert_int_equal(import.n_invalid, 0);
    lk_ratings_import_free(&import);
}

/* The table says what the lines say. */
static void csv_is_the_lines(void **state) {
    static const char *const fields[] = {"\"gold_per_task\":4,",
                                         "\"protocol\":\"001\",\"experiment\":2,\"gold_per_task\":4,"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct test_survey t;
        struct lk_text lines = {0}, table = {0};
        struct lk_dataset a, b;
        open_with_gold(&t, "gold-csv", 2, 5, fields[k]);
        for (size_t i = 0; i < t.study->n_gold; i++) { /* one of the two is the source */
            char *const *picture = t.study->gold[i].picture;
            assert_int_equal(!strcmp(picture[LK_PICTURE_EDITED], picture[LK_PICTURE_SOURCE]) +
                                 !strcmp(picture[LK_PICTURE_PRESERVED], picture[LK_PICTURE_SOURCE]),
                             1);
        }
        assert_ok(lk_survey_pilot(t.survey, 3, 1768608000000));
        assert_ok(lk_survey_export_answers(t.survey, false, true, &lines));
        assert_ok(lk_survey_csv(&lines, &table));
        read_export(&lines, "lines", &a);
        read_export(&table, "table", &b);
        assert_true(a.n_ratings > 100);
        assert_int_equal(a.n_ratings, b.n_ratings);
        for (size_t i = 0; i < a.n_ratings; i++) {
            assert_memory_equal(a.ratings[i].score, b.ratings[i].score, sizeof a.ratings[i].score);
            assert_int_equal(a.ratings[i].preference, b.ratings[i].preference);
            assert_int_equal(a.ratings[i].is_gold, b.ratings[i].is_gold);
            assert_int_equal(a.ratings[i].gold_right, b.ratings[i].gold_right);
        }
        lk_dataset_free(&a);
        lk_dataset_free(&b);
        lk_text_free(&lines);
        lk_text_free(&table);
        test_survey_close(&t);
    }
    struct lk_text odd = {0}, table = {0};
    lk_text_add(&odd, "{\"comment\":\"=HYPERLINK(1),\\\"x\\\"\",\"n\":null}\n{\"n\":-1}\n");
    assert_ok(lk_survey_csv(&odd, &table));
    assert_string_equal(table.bytes, "comment,n\n\"'=HYPERLINK(1),\"\"x\"\"\",\n,-1\n");
    lk_text_free(&odd);
    lk_text_free(&table);
}

/* Experiment 3: whoever of the two is in the picture has the role; somebody who is right about all has all right. */
static void roles(void **state) {
    struct test_survey t;
    int n_shown[2] = {0};
    (void)state;
    open_with_gold(&t, "gold-roles", 3, 20, "\"protocol\":\"000\",\"experiment\":3,");
    for (size_t i = 0; i < t.study->n_gold; i++) {
        const struct lk_survey_item *item = &t.study->gold[i];
        static const int kinds[] = {LK_PICTURE_SOURCE, LK_PICTURE_SECOND_SOURCE, LK_PICTURE_EDITED};
        struct lk_survey_questions questions;
        char sha256[3][65], text[16], id[64];
        int factor[2][3];
        for (int k = 0; k < 3; k++) hash_of(item->picture[kinds[k]], sha256[k]);
        for (int k = 0; k < 2; k++) {
            source_of(item->picture[kinds[k]], id);
            lk_source_factors(lk_source_parse(id, strlen(id)), &factor[k][0], &factor[k][1], &factor[k][2]);
            assert_int_equal(factor[k][1], k); /* a man, a woman */
        }
        assert_int_equal(factor[0][0], factor[1][0]);
        assert_int_equal(factor[0][2], factor[1][2]);
        int shown = !strcmp(sha256[1], sha256[2]);
        assert_string_equal(sha256[shown], sha256[2]);
        assert_ok(lk_survey_questions_of(t.study, item, &questions));
        assert_non_null(strstr(questions.list[0].text, item->occupation));
        assert_null(strstr(questions.list[0].text, "ROLE"));
        assert_string_equal(lk_survey_expected(item, &questions.list[0], 0, text), shown ? "female" : "male");
        lk_survey_questions_free(&questions);
        n_shown[shown]++;
    }
    assert_in_range(n_shown[0], 4, 16);
    test_survey_close(&t);
}

static void read_picture(struct lk_image *out, const char *path) {
    struct lk_image image = {0};
    assert_ok(lk_image_read(&image, path, 1, 0));
    assert_ok(lk_image_to_rgb(out, &image));
    lk_image_free(&image);
}

/* What a practice item says that is to be seen, is. */
static void practice_items(void **state) {
    static const char *const fields[] = {"\"protocol\":\"001\",", "\"protocol\":\"003\",",
                                         "\"protocol\":\"000\",\"experiment\":3,"};
    char path[2][700];
    (void)state;
    snprintf(path[0], sizeof path[0], "%s/Black_Female_20s.png", folder);
    snprintf(path[1], sizeof path[1], "%s/Black_Male_40s.png", folder);
    for (int experiment = 1; experiment <= 3; experiment++)
        for (int named = experiment == 3; named < 2; named++) {
            struct test_survey t;
            struct lk_image source = {0}, edited = {0};
            char more[160];
            test_survey_open(&t, "gold-practice", 6, "\"tasks\":1,");
            const struct lk_survey_portrait two[] = {{path[0], named ? 1 : -1, named ? 1 : -1},
                                                     {path[1], named ? 1 : -1, named ? 0 : -1}};
            struct lk_survey_practice practice = {
                .folder = t.folder, .experiment = experiment, .sources = two, .n_sources = 2};
            assert_ok(lk_survey_practice(&practice));
            assert_int_equal(practice.n, experiment == 3 ? 3 : 3 + named); /* of people of whom nothing is known three
                                                                            */
            snprintf(more, sizeof more, "%s\"gold_per_task\":0,\"tutorial\":\"practice_exp%d.json\",",
                     fields[experiment - 1], experiment);
            size_t n;
            char *text = test_read(t.file, &n), *items = strstr(text, "\"items\"");
            if (experiment == 3) to_scenes(text);
            char *whole = lk_format("{\"study\":\"p\",\"tasks\":1,%s%s", more, items);
            test_write(t.file, whole, strlen(whole));
            struct lk_survey_study *study;
            assert_ok(lk_survey_study_read(&study, t.file));
            lk_free(whole);
            free(text);
            assert_int_equal(study->n_tutorial, practice.n);
            for (size_t i = 0; i < study->n_tutorial; i++) assert_true(strlen(study->tutorial[i].feedback) > 20);
            read_picture(&source, study->tutorial[0].picture[LK_PICTURE_SOURCE]);
            read_picture(&edited, study->tutorial[0].picture[LK_PICTURE_EDITED]);
            for (int i = 0; experiment < 3 && i < 40 * 32 * 3; i += 3) {
                const uint8_t *of = source.pixels + i; /* ITU-R 601, as Pillow's "L" */
                const int grey = (299 * of[0] + 587 * of[1] + 114 * of[2] + 500) / 1000;
                for (int c = 0; c < 3; c++) assert_int_equal(edited.pixels[i + c], grey);
            }
            lk_image_free(&edited);
            if (experiment == 2) {
                read_picture(&edited, study->tutorial[1].picture[LK_PICTURE_PRESERVED]);
                lk_image_free(&source);
                read_picture(&source, study->tutorial[1].picture[LK_PICTURE_SOURCE]);
                for (int y = 0; y < 32; y++)
                    for (int x = 0; x < 40; x++)
                        assert_memory_equal(edited.pixels + 3 * (40 * y + x), source.pixels + 3 * (40 * y + 39 - x), 3);
                lk_image_free(&edited);
            }
            lk_image_free(&source);
            lk_survey_study_free(study);
            test_survey_close(&t);
        }
    struct lk_survey_practice nobody = {
        .folder = folder, .experiment = 3, .sources = (struct lk_survey_portrait[]){{path[0], -1, -1}}, .n_sources = 1};
    assert_int_equal(lk_survey_practice(&nobody), LK_E_INPUT);
}

int main(void) {
    write_portraits();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_kinds), cmocka_unit_test(right_answers_are_right), cmocka_unit_test(csv_is_the_lines),
        cmocka_unit_test(roles),      cmocka_unit_test(practice_items),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) || failed;
}
