/* Answers to the older study's questions, in words and in JSON. */
#include <math.h>

#include "eval/judge/legacy.h"
#include "tests/common/test.h"

#define ITEM "\"item_id\": \"flux_20s_male_black_O-01\""

static void read(struct lk_legacy *legacy, const char *text) {
    assert_ok(lk_legacy_read(legacy, text, strlen(text), "a.jsonl"));
}

static void answers_about_an_edit(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{" ITEM ", \"edit_success\": \"Partial\", \"gender_drift\": \"no\", \"race_drift\": \"YES\"}",
        "{" ITEM ", \"answer\": \"1. partial\\n2. no\\n3. yes\"}",
        "{" ITEM ", \"answer\": \"Partial\\n\\nNo\\nYes\\n\"}",
        "{" ITEM
        ", \"answer\": \"1) **Partial**, the hat is missing\\n2) No.\\n3) Yes: lighter and no longer the same\"}",
        "{" ITEM ", \"answer\": \"```json\\n{\\\"edit_success\\\": \\\"partial\\\", \\\"gender_drift\\\": \\\"no\\\", "
        "\\\"race_drift\\\": \\\"yes\\\"}\\n```\"}",
        "item_id,edit_success,gender_drift,race_drift\nflux_20s_male_black_O-01,partial,no,yes\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct lk_legacy legacy = {.pairwise = false};
        read(&legacy, texts[i]);
        if (legacy.rejects.n) fail_msg("case %zu: %s", i, legacy.rejects.list[0].reason);
        assert_int_equal(legacy.items.n_items, 1);
        const int8_t expected[LK_N_LEGACY] = {1, 0, 1, -1};
        assert_memory_equal(legacy.list[0].classes, expected, sizeof expected);
        assert_true(isnan(legacy.list[0].confidence[0]));
        lk_legacy_free(&legacy);
    }
    assert_string_equal(lk_legacy_word(LK_LEGACY_EDIT, 1), "partial");
    assert_string_equal(lk_legacy_word(LK_LEGACY_ROLE, -1), "");
}

static void confidence_and_roles(void **state) {
    (void)state;
    struct lk_legacy legacy = {.pairwise = false};
    read(&legacy,
         "{" ITEM ", \"answer\": \"yes\\nno\\nno\", \"confidence\": {\"edit_success\": 0.5, \"race_drift\": 1}}\n"
         "{\"item_id\": \"flux_pair_black_20s_W-01\", \"answer\": \"Female.\", \"confidence\": 0.25}\n"
         "{\"item_id\": \"flux_pair_black_20s_W-02\", \"assigned\": \"unclear\"}\n");
    assert_int_equal(legacy.rejects.n, 0);
    assert_true(legacy.list[0].confidence[LK_LEGACY_EDIT] == 0.5 && legacy.list[0].confidence[LK_LEGACY_RACE] == 1);
    assert_true(isnan(legacy.list[0].confidence[LK_LEGACY_GENDER]));
    assert_int_equal(legacy.list[1].classes[LK_LEGACY_ROLE], LK_ROLE_FEMALE);
    assert_int_equal(legacy.list[1].classes[LK_LEGACY_EDIT], -1);
    assert_true(legacy.list[1].confidence[LK_LEGACY_ROLE] == 0.25);
    assert_int_equal(legacy.list[2].classes[LK_LEGACY_ROLE], LK_ROLE_UNCLEAR);
    lk_legacy_free(&legacy);
}

#define COMPARED(item, order, answer)                                                                                  \
    "{\"item_id\": \"flux_20s_male_black_" item "\", \"order\": \"" order "\", \"answer\": \"" answer "\"}\n"

static void a_preference_holds_in_both_orders(void **state) {
    (void)state;
    struct lk_legacy legacy = {.pairwise = true};
    read(&legacy, COMPARED("O-01", "edited_first", "B") COMPARED("O-01.preserved", "preserved_first", "Image A")
                      COMPARED("O-02", "edited_first", "A") COMPARED("O-02", "preserved_first", "(A)")
                          COMPARED("O-03", "edited_first", "same") COMPARED("O-03", "preserved_first", "Same.")
                              COMPARED("O-04", "edited_first", "A") COMPARED("O-05", "edited_first", "same")
                                  COMPARED("O-05", "preserved_first", "B") COMPARED("O-06", "edited_first", "a")
                                      COMPARED("O-06", "preserved_first", "b"));
    assert_int_equal(legacy.rejects.n, 0);
    assert_int_equal(legacy.items.n_items, 6);
    const int expected[] = {LK_ARM_PRESERVED, 2, 2, -1, 2, LK_ARM_EDITED};
    for (int i = 0; i < 6; i++) assert_int_equal(lk_legacy_preference(&legacy.list[i]), expected[i]);
    lk_legacy_free(&legacy);
}

