/* A golden test of a whole model family: every case under golden/data/FAMILY/CONFIG/cases, in three modes, against the
 * checkpoint beside it. What the files hold: tests/golden/README.md.
 *
 *     int main(int argc, char **argv) { return golden_run("flux2", 8, argc, argv); }
 *
 * Arguments choose cases by a part of "CONFIG/CASE MODE", MODE one of f32, seed, bf16: `test_flux2 "rich/text f32"`. */
#pragma once

#include <stddef.h>

/* A main's result. Fewer cases than min_cases: the goldens are not there. */
int golden_run(const char *family, size_t min_cases, int argc, char **argv);
/* The same on CUDA device 0; skipped where there is none. */
int golden_run_cuda(const char *family, size_t min_cases, int argc, char **argv);
