/* Random weights with the names, shapes and scales of a model, written as safetensors with an index. What a tensor
 * holds depends on its name, shape and the seed only. */
#pragma once

#include <cjson/cJSON.h>

#include "weights/safetensors.h"

/* How a tensor is filled. */
enum make_fill {
    MAKE_LINEAR,   /* normal, sd gain / sqrt(fan in) */
    MAKE_NORM,     /* 1 + 0.1 normal */
    MAKE_BIAS,     /* 0.05 normal */
    MAKE_VARIANCE, /* exp(0.5 normal) */
    MAKE_TIME,     /* like LINEAR, fast oscillations damped, as trained time embeddings do */
    MAKE_COUNT,    /* an i64 scalar, 1000 */
};

struct make_tensor {
    char *name;
    enum lk_dtype dtype; /* f32, bf16 or, for COUNT, i64 */
    int n_dims;
    int64_t shape[5];
    enum make_fill fill;
    double gain;
};

struct make_list {
    struct make_tensor *tensors;
    size_t n, capacity;
    enum lk_dtype dtype; /* of the tensors added from now on */
    enum lk_code failed; /* the first failure of make_add */
};

/* Appends a tensor. name_format as printf; shape ends at the first 0. A failure is kept in list->failed. */
void make_add(struct make_list *list, enum make_fill fill, double gain, const int64_t shape[5], const char *name_format,
              ...) __attribute__((format(printf, 5, 6)));
#define MAKE_SHAPE(...) ((int64_t[5]){__VA_ARGS__})
void make_list_free(struct make_list *list);

/* What the lists of all families are made of. `prefix` and `name` are put one after the other. */
void make_linear(struct make_list *list, int64_t out, int64_t in, double gain, const char *prefix, const char *name);
void make_norm(struct make_list *list, int64_t n, const char *prefix, const char *name);
void make_bias(struct make_list *list, int64_t n, const char *prefix, const char *name);
void make_linear_bias(struct make_list *list, int64_t out, int64_t in, const char *prefix, const char *name);
void make_conv(struct make_list *list, int64_t out, int64_t in, int64_t k, const char *prefix, const char *name);

/* The parts of the configs that depend on a size. NULL objects are passed over. */
void make_number(cJSON *object, const char *key, double value);
void make_numbers(cJSON *object, const char *key, const int *values, int n);

/* Writes folder/STEM.safetensors, or, when the tensors are more than max_shard_bytes, shards and an index. Holds one
 * shard in memory at a time. */
enum lk_code make_write(const struct make_list *list, const char *folder, const char *stem, uint64_t seed,
                        uint64_t max_shard_bytes);

/* The convolutional autoencoder of the FLUX family at any size, for FLUX.2 and Step1X-Edit. */
struct make_autoencoder_kl {
    int latent_channels, levels[4], layers_per_block, n_groups;
    bool quant_convs, batch_norm;
};

void make_autoencoder_kl(struct make_list *list, const struct make_autoencoder_kl *vae);
