/* Where a picture looks while it is made: how much of the attention of its rows goes to words of the prompt, by layer
 * and head. The weights are those of the model's own attention, softmax over the keys of text and picture together, or
 * in a UNet's cross-attention over those of the text. */
#pragma once

#include "models/pipeline.h"

#define LK_LAYER_NAME 32

struct lk_span {
    size_t first, n; /* bytes of the prompt */
    int word;        /* which of the maps it counts for */
};

struct lk_attended {
    const struct lk_span *spans; /* given, [n_spans]: of each all tokens that have a byte of it */
    int n_spans;
    int n_words; /* given: maps that are wanted; 0: none */
    int n_tokens, n_steps, n_layers;
    char (*layers)[LK_LAYER_NAME]; /* [n_layers]: "double.0", as traces name them; "down.1.attentions.0.block.0" */
    int *first;                    /* [n_layers + 1]: where a layer's heads begin in what follows */
    double *weights;               /* [first[n_layers]]: mean over the picture's rows, the tokens and the steps */
    double *shares;                /* [first[n_layers]]: the weight over the sum of all words' weights */
    double *word_weights;          /* [first[n_layers], n_words]: the weights of a word's own tokens; n_words 0: NULL */
    double worst;                  /* how far a row's weights over all keys were from 1 */
    /* Heat maps of words (DAAM): of each token, layer and head the weights summed over the steps, enlarged to the
     * latents' size by bicubic interpolation, negative values cut; their mean over layers, heads and a word's tokens.
     * The middle's layers and those smaller by 8 or more are left out, as there. */
    float *maps; /* [n_words, map_height, map_width]; zeros for a word without a span */
    int map_width, map_height;
};
/* Makes the picture as lk_pipeline_edit does, and looks on; the device has no trace of its own. With true CFG the
 * prompt's branch is looked at, not the negative prompt's. The request has no reference images, and its prompt is
 * encoded here (no prompt_embeds). LK_E_INPUT when a span is not among the tokens that the transformer is told of.
 * Maps are of models with cross-attention alone: LK_E_USAGE for others. lk_attended_free in any case. */
enum lk_code lk_attended_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                              struct lk_attended *attended, struct lk_result *result);
void lk_attended_free(struct lk_attended *attended);
