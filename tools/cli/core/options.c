#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/core/options_table.h"

const struct cli_verb *cli_verbs(enum cli_command command) {
    return command == CLI_STATS ? cli_stats_verbs() : cli_commands[command].verbs;
}

const struct cli_verb *cli_verb_named(enum cli_command command, const char *name) {
    for (const struct cli_verb *v = cli_verbs(command); v && v->name; v++)
        if (!strcmp(v->name, name)) return v;
    return NULL;
}

/* The next name in a verb's list of options, from *list, which moves behind it; its length, 0 at the end. */
static size_t next_name(const char **list, const char **name, bool *required) {
    *name = *list + strspn(*list, " ");
    const size_t n = strcspn(*name, " ");
    *list = *name + n;
    *required = n && (*name)[n - 1] == '!';
    return n - *required;
}

static bool is_listed(const struct cli_verb *verb, const struct cli_option *o, bool *required) {
    static const char request[] = "@request";
    const char *name;
    size_t n;
    for (const char *list = verb->options ? verb->options : ""; (n = next_name(&list, &name, required));) {
        if (n == strlen(o->name) && !memcmp(name, o->name, n)) return true;
        if (n == sizeof request - 1 && !memcmp(name, request, n) && o->parameter &&
            o->parameter->place == LK_IN_REQUEST)
            return true;
    }
    return false;
}

/* What every verb obeys. */
static bool is_common(const struct cli_option *o) {
    return o->offset == FIELD(help) || o->offset == FIELD(version) || o->offset == FIELD(quiet) ||
           o->offset == FIELD(verbose);
}

bool cli_takes(enum cli_command command, const struct cli_verb *verb, const struct cli_option *option) {
    bool required;
    if (!(option->commands & ON(command))) return false;
    return !cli_verbs(command) || is_common(option) || (verb && is_listed(verb, option, &required));
}

bool cli_requires(enum cli_command command, const struct cli_verb *verb, const struct cli_option *option) {
    bool required = false;
    if (!verb) return option->required & ON(command);
    return is_listed(verb, option, &required) && required;
}

struct cli_option cli_option_of_verb(const struct cli_verb *verb, const struct cli_option *option) {
    struct cli_option o = *option;
    for (const struct cli_says *says = verb ? verb->says : NULL; says && says->option; says++) {
        if (strcmp(says->option, o.name)) continue;
        if (says->value) o.value = says->value;
        o.help = says->help;
        if (strstr(o.help, "[default: ")) o.otherwise = NULL;
    }
    return o;
}

void cli_operands(const struct cli_verb *verb, int *least, int *most) {
    *least = *most = 0;
    for (const char *at = verb->operands ? verb->operands : ""; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        *least += *at != '[';
        *most = n > 3 && !memcmp(at + n - 3, "...", 3) ? CLI_MAX_MORE : *most + 1;
        at += n;
    }
}

#define EVERYWHERE ((1u << CLI_N_COMMANDS) - 1)

