/* Quantised formats against what bitsandbytes and gguf-py computed, by SHA-256, and against the formats' definitions.
 */
#include "tests/common/test.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/base/isa.h"
#include "engine/quantized.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/quantized.h"
#include "engine/base/digest.h"
#include "weights/quant/quantize.h"
#include "weights/quant/source.h"

#define N_WEIGHTS ((int64_t)1 << 20)

static void assert_sha256(const void *bytes, size_t n, const char *expected) {
    char hex[65];
    lk_sha256(bytes, n, hex);
    assert_string_equal(hex, expected);
}

/* 2^20 bf16 weights of all sorts of exponents. */
static uint16_t *make_weights(void) {
    uint64_t state = 42;
    uint16_t *w = lk_malloc((size_t)N_WEIGHTS * sizeof *w);
    assert_non_null(w);
    for (int64_t i = 0; i < N_WEIGHTS; i++) {
        const uint64_t z = test_random(&state);
        w[i] = (uint16_t)((z >> 63) << 15 | (112 + ((z >> 58) & 7)) << 7 | ((z >> 51) & 127));
    }
    assert_int_equal(w[0], 0xbbba);
    assert_int_equal(w[3], 0x3b03);
    return w;
}

static void to_f32(const uint16_t *bf16, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = lk_bf16_to_f32(bf16[i]);
}

/* The bits of bitsandbytes' table; thresholds are midpoints in f32. */
static void levels_and_thresholds(void **unused) {
    (void)unused;
    static const uint32_t levels[16] = {0xbf800000, 0xbf3239b1, 0xbf066b30, 0xbeca32a0, 0xbe91a24d, 0xbe3d353f,
                                        0xbdba7871, 0,          0x3da2faff, 0x3e24cae3, 0x3e7c04dd, 0x3ead033a,
                                        0x3ee1a4b8, 0x3f1007ab, 0x3f3913b3, 0x3f800000};
    static const uint32_t thresholds[15] = {0xbf591cd8, 0xbf1c5270, 0xbeeb8480, 0xbeadea76, 0xbe703cec,
                                            0xbe0d38bc, 0xbd3a7871, 0x3d22faff, 0x3df64862, 0x3e5067e0,
                                            0x3e9582d4, 0x3ec753f9, 0x3f006d04, 0x3f248daf, 0x3f5c89da};
    assert_memory_equal(lk_nf4_levels, levels, sizeof levels);
    assert_memory_equal(lk_nf4_thresholds, thresholds, sizeof thresholds);
    for (int i = 0; i < 15; i++)
        assert_true(fabsf(lk_nf4_thresholds[i] - (lk_nf4_levels[i] + lk_nf4_levels[i + 1]) / 2) < 0x1p-24f);
}

/* Every ratio that two bf16 values can have: the code is the number of thresholds below the exact ratio. */
static void every_ratio(void **unused) {
    (void)unused;
    enum { BLOCK = 64, N_RATIOS = 2 * 12 * 128 };
    for (unsigned largest = 0x3f80; largest < 0x4000; largest++) {
        const double absmax = (double)lk_bf16_to_f32((uint16_t)largest);
        for (int i = 0; i < N_RATIOS; i += BLOCK - 1) {
            uint16_t w[BLOCK] = {(uint16_t)largest}, scale;
            unsigned char codes[BLOCK / 2];
            for (int k = 1; k < BLOCK && i + k <= N_RATIOS; k++) {
                const unsigned at = (unsigned)(i + k - 1) / 2, bits = largest < at ? 0 : largest - at;
                w[k] = (uint16_t)(bits | ((i + k) & 1u) << 15);
            }
            assert_int_equal(lk_quantize(LK_QUANTIZE_NF4, w, BLOCK, BLOCK, codes, &scale), -1);
            assert_int_equal(scale, largest);
            for (int k = 0; k < BLOCK; k++) {
                const double ratio = (double)lk_bf16_to_f32(w[k]) / absmax;
                int expected = 0;
                for (int t = 0; t < 15; t++) expected += ratio > (double)lk_nf4_thresholds[t];
                assert_int_equal(k % 2 ? codes[k / 2] & 15 : codes[k / 2] >> 4, expected);
            }
        }
    }
}

