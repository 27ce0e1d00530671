#include "eval/study/random.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t rotate_left(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void lk_stream_seed(struct lk_stream *stream, uint64_t seed) {
    for (int i = 0; i < 4; i++) stream->state[i] = splitmix64(&seed);
}

uint64_t lk_fnv1a64(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

void lk_stream_named(struct lk_stream *stream, uint64_t seed, const char *label) {
    lk_stream_seed(stream, seed ^ lk_fnv1a64(label));
}

void lk_stream_numbered(struct lk_stream *stream, uint64_t seed, const char *prefix, uint64_t b) {
    char label[128];
    snprintf(label, sizeof label, "%s%" PRIu64, prefix, b);
    lk_stream_named(stream, seed, label);
}

uint64_t lk_stream_u64(struct lk_stream *stream) {
    uint64_t *s = stream->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* The 128-bit product as its high word, the low one beside it. */
static uint64_t multiply_high(uint64_t a, uint64_t b, uint64_t *low) {
    __extension__ typedef unsigned __int128 uint128;
    uint128 product = (uint128)a * b;
    *low = (uint64_t)product;
    return (uint64_t)(product >> 64);
}

uint64_t lk_stream_bounded(struct lk_stream *stream, uint64_t n) {
    uint64_t low, high = multiply_high(lk_stream_u64(stream), n, &low);
    if (low < n) {
        uint64_t threshold = -n % n;
        while (low < threshold) high = multiply_high(lk_stream_u64(stream), n, &low);
    }
    return high;
}

void lk_stream_shuffle(struct lk_stream *stream, int32_t *values, size_t n) {
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)lk_stream_bounded(stream, i + 1);
        int32_t value = values[i];
        values[i] = values[j];
        values[j] = value;
    }
}
