/* What names a model's pictures in a log, and which of these models run here. */
#include <stdio.h>
#include <string.h>

#include "eval/design/study.h"
#include "eval/study/factors.h"
#include "tools/cli/t2i/t2i.h"

void cli_t2i_tag(const char *model, char tag[64]) {
    const unsigned family = lk_family_bit_of(model);
    int preset = 0;
    while (preset < LK_N_MODELS && lk_family_bit_of(lk_preset_family(preset)) != family) preset++;
    snprintf(tag, 64, "%s", preset < LK_N_MODELS ? lk_factor_key(LK_FACTOR_MODEL, preset) : model);
    for (char *c = tag; *c; c++)
        if (*c == '.') *c = '_'; /* a word of a file's name */
}

bool cli_t2i_runs_here(const char *tag) {
    struct lk_model_info info;
    char own[64];
    if (lk_factor_parse(LK_FACTOR_MODEL, tag, strlen(tag)) >= 0) return true; /* by any name of the documents */
    for (int i = 0; lk_model_info(i, &info); i++) {
        cli_t2i_tag(info.name, own);
        if (!strcmp(own, tag)) return true;
    }
    return false;
}
