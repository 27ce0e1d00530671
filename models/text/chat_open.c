#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/text/chat_internal.h"

/* Where the parts are: in a folder of the model itself, and in a pipeline's. Lists end in NULL; the first that is there
 * counts. */
struct layout {
    const char *config, *weights; /* the folder of the latter, "" for the top */
    const char *tokenizer[4], *processor[6], *generation;
};

static const struct layout own = {.config = "config.json",
                                  .weights = "",
                                  .tokenizer = {"tokenizer.json"},
                                  .processor = {"preprocessor_config.json", "processor_config.json"},
                                  .generation = "generation_config.json"};
static const struct layout pipeline = {
    .config = "text_encoder/config.json",
    .weights = "text_encoder",
    .tokenizer = {"processor/tokenizer.json", "tokenizer/tokenizer.json", "text_encoder/tokenizer.json"},
    .processor = {"processor/preprocessor_config.json", "processor/processor_config.json",
                  "tokenizer/preprocessor_config.json", "tokenizer/processor_config.json",
                  "text_encoder/preprocessor_config.json"},
    .generation = "text_encoder/generation_config.json"};

/* The path of the first file that is there; the message for the last of them otherwise. */
static enum lk_code find_first(const char *folder, const char *const *names, char **path) {
    enum lk_code rc = LK_E_NOT_FOUND;
    for (int i = 0; names[i] && rc == LK_E_NOT_FOUND; i++) rc = lk_model_path(folder, names[i], path);
    return rc;
}

static enum lk_code read_processor(struct lk_chat *chat, const struct layout *l) {
    char *path;
    struct lk_config *json;
    LK_TRY(find_first(chat->folder, l->processor, &path));
    enum lk_code rc = lk_config_open(&json, path);
    if (!rc) rc = lk_qwen2_vl_processor_read(&chat->processor, json);
    lk_free(path);
    return rc;
}

/* The tokens that end a message, for a model that names none. */
static void default_stop_ids(const struct lk_tokenizer *tokenizer, struct lk_generation_config *g) {
    static const char *const ends[] = {"<|im_end|>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int32_t id = lk_tokenizer_id(tokenizer, ends[i]);
        if (id >= 0) g->stop_ids[g->n_stop_ids++] = id;
    }
}

static enum lk_code read_generation(struct lk_chat *chat, const struct layout *l) {
    char *path;
    struct lk_config *json;
    lk_generation_config_init(&chat->generation);
    enum lk_code rc = lk_model_path(chat->folder, l->generation, &path);
    if (!rc) {
        rc = lk_config_open(&json, path);
        if (!rc) rc = lk_generation_config_read(&chat->generation, json);
        lk_free(path);
    } else if (rc == LK_E_NOT_FOUND) {
        rc = LK_OK; /* greedy */
    }
    if (!rc && !chat->generation.n_stop_ids) default_stop_ids(chat->tokenizer, &chat->generation);
    return rc;
}

static enum lk_code open_tokenizer(struct lk_chat *chat, const struct layout *l) {
    char *path;
    LK_TRY(find_first(chat->folder, l->tokenizer, &path));
    enum lk_code rc = lk_tokenizer_open(&chat->tokenizer, path);
    lk_free(path);
    return rc;
}

/* Parts that came from different models would give nonsense. */
static enum lk_code check_parts(const struct lk_chat *chat, const struct lk_qwen25_vl_config *c) {
    const struct {
        const char *token;
        int32_t id;
    } tokens[] = {{"<|image_pad|>", c->image_token_id},
                  {"<|vision_start|>", c->vision_start_token_id},
                  {"<|vision_end|>", c->vision_end_token_id}};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        int32_t id = lk_tokenizer_id(chat->tokenizer, tokens[i].token);
        if (id != tokens[i].id)
            return lk_fail(LK_E_TOKENIZER, "%s: token %s: the config says id %d, the tokenizer %d", chat->folder,
                           tokens[i].token, tokens[i].id, id);
    }
    const struct lk_qwen2_vl_processor *p = &chat->processor;
    const struct lk_qwen25_vl_vision_config *v = &c->vision;
    if (p->patch_size != v->patch_size || p->temporal_patch_size != v->temporal_patch_size ||
        p->merge_size != v->spatial_merge_size)
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s: image processor: expected patches of %lld, %lld frames and merging by %lld as in the "
                       "config, got %d, %d and %d",
                       chat->folder, (long long)v->patch_size, (long long)v->temporal_patch_size,
                       (long long)v->spatial_merge_size, p->patch_size, p->temporal_patch_size, p->merge_size);
    return LK_OK;
}

static enum lk_code open_parts(struct lk_chat *chat) {
    struct lk_qwen25_vl_config config;
    struct lk_config *json;
    char *path;
    enum lk_code rc = lk_model_path(chat->folder, "model_index.json", &path);
    if (!rc) lk_free(path);
    if (rc && rc != LK_E_NOT_FOUND) return rc;
    const struct layout *l = rc ? &own : &pipeline;
    LK_TRY(lk_component_config(&json, chat->folder, l->config, NULL));
    LK_TRY(lk_qwen25_vl_config_read(&config, json));
    LK_TRY(open_tokenizer(chat, l));
    LK_TRY(read_processor(chat, l));
    LK_TRY(read_generation(chat, l));
    LK_TRY(check_parts(chat, &config));
    if (*l->weights)
        LK_TRY(lk_component_open(&chat->checkpoint, chat->folder, l->weights, "model"));
    else
        LK_TRY(lk_checkpoint_open(&chat->checkpoint, chat->folder, "model"));
    return lk_qwen25_vl_bind(&chat->model, &config, true, &chat->checkpoint, chat->compute);
}

enum lk_code lk_chat_open(struct lk_chat **out, const char *model, enum lk_dtype compute) {
    *out = NULL;
    struct lk_chat *chat = lk_calloc(1, sizeof *chat);
    if (!chat) return lk_fail(LK_E_NOMEM, "%s: out of memory", model);
    chat->compute = compute;
    enum lk_code rc = lk_model_find(model, &chat->folder);
    if (!rc) rc = open_parts(chat);
    if (rc)
        lk_chat_close(chat);
    else
        *out = chat;
    return rc;
}

void lk_chat_close(struct lk_chat *chat) {
    if (!chat) return;
    lk_qwen25_vl_free(&chat->model);
    lk_checkpoint_close(&chat->checkpoint);
    lk_tokenizer_free(chat->tokenizer);
    lk_free(chat->folder);
    lk_free(chat);
}
