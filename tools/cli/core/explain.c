#include <stdio.h>
#include <string.h>

#include "eval/design/study.h"
#include "eval/survey/study.h"
#include "tools/cli/cli.h"
#include "tools/cli/core/help.h"

enum lk_code cli_explain(const struct cli_arguments *a) {
    if (a->man) {
        cli_man(stdout);
        return LK_OK;
    }
    if (!a->positional) {
        cli_help(stdout);
        return LK_OK;
    }
    const bool survey = !strcmp(a->positional, "survey-file");
    if (survey || !strcmp(a->positional, "study-file")) {
        struct lk_text text = {0};
        enum lk_code rc = survey ? lk_survey_explain(&text) : lk_study_explain(&text);
        if (!rc) fwrite(text.bytes, 1, text.n, stdout);
        lk_text_free(&text);
        return rc;
    }
    struct cli_arguments named;
    const char *const words[] = {"likeness", a->positional, a->more[0] ? a->more[0] : "--help", "--help"};
    enum lk_code rc = cli_arguments_parse(&named, a->more[0] ? 4 : 3, words);
    if (!rc) cli_help_command(stdout, named.command, named.verb);
    return rc;
}

enum lk_code cli_complete(const struct cli_arguments *a) { return cli_completions(stdout, a->positional); }
