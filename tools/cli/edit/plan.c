#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "models/pipeline.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/core/print.h"

/* What the run needs, from the stages. The parameters of a component that two stages share (the VAE) count once. */
struct totals {
    uint64_t parameters, weight_bytes, flops;
    uint64_t resident_bytes; /* all weights at once and the arena; on a GPU as they will be allocated */
    uint64_t staged_bytes;   /* the largest stage alone: its weights and the arena */
};

static bool shares_component(const struct lk_plan *plan, int i) {
    for (int j = 0; j < i; j++)
        if (!strncmp(plan->stages[i].name, "vae_", 4) && !strncmp(plan->stages[j].name, "vae_", 4)) return true;
    return false;
}

static struct totals sum(const struct lk_plan *plan, const struct lk_device *target) {
    struct totals t = {0};
    for (int i = 0; i < plan->n_stages; i++) {
        const struct lk_plan_stage *s = &plan->stages[i];
        t.flops += s->flops * (uint64_t)s->calls;
        if (s->weight_bytes + plan->arena_bytes > t.staged_bytes) t.staged_bytes = s->weight_bytes + plan->arena_bytes;
        if (!shares_component(plan, i)) t.parameters += s->parameters;
    }
    t.weight_bytes = plan->weight_bytes;
    t.resident_bytes = target->kind == LK_DEVICE_CUDA ? plan->device_bytes : t.weight_bytes + plan->arena_bytes;
    return t;
}

static void print_text(const struct lk_plan *plan, const struct totals *t, const char *dtype) {
    char weights[32], peak[32], count[32], all[32], largest[32];
    printf("%s, %dx%d, %d reference%s, %d steps, %s, %lld tokens\n\n", plan->family, plan->width, plan->height,
           plan->n_references, plan->n_references == 1 ? "" : "s", plan->n_steps, dtype, (long long)plan->n_tokens);
    printf("%-14s %10s %11s %11s %14s %6s %11s\n", "stage", "parameters", "weights", "activations", "TFLOP/forward",
           "calls", "TFLOP");
    for (int i = 0; i < plan->n_stages; i++) {
        const struct lk_plan_stage *s = &plan->stages[i];
        printf("%-14s %10s %11s %11s %14.4g %6d %11.5g\n", s->name, cli_count(s->parameters, count),
               cli_bytes(s->weight_bytes, weights), cli_bytes(s->peak_bytes, peak), (double)s->flops * 1e-12, s->calls,
               (double)s->flops * s->calls * 1e-12);
    }
    printf("%-14s %10s %11s %11s %14s %6s %11.5g\n\n", "total", cli_count(t->parameters, count),
           cli_bytes(t->weight_bytes, weights), cli_bytes(plan->arena_bytes, peak), "", "", (double)t->flops * 1e-12);
    printf("memory: %s with all weights resident; %s with one stage's weights at a time\n",
           cli_bytes(t->resident_bytes, all), cli_bytes(t->staged_bytes, largest));
}

static cJSON *stage_json(const struct lk_plan_stage *s) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", s->name);
    cJSON_AddNumberToObject(o, "parameters", (double)s->parameters);
    cJSON_AddNumberToObject(o, "weight_bytes", (double)s->weight_bytes);
    cJSON_AddNumberToObject(o, "peak_bytes", (double)s->peak_bytes);
    cJSON_AddNumberToObject(o, "flop_per_forward", (double)s->flops);
    cJSON_AddNumberToObject(o, "tflop_per_forward", (double)s->flops * 1e-12);
    cJSON_AddNumberToObject(o, "bytes_per_forward", (double)s->bytes);
    cJSON_AddNumberToObject(o, "calls", s->calls);
    return o;
}

/* One entry per component: the VAE's is its encoder stage and decoder stage together, the transformer's its steps and
 * what is made once for all of them. */
static void component_json(cJSON *root, const struct lk_plan *plan, const char *name) {
    uint64_t parameters = 0, weight_bytes = 0, flops = 0, peak = 0;
    for (int i = 0; i < plan->n_stages; i++) {
        const struct lk_plan_stage *s = &plan->stages[i];
        bool ahead = !strcmp(name, "transformer") && !strcmp(s->name, "conditioning");
        if (!ahead && strncmp(s->name, name, strlen(name))) continue;
        if (!shares_component(plan, i)) parameters += s->parameters;
        weight_bytes += s->weight_bytes;
        if (s->peak_bytes > peak) peak = s->peak_bytes;
        if (!ahead) flops += s->flops;
    }
    cJSON *o = cJSON_AddObjectToObject(root, name);
    cJSON_AddNumberToObject(o, "parameters", (double)parameters);
    cJSON_AddNumberToObject(o, "weight_bytes", (double)weight_bytes);
    cJSON_AddNumberToObject(o, "tflop_per_forward", (double)flops * 1e-12);
    cJSON_AddNumberToObject(o, "peak_bytes", (double)peak);
}

