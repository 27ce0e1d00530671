#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "models/embeds.h"
#include "weights/config.h"
#include "weights/safetensors.h"

static const char *const names[] = {"none", "center", "zscore"};

enum lk_code lk_rows_normalize(double *rows, int64_t n, int64_t width, enum lk_embeds_norm how) {
    double *mean = lk_calloc(2 * (size_t)width, sizeof *mean), *square = mean ? mean + width : NULL;
    if (!mean) return lk_fail(LK_E_NOMEM, "prompt embeddings: out of memory");
    for (int64_t i = 0; i < n * width; i++) mean[i % width] += rows[i] / (double)n;
    for (int64_t i = 0; i < n * width; i++) rows[i] -= mean[i % width];
    for (int64_t i = 0; i < n * width; i++) square[i % width] += rows[i] * rows[i] / (double)n;
    for (int64_t i = 0; i < n * width && how == LK_EMBEDS_ZSCORE; i++) {
        /* A channel whose values differ by rounding alone says nothing. */
        const double v = square[i % width], noise = (double)n * mean[i % width] * DBL_EPSILON;
        if (v > (double)n * DBL_EPSILON * v + noise * noise) rows[i] /= sqrt(v);
    }
    lk_free(mean);
    return LK_OK;
}

static double norm_of(const double *row, int64_t width) {
    double sum = 0;
    for (int64_t i = 0; i < width; i++) sum += row[i] * row[i];
    return sqrt(sum);
}

void lk_rows_restore(double *rows, const double *norms, int64_t n, int64_t width) {
    for (int64_t i = 0; i < n; i++, rows += width) {
        double norm = norm_of(rows, width), factor = norm > 0 ? norms[i] / norm : 0;
        for (int64_t k = 0; k < width; k++) rows[k] *= factor;
    }
}

/* A file's tensors and what its metadata say of them. */
struct file {
    const char *path;
    struct lk_safetensors st;
    struct lk_config *config;
    const char *text_encoder, *vae, *dtype, *isa; /* vae NULL: no images */
    const char *encoder_config;                   /* NULL: not in the file */
    const char *configs;                          /* NULL: not recorded */
    struct lk_st_named *copies;                   /* [st.n_tensors] */
    struct edges *edges;                          /* [st.n_tensors] */
    int64_t n, width;                             /* tokens that are no padding, of the first text encoder */
    int64_t n_second, split;                      /* of the second, which has the columns from split on; 0: one */
};

/* Rows of a tensor that stand for no word: at its beginning, and behind the words of either text encoder. */
struct edges {
    int64_t n_pad, n_behind[2], split;
};

static enum lk_code read_edges(const struct file *f, const struct lk_st_tensor *t, struct edges *out) {
    const int64_t n = t->tensor.shape[0], width = t->tensor.n_dims > 1 ? t->tensor.shape[1] : 0;
    const char *text = NULL;
    char key[80];
    *out = (struct edges){0};
    snprintf(key, sizeof key, "%.64s.padding", t->name);
    if (lk_config_has(f->config, key)) lk_config_string(f->config, key, &text);
    if (text && t->tensor.n_dims >= 2 &&
        (sscanf(text, "%lld", (long long *)&out->n_pad) != 1 || out->n_pad < 0 || out->n_pad > n))
        return lk_fail(LK_E_METADATA, "%s: \"%s\": expected a number of rows, got \"%.20s\"", f->path, key, text);
    snprintf(key, sizeof key, "%.64s.behind", t->name);
    text = NULL;
    if (lk_config_has(f->config, key)) lk_config_string(f->config, key, &text);
    if (!text) return LK_OK;
    if (sscanf(text, "%lld,%lld,%lld", (long long *)&out->n_behind[0], (long long *)&out->n_behind[1],
               (long long *)&out->split) != 3 ||
        out->n_behind[0] < 0 || out->n_behind[1] < 0 || out->n_pad > n - out->n_behind[0] ||
        out->n_pad > n - out->n_behind[1] || out->split < 0 || out->split >= width)
        return lk_fail(LK_E_METADATA, "%s: \"%s\": expected two numbers of rows and one of columns, got \"%.40s\"",
                       f->path, key, text);
    return LK_OK;
}

