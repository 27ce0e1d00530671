/* What a study comes to before it starts: jobs, FLOPs and, on a named GPU or by what `bench` has measured, hours. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/model/bench.h"
#include "tools/cli/study/runner.h"

enum { SIDE = 1024 }; /* of a picture that is not there yet */

/* The jobs of one experiment and model with as many concepts; they differ in nothing that costs. */
struct group {
    const char *experiment, *model_key, *family;
    int model, n_concepts;
    bool hosted;        /* costs nothing here */
    size_t n, n_unmade; /* jobs; those that lack something */
    struct lk_plan plan;
    double flops, seconds;         /* of a job; 0: not predicted */
    const struct bench_rate *rate; /* that the seconds are from; NULL: predicted */
};

/* Results of `bench`. */
struct measured {
    struct bench_rate *rates;
    const char *const *paths;
    int n;
};

struct groups {
    struct group *list;
    size_t n, capacity;
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

/* By the model's own configs; where it is not here, by the released ones of its family. Adapters of another model are
 * refused by the first. */
static enum lk_code open_configs(const struct lk_study_job *job, struct lk_pipeline **out) {
    struct lk_pipeline_options options = cli_pipeline_options(&job->job.run);
    options.configs = true;
    const enum lk_code rc = lk_pipeline_open_with(out, job->model_path, &options);
    return rc && rc != LK_E_BIND ? lk_pipeline_open_with(out, job->family, &options) : rc;
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
        for (int k = 0; k < g->plan.n_placed && g->plan.fits; k++) {
            const struct lk_plan_placed *placed = &g->plan.placed[k];
            if (!strcmp(placed->name, stage->name) && placed->flops > 0)
                g->seconds += placed->placed_s * (double)stage->flops * stage->calls / placed->flops;
        }
    }
    return LK_OK;
}

/* Its seconds by a measured image's: each stage's in the ratio of the FLOPs, which is 1 for a picture of the same size,
 * references and steps. */
static enum lk_code rate_group(const struct measured *m, const struct lk_job_run *run, struct group *g) {
    const char *experiment = g->experiment, *family = g->family;
    int r = 0;
    while (r < m->n && strcmp(m->rates[r].model, family)) r++;
    if (r == m->n)
        return lk_fail(LK_E_INPUT, "bench study: expected a result of %s, which %s uses, got none", family, experiment);
    const struct bench_rate *rate = g->rate = &m->rates[r];
    if (strcmp(rate->dtype, run->dtype) || strcmp(rate->quantize, run->quantize))
        return lk_fail(LK_E_INPUT, "%s: expected dtype %s, quantize %s, which the study's %s has, got %s, %s",
                       m->paths[r], run->dtype, run->quantize, family, rate->dtype, rate->quantize);
    g->seconds = rate->other_seconds;
    for (int i = 0; i < g->plan.n_stages; i++) {
        const struct lk_plan_stage *stage = &g->plan.stages[i];
        int k = 0;
        while (k < rate->n_stages && strcmp(rate->stages[k].name, stage->name)) k++;
        if (k == rate->n_stages)
            return lk_fail(LK_E_INPUT, "%s: stages: expected %s, which a picture of %s goes through, got none",
                           m->paths[r], stage->name, experiment);
        double tflop = (double)stage->flops * stage->calls * 1e-12, measured = rate->stages[k].tflop;
        g->seconds += rate->stages[k].seconds * (measured > 0 ? tflop / measured : 1);
    }
    return LK_OK;
}

/* The group of the job, NULL for a new one. Jobs of an experiment and model lie together. */
static struct group *group_of(const struct groups *groups, const struct lk_study_job *job) {
    for (size_t i = groups->n; i--;) {
        struct group *g = &groups->list[i];
        if (g->experiment != job->experiment || g->model != job->model) return NULL;
        if (g->n_concepts == job->job.request.n_concepts) return g;
    }
    return NULL;
}

