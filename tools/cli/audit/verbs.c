/* The verbs of feature, judge, review, ratings and report: what each reads and says. */
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"

#define MACHINE "device dtype threads vram host-ram"
/* What a run says to verbs that read files about its outputs. */
#define ITEMS_OF_RUN                                                                                                   \
    { "from", "RUN", "a folder that `study run` filled, whose outputs these are: needed where the study is your own" }
#define JUDGES_OF_RUN                                                                                                  \
    {                                                                                                                  \
        "from", "RUN",                                                                                                 \
            "a folder that `study run` filled, whose outputs these are; without scores of yours those in RUN/judges "  \
            "are read"                                                                                                 \
    }

const struct cli_verb cli_feature_verbs[] = {
    {VERB("prompt", cli_feature_prompt, "print the question about a source, byte for byte"), .options = ""},
    {VERB("extract", cli_feature_extract, "ask a model what edits should keep of each source"),
     .operands = "SOURCES.jsonl",
     .options =
         "model! output! rejects mode max-new-tokens openai-url requests-per-minute follow-links devices " MACHINE,
     .text =
         "Asks about every source (lines with source_id and path) and appends a record each: seven features and the "
         "prompt made of them, which study reads. An answer that is not valid, or names a demographic group, is asked "
         "for again, four times in all; then the prompt is made of the features, or the source is recorded as without "
         "one. The same command goes on after a stop. Exit code 6 if some sources have none.",
     .examples = EXAMPLES(
         "By the model that edits with them",
         "likeness feature extract sources.jsonl -m Qwen/Qwen-Image-Edit-2511 -o features.jsonl",
         "Always a valid record",
         "likeness feature extract sources.jsonl -m black-forest-labs/FLUX.2-dev -o features.jsonl --mode forced",
         "Shorter answers",
         "likeness feature extract sources.jsonl -m Qwen/Qwen-Image-Edit-2511 -o features.jsonl --max-new-tokens 256",
         "On two GPUs",
         "likeness feature extract sources.jsonl -m Qwen/Qwen-Image-Edit-2511 -o features.jsonl --devices 0,1"),
     .says = SAYS({"output", "FILE.jsonl", "a file to which a line a source is added"},
                  {"mode", NULL, "the model writes what it likes, or fills in a form, which is always valid"})},
    {0}};

const struct cli_verb cli_judge_verbs[] = {
    {VERB("", cli_judge_pixels, "judge edits by their pixels, without a model"),
     .options = "image pairs from study faces",
     .text =
         "Prints a JSON line per pair: scores of edit success (1 to 4: whether anything changed, not whether it is "
         "what was asked) and skin tone, the skin's typology angle (ITA) in both pictures, mean colour change within "
         "the face region and beyond it, and SSIM. It needs no model and is a complement to judges that see, not a "
         "substitute: the face is of --faces or the middle, light counts as skin, and race, gender and age have no "
         "score.",
     .says = SAYS({"image", NULL, "twice: the source and the edited picture"},
                  {"from", "RUN", "a folder that `study run` filled; its pictures are judged"},
                  {"faces", NULL,
                   "weights of the face detector YuNet, under the names of its authors' state: the face that it finds "
                   "in the source is the region, where it finds none the middle"})},
    {VERB("run", cli_judge_run, "have a model look at edits and score them"),
     .options = "slot model output rejects pairs from study sample devices judge-prompt check mode batch pairwise "
                "max-new-tokens "
                "openai-url requests-per-minute follow-links " MACHINE,
     .text =
         "The model is Qwen2.5-VL or Mistral-Small-3, which the editors bring, or with --openai-url one on a server of "
         "yours. Appends a line per item with the model's words, scores and what it thought of each score from 1 to "
         "5; the same command goes on after a stop. With --from alone the judges that the study names are asked, and "
         "their "
         "answers lie in RUN/judges, where report finds them. Exit code 6 if some could not be judged, 3 if none.",
     .examples =
         EXAMPLES("The judges that the study names", "likeness judge run --from out --devices 0,1,2,3",
                  "A judge that one of the editors brings",
                  "likeness judge run --slot secondary -m black-forest-labs/FLUX.2-dev --from out -o secondary.jsonl",
                  "The same questions to a model on llama-server or vLLM",
                  "likeness judge run --slot primary -m NAME --openai-url http://localhost:8080/v1 --pairs "
                  "images.jsonl -o a.jsonl"),
     .says =
         SAYS({"from", "RUN",
               "a folder that `study run` filled; its pictures are judged, without --model by the judges of its study"},
              {"output", "FILE.jsonl", "a file to which a line an item is added"},
              {"sample", NULL, "how many items are asked about, as 10% for --check [default: all]"},
              {"devices", NULL,
               "a worker for each, with commas between: cpu, cuda, cuda:1, or 1 for cuda:1 [default: --device]"},
              {"check", NULL,
               "ask as a check of the judge, whose answers are no scores: with the edited picture first, with the "
               "pictures' places changed, or again with other seeds"},
              {"slot", NULL, "which of the study's two judges the model is"},
              {"mode", NULL,
               "the model writes what it likes, three attempts at most; or it fills in a form, which is always valid; "
               "or it gives scores alone. Scores of different modes do not belong together"},
              {"max-new-tokens", NULL, "tokens of the reply at most [default: 1500]"},
              {"pairwise", NULL,
               "of --judge-prompt legacy: which of the two arms' pictures preserves the person better, asked in both "
               "orders"},
              {"batch", NULL, "answers at a time; none depends on it"})},
    {VERB("prompt", cli_judge_prompt, "print what a judge elsewhere is to be asked"), .operands = "[ITEM]",
     .options = "pairs from study json judge-prompt pairwise",
     .text = "Of one item the question, of --pairs or --from a JSON line an output.",
     .examples = EXAMPLES("A JSON line an output", "likeness judge prompt --pairs images.jsonl > ask.jsonl"),
     .says = SAYS({"from", "RUN", "a folder that `study run` filled; of each of its outputs"})},
    {VERB("import", cli_judge_import, "read a judge's answers strictly and print them as JSON lines"),
     .operands = "FILE", .options = "pairs from judge-prompt pairwise rejects",
     .text = "Names the answers that are refused; the others carry the prompt's SHA-256. Exit code 6 if some could not "
             "be read, 3 if none.",
     .says = SAYS(ITEMS_OF_RUN)},
    {VERB("agreement", cli_judge_agreement, "compare two judges axis by axis, or a judge with itself"),
     .options = "from primary secondary scores review check json",
     .examples = EXAMPLES("Do two judges agree?", "likeness judge agreement --primary a.jsonl --secondary b.jsonl"),
     .says = SAYS(JUDGES_OF_RUN, {"check", NULL, "--secondary is a `judge run` of the same judge with this --check"},
                  {"review", NULL, "reviewers' decisions, one a line"},
                  {"scores", NULL, "the long score table: item_id, kind, who, axis, score"})},
    {0}};

