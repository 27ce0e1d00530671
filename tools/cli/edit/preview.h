/* --preview FILE: a file that is rewritten after steps, with a small picture of what the one under way comes to. */
#pragma once

#include "models/pipeline.h"

struct cli_preview {
    const char *file; /* NULL: none */
    int every;        /* steps; 0: 1 */
    bool failed;      /* it could not be written */
};

/* LK_E_USAGE for a file that is there and is no picture of ours. */
enum lk_code cli_preview_check(const char *file, bool overwrite);
/* LK_E_USAGE for a family that has no previews. p outlives the request. */
enum lk_code cli_preview_attach(struct cli_preview *p, const struct lk_pipeline *pipeline, struct lk_request *request);
