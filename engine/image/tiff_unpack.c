/* What packs the strips and tiles of a TIFF: PackBits, LZW, Deflate. Source: TIFF 6.0, sections 9, 13 and 14. */
#include <string.h>
#include <zlib.h>

#include "engine/image/tiff.h"

static bool unpack_bits(const unsigned char *from, size_t n, uint8_t *to, size_t n_to) {
    size_t done = 0;
    for (size_t at = 0; at < n && done < n_to;) {
        const unsigned char head = from[at++];
        if (head == 128) continue;
        const size_t run = head < 128 ? head + 1u : 257u - head, take = head < 128 ? run : 1;
        if (take > n - at || run > n_to - done) return false;
        if (head < 128)
            memcpy(to + done, from + at, run);
        else
            memset(to + done, from[at], run);
        at += take;
        done += run;
    }
    return done == n_to;
}

enum { CLEAR = 256, END = 257, CODES_MAX = 4096 };

/* Codes grow from 9 to 12 bits, one code earlier than they must. */
static bool unpack_lzw(const unsigned char *from, size_t n, uint8_t *to, size_t n_to) {
    struct {
        size_t at, length; /* of the text in `to` */
    } table[CODES_MAX];
    unsigned n_codes = END + 1, width = 9, bits = 0, n_bits = 0;
    size_t done = 0, before_at = 0, before = 0; /* the text of the code before this one; none behind CLEAR */
    for (size_t at = 0; done < n_to;) {
        while (n_bits < width) {
            if (at == n) return false;
            bits = bits << 8 | from[at++];
            n_bits += 8;
        }
        n_bits -= width;
        const unsigned code = bits >> n_bits & ((1u << width) - 1);
        if (code == END) return false;
        if (code == CLEAR) {
            n_codes = END + 1, width = 9, before = 0;
            continue;
        }
        const size_t start = done;
        size_t length = 1, source = 0;
        if (code > END) {
            if (code > n_codes || (code == n_codes && !before)) return false;
            source = code < n_codes ? table[code].at : before_at;
            length = code < n_codes ? table[code].length : before + 1;
        }
        if (length > n_to - done) length = n_to - done;
        if (code <= 255) to[done] = (uint8_t)code;
        for (size_t i = 0; i < length && code > END; i++) to[done + i] = to[source + i]; /* they may overlap */
        done += length;
        if (before && n_codes < CODES_MAX) {
            table[n_codes].at = before_at;
            table[n_codes++].length = before + 1;
        }
        before_at = start;
        before = length;
        if (n_codes + 1 >= 1u << width && width < 12) width++;
    }
    return true;
}

/* Bytes beyond those that are needed are passed over, as libtiff does. */
static bool inflate_all(const unsigned char *from, size_t n, uint8_t *to, size_t n_to) {
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from, .avail_in = (uInt)n, .next_out = to};
    z.avail_out = (uInt)n_to;
    if (inflateInit(&z) != Z_OK) return false;
    const int rc = inflate(&z, Z_SYNC_FLUSH);
    const bool whole = (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) && !z.avail_out;
    inflateEnd(&z);
    return whole;
}

bool lk_tiff_unpack(unsigned compression, const unsigned char *from, size_t n, uint8_t *to, size_t n_to) {
    if (n > UINT32_MAX || n_to > UINT32_MAX) return false;
    switch (compression) {
    case LK_TIFF_PLAIN:
        if (n < n_to) return false;
        memcpy(to, from, n_to);
        return true;
    case LK_TIFF_PACKBITS:
        return unpack_bits(from, n, to, n_to);
    case LK_TIFF_LZW:
        return unpack_lzw(from, n, to, n_to);
    default:
        return inflate_all(from, n, to, n_to);
    }
}
