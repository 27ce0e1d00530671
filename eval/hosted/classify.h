/* Pictures that a safety filter puts in place of one: black, of one colour, or the same for different prompts. */
#pragma once

#include "engine/image/image.h"

/* In the order in which they are looked for. */
enum lk_placeholder {
    LK_NO_PLACEHOLDER,
    LK_PLACEHOLDER_BLACK,    /* every value at most 2, as the diffusers' safety checker leaves it */
    LK_PLACEHOLDER_BLANK,    /* the largest less the smallest value of each channel is at most 4 */
    LK_PLACEHOLDER_REPEATED, /* the same pixels for another prompt of the same model */
    LK_N_PLACEHOLDERS
};
const char *lk_placeholder_key(int placeholder); /* "black"; "" of none */

/* What is seen of a picture alone. */
struct lk_picture_signs {
    enum lk_placeholder placeholder;
    bool blurred;     /* only suspected: a person looks at it (likeness review) */
    char sha256[65];  /* of width, height and pixels */
    double sharpness; /* variance of the four-neighbour Laplacian of luma */
    const char *model, *prompt;
};
/* Alpha is not looked at. The caller sets model and prompt. LK_E_NOMEM. */
enum lk_code lk_picture_signs_of(const struct lk_image *image, struct lk_picture_signs *out);
/* What is seen beside the other pictures of the same model: those repeated, and those whose sharpness is below 2% of
 * the median of the pictures that are no placeholders. LK_E_NOMEM. */
enum lk_code lk_picture_signs_compare(struct lk_picture_signs *list, size_t n);
