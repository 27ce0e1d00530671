/* What a model family implements behind models/pipeline.h. Private to models/. */
#pragma once

#include "models/pipeline.h"

#define LK_MAX_VARIANTS 6
#define LK_MAX_FAMILIES 8

struct lk_loras;
struct lk_tokenizer;

struct lk_family {
    bool text_to_image;                 /* it edits nothing, and is none of the study's models */
    bool clip_prompts;                  /* of a prompt it is told: begin, words, end, padding, all by cross-attention */
    const char *title;                  /* "FLUX.2", as help texts say it */
    unsigned bit;                       /* enum lk_family_bit, as in the table of parameters */
    const char *names[LK_MAX_VARIANTS]; /* "flux2-dev": released configurations, the study's first; ends in NULL */
    const char *repositories[LK_MAX_VARIANTS];     /* of each name; NULL: none */
    const char *only_planned;                      /* the name whose edits are refused; NULL: none */
    const char *pipeline_classes[LK_MAX_VARIANTS]; /* _class_name of model_index.json, ends in NULL */
    /* folder NULL: the released configuration of pipeline->name. with_weights false: configs only. Fills
     * pipeline->model, and sets pipeline->name to what the folder holds. */
    enum lk_code (*open)(struct lk_pipeline *pipeline, bool with_weights);
    void (*close)(struct lk_pipeline *pipeline);
    const char *const *kept; /* modules of the transformer that are never quantised; ends in NULL */
    unsigned (*quantized)(const struct lk_pipeline *pipeline); /* lk_bind_totals.quantized of all that is bound */
    /* text_encoder, transformer, vae; further text encoders behind them. */
    const struct lk_checkpoint *(*checkpoints)(const struct lk_pipeline *pipeline);
    int n_checkpoints; /* 0: 3 */
    /* n_unseen: ids of a prompt before the first that the transformer is told of. */
    const struct lk_tokenizer *(*tokenizer)(const struct lk_pipeline *pipeline, int64_t *n_unseen);
    void (*defaults)(struct lk_request *request); /* of its parameters; the rest is zero */
    int steps[LK_MAX_VARIANTS]; /* num_inference_steps of each name, where its authors give it others; 0: of defaults */
    int made_for_steps;         /* num_inference_steps of its protocol; 0: any */
    const struct lk_stages *stages; /* models/common/queue.h */
    /* lk_pipeline_edit_queue where there is more to it than the stages, else NULL; jobs that have ended were refused
     * already and are passed over. */
    enum lk_code (*edit)(struct lk_pipeline *pipeline, struct lk_device *dev, const struct lk_queue *queue);
};

struct lk_pipeline {
    const struct lk_family *family;
    const char *name;  /* of the variant, one of family->names */
    char *folder;      /* NULL for a bare family name; of a single file the one that it lies in */
    char *single_file; /* with all weights; else NULL */
    char *merged;      /* lk_pipeline_merged */
    char *configs;     /* weights/config_identity.h; NULL for a bare family name */
    enum lk_dtype compute;
    enum lk_quantize quantize; /* of the transformer's weights */
    bool has_weights;
    struct lk_loras *loras;    /* weights/lora/lora.h; NULL: none */
    char text_identity[65];    /* "": its text encoder is here; else that of the embeddings that stand in its place */
    const char *prompt_embeds; /* while it is opened: a file that may stand in the text encoder's place, or NULL */
    const char *variant;       /* while it is opened: of its files, or NULL */
    const char *transformer;   /* while it is opened: a file with other weights of the transformer, or NULL */
    void *model;               /* the family's */
};

/* Refuses values out of range, and parameters that the family does not have and that are not as lk_request_init left
 * them. */
enum lk_code lk_request_check(const struct lk_request *request, const struct lk_pipeline *pipeline);

extern const struct lk_family *const lk_families[]; /* ends in NULL */
extern const struct lk_family lk_family_flux2;
extern const struct lk_family lk_family_qwen_edit;
extern const struct lk_family lk_family_step1x;
extern const struct lk_family lk_family_sd, lk_family_sdxl;
extern const struct lk_family lk_family_cascade;

static inline int lk_family_n_checkpoints(const struct lk_family *f) { return f->n_checkpoints ? f->n_checkpoints : 3; }
