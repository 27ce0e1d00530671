/* Options of study alone. */
#include "tools/cli/core/options_table.h"

#define STUDY(kind_, group_, name_, value_, field, help_)                                                              \
    .name = name_, .kind = kind_, .group = group_, .value = value_, .help = help_, .commands = ON(CLI_STUDY),          \
    .offset = FIELD(study.field)

static const struct cli_option options[] = {
    {STUDY(CLI_TEXT, "Model", "devices", "LIST", devices,
           "run: a worker for each, with commas between: cpu, cuda, cuda:1, or 1 for cuda:1"),
     .otherwise = "the study's"},
    {STUDY(CLI_TEXT, "Input", "shard", "I/N", shard,
           "run: the I-th of N parts of the jobs, with a journal of its own; merge puts them together")},
    {STUDY(CLI_INT, "Model", "queue", "N", queue,
           "run: jobs that pass through the stages together: all are encoded, then made, then decoded, so that weights "
           "come once for N jobs; a kill loses what they have done so far"),
     .otherwise = "16 on a GPU, 4 on the cpu", .min = 1, .max = 64},
    {STUDY(CLI_FLAG, "Input", "retry-failed", NULL, retry_failed, "run: also what failed three times")},
    {STUDY(CLI_TEXT, "Input", "sample", "SHARE|N", sample, "rerun: how many of the pictures are made again"),
     .otherwise = "1%"},
    {STUDY(CLI_FLAG, "Input", "requeue", NULL, requeue,
           "verify: have the next run make again what is gone or changed")},
    {STUDY(CLI_INT, "Output", "tasks", "N", tasks, "slurm: tasks of the job array"), .otherwise = "4", .min = 1,
     .max = 10000},
    {.name = "template",
     .kind = CLI_CHOICE,
     .group = "Input",
     .value = "NAME",
     .otherwise = "full",
     .help =
         "new: which experiments the file begins with, in the numbers of the study's documents; full has exp1, exp2 "
         "and exp3",
     .choices = "full|exp1|exp2|exp3|t2i",
     .commands = ON(CLI_STUDY),
     .offset = FIELD(study.template)},
    {.name = "allow",
     .kind = CLI_TEXT,
     .group = "Input",
     .value = "KEYS",
     .help = "of compare and of report --from: settings that may differ, as rounding, models.qwen.seed or steps, with "
             "commas between",
     .commands = ON(CLI_STUDY) | ON(CLI_REPORT),
     .offset = FIELD(study.allow)},
    {.name = "ids",
     .kind = CLI_TEXT,
     .group = "Input",
     .value = "IDS",
     .otherwise = "all",
     .help = "prompts: which, as O-01, catB_001 or W-01, or categories as O,V, with commas between",
     .commands = ON(CLI_STUDY),
     .offset = FIELD(study.ids)},
    {.name = "show",
     .kind = CLI_CHOICE,
     .group = "Output",
     .value = "NAME",
     .otherwise = "table",
     .help =
         "prompts: a table (CSV), the texts alone, the subcategories by the printed id ranges or by content, or what "
         "there is to know of the 50 sentences",
     .choices = "table|text|printed|content|sentences",
     .commands = ON(CLI_STUDY),
     .offset = FIELD(study.show)},
};
const struct cli_option_part cli_options_of_study = {options, sizeof options / sizeof *options};