static bool has_stage(const struct lk_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_stages; i++)
        if (!strcmp(plan->stages[i].name, name)) return true;
    return false;
}

static enum lk_code print_json(const struct lk_plan *plan, const struct totals *t, const struct cli_arguments *a) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "family", plan->family);
    cJSON_AddStringToObject(root, "dtype", a->job.run.dtype);
    cJSON_AddNumberToObject(root, "width", plan->width);
    cJSON_AddNumberToObject(root, "height", plan->height);
    cJSON_AddNumberToObject(root, "references", plan->n_references);
    cJSON_AddNumberToObject(root, "num_inference_steps", plan->n_steps);
    cJSON_AddNumberToObject(root, "tokens", (double)plan->n_tokens);
    component_json(root, plan, "text_encoder");
    if (has_stage(plan, "vision")) component_json(root, plan, "vision");
    component_json(root, plan, "transformer");
    component_json(root, plan, "vae");
    cJSON *stages = cJSON_AddArrayToObject(root, "stages");
    for (int i = 0; i < plan->n_stages; i++) cJSON_AddItemToArray(stages, stage_json(&plan->stages[i]));
    cJSON *total = cJSON_AddObjectToObject(root, "total");
    cJSON_AddNumberToObject(total, "parameters", (double)t->parameters);
    cJSON_AddNumberToObject(total, "weight_bytes", (double)t->weight_bytes);
    cJSON_AddNumberToObject(total, "arena_bytes", (double)plan->arena_bytes);
    cJSON_AddNumberToObject(total, "tflop", (double)t->flops * 1e-12);
    cJSON_AddNumberToObject(total, "resident_bytes", (double)t->resident_bytes);
    cJSON_AddNumberToObject(total, "staged_bytes", (double)t->staged_bytes);
    if (a->vram_bytes) {
        cJSON_AddNumberToObject(root, "vram_bytes", (double)a->vram_bytes);
        cJSON_AddStringToObject(root, "fits",
                                t->resident_bytes <= a->vram_bytes ? "resident"
                                : t->staged_bytes <= a->vram_bytes ? "staged"
                                                                   : "no");
    }
    char *text = cJSON_Print(root);
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "plan: out of memory for the report");
}

/* Says whether the budget holds it; LK_E_FIT if not even one stage. */
static enum lk_code judge(const struct totals *t, const struct cli_arguments *a) {
    char needed[32], budget[32];
    if (!a->vram_bytes) return LK_OK;
    cli_bytes(a->vram_bytes, budget);
    if (t->staged_bytes > a->vram_bytes)
        return lk_fail(LK_E_FIT, "--vram: the largest stage needs %s, the budget is %s",
                       cli_bytes(t->staged_bytes, needed), budget);
    if (!a->json)
        printf("budget: %s: %s\n", budget,
               t->resident_bytes <= a->vram_bytes ? "fits with all weights resident"
                                                  : "fits one stage at a time, not with all weights resident");
    return LK_OK;
}

static enum lk_code plan(struct lk_pipeline *pipeline, const struct lk_device *target, const struct cli_arguments *a) {
    struct lk_image images[CLI_MAX_IMAGES];
    struct lk_plan out;
    struct lk_job job = a->job;
    struct lk_request *request = &job.request;
    LK_TRY(lk_job_complete(&job, pipeline, NULL));
    if (!request->width) request->width = 1024;
    if (!request->height) request->height = 1024;
    for (int i = 0; i < CLI_MAX_IMAGES; i++)
        images[i] = (struct lk_image){.width = request->width, .height = request->height, .channels = 3};
    request->images = images;
    request->n_images = (int)a->references;
    enum lk_code rc = cli_job_plan(pipeline, target, &job, &out);
    if (rc) return rc;
    struct totals t = sum(&out, target);
    if (a->json)
        rc = print_json(&out, &t, a);
    else
        print_text(&out, &t, a->job.run.dtype);
    return rc ? rc : judge(&t, a);
}

enum lk_code cli_plan(const struct cli_arguments *a) {
    struct lk_device *target;
    LK_TRY(cli_device_open(&a->job.run, &target));
    struct lk_pipeline *pipeline;
    enum lk_code rc = lk_pipeline_open_configs(&pipeline, a->model, cli_dtype(&a->job.run));
    if (!rc) {
        rc = plan(pipeline, target, a);
        lk_pipeline_close(pipeline);
    }
    lk_device_free(target);
    return rc;
}