/* measured: NULL: by the target. */
static enum lk_code plan_all(const struct lk_study *study, const struct lk_device *target,
                             const struct measured *measured, struct groups *groups) {
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
        struct lk_study_job job;
        LK_TRY(lk_study_job(study, i, &job));
        struct group *g = group_of(groups, &job);
        if (!g) {
            LK_TRY(lk_grow(&groups->list, &groups->capacity, groups->n + 1, sizeof *groups->list));
            g = &groups->list[groups->n++];
            *g = (struct group){
                .experiment = job.experiment, .model_key = job.model_key, .family = job.family, .model = job.model};
            g->n_concepts = job.job.request.n_concepts;
            g->hosted = job.hosted != NULL;
            enum lk_code rc = g->hosted ? LK_OK : plan_group(&job, target, g);
            if (rc) return lk_fail_prefix(rc, "experiments.%s, models.%s", g->experiment, g->model_key);
            if (measured && !g->hosted) LK_TRY(rate_group(measured, &job.job.run, g));
        }
        g->n++;
        g->n_unmade += job.problem != NULL;
    }
    return LK_OK;
}

/* Devices of --devices; one without it. */
static enum lk_code count_devices(const char *list, int *n) {
    struct study_run run = {.machine.weights = "own"};
    char *names = NULL;
    enum lk_code rc = list ? study_read_devices(&run, list, &names) : LK_OK;
    *n = list ? run.n_workers : 1;
    lk_free(names);
    return rc;
}

/* What the pictures were measured at where the study's are others. */
static void print_rates(const struct groups *groups) {
    for (size_t i = 0; i < groups->n; i++) {
        const struct bench_rate *r = groups->list[i].rate;
        const struct lk_plan *p = &groups->list[i].plan;
        if (r && (r->width != p->width || r->height != p->height || r->n_references != p->n_references ||
                  r->n_steps != p->n_steps))
            printf("%s %s: in the ratio of each stage's FLOPs to those of %dx%d, %d references, %d steps\n",
                   groups->list[i].experiment, groups->list[i].model_key, r->width, r->height, r->n_references,
                   r->n_steps);
    }
}

/* remark: how another number of devices is asked for, where none was. */
static void print_text(const struct groups *groups, int n_devices, double price, const char *remark) {
    double flops = 0, hours = 0, quickest = 0, slowest = 0;
    size_t n = 0, n_unmade = 0;
    bool timed = groups->n && groups->list[0].seconds > 0;
    printf("%-10s %-7s %7s %10s %10s %5s %11s%s\n", "experiment", "model", "jobs", "references", "size", "steps",
           "PFLOP", timed ? "   s/picture       hours" : "");
    for (size_t i = 0; i < groups->n; i++) {
        const struct group *g = &groups->list[i];
        char size[32];
        if (g->hosted) {
            printf("%-10s %-7s %7zu requests over the network\n", g->experiment, g->model_key, g->n);
            n += g->n, n_unmade += g->n_unmade;
            continue;
        }
        snprintf(size, sizeof size, "%dx%d", g->plan.width, g->plan.height);
        printf("%-10s %-7s %7zu %10d %10s %5d %11.5g", g->experiment, g->model_key, g->n, g->plan.n_references, size,
               g->plan.n_steps, g->flops * (double)g->n * 1e-15);
        if (timed) printf(" %11.4g %11.5g", g->seconds, g->seconds * (double)g->n / 3600);
        if (g->n_concepts) printf("  with %d concepts", g->n_concepts);
        printf("\n");
        n += g->n, n_unmade += g->n_unmade;
        double of_group = g->seconds * (double)g->n / 3600;
        flops += g->flops * (double)g->n, hours += of_group;
        if (g->rate) quickest += of_group * g->rate->quickest, slowest += of_group * g->rate->slowest;
    }
    printf("%-18s %7zu %10s %10s %5s %11.5g", "total", n, "", "", "", flops * 1e-15);
    if (timed) printf(" %11s %11.5g", "", hours);
    printf("\n");
    if (timed)
        printf("on %d such GPU%s%s: %.4g pictures an hour, %.4g hours%s\n", n_devices, n_devices == 1 ? "" : "s",
               slowest > 0 ? "" : ", modelled", n_devices * (double)n / hours, hours / n_devices, remark);
    if (slowest > 0)
        printf("by the quickest and the slowest image measured: %.4g to %.4g hours\n", quickest / n_devices,
               slowest / n_devices);
    if (price > 0) printf("%.5g GPU hours at %.4g each: %.5g\n", hours, price, hours * price);
    print_rates(groups);
    if (n_unmade) printf("%zu jobs lack something that 'likeness study check' names\n", n_unmade);
}

