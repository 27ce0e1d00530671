#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/arena.h"
#include "engine/base/store.h"
#include "engine/base/text.h"

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

static void arrays_grow_or_stay_as_they_are(void **state) {
    (void)state;
    int *numbers = NULL;
    size_t capacity = 0;
    int64_t made = lk_alloc_count();
    for (int i = 0; i < 10000; i++) {
        assert_ok(lk_grow(&numbers, &capacity, (size_t)i + 1, sizeof *numbers));
        numbers[i] = i;
    }
    for (int i = 0; i < 10000; i++) assert_int_equal(numbers[i], i);
    assert_true(lk_alloc_count() - made < 10); /* by doubling */
    int *before = numbers;
    size_t room = capacity;
    assert_int_equal(lk_grow(&numbers, &capacity, SIZE_MAX / 2, sizeof *numbers), LK_E_NOMEM);
    lk_alloc_fail_at(1);
    assert_int_equal(lk_grow(&numbers, &capacity, capacity + 1, sizeof *numbers), LK_E_NOMEM);
    assert_ptr_equal(numbers, before);
    assert_int_equal(capacity, room);
    assert_int_equal(numbers[9999], 9999);
    lk_free(numbers);
}

static void texts_keep_the_first_failure(void **state) {
    (void)state;
    struct lk_text text = {0};
    for (int i = 0; i < 500; i++) lk_text_add(&text, "%d,", i);
    lk_text_bytes(&text, "\0x", 2);
    assert_ok(text.rc);
    assert_int_equal(text.n, 10 * 2 + 90 * 3 + 400 * 4 + 2);
    assert_int_equal(strlen(text.bytes), text.n - 2);
    lk_alloc_fail_at(1);
    lk_text_add(&text, "%5000d", 1);
    assert_int_equal(text.rc, LK_E_NOMEM);
    size_t n = text.n;
    lk_text_add(&text, "more");
    assert_int_equal(text.n, n);
    lk_text_free(&text);
}

static void texts_quote_for_json(void **state) {
    (void)state;
    struct lk_text text = {0};
    lk_text_json(&text, "a \"b\"\\\n\x7f \xc3\xa9\xe2\x80\xa8\xf0\x9f\x99\x82 \xff\xc3");
    assert_string_equal(text.bytes, "\"a \\\"b\\\"\\\\\\u000a\\u007f \xc3\xa9\\u2028\xf0\x9f\x99\x82 \\ufffd\\ufffd\"");
    text.n = 0;
    lk_text_number(&text, -0.0);
    lk_text_add(&text, " ");
    lk_text_number(&text, 0.1);
    assert_string_equal(text.bytes, "0 0.10000000000000001");
    lk_text_free(&text);
}

static void stores_hand_out_memory_for_any_type(void **state) {
    (void)state;
    struct lk_store store = {0};
    int64_t live = lk_alloc_live();
    for (size_t n = 0; n < 3000; n++) {
        const char *copy = lk_store_copy(&store, "likeness", n % 9);
        double *numbers = lk_store_alloc(&store, n % 7 * 100 * sizeof *numbers);
        assert_int_equal(strlen(copy), n % 9);
        assert_int_equal((uintptr_t)numbers % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < n % 7 * 100; i++) {
            assert_true(numbers[i] == 0);
            numbers[i] = 1;
        }
    }
    assert_string_equal(lk_store_text(&store, "a\xff z"), "a\xef\xbf\xbd z");
    assert_null(lk_store_copy(&store, "", SIZE_MAX));
    lk_store_reset(&store);
    assert_int_equal(lk_alloc_live(), live + 1);
    lk_store_free(&store);
    assert_int_equal(lk_alloc_live(), live);
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
        cmocka_unit_test(arrays_grow_or_stay_as_they_are),
        cmocka_unit_test(texts_keep_the_first_failure),
        cmocka_unit_test(texts_quote_for_json),
        cmocka_unit_test(stores_hand_out_memory_for_any_type),
        cmocka_unit_test(arena_counts_the_same_with_and_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
