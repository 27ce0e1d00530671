/* Rotary tables against diffusers and transformers: golden/data/rope_table.txt, made by golden/generate_rope_table.py.
 *
 * Float tables: one frequency of M-RoPE is an ulp apart (torch's float pow), a twentieth of the cosines and sines are
 * an ulp apart (torch's float functions; ours are rounded from double). That moves values by 1e-7 at most. */
#include "tests/common/test.h"

#include <math.h>

#include "engine/rope_table.h"

enum { MOST_PAIRS = 64, MOST_AXES = 3 };

struct kind {
    const char *word;
    int n_lines, n_axes, sizes[MOST_AXES]; /* pairs per axis */
    double least_equal;                    /* share of all values with the very bits */
    void (*table)(const double *ids, float *cos_out, float *sin_out);
};

/* Tables of two positions, the second of which is the golden's. */
static void ints(const double *ids, int n_axes, int32_t *out) {
    for (int i = 0; i < n_axes; i++) out[i] = 3 + i, out[n_axes + i] = (int32_t)ids[i];
}

static void table_f32(const double *ids, float *cos_out, float *sin_out) {
    int32_t both[2 * MOST_AXES];
    ints(ids, 3, both);
    lk_rope_table_f32(both, 2, (const int[]){16, 56, 56}, 3, 10000.0, cos_out, sin_out);
}

static void table_vision(const double *ids, float *cos_out, float *sin_out) {
    int32_t both[2 * MOST_AXES];
    ints(ids, 2, both);
    lk_rope_table_f32(both, 2, (const int[]){40, 40}, 2, 10000.0, cos_out, sin_out);
}

static void table_mrope(const double *ids, float *cos_out, float *sin_out) {
    int32_t both[2 * MOST_AXES];
    ints(ids, 3, both);
    lk_rope_table_mrope(both, 2, (const int[]){16, 24, 24}, 3, 128, 1e6, false, cos_out, sin_out);
}

static void table_mrope_bf16(const double *ids, float *cos_out, float *sin_out) {
    int32_t both[2 * MOST_AXES];
    ints(ids, 3, both);
    lk_rope_table_mrope(both, 2, (const int[]){16, 24, 24}, 3, 128, 1e6, true, cos_out, sin_out);
}

static void table_f64(const double *ids, float *cos_out, float *sin_out) {
    const float both[2 * MOST_AXES] = {3, 4, 5, (float)ids[0], (float)ids[1], (float)ids[2]};
    lk_rope_table(both, 2, (const int[]){16, 56, 56}, 3, 10000.0, cos_out, sin_out);
}

static const struct kind kinds[] = {
    {"f32", 7, 3, {8, 28, 28}, 0.9, table_f32},      {"vision", 4, 2, {20, 20}, 0.9, table_vision},
    {"mrope", 4, 3, {16, 24, 24}, 0.9, table_mrope}, {"mrope_bf16", 4, 3, {16, 24, 24}, 0.98, table_mrope_bf16},
    {"f64", 4, 3, {8, 28, 28}, 1.0, table_f64},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

struct count {
    int lines, values, equal;
};

static const char *read_floats(const char *text, float *out, int n) {
    for (int i = 0; i < n; i++) {
        char *end;
        uint32_t bits = (uint32_t)strtoul(text, &end, 16);
        assert_ptr_not_equal(text, end);
        memcpy(out + i, &bits, sizeof bits);
        text = end;
    }
    return text;
}

/* bf16: the next value, where the float is as near as that to the tie between both. */
static double tolerance(const struct kind *kind, float expected) {
    if (kind->table == table_f64) return 0.0;
    return kind->table == table_mrope_bf16 ? fabs((double)expected) / 128 : 1.2e-7;
}

static void check_line(const struct kind *kind, const char *text, struct count *count) {
    double ids[MOST_AXES] = {0};
    float got[2][2 * MOST_PAIRS], want[2 * MOST_PAIRS];
    char *at = (char *)text;
    int n = 0;
    for (int i = 0; i < kind->n_axes; i++) {
        ids[i] = strtod(at, &at);
        n += kind->sizes[i];
    }
    read_floats(at, want, 2 * n);
    kind->table(ids, got[0], got[1]);
    for (int i = 0; i < 2 * n; i++) {
        float value = got[i / n][n + i % n];
        if (!(fabs((double)value - want[i]) <= tolerance(kind, want[i])))
            fail_msg("%s %s: pair %d: expected %.9g, got %.9g", kind->word, i < n ? "cos" : "sin", i % n, want[i],
                     value);
        count->equal += value == want[i];
    }
    count->values += 2 * n;
    count->lines++;
}

static void values_equal_the_reference(void **state) {
    (void)state;
    struct count counts[N_KINDS] = {0};
    size_t n_bytes;
    char *text = test_read("golden/data/rope_table.txt", &n_bytes);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        for (int k = 0; k < N_KINDS; k++) {
            size_t n = strlen(kinds[k].word);
            if (strncmp(line, kinds[k].word, n) == 0 && line[n] == ' ') check_line(&kinds[k], line + n, &counts[k]);
        }
    free(text);
    for (int k = 0; k < N_KINDS; k++) {
        assert_int_equal(counts[k].lines, kinds[k].n_lines);
        print_message("%s: %d of %d values equal\n", kinds[k].word, counts[k].equal, counts[k].values);
        assert_true(counts[k].equal >= kinds[k].least_equal * counts[k].values);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_equal_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
