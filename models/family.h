/* What a model family implements behind models/pipeline.h. Private to models/. */
#pragma once

#include "models/pipeline.h"

#define LK_MAX_VARIANTS 6

struct lk_family {
    const char *names[LK_MAX_VARIANTS]; /* "flux2-dev": released configurations, the study's first; ends in NULL */
    const char *repositories[LK_MAX_VARIANTS];     /* of each name; NULL: none */
    const char *pipeline_classes[LK_MAX_VARIANTS]; /* _class_name of model_index.json, ends in NULL */
    bool has_vae_tiling; /* request->vae_tiling may be asked for */
    /* folder NULL: the released configuration of pipeline->name. with_weights false: configs only. Fills
     * pipeline->model, and sets pipeline->name to what the folder holds. */
    enum lk_code (*open)(struct lk_pipeline *pipeline, bool with_weights);
    void (*close)(struct lk_pipeline *pipeline);
    enum lk_code (*weights_identity)(const struct lk_pipeline *pipeline, char out[65]);
    void (*defaults)(const struct lk_pipeline *pipeline, struct lk_request *request);
    enum lk_code (*plan)(struct lk_pipeline *pipeline, const struct lk_device *target, const struct lk_request *request,
                         struct lk_plan *out);
    enum lk_code (*edit)(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                         struct lk_result *result);
};

struct lk_pipeline {
    const struct lk_family *family;
    const char *name; /* of the variant, one of family->names */
    char *folder;     /* NULL for a bare family name */
    enum lk_dtype compute;
    bool has_weights;
    void *model; /* the family's */
};

extern const struct lk_family lk_family_flux2;
extern const struct lk_family lk_family_qwen_edit;
extern const struct lk_family lk_family_step1x;
