#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "weights/config.h"

static struct lk_config *parse(const char *text) {
    struct lk_config *c;
    assert_ok(lk_config_parse(&c, text, strlen(text), "config.json"));
    return c;
}

static enum lk_code status_of(const char *text, size_t n) {
    struct lk_config *c;
    enum lk_code rc = lk_config_parse(&c, text, n, "config.json");
    if (!rc) lk_config_discard(c);
    return rc;
}

static void reads_every_kind(void **state) {
    (void)state;
    struct lk_config *c =
        parse("{\"layers\": 8, \"eps\": 1e-6, \"whole\": 2000000, \"on\": true, \"name\": \"sil\\u00fb\","
              " \"none\": null, \"axes\": [32, 32, -1], \"types\": [\"a\", \"\"], \"means\": [-0.5, 3], \"down\": "
              "[false, true],\"junk\": [{}],"
              " \"rope\": {\"theta\": 1e9, \"inner\": {\"n\": 1}}}");
    int64_t n = 0, other = 0, axes[4];
    double eps = 0, whole = 0, theta = 0, x = 0;
    bool on = false, off = true;
    const char *name = NULL, *text = "kept", *types[2];
    size_t n_axes = 0, n_types = 0, n_means = 0, n_down = 0;
    double means[2];
    bool down[2];
    lk_config_int(c, "layers", &n, 1, 8);
    lk_config_number(c, "eps", &eps, 0, 1);
    lk_config_number(c, "whole", &whole, 0, 1e9);
    lk_config_bool(c, "on", &on);
    lk_config_string(c, "name", &name);
    lk_config_int_or(c, "none", &other, -3, 0, 10); /* a default need not lie in the range */
    lk_config_number_or(c, "absent", &x, 0.5, 0, 1);
    lk_config_bool_or(c, "absent", &off, false);
    lk_config_string_or(c, "none", &text, NULL);
    lk_config_ints(c, "axes", axes, 4, &n_axes);
    lk_config_strings(c, "types", types, 2, &n_types);
    lk_config_numbers(c, "means", means, 2, &n_means);
    lk_config_bools(c, "down", down, 2, &n_down);
    assert_true(n_means == 2 && means[0] == -0.5 && means[1] == 3 && n_down == 2 && !down[0] && down[1]);
    lk_config_expect_null(c, "none");
    lk_config_expect_int(c, "layers", 8);
    lk_config_expect_bool(c, "on", true);
    lk_config_expect_string(c, "name", "sil\u00fb");
    lk_config_expect_string(c, "absent", "anything");
    lk_config_ignore(c, "junk");
    lk_config_ignore(c, "absent");
    struct lk_config *rope = lk_config_object(c, "rope", true);
    assert_ptr_equal(rope, lk_config_object(c, "rope", false));
    lk_config_number(rope, "theta", &theta, 0, 1e12);
    lk_config_expect_int(lk_config_object(rope, "inner", true), "n", 1);
    assert_null(lk_config_object(c, "none", false));
    assert_null(lk_config_object(c, "absent", false));
    assert_true(lk_config_has(c, "on") && !lk_config_has(c, "none") && !lk_config_has(c, "absent"));
    assert_int_equal(n, 8);
    assert_true(eps == 1e-6 && whole == 2e6 && theta == 1e9 && x == 0.5);
    assert_true(on && !off);
    assert_string_equal(name, "sil\u00fb");
    assert_null(text);
    assert_int_equal(other, -3);
    assert_int_equal(n_axes, 3);
    assert_true(axes[0] == 32 && axes[2] == -1);
    assert_int_equal(n_types, 2);
    assert_string_equal(types[0], "a");
    assert_ok(lk_config_close(c));
}

