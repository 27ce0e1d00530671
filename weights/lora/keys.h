/* Keys of LoRA files: PREFIX MODULE ROLE, as "lora_unet_" "double_blocks_0_img_attn_qkv" ".lora_down.weight". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum lk_lora_role {
    LK_LORA_A,     /* "down", [r, K] */
    LK_LORA_B,     /* "up", [N, r] */
    LK_LORA_ALPHA, /* one number */
    LK_LORA_OTHER, /* not plain LoRA: `what` says what it is */
};

struct lk_lora_key {
    enum lk_lora_role role;
    const char *prefix;             /* as published, "" for none */
    const char *suffix;             /* of the role, as published: "lora_A", "lora_down" */
    const char *what;               /* of LK_LORA_OTHER */
    size_t module, length;          /* of the module in the key */
    int component;                  /* 0: the transformer or UNet; 1, 2: that text encoder */
    size_t adapter, adapter_length; /* its name in the key, as "default"; length 0: none */
};

/* Takes any text. Whether the module exists is for the model to say. */
void lk_lora_key_split(const char *key, struct lk_lora_key *out);
/* The same of a pipeline whose text encoders take adapters, too; to the one above these are not plain LoRA. */
void lk_lora_key_split_whole(const char *key, struct lk_lora_key *out);

/* The module's name in the form that all layouts share: dots are underscores, and "sformer_blocks", which some files
 * have, is "transformer_blocks". out has room for length + 5 bytes. */
void lk_lora_key_flatten(const char *module, size_t length, char *out);
/* As it is looked for among all components' modules: a text encoder's begins with its name and has no "text_model", and
 * "attn1.processor.to_out" of diffusers' first files is "attn1.to_out.0". out has room for length + LK_LORA_MORE. */
enum { LK_LORA_MORE = 24 };
void lk_lora_key_flatten_whole(const struct lk_lora_key *key, const char *text, char *out);
/* "text_encoder." and so on; "" for 0. */
const char *lk_lora_component(int component);
