#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "tools/cli/study/runner.h"

/* What is on record of a run: how far it is, whether its pictures are still those. */

/* One without jobs, whose run was killed as it began or is just beginning, is none. */
static enum lk_code with_journal(const char *path, study_journal_fn *fn, void *context, int *n) {
    struct lk_journal *journal;
    enum lk_code rc = lk_journal_open(&journal, path, NULL);
    if (rc) return rc == LK_E_NOT_FOUND ? LK_OK : rc;
    ++*n;
    rc = fn(context, journal, path);
    lk_journal_close(journal);
    return rc;
}

enum lk_code study_each_shard(const char *folder, study_journal_fn *fn, void *context, int *n) {
    char *above = lk_format("%s/shards", folder);
    struct dirent **names = NULL;
    int n_names = above ? scandir(above, &names, NULL, versionsort) : -1;
    enum lk_code rc = LK_OK;
    for (int i = 0; i < n_names; i++) {
        char *path = lk_format("%s/%s/journal.sqlite", above, names[i]->d_name);
        if (path && *names[i]->d_name != '.' && !access(path, F_OK) && !rc) rc = with_journal(path, fn, context, n);
        lk_free(path);
        free(names[i]);
    }
    free(names);
    lk_free(above);
    return rc;
}

enum lk_code study_each_journal(const char *folder, study_journal_fn *fn, void *context) {
    int n = 0;
    char *own = lk_format("%s/journal.sqlite", folder);
    if (!own) return lk_fail(LK_E_NOMEM, "out of memory");
    enum lk_code rc = access(own, F_OK) ? LK_OK : with_journal(own, fn, context, &n);
    if (!rc && !n) rc = study_each_shard(folder, fn, context, &n);
    lk_free(own);
    if (!rc && !n) return lk_fail(LK_E_NOT_FOUND, "%s: no study was run here", folder);
    return rc;
}

static enum lk_code add_counts(void *context, struct lk_journal *journal, const char *path) {
    struct lk_journal_counts c, *sum = context;
    (void)path;
    LK_TRY(lk_journal_count(journal, &c));
    sum->total += c.total;
    sum->n_gone += c.n_gone;
    sum->n_kept += c.n_kept;
    for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++) {
        memcpy(sum->keys[m], c.keys[m], sizeof c.keys[m]);
        sum->seconds[m] += c.seconds[m];
        for (int k = 0; k < LK_JOB_STATES; k++) {
            sum->of[m][k] += c.of[m][k];
            sum->all[k] += c.of[m][k];
        }
    }
    return LK_OK;
}

enum lk_code study_count(const char *folder, struct lk_journal_counts *out) {
    *out = (struct lk_journal_counts){0};
    return study_each_journal(folder, add_counts, out);
}

enum { SHOWN_FAILURES = 10 };
struct failures {
    bool json;
    int64_t n;
};

static enum lk_code print_failure(void *context, const struct lk_journal_row *row) {
    struct failures *f = context;
    struct lk_text text = {0};
    f->n++;
    if (f->json) {
        lk_text_add(&text, "{\"item_id\":");
        lk_text_json(&text, row->entry.name);
        lk_text_add(&text, ",\"error\":");
        lk_text_json(&text, row->made.error);
        lk_text_add(&text, "}\n");
        fputs(text.bytes ? text.bytes : "", stdout);
    } else if (f->n <= SHOWN_FAILURES) {
        printf("failed: %s: ", row->entry.name);
        lk_log_text(stdout, row->made.error, false);
        putchar('\n');
    }
    return lk_text_free(&text);
}

static enum lk_code print_failures(void *context, struct lk_journal *journal, const char *path) {
    (void)path;
    return lk_journal_each(journal, LK_JOB_FAILED, false, print_failure, context);
}

