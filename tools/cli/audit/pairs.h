/* Files that say which pictures belong to an item: JSON lines or an array of {"item_id", "source", "edited"}. */
#pragma once

#include <stdbool.h>

#include "engine/base/names.h"
#include "eval/human/ratings.h"
#include "eval/judge/prompt.h"
#include "eval/scores/rejects.h"
#include "tools/cli/core/options.h"

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
