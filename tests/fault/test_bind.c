/* W7: weights that do not fit what a model asks for are refused with the tensor's name; W7's other half is conversion.
 */
#include "tests/common/test.h"

#include <math.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "weights/bind.h"
#include "engine/f16.h"

#define N_TENSORS 7

static const struct {
    const char *name;
    int n_dims;
    int64_t shape[3];
    enum lk_dtype dtype;
} model[N_TENSORS] = {
    {"blocks.0.attn.to_q.weight", 2, {4, 6}, LK_BF16},
    {"blocks.0.attn.to_q.bias", 1, {4}, LK_BF16},
    {"blocks.1.attn.to_q.weight", 2, {4, 6}, LK_BF16},
    {"blocks.1.attn.to_q.bias", 1, {4}, LK_BF16},
    {"conv.weight", 3, {2, 3, 3}, LK_F32},
    {"norm.weight", 1, {6}, LK_F32},
    {"proj_out.weight", 2, {6, 4}, LK_F16},
};

static unsigned char zeros[1 << 12];

/* Writes the model's tensors with one of them changed by the caller, and opens the folder. */
static struct lk_checkpoint write_and_open(const struct lk_st_named *tensors, size_t n) {
    const char *folder = test_path("bind");
    mkdir(folder, 0777);
    char path[1100];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(lk_safetensors_write(path, tensors, n, NULL));
    struct lk_checkpoint cp;
    assert_ok(lk_checkpoint_open(&cp, folder, "model"));
    return cp;
}

static void fill(struct lk_st_named *tensors) {
    for (int i = 0; i < N_TENSORS; i++) {
        tensors[i].name = model[i].name;
        tensors[i].tensor = lk_tensor_make(zeros, model[i].dtype, model[i].n_dims, model[i].shape);
    }
}

static enum lk_code bind_model(const struct lk_checkpoint *cp, enum lk_dtype compute, struct lk_tensor *out,
                               void **owned, struct lk_bind_totals *totals) {
    struct lk_bind *b;
    *owned = NULL;
    enum lk_code rc = lk_bind_begin(&b, cp, "transformer", compute);
    if (rc) return rc;
    for (int i = 0; i < 2; i++) {
        lk_bind_tensor(b, out++, 2, model[0].shape, "blocks.%d.attn.to_q.weight", i);
        LK_BIND(b, out++, LK_SHAPE(4), "blocks.%d.attn.to_q.%s", i, "bias");
    }
    LK_BIND(b, out++, LK_SHAPE(2, 3, 3), "conv.weight");
    LK_BIND(b, out++, LK_SHAPE(6), "norm.weight");
    LK_BIND(b, out++, LK_SHAPE(6, 4), "proj_out.weight");
    return lk_bind_finish(b, owned, totals);
}

static enum lk_code bind_changed(const struct lk_st_named *tensors, size_t n) {
    struct lk_tensor out[N_TENSORS];
    void *owned;
    int64_t live = lk_alloc_live();
    struct lk_checkpoint cp = write_and_open(tensors, n);
    enum lk_code rc = bind_model(&cp, LK_BF16, out, &owned, NULL);
    lk_free(owned);
    lk_checkpoint_close(&cp);
    assert_int_equal(lk_alloc_live(), live);
    return rc;
}

/* "1 missing: NAME" and nothing of another kind. */
static void assert_only(const char *kind, const char *name) {
    static const char *const kinds[] = {"missing", "of the wrong shape", "of the wrong dtype", "not expected"};
    char expected[200];
    snprintf(expected, sizeof expected, "1 %s: %s", kind, name);
    if (!strstr(lk_error_text(), expected)) fail_msg("no \"%s\" in: %s", expected, lk_error_text());
    for (int i = 0; i < 4; i++)
        if (strcmp(kinds[i], kind) && strstr(lk_error_text(), kinds[i])) fail_msg("%s", lk_error_text());
    assert_non_null(strstr(lk_error_text(), "transformer in "));
}

