/* t2i generate --post-filter online: reject and resample while pictures are made. Of each prompt the seeds go on upward
 * until every group's quota is full. Pictures are made in rounds: a prompt that lacks n of them needs at least n more,
 * so n are made, labelled, and kept or rejected in the order of their seeds. Which are kept depends on nothing else: a
 * run that was stopped finds its pictures and comes to the same end. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/log.h"
#include "eval/t2i/post_filter.h"
#include "tools/cli/t2i/t2i.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/study/runner.h"

struct row {
    size_t made; /* seeds that were tried */
    struct lk_t2i_quota quota;
};

struct online {
    const struct cli_arguments *arguments;
    struct cli_arguments label; /* what the labeller is told */
    struct lk_study *study;     /* with all seeds that may be tried */
    struct lk_study_job *job;   /* room for one */
    struct lk_t2i_distribution target;
    int attribute;
    int64_t wanted; /* pictures of a prompt */
    struct row *rows;
    size_t n_rows, n_seeds;
    struct cli_labeller *labeller;
    struct lk_t2i_images images; /* of all rounds */
    struct lk_text labels;       /* their table */
    bool *kept;                  /* [images.n] */
    char *log, *table;           /* files in the folder */
    struct cli_jobs jobs;        /* of the round */
    size_t capacity;
};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i generate: out of memory"); }

static char *in_folder(const struct online *o, const char *name) {
    return lk_format("%s/%s", o->arguments->output, name);
}

/* The job of a prompt and seed, and where its picture is: lk_free. */
static enum lk_code find_job(struct online *o, size_t row, size_t seed, char **path) {
    LK_TRY(lk_study_job(o->study, row * o->n_seeds + seed, o->job));
    char *name = lk_format("results/%s", o->job->output);
    *path = name ? in_folder(o, name) : NULL;
    lk_free(name);
    return *path ? LK_OK : out_of_memory();
}

/* A picture's line of the log. */
static enum lk_code add_line(const struct online *o, const char *path, struct lk_text *log) {
    struct lk_image image;
    char name[256], sha256[65];
    LK_TRY(lk_recipe_image_read(path, NULL, true, &image, name, sha256));
    study_log_line(log, o->job, image.width, image.height, sha256);
    lk_image_free(&image);
    return log->rc;
}

/* generation_log.csv of the pictures that there are. */
static enum lk_code write_log(struct online *o, struct lk_text *log) {
    lk_text_add(log, "%s", study_log_header);
    for (size_t row = 0; row < o->n_rows; row++)
        for (size_t seed = 0; seed < o->rows[row].made; seed++) {
            char *path;
            LK_TRY(find_job(o, row, seed, &path));
            enum lk_code rc = access(path, R_OK) ? LK_OK : add_line(o, path, log);
            lk_free(path);
            if (rc) return rc;
        }
    return log->rc ? log->rc : lk_atomic_write_file(o->log, log->bytes, log->n);
}

static enum lk_code label_all(struct online *o, const struct lk_text *log) {
    lk_t2i_images_free(&o->images);
    o->labels.n = 0;
    LK_TRY(lk_t2i_images_log(&o->images, log->bytes, log->n, o->log));
    if (!o->labeller) LK_TRY(cli_labeller_open(&o->labeller, &o->label));
    if (!o->images.logged.n) return LK_OK;
    LK_TRY(cli_labeller_label(o->labeller, &o->images, &o->labels));
    LK_TRY(lk_t2i_images_labels(&o->images, o->labels.bytes, o->labels.n, o->table));
    return lk_t2i_images_finish(&o->images);
}

/* What the pictures so far make of the quotas. */
static enum lk_code fill(struct online *o) {
    struct lk_text log = {0};
    enum lk_code rc = write_log(o, &log);
    if (!rc) rc = label_all(o, &log);
    lk_text_free(&log);
    lk_free(o->kept);
    if (!(o->kept = lk_calloc(o->images.n + 1, sizeof *o->kept)) && !rc) rc = out_of_memory();
    for (size_t row = 0; row < o->n_rows && !rc; row++) {
        rc = lk_study_job(o->study, row * o->n_seeds, o->job);
        if (!rc)
            rc = lk_t2i_quota_fill(&o->images, o->job->prompt->id, &o->target, o->attribute, o->wanted, o->kept,
                                   &o->rows[row].quota);
    }
    return rc;
}

/* As the study's worker makes it: the study's values stand, the command line's machine. */
static enum lk_code add_job(struct online *o, char *path) {
    struct cli_jobs *jobs = &o->jobs;
    const unsigned family = lk_family_bit_of(o->job->family);
    char *name = strrchr(path, '/');
    *name = 0;
    enum lk_code rc = study_folders_make(path);
    *name = '/';
    if (rc) return rc;
    LK_TRY(lk_grow(&jobs->list, &o->capacity, (size_t)jobs->n + 1, sizeof *jobs->list));
    struct cli_job *job = &jobs->list[jobs->n++];
    *job = (struct cli_job){.job = o->job->job, .output = path};
    snprintf(job->where, sizeof job->where, "%.63s", o->job->name);
    for (size_t i = 0; i < lk_n_parameters; i++) {
        const struct lk_parameter *p = &lk_parameters[i];
        if (p->place == LK_IN_RUN && lk_job_given(&o->arguments->job, p))
            lk_parameter_copy(p, &job->job, &o->arguments->job);
        if (p->place == LK_IN_REQUEST && p->families & family) job->job.given |= (uint64_t)1 << i;
    }
    return LK_OK;
}

