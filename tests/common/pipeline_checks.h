/* Checks that hold for the pipeline of every family. */
#pragma once

#include "models/pipeline.h"

/* Fills all of a request for a small edit. */
typedef void test_fill_request(struct lk_request *request, const struct lk_pipeline *p);

/* M1: allocations of an edit made to fail in turn (all of them with stride 1, otherwise the first 30, the last 60 and
 * every stride-th between) are LK_E_NOMEM or do not show in the picture; nothing stays live, and the next edit gives
 * the same picture. */
void test_allocations_of_edit(const char *checkpoint, test_fill_request *fill, int stride);

/* The same of opening the checkpoint: the first 100 and a spread over the rest, since parsers have tests of their own.
 */
void test_allocations_of_open(const char *checkpoint);

/* This program, started again with the argument "digest", prints these bytes. */
void test_same_in_another_process(const void *here, size_t n_bytes);