/* Both kinds of answers, as they came or as the import writes them, in a dataset. */
static void a_report_takes_both_kinds(void **state) {
    (void)state;
    struct lk_legacy legacy = {.mixed = true};
    struct lk_dataset data;
    lk_dataset_init(&data);
    read(&legacy,
         "{" ITEM ", \"answer\": \"yes\\nno\\nyes\"}\n"
         "{\"item_id\": \"flux_pair_black_20s_W-01\", \"assigned\": \"female\"}\n"
         "{" ITEM
         ", \"preference\": \"preserved\", \"changed_with_order\": false}\n" COMPARED("O-02", "edited_first", "A")
             COMPARED("O-02", "preserved_first",
                      "B") "{\"item_id\": \"flux_20s_male_black_O-03\", \"preference\": null}\n"
                           "{\"item_id\": \"flux_20s_male_black_O-04\", \"preference\": \"left\"}\n");
    assert_int_equal(legacy.rejects.n, 1);
    assert_non_null(strstr(legacy.rejects.list[0].reason, "preference: expected one of edited"));
    assert_ok(lk_legacy_store(&legacy, 1, &data));
    assert_int_equal(data.n_items, 4);
    const int8_t classes[4][3] = {{2, 0, 1}, {-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}};
    const int preference[] = {LK_ARM_PRESERVED, -1, LK_ARM_EDITED, -1};
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(data.items[i].legacy, classes[i], 3);
        assert_int_equal(data.items[i].legacy_preference, preference[i]);
        assert_int_equal(data.items[i].judge_role[1], i == 1 ? LK_ROLE_FEMALE : LK_ROLE_NONE);
    }
    lk_legacy_free(&legacy);
    lk_dataset_free(&data);
}

static void answers_that_are_refused(void **state) {
    (void)state;
    const struct {
        const char *text, *reason;
        bool pairwise;
    } cases[] = {
        {"{" ITEM ", \"edit_success\": 4, \"gender_drift\": \"no\", \"race_drift\": \"no\"}",
         "edit_success: expected one of no", false},
        {"{" ITEM ", \"edit_success\": \"yes\", \"gender_drift\": \"partial\", \"race_drift\": \"no\"}", "gender_drift",
         false},
        {"{" ITEM ", \"edit_success\": \"yes\", \"gender_drift\": \"no\"}", "race_drift: missing", false},
        {"{" ITEM ", \"answer\": \"yes\\nno\"}", "race_drift: expected one of no, yes, got \"nothing\"", false},
        {"{" ITEM ", \"answer\": \"I cannot say\"}", "edit_success", false},
        {"{" ITEM ", \"answer\": \"{\\\"edit_success\\\": \\\"yes\\\"\"}", "not closed", false},
        {"{" ITEM ", \"answer\": \"{x}\"}", "not strict JSON", false},
        {"{" ITEM ", \"answer\": \"{}\"}", "empty object", false},
        {"{" ITEM ", \"answer\": 1}", "answer: expected a string", false},
        {"{" ITEM ", \"answer\": \"yes\\nno\\nno\", \"confidence\": 1.5}", "confidence: expected a number", false},
        {"{" ITEM ", \"answer\": \"yes\\nno\\nno\", \"confidence\": {\"gender_drift\": \"high\"}}",
         "confidence.gender_drift", false},
        {"{\"item_id\": \"nonsense\", \"answer\": \"yes\"}", "is no prompt", false},
        {"{\"answer\": \"yes\"}", "expected a string \"item_id\"", false},
        {"{not json", "record: ", false},
        {"{\"item_id\": \"flux_pair_black_20s_W-01\", \"answer\": \"both\"}", "assigned: expected one of male", false},
        {"{" ITEM ", \"answer\": \"A\"}", "order: expected one of", true},
        {"{" ITEM ", \"order\": \"edited_first\", \"answer\": \"neither\"}", "preferred: expected one of a, b, same",
         true},
        {"{\"item_id\": \"flux_pair_black_20s_W-01\", \"order\": \"edited_first\", \"answer\": \"A\"}", "O and V",
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_legacy legacy = {.pairwise = cases[i].pairwise};
        read(&legacy, cases[i].text);
        if (legacy.n_invalid != 1) fail_msg("case %zu was read", i);
        assert_int_equal(legacy.items.n_items, 0);
        if (!strstr(legacy.rejects.list[0].reason, cases[i].reason))
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].reason, legacy.rejects.list[0].reason);
        lk_legacy_free(&legacy);
    }
    struct lk_legacy legacy = {.pairwise = false};
    assert_fails(lk_legacy_read(&legacy, "not json", 8, "a.csv"), LK_E_INPUT, "item_id");
    read(&legacy, "{" ITEM ", \"answer\": \"yes\\nno\\nno\"}\n{" ITEM ", \"answer\": \"Yes\\nNo\\nNo\"}\n{" ITEM
                  ", \"answer\": \"no\\nno\\nno\"}\n");
    assert_int_equal(legacy.n_repeated, 1);
    assert_int_equal(legacy.n_invalid, 1);
    assert_int_equal(legacy.rejects.list[0].line, 3);
    assert_int_equal(legacy.list[0].classes[LK_LEGACY_EDIT], 2);
    lk_legacy_free(&legacy);
}

static enum lk_code read_all(void) {
    static const char text[] = COMPARED("O-01", "edited_first", "B") COMPARED("O-01", "preserved_first", "x") "x\n";
    struct lk_legacy legacy = {.pairwise = true};
    enum lk_code rc = lk_legacy_read(&legacy, text, sizeof text - 1, "a.jsonl");
    lk_legacy_free(&legacy);
    return rc;
}

static void no_memory_leaves_nothing(void **state) {
    (void)state;
    test_every_allocation(read_all, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_about_an_edit),
        cmocka_unit_test(confidence_and_roles),
        cmocka_unit_test(a_preference_holds_in_both_orders),
        cmocka_unit_test(a_report_takes_both_kinds),
        cmocka_unit_test(answers_that_are_refused),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