static void each_tensor_wrong_in_turn(void **state) {
    (void)state;
    struct lk_st_named tensors[N_TENSORS + 1];
    fill(tensors);
    assert_ok(bind_changed(tensors, N_TENSORS));
    for (int i = 0; i < N_TENSORS; i++) {
        fill(tensors); /* removed */
        tensors[i] = tensors[N_TENSORS - 1];
        assert_int_equal(bind_changed(tensors, N_TENSORS - 1), LK_E_BIND);
        assert_only("missing", model[i].name);

        fill(tensors); /* renamed */
        char renamed[100], unexpected[120];
        snprintf(renamed, sizeof renamed, "%s_", model[i].name);
        tensors[i].name = renamed;
        assert_int_equal(bind_changed(tensors, N_TENSORS), LK_E_BIND);
        snprintf(unexpected, sizeof unexpected, "1 not expected: %s", renamed);
        assert_non_null(strstr(lk_error_text(), unexpected));
        assert_non_null(strstr(lk_error_text(), "1 missing: "));

        for (int kind = 0; kind < 4; kind++) { /* other shapes: one more, one less, turned round, one more dimension */
            fill(tensors);
            struct lk_tensor *t = &tensors[i].tensor;
            int64_t shape[4] = {t->shape[0], t->shape[1], t->shape[2], 1};
            int n_dims = t->n_dims + (kind == 3);
            shape[t->n_dims] = 1;
            if (kind == 0) shape[t->n_dims - 1]++;
            if (kind == 1) shape[0]--;
            if (kind == 2) {
                if (shape[0] == shape[t->n_dims - 1]) continue; /* the same turned round */
                int64_t first = shape[0];
                shape[0] = shape[t->n_dims - 1];
                shape[t->n_dims - 1] = first;
            }
            *t = lk_tensor_make(zeros, t->dtype, n_dims, shape);
            assert_int_equal(bind_changed(tensors, N_TENSORS), LK_E_BIND);
            assert_only("of the wrong shape", model[i].name);
        }
        static const enum lk_dtype others[] = {LK_F64, LK_U8, LK_I8, LK_I16, LK_I32, LK_I64, LK_BOOL};
        for (size_t d = 0; d < sizeof others / sizeof *others; d++) {
            fill(tensors);
            tensors[i].tensor.dtype = others[d];
            assert_int_equal(bind_changed(tensors, N_TENSORS), LK_E_BIND);
            assert_only("of the wrong dtype", model[i].name);
        }
        fill(tensors); /* one that nobody asked for */
        tensors[N_TENSORS] = tensors[i];
        tensors[N_TENSORS].name = "extra.weight";
        assert_int_equal(bind_changed(tensors, N_TENSORS + 1), LK_E_BIND);
        assert_only("not expected", "extra.weight");
    }
}

static void many_problems_are_counted(void **state) {
    (void)state;
    char names[40][16];
    struct lk_st_named tensors[40];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "t%02d", i);
        tensors[i] = (struct lk_st_named){names[i], LK_TENSOR(zeros, LK_F32, 2)};
    }
    assert_int_equal(bind_changed(tensors, 40), LK_E_BIND);
    assert_non_null(strstr(lk_error_text(), "7 missing: blocks.0.attn.to_q.weight, "));
    assert_non_null(strstr(lk_error_text(), "40 not expected: t00, t01"));
    assert_non_null(strstr(lk_error_text(), "and 32 more"));
}

