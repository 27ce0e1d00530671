/* study merge: shards of one folder, and runs of other folders with their pictures, put together. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "engine/base/store.h"
#include "tools/cli/study/runner.h"

enum { MAX_PICTURE_BYTES = 1 << 30 };

/* A picture as the first journal that has it records it. */
struct recorded {
    char id[65], sha256[65];
    const char *journal; /* NULL: none */
    bool preferred;
};

struct merge {
    struct lk_journal *journal;
    const struct lk_study *study;
    const char *from, *to;                     /* from NULL: the pictures are there */
    const char *prefer;                        /* the folder whose pictures stand where two differ; NULL */
    struct recorded *recorded;                 /* a job each */
    struct lk_names outputs;                   /* of the jobs, in their order */
    int64_t n_known, n_unknown;                /* pictures that the study asks for; others */
    char other_settings[300];                  /* a picture that is made otherwise than the study asks for; "" */
    char other_journal[300];                   /* whose */
    char *models[LK_STUDY_MAX_MODELS];         /* as the first journal that has pictures of it notes it */
    const char *noted_by[LK_STUDY_MAX_MODELS]; /* that journal */
    const char *now;                           /* the journal that is looked at */
    bool now_preferred;
    struct lk_store store; /* paths of journals */
    size_t n_conflicts;
    char first[800]; /* the first of them, as a message */
};

static enum lk_code is_done(void *context, const struct lk_journal_row *row) {
    *(bool *)context = row->state == LK_JOB_DONE;
    return LK_OK;
}

static enum lk_code copy_file(const char *from, const char *to, const char *sha256) {
    char *bytes, got[65], *folder = lk_strdup(to);
    size_t n;
    if (!folder) return lk_fail(LK_E_NOMEM, "%s: out of memory", to);
    *strrchr(folder, '/') = 0;
    enum lk_code rc = study_folders_make(folder);
    lk_free(folder);
    if (rc) return rc;
    LK_TRY(lk_read_file(from, MAX_PICTURE_BYTES, &bytes, &n));
    lk_sha256(bytes, n, got);
    rc = strcmp(got, sha256)
             ? lk_fail(LK_E_CHECKSUM, "%s: is not as recorded; 'study verify --requeue' there, and run, makes it again",
                       from)
             : lk_atomic_write_file(to, bytes, n);
    lk_free(bytes);
    return rc;
}

/* The study's job that a row of another journal is of; -1: the study does not ask for it. */
static int64_t job_of(const struct merge *m, const struct lk_journal_row *row) {
    const char *output = row->entry.output;
    const int32_t i = lk_names_find(&m->outputs, output, strlen(output));
    return i >= 0 && !strcmp(m->recorded[i].id, row->entry.id) ? i : -1;
}

/* The mask that the study drew for a picture, if it did, beside it. */
static enum lk_code copy_mask(const struct merge *m, const struct lk_journal_row *row) {
    cJSON *line = cJSON_Parse(row->made.line);
    const char *mask = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "mask")),
               *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "mask_sha256"));
    const bool drawn = mask && sha256 && cJSON_GetObjectItemCaseSensitive(line, "mask_drawn") &&
                       !strncmp(mask, "masks/", 6) && !strstr(mask, "..");
    char *from = drawn ? lk_format("%s/%s", m->from, mask) : NULL, *to = from ? lk_format("%s/%s", m->to, mask) : NULL;
    enum lk_code rc = !drawn ? LK_OK : from && to ? copy_file(from, to, sha256) : lk_fail(LK_E_NOMEM, "out of memory");
    lk_free(from);
    lk_free(to);
    cJSON_Delete(line);
    return rc;
}

/* What is done here already stays as it is. */
static enum lk_code copy_picture(void *context, const struct lk_journal_row *row) {
    const struct merge *m = context;
    const int64_t job = job_of(m, row);
    bool done = false;
    if (job < 0) return LK_OK;
    LK_TRY(lk_journal_one(m->journal, job, is_done, &done));
    if (done) return LK_OK;
    char *from = lk_format("%s/results/%s", m->from, row->entry.output),
         *to = lk_format("%s/results/%s", m->to, row->entry.output);
    enum lk_code rc = from && to ? copy_file(from, to, row->made.sha256) : lk_fail(LK_E_NOMEM, "out of memory");
    lk_free(from);
    lk_free(to);
    return rc ? rc : copy_mask(m, row);
}

static enum lk_code merge_one(void *context, struct lk_journal *journal, const char *path) {
    struct merge *m = context;
    if (m->from) LK_TRY(lk_journal_each(journal, LK_JOB_DONE, true, copy_picture, m));
    enum lk_code rc = lk_journal_merge(m->journal, path);
    return rc && !strstr(lk_error_text(), path) ? lk_fail_prefix(rc, "%s", path) : rc;
}

