#include "models/common/mask.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/bf16.h"

enum { MAX_MASK_BYTES = 1 << 28, IHDR_DEPTH = 24, IHDR_COLOUR = 25, EDITED = 128, COLUMNS = 512 };

/* Bits that compression or a palette may have changed are no mask. */
static enum lk_code check_format(const char *path, const unsigned char *bytes, size_t n) {
    const bool png = n > IHDR_COLOUR && !memcmp(bytes, "\x89PNG\r\n\x1a\n", 8);
    const char *got = !png                                                 ? "another file"
                      : bytes[IHDR_DEPTH] == 16                            ? "16 bits a value"
                      : bytes[IHDR_COLOUR] == 3                            ? "a palette"
                      : bytes[IHDR_COLOUR] == 4 || bytes[IHDR_COLOUR] == 6 ? "an alpha channel"
                                                                           : NULL;
    if (!got) return LK_OK;
    return lk_fail(LK_E_IMAGE, "%s: expected a mask, a grey PNG of 8 bits or 1, got %s; save it as such", path, got);
}

static enum lk_code make_binary(const char *path, const struct lk_image *from, struct lk_image *out, int64_t *n_soft) {
    const size_t n = (size_t)from->width * (size_t)from->height;
    size_t n_edited = 0;
    LK_TRY(lk_image_new(out, from->width, from->height, 1));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *value = from->pixels + i * (size_t)from->channels;
        if (from->channels == 3 && (value[0] != value[1] || value[0] != value[2]))
            return lk_fail(LK_E_IMAGE, "%s: expected a grey mask, got colours", path);
        out->pixels[i] = *value >= EDITED ? 255 : 0;
        n_edited += *value >= EDITED;
        *n_soft += *value != 0 && *value != 255;
    }
    if (n_edited && n_edited < n) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: expected a mask with white, which is edited, and black, which is kept, got %s; %s",
                   path, n_edited ? "white alone" : "black alone",
                   n_edited ? "leave --mask out" : "nothing would be edited");
}

enum lk_code lk_mask_decode(const char *path, const void *bytes, size_t n, const struct lk_image *source,
                            struct lk_image *out, int64_t *n_soft) {
    struct lk_image image = {0};
    *out = (struct lk_image){0};
    *n_soft = 0;
    enum lk_code rc = check_format(path, bytes, n);
    if (!rc) rc = lk_image_decode(&image, bytes, n, path, true, 0);
    if (!rc && (image.width != source->width || image.height != source->height))
        rc = lk_fail(LK_E_IMAGE_SIZE, "%s: expected a mask of the first image's size, %dx%d, got %dx%d", path,
                     source->width, source->height, image.width, image.height);
    if (!rc) rc = make_binary(path, &image, out, n_soft);
    lk_image_free(&image);
    if (rc) lk_image_free(out);
    return rc;
}

enum lk_code lk_mask_read(const char *path, const struct lk_image *source, struct lk_image *out, int64_t *n_soft) {
    char *bytes;
    size_t n;
    LK_TRY(lk_read_file(path, MAX_MASK_BYTES, &bytes, &n));
    const enum lk_code rc = lk_mask_decode(path, bytes, n, source, out, n_soft);
    lk_free(bytes);
    return rc;
}

void lk_mask_digest(const struct lk_image *mask, char sha256[65]) {
    char key[65];
    lk_key_begin(key, "mask");
    lk_key_add_image(key, mask);
    memcpy(sha256, key, sizeof key);
}

