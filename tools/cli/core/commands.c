#include "tools/cli/core/options_table.h"

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
                                            "Does it fit an 80 GiB card?",
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
static const char *const models_examples[] = {"What there is", "likeness models", "For a script",
                                              "likeness models --json", NULL};
static const char *const verify_examples[] = {"Weights in the HF cache", "likeness verify black-forest-labs/FLUX.2-dev",
                                              "A folder, against sha256sum's output",
                                              "likeness verify ./FLUX.2-dev --manifest SHA256SUMS", NULL};
static const char *const quantize_examples[] = {
    "Four bits a weight, for diffusers too", "likeness quantize black-forest-labs/FLUX.2-dev -o FLUX.2-dev-nf4",
    "The same size, a fifth less error", "likeness quantize ./Qwen-Image-Edit-2511 --format nf4-mse -o qwen-nf4", NULL};
static const char *const lora_examples[] = {
    "Does it fit the model?", "likeness lora style.safetensors -m ./Qwen-Image-Edit-2511",
    "For programs that take no LoRA", "likeness lora merge ./FLUX.2-dev --lora style.safetensors=0.8 -o merged", NULL};
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
static const char *const bench_examples[] = {
    "How fast is this machine?",
    "likeness bench -m ./FLUX.2-dev --device cuda --size 1024x1024",
    "Is it faster now?",
    "likeness bench -m ./FLUX.2-dev --output-format json > new.json && likeness bench compare old.json new.json",
    "What would my study take and cost on eight of these?",
    "likeness bench study study.json flux.json step1x.json qwen.json --gpus 8 --price 1.8",
    NULL};
static const char *const feature_examples[] = {
    "The question",
    "likeness feature prompt",
    "Features of the sources by the model that edits with them",
    "likeness feature extract sources.jsonl -m Qwen/Qwen-Image-Edit-2511 -o features.jsonl",
    "Always a valid record",
    "likeness feature extract sources.jsonl -m black-forest-labs/FLUX.2-dev -o features.jsonl --mode forced",
    "Shorter answers",
    "likeness feature extract sources.jsonl -m Qwen/Qwen-Image-Edit-2511 -o features.jsonl --max-new-tokens 256",
    "On a GPU",
    "likeness feature extract sources.jsonl -m Qwen/Qwen-Image-Edit-2511 -o features.jsonl --device cuda",
    NULL};
static const char *const judge_examples[] = {
    "One edit",
    "likeness judge -r before.jpg -r after.png",
    "A run",
    "likeness judge --from results --study study.json > pixel.jsonl",
    "A judge that one of the editors brings",
    "likeness judge run --slot secondary -m black-forest-labs/FLUX.2-dev --pairs images.jsonl -o secondary.jsonl",
    "The same questions to a model on llama-server or vLLM",
    "likeness judge run --slot primary -m NAME --openai-url http://localhost:8080/v1 --pairs images.jsonl -o a.jsonl",
    "What a judge elsewhere is to be asked, a JSON line an output",
    "likeness judge prompt --pairs images.jsonl > ask.jsonl",
    "What it answered, and whether two such judges agree",
    "likeness judge import answers.jsonl > a.jsonl && likeness judge agreement --primary a.jsonl --secondary b.jsonl",
    NULL};
static const char *const review_examples[] = {
    "What the judges do not agree about, the largest difference first",
    "likeness review list --primary gemini.jsonl --secondary gpt.jsonl > flagged.csv",
    "One decision",
    "likeness review set flux_20s_male_black_O-01 race_drift 2 --review decisions.jsonl --by A.B. --note \"light "
    "only\"",
    "A table that somebody filled in",
    "likeness review import flagged.csv --review decisions.jsonl --by A.B.",
    "What follows from it",
    "likeness report --primary gemini.jsonl --secondary gpt.jsonl --with-review decisions.jsonl -o report",
    NULL};
static const char *const ratings_examples[] = {
    "Tables of several platforms in one form, without the platform's ids",
    "likeness ratings evaluations --ratings old.csv --ratings new.jsonl --salt \"$SALT\" > evaluations.jsonl",
    "Who took part, under the same names",
    "likeness ratings participants --participants prolific.csv --salt \"$SALT\" > participants.jsonl", NULL};
