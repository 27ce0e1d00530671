#include "models/tokenizer/normalizer.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/alloc.h"
#include "models/tokenizer/unicode.h"

void lk_nfc_scratch_free(struct nfc_scratch *scratch) {
    lk_free(scratch->codes);
    lk_free(scratch->sorted);
    lk_free(scratch->text);
    lk_free(scratch->lower);
    *scratch = (struct nfc_scratch){0};
}

static int combining_class(int32_t code) { return utf8proc_get_property(code)->combining_class; }

/* Sorts a run of combining marks by class, equal classes in their order. Counting, because utf8proc's own ordering
 * takes quadratic time on a long run. */
static enum lk_code order_marks(struct nfc_scratch *scratch, int32_t *marks, size_t n) {
    bool ordered = true;
    for (size_t i = 1; i < n && ordered; i++) ordered = combining_class(marks[i - 1]) <= combining_class(marks[i]);
    if (ordered) return LK_OK;
    enum lk_code rc = lk_grow(&scratch->sorted, &scratch->sorted_capacity, n, sizeof *marks);
    if (rc) return rc;
    size_t place[257] = {0};
    for (size_t i = 0; i < n; i++) place[combining_class(marks[i]) + 1]++;
    for (int k = 1; k < 257; k++) place[k] += place[k - 1];
    for (size_t i = 0; i < n; i++) scratch->sorted[place[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, scratch->sorted, n * sizeof *marks);
    return LK_OK;
}

/* Composes codes[0 .. n), which are decomposed, and appends them to scratch->text. */
static enum lk_code compose(struct nfc_scratch *scratch, int32_t *codes, size_t n, size_t *n_text) {
    size_t start = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && combining_class(codes[i])) continue;
        enum lk_code rc = order_marks(scratch, codes + start, i - start);
        if (rc) return rc;
        start = i + 1;
    }
    utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (composed < 0) return lk_fail(LK_E_INTERNAL, "tokenizer: utf8proc: %s", utf8proc_errmsg(composed));
    enum lk_code rc = lk_grow(&scratch->text, &scratch->text_capacity, *n_text + 4 * (size_t)composed, 1);
    if (rc) return rc;
    for (utf8proc_ssize_t i = 0; i < composed; i++)
        *n_text += lk_utf8_encode((uint32_t)codes[i], scratch->text + *n_text);
    return LK_OK;
}

/* From the first character outside ASCII on: decompose until a character that never combines in the reference, compose
 * what came before it, copy it, and so on. */
enum lk_code lk_nfc(struct nfc_scratch *scratch, const char *text, size_t length, const char **out,
                    size_t *out_length) {
    size_t at = 0, n_codes = 0, n_text = 0;
    while (at < length && !(text[at] & 0x80)) at++;
    *out = text;
    *out_length = length;
    if (at == length) return LK_OK;
    if (at) at--; /* the last ASCII letter may take a mark */
    enum lk_code rc = lk_grow(&scratch->text, &scratch->text_capacity, length, 1);
    if (rc) return rc;
    memcpy(scratch->text, text, at);
    n_text = at;
    while (at < length) {
        uint32_t c;
        at += lk_utf8_decode(text + at, length - at, &c);
        /* No canonical decomposition has more than 4 code points. */
        if ((rc = lk_grow(&scratch->codes, &scratch->codes_capacity, n_codes + 8, sizeof(int32_t)))) return rc;
        if (!lk_unicode_inert_in_nfc(c)) {
            int boundary;
            utf8proc_ssize_t n =
                utf8proc_decompose_char((int32_t)c, scratch->codes + n_codes, 8,
                                        (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary);
            if (n < 0 || n > 8) return lk_fail(LK_E_INTERNAL, "tokenizer: utf8proc cannot decompose U+%04X", c);
            n_codes += (size_t)n;
            continue;
        }
        if ((rc = compose(scratch, scratch->codes, n_codes, &n_text)) ||
            (rc = lk_grow(&scratch->text, &scratch->text_capacity, n_text + 4, 1)))
            return rc;
        n_codes = 0;
        n_text += lk_utf8_encode(c, scratch->text + n_text);
    }
    if ((rc = compose(scratch, scratch->codes, n_codes, &n_text))) return rc;
    *out = scratch->text;
    *out_length = n_text;
    return LK_OK;
}

/* The reference's lower case of a character; one becomes two: U+0130, i with a dot above it. */
static size_t put_lower(uint32_t c, char *out) {
    if (c == 0x130) return (size_t)sprintf(out, "i\xcc\x87");
    return lk_utf8_encode((uint32_t)utf8proc_tolower((utf8proc_int32_t)c), out);
}

enum lk_code lk_normalize(const struct normalizer *n, struct nfc_scratch *scratch, const char *text, size_t length,
                          const char **out, size_t *out_length) {
    *out = text;
    *out_length = length;
    if (n->nfc) LK_TRY(lk_nfc(scratch, text, length, &text, &length));
    if (n->nfc) *out = text, *out_length = length;
    if (!n->one_space && !n->lowercase) return LK_OK;
    /* The lower case of two bytes has three at most. */
    LK_TRY(lk_grow(&scratch->lower, &scratch->lower_capacity, 3 * length + 4, 1));
    size_t used = 0;
    bool space = false;
    for (size_t at = 0; at < length;) {
        uint32_t c;
        const size_t step = lk_utf8_decode(text + at, length - at, &c);
        const bool white = n->one_space && lk_unicode_white_space(c);
        if (white && !space) scratch->lower[used++] = ' ';
        if (!white && n->lowercase) used += put_lower(c, scratch->lower + used);
        if (!white && !n->lowercase) used += lk_utf8_encode(c, scratch->lower + used);
        space = white;
        at += step;
    }
    *out = scratch->lower;
    *out_length = used;
    return LK_OK;
}
