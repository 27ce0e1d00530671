/* The chosen sources and the candidate pool that each is from: source_manifest.json, written when the selection of
 * sources is finished. JSON lines, a JSON array or CSV; of each source its id, and its pool as V1 to V7 or 1 to 7.
 * ordinal, race, gender, age and the six criteria (an object of true or false) are checked where they are given; other
 * fields are left alone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "eval/study/factors.h"

enum { LK_N_POOLS = 7 };

struct lk_source_manifest {
    int8_t pool[LK_N_SOURCES]; /* 1..7, 0: no source for this cell */
    int n;                     /* sources */
    int count[LK_N_POOLS];
};

/* Strict: the first record that is not understood, contradicts itself or comes twice is LK_E_INPUT (LK_E_JSON for what
 * is none) with line, source and field; a file without a source is too. */
enum lk_code lk_source_manifest_read(struct lk_source_manifest *out, const char *text, size_t n, const char *name);
