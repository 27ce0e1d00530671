#include "tests/common/golden.h"

#include "engine/bf16.h"
#include "tests/common/test.h"

#include <math.h>

static const char *const mode_names[] = {"f32", "f32 seed", "bf16"};

void golden_open(struct golden *golden, const char *path, const char *name) {
    memset(golden, 0, sizeof *golden);
    snprintf(golden->name, sizeof golden->name, "%s", name);
    assert_ok(lk_safetensors_open(&golden->st, path));
    const char *json = golden->st.metadata_json;
    assert_non_null(json);
    assert_ok(lk_config_parse(&golden->metadata, json, strlen(json), path));
}

void golden_close(struct golden *golden) {
    lk_config_discard(golden->metadata);
    lk_safetensors_close(&golden->st);
}

const char *golden_text(const struct golden *golden, const char *key) {
    const char *text = "";
    lk_config_string_or(golden->metadata, key, &text, "");
    return text;
}

double golden_number(const struct golden *golden, const char *key, double otherwise) {
    const char *text = golden_text(golden, key);
    return *text ? strtod(text, NULL) : otherwise;
}

static void widen(enum lk_dtype dtype, const void *data, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        switch (dtype) {
        case LK_F32:
            out[i] = ((const float *)data)[i];
            break;
        case LK_BF16:
            out[i] = lk_bf16_to_f32(((const uint16_t *)data)[i]);
            break;
        case LK_I32:
            out[i] = (float)((const int32_t *)data)[i];
            break;
        case LK_U8:
            out[i] = ((const uint8_t *)data)[i];
            break;
        default:
            fail_msg("a golden of dtype %s", lk_dtype_name(dtype));
        }
    }
}

static void *checked_malloc(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    assert_non_null(block);
    return block;
}

float *golden_values(const struct golden *golden, const char *name, size_t *n) {
    const struct lk_st_tensor *found = lk_safetensors_find(&golden->st, name);
    if (!found) fail_msg("%s has no tensor %s", golden->name, name);
    *n = (size_t)lk_tensor_numel(&found->tensor);
    float *values = checked_malloc(*n * sizeof *values);
    widen(found->tensor.dtype, found->tensor.data, *n, values);
    return values;
}

/* The worst of a stage, numbers in its name left out. */
struct row {
    char stage[64];
    double f32;
    double ours, reference; /* where the bf16 ratio is worst; the largest of the reference's errors */
    double log_ratios;      /* sum over n_ratios comparisons */
    int n_ratios;
    char where[192];
};

static struct {
    struct row rows[128];
    size_t n_rows;
} table;

static struct row *table_row(const char *name) {
    char stage[64];
    size_t n = 0;
    for (const char *c = name; *c && n + 1 < sizeof stage; c++) {
        bool digit = *c >= '0' && *c <= '9';
        if (digit && n && stage[n - 1] == '*') continue;
        bool number = digit && c > name && (c[-1] == '.' || stage[n - 1] == '*');
        stage[n++] = number ? '*' : *c;
    }
    stage[n] = 0;
    for (size_t i = 0; i < table.n_rows; i++)
        if (!strcmp(table.rows[i].stage, stage)) return &table.rows[i];
    assert_true(table.n_rows < sizeof table.rows / sizeof table.rows[0]);
    struct row *row = &table.rows[table.n_rows++];
    *row = (struct row){.f32 = -1, .ours = -1};
    memcpy(row->stage, stage, n + 1);
    return row;
}

static double ratio(double ours, double reference) {
    return reference > 0 ? ours / reference : ours > 0 ? INFINITY : 0;
}