static void values_are_kept_or_converted_exactly(void **state) {
    (void)state;
    float f32[18], norm[6] = {0x1.01p0f, 0x1.03p0f, -0x1.01p0f, INFINITY, 0x1.fffffep127f, 1e-45f};
    uint16_t bf16[24], f16[24];
    for (int i = 0; i < 18; i++) f32[i] = (float)i * 0.37f - 3;
    for (int i = 0; i < 24; i++) bf16[i] = lk_f32_to_bf16((float)i), f16[i] = (uint16_t)(i * 1387 + 7);
    struct lk_st_named tensors[N_TENSORS];
    fill(tensors);
    tensors[0].tensor.data = bf16;
    tensors[4].tensor.data = f32;
    tensors[5].tensor.data = norm;
    tensors[6].tensor.data = f16;
    struct lk_checkpoint cp = write_and_open(tensors, N_TENSORS);
    struct lk_bind_totals totals;
    struct lk_tensor out[N_TENSORS];
    void *owned;

    assert_ok(bind_model(&cp, LK_BF16, out, &owned, &totals));
    assert_non_null(owned);
    assert_int_equal(totals.n_tensors, N_TENSORS);
    assert_int_equal(totals.parameters, 2 * (24 + 4) + 18 + 6 + 24);
    assert_int_equal(totals.weight_bytes, totals.parameters * 2);
    assert_ptr_equal(out[0].data, lk_checkpoint_find(&cp, model[0].name)->tensor.data); /* in place */
    assert_memory_equal(out[0].data, bf16, sizeof bf16);
    for (int i = 0; i < 18; i++) assert_int_equal(((uint16_t *)out[4].data)[i], lk_f32_to_bf16(f32[i]));
    /* ties to even, infinity, overflow to infinity, the least subnormal to zero */
    static const uint16_t expected[6] = {0x3f80, 0x3f82, 0xbf80, 0x7f80, 0x7f80, 0x0000};
    assert_memory_equal(out[5].data, expected, sizeof expected);
    for (int i = 0; i < 24; i++) assert_int_equal(((uint16_t *)out[6].data)[i], lk_f32_to_bf16(lk_f16_to_f32(f16[i])));
    for (int i = 0; i < N_TENSORS; i++) {
        assert_int_equal(out[i].dtype, LK_BF16);
        assert_int_equal((uintptr_t)out[i].data % 2, 0);
    }
    lk_free(owned);

    assert_ok(bind_model(&cp, LK_F32, out, &owned, &totals));
    assert_int_equal(out[0].dtype, LK_BF16); /* kept: widening is exact and costs memory only */
    assert_int_equal(out[4].dtype, LK_F32);
    assert_int_equal(out[6].dtype, LK_F32);
    assert_memory_equal(out[4].data, f32, sizeof f32);
    assert_memory_equal(out[5].data, norm, sizeof norm);
    for (int i = 0; i < 24; i++) {
        float widened = lk_f16_to_f32(f16[i]);
        assert_memory_equal((float *)out[6].data + i, &widened, sizeof widened);
    }
    assert_int_equal(totals.weight_bytes, 2 * (24 + 4) * 2 + (18 + 6 + 24) * 4);
    lk_free(owned);
    lk_checkpoint_close(&cp);
}

/* All 65,536 half floats against arithmetic in double. */
static void half_floats_widen_exactly(void **state) {
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        int exponent = (int)(h >> 10 & 31);
        double mantissa = (double)(h & 1023) / 1024;
        double expected = exponent == 0    ? ldexp(mantissa, -14)
                          : exponent == 31 ? ((h & 1023) ? (double)NAN : (double)INFINITY)
                                           : ldexp(1 + mantissa, exponent - 15);
        if (h & 0x8000) expected = -expected;
        float got = lk_f16_to_f32((uint16_t)h);
        if (isnan(expected))
            assert_true(isnan(got));
        else
            assert_true((double)got == expected && !signbit(got) == !signbit(expected));
    }
}

/* A header that is not padded puts the data at an odd byte; such tensors are copied to where they may be read. */
static void misaligned_data(void **state) {
    (void)state;
    static const char header[] = "{\"w\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}";
    const uint16_t values[3] = {0x3f80, 0x4000, 0x4040};
    const char *folder = test_path("misaligned");
    mkdir(folder, 0777);
    char path[1100];
    unsigned char file[8 + sizeof header - 1 + 1 + 6] = {0};
    size_t size = sizeof header - 1;
    if ((8 + size) % 2 == 0) size++; /* a space, so that the data begins at an odd byte */
    memset(file + 8, ' ', size);
    memcpy(file + 8, header, sizeof header - 1);
    file[0] = (unsigned char)size;
    memcpy(file + 8 + size, values, sizeof values);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    test_write(path, file, 8 + size + sizeof values);
    struct lk_checkpoint cp;
    assert_ok(lk_checkpoint_open(&cp, folder, "model"));
    struct lk_bind *b;
    struct lk_tensor out;
    void *owned;
    assert_ok(lk_bind_begin(&b, &cp, "vae", LK_BF16));
    LK_BIND(b, &out, LK_SHAPE(3), "w");
    assert_ok(lk_bind_finish(b, &owned, NULL));
    assert_int_equal((uintptr_t)out.data % 2, 0);
    assert_memory_equal(out.data, values, sizeof values);
    lk_free(owned);
    lk_checkpoint_close(&cp);
}

