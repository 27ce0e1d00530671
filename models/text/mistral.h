/* The language model of Mistral-Small-3 (Mistral3ForConditionalGeneration) as a text encoder: hidden states, no
 * generation, no vision tower (models/text/mistral3.h has these). Source: transformers modeling_mistral.py. */
#pragma once

#include "engine/ops.h"
#include "weights/bind.h"
#include "weights/config.h"

struct lk_mistral_config {
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim;
    double rms_norm_eps, rope_theta;
};

struct lk_mistral_layer {
    struct lk_tensor input_layernorm, post_attention_layernorm;
    struct lk_tensor q_proj, k_proj, v_proj, o_proj;
    struct lk_tensor gate_proj, up_proj, down_proj;
};

struct lk_mistral {
    struct lk_mistral_config config;
    struct lk_tensor embed_tokens, norm;
    struct lk_mistral_layer *layers; /* the first n_layers of the checkpoint's */
    int64_t n_layers;
    struct lk_bind_totals totals; /* of what is used */
    void *owned;
};

/* text_encoder/config.json (model_type "mistral3" with a "text_config"). Unknown keys are errors. Takes and closes
 * `json`. */
enum lk_code lk_mistral_config_read(struct lk_mistral_config *out, struct lk_config *json);

/* Its text_config alone, which stays the caller's to close. */
void lk_mistral_text_config_read(struct lk_config *text, struct lk_mistral_config *c);

/* Asks for the embedding, m->n_layers layers (m->layers is allocated) and, if these are all, the final norm. */
void lk_mistral_bind_layers(struct lk_bind *b, struct lk_mistral *m);

/* Binds the embedding and the first n_layers layers: nothing after the last hidden state asked for is used, so nothing
 * after it is read. n_layers equal to num_hidden_layers binds the final norm too. checkpoint NULL for planning. */
enum lk_code lk_mistral_bind(struct lk_mistral *m, const struct lk_mistral_config *config, int64_t n_layers,
                             const struct lk_checkpoint *checkpoint, enum lk_dtype compute);
void lk_mistral_free(struct lk_mistral *m);

/* Hidden states of a left-padded prompt. ids [n] in host memory: the pad id first when n_pad > 0 (all pad rows are
 * alike: no key is visible to them, so their attention is zero and they are computed once), then the real tokens; n =
 * n_real + (n_pad > 0). Positions count pads: the first real token sits at position n_pad. out [n_pad + n_real, n_out *
 * hidden]: column block j is the residual stream after layer out_layers[j] - 1 (0 is the embedding); an index equal to
 * num_hidden_layers is the state after the final norm, as transformers gives it. */
enum lk_code lk_mistral_hidden_states(struct lk_device *dev, const struct lk_mistral *m, const int32_t *ids, int64_t n,
                                      int64_t n_pad, const int *out_layers, int n_out, const struct lk_tensor *out);
