/* Human exports of every generation, revisions, gold items, participants, and what is refused. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/ratings.h"
#include "tests/common/test.h"

#define ID "flux_20s_male_black_O-01"

static struct lk_dataset data;
static struct lk_ratings_import import;

static int begin(void **state) {
    (void)state;
    lk_dataset_init(&data);
    import = (struct lk_ratings_import){.data = &data, .gold_tolerance = 1};
    return 0;
}

static int end(void **state) {
    (void)state;
    lk_ratings_import_free(&import);
    lk_dataset_free(&data);
    return lk_alloc_live() != 0;
}

static void load(const char *text) { assert_ok(lk_ratings_read(&import, text, strlen(text), "r")); }

static void generation_of_the_protocol_000(void **state) {
    (void)state;
    load("{\"workerId\": \"w1\", \"imageId\": \"flux_20s_male_black_catB_001\", \"model\": \"flux\", \"race\": "
         "\"Black\", "
         "\"gender\": \"Male\", \"age\": \"20s\", \"category\": \"B\", \"promptId\": \"catB_001\", \"editQuality\": 4, "
         "\"skinToneShift\": \"lighter\", \"raceDrift\": 2, \"genderDrift\": 1, \"ageDrift\": \"off-target\", "
         "\"duration_ms\": 15200, \"timestamp\": \"2026-01-17T10:00:00Z\", \"isAttentionCheck\": false}\n");
    assert_int_equal(data.n_ratings, 1);
    const struct lk_rating *r = &data.ratings[0];
    const uint8_t scores[] = {4, 4, 2, 1, 0};
    const int8_t classes[] = {-1, 2, -1, -1, 1};
    assert_memory_equal(r->score, scores, 5);
    assert_memory_equal(r->answer_class, classes, 5);
    assert_int_equal(r->duration_ms, 15200);
    assert_int_equal(r->n_asked, 5);
    assert_int_equal(r->n_skipped, 0);
    assert_false(r->is_gold);
    assert_int_equal(data.items[r->item].prompt, 0);
    assert_string_equal(data.raters[r->rater].id, "w1");
}

static void generations_of_001_003_and_004(void **state) {
    (void)state;
    load(
        "[{\"workerId\": \"w1\", \"imageId\": \"" ID
        "\", \"arm\": \"preserved\", \"pairId\": \"P001\", \"taskId\": \"7\", "
        "\"position\": 3, \"scores\": {\"edit_success\": 5, \"skin_stone\": 3, \"race_drift\": null, \"gender_drift\": "
        "\"skip\", \"age_change\": 3.0}, \"question_ms\": {\"edit_success\": 2500, \"age_drift\": 900}},\n"
        " {\"workerId\": \"w1\", \"imageId\": \"qwen_30s_female_latino_V-03\", \"taskId\": \"8\", \"scores\": "
        "{\"edit_success\": 5, \"skin_tone\": 3, \"race_drift\": 1, \"gender_drift\": 1, \"age_accuracy\": 2}},\n"
        " {\"workerId\": \"w2\", \"imageId\": \"" ID "\", \"edit_success\": \"partial\", \"gender_drift\": \"No\", "
        "\"race_drift\": \"yes\"},\n"
        " {\"workerId\": \"w3\", \"imageId\": \"" ID "\", \"scores\": {\"edit_success\": 1, \"race_drift\": 1, "
        "\"gender_drift\": 1, \"age_drift\": 3}, \"skin_change_magnitude\": 4}]");
    assert_int_equal(import.rejects.n, 0);
    assert_int_equal(data.n_ratings, 4);
    const struct lk_rating *r = data.ratings;
    assert_int_equal(data.items[r[0].item].arm, LK_ARM_PRESERVED);
    const uint8_t scores[] = {5, 3, 0, 0, 3};
    assert_memory_equal(r[0].score, scores, 5);
    assert_int_equal(r[0].n_asked, 5);
    assert_int_equal(r[0].n_skipped, 2);
    assert_int_equal(r[0].position, 3);
    assert_int_equal(r[0].task, 0);
    assert_int_equal(r[1].task, 1);
    assert_int_equal(r[0].question_ms[0], 2500);
    assert_int_equal(r[0].question_ms[1], -1);
    assert_int_equal(r[0].question_ms[4], 900);
    assert_int_equal(r[1].score[4], 2);
    assert_int_equal(r[2].answer_class[0], 1);
    assert_int_equal(r[2].answer_class[2], 1);
    assert_int_equal(r[2].answer_class[3], 0);
    assert_int_equal(r[2].score[0], 0);
    assert_int_equal(r[3].skin_magnitude, 4);
    assert_int_equal(r[3].score[LK_AXIS_SKIN_TONE], 0);
}

static void choices_become_arms_and_roles(void **state) {
    (void)state;
    const struct {
        const char *fields;
        int preference;
    } cases[] = {{"\"preference\": \"A\", \"left_arm\": \"edited\"", LK_ARM_EDITED},
                 {"\"preference\": \"A\", \"left_arm\": \"preserved\"", LK_ARM_PRESERVED},
                 {"\"preference\": \"right\", \"left_arm\": \"preserved\"", LK_ARM_EDITED},
                 {"\"preference\": \"B\", \"left_arm\": \"edited\"", LK_ARM_PRESERVED},
                 {"\"preference\": \"B\"", LK_ARM_PRESERVED}, /* the printed order */
                 {"\"preference\": \"preserved\", \"left_arm\": \"preserved\"", LK_ARM_PRESERVED},
                 {"\"preference\": \"same\"", 2},
                 {"\"preference\": \"cannot_determine\", \"left_arm\": \"edited\"", 2},
                 {"\"preference\": \"Neither\"", 2}};
    char text[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "{\"workerId\": \"w%zu\", \"imageId\": \"" ID "\", \"confidence\": 5, %s}", i,
                 cases[i].fields);
        load(text);
        assert_int_equal(data.n_ratings, i + 1);
        assert_int_equal(data.ratings[i].preference, cases[i].preference);
        assert_int_equal(data.ratings[i].confidence, 5);
        assert_int_equal(data.ratings[i].n_asked, 2);
    }
    assert_int_equal(import.n_sides_assumed, 1);
    load(
        "{\"workerId\": \"w\", \"imageId\": \"flux_pair_white_20s_W-01\", \"roleAssignment\": \"female\"}\n"
        "{\"workerId\": \"w\", \"imageId\": \"flux_20s_male_white_W-01\", \"gender_presentation\": 2}\n"
        "{\"workerId\": \"w\", \"imageId\": \"flux_20s_male_white_W-02\", \"scores\": {\"gender_presentation\": 3}}\n");
    assert_int_equal(data.ratings[9].role, LK_ROLE_FEMALE);
    assert_int_equal(data.ratings[10].role, LK_ROLE_MALE);
    assert_int_equal(data.ratings[11].role, LK_ROLE_UNCLEAR);
}

