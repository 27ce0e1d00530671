/* UTF-8 and the few character properties that the tokenizer needs, with the values of the reference's libraries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/utf8.h"

/* A character of the same UTF-8 length and of the general category that c has for the reference's regular expressions
 * (Oniguruma), whatever Unicode version the installed PCRE2 knows; c itself for nearly all characters. */
uint32_t lk_unicode_stand_in(uint32_t c);
/* Whether [first, last] holds a character that lk_unicode_stand_in maps, or maps to. */
bool lk_unicode_stand_in_touches(uint32_t first, uint32_t last);

/* Characters that Unicode assigned after the version of the reference's normalizer: NFC leaves them where they are. */
bool lk_unicode_inert_in_nfc(uint32_t c);

/* The White_Space property. */
bool lk_unicode_white_space(uint32_t c);
