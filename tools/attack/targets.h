/* What is attacked: command lines that work, and the file of each that is damaged. */
#pragma once

#include "tools/attack/mutate.h"

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