/* bitsandbytes 0.50.2: functional.quantize_4bit(w, blocksize, quant_type="nf4"), dequantize_4bit; w [1024, 1024]. */
static void nf4_is_bitsandbytes(void **unused) {
    (void)unused;
    static const struct {
        int block;
        const char *codes, *scales, *values;
    } expected[] = {
        {64, "9345c886cdeb8d05c70310bffb7c0abee5d472833c86692c7f521d4a5eabd955",
         "96a9a31168d0a518cb17a1b7c378d764579b5a8f0f87ac1d22930619815f5bc1",
         "e8b9eaec4367f297bde259b747281afe375634f015008a7bcc8415e70f413422"},
        {32, "36a7e473f94ace98405e92a548b1ca40ddbff5c1471d9f5d1f2513e9e998b45f",
         "21953e2a950a2cec71f9a25a40b833f4b661a8a8927da0b86aab8d0326211cbc",
         "f7cdab853e06816a458da376c33a53588b902e8c28d1c0058c0985f81ebc0fbc"},
    };
    uint16_t *w = make_weights(), *values = lk_malloc((size_t)N_WEIGHTS * 2), *scales = lk_malloc(1 << 16);
    unsigned char *codes = lk_malloc((size_t)N_WEIGHTS / 2);
    float *wide = lk_malloc(1 << 17);
    for (int i = 0; i < 2; i++) {
        const int block = expected[i].block;
        const int64_t n_scales = N_WEIGHTS / block;
        assert_int_equal(lk_quantize(LK_QUANTIZE_NF4, w, N_WEIGHTS, block, codes, scales), -1);
        assert_sha256(codes, (size_t)N_WEIGHTS / 2, expected[i].codes);
        to_f32(scales, n_scales, wide);
        assert_sha256(wide, (size_t)n_scales * 4, expected[i].scales);
        struct lk_tensor t = LK_TENSOR(codes, LK_NF4, 1024, 1024);
        t.scales = (struct lk_scales){i ? (void *)wide : scales, i ? LK_F32 : LK_BF16, block};
        lk_dequantize(&t, 0, N_WEIGHTS, values);
        assert_sha256(values, (size_t)N_WEIGHTS * 2, expected[i].values);
    }
    lk_free(w), lk_free(values), lk_free(scales), lk_free(codes), lk_free(wide);
}

/* Weights of many kinds, ends and blocks of zeros among them: golden/generate_quant.py says how they are made. With
 * LIKENESS_TEST_FULL 10^8 of them. */
static void many_kinds_of_weights(void **unused) {
    (void)unused;
    char *table = test_read("golden/data/quantized/bitsandbytes.csv", &(size_t){0}), *rest = table;
    uint16_t *w = lk_malloc((size_t)N_WEIGHTS * 2), *values = lk_malloc((size_t)N_WEIGHTS * 2),
             *scales = lk_malloc(1 << 16);
    unsigned char *codes = lk_malloc((size_t)N_WEIGHTS / 2);
    float *wide = lk_malloc(1 << 17);
    int64_t total = 0;
    strtok_r(rest, "\n", &rest);
    for (char *row; (row = strtok_r(rest, "\n", &rest));) {
        char name[16], expected[3][65];
        long long n, seed, least, count;
        int block;
        assert_int_equal(sscanf(row, "%15[^,],%lld,%lld,%lld,%lld,%d,%64[^,],%64[^,],%64s", name, &n, &seed, &least,
                                &count, &block, expected[0], expected[1], expected[2]),
                         9);
        if (!strcmp(name, "full") && !getenv("LIKENESS_TEST_FULL")) break;
        uint64_t state = (uint64_t)seed;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t z = test_random(&state), exponent = (uint64_t)least + (z >> 58 & 31) % (uint64_t)count;
            w[i] = (uint16_t)((z >> 63) << 15 | exponent << 7 | (z >> 51 & 127));
            if (n > 1000 && i >= 256 && i < 384) w[i] &= 0x8000;
        }
        const int64_t n_scales = (n + block - 1) / block;
        assert_int_equal(lk_quantize(LK_QUANTIZE_NF4, w, n, block, codes, scales), -1);
        assert_sha256(codes, (size_t)(n + 1) / 2, expected[0]);
        to_f32(scales, n_scales, wide);
        assert_sha256(wide, (size_t)n_scales * 4, expected[1]);
        struct lk_tensor t = LK_TENSOR(codes, LK_NF4, n);
        t.scales = (struct lk_scales){scales, LK_BF16, block};
        lk_cpu_dequantize()(&t, 0, n, values);
        assert_sha256(values, (size_t)n * 2, expected[2]);
        total += n;
    }
    assert_true(total > (getenv("LIKENESS_TEST_FULL") ? 100000000 : 2800000));
    lk_free(w), lk_free(values), lk_free(scales), lk_free(codes), lk_free(wide);
    free(table);
}

