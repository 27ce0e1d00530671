#include "models/text/text_stream.h"

#include <string.h>

#include "engine/base/utf8.h"

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
            lk_text_bytes(&s->text, s->held, n);
        } else if (begins_character(s->held, s->n_held)) {
            return;
        } else { /* the last byte does not fit those before it, or stands alone */
            n = s->n_held > 1 ? s->n_held - 1 : 1;
            lk_text_bytes(&s->text, "\xef\xbf\xbd", 3);
        }
        s->n_held -= n;
        memmove(s->held, s->held + n, s->n_held);
    }
}

enum lk_code lk_text_stream_add(struct lk_text_stream *s, const char *bytes, size_t n) {
    lk_text_bytes(&s->text, "", 0);
    for (size_t i = 0; i < n; i++) {
        s->held[s->n_held++] = bytes[i];
        settle(s);
    }
    return s->text.rc;
}

enum lk_code lk_text_stream_end(struct lk_text_stream *s) {
    lk_text_bytes(&s->text, "\xef\xbf\xbd", s->n_held ? 3 : 0);
    s->n_held = 0;
    return s->text.rc;
}
