/* A list of items that a model is asked about by several processes, each on a device of its own. Each appends its
 * answers to a file of its own, OUTPUT.part-K; when all have ended, all lines stand in the one file, each once, in the
 * order of the items: the bytes that one process would have written. */
#pragma once

#include "engine/base/names.h"
#include "tools/cli/core/options.h"

/* Questions: all that are to be asked, and those that have been. */
struct cli_progress {
    _Atomic int64_t total, asked;
};
/* The progress line, as that of `study run`. */
void cli_progress_show(struct cli_progress *progress);

/* A process's share: every n-th item that the file of `whole` has no answer to. */
struct cli_share {
    const char *whole; /* --output, as it was given */
    int part, n;
    struct cli_progress *progress; /* of all processes, in memory that they share */
};

struct cli_shared {
    const char *what, *does; /* "judge run", "judge": for messages */
    const char *ending;      /* of the file of lines, behind --output: "", ".partial" */
    const char *key;         /* the field of a line that names its item, "item_id" */
    struct lk_names items;   /* in their order */
    /* Runs in a process of its own, whose arguments name its device and, as the output, its part. */
    enum lk_code (*work)(const struct cli_arguments *arguments, const struct cli_share *share);
};
/* With a process for each of --devices. LK_E_PARTIAL: some could not do all, as they said. */
enum lk_code cli_shares(const struct cli_arguments *arguments, const struct cli_shared *shared);
