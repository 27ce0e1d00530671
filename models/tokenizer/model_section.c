#include "models/tokenizer/model_section.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/unicode.h"

#define MAX_VOCAB (1 << 24)

static enum lk_code read_vocab(struct bpe *bpe, struct json_place place, struct json_value object) {
    size_t n = lk_tokenizer_json_count(object);
    if (!n || n > MAX_VOCAB) {
        return lk_fail(LK_E_TOKENIZER, "%s: %s.vocab: expected 1 to %d tokens, got %zu", place.file, place.path,
                       MAX_VOCAB, n);
    }
    enum lk_code rc = lk_token_table_init(&bpe->vocab, (uint32_t)n, (size_t)(object.end - object.at));
    if (rc) return rc;
    struct json_iterator it = lk_tokenizer_json_begin(object);
    struct json_value key, value;
    while (lk_tokenizer_json_next_member(&it, &key, &value)) {
        int shown = (int)(key.end - key.at < 80 ? key.end - key.at : 80);
        int64_t id;
        /* n different ids below n leave none out. */
        if (!lk_tokenizer_json_index(value, (int64_t)n - 1, &id) || bpe->vocab.tokens[id].length) {
            return lk_fail(
                LK_E_TOKENIZER,
                "%s: %s.vocab: %.*s: expected each id from 0 to %zu once, got %.*s (out of range, or a second "
                "time)",
                place.file, place.path, shown, key.at, n - 1,
                (int)(value.end - value.at < 40 ? value.end - value.at : 40), value.at);
        }
        size_t length = lk_tokenizer_json_string(key, lk_token_table_room(&bpe->vocab));
        if (!length) return lk_fail(LK_E_TOKENIZER, "%s: %s.vocab: an empty token", place.file, place.path);
        lk_token_table_add(&bpe->vocab, (int32_t)id, length); /* keys of an object differ */
    }
    return LK_OK;
}

/* With a token for every byte, no text has an unknown symbol, so that unk_token never comes into play. */
static enum lk_code find_bytes(struct bpe *bpe, struct json_place place) {
    for (int byte = 0; byte < 256; byte++) {
        char text[4 + sizeof BPE_END_OF_WORD];
        size_t n = lk_utf8_encode(lk_byte_alphabet((unsigned char)byte), text);
        bpe->byte_ids[byte] = lk_token_table_find(&bpe->vocab, text, n);
        bpe->last_ids[byte] = bpe->byte_ids[byte];
        if (bpe->end_of_word && bpe->byte_ids[byte] >= 0) {
            memcpy(text + n, BPE_END_OF_WORD, sizeof BPE_END_OF_WORD);
            bpe->last_ids[byte] = lk_token_table_find(&bpe->vocab, text, n + strlen(BPE_END_OF_WORD));
            if (bpe->last_ids[byte] < 0)
                return lk_fail(LK_E_TOKENIZER,
                               "%s: %s.vocab: expected each of the 256 bytes with \"" BPE_END_OF_WORD
                               "\" behind it too, got none for 0x%02x",
                               place.file, place.path, byte);
        }
        if (bpe->byte_ids[byte] < 0) {
            return lk_fail(LK_E_TOKENIZER,
                           "%s: %s.vocab: expected a token for each of the 256 bytes, got none for 0x%02x", place.file,
                           place.path, byte);
        }
    }
    return LK_OK;
}

/* The two sides of a merge in `text`: lengths in *left and *right, one behind the other. False if it is not one. */
static bool merge_sides(struct json_value merge, char kind, char *text, size_t *left, size_t *right) {
    if (lk_tokenizer_json_kind(merge) != kind) return false;
    if (kind == '[') {
        struct json_iterator it = lk_tokenizer_json_begin(merge);
        struct json_value side[2], extra;
        for (int i = 0; i < 2; i++) {
            if (!lk_tokenizer_json_next(&it, &side[i]) || lk_tokenizer_json_kind(side[i]) != '"') return false;
        }
        if (lk_tokenizer_json_next(&it, &extra)) return false;
        *left = lk_tokenizer_json_string(side[0], text);
        *right = lk_tokenizer_json_string(side[1], text + *left);
        return true;
    }
    size_t length = lk_tokenizer_json_string(merge, text);
    char *space = memchr(text, ' ', length);
    if (!space) return false;
    *left = (size_t)(space - text);
    *right = length - *left - 1;
    memmove(space, space + 1, *right);
    return !memchr(space, ' ', *right);
}

/* Fills in rank and result of one merge; `text` has room for it. False with what is wrong in *problem. */
static bool read_merge(struct bpe *bpe, struct json_value merge, char kind, char *text, uint32_t rank,
                       const char **problem) {
    size_t left, right;
    *problem = kind == '[' ? "two tokens [\"a\", \"b\"] as in the first merge" : "two tokens \"a b\"";
    if (!merge_sides(merge, kind, text, &left, &right)) return false;
    int32_t a = lk_token_table_find(&bpe->vocab, text, left);
    int32_t b = lk_token_table_find(&bpe->vocab, text + left, right);
    int32_t both = lk_token_table_find(&bpe->vocab, text, left + right);
    *problem = a < 0   ? "a left side that is in the vocabulary"
               : b < 0 ? "a right side that is in the vocabulary"
                       : "a result that is in the vocabulary";
    if (a < 0 || b < 0 || both < 0) return false;
    /* A pair that comes twice has its later rank, as in the reference. */
    *lk_pair_map_put(&bpe->merges, (uint32_t)a, (uint32_t)b) = (uint64_t)rank << 32 | (uint32_t)both;
    return true;
}

