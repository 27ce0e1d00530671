/* Shared by the parts of weights/lora. */
#pragma once

#include <string.h>

#include "engine/bf16.h"
#include "engine/f16.h"
#include "weights/lora/lora.h"

struct lk_lora_module {
    const char *flat; /* lk_lora_key_flatten of its name */
    const char *name; /* in the key of a or b, `length` bytes */
    size_t length;
    const struct lk_st_tensor *a, *b, *alpha;
    int component; /* of lk_lora_key */
    int64_t rank, columns;
    float s; /* scale * alpha / rank */
};

#define LK_LORA_MOST_NAME 512 /* bytes, with NUL */

/* Every file's modules of a component to the layers that names give; layers from `first` on. bind.c */
struct lk_loras;
enum lk_code lk_lora_place_files(struct lk_loras *loras, int component, size_t first, const struct lk_rename *rules,
                                 size_t n_rules);
/* to = from with all adapters of the layer in it; merge.c */
struct lk_lora_layer;
enum lk_code lk_lora_merge_layer(const struct lk_loras *loras, const struct lk_lora_layer *l,
                                 const struct lk_tensor *from, const struct lk_tensor *to);

/* Rows [first, first + N) of a module's B, or its two halves exchanged. */
struct lk_lora_piece {
    const struct lk_lora_module *module;
    int64_t first;
    bool swapped;
};

struct lk_lora_layer {
    char name[LK_LORA_MOST_NAME];
    int64_t rows, columns, rank; /* rank: of all files, filled up */
    struct lk_tensor *down, *up;
    int component;
    struct lk_tensor *weight; /* that the adapters are put into; NULL: there are down and up */
    const struct lk_tensor *from;
    struct lk_lora_piece pieces[LK_MAX_LORAS]; /* of each file; module NULL: none */
};

/* The row of the module's B that is row `row` of the layer. */
int64_t lk_lora_row(const struct lk_lora_layer *l, const struct lk_lora_piece *piece, int64_t row);

/* Of a file's matrix, f32, bf16 or f16 at any address. */
static inline float lk_lora_element(const struct lk_tensor *t, int64_t i) {
    float f;
    uint16_t half;
    if (t->dtype == LK_F32) {
        memcpy(&f, (const unsigned char *)t->data + 4 * i, sizeof f);
        return f;
    }
    memcpy(&half, (const unsigned char *)t->data + 2 * i, sizeof half);
    return t->dtype == LK_F16 ? lk_f16_to_f32(half) : lk_bf16_to_f32(half);
}

/* What a file's metadata, or the adapter_config.json beside it, say of its modules. */
struct lk_lora_config {
    const char *source; /* NULL: there is nothing */
    int64_t rank;       /* 0: not said; so alpha */
    double alpha;
    bool stabilised; /* s = alpha / sqrt(rank) */
    struct lk_lora_pattern {
        char *module; /* a name, or its last parts; a leading ^: from its start */
        double value;
        bool of_rank;
    } * patterns;
    size_t n_patterns, capacity;
};

/* metadata: text of the header's "__metadata__", or NULL. prefix: what names begin with there, as "transformer.". */
enum lk_code lk_lora_config_read(struct lk_lora_config *out, const char *path, const char *metadata,
                                 const char *prefix);
void lk_lora_config_free(struct lk_lora_config *config);
/* Of a module: values as they are said, 0 where nothing is. */
void lk_lora_config_of(const struct lk_lora_config *config, const char *module, size_t length, double *rank,
                       double *alpha);