static void prefixes_and_ignored_tensors(void **state) {
    (void)state;
    const struct lk_st_named tensors[] = {
        {"model.language_model.embed.weight", LK_TENSOR(zeros, LK_BF16, 4)},
        {"model.vision_tower.a", LK_TENSOR(zeros, LK_BF16, 4)},
        {"model.vision_tower.b", LK_TENSOR(zeros, LK_I64, 4)},
        {"lm_head.weight", LK_TENSOR(zeros, LK_BF16, 4)},
    };
    static const char *const prefixes[] = {"", "language_model.model.", "model.language_model.", NULL};
    struct lk_checkpoint cp = write_and_open(tensors, 4);
    struct lk_bind *b;
    struct lk_tensor out;
    void *owned;
    assert_ok(lk_bind_begin(&b, &cp, "text_encoder", LK_BF16));
    lk_bind_prefix(b, "embed.weight", prefixes);
    LK_BIND(b, &out, LK_SHAPE(4), "embed.weight");
    lk_bind_ignore(b, "model.vision_tower.");
    lk_bind_ignore(b, "lm_head.");
    assert_ok(lk_bind_finish(b, &owned, NULL));
    assert_null(owned);
    assert_ptr_equal(out.data, lk_checkpoint_find(&cp, "model.language_model.embed.weight")->tensor.data);

    assert_ok(lk_bind_begin(&b, &cp, "text_encoder", LK_BF16)); /* an ignored prefix that is not quite one */
    lk_bind_prefix(b, "embed.weight", prefixes);
    LK_BIND(b, &out, LK_SHAPE(4), "embed.weight");
    lk_bind_ignore(b, "vision_tower.");
    lk_bind_ignore(b, "lm_head");
    assert_fails(lk_bind_finish(b, &owned, NULL), LK_E_BIND,
                 "2 not expected: model.vision_tower.a, model.vision_tower.b");

    assert_ok(lk_bind_begin(&b, &cp, "text_encoder", LK_BF16)); /* no prefix fits */
    lk_bind_prefix(b, "tok_embeddings.weight", prefixes);
    lk_bind_ignore(b, "");
    assert_fails(lk_bind_finish(b, &owned, NULL), LK_E_BIND, "missing: tok_embeddings.weight");
    lk_checkpoint_close(&cp);
}

static void without_a_checkpoint_it_counts(void **state) {
    (void)state;
    struct lk_tensor out[N_TENSORS];
    struct lk_bind_totals totals;
    void *owned;
    for (int i = 0; i < 2; i++) {
        enum lk_dtype compute = i ? LK_F32 : LK_BF16;
        assert_ok(bind_model(NULL, compute, out, &owned, &totals));
        assert_null(owned);
        assert_int_equal(totals.n_tensors, N_TENSORS);
        assert_int_equal(totals.parameters, 104);
        assert_int_equal(totals.weight_bytes, 104 * lk_dtype_size(compute));
        for (int t = 0; t < N_TENSORS; t++) {
            assert_true((uintptr_t)out[t].data >> 60); /* nowhere, and not where another one is */
            for (int u = 0; u < t; u++)
                assert_true((uintptr_t)out[t].data - (uintptr_t)out[u].data >= lk_tensor_bytes(&out[u]));
            assert_int_equal(out[t].dtype, compute);
            assert_int_equal(out[t].n_dims, model[t].n_dims);
            assert_memory_equal(out[t].shape, model[t].shape, (size_t)model[t].n_dims * sizeof(int64_t));
        }
    }
    struct lk_bind *b; /* a prefix is chosen without weights as well */
    assert_ok(lk_bind_begin(&b, NULL, "x", LK_BF16));
    lk_bind_prefix(b, "probe", (const char *const[]){"first.", "second.", NULL});
    lk_bind_ignore(b, "x");
    assert_ok(lk_bind_finish(b, &owned, NULL));
}

