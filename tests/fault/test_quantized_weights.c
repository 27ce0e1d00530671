/* Weights that bitsandbytes quantised: read in all the ways in which it stores them, and refused by name where a
 * companion is missing, foreign or damaged. */
#include "tests/common/test.h"

#include <math.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/quantized.h"
#include "weights/bind.h"
#include "weights/quant/quantize.h"

#define ROWS    10
#define COLUMNS 60 /* blocks cross rows, the last is short */
#define N       (ROWS * COLUMNS)
#define SCALES  ((N + 63) / 64)
#define MOST    8

static const char plain_state[] =
    "{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}";
static const char nested_state[] =
    "{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60], \"nested_blocksize\": "
    "256, \"nested_dtype\": \"float32\", \"nested_offset\": 0.05213481932878494}";

/* A quantised weight "a.weight" as a list of tensors, which a test then changes. */
struct sample {
    uint16_t w[N], scales[SCALES], values[N];
    unsigned char codes[N / 2], nested_codes[SCALES];
    float absmax[SCALES], levels[16], nested_map[256], nested_absmax[1];
    struct lk_st_named tensors[MOST];
    size_t n;
};

static void put(struct sample *s, const char *name, void *data, enum lk_dtype dtype, int64_t n) {
    s->tensors[s->n++] = (struct lk_st_named){name, LK_TENSOR(data, dtype, n)};
}

static void set_state(struct sample *s, const char *json) {
    for (size_t i = 0; i < s->n; i++)
        if (strstr(s->tensors[i].name, "quant_state"))
            s->tensors[i].tensor = LK_TENSOR((void *)(uintptr_t)json, LK_U8, (int64_t)strlen(json));
}

static void make(struct sample *s, bool nested) {
    uint64_t state = 1;
    *s = (struct sample){0};
    for (int i = 0; i < N; i++) s->w[i] = lk_f32_to_bf16((float)test_normal(&state));
    assert_int_equal(lk_quantize(LK_QUANTIZE_NF4, s->w, N, 64, s->codes, s->scales), -1);
    for (int i = 0; i < SCALES; i++) s->absmax[i] = lk_bf16_to_f32(s->scales[i]);
    for (int i = 0; i < SCALES; i++) s->nested_codes[i] = (unsigned char)(23 * i + 7);
    for (int i = 0; i < 256; i++) s->nested_map[i] = ((float)i - 127) / 131;
    s->nested_absmax[0] = 1.7f;
    memcpy(s->levels, lk_nf4_levels, sizeof s->levels);
    put(s, "a.weight.quant_map", s->levels, LK_F32, 16);
    put(s, "a.weight.quant_state.bitsandbytes__nf4", s->levels, LK_U8, 1);
    s->tensors[s->n++] = (struct lk_st_named){"a.weight", LK_TENSOR(s->codes, LK_U8, N / 2, 1)};
    if (nested) {
        put(s, "a.weight.absmax", s->nested_codes, LK_U8, SCALES);
        put(s, "a.weight.nested_absmax", s->nested_absmax, LK_F32, 1);
        put(s, "a.weight.nested_quant_map", s->nested_map, LK_F32, 256);
        for (int i = 0; i < SCALES; i++) {
            const float inner = s->nested_map[s->nested_codes[i]] * s->nested_absmax[0];
            s->absmax[i] = inner + (float)0.05213481932878494;
        }
    } else {
        put(s, "a.weight.absmax", s->absmax, LK_F32, SCALES);
    }
    set_state(s, nested ? nested_state : plain_state);
    for (int i = 0; i < N; i++) {
        const int code = i % 2 ? s->codes[i / 2] & 15 : s->codes[i / 2] >> 4;
        s->values[i] = lk_f32_to_bf16(lk_nf4_levels[code] * s->absmax[i / 64]);
    }
}

static struct lk_st_named *find(struct sample *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->tensors[i].name, name)) return &s->tensors[i];
    fail_msg("%s", name);
    return NULL;
}

