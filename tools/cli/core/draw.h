/* Some of many, drawn at random but always the same ones: --sample SHARE|N. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* text: "1%" or "50" of n things. *chosen [*n_chosen]: their numbers, rising; lk_free. stream: whose draw it is.
 * LK_E_USAGE, LK_E_NOMEM. */
enum lk_code cli_draw(const char *text, size_t n, const char *stream, int32_t **chosen, size_t *n_chosen);