/* One call on one text: the code and what the message says; the output stays as it was. */
#define PROBLEM(text, call, code, part)                                                                                \
    do {                                                                                                               \
        struct lk_config *c = parse(text);                                                                             \
        int64_t n = -77, list[2] = {-77, -77};                                                                         \
        double x = -77, numbers[2] = {-77, -77};                                                                       \
        bool flag = false, flags[2] = {false, false};                                                                  \
        const char *string = NULL, *strings[2] = {NULL, NULL};                                                         \
        size_t count = 77;                                                                                             \
        (void)n, (void)list, (void)x, (void)flag, (void)string, (void)strings, (void)count, (void)numbers,             \
            (void)flags;                                                                                               \
        call;                                                                                                          \
        assert_fails(lk_config_close(c), code, part);                                                                  \
        assert_non_null(strstr(lk_error_text(), "config.json"));                                                       \
        assert_true(n == -77 && list[0] == -77 && x == -77 && !flag && !string && !strings[0] && count == 77);         \
    } while (0)

static void problems_are_named(void **state) {
    (void)state;
    PROBLEM("{}", lk_config_int(c, "n", &n, 0, 9), LK_E_CONFIG_KEY, "\"n\"");
    PROBLEM("{}", lk_config_number(c, "x", &x, 0, 9), LK_E_CONFIG_KEY, "\"x\"");
    PROBLEM("{}", lk_config_bool(c, "b", &flag), LK_E_CONFIG_KEY, "\"b\"");
    PROBLEM("{}", lk_config_string(c, "s", &string), LK_E_CONFIG_KEY, "missing");
    PROBLEM("{}", lk_config_ints(c, "l", list, 2, &count), LK_E_CONFIG_KEY, "\"l\"");
    PROBLEM("{}", lk_config_strings(c, "l", strings, 2, &count), LK_E_CONFIG_KEY, "\"l\"");
    PROBLEM("{}", lk_config_object(c, "o", true), LK_E_CONFIG_KEY, "\"o\"");
    PROBLEM("{\"N\":1}", lk_config_int(c, "n", &n, 0, 9), LK_E_CONFIG_KEY, "\"n\""); /* case counts */

    PROBLEM("{\"n\":\"1\"}", lk_config_int(c, "n", &n, 0, 9), LK_E_CONFIG_TYPE, "got \"1\"");
    PROBLEM("{\"n\":null}", lk_config_int(c, "n", &n, 0, 9), LK_E_CONFIG_TYPE, "got null");
    PROBLEM("{\"n\":true}", lk_config_int(c, "n", &n, 0, 9), LK_E_CONFIG_TYPE, "got true");
    PROBLEM("{\"n\":1.5}", lk_config_int(c, "n", &n, 0, 9), LK_E_CONFIG_TYPE, "got 1.5");
    PROBLEM("{\"n\":[1]}", lk_config_int_or(c, "n", &n, 3, 0, 9), LK_E_CONFIG_TYPE, "got an array");
    PROBLEM("{\"x\":\"1\"}", lk_config_number(c, "x", &x, 0, 9), LK_E_CONFIG_TYPE, "\"x\"");
    PROBLEM("{\"x\":{}}", lk_config_number_or(c, "x", &x, 3, 0, 9), LK_E_CONFIG_TYPE, "got an object");
    PROBLEM("{\"b\":1}", lk_config_bool(c, "b", &flag), LK_E_CONFIG_TYPE, "\"b\"");
    PROBLEM("{\"b\":\"true\"}", lk_config_bool_or(c, "b", &flag, true), LK_E_CONFIG_TYPE, "\"b\"");
    PROBLEM("{\"s\":1}", lk_config_string(c, "s", &string), LK_E_CONFIG_TYPE, "\"s\"");
    PROBLEM("{\"s\":false}", lk_config_string_or(c, "s", &string, "x"), LK_E_CONFIG_TYPE, "got false");
    PROBLEM("{\"l\":1}", lk_config_ints(c, "l", list, 2, &count), LK_E_CONFIG_TYPE, "\"l\"");
    PROBLEM("{\"l\":[1,\"2\"]}", lk_config_ints(c, "l", list, 2, &count), LK_E_CONFIG_TYPE, "got \"2\"");
    PROBLEM("{\"l\":[1,2.5]}", lk_config_ints(c, "l", list, 2, &count), LK_E_CONFIG_TYPE, "got 2.5");
    PROBLEM("{\"l\":[1.5,true]}", lk_config_numbers(c, "l", numbers, 2, &count), LK_E_CONFIG_TYPE, "got true");
    PROBLEM("{\"l\":[1e999]}", lk_config_numbers(c, "l", numbers, 2, &count), LK_E_CONFIG_TYPE, "\"l\"");
    PROBLEM("{\"l\":[true,0]}", lk_config_bools(c, "l", flags, 2, &count), LK_E_CONFIG_TYPE, "got 0");
    PROBLEM("{\"l\":[\"a\",null]}", lk_config_strings(c, "l", strings, 2, &count), LK_E_CONFIG_TYPE, "got null");
    PROBLEM("{\"o\":[]}", lk_config_object(c, "o", false), LK_E_CONFIG_TYPE, "\"o\"");

    PROBLEM("{\"n\":0}", lk_config_int(c, "n", &n, 1, 9), LK_E_CONFIG_VALUE, "from 1 to 9, got 0");
    PROBLEM("{\"n\":10}", lk_config_int(c, "n", &n, 1, 9), LK_E_CONFIG_VALUE, "got 10");
    PROBLEM("{\"n\":10}", lk_config_int_or(c, "n", &n, 3, 1, 9), LK_E_CONFIG_VALUE, "got 10");
    PROBLEM("{\"x\":-0.5}", lk_config_number(c, "x", &x, 0, 1), LK_E_CONFIG_VALUE, "got -0.5");
    PROBLEM("{\"x\":1e999}", lk_config_number(c, "x", &x, 0, (double)INFINITY), LK_E_CONFIG_VALUE, "\"x\"");
    PROBLEM("{\"l\":[1,2,3]}", lk_config_ints(c, "l", list, 2, &count), LK_E_CONFIG_VALUE, "got 3");
    PROBLEM("{\"l\":[\"\",\"\",\"\"]}", lk_config_strings(c, "l", strings, 2, &count), LK_E_CONFIG_VALUE, "got 3");

    PROBLEM("{\"a\":\"gelu\"}", lk_config_expect_string(c, "a", "silu"), LK_E_CONFIG_VALUE, "\"silu\", got \"gelu\"");
    PROBLEM("{\"a\":null}", lk_config_expect_string(c, "a", "silu"), LK_E_CONFIG_VALUE, "got null");
    PROBLEM("{\"a\":true}", lk_config_expect_bool(c, "a", false), LK_E_CONFIG_VALUE, "false, got true");
    PROBLEM("{\"a\":0}", lk_config_expect_bool(c, "a", false), LK_E_CONFIG_VALUE, "got 0");
    PROBLEM("{\"a\":2}", lk_config_expect_int(c, "a", 1), LK_E_CONFIG_VALUE, "1, got 2");
    PROBLEM("{\"a\":\"1\"}", lk_config_expect_int(c, "a", 1), LK_E_CONFIG_VALUE, "got \"1\"");
    PROBLEM("{\"a\":0}", lk_config_expect_null(c, "a"), LK_E_CONFIG_VALUE, "null, got 0");
    PROBLEM("{\"a\":1}", lk_config_problem(c, "a", LK_E_MODEL_UNKNOWN, "no %s", "such"), LK_E_MODEL_UNKNOWN,
            "field \"a\": no such");
}

