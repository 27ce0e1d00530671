/* Kernels with planted defects and their clean twins. */
#pragma once

#include "gpusim.h"
#include "tests/gpusim/common/device.h"

struct defect {
    const char *name; /* NAME_bad and NAME_ok; the lines that a report may name are marked "@NAME" */
    enum gpusim_report_kind kind;
    int block, thread; /* that the report names (x); -1: any */
    unsigned blocks, threads, shared;
    CUresult error;
    bool frees_c; /* c is freed before the launch (bad only) */
};

/* Has line `line` of SOURCE (in tests/gpusim) the mark "@NAME"? */
bool defect_marked(const char *source, uint32_t line, const char *name);

/* Runs both twins in contexts of their own. */
void defect_check(const struct defect *defect, const char *source, CUmodule (*load)(void));

/* The report that came last, which must be of this kind. */
struct gpusim_report defect_report(enum gpusim_report_kind kind);

/* Runs this program once for each of three seeds, unless GPUSIM_SEED is set; true: that was done, *status is the
 * result. */
bool defect_seeds(char **argv, int *status);
