/* The one generator of the study side: samples, orders and intervals are the same on every machine.
 *
 *     struct lk_stream stream;
 *     lk_stream_named(&stream, 42, "pairs500/cells");
 *     lk_stream_shuffle(&stream, cells, 84);
 *
 * xoshiro256** (Blackman and Vigna 2018) with its state from splitmix64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct lk_stream {
    uint64_t state[4];
};

void lk_stream_seed(struct lk_stream *stream, uint64_t seed);
/* seed XOR the 64-bit FNV-1a hash of label (UTF-8). */
void lk_stream_named(struct lk_stream *stream, uint64_t seed, const char *label);
/* lk_stream_named with the label PREFIX followed by b in decimal: "boot|17". */
void lk_stream_numbered(struct lk_stream *stream, uint64_t seed, const char *prefix, uint64_t b);
uint64_t lk_stream_u64(struct lk_stream *stream);
/* Uniform in [0, n), n >= 1: the high word of a 128-bit product, rejected without bias. */
uint64_t lk_stream_bounded(struct lk_stream *stream, uint64_t n);
/* Fisher-Yates from the end. */
void lk_stream_shuffle(struct lk_stream *stream, int32_t *values, size_t n);

uint64_t lk_fnv1a64(const char *text);
