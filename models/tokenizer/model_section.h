/* The "model" object of tokenizer.json. */
#pragma once

#include "models/tokenizer/bpe.h"
#include "models/tokenizer/json_fields.h"

enum lk_code lk_model_section_read(struct bpe *bpe, struct json_place place, struct json_value model);
