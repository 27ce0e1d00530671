#include "models/tokenizer/tokenizer_file.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "models/tokenizer/json_fields.h"
#include "models/tokenizer/model_section.h"
#include "models/tokenizer/normalizer.h"

#define MAX_SEQUENCE 16

/* Whether an added token's content has the id that the reference would give it: the vocabulary's, else the next free
 * one. The reference warns and goes on with its own; here the file is refused. */
static enum lk_code check_added_id(const struct lk_tokenizer *tokenizer, struct json_place place, int32_t in_vocab,
                                   int64_t id) {
    int32_t expected = in_vocab >= 0 ? in_vocab : tokenizer->vocab_size;
    if (id == expected) return LK_OK;
    return lk_fail(LK_E_TOKENIZER, "%s: %s.id: expected %d, which %s, got %lld", place.file, place.path, expected,
                   in_vocab >= 0 ? "the vocabulary has for this content" : "is the next free id", (long long)id);
}

static enum lk_code read_added_token(struct lk_tokenizer *tokenizer, struct json_place place, struct json_value value) {
    struct added_tokens *added = &tokenizer->added;
    struct added_token *token = &added->tokens[added->n];
    struct json_field f[] = {{.key = "id"},     {.key = "content"},    {.key = "single_word"}, {.key = "lstrip"},
                             {.key = "rstrip"}, {.key = "normalized"}, {.key = "special"}};
    int64_t id;
    enum lk_code rc;
    if ((rc = lk_tokenizer_json_fields(place, value, f, 7)) ||
        (rc = lk_tokenizer_json_field_index(place, &f[0], INT32_MAX - 1, &id)) ||
        (rc = lk_tokenizer_json_field_kind(place, &f[1], '"')) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[2], &token->single_word)) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[3], &token->lstrip)) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[4], &token->rstrip)) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[5], &token->normalized)) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[6], &token->special)))
        return rc;
    char *content = lk_token_table_room(&added->contents);
    size_t length = lk_tokenizer_json_string(f[1].value, content);
    if (!length || length > ADDED_TOKEN_MAX_BYTES) {
        return lk_fail(LK_E_TOKENIZER, "%s: %s.content: expected 1 to %d bytes, got %zu", place.file, place.path,
                       ADDED_TOKEN_MAX_BYTES, length);
    }
    int32_t in_vocab = lk_token_table_find(&tokenizer->bpe.vocab, content, length);
    if ((rc = check_added_id(tokenizer, place, in_vocab, id))) return rc;
    if (lk_token_table_add(&added->contents, (int32_t)added->n, length) >= 0) {
        return lk_fail(LK_E_TOKENIZER, "%s: %s.content: expected each content once, got a repetition", place.file,
                       place.path);
    }
    token->id = (int32_t)id;
    if (in_vocab < 0) tokenizer->vocab_size++;
    added->n++;
    return LK_OK;
}

/* The tries, and what single_word needs. */
static enum lk_code build_matchers(struct lk_tokenizer *tokenizer, const char *file) {
    struct added_tokens *added = &tokenizer->added;
    struct nfc_scratch scratch = {0};
    bool single_word = false;
    /* NFC can lengthen a text to at most three times its bytes. */
    enum lk_code rc = lk_added_trie_init(&added->as_given, added->contents.text_bytes);
    if (!rc) rc = lk_added_trie_init(&added->normalized, 3 * added->contents.text_bytes);
    for (uint32_t i = 0; i < added->n && !rc; i++) {
        const char *content = added->contents.text + added->contents.tokens[i].at;
        size_t length = added->contents.tokens[i].length;
        bool normalized = added->tokens[i].normalized;
        single_word = single_word || added->tokens[i].single_word;
        if (normalized) rc = lk_normalize(&tokenizer->normalizer, &scratch, content, length, &content, &length);
        if (rc) break;
        if (!lk_added_trie_add(normalized ? &added->normalized : &added->as_given, content, length, (int32_t)i)) {
            rc = lk_fail(LK_E_TOKENIZER, "%s: added_tokens[%u].content: is the same as another one when normalized",
                         file, i);
        }
    }
    lk_nfc_scratch_free(&scratch);
    return rc || !single_word ? rc : lk_pattern_compile_word(&added->word);
}