static enum lk_code read_merges(struct bpe *bpe, struct json_place place, struct json_value array) {
    struct json_iterator it = lk_tokenizer_json_begin(array);
    struct json_value merge;
    size_t n = 0, longest = 0;
    char kind = '"';
    while (lk_tokenizer_json_next(&it, &merge)) {
        size_t bytes = (size_t)(merge.end - merge.at);
        if (!n++ && lk_tokenizer_json_kind(merge) == '[') kind = '[';
        if (bytes > longest) longest = bytes;
    }
    enum lk_code rc = lk_pair_map_init(&bpe->merges, n);
    if (rc || !n) return rc;
    char *text = lk_malloc(longest + 1);
    if (!text) return lk_fail(LK_E_NOMEM, "%s: %s.merges: no memory", place.file, place.path);
    it = lk_tokenizer_json_begin(array);
    uint32_t rank = 0;
    for (size_t i = 0; lk_tokenizer_json_next(&it, &merge); i++) {
        const char *problem;
        /* Old files carry the first line of merges.txt along. */
        if (kind == '"' && !strncmp(merge.at, "\"#version", 9)) continue;
        if (read_merge(bpe, merge, kind, text, rank++, &problem)) continue;
        rc = lk_fail(LK_E_TOKENIZER, "%s: %s.merges[%zu]: expected %s, got %.*s", place.file, place.path, i, problem,
                     (int)(merge.end - merge.at < 100 ? merge.end - merge.at : 100), merge.at);
        break;
    }
    lk_free(text);
    return rc;
}

/* Options that would change the result, at the one value that is implemented. */
static enum lk_code check_inert(struct json_place place, const struct json_field *dropout,
                                const struct json_field *unk_token, const struct json_field *prefix,
                                const struct json_field *flags) {
    struct json_value v = dropout->value;
    double p = 0;
    if (v.at && lk_tokenizer_json_kind(v) != 'n' &&
        (lk_tokenizer_json_kind(v) != '0' || sscanf(v.at, "%lf", &p) != 1 || p != 0)) {
        return lk_tokenizer_json_unknown(place, dropout->key, v, "null or 0");
    }
    v = unk_token->value;
    if (v.at && lk_tokenizer_json_kind(v) != 'n' && lk_tokenizer_json_kind(v) != '"')
        return lk_tokenizer_json_unknown(place, unk_token->key, v, "a string or null");
    v = prefix->value;
    if (v.at && lk_tokenizer_json_kind(v) != 'n' && !lk_tokenizer_json_string_is(v, ""))
        return lk_tokenizer_json_unknown(place, prefix->key, v, "null or \"\"");
    for (int i = 0; i < 2; i++) {
        v = flags[i].value;
        if (v.at && lk_tokenizer_json_kind(v) != 'n' && lk_tokenizer_json_kind(v) != 'f')
            return lk_tokenizer_json_unknown(place, flags[i].key, v, "false");
    }
    return LK_OK;
}

enum lk_code lk_model_section_read(struct bpe *bpe, struct json_place place, struct json_value model) {
    enum { TYPE, DROPOUT, UNK, PREFIX, SUFFIX, FUSE_UNK, BYTE_FALLBACK, IGNORE_MERGES, VOCAB, MERGES, N };
    struct json_field f[N] = {[TYPE] = {.key = "type"},
                              [DROPOUT] = {.key = "dropout"},
                              [UNK] = {.key = "unk_token"},
                              [PREFIX] = {.key = "continuing_subword_prefix"},
                              [SUFFIX] = {.key = "end_of_word_suffix"},
                              [FUSE_UNK] = {.key = "fuse_unk"},
                              [BYTE_FALLBACK] = {.key = "byte_fallback"},
                              [IGNORE_MERGES] = {.key = "ignore_merges"},
                              [VOCAB] = {.key = "vocab"},
                              [MERGES] = {.key = "merges"}};
    struct json_field type = {.key = "type"};
    enum lk_code rc;
    if ((rc = lk_tokenizer_json_find(place, model, &type)) || (rc = lk_tokenizer_json_field_kind(place, &type, '"')))
        return rc;
    if (!lk_tokenizer_json_string_is(type.value, "BPE"))
        return lk_tokenizer_json_unknown(place, "type", type.value, "BPE");
    if ((rc = lk_tokenizer_json_fields(place, model, f, N)) ||
        (rc = check_inert(place, &f[DROPOUT], &f[UNK], &f[PREFIX], &f[FUSE_UNK])) ||
        (rc = lk_tokenizer_json_field_kind(place, &f[VOCAB], '{')) ||
        (rc = lk_tokenizer_json_field_kind(place, &f[MERGES], '[')))
        return rc;
    struct json_value suffix = f[SUFFIX].value, ignore = f[IGNORE_MERGES].value;
    bpe->end_of_word = suffix.at && lk_tokenizer_json_kind(suffix) != 'n' && !lk_tokenizer_json_string_is(suffix, "");
    if (bpe->end_of_word && !lk_tokenizer_json_string_is(suffix, BPE_END_OF_WORD))
        return lk_tokenizer_json_unknown(place, "end_of_word_suffix", suffix, "null, \"\" or \"" BPE_END_OF_WORD "\"");
    if (ignore.at && lk_tokenizer_json_kind(ignore) != 'n' &&
        (rc = lk_tokenizer_json_field_bool(place, &f[IGNORE_MERGES], &bpe->ignore_merges)))
        return rc;
    if (bpe->end_of_word && bpe->ignore_merges)
        return lk_tokenizer_json_unknown(place, "ignore_merges", ignore, "false beside an end_of_word_suffix");
    if ((rc = read_vocab(bpe, place, f[VOCAB].value)) || (rc = find_bytes(bpe, place))) return rc;
    return read_merges(bpe, place, f[MERGES].value);
}
