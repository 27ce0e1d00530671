/* What feature, judge, review, ratings, sample and report share. */
#pragma once

#include <stdbool.h>

#include "engine/base/names.h"
#include "engine/base/store.h"
#include "engine/base/text.h"
#include "eval/design/study.h"
#include "eval/human/ratings.h"
#include "eval/intake/audit.h"
#include "eval/judge/prompt.h"
#include "eval/judge/review.h"
#include "eval/judge/seeing.h"
#include "eval/judge/server.h"
#include "eval/report/report.h"
#include "eval/scores/dataset.h"
#include "eval/scores/rejects.h"
#include "eval/study/sampling.h"
#include "tools/cli/core/options.h"

cli_action cli_judge_pixels, cli_judge_agreement, cli_review_list;
cli_action cli_judge_study;  /* the judges that the study of --from names; answers in RUN/judges/SLOT.jsonl */
cli_action cli_judge_run;    /* by a model in this process */
cli_action cli_judge_prompt; /* what to ask about an item, or about all */
cli_action cli_judge_import; /* its answers, read strictly and written plainly */
/* The answers of a slot's judge that lie there; lk_malloc'ed. NULL: there are none. */
char *cli_judge_answers_found(const char *run, int slot);
/* The user's server that is asked in place of a model here. Closed with lk_judge_server_close. */
enum lk_code cli_judge_server(const struct cli_arguments *arguments, struct lk_judge_server **out);

/* Files that say which pictures belong to an item: JSON lines or an array of {"item_id", "source", "edited"}. */
struct cli_pair {
    const char *item_id;
    const char *source, *edited; /* paths; relative ones lie beside the file that names them. source NULL: not said */
    const char *source_male, *source_female; /* of a composite; NULL: not said */
    size_t line;                             /* in the file; 0: of a run */
    struct lk_judge_facts facts;             /* of a run whose ids do not say all; instruction NULL: none */
    const char *asked_as; /* the id that a judge's question is made of: item_id, or as the documents name it */
};

struct cli_pairs {
    struct cli_pair *list;
    size_t n, capacity;
    struct lk_store texts;
    struct lk_names ids;
    struct lk_rejects rejects;
};

/* needs_source: a record without one is rejected. A record that is not understood, or whose id another one has, is
 * listed in rejects. LK_E_IO, LK_E_NOT_FOUND, LK_E_JSON, LK_E_NOMEM. Free in any case. */
enum lk_code cli_pairs_read(struct cli_pairs *pairs, const char *path, bool needs_source);
/* What --pairs names, or the pictures that the runs of --from have made of one source or, composites, of two. */
enum lk_code cli_pairs_of(struct cli_pairs *pairs, const struct cli_report_arguments *a, bool needs_source);
/* "FILE.jsonl", or the first run: what messages name. NULL: neither is given. */
const char *cli_pairs_name(const struct cli_report_arguments *a);
/* The same of sources: records of {"source_id", "path"}, as item_id and edited. */
enum lk_code cli_sources_read(struct cli_pairs *pairs, const char *path);
void cli_pairs_free(struct cli_pairs *pairs);
/* The path of a picture that a judge is shown about an item; pairs (NULL: this pair alone) are looked through for the
 * other arm's. NULL when it is not known. */
const char *cli_pair_path(const struct cli_pairs *pairs, const struct cli_pair *pair, enum lk_judge_image image);
bool cli_pair_is_preserved(const struct cli_pair *pair); /* the item is of the preserved arm */
/* What a judge is asked about the pair's item; by the pair's facts. Free with lk_judge_message_free. */
enum lk_code cli_pair_message(const struct cli_pair *pair, const struct lk_judge_prompts *prompts,
                              const struct lk_judge_ask *ask, struct lk_judge_message *out);
/* The last error as a warning, under the pair's line in the file of this name and its id. */
void cli_pair_warn(const char *path, const struct cli_pair *pair);
/* At most ten rejects on stderr, under a line with their number, and all of them in the file of cli_rejects_open;
 * nothing when there are none. */
void cli_print_rejects(const char *path, const struct lk_rejects *rejects);
/* The file (NULL: none) is made, or an earlier list replaced. LK_E_USAGE where there is something else of this name. */
enum lk_code cli_rejects_open(const char *path);
enum lk_code cli_rejects_close(void); /* an empty list is removed; LK_E_IO: not all of it could be written */
/* Those after the first n_before, which are another file's. */
void cli_print_fresh_rejects(const char *path, const struct lk_rejects *rejects, size_t n_before);
/* How many records a survey platform itself says are no ratings; nothing when there are none. */
void cli_print_left_out(const struct lk_ratings_import *import);
/* Columns that nobody reads, on one line; nothing when there are none. */
void cli_print_unread(const char *path, const struct lk_names *names);

