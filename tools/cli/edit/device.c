/* Where an edit computes, and within what memory. */
#include <stdio.h>
#include <string.h>

#include "engine/base/log.h"
#include "kernels/cuda/runtime/rivals.h"
#include "models/host_room.h"
#include "models/ranks.h"
#include "tools/cli/edit/job.h"

#define LEFT_FREE ((uint64_t)1 << 30) /* of a GPU's memory, or an eighth if that is less */

/* What follows "cuda" or "sm_80": nothing, or ":I,J,..."; false if it is anything else. */
static bool parse_indexes(const char *text, int indexes[LK_MAX_RANKS], int *n) {
    indexes[0] = 0;
    *n = 1;
    if (!*text) return true;
    *n = 0;
    for (const char *at = text; *at; at++) {
        int length = 0;
        if (*n == LK_MAX_RANKS || *at != (at == text ? ':' : ',') || at[1] < '0' || at[1] > '9') return false;
        if (sscanf(at + 1, "%4d%n", &indexes[(*n)++], &length) != 1) return false;
        at += length;
    }
    return true;
}

static bool is_sharded(const struct lk_job_run *run) { return !strcmp(run->weights, "sharded"); }

enum lk_dtype cli_dtype(const struct lk_job_run *run) { return strcmp(run->dtype, "f32") ? LK_BF16 : LK_F32; }

struct lk_pipeline_options cli_pipeline_options(const struct lk_job_run *run) {
    return (struct lk_pipeline_options){.compute = cli_dtype(run),
                                        .quantize = lk_quantize_named(run->quantize),
                                        .transformer = run->transformer,
                                        .loras = run->loras,
                                        .n_loras = run->n_loras,
                                        .variant = run->variant};
}

enum lk_code cli_choose_quantize(const char *model, const struct lk_job *job, int jobs_per_visit,
                                 struct lk_device *target, const char **out) {
    struct lk_pipeline_options options = cli_pipeline_options(&job->run);
    struct lk_pipeline *pipeline;
    struct lk_job one = *job;
    enum lk_quantize how;
    const bool here = strncmp(job->run.device, "sm_", 3) != 0;
    const uint64_t host = job->run.host_ram;
    options.configs = true;
    options.prompt_embeds = job->request.prompt_embeds;
    LK_TRY(lk_pipeline_open_with(&pipeline, model, &options));
    enum lk_code rc = lk_job_complete(&one, pipeline, NULL);
    lk_pipeline_close(pipeline);
    LK_TRY(rc);
    const struct lk_quantize_question question = {.model = model,
                                                  .options = &options,
                                                  .request = &one.request,
                                                  .jobs_per_visit = jobs_per_visit,
                                                  .host_bytes = host   ? host
                                                                : here ? lk_host_room("") | 1
                                                                       : 0};
    LK_TRY(lk_pipeline_choose_quantize(&question, target, &how));
    *out = lk_quantize_name(how);
    lk_log(LK_LOG_INFO, "--quantize auto: %s", *out);
    return LK_OK;
}

/* The GPUs of a list; LK_E_USAGE unless there are as many as the weights lie on. */
static enum lk_code parse_gpus(const struct lk_job_run *run, const char *kinds, int indexes[LK_MAX_RANKS], int *n) {
    const size_t prefix = strcspn(run->device, ":");
    if (!parse_indexes(run->device + prefix, indexes, n))
        return lk_fail(LK_E_USAGE, "--device %s: expected %s", run->device, kinds);
    if (is_sharded(run) && *n < 2)
        return lk_fail(LK_E_USAGE,
                       "--weights sharded: expected two GPUs or more, as --device cuda:0,1, got --device %s",
                       run->device);
    if (!is_sharded(run) && *n > 1)
        return lk_fail(LK_E_USAGE,
                       "--device %s: several GPUs make edits together with --weights sharded; for each its own weights "
                       "and jobs there is `study run --devices`",
                       run->device);
    return LK_OK;
}

