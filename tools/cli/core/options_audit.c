/* Options of the audit: stats, report, judge, sample. */
#include "tools/cli/core/options_table.h"

/* An option of stats alone. */
#define STATS(kind_, group_, name_, value_, field, help_)                                                              \
    OPTION(kind_, group_, name_, value_, ON(CLI_STATS), stats.field, help_)
#define STATS_COLUMN(name_, field, help_)                                                                              \
    { STATS(CLI_TEXT, "Columns", name_, "COLUMN", field, help_) }
#define STATS_FLAG(name_, field, help_)                                                                                \
    { STATS(CLI_FLAG, "Analysis", name_, NULL, field, help_) }
#define STATS_RATE(name_, field, default_, help_)                                                                      \
    { STATS(CLI_NUMBER, "Analysis", name_, "RATE", field, help_), .otherwise = default_, .max = 1 }
/* The first of the choices is the default. */
#define STATS_CHOICE(name_, field, default_, others, help_)                                                            \
    {                                                                                                                  \
        STATS(CLI_CHOICE, "Analysis", name_, "NAME", field, help_), .otherwise = default_,                             \
                                                                    .choices = default_ "|" others                     \
    }

#define THRESHOLD(name_, field, default_, min_, max_, help_)                                                           \
    {                                                                                                                  \
        OPTION(CLI_INT, "Analysis", name_, "N", ON(CLI_REPORT), report.field, help_), .otherwise = default_,           \
                                                                                      .min = min_, .max = max_         \
    }