/* Above 2^53 cJSON's double is no longer the number in the file. */
static void integers_are_exact_or_refused(void **state) {
    (void)state;
    int64_t big = 0;
    struct lk_config *c = parse("{\"n\":9007199254740991}");
    lk_config_int(c, "n", &big, INT64_MIN, INT64_MAX);
    assert_ok(lk_config_close(c));
    assert_true(big == 9007199254740991);
    PROBLEM("{\"n\":9007199254740992}", lk_config_int(c, "n", &n, INT64_MIN, INT64_MAX), LK_E_CONFIG_TYPE, "2^53");
    PROBLEM("{\"n\":9007199254740993}", lk_config_int(c, "n", &n, INT64_MIN, INT64_MAX), LK_E_CONFIG_TYPE, "2^53");
    PROBLEM("{\"n\":-9223372036854775808}", lk_config_int(c, "n", &n, INT64_MIN, INT64_MAX), LK_E_CONFIG_TYPE, "2^53");
    PROBLEM("{\"n\":1e300}", lk_config_int(c, "n", &n, INT64_MIN, INT64_MAX), LK_E_CONFIG_TYPE, "2^53");
    PROBLEM("{\"n\":1e999}", lk_config_int(c, "n", &n, INT64_MIN, INT64_MAX), LK_E_CONFIG_TYPE, "2^53");
    PROBLEM("{\"n\":[18446744073709551617]}", lk_config_ints(c, "n", list, 2, &count), LK_E_CONFIG_TYPE, "\"n\"");
    c = parse("{\"model_max_length\":1000000000000000019884624838656}"); /* tokenizer_config.json of many models */
    lk_config_ignore(c, "model_max_length");
    assert_ok(lk_config_close(c));
}

