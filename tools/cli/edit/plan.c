#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "models/pipeline.h"
#include "models/placement.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

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

/* Of a model whose edits are refused. */
static bool is_only_planned(const struct lk_plan *plan) {
    struct lk_model_info m = {0};
    for (int i = 0; lk_model_info(i, &m) && strcmp(m.name, plan->family) != 0;) i++;
    return m.only_planned && !strcmp(m.name, plan->family);
}

static void print_text(const struct lk_plan *plan, const struct totals *t, const struct lk_job_run *run) {
    const bool packs = strcmp(run->quantize, "none") != 0;
    char weights[32], peak[32], count[32], all[32], largest[32];
    printf("%s, %dx%d, %d reference%s, %d steps, %s%s%s, %lld tokens\n\n", plan->family, plan->width, plan->height,
           plan->n_references, plan->n_references == 1 ? "" : "s", plan->n_steps, run->dtype,
           packs ? " with weights in " : "", packs ? run->quantize : "", (long long)plan->n_tokens);
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
    if (is_only_planned(plan)) printf("%s is planned only: its edits are refused\n", plan->family);
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

static void add_placed(cJSON *root, const struct lk_plan *plan, const struct cli_arguments *a,
                       const struct lk_device *target) {
    const struct lk_device_rates rates = lk_device_rates(target->architecture);
    if (a->job.run.vram) cJSON_AddNumberToObject(root, "vram_bytes", (double)a->job.run.vram);
    if (a->job.run.host_ram) cJSON_AddNumberToObject(root, "host_ram_bytes", (double)a->job.run.host_ram);
    cJSON_AddStringToObject(root, "fits",
                            !plan->fits     ? "no"
                            : plan->n_ranks ? "sharded"
                            : plan->whole   ? "resident"
                                            : "streamed");
    if (plan->n_ranks) cJSON_AddNumberToObject(root, "ranks", plan->n_ranks);
    cJSON_AddNumberToObject(root, "least_bytes", (double)(plan->least_bytes + plan->beside_bytes));
    cJSON_AddNumberToObject(root, "device_bytes", (double)(plan->placed_bytes + plan->beside_bytes));
    cJSON_AddNumberToObject(root, "pinned_bytes", (double)plan->pinned_bytes);
    cJSON_AddBoolToObject(root, "sparing", plan->sparing);
    cJSON *stages = cJSON_AddArrayToObject(root, "placement");
    for (int i = 0; i < plan->n_placed; i++) {
        const struct lk_plan_placed *p = &plan->placed[i];
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "stage", p->name);
        cJSON_AddNumberToObject(o, "resident_bytes", (double)p->resident_bytes);
        cJSON_AddNumberToObject(o, "streamed_bytes", (double)p->streamed_bytes);
        cJSON_AddNumberToObject(o, "ring_bytes", (double)p->ring_bytes);
        cJSON_AddNumberToObject(o, "seconds", p->placed_s);
        cJSON_AddNumberToObject(o, "seconds_low", p->placed_s * rates.least);
        cJSON_AddNumberToObject(o, "seconds_high", p->placed_s * rates.most);
        cJSON_AddNumberToObject(o, "seconds_resident", p->resident_s);
        cJSON_AddItemToArray(stages, o);
    }
}

/* What rewrites the prompts runs before the edit and gives its memory back. */
static void print_rewrite(const struct lk_plan *r, const struct lk_device *target) {
    char weights[32], peak[32], all[32], placed[32];
    printf("before it, rewrite: a prompt of %lld tokens, weights %s, activations %s, %.4g TFLOP; %s with all weights "
           "resident\n",
           (long long)r->n_tokens, cli_bytes(r->weight_bytes, weights), cli_bytes(r->arena_bytes, peak),
           (double)r->stages[0].flops * 1e-12,
           cli_bytes(target->kind == LK_DEVICE_CUDA ? r->device_bytes : r->weight_bytes + r->arena_bytes, all));
    if (target->memory->place && r->fits)
        printf("rewrite on the device: %s, %s\n", cli_bytes(r->placed_bytes + r->beside_bytes, placed),
               r->whole ? "all weights resident" : "some weights streamed");
}