static const struct cli_option options[] = {
    STATS_COLUMN("value", value, "the numbers or labels; of adjust, the p"),
    {OPTION(CLI_TEXT, "Columns", "by", "COLUMN|NAME",
            ON(CLI_STATS) | ON(CLI_REVIEW) | ON(CLI_SERVE) | ON(CLI_T2I) | ON(CLI_SAMPLE), stats.by,
            "the groups; of friedman, the treatments; of review and serve selection, the name of who decides")},
    STATS_COLUMN("x", x, "the first of two columns that are paired by row"),
    STATS_COLUMN("y", y, "the second"),
    STATS_COLUMN("item", item,
                 "who or what was rated, in a table of one rating per row; of friedman, the blocks; of adjust, names "
                 "of the tests"),
    STATS_COLUMN("rater", rater, "who rated it"),
    STATS_COLUMN("cluster", cluster, "rows of one cluster are drawn together"),
    {OPTION(CLI_TEXT, "Columns", "columns", "A,B,C", ON(CLI_STATS) | ON(CLI_T2I), stats.columns,
            "one column for each rater (treatment), one row for each item (block), instead of --item, --rater and "
            "--value; of silhouette, the coordinates; of t2i latents, the features, where it is not given all columns "
            "whose first cell is a number")},
    STATS_CHOICE("weights", weights, "none", "linear|quadratic", "kappa: how far apart two labels are"),
    STATS_CHOICE("level", level, "ordinal", "nominal|interval|ratio", "alpha: what the numbers mean"),
    STATS_CHOICE("alternative", alternative, "two-sided", "less|greater", "of the first sample against the second"),
    STATS_CHOICE("zero-method", zero_method, "wilcox", "pratt|zsplit", "wilcoxon: what becomes of differences of 0"),
    STATS_CHOICE("method", method, "holm", "bonferroni|bh|by",
                 "adjust, dunn: how p is adjusted; bh and by (Benjamini and Hochberg, Benjamini and Yekutieli) control "
                 "the false discovery rate"),
    STATS_CHOICE("interval", interval, "percentile", "bca|expanded",
                 "bootstrap: which interval; with --cluster it is expanded, wider percentiles for few clusters, unless "
                 "another is named"),
    STATS_FLAG(
        "exact", exact,
        "exact p wherever the distribution is known (mann-whitney, wilcoxon; mcnemar and fisher are exact anyway)"),
    STATS_FLAG("correction", correction, "with the continuity correction (wilcoxon and mcnemar have none otherwise)"),
    STATS_FLAG("no-correction", no_correction,
               "without it (mann-whitney, chi2 of a 2 x 2 table, mcnemar, which is chi-square then)"),
    {STATS(CLI_INT, "Analysis", "resamples", "N", resamples,
           "bootstrap: how many; alpha: gives it an interval (at most 32 different values)"),
     .letter = 'B', .otherwise = "1000", .min = 1, .max = 10000000},
    STATS_RATE("null", null, "0.5", "proportions without --by: the rate to test against"),
    STATS_RATE("p1", p1, NULL, "sample-size: the first group's rate"),
    STATS_RATE("p2", p2, NULL, "sample-size: the second group's"),
    {STATS(CLI_NUMBER, "Analysis", "power", "SHARE", power, "sample-size: to reach"), .otherwise = "0.80",
     .min = 0.000001, .max = 0.999999},

    {OPTION(
        CLI_FILE, "Input", "pairs", "FILE.jsonl", ON(CLI_JUDGE) | ON(CLI_SURVEY), report.pairs,
        "lines with item_id, source and edited, beside this file: pictures to judge, or of survey gold perfect edits")},
    {OPTION(CLI_TEXT, "Input", "query", "SQL", ON(CLI_REPORT), report.query,
            "prints the rows of one SELECT over the store instead of writing a report: tables attribute, source, "
            "prompt, model, output, score, measure, outcome (item: the number of an output); views item and measured "
            "(a measure of an item, 0 or 1, beside all its factors), and for each table of rates one of its name, with "
            "a row for each output that a cell counts or not; needs --from RUN")},
    {OPTION(CLI_TEXT, "Output", "gallery", "FILE.html", ON(CLI_REPORT), report.gallery,
            "the outputs of the rows of --query as a page, beside their sources, with their scores: needs the column "
            "item_id; rows with the largest `counted` first")},
    {OPTION(CLI_TEXT, "Output", "save", "FILE.sqlite", ON(CLI_REPORT), report.save,
            "the store as a SQLite file, made anew; needs --from RUN")},
    {OPTION(CLI_FILE, "Input", "primary", "FILE", ON(CLI_REPORT) | ON(CLI_REVIEW) | ON(CLI_JUDGE), report.primary,
            "the primary judge's answers: JSON lines or a JSON array with item_id and five scores"),
     .once = true},
    {OPTION(CLI_FILE, "Input", "secondary", "FILE", ON(CLI_REPORT) | ON(CLI_REVIEW) | ON(CLI_JUDGE), report.secondary,
            "the secondary judge's"),
     .once = true},
    {OPTION(CLI_FILE, "Input", "review", "FILE.jsonl", ON(CLI_REPORT) | ON(CLI_REVIEW) | ON(CLI_JUDGE), review.file,
            "reviewers' decisions, one a line, the last one about an item's axis counts; the report then shows both, "
            "as judged and with review"),
     .alias = "with-review"},
    {OPTION(CLI_TEXT, "Output", "salt", "TEXT", ON(CLI_RATINGS), review.salt,
            "put the SHA-256 of TEXT and the rater's id in the id's place, which must be where the id is none yet; "
            "keep TEXT apart from the answers")},
    {OPTION(CLI_TEXT, "Input", "note", "TEXT", ON(CLI_REVIEW), review.note, "why the reviewer decided so")},
    {OPTION(CLI_TEXT, "Input", "time", "TIME", ON(CLI_REVIEW), review.time,
            "when, as 2026-01-17 or 2026-01-17T10:00:00Z; no clock is read")},
    {OPTION(CLI_FLAG, "Analysis", "secondary-only", NULL, ON(CLI_REPORT) | ON(CLI_REVIEW), report.secondary_only,
            "an output that the primary judge did not score has the secondary one's, flagged; otherwise it has none")},
    {OPTION(CLI_TEXT, "Input", "primary-name", "TEXT", ON(CLI_REPORT), report.primary_name,
            "the primary judge as the report names it")},
    {OPTION(CLI_TEXT, "Input", "secondary-name", "TEXT", ON(CLI_REPORT), report.secondary_name, "the secondary one")},
    {OPTION(
         CLI_FILE, "Input", "pixel", "FILE.jsonl", ON(CLI_REPORT), report.pixel,
         "what `judge` printed, in place of a primary or secondary judge that is not given; it has two of five scores"),
     .once = true},
    {OPTION(CLI_LIST, "Input", "legacy", "FILE", ON(CLI_REPORT), report.legacy,
            "answers to the older study's questions as `judge run` or `judge import` writes them: edits, roles and, of "
            "--pairwise, which arm is preferred")},
    {OPTION(CLI_FILE, "Input", "scores", "LONG.csv", ON(CLI_REPORT) | ON(CLI_REVIEW) | ON(CLI_JUDGE) | ON(CLI_SAMPLE),
            report.scores,
            "the long score table: item_id, kind, who, axis, score; of sample: what may be drawn (otherwise all 5,040 "
            "outputs of the design)"),
     .once = true},
    {OPTION(CLI_LIST, "Input", "ratings", "FILE", ON(CLI_REPORT) | ON(CLI_RATINGS), report.ratings,
            "raters' answers: CSV, JSON lines or a JSON array")},
    {OPTION(CLI_LIST, "Input", "from", "DIR",
            ON(CLI_REPORT) | ON(CLI_JUDGE) | ON(CLI_SURVEY) | ON(CLI_REVIEW) | ON(CLI_SAMPLE) | ON(CLI_RATINGS),
            report.runs,
            "a folder that `study run` filled; of judge its pictures are judged; of survey new raters see them; of "
            "report they are shown, and its study says how to analyse, how many outputs there should be, and with "
            "which settings: folders and outputs that differ in one are refused")},
    {OPTION(CLI_FILE, "Input", "study", "FILE.json", ON(CLI_REPORT) | ON(CLI_JUDGE), report.study_file,
            "the study that the runs of --from are of, to find the sources' pictures")},
    {OPTION(CLI_FILE, "Input", "participants", "FILE", ON(CLI_REPORT) | ON(CLI_RATINGS), report.participants,
            "the rating platform's list of participants"),
     .once = true},
    {OPTION(CLI_TEXT, "Input", "completion-code", "TEXT", ON(CLI_REPORT) | ON(CLI_RATINGS), report.completion_code,
            "the code that participants had to enter; without it any counts")},
    {OPTION(CLI_FILE, "Input", "gold", "FILE", ON(CLI_REPORT) | ON(CLI_RATINGS), report.gold,
            "expected answers of the attention checks"),
     .once = true},
    {OPTION(CLI_FILE, "Input", "feature-prompts", "FILE", ON(CLI_REPORT), report.feature_prompts,
            "records of the sources' features with the prompt made of them: JSON lines, a JSON array or CSV")},
    {OPTION(CLI_TEXT, "Output", "rejects", "FILE",
            ON(CLI_REPORT) | ON(CLI_RATINGS) | ON(CLI_JUDGE) | ON(CLI_REVIEW) | ON(CLI_FEATURE), report.rejects,
            "all records that were refused: a JSON line each with refused_in (the file), line, item and reason; no "
            "file where there are none")},
    {OPTION(CLI_TEXT, "Output", "sources", "IDS", ON(CLI_REPORT), report.sources,
            "whose feature prompts are shown: ids with commas between"),
     .otherwise = "Black_Female_30s,Indian_Male_50s,White_Male_60s"},
    {OPTION(CLI_INT, "Analysis", "gold-tolerance", "LEVELS", ON(CLI_REPORT) | ON(CLI_RATINGS), report.gold_tolerance,
            "how far an answer on five levels may lie from the expected one; answers in words must be equal"),
     .otherwise = "1", .min = 0, .max = 4},
    {OPTION(CLI_FILE, "Input", "images", "FILE.jsonl", ON(CLI_REPORT), report.images,
            "lines with item_id, edited and perhaps source: pictures for the page, beside this file")},
    {OPTION(CLI_CHOICE, "Analysis", "protocol", "NAME", ON(CLI_REPORT), report.protocol,
            "rules that raters are held to"),
     .otherwise = "what the ratings say, or the study, or 003", .choices = "003|001|000|004"},
    {OPTION(CLI_CHOICE, "Analysis", "qc-policy", "NAME", ON(CLI_REPORT) | ON(CLI_SURVEY), report.qc_policy,
            "which broken rules exclude a rater"),
     .alias = "policy", .otherwise = "the protocol's", .choices = "any|two_flags|none|completion"},
    {OPTION(CLI_CHOICE, "Analysis", "rounding", "NAME", ON(CLI_REPORT) | ON(CLI_REVIEW), report.rounding,
            "of the mean of two judges that lies between two scores"),
     .otherwise = "half_even", .choices = "half_even|half_up|half_down"},
    {OPTION(CLI_CHOICE, "Analysis", "prompts-as", "NAME", ON(CLI_REPORT), report.prompts_as,
            "whether findings are about prompts like the study's, or fixed: about these alone"),
     .otherwise = "sample", .choices = "sample|fixed"},
    {OPTION(CLI_CHOICE, "Analysis", "subcategory", "NAME", ON(CLI_REPORT), report.subcategory,
            "of prompts: by the printed id ranges, by what they ask for, or both"),
     .otherwise = "both", .choices = "both|printed|content"},
    {OPTION(CLI_CHOICE, "Analysis", "score-source", "NAME", ON(CLI_REPORT), report.score_source,
            "whose scores the tables of pairs take; the raters' where no judge scored"),
     .otherwise = "judge", .choices = "judge|human"},
    {OPTION(CLI_FLAG, "Analysis", "drifted-only", NULL, ON(CLI_REPORT), report.drifted_only,
            "the tables of pairs take those alone whose baseline drifted in race or gender")},
    THRESHOLD("threshold-success", success, "4", 2, 5, "edit success at least N counts as success"),
    THRESHOLD("threshold-soft-erasure", soft_erasure, "2", 1, 4, "edit success at most N counts as soft erasure"),
    THRESHOLD("threshold-drift", drift, "3", 2, 5, "race or gender drift at least N counts as changed"),
    THRESHOLD("threshold-identity", identity, "4", 2, 5, "race or gender drift at least N counts as another person"),
    {OPTION(CLI_CHOICE, "Analysis", "unclear", "NAME", ON(CLI_REPORT), report.unclear,
            "answers about an occupation that name nobody: left out, worth one half, or not followed"),
     .otherwise = "exclude", .choices = "exclude|half|nonadherent"},
    {OPTION(CLI_INT, "Analysis", "bootstrap", "N", ON(CLI_REPORT) | ON(CLI_T2I), report.bootstrap,
            "resamples for intervals: of the 84 sources, of t2i of pictures or seeds, and as many permutations"),
     .otherwise = "1000", .min = 10, .max = 1000000},
    {OPTION(CLI_INT, "Analysis", "study-seed", "N",
            ON(CLI_SURVEY) | ON(CLI_REPORT) | ON(CLI_STATS) | ON(CLI_SAMPLE) | ON(CLI_T2I) | ON(CLI_STUDY),
            report.study_seed, "seed of the resamples and samples"),
     .otherwise = "42", .min = 0, .max = 0x1p63},
    {OPTION(CLI_NUMBER, "Analysis", "alpha", "A", ON(CLI_REPORT) | ON(CLI_STATS) | ON(CLI_T2I), report.alpha,
            "error rate of tests; intervals are at 1 - A"),
     .otherwise = "0.05", .min = 0.0001, .max = 0.5},
    {OPTION(CLI_NUMBER, "Analysis", "margin", "SHARE", ON(CLI_REPORT), report.margin,
            "of compare: rates that differ by less are called equivalent"),
     .otherwise = "0.05", .min = 0.0001, .max = 1},
    {OPTION(CLI_INT, "Analysis", "nominal", "N", ON(CLI_REPORT), report.nominal, "outputs that the design asks for"),
     .otherwise = "those in the inputs", .min = 1, .max = 100000000},
    {OPTION(CLI_TEXT, "Output", "title", "TEXT", ON(CLI_REPORT) | ON(CLI_T2I), report.title, "the page's title"),
     .otherwise = "one that says what it is"},
    {OPTION(CLI_TEXT, "Output", "run", "NAME", ON(CLI_REPORT) | ON(CLI_T2I), report.run,
            "the run as every file names it"),
     .otherwise = "the title"},
    {OPTION(CLI_TEXT, "Output", "date", "TEXT", ON(CLI_REPORT) | ON(CLI_T2I), report.date,
            "printed as it is; no clock is read")},
    {OPTION(CLI_TEXT, "Output", "label", "TEXT", ON(CLI_REPORT) | ON(CLI_T2I), report.label,
            "a sentence on top of the page: what the numbers stand for")},
    {OPTION(CLI_TEXT, "Output", "figure-prompt", "ID", ON(CLI_REPORT), report.figure_prompt,
            "the prompt that Figure 6 shows across the races: O-01 to O-10, V-01 to V-10"),
     .otherwise = "what most races and models have outputs for"},
    {OPTION(CLI_CHOICE, "Output", "figure-gender", "NAME", ON(CLI_REPORT), report.figure_gender,
            "and the gender of its sources"),
     .otherwise = "the same", .choices = "Male|Female"},
    {OPTION(CLI_CHOICE, "Output", "figure-age", "NAME", ON(CLI_REPORT), report.figure_age, "and their age"),
     .otherwise = "the same", .choices = "20s|30s|40s|50s|60s|70plus"},
    {OPTION(CLI_LIST, "Input", "pictures", "DIR", ON(CLI_REPORT), report.pictures,
            "a folder, beside those of --images, --from and --study, whose pictures may be shown")},
    {OPTION(CLI_FLAG, "Output", "embed-images", NULL, ON(CLI_REPORT), report.embed_images,
            "pictures within the page, reduced, instead of links")},
    {OPTION(CLI_FLAG, "Output", "audit-safe", NULL, ON(CLI_REPORT), report.audit_safe,
            "the same with faces under a mosaic, and no link to a picture")},
};
const struct cli_option_part cli_options_of_audit = {options, sizeof options / sizeof *options};
