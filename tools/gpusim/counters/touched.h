/* Which 32-byte sectors of each allocation a launch has read and written, one bit each, so that bytes count once. */
#pragma once

#include "counters/traffic.h"
#include "exec/memory.h"

/* record NULL: it is looked up. Called from several host threads at once. */
void gpusim_touch(struct gpusim_allocation *record, const struct gpusim_sectors *sectors, bool write);

/* Adds up what has been touched, in bytes, times `scale` but not more than there is of an array (gpusim_region) or, of
 * what is in none, of an allocation; forgets it. */
void gpusim_take_touched(double scale, double *read, double *written);

void gpusim_regions_forget(void);
