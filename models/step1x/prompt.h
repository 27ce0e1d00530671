/* Step1X-Edit's prompt as tokens. Text between quotation marks is cut into characters before tokenizing, and marked.
 * Source: the fork's pipeline_step1x_edit_v1p2.py. */
#pragma once

#include <stdbool.h>

#include "models/tokenizer/tokenizer.h"

/* Ids of the chat string with the edit prefix and the prompt, its one image token repeated n_image_tokens times; quoted
 * tells the ids that come from quoted text. Both lk_malloc'ed, *n entries. LK_E_PROMPT for text that is not UTF-8. */
enum lk_code lk_step1x_tokenize(const struct lk_tokenizer *tokenizer, const char *prompt, int64_t n_image_tokens,
                                int32_t **ids, bool **quoted, int64_t *n);