static enum lk_code read_added_tokens(struct lk_tokenizer *tokenizer, const char *file,
                                      const struct json_field *field) {
    struct added_tokens *added = &tokenizer->added;
    size_t n = 0, bytes = 0;
    enum lk_code rc = LK_OK;
    if (field->value.at) {
        if ((rc = lk_tokenizer_json_field_kind((struct json_place){file, ""}, field, '['))) return rc;
        n = lk_tokenizer_json_count(field->value);
        bytes = (size_t)(field->value.end - field->value.at);
    }
    if ((rc = lk_token_table_init(&added->contents, (uint32_t)n, bytes))) return rc;
    added->tokens = lk_calloc(n + 1, sizeof *added->tokens);
    if (!added->tokens) return lk_fail(LK_E_NOMEM, "%s: no memory for %zu added tokens", file, n);
    if (n) {
        struct json_iterator it = lk_tokenizer_json_begin(field->value);
        struct json_value value;
        while (lk_tokenizer_json_next(&it, &value)) {
            char path[64];
            snprintf(path, sizeof path, "added_tokens[%u]", added->n);
            if ((rc = read_added_token(tokenizer, (struct json_place){file, path}, value))) return rc;
        }
    }
    return build_matchers(tokenizer, file);
}

/* A component's "type", which must be a string. */
static enum lk_code read_type(struct json_place place, struct json_value value, struct json_value *type) {
    struct json_field f = {.key = "type"};
    enum lk_code rc = lk_tokenizer_json_find(place, value, &f);
    if (!rc) rc = lk_tokenizer_json_field_kind(place, &f, '"');
    *type = f.value;
    return rc;
}

typedef enum lk_code component_fn(struct lk_tokenizer *, struct json_place, struct json_value);

/* {"type": "Sequence", LIST: [...]}: calls `element` on each. */
static enum lk_code read_sequence(struct lk_tokenizer *tokenizer, struct json_place place, struct json_value value,
                                  const char *list, component_fn *element) {
    struct json_field f[] = {{.key = "type"}, {.key = list}};
    enum lk_code rc;
    if ((rc = lk_tokenizer_json_fields(place, value, f, 2)) || (rc = lk_tokenizer_json_field_kind(place, &f[1], '[')))
        return rc;
    struct json_iterator it = lk_tokenizer_json_begin(f[1].value);
    struct json_value item;
    for (int i = 0; lk_tokenizer_json_next(&it, &item); i++) {
        char path[128];
        snprintf(path, sizeof path, "%s.%s[%d]", place.path, list, i);
        if (i == MAX_SEQUENCE) {
            return lk_fail(LK_E_TOKENIZER, "%s: %s: expected at most %d components", place.file, path, MAX_SEQUENCE);
        }
        struct json_value type;
        if ((rc = read_type((struct json_place){place.file, path}, item, &type))) return rc;
        if (lk_tokenizer_json_string_is(type, "Sequence")) {
            return lk_tokenizer_json_unknown((struct json_place){place.file, path}, "type", type,
                                             "a Sequence in a Sequence");
        }
        if ((rc = element(tokenizer, (struct json_place){place.file, path}, item))) return rc;
    }
    return LK_OK;
}

/* White space to one space, as CLIP has it: no other replacement is implemented. */
static enum lk_code read_replace(struct normalizer *n, struct json_place place, struct json_value value) {
    struct json_field f[] = {{.key = "type"}, {.key = "pattern"}, {.key = "content"}}, regex = {.key = "Regex"};
    enum lk_code rc;
    if ((rc = lk_tokenizer_json_fields(place, value, f, 3)) || (rc = lk_tokenizer_json_field_kind(place, &f[1], '{')) ||
        (rc = lk_tokenizer_json_field_kind(place, &f[2], '"')) ||
        (rc = lk_tokenizer_json_fields(place, f[1].value, &regex, 1)) ||
        (rc = lk_tokenizer_json_field_kind(place, &regex, '"')))
        return rc;
    if (!lk_tokenizer_json_string_is(regex.value, "\\s+"))
        return lk_tokenizer_json_unknown(place, "pattern.Regex", regex.value, "\"\\s+\"");
    if (!lk_tokenizer_json_string_is(f[2].value, " "))
        return lk_tokenizer_json_unknown(place, "content", f[2].value, "a space");
    n->one_space = true;
    return LK_OK;
}

static enum lk_code read_normalizer(struct lk_tokenizer *tokenizer, struct json_place place, struct json_value value) {
    struct json_value type;
    enum lk_code rc = read_type(place, value, &type);
    if (rc) return rc;
    if (lk_tokenizer_json_string_is(type, "Sequence")) {
        return read_sequence(tokenizer, place, value, "normalizers", read_normalizer);
    }
    struct normalizer *n = &tokenizer->normalizer;
    if (lk_tokenizer_json_string_is(type, "Replace") && !n->lowercase) return read_replace(n, place, value);
    const bool nfc = lk_tokenizer_json_string_is(type, "NFC") && !n->one_space && !n->lowercase;
    if (!nfc && !lk_tokenizer_json_string_is(type, "Lowercase"))
        return lk_tokenizer_json_unknown(place, "type", type, "Sequence, or NFC, Replace and Lowercase in this order");
    *(nfc ? &n->nfc : &n->lowercase) = true;
    struct json_field f[] = {{.key = "type"}};
    return lk_tokenizer_json_fields(place, value, f, 1);
}

