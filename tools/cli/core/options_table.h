/* What the parts of the table of options share. */
#pragma once

#include "tools/cli/core/options.h"

#define ON(command)   (1u << (command))
#define FIELD(member) offsetof(struct cli_arguments, member)
/* Of an option that sets the member of struct cli_arguments. */
#define AT(member) .offset = FIELD(member), .field = #member
/* An option that sets the member; what else it has stands behind, as .min = 1. */
#define OPTION(kind_, group_, name_, value_, commands_, member, help_)                                                 \
    .name = name_, .kind = kind_, .group = group_, .value = value_, .help = help_, .commands = commands_, AT(member)

#define RUNS (ON(CLI_EDIT) | ON(CLI_RERUN))

/* A part of the table. */
struct cli_option_part {
    const struct cli_option *options;
    size_t n;
};

/* Made from the table of parameters, in its order. */
struct cli_option_part cli_options_of_parameters(void);
extern const struct cli_option_part cli_options_of_edit, cli_options_of_audit, cli_options_of_judge, cli_options_of_t2i,
    cli_options_of_study;
