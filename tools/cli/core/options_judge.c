/* Options of judges that see: judge run, and feature extract. */
#include "tools/cli/core/options_table.h"

#define JUDGE(kind_, group_, name_, value_, field, help_)                                                              \
    OPTION(kind_, group_, name_, value_, ON(CLI_JUDGE), review.field, help_)

static const struct cli_option options[] = {
    {JUDGE(CLI_CHOICE, "Input", "judge-prompt", "NAME", judge_prompt,
           "what the judge is or was asked: this study's prompt, the one the paper prints, or the older study's "
           "questions in words"),
     .otherwise = "v1", .choices = "v1|printed|legacy"},
    {JUDGE(CLI_CHOICE, "Input", "slot", "NAME", slot, "run: which of the study's two judges the model is"),
     .choices = "primary|secondary"},
    {OPTION(CLI_FILE, "Input", "faces", "FILE.safetensors", ON(CLI_JUDGE) | ON(CLI_T2I) | ON(CLI_MASK), report.faces,
            "weights of the face detector YuNet, under the names of its authors' state. judge of pixels: the face that "
            "it finds in the source is the region, where it finds none the middle; t2i: what label looks at and export "
            "covers; mask: the faces that are kept or edited")},
    {OPTION(CLI_CHOICE, "Input", "check", "NAME", ON(CLI_JUDGE), report.check,
            "run: ask as a check of the judge, whose answers are no scores: with the edited picture first, with the "
            "pictures' places changed, or again with other seeds. agreement: --secondary is such a run"),
     .choices = "order|roles|repeat|repeat2"},
    {OPTION(CLI_CHOICE, "Sampling", "mode", "NAME", ON(CLI_JUDGE) | ON(CLI_FEATURE), review.mode,
            "run: the model writes what it likes, three attempts at most; or it fills in a form, which is always "
            "valid; or it gives scores alone. Scores of different modes do not belong together"),
     .otherwise = "free", .choices = "free|forced|direct"},
    {OPTION(CLI_INT, "Sampling", "batch", "N", ON(CLI_JUDGE) | ON(CLI_T2I), review.batch,
            "run, label: answers at a time; none depends on it"),
     .otherwise = "8", .min = 1, .max = 64},
    {JUDGE(CLI_FLAG, "Input", "pairwise", NULL, pairwise,
           "legacy: which of the two arms' pictures preserves the person better, asked in both orders")},
    {OPTION(CLI_TEXT, "Model", "openai-url", "URL", ON(CLI_JUDGE) | ON(CLI_FEATURE), review.server,
            "ask the model that --model names on an OpenAI-compatible server of yours (llama-server, vLLM), as "
            "http://localhost:8080/v1; the pictures are sent there; a key is taken from OPENAI_API_KEY")},
    {OPTION(CLI_NUMBER, "Model", "requests-per-minute", "N", ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I),
            review.requests_per_minute, "of --openai-url or --images-url, how many may begin"),
     .otherwise = "no limit", .min = 0.001, .max = 1000000},
    {OPTION(CLI_CHOICE, "Analysis", "sampler", "NAME", ON(CLI_SAMPLE), sampler,
            "the study's own generator, or what pandas draws with random_state in each stratum anew (for replication: "
            "equally long strata then give the same positions)"),
     .otherwise = "stream", .choices = "stream|pandas"},
    {OPTION(CLI_INT, "Analysis", "each", "N", ON(CLI_SAMPLE), each, "strata: outputs of each"), .otherwise = "4",
     .min = 1, .max = 1000000},
};
const struct cli_option_part cli_options_of_judge = {options, sizeof options / sizeof *options};
