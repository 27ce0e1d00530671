#include "models/rewrite/reply.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

enum { MOST_PIXELS_A_SIDE = 2000, MOST_PIXELS = 768 * 768 };

/* In the order in which they are replaced, each from left to right. */
static const char *const spaces[][2] = {{" .", "."},     {" ?", "?"},     {" !", "!"},   {" ,", ","},
                                        {" ' ", "'"},    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"},
                                        {" 've", "'ve"}, {" 're", "'re"}};

static void replace(char *text, const char *from, const char *to) {
    const size_t n = strlen(from), m = strlen(to);
    char *end = text;
    for (const char *at = text; *at;) {
        const bool here = !strncmp(at, from, n);
        if (here)
            memcpy(end, to, m);
        else
            *end = *at;
        end += here ? m : 1;
        at += here ? n : 1;
    }
    *end = 0;
}

enum lk_code lk_rewrite_reply_text(const char *reply, size_t n, char **out, const char **why) {
    size_t kept;
    *out = NULL;
    *why = "expected a text in UTF-8, got something else";
    if (!lk_utf8_valid(reply, n)) return LK_OK;
    *why = "expected a text, got an empty one";
    lk_utf8_strip(reply, n, &kept);
    if (!kept) return LK_OK;
    if (!(*out = lk_strndup(reply, n))) return lk_fail(LK_E_NOMEM, "rewrite: out of memory for a reply");
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) replace(*out, spaces[i][0], spaces[i][1]);
    return LK_OK;
}

enum lk_code lk_rewrite_picture_qwen(const struct lk_image *image, struct lk_image *out) {
    const int longest = image->width > image->height ? image->width : image->height;
    *out = (struct lk_image){0};
    if (longest <= MOST_PIXELS_A_SIDE) return LK_OK;
    const double ratio = (double)MOST_PIXELS_A_SIDE / longest;
    const int width = (int)(image->height * ratio), height = (int)(image->width * ratio);
    return lk_image_resize(out, image, width > 0 ? width : 1, height > 0 ? height : 1, LK_RESAMPLE_BICUBIC);
}

/* Several become RGB on white, each in the middle of the height of the tallest. */
static enum lk_code join(const struct lk_image *images, int n, struct lk_image *out) {
    int width = 0, height = 0, left = 0;
    for (int i = 0; i < n; i++) {
        width += images[i].width;
        if (images[i].height > height) height = images[i].height;
    }
    LK_TRY(lk_image_new(out, width, height, 3));
    memset(out->pixels, 255, (size_t)width * (size_t)height * 3);
    for (int i = 0; i < n; i++) {
        struct lk_image rgb;
        enum lk_code rc = lk_image_to_rgb(&rgb, &images[i]);
        if (rc) {
            lk_image_free(out);
            return rc;
        }
        const size_t row = (size_t)rgb.width * 3;
        for (int y = 0, top = (height - rgb.height) / 2; y < rgb.height; y++)
            memcpy(out->pixels + ((size_t)(top + y) * (size_t)width + (size_t)left) * 3, rgb.pixels + (size_t)y * row,
                   row);
        left += rgb.width;
        lk_image_free(&rgb);
    }
    return LK_OK;
}

enum lk_code lk_rewrite_picture_flux2(const struct lk_image *images, int n, struct lk_image *out) {
    struct lk_image joined = {0};
    const struct lk_image *whole = n == 1 ? images : &joined;
    *out = joined;
    if (n != 1) LK_TRY(join(images, n, &joined));
    const int64_t area = (int64_t)whole->width * whole->height;
    if (area <= MOST_PIXELS) {
        *out = joined;
        return LK_OK;
    }
    const double scale = sqrt((double)MOST_PIXELS / (double)area);
    const int width = (int)(whole->width * scale), height = (int)(whole->height * scale);
    enum lk_code rc = lk_image_resize(out, whole, width > 0 ? width : 1, height > 0 ? height : 1, LK_RESAMPLE_LANCZOS);
    lk_image_free(&joined);
    return rc;
}
