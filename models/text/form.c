#include "models/text/form.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

/* --- tokens --- */

enum lk_code lk_token_bytes_make(struct lk_token_bytes *out, const struct lk_tokenizer *tokenizer) {
    struct lk_text text = {0};
    enum lk_code rc = LK_OK;
    *out = (struct lk_token_bytes){.n = lk_tokenizer_vocab_size(tokenizer)};
    out->bytes = lk_calloc((size_t)out->n, sizeof *out->bytes);
    out->lengths = lk_calloc((size_t)out->n, sizeof *out->lengths);
    if (!out->bytes || !out->lengths) rc = lk_fail(LK_E_NOMEM, "tokens: out of memory");
    for (int32_t id = 0; !rc && id < out->n; id++) {
        char *bytes;
        size_t n;
        rc = lk_tokenizer_decode(tokenizer, &id, 1, true, &bytes, &n);
        if (rc == LK_E_INPUT) rc = LK_OK; /* no token has this id */
        if (rc || !bytes) continue;
        lk_text_bytes(&text, bytes, n);
        out->lengths[id] = (uint32_t)n;
        lk_free(bytes);
        rc = text.rc;
    }
    out->text = text.bytes;
    const char *at = text.bytes;
    for (int32_t id = 0; !rc && id < out->n; at += out->lengths[id++]) out->bytes[id] = at;
    if (rc) lk_token_bytes_free(out);
    return rc;
}

void lk_token_bytes_free(struct lk_token_bytes *t) {
    lk_free(t->bytes);
    lk_free(t->lengths);
    lk_free(t->text);
    *t = (struct lk_token_bytes){0};
}

static bool has_digit(const struct lk_token_bytes *t, int32_t id) {
    for (uint32_t i = 0; i < t->lengths[id]; i++)
        if (t->bytes[id][i] >= '0' && t->bytes[id][i] <= '9') return true;
    return false;
}

enum lk_code lk_token_digits(const struct lk_token_bytes *t, int32_t ids[5]) {
    bool seen[10] = {false};
    int n = 0;
    for (int32_t id = 0; id < t->n; id++) {
        if (!has_digit(t, id)) continue;
        int digit = *t->bytes[id] - '0';
        if (t->lengths[id] != 1 || seen[digit])
            return lk_fail(LK_E_TOKENIZER,
                           "token %d (\"%.*s\") has a digit: scores are read from models whose tokens "
                           "of digits are the ten digits alone",
                           (int)id, (int)(t->lengths[id] < 40 ? t->lengths[id] : 40), t->bytes[id]);
        seen[digit] = true;
        n++;
        if (digit >= 1 && digit <= 5) ids[digit - 1] = id;
    }
    return n == 10 ? LK_OK : lk_fail(LK_E_TOKENIZER, "tokenizer: %d of the ten digits are tokens", n);
}

/* --- a string's bytes --- */

struct string_state {
    int escape, remaining;
    unsigned char low, high;
};

/* A byte of a string in JSON, whole UTF-8 characters, no control characters and no \u; false: it may not come. *closed:
 * it was the quote. */
static bool step(struct string_state *s, unsigned char byte, bool *closed) {
    *closed = false;
    if (s->remaining) {
        if (byte < s->low || byte > s->high) return false;
        s->remaining--;
        s->low = 0x80;
        s->high = 0xbf;
        return true;
    }
    if (s->escape) {
        s->escape = 0;
        return strchr("\"\\/bfnrt", byte) && byte;
    }
    if (byte < 0x20) return false;
    if (byte == '"') *closed = true;
    if (byte == '\\') s->escape = 1;
    if (byte < 0x80) return true;
    s->remaining = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    s->low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    s->high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return byte >= 0xc2 && byte <= 0xf4;
}

static struct string_state state_of(const struct lk_form_writer *w) {
    return (struct string_state){w->escape, w->remaining, w->low, w->high};
}

/* Whether a token may come in the string; *n_after: bytes of it behind the closing quote, -1: the string goes on. After
 * the quote only what follows in the form. */
