/* Options of edit and of what works with a model: plan, chat, rerun. */
#include <stdio.h>
#include <string.h>

#include "tools/cli/core/options_table.h"

#define SHAPES (ON(CLI_EDIT) | ON(CLI_PLAN) | ON(CLI_EMBED) | ON(CLI_BENCH))

static const struct cli_option options[] = {
    {OPTION(
         CLI_FOLDER, "Model", "model", "DIR|ORG/NAME[@REV]",
         RUNS | ON(CLI_PLAN) | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_BENCH) | ON(CLI_JUDGE) | ON(CLI_FEATURE) |
             ON(CLI_EMBED) | ON(CLI_T2I) | ON(CLI_LORA) | ON(CLI_SERVE),
         model,
         "folder in Hugging Face layout, or a repository in the local HF cache (nothing is downloaded); plan also "
         "takes the name of a released model (see `models`), which stands for its repository where pictures are made"),
     .letter = 'm', .required = RUNS | ON(CLI_PLAN) | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_EMBED)},
    {OPTION(CLI_FLAG, "Model", "follow-links", NULL,
            RUNS | ON(CLI_PLAN) | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_BENCH) | ON(CLI_JUDGE) | ON(CLI_FEATURE) |
                ON(CLI_EMBED) | ON(CLI_T2I) | ON(CLI_STUDY) | ON(CLI_QUANTIZE) | ON(CLI_VERIFY) | ON(CLI_LORA) |
                ON(CLI_SERVE),
            follow_links,
            "symbolic links in a model's folder may lead out of it, wherever they point; without it only into a "
            "Hugging Face cache")},
    {OPTION(CLI_INT, "Sampling", "num-images", "N", ON(CLI_EDIT), num_images,
            "so many pictures, with the seed and those that follow it; --seed 1-4 is the same as --seed 1 with 4. "
            "Files are named FILE_s1.png"),
     .otherwise = "1", .min = 1, .max = CLI_MAX_SEEDS},
    {OPTION(CLI_FLAG, "Model", "replay-cache", NULL, ON(CLI_RERUN), replay_cache,
            "compute the steps that the recipe's step cache computed, instead of deciding again: on another machine a "
            "decision near its threshold may fall otherwise, and everything behind it differs")},
    {OPTION(CLI_FLAG, "Model", "allow-other", NULL, ON(CLI_RERUN), allow_other,
            "the model's configs, or what comes of them, may be others than the recipe has: differences are named, and "
            "no reason to fail")},
    {OPTION(CLI_FLAG, "Model", "allow-steps", NULL, ON(CLI_EDIT) | ON(CLI_SERVE), allow_steps,
            "a number of steps that the model is not made for (Step1X-Edit: 28)")},
    {OPTION(CLI_FILES, "Input", "image", "FILE", RUNS | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_JUDGE) | ON(CLI_EMBED),
            images,
            "JPEG, PNG, WebP, TIFF or BMP to edit or to ask about; give it again for more (at most 10); of an edit the "
            "first one sets the size; none: text to image"),
     .alias = "ref-image", .letter = 'r'},
    {OPTION(CLI_FILE, "Input", "rewrite-prompts", "FILE.json", RUNS | ON(CLI_PLAN) | ON(CLI_EMBED) | ON(CLI_REWRITE),
            rewrite.prompts,
            "the authors' texts that a language model is told to rewrite the prompt by, which sees the images: Qwen's "
            "edit polisher or FLUX.2's caption upsampling (tests/golden/generate_rewrite_prompts.py makes the file); "
            "rerun: rewrite the original again, and fail where another prompt comes of it"),
     .required = ON(CLI_REWRITE)},
    {OPTION(CLI_FOLDER, "Input", "rewrite-model", "DIR|ORG/NAME[@REV]", RUNS | ON(CLI_PLAN) | ON(CLI_EMBED),
            rewrite.model, "who rewrites: a Qwen2.5-VL or Mistral-Small-3"),
     .otherwise = "the text encoder of the editing model"},
    {OPTION(CLI_NUMBER, "Input", "rewrite-temperature", "X", ON(CLI_EDIT) | ON(CLI_EMBED) | ON(CLI_REWRITE),
            rewrite.temperature, "draw the new prompt, with the command line's seed; FLUX.2's authors recommend 0.15"),
     .otherwise = "0: always the most likely token", .min = 0, .max = 1e4},
    {OPTION(CLI_TEXT, "Input", "keep", "face|X,Y,WIDTH,HEIGHT", ON(CLI_MASK), mask.keep,
            "what an edit may not touch: the rest is white")},
    {OPTION(CLI_TEXT, "Input", "edit", "face|X,Y,WIDTH,HEIGHT", ON(CLI_MASK), mask.edit,
            "the opposite: what an edit may change alone")},
    {OPTION(CLI_FLAG, "Input", "invert", NULL, ON(CLI_MASK), mask.invert,
            "SOURCE is a mask itself: what it keeps is edited, and what it edits is kept")},
    {OPTION(CLI_NUMBER, "Input", "grow", "X", ON(CLI_MASK), mask.grow,
            "how far a box is grown on each side, by its width and height; a detector's box ends at forehead and chin"),
     .otherwise = "0.25", .min = 0, .max = 10},
    {OPTION(CLI_CHOICE, "Input", "shape", "NAME", ON(CLI_MASK), mask.shape, "of what is kept or edited"),
     .otherwise = "ellipse", .choices = "ellipse|box"},
    {OPTION(CLI_CHOICE, "Input", "several", "NAME", ON(CLI_MASK), mask.several, "what to do with more than one face"),
     .otherwise = "refuse", .choices = "refuse|all|largest"},
    {OPTION(CLI_TEXT, "Input", "system", "TEXT", ON(CLI_CHAT), system, "the system message, UTF-8"),
     .otherwise = "You are a helpful assistant."},
    {
        .name = "size",
        .kind = CLI_SIZE,
        .group = "Sampling",
        .value = "WIDTHxHEIGHT",
        .otherwise = "1024x1024",
        .help = "both at once, pixels",
        .commands = ON(CLI_PLAN) | ON(CLI_BENCH),
        .min = 16,
        .max = 16384,
    },
    {OPTION(CLI_INT, "Sampling", "references", "N", ON(CLI_PLAN) | ON(CLI_BENCH), references,
            "reference images, each of the output's size (at most 1024x1024 pixels in all)"),
     .otherwise = "1; 0 for models of text alone", .min = 0, .max = CLI_MAX_IMAGES},
    {OPTION(CLI_INT, "Sampling", "max-new-tokens", "N", ON(CLI_CHAT) | ON(CLI_JUDGE) | ON(CLI_FEATURE), max_new_tokens,
            "tokens of the reply at most; judge run: 1500"),
     .otherwise = "the model's, else 512", .min = 1, .max = 1 << 20},
    {OPTION(CLI_FLAG, "Sampling", "greedy", NULL, ON(CLI_CHAT), greedy,
            "always the most likely token; without temperature, top-k and top-p"),
     .otherwise = "the model's"},
    {OPTION(CLI_NUMBER, "Sampling", "temperature", "X", ON(CLI_CHAT), temperature,
            "divides the logits before a token is drawn"),
     .otherwise = "the model's", .min = 1e-8, .max = 1e4},
    {OPTION(CLI_INT, "Sampling", "top-k", "N", ON(CLI_CHAT), top_k, "draw from the N most likely tokens; 0: from all"),
     .otherwise = "the model's", .min = 0, .max = 1 << 24},
    {OPTION(CLI_NUMBER, "Sampling", "top-p", "X", ON(CLI_CHAT), top_p,
            "draw from the most likely tokens that together have this probability; 1: from all"),
     .otherwise = "the model's", .min = 0, .max = 1},
    {OPTION(CLI_NUMBER, "Sampling", "repetition-penalty", "X", ON(CLI_CHAT), repetition_penalty,
            "makes tokens of prompt and reply less likely (above 1); 1 turns it off"),
     .otherwise = "the model's", .min = 0.01, .max = 100},
    {OPTION(CLI_FILE, "Output", "output", "FILE.png|DIR",
            RUNS | ON(CLI_REPORT) | ON(CLI_T2I) | ON(CLI_SURVEY) | ON(CLI_QUANTIZE) | ON(CLI_STUDY) | ON(CLI_LORA) |
                ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_EMBED) | ON(CLI_MASK),
            output,
            "the picture, .png, .jpg or .webp, with its recipe inside; appears whole or not at all; of report the "
            "folder, made when it is missing, of quantize and lora a folder that is not there; of t2i a folder "
            "(generate, metrics, export, latents) or a file; of survey and study the folder, of study new and pools "
            "the file, of study finalize the folder; of judge run a file to which lines are added. A result that is "
            "there is replaced, unless the command reads it"),
     .alias = "out", .letter = 'o', .required = RUNS | ON(CLI_MASK) | ON(CLI_QUANTIZE) | ON(CLI_EMBED)},
    {OPTION(CLI_FILE, "Output", "preview", "FILE.png", RUNS | ON(CLI_T2I) | ON(CLI_STUDY), preview,
            "after each step a small, rough picture of what the latents are on the way to (FLUX.2, Qwen-Image, "
            "Step1X-Edit); the result has the same bits")},
    {OPTION(CLI_INT, "Output", "preview-every", "N", RUNS | ON(CLI_T2I) | ON(CLI_STUDY), preview_every,
            "only after every N-th step, and the last"),
     .otherwise = "1", .min = 1, .max = LK_MAX_STEPS},
    {OPTION(CLI_INT, "Output", "quality", "N", RUNS, quality, "of a .jpg or .webp; 100 in WebP loses nothing"),
     .otherwise = "95", .min = 1, .max = 100},
    {OPTION(CLI_FLAG, "Output", "overwrite", NULL, RUNS | ON(CLI_REPORT) | ON(CLI_T2I) | ON(CLI_STUDY) | ON(CLI_SURVEY),
            overwrite,
            "replace what is there also if it is no result of this program (a picture without a recipe, somebody "
            "else's report.html), or a table with another content")},
};
const struct cli_option_part cli_options_of_edit = {options, sizeof options / sizeof *options};

