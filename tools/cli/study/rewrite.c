/* study rewrite: the prompts of all models that have a rewriter, before any picture. Seeds of a source and a prompt
 * share a text; what is written already is not asked for again. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "eval/intake/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/rewrite.h"
#include "tools/cli/study/runner.h"
#include "tools/cli/study/study.h"

/* A text that is to be made, of the first job that needs it. */
struct wanted {
    size_t job;
    int model;
};

struct state {
    const struct cli_arguments *arguments;
    const struct lk_study *study;
    struct lk_study_job *job;
    struct wanted *list;
    size_t n, capacity, n_jobs, n_written, n_failed;
    struct lk_names keys;
};

static enum lk_code find_wanted(struct state *s) {
    for (size_t i = 0; i < lk_study_n_jobs(s->study); i++) {
        struct lk_text key = {0};
        int32_t number;
        const size_t before = s->keys.n;
        LK_TRY(lk_study_job(s->study, i, s->job));
        if (s->job->rewriter && s->job->rewriter->problem) return lk_fail(LK_E_INPUT, "%s", s->job->rewriter->problem);
        s->n_jobs += s->job->rewriter != NULL;
        if (!s->job->rewriter || !s->job->rewrite_missing) continue;
        enum lk_code rc = lk_study_rewrite_key(s->study, s->job, &key);
        if (!rc) rc = lk_names_number(&s->keys, key.bytes, key.n, &number);
        lk_text_free(&key);
        LK_TRY(rc);
        if (s->keys.n == before) continue;
        LK_TRY(lk_grow(&s->list, &s->capacity, s->n + 1, sizeof *s->list));
        s->list[s->n++] = (struct wanted){i, s->job->model};
    }
    return LK_OK;
}

/* Weights are known when the model is open: other ones than those that wrote the list would mix two rewriters. */
static enum lk_code check_weights(struct state *s, int model, const struct lk_rewriter *r) {
    for (size_t i = 0; i < lk_study_n_jobs(s->study); i++) {
        LK_TRY(lk_study_job(s->study, i, s->job));
        if (s->job->model != model || !s->job->rewrite || !strcmp(s->job->rewrite->weights, r->weights)) continue;
        return lk_fail(LK_E_CHANGED,
                       "%s: written by %s with weights %s, which has weights %s now; name another file in "
                       "\"models.%s.rewrite\"",
                       s->job->rewriter->file, r->name, s->job->rewrite->weights, r->weights,
                       lk_study_model_key(s->study, model));
    }
    return LK_OK;
}

struct batch {
    struct lk_rewrite jobs[LK_REWRITE_SLOTS];
    struct lk_image images[LK_REWRITE_SLOTS][2];
    size_t of[LK_REWRITE_SLOTS];
    char *prompts[LK_REWRITE_SLOTS];
    int n;
};

static void batch_free(struct batch *b) {
    for (int i = 0; i < b->n; i++) {
        lk_rewrite_free(&b->jobs[i]);
        lk_free(b->prompts[i]);
        for (int k = 0; k < 2; k++) lk_image_free(&b->images[i][k]);
    }
    b->n = 0;
}

static enum lk_code add(struct state *s, struct batch *b, size_t job) {
    LK_TRY(lk_study_job(s->study, job, s->job));
    const int at = b->n++;
    b->of[at] = job;
    b->jobs[at] = (struct lk_rewrite){.images = b->images[at], .n_images = s->job->n_sources};
    b->jobs[at].prompt = b->prompts[at] = lk_strdup(s->job->original_prompt);
    if (!b->prompts[at]) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    for (int k = 0; k < s->job->n_sources; k++)
        LK_TRY(lk_image_read(&b->images[at][k], s->job->source_files[k], s->job->job.run.exif_transpose, 0));
    return LK_OK;
}

static void add_line(const struct state *s, const struct lk_rewriter *r, const struct lk_rewrite *made,
                     struct lk_text *out) {
    lk_text_add(out, "{\"sources\":[");
    for (int k = 0; k < s->job->n_sources; k++)
        lk_text_add(out, "%s\"%s\"", k ? "," : "", lk_study_source(s->study, s->job->sources[k])->sha256);
    lk_text_add(out, "],\"source_ids\":[");
    for (int k = 0; k < s->job->n_sources; k++) {
        char id[64];
        study_source_name(s->study, s->job->sources[k], id);
        lk_text_add(out, "%s\"%s\"", k ? "," : "", id);
    }
    lk_text_add(out, "],\"prompt_id\":");
    lk_text_json(out, s->job->prompt->id);
    lk_text_add(out, ",\"rewrite\":");
    lk_rewrite_record(r, made, out);
    lk_text_add(out, "}\n");
}