enum lk_code study_status(const struct cli_arguments *a) {
    struct lk_journal_counts counts;
    const bool json = a->json;
    struct failures failures = {json, 0};
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "study status: expected the folder of a run");
    LK_TRY(study_count(a->more[0], &counts));
    for (int m = 0; m < LK_JOURNAL_MAX_MODELS; m++) {
        const int64_t *of = counts.of[m], n = study_nominal(of);
        if (!n) continue;
        printf(json ? "{\"model\":\"%s\",\"nominal\":%lld,\"success\":%lld,\"failed\":%lld,\"running\":%lld,\"left\":"
                      "%lld,\"seconds_per_job\":%.3f"
                    : "%-8s nominal %lld  success %lld  failed %lld  running %lld  left %lld  %.2f s a job",
               counts.keys[m], (long long)n, (long long)of[LK_JOB_DONE], (long long)of[LK_JOB_FAILED],
               (long long)of[LK_JOB_LEASED], (long long)of[LK_JOB_QUEUED],
               of[LK_JOB_DONE] ? counts.seconds[m] / (double)of[LK_JOB_DONE] : 0);
        if (of[LK_JOB_REFUSED]) printf(json ? ",\"refused\":%lld" : "  refused %lld", (long long)of[LK_JOB_REFUSED]);
        puts(json ? "}" : "");
    }
    if (counts.n_gone && !json)
        printf("%lld jobs are held by workers that are gone; the next run takes them again\n",
               (long long)counts.n_gone);
    if (counts.n_kept && !json)
        printf("%lld pictures are no longer asked for; 'likeness study prune %s' deletes them\n",
               (long long)counts.n_kept, a->more[0]);
    enum lk_code rc = study_each_journal(a->more[0], print_failures, &failures);
    if (!rc && !json && failures.n > SHOWN_FAILURES)
        printf("failed: %lld more, which --json lists\n", (long long)(failures.n - SHOWN_FAILURES));
    return rc;
}

/* Where a picture lies that is no longer asked for, when another job's picture takes its place. Jobs of one id
 * have names of their own. */
char *study_kept_path(const char *folder, const char *id, const char *output) {
    return lk_format("%s/kept/%.16s/%s", folder, id, output);
}

static enum lk_code put_aside(void *context, const struct lk_journal_replaced *r) {
    const char *folder = context;
    char *here = lk_format("%s/results/%s", folder, r->output), *above = NULL,
         *kept = study_kept_path(folder, r->id, r->output), *other = study_kept_path(folder, r->new_id, r->output);
    struct stat st;
    if (kept) above = lk_strdup(kept);
    enum lk_code rc = here && above && kept && other ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    /* The place is the job's own once its picture is made, unless that has been put aside itself. */
    if (!rc && access(kept, F_OK) && !stat(here, &st) && st.st_size == r->bytes && (!r->made || !access(other, F_OK))) {
        *strrchr(above, '/') = 0;
        rc = study_folders_make(above);
        if (!rc && rename(here, kept)) rc = lk_fail_errno(errno, "%s", kept);
    }
    lk_free(here);
    lk_free(above);
    lk_free(kept);
    lk_free(other);
    return rc;
}

enum lk_code study_put_aside(struct lk_journal *journal, const char *folder) {
    return lk_journal_each_replaced(journal, put_aside, (char *)folder);
}

struct pruned {
    const char *folder;
    int64_t n;
};

static enum lk_code remove_file(char *path) {
    if (!path) return lk_fail(LK_E_NOMEM, "out of memory");
    enum lk_code rc = unlink(path) && errno != ENOENT ? lk_fail_errno(errno, "%s", path) : LK_OK;
    lk_free(path);
    return rc;
}

static enum lk_code prune_aside(void *context, const struct lk_journal_row *row) {
    struct pruned *p = context;
    p->n++;
    return remove_file(study_kept_path(p->folder, row->entry.id, row->entry.output));
}

static enum lk_code prune_row(void *context, const struct lk_journal_row *row) {
    const struct pruned *p = context;
    const char *where = row->state == LK_JOB_REFUSED ? "placeholders" : "results"; /* what is refused may have none */
    return remove_file(lk_format("%s/%s/%s", p->folder, where, row->entry.output));
}

static enum lk_code prune_journal(void *context, struct lk_journal *journal, const char *path) {
    (void)path;
    LK_TRY(lk_journal_each_kept(journal, false, prune_aside, context));
    LK_TRY(lk_journal_each_kept(journal, true, prune_row, context));
    return lk_journal_prune(journal);
}

