#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "eval/stats/special/special.h"
#include "tools/cli/cli.h"
#include "tools/cli/model/bench.h"

struct spread {
    double median, low, high;
};

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread(const double *values, int n) {
    double sorted[BENCH_MAX_REPETITIONS];
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return (struct spread){(sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[0], sorted[n - 1]};
}

static double tflop_of(const struct bench_result *r) {
    double sum = 0;
    for (int i = 0; i < r->n_stages; i++) sum += r->stages[i].tflop;
    return sum;
}

static void print_md_row(const struct bench_result *r, const char *name, struct spread s, double tflop,
                         uint64_t planned) {
    char bytes[32];
    printf("| %s | %.4g | %.4g | %.4g | %.3g | %.1f %% | %s |\n", name, s.median, s.low, s.high, tflop / s.median,
           100 * tflop / s.median / r->peak_tflops, cli_bytes(planned, bytes));
}

static void print_md(const struct bench_result *r) {
    char arena[32], planned[32], rss[32], device[32];
    struct spread image = spread(r->image, r->n_repetitions);
    printf("%s, %dx%d, %d references, %d steps, %s%s%s, on %s\n\n", r->model, r->plan.width, r->plan.height,
           r->plan.n_references, r->plan.n_steps, r->dtype, strcmp(r->quantize, "none") ? " with weights in " : "",
           strcmp(r->quantize, "none") ? r->quantize : "", r->device);
    printf("| stage | s, median of %d | least | most | TFLOP/s | of peak | activations, planned |\n"
           "|---|---:|---:|---:|---:|---:|---:|\n",
           r->n_repetitions);
    for (int i = 0; i < r->n_stages; i++) {
        const struct bench_stage *s = &r->stages[i];
        struct spread seconds = spread(s->seconds, r->n_repetitions);
        if (seconds.high > 0) print_md_row(r, s->name, seconds, s->tflop, s->planned_bytes);
        if (strcmp(s->name, "transformer") || !r->plan.n_steps) continue;
        double n = r->plan.n_steps;
        print_md_row(r, "a step", (struct spread){seconds.median / n, seconds.low / n, seconds.high / n}, s->tflop / n,
                     s->planned_bytes);
    }
    print_md_row(r, "an image", image, tflop_of(r), r->plan.arena_bytes);
    printf("\nimages an hour: %.4g\nopening the model: %.3g s; the first image: %.4g s\n", 3600 / image.median,
           r->load_seconds, r->first_seconds);
    printf("peak of a product of matrices here: %.3g TFLOP/s\n", r->peak_tflops);
    printf("activations: %s (planned %s); memory of the process: %s\n", cli_bytes(r->arena_bytes, arena),
           cli_bytes(r->plan.arena_bytes, planned), cli_bytes(r->rss_bytes, rss));
    if (r->has_joules) printf("energy of the GPU: %.4g J an image\n", spread(r->joules, r->n_repetitions).median);
    if (r->on_gpu) printf("on the GPU, planned: %s\n", cli_bytes(r->plan.placed_bytes + r->plan.beside_bytes, device));
}

static void print_csv(const struct bench_result *r) {
    puts("model,device,dtype,quantize,width,height,references,steps,stage,repetition,seconds,tflop");
    for (int i = 0; i <= r->n_stages; i++) {
        const struct bench_stage *s = i < r->n_stages ? &r->stages[i] : NULL;
        for (int k = 0; k < r->n_repetitions; k++)
            printf("%s,\"%s\",%s,%s,%d,%d,%d,%d,%s,%d,%.9g,%.9g\n", r->model, r->device, r->dtype, r->quantize,
                   r->plan.width, r->plan.height, r->plan.n_references, r->plan.n_steps, s ? s->name : "image", k + 1,
                   s ? s->seconds[k] : r->image[k], s ? s->tflop : tflop_of(r));
    }
}

static void add_stage(cJSON *list, const char *name, const double *seconds, int n, double tflop, uint64_t planned) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", name);
    cJSON_AddItemToObject(o, "seconds", cJSON_CreateDoubleArray(seconds, n));
    cJSON_AddNumberToObject(o, "tflop", tflop);
    cJSON_AddNumberToObject(o, "planned_bytes", (double)planned);
    cJSON_AddItemToArray(list, o);
}