static void the_last_revision_counts(void **state) {
    (void)state;
    load("{\"workerId\": \"w1\", \"imageId\": \"" ID "\", \"editQuality\": 1}\n"
         "{\"workerId\": \"w2\", \"imageId\": \"" ID "\", \"editQuality\": 2}\n"
         "{\"workerId\": \"w1\", \"imageId\": \"" ID ".edited\", \"editQuality\": 5}\n"
         "{\"workerId\": \"w1\", \"imageId\": \"" ID "\", \"preference\": \"same\"}\n"
         "{\"workerId\": \"w1\", \"imageId\": \"" ID "\", \"editQuality\": 9}\n");
    assert_int_equal(data.n_ratings, 3);
    assert_int_equal(import.n_revisions, 1);
    assert_int_equal(data.ratings[0].score[0], 5);
    assert_int_equal(data.ratings[1].score[0], 2);
    assert_int_equal(data.ratings[2].preference, 2);
    assert_int_equal(import.rejects.n, 1);
    assert_int_equal(import.rejects.list[0].line, 5);
}

static void tables_are_read_as_well(void **state) {
    (void)state;
    load("workerId,imageId,editQuality,scores.skin_tone,raceDrift,genderDrift,ageDrift,preference,duration_ms\r\n"
         "w1," ID ",4,3.0,1,,on-target,,12000.0\r\n"
         "w1,qwen_20s_male_black_O-01,,,,,,same,\r\n"
         "w1,qwen_20s_male_black_O-02,,,,,,,\r\n");
    assert_int_equal(data.n_ratings, 3);
    const uint8_t scores[] = {4, 3, 1, 0, 0};
    assert_memory_equal(data.ratings[0].score, scores, 5);
    assert_int_equal(data.ratings[0].answer_class[4], 0);
    assert_int_equal(data.ratings[0].n_asked, 5);
    assert_int_equal(data.ratings[0].n_skipped, 1);
    assert_int_equal(data.ratings[0].duration_ms, 12000);
    assert_int_equal(data.ratings[1].n_asked, 1); /* the empty axes were not asked beside a choice */
    assert_int_equal(data.ratings[1].n_skipped, 0);
    assert_int_equal(data.ratings[2].n_skipped, 6);
    lk_ratings_count(&data);
    assert_int_equal(data.raters[0].n_questions, 12);
    assert_int_equal(data.raters[0].n_skipped, 7);
}

