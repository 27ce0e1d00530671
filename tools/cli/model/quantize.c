#include "models/quantize.h"

#include <stdio.h>

#include "tools/cli/cli.h"
#include "tools/cli/core/print.h"

enum lk_code cli_quantize(const struct cli_arguments *a) {
    LK_TRY(lk_model_quantize(a->positional, a->output, lk_quantize_named(a->format)));
    cli_print_text(stdout, a->output);
    putchar('\n');
    return LK_OK;
}
