#include "tools/cli/study/live.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/base/alloc.h"
#include "engine/image/image.h"
#include "tools/cli/study/study.h"

enum { RATE_PICTURES = 400, RATE_MS = 3600 * 1000 };

/* What one journal adds to a view. */
struct gathered {
    struct live_view *view;
    int n; /* pictures of the last hour */
    int64_t first_ms;
};

static int64_t ended_ms(const struct lk_journal_row *row) {
    return row->made.started_ms + (int64_t)(1000 * row->made.seconds);
}

/* The view's pictures in order of their end; the row is one of them, or older than all. */
static enum lk_code add_picture(void *context, const struct lk_journal_row *row) {
    struct gathered *g = context;
    struct live_view *v = g->view;
    int64_t ended = ended_ms(row);
    if (ended >= v->now_ms - RATE_MS) {
        g->n++;
        if (g->first_ms > row->made.started_ms) g->first_ms = row->made.started_ms;
    }
    int at = v->n_latest;
    while (at && v->latest[at - 1].ended_ms < ended) at--;
    if (at == LIVE_PICTURES) return LK_OK;
    int n_behind = (v->n_latest < LIVE_PICTURES ? v->n_latest : LIVE_PICTURES - 1) - at;
    memmove(&v->latest[at + 1], &v->latest[at], (size_t)n_behind * sizeof *v->latest);
    struct live_picture *p = &v->latest[at];
    *p = (struct live_picture){.index = row->entry.index, .ended_ms = ended};
    snprintf(p->name, sizeof p->name, "%s", row->entry.name);
    snprintf(p->digest, sizeof p->digest, "%.8s", row->made.sha256);
    v->n_latest += v->n_latest < LIVE_PICTURES;
    return LK_OK;
}

static enum lk_code add_failure(void *context, const struct lk_journal_row *row) {
    struct live_view *v = context;
    if (v->n_failures++ < LIVE_FAILURES)
        live_failure(&v->failures, row->entry.name, row->made.error, row->attempts + row->crashes);
    return v->failures.rc;
}

static enum lk_code gather(void *context, struct lk_journal *journal, const char *path) {
    struct gathered g = {.view = context, .first_ms = INT64_MAX};
    (void)path;
    LK_TRY(lk_journal_latest(journal, RATE_PICTURES, add_picture, &g));
    if (g.n) g.view->per_hour += g.n * 3.6e6 / (double)(g.view->now_ms > g.first_ms ? g.view->now_ms - g.first_ms : 1);
    return lk_journal_each(journal, LK_JOB_FAILED, false, add_failure, context);
}

static char *preview_path(const char *folder) { return lk_format("%s/" LIVE_PREVIEW, folder); }

/* What the workers' last step has made, while there is a job in hand. A file that cannot be read shows nothing. */
static void find_preview(const char *folder, struct live_view *v) {
    char *path = preview_path(folder);
    struct stat st;
    struct lk_png_text *texts;
    if (path && v->counts.all[LK_JOB_LEASED] && !lstat(path, &st) && S_ISREG(st.st_mode) &&
        !lk_picture_text_read(path, &texts)) {
        for (const struct lk_png_text *t = texts; t->key; t++)
            if (!strcmp(t->key, "likeness preview")) snprintf(v->preview, sizeof v->preview, "%s", t->text);
        lk_png_text_free(texts);
        v->preview_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    }
    lk_free(path);
}

static enum lk_code overview(const struct live_site *s, struct survey_reply *reply) {
    struct live_view *v = lk_calloc(1, sizeof *v);
    if (!v) return lk_fail(LK_E_NOMEM, "serve study: out of memory");
    v->now_ms = s->now();
    enum lk_code rc = study_count(s->folder, &v->counts);
    if (!rc) rc = study_each_journal(s->folder, gather, v);
    if (!rc) find_preview(s->folder, v);
    if (!rc) live_page(s, v, &reply->body);
    lk_text_free(&v->failures);
    lk_free(v);
    return rc ? rc : reply->body.rc;
}

struct wanted {
    int64_t index;
    char output[2 * LK_STUDY_NAME_BYTES];
};

static enum lk_code keep_output(void *context, const struct lk_journal_row *row) {
    struct wanted *w = context;
    if (row->state == LK_JOB_DONE) snprintf(w->output, sizeof w->output, "%s", row->entry.output);
    return LK_OK;
}

static enum lk_code find_output(void *context, struct lk_journal *journal, const char *path) {
    struct wanted *w = context;
    (void)path;
    return *w->output ? LK_OK : lk_journal_one(journal, w->index, keep_output, w);
}

/* NAME in the run's results, links followed; NULL when it is not there or lies elsewhere. */
static char *find_picture(const char *folder, const char *name) {
    char whole[PATH_MAX], results[PATH_MAX];
    char *above = lk_format("%s/results", folder), *path = lk_format("%s/results/%s", folder, name);
    bool there = above && path && realpath(above, results) && realpath(path, whole);
    size_t n = there ? strlen(results) : 0;
    lk_free(above);
    lk_free(path);
    return there && !strncmp(whole, results, n) && whole[n] == '/' ? lk_strdup(whole) : NULL;
}

static enum lk_code picture(const struct live_site *s, const char *number, struct survey_reply *reply) {
    struct wanted w = {.index = survey_number(number, INT_MAX)};
    if (w.index >= 0) LK_TRY(study_each_journal(s->folder, find_output, &w));
    if (*w.output) reply->path = find_picture(s->folder, w.output);
    if (!reply->path) return local_refuse(&s->site, reply, 404, "There is no such picture.");
    reply->file = reply->path;
    reply->may_be_kept = true;
    return LK_OK;
}

static enum lk_code preview(const struct live_site *s, struct survey_reply *reply) {
    struct live_view *v = lk_calloc(1, sizeof *v);
    if (!v) return lk_fail(LK_E_NOMEM, "serve study: out of memory");
    enum lk_code rc = study_count(s->folder, &v->counts);
    if (!rc) find_preview(s->folder, v);
    const bool there = !rc && *v->preview;
    lk_free(v);
    if (rc) return rc;
    reply->path = there ? preview_path(s->folder) : NULL;
    reply->file = reply->path;
    return there ? LK_OK : local_refuse(&s->site, reply, 404, "There is no such picture.");
}

static enum lk_code get(struct local_site *site, const char *path, struct survey_reply *reply) {
    struct live_site *s = (struct live_site *)site;
    if (!strcmp(path, "/")) return overview(s, reply);
    if (!strcmp(path, "/style.css")) return local_file(site, "live_style", "text/css; charset=utf-8", reply);
    if (!strcmp(path, "/script.js")) return local_file(site, "live_script", "text/javascript; charset=utf-8", reply);
    if (!strcmp(path, "/preview")) return preview(s, reply);
    if (!strncmp(path, "/picture/", 9)) return picture(s, path + 9, reply);
    return local_refuse(site, reply, 404, "There is no such page.");
}

const struct local_site live_local_site = {.name = "run", .command = "serve study", .get = get};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

enum lk_code study_serve_run(const struct cli_arguments *a) {
    struct lk_journal_counts counts;
    LK_TRY(local_check_bind(&live_local_site, a->survey.bind));
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "serve study: expected the folder of a run");
    LK_TRY(study_count(a->more[0], &counts));
    struct live_site s = {.site = live_local_site, .folder = a->more[0], .now = now_ms};
    return local_serve(&s.site, (int)a->survey.port);
}
