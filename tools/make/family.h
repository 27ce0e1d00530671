/* What a model family's checkpoint consists of: configs as diffusers and transformers save them, tensors in the
 * released layout. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "weights/safetensors.h"

/* Random weights with the names, shapes and scales of a model, written as safetensors with an index. What a tensor
 * holds depends on its name, shape and the seed only. */

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

/* Small byte-level BPE tokenizers (tokenizer.json) in the form of the released ones. NULL when memory is out. */

/* Ids of the Qwen form: bytes, words, then the special tokens in their released order. */
enum {
    MAKE_QWEN_FIRST_SPECIAL = 480,
    MAKE_QWEN_ENDOFTEXT = 480,
    MAKE_QWEN_IM_END = 482,
    MAKE_QWEN_VISION_START = 489,
    MAKE_QWEN_VISION_END,
    MAKE_QWEN_VISION_PAD,
    MAKE_QWEN_IMAGE_PAD,
    MAKE_QWEN_VIDEO_PAD,
    MAKE_QWEN_VOCAB = 512,
};

cJSON *make_tokenizer_mistral(int vocab_size);
/* whole_words: chats about pictures have as many tokens as the released tokenizer makes of them. */
cJSON *make_tokenizer_qwen(bool whole_words);

/* A FLUX.2 checkpoint of any size. */
struct make_flux2 {
    /* transformer */
    int in_channels, n_double, n_single, head_dim, n_heads, axis_dim, time_channels;
    double mlp_ratio;
    /* text encoder */
    int hidden, intermediate, n_layers, n_q_heads, n_kv_heads, text_head_dim, vocab;
    struct make_autoencoder_kl vae;
};

/* Qwen2.5-VL at any size: by itself, and as the text encoder of Qwen-Image-Edit and Step1X-Edit. */
struct make_qwen25_vl {
    int hidden, intermediate, n_layers, n_heads, n_kv_heads, mrope_section[3]; /* their sum twice is the head_dim */
    int depth, vision_hidden, vision_heads, vision_intermediate;
};

/* text_encoder/config.json as transformers 4 writes it. */
cJSON *make_qwen25_vl_config(const struct make_qwen25_vl *size);
cJSON *make_qwen25_vl_generation_config(const void *unused);
cJSON *make_qwen25_vl_preprocessor_config(const void *unused);
cJSON *make_qwen25_vl_tokenizer(const void *unused);
cJSON *make_qwen25_vl_tokenizer_config(const void *unused);
void make_qwen25_vl_tensors(struct make_list *list, const struct make_qwen25_vl *size);
/* The preset's sizes for a language model of this width. */
void make_qwen25_vl_choose(struct make_qwen25_vl *out, const char *preset);

/* FlowMatchEulerDiscreteScheduler with dynamic shifting; shift_terminal 0: null. */
cJSON *make_scheduler_config(double shift, double max_shift, int max_image_seq_len, double shift_terminal);

#define MAKE_MAX_FILES   16
#define MAKE_MAX_WEIGHTS 4

struct make_family {
    const char *name;  /* "flux2" */
    size_t size_bytes; /* of the family's struct of sizes */
    /* Fills *size; preset "tiny", "small" or "wide"; released_vae: the released VAE's widths. LK_E_USAGE for what there
     * is not. */
    enum lk_code (*choose)(void *size, const char *preset, bool released_vae);
    struct {
        const char *path;                 /* "transformer/config.json"; NULL ends the list */
        cJSON *(*json)(const void *size); /* NULL when memory is out */
    } files[MAKE_MAX_FILES];
    struct {
        const char *component, *stem; /* component "" for the folder itself; stem NULL ends the list */
        void (*tensors)(struct make_list *list, const void *size);
    } weights[MAKE_MAX_WEIGHTS];
};

extern const struct make_family make_family_flux2, make_family_qwen25_vl, make_family_qwen_edit, make_family_step1x;