static enum lk_code print_json(const struct bench_result *r) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "likeness_bench", 1);
    cJSON_AddStringToObject(root, "model", r->model);
    cJSON_AddStringToObject(root, "device", r->device);
    cJSON_AddStringToObject(root, "dtype", r->dtype);
    cJSON_AddStringToObject(root, "quantize", r->quantize);
    cJSON_AddNumberToObject(root, "width", r->plan.width);
    cJSON_AddNumberToObject(root, "height", r->plan.height);
    cJSON_AddNumberToObject(root, "references", r->plan.n_references);
    cJSON_AddNumberToObject(root, "num_inference_steps", r->plan.n_steps);
    cJSON_AddNumberToObject(root, "load_seconds", r->load_seconds);
    cJSON_AddNumberToObject(root, "first_image_seconds", r->first_seconds);
    cJSON_AddNumberToObject(root, "images_per_hour", 3600 / spread(r->image, r->n_repetitions).median);
    cJSON_AddNumberToObject(root, "peak_tflops", r->peak_tflops);
    cJSON_AddNumberToObject(root, "arena_bytes", (double)r->arena_bytes);
    cJSON_AddNumberToObject(root, "planned_arena_bytes", (double)r->plan.arena_bytes);
    cJSON_AddNumberToObject(root, "rss_bytes", (double)r->rss_bytes);
    if (r->on_gpu)
        cJSON_AddNumberToObject(root, "planned_device_bytes", (double)(r->plan.placed_bytes + r->plan.beside_bytes));
    if (r->has_joules) cJSON_AddItemToObject(root, "joules", cJSON_CreateDoubleArray(r->joules, r->n_repetitions));
    cJSON *stages = cJSON_AddArrayToObject(root, "stages");
    for (int i = 0; i < r->n_stages; i++)
        add_stage(stages, r->stages[i].name, r->stages[i].seconds, r->n_repetitions, r->stages[i].tflop,
                  r->stages[i].planned_bytes);
    add_stage(stages, "image", r->image, r->n_repetitions, tflop_of(r), r->plan.arena_bytes);
    char *text = cJSON_Print(root);
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "bench: out of memory for the result");
}

enum lk_code bench_print(const struct bench_result *result, const char *format) {
    if (!strcmp(format, "json")) return print_json(result);
    (strcmp(format, "csv") ? print_md : print_csv)(result);
    return LK_OK;
}

static enum lk_code read_result(const char *path, cJSON **out) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, (size_t)64 << 20, &text, &n));
    enum lk_code rc = lk_json_check(text, n, path);
    *out = cJSON_ParseWithLength(text, n);
    lk_free(text);
    if (rc) return rc;
    const char *missing = !cJSON_GetObjectItemCaseSensitive(*out, "likeness_bench")          ? "likeness_bench"
                          : !cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(*out, "stages")) ? "stages"
                                                                                             : NULL;
    if (!missing) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: field \"%s\": expected what `likeness bench --output-format json` prints", path,
                   missing);
}

static void copy_text(const cJSON *root, const char *key, char *out, size_t n) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
    snprintf(out, n, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

/* The spread of a stage's seconds; LK_E_INPUT without them. */
static enum lk_code read_spread(const char *path, const cJSON *stage, struct spread *out) {
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(stage, "seconds"), *item;
    double values[BENCH_MAX_REPETITIONS];
    int n = 0;
    cJSON_ArrayForEach(item, list) {
        if (n == BENCH_MAX_REPETITIONS || !cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
            !isfinite(item->valuedouble))
            return lk_fail(LK_E_INPUT, "%s: stages: seconds[%d]: expected a number of at least 0", path, n);
        values[n++] = item->valuedouble;
    }
    if (!n) return lk_fail(LK_E_INPUT, "%s: stages: seconds: expected at least one repetition, got none", path);
    *out = spread(values, n);
    return LK_OK;
}

static enum lk_code rate_of(const char *path, const cJSON *root, struct bench_rate *out) {
    int *const sizes[] = {&out->width, &out->height, &out->n_references, &out->n_steps};
    static const char *const keys[] = {"width", "height", "references", "num_inference_steps"};
    struct spread image = {0}, s;
    double sum = 0;
    const cJSON *stage;
    *out = (struct bench_rate){0};
    copy_text(root, "model", out->model, sizeof out->model);
    copy_text(root, "device", out->device, sizeof out->device);
    copy_text(root, "dtype", out->dtype, sizeof out->dtype);
    copy_text(root, "quantize", out->quantize, sizeof out->quantize);
    for (int i = 0; i < 4; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, keys[i]);
        *sizes[i] = cJSON_IsNumber(item) ? item->valueint : 0;
    }
    cJSON_ArrayForEach(stage, cJSON_GetObjectItemCaseSensitive(root, "stages")) {
        char name[24];
        const cJSON *tflop = cJSON_GetObjectItemCaseSensitive(stage, "tflop");
        copy_text(stage, "name", name, sizeof name);
        LK_TRY(read_spread(path, stage, &s));
        if (!strcmp(name, "image")) {
            image = s;
        } else if (out->n_stages < BENCH_MAX_STAGES) {
            strcpy(out->stages[out->n_stages].name, name);
            out->stages[out->n_stages].seconds = s.median;
            out->stages[out->n_stages++].tflop = cJSON_IsNumber(tflop) ? tflop->valuedouble : 0;
            sum += s.median;
        }
    }
    if (!(image.median > 0)) return lk_fail(LK_E_INPUT, "%s: stages: expected the seconds of an image", path);
    out->other_seconds = image.median > sum ? image.median - sum : 0;
    out->quickest = image.low / image.median;
    out->slowest = image.high / image.median;
    return LK_OK;
}

enum lk_code bench_rate_read(const char *path, struct bench_rate *out) {
    cJSON *root = NULL;
    enum lk_code rc = read_result(path, &root);
    if (!rc) rc = rate_of(path, root, out);
    cJSON_Delete(root);
    return rc;
}

