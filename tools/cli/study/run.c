/* study run: the supervisor. It forks before anything computes, restarts workers that crash, and tells how far it is.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "tools/cli/cli.h"
#include "tools/cli/study/runner.h"

/* How far a run is: a line on the terminal (elsewhere every 30 s), or JSON every 10 s. */

#define JSON_S 10

static void study_progress_begin(struct study_progress *p, const struct lk_journal_counts *counts) {
    *p = (struct study_progress){.total = counts->total,
                                 .before = counts->all[LK_JOB_DONE] + counts->all[LK_JOB_FAILED] +
                                           counts->all[LK_JOB_REFUSED],
                                 .started_s = lk_log_now()};
    p->shown_s = p->started_s;
}

/* Jobs that have got through this run's workers, and steps of those under way as parts of one. */
static double made(const struct study_run *run, int64_t *n_done, double *step_s) {
    double n = 0, per_step = 0;
    int n_stepping = 0;
    *n_done = 0;
    for (int i = 0; i < run->n_workers; i++) {
        struct study_slot *s = &run->shared->slots[i];
        int64_t us = atomic_load(&s->step_us);
        *n_done += atomic_load(&s->n_done);
        n += (double)atomic_load(&s->n_done) + 1e-6 * (double)atomic_load(&s->parts);
        per_step += 1e-6 * (double)us;
        n_stepping += us > 0;
    }
    *step_s = n_stepping ? per_step / n_stepping : 0;
    return n;
}

static void study_progress_show(struct study_progress *p, const struct study_run *run) {
    int64_t n_done;
    double step_s, now = lk_log_now(), got = made(run, &n_done, &step_s), left = (double)(p->total - p->before) - got;
    double eta_s = got > 0 ? (now - p->started_s) / got * (left > 0 ? left : 0) : 0;
    const struct study_slot *slot = &run->shared->slots[0];
    for (int i = 1; i < run->n_workers; i++) /* the latest of all */
        if (atomic_load(&run->shared->slots[i].changed_us) > atomic_load(&slot->changed_us))
            slot = &run->shared->slots[i];
    int model = atomic_load(&slot->model);
    const char *name = n_done || got > 0 || model > 0 ? lk_study_model_key(run->study, model) : "";
    if (run->json) {
        if (now - p->shown_s < JSON_S) return;
        p->shown_s = now;
        printf("{\"event\":\"progress\",\"done\":%lld,\"total\":%lld,\"model\":\"%s\",\"step\":%d,\"steps\":%d,"
               "\"seconds_per_step\":%.3f,\"eta_seconds\":%.0f}\n",
               (long long)(p->before + n_done), (long long)p->total, name, atomic_load(&slot->step),
               atomic_load(&slot->n_steps), step_s, eta_s);
        fflush(stdout);
        return;
    }
    char line[200], eta[32], steps[64] = ""; /* a service that is asked has none */
    const int n_steps = atomic_load(&slot->n_steps);
    lk_log_duration(eta_s, eta);
    if (n_steps) snprintf(steps, sizeof steps, "step %d/%d  %.2f s/it  ", atomic_load(&slot->step), n_steps, step_s);
    snprintf(line, sizeof line, "job %lld/%lld  %s  %sETA %s", (long long)(p->before + n_done), (long long)p->total,
             name, steps, got > 0 ? eta : "?");
    lk_log_status(line, now);
}

#define MAX_IDLE_CRASHES 3 /* of a worker that holds no job */

struct worker {
    pid_t pid; /* 0: ended */
    int idle_crashes;
    char owner[LK_JOURNAL_OWNER_BYTES];
};

struct supervisor {
    struct study_run run;
    struct worker workers[STUDY_MAX_WORKERS];
    int pipe[2];
    size_t n_text; /* of a message that has come in part */
    char text[8192];
    struct lk_error error; /* of the first worker that could not go on */
    struct study_progress progress;
};

/* Done jobs whose pictures are not there any more, or not whole. One that was put aside comes back. */
struct lost {
    const char *folder;
    int64_t *indexes;
    size_t n, capacity;
};