enum lk_code lk_mask_begin(struct lk_walk *w) {
    const struct lk_request *q = w->request;
    if (!q->mask && q->mask_feather) return lk_fail(LK_E_USAGE, "mask_feather: there is no mask; leave it out");
    if (!q->mask && q->mask_cell) return lk_fail(LK_E_USAGE, "mask_cell: there is no mask; leave it out");
    if (!q->mask && q->mask_paste) return lk_fail(LK_E_USAGE, "mask_paste: there is no mask; leave it out");
    if (q->mask_paste && !strcmp(q->mask_paste, "off") && q->mask_feather)
        return lk_fail(LK_E_USAGE, "mask_feather: nothing is mixed with mask_paste off; leave one of them out");
    if (!q->mask && q->strength > 0 && q->strength < 1)
        return lk_fail(LK_E_USAGE,
                       "strength: there is no mask, and without one an edit starts from noise; leave it out");
    if (!q->mask) return LK_OK;
    if (!q->n_images) return lk_fail(LK_E_USAGE, "mask: expected an image to edit, got none");
    if (q->accel && !strcmp(q->accel, "region"))
        return lk_fail(LK_E_USAGE, "mask: not together with accel region, which moves tokens by itself; leave one out");
    if (q->reflection_mode || q->thinking_mode)
        return lk_fail(LK_E_USAGE, "mask: not together with thinking or reflection; leave one out");
    if (!w->result) return LK_OK;
    const struct lk_image *source = &q->images[0];
    if (source->channels == 2 || source->channels == 4)
        return lk_fail(LK_E_IMAGE, "mask: expected a first image without transparency, got one with an alpha channel");
    LK_TRY(lk_mask_read(q->mask, source, &w->mask.image, &w->result->mask_soft));
    char *got = w->result->mask_sha256;
    lk_mask_digest(&w->mask.image, got);
    if (q->mask_sha256 && strcmp(q->mask_sha256, got) != 0)
        return lk_fail(LK_E_CHANGED, "%s: expected the mask with the digest %s, got %s", q->mask, q->mask_sha256, got);
    return LK_OK;
}

int lk_mask_first_step(int n, double strength) {
    const double taken = strength > 0 ? n * strength : n, first = n - (taken < n ? taken : n);
    return first > 0 ? (int)first : 0;
}

/* cells [height / cell, width / cell]: the share that is edited. Any: all where one pixel is. By a sample: of a token
 * of several cells its upper left pixel, as torch's nearest interpolation takes it; of a token that is one cell the
 * mean of the four in its middle, as the bilinear one does. */
static enum lk_code find_cells(const struct lk_image *mask, const struct lk_mask_window *m, int cell, bool sample,
                               bool whole_token, float *cells) {
    struct lk_image resized = {0};
    const int n = m->width / cell;
    LK_TRY(lk_image_resize(&resized, mask, m->resized_width, m->resized_height, LK_RESAMPLE_LANCZOS));
    for (int y = 0; y < m->height; y++)
        for (int x = 0; x < m->width; x++) {
            float *at = &cells[y / cell * n + x / cell];
            const int dy = y % cell, dx = x % cell, middle = cell / 2;
            if (resized.pixels[(size_t)(m->top + y) * (size_t)resized.width + (size_t)(m->left + x)] < EDITED) continue;
            if (!sample)
                *at = 1;
            else if (!whole_token)
                *at = !dy && !dx ? 1 : *at;
            else if ((dy == middle || dy == middle - 1) && (dx == middle || dx == middle - 1))
                *at += 0.25f;
        }
    lk_image_free(&resized);
    return LK_OK;
}

enum lk_code lk_mask_cells(const struct lk_image *mask, const struct lk_mask_window *m, int cell, int multiple,
                           bool sample, int64_t channels, float *keep) {
    const int n = m->width / cell, per_token = multiple / cell, n_tokens = m->width / multiple;
    float *cells = lk_calloc((size_t)n * (size_t)(m->height / cell), sizeof *cells);
    if (!cells) return lk_fail(LK_E_NOMEM, "mask: out of memory");
    const enum lk_code rc = find_cells(mask, m, cell, sample, per_token == 1, cells);
    for (int64_t i = 0; i < (int64_t)n_tokens * (m->height / multiple) && !rc; i++)
        for (int64_t c = 0; c < channels; c++) {
            const int dy = (int)(c / 2 % 2), dx = (int)(c % 2), row = (int)(i / n_tokens), column = (int)(i % n_tokens);
            const int at = per_token == 2 ? (2 * row + dy) * n + 2 * column + dx : row * n + column;
            keep[i * channels + c] = 1 - cells[at];
        }
    lk_free(cells);
    return rc;
}