static void rewrite_json(cJSON *root, const struct lk_plan *r, bool has_memory) {
    cJSON *o = cJSON_AddObjectToObject(root, "rewrite");
    cJSON_AddNumberToObject(o, "tokens", (double)r->n_tokens);
    cJSON_AddNumberToObject(o, "weight_bytes", (double)r->weight_bytes);
    cJSON_AddNumberToObject(o, "arena_bytes", (double)r->arena_bytes);
    cJSON_AddNumberToObject(o, "tflop", (double)r->stages[0].flops * 1e-12);
    if (!has_memory) return;
    cJSON_AddStringToObject(o, "fits", !r->fits ? "no" : r->whole ? "resident" : "streamed");
    cJSON_AddNumberToObject(o, "least_bytes", (double)(r->least_bytes + r->beside_bytes));
    cJSON_AddNumberToObject(o, "device_bytes", (double)(r->placed_bytes + r->beside_bytes));
}

/* One prompt with pictures as the edit has them. */
static enum lk_code plan_rewrite(const struct cli_arguments *a, int n_images, const struct lk_plan *edit,
                                 const struct lk_device *target, struct lk_plan *out) {
    struct lk_rewriter rewriter;
    struct lk_image images[CLI_MAX_IMAGES] = {0};
    struct lk_rewrite job = {.images = images, .n_images = n_images, .prompt = "Give the person red hair."};
    enum lk_code rc = lk_rewriter_open_plan(&rewriter, a->rewrite.model ? a->rewrite.model : a->model,
                                            a->rewrite.prompts, cli_dtype(&a->job.run));
    for (int i = 0; i < n_images && !rc; i++) {
        rc = lk_image_new(&images[i], edit->width, edit->height, 3);
        if (!rc) memset(images[i].pixels, 128, (size_t)edit->width * (size_t)edit->height * 3);
    }
    if (!rc) rc = lk_rewrite_plan(&rewriter, target, &job, out);
    lk_rewriter_close(&rewriter);
    for (int i = 0; i < n_images; i++) lk_image_free(&images[i]);
    return rc;
}

static enum lk_code print_json(const struct lk_plan *plan, const struct totals *t, const struct cli_arguments *a,
                               const struct lk_plan *rewrite, const struct lk_device *target) {
    const bool has_memory = target->memory->place != NULL;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "family", plan->family);
    cJSON_AddBoolToObject(root, "only_planned", is_only_planned(plan));
    cJSON_AddStringToObject(root, "dtype", a->job.run.dtype);
    cJSON_AddStringToObject(root, "quantize", a->job.run.quantize);
    cJSON_AddNumberToObject(root, "width", plan->width);
    cJSON_AddNumberToObject(root, "height", plan->height);
    cJSON_AddNumberToObject(root, "references", plan->n_references);
    cJSON_AddNumberToObject(root, "num_inference_steps", plan->n_steps);
    cJSON_AddNumberToObject(root, "tokens", (double)plan->n_tokens);
    component_json(root, plan, "text_encoder");
    if (has_stage(plan, "vision")) component_json(root, plan, "vision");
    component_json(root, plan, "transformer");
    if (has_stage(plan, "decoder")) component_json(root, plan, "decoder");
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
    if (has_memory) add_placed(root, plan, a, target);
    if (rewrite) rewrite_json(root, rewrite, has_memory);
    char *text = cJSON_Print(root);
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(root);
    return text ? LK_OK : lk_fail(LK_E_NOMEM, "plan: out of memory for the report");
}