static const char *const report_examples[] = {
    "Two judges and the pictures behind the numbers",
    "likeness report --primary gemini.jsonl --secondary gpt.jsonl --images images.jsonl -o report",
    "Raters too, held to a protocol",
    "likeness report --primary gemini.jsonl --ratings exp1.jsonl --participants prolific.csv --gold gold.jsonl -o "
    "report",
    "A page that can be passed on without showing faces",
    "likeness report --scores scores.csv --images images.jsonl --audit-safe -o report",
    NULL};
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

static const char *const sample_examples[] = {"The 500 pairs for raters",
                                              "likeness sample pairs500 > pairs500.csv",
                                              "504 outputs that have scores, with the count of every factor",
                                              "likeness sample strata126 --scores scores.csv --json > sample.json",
                                              "What an earlier study drew with pandas",
                                              "likeness sample strata126 --sampler pandas",
                                              NULL};

static const char *const serve_examples[] = {"A dry run with ten simulated participants, on this machine only",
                                             "likeness serve survey study.json --pilot 10 --store dry-run",
                                             "Where participants come",
                                             "likeness serve survey study.json --port 8080",
                                             "Which of seven portraits?",
                                             "likeness serve selection pools.jsonl --by A.B.",
                                             "How far is the run?",
                                             "likeness serve study out",
                                             NULL};
static const char *const survey_examples[] = {
    "The answers as report reads them",
    "likeness survey export study.json -o answers && likeness report --ratings answers/evaluations_exp2.jsonl "
    "--participants answers/participants.jsonl -o report",
    "Who entered a code that they were not given?",
    "likeness survey codes study.json --verify codes.csv",
    "What a plan costs",
    "likeness survey cost 000",
    NULL};

