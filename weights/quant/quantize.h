/* bf16 weights into the quantised forms that this program makes itself: bitsandbytes' NF4 to the bit, the same format
 * with scales that are searched for, and q8. Deterministic: one block at a time, whatever thread has it. */
#pragma once

#include "engine/tensor.h"

enum lk_quantize { LK_QUANTIZE_NONE, LK_QUANTIZE_Q8, LK_QUANTIZE_NF4, LK_QUANTIZE_NF4_MSE, LK_QUANTIZE_COUNT };

const char *lk_quantize_name(enum lk_quantize how);   /* "none", "q8", "nf4", "nf4-mse" */
enum lk_quantize lk_quantize_named(const char *name); /* LK_QUANTIZE_COUNT: no such form */
enum lk_dtype lk_quantize_dtype(enum lk_quantize how);

#define LK_QUANTIZE_BLOCK 64 /* elements that share a scale; bitsandbytes has 32, 128 ... too, up to: */
#define LK_QUANTIZE_MOST  256

/* Codes and bf16 scales of n elements in blocks of `block` (even, at most LK_QUANTIZE_MOST), counted from the first.
 * codes: (n + 1) / 2 bytes, for q8 n; the last low nibble of an odd n is 0. Gives the index of the first element that
 * is NaN or Inf, -1 if there is none. */
int64_t lk_quantize(enum lk_quantize how, const uint16_t *bf16, int64_t n, int block, unsigned char *codes,
                    uint16_t *scales);
