/* A worker: pieces of the journal through the queue of models/, on one device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "models/common/kept.h"
#include "models/embeds.h"
#include "tools/cli/study/runner.h"

#define CACHE_BYTES ((size_t)1 << 30)     /* of prompts and sources, from one piece to the next */
#define MAX_SOURCES (4 * STUDY_MAX_PIECE) /* two each, of two pieces */

/* A source as it was read; those of the last piece are kept for the next. */
struct source {
    char *path;
    bool exif_transpose, used;
    struct lk_image image;
    char name[256], sha256[65];
};

struct worker {
    const struct study_run *run;
    struct study_slot *slot;
    struct lk_journal *journal;
    struct study_writer writer;
    struct study_hosted *hosted; /* NULL: the model that is open runs here */
    struct cli_preview preview;
    struct cli_devices devices;
    struct lk_device *device; /* the first of them; NULL: not open */
    struct lk_pipeline *pipeline;
    struct lk_kept *cache;
    int model; /* that is open; -1 */
    char model_path[4096], model_name[256], weights_identity[65];
    bool noted;            /* in the journal: which model it is */
    struct lk_error other; /* it is another one than made the study's first pictures */
    struct source sources[MAX_SOURCES];
    struct study_piece pieces[2]; /* one is computed while the other is written */
    double charged_s;             /* up to when time has been charged */
    struct study_job *running;    /* whose stage has been running since; NULL: nobody's */
    int running_stage;
    int most;                 /* jobs of a piece */
    struct study_masks masks; /* that are drawn for the model that is open */
    char *embeds;             /* of base prompts of the model that is open, normalised; NULL: not yet */
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static enum lk_code check_stop(struct worker *w) {
    if (atomic_load(&w->run->shared->stop)) return lk_fail(LK_E_INTERRUPTED, "stopped");
    if (w->other.code) return lk_error_set(&w->other);
    return study_writer_error(&w->writer);
}

/* What ran since the last time pays for it: a step is shared by all jobs of the piece, another stage is a job's own. */
static void charge(struct worker *w) {
    double now = lk_log_now(), took = now - w->charged_s;
    w->charged_s = now;
    if (!w->running) return;
    if (w->running_stage == STUDY_TRANSFORMER)
        w->running->piece->steps_s += took;
    else
        w->running->stage_s[w->running_stage] += took;
}

static enum lk_code progress(void *context, const char *stage, int step, int n_steps) {
    struct study_job *job = context;
    struct worker *w = job->piece->worker;
    int at = 0;
    while (at < STUDY_N_STAGES - 1 && strcmp(study_stages[at], stage)) at++;
    charge(w);
    w->running = job;
    w->running_stage = at;
    const bool counts = step && at == STUDY_TRANSFORMER; /* a second diffusion's steps are no more of the picture's */
    if (counts) {
        job->piece->steps++;
        job->n_steps++;
    }
    if (!job->started_ms) job->started_ms = now_ms();
    struct study_piece *piece = job->piece;
    atomic_store(&w->slot->model, job->study.model);
    atomic_store(&w->slot->step, step);
    if (counts) atomic_store(&w->slot->parts, 1000000LL * piece->steps / n_steps - 1000000LL * piece->n_done);
    if (counts) atomic_store(&w->slot->step_us, (int64_t)(1e6 * piece->steps_s / piece->steps));
    atomic_store(&w->slot->changed_us, (int64_t)(1e6 * w->charged_s));
    atomic_store(&w->slot->n_steps, n_steps);
    return check_stop(w);
}

/* The queue has done with a job. */
static void done(void *context, struct lk_queued *queued) {
    struct worker *w = context;
    struct study_job *job = (struct study_job *)((char *)queued - offsetof(struct study_job, queued));
    struct study_piece *piece = job->piece;
    charge(w);
    w->running = NULL;
    if (piece->steps) job->stage_s[STUDY_TRANSFORMER] = piece->steps_s * job->n_steps / piece->steps;
    if (!w->weights_identity[0] && !queued->error.code) { /* most of the weights are in memory now */
        enum lk_code rc = lk_pipeline_weights_identity(w->pipeline, w->weights_identity);
        if (rc) lk_error_get(&queued->error, rc);
    }
    if (!w->noted && !queued->error.code) {
        enum lk_code rc =
            study_identity_note(w->journal, w->run->journal, job->study.model_key, w->pipeline, w->weights_identity);
        w->noted = !rc;
        if (rc) lk_error_get(&w->other, rc);
        if (rc) queued->error = w->other;
    }
    atomic_fetch_add(&w->slot->n_done, 1);
    piece->n_done++;
    atomic_fetch_sub(&w->slot->parts, atomic_load(&w->slot->parts) < 1000000 ? 0 : 1000000);
    study_writer_add(&w->writer, job);
}

static void close_model(struct worker *w) {
    for (int k = 0; k < 2; k++) study_writer_wait(&w->writer, &w->pieces[k]);
    lk_kept_free(&w->cache);
    lk_pipeline_close(w->pipeline);
    study_hosted_close(w->hosted);
    w->hosted = NULL;
    lk_free(w->embeds);
    w->embeds = NULL;
    study_masks_free(&w->masks);
    w->pipeline = NULL;
    w->model = -1;
    w->weights_identity[0] = 0;
    w->noted = false;
}

/* What the study says of a model's machine gives way to the command line. */
static struct lk_job machine_job(const struct worker *w, const struct lk_study_job *study) {
    struct lk_job job = study->job;
    const struct lk_job from = {.run = w->run->machine};
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (lk_parameters[i].place == LK_IN_RUN && (w->run->machine_given >> i & 1))
            lk_parameter_copy(&lk_parameters[i], &job, &from);
    return job;
}

static enum lk_code open_device(struct worker *w, const struct lk_job *job, const char *name) {
    struct lk_job_run run = job->run;
    if (w->device) return LK_OK;
    run.device = name;
    LK_TRY(cli_devices_open(&run, &w->devices));
    w->device = w->devices.list[0];
    return LK_OK;
}

static enum lk_code check_identity(struct worker *w, const struct lk_study_job *study) {
    return study_identity_check(w->journal, w->run->journal, study->model_key, w->pipeline, w->weights_identity,
                                &w->noted);
}

/* The files may have been replaced since the study was opened. */
static enum lk_code check_adapters(const struct worker *w, const struct lk_study_job *study) {
    const struct lk_loras *loras = lk_pipeline_loras(w->pipeline);
    for (int i = 0; i < study->n_adapters; i++)
        if (strcmp(loras->list[i].sha256, study->adapters[i].sha256))
            return lk_fail(LK_E_CHANGED, "%s: has changed since the run was begun", study->adapters[i].file);
    return LK_OK;
}

static enum lk_code open_model(struct worker *w, const struct lk_study_job *study, int slot) {
    if (w->model == study->model && !strcmp(w->model_path, study->model_path)) return LK_OK;
    close_model(w);
    if (study->hosted) {
        LK_TRY(study_hosted_open(&w->hosted, w->run, study->hosted));
        w->model = study->model;
        snprintf(w->model_path, sizeof w->model_path, "%s", study->model_path);
        return LK_OK;
    }
    struct lk_job job = machine_job(w, study);
    LK_TRY(open_device(w, &job, w->run->devices[slot]));
    const struct lk_pipeline_options options = cli_pipeline_options(&job.run);
    LK_TRY(lk_pipeline_open_with(&w->pipeline, study->model_path, &options));
    w->model = study->model;
    snprintf(w->model_path, sizeof w->model_path, "%s", study->model_path);
    lk_recipe_model_name(study->model_path, w->model_name);
    LK_TRY(check_adapters(w, study));
    LK_TRY(check_identity(w, study));
    if (!study->weights_identity) return LK_OK;
    return lk_pipeline_weights_check(w->pipeline, study->weights_identity, w->weights_identity);
}

/* A source by its path, read once for all jobs of two pieces. */
static enum lk_code find_source(struct worker *w, const char *path, bool exif_transpose, struct source **out) {
    struct source *free_one = NULL;
    for (int i = 0; i < MAX_SOURCES; i++) {
        struct source *s = &w->sources[i];
        if (!s->path && !free_one) free_one = s;
        if (!s->path || strcmp(s->path, path) || s->exif_transpose != exif_transpose) continue;
        s->used = true;
        *out = s;
        return LK_OK;
    }
    struct source *s = free_one;
    if (!s) return lk_fail(LK_E_INTERNAL, "more sources than jobs can have");
    s->exif_transpose = exif_transpose;
    LK_TRY(lk_recipe_image_read(path, NULL, exif_transpose, &s->image, s->name, s->sha256));
    if (!(s->path = lk_strdup(path))) {
        lk_image_free(&s->image);
        return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    }
    s->used = true;
    *out = s;
    return LK_OK;
}

static void free_sources(struct worker *w, bool all) {
    for (int i = 0; i < MAX_SOURCES; i++) {
        struct source *s = &w->sources[i];
        if (s->path && (all || !s->used)) {
            lk_image_free(&s->image);
            lk_free(s->path);
            *s = (struct source){0};
        }
        s->used = false;
    }
}

static enum lk_code complete(struct worker *w, const struct lk_study_job *study, struct lk_job *out) {
    *out = machine_job(w, study);
    /* Which of several GPUs it was is no property of the picture. */
    out->run.device = strncmp(w->run->devices[w->slot - w->run->shared->slots], "cuda", 4) ? "cpu" : "cuda";
    /* The study's values stand, whatever the checkpoint's defaults are. */
    unsigned family = lk_family_bit_of(lk_pipeline_family(w->pipeline));
    for (size_t i = 0; i < lk_n_parameters; i++)
        if (lk_parameters[i].place == LK_IN_REQUEST && lk_parameters[i].families & family)
            out->given |= (uint64_t)1 << i;
    return lk_job_complete(out, w->pipeline, NULL);
}

/* All base prompts encoded and normalised. */
static enum lk_code encode_base(struct worker *w, const struct lk_study_job *study, const char *path) {
    size_t n = 0;
    while (lk_study_base_prompt(w->run->study, n)) n++;
    struct lk_job *jobs = lk_calloc(n, sizeof *jobs);
    struct lk_queued *queued = lk_calloc(n, sizeof *queued), **list = lk_calloc(n, sizeof *list);
    char *plain = lk_format("%s.%d", path, (int)getpid());
    enum lk_code rc = jobs && queued && list && plain ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for base prompts");
    for (size_t i = 0; i < n && !rc; i++) {
        rc = complete(w, study, &jobs[i]);
        jobs[i].request.prompt = lk_study_base_prompt(w->run->study, i);
        queued[i].request = &jobs[i].request;
        list[i] = &queued[i];
    }
    const struct lk_queue queue = {.jobs = list, .n_jobs = (int)n, .jobs_per_visit = 1};
    if (!rc) rc = lk_pipeline_embed(w->pipeline, w->device, &queue, plain);
    if (!rc)
        rc = lk_embeds_normalize(plain, path, strcmp(study->normalize, "zscore") ? LK_EMBEDS_CENTER : LK_EMBEDS_ZSCORE);
    if (plain) unlink(plain);
    lk_free(plain);
    lk_free(jobs);
    lk_free(queued);
    lk_free(list);
    return rc;
}

/* The embeddings of the arm embed_norm, made by whoever comes first. */
static enum lk_code find_embeds(struct worker *w, const struct lk_study_job *study) {
    const char *model = study->model_key;
    if (w->embeds) return LK_OK;
    if (w->devices.n > 1) return lk_fail(LK_E_INPUT, "the arm embed_norm is not made with --weights sharded");
    char *folder = lk_format("%s/embeds", w->run->records);
    char *path = folder ? lk_format("%s/%s_%s.safetensors", folder, model, study->normalize) : NULL;
    enum lk_code rc = path ? study_folders_make(folder) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc && access(path, R_OK)) rc = encode_base(w, study, path);
    lk_free(folder);
    if (rc)
        lk_free(path);
    else
        w->embeds = path;
    return rc;
}

