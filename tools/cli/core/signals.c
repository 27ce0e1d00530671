#include "tools/cli/cli.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static atomic_int received; /* the first signal, 0 if none; two may arrive in two threads */

static int code_of(int signal_number) { return signal_number == SIGINT ? 130 : 143; }

static void handle(int signal_number) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&received, &none, signal_number)) _exit(code_of(signal_number));
    static const char text[] = "\nstopping after this step; once more stops now\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
}

void cli_signals_install(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    struct sigaction before;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i] != SIGHUP || (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)) /* nohup */
            sigaction(signals[i], &action, NULL);
}

const char *cli_signals_name(void) {
    if (!received) return NULL;
    return received == SIGINT ? "SIGINT" : received == SIGTERM ? "SIGTERM" : received == SIGHUP ? "SIGHUP" : "SIGUSR1";
}

enum lk_code cli_signals_check(void) {
    if (!received) return LK_OK;
    return lk_fail(LK_E_INTERRUPTED, "stopped by %s; no file was written", cli_signals_name());
}

void cli_leave_no_core(void) {
    const struct rlimit none = {0, 0};
    prctl(PR_SET_DUMPABLE, 0);     /* a program that takes cores on its standard input knows no limit */
    setrlimit(RLIMIT_CORE, &none); /* for the processes that this one starts */
}

int cli_exit_code(enum lk_code code) {
    return code == LK_E_INTERRUPTED && received ? code_of(received) : lk_exit_code(code);
}