static void records_that_are_refused(void **state) {
    (void)state;
    const struct {
        const char *fields, *reason;
    } cases[] = {
        {"\"imageId\": \"" ID "\", \"editQuality\": 4", "expected a field \"workerId\""},
        {"\"workerId\": \"w\", \"editQuality\": 4", "expected a field \"imageId\""},
        {"\"workerId\": \"w\", \"imageId\": \"x\", \"editQuality\": 4", "\"x\" is no prompt"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\"", "no answer to any question"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 6", "editQuality: expected 1 to 5"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 3.5", "editQuality: expected 1 to 5"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": [4]", "editQuality: expected 1 to 5"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": true", "editQuality: expected 1 to 5"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"skinToneShift\": 4", "skinToneShift: expected lighter"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"ageDrift\": 3", "ageDrift: expected on-target"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"raceDrift\": \"partial\"", "raceDrift: expected 1 to 5"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"scores\": {\"age_accuracy\": 3}", "no answer"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"scores\": {\"edit_success\": 5}",
         "answers the same question differently"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"model\": \"qwen\"",
         "model: \"qwen\" is not that of imageId (flux)"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"age\": \"30s\"", "age: \"30s\""},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"category\": \"D\"", "category: \"D\""},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"promptId\": \"O-02\"", "promptId"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID ".edited\", \"editQuality\": 4, \"arm\": \"preserved\"", "arm:"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"arm\": \"left\"", "arm: expected"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"preference\": \"C\"", "preference: expected"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"preference\": \"A\", \"left_arm\": \"x\"", "left_arm"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"roleAssignment\": \"both\"", "roleAssignment"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"confidence\": 0, \"preference\": \"same\"", "confidence"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"duration_ms\": -5", "milliseconds"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"duration_ms\": 3000000000", "millisec"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"isAttentionCheck\": \"maybe\"",
         "true or"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4, \"editQuality\": 4", "occurs twice"},
        {"\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4,", "expected a string"},
    };
    char text[512];
    size_t n = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "{%s}", cases[i].fields);
        load(text);
        assert_int_equal(import.rejects.n, i + 1);
        if (!strstr(import.rejects.list[i].reason, cases[i].reason))
            fail_msg("%s: expected \"%s\", got \"%s\"", cases[i].fields, cases[i].reason,
                     import.rejects.list[i].reason);
    }
    assert_int_equal(data.n_ratings, 0);
    assert_int_equal(data.n_items, 0);
    assert_int_equal(data.n_raters, 0);
    assert_int_equal(import.n_invalid, n);
    assert_fails(lk_ratings_read(&import, "a,b\n1,2\n", 8, "r.csv"), LK_E_INPUT, "expected a column \"workerId\"");
    import.known_only = true;
    load("{\"workerId\": \"w\", \"imageId\": \"" ID "\", \"editQuality\": 4}");
    assert_int_equal(import.n_unknown, 1);
    assert_int_equal(data.n_items, 0);
}