static enum lk_code find_sources(struct worker *w, struct study_job *job, bool exif_transpose) {
    const struct lk_study_job *study = &job->study;
    for (int i = 0; i < study->n_sources; i++) {
        struct source *s = NULL;
        LK_TRY(find_source(w, study->source_files[i], exif_transpose, &s));
        const char *expected = lk_study_source(w->run->study, study->sources[i])->sha256;
        if (*expected && strcmp(expected, s->sha256))
            return lk_fail(LK_E_INPUT, "%s: has changed since the run was begun", study->source_files[i]);
        job->images[i] = s->image;
        strcpy(job->run.image_names[i], s->name);
        strcpy(job->run.image_sha256[i], s->sha256);
    }
    return LK_OK;
}

static enum lk_code prepare(struct worker *w, struct study_job *job) {
    const struct lk_study_job *study = &job->study;
    if (study->problem) return lk_fail(LK_E_INPUT, "%s", study->problem);
    LK_TRY(complete(w, study, &job->job));
    if (study->normalize) {
        LK_TRY(find_embeds(w, study));
        job->job.request.prompt_embeds = w->embeds;
    }
    LK_TRY(find_sources(w, job, job->job.run.exif_transpose));
    if (study->mask) {
        char sha256[65];
        LK_TRY(lk_digest_file(LK_DIGEST_SHA256, study->mask->file, sha256));
        if (strcmp(study->mask->sha256, sha256) != 0)
            return lk_fail(LK_E_INPUT, "%s: has changed since the run was begun", study->mask->file);
    }
    if (study->drawn) LK_TRY(study_mask_draw(&w->masks, w->run, job));
    struct lk_request *r = &job->job.request;
    r->images = job->images;
    r->n_images = study->n_sources;
    r->progress = progress;
    r->progress_context = job;
    if (lk_pipeline_has_preview(w->pipeline)) LK_TRY(cli_preview_attach(&w->preview, w->pipeline, r));
    job->run.model = w->model_name;
    job->run.weights_identity = w->weights_identity;
    job->run.isa = w->device->architecture;
    job->run.pipeline = w->pipeline;
    job->run.job = &job->job;
    job->run.rewrite = job->study.rewrite ? job->study.rewrite->record : NULL;
    job->queued.request = r;
    struct lk_plan plan;
    return r->width || r->height ? cli_job_plan(w->pipeline, w->device, &job->job, &plan) : LK_OK;
}

