#include "tests/common/oracle.h"

/* Row i of query head `head` in double. */
static void oracle_row(const struct lk_attention *op, int64_t i, int64_t head, double *p, double *out) {
    int64_t hd = op->q->shape[2], n_heads = op->q->shape[1], n_kv_heads = op->k->shape[1], n_k = op->k->shape[0];
    int64_t kv = head / (n_heads / n_kv_heads), n = op->causal ? i + n_k - op->q->shape[0] + 1 : n_k;
    double most = -INFINITY, sum = 0.0;
    for (int64_t j = 0; j < n; j++) {
        p[j] = 0.0;
        for (int64_t d = 0; d < hd; d++)
            p[j] +=
                oracle_get(op->q, (i * n_heads + head) * hd + d) * oracle_get(op->k, (j * n_kv_heads + kv) * hd + d);
        p[j] *= (double)op->scale;
        most = fmax(most, p[j]);
    }
    for (int64_t d = 0; d < hd; d++) out[d] = 0.0;
    for (int64_t j = 0; j < n; j++) {
        double e = exp(p[j] - most);
        sum += e;
        for (int64_t d = 0; d < hd; d++) out[d] += e * oracle_get(op->v, (j * n_kv_heads + kv) * hd + d);
    }
    for (int64_t d = 0; d < hd; d++) out[d] = oracle_round(op->out->dtype, out[d] / sum);
}

static int64_t pick_head_dim(struct oracle *o) {
    const int64_t usual[] = {16, 32, 64, 80, 128};
    int64_t kind = oracle_int(o, 0, 39);
    return kind == 0 ? 512 : kind == 1 ? 384 : kind < 10 ? oracle_int(o, 1, 140) : usual[kind % 5];
}

static void attention_case(struct oracle *o) {
    int64_t hd = pick_head_dim(o), n_kv_heads = oracle_int(o, 1, 3), n_heads = n_kv_heads * oracle_int(o, 1, 3);
    if (hd > 140) n_kv_heads = n_heads = 1;
    int64_t n_q = oracle_int(o, 1, oracle_int(o, 0, 5) ? 12 : 80),
            n_k = oracle_int(o, 1, oracle_int(o, 0, 3) ? 70 : 200);
    if (!oracle_int(o, 0, 15)) n_k = oracle_int(o, 480, 1300); /* several chunks of keys */
    bool causal = oracle_int(o, 0, 1), window = oracle_int(o, 0, 1);
    if (causal && n_k < n_q) n_k += n_q;
    struct lk_tensor *q = TENSOR(o, o->dtype, window, FILL_NORMAL, n_q, n_heads, hd);
    struct lk_tensor *k = TENSOR(o, o->dtype, window, FILL_NORMAL, n_k, n_kv_heads, hd);
    struct lk_tensor *v = TENSOR(o, o->dtype, window, FILL_NORMAL, n_k, n_kv_heads, hd);
    struct lk_tensor *out = TENSOR(o, o->dtype, window, FILL_NONE, n_q, n_heads, hd);
    float scale = 1.0f / sqrtf((float)hd) * (float)(double[]){1.0, 1.0, 4.0, 0.01}[oracle_int(o, 0, 3)];
    if (!oracle_int(o, 0, 5)) /* a maximum that keeps growing */
        for (int64_t i = 0; i < n_k * n_kv_heads * hd; i++)
            oracle_set(k, i, oracle_get(k, i) * 4.0 * (double)(i / hd) / (double)n_k);
    struct lk_attention op = {out, q, k, v, scale, causal};
    assert_ok(lk_attention(o->dev, &op));
    struct oracle_error error = {0};
    double p[2048], want[512];
    for (int64_t i = 0; i < n_q; i++)
        for (int64_t h = 0; h < n_heads; h++) {
            oracle_row(&op, i, h, p, want);
            for (int64_t d = 0; d < hd; d++)
                oracle_error_add(&error, oracle_get(out, (i * n_heads + h) * hd + d), want[d]);
        }
    oracle_error_check(&error, o->dtype);
    oracle_record(o, out);

    /* Some of the rows alone; with causal, the last ones see the same keys. */
    int64_t first = oracle_int(o, 0, n_q - 1), n = causal ? n_q - first : oracle_int(o, 1, n_q - first);
    struct lk_tensor *part = TENSOR(o, o->dtype, true, FILL_NONE, n, n_heads, hd);
    struct lk_tensor q_part = lk_tensor_rows(q, first, n), same = lk_tensor_rows(out, first, n);
    op.out = part, op.q = &q_part;
    assert_ok(lk_attention(o->dev, &op));
    oracle_same(part, &same);
}

static void test_against_oracle(void **state) {
    (void)state;
    oracle_run(attention_case, 200);
}

