#include "models/text/text_stream.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/utf8.h"

/* Room for n more bytes and the NUL. */
static enum lk_code reserve(struct lk_text_stream *s, size_t n) {
    return lk_grow(&s->text, &s->capacity, s->n + n + 1, 1);
}

static void append(struct lk_text_stream *s, const char *bytes, size_t n) {
    memcpy(s->text + s->n, bytes, n);
    s->n += n;
    s->text[s->n] = 0;
}

/* Whether some bytes after these n would make a character: if any do, then all 0x80 or all 0xbf. */
static bool begins_character(const char *bytes, size_t n) {
    uint32_t c;
    for (int fill = 0x80; fill <= 0xbf; fill += 0x3f) {
        char whole[4];
        memset(whole, fill, sizeof whole);
        memcpy(whole, bytes, n);
        if (lk_utf8_decode(whole, sizeof whole, &c) > n) return true;
    }
    return false;
}

/* The held bytes go out as far as they are decided. */
static void settle(struct lk_text_stream *s) {
    uint32_t c;
    while (s->n_held) {
        size_t n = lk_utf8_decode(s->held, s->n_held, &c);
        if (n) {
            append(s, s->held, n);
        } else if (begins_character(s->held, s->n_held)) {
            return;
        } else { /* the last byte does not fit those before it, or stands alone */
            n = s->n_held > 1 ? s->n_held - 1 : 1;
            append(s, "\xef\xbf\xbd", 3);
        }
        s->n_held -= n;
        memmove(s->held, s->held + n, s->n_held);
    }
}

enum lk_code lk_text_stream_add(struct lk_text_stream *s, const char *bytes, size_t n) {
    LK_TRY(reserve(s, 3 * (n + sizeof s->held)));
    for (size_t i = 0; i < n; i++) {
        s->held[s->n_held++] = bytes[i];
        settle(s);
    }
    s->text[s->n] = 0;
    return LK_OK;
}

enum lk_code lk_text_stream_end(struct lk_text_stream *s) {
    LK_TRY(reserve(s, 4));
    if (s->n_held) append(s, "\xef\xbf\xbd", 3);
    s->n_held = 0;
    s->text[s->n] = 0;
    return LK_OK;
}

void lk_text_stream_free(struct lk_text_stream *s) {
    lk_free(s->text);
    *s = (struct lk_text_stream){0};
}
