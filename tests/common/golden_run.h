/* A golden test of a whole model family: every case under golden/data/FAMILY/CONFIG/cases, in three modes, against the
 * checkpoint beside it. What the files hold: tests/golden/README.md.
 *
 *     int main(int argc, char **argv) { return golden_run("flux2", 8, argc, argv); }
 *
 * Arguments choose cases by a part of "CONFIG/CASE MODE", MODE one of f32, seed, bf16: `test_flux2 "rich/text f32"`. */
#pragma once

#include <stddef.h>

#include "models/pipeline.h"
#include "tests/common/golden.h"

/* The edit that a golden's metadata ask for, of a checkpoint and adapters in `folder` (golden/data/FAMILY/CONFIG). */
struct golden_edit {
    struct lk_pipeline *pipeline;
    struct lk_request request;
    struct lk_image images[LK_MAX_REFERENCES];
};
void golden_edit_open(struct golden_edit *edit, const struct golden *golden, const char *folder, enum lk_dtype dtype);
void golden_edit_close(struct golden_edit *edit);

/* A main's result. Fewer cases than min_cases: the goldens are not there. */
int golden_run(const char *family, size_t min_cases, int argc, char **argv);
/* The same on CUDA device 0; skipped where there is none. */
int golden_run_cuda(const char *family, size_t min_cases, int argc, char **argv);