/* The weights after from_shard go into a second file. */
static struct lk_checkpoint write_and_open(const struct sample *s, size_t from_shard) {
    const char *folder = test_path("quantized");
    char path[1100], index[4096];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    remove(path);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    remove(path);
    if (from_shard >= s->n) {
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        assert_ok(lk_safetensors_write(path, s->tensors, s->n, NULL));
    } else {
        int n = snprintf(index, sizeof index, "{\"weight_map\": {");
        for (size_t i = 0; i < s->n; i++)
            n += snprintf(index + n, sizeof index - (size_t)n, "%s\"%s\": \"%d.safetensors\"", i ? ", " : "",
                          s->tensors[i].name, i >= from_shard);
        n += snprintf(index + n, sizeof index - (size_t)n, "}}");
        test_write(path, index, (size_t)n);
        snprintf(path, sizeof path, "%s/0.safetensors", folder);
        assert_ok(lk_safetensors_write(path, s->tensors, from_shard, NULL));
        snprintf(path, sizeof path, "%s/1.safetensors", folder);
        assert_ok(lk_safetensors_write(path, s->tensors + from_shard, s->n - from_shard, NULL));
    }
    struct lk_checkpoint cp;
    assert_ok(lk_checkpoint_open(&cp, folder, "model"));
    return cp;
}

