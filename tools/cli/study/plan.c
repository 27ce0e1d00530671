/* What a study comes to before it starts: jobs, FLOPs and, on a named GPU, hours. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/study/study.h"

enum { SIDE = 1024 }; /* of a picture that is not there yet */

/* The jobs of one experiment and model; they differ in nothing that costs. */
struct group {
    enum lk_experiment experiment;
    int model;
    size_t n, n_unmade; /* jobs; those that lack something */
    struct lk_plan plan;
    double flops, seconds; /* of a job; 0: not predicted */
};

struct groups {
    struct group list[LK_N_EXPERIMENTS * LK_N_MODELS];
    int n;
};

static void set_sizes(const struct lk_study_job *job, struct lk_image images[2]) {
    for (int i = 0; i < job->n_sources; i++) {
        struct lk_image image = {0};
        images[i] = (struct lk_image){.width = SIDE, .height = SIDE, .channels = 3};
        if (!job->source_files[i] || lk_image_read(&image, job->source_files[i], true, 0)) continue;
        images[i].width = image.width, images[i].height = image.height;
        lk_image_free(&image);
    }
}

/* By the model's own configs; where it is not here, by the released ones of its family. */
static enum lk_code open_configs(const struct lk_study_job *job, struct lk_pipeline **out) {
    struct lk_pipeline_options options = cli_pipeline_options(&job->job.run);
    options.configs = true;
    return lk_pipeline_open_with(out, job->model_path, &options)
               ? lk_pipeline_open_with(out, lk_study_family(job->model), &options)
               : LK_OK;
}

static enum lk_code plan_group(const struct lk_study_job *first, const struct lk_device *target, struct group *g) {
    struct lk_pipeline *pipeline;
    struct lk_image images[2];
    struct lk_job job = first->job;
    set_sizes(first, images);
    job.request.images = images;
    job.request.n_images = first->n_sources;
    if (!job.request.prompt) job.request.prompt = first->prompt->text;
    LK_TRY(open_configs(first, &pipeline));
    enum lk_code rc = cli_job_plan(pipeline, target, &job, &g->plan);
    lk_pipeline_close(pipeline);
    if (rc) return rc;
    for (int i = 0; i < g->plan.n_stages; i++) {
        const struct lk_plan_stage *stage = &g->plan.stages[i];
        g->flops += (double)stage->flops * stage->calls;
        for (int k = 0; k < g->plan.n_placed && g->plan.fits; k++)
            if (!strcmp(g->plan.placed[k].name, stage->name)) g->seconds += g->plan.placed[k].placed_s * stage->calls;
    }
    return LK_OK;
}

static enum lk_code plan_all(const struct lk_study *study, const struct lk_device *target, struct groups *groups) {
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
        struct lk_study_job job;
        struct group *g = groups->n ? &groups->list[groups->n - 1] : NULL;
        LK_TRY(lk_study_job(study, i, &job));
        if (!g || g->experiment != job.experiment || g->model != job.model) {
            g = &groups->list[groups->n++];
            *g = (struct group){.experiment = job.experiment, .model = job.model};
            LK_TRY(plan_group(&job, target, g));
        }
        g->n++;
        g->n_unmade += job.problem != NULL;
    }
    return LK_OK;
}

/* Devices of --devices; four without it, as a node has. */
static int count_devices(const char *list) {
    int n = 1;
    if (!list) return 4;
    for (; *list; list++) n += *list == ',';
    return n;
}

static void print_text(const struct groups *groups, int n_devices) {
    double flops = 0, hours = 0;
    size_t n = 0, n_unmade = 0;
    bool timed = groups->n && groups->list[0].seconds > 0;
    printf("%-10s %-7s %7s %10s %10s %5s %11s%s\n", "experiment", "model", "jobs", "sources", "size", "steps", "PFLOP",
           timed ? "   s/picture       hours" : "");
    for (int i = 0; i < groups->n; i++) {
        const struct group *g = &groups->list[i];
        char size[32];
        snprintf(size, sizeof size, "%dx%d", g->plan.width, g->plan.height);
        printf("%-10s %-7s %7zu %10d %10s %5d %11.5g", lk_experiment_key((int)g->experiment),
               lk_factor_key(LK_FACTOR_MODEL, g->model), g->n, g->plan.n_references, size, g->plan.n_steps,
               g->flops * (double)g->n * 1e-15);
        if (timed) printf(" %11.4g %11.5g", g->seconds, g->seconds * (double)g->n / 3600);
        printf("\n");
        n += g->n, n_unmade += g->n_unmade;
        flops += g->flops * (double)g->n, hours += g->seconds * (double)g->n / 3600;
    }
    printf("%-18s %7zu %10s %10s %5s %11.5g", "total", n, "", "", "", flops * 1e-15);
    if (timed) printf(" %11s %11.5g", "", hours);
    printf("\n");
    if (timed)
        printf("on %d such GPUs: %.4g pictures an hour, %.4g hours\n", n_devices, n_devices * (double)n / hours,
               hours / n_devices);
    if (n_unmade) printf("%zu jobs lack something that 'likeness study check' names\n", n_unmade);
}

static void print_json(const struct lk_study *study, const struct groups *groups) {
    printf("{\"study\": ");
    struct lk_text name = {0};
    lk_text_json(&name, lk_study_name(study));
    printf("%s, \"configuration\": \"%s\", \"jobs\": %zu, \"groups\": [", name.bytes ? name.bytes : "\"\"",
           lk_study_hash(study), lk_study_n_jobs(study));
    lk_text_free(&name);
    for (int i = 0; i < groups->n; i++) {
        const struct group *g = &groups->list[i];
        printf(
            "%s\n  {\"experiment\": \"%s\", \"model\": \"%s\", \"jobs\": %zu, \"lacking\": %zu, \"width\": %d, "
            "\"height\": %d, \"references\": %d, \"steps\": %d, \"flop_per_picture\": %.17g, \"seconds_per_picture\": ",
            i ? "," : "", lk_experiment_key((int)g->experiment), lk_factor_key(LK_FACTOR_MODEL, g->model), g->n,
            g->n_unmade, g->plan.width, g->plan.height, g->plan.n_references, g->plan.n_steps, g->flops);
        if (g->seconds > 0)
            printf("%.17g}", g->seconds);
        else
            printf("null}");
    }
    printf("\n]}\n");
}

enum lk_code study_plan(const struct cli_arguments *a, struct lk_study *study) {
    struct lk_device *target;
    struct groups *groups = lk_calloc(1, sizeof *groups);
    if (!groups) return lk_fail(LK_E_NOMEM, "study plan: out of memory");
    enum lk_code rc = cli_plan_target(&a->job.run, &target);
    if (!rc) {
        rc = plan_all(study, target, groups);
        lk_device_free(target);
    }
    if (!rc && a->json)
        print_json(study, groups);
    else if (!rc)
        print_text(groups, count_devices(a->study.devices));
    lk_free(groups);
    return rc;
}