static enum lk_code find_lost(void *context, const struct lk_journal_row *row) {
    struct lost *lost = context;
    struct stat st;
    char path[4096];
    snprintf(path, sizeof path, "%s/results/%s", lost->folder, row->entry.output);
    char *kept = study_kept_path(lost->folder, row->entry.id, row->entry.output);
    if (!kept) return lk_fail(LK_E_NOMEM, "out of memory");
    if (rename(kept, path) && errno != ENOENT && errno != ENOTDIR)
        lk_log(LK_LOG_WARNING, "%s: cannot be put back into the results: %s", kept, strerror(errno));
    lk_free(kept);
    if (!stat(path, &st) && st.st_size == row->made.bytes) return LK_OK;
    LK_TRY(lk_grow(&lost->indexes, &lost->capacity, lost->n + 1, sizeof *lost->indexes));
    lost->indexes[lost->n++] = row->entry.index;
    return LK_OK;
}

static enum lk_code requeue_lost(struct lk_journal *journal, const char *folder) {
    struct lost lost = {.folder = folder};
    enum lk_code rc = lk_journal_each(journal, LK_JOB_DONE, false, find_lost, &lost);
    int64_t n;
    for (size_t i = 0; i < lost.n && !rc; i++) rc = lk_journal_requeue(journal, lost.indexes[i], &n);
    if (!rc && lost.n) lk_log(LK_LOG_WARNING, "%zu pictures are gone or cut: they are made again", lost.n);
    lk_free(lost.indexes);
    return rc;
}

/* The manifest's line of a job that workers died of. */
static enum lk_code poison_line(void *context, int64_t index, const char *error, struct lk_text *out) {
    const struct study_run *run = context;
    struct lk_study_job *job = lk_malloc(sizeof *job);
    if (!job) return lk_fail(LK_E_NOMEM, "out of memory");
    enum lk_code rc = lk_study_job(run->study, (size_t)index, job);
    if (!rc) rc = study_record(out, run->study, job, &(struct study_outcome){.error = error});
    lk_free(job);
    return rc;
}

static void start(struct supervisor *s, int slot) {
    pid_t parent = getpid(), child = fork();
    if (!child) {
        sigset_t none;
        static const int ignored[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP}; /* the supervisor hears them for all */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        close(s->pipe[0]);
        int code = study_work(&s->run, slot);
        _exit(code);
    }
    struct worker *w = &s->workers[slot];
    w->pid = child > 0 ? child : 0;
    if (child > 0) lk_journal_owner(child, w->owner);
    if (child < 0 && !s->error.code) lk_error_get(&s->error, lk_fail_errno(errno, "no process for a worker"));
}

/* A worker that died in the middle of jobs is started again; of which job it was the journal finds out. */
static enum lk_code bury(struct supervisor *s, int slot, const char *how) {
    struct worker *w = &s->workers[slot];
    struct lk_journal *journal;
    int n;
    LK_TRY(lk_journal_open(&journal, s->run.journal, NULL));
    enum lk_code rc = lk_journal_crashed(journal, w->owner, how, poison_line, &s->run, &n);
    lk_journal_close(journal);
    if (rc) return rc;
    lk_log(LK_LOG_WARNING, "worker %d (%s) died by %s with %d jobs in hand; it is started again", slot,
           s->run.devices[slot], how, n);
    w->idle_crashes = n ? 0 : w->idle_crashes + 1;
    if (w->idle_crashes == MAX_IDLE_CRASHES)
        return lk_fail(LK_E_INTERNAL, "worker %d (%s) died %d times by %s before it took a job", slot,
                       s->run.devices[slot], MAX_IDLE_CRASHES, how);
    start(s, slot);
    return LK_OK;
}

static void reap(struct supervisor *s) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        int slot = 0;
        while (slot < s->run.n_workers && s->workers[slot].pid != pid) slot++;
        if (slot == s->run.n_workers) continue;
        s->workers[slot].pid = 0;
        if (WIFEXITED(status)) {
            struct lk_error *error = &s->run.shared->slots[slot].error;
            if (!WEXITSTATUS(status)) continue;
            if (error->code && error->code != LK_E_INTERRUPTED)
                lk_log(LK_LOG_ERROR, "worker %d (%s): %s", slot, s->run.devices[slot], error->text);
            if (error->code && !s->error.code) s->error = *error;
            if (error->code) continue;
        }
        char how[64];
        if (WIFSIGNALED(status))
            snprintf(how, sizeof how, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
            snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
        enum lk_code rc = bury(s, slot, how);
        if (rc && !s->error.code) lk_error_get(&s->error, rc);
    }
}

