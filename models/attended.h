/* Where a picture looks while it is made: how much of the attention of its rows goes to words of the prompt, by layer
 * and head. The weights are those of the model's own attention, softmax over the keys of text and picture together. */
#pragma once

#include "models/pipeline.h"

struct lk_span {
    size_t first, n; /* bytes of the prompt */
};

struct lk_attended {
    const struct lk_span *spans; /* given, [n_spans]: of each all tokens that have a byte of it */
    int n_spans;
    int n_tokens, n_steps, n_layers, n_heads;
    char (*layers)[24]; /* [n_layers]: "double.0", as traces name them */
    double *weights;    /* [n_layers, n_heads]: mean over the picture's rows, the tokens and the steps */
    double worst;       /* how far a row's weights over all keys were from 1 */
};
/* Makes the picture as lk_pipeline_edit does, and looks on; the device has no trace of its own. With true CFG the
 * prompt's branch is looked at, not the negative prompt's. The request has no reference images, and its prompt is
 * encoded here (no prompt_embeds). LK_E_INPUT when a span is not among the tokens that the transformer is told of.
 * lk_attended_free in any case. */
enum lk_code lk_attended_edit(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                              struct lk_attended *attended, struct lk_result *result);
void lk_attended_free(struct lk_attended *attended);