const struct cli_verb cli_review_verbs[] = {
    {VERB("list", cli_review_list, "print every score on which the judges disagree, with columns to fill in"),
     .options = "from primary secondary scores secondary-only rounding review json",
     .text = "CSV, the largest difference first: scores more than one level apart, and roles in which the judges name "
             "different people.",
     .examples = EXAMPLES("What the judges do not agree about",
                          "likeness review list --primary a.jsonl --secondary b.jsonl > flagged.csv"),
     .says = SAYS(JUDGES_OF_RUN, {"review", NULL, "decisions that there are already"},
                  {"scores", NULL, "the long score table: item_id, kind, who, axis, score"})},
    {VERB("set", cli_review_set, "add one decision to a review file"), .operands = "ITEM AXIS SCORE",
     .options = "review! by! from note time",
     .text = "SCORE is 1 to 5, of the axis role male, female or unclear; none withdraws what was decided. The file "
             "only grows, and the last decision counts.",
     .examples = EXAMPLES("One decision", "likeness review set flux_20s_male_black_O-01 race_drift 2 --review "
                                          "decisions.jsonl --by A.B. --note \"light only\""),
     .says = SAYS({"by", "NAME", "who decides"}, ITEMS_OF_RUN, {"review", NULL, "the file of decisions, one a line"})},
    {VERB("import", cli_review_import, "add the decisions of a filled table or of another review file"),
     .operands = "FILE", .options = "review! by from time rejects",
     .examples = EXAMPLES("A table that somebody filled in",
                          "likeness review import flagged.csv --review decisions.jsonl --by A.B."),
     .says = SAYS({"by", "NAME", "who decides, where the file does not say it"}, ITEMS_OF_RUN,
                  {"review", NULL, "the file of decisions, one a line"})},
    {0}};

const struct cli_verb cli_ratings_verbs[] = {
    {VERB("evaluations", cli_ratings, "print raters' answers, a JSON line each, in the study's own form"),
     .options = "ratings! from gold gold-tolerance salt comments rejects",
     .examples = EXAMPLES(
         "Tables of several platforms in one form, without the platform's ids",
         "likeness ratings evaluations --ratings old.csv --ratings new.jsonl --salt \"$SALT\" > evaluations.jsonl"),
     .says = SAYS(ITEMS_OF_RUN,
                  {"ratings", NULL, "raters' answers: CSV, JSON lines or a JSON array; give it again for more"})},
    {VERB("participants", cli_ratings, "print who took part, a JSON line each, under the same names"),
     .options = "participants! completion-code salt rejects",
     .examples =
         EXAMPLES("Who took part, under the same names",
                  "likeness ratings participants --participants prolific.csv --salt \"$SALT\" > participants.jsonl")},
    {0}};