/* Whole lines of what workers say. */
static void hear(struct supervisor *s) {
    ssize_t n = read(s->pipe[0], s->text + s->n_text, sizeof s->text - 1 - s->n_text);
    if (n <= 0) return;
    s->n_text += (size_t)n;
    s->text[s->n_text] = 0;
    char *line = s->text, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (*line == 'J') puts(line + 1);
        if (*line == 'W') lk_log(LK_LOG_WARNING, "%s", line + 1);
    }
    fflush(stdout);
    s->n_text = strlen(line);
    memmove(s->text, line, s->n_text + 1);
    if (s->n_text == sizeof s->text - 1) s->n_text = 0; /* no line of ours is so long */
}

static bool any_left(const struct supervisor *s) {
    for (int i = 0; i < s->run.n_workers; i++)
        if (s->workers[i].pid) return true;
    return false;
}

static void nothing(int signal_number) { (void)signal_number; }

/* Until all workers have ended. Signals come only while it waits. */
static void supervise(struct supervisor *s) {
    static const int heard[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGCHLD};
    sigset_t blocked, before;
    struct sigaction action = {.sa_handler = nothing};
    struct pollfd from = {.fd = s->pipe[0], .events = POLLIN};
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) sigaddset(&blocked, heard[i]);
    cli_signals_install();
    sigaction(SIGCHLD, &action, NULL);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    for (int i = 0; i < s->run.n_workers; i++) start(s, i);
    while (any_left(s)) {
        int ready = ppoll(&from, 1, &(struct timespec){.tv_nsec = 500000000}, &before);
        if (ready > 0) hear(s);
        if (cli_signals_name()) atomic_store(&s->run.shared->stop, 1);
        reap(s);
        study_progress_show(&s->progress, &s->run);
    }
    while (poll(&from, 1, 0) > 0 && from.revents & POLLIN) hear(s);
    sigprocmask(SIG_SETMASK, &before, NULL);
    lk_log_progress_end();
}

static enum lk_code run_workers(struct supervisor *s) {
    struct study_run *run = &s->run;
    if (pipe(s->pipe)) return lk_fail_errno(errno, "no pipe for the workers");
    run->messages = s->pipe[1];
    run->shared = mmap(NULL, sizeof *run->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run->shared == MAP_FAILED) return lk_fail_errno(errno, "no memory to share with the workers");
    supervise(s);
    munmap(run->shared, sizeof *run->shared);
    close(s->pipe[0]);
    close(s->pipe[1]);
    return LK_OK;
}

int64_t study_nominal(const int64_t of[LK_JOB_STATES]) {
    int64_t n = 0;
    for (int k = 0; k < LK_JOB_STATES; k++) n += of[k];
    return n;
}

enum lk_code study_conclude(const struct lk_journal_counts *c, bool json) {
    for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++) {
        const int64_t *of = c->of[m];
        const int64_t n = study_nominal(of);
        if (!n) continue;
        printf(json ? "{\"event\":\"end\",\"model\":\"%s\",\"nominal\":%lld,\"success\":%lld,\"failed\":%lld"
                    : "%-8s nominal %lld  success %lld  failed %lld",
               c->keys[m], (long long)n, (long long)of[LK_JOB_DONE], (long long)of[LK_JOB_FAILED]);
        if (of[LK_JOB_REFUSED]) printf(json ? ",\"refused\":%lld" : "  refused %lld", (long long)of[LK_JOB_REFUSED]);
        puts(json ? "}" : "");
    }
    if (!c->all[LK_JOB_FAILED]) return LK_OK;
    return lk_fail(LK_E_PARTIAL, "%lld of %lld jobs failed; run --retry-failed tries them again",
                   (long long)c->all[LK_JOB_FAILED], (long long)c->total);
}

/* What is left, and why; the exit code. */
static enum lk_code conclude(const struct supervisor *s, const struct lk_journal_counts *c) {
    int64_t n_open = c->all[LK_JOB_QUEUED] + c->all[LK_JOB_LEASED];
    enum lk_code rc = study_conclude(c, s->run.json);
    if (!n_open) return rc;
    const char *signal_name = cli_signals_name();
    if (signal_name)
        return lk_fail(LK_E_INTERRUPTED,
                       "stopped by %s with %lld of %lld jobs left; the same command goes on from here", signal_name,
                       (long long)n_open, (long long)c->total);
    enum lk_code why = s->error.code && s->error.code != LK_E_INTERRUPTED ? s->error.code : LK_E_INTERNAL;
    return lk_fail(why, "%lld of %lld jobs are left; %s", (long long)n_open, (long long)c->total,
                   why == LK_E_DEVICE ? "the device cannot be used, as said above"
                                      : "the same command goes on from here");
}

