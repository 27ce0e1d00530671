/* The commands. Each prints its result on stdout and returns a status whose message main prints. */
#pragma once

#include "tools/cli/core/options.h"

enum lk_code cli_edit(const struct cli_arguments *arguments);
enum lk_code cli_embed(const struct cli_arguments *arguments);
enum lk_code cli_plan(const struct cli_arguments *arguments);
enum lk_code cli_chat(const struct cli_arguments *arguments);
enum lk_code cli_models(const struct cli_arguments *arguments);
enum lk_code cli_verify(const struct cli_arguments *arguments);
enum lk_code cli_quantize(const struct cli_arguments *arguments);
enum lk_code cli_lora(const struct cli_arguments *arguments);
enum lk_code cli_show(const struct cli_arguments *arguments);
enum lk_code cli_rerun(const struct cli_arguments *arguments);
enum lk_code cli_devices(const struct cli_arguments *arguments);
enum lk_code cli_selftest(const struct cli_arguments *arguments);
enum lk_code cli_bench(const struct cli_arguments *arguments);
enum lk_code cli_study(const struct cli_arguments *arguments);
enum lk_code cli_judge(const struct cli_arguments *arguments);
enum lk_code cli_ratings(const struct cli_arguments *arguments);
enum lk_code cli_review(const struct cli_arguments *arguments);
enum lk_code cli_report(const struct cli_arguments *arguments);
enum lk_code cli_report_compare(const struct cli_arguments *arguments); /* of cli_report, with a word */
enum lk_code cli_sample(const struct cli_arguments *arguments);
enum lk_code cli_serve(const struct cli_arguments *arguments);
enum lk_code cli_survey(const struct cli_arguments *arguments);
enum lk_code cli_feature(const struct cli_arguments *arguments);
enum lk_code cli_t2i(const struct cli_arguments *arguments);
enum lk_code cli_stats(const struct cli_arguments *arguments);