static enum lk_code copy_tensor(struct file *f, size_t i) {
    const struct lk_st_tensor *t = &f->st.tensors[i];
    struct edges *edges = &f->edges[i];
    const char *expected = NULL;
    char got[65];
    lk_config_string(f->config, t->name, &expected);
    LK_TRY(read_edges(f, t, edges));
    const bool still = t->tensor.n_dims >= 2 && edges->n_pad == t->tensor.shape[0];
    const bool words =
        t->tensor.n_dims == 2 && (!f->n || (t->tensor.shape[1] == f->width && (still || edges->split == f->split)));
    if (!expected || strlen(t->name) != 64 || (!words && !(still && f->vae)) ||
        (t->tensor.dtype != LK_F32 && t->tensor.dtype != LK_BF16))
        return lk_fail(LK_E_METADATA, "%s: tensor \"%.80s\": expected [rows, width] of f32 or bf16 under a SHA-256",
                       f->path, t->name);
    lk_sha256(t->tensor.data, lk_tensor_bytes(&t->tensor), got);
    if (strcmp(expected, got))
        return lk_fail(LK_E_INPUT, "%s: tensor \"%s\": expected bytes with the SHA-256 %s, got %s; copy the file again",
                       f->path, t->name, expected, got);
    f->copies[i] = (struct lk_st_named){t->name, t->tensor};
    f->copies[i].tensor.data = lk_malloc(lk_tensor_bytes(&t->tensor));
    if (!f->copies[i].tensor.data) return lk_fail(LK_E_NOMEM, "%s: out of memory", f->path);
    memcpy(f->copies[i].tensor.data, t->tensor.data, lk_tensor_bytes(&t->tensor));
    if (still) return LK_OK;
    f->width = t->tensor.shape[1], f->split = edges->split;
    f->n += t->tensor.shape[0] - edges->n_pad - edges->n_behind[0];
    f->n_second += t->tensor.shape[0] - edges->n_pad - edges->n_behind[1];
    return LK_OK;
}