static enum lk_code open_devices(const struct lk_job_run *run, struct cli_devices *out) {
    static const char kinds[] = "cpu, cuda or cuda:INDEX";
    int indexes[LK_MAX_RANKS];
    *out = (struct cli_devices){0};
    if (!strcmp(run->device, "cpu") && !is_sharded(run)) {
        out->n = 1;
        return lk_device_cpu_create(run->threads, &out->list[0]);
    }
    if (strncmp(run->device, "cuda", 4) || (run->device[4] && run->device[4] != ':'))
        return is_sharded(run) && !strcmp(run->device, "cpu")
                   ? lk_fail(LK_E_USAGE, "--weights sharded: expected GPUs, as --device cuda:0,1, got --device cpu")
                   : lk_fail(LK_E_USAGE, "--device %s: expected %s", run->device, kinds);
    LK_TRY(parse_gpus(run, kinds, indexes, &out->n));
    enum lk_code rc = out->n > 1 ? lk_device_cuda_ranks(indexes, out->n, out->list)
                                 : lk_device_cuda_create(indexes[0], &out->list[0]);
    return rc ? lk_fail_prefix(rc, "--device %s", run->device) : LK_OK;
}

/* What was asked for, or what is free but for what others may come to want. */
static enum lk_code set_budget(const struct lk_job_run *run, struct lk_device *dev) {
    struct lk_device_room room;
    if (!dev->memory->place) {
        if (!run->vram && !run->host_ram) return LK_OK;
        return lk_fail(LK_E_USAGE,
                       "--%s: --device %s computes in the machine's memory, of which weights take what is free; leave "
                       "it out, or use --device cuda (of plan also " LK_CUDA_DESCRIBED ", GPUs that need not be there)",
                       run->vram ? "vram" : "host-ram", run->device);
    }
    dev->budget.bytes = run->vram;
    dev->budget.host_bytes = run->host_ram;
    if (run->vram) return LK_OK;
    LK_TRY(dev->memory->room(dev, 0, &room));
    dev->budget.bytes = room.bytes + room.needed_beside - (room.bytes / 8 < LEFT_FREE ? room.bytes / 8 : LEFT_FREE);
    return LK_OK;
}

static enum lk_code set_up(const struct lk_job_run *run, struct lk_device *dev) {
    LK_TRY(set_budget(run, dev));
    enum lk_code rc = lk_cuda_choose(dev, run->gemm, NULL);
    if (rc) return lk_fail_prefix(rc, "--gemm %s", run->gemm);
    rc = lk_cuda_choose(dev, NULL, run->conv);
    return rc ? lk_fail_prefix(rc, "--conv %s", run->conv) : LK_OK;
}

enum lk_code cli_devices_open(const struct lk_job_run *run, struct cli_devices *out) {
    enum lk_code rc = open_devices(run, out);
    for (int i = 0; i < out->n && !rc; i++) rc = set_up(run, out->list[i]);
    if (rc) cli_devices_free(out);
    return rc;
}

void cli_devices_free(struct cli_devices *devices) {
    for (int i = 0; i < devices->n; i++) lk_device_free(devices->list[i]);
    *devices = (struct cli_devices){0};
}

enum lk_code cli_devices_edit(struct lk_pipeline *pipeline, const struct cli_devices *devices,
                              const struct lk_queue *queue) {
    if (devices->n > 1) return lk_pipeline_edit_ranks(pipeline, devices->list, devices->n, queue);
    return lk_pipeline_edit_queue(pipeline, devices->list[0], queue);
}

enum lk_code cli_device_open(const struct lk_job_run *run, struct lk_device **out) {
    struct lk_job_run one = *run;
    struct cli_devices devices;
    one.weights = "own";
    enum lk_code rc = cli_devices_open(&one, &devices);
    *out = devices.list[0];
    return rc;
}

enum lk_code cli_plan_target(const struct lk_job_run *run, struct lk_device **out) {
    const bool described = !strncmp(run->device, "sm_", 3);
    const int prefix = (int)strcspn(run->device, ":");
    struct lk_job_run one = *run;
    char name[16];
    int indexes[LK_MAX_RANKS], n = 1;
    *out = NULL;
    if (described || is_sharded(run))
        LK_TRY(parse_gpus(run, described ? LK_CUDA_DESCRIBED ", of ranks sm_80:0,1" : "cuda:0,1", indexes, &n));
    if (n > 1) {
        snprintf(name, sizeof name, described ? "%.*s" : "%.*s:%d", prefix, run->device, indexes[0]);
        one.device = name;
    }
    if (described) {
        LK_TRY(lk_device_cuda_describe(one.device, out));
        (*out)->budget.bytes = run->vram;
        (*out)->budget.host_bytes = run->host_ram;
    } else {
        LK_TRY(cli_device_open(&one, out));
    }
    (*out)->budget.n_ranks = n > 1 ? n : 0;
    return LK_OK;
}