/* The outputs that a command knows: those of the study of --from, where their ids say nothing by themselves. */

/* The study of a run: its own copy, or the file that it is of (NULL: not named). */
enum lk_code cli_run_study(struct lk_study **study, const char *run, const char *file);
/* The study of the first run of --from; NULL without one. */
enum lk_code cli_known_study(struct lk_study **study, const struct cli_report_arguments *arguments);
/* Its outputs, after which data knows no others. Nothing is added of NULL, nor of the documents' study, whose ids say
 * all. */
enum lk_code cli_known_items(struct lk_dataset *data, const struct lk_study *study);
/* Whether the picture of the job lies in the folder of the run. */
bool cli_known_is_made(const char *run, const struct lk_study_job *job);
/* The study's outputs, and it is closed again. */
enum lk_code cli_known_read(struct lk_dataset *data, const struct cli_report_arguments *arguments);

/* The pictures of runs, by their items, as the journals have them. */
struct cli_made {
    struct lk_names items;
    uint64_t *digests; /* [items.n] the first 64 bits of SHA-256; 0: another in each of two runs */
    size_t capacity;
};
/* A run without a journal adds nothing. Free in any case. */
enum lk_code cli_made_read(struct cli_made *made, const struct cli_list *runs);
/* made: a struct cli_made. Whether the item has the picture of this SHA-256, or none that is known. */
bool cli_made_has(const void *made, const char *item_id, const char *sha256);
void cli_made_free(struct cli_made *made);

/* A line of what a model said of an item, which `judge import` and the report read as any judge's: what all lines of a
 * run have in common, and the order of a comparison. */
struct judge_record {
    const char *slot, *family, *mode, *prompt_version, *dtype;
    const char *order;  /* NULL: no comparison */
    const char *check;  /* NULL: none */
    const char *server; /* where it was asked; NULL: here */
    char model[256], weights_identity[65];
    const char *configs; /* lk_chat_configs; NULL: not known */
    unsigned quantized;
};

/* Whether the model gave the digits less than 0.9 of its probability where it wrote some score: it wanted to say
 * something else. Such axes stand in the line as "low_mass". */
bool judge_record_low_mass(const struct lk_seen *verdict);
/* LK_E_NOMEM. */
enum lk_code judge_record_add(const struct judge_record *record, const struct lk_judge_item *item,
                              const struct lk_seen *verdict, struct lk_text *lines);

/* What earlier runs of a judge have asked: the items of its file of answers. */
struct judge_done {
    struct lk_store texts;
    char **list; /* "ITEM ORDER", sorted */
    size_t n, capacity;
    /* Whether the picture of this digest is the item's; answers about another are none. NULL: all are. */
    bool (*is_shown)(const void *pictures, const char *item_id, const char *sha256);
    const void *pictures;
};

/* Adds the items of a file, which may be missing. LK_E_CHANGED: a line of another judge, or one that was asked
 * otherwise than `record` says. mend: a last line that was cut off is taken away. */
enum lk_code judge_done_read(struct judge_done *done, const struct judge_record *record, const char *path, bool mend);
/* bad: and has no answer but a failure or a refusal. */
bool judge_is_done(const struct judge_done *done, const char *item_id, const char *order, bool bad);
/* Moves the answers about other pictures from the file to the end of FILE.earlier, where nobody counts them. */
enum lk_code judge_done_set_aside(const struct judge_done *done, const char *path);
void judge_done_free(struct judge_done *done);

/* The runs that a report is of: one configuration for all, and one recipe for each model. */
#define CLI_MANIFEST_MAX_BYTES ((size_t)4 << 30) /* four million outputs */

/* Whether KEY is in the list of --allow: keys with commas between, or NULL. */
bool cli_report_allows(const char *allowed, const char *key);

struct cli_report_runs {
    struct lk_study *first; /* NULL: no folder was named */
    struct lk_text hashes;  /* of the configurations, with commas between */
    int64_t n_nominal;      /* outputs that the runs ask for, those of text to image apart */
};
/* Reads study.json and manifest.jsonl of each folder in a->runs. Runs that differ in a setting, and outputs of one
 * experiment and model that differ in how they were made, are refused, all differences named, unless a->allow has the
 * key. What the study says of the analysis is put in the place of a's defaults; another value there is refused in the
 * same way. Free in any case. */
