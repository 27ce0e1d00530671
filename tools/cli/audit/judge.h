/* What `judge` does beside looking at pixels. */
#pragma once

#include "eval/judge/server.h"
#include "tools/cli/core/options.h"

enum lk_code cli_judge_pixels(const struct cli_arguments *arguments);
/* The judges that the study of --from names; answers in RUN/judges/SLOT.jsonl. */
enum lk_code cli_judge_study(const struct cli_arguments *arguments);
/* The answers of a slot's judge that lie there; lk_malloc'ed. NULL: there are none. */
char *cli_judge_answers_found(const char *run, int slot);
enum lk_code cli_judge_run(const struct cli_arguments *arguments); /* by a model in this process */
/* The user's server that is asked in place of a model here. Closed with lk_judge_server_close. */
enum lk_code cli_judge_server(const struct cli_arguments *arguments, struct lk_judge_server **out);
enum lk_code cli_judge_prompt(const struct cli_arguments *arguments); /* what to ask about an item, or about all */
enum lk_code cli_judge_import(const struct cli_arguments *arguments); /* its answers, read strictly and written plainly
                                                                       */
enum lk_code cli_judge_agreement(const struct cli_arguments *arguments); /* of two judges */
