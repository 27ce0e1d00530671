/* One edit under way. Private to models/qwen_edit. */
#pragma once

#include "models/common/queue.h"
#include "models/qwen_edit/qwen_edit.h"

/* A prompt on its way to the transformer; the negative one has its own length and positions. */
struct lk_qwen_edit_branch {
    const char *name, *prompt;
    int32_t *ids;           /* of the whole chat [n], NULL when planning without a prompt */
    int64_t n, n_txt;       /* n_txt of them, after the template's beginning, are seen by the transformer */
    char key[65];           /* of embeds; empty when planning without a prompt or its pictures */
    struct lk_kept *embeds; /* [n_txt, hidden_size]: what the text encoder says */
    struct lk_qwen_conditioning conditioning;
    struct lk_tensor velocity; /* [n_noise, 4 C] */
};

struct lk_qwen_edit_run {
    struct lk_walk walk;
    struct lk_request request; /* with a prompt in any case when it is run */
    struct lk_qwen_edit *m;
    struct lk_qwen_edit_branch branches[2];
    int n_branches; /* 2 with true CFG */
    struct lk_qwen_edit_reference references[LK_MAX_REFERENCES];
    int width, height, factor;                     /* of the output; of the VAE */
    struct lk_qwen_grid grids[LK_QWEN_MAX_IMAGES]; /* the output's, then each reference's */
    int64_t n_noise, n_img;
    struct lk_kept *features; /* of all references, for the prompts */
    struct lk_tensor x;       /* [n_img, 4 C]: noise tokens, then those of each reference */
};

/* What a plan calls one forward: that for the longest prompt. */
static inline const struct lk_qwen_edit_branch *lk_qwen_edit_longest(const struct lk_qwen_edit_run *r) {
    return &r->branches[r->n_branches > 1 && r->branches[1].n > r->branches[0].n];
}
/* After the work for branch i: a plan takes its cost back, `before`, unless it is the longest. Its memory counts all
 * the same, since a kernel may want more scratch for fewer rows. */
static inline void lk_qwen_edit_count_longest(const struct lk_qwen_edit_run *r, int i, const struct lk_cost *before) {
    if (lk_walk_planning(&r->walk) && &r->branches[i] != lk_qwen_edit_longest(r)) r->walk.dev->cost = *before;
}

/* Tokens and lengths of the prompts as far as they can be known: without a tokenizer or a prompt a length is assumed.
 */
enum lk_code lk_qwen_edit_prepare_prompts(struct lk_qwen_edit_run *r);
/* cos and sin of every branch. */
enum lk_code lk_qwen_edit_make_rope(const struct lk_qwen_edit_run *r);
/* Stage "vision": features of the references; "text_encoder": embeddings of every branch. */
enum lk_code lk_qwen_edit_see(void *run);
enum lk_code lk_qwen_edit_encode_prompts(void *run);
/* The context of every branch. */
enum lk_code lk_qwen_edit_embed_contexts(struct lk_qwen_edit_run *r);