static void unknown_keys_are_listed(void **state) {
    (void)state;
    struct lk_config *c =
        parse("{\"a\":1,\"zero_cond_t\":true,\"rope\":{\"type\":\"x\",\"inner\":{\"deep\":1}},\"new\":[]}");
    int64_t n;
    lk_config_int(c, "a", &n, 0, 9);
    lk_config_object(lk_config_object(c, "rope", true), "inner", true);
    assert_fails(lk_config_close(c), LK_E_CONFIG_KEY, "4 unknown fields");
    assert_non_null(strstr(lk_error_text(), "\"zero_cond_t\", \"new\", \"rope.type\", \"rope.inner.deep\""));
    c = parse("{\"a\":1,\"has\":1}");
    lk_config_int(c, "a", &n, 0, 9);
    assert_true(lk_config_has(c, "has"));
    assert_fails(lk_config_close(c), LK_E_CONFIG_KEY, "1 unknown field: \"has\"");
}

static void first_problem_wins_and_says_where(void **state) {
    (void)state;
    struct lk_config *c = parse("{\"text\":{\"rope\":{\"theta\":0}},\"n\":\"x\",\"unknown\":1}");
    double x;
    int64_t n;
    struct lk_config *rope = lk_config_object(lk_config_object(c, "text", true), "rope", true);
    lk_config_number(rope, "theta", &x, 1, 2);
    lk_config_int(c, "n", &n, 0, 1);
    assert_fails(lk_config_close(c), LK_E_CONFIG_VALUE, "config.json: field \"text.rope.theta\": expected");
    /* an object that is missing: nothing happens on its NULL, and the problem is the object's */
    c = parse("{}");
    struct lk_config *none = lk_config_object(c, "vision", true);
    assert_null(none);
    lk_config_int(none, "n", &n, 0, 1);
    lk_config_string_or(none, "s", &(const char *){NULL}, NULL);
    lk_config_expect_null(none, "n");
    lk_config_ignore(none, "n");
    lk_config_problem(none, "n", LK_E_INPUT, "x");
    assert_null(lk_config_object(none, "inner", true));
    assert_false(lk_config_has(none, "n"));
    assert_fails(lk_config_close(c), LK_E_CONFIG_KEY, "\"vision\"");
    assert_ok(lk_config_close(NULL));
    lk_config_discard(NULL);
}

