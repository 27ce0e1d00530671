/* Byte-level BPE tokenizer read from tokenizer.json (Hugging Face tokenizers). Whatever of the file is not implemented
 * is refused by name: a tokenizer never guesses. Read and without effect, because ids come without special tokens,
 * uncut and unpadded: post_processor (ByteLevel, TemplateProcessing), decoder, truncation, padding. transformers resets
 * the last two on every call, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct lk_tokenizer;

/* LK_E_TOKENIZER with the JSON path of what is unknown or inconsistent; LK_E_JSON, LK_E_JSON_DUPLICATE, LK_E_JSON_LIMIT
 * (nesting, more than 256 MiB) for the text itself; LK_E_NOMEM; open also what reading a file can give. `name` is for
 * messages. */
enum lk_code lk_tokenizer_open(struct lk_tokenizer **out, const char *path);
enum lk_code lk_tokenizer_parse(struct lk_tokenizer **out, const char *json, size_t length, const char *name);
/* CLIP's, of folder/component with tokenizer_config.json and either tokenizer.json or vocab.json and merges.txt; the
 * ids that a prompt begins with, ends with and is filled up with. */
struct lk_clip_ids {
    int32_t bos, eos, pad;
};
enum lk_code lk_tokenizer_open_clip(struct lk_tokenizer **out, const char *folder, const char *component,
                                    struct lk_clip_ids *ids);
/* The ids of a prompt as such a model reads it: begin, at most 75 of the text, end, padding. *n_real: those before the
 * padding; *n_cut: of the text, how many did not fit. */
#define LK_CLIP_IDS 77
enum lk_code lk_tokenizer_encode_clip(const struct lk_tokenizer *tokenizer, const struct lk_clip_ids *special,
                                      const char *prompt, int32_t ids[LK_CLIP_IDS], int *n_real, int *n_cut);
void lk_tokenizer_free(struct lk_tokenizer *tokenizer);

/* Ids of text (UTF-8, `length` bytes, NUL is LK_E_PROMPT as is invalid UTF-8) without any added BOS/EOS
 * (add_special_tokens = False). Added tokens in the text are matched, as the reference does.
 * *ids is lk_malloc'ed (lk_free), NULL on failure. At most 16 MiB of text; LK_E_PROMPT also when the file's patterns
 * take too many steps on it. Thread-safe on one tokenizer. */
enum lk_code lk_tokenizer_encode(const struct lk_tokenizer *tokenizer, const char *text, size_t length, int32_t **ids,
                                 size_t *n_ids);

/* The bytes that ids stand for, NUL-terminated beyond *n_bytes; *bytes is lk_malloc'ed, NULL on failure. They need not
 * be UTF-8: a character may be spread over tokens (models/text/text_stream.h). skip_special: tokens that are flagged
 * special give nothing. LK_E_INPUT for an id that is no token's. */
enum lk_code lk_tokenizer_decode(const struct lk_tokenizer *tokenizer, const int32_t *ids, size_t n_ids,
                                 bool skip_special, char **bytes, size_t *n_bytes);

/* Whether the id is that of an added token flagged special. */
bool lk_tokenizer_is_special(const struct lk_tokenizer *tokenizer, int32_t id);

/* Bytes of the longest added token that the text begins with, 0 if none: for callers who cut the text there before
 * encoding it. Flags of the token do not count. */
size_t lk_tokenizer_added_at(const struct lk_tokenizer *tokenizer, const char *text, size_t length);

/* Id of a token by its literal content (added tokens first, then vocabulary), -1 if there is none. */
int32_t lk_tokenizer_id(const struct lk_tokenizer *tokenizer, const char *token);
int32_t lk_tokenizer_vocab_size(const struct lk_tokenizer *tokenizer); /* highest id + 1 */