/* The scales of double quantisation, whose map is the signed dynamic one of 8 bits. */
static int by_value(const void *a, const void *b) {
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}
static void make_map(float map[256]) {
    int n = 0;
    for (int i = 0; i < 7; i++) {
        const int points = (1 << i) + 1;
        const float step = 0.9f / (float)(points - 1), ten = (float)pow(10, i - 6);
        for (int j = 0; j < points - 1; j++) {
            float ends[2]; /* torch.linspace(0.1, 1, points), which comes from both sides */
            for (int k = j; k < j + 2; k++)
                ends[k - j] = k < points / 2 ? fmaf(step, (float)k, 0.1f) : fmaf(-step, (float)(points - 1 - k), 1);
            map[n++] = (ends[0] + ends[1]) / 2 * ten;
            map[n] = -map[n - 1];
            n++;
        }
    }
    map[n++] = 0;
    map[n++] = 1;
    assert_int_equal(n, 256);
    qsort(map, 256, sizeof *map, by_value);
}

static void nested_scales(void **unused) {
    (void)unused;
    enum { N = 16384, N_NESTED = 64 };
    uint64_t state = 7;
    static unsigned char codes[N];
    static float map[256], out[N];
    float nested[N_NESTED];
    for (int i = 0; i < N; i += 8) {
        const uint64_t z = test_random(&state);
        memcpy(codes + i, &z, 8);
    }
    state = 9;
    for (int i = 0; i < N_NESTED; i++) {
        const uint32_t bits = 0x3c000000u | (uint32_t)(test_random(&state) >> 41);
        memcpy(&nested[i], &bits, 4);
    }
    make_map(map);
    struct lk_quant_source source = {.n_scales = N,
                                     .scales = codes,
                                     .nested_map = (const unsigned char *)map,
                                     .nested_scales = (const unsigned char *)nested,
                                     .nested_offset = (float)0.05213481932878494};
    assert_ok(lk_quant_source_scale_dtype(&source, "w"));
    assert_int_equal(source.tensor.scales.dtype, LK_F32);
    lk_quant_source_scales(&source, out);
    assert_sha256(map, sizeof map, "e732639a65f497b4ad684bb166a4467708255edd5207757de8b8f0c7e1fda89c");
    assert_sha256(out, sizeof out, "c803c9f8c55efef091c6522fef814816ac31535e0707a5e336b7a974cdd085e4");
}

