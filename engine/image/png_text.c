/* Text chunks of PNGs, read and made without libpng: reading must not decode pixels, and damage must be noticed. */
#include "engine/base/utf8.h"
#include "engine/image/internal.h"

#include <string.h>

#include <zlib.h>

#include "engine/base/alloc.h"

#define KEY_BYTES_MAX      79
#define INFLATED_BYTES_MAX ((size_t)16 << 20) /* of all compressed texts of a file */

static const unsigned char signature[LK_PNG_SIGNATURE_BYTES] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool lk_png_has_signature(const unsigned char *bytes, size_t n_bytes) {
    return n_bytes >= sizeof signature && !memcmp(bytes, signature, sizeof signature);
}

static uint32_t be32(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

bool lk_png_next_chunk(const unsigned char *bytes, size_t n_bytes, size_t *at, bool check_crc,
                       struct lk_png_chunk *chunk) {
    if (*at > n_bytes || n_bytes - *at < 12) return false;
    const unsigned char *b = bytes + *at;
    uint32_t length = be32(b);
    if (length > INT32_MAX || length > n_bytes - *at - 12) return false;
    memcpy(chunk->type, b + 4, 4);
    chunk->type[4] = 0;
    chunk->data = b + 8;
    chunk->n_bytes = length;
    if (check_crc) chunk->crc_ok = crc32_z(0, b + 4, (size_t)length + 4) == be32(b + 8 + length);
    *at += 12 + (size_t)length;
    return true;
}

/* Characters of a UTF-8 text and whether all fit Latin-1; false when it is not UTF-8. */
static bool scan_utf8(const unsigned char *s, size_t n, size_t *n_characters, bool *latin1) {
    *n_characters = 0;
    *latin1 = true;
    for (size_t i = 0; i < n; ++*n_characters) {
        uint32_t code;
        size_t length = lk_utf8_decode((const char *)s + i, n - i, &code);
        if (!length) return false;
        if (code > 0xff) *latin1 = false;
        i += length;
    }
    return true;
}

static bool key_ok(const char *key) {
    size_t n = strlen(key);
    if (n < 1 || n > KEY_BYTES_MAX || key[0] == ' ' || key[n - 1] == ' ') return false;
    for (size_t i = 0; i < n; i++)
        if (key[i] < 0x20 || key[i] > 0x7e || (key[i] == ' ' && key[i + 1] == ' ')) return false;
    return true;
}

enum lk_code lk_png_text_encode(const struct lk_png_text *text, const char *path, struct lk_png_text_chunk *out) {
    const unsigned char *s = (const unsigned char *)text->text;
    size_t n = strlen(text->text), key_bytes = strlen(text->key) + 1, n_characters;
    bool latin1;
    if (!key_ok(text->key))
        return lk_fail(LK_E_METADATA,
                       "%s: PNG text: expected a key of 1 to %d printable ASCII characters without outer or double "
                       "spaces, got \"%s\"",
                       path, KEY_BYTES_MAX, text->key);
    if (!scan_utf8(s, n, &n_characters, &latin1))
        return lk_fail(LK_E_METADATA, "%s: PNG text \"%s\": expected UTF-8, got other bytes", path, text->key);
    if (n > INT32_MAX - 1024)
        return lk_fail(LK_E_METADATA, "%s: PNG text \"%s\": %zu bytes are more than a chunk holds", path, text->key, n);
    /* iTXt: key NUL, flag and method 0 (not compressed), empty language NUL, empty translated key NUL, text */
    size_t header = key_bytes + (latin1 ? 0 : 4), total = header + (latin1 ? n_characters : n);
    unsigned char *data = lk_calloc(total, 1);
    if (!data) return lk_fail(LK_E_NOMEM, "%s: no memory for the text \"%s\"", path, text->key);
    memcpy(data, text->key, key_bytes);
    if (!latin1) memcpy(data + header, s, n);
    for (size_t i = 0, k = header; latin1 && i < n; k++) {
        uint32_t code;
        i += lk_utf8_decode((const char *)s + i, n - i, &code);
        data[k] = (unsigned char)code;
    }
    *out = (struct lk_png_text_chunk){.data = data, .n_bytes = total};
    memcpy(out->type, latin1 ? "tEXt" : "iTXt", 5);
    return LK_OK;
}

/* What reading collects. */
struct reader {
    const char *name;
    const char *chunk; /* its type, the one that is read */
    struct lk_png_text *texts;
    size_t n, room;
    size_t inflated;
    bool any_bytes; /* the text need not be one */
};

static enum lk_code damaged(const struct reader *r, const char *what) {
    return lk_fail(LK_E_METADATA, "%s: PNG: %s: %s; the file is damaged, get it again", r->name, r->chunk, what);
}

static enum lk_code no_memory(const struct reader *r) {
    return lk_fail(LK_E_NOMEM, "%s: no memory for its texts; free memory and try again", r->name);
}

static char *latin1_to_utf8(const unsigned char *s, size_t n) {
    char *out = lk_malloc(2 * n + 1), *p = out;
    if (!out) return NULL;
    for (size_t i = 0; i < n; i++) {
        if (s[i] >= 0x80) {
            *p++ = (char)(0xc0 | s[i] >> 6);
            *p++ = (char)(0x80 | (s[i] & 0x3f));
        } else
            *p++ = (char)s[i];
    }
    *p = 0;
    return out;
}

/* Takes ownership of nothing; copies key and text. */
static enum lk_code add_text(struct reader *r, const unsigned char *key, size_t key_bytes, const unsigned char *text,
                             size_t n, bool utf8) {
    size_t n_characters;
    bool latin1;
    if (key_bytes < 1 || key_bytes > KEY_BYTES_MAX) return damaged(r, "the key is empty or too long");
    if (!r->any_bytes && memchr(text, 0, n)) return damaged(r, "the text holds a NUL");
    if (utf8 && !r->any_bytes && !scan_utf8(text, n, &n_characters, &latin1))
        return damaged(r, "the text is not UTF-8");
    LK_TRY(lk_grow(&r->texts, &r->room, r->n + 2, sizeof *r->texts));
    char *k = latin1_to_utf8(key, key_bytes), *t = NULL;
    if (k) t = utf8 ? lk_strndup((const char *)text, n) : latin1_to_utf8(text, n);
    if (!t) {
        lk_free(k);
        return no_memory(r);
    }
    r->texts[r->n++] = (struct lk_png_text){k, t};
    r->texts[r->n] = (struct lk_png_text){0};
    return LK_OK;
}

static voidpf z_allocate(voidpf context, uInt items, uInt size) {
    (void)context;
    return lk_calloc(items, size);
}

static void z_release(voidpf context, voidpf block) {
    (void)context;
    lk_free(block);
}

/* Adds what a zlib stream holds. */
static enum lk_code add_compressed(struct reader *r, const unsigned char *key, size_t key_bytes,
                                   const unsigned char *packed, size_t n_packed, bool utf8) {
    z_stream z = {.zalloc = z_allocate, .zfree = z_release};
    if (inflateInit(&z) != Z_OK) return no_memory(r);
    z.next_in = (Bytef *)packed;
    z.avail_in = (uInt)n_packed;
    unsigned char *text = NULL;
    size_t n = 0, room = 0;
    int status = Z_OK;
    enum lk_code rc = LK_OK;
    while (!rc && status == Z_OK) {
        if ((rc = lk_grow(&text, &room, n + 1, 1))) break;
        z.next_out = text + n;
        z.avail_out = (uInt)(room - n);
        status = inflate(&z, Z_NO_FLUSH);
        size_t made = room - n - z.avail_out;
        n += made;
        r->inflated += made;
        if (r->inflated > INFLATED_BYTES_MAX)
            rc = damaged(r, "its compressed texts are more than 16 MiB");
        else if (status == Z_MEM_ERROR)
            rc = no_memory(r);
        else if (status != Z_OK && status != Z_STREAM_END)
            rc = damaged(r, "a compressed text does not inflate");
    }
    inflateEnd(&z);
    if (!rc) rc = add_text(r, key, key_bytes, text, n, utf8);
    lk_free(text);
    return rc;
}

static enum lk_code read_itxt(struct reader *r, const unsigned char *key, size_t key_bytes, const unsigned char *rest,
                              size_t n) {
    if (n < 2) return damaged(r, "the chunk is too short");
    bool compressed = rest[0];
    if (rest[0] > 1 || (compressed && rest[1])) return damaged(r, "the compression is unknown");
    const unsigned char *end = rest + n, *p = rest + 2;
    for (int i = 0; i < 2; i++) { /* language, translated key */
        p = memchr(p, 0, (size_t)(end - p));
        if (!p) return damaged(r, "the chunk is too short");
        p++;
    }
    if (compressed) return add_compressed(r, key, key_bytes, p, (size_t)(end - p), true);
    return add_text(r, key, key_bytes, p, (size_t)(end - p), true);
}

static enum lk_code read_chunk(struct reader *r, const struct lk_png_chunk *chunk) {
    bool text = !strcmp(chunk->type, "tEXt"), ztext = !strcmp(chunk->type, "zTXt");
    if (!text && !ztext && strcmp(chunk->type, "iTXt") != 0) return LK_OK;
    const unsigned char *nul = memchr(chunk->data, 0, chunk->n_bytes);
    if (!nul) return damaged(r, "the text has no key");
    size_t key_bytes = (size_t)(nul - chunk->data), n = chunk->n_bytes - key_bytes - 1;
    if (text) return add_text(r, chunk->data, key_bytes, nul + 1, n, false);
    if (!ztext) return read_itxt(r, chunk->data, key_bytes, nul + 1, n);
    if (n < 1 || nul[1]) return damaged(r, "the compression is unknown");
    return add_compressed(r, chunk->data, key_bytes, nul + 2, n - 1, false);
}

enum lk_code lk_png_text_of(const struct lk_png_chunk *chunk, const char *key, char **text) {
    struct reader r = {.name = key, .chunk = chunk->type, .room = 1, .any_bytes = true};
    *text = NULL;
    if (chunk->n_bytes <= strlen(key) || memcmp(chunk->data, key, strlen(key) + 1) != 0) return LK_OK;
    if (!(r.texts = lk_calloc(1, sizeof *r.texts))) return no_memory(&r);
    enum lk_code rc = read_chunk(&r, chunk);
    if (!rc && r.n) {
        *text = (char *)(uintptr_t)r.texts[0].text;
        r.texts[0].text = NULL;
    }
    lk_png_text_free(r.texts);
    return rc == LK_E_NOMEM ? rc : LK_OK;
}

enum lk_code lk_png_text_parse(const void *bytes, size_t n_bytes, const char *name, struct lk_png_text **out) {
    *out = NULL;
    struct reader r = {.name = name, .room = 1};
    if (!lk_png_has_signature(bytes, n_bytes))
        return lk_fail(LK_E_METADATA, "%s: expected a PNG, got another kind of file", name);
    if (!(r.texts = lk_calloc(1, sizeof *r.texts))) return no_memory(&r);
    struct lk_png_chunk chunk = {0};
    size_t at = LK_PNG_SIGNATURE_BYTES;
    enum lk_code rc = LK_OK;
    bool ended = false;
    while (!rc && !ended && lk_png_next_chunk(bytes, n_bytes, &at, true, &chunk)) {
        ended = !strcmp(chunk.type, "IEND");
        r.chunk = chunk.type;
        rc = chunk.crc_ok ? read_chunk(&r, &chunk) : damaged(&r, "the CRC is wrong");
    }
    r.chunk = "IEND";
    if (!rc && !ended) rc = damaged(&r, "expected at the end, got none");
    if (rc)
        lk_png_text_free(r.texts);
    else
        *out = r.texts;
    return rc;
}

enum lk_code lk_png_text_read(const char *path, struct lk_png_text **out) {
    *out = NULL;
    unsigned char *bytes;
    size_t n_bytes;
    enum lk_code rc = lk_image_read_bytes(path, &bytes, &n_bytes);
    if (rc) return rc;
    rc = lk_png_text_parse(bytes, n_bytes, path, out);
    lk_free(bytes);
    return rc;
}

void lk_png_text_free(struct lk_png_text *texts) {
    for (size_t i = 0; texts && texts[i].key; i++) {
        lk_free((char *)texts[i].key);
        lk_free((char *)texts[i].text);
    }
    lk_free(texts);
}
