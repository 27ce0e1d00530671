/* What an open chat holds. Private to models/text/chat*.c. */
#pragma once

#include "models/text/chat.h"
#include "models/text/qwen25_vl.h"
#include "models/text/qwen2_vl_image.h"
#include "models/tokenizer/tokenizer.h"

struct lk_chat {
    char *folder;
    enum lk_dtype compute;
    struct lk_tokenizer *tokenizer;
    struct lk_qwen2_vl_processor processor;
    struct lk_generation_config generation;
    struct lk_checkpoint checkpoint;
    struct lk_qwen25_vl model;
};
