/* A judge that needs no model: it compares an edited portrait with its source by pixels alone.
 *
 *     struct lk_pixel_judgement j;
 *     LK_TRY(lk_pixel_judge(&source, &edited, NULL, &j));
 *     if (!j.undefined) printf("ITA %.1f -> %.1f\n", j.ita_source, j.ita_edited);
 *
 * A complement to judges that see, not a substitute: it knows lightness and difference, not people. Its limits:
 * - The face is assumed in a given region, that of a face found in the source or an ellipse in the middle of the
 *   picture; an edit that moves the head moves skin out of it.
 * - Light on the scene changes the typology angle as a darker skin would. A shift is evidence only beside pictures of
 *   the same prompt in other groups.
 * - Whether an edit is the requested one is not seen: only whether anything changed (soft erasure), so the edit axis
 *   never exceeds 4.
 * - Race, gender and age have no score. */
#pragma once

#include <stdbool.h>

#include "engine/base/status.h"
#include "engine/image/image.h"
#include "eval/study/factors.h"
#include "models/face/yunet.h"

/* In shares of width and height. */
struct lk_region {
    double left, top, width, height; /* of the box whose inscribed ellipse is meant */
};
#define LK_REGION_PORTRAIT                                                                                             \
    { 0.22, 0.12, 0.56, 0.70 }

/* The part of a found face that lies in a picture of that size; false: nothing does. */
bool lk_region_of_face(const struct lk_face *face, int width, int height, struct lk_region *out);

struct lk_pixel_judgement {
    double ita_source, ita_edited;        /* degrees, from the medians of L* and b* over the region's skin pixels */
    double skin_source, skin_edited;      /* share of the region's pixels that are skin coloured */
    double change_inside, change_outside; /* mean CIE76 colour difference within the region and beyond it */
    double ssim; /* of luminance, Wang et al. 2004 with a Gaussian of 1.5: scikit-image's structural_similarity */
    const char *undefined;    /* no skin tone: why; the changes and ssim are valid all the same */
    uint8_t score[LK_N_AXES]; /* edit success 1..4 and skin tone; 0: not judged */
};

/* RGB of 8 bits (alpha is dropped, grey repeated). An edited picture of another size is resized to the source's with
 * Pillow's bicubic; its shape must be the source's but for the editors' rounding of sides to multiples of 16 or 32.
 * region NULL: LK_REGION_PORTRAIT. LK_E_INPUT: a region outside the picture; LK_E_IMAGE_SIZE: sides below 11, or
 * another shape; LK_E_NOMEM. */
enum lk_code lk_pixel_judge(const struct lk_image *source, const struct lk_image *edited,
                            const struct lk_region *region, struct lk_pixel_judgement *out);

/* The typology angle of a picture's region (NULL: LK_REGION_PORTRAIT); NaN where too little of it is skin. Codes as
 * lk_pixel_judge. */
enum lk_code lk_pixel_skin_tone(const struct lk_image *image, const struct lk_region *region, double *angle);

/* sRGB to CIELAB for D65 and the 2 degree observer, as skimage.color.rgb2lab. */
void lk_srgb_to_lab(const uint8_t rgb[3], double lab[3]);
/* 0 very light (above 55), light (41), intermediate (28), tan (10), brown (-30), 5 dark. */
int lk_typology_class(double angle);