static void gold_items_are_scored(void **state) {
    (void)state;
    static const char key[] = "{\"imageId\": \"gold_1\", \"expected\": {\"editQuality\": 1, \"raceDrift\": 1, "
                              "\"skinToneShift\": \"same\", \"ageDrift\": \"on-target\"}}\n"
                              "{\"imageId\": \"gold_2\", \"race_drift\": 5}\n";
    assert_ok(lk_ratings_gold(&import, key, sizeof key - 1, "gold.jsonl"));
    const struct {
        const char *fields;
        int keyed, right;
    } cases[] = {
        {"\"gold_1\", \"editQuality\": 2, \"raceDrift\": 1, \"skinToneShift\": \"same\", \"ageDrift\": \"on-target\"",
         1, 1},
        {"\"gold_1\", \"editQuality\": 3, \"raceDrift\": 1, \"skinToneShift\": \"same\", \"ageDrift\": \"on-target\"",
         1, 0},
        {"\"gold_1\", \"editQuality\": 1, \"raceDrift\": 1, \"skinToneShift\": \"darker\", \"ageDrift\": \"on-target\"",
         1, 0},
        {"\"gold_1\", \"scores\": {\"edit_success\": 1, \"race_drift\": 2, \"skin_tone\": 3, \"age_drift\": 3}", 1, 1},
        {"\"gold_1\", \"scores\": {\"edit_success\": 1, \"race_drift\": 2, \"skin_tone\": 3, \"age_drift\": 4}", 1, 0},
        {"\"gold_1\", \"editQuality\": 1, \"raceDrift\": 1, \"ageDrift\": \"on-target\"", 1, 0},
        {"\"gold_2\", \"raceDrift\": 4", 1, 1},
        {"\"gold_2\", \"raceDrift\": 3", 1, 0},
        {"\"gold_2\", \"raceDrift\": 1, \"expected\": {\"raceDrift\": 1}", 1, 1},
        {"\"check\", \"answer\": 3, \"expected\": {\"answer\": 3}", 1, 1},
        {"\"check\", \"answer\": 4, \"expected\": {\"answer\": 3}", 1, 0},
        {"\"pair\", \"preference\": \"A\", \"left_arm\": \"preserved\", \"expected\": {\"preference\": \"preserved\"}",
         1, 1},
        {"\"pair\", \"preference\": \"same\", \"expected\": {\"preference\": \"edited\"}", 1, 0},
        {"\"role\", \"roleAssignment\": \"male\", \"expected\": {\"roleAssignment\": \"male\"}", 1, 1},
        {"\"unknown\", \"raceDrift\": 3", 0, 0},
        {"\"unknown\", \"raceDrift\": 3, \"gold_right\": true", 1, 1}, /* found by who exported it */
        {"\"seen\", \"gold_right\": false", 1, 0},
        {"\"gold_2\", \"raceDrift\": 3, \"gold_right\": true", 1, 0}, /* an expectation counts before */
    };
    size_t n = sizeof cases / sizeof *cases;
    for (size_t i = 0; i < n; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"workerId\": \"w%zu\", \"isAttentionCheck\": true, \"imageId\": %s}", i,
                 cases[i].fields);
        load(text);
        assert_int_equal(data.n_ratings, i + 1);
        const struct lk_rating *r = &data.ratings[i];
        assert_true(r->is_gold);
        assert_int_equal(r->item, -1);
        if (r->gold_keyed != cases[i].keyed || r->gold_right != cases[i].right) fail_msg("%s", cases[i].fields);
    }
    assert_int_equal(import.n_gold, n);
    assert_int_equal(import.n_gold_unkeyed, 1);
    assert_int_equal(import.rejects.n, 0);
    import.gold_tolerance = 0;
    load("{\"workerId\": \"w\", \"isAttentionCheck\": true, \"imageId\": \"gold_2\", \"raceDrift\": 4}");
    assert_false(data.ratings[n].gold_right);
    assert_fails(lk_ratings_gold(&import, key, sizeof key - 1, "gold.jsonl"), LK_E_INPUT,
                 "line 1: gold item \"gold_1\"");
    assert_fails(lk_ratings_gold(&import, "{\"imageId\": \"g\"}", 16, "gold.jsonl"), LK_E_INPUT, "expects nothing");
}