/* Before the journal is of this study: adapters that cannot be used, or that are others than made its pictures. */
static enum lk_code check_adapters(const struct study_run *run) {
    struct lk_journal *journal;
    LK_TRY(lk_study_check_adapters(run->study));
    if (access(run->journal, F_OK)) return LK_OK;
    enum lk_code rc = lk_journal_open(&journal, run->journal, NULL);
    if (rc) return rc == LK_E_NOT_FOUND ? LK_OK : rc; /* a run was killed as it began: it is begun again */
    rc = study_identity_adapters(journal, run->journal, run->study);
    lk_journal_close(journal);
    return rc;
}

/* The journal and the resolved copy of the study. */
static enum lk_code prepare(struct supervisor *s, const struct study_list *list, bool retry_failed,
                            struct lk_journal_counts *counts) {
    struct lk_journal *journal;
    int64_t n;
    LK_TRY(check_adapters(&s->run));
    LK_TRY(study_journal_open(s->run.journal, list, &journal));
    enum lk_code rc = study_resolved_write(s->run.study, s->run.records);
    if (!rc && retry_failed) rc = lk_journal_requeue(journal, -1, &n);
    if (!rc) rc = study_put_aside(journal, s->run.folder);
    if (!rc) rc = requeue_lost(journal, s->run.folder);
    if (!rc) rc = lk_journal_count(journal, counts);
    if (!rc && counts->n_kept)
        lk_log(LK_LOG_WARNING,
               "%s: %lld pictures are no longer asked for; they stay until 'likeness study prune' deletes them",
               s->run.records, (long long)counts->n_kept);
    lk_journal_close(journal); /* no connection may be carried over a fork */
    return rc;
}

static enum lk_code run(struct supervisor *s, const struct study_list *list, bool retry_failed) {
    struct lk_journal_counts counts;
    struct lk_journal *journal;
    LK_TRY(prepare(s, list, retry_failed, &counts));
    study_progress_begin(&s->progress, &counts);
    if (counts.all[LK_JOB_QUEUED] + counts.all[LK_JOB_LEASED]) LK_TRY(run_workers(s));
    if (access(s->run.journal, F_OK)) return study_moved(s->run.records);
    LK_TRY(lk_journal_open(&journal, s->run.journal, NULL));
    enum lk_code rc = study_hosted_compare(s->run.study, journal, s->run.folder);
    if (!rc) rc = study_manifest_write(s->run.study, journal, s->run.records);
    if (!rc) rc = lk_journal_count(journal, &counts);
    lk_journal_close(journal);
    return rc ? rc : conclude(s, &counts);
}

static const char *gpu_of(const char *name) { return strcmp(name, "cuda") ? name : "cuda:0"; }

