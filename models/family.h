/* What a model family implements behind models/pipeline.h. Private to models/. */
#pragma once

#include "models/pipeline.h"

struct lk_family {
    const char *name;           /* "flux2-dev" */
    const char *pipeline_class; /* _class_name of model_index.json */
    /* folder NULL: the released configuration. with_weights false: configs only. Fills pipeline->model. */
    enum lk_code (*open)(struct lk_pipeline *pipeline, bool with_weights);
    void (*close)(struct lk_pipeline *pipeline);
    enum lk_code (*weights_identity)(const struct lk_pipeline *pipeline, char out[65]);
    void (*defaults)(struct lk_request *request);
    enum lk_code (*plan)(struct lk_pipeline *pipeline, const struct lk_device *target, const struct lk_request *request,
                         struct lk_plan *out);
    enum lk_code (*edit)(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_request *request,
                         struct lk_result *result);
};

struct lk_pipeline {
    const struct lk_family *family;
    char *folder; /* NULL for a bare family name */
    enum lk_dtype compute;
    bool has_weights;
    void *model; /* the family's */
};

extern const struct lk_family lk_family_flux2;
