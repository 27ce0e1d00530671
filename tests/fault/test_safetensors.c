/* W1: files that are not safetensors, each with its exact status; and files that are, by other writers and by ours. */
#include "tests/common/test.h"

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/f16.h"
#include "weights/mapped_file.h"
#include "weights/safetensors.h"

struct bad {
    const char *what;
    const char *header;
    size_t header_bytes;
    size_t data_bytes;
    enum lk_code code;
};

#define CASE(what, header, data_bytes, code)                                                                           \
    { what, header, sizeof header - 1, data_bytes, code }
#define E(dtype, shape, begin, end) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define ONE(entry)                  "{\"a\":" entry "}"
#define GOOD                        E("F32", "[2]", "0", "8")
#define TEN                         "1000000000"
#define D8                          "[[[[[[[["
#define D32                         D8 D8 D8 D8

static const struct bad cases[] = {
    /* JSON */
    CASE("not an object", "[]", 0, LK_E_ST_HEADER_START),
    CASE("space first", " {}", 0, LK_E_ST_HEADER_START),
    CASE("byte order mark", "\xef\xbb\xbf{}", 0, LK_E_ST_HEADER_START),
    CASE("a string", "\"a\"", 0, LK_E_ST_HEADER_START),
    CASE("unclosed", "{ ", 0, LK_E_ST_JSON),
    CASE("unclosed tensor", "{\"a\":" GOOD, 8, LK_E_ST_JSON),
    CASE("text behind", ONE(GOOD) "x", 8, LK_E_ST_JSON),
    CASE("two objects", ONE(GOOD) "{}", 8, LK_E_ST_JSON),
    CASE("NUL behind", ONE(GOOD) "\0", 8, LK_E_ST_JSON),
    CASE("NUL in a name", "{\"a\0b\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("escaped NUL in a name", "{\"a\\u0000b\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("newline in a name", "{\"a\nb\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("lone byte ff", "{\"\xff\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("overlong UTF-8", "{\"\xc0\xaf\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("overlong UTF-8, 3 bytes", "{\"\xe0\x80\xaf\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("overlong UTF-8, 4 bytes", "{\"\xf0\x80\x80\xaf\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("UTF-8 surrogate", "{\"\xed\xa0\x80\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("UTF-8 beyond 10FFFF", "{\"\xf4\x90\x80\x80\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("UTF-8 cut by the quote", "{\"\xe2\x82\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("lone high surrogate", "{\"\\ud800\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("lone low surrogate", "{\"\\udc00\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("high surrogate twice", "{\"\\ud800\\ud800\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("bad escape", "{\"\\x41\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("short escape", "{\"\\u12\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("escape at the end", "{\"a\\", 0, LK_E_ST_JSON),
    CASE("single quotes", "{'a':" GOOD "}", 8, LK_E_ST_JSON),
    CASE("no colon", "{\"a\" " GOOD "}", 8, LK_E_ST_JSON),
    CASE("no comma", "{\"a\":" GOOD " \"b\":" E("F32", "[0]", "8", "8") "}", 8, LK_E_ST_JSON),
    CASE("comma at the end", "{\"a\":" GOOD ",}", 8, LK_E_ST_JSON),
    CASE("comma first", "{,\"a\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("comma in shape", ONE(E("F32", "[2,]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("comment", "{/**/\"a\":" GOOD "}", 8, LK_E_ST_JSON),
    CASE("wrong bracket", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2},\"data_offsets\":[0,8]}}", 8, LK_E_ST_JSON),
    /* duplicates */
    CASE("name twice", "{\"a\":" GOOD ",\"a\":" E("F32", "[2]", "8", "16") "}", 16, LK_E_ST_DUPLICATE),
    CASE("name twice, once escaped", "{\"a\":" GOOD ",\"\\u0061\":" E("F32", "[2]", "8", "16") "}", 16,
         LK_E_ST_DUPLICATE),
    CASE("dtype twice", "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         LK_E_ST_DUPLICATE),
    CASE("shape twice", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         LK_E_ST_DUPLICATE),
    CASE("offsets twice", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"data_offsets\":[0,8]}}", 8,
         LK_E_ST_DUPLICATE),
    CASE("metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, LK_E_ST_DUPLICATE),
    CASE("metadata key twice", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, LK_E_ST_DUPLICATE),
    /* fields */
    CASE("no dtype", ONE("{\"shape\":[2],\"data_offsets\":[0,8]}"), 8, LK_E_ST_FIELD),
    CASE("no shape", ONE("{\"dtype\":\"F32\",\"data_offsets\":[0,8]}"), 8, LK_E_ST_FIELD),
    CASE("no offsets", ONE("{\"dtype\":\"F32\",\"shape\":[2]}"), 8, LK_E_ST_FIELD),
    CASE("empty entry", ONE("{}"), 0, LK_E_ST_FIELD),
    CASE("unknown field", ONE("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"strides\":[1]}"), 8,
         LK_E_ST_FIELD),
    CASE("deep nesting in an unknown field", ONE("{\"x\":" D32 D32 "}"), 0, LK_E_ST_FIELD),
    CASE("deep nesting in shape", ONE("{\"shape\":" D32 D32 "}"), 0, LK_E_ST_SHAPE),
    CASE("entry is null", ONE("null"), 0, LK_E_ST_FIELD),
    CASE("entry is an array", ONE("[]"), 0, LK_E_ST_FIELD),
    CASE("dtype is a number", ONE("{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}"), 8, LK_E_ST_FIELD),
    CASE("shape is a number", ONE(E("F32", "2", "0", "8")), 8, LK_E_ST_FIELD),
    CASE("shape is null", ONE(E("F32", "null", "0", "8")), 8, LK_E_ST_FIELD),
    CASE("offsets are an object", ONE("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{}}"), 8, LK_E_ST_FIELD),
    CASE("metadata is a string", "{\"__metadata__\":\"x\"}", 0, LK_E_ST_FIELD),
    CASE("metadata value is a number", "{\"__metadata__\":{\"k\":1}}", 0, LK_E_ST_FIELD),
    CASE("metadata value is an object", "{\"__metadata__\":{\"k\":{}}}", 0, LK_E_ST_FIELD),
    /* dtypes */
    CASE("unknown dtype", ONE(E("F33", "[2]", "0", "8")), 8, LK_E_ST_DTYPE),
    CASE("dtype in lower case", ONE(E("f32", "[2]", "0", "8")), 8, LK_E_ST_DTYPE),
    CASE("empty dtype", ONE(E("", "[2]", "0", "8")), 8, LK_E_ST_DTYPE),
    CASE("a dtype of the format that we lack", ONE(E("F8_E8M0", "[8]", "0", "8")), 8, LK_E_ST_DTYPE),
    CASE("dtype with a space", ONE(E("F32 ", "[2]", "0", "8")), 8, LK_E_ST_DTYPE),
    /* shapes */
    CASE("9 dimensions", ONE(E("F32", "[1,1,1,1,1,1,1,1,2]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension -1", ONE(E("F32", "[-1]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension -0", ONE(E("F32", "[-0]", "0", "0")), 0, LK_E_ST_SHAPE),
    CASE("dimension 2^63", ONE(E("U8", "[9223372036854775808]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension 2^64", ONE(E("U8", "[18446744073709551616]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension 2^64 + 2", ONE(E("F32", "[18446744073709551618]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension 3 * 2^64 + 2", ONE(E("F32", "[55340232221128654850]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension of 80 digits", ONE(E("U8", "[" TEN TEN TEN TEN TEN TEN TEN TEN "]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("fraction", ONE(E("F32", "[2.0]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("exponent", ONE(E("F32", "[2e0]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("leading zero", ONE(E("F32", "[02]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension is a string", ONE(E("F32", "[\"2\"]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("dimension is true", ONE(E("F32", "[true]", "0", "8")), 8, LK_E_ST_SHAPE),
    CASE("product overflows", ONE(E("U8", "[4294967296,4294967296]", "0", "0")), 0, LK_E_ST_SHAPE),
    CASE("product overflows to 8", ONE(E("U8", "[9223372036854775807,9223372036854775807,8]", "0", "8")), 8,
         LK_E_ST_SHAPE),
    CASE("product of bytes overflows", ONE(E("F64", "[2305843009213693952]", "0", "0")), 0, LK_E_ST_SHAPE),
    CASE("overflow hidden by a 0", ONE(E("U8", "[0,4294967296,4294967296]", "0", "0")), 0, LK_E_ST_SHAPE),
    /* offsets */
    CASE("reversed", ONE(E("F32", "[2]", "8", "0")), 8, LK_E_ST_OFFSETS),
    CASE("one offset", ONE("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8]}"), 8, LK_E_ST_OFFSETS),
    CASE("no offset", ONE("{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[]}"), 0, LK_E_ST_OFFSETS),
    CASE("three offsets", ONE("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4,8]}"), 8, LK_E_ST_OFFSETS),
    CASE("negative offset", ONE(E("F32", "[2]", "-8", "0")), 8, LK_E_ST_OFFSETS),
    CASE("offset 2^63", ONE(E("F32", "[2]", "0", "9223372036854775808")), 8, LK_E_ST_OFFSETS),
    CASE("offsets wrap", ONE(E("F32", "[2]", "18446744073709551612", "4")), 8, LK_E_ST_OFFSETS),
    CASE("too few bytes for the shape", ONE(E("F32", "[3]", "0", "8")), 8, LK_E_ST_OFFSETS),
    CASE("too many bytes for the shape", ONE(E("F32", "[1]", "0", "8")), 8, LK_E_ST_OFFSETS),
    CASE("bytes of another dtype", ONE(E("F64", "[2]", "0", "8")), 8, LK_E_ST_OFFSETS),
    CASE("scalar with no bytes", ONE(E("F32", "[]", "0", "0")), 0, LK_E_ST_OFFSETS),
    CASE("empty tensor with bytes", ONE(E("F32", "[0]", "0", "4")), 4, LK_E_ST_OFFSETS),
    /* layout */
    CASE("same bytes twice", "{\"a\":" GOOD ",\"b\":" GOOD "}", 8, LK_E_ST_OVERLAP),
    CASE("overlap", "{\"a\":" GOOD ",\"b\":" E("F32", "[2]", "4", "12") "}", 12, LK_E_ST_OVERLAP),
    CASE("one inside the other", "{\"a\":" E("U8", "[9]", "0", "9") ",\"b\":" E("U8", "[1]", "4", "5") "}", 9,
         LK_E_ST_OVERLAP),
    CASE("empty tensor inside another", "{\"a\":" GOOD ",\"b\":" E("F32", "[0]", "4", "4") "}", 8, LK_E_ST_OVERLAP),
    CASE("hole at the start", ONE(E("F32", "[2]", "4", "12")), 12, LK_E_ST_HOLE),
    CASE("hole in the middle", "{\"a\":" GOOD ",\"b\":" E("F32", "[2]", "12", "20") "}", 20, LK_E_ST_HOLE),
    CASE("far beyond the end",
         "{\"a\":" GOOD ",\"b\":" E("U8", "[1]", "4611686018427387904", "4611686018427387905") "}", 8, LK_E_ST_HOLE),
    CASE("empty tensor beyond the end", "{\"a\":" GOOD ",\"b\":" E("F32", "[0]", "9", "9") "}", 8, LK_E_ST_HOLE),
    CASE("data cut by one byte", ONE(GOOD), 7, LK_E_ST_TRUNCATED),
    CASE("no data at all", ONE(GOOD), 0, LK_E_ST_TRUNCATED),
    CASE("last tensor past the end", "{\"a\":" GOOD ",\"b\":" E("F32", "[2]", "8", "16") "}", 12, LK_E_ST_TRUNCATED),
    CASE("huge tensor past the end", ONE(E("U8", "[4611686018427387904]", "0", "4611686018427387904")), 8,
         LK_E_ST_TRUNCATED),
    CASE("one byte more", ONE(GOOD), 9, LK_E_ST_TRAILING),
    CASE("data without tensors", "{}", 1, LK_E_ST_TRAILING),
};
#define N_CASES (sizeof cases / sizeof *cases)

/* The file in a block of its own exact size. */
static unsigned char *build(const char *header, size_t header_bytes, size_t data_bytes, uint64_t says, size_t *n) {
    *n = 8 + header_bytes + data_bytes;
    unsigned char *file = calloc(*n, 1);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(says >> (8 * i));
    memcpy(file + 8, header, header_bytes);
    return file;
}

/* The same status from memory and from a file, and nothing kept. */
static enum lk_code status_of(const unsigned char *bytes, size_t n) {
    struct lk_safetensors st;
    int64_t live = lk_alloc_live();
    enum lk_code rc = lk_safetensors_parse(&st, bytes, n, n, "case");
    if (!rc) lk_safetensors_close(&st);
    const char *path = test_path("case.safetensors");
    test_write(path, bytes, n);
    enum lk_code from_file = lk_safetensors_open(&st, path);
    if (!from_file) lk_safetensors_close(&st);
    assert_int_equal(rc, from_file);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

static void each_bad_file_has_its_status(void **state) {
    (void)state;
    assert_true(N_CASES >= 64);
    for (size_t i = 0; i < N_CASES; i++) {
        size_t n;
        unsigned char *file =
            build(cases[i].header, cases[i].header_bytes, cases[i].data_bytes, cases[i].header_bytes, &n);
        enum lk_code rc = status_of(file, n);
        free(file);
        if (rc != cases[i].code)
            fail_msg("%s: expected %d, got %d: %s", cases[i].what, cases[i].code, rc, rc ? lk_error_text() : "");
        assert_non_null(strstr(lk_error_text(), "case.safetensors"));
    }
}

static void header_sizes(void **state) {
    (void)state;
    static const struct {
        uint64_t says;
        enum lk_code code;
    } sizes[] = {{0, LK_E_ST_HEADER_SIZE},
                 {1, LK_E_ST_HEADER_SIZE},
                 {LK_ST_MAX_HEADER + 1, LK_E_ST_HEADER_SIZE},
                 {UINT64_C(1) << 63, LK_E_ST_HEADER_SIZE},
                 {UINT64_MAX, LK_E_ST_HEADER_SIZE},
                 {UINT64_MAX - 7, LK_E_ST_HEADER_SIZE},
                 {LK_ST_MAX_HEADER, LK_E_ST_TRUNCATED},
                 {3, LK_E_ST_TRUNCATED},
                 {2, LK_OK}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n;
        unsigned char *file = build("{}", 2, 0, sizes[i].says, &n);
        assert_int_equal(status_of(file, n), sizes[i].code);
        free(file);
    }
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    static const char header[] = "{\"a\":" GOOD ",\"b\":" E("U8", "[3]", "8", "11") "}";
    size_t n;
    unsigned char *file = build(header, sizeof header - 1, 11, sizeof header - 1, &n);
    for (size_t cut = 0; cut < n; cut++) assert_int_equal(status_of(file, cut), LK_E_ST_TRUNCATED);
    assert_int_equal(status_of(file, n), LK_OK);
    free(file);
}

static void good_headers(void **state) {
    (void)state;
    static const struct bad good[] = {
        CASE("no tensors", "{}", 0, LK_OK),
        CASE("padding", "{}      ", 0, LK_OK),
        CASE("white space everywhere",
             "{ \"a\" :\t{ \"dtype\" : \"F32\" ,\n\"shape\":[ 2 ] , \"data_offsets\":[ 0 , 8 ]"
             " } } \n",
             8, LK_OK),
        CASE("only metadata", "{\"__metadata__\":{\"format\":\"pt\",\"\":\"\"}}", 0, LK_OK),
        CASE("scalar", ONE(E("F32", "[]", "0", "4")), 4, LK_OK),
        CASE("empty dimension", ONE(E("F32", "[3,0,5]", "0", "0")), 0, LK_OK),
        CASE("8 dimensions", ONE(E("U8", "[1,2,1,2,1,2,1,1]", "0", "8")), 8, LK_OK),
        CASE("empty tensors at both ends",
             "{\"z\":" E("I64", "[0]", "8", "8") ",\"a\":" GOOD ",\"b\":" E("BOOL", "[0]", "0", "0") "}", 8, LK_OK),
        CASE("names out of order", "{\"b\":" E("U8", "[1]", "1", "2") ",\"a\":" E("U8", "[1]", "0", "1") "}", 2, LK_OK),
        CASE("empty name", "{\"\":" GOOD "}", 8, LK_OK),
        CASE("escapes and UTF-8",
             "{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\xc3\xa9\\ud83d\\ude00\xf0\x9f\x98\x80\":" GOOD "}", 8, LK_OK),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t n;
        unsigned char *file = build(good[i].header, good[i].header_bytes, good[i].data_bytes, good[i].header_bytes, &n);
        enum lk_code rc = status_of(file, n);
        if (rc) fail_msg("%s: %d: %s", good[i].what, rc, lk_error_text());
        free(file);
    }
    struct lk_safetensors st;
    const struct bad *escaped = &good[sizeof good / sizeof *good - 1];
    size_t n;
    unsigned char *file = build(escaped->header, escaped->header_bytes, 8, escaped->header_bytes, &n);
    assert_ok(lk_safetensors_parse(&st, file, n, n, "case"));
    assert_string_equal(st.tensors[0].name, "\"\\/\b\f\n\r\t\u00e9\u00e9\U0001F600\U0001F600");
    lk_safetensors_close(&st);
    free(file);
}

/* data/weights/python_*.safetensors: by the safetensors package, see golden/generate_weights.py. Element i of tensor
 * NAME is i - 2 (bool: i % 2), in shape [2, 3] except where the name says otherwise. */
static double element(const struct lk_tensor *t, size_t i) {
    switch (t->dtype) {
    case LK_F32:
        return ((const float *)t->data)[i];
    case LK_F64:
        return ((const double *)t->data)[i];
    case LK_BF16:
        return lk_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case LK_F16:
        return lk_f16_to_f32(((const uint16_t *)t->data)[i]);
    case LK_I64:
        return (double)((const int64_t *)t->data)[i];
    case LK_I32:
        return ((const int32_t *)t->data)[i];
    case LK_I16:
        return ((const int16_t *)t->data)[i];
    case LK_I8:
        return ((const int8_t *)t->data)[i];
    default:
        return ((const uint8_t *)t->data)[i];
    }
}

static void reads_what_python_wrote(void **state) {
    (void)state;
    static const char *const names[LK_FIRST_QUANTIZED] = {"f32", "bf16", "f16", "f64", "u8",
                                                          "i8",  "i16",  "i32", "i64", "bool"};
    struct lk_safetensors st;
    assert_ok(lk_safetensors_open(&st, "data/weights/python_dtypes.safetensors"));
    assert_int_equal(st.n_tensors, LK_FIRST_QUANTIZED + 3);
    for (int d = 0; d < LK_FIRST_QUANTIZED; d++) {
        const struct lk_st_tensor *t = lk_safetensors_find(&st, names[d]);
        assert_non_null(t);
        assert_int_equal(t->tensor.dtype, d);
        assert_int_equal(t->tensor.n_dims, 2);
        assert_int_equal(t->tensor.shape[0], 2);
        assert_int_equal(t->tensor.shape[1], 3);
        for (size_t i = 0; i < 6; i++) {
            double expected = d == LK_BOOL ? (double)(i % 2) : d == LK_U8 ? (double)i : (double)i - 2;
            assert_true(element(&t->tensor, i) == expected);
        }
    }
    const struct lk_st_tensor *scalar = lk_safetensors_find(&st, "scalar");
    assert_non_null(scalar);
    assert_int_equal(scalar->tensor.n_dims, 0);
    assert_true(*(const float *)scalar->tensor.data == 0.5f);
    const struct lk_st_tensor *empty = lk_safetensors_find(&st, "empty");
    assert_non_null(empty);
    assert_int_equal(empty->tensor.n_dims, 3);
    assert_int_equal(lk_tensor_numel(&empty->tensor), 0);
    assert_non_null(lk_safetensors_find(&st, "a \"quoted\" name, \u4eba\U0001F600"));
    assert_null(lk_safetensors_find(&st, "absent"));
    assert_string_equal(st.metadata_json, "{\"format\":\"pt\"}");
    assert_ok(lk_mapped_check(st.file));
    lk_safetensors_close(&st);

    assert_ok(lk_safetensors_open(&st, "data/weights/python_empty.safetensors"));
    assert_int_equal(st.n_tensors, 0);
    assert_null(st.metadata_json);
    assert_null(lk_safetensors_find(&st, "absent"));
    lk_safetensors_close(&st);
}

/* Our file is read back by our reader here; its bytes equal those of a file that the safetensors package read when the
 * golden was made (golden/generate_weights.py says so, and fails otherwise). */
static void writes_what_python_reads(void **state) {
    (void)state;
    float f[6] = {-2, -1, 0, 1, 2, 3}, one = 0.5f;
    uint16_t bf[3] = {0x3f80, 0x4000, 0xc000};
    const struct lk_st_named tensors[] = {
        {"z.weight", LK_TENSOR(f, LK_F32, 2, 3)},
        {"scalar", lk_tensor_make(&one, LK_F32, 0, NULL)},
        {"bf16 \"\\\n\u00e9", LK_TENSOR(bf, LK_BF16, 3)},
        {"empty", LK_TENSOR(f, LK_F32, 0, 4)},
    };
    const char *path = test_path("ours.safetensors");
    assert_ok(lk_safetensors_write(path, tensors, 4, "{\"made_by\":\"likeness\"}"));
    size_t n, n_golden;
    char *bytes = test_read(path, &n), *golden = test_read("data/weights/ours.safetensors", &n_golden);
    assert_int_equal(n, n_golden);
    assert_memory_equal(bytes, golden, n);
    free(bytes);
    free(golden);
    struct lk_safetensors st;
    assert_ok(lk_safetensors_open(&st, path));
    assert_int_equal(st.n_tensors, 4);
    assert_int_equal(st.data_offset % 8, 0);
    assert_string_equal(st.metadata_json, "{\"made_by\":\"likeness\"}");
    for (size_t i = 0; i < 4; i++) {
        const struct lk_st_tensor *t = lk_safetensors_find(&st, tensors[i].name);
        assert_non_null(t);
        assert_int_equal(t->tensor.dtype, tensors[i].tensor.dtype);
        assert_true(lk_tensor_same_shape(&t->tensor, &tensors[i].tensor));
        if (t->end > t->begin) assert_memory_equal(t->tensor.data, tensors[i].tensor.data, lk_tensor_bytes(&t->tensor));
    }
    lk_safetensors_close(&st);
    assert_ok(lk_safetensors_write(path, NULL, 0, NULL));
    assert_ok(lk_safetensors_open(&st, path));
    assert_int_equal(st.n_tensors, 0);
    lk_safetensors_close(&st);
}

static void writer_refuses_what_it_cannot_write(void **state) {
    (void)state;
    float f[6] = {0};
    const char *path = test_path("kept.safetensors");
    struct lk_st_named tensors[] = {{"a", LK_TENSOR(f, LK_F32, 3)}, {"a", LK_TENSOR(f, LK_F32, 3)}};
    test_write(path, "old", 3);
    assert_fails(lk_safetensors_write(path, tensors, 2, NULL), LK_E_ST_DUPLICATE, "\"a\"");
    tensors[1].name = "\xff";
    assert_fails(lk_safetensors_write(path, tensors, 2, NULL), LK_E_INTERNAL, "name");
    tensors[1].name = "__metadata__";
    assert_fails(lk_safetensors_write(path, tensors, 2, NULL), LK_E_INTERNAL, "name");
    tensors[1].name = "window";
    tensors[1].tensor = LK_TENSOR(f, LK_F32, 2, 3);
    tensors[1].tensor = lk_tensor_cols(&tensors[1].tensor, 0, 2);
    assert_fails(lk_safetensors_write(path, tensors, 2, NULL), LK_E_INTERNAL, "dense");
    assert_fails(lk_safetensors_write(path, tensors, 1, "{\"a\":1}"), LK_E_JSON, "metadata");
    assert_fails(lk_safetensors_write(path, tensors, 1, "{} {}"), LK_E_JSON, "metadata");
    assert_fails(lk_safetensors_write(test_path("no/such/folder.safetensors"), tensors, 1, NULL), LK_E_NOT_FOUND,
                 "no/");
    char *kept = test_read(path, NULL);
    assert_string_equal(kept, "old");
    free(kept);
}

static void not_a_regular_file(void **state) {
    (void)state;
    struct lk_safetensors st;
    assert_fails(lk_safetensors_open(&st, test_path("absent.safetensors")), LK_E_NOT_FOUND, "absent");
    assert_fails(lk_safetensors_open(&st, getenv("TEST_TMPDIR") ? getenv("TEST_TMPDIR") : "/tmp"), LK_E_NOT_REGULAR,
                 "folder");
    assert_fails(lk_safetensors_open(&st, "/dev/null"), LK_E_NOT_REGULAR, "device");
    test_write(test_path("empty.safetensors"), "", 0);
    assert_fails(lk_safetensors_open(&st, test_path("empty.safetensors")), LK_E_ST_TRUNCATED, "8 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_file_has_its_status),
        cmocka_unit_test(header_sizes),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(good_headers),
        cmocka_unit_test(reads_what_python_wrote),
        cmocka_unit_test(writes_what_python_reads),
        cmocka_unit_test(writer_refuses_what_it_cannot_write),
        cmocka_unit_test(not_a_regular_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
