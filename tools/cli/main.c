#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/isa.h"
#include "engine/base/log.h"
#include "eval/design/study.h"
#include "tools/cli/cli.h"
#include "tools/cli/core/help.h"
#include "tools/cli/core/outputs.h"
#include "tools/cli/core/signals.h"
#include "tools/cli/core/threads.h"
#include "weights/checkpoint.h"

static enum lk_code run_help(const struct cli_arguments *a) {
    if (a->man) {
        cli_man(stdout);
        return LK_OK;
    }
    if (!a->positional) {
        cli_help(stdout);
        return LK_OK;
    }
    if (!strcmp(a->positional, "study-file")) {
        struct lk_text text = {0};
        enum lk_code rc = lk_study_explain(&text);
        if (!rc) fwrite(text.bytes, 1, text.n, stdout);
        lk_text_free(&text);
        return rc;
    }
    struct cli_arguments named;
    const char *const argv[] = {"likeness", a->positional, "--help"};
    enum lk_code rc = cli_arguments_parse(&named, 3, argv);
    if (!rc) cli_help_command(stdout, named.command);
    return rc;
}

static enum lk_code run_completions(const struct cli_arguments *a) { return cli_completions(stdout, a->positional); }

static enum lk_code (*const commands[CLI_N_COMMANDS])(const struct cli_arguments *) = {
    [CLI_EDIT] = cli_edit,         [CLI_PLAN] = cli_plan,       [CLI_CHAT] = cli_chat,
    [CLI_MODELS] = cli_models,     [CLI_VERIFY] = cli_verify,   [CLI_SHOW] = cli_show,
    [CLI_RERUN] = cli_rerun,       [CLI_DEVICES] = cli_devices, [CLI_COMPLETIONS] = run_completions,
    [CLI_SELFTEST] = cli_selftest, [CLI_JUDGE] = cli_judge,     [CLI_REVIEW] = cli_review,
    [CLI_RATINGS] = cli_ratings,   [CLI_REPORT] = cli_report,   [CLI_STATS] = cli_stats,
    [CLI_SAMPLE] = cli_sample,     [CLI_SERVE] = cli_serve,     [CLI_SURVEY] = cli_survey,
    [CLI_QUANTIZE] = cli_quantize, [CLI_T2I] = cli_t2i,         [CLI_HELP] = run_help,
    [CLI_FEATURE] = cli_feature,   [CLI_STUDY] = cli_study,     [CLI_BENCH] = cli_bench,
    [CLI_EMBED] = cli_embed,       [CLI_LORA] = cli_lora,
};

/* What computes with several threads. */
static const bool parallel[CLI_N_COMMANDS] = {
    [CLI_EDIT] = true,  [CLI_RERUN] = true, [CLI_CHAT] = true,    [CLI_SELFTEST] = true, [CLI_REPORT] = true,
    [CLI_STATS] = true, [CLI_JUDGE] = true, [CLI_FEATURE] = true, [CLI_T2I] = true,      [CLI_STUDY] = true,
    [CLI_BENCH] = true, [CLI_EMBED] = true, [CLI_LORA] = true,
};

static enum lk_code run(const struct cli_arguments *a, bool bare) {
    if (a->version) {
        puts("likeness " LIKENESS_VERSION);
        return LK_OK;
    }
    if (a->help && bare) {
        cli_help(stdout);
        return LK_OK;
    }
    if (a->help) {
        cli_help_command(stdout, a->command);
        return LK_OK;
    }
    LK_TRY(lk_cpu_isa_check());
    LK_TRY(cli_outputs_check(a));
    lk_model_follow_links(a->follow_links);
    if (parallel[a->command]) LK_TRY(cli_threads_check(a->job.run.threads));
    return commands[a->command](a);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an I/O error, not a death, */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file at its limit of size (EFBIG) */
    struct cli_arguments arguments;
    enum lk_code rc = cli_arguments_parse(&arguments, argc, (const char *const *)argv);
    lk_log_open(arguments.quiet, arguments.verbose);
    if (!rc) rc = run(&arguments, argc > 1 && argv[1][0] == '-');
    bool lost = fflush(stdout) || ferror(stdout);
    int why = errno;
    if (lost && (!rc || rc == LK_E_PARTIAL)) { /* an earlier failure keeps its message */
        if (rc) lk_log(LK_LOG_ERROR, "%s", lk_error_text());
        rc = lk_fail_errno(why, "stdout");
    }
    if (rc) lk_log(LK_LOG_ERROR, "%s", lk_error_text());
    lk_job_free(&arguments.job);
    return cli_exit_code(rc);
}
