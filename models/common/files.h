/* The files of a model folder in the Hugging Face layout, as far as all families agree. */
#pragma once

#include "engine/flow_match.h"
#include "weights/checkpoint.h"
#include "weights/config.h"

struct lk_component {
    const char *name;       /* "text_encoder" */
    const char *class_name; /* "Mistral3ForConditionalGeneration"; NULL: any, the files decide */
};

/* model_index.json names the classes of the pipeline and its components: others than these are refused. classes and
 * components end in NULL. */
enum lk_code lk_model_index_check(const char *folder, const char *const *classes,
                                  const struct lk_component *components);

/* A component's config: folder/relative, or the text `released` when folder is NULL. */
enum lk_code lk_component_config(struct lk_config **out, const char *folder, const char *relative,
                                 const char *released);

/* folder/component with the weights STEM.safetensors (or sharded). */
enum lk_code lk_component_open(struct lk_checkpoint *out, const char *folder, const char *component, const char *stem);

/* The same of STEM.safetensors, else STEM.VARIANT.safetensors; `only`: of the latter alone. */
struct lk_file_variant {
    const char *name; /* "fp16" */
    bool only;
};
enum lk_code lk_component_open_variant(struct lk_checkpoint *out, const char *folder, const char *component,
                                       const char *stem, struct lk_file_variant variant);

/* The same as lk_component_open, though shards may be missing (weights/checkpoint.h). */
enum lk_code lk_component_open_present(struct lk_checkpoint *out, const char *folder, const char *component,
                                       const char *stem);

/* The transformer's weights: of the folder, or those in `file` (safetensors or GGUF) unless that is NULL. */
enum lk_code lk_transformer_open(struct lk_checkpoint *out, const char *folder, const char *file);

/* Whether each component in the folder that has a config has its weights: their files, headers and sizes. transformer:
 * a file in place of the folder's; NULL: none. */
enum lk_code lk_model_check_weights(const char *folder, const char *transformer);

/* SHA-256 (hex) over the identities of n checkpoints. */
typedef enum lk_code lk_identity_fn(const struct lk_checkpoint *checkpoint, char out[65]);
enum lk_code lk_components_identity(const struct lk_checkpoint *checkpoints, int n, const char *first,
                                    lk_identity_fn *identity, char out[65]);

/* scheduler/scheduler_config.json of a FlowMatchEulerDiscreteScheduler. Takes and closes `json`. */
enum lk_code lk_scheduler_config_read(struct lk_flow_match_config *out, struct lk_config *json);
