#include "tests/common/served.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/log.h"
#include "tools/cli/cli.h"

void __lsan_do_leak_check(void) __attribute__((weak)); /* ends with another code where something leaked */

pid_t served_start(const char *const *argv, char line[200]) {
    struct cli_arguments arguments;
    int argc = 0, ends[2];
    while (argv[argc]) argc++;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        close(ends[0]);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[1]);
        lk_log_open(true, false);
        signal(SIGPIPE, SIG_IGN);
        enum lk_code rc = cli_arguments_parse(&arguments, argc, argv);
        if (!rc) rc = arguments.verb ? arguments.verb->run(&arguments) : cli_edit(&arguments);
        if (rc) lk_log(LK_LOG_ERROR, "%s", lk_error_text());
        lk_job_free(&arguments.job);
        fflush(NULL);
        if (__lsan_do_leak_check) __lsan_do_leak_check();
        _exit(cli_exit_code(rc));
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    *line = '\0';
    if (!fgets(line, 200, out)) *line = '\0';
    fclose(out);
    return child;
}

int served_end(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
