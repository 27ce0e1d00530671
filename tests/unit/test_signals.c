/* A signal that asks for an end comes while the output waits for its reader: nothing of the output is lost. A process
 * with a key leaves no core. */
#include "tests/common/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/cli.h"

/* Prints into a pipe that is full. */
static void print_in_child(const int out[2], const int err[2]) {
    static const char block[4096];
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDOUT_FILENO, block, sizeof block) > 0) {
    }
    fcntl(STDOUT_FILENO, F_SETFL, flags);
    cli_signals_install();
    fputs("the result\n", stdout);
    bool lost = fflush(stdout) || ferror(stdout);
    _exit(lost ? 1 : cli_signals_name() ? 0 : 2);
}

static bool sleeps(pid_t pid) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(text, sizeof text, f)) return false;
    fclose(f);
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[2] == 'S';
}

static void output_goes_on_after_a_signal(void **state) {
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        int out[2], err[2], status;
        char text[4096], last[16] = "";
        ssize_t n;
        fflush(stdout);
        signal(SIGHUP, SIG_DFL); /* under nohup it would be ignored */
        assert_int_equal(pipe(out) | pipe(err), 0);
        pid_t child = fork();
        if (!child) print_in_child(out, err);
        close(out[1]);
        close(err[1]);
        while (!sleeps(child)) usleep(1000);
        kill(child, signals[i]);
        assert_true(read(err[0], text, sizeof text) > 0); /* the signal was heard */
        while ((n = read(out[0], text, sizeof text)) > 0)
            if (n >= 11) memcpy(last, text + n - 11, 11);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_string_equal(last, "the result\n");
        close(out[0]);
        close(err[0]);
    }
}

static void no_core_is_left(void **state) {
    int status;
    (void)state;
    const pid_t child = fork();
    if (!child) {
        struct rlimit core;
        cli_leave_no_core();
        getrlimit(RLIMIT_CORE, &core);
        _exit(prctl(PR_GET_DUMPABLE) ? 1 : core.rlim_cur ? 2 : core.rlim_max ? 3 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(output_goes_on_after_a_signal),
                                       cmocka_unit_test(no_core_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
