/* The verbs of serve and survey: what each reads and says. */
#include "tools/cli/cli.h"
#include "tools/cli/images/api.h"
#include "tools/cli/study/runner.h"
#include "tools/cli/survey/http.h"

const struct cli_verb cli_serve_verbs[] = {
    {VERB("survey", cli_serve, "serve a survey's pages to raters"), .operands = "SURVEY.json",
     .options = "port bind store block preview pilot",
     .text = "Entry by the platform's link (PROLIFIC_PID or workerId), guide, consent, tasks, evaluation, completion "
             "code. An answer is on disk before the page calls it saved. Participants' ids are kept as salted hashes "
             "only, addresses not at all. /admin asks for the token in secrets.json, or takes it as a Bearer token. "
             "Stops with the first signal.",
     .examples = EXAMPLES("A dry run with ten simulated participants, on this machine only",
                          "likeness serve survey survey.json --pilot 10 --store dry-run", "Where participants come",
                          "likeness serve survey survey.json --port 8080"),
     .says = SAYS({"pilot", NULL, "first fill the store with N simulated participants, marked as such"})},
    {VERB("selection", study_serve_selection, "let people choose each source's portrait out of seven"),
     .operands = "POOLS.jsonl", .options = "port bind by",
     .text = "Shows the candidates of each cell side by side, on this machine alone and to who has the link that it "
             "prints, and writes every choice to selection_log.jsonl beside the pools. Stops with the first signal.",
     .examples = EXAMPLES("Which of seven portraits?", "likeness serve selection pools.jsonl --by A.B."),
     .says = SAYS({"by", "NAME", "who chooses"})},
    {VERB("study", study_serve_run, "show how far a run is: counts, rate, failures and the latest pictures"),
     .operands = "DIR", .options = "port bind",
     .text = "On this machine alone and to who has the link that it prints. It changes nothing and stops with the "
             "first signal. Where `study run` has --preview DIR/preview.png, the page shows what is in hand, too.",
     .examples = EXAMPLES("How far is the run?", "likeness serve study out")},
    {VERB("images", cli_serve_images, "answer programs: a model behind the OpenAI images API"),
     .options =
         "model! bind port token-file queue allow-steps jobs-per-visit follow-links @request dtype device threads "
         "vram weights quantize transformer lora variant gemm conv rng exif-transpose host-ram",
     .text = "POST /v1/images/generations (JSON) and /v1/images/edits (a form with image or image[], and mask), GET "
             "/v1/models and /health. Requests are made one after another; a picture has the bytes that `edit` writes, "
             "its recipe inside. Beside prompt, n, size and model a request may have the parameters of recipes, as "
             "seed, steps and guidance_scale; what the command line gives holds where a request says nothing. Pictures "
             "are kept nowhere. Stops with the first signal.",
     .examples = EXAMPLES(
         "A model for programs on this machine", "likeness serve images -m black-forest-labs/FLUX.2-dev --device cuda",
         "For others, behind a proxy that speaks TLS",
         "openssl rand -hex 32 >token && likeness serve images -m DIR --host 10.0.0.5 --token-file token", "Ask it",
         "likeness t2i ask --images-url http://127.0.0.1:8080/v1 -m FLUX.2-dev --seed-field --csv table.csv --seeds "
         "0:9 -o out"),
     .says = SAYS({"bind", "ADDRESS", "the IPv4 address; beyond this machine a token is needed"},
                  {"queue", NULL, "requests that wait while one is made; more are sent away (429) [default: 8]"},
                  {"jobs-per-visit", NULL,
                   "of a request's pictures (n), how many pass through a layer of the transformer together; more "
                   "memory, the same bits"})},
    {0}};

