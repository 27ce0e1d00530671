/* Unicode normalisation form C, as the reference's normalizer has it: with the characters and rules of Unicode 9. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct nfc_scratch {
    int32_t *codes;
    int32_t *sorted;
    char *text;
    size_t codes_capacity, sorted_capacity, text_capacity;
};

void nfc_scratch_free(struct nfc_scratch *scratch);

/* *out points to the text itself or into scratch, where it stays until the next call. text is UTF-8. LK_E_NOMEM. */
enum lk_code nfc(struct nfc_scratch *scratch, const char *text, size_t length, const char **out, size_t *out_length);