/* {"Regex": "..."} or {"String": "..."} */
static enum lk_code read_pattern(struct split *split, struct json_place place, struct json_value value) {
    char path[160], *text;
    snprintf(path, sizeof path, "%s.pattern", place.path);
    place.path = path;
    struct json_field f[] = {{.key = "Regex"}, {.key = "String"}};
    enum lk_code rc = lk_tokenizer_json_fields(place, value, f, 2);
    if (rc) return rc;
    if (!f[0].value.at == !f[1].value.at) {
        return lk_fail(LK_E_TOKENIZER, "%s: %s: expected either a Regex or a String", place.file, path);
    }
    const struct json_field *given = f[0].value.at ? &f[0] : &f[1];
    if ((rc = lk_tokenizer_json_field_kind(place, given, '"'))) return rc;
    text = lk_malloc((size_t)(given->value.end - given->value.at));
    if (!text) return lk_fail(LK_E_NOMEM, "%s: %s: no memory", place.file, path);
    size_t length = lk_tokenizer_json_string(given->value, text);
    char where[512];
    snprintf(where, sizeof where, "%s: %s", place.file, path);
    rc = lk_pattern_compile(&split->pattern, text, length, given == &f[1], where);
    lk_sha256(text, length, split->sha256);
    lk_free(text);
    return rc;
}

static enum lk_code read_split(struct lk_tokenizer *tokenizer, struct json_place place, struct json_value value) {
    static const char *const behaviors[] = {[SPLIT_REMOVED] = "Removed",
                                            [SPLIT_ISOLATED] = "Isolated",
                                            [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                            [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                            [SPLIT_CONTIGUOUS] = "Contiguous"};
    struct pre_tokenizer *pre = &tokenizer->pre_tokenizer;
    struct json_field f[] = {{.key = "type"}, {.key = "pattern"}, {.key = "behavior"}, {.key = "invert"}};
    if (pre->n_splits == PRE_TOKENIZER_MAX_SPLITS) {
        return lk_fail(LK_E_TOKENIZER, "%s: %s: expected at most %d Split components", place.file, place.path,
                       PRE_TOKENIZER_MAX_SPLITS);
    }
    struct split *split = &pre->splits[pre->n_splits];
    enum lk_code rc;
    if ((rc = lk_tokenizer_json_fields(place, value, f, 4)) || (rc = lk_tokenizer_json_field_kind(place, &f[1], '{')) ||
        (rc = lk_tokenizer_json_field_kind(place, &f[2], '"')) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[3], &split->invert)))
        return rc;
    int k = 0;
    while (k <= SPLIT_CONTIGUOUS && !lk_tokenizer_json_string_is(f[2].value, behaviors[k])) k++;
    if (k > SPLIT_CONTIGUOUS) {
        return lk_tokenizer_json_unknown(place, "behavior", f[2].value,
                                         "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
    }
    split->behavior = (enum split_behavior)k;
    if ((rc = read_pattern(split, place, f[1].value))) return rc;
    pre->n_splits++;
    return LK_OK;
}

/* Common to the pre-tokenizer and the post-processor of this name. */
static enum lk_code read_byte_level_fields(struct json_place place, struct json_value value, bool *add_prefix_space,
                                           bool *use_regex) {
    struct json_field f[] = {
        {.key = "type"}, {.key = "add_prefix_space"}, {.key = "trim_offsets"}, {.key = "use_regex"}};
    bool trim_offsets;
    enum lk_code rc;
    *use_regex = true;
    if ((rc = lk_tokenizer_json_fields(place, value, f, 4)) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[1], add_prefix_space)) ||
        (rc = lk_tokenizer_json_field_bool(place, &f[2], &trim_offsets)))
        return rc;
    return f[3].value.at ? lk_tokenizer_json_field_bool(place, &f[3], use_regex) : LK_OK;
}

static enum lk_code read_pre_tokenizer(struct lk_tokenizer *tokenizer, struct json_place place,
                                       struct json_value value) {
    struct pre_tokenizer *pre = &tokenizer->pre_tokenizer;
    struct json_value type;
    enum lk_code rc = read_type(place, value, &type);
    if (rc) return rc;
    if (lk_tokenizer_json_string_is(type, "Sequence")) {
        return read_sequence(tokenizer, place, value, "pretokenizers", read_pre_tokenizer);
    }
    if (pre->byte_level) {
        return lk_fail(LK_E_TOKENIZER, "%s: %s: expected ByteLevel to be the last component", place.file, place.path);
    }
    if (lk_tokenizer_json_string_is(type, "Split")) return read_split(tokenizer, place, value);
    if (!lk_tokenizer_json_string_is(type, "ByteLevel"))
        return lk_tokenizer_json_unknown(place, "type", type, "Split, ByteLevel or Sequence");
    pre->byte_level = true;
    if ((rc = read_byte_level_fields(place, value, &pre->add_prefix_space, &pre->use_regex)) || !pre->use_regex)
        return rc;
    return lk_pre_tokenizer_compile_gpt2(pre, place.file);
}