/* keep: of all latents (NULL: all of each). */
static enum lk_code upload(struct lk_walk *w, const float *keep) {
    const struct lk_tensor *to = &w->mask.keep;
    const int64_t n = to->shape[0] * to->shape[1];
    unsigned char *values = lk_malloc(lk_tensor_bytes(to));
    if (!values) return lk_fail(LK_E_NOMEM, "mask: out of memory");
    for (int64_t i = 0; i < n; i++)
        if (w->dtype == LK_BF16)
            ((uint16_t *)values)[i] = lk_f32_to_bf16(keep ? keep[i] : 1);
        else
            ((float *)values)[i] = keep ? keep[i] : 1;
    const enum lk_code rc = lk_upload(w->dev, to, values);
    lk_free(values);
    return rc;
}

/* Where less than all steps are taken, they begin at the source with noise. */
static enum lk_code begin_at_source(struct lk_walk *w) {
    struct lk_mask *m = &w->mask;
    if (w->request->strength <= 0 || w->request->strength >= 1) return LK_OK;
    if (lk_mask_first_step(w->request->num_inference_steps, w->request->strength) == 0) return LK_OK;
    if (!lk_walk_planning(w)) LK_TRY(upload(w, NULL));
    return lk_blend(w->dev, &(struct lk_blend){&w->latents, &m->source, &m->noise, &m->keep, w->sigmas[0]});
}

static enum lk_code upload_keep(struct lk_walk *w, const struct lk_mask_window *m, int cell, int multiple) {
    const struct lk_tensor *to = &w->mask.keep;
    const bool sample = w->request->mask_cell && !strcmp(w->request->mask_cell, "sample");
    float *keep = lk_malloc((size_t)(to->shape[0] * to->shape[1]) * sizeof *keep);
    enum lk_code rc = keep ? lk_mask_cells(&w->mask.image, m, cell, multiple, sample, to->shape[1], keep)
                           : lk_fail(LK_E_NOMEM, "mask: out of memory");
    if (!rc) rc = upload(w, keep);
    lk_free(keep);
    return rc;
}

enum lk_code lk_mask_prepare(struct lk_walk *w, const struct lk_tensor *source, const struct lk_mask_window *window,
                             int width, int height, int cell, int multiple) {
    struct lk_mask *m = &w->mask;
    const struct lk_tensor *x = &w->latents;
    if (!w->request->mask) return LK_OK;
    if (window->width != width || window->height != height)
        return lk_fail(LK_E_USAGE,
                       "mask: the first image is seen at %dx%d, the picture is made at %dx%d, and what is kept would "
                       "not lie there; ask for the first size, or leave width and height out",
                       window->width, window->height, width, height);
    m->source = *source;
    m->window = *window;
    LK_TRY(LK_NEW(&w->dev->arena, &m->noise, w->dtype, x->shape[0], x->shape[1]));
    LK_TRY(LK_NEW(&w->dev->arena, &m->keep, w->dtype, x->shape[0], x->shape[1]));
    LK_TRY(lk_copy(w->dev, &(struct lk_copy){.y = &m->noise, .x = x}));
    LK_TRY(begin_at_source(w));
    if (!lk_walk_planning(w)) LK_TRY(upload_keep(w, window, cell, multiple));
    return lk_trace(w->dev, &m->keep, "mask.keep");
}

enum lk_code lk_mask_blend(const struct lk_walk *w, int i) {
    if (!w->request->mask) return LK_OK;
    LK_TRY(lk_walk_check_finite(w, &w->latents, "transformer", i)); /* before values are dropped */
    const struct lk_blend op = {&w->latents, &w->mask.source, &w->mask.noise, &w->mask.keep, w->sigmas[i + 1]};
    return lk_blend(w->dev, &op);
}

void lk_mask_end(struct lk_walk *w) { lk_image_free(&w->mask.image); }

/* --- paste --- */

