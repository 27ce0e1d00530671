/* A campaign: targets are damaged, run and judged by workers, in processes of their own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Damage to files that knows their form: what is broken is mostly not noticed by the first check that looks. */

/* Of ATTACK_DATABASE (SQLite, changed by statements and as bytes) and ATTACK_CONFIG (JSON), damage may be refused or
 * say nothing, but must not lead to another result. */
enum attack_form {
    ATTACK_JSON,
    ATTACK_TABLE,
    ATTACK_SAFETENSORS,
    ATTACK_PNG,
    ATTACK_JPEG,
    ATTACK_BINARY,
    ATTACK_DATABASE,
    ATTACK_CONFIG,
};

struct attack_bytes {
    uint8_t *data; /* of malloc, with a byte of room behind n */
    size_t n;
};

uint64_t attack_random(uint64_t *state);
/* Replaces the bytes by a damaged copy. The same state gives the same damage. */
void attack_mutate_database(struct attack_bytes *bytes, uint64_t *state);
void attack_mutate(struct attack_bytes *bytes, enum attack_form form, uint64_t *state);

/* What is attacked: command lines that work, and the file of each that is damaged. */
struct attack_target {
    const char *file;
    enum attack_form form;
    /* Words between single spaces; "@FILE": the lines of a file, which is the one damaged. What is written lies in
     * result/. The word TAKEN becomes a port on which somebody listens. */
    const char *command;
    const char *names; /* what an error must speak of; NULL: the file's own name; "": it is enough that there is one */
    int every;         /* slow ones: attacked in one round of so many; 0: in each */
    int code;          /* the exit code without damage */
};

extern const struct attack_target attack_targets[];
extern const int attack_n_targets;

/* Whether an error says where in the file: a key, a line, a tensor, a chunk, a column, an option. */
enum { ATTACK_MAX_EXCEPTIONS = 32 };

/* errors: all that was printed, since a last line may count what those above it name. True as well for the few errors
 * that have no field to name, which are counted in excepted[ATTACK_MAX_EXCEPTIONS]. */
bool attack_names_field(const char *errors, const struct attack_target *t, const struct attack_bytes *undamaged,
                        const struct attack_bytes *damaged, unsigned long *excepted);
void attack_print_exceptions(const unsigned long *excepted);

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