static void absurd_requests(void **state) {
    (void)state;
    struct lk_bind *b;
    struct lk_tensor out;
    void *owned;
    int64_t large[8] = {INT64_MAX / 2, INT64_MAX / 2, 2, 2, 2, 2, 2, 2}, negative[1] = {-1};
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    assert_fails(lk_bind_begin(&b, NULL, "x", LK_F16), LK_E_INTERNAL, "f16");
    for (int kind = 0; kind < 5; kind++) {
        assert_ok(lk_bind_begin(&b, NULL, "x", LK_BF16));
        if (kind == 0) lk_bind_tensor(b, &out, 8, large, "w");
        if (kind == 1) lk_bind_tensor(b, &out, 1, negative, "w");
        if (kind == 2) lk_bind_tensor(b, &out, 9, large, "w");
        if (kind == 3) lk_bind_tensor(b, &out, 0, NULL, "%s", name);
        if (kind == 4)
            for (int i = 0; i < 40; i++) LK_BIND(b, &out, LK_SHAPE(INT64_MAX / 9), "w");
        assert_fails(lk_bind_finish(b, &owned, NULL), LK_E_BIND, "too large");
        assert_null(owned);
    }
}

/* M1 for weights: open, bind, close. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    struct lk_st_named tensors[N_TENSORS];
    fill(tensors);
    struct lk_checkpoint cp = write_and_open(tensors, N_TENSORS);
    char folder[1100];
    snprintf(folder, sizeof folder, "%s", cp.folder);
    lk_checkpoint_close(&cp);
    int64_t live = lk_alloc_live(), nth = 1;
    for (;; nth++) {
        struct lk_tensor out[N_TENSORS];
        void *owned;
        char identity[65];
        int64_t before = lk_alloc_count();
        lk_alloc_fail_at(nth);
        enum lk_code rc = lk_checkpoint_open(&cp, folder, "model");
        if (!rc) {
            rc = bind_model(&cp, LK_BF16, out, &owned, NULL);
            lk_free(owned);
            if (!rc) rc = lk_checkpoint_identity(&cp, identity);
            lk_checkpoint_close(&cp);
        }
        lk_alloc_fail_at(0);
        assert_int_equal(lk_alloc_live(), live);
        if (!rc) {
            assert_true(lk_alloc_count() - before < nth); /* no failure was swallowed */
            break;
        }
        if (rc != LK_E_NOMEM) fail_msg("allocation %d: code %d: %s", (int)nth, rc, lk_error_text());
    }
    assert_true(nth > 20);
    /* and when tensors are missing too: memory is named before what could not be looked up */
    fill(tensors);
    cp = write_and_open(tensors, N_TENSORS - 2);
    live = lk_alloc_live();
    for (nth = 1;; nth++) {
        struct lk_tensor out[N_TENSORS];
        void *owned;
        int64_t before = lk_alloc_count();
        lk_alloc_fail_at(nth);
        enum lk_code rc = bind_model(&cp, LK_BF16, out, &owned, NULL);
        lk_alloc_fail_at(0);
        assert_int_equal(lk_alloc_live(), live);
        if (rc == LK_E_BIND) {
            assert_true(lk_alloc_count() - before < nth);
            break;
        }
        assert_int_equal(rc, LK_E_NOMEM);
    }
    lk_checkpoint_close(&cp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tensor_wrong_in_turn),
        cmocka_unit_test(many_problems_are_counted),
        cmocka_unit_test(values_are_kept_or_converted_exactly),
        cmocka_unit_test(half_floats_widen_exactly),
        cmocka_unit_test(misaligned_data),
        cmocka_unit_test(prefixes_and_ignored_tensors),
        cmocka_unit_test(without_a_checkpoint_it_counts),
        cmocka_unit_test(absurd_requests),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