enum lk_code study_prune(const struct cli_arguments *a) {
    struct pruned p = {.folder = a->more[0]};
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "study prune: expected the folder of a run");
    LK_TRY(study_each_journal(p.folder, prune_journal, &p));
    printf("%lld pictures that the study no longer asks for were deleted\n", (long long)p.n);
    return LK_OK;
}

struct verified {
    const char *folder;
    int64_t n, n_bad, n_requeued;
    int64_t *bad; /* of the journal that is looked through */
    size_t n_now, capacity;
    bool requeue;
    char *looked_at[LK_STUDY_MAX_MODELS];
    struct lk_error other; /* the first model that is another now, said when all pictures have been looked at */
};

static enum lk_code verify_row(void *context, const struct lk_journal_row *row) {
    struct verified *v = context;
    char sha256[65];
    char *path = lk_format("%s/results/%s", v->folder, row->entry.output);
    if (!path) return lk_fail(LK_E_NOMEM, "out of memory");
    struct stat st;
    bool gone = stat(path, &st) || !S_ISREG(st.st_mode);
    enum lk_code rc = gone ? LK_OK : lk_digest_file(LK_DIGEST_SHA256, path, sha256);
    lk_free(path);
    if (rc) return rc;
    v->n++;
    if (!gone && !strcmp(sha256, row->made.sha256)) return LK_OK;
    lk_log_text(stdout, row->entry.name, false);
    puts(gone ? ": gone" : ": changed");
    v->n_bad++;
    LK_TRY(lk_grow(&v->bad, &v->capacity, v->n_now + 1, sizeof *v->bad));
    v->bad[v->n_now++] = row->entry.index;
    return LK_OK;
}

static enum lk_code verify_journal(void *context, struct lk_journal *journal, const char *path) {
    struct verified *v = context;
    int64_t n;
    v->n_now = 0;
    LK_TRY(lk_journal_each(journal, LK_JOB_DONE, false, verify_row, v));
    for (size_t i = 0; v->requeue && i < v->n_now; i++) LK_TRY(lk_journal_requeue(journal, v->bad[i], &n));
    enum lk_code rc = study_identity_verify(journal, path, v->looked_at);
    if (rc && !v->other.code) lk_error_get(&v->other, rc);
    return LK_OK;
}

enum lk_code study_verify(const struct cli_arguments *a) {
    struct verified v = {.folder = a->more[0], .requeue = a->study.requeue};
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "study verify: expected the folder of a run");
    enum lk_code rc = study_each_journal(v.folder, verify_journal, &v);
    for (int m = 0; m < LK_STUDY_MAX_MODELS; m++) lk_free(v.looked_at[m]);
    lk_free(v.bad);
    if (rc) return rc;
    printf("%lld pictures, %lld not as recorded\n", (long long)v.n, (long long)v.n_bad);
    if (!v.n_bad) return v.other.code ? lk_error_set(&v.other) : LK_OK;
    return lk_fail(LK_E_CHECKSUM, "%s: %lld of %lld pictures are gone or changed, named above; %s", v.folder,
                   (long long)v.n_bad, (long long)v.n,
                   v.requeue ? "the next run makes them again" : "--requeue has the next run make them");
}

/* What a study will make. */

