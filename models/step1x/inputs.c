/* Step1X-Edit: the picture as the vision tower sees it, and where a prompt's rows stand in the transformer's rotation.
 */
#include <string.h>

#include "engine/base/alloc.h"
#include "models/step1x/step1x.h"

#define TOKEN_SIDE 28 /* pixels of a vision token's side: the original's constant, whatever patch_size is */

static enum lk_code rgb_picture(const struct lk_image *source, int width, int height, struct lk_image *rgb) {
    if (!source) {
        LK_TRY(lk_image_new(rgb, width, height, 3));
        memset(rgb->pixels, 0, (size_t)width * (size_t)height * 3);
        return LK_OK;
    }
    struct lk_image resized = {0};
    LK_TRY(lk_image_resize(&resized, source, width, height, LK_RESAMPLE_LANCZOS));
    enum lk_code rc = lk_image_to_rgb(rgb, &resized);
    lk_image_free(&resized);
    return rc;
}

enum lk_code lk_step1x_vision_rows(const struct lk_step1x *m, const struct lk_image *source, int width, int height,
                                   float **rows, struct lk_vlm_image *out) {
    *out = (struct lk_vlm_image){0};
    LK_TRY(lk_qwen2_vl_size(&m->processor, width, height, &out->grid_w, &out->grid_h));
    out->grid_w /= m->processor.patch_size;
    out->grid_h /= m->processor.patch_size;
    if (!rows) return LK_OK;
    struct lk_image rgb = {0};
    LK_TRY(rgb_picture(source, width, height, &rgb));
    enum lk_code rc = lk_qwen2_vl_rows(&m->processor, &rgb, rows, &out->grid_h, &out->grid_w);
    lk_image_free(&rgb);
    if (!rc) out->rows = *rows;
    return rc;
}

/* The middle of vision token i, of n along a side of `pixels` pixels, in latents of 2x2 packed pixels of 8: the
 * reference takes pixel centres to be at integers there, and the middle of a token's 16 pixels at 11. */
static float latent_coordinate(int i, int n, int pixels) {
    double pixel = (TOKEN_SIDE * i + 13.5) * (pixels - 1) / (TOKEN_SIDE * n - 1);
    return (float)((pixel - 11.0) / 16.0);
}

void lk_step1x_text_positions(const struct lk_step1x *m, const int32_t *ids, int32_t (*positions)[3], int64_t n,
                              const struct lk_vlm_image *image, int width, int height, float (*out)[LK_STEP1X_AXES]) {
    int merge = m->processor.merge_size, rows = image->grid_h / merge, columns = image->grid_w / merge, token = 0;
    int32_t last = positions[0][0];
    for (int64_t i = 1; i < n; i++)
        if (positions[i][0] > last) last = positions[i][0];
    for (int64_t i = 0; i < n; i++) {
        out[i][0] = (float)(positions[i][0] - last - 1);
        out[i][1] = out[i][2] = 0.0f;
        if (ids[i] != m->text_config.image_token_id) continue;
        out[i][1] = latent_coordinate(token / columns, rows, height);
        out[i][2] = latent_coordinate(token % columns, columns, width);
        token++;
    }
}
