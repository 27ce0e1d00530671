/* Qwen2.5-VL or Mistral-Small-3 as a chat: messages with images become the model's chat string, ids and a reply in
 * text.
 *
 *     struct lk_chat *chat;
 *     if ((rc = lk_chat_open(&chat, "Qwen/Qwen2.5-VL-7B-Instruct", LK_BF16))) return rc;
 *     struct lk_chat_request request;
 *     lk_chat_request_init(&request, chat);            // the model's generation_config.json
 *     struct lk_chat_part parts[] = {{.image = &photo}, {.text = "Who is this?"}};
 *     struct lk_chat_message ask = {"user", parts, 2};
 *     request.messages = &ask; request.n_messages = 1;
 *     struct lk_chat_reply reply;
 *     rc = lk_chat_reply(chat, dev, &request, &reply); // reply.text
 *     lk_chat_reply_free(&reply); lk_chat_close(chat); */
#pragma once

#include "engine/device.h"
#include "engine/image/image.h"
#include "models/text/generation_config.h"

struct lk_chat;

/* model: a folder of the model itself (config.json, model*.safetensors, tokenizer.json and the processor's config at
 * its top), or of a pipeline that has it as text_encoder (with processor/ or tokenizer/ beside it), or
 * ORG/NAME[@revision] in the HF cache. compute: LK_F32 or LK_BF16. */
enum lk_code lk_chat_open(struct lk_chat **out, const char *model, enum lk_dtype compute);
void lk_chat_close(struct lk_chat *chat);

/* "qwen2.5-vl" or "mistral3". */
const char *lk_chat_family(const struct lk_chat *chat);

/* Digests of its config, tokenizer and processor files, as weights/config_identity.h has them: a JSON object. */
const char *lk_chat_configs(const struct lk_chat *chat);

/* Of its weights: lk_checkpoint_identity. Bit i of *quantized: some are of the dtype LK_FIRST_QUANTIZED + i. */
enum lk_code lk_chat_weights_identity(const struct lk_chat *chat, char out[65], unsigned *quantized);

/* LK_E_PROMPT for a text that holds a special token of the model. */
enum lk_code lk_chat_check_text(const struct lk_chat *chat, const char *text);

/* A text or an image. */
struct lk_chat_part {
    const char *text;
    const struct lk_image *image;
};

struct lk_chat_message {
    const char *role; /* "system", "user", "assistant" */
    const struct lk_chat_part *parts;
    int n_parts;
};

/* The chat string: the default system message unless the first message is one, then every message, then the opening of
 * the assistant's. number_images: "Picture N: " before each image, counted through all messages; Qwen only. *out is
 * lk_malloc'ed. */
enum lk_code lk_chat_string_qwen(const struct lk_chat_message *messages, int n_messages, bool number_images,
                                 char **out);
enum lk_code lk_chat_string_mistral(const struct lk_chat_message *messages, int n_messages, bool number_images,
                                    char **out);

/* More of the reply: n bytes of whole characters. n_tokens: chosen until now; text may be empty. A code other than
 * LK_OK ends the reply. */
typedef enum lk_code lk_chat_text_fn(void *context, const char *text, size_t n, int64_t n_tokens);

struct lk_chat_request {
    const struct lk_chat_message *messages;
    int n_messages;
    bool number_images;
    int64_t min_pixels, max_pixels; /* that an image is resized to; 0: the model's. Qwen only */
    struct lk_generation_config generation;
    uint64_t seed;
    lk_chat_text_fn *text; /* NULL: none */
    void *text_context;
};

struct lk_chat_reply {
    char *text; /* UTF-8, special tokens left out; n bytes and NUL */
    size_t n;
    int64_t n_prompt_tokens, n_image_tokens, n_tokens;
    bool stopped; /* by the model, not by the limit */
    size_t peak_bytes;
};

void lk_chat_request_init(struct lk_chat_request *request, const struct lk_chat *chat);

/* Prepares dev and generates. LK_E_PROMPT for text that is not UTF-8 or holds a special token of the model (nobody may
 * write the system's part of the string), LK_E_USAGE for more than LK_VLM_MAX_IMAGES images, LK_E_IMAGE_SIZE, and
 * what lk_generate gives. *out holds the text so far in any case; free with lk_chat_reply_free. */
enum lk_code lk_chat_reply(const struct lk_chat *chat, struct lk_device *dev, const struct lk_chat_request *request,
                           struct lk_chat_reply *out);
void lk_chat_reply_free(struct lk_chat_reply *reply);