/* Two pictures of one job that differ are a contradiction: one of the runs is not what it says. The preferred run comes
 * first and cannot be contradicted. */
static enum lk_code compare(void *context, const struct lk_journal_row *row) {
    struct merge *m = context;
    const int64_t job = job_of(m, row);
    m->n_known += job >= 0;
    m->n_unknown += job < 0;
    if (job < 0) {
        const bool named = lk_names_find(&m->outputs, row->entry.output, strlen(row->entry.output)) >= 0;
        if (!named || *m->other_settings) return LK_OK;
        snprintf(m->other_settings, sizeof m->other_settings, "%.250s", row->entry.name);
        snprintf(m->other_journal, sizeof m->other_journal, "%.290s", m->now);
        return LK_OK;
    }
    struct recorded *r = &m->recorded[job];
    if (!r->journal) {
        snprintf(r->sha256, sizeof r->sha256, "%s", row->made.sha256);
        r->journal = m->now;
        r->preferred = m->now_preferred;
    } else if (strcmp(r->sha256, row->made.sha256) && !r->preferred) {
        char line[sizeof m->first];
        snprintf(line, sizeof line, "%.250s: field \"sha256\" of %.120s: expected %.12s as in %.250s, got %.12s",
                 m->now, row->entry.name, r->sha256, r->journal, row->made.sha256);
        if (!m->n_conflicts++) strcpy(m->first, line);
        lk_log_text(stdout, line, false);
        putchar('\n');
    }
    return LK_OK;
}

/* Runs whose model is not the same one are of two studies, whichever pictures are preferred. */
static enum lk_code compare_models(struct merge *m, struct lk_journal *journal, int model) {
    char *noted;
    LK_TRY(lk_journal_model(journal, lk_study_model_key(m->study, model), NULL, &noted));
    if (noted && !m->models[model]) {
        m->models[model] = noted;
        m->noted_by[model] = m->now;
        return LK_OK;
    }
    enum lk_code rc = noted ? study_identity_compare(m->noted_by[model], m->models[model], m->now, noted,
                                                     lk_study_model_key(m->study, model))
                            : LK_OK;
    lk_free(noted);
    return rc;
}

/* Before anything is written: whether there is something to put together, and whether it fits. */
static enum lk_code look(void *context, struct lk_journal *journal, const char *path) {
    struct merge *m = context;
    if (!(m->now = lk_store_copy(&m->store, path, strlen(path)))) return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    for (int k = 0; k < lk_study_n_models(m->study); k++) LK_TRY(compare_models(m, journal, k));
    return lk_journal_each(journal, LK_JOB_DONE, false, compare, m);
}

static enum lk_code check_preferred(const struct cli_arguments *a) {
    const char *prefer = a->study.prefer;
    bool given = !prefer || !strcmp(prefer, a->output);
    for (int k = 1; k < CLI_MAX_MORE && a->more[k] && !given; k++) given = !strcmp(a->more[k], prefer);
    return given
               ? LK_OK
               : lk_fail(LK_E_USAGE, "--prefer: expected one of the runs that are merged, or --output, got %s", prefer);
}

/* A picture under the name of one that is asked for, made otherwise: which settings differ. */
static enum lk_code settings_differ(const struct merge *m) {
    struct lk_study *theirs = NULL;
    struct lk_text lines = {0};
    size_t n = 0;
    char *path =
        lk_format("%.*sstudy.json", (int)(strrchr(m->other_journal, '/') + 1 - m->other_journal), m->other_journal);
    if (path && !lk_study_open(&theirs, path)) lk_study_compare(theirs, m->study, NULL, &lines, &n);
    const int first = n ? (int)strcspn(lines.bytes, "\n") : 0;
    enum lk_code rc =
        lk_fail(LK_E_CONFLICT, "%s: %s was made with other settings than this study asks for%s%.*s; nothing was merged",
                m->other_journal, m->other_settings, first ? ": " : "", first, first ? lines.bytes : "");
    lk_study_close(theirs);
    lk_text_free(&lines);
    lk_free(path);
    return rc;
}

/* Whose pictures are asked for, by the names of their files. */
static enum lk_code list_outputs(struct merge *m) {
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    for (size_t i = 0; i < lk_study_n_jobs(m->study) && !rc; i++) {
        int32_t number;
        rc = lk_study_job(m->study, i, job);
        if (!rc) rc = lk_names_number(&m->outputs, job->output, strlen(job->output), &number);
        if (!rc && (size_t)number != i)
            rc = lk_fail(LK_E_INPUT, "%s: expected each output once, got %s twice", lk_study_name(m->study),
                         job->output);
        if (!rc) memcpy(m->recorded[i].id, job->id, sizeof job->id);
    }
    lk_free(job);
    return rc;
}