static void participants_of_a_platform(void **state) {
    (void)state;
    load("{\"workerId\": \"w1\", \"imageId\": \"" ID "\", \"editQuality\": 4}");
    static const char csv[] =
        "Submission id,Participant id,Status,Completion code,Age,Sex,Ethnicity simplified,Country of "
        "residence,Language,Student status\n"
        "s1,w1,APPROVED,C1ABC,34,Female,White,Germany,English,No\n"
        "s2,w2,RETURNED,,DATA_EXPIRED,DATA_EXPIRED,DATA_EXPIRED,DATA_EXPIRED,English,Yes\n"
        "s3,w3,APPROVED,NOCODE,27,Male,Asian,Korea,Korean,Yes\n"
        "s4,w4,RETURNED,,51,Male,Black,Ghana,English,No\n"
        "s5,w4,AWAITING REVIEW,C1ABC,52,Male,Black,Ghana,English,No\n"
        "s6,w5,APPROVED,C1ABC,20,Male,Mixed,Spain,Spanish,No\n"
        "s7,w5,APPROVED,C1ABC,20,Male,Mixed,Spain,Spanish,No\n";
    assert_ok(lk_ratings_participants(&import, csv, sizeof csv - 1, "p.csv", "C1ABC"));
    assert_int_equal(data.n_raters, 5);
    const bool submitted[] = {true, false, true, true, true}, code[] = {true, false, false, true, true};
    const int sessions[] = {1, 0, 1, 1, 2};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(data.raters[i].submitted, submitted[i]);
        assert_int_equal(data.raters[i].code_valid, code[i]);
        assert_int_equal(data.raters[i].n_sessions, sessions[i]);
    }
    assert_int_equal(import.n_participants, 5);
    const struct lk_participant *p = import.participants;
    assert_int_equal(p[0].age, 34);
    assert_string_equal(p[0].sex, "Female");
    assert_string_equal(p[0].ethnicity, "White");
    assert_string_equal(p[0].country, "Germany");
    assert_string_equal(p[0].language, "English");
    assert_string_equal(p[0].student, "No");
    assert_int_equal(p[1].age, -1);
    assert_string_equal(p[1].sex, "");
    assert_int_equal(p[3].age, 52); /* the submission, not what was given back */
    assert_string_equal(p[3].status, "AWAITING REVIEW");
    assert_fails(lk_ratings_participants(&import, "a\n1\n", 4, "p.csv", NULL), LK_E_INPUT,
                 "expected a column \"participant id\", got: a");
    static const char plain[] = "{\"workerId\": \"x\", \"submitted\": true, \"code_valid\": false, \"pilot\": true}";
    assert_ok(lk_ratings_participants(&import, plain, sizeof plain - 1, "p.jsonl", NULL));
    assert_true(data.raters[5].submitted && !data.raters[5].code_valid && data.raters[5].is_pilot);
    assert_int_equal(import.n_unlisted, 0);
    load("{\"workerId\": \"stranger\", \"imageId\": \"" ID "\", \"editQuality\": 4}");
    assert_true(data.raters[6].submitted); /* until a list of participants says otherwise */
    assert_ok(lk_ratings_participants(&import, "workerId\ny\n", 11, "p.csv", NULL));
    assert_false(data.raters[6].submitted || data.raters[6].code_valid);
    assert_true(data.raters[0].submitted && data.raters[7].submitted);
    assert_int_equal(import.n_unlisted, 1);
}

/* A question that is none of the five axes counts too: answered, or skipped. */
static void skipped_questions_are_counted(void **state) {
    (void)state;
    load("{\"workerId\": \"w\", \"imageId\": \"" ID "\", \"scores\": {\"edit_success\": 5, \"gender_presentation\": 3, "
         "\"stereotype_alignment\": null, \"occupational_fit\": 2}}");
    assert_int_equal(data.n_ratings, 1);
    assert_int_equal(data.ratings[0].n_asked, 4);
    assert_int_equal(data.ratings[0].n_skipped, 1);
}

static enum lk_code read_everything(void) {
    static const char key[] = "{\"imageId\": \"gold_1\", \"expected\": {\"answer\": \"3\"}}\n";
    static const char text[] =
        "{\"workerId\": \"w1\", \"imageId\": \"" ID "\", \"taskId\": \"t\", \"scores\": {\"edit_success\": 5}}\n"
        "{\"workerId\": \"w1\", \"imageId\": \"gold_1\", \"isAttentionCheck\": true, \"answer\": \"3\"}\n"
        "{\"workerId\": \"w1\", \"imageId\": \"" ID "\", \"editQuality\": 7}\n";
    static const char people[] = "workerId,age\nw1,30\nw2,40\n";
    LK_TRY(lk_ratings_gold(&import, key, sizeof key - 1, "gold.jsonl"));
    LK_TRY(lk_ratings_read(&import, text, sizeof text - 1, "r.jsonl"));
    return lk_ratings_participants(&import, people, sizeof people - 1, "p.csv", NULL);
}

static void no_memory_leaves_nothing(void **state) {
    enum lk_code rc = LK_E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        lk_alloc_fail_at(n);
        rc = read_everything();
        lk_alloc_fail_at(0);
        assert_true(!rc || rc == LK_E_NOMEM);
        if (!rc) assert_true(data.n_ratings == 2 && data.n_raters == 2 && import.rejects.n == 1);
        assert_int_equal(end(state), 0);
        begin(state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(generation_of_the_protocol_000, begin, end),
        cmocka_unit_test_setup_teardown(generations_of_001_003_and_004, begin, end),
        cmocka_unit_test_setup_teardown(choices_become_arms_and_roles, begin, end),
        cmocka_unit_test_setup_teardown(skipped_questions_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(the_last_revision_counts, begin, end),
        cmocka_unit_test_setup_teardown(tables_are_read_as_well, begin, end),
        cmocka_unit_test_setup_teardown(records_that_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(gold_items_are_scored, begin, end),
        cmocka_unit_test_setup_teardown(participants_of_a_platform, begin, end),
        cmocka_unit_test_setup_teardown(no_memory_leaves_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