/* A line for each job, in the study's order. */
static void print_json(const struct lk_study *study, size_t i, const struct lk_study_job *job, struct lk_text *out) {
    lk_text_add(out, "{\"job\": %zu, \"item_id\": \"%s\", \"id\": \"%s\", \"experiment\": \"%s\", \"model\": \"%s\"", i,
                job->name, job->id, job->experiment, job->model_key);
    lk_text_add(out, ", \"model_path\": ");
    lk_text_json(out, job->model_path);
    lk_text_add(out, ", \"arm\": \"%s\", \"pair\": \"%s\", \"sources\": [", lk_factor_key(LK_FACTOR_ARM, (int)job->arm),
                job->pair);
    for (int s = 0; s < job->n_sources; s++) {
        char id[64];
        study_source_name(study, job->sources[s], id);
        lk_text_add(out, "%s\"%s\"", s ? ", " : "", id);
    }
    lk_text_add(out, "], \"source_sha256\": [");
    for (int s = 0; s < job->n_sources; s++)
        lk_text_add(out, "%s\"%s\"", s ? ", " : "", lk_study_source(study, job->sources[s])->sha256);
    lk_text_add(out, "], \"prompt_id\": \"%s\", \"category\": \"%s\", \"prompt_text\": ", job->prompt->id,
                job->prompt->category);
    lk_text_json(out, job->prompt->text);
    if (job->original_prompt) {
        lk_text_add(out, ", \"original_prompt\": ");
        lk_text_json(out, job->original_prompt);
    }
    const struct {
        const char *key, *text;
    } texts[] = {{"feature_prompt", job->feature_prompt},
                 {"final_prompt", job->final_prompt},
                 {"output", job->output},
                 {"problem", job->problem}};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        lk_text_add(out, ", \"%s\": ", texts[t].key);
        if (texts[t].text)
            lk_text_json(out, texts[t].text);
        else
            lk_text_add(out, "null");
    }
    lk_text_add(out, ", \"seed\": %llu}\n", (unsigned long long)job->job.request.seed);
}

enum lk_code study_jobs(const struct cli_arguments *a, struct lk_study *study) {
    struct lk_text text = {0};
    struct lk_study_job job;
    struct study_list list;
    LK_TRY(study_list_make(&list, study, a->study.shard));
    enum lk_code rc = LK_OK;
    for (size_t i = 0; i < list.n && !rc; i++) {
        rc = lk_study_job(study, (size_t)list.indexes[i], &job);
        text.n = 0;
        if (!rc && a->json)
            print_json(study, (size_t)list.indexes[i], &job, &text);
        else if (!rc)
            lk_text_add(&text, "%s\n", job.name);
        if (!rc && !(rc = text.rc)) fwrite(text.bytes, 1, text.n, stdout);
    }
    lk_text_free(&text);
    study_list_free(&list);
    return rc;
}

/* Which jobs a run has, and its journal of them. */

static enum lk_code read_shard(struct study_list *list, const char *text) {
    char rest;
    list->shard = list->n_shards = 1;
    if (!text) return LK_OK;
    if (sscanf(text, "%d/%d%c", &list->shard, &list->n_shards, &rest) == 2 && list->shard >= 1 &&
        list->shard <= list->n_shards && list->n_shards <= 10000)
        return LK_OK;
    return lk_fail(LK_E_USAGE, "--shard: expected I/N with I from 1 to N, got \"%s\"", text);
}

/* Of each model the same share of its jobs, in one piece, so that sources stay together. */
static enum lk_code choose(struct study_list *list, size_t n, signed char *models) {
    size_t seen[LK_STUDY_MAX_MODELS] = {0}, of[LK_STUDY_MAX_MODELS] = {0}, shard = (size_t)list->shard,
           n_shards = (size_t)list->n_shards;
    for (size_t i = 0; n_shards == 1 && i < n; i++) list->indexes[list->n++] = (int64_t)i;
    if (n_shards == 1) return LK_OK;
    for (size_t i = 0; i < n; i++) {
        LK_TRY(lk_study_job(list->study, i, list->job));
        of[models[i] = (signed char)list->job->model]++;
    }
    for (size_t i = 0; i < n; i++) {
        size_t at = seen[models[i]]++, all = of[models[i]];
        if (at >= all * (shard - 1) / n_shards && at < all * shard / n_shards) list->indexes[list->n++] = (int64_t)i;
    }
    return LK_OK;
}

enum lk_code study_list_make(struct study_list *list, const struct lk_study *study, const char *shard) {
    size_t n = lk_study_n_jobs(study);
    *list = (struct study_list){.study = study};
    LK_TRY(read_shard(list, shard));
    if (!n) return lk_fail(LK_E_INPUT, "%s: has no jobs", lk_study_name(study));
    list->indexes = lk_malloc(n * sizeof *list->indexes);
    list->job = lk_malloc(sizeof *list->job);
    signed char *models = lk_malloc(n);
    bool memory = list->indexes && list->job && models;
    enum lk_code rc = memory ? choose(list, n, models) : lk_fail(LK_E_NOMEM, "out of memory for %zu jobs", n);
    lk_free(models);
    if (rc) study_list_free(list);
    return rc;
}

