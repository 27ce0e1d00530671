#include "models/face/face_mask.h"

#include <math.h>

enum { LEAST_SHARE = 100 }; /* one in so many pixels is edited at least */

static bool belongs(const double box[4], const struct lk_face_mask *how, int x, int y) {
    const double half_x = (0.5 + how->grow) * box[2], half_y = (0.5 + how->grow) * box[3];
    const double dx = x + 0.5 - (box[0] + box[2] / 2), dy = y + 0.5 - (box[1] + box[3] / 2);
    if (how->ellipse) return dx * dx / (half_x * half_x) + dy * dy / (half_y * half_y) <= 1;
    return dx >= -half_x && dx < half_x && dy >= -half_y && dy < half_y;
}

enum lk_code lk_face_mask_draw(struct lk_image *out, int width, int height, const double (*boxes)[4], int n,
                               const struct lk_face_mask *how) {
    const int64_t n_pixels = (int64_t)width * height;
    int64_t n_edited = 0;
    *out = (struct lk_image){0};
    if (!(how->grow >= 0 && how->grow <= 10))
        return lk_fail(LK_E_USAGE, "grow: expected a number from 0 to 10, got %g", how->grow);
    for (int i = 0; i < n; i++) {
        bool good = boxes[i][2] > 0 && boxes[i][3] > 0;
        for (int k = 0; k < 4; k++) good = good && isfinite(boxes[i][k]) && fabs(boxes[i][k]) < 1e6;
        if (!good)
            return lk_fail(LK_E_INPUT,
                           "box: expected X,Y,WIDTH,HEIGHT in pixels with width and height above 0, got "
                           "%g,%g,%g,%g",
                           boxes[i][0], boxes[i][1], boxes[i][2], boxes[i][3]);
    }
    LK_TRY(lk_image_new(out, width, height, 1));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            bool in = false;
            for (int i = 0; i < n && !in; i++) in = belongs(boxes[i], how, x, y);
            const bool edited = in != how->keep;
            out->pixels[(size_t)y * (size_t)width + (size_t)x] = edited ? 255 : 0;
            n_edited += edited;
        }
    if (n_edited * LEAST_SHARE >= n_pixels && n_edited < n_pixels) return LK_OK;
    lk_image_free(out);
    return lk_fail(LK_E_INPUT,
                   "mask: expected at least 1 %% of the picture to edit and some to keep, got %.2f %% to edit",
                   100.0 * (double)n_edited / (double)n_pixels);
}