/* Binds the weight and checks every element of it; or gives the code of a refusal. */
static enum lk_code bind_sample(const struct sample *s, size_t from_shard, bool embedding) {
    const int64_t live = lk_alloc_live();
    struct lk_checkpoint cp = write_and_open(s, from_shard);
    struct lk_bind *b;
    struct lk_tensor out;
    struct lk_bind_totals totals;
    void *owned;
    assert_ok(lk_bind_begin(&b, &cp, "transformer", LK_F32));
    if (embedding)
        lk_bind_embedding(b, &out, ROWS, COLUMNS, "a.weight");
    else
        LK_BIND(b, &out, LK_SHAPE(ROWS, COLUMNS), "%s.weight", "a");
    enum lk_code rc = lk_bind_finish(b, &owned, &totals);
    if (!rc && embedding) {
        assert_int_equal(out.dtype, LK_BF16);
        assert_memory_equal(out.data, s->values, sizeof s->values);
        assert_int_equal(totals.weight_bytes, 2 * N);
    } else if (!rc) {
        uint16_t values[N];
        assert_int_equal(out.dtype, LK_NF4);
        lk_dequantize(&out, 0, N, values);
        assert_memory_equal(values, s->values, sizeof values);
        assert_int_equal(totals.parameters, N);
        assert_int_equal(totals.weight_bytes, N / 2 + SCALES * lk_dtype_size(out.scales.dtype));
    }
    lk_free(owned);
    lk_checkpoint_close(&cp);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

static void read_as_written(void **state) {
    (void)state;
    static const struct {
        enum lk_dtype dtype;
        int64_t n;
    } storage[] = {{LK_U8, 300}, {LK_I8, 300}, {LK_BF16, 150}, {LK_F16, 150}, {LK_F32, 75}};
    struct sample s;
    for (int nested = 0; nested < 2; nested++) {
        make(&s, nested);
        for (size_t from_shard = 1; from_shard <= s.n; from_shard++) assert_ok(bind_sample(&s, from_shard, false));
        assert_ok(bind_sample(&s, s.n, true));
        for (size_t i = 0; i < sizeof storage / sizeof *storage; i++) {
            find(&s, "a.weight")->tensor = LK_TENSOR(s.codes, storage[i].dtype, storage[i].n, 1);
            assert_ok(bind_sample(&s, s.n, false));
        }
    }
    make(&s, false); /* scales that are no bf16 values stay f32 */
    s.absmax[3] = nextafterf(s.absmax[3], 9);
    for (int i = 3 * 64; i < 4 * 64; i++) {
        const int code = i % 2 ? s.codes[i / 2] & 15 : s.codes[i / 2] >> 4;
        s.values[i] = lk_f32_to_bf16(lk_nf4_levels[code] * s.absmax[3]);
    }
    assert_ok(bind_sample(&s, s.n, false));
}

static void assert_refused(const struct sample *s, const char *part) {
    assert_fails(bind_sample(s, s->n, false), LK_E_BIND, part);
    assert_non_null(strstr(lk_error_text(), "a.weight"));
    assert_non_null(strstr(lk_error_text(), "transformer in "));
}

static void every_companion(void **state) {
    (void)state;
    struct sample s;
    for (int nested = 0; nested < 2; nested++) {
        make(&s, nested);
        const size_t n = s.n;
        for (size_t i = 0; i < n; i++) {
            make(&s, nested);
            const char *name = s.tensors[i].name;
            const bool weight = !strcmp(name, "a.weight");
            s.tensors[i] = s.tensors[--s.n]; /* left out */
            assert_refused(&s, weight ? "1 missing: a.weight" : "is missing");
            if (weight || strstr(name, "quant_state")) continue;
            make(&s, nested); /* of another dtype, one element more */
            struct lk_tensor *t = &s.tensors[i].tensor;
            const enum lk_dtype dtype = t->dtype;
            t->dtype = LK_I32;
            unsigned char wide[2048] = {0};
            t->data = wide;
            assert_refused(&s, "got i32 [");
            make(&s, nested);
            *t = LK_TENSOR(wide, dtype, t->shape[0] + 1);
            assert_refused(&s, ": expected ");
        }
    }
    make(&s, false);
    put(&s, "a.weight.nested_absmax", s.absmax, LK_F32, 1);
    assert_refused(&s, "a.weight.nested_absmax: the quant_state says nothing of it");
    make(&s, false);
    put(&s, "a.weight.quant_state.bitsandbytes__fp4", s.codes, LK_U8, 5);
    assert_refused(&s, "bitsandbytes' NF4 is read, its other types are not");
    make(&s, false);
    put(&s, "a.weight.SCB", s.absmax, LK_F32, ROWS);
    assert_refused(&s, "a.weight.SCB: no companion");
}

static void contents(void **state) {
    (void)state;
    struct sample s;
    make(&s, false);
    s.levels[3] = nextafterf(s.levels[3], 0);
    assert_refused(&s, "a.weight.quant_map: these are not the levels of NF4");
    make(&s, false);
    s.absmax[7] = (float)NAN;
    assert_refused(&s, "a.weight: scale 7 is NaN or Inf");
    make(&s, true);
    s.nested_absmax[0] = INFINITY;
    assert_refused(&s, "is NaN or Inf");
    make(&s, false);
    find(&s, "a.weight")->tensor.shape[0]--;
    assert_refused(&s, "a.weight: expected 300 bytes for the shape [10, 60]");
    make(&s, false);
    set_state(&s, "{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [60, 10]}");
    assert_refused(&s, "1 of the wrong shape: a.weight: expected f32 [10, 60], got nf4 [60, 10]");
    find(&s, "a.weight.quant_state.bitsandbytes__nf4")->tensor.dtype = LK_I8;
    assert_refused(&s, "expected u8 [");
}

static void states(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"", "expected"},
        {"[]", "expected"},
        {"{}", "field \"quant_type\" is missing"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\"}", "field \"shape\" is missing"},
        {"{\"quant_type\": \"fp4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}",
         "expected \"nf4\", got \"fp4\""},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 0, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}", "got 0"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 48, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}", "got 48"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 1099511627776, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}",
         "got 1099511627776"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": -64, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}", "unsigned"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 32, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}",
         "a.weight.absmax: expected f32 [19], got f32 [10]"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float64\", \"shape\": [10, 60]}", "float64"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": 16, \"shape\": [10, 60]}", "expected a string"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [600]}", "two numbers"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60, 1]}",
         "two numbers"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [0, 60]}", "two numbers"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [4294967296, 4294967296]}",
         "two numbers"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60], \"more\": 1}",
         "unknown field \"more\""},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, "
         "60]}",
         "blocksize"},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60]} ", NULL},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"float16\", \"shape\": [10, 60]}", NULL},
        {"{\"quant_type\": \"nf4\", \"blocksize\": 64, \"dtype\": \"bfloat16\", \"shape\": [10, 60]}{",
         "expected nothing"},
        {nested_state, "a.weight.absmax: expected u8 [10], got f32 [10]"},
    };
    struct sample s;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        make(&s, false);
        set_state(&s, wrong[i][0]);
        if (wrong[i][1])
            assert_refused(&s, wrong[i][1]);
        else
            assert_ok(bind_sample(&s, s.n, false));
    }
    for (size_t n = 1; n < sizeof plain_state - 1; n++) { /* cut short */
        char cut[sizeof plain_state] = "";
        memcpy(cut, plain_state, n);
        make(&s, false);
        set_state(&s, cut);
        assert_refused(&s, "a.weight.quant_state.bitsandbytes__nf4: byte ");
    }
    static const char *const nested[] = {"\"nested_offset\": 1e300", "\"nested_offset\": 1e999",
                                         "\"nested_offset\": null", "\"nested_offset\": \"0\""};
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        char text[400];
        const int n = (int)(strstr(nested_state, "\"nested_offset") - nested_state);
        snprintf(text, sizeof text, "%.*s%s}", n, nested_state, nested[i]);
        make(&s, true);
        set_state(&s, text);
        assert_refused(&s, "bitsandbytes__nf4: byte ");
    }
}

