#include "tools/cli/cli.h"

static const char *const edit_examples[] = {
    "Edit a photo",
    "likeness edit -m black-forest-labs/FLUX.2-dev -r in.jpg -p \"Make the jacket red\" -o out.png",
    "Combine two pictures",
    "likeness edit -m ./FLUX.2-dev -r person.jpg -r hat.png -p \"Put the hat on the person\" -o out.png",
    "Fewer steps, another seed",
    "likeness edit -m ./FLUX.2-dev -r in.jpg -p \"Make it winter\" --num-inference-steps 28 -s 7 -o out.png",
    "True classifier-free guidance, with a negative prompt",
    "likeness edit -m Qwen/Qwen-Image-Edit-2511 -r in.jpg -p \"Add glasses\" -n \"blurry\" --true-cfg-scale 4 -o "
    "out.png",
    "No picture at all: text to image",
    "likeness edit -m ./FLUX.2-dev -p \"a lighthouse at dawn\" -W 1024 -H 768 -o out.png",
    "Many edits from a list, through the model together",
    "likeness edit -m ./FLUX.2-dev --jobs jobs.jsonl",
    "Keep every intermediate tensor, in f32",
    "likeness edit -m ./FLUX.2-dev -r in.jpg -p \"Add glasses\" --dtype f32 --dump-steps steps -o out.png",
    NULL};
static const char *const plan_examples[] = {"What the released model needs, without having it",
                                            "likeness plan -m flux2-dev --size 1024x1024 --references 1",
                                            "Does it fit in 16 GiB of an A100?",
                                            "likeness plan -m qwen-edit-2511 --device sm_80 --vram 16G",
                                            "For a script",
                                            "likeness plan -m ./FLUX.2-dev --size 768x1024 --references 2 --json",
                                            "An edit without true classifier-free guidance: half the forwards",
                                            "likeness plan -m step1x-v1p2 --true-cfg-scale 1",
                                            "On a GPU, to the byte",
                                            "likeness plan -m flux2-dev --device cuda",
                                            NULL};
static const char *const chat_examples[] = {
    "What is in a picture?",
    "likeness chat -m Qwen/Qwen2.5-VL-7B-Instruct -r photo.jpg -p \"Describe the person.\"",
    "Compare two, with the language model of an editing model",
    "likeness chat -m Qwen/Qwen-Image-Edit-2511 -r in.jpg -r out.png -p \"Is it the same person?\" --greedy",
    "Draw tokens instead of taking the most likely ones",
    "likeness chat -m ./Qwen2.5-VL -p \"Name a city.\" --temperature 0.8 --top-k 50 --top-p 0.95 -s 1",
    "With a system message, and no more than a line",
    "likeness chat -m ./Qwen2.5-VL -r photo.jpg -p \"What colour is the hair?\" --system \"Answer in one word.\" "
    "--max-new-tokens 8",
    "The pixels as they lie in the file, whatever the camera noted",
    "likeness chat -m ./Qwen2.5-VL -r photo.jpg -p \"Which way is up?\" --no-exif-transpose",
    NULL};
static const char *const rewrite_examples[] = {
    "By Qwen's edit polisher",
    "likeness rewrite -m Qwen/Qwen2.5-VL-7B-Instruct --rewrite-prompts qwen-edit-2511.json -r in.jpg -p \"red hair\"",
    "And edit with it",
    "likeness edit -m Qwen/Qwen-Image-Edit-2511 --rewrite-prompts qwen-edit-2511.json -r in.jpg -p \"red hair\" -o "
    "out.png",
    NULL};
static const char *const mask_examples[] = {
    "Everything but the face may change",
    "likeness mask in.jpg --keep face --faces yunet.safetensors -o keep.png",
    "The face alone, as a control",
    "likeness mask in.jpg --edit face --faces yunet.safetensors --grow 0.6 -o edit.png",
    "By hand",
    "likeness mask in.jpg --keep 100,80,200,260 --shape box --grow 0 -o keep.png",
    "The opposite of a mask that is there",
    "likeness mask keep.png --invert -o edit.png",
    NULL};
static const char *const models_examples[] = {"What there is", "likeness models", "For a script",
                                              "likeness models --json", NULL};
static const char *const verify_examples[] = {"Weights in the HF cache", "likeness verify black-forest-labs/FLUX.2-dev",
                                              "A folder, against sha256sum's output",
                                              "likeness verify ./FLUX.2-dev --manifest SHA256SUMS", NULL};
