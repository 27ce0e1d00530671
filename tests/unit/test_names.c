/* Names keep the order in which they were met, and are found in constant time, whoever chose them. */
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/names.h"

enum { N = 2000, SLOTS = 4096 };

/* The longest run of slots that a search may walk through. */
static size_t longest_run(const struct lk_key_index *index) {
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < 2 * index->capacity; i++) {
        run = index->slots[i & (index->capacity - 1)].position >= 0 ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    return longest;
}

/* Names that fall into one slot of an index without a seed, as anybody can find them. */
static void chosen_names_do_not_flood(void **state) {
    (void)state;
    struct lk_names names = {0};
    char(*chosen)[16] = calloc(N, sizeof *chosen);
    int32_t number;
    assert_non_null(chosen);
    int n = 0;
    for (unsigned i = 0; n < N; i++) {
        size_t length = (size_t)snprintf(chosen[n], sizeof *chosen, "%u", i);
        uint64_t key = lk_hash_bytes(0, chosen[n], length);
        if (lk_hash_bytes(0, (const char *)&key, sizeof key) % SLOTS == 0) n++;
    }
    for (int i = 0; i < N; i++) {
        assert_ok(lk_names_number(&names, chosen[i], strlen(chosen[i]), &number));
        assert_int_equal(number, i);
    }
    assert_int_equal(names.index.capacity, SLOTS);
    assert_in_range(longest_run(&names.index), 1, 400); /* 2000 without a seed, some 40 with one */
    for (int i = 0; i < N; i++) {
        assert_string_equal(names.list[i], chosen[i]);
        assert_int_equal(lk_names_find(&names, chosen[i], strlen(chosen[i])), i);
    }
    assert_int_equal(lk_names_find(&names, "none", 4), -1);
    lk_names_free(&names);
    free(chosen);
}

static void names_that_share_a_key_differ(void **state) {
    (void)state;
    struct lk_names names = {0};
    int32_t first, second, again;
    assert_int_equal(lk_names_find(&names, "a", 1), -1);
    assert_ok(lk_names_number(&names, "a", 1, &first));
    uint64_t key = lk_hash_bytes(names.index.seed, "b", 1);
    assert_ok(lk_key_index_reserve(&names.index));
    lk_key_index_put(&names.index, key, first); /* as if "a" had the hash of "b" */
    assert_ok(lk_names_number(&names, "b", 1, &second));
    assert_ok(lk_names_number(&names, "b", 1, &again));
    assert_int_equal(second, 1);
    assert_int_equal(again, second);
    assert_int_equal(lk_names_find(&names, "a", 1), first);
    lk_names_free(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_names_do_not_flood),
        cmocka_unit_test(names_that_share_a_key_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
