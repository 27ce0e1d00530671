#include "tools/cli/audit/audit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/scores/dataset.h"
#include "eval/scores/fields.h"
#include "tools/cli/cli.h"
#include "tools/cli/study/runner.h"

/* A line of an answer, and where it belongs. */
struct line {
    const char *text;
    size_t n;
    int64_t place; /* of its item among those that are judged, twice, and one more for the second order; -1: another's
                    */
    char picture[65]; /* "edited_sha256": another picture of the item has a line of its own; "" */
    size_t seen;
};

struct lines {
    struct line *list;
    size_t n, capacity;
    char *files[STUDY_MAX_WORKERS + 1]; /* texts that the lines lie in */
    int n_files;
};

static void lines_free(struct lines *lines) {
    for (int i = 0; i < lines->n_files; i++) lk_free(lines->files[i]);
    lk_free(lines->list);
}

static void part_name(const struct cli_shared *shared, const char *output, int part, char *out, size_t size) {
    snprintf(out, size, "%s.part-%d%s", output, part, shared->ending);
}

static int64_t place_of(const struct cli_shared *shared, const struct lk_fields *fields) {
    const struct lk_field *id = lk_fields_find(fields, shared->key), *order = lk_fields_find(fields, "order");
    const int32_t item = id ? lk_names_find(&shared->items, id->text, id->n) : -1;
    return item < 0 ? -1 : 2 * (int64_t)item + (order && !strcmp(order->text, "preserved_first"));
}

/* Whole lines of a file, which may be missing. */
static enum lk_code read_lines(struct lines *lines, const char *path, const struct cli_shared *shared) {
    struct lk_fields fields = {0};
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
    if (rc) return rc == LK_E_NOT_FOUND ? LK_OK : rc;
    lines->files[lines->n_files++] = text;
    n = lk_whole_lines(text, n);
    for (size_t at = 0; at < n && !rc;) {
        const size_t length = (size_t)((const char *)memchr(text + at, '\n', n - at) + 1 - (text + at));
        struct line line = {.text = text + at, .n = length, .seen = lines->n};
        const enum lk_code read = lk_fields_json(&fields, text + at, length, path);
        rc = read == LK_E_NOMEM ? read : lk_grow(&lines->list, &lines->capacity, lines->n + 1, sizeof *lines->list);
        if (rc) break;
        line.place = read ? -1 : place_of(shared, &fields); /* a blank line, or one that the workers name */
        const struct lk_field *picture = read ? NULL : lk_fields_find(&fields, "edited_sha256");
        snprintf(line.picture, sizeof line.picture, "%s", picture ? picture->text : "");
        lines->list[lines->n++] = line;
        at += length;
    }
    lk_fields_free(&fields);
    return rc;
}

static int by_place(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return x->seen < y->seen ? -1 : x->seen > y->seen;
}

/* A line that is there already: of the same item, or word for word the one before. */
static bool is_again(const struct line *line, const struct line *before) {
    if (line->place != before->place || strcmp(line->picture, before->picture) != 0) return false;
    return line->place >= 0 || (line->n == before->n && !memcmp(line->text, before->text, line->n));
}

/* What workers have left, in the one file; each answer once. A kill on the way loses nothing: the parts go last. */
static enum lk_code gather(const struct cli_shared *shared, const char *output) {
    struct lines lines = {0};
    struct lk_text all = {0};
    char path[4096], whole[4096];
    bool any = false;
    snprintf(whole, sizeof whole, "%s%s", output, shared->ending);
    enum lk_code rc = read_lines(&lines, whole, shared);
    for (int k = 0; k < STUDY_MAX_WORKERS && !rc; k++) {
        part_name(shared, output, k, path, sizeof path);
        if (access(path, F_OK)) continue;
        any = true;
        rc = read_lines(&lines, path, shared);
    }
    if (!rc && lines.n) qsort(lines.list, lines.n, sizeof *lines.list, by_place);
    for (size_t i = 0; i < lines.n && !rc; i++) {
        if (!i || !is_again(&lines.list[i], &lines.list[i - 1]))
            lk_text_bytes(&all, lines.list[i].text, lines.list[i].n);
        rc = all.rc;
    }
    if (!rc && any) rc = lk_atomic_write_file(whole, all.n ? all.bytes : "", all.n);
    for (int k = 0; k < STUDY_MAX_WORKERS && !rc && any; k++) {
        part_name(shared, output, k, path, sizeof path);
        unlink(path);
    }
    lk_text_free(&all);
    lines_free(&lines);
    return rc;
}