static bool is_own(enum lk_code rc) {
    return lk_journal_is_final((int)rc) || rc == LK_E_NOT_FOUND || rc == LK_E_CHANGED;
}

/* Memory that several jobs do not have together may do for one. */
static enum lk_code settle(struct worker *w, struct study_piece *piece, struct lk_queued *const *queued, int n,
                           enum lk_code rc) {
    if (rc == LK_E_PARTIAL || !rc) return LK_OK;
    struct lk_error error;
    lk_error_get(&error, rc);
    if (rc / 100 != LK_E_NOMEM / 100) return rc;
    for (int k = 0; k < n; k++) {
        if (queued[k]->ended) continue;
        if (piece->n > 1) {
            w->most = 1;
            return lk_journal_give_back(w->journal);
        }
        queued[k]->error = error;
        done(w, queued[k]);
    }
    return LK_OK;
}

static enum lk_code compute(struct worker *w, struct study_piece *piece) {
    struct lk_queued *queued[STUDY_MAX_PIECE];
    int n = 0, per_visit = w->run->jobs_per_visit;
    for (int k = 0; k < piece->n; k++) {
        struct study_job *job = &piece->jobs[k];
        enum lk_code rc = prepare(w, job);
        if (rc && !is_own(rc)) return rc;
        if (!rc) queued[n++] = &job->queued;
        if (!rc) continue;
        lk_error_get(&job->queued.error, rc);
        job->started_ms = now_ms();
        study_writer_add(&w->writer, job);
    }
    if (!n) return LK_OK;
    w->charged_s = lk_log_now();
    w->running = NULL;
    struct lk_queue queue = {.jobs = queued,
                             .n_jobs = n,
                             .jobs_per_visit = per_visit < n ? per_visit : n,
                             .done = done,
                             .context = w,
                             .cache = &w->cache,
                             .cache_bytes = CACHE_BYTES};
    return settle(w, piece, queued, n, cli_devices_edit(w->pipeline, &w->devices, &queue));
}