enum lk_code study_read_devices(struct study_run *run, const char *list, char **copy) {
    char *rest = NULL;
    if (!(*copy = lk_malloc(8 * strlen(list) + 8))) return lk_fail(LK_E_NOMEM, "out of memory");
    char *names = *copy, *text = names + 7 * strlen(list);
    strcpy(text, list);
    for (char *name = strtok_r(text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        bool number = name[strspn(name, "0123456789")] == 0;
        if (run->n_workers == STUDY_MAX_WORKERS)
            return lk_fail(LK_E_USAGE, "--devices: expected at most %d, got \"%s\"", STUDY_MAX_WORKERS, list);
        if (!number && strcmp(name, "cpu") && strncmp(name, "cuda", 4))
            return lk_fail(LK_E_USAGE, "--devices: expected cpu, cuda, cuda:N or N with commas between, got \"%s\"",
                           name);
        int length = sprintf(names, number ? "cuda:%s" : "%s", name);
        for (int i = 0; i < run->n_workers; i++)
            if (strcmp(names, "cpu") && !strcmp(gpu_of(names), gpu_of(run->devices[i])))
                return lk_fail(LK_E_USAGE, "--devices: a GPU takes one worker, got %s twice in \"%s\"", names, list);
        run->devices[run->n_workers++] = names;
        names += length + 1;
    }
    if (!run->n_workers) return lk_fail(LK_E_USAGE, "--devices: expected a device, got none");
    if (strcmp(run->machine.weights, "sharded")) return LK_OK;
    char *end = *copy + strlen(*copy); /* of the first name; the others are shorter than what they replace */
    for (int i = 1; i < run->n_workers; i++) {
        if (strncmp(run->devices[i], "cuda:", 5))
            return lk_fail(LK_E_USAGE, "--devices: with --weights sharded expected 0,1 and so on, got \"%s\"",
                           run->devices[i]);
        end += sprintf(end, ",%s", run->devices[i] + 5);
    }
    run->n_workers = 1;
    return LK_OK;
}

enum lk_code study_run_list(const struct cli_arguments *a, const struct study_list *list, const char *folder,
                            const char *records) {
    struct supervisor *s = lk_calloc(1, sizeof *s);
    struct lk_study_job *first = lk_malloc(sizeof *first);
    char *devices = NULL;
    for (int m = 0; m < lk_study_n_models(list->study); m++)
        if (lk_study_model_hosted(list->study, m)) cli_leave_no_core();
    enum lk_code rc = s && first ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = cli_preview_check(a->preview, a->overwrite);
    if (!rc) rc = lk_study_job(list->study, 0, first);
    if (!rc) {
        s->run = (struct study_run){.study = list->study,
                                    .folder = folder,
                                    .records = records,
                                    .machine = a->job.run,
                                    .machine_given = a->job.given,
                                    .jobs_per_visit = (int)a->jobs_per_visit,
                                    .preview = {a->preview, (int)a->preview_every, false},
                                    .json = a->json};
        const bool given = lk_job_given(&a->job, lk_parameter_named("device"));
        const char *list_of = a->study.devices ? a->study.devices : given ? a->job.run.device : first->job.run.device;
        rc = study_read_devices(&s->run, list_of, &devices);
    }
    if (!rc) {
        bool cpu = !strcmp(s->run.devices[0], "cpu");
        s->run.piece = a->study.queue ? (int)a->study.queue : cpu ? 4 : 16;
        s->run.journal = lk_format("%s/journal.sqlite", records);
        rc = s->run.journal ? run(s, list, a->study.retry_failed) : lk_fail(LK_E_NOMEM, "out of memory");
    }
    if (s) lk_free(s->run.journal);
    lk_free(devices);
    lk_free(first);
    lk_free(s);
    return rc;
}

/* A study of which nothing can be made is not begun: each job would fail. Nor is one whose prompts are still to be
 * rewritten. */
static enum lk_code check_some(const struct study_list *list) {
    bool any = false;
    for (size_t i = list->n; i--;) {
        LK_TRY(lk_study_job(list->study, (size_t)list->indexes[i], list->job));
        if (list->job->rewrite_missing)
            return lk_fail(LK_E_INPUT, "%s: %s: %s", lk_study_name(list->study), list->job->name, list->job->problem);
        any |= !list->job->problem;
    }
    if (any) return LK_OK;
    size_t n;
    const char *lacking = lk_study_lacking(list->study, &n);
    return lk_fail(LK_E_INPUT, "%s: no job can be made: %s: %s%s%.*s; 'likeness study check' names all that is missing",
                   lk_study_name(list->study), list->job->name, list->job->problem, n ? "; " : "",
                   (int)strcspn(lacking, "\n"), lacking);
}

/* What a run goes on without; of two sources of a cell it takes the first. */
static void tell_lacking(const struct lk_study *study) {
    size_t n;
    const char *first = lk_study_lacking(study, &n);
    if (n)
        lk_log(LK_LOG_WARNING, "%.*s; 'likeness study check' names all that is missing or doubled",
               (int)strcspn(first, "\n"), first);
    study_warn_of_leaks(study);
}

/* A shard's records lie apart from the others', its pictures among theirs. */
enum lk_code study_run(const struct cli_arguments *a, struct lk_study *study) {
    struct study_list list;
    char *records = NULL;
    if (!a->output) return lk_fail(LK_E_USAGE, "--output: missing; usage: likeness study run STUDY.json -o DIR");
    LK_TRY(study_list_make(&list, study, a->study.shard));
    bool all = list.n_shards == 1;
    records = all ? lk_strdup(a->output) : lk_format("%s/shards/%d-of-%d", a->output, list.shard, list.n_shards);
    enum lk_code rc = records ? check_some(&list) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = study_hosted_consent(&list, a->study.send_pictures);
    if (!rc) rc = study_folders_make(records);
    if (!rc) tell_lacking(study);
    if (!rc) rc = study_run_list(a, &list, a->output, records);
    lk_free(records);
    study_list_free(&list);
    return rc;
}
