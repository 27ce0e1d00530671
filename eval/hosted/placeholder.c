#include "eval/hosted/placeholder.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"

enum { BLACK = 2, BLANK = 4 };
static const double BLURRED = 0.02;

const char *lk_placeholder_key(int placeholder) {
    static const char *const keys[LK_N_PLACEHOLDERS] = {"", "black", "blank", "repeated"};
    return keys[placeholder];
}

static enum lk_placeholder look(const struct lk_image *image, int n_colours) {
    const size_t n = (size_t)image->width * (size_t)image->height, n_channels = (size_t)image->channels;
    int highest = 0, widest = 0;
    for (int c = 0; c < n_colours; c++) {
        int low = 255, high = 0;
        for (size_t i = 0; i < n; i++) {
            const int value = image->pixels[i * n_channels + (size_t)c];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        highest = high > highest ? high : highest;
        widest = high - low > widest ? high - low : widest;
    }
    return highest <= BLACK ? LK_PLACEHOLDER_BLACK : widest <= BLANK ? LK_PLACEHOLDER_BLANK : LK_NO_PLACEHOLDER;
}

static double luma(const struct lk_image *image, int n_colours, int x, int y) {
    const uint8_t *p = image->pixels + ((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels;
    return n_colours == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

static double sharpness(const struct lk_image *image, int n_colours) {
    double sum = 0, squares = 0, n = 0;
    for (int y = 1; y + 1 < image->height; y++)
        for (int x = 1; x + 1 < image->width; x++) {
            const double l = luma(image, n_colours, x - 1, y) + luma(image, n_colours, x + 1, y) +
                             luma(image, n_colours, x, y - 1) + luma(image, n_colours, x, y + 1) -
                             4 * luma(image, n_colours, x, y);
            sum += l, squares += l * l, n++;
        }
    return n > 0 ? squares / n - sum / n * (sum / n) : 0;
}

enum lk_code lk_picture_signs_of(const struct lk_image *image, struct lk_picture_signs *out) {
    const size_t n = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    const int n_colours = image->channels < 3 ? 1 : 3, size[3] = {image->width, image->height, image->channels};
    char *bytes = lk_malloc(n + sizeof size);
    if (!bytes) return lk_fail(LK_E_NOMEM, "out of memory for the digest of a picture");
    memcpy(bytes, size, sizeof size);
    memcpy(bytes + sizeof size, image->pixels, n);
    *out = (struct lk_picture_signs){.placeholder = look(image, n_colours), .sharpness = sharpness(image, n_colours)};
    lk_sha256(bytes, n + sizeof size, out->sha256);
    lk_free(bytes);
    return LK_OK;
}

static int by_model_and_pixels(const void *a, const void *b) {
    const struct lk_picture_signs *x = *(struct lk_picture_signs *const *)a, *y = *(struct lk_picture_signs *const *)b;
    const int order = strcmp(x->model, y->model);
    return order ? order : strcmp(x->sha256, y->sha256);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Those of n sorted pictures of one model that are the same for different prompts. */
static void find_repeated(struct lk_picture_signs **list, size_t n) {
    for (size_t from = 0, to; from < n; from = to) {
        bool differ = false;
        for (to = from; to < n && !strcmp(list[to]->sha256, list[from]->sha256); to++)
            differ |= strcmp(list[to]->prompt, list[from]->prompt) != 0;
        for (size_t i = from; i < to && differ; i++)
            if (!list[i]->placeholder) list[i]->placeholder = LK_PLACEHOLDER_REPEATED;
    }
}

static void find_blurred(struct lk_picture_signs **list, size_t n, double *room) {
    size_t n_pictures = 0;
    for (size_t i = 0; i < n; i++)
        if (!list[i]->placeholder) room[n_pictures++] = list[i]->sharpness;
    if (!n_pictures) return;
    qsort(room, n_pictures, sizeof *room, ascending);
    const double median = (room[(n_pictures - 1) / 2] + room[n_pictures / 2]) / 2;
    for (size_t i = 0; i < n; i++) list[i]->blurred = !list[i]->placeholder && list[i]->sharpness < BLURRED * median;
}

enum lk_code lk_picture_signs_compare(struct lk_picture_signs *list, size_t n) {
    struct lk_picture_signs **sorted = lk_malloc((n + 1) * sizeof *sorted);
    double *room = lk_malloc((n + 1) * sizeof *room);
    const bool ok = sorted && room;
    for (size_t i = 0; ok && i < n; i++) sorted[i] = &list[i];
    if (ok && n) qsort(sorted, n, sizeof *sorted, by_model_and_pixels);
    for (size_t from = 0, to; ok && from < n; from = to) {
        for (to = from; to < n && !strcmp(sorted[to]->model, sorted[from]->model);) to++;
        find_repeated(sorted + from, to - from);
        find_blurred(sorted + from, to - from, room);
    }
    lk_free(sorted);
    lk_free(room);
    return ok ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for a comparison of pictures");
}

static int by_model_and_asked(const void *a, const void *b) {
    const struct lk_picture_signs *x = a, *y = b;
    const int order = strcmp(x->model, y->model);
    return order ? order : x->asked < y->asked ? -1 : x->asked > y->asked;
}

size_t lk_picture_signs_repeats(struct lk_picture_signs *list, size_t n) {
    size_t n_models = 0, n_pictures = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].asked && !list[i].placeholder) list[n_pictures++] = list[i];
    qsort(list, n_pictures, sizeof *list, by_model_and_asked);
    for (size_t from = 0, at = 0; from < n_pictures; from = at) {
        const char *model = list[from].model;
        size_t n_several = 0, n_one = 0; /* of what was asked several times: all, and what has one picture */
        while (at < n_pictures && !strcmp(list[at].model, model)) {
            const struct lk_picture_signs *first = &list[at];
            bool differ = false;
            size_t n_same = 0;
            for (; at < n_pictures && !by_model_and_asked(first, &list[at]); at++, n_same++)
                differ |= strcmp(first->sha256, list[at].sha256) != 0;
            n_several += n_same > 1;
            n_one += n_same > 1 && !differ;
        }
        if (!n_several || n_one < n_several) continue;
        n_models++;
        lk_log(LK_LOG_WARNING,
               "%s: the same picture each time, for all of the %zu things that it was asked for several times: it "
               "takes no seed, and repeats are no draws of their own; ask once each, or with a field that it takes as "
               "seed",
               model, n_several);
    }
    return n_models;
}