static void add_failure(struct golden_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_failure(struct golden_check *check, const char *format, ...) {
    size_t used = strlen(check->failures);
    va_list args;
    va_start(args, format);
    vsnprintf(check->failures + used, sizeof check->failures - used, format, args);
    va_end(args);
    check->n_failed++;
}

/* What the reference's bf16 runs are off by in a stage; zeros in f32. */
struct reference_error {
    double typical, largest; /* the same where the golden has one run */
};

/* Puts an error into the table and holds it against its bound. */
static void judge(struct golden_check *check, const char *name, double ours, struct reference_error reference) {
    struct row *row = table_row(name);
    check->n_compared++;
    if (check->mode != GOLDEN_BF16) {
        if (ours > row->f32) row->f32 = ours;
        if (!(ours <= GOLDEN_F32_BOUND))
            add_failure(check, "  %s: relative error %.3g, allowed %.3g\n", name, ours, GOLDEN_F32_BOUND);
        return;
    }
    if (ours > 0 && reference.typical > 0) {
        row->log_ratios += log(ours / reference.typical);
        row->n_ratios++;
    }
    if (row->ours < 0 || ratio(ours, reference.largest) > ratio(row->ours, row->reference)) {
        row->ours = ours;
        row->reference = reference.largest;
        snprintf(row->where, sizeof row->where, "%s %s", check->golden->name, name);
    }
    if (!(ours <= GOLDEN_BF16_SINGLE * reference.largest))
        add_failure(check, "  %s: error %.4g, the reference's own %.4g, ratio %.3f, allowed %.2f\n", name, ours,
                    reference.largest, ratio(ours, reference.largest), GOLDEN_BF16_SINGLE);
}

static bool starts(const char *text, const char *prefix) { return !strncmp(text, prefix, strlen(prefix)); }

/* "every7.image" -> "image", *every 7; other names as they are, *every 1. */
static const char *skip_every(const char *name, int64_t *every) {
    *every = 1;
    if (!starts(name, "every")) return name;
    char *end;
    *every = strtol(name + strlen("every"), &end, 10);
    assert_true(*every > 0 && *end == '.');
    return end + 1;
}

/* The stage that a tensor of the file is for in this mode, NULL if none. *every: the file has every n-th row only. */
static const char *stage_of(const char *name, enum golden_mode mode, bool on_gpu, int64_t *every) {
    if (starts(name, "error.") || starts(name, "input.")) return NULL;
    if (mode == GOLDEN_F32_SEED) {
        if (!starts(name, "f32.")) return NULL;
        name += strlen("f32.");
    } else if (starts(name, "f32.")) {
        return NULL;
    } else if (starts(name, "bf16.")) {
        bool of_gpu = starts(name, "bf16.gpu.");
        if (mode != GOLDEN_BF16 || of_gpu != on_gpu) return NULL;
        name += strlen(of_gpu ? "bf16.gpu." : "bf16.");
    }
    name = skip_every(name, every);
    const char *const from_the_result[] = {"sigmas", "timesteps", "image"};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(name, from_the_result[i])) return NULL;
    return name;
}

void golden_check_begin(struct golden_check *check, struct golden *golden, enum golden_mode mode) {
    memset(check, 0, sizeof *check);
    check->golden = golden;
    check->mode = mode;
    check->seen = calloc(golden->st.n_tensors, sizeof *check->seen);
    assert_non_null(check->seen);
}

/* A device tensor as f32 on the host, windows included; every n-th row, or with `pixels` every n-th pixel of a picture.
 * NULL with the library's message. */
static float *fetch(struct lk_device *dev, const struct lk_tensor *value, int64_t every, bool pixels, size_t *n) {
    struct lk_tensor flat = pixels ? LK_VIEW(value, value->shape[0] * value->shape[1], value->shape[2]) : *value;
    const struct lk_tensor *t = &flat;
    int64_t row = lk_tensor_row_numel(t), n_rows = (t->shape[0] + every - 1) / every;
    size_t size = lk_dtype_size(t->dtype);
    *n = (size_t)(row * n_rows);
    unsigned char *raw = checked_malloc(*n * size);
    float *values = checked_malloc(*n * sizeof *values);
    enum lk_code rc = LK_OK;
    if (every == 1 && lk_tensor_is_dense(t)) {
        rc = lk_download(dev, raw, t);
    } else {
        for (int64_t i = 0; i < n_rows && !rc; i++) {
            unsigned char *from = (unsigned char *)t->data + (size_t)(i * every * t->ld) * size;
            struct lk_tensor one = LK_TENSOR(from, t->dtype, row);
            rc = lk_download(dev, raw + (size_t)(i * row) * size, &one);
        }
    }
    if (!rc) widen(t->dtype, raw, *n, values);
    free(raw);
    if (!rc) return values;
    free(values);
    return NULL;
}

/* Of a picture [H, W, C], whole rows are stored, or pixels [n, C] from all over it. */
static bool has_pixels(const struct lk_st_tensor *stored, int n_dims) {
    return n_dims == 3 && stored->tensor.n_dims == 2;
}

/* Token ids ("text_encoder.ids", "cond.text_encoder.ids"), their positions, which are quoted, and noise. */
static bool is_exact(const char *name) {
    const char *ids = strstr(name, "text_encoder.ids"), *quoted = strstr(name, ".quoted");
    return (ids && !strcmp(ids, "text_encoder.ids")) || (quoted && !strcmp(quoted, ".quoted")) ||
           !strcmp(name, "positions") || !strcmp(name, "sampler.timesteps") || !strcmp(name, "noise") ||
           !strcmp(name, "posterior_noise.0");
}

static struct reference_error reference_error(const struct golden_check *check, const char *stage) {
    if (check->mode != GOLDEN_BF16) return (struct reference_error){0};
    char name[160];
    size_t n;
    snprintf(name, sizeof name, "error.%s%s", check->on_gpu ? "gpu." : "", stage);
    float *errors = golden_values(check->golden, name, &n);
    struct reference_error found = {.typical = errors[0], .largest = errors[n - 1]};
    free(errors);
    return found;
}