/* The source resized, with the picture in its window, in the source's size again. */
static enum lk_code make_canvas(const struct lk_image *made, const struct lk_image *source,
                                const struct lk_mask_window *m, struct lk_image *out) {
    struct lk_image canvas = {0};
    LK_TRY(lk_image_resize(&canvas, source, m->resized_width, m->resized_height, LK_RESAMPLE_LANCZOS));
    for (int y = 0; y < m->height; y++)
        memcpy(canvas.pixels + 3 * ((size_t)(m->top + y) * (size_t)canvas.width + (size_t)m->left),
               made->pixels + 3 * (size_t)y * (size_t)m->width, 3 * (size_t)m->width);
    const enum lk_code rc = lk_image_resize(out, &canvas, source->width, source->height, LK_RESAMPLE_LANCZOS);
    lk_image_free(&canvas);
    return rc;
}

/* What the mask edits and the window shows. */
static bool is_edited(const struct lk_image *mask, const struct lk_mask_window *m, int x, int y) {
    const double at_x = (x + 0.5) * m->resized_width / mask->width, at_y = (y + 0.5) * m->resized_height / mask->height;
    return mask->pixels[(size_t)y * (size_t)mask->width + (size_t)x] >= EDITED && at_x >= m->left &&
           at_x < m->left + m->width && at_y >= m->top && at_y < m->top + m->height;
}

/* Pixels from each to the nearest kept one of its column, at most `most`: down, then up, some columns at a time. */
static void column_distances(const struct lk_image *mask, const struct lk_mask_window *m, int most, int *out) {
    const int width = mask->width, height = mask->height;
#pragma omp parallel for schedule(static)
    for (int first = 0; first < width; first += COLUMNS) {
        const int last = first + COLUMNS < width ? first + COLUMNS : width;
        for (int y = 0; y < height; y++)
            for (int x = first; x < last; x++) {
                int *at = &out[(size_t)y * (size_t)width + (size_t)x];
                const int above = y ? at[-width] : most;
                *at = !is_edited(mask, m, x, y) ? 0 : above < most ? above + 1 : most;
            }
        for (int y = height - 1; y-- > 0;)
            for (int x = first; x < last; x++) {
                int *at = &out[(size_t)y * (size_t)width + (size_t)x];
                if (at[width] + 1 < *at) *at = at[width] + 1;
            }
    }
}

/* 255 at feather + 1 pixels from what is kept and beyond, 0 where it is kept. */
static uint8_t alpha_at(const int *columns, int width, int x, int feather) {
    const int64_t most = feather + 1, first = x - most > 0 ? x - most : 0,
                  last = x + most < width ? x + most : width - 1;
    int64_t nearest = most * most;
    if (!columns[x]) return 0;
    for (int64_t k = first; k <= last; k++) {
        const int64_t d = columns[k], square = (k - x) * (k - x) + d * d;
        if (d < most && square < nearest) nearest = square;
    }
    if (nearest >= most * most) return 255;
    return (uint8_t)floor(255 * sqrt((double)nearest) / (double)most + 0.5);
}

/* Alpha of a row: where no column within reach has a kept pixel within reach, it is 255. */
static void alpha_row(const int *columns, int width, int feather, uint8_t *out) {
    const int most = feather + 1;
    int last = INT_MIN / 2; /* the last such column */
    for (int k = 0; k < most && k < width; k++)
        if (columns[k] < most) last = k;
    for (int x = 0; x < width; x++) {
        if (x + most < width && columns[x + most] < most) last = x + most;
        out[x] = last < x - most ? 255 : alpha_at(columns, width, x, feather);
    }
}

static enum lk_code check_kept(const struct lk_image *out, const struct lk_image *source, const int *columns) {
    for (size_t i = 0; i < (size_t)out->width * (size_t)out->height; i++)
        if (!columns[i] && memcmp(out->pixels + 3 * i, source->pixels + 3 * i, 3) != 0)
            return lk_fail(LK_E_INTERNAL, "mask: pixel %zu of what is kept is not the source's", i);
    return LK_OK;
}