const struct cli_command_info cli_commands[CLI_N_COMMANDS] = {
    [CLI_EDIT] = {.name = "edit",
                  .summary = "edit a picture by an instruction",
                  .usage = "-m MODEL [-r IMAGE]... -p TEXT -o FILE.png [options]",
                  .text =
                      "Runs the model on the given images and prompt and writes one PNG that carries its own recipe. "
                      "Equal jobs give equal bytes. The first Ctrl-C stops after the current step, the second at "
                      "once; neither leaves a file.",
                  .examples = edit_examples},
    [CLI_EMBED] = {.name = "embed",
                   .summary = "encode prompts for edits elsewhere",
                   .usage = "-m MODEL [-r IMAGE]... -p TEXT -o FILE.safetensors [options]",
                   .text =
                       "Writes what the transformer is told of the prompts, which see the images where the model's "
                       "text encoder does, and of the images. edit --prompt-embeds with the same prompt and images "
                       "makes the same picture and reads neither the text encoder's layers nor the VAE's that encode. "
                       "Takes what edit takes; seed, steps and what else comes after the prompt change nothing. The "
                       "file is of one text encoder, VAE, dtype and kind of device: another model or dtype is "
                       "refused, another device recorded.",
                   .examples = embed_examples},
    [CLI_PLAN] = {.name = "plan",
                  .summary = "say what a run needs before it starts",
                  .usage = "-m MODEL [--size WIDTHxHEIGHT] [--references N] [options]",
                  .text =
                      "Runs the same forward pass on shapes alone and prints, per stage, parameters, bytes of weights, "
                      "peak of activations and FLOPs. Reads config files only.",
                  .examples = plan_examples},
    [CLI_CHAT] = {.name = "chat",
                  .summary = "ask a vision-language model about pictures",
                  .usage = "-m MODEL [-r IMAGE]... -p TEXT [options]",
                  .text = "Answers one question with Qwen2.5-VL, a model of its own or the text encoder of an editing "
                          "model. The reply goes to stdout as it comes. The first Ctrl-C stops after the current "
                          "token, the second at once.",
                  .examples = chat_examples},
    [CLI_MODELS] = {.name = "models",
                    .summary = "list the models and their default parameters",
                    .usage = "[--json]",
                    .text = "Prints each released model that plan, edit and rerun know, with the parameters that edit "
                            "uses unless told otherwise.",
                    .examples = models_examples},
    [CLI_VERIFY] =
        {.name = "verify",
         .summary = "check a model's files against their SHA-256",
         .positional = "DIR|ORG/NAME[@REV]",
         .positional_required = true,
         .usage = "DIR|ORG/NAME[@REV] [--manifest FILE] [options]",
         .text = "Hashes every file with a known digest and prints the ones that differ. Exit code 3 if any does.",
         .examples = verify_examples},
    [CLI_QUANTIZE] =
        {.name = "quantize",
         .summary = "write a model with its transformer in four bits",
         .positional = "DIR|ORG/NAME[@REV]",
         .positional_required = true,
         .usage = "DIR|ORG/NAME[@REV] -o DIR [--format nf4|nf4-mse]",
         .text = "Makes a folder with the model's files, the transformer's weights packed as bitsandbytes stores them: "
                 "edit, plan and diffusers read it. What is computed ahead or is small stays as it is.",
         .examples = quantize_examples},
    [CLI_LORA] = {.name = "lora",
                  .summary = "say what a LoRA holds, or write a model with it",
                  .positional = "FILE|merge",
                  .positional_required = true,
                  .n_more = 1,
                  .usage = "FILE [-m MODEL] | merge MODEL --lora FILE[=SCALE]... -o DIR",
                  .text = "Prints a file's layout, ranks and scales, with a model the share of each layer that it is. "
                          "merge makes a folder with the model's files, the adapters added to its weights.",
                  .examples = lora_examples},
    [CLI_SHOW] = {.name = "show",
                  .summary = "print how a picture was made",
                  .positional = "FILE.png",
                  .positional_required = true,
                  .usage = "FILE.png [--json]",
                  .text = "Prints the recipe that edit wrote into the PNG.",
                  .examples = show_examples},
    [CLI_RERUN] = {.name = "rerun",
                   .summary = "make a picture again from its recipe",
                   .positional = "FILE.png",
                   .positional_required = true,
                   .usage = "FILE.png -m MODEL [-r IMAGE]... -o NEW.png [options]",
                   .text =
                       "Takes prompt, seed and every other setting from the PNG. The weights and the images must be "
                       "the ones recorded there: the images by their SHA-256, the weights by their identity, "
                       "a digest of names, shapes and both ends of every tensor (`verify` finds damage in between), "
                       "the configs by what is read of each file. What came of them (noise, sigmas, sizes, instruction "
                       "set, version, pixels) is compared too; exit code 6 if any of it differs.",
                   .examples = rerun_examples},
    [CLI_DEVICES] = {.name = "devices",
                     .summary = "list what can compute here",
                     .usage = "[--json]",
                     .text = "Prints each device with its instruction set, threads and memory.",
                     .examples = devices_examples},
    [CLI_SELFTEST] =
        {.name = "selftest",
         .summary = "compare a device's ops with the CPU's",
         .positional = "OP",
         .usage = "[OP] [--device NAME] [--cases N] [options] | data",
         .text = "Runs every op of the device, or the one named, on random tensors and compares the results with the "
                 "CPU's: at most 1e-10 normalised mean square error in f32 and 1e-5 in bf16, no other bit where the op "
                 "leaves no freedom, no byte written beside the output, and rows alone as among others. Exit code 5 if "
                 "an op fails. data checks the study's files, which are part of the program, by their digests.",
         .examples = selftest_examples},
    [CLI_BENCH] = {.name = "bench",
                   .summary = "time a model on this machine, stage by stage",
                   .positional = "compare|study",
                   .n_more = CLI_MAX_MORE,
                   .usage = "-m MODEL [--size WIDTHxHEIGHT] [--repetitions N] [options] | compare OLD.json NEW.json | "
                            "study STUDY.json RESULT.json... [--gpus N] [--price X]",
                   .text =
                       "Makes the same image several times and prints, of each stage, seconds, TFLOP/s, the share of "
                       "what a product of matrices reaches on the device at that moment, and memory beside what plan "
                       "says. The first image, for which weights are read, is told apart. compare gives the ratio of "
                       "two results with an interval: times of a shared machine vary. study says what a whole study "
                       "takes and costs by a result of each of its models; pictures of another size or with other "
                       "steps than those measured count in the ratio of each stage's FLOPs.",
                   .examples = bench_examples},
    [CLI_STUDY] =
        {.name = "study",
         .summary = "plan and run a whole study from one file",
         .positional =
             "new|check|jobs|plan|compare|prompts|pools|finalize|validate|run|status|prune|verify|rerun|merge|slurm",
         .positional_required = true,
         .n_more = CLI_MAX_MORE,
         .usage =
             "new [--template NAME] [-o STUDY.json] | check|jobs|plan STUDY.json | compare STUDY.json STUDY.json "
             "| prompts [STUDY.json] | "
             "pools LABELS.csv -o POOLS.jsonl | finalize POOLS.jsonl -o DIR | validate MANIFEST.json | "
             "run|rerun|slurm STUDY.json -o DIR [options] | merge STUDY.json [DIR]... -o DIR | status|prune|verify DIR",
         .text =
             "A study file names sources, prompts, models with their parameters, and experiments; new writes one to "
             "begin with. check names every cell without a source or with two, every picture that cannot be read and "
             "every model that is not there (exit code 3). jobs prints the name of each output that will be made, in "
             "fixed order. plan counts them by experiment and model and says what they take; with --device sm_80, "
             "how long on such a GPU. compare names the settings in which two studies differ. prompts prints the 20 "
             "edit prompts, the 50 sentences of experiment 3 and the study's own. pools draws seven candidates for "
             "each of the 84 cells from a table of labelled portraits (file, age, gender, race), 'serve selection' "
             "lets people choose, finalize copies the chosen ones and writes their manifest, validate checks such a "
             "set. run makes the outputs: pictures in DIR/results, a line each in DIR/manifest.jsonl, and "
             "DIR/journal.sqlite, from which the same command goes on after a kill, and after a change of the study: "
             "what is still asked for stays, the rest is kept until prune deletes it. A job that fails is tried "
             "three times, once if it would fail again (a picture that is none, NaN), and kept as failed; exit code "
             "6 if there are any. status says how far a run is; verify compares every picture with its recorded "
             "digest, and the models that are here with those that made the pictures; run, rerun and merge refuse "
             "another model under the same name. rerun makes a sample again and compares the bits. merge puts the "
             "journals of shards together, and with them runs in other folders, whose pictures it copies; slurm "
             "prints the batch script of a job array that runs them.",
         .examples = cli_study_examples},
    [CLI_FEATURE] = {.name = "feature",
                     .summary = "ask a model what edits should keep of each source",
                     .positional = "prompt|extract",
                     .positional_required = true,
                     .n_more = 2,
                     .usage = "prompt | extract SOURCES.jsonl -m MODEL -o FILE.jsonl [options]",
                     .text =
                         "prompt prints the question, byte for byte. extract asks it about every source (lines with "
                         "source_id and path) and appends a record each: seven features and the prompt made of "
                         "them, which study reads. An answer that is not valid, or names a demographic group, is "
                         "asked for again, four times in all; then the prompt is made of the features, or the "
                         "source is recorded as without one. The same command goes on after a stop. Exit code 6 if "
                         "some sources have none.",
                     .examples = feature_examples},
    [CLI_JUDGE] =
        {.name = "judge",
         .summary = "judge edits by pixels, or ask and read a judge elsewhere",
         .positional = "run|prompt|import|agreement",
         .n_more = 1,
         .usage = "--pairs FILE.jsonl | --from RUN --study FILE.json | -r SOURCE -r EDITED | run --slot NAME -m MODEL "
                  "--pairs FILE.jsonl -o FILE.jsonl | prompt ITEM | import FILE | agreement [options]",
         .text =
             "Prints a JSON line per pair: scores of edit success (1 to 4: whether anything changed, not whether it "
             "is what was asked) and skin tone, the skin's typology angle (ITA) in both pictures, mean colour change "
             "within the face region and beyond it, and SSIM. It needs no model and is a complement to judges that "
             "see, not a substitute: the face is of --faces or the middle, light counts as skin, and race, gender and "
             "age have no score. run has a model look: Qwen2.5-VL or Mistral-Small-3, which the editors bring, or with "
             "--openai-url one on a server of yours. It appends a line per item with the model's words, scores and "
             "what it thought of each score from 1 to 5; the same command goes on after a stop. For a judge that runs "
             "elsewhere, prompt prints what to ask it; import reads its answers strictly, names the ones refused and "
             "prints the others as JSON lines with the prompt's SHA-256; agreement compares two judges axis by axis, "
             "or with --check a judge with itself. Exit code 6 if some could not be judged or read, 3 if none.",
         .examples = judge_examples},
    [CLI_REVIEW] =
        {.name = "review",
         .summary = "decide where two judges disagree",
         .positional = "list|set|import",
         .positional_required = true,
         .n_more = 3,
         .usage = "list | set ITEM AXIS SCORE | import FILE [options]",
         .text =
             "list prints, as CSV, every score on which the judges are more than one level apart (or name different "
             "people in a role), with columns to fill in. set appends one decision to the file of --review; SCORE "
             "is 1 to 5, of the axis role male, female or unclear, and none withdraws what was decided. import "
             "appends those of a filled table or of another review file. The file only grows, the last decision "
             "counts, and files of scores are never changed.",
         .examples = review_examples},
    [CLI_RATINGS] =
        {.name = "ratings",
         .summary = "write raters' answers in the study's own form",
         .positional = "evaluations|participants",
         .positional_required = true,
         .usage = "evaluations --ratings FILE... | participants --participants FILE [options]",
         .text = "Reads raters' answers in any form that report takes, and prints a JSON line for each that stands, "
                 "with the field names of the study's document store: comments, times of day and whatever else has "
                 "no place there are left out. participants does the same with a platform's list. Records that are "
                 "not understood are named on stderr; exit code 6 if there are any.",
         .examples = ratings_examples},
    [CLI_REPORT] =
        {.name = "report",
         .summary = "turn scores and ratings into tables, figures and a page",
         .positional = "compare",
         .n_more = 2,
         .usage = "[--primary FILE] [--secondary FILE] [--ratings FILE]... | compare DIR_A DIR_B, -o DIR [options]",
         .text =
             "Writes DIR/report.html, one page that needs nothing else, every table as CSV, JSON, Markdown and LaTeX "
             "and every figure as SVG in DIR/tables, and the scores of all outputs in DIR/items.csv. Answers that "
             "are not understood are refused one by one, counted, and named on stderr. Equal inputs give equal "
             "bytes. compare sets two such folders beside each other, output by output, with tests of equivalence.",
         .examples = report_examples},
    [CLI_SAMPLE] =
        {.name = "sample",
         .summary = "draw the outputs that raters will see",
         .positional = "DESIGN",
         .positional_required = true,
         .usage = "strata126|strata42|pairs500|all [options]",
         .text = "strata126: four outputs of each race, gender, age group and model; strata42: eight of each race, "
                 "gender and age group; pairs500: the balanced design of 500 pairs over 84 sources, 20 prompts and "
                 "three models; all: the 100 pictures of experiment 3, where nothing is drawn. One seed gives one "
                 "sample on every machine. CSV on stdout.",
         .examples = sample_examples},
    [CLI_SERVE] =
        {.name = "serve",
         .summary = "let raters answer, choose sources or watch a run in a browser",
         .positional = "survey|selection|study",
         .positional_required = true,
         .n_more = 1,
         .usage =
             "survey STUDY.json [--store DIR] | selection POOLS.jsonl [--by NAME] | study DIR [--port N] [options]",
         .text =
             "Serves the study's pages: entry by the platform's link (PROLIFIC_PID or workerId), guide, consent, "
             "tasks, evaluation, completion code. An answer is on disk before the page calls it saved. Participants' "
             "ids are kept as salted hashes only, addresses not at all. /admin asks for the token in secrets.json, "
             "or takes it as a Bearer token. selection shows the seven candidates of each cell side by side, on this "
             "machine alone "
             "and to who has the link that it prints, and writes every choice to selection_log.jsonl beside the "
             "pools. study shows, in the same way, how far the run in DIR is: counts, rate, failures and the latest "
             "pictures; it changes nothing. It stops with the first signal.",
         .examples = serve_examples},
    [CLI_SURVEY] =
        {.name = "survey",
         .summary = "export a survey's answers, check codes, count its cost",
         .positional = "new|gold|export|codes|links|forget|pilot|hit|cost",
         .positional_required = true,
         .n_more = 2,
         .usage = "new --from RUN -o SURVEY.json | gold SOURCES -o DIR | export STUDY.json -o DIR | codes STUDY.json "
                  "--verify FILE | links "
                  "STUDY.json IDS.txt | forget STUDY.json ID | pilot STUDY.json | hit | cost [PLAN]",
         .text = "new writes the survey about a run's pictures: its pairs with and without the prompt that keeps the "
                 "person, or its edits; --sample draws some of them. gold builds items whose answers are known out of "
                 "the portraits in SOURCES, named by "
                 "their source: gold_exp1.json and gold_exp2.json, which a study in DIR names as its "
                 "\"gold\". export writes DIR/evaluations_expN.jsonl, the same as .csv, abandoned.jsonl (of "
                 "places that were given back), participants.jsonl and survey.json. codes tells which "
                 "completion codes are unknown, another participant's or used again, of lines ID,CODE. "
                 "links prints for each id the link that opens a study with \"signed_links\": true. "
                 "forget deletes all that is kept of the participant with this id, who asked for it; "
                 "export again after it. pilot fills the store with simulated participants. hit prints the "
                 "settings of a task on Mechanical Turk, cost what a plan costs: 000, 001, 003, 004, "
                 "000-packed or pilot.",
         .examples = survey_examples},
    [CLI_T2I] = {.name = "t2i",
                 .summary = "audit text-to-image models: who is depicted in negative roles",
                 .positional =
                     "prompts|reference|generate|ask|import|label|export|metrics|post-filter|embed-norm|tokens|latents",
                 .positional_required = true,
                 .usage = "prompts|reference|generate|ask|import|label|export|metrics|post-filter|embed-norm|tokens|"
                          "latents [options]",
                 .text = cli_t2i_text,
                 .examples = cli_t2i_examples},
    [CLI_STATS] =
        {.name = "stats",
         .summary = "compute a statistic or test from a CSV table",
         .positional = "TEST [FILE.csv]",
         .positional_required = true,
         .n_more = 1,
         .usage = "TEST [FILE.csv] [options]",
         .text =
             "TEST is one of: kappa, spearman, pearson, kendall, wilcoxon, fisher, mcnemar (--x --y); ppi (--x the "
             "judge, --y people, empty where nobody rated; --by the strata that were drawn from); chi2 (--x, or --x "
             "--y); kruskal, dunn, mann-whitney (--value --by); silhouette (--columns --by); describe, proportions, "
             "bootstrap (--value, or --value --by); fleiss (--item --value, or --columns); alpha, icc (--item "
             "--rater --value, or --columns); friedman (--item --by --value, or --columns); adjust (--value, the p); "
             "sample-size (--p1 --p2, no file). The first line of the file names the columns. Empty cells, NA and "
             "nan are missing: they are left out and counted. Levels are in the order of their numbers, or of their "
             "letters if one is no number.",
         .examples = stats_examples},
    [CLI_COMPLETIONS] = {.name = "completions",
                         .summary = "print shell completions",
                         .positional = "bash|zsh|fish",
                         .positional_required = true,
                         .usage = "bash|zsh|fish",
                         .text = "Prints a completion script for the shell named.",
                         .examples = completions_examples},
    [CLI_HELP] = {.name = "help",
                  .summary = "explain a command",
                  .positional = "COMMAND",
                  .usage = "[COMMAND] [--man]",
                  .text = "Prints this program's help, a command's help, or the manual page.",
                  .examples = help_examples},
};
