/* One edit under way. Private to models/step1x. */
#pragma once

#include "models/common/queue.h"
#include "models/step1x/region.h"
#include "models/step1x/step1x.h"

/* A prompt on its way to the transformer; the negative one has its own length and positions. */
struct lk_step1x_branch {
    const char *name, *prompt;
    int32_t *ids; /* of the chat string [n], NULL when planning without a prompt */
    bool *quoted;
    int64_t n, n_txt; /* n_txt of them, after the prefix, are seen by the transformer */
    bool any_quoted;
    char hidden_key[65], embeds_key[65]; /* empty when planning without a prompt or its picture */
    /* [n_txt, hidden_size]: the text encoder's states, and its tokens' embeddings; NULL: to be encoded */
    struct lk_kept *hidden, *embeds;
    struct lk_step1x_conditioning conditioning;
};

struct lk_step1x_run {
    struct lk_walk walk;
    struct lk_step1x *m;
    const struct lk_image *source; /* NULL: text-to-image */
    int factor;                    /* of the VAE */
    int width, height;             /* of the edit */
    int out_width, out_height;     /* to which the result is resized at the end */
    int seen_width, seen_height;   /* of the source as it is handed to the vision tower, or of the black picture */
    struct lk_vlm_image picture;   /* rows NULL */
    struct lk_kept *features;      /* of the picture */
    struct lk_step1x_branch branches[2];
    int n_branches; /* 2 with guidance */
    int64_t n_noise, n_img;
    struct lk_tensor x, uncond_velocity;
    struct lk_step1x_region region;
};

/* What a plan calls one forward: that for the longest prompt. */
static inline const struct lk_step1x_branch *lk_step1x_longest(const struct lk_step1x_run *r) {
    return &r->branches[r->n_branches > 1 && r->branches[1].n > r->branches[0].n];
}
/* After the work for branch i: a plan takes its cost back, `before`, unless it is the longest. Its memory counts all
 * the same, since a kernel may want more scratch for fewer rows. */
static inline void lk_step1x_count_longest(const struct lk_step1x_run *r, int i, const struct lk_cost *before) {
    if (lk_walk_planning(&r->walk) && &r->branches[i] != lk_step1x_longest(r)) r->walk.dev->cost = *before;
}

/* Tokens and lengths of the prompts as far as they can be known: without a tokenizer or a prompt a length is assumed.
 */
enum lk_code lk_step1x_prepare_prompts(struct lk_step1x_run *r, const char *prompt);
/* Stage "vision": features of the picture; "text_encoder": hidden and embeds of every branch. */
enum lk_code lk_step1x_see(void *run);
enum lk_code lk_step1x_encode_prompts(void *run);
/* hidden and embeds of every branch on the device. */
enum lk_code lk_step1x_place_prompts(struct lk_step1x_run *r);
/* cos and sin of every branch. */
enum lk_code lk_step1x_make_rope(const struct lk_step1x_run *r);