static struct worker *asking; /* a process has one */
static enum lk_code tick(void) { return check_stop(asking); }

static void end_asked(void *context, struct study_job *job) {
    struct worker *w = context;
    char *end;
    const char *latency = job->answer.asked.cells[LK_ASKED_LATENCY_MS];
    job->stage_s[STUDY_N_STAGES - 1] = latency ? strtod(latency, &end) / 1000 : 0;
    job->started_ms = now_ms() - (int64_t)(1000 * job->stage_s[STUDY_N_STAGES - 1]);
    atomic_fetch_add(&w->slot->n_done, 1);
    study_writer_add(&w->writer, job);
}

/* The piece of a model that is asked over the network: all at once. */
static enum lk_code ask(struct worker *w, struct study_piece *piece) {
    struct study_job *jobs[STUDY_MAX_PIECE];
    int n = 0;
    asking = w;
    for (int k = 0; k < piece->n; k++) {
        struct study_job *job = &piece->jobs[k];
        const char *problem = job->study.problem;
        enum lk_code rc = problem ? lk_fail(LK_E_INPUT, "%s", problem) : find_sources(w, job, true);
        if (rc && !is_own(rc)) return rc;
        if (!rc) jobs[n++] = job;
        if (!rc) continue;
        lk_error_get(&job->queued.error, rc);
        end_asked(w, job);
    }
    atomic_store(&w->slot->model, piece->jobs[0].study.model);
    return n ? study_hosted_ask(w->hosted, jobs, n, tick, end_asked, w) : LK_OK;
}

