/* The outputs that a command knows: those of the study of --from, where their ids say nothing by themselves. */
#pragma once

#include "engine/base/names.h"
#include "eval/design/study.h"
#include "eval/scores/dataset.h"
#include "tools/cli/core/options.h"

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
