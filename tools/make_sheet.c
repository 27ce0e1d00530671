/* Puts pictures side by side, before and after, in one PNG.
 *
 *     make_sheet OUT.png IMAGE IMAGE...
 *
 * Every picture gets the height of the tallest; a white gap stands between. */
#include <stdio.h>
#include <string.h>

#include "engine/image/image.h"

#define MAX_IMAGES 16
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

static enum lk_code join(struct lk_image *out, const struct lk_image *images, int n, int height) {
    int64_t width = (int64_t)(n - 1) * GAP;
    for (int i = 0; i < n; i++) width += images[i].width;
    if (width > 65535) return lk_fail(LK_E_IMAGE_SIZE, "the sheet would be %lld pixels wide", (long long)width);
    enum lk_code rc = lk_image_new(out, (int)width, height, 3);
    if (rc) return rc;
    memset(out->pixels, 255, (size_t)width * (size_t)height * 3);
    size_t left = 0;
    for (int i = 0; i < n; i++) {
        size_t row = (size_t)images[i].width * 3;
        for (int y = 0; y < height; y++)
            memcpy(out->pixels + ((size_t)y * (size_t)width + left) * 3, images[i].pixels + (size_t)y * row, row);
        left += (size_t)images[i].width + GAP;
    }
    return LK_OK;
}

static enum lk_code run(int argc, char **argv) {
    if (argc < 3 || argc - 2 > MAX_IMAGES) return lk_fail(LK_E_USAGE, "usage: make_sheet OUT.png IMAGE IMAGE...");
    struct lk_image images[MAX_IMAGES] = {0}, sheet = {0};
    int n = argc - 2, height = 0;
    enum lk_code rc = LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        rc = load(&images[i], argv[2 + i]);
        if (!rc && images[i].height > height) height = images[i].height;
    }
    for (int i = 0; i < n && !rc; i++) rc = fit(&images[i], height);
    if (!rc) rc = join(&sheet, images, n, height);
    if (!rc) rc = lk_png_write(argv[1], &sheet, NULL, 0);
    for (int i = 0; i < n; i++) lk_image_free(&images[i]);
    lk_image_free(&sheet);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_sheet: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