const struct cli_verb cli_survey_verbs[] = {
    {VERB("new", survey_new, "write the survey about a run's pictures"),
     .options = "from! output! sample protocol tasks raters shared pilot pay minutes overwrite",
     .text = "Raters see the pairs with and without the prompt that keeps the person, or, where there are none, the "
             "edits, or pictures of two people. A task has as many as the protocol prints: 50 pairs (003), 50, 30 or "
             "40 (001), 40 or 25 with attention checks (000, 004). Three people do each; of 001 20 % of the items are "
             "for three, the others for one. Three or four practice items are made of the sources. gold_exp1.json, "
             "gold_exp2.json or gold_exp3.json of `survey gold`, where it is in the survey's folder already, becomes "
             "attention checks, four a task of protocols 000 and 004, else two.",
     .examples = EXAMPLES("Attention checks, the survey, and its pages",
                          "likeness survey gold --from out -o survey && likeness survey new --from out -o "
                          "survey/survey.json && likeness serve survey survey/survey.json"),
     .says = SAYS({"from", "RUN", "a folder that `study run` filled"}, {"output", "SURVEY.json", "the survey's file"},
                  {"sample", "SHARE|N|FILE",
                   "what raters see [all]: so many, the same ones each time, or what `likeness sample --from RUN` drew "
                   "into the file: pairs if each of it has one"},
                  {"protocol", NULL, "questions, rules and pay [default: the study's \"human\"; of edits 001 for 003]"},
                  {"tasks", NULL, "how many tasks [default: as many as the protocol needs]"},
                  {"raters", NULL, "how many people rate an item, or with --shared a shared one [default: 3]"},
                  {"shared", NULL, "so much of the items is for several people, the rest for one [001: 20]"},
                  {"pilot", "N", "a pilot: two tasks, both for each of N people"},
                  {"pay", NULL, "for a task, as consent says it [default: the protocol's]"},
                  {"minutes", NULL, "how long a task takes, as consent says it [default: the protocol's]"},
                  {"overwrite", NULL, "replace a survey that is there, unless people have answered it"})},
    {VERB("gold", survey_gold, "build items whose answers are known"), .operands = "[SOURCES]",
     .options = "output! from pairs study-seed",
     .text = "Out of the sources and prompts of the study of --from, whatever its attributes are, or of the portraits "
             "in the folder SOURCES, named as White_Male_20s.png: gold_exp1.json (50), gold_exp2.json (30) and, of the "
             "portrait study, gold_exp3.json (5), which a survey in DIR names as its \"gold\". What is to be seen is "
             "known: the picture is the source itself, a request that was not carried out, or blurred; and, where the "
             "study has an attribute \"race\" or \"gender\", a person of another one.",
     .examples =
         EXAMPLES("Attention checks about a run, beside the survey that they are for",
                  "likeness survey gold --from out -o survey && likeness survey new --from out -o survey/survey.json"),
     .says = SAYS({"output", "DIR", "the folder of the items"},
                  {"from", "RUN", "a folder that `study run` filled, or a study file"},
                  {"pairs", NULL, "perfect edits: lines with item_id, source and edited, beside this file"})},
    {VERB("export", cli_survey, "write a survey's answers as report reads them"), .operands = "SURVEY.json",
     .options = "output! store comments",
     .text = "Writes DIR/evaluations_expN.jsonl, the same as .csv, abandoned.jsonl (of places that were given back), "
             "participants.jsonl and survey.json.",
     .examples = EXAMPLES("The answers, and a report of them",
                          "likeness survey export survey.json -o answers && likeness report --ratings "
                          "answers/evaluations_exp2.jsonl --participants answers/participants.jsonl -o report"),
     .says = SAYS({"output", "DIR", "the folder of the export"})},
    {VERB("codes", cli_survey, "tell which completion codes are unknown, another participant's or used again"),
     .operands = "SURVEY.json", .options = "verify! store",
     .text = "FILE is the platform's own table of submissions, or a list of codes, each alone or as ID,CODE. Whom to "
             "pay is "
             "told by `survey pay`.",
     .says = SAYS({"verify", NULL, "the codes, one a line, alone or as ID,CODE"})},
    {VERB("pay", cli_survey, "list whom the platform is to approve, reject and pay a bonus"), .operands = "SURVEY.json",
     .options = "platform! qc-policy output store",
     .text = "Ids come from the platform's list, are hashed with the store's salt and looked up. A valid completion "
             "code approves. Only answers that break the policy's rules reject, with the reason: `any`, one excluding "
             "rule; `two_flags`, two rules, or attention checks alone; `none` and `completion`, nobody. No code, an "
             "unknown one, another participant's and a second submission are for you to decide. Bonuses: protocol 000 "
             "$0.25 for at least 90 % of the attention checks, 001 $1.00 for more than 90 %; a submission that was "
             "approved before is for you to decide, so that no bonus is paid twice. DIR gets, for Prolific, "
             "approve.csv, bonus.csv, reject.csv and by_hand.csv; for Mechanical Turk review.csv, bonus.csv and "
             "by_hand.csv.",
     .examples =
         EXAMPLES("What would be paid, and the lists to upload",
                  "likeness survey pay survey.json --platform prolific_export.csv --policy any",
                  "The same for Mechanical Turk, as files",
                  "likeness survey pay survey.json --platform Batch_1_results.csv --policy two_flags -o payment"),
     .says = SAYS({"qc-policy", NULL, "for which broken rules answers are rejected"},
                  {"output", "DIR", "the folder of the lists, which hold clear ids [default: none is written]"})},
    {VERB("links", cli_survey, "print for each id the link that opens a survey with \"signed_links\": true"),
     .operands = "SURVEY.json IDS.txt", .options = "store"},
    {VERB("forget", cli_survey, "delete all that is kept of the participant with this id, who asked for it"),
     .operands = "SURVEY.json ID", .options = "store", .text = "Export again after it."},
    {VERB("pilot", cli_survey, "fill the store with simulated participants"), .operands = "SURVEY.json",
     .options = "pilot store",
     .text =
         "For a dry run: give it a --store of its own. Their exported answers say \"simulated\": true, and a report "
         "of them says so first. A store that people have answered in is left alone.",
     .says = SAYS({"pilot", NULL, "how many [default: 30, or as many as there are places]"})},
    {VERB("hit", survey_hit, "print the settings of a task on Mechanical Turk"), .options = ""},
    {VERB("cost", survey_cost, "print what a plan costs, printed or with numbers of your own"), .operands = "[PLAN]",
     .options = "tasks raters pay minutes fee bonus",
     .text = "PLAN is 000, 001, 003, 004, 000-packed or pilot [default: 003]. With numbers of your own each task is "
             "paid once per rater. Pay below the minimum wage of $7.25 an hour is told.",
     .examples = EXAMPLES("What a plan costs", "likeness survey cost 000",
                          "Ten tasks of half an hour, three raters each, at $6, with a fee of a third",
                          "likeness survey cost --tasks 10 --raters 3 --pay 6 --minutes 30 --fee 33.3"),
     .says = SAYS({"tasks", NULL, "how many tasks the items are cut into [default: the plan's]"})},
    {0}};