static const struct cli_option options[] = {
    {OPTION(CLI_FOLDER, "Output", "dump-steps", "DIR", ON(CLI_EDIT), dump_steps,
            "also write every named intermediate tensor as safetensors; the folder must be new or empty")},
    {OPTION(CLI_FILE, "Input", "jobs", "FILE.jsonl", ON(CLI_EDIT) | ON(CLI_EMBED), jobs,
            "many edits: a JSON object a line with \"output\", \"images\" and parameters by the names that recipes "
            "have (show --json); what a line does not say is as on the command line. Each prompt is encoded once, and "
            "the model's layers are visited for several jobs together")},
    {OPTION(CLI_INT, "Model", "jobs-per-visit", "N", ON(CLI_EDIT) | ON(CLI_STUDY) | ON(CLI_SERVE), jobs_per_visit,
            "of --jobs and study run: how many pass through a layer of the transformer while its weights are there; "
            "more memory, less waiting for weights, the same bits"),
     .otherwise = "4", .min = 1, .max = LK_MAX_JOBS_PER_VISIT},
    {OPTION(CLI_FLAG, "Output", "quiet", NULL,
            RUNS | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_BENCH) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_EMBED) |
                ON(CLI_T2I) | ON(CLI_STUDY) | ON(CLI_SERVE),
            quiet, "errors only on stderr"),
     .letter = 'q'},
    {OPTION(CLI_FLAG, "Output", "verbose", NULL,
            RUNS | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_BENCH) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_EMBED) |
                ON(CLI_T2I) | ON(CLI_STUDY) | ON(CLI_SERVE),
            verbose, "details on stderr too: by which way weights travel to a GPU that cannot hold them all")},
    {OPTION(CLI_FLAG, "Output", "all", NULL, ON(CLI_PLAN), all_budgets,
            "a table of memory budgets and precisions: GB of weights that stay + GB streamed for each step, seconds a "
            "step; its legend is on stderr")},
    {OPTION(CLI_FILE, "Input", "manifest", "FILE", ON(CLI_VERIFY) | ON(CLI_REPORT), manifest,
            "digests to check against, in sha256sum's format; of report the chosen sources with the pool that each is "
            "from"),
     .otherwise = "of verify the names of the HF cache's blobs"},
    {OPTION(CLI_CHOICE, "Model", "format", "TYPE", ON(CLI_QUANTIZE), format,
            "how weights are packed: as bitsandbytes does, or with scales that lose a fifth less"),
     .otherwise = "nf4", .choices = "nf4|nf4-mse"},
    {OPTION(CLI_INT, "Other", "cases", "N", ON(CLI_SELFTEST), cases, "random cases of each op"), .otherwise = "20",
     .min = 1, .max = 100000},
    {OPTION(CLI_INT, "Other", "repetitions", "N", ON(CLI_BENCH), bench.repetitions,
            "images that are timed, after one that is not"),
     .otherwise = "5", .min = 1, .max = 1000},
    {OPTION(CLI_INT, "Other", "gpus", "N", ON(CLI_BENCH), bench.gpus, "study: GPUs as the one measured"),
     .otherwise = "4", .min = 1, .max = 100000},
    {OPTION(CLI_NUMBER, "Other", "price", "X", ON(CLI_BENCH), bench.price,
            "study: what an hour of one GPU costs, in any currency"),
     .max = 1e6},
    {OPTION(CLI_CHOICE, "Output", "output-format", "NAME", ON(CLI_BENCH), bench.output_format,
            "a table in Markdown, a result to compare, or a line for each repetition"),
     .otherwise = "md", .choices = "md|json|csv"},
    {OPTION(CLI_FLAG, "Other", "large", NULL, ON(CLI_SELFTEST), large, "shapes that fill a GPU instead of small ones")},
    {OPTION(CLI_FLAG, "Output", "json", NULL,
            ON(CLI_PLAN) | ON(CLI_MODELS) | ON(CLI_VERIFY) | ON(CLI_SHOW) | ON(CLI_DEVICES) | ON(CLI_SELFTEST) |
                ON(CLI_STATS) | ON(CLI_SAMPLE) | ON(CLI_REVIEW) | ON(CLI_JUDGE) | ON(CLI_STUDY) | ON(CLI_REWRITE) |
                ON(CLI_REPORT),
            json, "print JSON instead of text")},
    {OPTION(CLI_FLAG, "Output", "man", NULL, ON(CLI_HELP), man, "print the manual page (troff)")},

    {OPTION(CLI_FLAG, "Other", "help", NULL, EVERYWHERE, help, "this text"), .letter = 'h'},
    {OPTION(CLI_FLAG, "Other", "version", NULL, EVERYWHERE, version, "print the version")},
};

const struct cli_option *cli_option(size_t i) {
    const struct cli_option_part parts[] = {cli_options_of_parameters(),
                                            cli_options_of_edit,
                                            cli_options_of_audit,
                                            cli_options_of_judge,
                                            cli_options_of_t2i,
                                            cli_options_of_study,
                                            {options, sizeof options / sizeof *options}};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; i -= parts[p++].n)
        if (i < parts[p].n) return &parts[p].options[i];
    return NULL;
}

void cli_arguments_init(struct cli_arguments *arguments) {
    *arguments =
        (struct cli_arguments){.command = CLI_HELP,
                               .mask = {.shape = "ellipse", .several = "refuse", .grow = 0.25},
                               .bench = {"md", 5, 4, 0},
                               .cases = 20,
                               .jobs_per_visit = 4,
                               .top_k = -1,
                               .temperature = -1,
                               .top_p = -1,
                               .repetition_penalty = -1,
                               .references = -1,
                               .report = {.primary_name = "",
                                          .secondary_name = "",
                                          .rounding = "half_even",
                                          .prompts_as = "sample",
                                          .subcategory = "both",
                                          .score_source = "judge",
                                          .bootstrap = 1000,
                                          .study_seed = 42,
                                          .gold_tolerance = 1,
                                          .alpha = 0.05,
                                          .margin = 0.05,
                                          .success = 4,
                                          .soft_erasure = 2,
                                          .drift = 3,
                                          .identity = 4,
                                          .unclear = "exclude",
                                          .date = "",
                                          .run = "",
                                          .label = ""},
                               .review = {.note = "", .time = "", .judge_prompt = "v1", .mode = "free", .batch = 8},
                               .stats = {.null = -1, .p1 = -1, .p2 = -1},
                               .t2i = {.columns = "all", .cue = 1, .tolerance = 0.05, .neighbours = 15},
                               .survey = {.port = 8080},
                               .sampler = "stream",
                               .format = "nf4",
                               .study = {.template = "full", .show = "table"}};
    lk_job_init(&arguments->job);
}