/* gguf-py 0.19, quants.dequantize of random bytes with sane f16 fields, rounded to bf16. */
static void gguf_blocks(void **unused) {
    (void)unused;
    static const struct {
        enum lk_dtype dtype;
        int halves[2]; /* where the f16 fields lie */
    } types[] = {{LK_Q8_0, {0, 0}}, {LK_Q4_0, {0, 0}}, {LK_Q4_K, {0, 2}}, {LK_Q5_K, {0, 2}}, {LK_Q6_K, {208, 208}}};
    char *table = test_read("golden/data/quantized/gguf.csv", &(size_t){0}), *rest = table;
    int64_t total = 0;
    strtok_r(rest, "\n", &rest);
    for (char *row; (row = strtok_r(rest, "\n", &rest));) {
        char name[8], expected[65];
        long long seed, n_blocks;
        size_t i = 0;
        assert_int_equal(sscanf(row, "%7[^,],%lld,%lld,%64s", name, &seed, &n_blocks, expected), 4);
        if (n_blocks > 64 && !getenv("LIKENESS_TEST_FULL")) break;
        while (strcmp(lk_dtype_name(types[i].dtype), name)) assert_true(++i < sizeof types / sizeof *types);
        const size_t size = lk_dtype_size(types[i].dtype), bytes = (size_t)n_blocks * size;
        const int64_t n = n_blocks * lk_dtype_block(types[i].dtype);
        unsigned char *blocks = lk_malloc(bytes + 8);
        uint16_t *values = lk_malloc((size_t)n * 2);
        uint64_t state = (uint64_t)seed;
        for (size_t at = 0; at < bytes; at += 8) {
            const uint64_t z = test_random(&state);
            memcpy(blocks + at, &z, 8);
        }
        for (size_t at = 0; at < bytes; at += size)
            for (int h = 0; h < 2; h++) {
                unsigned char *half = blocks + at + types[i].halves[h] + 1;
                *half = (unsigned char)((*half & 0x83) | 0x2c);
            }
        struct lk_tensor t = LK_TENSOR(blocks, types[i].dtype, n);
        lk_cpu_dequantize()(&t, 0, n, values);
        assert_sha256(values, (size_t)n * 2, expected);
        lk_free(blocks);
        lk_free(values);
        total += n_blocks;
    }
    assert_true(total >= (getenv("LIKENESS_TEST_FULL") ? 5 << 20 : 5 * 64));
    free(table);
}

/* torch 2.15: code * scale in f32, rounded to bf16; all 256 codes with each of 1,000 scales. */
static void fp8_of_torch(void **unused) {
    (void)unused;
    static const struct {
        enum lk_dtype dtype;
        const char *sha256;
    } formats[] = {{LK_F8_E4M3, "c8db01a98d826fe454c4e4bd09f3e68076b460d354d1c859e5a625e124ee5f93"},
                   {LK_F8_E5M2, "393731f998f5f895a9b0111469bce5b2d5cc6684b8ec0f0716890ef2744794e5"}};
    static uint16_t values[1000 * 256];
    unsigned char codes[256];
    for (int i = 0; i < 256; i++) codes[i] = (unsigned char)i;
    for (size_t f = 0; f < 2; f++) {
        uint64_t state = 21;
        for (int i = 0; i < 1000; i++) {
            const uint64_t z = test_random(&state);
            const uint32_t bits = (uint32_t)((100 + ((z >> 58) & 31)) << 23 | ((z >> 35) & 0x7fffff));
            float scale;
            memcpy(&scale, &bits, sizeof scale);
            struct lk_tensor t = LK_TENSOR(codes, formats[f].dtype, 256);
            t.scales = (struct lk_scales){&scale, LK_F32, 0};
            lk_cpu_dequantize()(&t, 0, 256, values + 256 * i);
        }
        for (size_t i = 0; i < 256000; i++)
            if ((values[i] & 0x7fff) > 0x7f80) values[i] = 0x7fc0;
        assert_sha256(values, sizeof values, formats[f].sha256);
    }
}