static bool may_come(const struct lk_form_writer *w, int32_t id, struct string_state *s, int64_t *n_after) {
    const char *bytes = w->tokens->bytes[id], *next = w->form->pieces[w->at + 1].text + 1;
    uint32_t n = w->tokens->lengths[id];
    bool closed = false;
    *n_after = -1;
    for (uint32_t i = 0; i < n; i++) {
        if (!step(s, (unsigned char)bytes[i], &closed)) return false;
        if (!closed) continue;
        *n_after = (int64_t)(n - i - 1);
        return strlen(next) >= (size_t)*n_after && !memcmp(bytes + i + 1, next, (size_t)*n_after);
    }
    return n > 0;
}

/* Past the limit a string ends: what is begun is ended with single bytes, which the vocabulary always has. */
static bool may_come_now(const struct lk_form_writer *w, int32_t id) {
    struct string_state s = state_of(w);
    bool open = w->escape || w->remaining;
    int64_t n_after;
    if (!may_come(w, id, &s, &n_after)) return false;
    if (w->n_string_tokens < w->form->max_string_tokens) return true;
    return w->tokens->lengths[id] == 1 && (open || n_after == 0);
}

/* --- the guide --- */

static const struct lk_form_piece *hole(const struct lk_form_writer *w) { return &w->form->pieces[w->at]; }

static void allow(void *context, float *scores, int64_t n) {
    const struct lk_form_writer *w = context;
    bool choice = hole(w)->kind == LK_FORM_CHOICE;
    for (int64_t id = 0; id < n; id++) {
        bool may = false;
        if (choice)
            for (int i = 0; i < w->n_words; i++) may |= w->words[i] == id;
        else
            may = id < w->tokens->n && may_come_now(w, (int32_t)id);
        if (!may) scores[id] = -INFINITY;
    }
}

/* What the logits say of some tokens: softmax over them, and their share of all. */
static void look(struct lk_form_writer *w, const int32_t *ids, int n_ids, int chosen, const float *logits, int64_t n) {
    double most = -INFINITY, all = 0, some = 0;
    if (w->n_choices == LK_FORM_MAX_CHOICES) {
        memmove(w->choices, w->choices + 1, (LK_FORM_MAX_CHOICES - 1) * sizeof *w->choices);
        w->n_choices--;
    }
    struct lk_form_choice *c = &w->choices[w->n_choices++];
    *c = (struct lk_form_choice){.at = w->n_bytes, .n_words = n_ids, .chosen = chosen};
    for (int64_t i = 0; i < n; i++) most = logits[i] > most ? logits[i] : most;
    for (int64_t i = 0; i < n; i++) all += exp(logits[i] - most);
    for (int i = 0; i < n_ids; i++) some += c->probability[i] = exp(logits[ids[i]] - most);
    for (int i = 0; i < n_ids; i++) c->probability[i] = some > 0 ? c->probability[i] / some : 1.0 / n_ids;
    c->mass = some / all;
}

/* Text that must follow, as tokens. */
static enum lk_code force(struct lk_form_writer *w, const char *text, size_t length, const int32_t **forced,
                          int64_t *n_forced) {
    size_t n = 0;
    lk_free(w->forced);
    w->forced = NULL;
    if (length) LK_TRY(lk_tokenizer_encode(w->tokenizer, text, length, &w->forced, &n));
    w->n_bytes += length;
    *forced = w->forced;
    *n_forced = (int64_t)n;
    return LK_OK;
}

/* Word i of a choice. */
static const char *word_of(const struct lk_form_piece *piece, int i, size_t *n) {
    const char *at = piece->text;
    for (; i && at; i--) at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL;
    *n = at ? strcspn(at, "|") : 0;
    return at;
}

/* The first token of each word; they must differ. */
static enum lk_code open_choice(struct lk_form_writer *w) {
    const char *word;
    size_t n_bytes, n;
    int32_t *ids;
    for (w->n_words = 0; (word = word_of(hole(w), w->n_words, &n_bytes)); w->n_words++) {
        if (w->n_words == LK_FORM_MAX_WORDS) return lk_fail(LK_E_INTERNAL, "form: too many words: %s", hole(w)->text);
        LK_TRY(lk_tokenizer_encode(w->tokenizer, word, n_bytes, &ids, &n));
        w->words[w->n_words] = n ? ids[0] : -1;
        lk_free(ids);
        for (int i = 0; i < w->n_words; i++)
            if (w->words[i] == w->words[w->n_words])
                return lk_fail(LK_E_TOKENIZER, "tokenizer: two of the answers %s begin with the same token",
                               hole(w)->text);
    }
    return LK_OK;
}

