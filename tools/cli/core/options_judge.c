/* Options of judges that see: judge run, and feature extract. */
#include "tools/cli/core/options_table.h"

#define JUDGE(kind_, group_, name_, value_, field, help_)                                                              \
    .name = name_, .kind = kind_, .group = group_, .value = value_, .help = help_, .commands = ON(CLI_JUDGE),          \
    AT(review.field)

static const struct cli_option options[] = {
    {JUDGE(CLI_CHOICE, "Input", "judge-prompt", "NAME", judge_prompt,
           "what the judge is or was asked: this study's prompt, the one the paper prints, or the older study's "
           "questions in words"),
     .otherwise = "v1", .choices = "v1|printed|legacy"},
    {JUDGE(CLI_CHOICE, "Input", "slot", "NAME", slot, "run: which of the study's two judges the model is"),
     .choices = "primary|secondary"},
    {.name = "faces",
     .kind = CLI_FILE,
     .group = "Input",
     .value = "FILE.safetensors",
     .help =
         "weights of the face detector YuNet, under the names of its authors' state. judge of pixels: the face that "
         "it finds in the source is the region, where it finds none the middle; t2i: what label looks at and export "
         "covers; mask: the faces that are kept or edited",
     .commands = ON(CLI_JUDGE) | ON(CLI_T2I) | ON(CLI_MASK),
     AT(report.faces)},
    {.name = "check",
     .kind = CLI_CHOICE,
     .group = "Input",
     .value = "NAME",
     .help = "run: ask as a check of the judge, whose answers are no scores: with the edited picture first, with the "
             "pictures' places changed, or again with other seeds. agreement: --secondary is such a run",
     .choices = "order|roles|repeat|repeat2",
     .commands = ON(CLI_JUDGE),
     AT(report.check)},
    {.name = "mode",
     .kind = CLI_CHOICE,
     .group = "Sampling",
     .value = "NAME",
     .otherwise = "free",
     .help =
         "run: the model writes what it likes, three attempts at most; or it fills in a form, which is always valid; "
         "or it gives scores alone. Scores of different modes do not belong together",
     .choices = "free|forced|direct",
     .commands = ON(CLI_JUDGE) | ON(CLI_FEATURE),
     AT(review.mode)},
    {.name = "batch",
     .kind = CLI_INT,
     .group = "Sampling",
     .value = "N",
     .otherwise = "8",
     .help = "run, label: answers at a time; none depends on it",
     .min = 1,
     .max = 64,
     .commands = ON(CLI_JUDGE) | ON(CLI_T2I),
     AT(review.batch)},
    {JUDGE(CLI_FLAG, "Input", "pairwise", NULL, pairwise,
           "legacy: which of the two arms' pictures preserves the person better, asked in both orders")},
    {.name = "openai-url",
     .kind = CLI_TEXT,
     .group = "Model",
     .value = "URL",
     .help = "ask the model that --model names on an OpenAI-compatible server of yours (llama-server, vLLM), as "
             "http://localhost:8080/v1; the pictures are sent there; a key is taken from OPENAI_API_KEY",
     .commands = ON(CLI_JUDGE) | ON(CLI_FEATURE),
     AT(review.server)},
    {.name = "requests-per-minute",
     .kind = CLI_NUMBER,
     .group = "Model",
     .value = "N",
     .help = "of --openai-url or --images-url, how many may begin",
     .otherwise = "no limit",
     .min = 0.001,
     .max = 1000000,
     .commands = ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I),
     AT(review.requests_per_minute)},
    {.name = "sampler",
     .kind = CLI_CHOICE,
     .group = "Analysis",
     .value = "NAME",
     .otherwise = "stream",
     .help = "the study's own generator, or what pandas draws with random_state in each stratum anew (for replication: "
             "equally long strata then give the same positions)",
     .commands = ON(CLI_SAMPLE),
     .choices = "stream|pandas",
     AT(sampler)},
    {.name = "each",
     .kind = CLI_INT,
     .group = "Analysis",
     .value = "N",
     .otherwise = "4",
     .help = "strata: outputs of each",
     .commands = ON(CLI_SAMPLE),
     .min = 1,
     .max = 1000000,
     AT(each)},
};
const struct cli_option_part cli_options_of_judge = {options, sizeof options / sizeof *options};
