/* The commands. Each prints its result on stdout and returns a status whose message main prints. */
#pragma once

#include "tools/cli/core/options.h"

enum lk_code cli_edit(const struct cli_arguments *arguments);
enum lk_code cli_embed(const struct cli_arguments *arguments);
enum lk_code cli_plan(const struct cli_arguments *arguments);
enum lk_code cli_rewrite(const struct cli_arguments *arguments);
enum lk_code cli_chat(const struct cli_arguments *arguments);
enum lk_code cli_models(const struct cli_arguments *arguments);
enum lk_code cli_verify(const struct cli_arguments *arguments);
enum lk_code cli_quantize(const struct cli_arguments *arguments);
enum lk_code cli_mask(const struct cli_arguments *arguments);
enum lk_code cli_lora(const struct cli_arguments *arguments);
enum lk_code cli_lora_merge(const struct cli_arguments *arguments);
enum lk_code cli_show(const struct cli_arguments *arguments);
enum lk_code cli_rerun(const struct cli_arguments *arguments);
enum lk_code cli_devices(const struct cli_arguments *arguments);
enum lk_code cli_selftest(const struct cli_arguments *arguments);
enum lk_code cli_bench(const struct cli_arguments *arguments);
enum lk_code cli_bench_compare(const struct cli_arguments *arguments);
enum lk_code cli_study(const struct cli_arguments *arguments);
enum lk_code cli_ratings(const struct cli_arguments *arguments);
enum lk_code cli_review_set(const struct cli_arguments *arguments);
enum lk_code cli_review_import(const struct cli_arguments *arguments);
enum lk_code cli_report(const struct cli_arguments *arguments);
enum lk_code cli_report_compare(const struct cli_arguments *arguments);
enum lk_code cli_sample(const struct cli_arguments *arguments);
enum lk_code cli_serve(const struct cli_arguments *arguments);
enum lk_code cli_survey(const struct cli_arguments *arguments);
enum lk_code cli_feature_prompt(const struct cli_arguments *arguments);
enum lk_code cli_feature_extract(const struct cli_arguments *arguments);
enum lk_code cli_t2i(const struct cli_arguments *arguments);
enum lk_code cli_stats(const struct cli_arguments *arguments);
enum lk_code cli_explain(const struct cli_arguments *arguments);  /* help */
enum lk_code cli_complete(const struct cli_arguments *arguments); /* completions */

/* The verbs of the commands that have any; the last one has no name. */
extern const struct cli_verb cli_study_verbs[], cli_feature_verbs[], cli_judge_verbs[], cli_review_verbs[],
    cli_ratings_verbs[], cli_report_verbs[], cli_bench_verbs[], cli_lora_verbs[], cli_serve_verbs[], cli_survey_verbs[],
    cli_t2i_verbs[], cli_sample_verbs[];
const struct cli_verb *cli_stats_verbs(void); /* made from the tests' tables */
