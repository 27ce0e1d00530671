/* Attacks every command with damaged files: each run damages one file of a command line that works
 * (tools/attack/targets.c), runs the command, and looks at how it ended.
 *
 *     attack [--runs N] [--seed N] [--only PART OF A COMMAND] [--corpus DIR] [--workers N] FOLDER
 *
 * FOLDER has the files of a set-up (tests/cli/test_attack.sh makes it). The program itself is in this one: a run is a
 * fork, since under sanitizers a start takes several times what a command does. What a run must keep: a documented exit
 * code, at most 2 GB and 10 s of the processor, and an error that names the damaged file and the field in it
 * (attack_names_field). Files that did not keep it stay in FOLDER as survivor-SEED-RUN, and the exit status is 1. A
 * damaged file that makes a command end as none before did is damaged further in later runs; with --corpus such files
 * are kept from one campaign to the next. Workers share the targets; what is found does not depend on their number. At
 * the end every command must work on the undamaged files as at the beginning. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/base/digest.h"
#include "tools/attack/campaign.h"

#define main likeness
#include "tools/cli/main.c"
#undef main

/* Of AddressSanitizer: freed memory is kept from use up to so much. A worker with more takes longer to fork. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "quarantine_size_mb=16"; }

int main(int argc, char **argv) {
    struct attack_campaign c = {attack_targets, attack_n_targets, likeness, 2000, 1, "", NULL, 1};
    const char *folder = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            c.runs = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            c.seed = strtoul(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            c.only = argv[++i];
        else if (!strcmp(argv[i], "--corpus") && i + 1 < argc)
            c.corpus = realpath(argv[++i], NULL);
        else if (!strcmp(argv[i], "--workers") && i + 1 < argc)
            c.workers = atoi(argv[++i]);
        else
            folder = argv[i];
    }
    /* What each command would allocate for the process's whole life: what is left of a command then is a leak. */
    static char buffer[BUFSIZ], digest[65];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
#pragma omp parallel num_threads(1)
    lk_sha256("", 0, digest);
    if (c.workers > ATTACK_MAX_WORKERS) c.workers = ATTACK_MAX_WORKERS;
    struct attack_counts found;
    if (!folder) {
        fprintf(stderr, "usage: attack [--runs N] [--seed N] [--only PART OF A COMMAND] [--corpus DIR] [--workers N] "
                        "FOLDER\n");
        return 2;
    }
    if (!attack_campaign(&c, folder, &found)) {
        fprintf(stderr, "attack: the campaign could not be done\n");
        return 2;
    }
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    printf(
        "%lu runs of %d targets, %lu endings (sum %016llx), %lu to look at; %ld s of the processor, %ld MB at most\n",
        found.done, attack_n_targets, found.endings, (unsigned long long)found.sum, found.bad,
        (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec), usage.ru_maxrss >> 10);
    attack_print_exceptions(found.excepted);
    return found.bad != 0;
}