/* All instruction levels give the bits of the plain loops, NaN included. */
static void levels_of_instructions(void **unused) {
    (void)unused;
    enum { N = 256 * 64 };
    uint64_t state = 3;
    static unsigned char data[N * 2];
    static uint16_t plain[N], got[N];
    const float scale = 0.0371f;
    const enum lk_isa before = lk_cpu_isa();
    for (enum lk_isa isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++) {
        if (lk_cpu_isa_set(isa) != isa) continue;
        for (int d = LK_FIRST_QUANTIZED; d < LK_DTYPE_COUNT; d++) {
            for (size_t i = 0; i < sizeof data; i++)
                data[i] = d <= LK_F8_E5M2 ? (unsigned char)i : (unsigned char)(test_random(&state) & 0xdf);
            struct lk_tensor t = LK_TENSOR(data, (enum lk_dtype)d, N);
            t.scales = (struct lk_scales){(void *)(uintptr_t)&scale, LK_F32, d == LK_NF4 || d == LK_Q8 ? N : 0};
            lk_dequantize(&t, 0, N, plain);
            lk_cpu_dequantize()(&t, 0, N, got);
            if (memcmp(got, plain, sizeof got))
                fail_msg("%s, %s", lk_dtype_name((enum lk_dtype)d), lk_cpu_isa_name(isa));
        }
    }
    lk_cpu_isa_set(before);
}

/* Any window of a matrix is the same as its part of the whole, blocks that cross rows and ends included. */
static void windows(void **unused) {
    (void)unused;
    static const enum lk_dtype dtypes[] = {LK_F8_E4M3, LK_F8_E5M2, LK_NF4, LK_Q8, LK_Q8_0, LK_Q4_0, LK_Q4_K, LK_Q6_K};
    enum { N = 3421 };
    uint64_t state = 3;
    unsigned char data[4096], scale_bytes[256];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(test_random(&state) & 0x5f);
    for (size_t i = 0; i < sizeof scale_bytes; i++) scale_bytes[i] = (unsigned char)(test_random(&state) & 0x3f);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        uint16_t whole[N], part[N];
        struct lk_tensor t = LK_TENSOR(data, dtypes[d], N);
        t.scales = (struct lk_scales){scale_bytes, LK_BF16, dtypes[d] == LK_NF4 || dtypes[d] == LK_Q8 ? 64 : 0};
        lk_dequantize(&t, 0, N, whole);
        for (int i = 0; i < 200; i++) {
            const int64_t first = (int64_t)(test_random(&state) % N),
                          n = (int64_t)(test_random(&state) % (N - (uint64_t)first));
            lk_dequantize(&t, first, n, part);
            assert_memory_equal(part, whole + first, (size_t)n * 2);
        }
    }
}

/* Normalised mean square error of a form on n normals, or on Student's t with five degrees of freedom. */
static double nmse(enum lk_quantize how, int64_t n, bool student) {
    uint64_t state = 5;
    uint16_t *w = lk_malloc((size_t)n * 2), *values = lk_malloc((size_t)n * 2), *scales = lk_malloc((size_t)n / 32);
    unsigned char *codes = lk_malloc((size_t)n);
    double error = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double chi = 0, x = test_normal(&state);
        for (int j = 0; student && j < 5; j++) chi += pow(test_normal(&state), 2);
        w[i] = lk_f32_to_bf16((float)(0.02 * (student ? x / sqrt(chi / 5) : x)));
    }
    assert_int_equal(lk_quantize(how, w, n, LK_QUANTIZE_BLOCK, codes, scales), -1);
    struct lk_tensor t = LK_TENSOR(codes, lk_quantize_dtype(how), n);
    t.scales = (struct lk_scales){scales, LK_BF16, LK_QUANTIZE_BLOCK};
    lk_dequantize(&t, 0, n, values);
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)lk_bf16_to_f32(w[i]), d = (double)lk_bf16_to_f32(values[i]) - x;
        error += d * d;
        norm += x * x;
    }
    lk_free(w), lk_free(values), lk_free(scales), lk_free(codes);
    return error / norm;
}

