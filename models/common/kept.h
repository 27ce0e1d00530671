/* What the stages of a queue of jobs leave for later ones, in host memory: features of images, prompt embeddings,
 * reference latents, final latents. What equal prompts and images give is made once: an entry is found by its key, the
 * digest of all that decides it beside the weights. */
#pragma once

#include "engine/image/image.h"
#include "engine/tensor.h"

struct lk_kept {
    struct lk_kept *next;
    char key[65];            /* "": not to be found */
    bool prompt;             /* what the transformer is told of a prompt */
    bool reference;          /* what the VAE makes of an image that is to be edited */
    bool used;               /* made or found since the last lk_kept_trim */
    int64_t n_pad;           /* of a prompt: rows at its beginning that stand for no word */
    int64_t n_behind[2];     /* and rows behind the words, in the columns of each text encoder */
    int64_t split;           /* columns of the first of two text encoders; 0: there is one */
    struct lk_tensor tensor; /* dense; data in host memory, NULL when planning */
};

/* Starts a key; `kind` says what it is of. */
void lk_key_begin(char key[65], const char *kind);
void lk_key_add(char key[65], const void *bytes, size_t n);
void lk_key_add_int(char key[65], int64_t value);
/* Size, channels and pixels. */
void lk_key_add_image(char key[65], const struct lk_image *image);

/* NULL if there is none, and for an empty key. */
struct lk_kept *lk_kept_find(struct lk_kept *list, const char *key);
/* Puts an entry of t's dtype and shape before the others. with_data: its memory is allocated, contents undefined. */
enum lk_code lk_kept_add(struct lk_kept **list, const char *key, const struct lk_tensor *t, bool with_data,
                         struct lk_kept **out);
/* Frees the entries before `from`, which was the list once. */
void lk_kept_cut(struct lk_kept **list, struct lk_kept *from);
/* Keeps of those that can be found the ones used last, as many as have no more than `bytes` together, and no more than
 * LK_KEPT_MOST: where each picture has prompts of its own, what is made once is not met again. */
enum { LK_KEPT_MOST = 256 };
void lk_kept_trim(struct lk_kept **list, size_t bytes);
/* Frees all and empties the list. */
void lk_kept_free(struct lk_kept **list);