static const char *const quantize_examples[] = {
    "Four bits a weight, for diffusers too", "likeness quantize black-forest-labs/FLUX.2-dev -o FLUX.2-dev-nf4",
    "The same size, a fifth less error", "likeness quantize ./Qwen-Image-Edit-2511 --format nf4-mse -o qwen-nf4", NULL};
static const char *const show_examples[] = {"How was this made?", "likeness show out.png", "The raw recipe",
                                            "likeness show out.png --json | jq .seed", NULL};
static const char *const rerun_examples[] = {
    "Make the same picture again",
    "likeness rerun out.png -m ./FLUX.2-dev -r in.jpg -o again.png && cmp out.png again.png",
    "Of several images, in the order in which show names them",
    "likeness rerun out.png -m ./FLUX.2-dev -r person.jpg -r hat.png -o again.png",
    "Made from text alone",
    "likeness rerun out.png -m Qwen/Qwen-Image -o again.png",
    "On another device: other bits, the same picture to the eye",
    "likeness rerun out.png -m ./FLUX.2-dev -r in.jpg --device cuda --allow-other -o again.png",
    "With the prompts that thinking needs, which no recipe holds",
    "likeness rerun out.png -m ./Step1X-Edit-v1p2 -r in.jpg --prompts-file prompts.json -o again.png",
    NULL};
static const char *const embed_examples[] = {
    "Encode where there is memory, edit where there is less",
    "likeness embed -m ./FLUX.2-dev -p \"red hair\" -o red.safetensors && likeness edit -m ./FLUX.2-dev -r in.jpg -p "
    "\"red hair\" --prompt-embeds red.safetensors -o out.png",
    "All prompts of a list", "likeness embed -m ./FLUX.2-dev --jobs jobs.jsonl -o prompts.safetensors", NULL};
static const char *const devices_examples[] = {"What there is", "likeness devices", "For a script",
                                               "likeness devices --json", NULL};
static const char *const selftest_examples[] = {
    "Does this GPU compute what it should?", "likeness selftest --device cuda --cases 200 --large",
    "One op, for a script", "likeness selftest attention --device cuda --json", NULL};
static const char *const stats_examples[] = {
    "Do two judges agree on levels 1 to 5?",
    "likeness stats kappa scores.csv --x judge_a --y judge_b --weights quadratic",
    "Raters by item, one rating per row, answers missing",
    "likeness stats alpha ratings.csv --item item --rater rater --value score --level ordinal -B 1000",
    "Do groups differ, and which?",
    "likeness stats kruskal scores.csv --value identity --by race && likeness stats dunn scores.csv --value identity "
    "--by race",
    "The mean of a column whose rows come in clusters, for a script",
    "likeness stats bootstrap scores.csv --value identity --cluster source -B 10000 --json",
    "How many are needed to tell 20 % from 15 %?",
    "likeness stats sample-size --p1 0.20 --p2 0.15",
    NULL};
static const char *const completions_examples[] = {
    "bash", "likeness completions bash > ~/.local/share/bash-completion/completions/likeness",
    "zsh",  "likeness completions zsh > \"${fpath[1]}/_likeness\"",
    "fish", "likeness completions fish > ~/.config/fish/completions/likeness.fish",
    NULL};
static const char *const help_examples[] = {"About a command", "likeness help edit", "The manual page",
                                            "likeness help --man | man -l -", NULL};

/* A row; what else a command has stands behind. */
#define COMMAND(name_, run_, summary_) .name = name_, .summary = summary_, .run = run_