void study_list_free(struct study_list *list) {
    lk_free(list->indexes);
    lk_free(list->job);
}

static enum lk_code entry(void *context, size_t k, struct lk_journal_entry *out) {
    const struct study_list *list = context;
    LK_TRY(lk_study_job(list->study, (size_t)list->indexes[k], list->job));
    *out = (struct lk_journal_entry){list->indexes[k], list->job->id, list->job->name, list->job->output,
                                     list->job->model};
    return LK_OK;
}

/* A picture that an earlier version of the study asked for: what it is of is said by this one. */
static enum lk_code record_again(void *context, size_t k, const char *old, struct lk_text *out) {
    const struct study_list *list = context;
    LK_TRY(lk_study_job(list->study, (size_t)list->indexes[k], list->job));
    return study_record_again(out, list->study, list->job, old);
}

enum lk_code study_journal_open(const char *path, const struct study_list *list, struct lk_journal **out) {
    struct study_list copy = *list; /* the job in it is written */
    const char *models[LK_STUDY_MAX_MODELS];
    const int n_models = lk_study_n_models(list->study);
    for (int m = 0; m < n_models; m++) models[m] = lk_study_model_key(list->study, m);
    return lk_journal_open(out, path,
                           &(struct lk_journal_list){lk_study_hash(list->study), list->shard, list->n_shards, list->n,
                                                     models, n_models, entry, record_again, &copy});
}

enum lk_code study_journal_check(const struct lk_journal *journal, const char *path, const struct lk_study *study) {
    const char *theirs = lk_journal_study(journal), *ours = lk_study_hash(study);
    if (!strcmp(theirs, ours)) return LK_OK;
    return lk_fail(LK_E_CHANGED, "%s: is of another study (its configuration is %.12s, this one's %.12s)", path, theirs,
                   ours);
}

/* Of the file, when it is there: whether it has just these bytes. */
static bool is_written(const char *path, const char *text, size_t n) {
    char *there;
    size_t n_there;
    if (access(path, F_OK) || lk_read_file(path, 1 << 30, &there, &n_there)) return false;
    const bool same = n_there == n && !memcmp(there, text, n);
    lk_free(there);
    return same;
}

/* A file that is not there is what the study lacks, which others say. */
static enum lk_code copy_input(void *context, const char *name, const char *path) {
    char *to = lk_format("%s/%s", (const char *)context, name), *folder = lk_format("%s/inputs", (const char *)context);
    char *text = NULL;
    size_t n = 0;
    enum lk_code rc = to && folder ? lk_read_file(path, 1 << 30, &text, &n) : lk_fail(LK_E_NOMEM, "out of memory");
    if (rc == LK_E_NOT_FOUND) {
        rc = LK_OK;
    } else if (!rc && !is_written(to, text, n)) {
        rc = study_folders_make(folder);
        if (!rc) rc = lk_atomic_write_file(to, text, n);
    }
    lk_free(text);
    lk_free(folder);
    lk_free(to);
    return rc;
}

enum lk_code study_resolved_write(const struct lk_study *study, const char *folder) {
    const char *resolved = lk_study_resolved(study);
    const size_t n = strlen(resolved);
    char *path = lk_format("%s/study.json", folder);
    enum lk_code rc = path ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = lk_study_each_input(study, copy_input, (void *)(uintptr_t)folder);
    if (!rc && !is_written(path, resolved, n)) rc = lk_atomic_write_file(path, resolved, n);
    lk_free(path);
    return rc;
}

enum lk_code study_folders_make(const char *path) {
    char *copy = lk_format("%s/", path);
    enum lk_code rc = copy ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    for (char *at = copy; !rc && (at = strchr(at + 1, '/'));) {
        *at = 0;
        if (mkdir(copy, 0777) && errno != EEXIST) rc = lk_fail_errno(errno, "%s", copy);
        *at = '/';
    }
    if (!rc && access(copy, F_OK)) rc = lk_fail(LK_E_USAGE, "%s: expected a folder or nothing, got a file", path);
    lk_free(copy);
    return rc;
}