static void free_jobs(struct online *o) {
    for (int i = 0; i < o->jobs.n; i++) lk_free((char *)(uintptr_t)o->jobs.list[i].output);
    o->jobs.n = 0;
}

/* The pictures of a prompt that are made next, but for those that are there. */
static enum lk_code add_row(struct online *o, size_t row, bool *more) {
    struct row *r = &o->rows[row];
    const size_t open = (size_t)r->quota.n_open, left = o->n_seeds - r->made, n = open < left ? open : left;
    for (size_t end = r->made + n; r->made < end; r->made++) {
        char *path;
        *more = true;
        LK_TRY(find_job(o, row, r->made, &path));
        if (o->job->problem) return lk_fail(LK_E_INPUT, "%s: %s", o->job->name, o->job->problem);
        enum lk_code rc = access(path, R_OK) ? add_job(o, path) : LK_OK;
        if (!rc && o->jobs.n && o->jobs.list[o->jobs.n - 1].output == path) continue;
        lk_free(path);
        LK_TRY(rc);
    }
    return LK_OK;
}

static enum lk_code next_round(struct cli_jobs *jobs) {
    struct online *o = jobs->context;
    bool more = true;
    free_jobs(o);
    while (more && !o->jobs.n) {
        more = false;
        LK_TRY(fill(o));
        for (size_t row = 0; row < o->n_rows; row++) LK_TRY(add_row(o, row, &more));
    }
    if (o->jobs.n) lk_log(LK_LOG_INFO, "%d pictures are made", o->jobs.n);
    return LK_OK;
}

/* A line for each prompt; *n_full: those that have all pictures. first: what the first of the others lacks. */
static enum lk_code write_quotas(struct online *o, size_t *n_full, struct lk_text *first) {
    struct lk_text out = {0};
    lk_text_add(&out, "prompt_id,model_tag,attribute,pictures,kept,attempts,acceptance_rate,distance,missing\r\n");
    for (size_t row = 0; row < o->n_rows; row++) {
        const struct lk_t2i_quota *q = &o->rows[row].quota;
        const size_t made = o->rows[row].made;
        struct lk_text missing = {0};
        LK_TRY(lk_study_job(o->study, row * o->n_seeds, o->job));
        for (int g = 0; g < lk_t2i_levels(o->attribute); g++)
            if (q->counts[g] < q->quotas[g])
                lk_text_add(&missing, "%s%lld %s", missing.n ? "; " : "", (long long)(q->quotas[g] - q->counts[g]),
                            lk_t2i_level_name(o->attribute, g));
        lk_text_add(&out, "%s,%s,%s,%lld,%lld,%zu,%.6f,", o->job->prompt->id, o->job->model_key,
                    lk_t2i_attribute_key(o->attribute), (long long)o->wanted, (long long)q->n_kept, made,
                    (double)q->n_kept / (double)made);
        if (q->n_kept) lk_text_add(&out, "%.6f", q->distance);
        lk_text_add(&out, ",%s\r\n", missing.n ? missing.bytes : "");
        if (q->n_open && !first->n)
            lk_text_add(first, "prompt %s lacks %s", o->job->prompt->id, missing.n ? missing.bytes : "");
        *n_full += !q->n_open;
        lk_text_free(&missing);
    }
    char *path = in_folder(o, "post_filter_quotas.csv");
    enum lk_code rc = path && !out.rc ? lk_atomic_write_file(path, out.bytes, out.n) : out_of_memory();
    lk_free(path);
    lk_text_free(&out);
    return rc;
}

static enum lk_code write_kept(struct online *o) {
    struct lk_text out = {0};
    char *path = in_folder(o, "post_filter.csv");
    enum lk_code rc = path ? LK_OK : out_of_memory();
    if (!rc) rc = lk_t2i_post_filter_csv(&o->images, o->kept, 0, o->labels.bytes, o->labels.n, &out);
    if (!rc) rc = lk_atomic_write_file(path, out.bytes, out.n);
    lk_text_free(&out);
    lk_free(path);
    return rc;
}

static enum lk_code conclude(struct online *o) {
    struct lk_text first = {0};
    size_t n_full = 0, n_kept = 0;
    if (!o->images.n) return lk_fail(LK_E_INPUT, "%s: no picture could be made", o->arguments->output);
    enum lk_code rc = write_kept(o);
    if (!rc) rc = write_quotas(o, &n_full, &first);
    if (!rc) rc = cli_labeller_write(o->labeller, &o->labels);
    for (size_t i = 0; i < o->images.n; i++) n_kept += o->kept[i];
    if (!rc || rc == LK_E_PARTIAL)
        printf("%zu pictures kept of %zu; %zu of %zu prompts have all %lld\n", n_kept, o->images.n, n_full, o->n_rows,
               (long long)o->wanted);
    if (!rc && n_full < o->n_rows)
        rc = lk_fail(LK_E_PARTIAL,
                     "%zu of %zu prompts have not all pictures after %zu seeds; the first: %s; the same command with a "
                     "higher --max-attempts goes on from here",
                     o->n_rows - n_full, o->n_rows, o->n_seeds, first.n ? first.bytes : "");
    lk_text_free(&first);
    return rc;
}

