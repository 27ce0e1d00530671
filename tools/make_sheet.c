/* Puts pictures side by side, before and after, in one PNG.
 *
 *     make_sheet [--columns N] [--scale N] OUT.png IMAGE IMAGE...
 *
 * Every picture gets the height of the tallest; a white gap stands between. --columns: rows of so many. --scale: small
 * pictures so many times as large, pixel for pixel. */
#include <stdio.h>
#include <string.h>

#include "engine/image/image.h"

#define MAX_IMAGES 64
#define GAP        16

static enum lk_code fit(struct lk_image *image, int height) {
    if (image->height == height) return LK_OK;
    struct lk_image resized;
    int width = (int)((int64_t)image->width * height / image->height);
    enum lk_code rc = lk_image_resize(&resized, image, width ? width : 1, height, LK_RESAMPLE_LANCZOS);
    if (rc) return rc;
    lk_image_free(image);
    *image = resized;
    return LK_OK;
}

static enum lk_code load(struct lk_image *image, const char *path) {
    struct lk_image read;
    enum lk_code rc = lk_image_read(&read, path, 1, 0);
    if (rc) return rc;
    rc = lk_image_to_rgb(image, &read);
    lk_image_free(&read);
    return rc;
}

/* The widest row is as wide as the sheet. */
static enum lk_code join(struct lk_image *out, const struct lk_image *images, int n, int columns, int height) {
    int64_t width = 0, rows = (n + columns - 1) / columns, total = rows * (height + GAP) - GAP;
    for (int row = 0; row < rows; row++) {
        int64_t sum = -GAP;
        for (int i = row * columns; i < n && i < (row + 1) * columns; i++) sum += images[i].width + GAP;
        if (sum > width) width = sum;
    }
    if (width > 65535 || total > 65535)
        return lk_fail(LK_E_IMAGE_SIZE, "the sheet would have %lldx%lld pixels", (long long)width, (long long)total);
    LK_TRY(lk_image_new(out, (int)width, (int)total, 3));
    memset(out->pixels, 255, (size_t)width * (size_t)total * 3);
    size_t left = 0;
    for (int i = 0; i < n; i++) {
        size_t line = (size_t)images[i].width * 3, top = (size_t)(i / columns) * (size_t)(height + GAP);
        if (i % columns == 0) left = 0;
        for (int y = 0; y < height; y++)
            memcpy(out->pixels + ((top + (size_t)y) * (size_t)width + left) * 3, images[i].pixels + (size_t)y * line,
                   line);
        left += (size_t)images[i].width + GAP;
    }
    return LK_OK;
}

static enum lk_code enlarge(struct lk_image *image, int scale) {
    struct lk_image larger;
    LK_TRY(lk_image_resize(&larger, image, image->width * scale, image->height * scale, LK_RESAMPLE_NEAREST));
    lk_image_free(image);
    *image = larger;
    return LK_OK;
}

static enum lk_code run(int argc, char **argv) {
    struct lk_image images[MAX_IMAGES] = {0}, sheet = {0};
    int at = 1, columns = MAX_IMAGES, scale = 1, height = 0;
    char rest;
    for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
        int *to = !strcmp(argv[at], "--columns") ? &columns : !strcmp(argv[at], "--scale") ? &scale : NULL;
        if (!to || sscanf(argv[at + 1], "%3d%c", to, &rest) != 1 || *to < 1 || *to > MAX_IMAGES)
            return lk_fail(LK_E_USAGE, "%s %s: expected --columns or --scale, and 1 to %d", argv[at], argv[at + 1],
                           MAX_IMAGES);
    }
    int n = argc - at - 1;
    if (n < 1 || n > MAX_IMAGES)
        return lk_fail(LK_E_USAGE, "usage: make_sheet [--columns N] [--scale N] OUT.png IMAGE IMAGE...");
    enum lk_code rc = LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        rc = load(&images[i], argv[at + 1 + i]);
        if (!rc && scale > 1) rc = enlarge(&images[i], scale);
        if (!rc && images[i].height > height) height = images[i].height;
    }
    for (int i = 0; i < n && !rc; i++) rc = fit(&images[i], height);
    if (!rc) rc = join(&sheet, images, n, columns, height);
    if (!rc) rc = lk_png_write(argv[at], &sheet, NULL, 0);
    for (int i = 0; i < n; i++) lk_image_free(&images[i]);
    lk_image_free(&sheet);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_sheet: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
