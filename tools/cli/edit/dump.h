/* --dump-steps: every named intermediate tensor of a run as NAME.safetensors, holding one tensor NAME. */
#pragma once

#include "engine/device.h"

struct cli_dump {
    const char *folder;
    int n_written;
};

/* The folder is made if it is not there; LK_E_USAGE when it holds anything. */
enum lk_code cli_dump_open(struct cli_dump *dump, const char *folder);
/* Sets dev's trace function; `dump` must outlive the run. */
void cli_dump_attach(struct cli_dump *dump, struct lk_device *dev);
