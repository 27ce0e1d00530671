/* Small byte-level BPE tokenizers (tokenizer.json) in the form of the released ones. NULL when memory is out. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

/* Ids of the Qwen form: bytes, words, then the special tokens in their released order. */
enum {
    MAKE_QWEN_FIRST_SPECIAL = 480,
    MAKE_QWEN_ENDOFTEXT = 480,
    MAKE_QWEN_IM_END = 482,
    MAKE_QWEN_VISION_START = 489,
    MAKE_QWEN_VISION_END,
    MAKE_QWEN_VISION_PAD,
    MAKE_QWEN_IMAGE_PAD,
    MAKE_QWEN_VIDEO_PAD,
    MAKE_QWEN_VOCAB = 512,
};

cJSON *make_tokenizer_mistral(int vocab_size);
/* whole_words: chats about pictures have as many tokens as the released tokenizer makes of them. */
cJSON *make_tokenizer_qwen(bool whole_words);
