#include <string.h>

#include "engine/base/alloc.h"
#include "models/common/files.h"
#include "models/text/chat_internal.h"
#include "weights/config_identity.h"

/* In a folder of the model itself, and in a pipeline's. */
static const struct chat_layout own = {.config = "config.json",
                                       .weights = "",
                                       .tokenizer = {"tokenizer.json"},
                                       .processor = {"preprocessor_config.json", "processor_config.json"},
                                       .generation = "generation_config.json"};
static const struct chat_layout pipeline = {
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

/* The tokens that end a message, for a model that names none. */
static void default_stop_ids(const struct lk_chat *chat, struct lk_generation_config *g) {
    for (size_t i = 0; i < 2 && chat->family->ends[i]; i++) {
        int32_t id = lk_tokenizer_id(chat->tokenizer, chat->family->ends[i]);
        if (id >= 0) g->stop_ids[g->n_stop_ids++] = id;
    }
}

static enum lk_code read_generation(struct lk_chat *chat, const struct chat_layout *l) {
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
    if (!rc && !chat->generation.n_stop_ids) default_stop_ids(chat, &chat->generation);
    return rc;
}

static enum lk_code open_tokenizer(struct lk_chat *chat, const struct chat_layout *l) {
    char *path;
    LK_TRY(find_first(chat->folder, l->tokenizer, &path));
    enum lk_code rc = lk_tokenizer_open(&chat->tokenizer, path);
    lk_free(path);
    return rc;
}

static enum lk_code choose_family(struct lk_chat *chat, const struct chat_layout *l, struct lk_config *config) {
    static const struct chat_family *const families[] = {&lk_chat_qwen, &lk_chat_mistral};
    const char *type = NULL;
    lk_config_string_or(config, "model_type", &type, "");
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
        if (!strcmp(type, families[i]->model_type)) {
            chat->family = families[i];
            return LK_OK;
        }
    return lk_fail(
        LK_E_CONFIG_VALUE,
        "%s/%s: field \"model_type\" of the text encoder: expected \"qwen2_5_vl\" or \"mistral3\", got \"%.80s\"",
        chat->folder, l->config, type ? type : "");
}

static enum lk_code read_configs(struct lk_chat *chat, const struct chat_layout *l) {
    struct lk_config *config, *processor = NULL;
    char *path = NULL;
    LK_TRY(lk_component_config(&config, chat->folder, l->config, NULL));
    enum lk_code rc = choose_family(chat, l, config);
    if (!rc) rc = find_first(chat->folder, l->processor, &path);
    if (!rc) rc = lk_config_open(&processor, path);
    lk_free(path);
    if (!rc) return chat->family->read(chat, config, processor);
    chat->family = NULL;
    lk_config_discard(config);
    return rc;
}

static enum lk_code open_weights(struct lk_chat *chat, const struct chat_layout *l) {
    if (!*l->weights) return lk_checkpoint_open_present(&chat->checkpoint, chat->folder, "model");
    return lk_component_open_present(&chat->checkpoint, chat->folder, l->weights, "model");
}

static enum lk_code open_parts(struct lk_chat *chat) {
    char *path;
    enum lk_code rc = lk_model_path(chat->folder, "model_index.json", &path);
    if (!rc) lk_free(path);
    if (rc && rc != LK_E_NOT_FOUND) return rc;
    const struct chat_layout *l = rc ? &own : &pipeline;
    LK_TRY(read_configs(chat, l));
    LK_TRY(open_tokenizer(chat, l));
    LK_TRY(read_generation(chat, l));
    LK_TRY(open_weights(chat, l));
    return chat->family->bind(chat);
}

enum lk_code lk_chat_open(struct lk_chat **out, const char *model, enum lk_dtype compute) {
    *out = NULL;
    struct lk_chat *chat = lk_calloc(1, sizeof *chat);
    if (!chat) return lk_fail(LK_E_NOMEM, "%s: out of memory", model);
    chat->compute = compute;
    enum lk_code rc = lk_model_find(model, &chat->folder);
    if (!rc) rc = lk_config_identity_begin(chat->folder);
    if (!rc) rc = lk_config_identity_end(open_parts(chat), &chat->configs);
    if (rc)
        lk_chat_close(chat);
    else
        *out = chat;
    return rc;
}

void lk_chat_close(struct lk_chat *chat) {
    if (!chat) return;
    if (chat->family) chat->family->free(chat);
    lk_checkpoint_close(&chat->checkpoint);
    lk_tokenizer_free(chat->tokenizer);
    lk_free(chat->configs);
    lk_free(chat->folder);
    lk_free(chat);
}

enum lk_code lk_chat_weights_identity(const struct lk_chat *chat, char out[65], unsigned *quantized) {
    *quantized =
        chat->family == &lk_chat_qwen ? chat->qwen.model.totals.quantized : chat->mistral.model.totals.quantized;
    return lk_checkpoint_identity(&chat->checkpoint, out);
}

const char *lk_chat_configs(const struct lk_chat *chat) { return chat->configs; }

const char *lk_chat_family(const struct lk_chat *chat) { return chat->vlm.name; }
