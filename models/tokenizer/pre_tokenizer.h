/* Splitting of text into the pieces that BPE works on: Split steps, then ByteLevel. */
#pragma once

#include "models/tokenizer/bpe.h"
#include "models/tokenizer/pattern.h"

#define PRE_TOKENIZER_MAX_SPLITS 8

enum split_behavior {
    SPLIT_REMOVED,              /* matches are dropped */
    SPLIT_ISOLATED,             /* matches are pieces of their own */
    SPLIT_MERGED_WITH_PREVIOUS, /* a match ends the piece before it */
    SPLIT_MERGED_WITH_NEXT,     /* a match begins the piece after it */
    SPLIT_CONTIGUOUS,           /* neighbouring matches are one piece */
};

struct split {
    struct pattern pattern;
    char sha256[65]; /* of the pattern's text */
    enum split_behavior behavior;
    bool invert; /* what lies between matches counts as match */
};

struct pre_tokenizer {
    struct split splits[PRE_TOKENIZER_MAX_SPLITS];
    int n_splits;
    bool byte_level;       /* ByteLevel is there */
    bool add_prefix_space; /* ByteLevel: each piece that does not begin with a space gets one */
    bool use_regex;        /* ByteLevel: GPT-2's own pattern after the splits */
    struct pattern gpt2;
};

/* State of one call of lk_tokenizer_encode. */
struct encoding {
    const struct pre_tokenizer *pre_tokenizer;
    const struct bpe *bpe;
    struct pattern_matcher matcher;
    struct bpe_scratch scratch;
    struct id_list out;
    char *stand_in, *prefixed;
    size_t stand_in_capacity, prefixed_capacity;
};

/* GPT-2's pattern, for use_regex. */
enum lk_code lk_pre_tokenizer_compile_gpt2(struct pre_tokenizer *pre_tokenizer, const char *where);
void lk_pre_tokenizer_free(struct pre_tokenizer *pre_tokenizer);

/* Splits the text between two added tokens and appends the ids of its pieces to encoding->out. */
enum lk_code lk_pre_tokenizer_encode(struct encoding *encoding, const char *text, size_t length);