static enum lk_code run_batch(struct state *s, const struct lk_rewriter *r, const char *file, struct batch *b) {
    struct lk_text lines = {0};
    enum lk_code rc = lk_rewrite(r, b->jobs, b->n, cli_signals_check);
    for (int i = 0; i < b->n && !rc; i++) {
        rc = lk_study_job(s->study, b->of[i], s->job);
        if (!rc) add_line(s, r, &b->jobs[i], &lines);
        s->n_failed += !b->jobs[i].text;
        if (!rc && !b->jobs[i].text) lk_log(LK_LOG_WARNING, "%s: %s", s->job->name, b->jobs[i].error);
    }
    if (!rc) rc = lines.rc;
    if (!rc && lines.n) rc = lk_append_lines(file, lines.bytes, lines.n);
    if (!rc) s->n_written += (size_t)b->n;
    lk_text_free(&lines);
    batch_free(b);
    return rc;
}

static enum lk_code cut_half_line(const char *file) {
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(file, (size_t)1 << 30, &text, &n);
    if (rc) return rc;
    const size_t whole = lk_whole_lines(text, n);
    lk_free(text);
    return lk_cut_half_line(file, whole, n);
}

static enum lk_code run_model(struct state *s, int model, struct batch *b) {
    const struct lk_study_rewriter *of = lk_study_model_rewriter(s->study, model);
    struct cli_arguments a = *s->arguments;
    struct lk_append_lock lock;
    struct cli_rewriter r;
    a.rewrite = (struct cli_rewrite_arguments){of->prompts, of->model, of->temperature};
    a.job.request.seed = lk_study_seed(s->study);
    LK_TRY(lk_append_lock(&lock, of->file));
    enum lk_code rc = cli_rewriter_open(&r, &a, of->model);
    if (!rc) rc = check_weights(s, model, &r.rewriter);
    if (!rc) rc = cut_half_line(of->file);
    for (size_t i = 0; i < s->n && !rc; i++) {
        if (s->list[i].model != model) continue;
        rc = add(s, b, s->list[i].job);
        if (!rc && b->n == LK_REWRITE_SLOTS) {
            rc = run_batch(s, &r.rewriter, of->file, b);
            lk_log_progress("rewriting", (int)s->n_written, (int)s->n, lk_log_now());
        }
    }
    if (!rc) rc = run_batch(s, &r.rewriter, of->file, b);
    lk_log_progress_end();
    batch_free(b);
    cli_rewriter_close(&r);
    lk_append_unlock(&lock);
    return rc;
}

static enum lk_code run(struct state *s, struct batch *b) {
    LK_TRY(find_wanted(s));
    if (!s->n_jobs)
        return lk_fail(LK_E_INPUT, "%s: no model has a \"rewrite\"; 'likeness help study-file' explains it",
                       lk_study_name(s->study));
    for (int m = 0; m < lk_study_n_models(s->study); m++) {
        bool any = false;
        for (size_t i = 0; i < s->n; i++) any |= s->list[i].model == m;
        if (any) LK_TRY(run_model(s, m, b));
    }
    printf("%zu prompts rewritten, %zu without a usable text; %zu jobs\n", s->n_written, s->n_failed, s->n_jobs);
    if (!s->n_failed) return LK_OK;
    return lk_fail(s->n_failed < s->n_written ? LK_E_PARTIAL : LK_E_INPUT, "%zu of %zu prompts could not be rewritten",
                   s->n_failed, s->n_written);
}

/* Whom the texts name, before any picture: the report as it is without outputs. The study is read again, with the new
 * texts. */
static enum lk_code write_report(const struct cli_arguments *a) {
    const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};
    struct lk_audit *audit = NULL;
    struct lk_study *study;
    struct lk_report_options options;
    LK_TRY(lk_study_open(&study, a->more[0]));
    enum lk_code rc = lk_audit_open(&audit, NULL);
    if (!rc) rc = lk_audit_add_study(audit, study);
    if (!rc) rc = lk_audit_complete(audit, &settings);
    lk_report_options_init(&options);
    options.title = lk_study_name(study);
    options.run = "";
    options.alpha = settings.alpha;
    options.study_seed = lk_study_seed(study);
    if (!rc) rc = lk_any_report_write(audit, study, &options, a->output);
    lk_audit_close(audit);
    lk_study_close(study);
    return rc;
}

enum lk_code study_rewrite(const struct cli_arguments *a, struct lk_study *study) {
    struct state s = {.arguments = a, .study = study, .job = lk_malloc(sizeof *s.job)};
    struct batch *b = lk_calloc(1, sizeof *b);
    cli_signals_install();
    struct lk_error failed = {0};
    enum lk_code rc = s.job && b ? run(&s, b) : lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    if (rc) lk_error_get(&failed, rc);
    if (a->output && (!rc || s.n_failed)) rc = write_report(a);
    if (!rc && failed.code) rc = lk_error_set(&failed);
    lk_free(s.job);
    lk_free(s.list);
    lk_free(b);
    lk_names_free(&s.keys);
    return rc;
}