enum lk_code lk_mask_paste(struct lk_image *made, const struct lk_image *source, const struct lk_image *mask,
                           const struct lk_mask_window *window, int feather, uint8_t *alpha) {
    struct lk_image rgb = {0}, out = {0};
    const int width = mask->width, height = mask->height;
    int *columns = lk_malloc((size_t)width * (size_t)height * sizeof *columns);
    uint8_t *own = alpha ? NULL : lk_malloc((size_t)width * (size_t)height);
    if (!alpha) alpha = own;
    enum lk_code rc = columns && alpha ? lk_image_to_rgb(&rgb, source) : lk_fail(LK_E_NOMEM, "mask: out of memory");
    if (!rc) rc = make_canvas(made, &rgb, window, &out);
    if (!rc) column_distances(mask, window, feather + 1, columns);
#pragma omp parallel for schedule(static)
    for (int y = 0; y < (rc ? 0 : height); y++) {
        const size_t row = (size_t)y * (size_t)width;
        alpha_row(columns + row, width, feather, alpha + row);
        for (size_t at = row; at < row + (size_t)width; at++)
            for (size_t c = 3 * at; c < 3 * at + 3; c++)
                out.pixels[c] = (uint8_t)((alpha[at] * out.pixels[c] + (255 - alpha[at]) * rgb.pixels[c] + 127) / 255);
    }
    if (!rc) rc = check_kept(&out, &rgb, columns);
    lk_image_free(&rgb);
    lk_free(columns);
    lk_free(own);
    if (rc) {
        lk_image_free(&out);
        return rc;
    }
    lk_image_free(made);
    *made = out;
    return LK_OK;
}

double lk_mask_seam(const struct lk_image *picture, const struct lk_image *mask) {
    int64_t sum = 0, n = 0;
    const int channels = picture->channels;
    for (int y = 0; y < mask->height; y++)
        for (int x = 0; x < mask->width; x++)
            for (int down = 0; down < 2; down++) {
                if (down ? y + 1 == mask->height : x + 1 == mask->width) continue;
                const size_t at = (size_t)y * (size_t)mask->width + (size_t)x,
                             to = at + (size_t)(down ? mask->width : 1);
                if ((mask->pixels[at] >= EDITED) == (mask->pixels[to] >= EDITED)) continue;
                for (int c = 0; c < channels; c++)
                    sum += abs(picture->pixels[at * (size_t)channels + (size_t)c] -
                               picture->pixels[to * (size_t)channels + (size_t)c]);
                n += channels;
            }
    return n ? (double)sum / (double)n : 0;
}

/* Of the result and its source, in the source's size; another size has none. */
static enum lk_code measure_seam(const struct lk_walk *w) {
    struct lk_result *out = w->result;
    const struct lk_image *mask = &w->mask.image;
    struct lk_image rgb = {0};
    if (out->image.width != mask->width || out->image.height != mask->height) return LK_OK;
    LK_TRY(lk_image_to_rgb(&rgb, &w->request->images[0]));
    out->seam[0] = lk_mask_seam(&out->image, mask);
    out->seam[1] = lk_mask_seam(&rgb, mask);
    lk_image_free(&rgb);
    return LK_OK;
}

enum lk_code lk_mask_finish(const struct lk_walk *w) {
    const struct lk_request *q = w->request;
    struct lk_result *out = w->result;
    struct lk_mask_window window = w->mask.window;
    if (!q->mask) return LK_OK;
    const struct lk_image *source = &q->images[0];
    if (out->image.width != window.width || out->image.height != window.height) /* it has the source's size already */
        window = (struct lk_mask_window){source->width, source->height, 0, 0, source->width, source->height};
    size_t n_edited = 0, n = (size_t)source->width * (size_t)source->height;
    for (size_t i = 0; i < n; i++) n_edited += w->mask.image.pixels[i] >= EDITED;
    out->mask_edited = (double)n_edited / (double)n;
    out->kept_exact = !q->mask_paste || strcmp(q->mask_paste, "off") != 0;
    if (out->kept_exact) LK_TRY(lk_mask_paste(&out->image, source, &w->mask.image, &window, q->mask_feather, NULL));
    return measure_seam(w);
}