#define REFUSED(code, text) assert_int_equal(status_of(text, sizeof text - 1), code)

static void what_is_not_strict_json_is_refused(void **state) {
    (void)state;
    REFUSED(LK_E_JSON, "");
    REFUSED(LK_E_JSON, " ");
    REFUSED(LK_E_JSON, "[]");
    REFUSED(LK_E_JSON, "1");
    REFUSED(LK_E_JSON, "null");
    REFUSED(LK_E_JSON, "{");
    REFUSED(LK_E_JSON, "{} x");
    REFUSED(LK_E_JSON, "{}\0");
    REFUSED(LK_E_JSON, "{\"a\":1,}");
    REFUSED(LK_E_JSON, "{a:1}");
    REFUSED(LK_E_JSON, "{\"a\":NaN}");
    REFUSED(LK_E_JSON, "{\"a\":-Infinity}");
    REFUSED(LK_E_JSON, "{\"a\":+1}");
    REFUSED(LK_E_JSON, "{\"a\":01}");
    REFUSED(LK_E_JSON, "{\"a\":.5}");
    REFUSED(LK_E_JSON, "{\"a\":1.}");
    REFUSED(LK_E_JSON, "{\"a\":1e}");
    REFUSED(LK_E_JSON, "{\"a\":0x10}");
    REFUSED(LK_E_JSON, "{\"a\":-}");
    REFUSED(LK_E_JSON, "{\"a\":tru}");
    REFUSED(LK_E_JSON, "{\"a\":\"\xff\"}");
    REFUSED(LK_E_JSON, "{\"a\":\"\\u0000\"}");
    REFUSED(LK_E_JSON, "{\"a\":\"x\0y\"}");
    REFUSED(LK_E_JSON, "\xef\xbb\xbf\xef\xbb\xbf{}"); /* one byte order mark is passed over */
    REFUSED(LK_E_JSON, "// comment\n{}");
    REFUSED(LK_E_JSON_DUPLICATE, "{\"a\":1,\"a\":1}");
    REFUSED(LK_E_JSON_DUPLICATE, "{\"a\":1,\"b\":2,\"\\u0061\":1}");
    REFUSED(LK_E_JSON_DUPLICATE, "{\"o\":[{\"x\":{\"k\":1,\"k\":2}}]}");
    REFUSED(LK_E_JSON_LIMIT, "{\"a\":1111111111111111111111111111111111111111111111111111111111111111}");
    REFUSED(LK_OK, "{\"a\":111111111111111111111111111111111111111111111111111111111111111}");
    REFUSED(LK_OK, "{\"a\":{\"a\":{\"b\":1}},\"b\":1}"); /* the same key in another object */
}

/* A byte order mark before a text is passed over, as editors put it there; inside a string it is a character. */
static void byte_order_marks(void **state) {
    (void)state;
    struct lk_config *c;
    const char *mark = "\xef\xbb\xbf{\"a\": \"\xef\xbb\xbfx\"}";
    const char *text = NULL;
    char out[8] = "";
    assert_ok(lk_config_parse(&c, mark, strlen(mark), "marked.json"));
    lk_config_string(c, "a", &text);
    assert_string_equal(text, "\xef\xbb\xbfx");
    assert_ok(lk_config_close(c));
    assert_int_equal(lk_json_decode("\"\xef\xbb\xbfx\"", 6, out), 4);
    assert_string_equal(out, "\xef\xbb\xbfx");
}

