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
    const char *configs;                          /* NULL: not recorded */
    struct lk_st_named *copies;                   /* [st.n_tensors] */
    int64_t *n_pad;                               /* [st.n_tensors] */
    int64_t n, width;                             /* tokens that are no padding */
};

static enum lk_code copy_tensor(struct file *f, size_t i) {
    const struct lk_st_tensor *t = &f->st.tensors[i];
    const char *expected = NULL, *padding = NULL;
    char key[80], got[65];
    lk_config_string(f->config, t->name, &expected);
    snprintf(key, sizeof key, "%.64s.padding", t->name);
    if (lk_config_has(f->config, key)) lk_config_string(f->config, key, &padding);
    const bool words = t->tensor.n_dims == 2 && (!f->n || t->tensor.shape[1] == f->width);
    int64_t n_pad = 0;
    if (padding && t->tensor.n_dims >= 2 &&
        (sscanf(padding, "%lld", (long long *)&n_pad) != 1 || n_pad < 0 || n_pad > t->tensor.shape[0]))
        return lk_fail(LK_E_METADATA, "%s: \"%s\": expected a number of rows, got \"%.20s\"", f->path, key, padding);
    const bool image = t->tensor.n_dims >= 2 && n_pad == t->tensor.shape[0] && f->vae;
    if (words && !image && n_pad && n_pad == t->tensor.shape[0])
        return lk_fail(LK_E_INPUT,
                       "%s: its prompts are of Stable Diffusion, whose padding follows the words: they cannot be "
                       "normalised; leave embed_norm out for this model",
                       f->path);
    if (!expected || strlen(t->name) != 64 || (!words && !image) ||
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
    f->n_pad[i] = n_pad;
    if (!image) f->width = t->tensor.shape[1];
    f->n += t->tensor.shape[0] - n_pad;
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
    if (lk_config_has(f->config, "vae")) lk_config_string(f->config, "vae", &f->vae);
    f->copies = lk_calloc(f->st.n_tensors + 1, sizeof *f->copies);
    f->n_pad = lk_calloc(f->st.n_tensors + 1, sizeof *f->n_pad);
    if (!f->copies || !f->n_pad) return lk_fail(LK_E_NOMEM, "%s: out of memory", f->path);
    if (!f->text_encoder || !f->dtype || !f->isa)
        return lk_fail(LK_E_METADATA, "%s: expected text_encoder, dtype and isa in its metadata", f->path);
    if (!is_word(f->text_encoder) || (f->vae && !is_word(f->vae)) || !is_word(f->dtype) || !is_word(f->isa) ||
        strlen(f->isa) > 16)
        return lk_fail(LK_E_METADATA, "%s: expected embeddings as `embed` writes them, got \"%.40s\"", f->path, f->isa);
    for (size_t i = 0; i < f->st.n_tensors; i++) LK_TRY(copy_tensor(f, i));
    return f->n ? LK_OK : lk_fail(LK_E_INPUT, "%s: expected embeddings of prompts, got none", f->path);
}

/* All tokens between the copies and rows [n, width]. */
static void move(const struct file *f, double *rows, bool back) {
    for (size_t i = 0; i < f->st.n_tensors; i++) {
        const struct lk_tensor *t = &f->copies[i].tensor;
        for (int64_t k = f->n_pad[i] * f->width; k < t->shape[0] * f->width; k++, rows++) {
            float *wide = (float *)t->data + k;
            uint16_t *narrow = (uint16_t *)t->data + k;
            if (back && t->dtype == LK_F32)
                *wide = (float)*rows;
            else if (back)
                *narrow = lk_f32_to_bf16((float)*rows);
            else
                *rows = (double)(t->dtype == LK_F32 ? *wide : lk_bf16_to_f32(*narrow));
        }
    }
}

static enum lk_code normalize(const struct file *f, enum lk_embeds_norm how) {
    double *rows = lk_malloc((size_t)f->n * (size_t)(f->width + 1) * sizeof *rows);
    if (!rows) return lk_fail(LK_E_NOMEM, "%s: out of memory for %lld tokens", f->path, (long long)f->n);
    double *norms = rows + f->n * f->width;
    move(f, rows, false);
    for (int64_t i = 0; i < f->n; i++) norms[i] = norm_of(rows + i * f->width, f->width);
    enum lk_code rc = lk_rows_normalize(rows, f->n, f->width, how);
    if (!rc) lk_rows_restore(rows, norms, f->n, f->width);
    if (!rc) move(f, rows, true);
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
    if (f->configs) lk_text_add(&metadata, ",\"configs\":");
    if (f->configs) lk_text_json(&metadata, f->configs);
    for (size_t i = 0; i < f->st.n_tensors; i++) {
        lk_sha256(f->copies[i].tensor.data, lk_tensor_bytes(&f->copies[i].tensor), sha256);
        lk_text_add(&metadata, ",\"%s\":\"%s\"", f->copies[i].name, sha256);
        if (f->n_pad[i]) lk_text_add(&metadata, ",\"%s.padding\":\"%lld\"", f->copies[i].name, (long long)f->n_pad[i]);
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
    if (!rc && how) rc = normalize(&f, how);
    if (!rc) rc = write_file(&f, to, how);
    for (size_t i = 0; i < f.st.n_tensors && f.copies; i++) lk_free(f.copies[i].tensor.data);
    lk_free(f.copies);
    lk_free(f.n_pad);
    lk_config_discard(f.config);
    lk_safetensors_close(&f.st);
    return rc;
}
