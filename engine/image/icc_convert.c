/* Pictures with a colour profile other than sRGB become sRGB, through LittleCMS: what models, judges and readers of
 * numbers expect. Perceptual intent without black point compensation, as Pillow's ImageCms has it unless told. */
#include <lcms2.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/image/internal.h"

static enum lk_code refuse(const char *name, const char *profile, const char *why) {
    return lk_fail(LK_E_IMAGE, "%s: its colour profile \"%s\" %s; convert it to sRGB first, or take the profile out",
                   name, profile, why);
}

/* What a profile's numbers are: channels of a pixel, 0 for what no picture here has. */
static int channels_of(cmsHPROFILE profile) {
    switch (cmsGetColorSpace(profile)) {
    case cmsSigGrayData:
        return 1;
    case cmsSigRgbData:
        return 3;
    case cmsSigCmykData:
        return 4;
    default:
        return 0;
    }
}

static enum lk_code convert_rows(cmsHTRANSFORM transform, int n, struct lk_image *out, const struct lk_image *in) {
    const size_t width = (size_t)in->width, channels = (size_t)in->channels, made = (size_t)out->channels;
    uint8_t *row = lk_malloc(width * 7); /* what goes in, and RGB */
    if (!row) return LK_E_NOMEM;
    for (size_t y = 0; y < (size_t)in->height; y++) {
        const uint8_t *from = in->pixels + y * width * channels;
        uint8_t *rgb = row + 4 * width, *to = out->pixels + y * width * made;
        for (size_t x = 0; x < width && n < 4; x++)
            for (size_t c = 0; c < (size_t)n; c++) row[x * (size_t)n + c] = from[x * channels + (channels < 3 ? 0 : c)];
        cmsDoTransform(transform, n == 4 ? in->unconverted + 4 * y * width : row, rgb, (cmsUInt32Number)width);
        for (size_t x = 0; x < width; x++) {
            memcpy(to + x * made, rgb + 3 * x, 3);
            if (made == 4) to[x * made + 3] = from[x * channels + channels - 1];
        }
    }
    lk_free(row);
    return LK_OK;
}

static enum lk_code convert(struct lk_image *image, const char *name, const char *profile, cmsContext context,
                            cmsHPROFILE from, cmsHPROFILE to) {
    static const cmsUInt32Number formats[] = {0, TYPE_GRAY_8, 0, TYPE_RGB_8, TYPE_CMYK_8};
    const bool inks = image->unconverted && image->channels == 3;
    const int n = channels_of(from);
    struct lk_image out;
    if (!n || (n == 4) != inks || (n == 1 && image->channels > 2))
        return refuse(name, profile,
                      n ? "is of another kind of colours than the picture" : "is of no RGB, grey or CMYK");
    cmsHTRANSFORM transform = cmsCreateTransformTHR(context, from, formats[n], to, TYPE_RGB_8, INTENT_PERCEPTUAL, 0);
    if (!transform) return refuse(name, profile, "cannot be converted");
    enum lk_code rc = lk_image_new(&out, image->width, image->height, image->channels % 2 ? 3 : 4);
    if (!rc) rc = convert_rows(transform, n, &out, image);
    cmsDeleteTransform(transform);
    if (rc) {
        lk_image_free(&out);
        return lk_fail(rc, "%s: no memory to convert its colours; free memory and try again", name);
    }
    out.nearest_only = image->nearest_only;
    memcpy(out.converted_from, profile, sizeof out.converted_from);
    lk_image_free(image);
    *image = out;
    return LK_OK;
}

enum lk_code lk_image_to_srgb(struct lk_image *image, const unsigned char *bytes, size_t n_bytes, const char *name) {
    char profile[LK_IMAGE_PROFILE_NAME];
    unsigned char *icc;
    size_t n;
    if (!lk_icc_other_colours(bytes, n_bytes, profile, &icc, &n)) return LK_OK;
    cmsContext context = cmsCreateContext(NULL, NULL);
    cmsHPROFILE from = context ? cmsOpenProfileFromMemTHR(context, icc, (cmsUInt32Number)n) : NULL;
    cmsHPROFILE to = from ? cmsCreate_sRGBProfileTHR(context) : NULL;
    enum lk_code rc = to ? convert(image, name, profile, context, from, to) : refuse(name, profile, "is damaged");
    if (to) cmsCloseProfile(to);
    if (from) cmsCloseProfile(from);
    if (context) cmsDeleteContext(context);
    lk_free(icc);
    return rc;
}
