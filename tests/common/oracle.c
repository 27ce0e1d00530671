#include "tests/common/oracle.h"

#define SENTINEL 0xa5

int64_t oracle_int(struct oracle *o, int64_t least, int64_t most) {
    return least + (int64_t)(test_random(&o->random) % (uint64_t)(most - least + 1));
}

static int64_t place_of(const struct lk_tensor *t, int64_t i) {
    int64_t row = lk_tensor_row_numel(t);
    return i / row * t->ld + i % row;
}

double oracle_get(const struct lk_tensor *t, int64_t i) {
    int64_t place = place_of(t, i);
    switch (t->dtype) {
    case LK_BF16:
        return lk_bf16_to_f32(((const uint16_t *)t->data)[place]);
    case LK_U8:
        return ((const uint8_t *)t->data)[place];
    case LK_I32:
        return ((const int32_t *)t->data)[place];
    default:
        return ((const float *)t->data)[place];
    }
}

void oracle_set(const struct lk_tensor *t, int64_t i, double value) {
    int64_t place = place_of(t, i);
    switch (t->dtype) {
    case LK_BF16:
        ((uint16_t *)t->data)[place] = lk_f32_to_bf16((float)value);
        break;
    case LK_U8:
        ((uint8_t *)t->data)[place] = (uint8_t)(int)value;
        break;
    case LK_I32:
        ((int32_t *)t->data)[place] = (int32_t)value;
        break;
    default:
        ((float *)t->data)[place] = (float)value;
    }
}

double oracle_round(enum lk_dtype dtype, double value) {
    return dtype == LK_BF16 ? lk_round_bf16((float)value) : (double)(float)value;
}

double oracle_act(enum lk_act act, double x) {
    switch (act) {
    case LK_ACT_SILU:
        return x / (1.0 + exp(-x));
    case LK_ACT_GELU_TANH:
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case LK_ACT_GELU_ERF:
        return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    case LK_ACT_QUICK_GELU:
        return x / (1.0 + exp(-1.702 * x));
    default:
        return x;
    }
}

static double draw(struct oracle *o, enum oracle_fill fill) {
    double normal = test_normal(&o->random);
    switch (fill) {
    case FILL_OFFSET:
        return 50.0 + normal;
    case FILL_EXTREME:
        return normal * pow(10.0, 45.0 * test_uniform(&o->random) - 30.0);
    case FILL_SMALL:
        return 1e-3 * normal;
    default:
        return normal;
    }
}

static struct lk_tensor *add_tensor(struct oracle *o, struct lk_tensor t) {
    assert_true(o->n_tensors < ORACLE_MOST);
    int i = o->n_tensors++;
    o->tensors[i].bytes = (size_t)((t.shape[0] - 1) * t.ld + lk_tensor_row_numel(&t)) * lk_dtype_size(t.dtype);
    o->tensors[i].block = malloc(o->tensors[i].bytes + 2 * ORACLE_GUARD);
    assert_non_null(o->tensors[i].block);
    memset(o->tensors[i].block, SENTINEL, o->tensors[i].bytes + 2 * ORACLE_GUARD);
    t.data = o->tensors[i].block + ORACLE_GUARD;
    o->tensors[i].t = t;
    return &o->tensors[i].t;
}

struct lk_tensor *oracle_tensor(struct oracle *o, enum lk_dtype dtype, bool window, enum oracle_fill fill, int n_dims,
                                const int64_t *shape) {
    struct lk_tensor t = lk_tensor_make(NULL, dtype, n_dims, shape);
    if (window) t.ld += oracle_int(o, 0, 40);
    struct lk_tensor *added = add_tensor(o, t);
    int64_t n = fill == FILL_NONE ? 0 : lk_tensor_numel(added);
    for (int64_t i = 0; i < n; i++) oracle_set(added, i, draw(o, fill));
    return added;
}

struct lk_tensor *oracle_clone(struct oracle *o, const struct lk_tensor *t) {
    struct lk_tensor *added = add_tensor(o, *t);
    int64_t n = lk_tensor_numel(added);
    for (int64_t i = 0; i < n; i++) oracle_set(added, i, oracle_get(t, i));
    return added;
}

void oracle_error_add(struct oracle_error *e, double got, double want) {
    if (got == want) got = want; /* equal infinities */
    double difference = got == want ? 0.0 : got - want;
    e->squares += difference * difference;
    if (isfinite(want)) e->norm += want * want;
    e->n++;
}

