#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/arena.h"

static void injected_failure_fires_once(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    lk_alloc_fail_at(2);
    void *a = lk_malloc(10), *b = lk_malloc(10), *c = lk_malloc(10);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    assert_int_equal((uintptr_t)a % 64, 0);
    lk_free(a);
    lk_free(c);
    assert_int_equal(lk_alloc_live(), live);
}

static void realloc_keeps_contents(void **state) {
    (void)state;
    char *text = lk_strdup("likeness");
    lk_alloc_fail_at(1);
    assert_null(lk_realloc(text, 4000));
    assert_string_equal(text, "likeness");
    text = lk_realloc(text, 4000);
    assert_string_equal(text, "likeness");
    lk_free(text);
    assert_null(lk_calloc(SIZE_MAX / 2, 3));
}

static void arena_counts_the_same_with_and_without_memory(void **state) {
    (void)state;
    struct lk_arena real, counting;
    void *block = lk_malloc(1 << 16);
    lk_arena_init(&real, block, 1 << 16, true);
    lk_arena_init_counting(&counting);
    struct lk_arena *both[] = {&real, &counting};
    for (int i = 0; i < 2; i++) {
        struct lk_tensor t;
        size_t mark = lk_arena_mark(both[i]);
        assert_ok(LK_NEW(both[i], &t, LK_F32, 7, 13));
        assert_ok(LK_NEW(both[i], &t, LK_BF16, 1000));
        lk_arena_release(both[i], mark);
        assert_ok(LK_NEW(both[i], &t, LK_U8, 1));
    }
    assert_int_equal(real.peak, counting.peak);
    assert_int_equal(real.used, counting.used);
    struct lk_tensor t;
    assert_int_equal(LK_NEW(&real, &t, LK_F32, 1 << 20), LK_E_FIT);
    assert_int_equal(LK_NEW(&real, &t, LK_F32, INT64_MAX, INT64_MAX), LK_E_INTERNAL);
    lk_arena_release(&real, 0);
    lk_free(block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(injected_failure_fires_once),
        cmocka_unit_test(realloc_keeps_contents),
        cmocka_unit_test(arena_counts_the_same_with_and_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
