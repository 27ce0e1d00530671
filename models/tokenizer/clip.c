/* CLIP's tokenizer as Stable Diffusion's repositories have it: vocab.json, merges.txt and tokenizer_config.json. They
 * are put together to the tokenizer.json that transformers makes of them, which the one reader then reads. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/tokenizer_file.h"
#include "weights/checkpoint.h"
#include "weights/config.h"

#define MAX_FILE_BYTES (64u << 20)
#define N_SPECIAL      4

static const char normalizer[] = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"Replace\","
                                 "\"pattern\":{\"Regex\":\"\\\\s+\"},\"content\":\" \"},{\"type\":\"Lowercase\"}]}";
static const char pre_tokenizer[] =
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"<\\\\|startoftext\\\\|>|"
    "<\\\\|endoftext\\\\|>|'s|'t|'re|'ve|'m|'ll|'d|[\\\\p{L}]+|[\\\\p{N}]|[^\\\\s\\\\p{L}\\\\p{N}]+\"},\"behavior\":"
    "\"Removed\",\"invert\":true},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}]}";

/* A special token of tokenizer_config.json: a text, which is looked for before the prompt is normalised, or an object
 * that says when. */
struct special {
    char content[128];
    bool normalized;
};

static void read_special(struct lk_config *json, const char *key, struct special *out) {
    const char *content = NULL;
    out->normalized = false;
    if (lk_config_is_object(json, key)) {
        struct lk_config *token = lk_config_object(json, key, true);
        lk_config_expect_string(token, "__type", "AddedToken");
        lk_config_expect_bool(token, "lstrip", false);
        lk_config_expect_bool(token, "rstrip", false);
        lk_config_expect_bool(token, "single_word", false);
        lk_config_ignore(token, "special");
        lk_config_bool_or(token, "normalized", &out->normalized, true);
        lk_config_string(token, "content", &content);
    } else {
        lk_config_string(json, key, &content);
    }
    if (content && (!*content || strlen(content) >= sizeof out->content))
        lk_config_problem(json, key, LK_E_CONFIG_VALUE, "expected 1 to %zu bytes", sizeof out->content - 1);
    else if (content)
        strcpy(out->content, content);
}

static enum lk_code read_config(const char *path, bool with_json, struct special special[N_SPECIAL]) {
    static const char *const keys[N_SPECIAL] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    static const char *const classes[] = {"CLIPTokenizer", "CLIPTokenizerFast", NULL};
    static const char *const inert[] = {
        "errors",   "name_or_path",     "special_tokens_map_file",      "backend",
        "is_local", "local_files_only", "clean_up_tokenization_spaces", "extra_special_tokens"};
    struct lk_config *json;
    LK_TRY(lk_config_open(&json, path));
    lk_config_expect_one_of(json, "tokenizer_class", classes);
    lk_config_expect_bool(json, "add_prefix_space", false);
    lk_config_expect_bool(json, "do_lower_case", true);
    lk_config_expect_int(json, "model_max_length", 77);
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
    if (with_json) lk_config_ignore(json, "added_tokens_decoder"); /* tokenizer.json has them */
    for (int i = 0; i < N_SPECIAL; i++) read_special(json, keys[i], &special[i]);
    return lk_config_close(json);
}

/* Each content once, as its last mention has it; ids are the vocabulary's. */
static void add_tokens(struct lk_text *text, const struct special special[N_SPECIAL],
                       const struct lk_tokenizer *vocab) {
    const char *comma = "";
    for (int i = 0; i < N_SPECIAL; i++) {
        bool again = false;
        for (int j = i + 1; j < N_SPECIAL; j++) again = again || !strcmp(special[i].content, special[j].content);
        if (again) continue;
        lk_text_add(text, "%s{\"id\":%d,\"content\":", comma, (int)lk_tokenizer_id(vocab, special[i].content));
        lk_text_json(text, special[i].content);
        lk_text_add(text,
                    ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":%s,\"special\":true}",
                    special[i].normalized ? "true" : "false");
        comma = ",";
    }
}

/* Lines "a b" behind the first, which says the version. */
static enum lk_code add_merges(struct lk_text *text, char *merges, const char *path) {
    const char *comma = "";
    char *line = merges, *end;
    if (strncmp(merges, "#version", 8))
        return lk_fail(LK_E_TOKENIZER, "%s: line 1: expected \"#version: 0.2\", got \"%.40s\"", path, merges);
    for (int number = 1; line; line = end, number++) {
        if ((end = strchr(line, '\n'))) *end++ = 0;
        if (number == 1 || (!*line && !end)) continue;
        if (strchr(line, '\r') || !*line)
            return lk_fail(LK_E_TOKENIZER, "%s: line %d: expected two tokens and a bare line feed, got \"%.40s\"", path,
                           number, line);
        lk_text_add(text, "%s", comma);
        lk_text_json(text, line);
        comma = ",";
    }
    return text->rc;
}