/* Where a parameter may be given beside edit, plan and rerun. */
static unsigned other_commands(const char *name) {
    static const struct {
        const char *name;
        unsigned commands;
    } others[] = {
        {"prompt", ON(CLI_CHAT) | ON(CLI_REWRITE)},
        {"lora", ON(CLI_LORA) | ON(CLI_T2I)},
        {"seed", ON(CLI_CHAT) | ON(CLI_REWRITE)},
        {"exif-transpose", ON(CLI_CHAT) | ON(CLI_REWRITE)},
        {"dtype", ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I)},
        {"device", ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I) | ON(CLI_SELFTEST) |
                       ON(CLI_STUDY)},
        {"vram", ON(CLI_STUDY) | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I)},
        {"host-ram", ON(CLI_STUDY) | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I)},
        {"weights", ON(CLI_STUDY)},
        {"num-inference-steps", ON(CLI_T2I)},
        {"decoder-steps", ON(CLI_T2I)},
        {"decoder-guidance", ON(CLI_T2I)},
        {"size-level", ON(CLI_T2I)},
        {"max-sequence-length", ON(CLI_T2I)},
        {"text-encoder-out-layers", ON(CLI_T2I)},
        {"width", ON(CLI_T2I)},
        {"height", ON(CLI_T2I)},
        {"gemm", ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_SELFTEST)},
        {"conv", ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_SELFTEST)},
        {"threads", ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_SELFTEST) |
                        ON(CLI_VERIFY) | ON(CLI_STATS) | ON(CLI_T2I) | ON(CLI_STUDY)},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(others[i].name, name)) return others[i].commands;
    return 0;
}

