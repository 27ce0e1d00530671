/* What tokenizer.json describes. */
#pragma once

#include "engine/base/text.h"
#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/bpe.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/pre_tokenizer.h"

struct lk_tokenizer {
    struct bpe bpe;
    struct added_tokens added;
    struct pre_tokenizer pre_tokenizer;
    struct normalizer normalizer;
    int32_t vocab_size;
};

/* Fills *tokenizer (zeroed before); on failure it may be filled in part and is freed by the caller. */
enum lk_code lk_tokenizer_file_parse(struct lk_tokenizer *tokenizer, const char *json, size_t length, const char *name);

/* What decides the ids of a text, for weights/config_identity.h: lines that depend neither on the order of keys nor on
 * what is read and without effect. */
enum lk_code lk_tokenizer_identity(const struct lk_tokenizer *tokenizer, struct lk_text *lines);
/* Those lines where the model's configs are identified, as read of the file `path`; a failure frees *tokenizer. */
enum lk_code lk_tokenizer_add_identity(struct lk_tokenizer **tokenizer, const char *path);
