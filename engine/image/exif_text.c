/* Texts inside JPEG and WebP, in an EXIF block: "parameters" is the user comment, in UTF-16, where A1111 and its
 * readers have it; every other text stands in the description of the picture as KEY:TEXT, in UTF-8. Source: EXIF 2.32.
 */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "engine/base/utf8.h"
#include "engine/image/internal.h"
#include "engine/image/tiff.h"

enum { T_DESCRIPTION = 0x10e, T_EXIF = 0x8769, T_COMMENT = 0x9286 };
enum { ASCII = 2, LONG = 4, UNDEFINED = 7 };
static const char unicode[8] = "UNICODE", parameters[] = "parameters";

static void add16(struct lk_text *t, uint32_t value) {
    lk_text_bytes(t, (const char[]){(char)(value >> 8), (char)value}, 2);
}

static void add32(struct lk_text *t, uint32_t value) {
    add16(t, value >> 16);
    add16(t, value & 0xffff);
}

static void add_entry(struct lk_text *t, uint32_t tag, uint32_t type, size_t count, size_t value) {
    add16(t, tag);
    add16(t, type);
    add32(t, (uint32_t)count);
    add32(t, (uint32_t)value);
}

/* UTF-8 as UTF-16, the high byte first. */
static enum lk_code add_comment(struct lk_text *t, const char *text, const char *name) {
    lk_text_bytes(t, unicode, sizeof unicode);
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        uint32_t code;
        if (!(n = lk_utf8_decode(text, left, &code)))
            return lk_fail(LK_E_METADATA, "%s: a text of the picture is not UTF-8", name);
        if (code < 0x10000) {
            add16(t, code);
        } else {
            add16(t, 0xd800 + ((code - 0x10000) >> 10));
            add16(t, 0xdc00 + ((code - 0x10000) & 0x3ff));
        }
    }
    return LK_OK;
}

/* Two directories: the description and where the second one is; the comment. */
enum { FIRST = 8, SECOND = FIRST + 2 + 2 * 12 + 4, DATA = SECOND + 2 + 12 + 4 };

enum lk_code lk_exif_of_texts(const char *name, const struct lk_png_text *texts, int n_texts, void **out,
                              size_t *n_bytes) {
    struct lk_text description = {0}, comment = {0}, t = {0};
    enum lk_code rc = LK_OK;
    *out = NULL;
    *n_bytes = 0;
    for (int i = 0; i < n_texts && !rc; i++) {
        if (!strcmp(texts[i].key, parameters))
            rc = add_comment(&comment, texts[i].text, name);
        else if (description.n)
            rc = lk_fail(LK_E_METADATA, "%s: JPEG and WebP hold one text beside \"%s\"", name, parameters);
        else
            lk_text_add(&description, "%s:%s", texts[i].key, texts[i].text);
    }
    lk_text_bytes(&description, "", 1); /* the NUL at its end, */
    while (!description.rc && (description.n % 2 || description.n < 6)) lk_text_bytes(&description, "", 1);
    lk_text_bytes(&t, "MM\0*\0\0\0\10\0\2", 10);
    add_entry(&t, T_DESCRIPTION, ASCII, description.n, DATA);
    add_entry(&t, T_EXIF, LONG, 1, SECOND);
    add32(&t, 0);
    add16(&t, 1);
    if (!comment.n && !rc) rc = add_comment(&comment, "", name);
    add_entry(&t, T_COMMENT, UNDEFINED, comment.n, DATA + description.n);
    add32(&t, 0);
    if (description.n) lk_text_bytes(&t, description.bytes, description.n);
    if (comment.n) lk_text_bytes(&t, comment.bytes, comment.n);
    const enum lk_code memory = description.rc ? description.rc : comment.rc ? comment.rc : t.rc;
    if (!rc && memory) rc = lk_fail(memory, "%s: no memory for its texts; free memory and try again", name);
    lk_text_free(&description);
    lk_text_free(&comment);
    if (rc) {
        lk_text_free(&t);
        return rc;
    }
    *out = t.bytes;
    *n_bytes = t.n;
    return LK_OK;
}

static uint32_t be(const unsigned char *b, int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; i++) value = value << 8 | b[i];
    return value;
}

/* The comment as UTF-8; what is no text ends it. */
static char *comment_of(const unsigned char *b, size_t n) {
    struct lk_text t = {0};
    for (size_t i = sizeof unicode; i + 2 <= n; i += 2) {
        uint32_t code = be(b + i, 2);
        char utf8[4];
        if (code >= 0xd800 && code < 0xdc00 && i + 4 <= n && be(b + i + 2, 2) >> 10 == 0x37) {
            code = 0x10000 + ((code & 0x3ff) << 10) + (be(b + i + 2, 2) & 0x3ff);
            i += 2;
        }
        if (!code || (code >= 0xd800 && code < 0xe000)) break;
        lk_text_bytes(&t, utf8, lk_utf8_encode(code, utf8));
    }
    lk_text_bytes(&t, "", 1);
    if (!t.rc) return t.bytes;
    lk_text_free(&t);
    return NULL;
}

/* Adds a text to the list that has room; both strings become its own. */
static enum lk_code add(struct lk_png_text *texts, int *n, char *key, char *text, const char *name) {
    if (!key || !text) {
        lk_free(key);
        lk_free(text);
        return lk_fail(LK_E_NOMEM, "%s: no memory for its texts; free memory and try again", name);
    }
    texts[(*n)++] = (struct lk_png_text){key, text};
    return LK_OK;
}

enum lk_code lk_exif_texts(const unsigned char *tiff, size_t n_bytes, const char *name, struct lk_png_text **out) {
    struct lk_png_text *texts = lk_calloc(3, sizeof *texts);
    enum lk_code rc =
        texts ? LK_OK : lk_fail(LK_E_NOMEM, "%s: no memory for its texts; free memory and try again", name);
    unsigned type;
    size_t count;
    int n = 0;
    *out = NULL;
    const bool is_ours = !rc && n_bytes >= DATA && !memcmp(tiff, "MM\0*\0\0\0\10", 8);
    const unsigned char *tag = is_ours ? lk_tiff_tag(tiff, n_bytes, T_DESCRIPTION, &type, &count) : NULL;
    const unsigned char *colon = tag && type == ASCII ? memchr(tag, ':', count < 80 ? count : 80) : NULL;
    const size_t length = tag ? strnlen((const char *)tag, count) : 0;
    if (colon && colon < tag + length && lk_utf8_valid((const char *)tag, length)) {
        const size_t rest = length - (size_t)(colon + 1 - tag);
        rc = add(texts, &n, lk_format("%.*s", (int)(colon - tag), (const char *)tag),
                 lk_format("%.*s", (int)rest, (const char *)colon + 1), name);
    }
    tag = !rc && is_ours ? lk_tiff_tag(tiff, n_bytes, T_EXIF, &type, &count) : NULL;
    const size_t second = tag && type == LONG ? be(tag, 4) : n_bytes;
    if (second < n_bytes && n_bytes - second >= 14 && be(tiff + second + 2, 2) == T_COMMENT) {
        const size_t size = be(tiff + second + 6, 4), at = be(tiff + second + 10, 4);
        if (size >= sizeof unicode && at <= n_bytes && size <= n_bytes - at &&
            !memcmp(tiff + at, unicode, sizeof unicode))
            rc = add(texts, &n, lk_strdup(parameters), comment_of(tiff + at, size), name);
    }
    if (rc)
        lk_png_text_free(texts);
    else
        *out = texts;
    return rc;
}
