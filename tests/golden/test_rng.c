/* Normal noise against torch.randn: golden/data/rng.txt, made by golden/generate_rng.py. */
#include "tests/common/test.h"

#include <inttypes.h>
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/bf16.h"
#include "engine/rng.h"
#include "engine/rng_normal.h"

struct sum {
    uint64_t value, position;
};

static void add_to_sum(struct sum *sum, uint64_t bits) {
    sum->value += (bits + 1) * (sum->position++ * 0x9e3779b97f4a7c16u + 1);
}

/* Draws n elements, adds their bits to `sum` and leaves them in bits. */
static void draw(struct lk_rng *rng, int bf16, size_t n, uint32_t *bits, struct sum *sum) {
    if (bf16) {
        uint16_t *values = lk_malloc(n * sizeof *values);
        lk_rng_normal_bf16(rng, values, n);
        for (size_t i = 0; i < n; i++) bits[i] = values[i];
        lk_free(values);
    } else {
        float *values = lk_malloc(n * sizeof *values);
        lk_rng_normal_f32(rng, values, n);
        memcpy(bits, values, n * sizeof *bits);
        lk_free(values);
    }
    for (size_t i = 0; i < n; i++) add_to_sum(sum, bits[i]);
}

static void check_sum_line(const char *line) {
    uint64_t seed, expected;
    size_t first, last;
    char kind[16], dtypes[16];
    assert_int_equal(
        sscanf(line, "sum %" SCNu64 " %15s %15s %zu %zu %" SCNu64, &seed, kind, dtypes, &first, &last, &expected), 6);
    int mixed = strcmp(dtypes, "f32+bf16") == 0, fresh = strcmp(kind, "fresh") == 0;
    uint32_t *bits = lk_malloc(last * sizeof *bits);
    struct sum sum = {0, 0};
    struct lk_rng rng;
    lk_rng_seed(&rng, seed);
    for (size_t n = first; n <= last; n++) {
        if (fresh) lk_rng_seed(&rng, seed);
        int bf16 = mixed ? (n - first) % 2 != 0 : strcmp(dtypes, "bf16") == 0;
        draw(&rng, bf16, n, bits, &sum);
    }
    lk_free(bits);
    if (sum.value != expected) fail_msg("%s: got %" PRIu64, line, sum.value);
}

static void check_values_line(const char *line) {
    uint64_t seed;
    size_t n;
    char dtype[16];
    int used;
    assert_int_equal(sscanf(line, "values %" SCNu64 " %15s %zu%n", &seed, dtype, &n, &used), 3);
    struct lk_rng rng;
    lk_rng_seed(&rng, seed);
    uint32_t *bits = lk_malloc(n * sizeof *bits);
    draw(&rng, strcmp(dtype, "bf16") == 0, n, bits, &(struct sum){0, 0});
    const char *p = line + used;
    for (size_t i = 0; i < n && i < 20; i++) {
        char *end;
        uint32_t expected = (uint32_t)strtoul(p, &end, 16);
        assert_ptr_not_equal(p, end);
        p = end;
        if (bits[i] != expected)
            fail_msg("seed %" PRIu64 " %s n %zu: element %zu is %x, not %x", seed, dtype, n, i, bits[i], expected);
    }
    lk_free(bits);
}

static void draws_equal_torch(void **state) {
    (void)state;
    size_t n_bytes;
    char *text = test_read("golden/data/rng.txt", &n_bytes);
    int n_sums = 0, n_values = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        if (strncmp(line, "sum ", 4) == 0) {
            check_sum_line(line);
            n_sums++;
        } else if (strncmp(line, "values ", 7) == 0) {
            check_values_line(line);
            n_values++;
        }
    }
    assert_int_equal(n_sums, 46);
    assert_int_equal(n_values, 36);
    free(text);
}

/* torch ends with a multiply-add of mean 0, so that a radius of zero gives plus zero whatever the angle. */
static void zero_radius_gives_plus_zero(void **state) {
    (void)state;
    float values[16] = {0};
    for (int j = 0; j < 8; j++) values[j + 8] = (float)j / 8;
    lk_rng_box_muller16(values);
    for (int i = 0; i < 16; i++) assert_true(values[i] == 0 && !signbit(values[i]));
}