const struct cli_command_info cli_commands[CLI_N_COMMANDS] = {
    [CLI_EDIT] = {COMMAND("edit", cli_edit, "edit a picture by an instruction"),
                  .usage = "-m MODEL [-r IMAGE]... -p TEXT -o FILE.png [options]",
                  .text =
                      "Runs the model on the given images and prompt and writes one PNG that carries its own recipe. "
                      "Equal jobs give equal bytes. The first Ctrl-C stops after the current step, the second at "
                      "once; neither leaves a file.",
                  .examples = edit_examples, .parallel = true},
    [CLI_EMBED] = {COMMAND("embed", cli_embed, "encode prompts for edits elsewhere"),
                   .usage = "-m MODEL [-r IMAGE]... -p TEXT -o FILE.safetensors [options]",
                   .text =
                       "Writes what the transformer is told of the prompts, which see the images where the model's "
                       "text encoder does, and of the images. edit --prompt-embeds with the same prompt and images "
                       "makes the same picture and reads neither the text encoder's layers nor the VAE's that encode. "
                       "Takes what edit takes; seed, steps and what else comes after the prompt change nothing. The "
                       "file is of one text encoder, VAE, dtype and kind of device: another model or dtype is "
                       "refused, another device recorded.",
                   .examples = embed_examples, .parallel = true},
    [CLI_PLAN] = {COMMAND("plan", cli_plan, "say what a run needs before it starts"),
                  .usage = "-m MODEL [--size WIDTHxHEIGHT] [--references N] [options]",
                  .text =
                      "Runs the same forward pass on shapes alone and prints, per stage, parameters, bytes of weights, "
                      "peak of activations and FLOPs. Reads config files only.",
                  .examples = plan_examples},
    [CLI_CHAT] = {COMMAND("chat", cli_chat, "ask a vision-language model about pictures"),
                  .usage = "-m MODEL [-r IMAGE]... -p TEXT [options]",
                  .text = "Answers one question with Qwen2.5-VL, a model of its own or the text encoder of an editing "
                          "model. The reply goes to stdout as it comes. The first Ctrl-C stops after the current "
                          "token, the second at once.",
                  .examples = chat_examples, .parallel = true},
    [CLI_REWRITE] = {COMMAND("rewrite", cli_rewrite, "rewrite a prompt as an editing model's authors do"),
                     .usage = "-m MODEL --rewrite-prompts FILE.json [-r IMAGE]... -p TEXT [options]",
                     .text = "Asks a language model that sees the pictures for a better prompt and prints it, with "
                             "--json how it was made. A reply that is no usable prompt is asked for again, five times "
                             "in all; then there is none. edit --rewrite-prompts does the same before an edit.",
                     .examples = rewrite_examples, .parallel = true},
    [CLI_MASK] = {COMMAND("mask", cli_mask, "draw a mask that keeps the face, or nothing else"),
                  .usage = "SOURCE (--keep|--edit face|X,Y,WIDTH,HEIGHT | --invert) -o FILE.png [options]",
                  .positional = "SOURCE", .positional_required = true,
                  .text = "For edit --mask, and for the masks of a study. White is edited, black keeps the source's "
                          "bytes. The file says how it was made.",
                  .examples = mask_examples},
    [CLI_MODELS] = {COMMAND("models", cli_models, "list the models and their default parameters"), .usage = "[--json]",
                    .text = "Prints each released model that plan, edit and rerun know, with the parameters that edit "
                            "uses unless told otherwise.",
                    .examples = models_examples},
    [CLI_VERIFY] =
        {COMMAND("verify", cli_verify, "check a model's files against their SHA-256"),
         .positional = "DIR|ORG/NAME[@REV]", .positional_required = true,
         .usage = "DIR|ORG/NAME[@REV] [--manifest FILE] [options]",
         .text = "Hashes every file with a known digest and prints the ones that differ. Exit code 3 if any does.",
         .examples = verify_examples},
    [CLI_QUANTIZE] =
        {COMMAND("quantize", cli_quantize, "write a model with its transformer in four bits"),
         .positional = "DIR|ORG/NAME[@REV]", .positional_required = true,
         .usage = "DIR|ORG/NAME[@REV] -o DIR [--format nf4|nf4-mse]",
         .text = "Makes a folder with the model's files, the transformer's weights packed as bitsandbytes stores them: "
                 "edit, plan and diffusers read it. What is computed ahead or is small stays as it is.",
         .examples = quantize_examples},
    [CLI_LORA] = {COMMAND("lora", NULL, "look at a LoRA, or write a model with it"), .verbs = cli_lora_verbs,
                  .parallel = true},
    [CLI_SHOW] = {COMMAND("show", cli_show, "print how a picture was made"), .positional = "FILE.png",
                  .positional_required = true, .usage = "FILE.png [--json]",
                  .text = "Prints the recipe that edit wrote into the PNG.", .examples = show_examples},
    [CLI_RERUN] = {COMMAND("rerun", cli_rerun, "make a picture again from its recipe"), .positional = "FILE.png",
                   .positional_required = true, .usage = "FILE.png -m MODEL [-r IMAGE]... -o NEW.png [options]",
                   .text =
                       "Takes prompt, seed and every other setting from the PNG. The weights and the images must be "
                       "the ones recorded there: the images by their SHA-256, the weights by their identity, "
                       "a digest of names, shapes and both ends of every tensor (`verify` finds damage in between), "
                       "the configs by what is read of each file. What came of them (noise, sigmas, sizes, instruction "
                       "set, version, pixels) is compared too; exit code 6 if any of it differs.",
                   .examples = rerun_examples, .parallel = true},
    [CLI_DEVICES] = {COMMAND("devices", cli_devices, "list what can compute here"), .usage = "[--json]",
                     .text = "Prints each device with its instruction set, threads and memory.",
                     .examples = devices_examples},
    [CLI_SELFTEST] =
        {COMMAND("selftest", cli_selftest, "compare a device's ops with the CPU's"), .positional = "OP",
         .usage = "[OP] [--device NAME] [--cases N] [options] | data",
         .text = "Runs every op of the device, or the one named, on random tensors and compares the results with the "
                 "CPU's: at most 1e-10 normalised mean square error in f32 and 1e-5 in bf16, no other bit where the op "
                 "leaves no freedom, no byte written beside the output, and rows alone as among others. Exit code 5 if "
                 "an op fails. data checks the study's files, which are part of the program, by their digests.",
         .examples = selftest_examples, .parallel = true},
    [CLI_BENCH] = {COMMAND("bench", NULL, "time a model on this machine"), .verbs = cli_bench_verbs, .parallel = true},
    [CLI_STUDY] =
        {COMMAND("study", cli_study, "plan and run a whole study from one file"), .verbs = cli_study_verbs,
         .text = "A study file names sources, prompts, models with their parameters, and experiments; its run fills "
                 "a folder, which judge, survey and report read by --from.",
         .parallel = true},
    [CLI_FEATURE] = {COMMAND("feature", NULL, "ask a model what edits should keep of each source"),
                     .verbs = cli_feature_verbs, .parallel = true},
    [CLI_JUDGE] = {COMMAND("judge", NULL, "judge edits by pixels, by a model, or read a judge elsewhere"),
                   .verbs = cli_judge_verbs, .parallel = true},
    [CLI_REVIEW] =
        {COMMAND("review", NULL, "decide where two judges disagree"), .verbs = cli_review_verbs,
         .text = "Files of scores are never changed: `report --with-review` shows both, as judged and with review."},
    [CLI_RATINGS] =
        {COMMAND("ratings", NULL, "write raters' answers in the study's own form"), .verbs = cli_ratings_verbs,
         .text = "Reads raters' answers in any form that report takes, and prints a JSON line for each that stands, "
                 "with the field names of the study's document store: comments, times of day and whatever else has "
                 "no place there are left out. Records that are not understood are named on stderr; exit code 6 if "
                 "there are any."},
    [CLI_REPORT] = {COMMAND("report", NULL, "turn scores and ratings into tables, figures and a page"),
                    .verbs = cli_report_verbs, .parallel = true},
    [CLI_SAMPLE] = {COMMAND("sample", NULL, "draw the outputs that raters will see"), .verbs = cli_sample_verbs},
    [CLI_SERVE] = {COMMAND("serve", NULL, "serve pages to raters, a run's progress, or a model to programs"),
                   .verbs = cli_serve_verbs, .parallel = true},
    [CLI_SURVEY] = {COMMAND("survey", NULL, "write a survey, export its answers, check codes, count its cost"),
                    .verbs = cli_survey_verbs},
    [CLI_T2I] = {COMMAND("t2i", cli_t2i, "audit text-to-image models: who is depicted in negative roles"),
                 .verbs = cli_t2i_verbs, .text = "Equal inputs give equal bytes.", .parallel = true},
    [CLI_STATS] =
        {COMMAND("stats", NULL, "compute a statistic or test from a CSV table"),
         .text = "The first line of the file names the columns. Empty cells, NA and nan are missing: they are left out "
                 "and counted. Levels are in the order of their numbers, or of their letters if one is no number.",
         .examples = stats_examples, .parallel = true},
    [CLI_COMPLETIONS] = {COMMAND("completions", cli_complete, "print shell completions"), .positional = "bash|zsh|fish",
                         .positional_required = true, .usage = "bash|zsh|fish",
                         .text = "Prints a completion script for the shell named.", .examples = completions_examples},
    [CLI_HELP] = {COMMAND("help", cli_explain, "explain a command"), .positional = "COMMAND",
                  .usage = "[COMMAND] [--man]",
                  .text = "Prints this program's help, a command's help, or the manual page.",
                  .examples = help_examples},
};