/* journal: of what was merged into the folder before, if it is there. */
static enum lk_code look_at_all(struct merge *m, const struct cli_arguments *a, const char *journal) {
    int n = 0;
    m->now_preferred = true;
    if (m->prefer) LK_TRY(study_each_journal(m->prefer, look, m));
    m->now_preferred = false;
    if (!access(journal, F_OK)) LK_TRY(study_each_journal(a->output, look, m));
    LK_TRY(study_each_shard(a->output, look, m, &n));
    for (int k = 1; k < CLI_MAX_MORE && a->more[k]; k++, n++) LK_TRY(study_each_journal(a->more[k], look, m));
    if (!n) return lk_fail(LK_E_NOT_FOUND, "%s/shards: no shard was run here", a->output);
    if (*m->other_settings) return settings_differ(m);
    if (!m->n_known && m->n_unknown)
        return lk_fail(LK_E_CHANGED, "%s: is of another study: none of its %lld pictures are asked for by this one",
                       m->now, (long long)m->n_unknown);
    if (m->n_unknown)
        lk_log(LK_LOG_WARNING, "%lld pictures that this study does not ask for are left where they are",
               (long long)m->n_unknown);
    if (!m->n_conflicts) return LK_OK;
    return lk_fail(
        LK_E_CONFLICT,
        "%s; nothing was merged (%zu jobs have two pictures, named above): --prefer DIR takes those of one run",
        m->first, m->n_conflicts);
}

static enum lk_code get_sha256(void *context, const struct lk_journal_row *row) {
    if (row->state == LK_JOB_DONE) snprintf(context, 65, "%s", row->made.sha256);
    return LK_OK;
}

/* What the preferred run has otherwise than the folder is open again, for its picture to come. */
static enum lk_code reopen(void *context, const struct lk_journal_row *row) {
    struct merge *m = context;
    const int64_t job = job_of(m, row);
    char sha256[65] = "";
    int64_t n;
    if (job < 0) return LK_OK;
    LK_TRY(lk_journal_one(m->journal, job, get_sha256, sha256));
    return *sha256 && strcmp(sha256, row->made.sha256) ? lk_journal_requeue(m->journal, job, &n) : LK_OK;
}

static enum lk_code merge_preferred(void *context, struct lk_journal *journal, const char *path) {
    LK_TRY(lk_journal_each(journal, LK_JOB_DONE, false, reopen, context));
    return merge_one(context, journal, path);
}

static enum lk_code merge_all(struct merge *m, const struct cli_arguments *a) {
    int n;
    if (m->prefer && strcmp(m->prefer, a->output)) {
        m->from = m->prefer;
        LK_TRY(study_each_journal(m->from, merge_preferred, m));
        m->from = NULL;
    }
    LK_TRY(study_each_shard(a->output, merge_one, m, &n));
    for (int k = 1; k < CLI_MAX_MORE && a->more[k]; k++) {
        m->from = a->more[k];
        LK_TRY(study_each_journal(m->from, merge_one, m));
    }
    return LK_OK;
}

enum lk_code study_merge(const struct cli_arguments *a, struct lk_study *study) {
    struct study_list list;
    struct lk_journal_counts counts = {0};
    struct merge m = {.study = study, .to = a->output, .prefer = a->study.prefer};
    if (!a->output) return lk_fail(LK_E_USAGE, "--output: missing; usage: likeness study merge STUDY.json -o DIR");
    LK_TRY(check_preferred(a));
    LK_TRY(study_list_make(&list, study, NULL));
    char *path = lk_format("%s/journal.sqlite", a->output);
    m.recorded = lk_calloc(lk_study_n_jobs(study), sizeof *m.recorded);
    enum lk_code rc = path && m.recorded ? list_outputs(&m) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = look_at_all(&m, a, path);
    for (int k = 0; k < LK_STUDY_MAX_MODELS; k++) lk_free(m.models[k]);
    lk_store_free(&m.store);
    if (!rc && a->more[1]) rc = study_folders_make(a->output);
    if (!rc) rc = study_journal_open(path, &list, &m.journal);
    if (!rc) rc = study_resolved_write(study, a->output);
    if (!rc) rc = merge_all(&m, a);
    if (!rc) rc = study_manifest_write(study, m.journal, a->output);
    if (!rc) rc = lk_journal_count(m.journal, &counts);
    lk_journal_close(m.journal);
    lk_free(m.recorded);
    lk_names_free(&m.outputs);
    lk_free(path);
    study_list_free(&list);
    if (rc) return rc;
    rc = study_conclude(&counts, a->json);
    int64_t n_open = counts.all[LK_JOB_QUEUED] + counts.all[LK_JOB_LEASED];
    if (!n_open) return rc;
    return lk_fail(LK_E_PARTIAL, "%lld of %lld jobs were not made by any shard; run them, or run without --shard",
                   (long long)n_open, (long long)counts.total);
}