static void errors_of_our_forms(void **unused) {
    (void)unused;
    const int64_t n = getenv("LIKENESS_TEST_FULL") ? 1 << 22 : 1 << 18;
    for (int student = 0; student < 2; student++) {
        const double nf4 = nmse(LK_QUANTIZE_NF4, n, student), mse = nmse(LK_QUANTIZE_NF4_MSE, n, student);
        const double q8 = nmse(LK_QUANTIZE_Q8, n, student);
        print_message("%s: NMSE nf4 %.3e, nf4-mse %.3e (%.3f), q8 %.3e\n", student ? "t5" : "normal", nf4, mse,
                      mse / nf4, q8);
        assert_true(nf4 < (student ? 1.2e-2 : 8.6e-3));
        assert_true(mse <= (student ? 0.85 : 0.82) * nf4);
        assert_true(q8 <= (student ? 7.0e-5 : 4.0e-5));
    }
}

/* Beside an adapter: the bits of the product with the matrix that a packed weight stands for. */
static void packed_with_an_adapter(void **state) {
    (void)state;
    enum { N = 96, K = 128, R = 64, M = 150 };
    static const int64_t ms[] = {1, 12, 40, M};
    static uint16_t x[M * K], w[N * K], low[M * R], up[N * R], y[2][M * N], scales[N * K / LK_QUANTIZE_BLOCK];
    static unsigned char codes[N * K];
    const struct {
        uint16_t *values;
        int64_t n;
    } made[] = {{x, M * K}, {w, N * K}, {low, M * R}, {up, N * R}};
    const enum lk_isa most = lk_cpu_isa();
    for (int isa = LK_ISA_PORTABLE; isa <= LK_ISA_AMX; isa++)
        for (int i = 0; i < 8; i++) {
            if (lk_cpu_isa_set((enum lk_isa)isa) != (enum lk_isa)isa) continue;
            const enum lk_quantize how = i % 2 ? LK_QUANTIZE_NF4 : LK_QUANTIZE_Q8;
            uint64_t seed = 31 + (uint64_t)i;
            for (int j = 0; j < 4; j++)
                for (int64_t k = 0; k < made[j].n; k++) made[j].values[k] = lk_f32_to_bf16((float)test_normal(&seed));
            assert_int_equal(lk_quantize(how, w, N * K, LK_QUANTIZE_BLOCK, codes, scales), -1);
            struct lk_tensor packed = LK_TENSOR(codes, lk_quantize_dtype(how), N, K);
            packed.scales = (struct lk_scales){scales, LK_BF16, LK_QUANTIZE_BLOCK};
            lk_dequantize(&packed, 0, N * K, w);
            for (int plain = 0; plain < 2; plain++) {
                const struct lk_device dev = {.kind = LK_DEVICE_CPU, .n_threads = 3};
                const struct lk_tensor tx = LK_TENSOR(x, LK_BF16, ms[i / 2], K), tw = LK_TENSOR(w, LK_BF16, N, K),
                                       tl = LK_TENSOR(low, LK_BF16, ms[i / 2], R), tu = LK_TENSOR(up, LK_BF16, N, R),
                                       ty = LK_TENSOR(y[plain], LK_BF16, ms[i / 2], N);
                const struct lk_linear op = {.y = &ty, .x = &tx, .w = plain ? &tw : &packed, .low = &tl, .up = &tu};
                void *scratch = lk_malloc(lk_cpu_linear_scratch(&dev, &op));
                assert_ok(lk_cpu_linear((struct lk_device *)(uintptr_t)&dev, &op, scratch));
                lk_free(scratch);
            }
            assert_memory_equal(y[0], y[1], (size_t)(ms[i / 2] * N) * sizeof(uint16_t));
        }
    lk_cpu_isa_set(most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_and_thresholds),  cmocka_unit_test(every_ratio),
        cmocka_unit_test(nf4_is_bitsandbytes),    cmocka_unit_test(many_kinds_of_weights),
        cmocka_unit_test(nested_scales),          cmocka_unit_test(gguf_blocks),
        cmocka_unit_test(levels_of_instructions), cmocka_unit_test(windows),
        cmocka_unit_test(errors_of_our_forms),    cmocka_unit_test(packed_with_an_adapter),
        cmocka_unit_test(fp8_of_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
