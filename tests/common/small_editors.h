/* The three trained editors of tools/editors, in the order of enum editor_family. */
#pragma once

#include "models/pipeline.h"
#include "tools/portrait/portrait.h"

enum { SMALL_EDITORS = 3, SMALL_EDITOR_SIZE = 64 };
static const char *const small_editors[SMALL_EDITORS] = {"../tools/editors/flux2", "../tools/editors/step1x",
                                                         "../tools/editors/qwen_edit"};

/* The request of one, as tools/editors/models.json says. */
static inline void small_editor_request(struct lk_request *r, const struct lk_pipeline *pipeline,
                                        enum editor_family family) {
    lk_request_init(r, pipeline);
    r->num_inference_steps = 4;
    if (family == EDITOR_FLUX2) {
        r->guidance_scale = 4;
        r->max_sequence_length = 48;
        return;
    }
    r->true_cfg_scale = 1;
    if (family == EDITOR_STEP1X) {
        r->size_level = SMALL_EDITOR_SIZE;
        return;
    }
    r->width = r->height = SMALL_EDITOR_SIZE;
    r->vae_area = r->condition_area = SMALL_EDITOR_SIZE * SMALL_EDITOR_SIZE;
}