/* Post-processors add tokens only when special tokens are asked for, or change offsets: without effect on our ids. */
static enum lk_code read_post_processor(struct lk_tokenizer *tokenizer, struct json_place place,
                                        struct json_value value) {
    struct json_value type;
    bool unused[2];
    enum lk_code rc = read_type(place, value, &type);
    if (rc) return rc;
    if (lk_tokenizer_json_string_is(type, "Sequence")) {
        return read_sequence(tokenizer, place, value, "processors", read_post_processor);
    }
    if (lk_tokenizer_json_string_is(type, "ByteLevel"))
        return read_byte_level_fields(place, value, &unused[0], &unused[1]);
    if (lk_tokenizer_json_string_is(type, "TemplateProcessing")) {
        struct json_field f[] = {{.key = "type"}, {.key = "single"}, {.key = "pair"}, {.key = "special_tokens"}};
        return lk_tokenizer_json_fields(place, value, f, 4);
    }
    if (lk_tokenizer_json_string_is(type, "RobertaProcessing")) {
        struct json_field f[] = {
            {.key = "type"}, {.key = "sep"}, {.key = "cls"}, {.key = "trim_offsets"}, {.key = "add_prefix_space"}};
        return lk_tokenizer_json_fields(place, value, f, 5);
    }
    return lk_tokenizer_json_unknown(place, "type", type,
                                     "ByteLevel, TemplateProcessing, RobertaProcessing or Sequence");
}

static enum lk_code read_component(struct lk_tokenizer *tokenizer, const char *file, const struct json_field *field,
                                   component_fn *read) {
    if (!field->value.at || lk_tokenizer_json_kind(field->value) == 'n') return LK_OK;
    return read(tokenizer, (struct json_place){file, field->key}, field->value);
}

enum lk_code lk_tokenizer_file_parse(struct lk_tokenizer *tokenizer, const char *json, size_t length,
                                     const char *name) {
    enum { VERSION, TRUNCATION, PADDING, ADDED, NORMALIZER, PRE, POST, DECODER, MODEL, N };
    struct json_field f[N] = {
        [VERSION] = {.key = "version"},     [TRUNCATION] = {.key = "truncation"}, [PADDING] = {.key = "padding"},
        [ADDED] = {.key = "added_tokens"},  [NORMALIZER] = {.key = "normalizer"}, [PRE] = {.key = "pre_tokenizer"},
        [POST] = {.key = "post_processor"}, [DECODER] = {.key = "decoder"},       [MODEL] = {.key = "model"}};
    struct json_place place = {name, ""};
    struct json_value root;
    enum lk_code rc;
    if ((rc = lk_tokenizer_json_check(json, length, name, &root)) || (rc = lk_tokenizer_json_fields(place, root, f, N)))
        return rc;
    if (f[VERSION].value.at && !lk_tokenizer_json_string_is(f[VERSION].value, "1.0")) {
        return lk_tokenizer_json_unknown(place, "version", f[VERSION].value, "\"1.0\"");
    }
    for (int i = TRUNCATION; i <= PADDING; i++) {
        if (f[i].value.at && lk_tokenizer_json_kind(f[i].value) != 'n' &&
            (rc = lk_tokenizer_json_field_kind(place, &f[i], '{')))
            return rc;
    }
    if (f[DECODER].value.at && lk_tokenizer_json_kind(f[DECODER].value) != 'n' &&
        (rc = lk_tokenizer_json_field_kind(place, &f[DECODER], '{')))
        return rc;
    if ((rc = lk_tokenizer_json_field_kind(place, &f[MODEL], '{')) ||
        (rc = lk_model_section_read(&tokenizer->bpe, (struct json_place){name, "model"}, f[MODEL].value)))
        return rc;
    tokenizer->vocab_size = (int32_t)tokenizer->bpe.vocab.n;
    if ((rc = read_component(tokenizer, name, &f[NORMALIZER], read_normalizer)) ||
        (rc = read_component(tokenizer, name, &f[PRE], read_pre_tokenizer)) ||
        (rc = read_component(tokenizer, name, &f[POST], read_post_processor)))
        return rc;
    if (!tokenizer->pre_tokenizer.byte_level) {
        return lk_fail(LK_E_TOKENIZER,
                       "%s: pre_tokenizer: expected a ByteLevel component, got none; only byte-level tokenizers are "
                       "implemented",
                       name);
    }
    return read_added_tokens(tokenizer, name, &f[ADDED]);
}