static void print_placed(const struct lk_plan *plan, const struct lk_device *target) {
    const struct lk_device_rates rates = lk_device_rates(target->architecture);
    char resident[32], streamed[32], ring[32], all[32], host[32];
    if (plan->whole) {
        const struct lk_plan_placed *t = lk_plan_transformer(plan);
        printf("placement: all weights resident");
        if (t)
            printf("; a step, modelled: %.2f s (80 %%: %.2f to %.2f)", t->placed_s, t->placed_s * rates.least,
                   t->placed_s * rates.most);
        printf("\n");
        return;
    }
    printf("\n%-14s %11s %11s %11s %13s %s\n", "placement", plan->n_ranks ? "own share" : "resident",
           plan->n_ranks ? "gathered" : "streamed", "ring", "modelled s", "");
    for (int i = 0; i < plan->n_placed; i++) {
        const struct lk_plan_placed *p = &plan->placed[i];
        printf("%-14s %11s %11s %11s %13.3f", p->name, cli_bytes(p->resident_bytes, resident),
               cli_bytes(p->streamed_bytes, streamed), cli_bytes(p->ring_bytes, ring), p->placed_s);
        if (!strcmp(p->name, "transformer") || !strcmp(p->name, "decoder"))
            printf(" a step (80 %%: %.2f to %.2f), +%.1f%% for waiting", p->placed_s * rates.least,
                   p->placed_s * rates.most, 100 * fmax(0, p->placed_s / p->resident_s - 1));
        printf("\n");
    }
    cli_bytes(plan->placed_bytes + plan->beside_bytes, all);
    if (plan->n_ranks)
        printf("on each of %d GPUs: %s, which make %d pictures at a time\n", plan->n_ranks, all, plan->n_ranks);
    else
        printf("on the device: %s; in pinned host memory: %s\n", all, cli_bytes(plan->pinned_bytes, host));
    if (plan->sparing)
        printf("in slices (--attention-slicing), and bands of the VAE where it has them: all at once does not fit\n");
}

/* Says whether the budget holds it and where weights then lie; LK_E_FIT if not even a layer at a time. */
static enum lk_code judge(const struct lk_plan *plan, const struct lk_plan *rewrite, const struct cli_arguments *a,
                          const struct lk_device *target) {
    char needed[32], budget[32];
    if (!target->memory->place) return LK_OK;
    if (rewrite && !rewrite->fits)
        return lk_fail(LK_E_FIT, "%s: %s are needed at least to rewrite the prompts, with a layer of weights at a time",
                       a->job.run.vram ? "--vram" : target->name,
                       cli_bytes(rewrite->least_bytes + rewrite->beside_bytes, needed));
    if (!plan->fits)
        return lk_fail(LK_E_FIT, "%s: %s are needed at least%s, with a layer of weights at a time, %s %s",
                       a->job.run.vram ? "--vram" : target->name,
                       cli_bytes(plan->least_bytes + plan->beside_bytes, needed),
                       plan->n_ranks ? " on each GPU, for its share of them" : "",
                       a->job.run.vram ? "the budget is" : "less is free",
                       a->job.run.vram ? cli_bytes(a->job.run.vram, budget) : "");
    if (a->json) return LK_OK;
    print_placed(plan, target);
    if (plan->n_ranks && a->job.request.accel && strcmp(a->job.request.accel, "region") != 0)
        printf("by NCCL every GPU gathers the blocks that --accel leaves out too: then it saves arithmetic, no "
               "transfers\n");
    return LK_OK;
}

/* Bytes of a weight, with the scales of 64: engine/quantized.h. */
static const struct {
    const char *name;
    double bytes_per_weight;
} precisions[] = {{"bf16", 0}, {"q8", 1.03125}, {"nf4", 0.53125}};
#define N_PRECISIONS (sizeof precisions / sizeof *precisions)

int cli_references(const struct cli_arguments *a, const struct lk_pipeline *pipeline) {
    return a->references >= 0 ? (int)a->references : lk_pipeline_takes_images(pipeline);
}

/* n pictures as large as the output, which is 1024 by 1024 unless told; without any it is the model's own size. */
static void set_sizes(struct lk_request *request, int n, struct lk_image images[CLI_MAX_IMAGES]) {
    if (n && !request->width) request->width = 1024;
    if (n && !request->height) request->height = 1024;
    request->images = images;
    request->n_images = n;
    for (int i = 0; i < CLI_MAX_IMAGES; i++)
        images[i] = (struct lk_image){.width = request->width, .height = request->height, .channels = 3};
}

static enum lk_code plan_job(struct lk_pipeline *pipeline, const struct lk_device *target,
                             const struct cli_arguments *a, struct lk_plan *out) {
    struct lk_image images[CLI_MAX_IMAGES];
    struct lk_job job = a->job;
    struct lk_request *request = &job.request;
    LK_TRY(lk_job_complete(&job, pipeline, NULL));
    set_sizes(request, cli_references(a, pipeline), images);
    *out = (struct lk_plan){0};
    return cli_job_plan(pipeline, target, &job, out);
}

/* Models of text alone refuse --quantize. */
static bool can_be_packed(const struct lk_pipeline *pipeline) { return lk_pipeline_takes_images(pipeline); }

