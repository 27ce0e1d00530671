#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/isa.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "eval/study/sql.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "weights/checkpoint.h"

/* The threads that the OpenMP runtime will ask for. It ends the program with code 1 when it cannot have them. */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};

static void *wait_at(void *context) {
    struct gate *gate = context;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open) pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

/* All of them live at the same time before the first may end. */
static enum lk_code threads_check(int n_threads) {
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    int n_asked = (n_threads > 0 ? n_threads : omp_get_max_threads()) - 1, n = 0, failed = 0;
    pthread_t *threads = lk_malloc((size_t)n_asked * sizeof *threads);
    if (!threads) return lk_fail(LK_E_NOMEM, "no memory for %d threads", n_asked);
    while (n < n_asked && !(failed = pthread_create(&threads[n], NULL, wait_at, &gate))) n++;
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    lk_free(threads);
    if (!failed) return LK_OK;
    return lk_fail(LK_E_NOMEM, "threads: %d were asked for, %d can be had (%s); use --threads %d or raise the limit",
                   n_asked + 1, n + 1, strerror(failed), n + 1);
}

/* Threads that wait sleep soon, unless the user says otherwise: one that spins on takes the processor from the one that
 * it waits for where another program runs beside, and two threads are then slower than one. Set before libgomp reads
 * its environment, which it does in a constructor of a later priority. */
__attribute__((constructor(101))) static void let_threads_sleep(void) {
    if (!getenv("OMP_WAIT_POLICY")) setenv("GOMP_SPINCOUNT", "300", 0);
}

static void tell_waiting(const char *text) { lk_log(LK_LOG_WARNING, "%s", text); }

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
        cli_help_command(stdout, a->command, a->verb);
        return LK_OK;
    }
    LK_TRY(lk_cpu_isa_check());
    LK_TRY(cli_outputs_check(a));
    lk_model_follow_links(a->follow_links);
    LK_TRY(cli_rejects_open(a->report.rejects));
    const struct cli_command_info *command = &cli_commands[a->command];
    if (command->parallel) LK_TRY(threads_check(a->job.run.threads));
    return command->run ? command->run(a) : a->verb->run(a);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an I/O error, not a death, */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file at its limit of size (EFBIG) */
    struct cli_arguments arguments;
    enum lk_code rc = cli_arguments_parse(&arguments, argc, (const char *const *)argv);
    lk_log_open(arguments.quiet, arguments.verbose);
    lk_sql_waiting = tell_waiting;
    if (!rc) rc = run(&arguments, argc > 1 && argv[1][0] == '-');
    if (cli_rejects_close() && (!rc || rc == LK_E_PARTIAL)) rc = LK_E_IO;
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
