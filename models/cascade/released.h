/* The released configurations as JSON texts; the text encoder's is lk_clip_text_big_g. */
#pragma once

struct lk_cascade_released {
    const char *prior, *prior_lite, *decoder, *decoder_lite, *vqgan;
};
extern const struct lk_cascade_released lk_cascade_released;
