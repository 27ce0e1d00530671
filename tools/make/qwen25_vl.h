/* Qwen2.5-VL at any size: by itself, and as the text encoder of Qwen-Image-Edit and Step1X-Edit. */
#pragma once

#include "tools/make/family.h"

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