/* Mean and variance of the logarithms. */
static enum lk_code logarithms(const char *path, const cJSON *stage, double *mean, double *variance, int *n) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(stage, "name"),
                *list = cJSON_GetObjectItemCaseSensitive(stage, "seconds"), *item;
    double sum = 0, squares = 0;
    *n = 0;
    cJSON_ArrayForEach(item, list) {
        if (!cJSON_IsNumber(item) || !(item->valuedouble > 0) || !isfinite(item->valuedouble))
            return lk_fail(LK_E_INPUT, "%s: stages: %s: seconds[%d]: expected a number above 0", path,
                           cJSON_IsString(name) ? name->valuestring : "?", *n);
        sum += log(item->valuedouble);
        ++*n;
    }
    *mean = *n ? sum / *n : 0;
    cJSON_ArrayForEach(item, list) squares += pow(log(item->valuedouble) - *mean, 2);
    *variance = *n > 1 ? squares / (*n - 1) : 0;
    return LK_OK;
}

static const cJSON *stage_named(const cJSON *root, const char *name) {
    const cJSON *stage;
    cJSON_ArrayForEach(stage, cJSON_GetObjectItemCaseSensitive(root, "stages")) {
        const cJSON *its = cJSON_GetObjectItemCaseSensitive(stage, "name");
        if (cJSON_IsString(its) && !strcmp(its->valuestring, name)) return stage;
    }
    return NULL;
}

/* A stage that took no time (it was found among what had been kept) is passed over. */
static bool took_time(const cJSON *stage) {
    const cJSON *item;
    cJSON_ArrayForEach(item,
                       cJSON_GetObjectItemCaseSensitive(stage, "seconds")) if (item->valuedouble != 0) return true;
    return false;
}

static enum lk_code compare_stage(const char *const paths[2], const char *name, const cJSON *a, const cJSON *b) {
    double mean[2], variance[2];
    int n[2];
    LK_TRY(logarithms(paths[0], a, &mean[0], &variance[0], &n[0]));
    LK_TRY(logarithms(paths[1], b, &mean[1], &variance[1], &n[1]));
    if (n[0] < 2 || n[1] < 2)
        return lk_fail(LK_E_INPUT, "%s: stages: %s: seconds: expected at least 2 repetitions, got %d", paths[n[0] >= 2],
                       name, n[n[0] >= 2]);
    double ratio = mean[1] - mean[0], of[2] = {variance[0] / n[0], variance[1] / n[1]}, square = of[0] + of[1],
           half = 0;
    if (square > 0) {
        double df = square * square / (of[0] * of[0] / (n[0] - 1) + of[1] * of[1] / (n[1] - 1));
        half = lk_t_quantile(0.975, df) * sqrt(square);
    }
    printf("| %s | %.4g | %.4g | %.4f | %.4f to %.4f | %s |\n", name, exp(mean[0]), exp(mean[1]), exp(ratio),
           exp(ratio - half), exp(ratio + half),
           ratio + half < 0   ? "faster"
           : ratio - half > 0 ? "slower"
                              : "no difference shown");
    return LK_OK;
}

static enum lk_code compare(const char *const paths[2], const cJSON *a, const cJSON *b) {
    static const char *const same[] = {"model", "width", "height", "references", "num_inference_steps"};
    static const char *const shown[] = {"device", "dtype", "quantize"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(a, same[i]),
                    *y = cJSON_GetObjectItemCaseSensitive(b, same[i]);
        if (!x || !y || !cJSON_Compare(x, y, true))
            return lk_fail(LK_E_INPUT, "%s: %s: expected what %s has; times of different jobs are not comparable",
                           paths[1], same[i], paths[0]);
    }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const cJSON *x = cJSON_GetObjectItemCaseSensitive(a, shown[i]),
                    *y = cJSON_GetObjectItemCaseSensitive(b, shown[i]);
        if (cJSON_IsString(x) && cJSON_IsString(y) && strcmp(x->valuestring, y->valuestring))
            printf("%s: %s and %s\n", shown[i], x->valuestring, y->valuestring);
    }
    printf("| stage | first, s | second, s | ratio | 95 %% interval | second is |\n|---|---:|---:|---:|---:|---|\n");
    const cJSON *stage;
    cJSON_ArrayForEach(stage, cJSON_GetObjectItemCaseSensitive(a, "stages")) {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(stage, "name");
        if (!cJSON_IsString(name)) return lk_fail(LK_E_INPUT, "%s: stages: expected a name in each", paths[0]);
        const cJSON *other = stage_named(b, name->valuestring);
        if (other && (took_time(stage) || took_time(other)))
            LK_TRY(compare_stage(paths, name->valuestring, stage, other));
    }
    return LK_OK;
}

enum lk_code bench_compare(const char *first, const char *second) {
    const char *const paths[2] = {first, second};
    cJSON *a = NULL, *b = NULL;
    enum lk_code rc = read_result(first, &a);
    if (!rc) rc = read_result(second, &b);
    if (!rc) rc = compare(paths, a, b);
    cJSON_Delete(a);
    cJSON_Delete(b);
    return rc;
}
