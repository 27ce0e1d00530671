#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/make/family.h"

/* FLUX.2's, ids from 0. */
static const char *const mistral_special[] = {"<unk>",
                                              "<s>",
                                              "</s>",
                                              "[INST]",
                                              "[/INST]",
                                              "[AVAILABLE_TOOLS]",
                                              "[/AVAILABLE_TOOLS]",
                                              "[TOOL_RESULTS]",
                                              "[/TOOL_RESULTS]",
                                              "[TOOL_CALLS]",
                                              "[IMG]",
                                              "<pad>",
                                              "[IMG_BREAK]",
                                              "[IMG_END]",
                                              "[PREFIX]",
                                              "[MIDDLE]",
                                              "[SUFFIX]",
                                              "[SYSTEM_PROMPT]",
                                              "[/SYSTEM_PROMPT]",
                                              "[TOOL_CONTENT]"};

/* Qwen2.5's in their order, ids from MAKE_QWEN_FIRST_SPECIAL. */
static const char *const qwen_special[] = {
    "<|endoftext|>",  "<|im_start|>",   "<|im_end|>",    "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>",    "<|quad_start|>", "<|quad_end|>",  "<|vision_start|>",     "<|vision_end|>",     "<|vision_pad|>",
    "<|image_pad|>",  "<|video_pad|>",  "<tool_call>",   "</tool_call>",         "<|fim_prefix|>",     "<|fim_middle|>",
    "<|fim_suffix|>", "<|fim_pad|>",    "<|repo_name|>", "<|file_sep|>"};
#define QWEN_FIRST_PLAIN 14 /* from here on not flagged as special */
#define COUNT(list)      (int)(sizeof(list) / sizeof *(list))

/* Words that get a token of their own, spelt left to right by merges. */
static const char *const words[] = {" the",   " a",     " and",   " of",  " to",   " in",     " it",     " on",
                                    " make",  " add",   " with",  " red", " blue", " hair",   " face",   " person",
                                    " photo", " image", " smile", " hat", " snow", " winter", " glasses"};

/* What Qwen's chats for pictures are made of, and the prompts of bench_queue: each a token of the released vocabulary,
 * so that these chats are as long as the released tokenizer makes them, by whole_words. */
static const char *const pieces[] = {
    "system",       "user",         "assistant",    "Describe",     " the",      " key",           " features",
    " of",          " input",       " image",       " (",           "color",     " shape",         " size",
    " texture",     " objects",     " background",  "),",           " then",     " explain",       " how",
    " user",        "'s",           " text",        " instruction", " should",   " alter",         " or",
    " modify",      " Generate",    " a",           " new",         " that",     " meets",         " requirements",
    " while",       " maintaining", " consistency", " with",        " original", " where",         " by",
    " appropriate", " detailing",   " color",       " quantity",    " spatial",  " relationships", " and",
    "Picture",      " scarf",       " colour",      " number"};

static int is_printable(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

/* The printable character that byte-level BPE writes for a byte, as UTF-8 into out. */
static void byte_character(int byte, char out[4]) {
    int code = byte;
    if (!is_printable(byte)) {
        code = 256;
        for (int b = 0; b < byte; b++) code += !is_printable(b);
    }
    if (code < 0x80) {
        snprintf(out, 4, "%c", code);
    } else {
        out[0] = (char)(0xc0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3f));
        out[2] = 0;
    }
}

