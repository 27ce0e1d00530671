/* The commands. Each prints its result on stdout and returns a status whose message main prints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "engine/base/text.h"
#include "tools/cli/core/options.h"

cli_action cli_edit, cli_embed, cli_plan, cli_rewrite, cli_chat, cli_models, cli_verify, cli_quantize, cli_mask,
    cli_lora, cli_lora_merge, cli_show, cli_rerun, cli_devices, cli_selftest, cli_bench, cli_bench_compare, cli_study,
    cli_ratings, cli_review_set, cli_review_import, cli_report, cli_report_compare, cli_sample, cli_serve, cli_survey,
    cli_feature_prompt, cli_feature_extract, cli_t2i, cli_stats, cli_explain, cli_complete;

/* The verbs of the commands that have any; the last one has no name. */
extern const struct cli_verb cli_study_verbs[], cli_feature_verbs[], cli_judge_verbs[], cli_review_verbs[],
    cli_ratings_verbs[], cli_report_verbs[], cli_bench_verbs[], cli_lora_verbs[], cli_serve_verbs[], cli_survey_verbs[],
    cli_t2i_verbs[], cli_sample_verbs[];
const struct cli_verb *cli_stats_verbs(void); /* made from the tests' tables */

/* Stopping an edit: INT, TERM, USR1 and HUP ask for a stop after the current step; a second one ends the program at
 * once. */
void cli_signals_install(void);
/* LK_OK, or LK_E_INTERRUPTED when a stop was asked for. */
enum lk_code cli_signals_check(void);
/* The name of the signal that asked for it, NULL if none did. */
const char *cli_signals_name(void);
/* Whatever ends this process and those that it starts leaves no core file: an environment with a key would be in it. */
void cli_leave_no_core(void);
/* lk_exit_code, but 143 for an interruption by another signal than INT. */
int cli_exit_code(enum lk_code code);

/* No output takes the place of an input. */

/* Before any work: --output against every file that the options and positional arguments name, by device and inode, so
 * that links do not hide one; of a folder, the files that a report would write into it. LK_E_USAGE. */
enum lk_code cli_outputs_check(const struct cli_arguments *arguments);
/* A name that is none, "-", or is too long for its folder. */
enum lk_code cli_output_name_check(const char *path);
/* The sentences of the summary that a report in the folder begins with, to stdout. */
enum lk_code cli_findings_print(const char *folder);
/* Before long work: LK_E_USAGE for an --output that is there, and not empty, without --overwrite. */
enum lk_code cli_output_free(const struct cli_arguments *arguments);
/* The text to --output, or to stdout without one. A file with another content is LK_E_USAGE without --overwrite. */
enum lk_code cli_output_write(const struct cli_arguments *arguments, const struct lk_text *text);

/* Pieces of text output. */

/* Text from a file, for a terminal: control characters become \xNN, so that it cannot move the cursor. */
void cli_print_text(FILE *out, const char *text);
/* On stdout, as JSON or Markdown. */
struct lk_table;
enum lk_code cli_print_table(const struct lk_table *table, bool json);
/* "32.22 G", "840 K". */
const char *cli_count(uint64_t count, char out[32]);
/* "1.4 GiB", "37 MiB", "512 B". */
const char *cli_bytes(uint64_t bytes, char out[32]);

/* Some of many, drawn at random but always the same ones: --sample SHARE|N. */

/* text: "1%" or "50" of n things. *chosen [*n_chosen]: their numbers, rising; lk_free. stream: whose draw it is.
 * LK_E_USAGE, LK_E_NOMEM. */
enum lk_code cli_draw(const char *text, size_t n, const char *stream, int32_t **chosen, size_t *n_chosen);

/* Texts made from the table of options. All write to `out` and leave its error state to the caller. */

/* Usage, commands, five examples, exit codes. */
void cli_help(FILE *out);
/* Usage, examples, grouped options with defaults and units; of a command with verbs and verb NULL, its verbs. */
void cli_help_command(FILE *out, enum cli_command command, const struct cli_verb *verb);
/* "study run", as messages and the help name it. */
const char *cli_full_name(enum cli_command command, const struct cli_verb *verb, char name[64]);
/* "run STUDY.json -o DIR [options]": what follows the command's name; of a command with verbs and verb NULL, "VERB". */
void cli_usage(enum cli_command command, const struct cli_verb *verb, struct lk_text *out);
/* LK_E_USAGE for a shell other than bash, zsh and fish. */
enum lk_code cli_completions(FILE *out, const char *shell);
