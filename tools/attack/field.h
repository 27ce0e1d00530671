/* Whether an error says where in the file: a key, a line, a tensor, a chunk, a column, an option. */
#pragma once

#include <stdbool.h>

#include "tools/attack/targets.h"

enum { ATTACK_MAX_EXCEPTIONS = 32 };

/* errors: all that was printed, since a last line may count what those above it name. True as well for the few errors
 * that have no field to name, which are counted in excepted[ATTACK_MAX_EXCEPTIONS]. */
bool attack_names_field(const char *errors, const struct attack_target *t, const struct attack_bytes *undamaged,
                        const struct attack_bytes *damaged, unsigned long *excepted);
void attack_print_exceptions(const unsigned long *excepted);
