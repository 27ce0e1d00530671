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

/* A study with built gold items, in the folder of the common test study. */
static void open_with_gold(struct test_survey *t, const char *name, int experiment, int n_gold, const char *fields) {
    char more[300], perfect[2][700];
    test_survey_open(t, name, 36, "\"tasks\":1,"); /* for its folder */
    lk_survey_close(t->survey);
    lk_survey_study_free(t->study);
    snprintf(perfect[0], sizeof perfect[0], "%s/White_Male_20s.png", folder);
    snprintf(perfect[1], sizeof perfect[1], "%s/White_Male_30s.png", folder);
    struct lk_survey_picked picked = {"flux_20s_male_white_O-02.edited", perfect[0], perfect[1]};
    struct lk_survey_gold gold = {.sources = folder, .folder = t->folder, .experiment = experiment, .seed = 42};
    gold.n = n_gold;
    gold.picked = &picked, gold.n_picked = experiment == 1;
    assert_ok(lk_survey_gold(&gold));
    size_t n;
    char *text = test_read(t->file, &n);
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

int main(void) {
    write_portraits();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_kinds),
        cmocka_unit_test(right_answers_are_right),
        cmocka_unit_test(csv_is_the_lines),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) || failed;
}
