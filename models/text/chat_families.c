/* What differs between the chats of Qwen2.5-VL and of Mistral-Small-3: configs, tokens of images, pixels. */
#include "engine/base/alloc.h"
#include "models/text/chat_internal.h"

enum lk_code lk_chat_expect_token(const struct lk_chat *chat, const char *token, int32_t id) {
    int32_t found = lk_tokenizer_id(chat->tokenizer, token);
    if (found == id) return LK_OK;
    return lk_fail(LK_E_TOKENIZER, "%s: token %s: the config says id %d, the tokenizer %d", chat->folder, token, id,
                   found);
}

static enum lk_code qwen_read(struct lk_chat *chat, struct lk_config *config, struct lk_config *processor) {
    enum lk_code rc = lk_qwen25_vl_config_read(&chat->qwen.config, config);
    if (rc) {
        lk_config_discard(processor);
        return rc;
    }
    return lk_qwen2_vl_processor_read(&chat->qwen.processor, processor);
}

/* Parts that came from different models would give nonsense. */
static enum lk_code qwen_check(const struct lk_chat *chat) {
    const struct lk_qwen25_vl_config *c = &chat->qwen.config;
    const struct lk_qwen2_vl_processor *p = &chat->qwen.processor;
    const struct lk_qwen25_vl_vision_config *v = &c->vision;
    LK_TRY(lk_chat_expect_token(chat, "<|image_pad|>", c->image_token_id));
    LK_TRY(lk_chat_expect_token(chat, "<|vision_start|>", c->vision_start_token_id));
    LK_TRY(lk_chat_expect_token(chat, "<|vision_end|>", c->vision_end_token_id));
    if (p->patch_size != v->patch_size || p->temporal_patch_size != v->temporal_patch_size ||
        p->merge_size != v->spatial_merge_size)
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s: image processor: expected patches of %lld, %lld frames and merging by %lld as in the "
                       "config, got %d, %d and %d",
                       chat->folder, (long long)v->patch_size, (long long)v->temporal_patch_size,
                       (long long)v->spatial_merge_size, p->patch_size, p->temporal_patch_size, p->merge_size);
    return LK_OK;
}

static enum lk_code qwen_bind(struct lk_chat *chat) {
    LK_TRY(qwen_check(chat));
    LK_TRY(lk_qwen25_vl_bind(&chat->qwen.model, &chat->qwen.config, true, &chat->checkpoint, chat->compute));
    chat->vlm = lk_qwen25_vl_view(&chat->qwen.model);
    return LK_OK;
}

static void qwen_free(struct lk_chat *chat) { lk_qwen25_vl_free(&chat->qwen.model); }

static enum lk_code qwen_rows(const struct lk_chat *chat, const struct lk_chat_request *request,
                              const struct lk_image *image, float **rows, int *grid_h, int *grid_w) {
    struct lk_qwen2_vl_processor processor = chat->qwen.processor;
    if (request->min_pixels) processor.min_pixels = request->min_pixels;
    if (request->max_pixels) processor.max_pixels = request->max_pixels;
    return lk_qwen2_vl_rows(&processor, image, rows, grid_h, grid_w);
}

static int64_t qwen_image_ids(const struct lk_chat *chat, const struct lk_vlm_image *image, int32_t *ids) {
    int64_t n = lk_qwen25_vl_image_tokens(&chat->qwen.config, image);
    for (int64_t i = 0; ids && i < n; i++) ids[i] = chat->qwen.config.image_token_id;
    return n;
}

const struct chat_family lk_chat_qwen = {.model_type = "qwen2_5_vl",
                                         .ends = {"<|im_end|>", "<|endoftext|>"},
                                         .read = qwen_read,
                                         .bind = qwen_bind,
                                         .free = qwen_free,
                                         .string = lk_chat_string_qwen,
                                         .rows = qwen_rows,
                                         .image_ids = qwen_image_ids};

static enum lk_code mistral_read(struct lk_chat *chat, struct lk_config *config, struct lk_config *processor) {
    enum lk_code rc = lk_mistral3_config_read(&chat->mistral.config, config);
    if (rc) {
        lk_config_discard(processor);
        return rc;
    }
    return lk_pixtral_processor_read(&chat->mistral.processor, processor);
}

static enum lk_code mistral_bind(struct lk_chat *chat) {
    const struct lk_mistral3_config *c = &chat->mistral.config;
    const struct lk_pixtral_processor *p = &chat->mistral.processor;
    LK_TRY(lk_chat_expect_token(chat, "[IMG]", c->image_token_index));
    chat->mistral.image_break = lk_tokenizer_id(chat->tokenizer, "[IMG_BREAK]");
    chat->mistral.image_end = lk_tokenizer_id(chat->tokenizer, "[IMG_END]");
    if (chat->mistral.image_break < 0 || chat->mistral.image_end < 0)
        return lk_fail(LK_E_TOKENIZER, "%s: the tokenizer lacks [IMG_BREAK] or [IMG_END], which end the rows of images",
                       chat->folder);
    if (p->patch_size != c->vision.patch_size || p->merge_size != LK_MISTRAL3_MERGE)
        return lk_fail(LK_E_CONFIG_VALUE,
                       "%s: image processor: expected patches of %lld and merging by %d as in the config, got %d and "
                       "%d",
                       chat->folder, (long long)c->vision.patch_size, LK_MISTRAL3_MERGE, p->patch_size, p->merge_size);
    if (chat->checkpoint.missing.n)
        return lk_fail(LK_E_SHARD,
                       "%s: missing shards: %s; they hold the last layers and the output head, without which the "
                       "model cannot write (editing with FLUX.2 does not need them); download them",
                       chat->folder, chat->checkpoint.missing.bytes);
    LK_TRY(lk_mistral3_bind(&chat->mistral.model, c, &chat->checkpoint, chat->compute));
    chat->vlm = lk_mistral3_view(&chat->mistral.model);
    return LK_OK;
}

static void mistral_free(struct lk_chat *chat) { lk_mistral3_free(&chat->mistral.model); }

static enum lk_code mistral_rows(const struct lk_chat *chat, const struct lk_chat_request *request,
                                 const struct lk_image *image, float **rows, int *grid_h, int *grid_w) {
    (void)request;
    return lk_pixtral_rows(&chat->mistral.processor, image, rows, grid_h, grid_w);
}

/* Every row of merged patches ends in a token of its own, the last one in another. */
static int64_t mistral_image_ids(const struct lk_chat *chat, const struct lk_vlm_image *image, int32_t *ids) {
    int64_t rows = image->grid_h / LK_MISTRAL3_MERGE, columns = image->grid_w / LK_MISTRAL3_MERGE;
    for (int64_t y = 0; ids && y < rows; y++) {
        for (int64_t x = 0; x < columns; x++) *ids++ = chat->mistral.config.image_token_index;
        *ids++ = y + 1 < rows ? chat->mistral.image_break : chat->mistral.image_end;
    }
    return rows * (columns + 1);
}

const struct chat_family lk_chat_mistral = {.model_type = "mistral3",
                                            .ends = {"</s>", NULL},
                                            .read = mistral_read,
                                            .bind = mistral_bind,
                                            .free = mistral_free,
                                            .string = lk_chat_string_mistral,
                                            .rows = mistral_rows,
                                            .image_ids = mistral_image_ids};