/* embed does not take its own file, nor NVIDIA's libraries, since what they compute could not be told apart; bench has
 * no prompt that a file could be of; both use one device. Requests bring a server its prompts and masks. */
static unsigned not_taken(const char *name) {
    if (!strcmp(name, "prompt-embeds")) return ON(CLI_EMBED) | ON(CLI_BENCH) | ON(CLI_SERVE);
    if (!strcmp(name, "weights")) return ON(CLI_EMBED) | ON(CLI_BENCH);
    if (!strcmp(name, "prompt") || !strcmp(name, "prompt-2") || !strcmp(name, "mask")) return ON(CLI_SERVE);
    return strcmp(name, "gemm") && strcmp(name, "conv") ? 0 : ON(CLI_EMBED);
}

/* Texts that a line of the help is put together from. */
struct texts {
    char otherwise[128], help[320];
};

static struct cli_option option_of(const struct lk_parameter *p, struct texts *texts) {
    static const enum cli_kind kinds[] = {
        [LK_PARAMETER_FLAG] = CLI_FLAG,   [LK_PARAMETER_INT] = CLI_INT,       [LK_PARAMETER_INT64] = CLI_INT,
        [LK_PARAMETER_BYTES] = CLI_BYTES, [LK_PARAMETER_NUMBER] = CLI_NUMBER, [LK_PARAMETER_INTS] = CLI_INTS,
        [LK_PARAMETER_TEXT] = CLI_TEXT,   [LK_PARAMETER_FILE] = CLI_FILE,     [LK_PARAMETER_CHOICE] = CLI_CHOICE,
        [LK_PARAMETER_TEXTS] = CLI_TEXT};
    char families[128], range[64] = "";
    lk_parameter_default(p, texts->otherwise, sizeof texts->otherwise);
    lk_parameter_families(p, families, sizeof families);
    if (p->kind == LK_PARAMETER_INT || p->kind == LK_PARAMETER_NUMBER)
        snprintf(range, sizeof range, ", %.10g to %.10g", p->min, p->max);
    snprintf(texts->help, sizeof texts->help, "%s%s%s%s%s", p->help, range, *families ? " (" : "", families,
             *families ? ")" : "");
    return (struct cli_option){
        .name = p->name,
        .alias = p->alias,
        .letter = p->letter,
        .kind = kinds[p->kind],
        .group = p->group,
        .value = p->unit,
        .otherwise = *texts->otherwise ? texts->otherwise : NULL,
        .help = texts->help,
        .commands = ((SHAPES | ON(CLI_SERVE)) & ~not_taken(p->name)) | (p->machine ? ON(CLI_RERUN) : 0) |
                    other_commands(p->name),
        .required = strcmp(p->name, "prompt") ? 0 : ON(CLI_EDIT) | ON(CLI_CHAT) | ON(CLI_REWRITE) | ON(CLI_EMBED),
        .min = p->min,
        .max = p->max,
        .choices = p->choices,
        .offset = offsetof(struct cli_arguments, job) + p->offset,
        .parameter = p};
}

struct cli_option_part cli_options_of_parameters(void) {
    static struct cli_option made[LK_MAX_PARAMETERS];
    static struct texts texts[LK_MAX_PARAMETERS];
    for (size_t i = 0; i < lk_n_parameters && !made[i].name; i++) made[i] = option_of(&lk_parameters[i], &texts[i]);
    return (struct cli_option_part){made, lk_n_parameters};
}
