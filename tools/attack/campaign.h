/* A campaign: targets are damaged, run and judged by workers, in processes of their own. */
#pragma once

#include <stdbool.h>

#include "tools/attack/field.h"

enum { ATTACK_MAX_WORKERS = 64 };

struct attack_campaign {
    const struct attack_target *targets;
    int n_targets;
    int (*command)(int argc, char **argv); /* the program: run in a fork, which ends with its code */
    unsigned long runs;
    uint64_t seed;
    const char *only;   /* part of a command; "": each */
    const char *corpus; /* a folder, by its whole name; NULL: none */
    int workers;        /* 1 to ATTACK_MAX_WORKERS */
};

struct attack_counts {
    unsigned long done, endings, bad; /* bad: to look at */
    uint64_t sum;                     /* of how each run ended */
    unsigned long excepted[ATTACK_MAX_EXCEPTIONS];
};

/* False: it could not be done, since a worker failed or a command that must work did not. What is found is the same for
 * any number of workers: each has targets of its own, and a copy of the folder beside it, which goes at the end.
 * Survivors lie in the folder as survivor-SEED-RUN. */
bool attack_campaign(const struct attack_campaign *c, const char *folder, struct attack_counts *all);
