/* Options of study and survey, and of what a report writes besides. */
#include "tools/cli/core/options_table.h"

#define STUDY(kind_, group_, name_, value_, field, help_)                                                              \
    OPTION(kind_, group_, name_, value_, ON(CLI_STUDY), study.field, help_)

static const struct cli_option options[] = {
    {OPTION(CLI_TEXT, "Model", "devices", "LIST", ON(CLI_STUDY) | ON(CLI_JUDGE) | ON(CLI_FEATURE) | ON(CLI_T2I),
            study.devices,
            "a worker for each, with commas between: cpu, cuda, cuda:1, or 1 for cuda:1; of study run with --weights "
            "sharded one for all"),
     .otherwise = "study: its own; others: --device"},
    {STUDY(CLI_TEXT, "Input", "shard", "I/N", shard,
           "run, jobs: the I-th of N parts of the jobs; each run has a journal of its own, merge puts them together")},
    {OPTION(CLI_INT, "Model", "queue", "N", ON(CLI_STUDY) | ON(CLI_SERVE), study.queue,
            "run: jobs that pass through the stages together: all are encoded, then made, then decoded, so that "
            "weights come once for N jobs; a kill loses what they have done so far"),
     .otherwise = "16 on a GPU, 4 on the cpu", .min = 1, .max = 64},
    {STUDY(CLI_FOLDER, "Input", "prefer", "DIR", prefer,
           "merge: where two runs have different pictures of a job, those of this run count; without it nothing is "
           "merged then")},
    {STUDY(CLI_FLAG, "Input", "all", NULL, all,
           "then have the study's judges look at what was made, as `judge run --from` does")},
    {STUDY(CLI_FLAG, "Input", "retry-failed", NULL, retry_failed, "run: also what failed three times")},
    {STUDY(CLI_FLAG, "Input", "send-pictures", NULL, send_pictures,
           "run: sources may be sent to the services of hosted models: their licence and those whom they show allow "
           "it")},
    {OPTION(CLI_TEXT, "Input", "sample", "SHARE|N", ON(CLI_STUDY) | ON(CLI_JUDGE) | ON(CLI_T2I) | ON(CLI_SURVEY),
            study.sample,
            "study rerun: how many of the pictures are made again [1%]; survey new: how many raters see [all]; judge "
            "run: how many items are asked about, as 10% of them for --check [all]; t2i attention, latents: how many "
            "pictures, of each prompt its share [100]. The same ones each time")},
    {STUDY(CLI_TEXT, "Input", "container", "IMAGE", container, "k8s: an image that has `likeness`")},
    {STUDY(CLI_TEXT, "Input", "claim", "NAME", claim,
           "k8s: the persistent volume claim that study, models and run lie in [likeness]")},
    {STUDY(CLI_FLAG, "Input", "requeue", NULL, requeue,
           "verify: have the next run make again what is gone or changed")},
    {OPTION(CLI_INT, "Input", "tasks", "N", ON(CLI_STUDY) | ON(CLI_SURVEY), study.tasks, "slurm, k8s: tasks"),
     .otherwise = "4", .min = 1, .max = 10000},
    {OPTION(CLI_CHOICE, "Input", "template", "NAME", ON(CLI_STUDY), study.template,
            "new: what the file begins with: own, a study of your own; arms, the same of one checkpoint with a "
            "few-step adapter and without; the others the experiments of the portrait study and of the text-to-image "
            "study in their documents' numbers, full has exp1, exp2 and exp3"),
     .otherwise = "full", .choices = "own|arms|full|exp1|exp2|exp3|t2i"},
    {OPTION(CLI_TEXT, "Input", "allow", "KEYS", ON(CLI_STUDY) | ON(CLI_REPORT), study.allow,
            "of compare and of report --from: settings that may differ, as rounding, models.qwen.seed or steps, with "
            "commas between")},
    {OPTION(CLI_TEXT, "Input", "ids", "IDS", ON(CLI_STUDY), study.ids,
            "prompts: which, as O-01, catB_001 or W-01, or categories as O,V, with commas between"),
     .otherwise = "all"},
    {OPTION(CLI_CHOICE, "Output", "show", "NAME", ON(CLI_STUDY), study.show,
            "prompts: a table (CSV), the texts alone, the subcategories by the printed id ranges or by content, or "
            "what there is to know of the 50 sentences"),
     .otherwise = "table", .choices = "table|text|printed|content|sentences"},
    {OPTION(CLI_INT, "Server", "port", "N", ON(CLI_SERVE), survey.port,
            "where to listen; 0 takes a free one, which the first line of stdout names"),
     .otherwise = "8080", .max = 65535},
    {OPTION(CLI_TEXT, "Server", "bind", "ADDRESS", ON(CLI_SERVE), survey.bind,
            "the IPv4 address; participants come through a reverse proxy that speaks TLS"),
     .alias = "host", .otherwise = "127.0.0.1"},
    {OPTION(
         CLI_FILE, "Server", "token-file", "FILE", ON(CLI_SERVE), survey.token_file,
         "a file with the token that requests must bear, 16 to 256 characters; needed with --host beyond this machine"),
     .otherwise = "LIKENESS_IMAGES_TOKEN"},
    {OPTION(CLI_FOLDER, "Server", "store", "DIR", ON(CLI_SERVE) | ON(CLI_SURVEY), survey.store,
            "the folder of the answers and, in secrets.json, of salt, key and admin token"),
     .otherwise = "STUDY.survey"},
    {OPTION(CLI_FLAG, "Server", "preview", NULL, ON(CLI_SERVE), survey.preview,
            "show the first page only and let nobody in, whatever is missing in the study")},
    {OPTION(CLI_INT, "Server", "pilot", "N", ON(CLI_SERVE) | ON(CLI_SURVEY), survey.pilot,
            "first fill the store with N simulated participants, marked as such (of survey pilot: 30)"),
     .max = 10000},
    {OPTION(CLI_FILE, "Input", "verify", "FILE", ON(CLI_SURVEY), survey.verify,
            "completion codes to check, one a line, alone or behind an id and a comma")},
    {OPTION(CLI_FILE, "Server", "block", "FILE", ON(CLI_SERVE), survey.block,
            "who may not take part, as participants of a pilot or of an earlier study: ids, one a line, or a table "
            "with a column of them, as platforms export it")},
    {OPTION(CLI_NUMBER, "Input", "pay", "DOLLARS", ON(CLI_SURVEY), survey.pay, "for a task, to each rater"),
     .min = 0.01, .max = 10000},
    {OPTION(CLI_NUMBER, "Input", "minutes", "M", ON(CLI_SURVEY), survey.minutes, "how long a rater works on a task"),
     .min = 0.1, .max = 1000},
    {OPTION(CLI_INT, "Input", "raters", "K", ON(CLI_SURVEY), survey.raters, "how many people do each task"), .min = 1,
     .max = 1000},
    {OPTION(CLI_INT, "Input", "shared", "PERCENT", ON(CLI_SURVEY), survey.shared,
            "so much of the items is for several raters, the rest for one"),
     .min = 1, .max = 100},
    {OPTION(CLI_CHOICE, "Input", "protocol", "NAME", ON(CLI_SURVEY), survey.protocol, "questions, rules and pay"),
     .choices = "003|001|000|004"},
    {OPTION(CLI_NUMBER, "Input", "fee", "PERCENT", ON(CLI_SURVEY), survey.fee,
            "what the platform takes of pay and bonus"),
     .otherwise = "0", .min = 0, .max = 100},
    {OPTION(CLI_NUMBER, "Input", "bonus", "DOLLARS", ON(CLI_SURVEY), survey.bonus, "for a task, at most"),
     .otherwise = "0", .min = 0, .max = 10000},
    {OPTION(CLI_FILE, "Input", "platform", "FILE", ON(CLI_SURVEY), survey.platform,
            "the platform's own list of submissions: Prolific's export, or Mechanical Turk's results, as CSV")},
    {OPTION(CLI_FLAG, "Output", "comments", NULL, ON(CLI_SURVEY) | ON(CLI_RATINGS), survey.comments,
            "participants' comments too, which may name people")},
    {OPTION(CLI_FLAG, "Output", "png", NULL, ON(CLI_REPORT) | ON(CLI_T2I), report.png,
            "charts as PNG beside SVG, drawn by the machine's librsvg")},
    {OPTION(CLI_FLAG, "Output", "data-folder", NULL, ON(CLI_REPORT), report.data_folder,
            "scores, ratings and agreement once more under DIR/data, where the study's protocols look for them")},
};
const struct cli_option_part cli_options_of_study = {options, sizeof options / sizeof *options};