/* NaN in one key reaches every row that sees it, in all of its dimensions, and none far before it. */
static void test_nan_spreads(void **state) {
    (void)state;
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, (size_t)8 << 20));
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if ((int)lk_cpu_isa_set((enum lk_isa)isa) != isa) continue;
        enum { S = 100, D = 32 };
        float x[S * D], out[S * D];
        uint16_t x16[S * D], out16[S * D];
        for (int i = 0; i < S * D; i++) x[i] = i == 70 * D + 5 ? NAN : (float)((i * 7) % 11) * 0.1f;
        for (int i = 0; i < S * D; i++) x16[i] = lk_f32_to_bf16(x[i]);
        struct lk_tensor q = LK_TENSOR(x, LK_F32, S, 1, D), y = LK_TENSOR(out, LK_F32, S, 1, D);
        struct lk_tensor q16 = LK_TENSOR(x16, LK_BF16, S, 1, D), y16 = LK_TENSOR(out16, LK_BF16, S, 1, D);
        assert_ok(lk_attention(dev, &(struct lk_attention){&y, &q, &q, &q, 0.2f, true}));
        assert_ok(lk_attention(dev, &(struct lk_attention){&y16, &q16, &q16, &q16, 0.2f, true}));
        for (int i = 0; i < S * D; i += D) {
            if (i >= 32 * D && i < 70 * D) continue;
            for (int d = 0; d < D; d++) {
                assert_true(isnan(out[i + d]) == (i >= 70 * D));
                assert_true(isnan(lk_bf16_to_f32(out16[i + d])) == (i >= 70 * D));
            }
        }
    }
    lk_device_free(dev);
}

/* A step of text generation: a query alone with the keys so far has the bits that it has among later queries. */
static void decode_case(struct oracle *o) {
    static const int64_t shapes[][5] = {
        {37, 37, 28, 4, 128}, {40, 600, 7, 1, 128}, {64, 64, 16, 16, 80}, {9, 70, 1, 1, 384}};
    const int64_t *s = shapes[oracle_int(o, 0, 3)];
    int64_t n_q = s[0], n_k = s[1], n_heads = s[2], n_kv_heads = s[3], hd = s[4];
    struct lk_tensor *q = TENSOR(o, o->dtype, true, FILL_NORMAL, n_q, n_heads, hd);
    struct lk_tensor *k = TENSOR(o, o->dtype, true, FILL_NORMAL, n_k, n_kv_heads, hd);
    struct lk_tensor *v = TENSOR(o, o->dtype, true, FILL_NORMAL, n_k, n_kv_heads, hd);
    struct lk_tensor *out = TENSOR(o, o->dtype, true, FILL_NONE, n_q, n_heads, hd);
    struct lk_tensor *one = TENSOR(o, o->dtype, false, FILL_NONE, 1, n_heads, hd);
    struct lk_attention op = {out, q, k, v, 1.0f / sqrtf((float)hd), true};
    assert_ok(lk_attention(o->dev, &op));
    oracle_record(o, out);
    for (int i = 0; i < 3; i++) {
        int64_t row = (int64_t[]){0, oracle_int(o, 0, n_q - 1), n_q - 1}[i], n_seen = n_k - n_q + row + 1;
        struct lk_tensor query = lk_tensor_rows(q, row, 1), same = lk_tensor_rows(out, row, 1);
        struct lk_tensor keys = lk_tensor_rows(k, 0, n_seen), values = lk_tensor_rows(v, 0, n_seen);
        op = (struct lk_attention){one, &query, &keys, &values, op.scale, i > 0};
        assert_ok(lk_attention(o->dev, &op));
        oracle_same(one, &same);
    }
}

static void test_decoding(void **state) {
    (void)state;
    oracle_run(decode_case, 40);
}

/* A picture of one colour in a VAE: values that hardly differ, so that every addition of a long sum may err to the same
 * side. 1e-6: of chains of 64 keys, 16 blocks and 16 stretches (one chain over all keys: 4e-4). */
static void test_flat_values(void **state) {
    (void)state;
    enum { N_K = 16390, N_Q = 7, D = 20 };
    struct lk_device *dev;
    assert_ok(lk_device_cpu_create(1, &dev));
    assert_ok(lk_device_prepare(dev, (size_t)8 << 20));
    float *x = lk_malloc((size_t)(2 * N_K + N_Q) * D * sizeof *x), out[N_Q * D];
    double *p = lk_malloc(N_K * sizeof *p), want[D];
    assert_true(x && p);
    struct lk_tensor k = LK_TENSOR(x, LK_F32, N_K, 1, D), v = LK_TENSOR(x + N_K * D, LK_F32, N_K, 1, D);
    struct lk_tensor q = LK_TENSOR(x + 2 * N_K * D, LK_F32, N_Q, 1, D), y = LK_TENSOR(out, LK_F32, N_Q, 1, D);
    for (int i = 0; i < N_K * D; i++) {
        oracle_set(&k, i, 0.3 + 1e-3 * (i % 7));
        oracle_set(&v, i, 0.1 + 0.037 * (i % D) + 1e-4 * (i % 3));
    }
    for (int i = 0; i < N_Q * D; i++) oracle_set(&q, i, 0.01 * (i % 11));
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if ((int)lk_cpu_isa_set((enum lk_isa)isa) != isa) continue;
        for (int causal = 0; causal < 2; causal++) {
            struct lk_attention op = {&y, &q, &k, &v, 0.2f, causal};
            assert_ok(lk_attention(dev, &op));
            for (int64_t i = 0; i < N_Q; i++) {
                oracle_row(&op, i, 0, p, want);
                for (int64_t d = 0; d < D; d++) {
                    double error = fabs(oracle_get(&y, i * D + d) - want[d]) / want[d];
                    if (!(error < 1e-6)) fail_msg("%s: error %g", lk_cpu_isa_name((enum lk_isa)isa), error);
                }
            }
        }
    }
    lk_free(x);
    lk_free(p);
    lk_device_free(dev);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_nan_spreads),
                                       cmocka_unit_test(test_decoding), cmocka_unit_test(test_flat_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
