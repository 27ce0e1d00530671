/* The writer's thread: PNG, digest, journal. It also keeps the worker's leases alive. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "tools/cli/study/runner.h"

#define RENEW_S 120

const char *const study_stages[STUDY_N_STAGES] = {"vision",      "text_encoder", "vae_encode", "conditioning",
                                                  "transformer", "vae_decode",   "other"};

/* With its recipe; what a service has made has none. */
static enum lk_code put_picture(const char *path, const struct study_job *job) {
    return job->study.hosted ? lk_png_write(path, &job->answer.image, NULL, 0) : lk_recipe_write(path, &job->run);
}

enum lk_code study_moved(const char *folder) {
    return lk_fail(LK_E_IO,
                   "%s: the run's folder was moved or removed while it was in use; put it back, then give the "
                   "command again",
                   folder);
}

/* The picture in its place, and its digest from there; a folder that is gone is not made anew. */
static enum lk_code write_picture(const struct study_run *run, struct study_job *job, char sha256[65], int64_t *bytes) {
    struct stat st;
    const bool placeholder = job->answer.asked.outcome == LK_OUTCOME_PLACEHOLDER; /* nobody judges or labels it */
    char *path = lk_format("%s/%s/%s", run->folder, placeholder ? "placeholders" : "results", job->study.output);
    if (!path) return lk_fail(LK_E_NOMEM, "%s: out of memory", job->study.name);
    job->run.result = &job->queued.result;
    enum lk_code rc = put_picture(path, job);
    if (rc == LK_E_NOT_FOUND && access(run->folder, F_OK)) {
        rc = study_moved(run->folder);
    } else if (rc == LK_E_NOT_FOUND) {
        char *name = strrchr(path, '/');
        *name = 0;
        rc = study_folders_make(path);
        *name = '/';
        if (!rc) rc = put_picture(path, job);
    }
    if (!rc) rc = lk_digest_file(LK_DIGEST_SHA256, path, sha256);
    if (!rc && stat(path, &st)) rc = lk_fail_errno(errno, "%s", path);
    *bytes = rc ? 0 : (int64_t)st.st_size;
    lk_free(path);
    return rc;
}