/* Weights that are packed as they are read: what is kept, what cannot be packed. */
static void packed_on_the_way(void **state) {
    (void)state;
    static const char *const kept[] = {"ends", "mid.norm", NULL};
    static const struct {
        const char *name;
        bool kept;
    } names[] = {{"ends.weight", true},          {"a.ends.weight", true},   {"a.ends.linear.weight", true},
                 {"bends.weight", false},        {"a.ends1.weight", false}, {"a.mid.norm.0.weight", true},
                 {"a.mid.normal.weight", false}, {"mid.norm", true},        {"a.weight", false}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(lk_bind_keeps(names[i].name, kept), names[i].kept);
    uint16_t w[ROWS * COLUMNS];
    uint64_t random = 2;
    for (int i = 0; i < N; i++) w[i] = lk_f32_to_bf16((float)test_normal(&random));
    struct lk_st_named tensors[] = {{"a.weight", LK_TENSOR(w, LK_BF16, ROWS, COLUMNS)},
                                    {"ends.weight", LK_TENSOR(w, LK_BF16, ROWS, COLUMNS)}};
    struct sample s = {.n = 2};
    memcpy(s.tensors, tensors, sizeof tensors);
    for (int nan = 0; nan < 2; nan++) {
        struct lk_checkpoint cp = write_and_open(&s, s.n);
        struct lk_bind *b;
        struct lk_tensor out[2];
        void *owned;
        assert_ok(lk_bind_begin(&b, &cp, "transformer", LK_BF16));
        lk_bind_quantize(b, LK_QUANTIZE_Q8, kept);
        for (int i = 0; i < 2; i++) lk_bind_tensor(b, &out[i], 2, (int64_t[]){ROWS, COLUMNS}, "%s", tensors[i].name);
        if (nan) {
            assert_fails(lk_bind_finish(b, &owned, NULL), LK_E_BIND, "a.weight: element 77 is NaN or Inf");
        } else {
            assert_ok(lk_bind_finish(b, &owned, NULL));
            assert_int_equal(out[0].dtype, LK_Q8);
            assert_int_equal(out[1].dtype, LK_BF16);
            lk_free(owned);
        }
        lk_checkpoint_close(&cp);
        w[77] = w[500] = 0x7f80;
    }
}

static struct lk_checkpoint opened;
static enum lk_code bind_opened(void) {
    struct lk_bind *b;
    struct lk_tensor out;
    void *owned;
    LK_TRY(lk_bind_begin(&b, &opened, "transformer", LK_BF16));
    LK_BIND(b, &out, LK_SHAPE(ROWS, COLUMNS), "a.weight");
    enum lk_code rc = lk_bind_finish(b, &owned, NULL);
    lk_free(owned);
    return rc;
}

static void no_memory(void **state) {
    (void)state;
    struct sample s;
    make(&s, true);
    opened = write_and_open(&s, s.n);
    test_every_allocation(bind_opened, 5);
    lk_checkpoint_close(&opened);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_as_written), cmocka_unit_test(every_companion),   cmocka_unit_test(contents),
        cmocka_unit_test(states),          cmocka_unit_test(packed_on_the_way), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