/* A process that ends with the supervisor. */
static pid_t start(const struct cli_arguments *arguments, const struct cli_shared *shared, const struct study_run *run,
                   int lock, int part, struct cli_progress *progress) {
    const pid_t parent = getpid(), child = fork();
    if (child) return child;
    struct cli_arguments a = *arguments;
    char path[4096];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    if (lock > 0) close(lock); /* which is the supervisor's, and ends with it */
    snprintf(path, sizeof path, "%s.part-%d", arguments->output, part);
    a.output = path;
    a.job.run.device = (char *)(uintptr_t)run->devices[part];
    const enum lk_code rc = shared->work(&a, &(struct cli_share){arguments->output, part, run->n_workers, progress});
    if (rc && rc != LK_E_PARTIAL) lk_log(LK_LOG_ERROR, "worker %d (%s): %s", part, run->devices[part], lk_error_text());
    fflush(NULL);
    _exit(lk_exit_code(rc));
}

void cli_progress_show(struct cli_progress *p) {
    const int64_t total = p->total, asked = p->asked;
    if (total) lk_log_progress("item", (int)asked, (int)total, lk_log_now());
}

/* Until all have ended; the exit code that says most. */
static int wait_for_all(pid_t *workers, int n, struct cli_progress *progress) {
    int64_t shown = -1;
    int left = n, worst = 0;
    bool told = false;
    while (left) {
        int status;
        if (cli_signals_name() && !told) {
            for (int k = 0; k < n; k++)
                if (workers[k] > 0) kill(workers[k], SIGTERM);
            told = true;
        }
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (!pid) {
            if (progress->asked != shown && progress->total) cli_progress_show(progress), shown = progress->asked;
            usleep(50000);
            continue;
        }
        for (int k = 0; k < n; k++)
            if (workers[k] == pid) workers[k] = 0, left--;
        const int code = pid < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (pid < 0) left = 0;
        if (code && (!worst || worst == 6)) worst = code;
    }
    if (progress->asked != shown) cli_progress_show(progress);
    return worst;
}

static enum lk_code conclude(const struct cli_shared *shared, int code, int n) {
    static const struct {
        int exit_code;
        enum lk_code code;
    } codes[] = {{3, LK_E_INPUT}, {4, LK_E_NOMEM}, {5, LK_E_DEVICE}, {6, LK_E_PARTIAL}, {7, LK_E_IO}};
    if (!code) return LK_OK;
    if (cli_signals_name())
        return lk_fail(LK_E_INTERRUPTED, "stopped by %s; the same command goes on from here", cli_signals_name());
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].exit_code == code)
            return lk_fail(
                codes[i].code,
                "%s: some of %d workers could not %s all, as said above; then the same command goes on from here",
                shared->what, n, shared->does);
    return lk_fail(LK_E_INTERNAL, "%s: a worker died; the same command goes on from here", shared->what);
}

static enum lk_code run_workers(const struct cli_arguments *a, const struct cli_shared *shared,
                                const struct study_run *run, struct cli_progress *progress) {
    pid_t workers[STUDY_MAX_WORKERS];
    struct lk_append_lock lock = {0};
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", a->output, shared->ending);
    LK_TRY(lk_append_lock(&lock, whole));
    enum lk_code rc = gather(shared, a->output); /* the file may be another one now */
    lk_append_unlock(&lock);
    if (!rc) rc = lk_append_lock(&lock, whole);
    if (rc) return rc;
    cli_signals_install();
    for (int k = 0; k < run->n_workers; k++) workers[k] = start(a, shared, run, lock.fd, k, progress);
    const int code = wait_for_all(workers, run->n_workers, progress);
    lk_append_unlock(&lock); /* an empty file that it has made goes with it */
    rc = gather(shared, a->output);
    return rc ? rc : conclude(shared, code, run->n_workers);
}

enum lk_code cli_shares(const struct cli_arguments *a, const struct cli_shared *shared) {
    struct study_run run = {.machine.weights = "own"};
    char *names = NULL;
    struct cli_progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) return lk_fail_errno(errno, "%s: memory that workers share", shared->what);
    enum lk_code rc = study_read_devices(&run, a->study.devices, &names);
    if (!rc) rc = run_workers(a, shared, &run, progress);
    munmap(progress, sizeof *progress);
    lk_free(names);
    return rc;
}