const struct cli_verb cli_sample_verbs[] = {
    {VERB("", cli_sample, "draw the outputs that raters will see"), .operands = "DESIGN",
     .options = "from by each scores sampler study-seed json",
     .text =
         "DESIGN is strata: so many outputs of each combination of the study's attributes and models; or all: every "
         "one. Of the portrait study, with --from or as the documents ask for it, also strata126: four outputs of "
         "each race, gender, age group and model; strata42: eight of each race, gender and age group; pairs500: the "
         "balanced design of 500 pairs over 84 sources, 20 prompts and three models; without --from all are the "
         "100 pictures of experiment 3. One seed gives one sample on every machine. CSV on stdout, which `survey "
         "new --sample` reads.",
     .examples = EXAMPLES("Four outputs of each attribute and model of a run, for raters",
                          "likeness sample strata --from run > drawn.csv", "Ten of each model and category",
                          "likeness sample strata --from run --by model,category --each 10 > drawn.csv",
                          "The 500 pairs for raters", "likeness sample pairs500 > pairs500.csv",
                          "504 outputs that have scores, with the count of every factor",
                          "likeness sample strata126 --scores scores.csv --json > sample.json",
                          "What an earlier study drew with pandas", "likeness sample strata126 --sampler pandas"),
     .says =
         SAYS({"from", "RUN",
               "a folder that `study run` filled: what it made is drawn from. Without it: what the documents ask for"},
              {"by", "FACTOR,...",
               "strata: what they differ in, of the study's attributes, model, category and prompt [all attributes, "
               "and model]"},
              {"scores", NULL,
               "the long score table: item_id, kind, who, axis, score; what has no judge's score is not drawn"})},
    {0}};

const struct cli_verb cli_report_verbs[] = {
    {VERB("", cli_report, "turn scores and ratings into tables, figures and a page"),
     .options =
         "output rejects query gallery json save primary secondary review secondary-only primary-name secondary-name "
         "pixel legacy "
         "scores ratings from study participants completion-code gold feature-prompts sources gold-tolerance "
         "images protocol qc-policy rounding prompts-as subcategory score-source drifted-only threshold-success "
         "threshold-soft-erasure threshold-drift threshold-identity unclear bootstrap study-seed alpha nominal "
         "title run date label figure-prompt figure-gender figure-age pictures embed-images audit-safe png "
         "data-folder manifest allow overwrite",
     .text =
         "Writes DIR/report.html, one page that needs nothing else, every table as CSV, JSON, Markdown and LaTeX and "
         "every figure as SVG in DIR/tables, and the scores of all outputs in DIR/items.csv. Answers that are not "
         "understood are refused one by one, counted, and named on stderr. Equal inputs give equal bytes.",
     .examples =
         EXAMPLES("Two judges and the pictures behind the numbers",
                  "likeness report --primary gemini.jsonl --secondary gpt.jsonl --images images.jsonl -o report",
                  "Raters too, held to a protocol",
                  "likeness report --primary gemini.jsonl --ratings exp1.jsonl --participants prolific.csv --gold "
                  "gold.jsonl -o report",
                  "A page that can be passed on without showing faces",
                  "likeness report --scores scores.csv --images images.jsonl --audit-safe -o report",
                  "The pictures behind a cell of a study of one's own (each table of the page says its command)",
                  "likeness report --from RUN --query \"SELECT item_id, counted FROM rates_by_model WHERE row = 'Edit "
                  "success' AND column = 'flux'\" --gallery pictures.html"),
     .says = SAYS(
         {"output", "DIR", "the folder, made when it is missing"},
         {"from", "RUN",
          "a folder that `study run` filled: its pictures are shown, and its study says how to analyse, how many "
          "outputs there should be, and with which settings; folders and outputs that differ in one are refused. "
          "Without scores of yours those in RUN/judges are read"},
         {"allow", NULL,
          "settings in which runs of --from may differ, as rounding, models.qwen.seed or steps, with commas between"},
         {"manifest", NULL, "the chosen sources with the pool that each is from"},
         {"scores", NULL, "the long score table: item_id, kind, who, axis, score"})},
    {VERB("compare", cli_report_compare, "set two reports beside each other, output by output"), .operands = "DIR DIR",
     .options = "output! allow alpha margin title date png overwrite",
     .text =
         "With tests of equivalence. Of reports of a study of your own, by model, arm and attribute, what is refused "
         "too; --margin is not used there.",
     .says = SAYS({"output", "DIR", "the folder, made when it is missing"},
                  {"allow", NULL, "settings in which the two may differ, with commas between"})},
    {0}};
