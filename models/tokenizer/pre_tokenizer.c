#include "models/tokenizer/pre_tokenizer.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/unicode.h"

/* A window of the text, with the same window of the text's stand-in for regular expressions. */
struct piece {
    const char *text, *stand_in;
    size_t length;
};

enum lk_code lk_pre_tokenizer_compile_gpt2(struct pre_tokenizer *pre_tokenizer, const char *where) {
    static const char regex[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    return lk_pattern_compile(&pre_tokenizer->gpt2, regex, sizeof regex - 1, false, where);
}

void lk_pre_tokenizer_free(struct pre_tokenizer *pre_tokenizer) {
    for (int i = 0; i < PRE_TOKENIZER_MAX_SPLITS; i++) lk_pattern_free(&pre_tokenizer->splits[i].pattern);
    lk_pattern_free(&pre_tokenizer->gpt2);
}

/* Spans of one piece, matches and what lies between them, are joined by the split's rule and go to step + 1. */
struct splitter {
    struct encoding *encoding;
    const struct split *split;
    struct piece piece;
    int step;
    size_t group_start, group_end;
    bool any, previous_match;
};

static enum lk_code encode_step(struct encoding *encoding, struct piece piece, int step);

static enum lk_code flush_group(struct splitter *s) {
    bool dropped = s->split && s->split->behavior == SPLIT_REMOVED && s->previous_match;
    if (!s->any || dropped || s->group_start == s->group_end) return LK_OK;
    struct piece part = {s->piece.text + s->group_start, s->piece.stand_in + s->group_start,
                         s->group_end - s->group_start};
    return encode_step(s->encoding, part, s->step + 1);
}

static bool joins(const struct splitter *s, bool is_match) {
    if (!s->any || !s->split) return false;
    switch (s->split->behavior) {
    case SPLIT_CONTIGUOUS:
        return is_match == s->previous_match;
    case SPLIT_MERGED_WITH_PREVIOUS:
        return is_match && !s->previous_match;
    case SPLIT_MERGED_WITH_NEXT:
        return !is_match && s->previous_match;
    default:
        return false;
    }
}

static enum lk_code add_span(struct splitter *s, size_t start, size_t end, bool is_match) {
    enum lk_code rc = LK_OK;
    if (s->split && s->split->invert) is_match = !is_match;
    if (!joins(s, is_match)) {
        rc = flush_group(s);
        s->group_start = start;
    }
    s->group_end = end;
    s->any = true;
    s->previous_match = is_match;
    return rc;
}

/* split NULL: GPT-2's pattern, isolated. */
static enum lk_code split_piece(struct encoding *encoding, const struct split *split, struct piece piece, int step) {
    struct splitter s = {.encoding = encoding, .split = split, .piece = piece, .step = step};
    const struct pattern *pattern = split ? &split->pattern : &encoding->pre_tokenizer->gpt2;
    struct pattern_iterator it =
        lk_pattern_begin(pattern, &encoding->matcher, pattern->literal ? piece.text : piece.stand_in, piece.length);
    size_t behind = 0, start, end;
    bool found;
    enum lk_code rc;
    while (!(rc = lk_pattern_next(&it, &found, &start, &end)) && found) {
        if (start != behind && (rc = add_span(&s, behind, start, false))) return rc;
        if ((rc = add_span(&s, start, end, true))) return rc;
        behind = end;
    }
    if (rc) return rc;
    if (behind != piece.length && (rc = add_span(&s, behind, piece.length, false))) return rc;
    return flush_group(&s);
}

/* ByteLevel's own step: prefix space, then GPT-2's pattern if asked for. */
static enum lk_code byte_level(struct encoding *encoding, struct piece piece, int step) {
    const struct pre_tokenizer *pre = encoding->pre_tokenizer;
    bool prefix = pre->add_prefix_space && piece.text[0] != ' ';
    if (!pre->use_regex) {
        return lk_bpe_encode(encoding->bpe, &encoding->scratch, piece.text, piece.length, prefix, &encoding->out);
    }
    if (prefix) {
        size_t n = piece.length + 1;
        enum lk_code rc = lk_grow(&encoding->prefixed, &encoding->prefixed_capacity, 2 * n, 1);
        if (rc) return rc;
        char *text = encoding->prefixed, *stand_in = text + n;
        text[0] = stand_in[0] = ' ';
        memcpy(text + 1, piece.text, piece.length);
        memcpy(stand_in + 1, piece.stand_in, piece.length);
        piece = (struct piece){text, stand_in, n};
    }
    return split_piece(encoding, NULL, piece, step);
}

static enum lk_code encode_step(struct encoding *encoding, struct piece piece, int step) {
    const struct pre_tokenizer *pre = encoding->pre_tokenizer;
    if (step < pre->n_splits) return split_piece(encoding, &pre->splits[step], piece, step);
    if (step == pre->n_splits) return byte_level(encoding, piece, step);
    return lk_bpe_encode(encoding->bpe, &encoding->scratch, piece.text, piece.length, false, &encoding->out);
}

/* The text itself when no character needs a stand-in, else a copy with the stand-ins. */
static enum lk_code make_stand_in(struct encoding *encoding, const char *text, size_t length, const char **out) {
    *out = text;
    for (size_t at = 0; at < length;) {
        if (!(text[at] & 0x80)) {
            at++;
            continue;
        }
        uint32_t c, other;
        size_t n = lk_utf8_decode(text + at, length - at, &c);
        if ((other = lk_unicode_stand_in(c)) != c) {
            if (*out == text) {
                enum lk_code rc = lk_grow(&encoding->stand_in, &encoding->stand_in_capacity, length, 1);
                if (rc) return rc;
                memcpy(encoding->stand_in, text, length);
                *out = encoding->stand_in;
            }
            lk_utf8_encode(other, encoding->stand_in + at);
        }
        at += n;
    }
    return LK_OK;
}

enum lk_code lk_pre_tokenizer_encode(struct encoding *encoding, const char *text, size_t length) {
    struct piece piece = {.text = text, .length = length};
    if (!length) return LK_OK;
    enum lk_code rc = make_stand_in(encoding, text, length, &piece.stand_in);
    return rc ? rc : encode_step(encoding, piece, 0);
}
