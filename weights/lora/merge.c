/* Adapters as what they add to a weight: the weight itself, and how long it is. */
#include <math.h>

#include "engine/base/alloc.h"
#include "weights/lora/internal.h"

/* Rows of A times rows of A, or columns of B times columns of B. */
static double dot(const struct lk_tensor *t, int64_t first, int64_t second, int64_t stride, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)lk_lora_element(t, first + i * stride) * (double)lk_lora_element(t, second + i * stride);
    return sum;
}

/* |B A|^2 is the sum of the products of both Gram matrices' elements. */
static double norm_of(const struct lk_lora_layer *l, const struct lk_lora_piece *piece) {
    const struct lk_tensor *a = &piece->module->a->tensor, *b = &piece->module->b->tensor;
    const int64_t rank = piece->module->rank, from = piece->first * rank;
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < rank; i++)
        for (int64_t j = 0; j < rank; j++)
            sum += dot(a, i * l->columns, j * l->columns, 1, l->columns) * dot(b, from + i, from + j, rank, l->rows);
    return fabs((double)piece->module->s) * sqrt(sum > 0 ? sum : 0);
}

bool lk_lora_info(const struct lk_loras *loras, size_t i, int i_file, struct lk_lora_info *out) {
    const struct lk_lora_layer *l = &loras->layers[i];
    const struct lk_lora_piece *piece = &l->pieces[i_file];
    if (!piece->module) return false;
    *out =
        (struct lk_lora_info){l->name, l->rows, l->columns, piece->module->rank, piece->module->s, norm_of(l, piece)};
    return true;
}

bool lk_lora_module_at(const struct lk_lora *file, size_t i, struct lk_lora_info *out) {
    if (i >= file->n_modules) return false;
    const struct lk_lora_module *m = &file->modules[i];
    *out = (struct lk_lora_info){m->name, m->b->tensor.shape[0], m->columns, m->rank, m->s, 0};
    return true;
}

/* acc [columns] += s B A of one row; t [columns] is free to use. a: A in f32. */
static void add_row(const struct lk_lora_layer *l, const struct lk_lora_piece *piece, int64_t row, const float *a,
                    float *t, float *acc) {
    const struct lk_lora_module *m = piece->module;
    const int64_t from = lk_lora_row(l, piece, row), n = l->columns;
    memset(t, 0, (size_t)n * sizeof *t);
    for (int64_t j = 0; j < m->rank; j++, a += n) {
        const float b = lk_lora_element(&m->b->tensor, from * m->rank + j);
#pragma omp simd
        for (int64_t k = 0; k < n; k++) t[k] = t[k] + b * a[k];
    }
#pragma omp simd
    for (int64_t k = 0; k < n; k++) acc[k] = acc[k] + m->s * t[k];
}

static void merge_row(const struct lk_loras *loras, const struct lk_lora_layer *l, const struct lk_tensor *from,
                      const struct lk_tensor *w, int64_t row, const float *a, float *t) {
    float *acc = t + l->columns;
    for (int64_t k = 0; k < l->columns; k++) acc[k] = lk_lora_element(from, row * l->columns + k);
    for (int i = 0; i < loras->n; i++) {
        if (!l->pieces[i].module) continue;
        add_row(l, &l->pieces[i], row, a, t, acc);
        a += l->pieces[i].module->rank * l->columns;
    }
    for (int64_t k = 0; k < l->columns; k++) {
        if (w->dtype == LK_F32)
            ((float *)w->data)[row * l->columns + k] = acc[k];
        else
            ((uint16_t *)w->data)[row * l->columns + k] = lk_f32_to_bf16(acc[k]);
    }
}

/* Every A of a layer in f32, one below the other. */
static float *widened(const struct lk_loras *loras, const struct lk_lora_layer *l) {
    float *all = lk_malloc((size_t)(l->rank * l->columns) * sizeof *all), *to = all;
    for (int i = 0; i < loras->n && all; i++) {
        const struct lk_lora_module *m = l->pieces[i].module;
        for (int64_t k = 0; m && k < m->rank * l->columns; k++) *to++ = lk_lora_element(&m->a->tensor, k);
    }
    return all;
}

#define BAND 64 /* rows that a thread takes at a time, with two rows of floats to work in */

enum lk_code lk_lora_merge_layer(const struct lk_loras *loras, const struct lk_lora_layer *l,
                                 const struct lk_tensor *from, const struct lk_tensor *to) {
    const int64_t n_bands = (l->rows + BAND - 1) / BAND;
    float *a = widened(loras, l);
    bool there = a != NULL;
#pragma omp parallel for schedule(static)
    for (int64_t band = 0; band < n_bands; band++) {
        float *room = a ? lk_malloc((size_t)(2 * l->columns) * sizeof *room) : NULL;
        const int64_t end = (band + 1) * BAND < l->rows ? (band + 1) * BAND : l->rows;
        for (int64_t row = band * BAND; room && row < end; row++) merge_row(loras, l, from, to, row, a, room);
#pragma omp critical
        there = there && room;
        lk_free(room);
    }
    lk_free(a);
    return there ? LK_OK : lk_fail(LK_E_NOMEM, "--lora: out of memory for %s", l->name);
}

enum lk_code lk_loras_merge(const struct lk_loras *loras, const char *layer, const struct lk_tensor *w, bool *merged) {
    size_t i = 0;
    while (i < loras->n_layers && strcmp(loras->layers[i].name, layer) != 0) i++;
    *merged = i < loras->n_layers && loras->layers[i].rank;
    return *merged ? lk_lora_merge_layer(loras, &loras->layers[i], w, w) : LK_OK;
}
