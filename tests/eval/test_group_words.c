/* Words that name a group, against a second reader of the same rules (../golden/generate_rewrite_words.py). */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "eval/scores/group_words.h"

static int compare(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* As the file has a set: its names in order, with commas between. */
static void print_set(uint64_t set, struct lk_text *out) {
    char names[64][64];
    const char *sorted[64];
    size_t n = 0;
    for (int i = 0; i < lk_n_group_words; i++) {
        if (!(set >> i & 1)) continue;
        const struct lk_group_word *word = lk_group_word(i);
        snprintf(names[n], sizeof names[n], "%s:%s", word->category, word->level);
        sorted[n] = names[n];
        n++;
    }
    qsort(sorted, n, sizeof *sorted, compare);
    lk_text_add(out, "%s", "");
    for (size_t i = 0; i < n; i++) lk_text_add(out, "%s%s", i ? "," : "", sorted[i]);
}

static void words_are_those_of_the_second_reader(void **state) {
    (void)state;
    char *text, *rest = NULL;
    size_t n_bytes, n = 0;
    uint64_t all = 0;
    assert_ok(lk_read_file("golden/data/rewrite_words.txt", 1 << 24, &text, &n_bytes));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *tab = strrchr(line, '\t');
        assert_non_null(tab);
        *tab = 0;
        const uint64_t set = lk_group_words(line);
        struct lk_text got = {0};
        print_set(set, &got);
        if (strcmp(got.bytes, tab + 1)) fail_msg("\"%s\": expected %s, got %s", line, tab + 1, got.bytes);
        lk_text_free(&got);
        all |= set;
        n++;
    }
    lk_free(text);
    assert_true(n > 1700);
    assert_int_equal(lk_n_group_words, 47);
    assert_true(all == ((uint64_t)1 << lk_n_group_words) - 1); /* each level is found somewhere */
    assert_string_equal(lk_group_word(lk_n_group_words - 1)->level, "hair");
    assert_string_equal(lk_group_word(lk_n_group_words)->level, "");
}

static void any_bytes_are_a_text(void **state) {
    (void)state;
    unsigned seed = 5;
    char text[6000];
    for (int round = 0; round < 400; round++) {
        size_t n = 0;
        for (; n < sizeof text - 1 && n < (size_t)(round < 390 ? 60 : 5900); n++) {
            seed = seed * 1103515245u + 12345u;
            text[n] = (char)(1 + (seed >> 16) % 255);
            if (round % 3 == 0) text[n] = "ma'n- .\"asian black\xe2\x80\x9c"[(seed >> 16) % 22];
        }
        text[n] = 0;
        lk_group_words(text);
        lk_other_language(text);
    }
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_true(!lk_group_words(text));
}

static void other_languages_are_told(void **state) {
    (void)state;
    assert_false(lk_other_language("Give the man a hat"));
    assert_false(lk_other_language("the café"));
    assert_false(lk_other_language("abcdé"));
    assert_true(lk_other_language("abcé"));
    assert_true(lk_other_language("把头发染成红色"));
    assert_false(lk_other_language(""));
    assert_false(lk_other_language("— “ ” … 1 2 3"));
}

static void levels_of_sources_are_known_by_name(void **state) {
    (void)state;
    assert_int_equal(lk_group_word_is("race", "Latino", "Latino_Hispanic"), 1);
    assert_int_equal(lk_group_word_is("race", "White", "Latino_Hispanic"), 0);
    assert_int_equal(lk_group_word_is("race", "Middle Eastern", "Middle_Eastern"), 1);
    assert_int_equal(lk_group_word_is("gender", "male", "Female"), 0);
    assert_int_equal(lk_group_word_is("gender", "female", "Female"), 1);
    assert_int_equal(lk_group_word_is("age", "young", "30s"), 1);
    assert_int_equal(lk_group_word_is("age", "middle", "40s"), 1);
    assert_int_equal(lk_group_word_is("age", "old", "60s"), 1);
    assert_int_equal(lk_group_word_is("race", "White", "light"), -1);
    assert_int_equal(lk_group_word_is("skin", "dark", "dark"), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_the_second_reader),
        cmocka_unit_test(any_bytes_are_a_text),
        cmocka_unit_test(other_languages_are_told),
        cmocka_unit_test(levels_of_sources_are_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