static void nesting_and_size_are_limited(void **state) {
    (void)state;
    static char text[200000];
    for (int depth = 31; depth <= 90000; depth = depth < 33 ? depth + 1 : depth * 50) {
        int n = sprintf(text, "{\"a\":");
        memset(text + n, '[', (size_t)depth);
        memset(text + n + depth, ']', (size_t)depth);
        text[n + 2 * depth] = '}';
        assert_int_equal(status_of(text, (size_t)(n + 2 * depth + 1)), depth < 32 ? LK_OK : LK_E_JSON_LIMIT);
    }
    size_t large = ((size_t)1 << 20) + 1;
    char *padded = malloc(large);
    memset(padded, ' ', large);
    memcpy(padded, "{}", 2);
    assert_int_equal(status_of(padded, large), LK_E_INPUT);
    assert_int_equal(status_of(padded, large - 1), LK_OK);
    struct lk_config *c;
    test_write(test_path("large.json"), padded, large);
    assert_fails(lk_config_open(&c, test_path("large.json")), LK_E_INPUT, "large.json");
    free(padded);
}

/* 5,000 keys in each of which another is a prefix: the search for duplicates keeps to n log n. */
static void many_keys(void **state) {
    (void)state;
    char *text = malloc(1 << 20);
    size_t n = 0;
    text[n++] = '{';
    for (int i = 0; i < 5000; i++) n += (size_t)sprintf(text + n, "%s\"key_%d\":%d", i ? "," : "", i, i);
    size_t whole = n + (size_t)sprintf(text + n, "}");
    assert_int_equal(status_of(text, whole), LK_OK);
    whole = n + (size_t)sprintf(text + n, ",\"key_777\":0}");
    assert_int_equal(status_of(text, whole), LK_E_JSON_DUPLICATE);
    free(text);
}

static void files(void **state) {
    (void)state;
    struct lk_config *c;
    test_write(test_path("good.json"), "{\"n\": 3}\n", 9);
    assert_ok(lk_config_open(&c, test_path("good.json")));
    int64_t n = 0;
    lk_config_int(c, "n", &n, 0, 9);
    assert_ok(lk_config_close(c));
    assert_int_equal(n, 3);
    assert_fails(lk_config_open(&c, test_path("absent.json")), LK_E_NOT_FOUND, "absent.json");
    assert_fails(lk_config_open(&c, "/dev/zero"), LK_E_NOT_REGULAR, "/dev/zero");
    assert_fails(lk_config_open(&c, "/"), LK_E_NOT_REGULAR, "folder");
}

/* M1 for configs. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    static const char text[] = "{\"n\":3,\"s\":\"t\\u00e9xt\",\"l\":[1,2],\"o\":{\"p\":{\"x\":0.5}}}";
    int64_t live = lk_alloc_live();
    for (int64_t nth = 1;; nth++) {
        struct lk_config *c;
        int64_t n = 0, list[2];
        size_t count;
        const char *s;
        double x = 0;
        int64_t before = lk_alloc_count();
        lk_alloc_fail_at(nth);
        enum lk_code rc = lk_config_parse(&c, text, sizeof text - 1, "config.json");
        if (!rc) {
            lk_config_int(c, "n", &n, 0, 9);
            lk_config_string(c, "s", &s);
            lk_config_ints(c, "l", list, 2, &count);
            lk_config_number(lk_config_object(lk_config_object(c, "o", true), "p", true), "x", &x, 0, 1);
            rc = lk_config_close(c);
        }
        lk_alloc_fail_at(0);
        assert_int_equal(lk_alloc_live(), live);
        if (!rc) {
            assert_true(nth > 10 && x == 0.5);
            assert_true(lk_alloc_count() - before < nth); /* no failure was swallowed */
            break;
        }
        assert_int_equal(rc, LK_E_NOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_kind),
        cmocka_unit_test(problems_are_named),
        cmocka_unit_test(integers_are_exact_or_refused),
        cmocka_unit_test(unknown_keys_are_listed),
        cmocka_unit_test(first_problem_wins_and_says_where),
        cmocka_unit_test(what_is_not_strict_json_is_refused),
        cmocka_unit_test(byte_order_marks),
        cmocka_unit_test(nesting_and_size_are_limited),
        cmocka_unit_test(many_keys),
        cmocka_unit_test(files),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
