#include <stdio.h>
#include <string.h>

#include "tools/make/flux2.h"

#define N_SPECIAL 20

static const char *const special[N_SPECIAL] = {"<unk>",
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

/* Words that get a token of their own, spelt left to right by merges. */
static const char *const words[] = {" the",   " a",     " and",   " of",  " to",   " in",     " it",     " on",
                                    " make",  " add",   " with",  " red", " blue", " hair",   " face",   " person",
                                    " photo", " image", " smile", " hat", " snow", " winter", " glasses"};

/* The printable character that byte-level BPE writes for a byte, as UTF-8 into out. */
static void byte_character(int byte, char out[4]) {
    bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    int code = byte;
    if (!plain) {
        code = 256;
        for (int b = 0; b < byte; b++)
            if (!((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174)) code++;
    }
    if (code < 0x80) {
        snprintf(out, 4, "%c", code);
    } else {
        out[0] = (char)(0xc0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3f));
        out[2] = 0;
    }
}

static void add_special(cJSON *list, int id) {
    cJSON *token = cJSON_CreateObject();
    cJSON_AddNumberToObject(token, "id", id);
    cJSON_AddStringToObject(token, "content", special[id]);
    static const char *const off[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (int i = 0; i < 4; i++) cJSON_AddFalseToObject(token, off[i]);
    cJSON_AddTrueToObject(token, "special");
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

cJSON *make_flux2_tokenizer(int vocab_size) {
    cJSON *root = cJSON_Parse(
        "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\""
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
        "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
        "\"trim_offsets\":true,\"use_regex\":false}]},"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],"
        "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],"
        "\"special_tokens\":{}},"
        "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
        "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
        "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":true,"
        "\"vocab\":{},\"merges\":[]}}");
    if (!root) return NULL;
    cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model");
    cJSON *vocab = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    cJSON *merges = cJSON_GetObjectItemCaseSensitive(model, "merges");
    cJSON *added = cJSON_GetObjectItemCaseSensitive(root, "added_tokens");
    int next_id = 0;
    for (; next_id < N_SPECIAL; next_id++) {
        add_special(added, next_id);
        cJSON_AddNumberToObject(vocab, special[next_id], next_id);
    }
    for (int byte = 0; byte < 256; byte++) {
        char text[4];
        byte_character(byte, text);
        cJSON_AddNumberToObject(vocab, text, next_id++);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(vocab, merges, words[i], &next_id, vocab_size);
    return root;
}