/* What the same budget would give with the transformer's weights quantised. */
static enum lk_code print_precisions(struct lk_pipeline *pipeline, struct lk_device *target,
                                     const struct cli_arguments *a, const struct lk_plan *plan) {
    const struct lk_plan_placed *now = lk_plan_transformer(plan);
    if (plan->whole || plan->n_ranks || !now || !now->streamed_bytes || now->packed || !can_be_packed(pipeline))
        return LK_OK;
    for (size_t i = 1; i < N_PRECISIONS; i++) {
        struct lk_plan other;
        char resident[32], streamed[32], host[32], host_now[32];
        target->budget.bytes_per_weight = precisions[i].bytes_per_weight;
        enum lk_code rc = plan_job(pipeline, target, a, &other);
        target->budget.bytes_per_weight = 0;
        if (rc) return rc;
        const struct lk_plan_placed *p = lk_plan_transformer(&other);
        if (!p) continue;
        printf("with %s weights: %s resident + %s streamed, %.2f -> %.2f s/step, pinned %s -> %s\n", precisions[i].name,
               cli_bytes(p->resident_bytes, resident), cli_bytes(p->streamed_bytes, streamed), now->placed_s,
               p->placed_s, cli_bytes(plan->pinned_bytes, host_now), cli_bytes(other.pinned_bytes, host));
    }
    return LK_OK;
}

static enum lk_code plan(struct lk_pipeline *pipeline, struct lk_device *target, const struct cli_arguments *a) {
    struct lk_plan out, before, *const rewrite = a->rewrite.prompts ? &before : NULL;
    LK_TRY(plan_job(pipeline, target, a, &out));
    if (rewrite) LK_TRY(plan_rewrite(a, cli_references(a, pipeline), &out, target, rewrite));
    struct totals t = sum(&out, target);
    enum lk_code rc = LK_OK;
    if (a->json)
        rc = print_json(&out, &t, a, rewrite, target);
    else
        print_text(&out, &t, &a->job.run);
    if (rewrite && !a->json) print_rewrite(rewrite, target);
    if (!rc) rc = judge(&out, rewrite, a, target);
    return rc || a->json || !target->memory->place ? rc : print_precisions(pipeline, target, a, &out);
}

/* A card's table: for budgets from 8 GiB on, what of the transformer's weights is resident and what is streamed, in GB,
 * and the predicted seconds of a step. Weights that are packed have one column, others one for each precision. */
static enum lk_code table(struct lk_pipeline *pipeline, struct lk_device *target, const struct cli_arguments *a,
                          cJSON *rows) {
    static const int gib[] = {8, 12, 16, 20, 24, 32, 40, 48, 80};
    struct lk_plan largest;
    char stored[96];
    target->budget.bytes = UINT64_MAX;
    LK_TRY(plan_job(pipeline, target, a, &largest));
    lk_pipeline_quantization(pipeline, stored);
    const struct lk_plan_placed *all = lk_plan_transformer(&largest);
    const bool packed = all && all->packed;
    const size_t n_precisions = packed || !can_be_packed(pipeline) ? 1 : N_PRECISIONS;
    if (!a->json) printf("%-16s GiB", lk_pipeline_family(pipeline));
    for (size_t k = 0; !a->json && k < n_precisions; k++) printf("%24s", packed ? stored : precisions[k].name);
    for (size_t i = 0; i < sizeof gib / sizeof *gib; i++) {
        if (!a->json) printf("\n%20d", gib[i]);
        target->budget.bytes = (uint64_t)gib[i] << 30;
        for (size_t k = 0; k < n_precisions; k++) {
            struct lk_plan out;
            char cell[64] = "-";
            target->budget.bytes_per_weight = precisions[k].bytes_per_weight;
            LK_TRY(plan_job(pipeline, target, a, &out));
            const struct lk_plan_placed *p = lk_plan_transformer(&out);
            if (p)
                snprintf(cell, sizeof cell, "%s%.1f + %.1f, %.2f s", out.whole ? "all " : "",
                         (double)p->resident_bytes * 1e-9, (double)p->streamed_bytes * 1e-9, p->placed_s);
            if (!a->json) {
                printf("%24s", cell);
                continue;
            }
            cJSON *row = cJSON_CreateObject();
            cJSON_AddStringToObject(row, "model", lk_pipeline_family(pipeline));
            cJSON_AddStringToObject(row, "precision", packed ? stored : precisions[k].name);
            cJSON_AddNumberToObject(row, "gib", gib[i]);
            cJSON_AddBoolToObject(row, "fits", out.fits);
            cJSON_AddNumberToObject(row, "resident_bytes", p ? (double)p->resident_bytes : 0);
            cJSON_AddNumberToObject(row, "streamed_bytes", p ? (double)p->streamed_bytes : 0);
            cJSON_AddNumberToObject(row, "seconds", p ? p->placed_s : 0);
            cJSON_AddItemToArray(rows, row);
        }
    }
    if (!a->json) printf("\n");
    return LK_OK;
}