/* An error bound cannot see a rounding left out. Two bf16 runs that round at the same points stay closer to each other
 * than either is to f32. distance: relative, to the reference's bf16 run. */
static void judge_roundings(struct golden_check *check, const char *name, double distance, double error) {
    char stage[160];
    snprintf(stage, sizeof stage, "%s (bf16 to bf16)", name);
    struct row *row = table_row(stage);
    check->n_compared++;
    if (row->ours < 0 || ratio(distance, error) > ratio(row->ours, row->reference)) {
        row->ours = distance;
        row->reference = error;
        snprintf(row->where, sizeof row->where, "%s %s", check->golden->name, name);
    }
    if (!(distance <= GOLDEN_BF16_DISTANCE * error))
        add_failure(check,
                    "  %s: distance to the reference's bf16 run %.4g, its error %.4g, ratio %.3f, allowed %.2f\n", name,
                    distance, error, ratio(distance, error), GOLDEN_BF16_DISTANCE);
}

double golden_image_share = 0.001;
static size_t n_pixels, n_pixels_different; /* of all f32 pictures */

/* Bytes: an f32 error as small as the bound allows takes some values over the edge of a rounding. */
static void check_image_f32(struct golden_check *check, const char *name, const float *ours, const float *expected,
                            size_t n) {
    size_t n_different = 0;
    float most = 0;
    for (size_t i = 0; i < n; i += 3) {
        bool different = false;
        for (size_t c = i; c < i + 3; c++) {
            float levels = fabsf(ours[c] - expected[c]);
            different = different || levels > 0;
            if (levels > most) most = levels;
        }
        n_different += different;
    }
    check->n_compared++;
    n_pixels += n / 3;
    n_pixels_different += n_different;
    const double allowed = fmax(1, golden_image_share * (double)(n / 3)); /* one in a picture of a few hundred */
    if (most > 1 || (double)n_different > allowed)
        add_failure(check, "  %s: %zu of %zu pixels differ, by %g levels at most; allowed: %g, by 1 level\n", name,
                    n_different, n / 3, (double)most, floor(allowed));
}

static void compare(struct golden_check *check, const char *name, const char *stored, const float *ours, size_t n) {
    size_t n_expected;
    float *expected = golden_values(check->golden, stored, &n_expected);
    if (n != n_expected) {
        add_failure(check, "  %s: %zu values, expected %zu\n", name, n, n_expected);
    } else if (is_exact(name)) {
        size_t n_different = 0;
        for (size_t i = 0; i < n; i++) n_different += !(ours[i] == expected[i]);
        check->n_compared++;
        if (n_different) add_failure(check, "  %s: %zu of %zu values differ\n", name, n_different, n);
    } else if (starts(name, "image") && check->mode != GOLDEN_BF16) {
        check_image_f32(check, name, ours, expected, n);
    } else if (starts(stored, "bf16.")) {
        double error = reference_error(check, stored + strlen(check->on_gpu ? "bf16.gpu." : "bf16.")).typical;
        judge_roundings(check, name, test_relative_error(ours, expected, n), error);
    } else {
        judge(check, name, test_relative_error(ours, expected, n), reference_error(check, stored));
    }
    free(expected);
}

enum lk_code golden_check_trace(void *context, struct lk_device *dev, const char *name, const struct lk_tensor *value) {
    struct golden_check *check = context;
    const struct lk_safetensors *st = &check->golden->st;
    for (size_t i = 0; i < st->n_tensors; i++) {
        int64_t every;
        const char *stage = stage_of(st->tensors[i].name, check->mode, check->on_gpu, &every);
        if (!stage || strcmp(stage, name)) continue;
        size_t n;
        float *ours = fetch(dev, value, every, has_pixels(&st->tensors[i], value->n_dims), &n);
        if (!ours) return lk_fail_prefix(LK_E_INTERNAL, "golden stage %s", name);
        check->seen[i] = true;
        compare(check, name, st->tensors[i].name, ours, n);
        free(ours);
    }
    return LK_OK;
}

void golden_check_sigmas(struct golden_check *check, const float *sigmas, int n_steps) {
    size_t n;
    /* Stable Diffusion's are traced, where its sampler has any: another exp and log may be off by a last bit. */
    if (lk_safetensors_find(&check->golden->st, "sampler.timesteps")) return;
    float *expected = golden_values(check->golden, "sigmas", &n);
    if (n != (size_t)n_steps + 1 || memcmp(sigmas, expected, n * sizeof *expected)) {
        add_failure(check, "  sigmas differ:");
        for (size_t i = 0; i < n && i <= (size_t)n_steps; i++)
            add_failure(check, " %.9g (%.9g)", (double)sigmas[i], (double)expected[i]);
        add_failure(check, "\n");
    }
    check->n_compared++;
    free(expected);
}