/* Takes a piece and makes it; *over: there is nothing left for anybody. */
static enum lk_code work_once(struct worker *w, struct study_piece *piece, int slot, bool *over) {
    struct lk_journal_lease leases[STUDY_MAX_PIECE];
    int64_t n_others;
    int n;
    study_writer_wait(&w->writer, piece);
    LK_TRY(check_stop(w));
    LK_TRY(lk_journal_take(w->journal, w->model, w->most, leases, &n, &n_others));
    if (!n) { /* what failed may be tried again once it has been written down */
        for (int k = 0; k < 2; k++) study_writer_wait(&w->writer, &w->pieces[k]);
        LK_TRY(lk_journal_take(w->journal, w->model, w->most, leases, &n, &n_others));
    }
    *over = !n && !n_others;
    if (!n) {
        if (!*over) usleep(200000);
        return LK_OK;
    }
    memset(piece, 0, sizeof *piece);
    piece->worker = w;
    piece->n = n;
    for (int k = 0; k < n; k++) {
        piece->jobs[k].lease = leases[k];
        piece->jobs[k].piece = piece;
        LK_TRY(lk_study_job(w->run->study, (size_t)leases[k].index, &piece->jobs[k].study));
    }
    LK_TRY(open_model(w, &piece->jobs[0].study, slot));
    bool alone = leases[0].crashes; /* so that no other is in hand if the worker dies again */
    for (int k = 0; alone && k < 2; k++) study_writer_wait(&w->writer, &w->pieces[k]);
    enum lk_code rc = w->hosted ? ask(w, piece) : compute(w, piece);
    if (alone) study_writer_wait(&w->writer, piece);
    free_sources(w, false);
    return rc;
}

static enum lk_code work(struct worker *w, int slot) {
    bool over = false;
    enum lk_code rc = LK_OK;
    for (int k = 0; !rc && !over; k ^= 1) rc = work_once(w, &w->pieces[k], slot, &over);
    for (int k = 0; k < 2; k++) study_writer_wait(&w->writer, &w->pieces[k]);
    return rc ? rc : study_writer_error(&w->writer);
}

int study_work(const struct study_run *run, int slot) {
    struct worker *w = lk_calloc(1, sizeof *w);
    struct study_slot *said = &run->shared->slots[slot];
    enum lk_code rc = w ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for a worker");
    if (!rc) {
        w->run = run;
        w->preview = run->preview;
        w->slot = said;
        w->model = -1;
        w->most = run->piece;
        rc = lk_journal_open(&w->journal, run->journal, NULL);
        bool hosted[LK_JOURNAL_MAX_MODELS] = {false};
        for (int m = 0; m < lk_study_n_models(run->study); m++)
            hosted[m] = lk_study_model_hosted(run->study, m) != NULL;
        if (!rc) lk_journal_shuffle(w->journal, hosted);
    }
    if (!rc && !(rc = study_writer_open(&w->writer, run, w->journal))) {
        rc = work(w, slot);
        struct lk_error error;
        lk_error_get(&error, rc);
        study_writer_close(&w->writer);
        if (rc) lk_journal_give_back(w->journal); /* if it cannot be written, the supervisor will see to it */
        if (rc) rc = lk_error_set(&error);
    }
    lk_error_get(&said->error, rc);
    if (w) {
        free_sources(w, true);
        lk_kept_free(&w->cache);
        lk_free(w->embeds);
        study_masks_free(&w->masks);
        lk_pipeline_close(w->pipeline);
        study_hosted_close(w->hosted);
        cli_devices_free(&w->devices);
        lk_journal_close(w->journal);
    }
    lk_free(w);
    return lk_exit_code(rc);
}