/* Memory of this process that is there. */
static long long resident_bytes(void) {
    long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*s %lld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void tell(const struct study_run *run, const struct study_job *job, const struct lk_journal_made *made) {
    struct lk_text text = {0};
    if ((made->sha256 || made->refused) && !run->json) return;
    if (run->json) {
        lk_text_add(&text, "J{\"event\":\"%s\",\"item_id\":",
                    made->refused  ? "refused"
                    : made->sha256 ? "done"
                                   : "failed");
        lk_text_json(&text, job->study.name);
        lk_text_add(&text, ",\"attempt\":%d,\"seconds\":%.3f,\"stages\":%s,\"peak_bytes\":%lld,\"resident_bytes\":%lld",
                    job->lease.attempts + 1, made->seconds, made->stages, (long long)made->peak_bytes,
                    resident_bytes());
        if (made->sha256) lk_text_add(&text, ",\"output_sha256\":\"%s\"", made->sha256);
        if (made->error) {
            lk_text_add(&text, ",\"error\":");
            lk_text_json(&text, made->error);
        }
        lk_text_add(&text, "}\n");
    } else if (lk_journal_is_final(made->code)) {
        lk_text_add(&text, "W%s: %.1000s\n", job->study.name, made->error);
    } else
        lk_text_add(&text, "W%s: attempt %d of %d: %.1000s\n", job->study.name, job->lease.attempts + 1,
                    LK_JOB_ATTEMPTS, made->error);
    /* A line is one write, which does not mix with those of other workers. */
    ssize_t ignored = text.rc ? 0 : write(run->messages, text.bytes, text.n);
    (void)ignored;
    lk_text_free(&text);
}

static void add_stages(struct lk_text *out, const struct study_job *job, double *seconds) {
    *seconds = 0;
    for (int i = 0; i < STUDY_N_STAGES; i++) {
        *seconds += job->stage_s[i];
        lk_text_add(out, "%s\"%s\":%.3f", i ? "," : "{", study_stages[i], job->stage_s[i]);
    }
    lk_text_add(out, "}");
}

/* The answer itself beside the manifest: rules by which it was read may change. */
static enum lk_code keep_body(const struct study_writer *w, const struct study_job *job) {
    if (!job->answer.body.n) return LK_OK;
    struct lk_text line = {0};
    char *path = lk_format("%s/answers.jsonl", w->run->records);
    lk_text_add(&line, "{\"item_id\":");
    lk_text_json(&line, job->study.name);
    lk_text_add(&line, ",\"body\":");
    lk_text_json(&line, job->answer.body.bytes);
    lk_text_add(&line, "}\n");
    enum lk_code rc =
        path && !line.rc ? lk_append_lines(path, line.bytes, line.n) : lk_fail(LK_E_NOMEM, "out of memory");
    lk_text_free(&line);
    lk_free(path);
    return rc;
}

/* A picture that cannot be written is no fault of the job's. */
static enum lk_code finish(struct study_writer *w, struct study_job *job) {
    char sha256[65], configs[65] = "", quantization[96] = "";
    const int came = (int)job->answer.asked.outcome;
    bool kept, good = !job->queued.error.code, pictured = good && came != LK_OUTCOME_REFUSED;
    struct lk_text line = {0}, stages = {0}, answers = {0};
    struct lk_journal_made made = {.started_ms = job->started_ms, .code = (int)job->queued.error.code};
    made.refused = good && (came == LK_OUTCOME_REFUSED || came == LK_OUTCOME_PLACEHOLDER);
    if (pictured) LK_TRY(write_picture(w->run, job, sha256, &made.bytes));
    if (job->run.pipeline) {
        const char *text = lk_pipeline_configs(job->run.pipeline);
        lk_pipeline_quantization(job->run.pipeline, quantization);
        lk_sha256(text, strlen(text), configs);
    }
    add_stages(&stages, job, &made.seconds);
    made.sha256 = pictured ? sha256 : NULL;
    made.error = made.refused ? job->answer.error : good ? NULL : job->queued.error.text;
    made.peak_bytes = (int64_t)job->queued.result.peak_bytes;
    if (job->asked && study_hosted_json(job, &answers) && !answers.rc) answers.rc = LK_E_NOMEM;
    const struct lk_image result = {.width = job->queued.result.image.width, .height = job->queued.result.image.height},
                          *image = job->study.hosted ? &job->answer.image : &result;
    struct study_outcome outcome = {.sha256 = made.sha256,
                                    .error = made.error,
                                    .quantization = *quantization ? quantization : NULL,
                                    .status = made.refused ? lk_outcome_key(came) : NULL,
                                    .hosted = answers.n ? answers.bytes : NULL,
                                    .weights_identity = good ? job->run.weights_identity : NULL,
                                    .configs_sha256 = good && *configs ? configs : NULL,
                                    .offload = good ? w->offload : NULL,
                                    .mask_sha256 = *job->mask_sha256 ? job->mask_sha256 : NULL,
                                    .width = image->width,
                                    .height = image->height,
                                    .seconds = made.seconds,
                                    .started_ms = made.started_ms};
    const struct lk_result *r = &job->queued.result;
    outcome.masked = good && *r->mask_sha256;
    outcome.kept_exact = r->kept_exact;
    outcome.mask_edited = r->mask_edited;
    memcpy(outcome.seam, r->seam, sizeof outcome.seam);
    for (int b = 0; good && b < job->queued.result.n_cached; b++) {
        outcome.n_cached++;
        for (int i = 0; i < job->queued.result.n_steps; i++) outcome.n_computed[b] += job->queued.result.computed[b][i];
    }
    enum lk_code rc = answers.rc ? answers.rc : study_record(&line, w->run->study, &job->study, &outcome);
    made.stages = stages.bytes;
    made.line = line.bytes;
    if (!rc) rc = stages.rc;
    if (!rc) rc = lk_journal_end(w->journal, &job->lease, &made, &kept);
    if (good && job->queued.result.n_cut_ids && !w->told_cut) {
        lk_log(LK_LOG_WARNING,
               "%s: the last %d tokens of its prompt were left out: the model does not read as many; pictures record "
               "how many as n_cut_ids, and later ones are not told here",
               job->study.name, job->queued.result.n_cut_ids);
        w->told_cut = true;
    }
    if (!rc && kept) rc = keep_body(w, job);
    if (!rc && kept) tell(w->run, job, &made);
    lk_text_free(&answers);
    lk_text_free(&line);
    lk_text_free(&stages);
    return rc;
}

static struct study_job *next(struct study_writer *w, bool *renew) {
    static const int room = sizeof w->queue / sizeof *w->queue;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RENEW_S;
    *renew = false;
    while (!w->n && !w->closing && !*renew) *renew = pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT;
    if (!w->n) return NULL;
    struct study_job *job = w->queue[w->first];
    w->first = (w->first + 1) % room;
    w->n--;
    return job;
}

static void *write_all(void *context) {
    struct study_writer *w = context;
    bool renew;
    time_t renewed = time(NULL);
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct study_job *job = next(w, &renew);
        if (!job && w->closing) break;
        bool lost = w->error.code;
        pthread_mutex_unlock(&w->lock);
        enum lk_code rc = LK_OK;
        if (renew || time(NULL) - renewed >= RENEW_S) {
            rc = lk_journal_renew(w->journal);
            renewed = time(NULL);
        }
        if (job && !rc && !lost) rc = finish(w, job);
        if (job) {
            lk_result_free(&job->queued.result);
            lk_image_answer_free(&job->answer);
            lk_text_free(&job->repeats);
            lk_free(job->mask);
            job->mask = NULL;
        }
        pthread_mutex_lock(&w->lock);
        if (rc && !w->error.code) lk_error_get(&w->error, rc);
        if (job) job->piece->n_unwritten--;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

enum lk_code study_writer_open(struct study_writer *w, const struct study_run *run, struct lk_journal *journal) {
    *w = (struct study_writer){.run = run, .journal = journal};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    int failed = pthread_create(&w->thread, NULL, write_all, w);
    return failed ? lk_fail_errno(failed, "no thread to write pictures with") : LK_OK;
}

void study_writer_add(struct study_writer *w, struct study_job *job) {
    static const int room = sizeof w->queue / sizeof *w->queue;
    pthread_mutex_lock(&w->lock);
    w->queue[(w->first + w->n++) % room] = job;
    job->piece->n_unwritten++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void study_writer_wait(struct study_writer *w, const struct study_piece *piece) {
    pthread_mutex_lock(&w->lock);
    while (piece->n_unwritten) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

enum lk_code study_writer_error(struct study_writer *w) {
    pthread_mutex_lock(&w->lock);
    enum lk_code rc = w->error.code ? lk_error_set(&w->error) : LK_OK;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void study_writer_close(struct study_writer *w) {
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}