/* The file's picture, of the run that drew its own noise with "f32." in front; NULL if it has none. *every: as in
 * stage_of. */
static const char *find_image(const struct golden *golden, const char *prefix, int64_t *every) {
    for (size_t i = 0; i < golden->st.n_tensors; i++) {
        const char *name = golden->st.tensors[i].name;
        if (starts(name, prefix) && !strcmp(skip_every(name + strlen(prefix), every), "image")) return name;
    }
    return NULL;
}

/* Every n-th row or pixel, as f32. */
static float *image_values(const struct lk_image *image, int64_t every, bool pixels, size_t *n) {
    size_t row = (size_t)image->channels * (pixels ? 1 : (size_t)image->width);
    size_t n_rows = (size_t)image->height * (pixels ? (size_t)image->width : 1);
    float *values = checked_malloc(row * n_rows * sizeof *values);
    *n = 0;
    for (size_t y = 0; y < n_rows; y += (size_t)every, *n += row)
        widen(LK_U8, image->pixels + y * row, row, values + *n);
    return values;
}

void golden_check_image(struct golden_check *check, const struct lk_image *image) {
    const struct golden *golden = check->golden;
    int64_t every;
    const char *name = find_image(golden, check->mode == GOLDEN_F32_SEED ? "f32." : "", &every);
    if (!name) return;
    size_t n_expected, n;
    float *expected = golden_values(golden, name, &n_expected);
    float *ours = image_values(image, every, has_pixels(lk_safetensors_find(&golden->st, name), 3), &n);
    if (image->channels != 3 || n != n_expected) {
        add_failure(check, "  image: %d x %d x %d, expected %zu bytes\n", image->width, image->height, image->channels,
                    n_expected);
    } else if (check->mode == GOLDEN_BF16) {
        judge(check, "image", test_relative_error(ours, expected, n), reference_error(check, name));
    } else {
        check_image_f32(check, "image", ours, expected, n);
    }
    free(ours);
    free(expected);
}

void golden_check_end(struct golden_check *check) {
    const struct lk_safetensors *st = &check->golden->st;
    for (size_t i = 0; i < st->n_tensors; i++) {
        int64_t every;
        const char *stage = stage_of(st->tensors[i].name, check->mode, check->on_gpu, &every);
        if (stage && !check->seen[i]) add_failure(check, "  %s: never came\n", stage);
    }
    free(check->seen);
    check->seen = NULL;
    if (!check->n_compared) add_failure(check, "  nothing was compared\n");
    golden_close(check->golden);
    if (check->n_failed)
        fail_msg("%s, %s: %d beyond their bounds:\n%s", check->golden->name, mode_names[check->mode], check->n_failed,
                 check->failures);
}

/* Geometric mean of ours over the reference's error. */
static double mean_ratio(double log_ratios, int n) { return n ? exp(log_ratios / n) : 0; }

void golden_check_pooled(void) {
    double log_ratios = 0;
    int n = 0;
    for (size_t i = 0; i < table.n_rows; i++) {
        log_ratios += table.rows[i].log_ratios;
        n += table.rows[i].n_ratios;
    }
    double mean = mean_ratio(log_ratios, n);
    printf("bf16, %d comparisons: our error is %.4f times the reference's own (geometric mean)\n", n, mean);
    if (mean > GOLDEN_BF16_ALL)
        fail_msg("bf16, all cases: beyond their bounds: mean of all %.4f, allowed %.2f", mean, GOLDEN_BF16_ALL);
    printf("f32, all pictures: %zu of %zu pixels differ\n", n_pixels_different, n_pixels);
    if ((double)n_pixels_different > golden_image_share * (double)n_pixels)
        fail_msg("f32, all pictures: beyond their bounds: allowed %g %% of the pixels", 100 * golden_image_share);
}

static void print_column(double error) {
    if (error < 0)
        printf(" %9s", "-");
    else
        printf(" %9.3g", error);
}

void golden_print_table(void) {
    printf("%-36s %9s %6s | %9s %9s %6s  %s\n", "stage", "f32 worst", "mean", "bf16", "reference", "worst", "at");
    for (size_t i = 0; i < table.n_rows; i++) {
        const struct row *row = &table.rows[i];
        printf("%-36s", row->stage);
        print_column(row->f32);
        if (row->ours >= 0) {
            printf(" %6.3f |", mean_ratio(row->log_ratios, row->n_ratios));
            print_column(row->ours);
            print_column(row->reference);
            printf(" %6.3f  %s", ratio(row->ours, row->reference), row->where);
        }
        printf("\n");
    }
    fflush(stdout);
}