void oracle_error_check(const struct oracle_error *e, enum lk_dtype dtype) {
    double bar = dtype == LK_BF16 ? 1e-5 : 1e-10, error = e->norm > 0.0 ? e->squares / e->norm : e->squares;
    if (!(error <= bar)) fail_msg("NMSE: expected at most %g, got %g over %lld values", bar, error, (long long)e->n);
}

void oracle_exact(double got, double want) {
    if (got != want && !(isnan(got) && isnan(want))) fail_msg("expected exactly %.9g, got %.9g", want, got);
}

void oracle_same(const struct lk_tensor *a, const struct lk_tensor *b) {
    size_t row = (size_t)lk_tensor_row_numel(a) * lk_dtype_size(a->dtype);
    for (int64_t i = 0; i < a->shape[0]; i++) {
        struct lk_tensor row_a = lk_tensor_rows(a, i, 1), row_b = lk_tensor_rows(b, i, 1);
        if (memcmp(row_a.data, row_b.data, row)) fail_msg("row %lld: bits differ", (long long)i);
    }
}

void oracle_record(struct oracle *o, const struct lk_tensor *y) {
    size_t row = (size_t)lk_tensor_row_numel(y) * lk_dtype_size(y->dtype);
    for (int64_t i = 0; i < y->shape[0]; i++) {
        struct lk_tensor line = lk_tensor_rows(y, i, 1);
        for (size_t k = 0; k < row; k++) o->hash = (o->hash ^ ((const unsigned char *)line.data)[k]) * 0x100000001b3u;
    }
}

static void expect_sentinels(const unsigned char *from, size_t n, int tensor, const char *where) {
    for (size_t i = 0; i < n; i++)
        if (from[i] != SENTINEL) fail_msg("tensor %d: write %s the rows, byte %zu", tensor, where, i);
}

static void check_guards(const struct oracle *o) {
    for (int i = 0; i < o->n_tensors; i++) {
        const struct lk_tensor *t = &o->tensors[i].t;
        const unsigned char *block = o->tensors[i].block;
        size_t size = lk_dtype_size(t->dtype), row = (size_t)lk_tensor_row_numel(t) * size;
        expect_sentinels(block, ORACLE_GUARD, i, "before");
        expect_sentinels(block + ORACLE_GUARD + o->tensors[i].bytes, ORACLE_GUARD, i, "after");
        for (int64_t r = 0; r + 1 < t->shape[0]; r++)
            expect_sentinels(block + ORACLE_GUARD + (size_t)(r * t->ld) * size + row, (size_t)t->ld * size - row, i,
                             "between");
    }
}

static uint64_t run_once(oracle_case_fn *body, struct lk_device *dev, uint64_t seed, enum lk_dtype dtype) {
    struct oracle o = {.dev = dev, .random = seed, .hash = 0xcbf29ce484222325u, .dtype = dtype};
    body(&o);
    assert_int_equal(dev->arena.used, 0);
    check_guards(&o);
    for (int i = 0; i < o.n_tensors; i++) free(o.tensors[i].block);
    return o.hash;
}

static struct lk_device *device(int n_threads) {
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(n_threads, &dev));
    assert_ok(lk_device_prepare(dev, (size_t)48 << 20));
    return dev;
}

void oracle_run(oracle_case_fn *body, int n_cases) {
    enum lk_isa before = lk_cpu_isa();
    struct lk_device *dev = device(2);
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if ((int)lk_cpu_isa_set((enum lk_isa)isa) != isa) continue;
        for (int i = 0; i < n_cases; i++) {
            uint64_t seed = (uint64_t)i * 0x9e3779b97f4a7c15u + 1;
            enum lk_dtype dtype = i % 2 ? LK_BF16 : LK_F32;
            uint64_t hash = run_once(body, dev, seed, dtype);
            for (int threads = 1; threads <= 16 && i % 40 < 2; threads++) {
                int keep = dev->n_threads;
                dev->n_threads = threads;
                if (run_once(body, dev, seed, dtype) != hash)
                    fail_msg("case %d, %s: bits differ between %d threads and %d", i, lk_cpu_isa_name((enum lk_isa)isa),
                             threads, keep);
                dev->n_threads = keep;
            }
        }
    }
    lk_device_free(dev);
    lk_cpu_isa_set(before);
}