/* As `embed` writes them, and nothing that would be more than a word when it is written again. */
static bool is_word(const char *text) { return *text && !text[strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz_")]; }

static int by_place(const void *a, const void *b) {
    const struct lk_st_tensor *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static enum lk_code read_file(struct file *f) {
    const char *format = "";
    LK_TRY(lk_safetensors_open(&f->st, f->path));
    if (f->st.n_tensors) qsort(f->st.tensors, f->st.n_tensors, sizeof *f->st.tensors, by_place); /* to be written so */
    const char *metadata = f->st.metadata_json;
    if (metadata) LK_TRY(lk_config_parse(&f->config, metadata, strlen(metadata), f->path));
    if (metadata && lk_config_has(f->config, "likeness")) lk_config_string(f->config, "likeness", &format);
    if (strcmp(format, LK_EMBEDS_FORMAT))
        return lk_fail(LK_E_METADATA, "%s: no file of `embed`: its metadata do not say what it holds", f->path);
    lk_config_string(f->config, "text_encoder", &f->text_encoder);
    lk_config_string(f->config, "dtype", &f->dtype);
    lk_config_string(f->config, "isa", &f->isa);
    lk_config_string_or(f->config, "configs", &f->configs, NULL);
    lk_config_string_or(f->config, "text_encoder_config", &f->encoder_config, NULL);
    if (lk_config_has(f->config, "vae")) lk_config_string(f->config, "vae", &f->vae);
    f->copies = lk_calloc(f->st.n_tensors + 1, sizeof *f->copies);
    f->edges = lk_calloc(f->st.n_tensors + 1, sizeof *f->edges);
    if (!f->copies || !f->edges) return lk_fail(LK_E_NOMEM, "%s: out of memory", f->path);
    if (!f->text_encoder || !f->dtype || !f->isa)
        return lk_fail(LK_E_METADATA, "%s: expected text_encoder, dtype and isa in its metadata", f->path);
    if (!is_word(f->text_encoder) || (f->vae && !is_word(f->vae)) || !is_word(f->dtype) || !is_word(f->isa) ||
        strlen(f->isa) > 16)
        return lk_fail(LK_E_METADATA, "%s: expected embeddings as `embed` writes them, got \"%.40s\"", f->path, f->isa);
    for (size_t i = 0; i < f->st.n_tensors; i++) LK_TRY(copy_tensor(f, i));
    return f->n ? LK_OK
                : lk_fail(LK_E_INPUT,
                          "%s: expected embeddings of prompts of which words can be told from padding, got none; "
                          "leave embed_norm out for this model",
                          f->path);
}

/* Columns of one text encoder. */
static void columns_of(const struct file *f, int part, int64_t *first, int64_t *n) {
    *first = part ? f->split : 0;
    *n = (part || !f->split ? f->width : f->split) - *first;
}

static double value_of(const struct lk_tensor *t, int64_t k) {
    return t->dtype == LK_F32 ? (double)((const float *)t->data)[k]
                              : (double)lk_bf16_to_f32(((const uint16_t *)t->data)[k]);
}

static void set_value(const struct lk_tensor *t, int64_t k, double value) {
    if (t->dtype == LK_F32)
        ((float *)t->data)[k] = (float)value;
    else
        ((uint16_t *)t->data)[k] = lk_f32_to_bf16((float)value);
}

/* All tokens of a text encoder between the copies and rows [tokens, columns]. */
static void move(const struct file *f, int part, double *rows, bool back) {
    int64_t first, n;
    columns_of(f, part, &first, &n);
    for (size_t i = 0; i < f->st.n_tensors; i++) {
        const struct lk_tensor *t = &f->copies[i].tensor;
        for (int64_t row = f->edges[i].n_pad; row < t->shape[0] - f->edges[i].n_behind[part]; row++)
            for (int64_t k = row * f->width + first; k < row * f->width + first + n; k++, rows++) {
                if (back)
                    set_value(t, k, *rows);
                else
                    *rows = value_of(t, k);
            }
    }
}

static enum lk_code normalize(const struct file *f, int part, enum lk_embeds_norm how) {
    const int64_t n = part ? f->n_second : f->n;
    int64_t first, width;
    columns_of(f, part, &first, &width);
    double *rows = lk_malloc((size_t)n * (size_t)(width + 1) * sizeof *rows);
    if (!rows) return lk_fail(LK_E_NOMEM, "%s: out of memory for %lld tokens", f->path, (long long)n);
    double *norms = rows + n * width;
    move(f, part, rows, false);
    for (int64_t i = 0; i < n; i++) norms[i] = norm_of(rows + i * width, width);
    enum lk_code rc = lk_rows_normalize(rows, n, width, how);
    if (!rc) lk_rows_restore(rows, norms, n, width);
    if (!rc) move(f, part, rows, true);
    lk_free(rows);
    return rc;
}

static enum lk_code write_file(const struct file *f, const char *path, enum lk_embeds_norm how) {
    struct lk_text metadata = {0};
    char sha256[65];
    lk_text_add(&metadata,
                "{\"likeness\":\"" LK_EMBEDS_FORMAT "\",\"text_encoder\":\"%s\",\"dtype\":\"%s\",\"isa\":\"%s%s%s\"",
                f->text_encoder, f->dtype, f->isa, how ? ", " : "", how ? names[how] : "");
    if (f->vae) lk_text_add(&metadata, ",\"vae\":\"%s\"", f->vae);
    if (f->encoder_config) lk_text_add(&metadata, ",\"text_encoder_config\":");
    if (f->encoder_config) lk_text_json(&metadata, f->encoder_config);
    if (f->configs) lk_text_add(&metadata, ",\"configs\":");
    if (f->configs) lk_text_json(&metadata, f->configs);
    for (size_t i = 0; i < f->st.n_tensors; i++) {
        lk_sha256(f->copies[i].tensor.data, lk_tensor_bytes(&f->copies[i].tensor), sha256);
        lk_text_add(&metadata, ",\"%s\":\"%s\"", f->copies[i].name, sha256);
        const struct edges *e = &f->edges[i];
        if (e->n_pad) lk_text_add(&metadata, ",\"%s.padding\":\"%lld\"", f->copies[i].name, (long long)e->n_pad);
        if (e->n_behind[0])
            lk_text_add(&metadata, ",\"%s.behind\":\"%lld,%lld,%lld\"", f->copies[i].name, (long long)e->n_behind[0],
                        (long long)e->n_behind[1], (long long)e->split);
    }
    lk_text_add(&metadata, "}");
    enum lk_code rc =
        metadata.rc ? metadata.rc : lk_safetensors_write(path, f->copies, f->st.n_tensors, metadata.bytes);
    lk_text_free(&metadata);
    return rc;
}

enum lk_code lk_embeds_normalize(const char *from, const char *to, enum lk_embeds_norm how) {
    struct file f = {.path = from};
    enum lk_code rc = read_file(&f);
    for (int part = 0; part <= (f.split > 0) && !rc && how; part++) rc = normalize(&f, part, how);
    if (!rc) rc = write_file(&f, to, how);
    for (size_t i = 0; i < f.st.n_tensors && f.copies; i++) lk_free(f.copies[i].tensor.data);
    lk_free(f.copies);
    lk_free(f.edges);
    lk_config_discard(f.config);
    lk_safetensors_close(&f.st);
    return rc;
}