static void print_json(const struct lk_study *study, const struct groups *groups) {
    printf("{\"study\": ");
    struct lk_text name = {0};
    lk_text_json(&name, lk_study_name(study));
    printf("%s, \"configuration\": \"%s\", \"jobs\": %zu, \"groups\": [", name.bytes ? name.bytes : "\"\"",
           lk_study_hash(study), lk_study_n_jobs(study));
    lk_text_free(&name);
    for (size_t i = 0; i < groups->n; i++) {
        const struct group *g = &groups->list[i];
        printf("%s\n  {\"experiment\": \"%s\", \"model\": \"%s\", \"jobs\": %zu, \"lacking\": %zu, \"width\": %d, "
               "\"height\": %d, \"references\": %d, \"steps\": %d, \"concepts\": %d, \"flop_per_picture\": %.17g, "
               "\"seconds_per_picture\": ",
               i ? "," : "", g->experiment, g->model_key, g->n, g->n_unmade, g->plan.width, g->plan.height,
               g->plan.n_references, g->plan.n_steps, g->n_concepts, g->flops);
        if (g->seconds > 0)
            printf("%.17g}", g->seconds);
        else
            printf("null}");
    }
    printf("\n]}\n");
}

static void free_groups(struct groups *groups) {
    if (groups) lk_free(groups->list);
    lk_free(groups);
}

static enum lk_code plan_on_target(const struct cli_arguments *a, const struct lk_study *study, struct groups **out) {
    struct lk_device *target;
    struct groups *groups = *out = lk_calloc(1, sizeof *groups);
    if (!groups) return lk_fail(LK_E_NOMEM, "study plan: out of memory");
    LK_TRY(cli_plan_target(&a->job.run, &target));
    enum lk_code rc = plan_all(study, target, NULL, groups);
    lk_device_free(target);
    return rc;
}

enum lk_code study_can_run(const struct cli_arguments *a, const struct lk_study *study) {
    struct groups *groups;
    enum lk_code rc = plan_on_target(a, study, &groups);
    free_groups(groups);
    return rc;
}

enum lk_code study_plan(const struct cli_arguments *a, struct lk_study *study) {
    int n_devices;
    struct groups *groups = NULL;
    if (lk_study_unpaired(study)) return lk_fail(LK_E_CONFIG_VALUE, "%s", lk_study_unpaired(study));
    LK_TRY(count_devices(a->study.devices, &n_devices));
    enum lk_code rc = plan_on_target(a, study, &groups);
    if (!rc && a->json)
        print_json(study, groups);
    else if (!rc)
        print_text(groups, n_devices, 0, a->study.devices ? "" : "; --devices 0,1,2,3 for several at once");
    free_groups(groups);
    return rc;
}

enum lk_code study_bench(const struct cli_arguments *a) {
    struct lk_device *target = NULL;
    struct lk_study *study = NULL;
    struct groups *groups = lk_calloc(1, sizeof *groups);
    struct measured measured = {.rates = lk_calloc(CLI_MAX_MORE, sizeof *measured.rates), .paths = a->more + 1};
    enum lk_code rc = groups && measured.rates ? LK_OK : lk_fail(LK_E_NOMEM, "bench study: out of memory");
    for (; !rc && measured.n < CLI_MAX_MORE - 1 && measured.paths[measured.n]; measured.n++)
        rc = bench_rate_read(measured.paths[measured.n], &measured.rates[measured.n]);
    if (!rc) rc = lk_study_open(&study, a->more[0]);
    if (!rc) rc = cli_plan_target(&a->job.run, &target);
    if (!rc) rc = plan_all(study, target, &measured, groups);
    for (int i = 0; i < measured.n && !rc; i++)
        printf("%s: measured on %s\n", measured.rates[i].model, measured.rates[i].device);
    if (!rc) print_text(groups, (int)a->bench.gpus, a->bench.price, "");
    lk_device_free(target);
    lk_study_close(study);
    lk_free(measured.rates);
    free_groups(groups);
    return rc;
}
