/* Pieces of text output. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"

/* Text from a file, for a terminal: control characters become \xNN, so that it cannot move the cursor. */
void cli_print_text(FILE *out, const char *text);
/* On stdout, as JSON or Markdown. */
struct lk_table;
enum lk_code cli_print_table(const struct lk_table *table, bool json);
/* "32.22 G", "840 K". */
const char *cli_count(uint64_t count, char out[32]);
/* "1.4 GiB", "37 MiB", "512 B". */
const char *cli_bytes(uint64_t bytes, char out[32]);
