/* A transformer as bench_dit runs it: one table of functions a family. */
#pragma once

#include <math.h>

#include "engine/ops.h"
#include "weights/checkpoint.h"
#include "weights/config.h"

struct dit_tokens {
    int64_t txt, noise, ref;
};

struct dit_widths {
    int64_t in_channels, out_channels, joint_attention_dim, dim, head_dim;
};

struct dit_inputs {
    struct lk_tensor x;             /* [noise + ref, in_channels] */
    struct lk_tensor prompt_embeds; /* [txt, joint_attention_dim] */
    struct lk_tensor context;       /* [txt, dim]: made of prompt_embeds in each forward */
    struct lk_tensor cos, sin;      /* f32 [txt + noise + ref, head_dim / 2] */
    struct lk_tensor velocity;      /* [noise, out_channels] */
};

struct dit_family {
    const char *name;   /* --family, and the peer's */
    const char *folder; /* of the weights, beside model_index.json */
    /* Takes and closes `json`. *model is for the other functions; free with close. */
    enum lk_code (*open)(void **model, struct lk_config *json, const struct lk_checkpoint *checkpoint,
                         enum lk_dtype compute);
    void (*close)(void *model);
    struct dit_widths (*widths)(const void *model);
    /* Host f32 [txt + noise + ref, head_dim / 2] each. */
    enum lk_code (*rope)(const void *model, const struct dit_tokens *tokens, float *cos, float *sin);
    enum lk_code (*forward)(struct lk_device *dev, const void *model, const struct dit_inputs *inputs);
};

/* The widest grid of n tokens with at most as many rows as columns, as the peer has it. */
static inline void dit_grid(int64_t n, int64_t *height, int64_t *width) {
    *height = (int64_t)sqrt((double)n);
    while (*height > 1 && n % *height) --*height;
    *width = n ? n / *height : 0;
}