/* Random123's known answers. */
static void philox_integers_are_the_published_ones(void **state) {
    (void)state;
    static const uint32_t known[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
         0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        lk_philox4x32_10(known[i], known[i] + 4, out);
        assert_memory_equal(out, known[i] + 6, sizeof out);
    }
}

static const struct lk_philox_device a100 = {108, 2048}, tiny = {1, 512};

/* torch.manual_seed(42); torch.randn(19, device="cuda"), as printed by torch on GPUs. */
static void philox_normals_equal_those_of_a_gpu(void **state) {
    (void)state;
    static const double printed[19] = {0.1940,  2.1614, -0.1721, 0.8491,  -1.9244, 0.6530,  -0.6494,
                                       -0.8175, 0.5280, -1.2753, -1.6621, -0.3033, -0.0926, 0.1992,
                                       -1.1204, 1.8577, -0.7145, 0.6881,  0.7968};
    float values[19];
    uint16_t rounded[19];
    assert_int_equal(lk_philox_normal_f32(42, 0, &a100, values, 19), 4);
    assert_int_equal(lk_philox_normal_bf16(42, 0, &a100, rounded, 19), 4);
    for (int i = 0; i < 19; i++) {
        assert_true(fabs(values[i] - printed[i]) < 0.5001e-4);
        assert_int_equal(rounded[i], lk_f32_to_bf16(values[i]));
    }
}

/* cuRAND 10.4's curand_normal4 compiled for the host (sinf, cosf) and put in place as torch's kernel does: 512 threads,
 * seed 2^40 + 3, offset 8, 5,000 elements, so that there are three rounds and all four values are used. */
static void philox_normals_go_where_torch_puts_them(void **state) {
    (void)state;
    static const struct {
        int i;
        double value;
    } known[] = {
        {0, 0.464117676},     {1, -0.00327037717}, {255, 0.028064657},   {256, 1.15734088},    {511, -0.567909479},
        {512, -3.07460237},   {513, 1.36225712},   {1023, -1.57775629},  {1024, 0.236570939},  {1536, -0.217644706},
        {2047, -0.811414063}, {2048, 1.23813975},  {2049, 1.49254131},   {2560, -0.342628747}, {3583, -0.0228793249},
        {4095, -0.144442856}, {4096, 0.520722151}, {4097, -0.307658583}, {4608, -0.303142041}, {4999, 1.15877593},
    };
    float values[5000];
    assert_int_equal(lk_philox_normal_f32((1ull << 40) + 3, 8, &tiny, values, 5000), 8 + 3 * 4);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (fabs(values[known[i].i] - known[i].value) > 2e-6)
            fail_msg("element %d: %.9g, expected %.9g", known[i].i, values[known[i].i], known[i].value);
    assert_int_equal(lk_philox_normal_f32(1, 12, &tiny, values, 0), 12);
}

/* The whole noise of a 1024 x 1024 image: same integers on any GPU while there are threads for all. */
static void philox_depends_on_the_gpu_only_beyond_its_threads(void **state) {
    (void)state;
    const struct lk_philox_device h100 = {132, 2048};
    size_t n = 256 * 864 + 1;
    float *a = lk_malloc(n * sizeof *a), *h = lk_malloc(n * sizeof *h);
    lk_philox_normal_f32(9, 0, &a100, a, n - 1);
    lk_philox_normal_f32(9, 0, &h100, h, n - 1);
    assert_memory_equal(a, h, (n - 1) * sizeof *a);
    lk_philox_normal_f32(9, 0, &a100, a, n);
    lk_philox_normal_f32(9, 0, &h100, h, n);
    assert_memory_equal(a, h, (n - 1) * sizeof *a);
    assert_true(a[n - 1] != h[n - 1]);
    lk_free(a);
    lk_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_equal_torch),
        cmocka_unit_test(zero_radius_gives_plus_zero),
        cmocka_unit_test(philox_integers_are_the_published_ones),
        cmocka_unit_test(philox_normals_equal_those_of_a_gpu),
        cmocka_unit_test(philox_normals_go_where_torch_puts_them),
        cmocka_unit_test(philox_depends_on_the_gpu_only_beyond_its_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