/* The files as one; without `special` no token is added. */
static enum lk_code parse(struct lk_tokenizer **out, const char *vocab, char *merges, const char *paths[2],
                          const struct special *special, const struct lk_tokenizer *first) {
    struct lk_text text = {0};
    char *copy = lk_strdup(merges);
    lk_text_add(&text, "{\"added_tokens\":[");
    if (special) add_tokens(&text, special, first);
    lk_text_add(&text,
                "],\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":"
                "\"</w>\",\"vocab\":",
                normalizer, pre_tokenizer);
    lk_text_bytes(&text, vocab, strlen(vocab));
    lk_text_add(&text, ",\"merges\":[");
    enum lk_code rc = copy ? add_merges(&text, copy, paths[1]) : lk_fail(LK_E_NOMEM, "%s: out of memory", paths[1]);
    lk_text_add(&text, "]}}");
    if (!rc) rc = text.rc ? text.rc : lk_tokenizer_parse(out, text.bytes, text.n, paths[0]);
    lk_free(copy);
    lk_text_free(&text);
    return rc;
}

static enum lk_code open_parts(struct lk_tokenizer **out, const char *paths[2], const struct special *special) {
    struct lk_tokenizer *vocabulary = NULL;
    char *vocab = NULL, *merges = NULL;
    size_t n_vocab = 0, n_merges = 0;
    enum lk_code rc = lk_read_file(paths[0], MAX_FILE_BYTES, &vocab, &n_vocab);
    if (!rc) rc = lk_read_file(paths[1], MAX_FILE_BYTES, &merges, &n_merges);
    if (!rc && (strlen(vocab) != n_vocab || strlen(merges) != n_merges))
        rc = lk_fail(LK_E_TOKENIZER, "%s: expected text, got a NUL byte", paths[strlen(vocab) == n_vocab]);
    if (!rc) rc = parse(&vocabulary, vocab, merges, paths, NULL, NULL);
    for (int i = 0; !rc && i < N_SPECIAL; i++)
        if (lk_tokenizer_id(vocabulary, special[i].content) < 0)
            rc = lk_fail(LK_E_TOKENIZER, "%s: no token \"%s\", which tokenizer_config.json names", paths[0],
                         special[i].content);
    if (!rc) rc = parse(out, vocab, merges, paths, special, vocabulary);
    if (!rc) rc = lk_tokenizer_add_identity(out, paths[0]);
    lk_tokenizer_free(vocabulary);
    lk_free(vocab);
    lk_free(merges);
    return rc;
}

static enum lk_code open_files(struct lk_tokenizer **out, const char *json, const char *config, const char *parts[2],
                               struct lk_clip_ids *ids) {
    struct special special[N_SPECIAL] = {0};
    const bool with_json = json != NULL;
    LK_TRY(read_config(config, with_json, special));
    LK_TRY(with_json ? lk_tokenizer_open(out, json) : open_parts(out, parts, special));
    int32_t *to[N_SPECIAL] = {&ids->bos, &ids->eos, NULL, &ids->pad};
    for (int i = 0; i < N_SPECIAL; i++) {
        if (!to[i] || (*to[i] = lk_tokenizer_id(*out, special[i].content)) >= 0) continue;
        lk_tokenizer_free(*out);
        *out = NULL;
        return lk_fail(LK_E_TOKENIZER, "%s: token \"%s\" is not in the vocabulary", config, special[i].content);
    }
    return LK_OK;
}

enum lk_code lk_tokenizer_open_clip(struct lk_tokenizer **out, const char *folder, const char *component,
                                    struct lk_clip_ids *ids) {
    enum { JSON, CONFIG, VOCAB, MERGES, N };
    static const char *const names[N] = {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"};
    char *paths[N] = {0};
    enum lk_code rc = LK_OK;
    *out = NULL;
    for (int i = 0; !rc && i < N; i++) {
        if (i >= VOCAB && paths[JSON]) break;
        char *relative = lk_format("%s/%s", component, names[i]);
        rc = relative ? lk_model_path(folder, relative, &paths[i]) : lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
        if (i == JSON && rc == LK_E_NOT_FOUND) rc = LK_OK;
        lk_free(relative);
    }
    if (!rc) rc = open_files(out, paths[JSON], paths[CONFIG], (const char *[]){paths[VOCAB], paths[MERGES]}, ids);
    for (int i = 0; i < N; i++) lk_free(paths[i]);
    return rc;
}

enum lk_code lk_tokenizer_encode_clip(const struct lk_tokenizer *tokenizer, const struct lk_clip_ids *special,
                                      const char *prompt, int32_t ids[LK_CLIP_IDS], int *n_real, int *n_cut) {
    int32_t *words;
    size_t n;
    LK_TRY(lk_tokenizer_encode(tokenizer, prompt, strlen(prompt), &words, &n));
    const size_t n_kept = n < LK_CLIP_IDS - 2 ? n : LK_CLIP_IDS - 2;
    ids[0] = special->bos;
    for (size_t k = 0; k < LK_CLIP_IDS - 1; k++)
        ids[1 + k] = k < n_kept ? words[k] : k == n_kept ? special->eos : special->pad;
    lk_free(words);
    *n_real = (int)n_kept + 2;
    *n_cut = (int)(n - n_kept);
    return LK_OK;
}