static enum lk_code open_hole(struct lk_form_writer *w) {
    w->n_string_tokens = w->escape = w->remaining = 0;
    return w->at < w->form->n && hole(w)->kind == LK_FORM_CHOICE ? open_choice(w) : LK_OK;
}

/* The hole is filled: before the text that follows it comes `rest`, bytes of that text are already written. */
static enum lk_code next_hole(struct lk_form_writer *w, const char *rest, size_t n_rest, size_t written,
                              const int32_t **forced, int64_t *n_forced, bool *end) {
    struct lk_text text = {0};
    w->at++;
    lk_text_bytes(&text, rest, n_rest);
    if (w->at < w->form->n) lk_text_add(&text, "%s", hole(w)->text + written);
    enum lk_code rc = text.rc ? text.rc : force(w, text.bytes ? text.bytes : "", text.n, forced, n_forced);
    lk_text_free(&text);
    w->at++;
    *end = w->at >= w->form->n;
    return rc ? rc : open_hole(w);
}

static enum lk_code chosen(void *context, int32_t id, const float *logits, int64_t n, const int32_t **forced,
                           int64_t *n_forced, bool *end) {
    struct lk_form_writer *w = context;
    size_t n_bytes = id < w->tokens->n ? w->tokens->lengths[id] : 0, n_word;
    if (hole(w)->kind == LK_FORM_CHOICE) {
        int i = 0;
        while (i < w->n_words - 1 && w->words[i] != id) i++;
        look(w, w->words, w->n_words, i, logits, n);
        const char *word = word_of(hole(w), i, &n_word);
        w->n_bytes += n_bytes;
        return next_hole(w, word + n_bytes, n_word - n_bytes, 0, forced, n_forced, end);
    }
    struct string_state s = state_of(w);
    int64_t n_after;
    may_come(w, id, &s, &n_after);
    w->n_bytes += n_bytes;
    w->n_string_tokens++;
    w->escape = s.escape;
    w->remaining = s.remaining;
    w->low = s.low;
    w->high = s.high;
    return n_after < 0 ? LK_OK : next_hole(w, "", 0, (size_t)n_after + 1, forced, n_forced, end);
}

/* Free text: digits are looked at where they come. */
static enum lk_code watch(void *context, int32_t id, const float *logits, int64_t n, const int32_t **forced,
                          int64_t *n_forced, bool *end) {
    struct lk_form_writer *w = context;
    (void)forced;
    (void)n_forced;
    (void)end;
    for (int i = 0; i < 5; i++)
        if (w->digits[i] == id) look(w, w->digits, 5, i, logits, n);
    w->n_bytes += id < w->tokens->n ? w->tokens->lengths[id] : 0;
    return LK_OK;
}

/* A text whose beginning is written already may take more tokens than the whole: as many as it has bytes. */
static void measure(struct lk_form_writer *w) {
    for (int i = 1; i < w->form->n; i++) {
        const struct lk_form_piece *piece = &w->form->pieces[i];
        int64_t n = piece->text ? (int64_t)strlen(piece->text) + 8 : 0;
        if (n > w->max_forced) w->max_forced = n;
    }
}

enum lk_code lk_form_begin(struct lk_form_writer *w, int32_t **ids, size_t *n) {
    *ids = NULL;
    *n = 0;
    if (!w->form) return LK_OK;
    w->at = 1;
    w->n_bytes = strlen(w->form->pieces[0].text);
    measure(w);
    LK_TRY(open_hole(w));
    return lk_tokenizer_encode(w->tokenizer, w->form->pieces[0].text, w->n_bytes, ids, n);
}

struct lk_guide lk_form_guide(struct lk_form_writer *w) {
    if (!w->form) return (struct lk_guide){.context = w, .chosen = watch};
    return (struct lk_guide){.context = w, .allow = allow, .chosen = chosen, .max_forced = w->max_forced};
}

void lk_form_writer_free(struct lk_form_writer *w) {
    lk_free(w->forced);
    w->forced = NULL;
}