enum lk_code cli_report_runs_read(struct cli_report_runs *runs, struct cli_report_arguments *a);
/* What has no option of its own. */
void cli_report_runs_set(const struct cli_report_runs *runs, struct lk_report_options *options);
void cli_report_runs_free(struct cli_report_runs *runs);

/* The dataset of a report from the files that the command line names. */
struct cli_report_input {
    struct lk_dataset data;
    struct lk_report_options options;
    struct lk_ratings_import ratings;
    struct lk_quality_report quality;
    struct lk_source_manifest manifest;
    struct lk_feature_prompts features;
    struct lk_text doubts; /* of the judges: options.doubts */
    struct cli_made made;  /* the pictures that the runs have */
    size_t n_refused;      /* answers of judges and raters that were not understood */
};

/* Reads, combines, and says on stderr what was counted and what was refused. study: of the runs, whose outputs alone
 * are known when it is not the portrait study; NULL: none. Free in any case. */
enum lk_code cli_report_input(struct cli_report_input *input, const struct cli_report_arguments *arguments,
                              const struct lk_study *study);
/* Then where the pictures are that a page shows: those that --images names, or those of the runs. */
enum lk_code cli_report_images(struct cli_report_input *input, const struct cli_report_arguments *arguments);
/* The manifest of the sources, after the above. */
enum lk_code cli_report_manifest(struct cli_report_input *input, const char *path);
/* A new store of the study, what its runs made, and the scores. */
enum lk_code cli_report_store(struct lk_audit *audit, const struct cli_report_arguments *arguments,
                              const struct lk_study *study, const struct cli_report_input *input);
void cli_report_input_free(struct cli_report_input *input);

/* Reviewers' decisions from the command line. */

/* The decisions of a file put beside the dataset's scores; says on stderr what was counted and what was refused. */
enum lk_code cli_review_read(struct lk_dataset *data, const char *path);

/* The outputs that raters' samples are drawn from, with their levels of all factors. */
enum { CLI_POOL_MAX_COLUMNS = LK_MAX_ATTRIBUTES + 16 };

struct cli_pool {
    struct lk_dataset data;
    struct lk_study *study; /* NULL: the portrait study as the documents have it */
    struct lk_sample_column columns[CLI_POOL_MAX_COLUMNS];
    const char **keys[CLI_POOL_MAX_COLUMNS]; /* of columns whose keys are no other's */
    int n_columns;
    struct lk_names categories, prompts;
    struct lk_sample_item *items;
    int16_t *levels; /* [n, n_columns] */
    size_t n;
    char sha256[65]; /* of the list of ids, one a line */
};

/* Of --from the edits that were made, else all that the documents ask for; with --scores those that have one. roles:
 * the documents' experiment 3 instead of 1; of --from its composites too. Free in any case. */
enum lk_code cli_pool_fill(struct cli_pool *pool, const struct cli_report_arguments *arguments, bool roles);
void cli_pool_free(struct cli_pool *pool);
/* The numbers of columns by their names, with commas between. LK_E_USAGE names what there is. */
enum lk_code cli_pool_by(const struct cli_pool *pool, const char *names, int by[CLI_POOL_MAX_COLUMNS], int *n);

/* A list of items that a model is asked about by several processes, each on a device of its own. Each appends its
 * answers to a file of its own, OUTPUT.part-K; when all have ended, all lines stand in the one file, each once, in the
 * order of the items: the bytes that one process would have written. */

/* Questions: all that are to be asked, and those that have been. */
struct cli_progress {
    _Atomic int64_t total, asked;
};
/* The progress line, as that of `study run`. */
void cli_progress_show(struct cli_progress *progress);

/* A process's share: every n-th item that the file of `whole` has no answer to. */
struct cli_share {
    const char *whole; /* --output, as it was given */
    int part, n;
    struct cli_progress *progress; /* of all processes, in memory that they share */
};

struct cli_shared {
    const char *what, *does; /* "judge run", "judge": for messages */
    const char *ending;      /* of the file of lines, behind --output: "", ".partial" */
    const char *key;         /* the field of a line that names its item, "item_id" */
    struct lk_names items;   /* in their order */
    /* Runs in a process of its own, whose arguments name its device and, as the output, its part. */
    enum lk_code (*work)(const struct cli_arguments *arguments, const struct cli_share *share);
};
/* With a process for each of --devices. LK_E_PARTIAL: some could not do all, as they said. */
enum lk_code cli_shares(const struct cli_arguments *arguments, const struct cli_shared *shared);
