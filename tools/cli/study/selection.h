/* The selection's pages: one per cell, with seven candidates side by side. */
#pragma once

#include <pthread.h>

#include "eval/design/selection.h"
#include "tools/cli/study/local.h"

struct selection_server {
    struct local_site site; /* of selection_site */
    struct lk_selection *selection;
    pthread_mutex_t lock; /* of the selection */
    const char *actor;
    char *pictures[LK_N_SOURCES][LK_N_POOLS]; /* absolute paths */
};

extern const struct local_site selection_site;