static void add_special(cJSON *list, int id, const char *content, bool special) {
    cJSON *token = cJSON_CreateObject();
    cJSON_AddNumberToObject(token, "id", id);
    cJSON_AddStringToObject(token, "content", content);
    static const char *const off[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (int i = 0; i < 4; i++) cJSON_AddFalseToObject(token, off[i]);
    cJSON_AddBoolToObject(token, "special", special);
    cJSON_AddItemToArray(list, token);
}

/* Adds one word's merges and tokens; a token that is there already is shared. */
static void add_word(cJSON *vocab, cJSON *merges, const char *word, int *next_id, int max_id) {
    char left[128], right[4], both[132];
    byte_character((unsigned char)word[0], left);
    for (const char *c = word + 1; *c; c++) {
        byte_character((unsigned char)*c, right);
        snprintf(both, sizeof both, "%s%s", left, right);
        if (!cJSON_GetObjectItemCaseSensitive(vocab, both) && *next_id < max_id) {
            cJSON_AddNumberToObject(vocab, both, (*next_id)++);
            cJSON *pair = cJSON_CreateArray();
            cJSON_AddItemToArray(pair, cJSON_CreateString(left));
            cJSON_AddItemToArray(pair, cJSON_CreateString(right));
            cJSON_AddItemToArray(merges, pair);
        }
        memcpy(left, both, sizeof left);
    }
}

/* tokenizer.json without added tokens and vocabulary. digits: how many a number's piece may have, as a regex. */
static cJSON *empty(const char *normalizer, const char *digits) {
    char text[2048];
    snprintf(text, sizeof text,
             "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":%s,"
             "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\""
             "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}%s| "
             "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
             "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"trim_offsets\":true,\"use_regex\":false}]},"
             "\"post_processor\":null,"
             "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
             "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
             "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,"
             "\"vocab\":{},\"merges\":[]}}",
             normalizer, digits);
    return cJSON_Parse(text);
}

static cJSON *member(cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

/* Returns the next id that is free. */
static int add_words(cJSON *vocab, cJSON *merges, int next_id, int max_id) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(vocab, merges, words[i], &next_id, max_id);
    return next_id;
}

static void add_piece(cJSON *vocab, const char *piece, int id) {
    char text[64] = "", character[4];
    for (; *piece; piece++) {
        byte_character((unsigned char)*piece, character);
        strncat(text, character, sizeof text - strlen(text) - 1);
    }
    cJSON_AddNumberToObject(vocab, text, id);
}

cJSON *make_tokenizer_mistral(int vocab_size) {
    static const char post_processor[] =
        "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
        "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"
        "\"special_tokens\":{}}";
    cJSON *root = empty("null", "{1,3}");
    if (!root) return NULL;
    cJSON *model = member(root, "model"), *vocab = member(model, "vocab");
    cJSON_ReplaceItemInObjectCaseSensitive(root, "post_processor", cJSON_Parse(post_processor));
    cJSON_ReplaceItemInObjectCaseSensitive(model, "ignore_merges", cJSON_CreateTrue());
    int next_id = 0;
    for (; next_id < COUNT(mistral_special); next_id++) {
        add_special(member(root, "added_tokens"), next_id, mistral_special[next_id], true);
        cJSON_AddNumberToObject(vocab, mistral_special[next_id], next_id);
    }
    for (int byte = 0; byte < 256; byte++) {
        char text[4];
        byte_character(byte, text);
        cJSON_AddNumberToObject(vocab, text, next_id++);
    }
    add_words(vocab, member(model, "merges"), next_id, vocab_size);
    return root;
}

cJSON *make_tokenizer_qwen(bool whole_words) {
    cJSON *root = empty("{\"type\":\"NFC\"}", "");
    if (!root) return NULL;
    cJSON *model = member(root, "model"), *vocab = member(model, "vocab");
    int next_id = 0;
    for (int plain = 1; plain >= 0; plain--) { /* printable bytes first: id 0 is "!", as released */
        for (int byte = 0; byte < 256; byte++) {
            char text[4];
            if (is_printable(byte) != plain) continue;
            byte_character(byte, text);
            cJSON_AddNumberToObject(vocab, text, next_id++);
        }
    }
    if (whole_words) {
        cJSON_ReplaceItemInObjectCaseSensitive(model, "ignore_merges", cJSON_CreateTrue());
        for (int i = 0; i < COUNT(pieces); i++) add_piece(vocab, pieces[i], next_id++);
    } else
        next_id = add_words(vocab, member(model, "merges"), next_id, MAKE_QWEN_FIRST_SPECIAL);
    for (; next_id < MAKE_QWEN_FIRST_SPECIAL; next_id++) { /* the special tokens' ids follow the vocabulary */
        char unused[24];
        snprintf(unused, sizeof unused, "unused%c%c", 'a' + next_id / 26, 'a' + next_id % 26);
        cJSON_AddNumberToObject(vocab, unused, next_id);
    }
    for (int i = 0; i < COUNT(qwen_special); i++)
        add_special(member(root, "added_tokens"), MAKE_QWEN_FIRST_SPECIAL + i, qwen_special[i], i < QWEN_FIRST_PLAIN);
    return root;
}
