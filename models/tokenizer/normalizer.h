/* Unicode normalisation form C, as the reference's normalizer has it: with the characters and rules of Unicode 9; then
 * what CLIP's has behind it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* The steps that there are, in this order. */
struct normalizer {
    bool nfc;
    bool one_space; /* a run of white space becomes one space */
    bool lowercase; /* code point by code point */
};

struct nfc_scratch {
    int32_t *codes;
    int32_t *sorted;
    char *text;
    char *lower;
    size_t codes_capacity, sorted_capacity, text_capacity, lower_capacity;
};

void lk_nfc_scratch_free(struct nfc_scratch *scratch);

/* *out points to the text itself or into scratch, where it stays until the next call. text is UTF-8. LK_E_NOMEM. */
enum lk_code lk_nfc(struct nfc_scratch *scratch, const char *text, size_t length, const char **out, size_t *out_length);

/* All steps of n; the rest as nfc. */
enum lk_code lk_normalize(const struct normalizer *n, struct nfc_scratch *scratch, const char *text, size_t length,
                          const char **out, size_t *out_length);
