/* What an open chat holds, and what differs between families. Private to models/text/chat*.c. */
#pragma once

#include "models/text/chat.h"
#include "models/text/generate.h"
#include "models/text/mistral3.h"
#include "models/text/pixtral_image.h"
#include "models/text/qwen25_vl.h"
#include "models/text/qwen2_vl_image.h"
#include "models/tokenizer/tokenizer.h"

/* Where the parts are. Lists end in NULL; the first that is there counts. */
struct chat_layout {
    const char *config, *weights; /* the folder of the latter, "" for the top */
    const char *tokenizer[4], *processor[6], *generation;
};

struct chat_family {
    const char *model_type; /* of config.json */
    const char *ends[2];    /* tokens that end a message, for a model that names none */
    /* The config (taken and closed) and the processor's; then, with a tokenizer, whether they belong together, and the
     * weights. */
    enum lk_code (*read)(struct lk_chat *chat, struct lk_config *config, struct lk_config *processor);
    enum lk_code (*bind)(struct lk_chat *chat);
    void (*free)(struct lk_chat *chat);
    enum lk_code (*string)(const struct lk_chat_message *messages, int n, bool number_images, char **out);
    enum lk_code (*rows)(const struct lk_chat *chat, const struct lk_chat_request *request,
                         const struct lk_image *image, float **rows, int *grid_h, int *grid_w);
    /* The ids that stand for an image, into ids unless that is NULL; gives how many. */
    int64_t (*image_ids)(const struct lk_chat *chat, const struct lk_vlm_image *image, int32_t *ids);
};

extern const struct chat_family lk_chat_qwen, lk_chat_mistral;

struct lk_chat {
    char *folder;
    char *configs; /* weights/config_identity.h */
    enum lk_dtype compute;
    const struct chat_family *family;
    struct lk_tokenizer *tokenizer;
    struct lk_generation_config generation;
    struct lk_checkpoint checkpoint;
    struct lk_vlm vlm;
    union {
        struct {
            struct lk_qwen25_vl_config config;
            struct lk_qwen25_vl model;
            struct lk_qwen2_vl_processor processor;
        } qwen;
        struct {
            struct lk_mistral3_config config;
            struct lk_mistral3 model;
            struct lk_pixtral_processor processor;
            int32_t image_break, image_end;
        } mistral;
    };
};

/* A conversation as the model takes it. */
struct chat_prompt {
    int32_t *ids; /* lk_malloc'ed; image tokens repeated */
    int64_t n_ids, n_image_tokens;
    struct lk_vlm_image images[LK_VLM_MAX_IMAGES]; /* rows lk_malloc'ed */
    int n_images;
    int64_t after_image[LK_VLM_MAX_IMAGES]; /* ids up to the end of each image */
};

/* LK_E_PROMPT, LK_E_USAGE, LK_E_IMAGE_SIZE, LK_E_TOKENIZER, LK_E_NOMEM. Free in any case. */
enum lk_code lk_chat_prompt_make(struct chat_prompt *out, const struct lk_chat *chat,
                                 const struct lk_chat_request *request);
void lk_chat_prompt_free(struct chat_prompt *prompt);

/* LK_E_TOKENIZER unless the tokenizer has the token under this id. */
enum lk_code lk_chat_expect_token(const struct lk_chat *chat, const char *token, int32_t id);
/* Roles: LK_E_USAGE for others. */
enum lk_code lk_chat_check_roles(const struct lk_chat_message *messages, int n);