static enum lk_code print_table(struct lk_pipeline *pipeline, struct lk_device *target, const struct cli_arguments *a) {
    if (!target->memory->place)
        return lk_fail(LK_E_USAGE,
                       "--all: %s has no memory of its own to plan for; use --device cuda, " LK_CUDA_DESCRIBED,
                       target->name);
    cJSON *rows = cJSON_CreateArray();
    enum lk_code rc = table(pipeline, target, a, rows);
    char *text = !rc && a->json ? cJSON_Print(rows) : NULL;
    if (text) puts(text);
    if (!rc && !a->json)
        lk_log(LK_LOG_INFO,
               "GiB: memory that the GPU may use. Below bf16, q8 or nf4 (how the transformer's weights are stored): GB "
               "of them that stay there + GB that are streamed for each step, and the modelled seconds of a step. all: "
               "every part of the model stays; otherwise one stage's weights are there at a time. -: it does not fit.");
    cJSON_free(text);
    cJSON_Delete(rows);
    return rc;
}

/* The short name of a released model whose repository is not on this machine: it is planned as released. */
static const char *released(const char *model) {
    struct lk_model_info info;
    char *folder = NULL;
    const bool here = !lk_model_find(model, &folder);
    lk_free(folder);
    for (int i = 0; !here && lk_model_info(i, &info); i++)
        if (info.repository && !strcmp(info.repository, model)) {
            lk_log(LK_LOG_INFO, "%s is not on this machine: planned as released", model);
            return info.name;
        }
    return model;
}

/* A word that is neither a folder nor the name of a released model. */
static enum lk_code unknown(const char *model) {
    enum { MAX_NAMES = 64 };
    struct lk_model_info info;
    const char *names[MAX_NAMES];
    size_t n = 0;
    while (n < MAX_NAMES && lk_model_info((int)n, &info)) names[n++] = info.name;
    const char *near = cli_suggest(model, names, n);
    return lk_fail(LK_E_NOT_FOUND, "\"%s\": no such folder, and none of the names that 'likeness models' prints%s%s%s",
                   model, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static enum lk_code run(struct lk_device *target, const struct cli_arguments *given) {
    struct lk_pipeline *pipeline;
    struct cli_arguments a = *given;
    a.model = released(a.model);
    if (a.auto_quantize && a.all_budgets)
        return lk_fail(LK_E_USAGE, "--all: shows each precision; leave --quantize auto out");
    if (a.auto_quantize) {
        struct lk_image images[CLI_MAX_IMAGES];
        set_sizes(&a.job.request, a.references >= 0 ? (int)a.references : 1, images);
        LK_TRY(cli_choose_quantize(a.model, &a.job, 1, target, &a.job.run.quantize));
    }
    struct lk_pipeline_options options = cli_pipeline_options(&a.job.run);
    options.configs = true;
    options.prompt_embeds = a.job.request.prompt_embeds;
    enum lk_code rc = lk_pipeline_open_with(&pipeline, a.model, &options);
    if (rc == LK_E_NOT_FOUND && !strchr(a.model, '/') && access(a.model, F_OK)) return unknown(a.model);
    if (rc) return rc;
    rc = (a.all_budgets ? print_table : plan)(pipeline, target, &a);
    lk_pipeline_close(pipeline);
    return rc;
}

enum lk_code cli_plan(const struct cli_arguments *a) {
    struct lk_device *target;
    LK_TRY(cli_plan_target(&a->job.run, &target));
    enum lk_code rc = run(target, a);
    lk_device_free(target);
    return rc;
}