/* The folder is of these settings, or of none. */
static enum lk_code take_folder(const struct online *o, const struct lk_study *asked) {
    const char *folder = o->arguments->output;
    char *path = in_folder(o, "study.json");
    struct lk_study *there = NULL;
    enum lk_code rc = path ? study_folders_make(folder) : out_of_memory();
    if (!rc && access(path, F_OK)) rc = study_resolved_write(asked, folder);
    if (!rc) rc = lk_study_open(&there, path);
    if (!rc && strcmp(lk_study_hash(there), lk_study_hash(asked)) != 0)
        rc = lk_fail(LK_E_CHANGED, "%s: is of other settings; name another folder with --output", path);
    lk_study_close(there);
    lk_free(path);
    return rc;
}

/* The study as asked, then with all the seeds that may be tried. */
static enum lk_code open_study(struct online *o) {
    struct cli_arguments a = *o->arguments;
    struct lk_study *asked;
    const char *seeds = a.t2i.seeds;
    long long first, last;
    LK_TRY(cli_t2i_study(&a, &asked));
    enum lk_code rc = take_folder(o, asked);
    lk_study_close(asked);
    if (rc) return rc;
    if (sscanf(seeds ? seeds : "0:9", "%lld:%lld", &first, &last) != 2) return LK_E_INTERNAL;
    o->wanted = last - first + 1;
    o->n_seeds = a.t2i.max_attempts ? (size_t)a.t2i.max_attempts : 10 * (size_t)o->wanted;
    if (o->n_seeds < (size_t)o->wanted)
        return lk_fail(LK_E_USAGE, "--max-attempts: expected at least the %lld pictures of a prompt, got %zu",
                       (long long)o->wanted, o->n_seeds);
    char *all = lk_format("%lld:%lld", first, first + (long long)o->n_seeds - 1);
    a.t2i.seeds = all;
    rc = all ? cli_t2i_study(&a, &o->study) : out_of_memory();
    lk_free(all);
    if (rc) return rc;
    o->n_rows = lk_study_n_jobs(o->study) / o->n_seeds;
    o->rows = lk_calloc(o->n_rows, sizeof *o->rows);
    o->job = lk_malloc(sizeof *o->job);
    return o->rows && o->job ? LK_OK : out_of_memory();
}

static enum lk_code run(struct online *o) {
    const struct cli_arguments *a = o->arguments;
    const struct cli_t2i_arguments *t = &a->t2i;
    if (!t->target || !t->labeler || !t->classifier || !a->report.faces)
        return lk_fail(LK_E_USAGE, "t2i generate --post-filter online: expected --target FILE or uniform, --labeler "
                                   "NAME, --classifier FILE or DIR and --faces FILE");
    if (t->cfg.n > 1 || t->arms.n)
        return lk_fail(LK_E_USAGE, "t2i generate --post-filter online: is an arm of its own, at one CFG: leave %s out",
                       t->arms.n ? "--arm" : "all but one --cfg");
    LK_TRY(cli_t2i_target(a, &o->target, &o->attribute));
    LK_TRY(open_study(o));
    o->log = in_folder(o, "generation_log.csv");
    o->table = in_folder(o, "labels.csv");
    if (!o->log || !o->table) return out_of_memory();
    o->label = *a;
    o->label.t2i.log = o->log;
    o->label.output = o->table;
    o->label.model = t->classifier;
    o->jobs = (struct cli_jobs){.file = a->output,
                                .model = a->model,
                                .jobs_per_visit = (int)a->jobs_per_visit,
                                .preview = {a->preview, (int)a->preview_every, false},
                                .next = next_round,
                                .context = o};
    cli_signals_install();
    LK_TRY(next_round(&o->jobs));
    if (o->jobs.n) LK_TRY(cli_jobs_run(&o->jobs));
    return conclude(o);
}

enum lk_code cli_t2i_online(const struct cli_arguments *arguments) {
    struct online o = {.arguments = arguments};
    lk_t2i_images_init(&o.images);
    enum lk_code rc = run(&o);
    if (rc == LK_E_INTERRUPTED) lk_fail(rc, "stopped by %s; the same command goes on from here", cli_signals_name());
    cli_labeller_close(o.labeller);
    free_jobs(&o);
    lk_free(o.jobs.list);
    lk_t2i_images_free(&o.images);
    lk_text_free(&o.labels);
    lk_study_close(o.study);
    lk_free(o.kept);
    lk_free(o.rows);
    lk_free(o.job);
    lk_free(o.log);
    lk_free(o.table);
    return rc;
}
