/* Where an edit computes, and within what memory. */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/runtime/rivals.h"
#include "tools/cli/edit/job.h"

#define LEFT_FREE ((uint64_t)1 << 30) /* of a GPU's memory, or an eighth if that is less */

/* "cuda" or "cuda:INDEX". */
static bool parse_cuda(const char *name, int *index) {
    char rest;
    *index = 0;
    if (!strcmp(name, "cuda")) return true;
    return name[4] == ':' && name[5] >= '0' && name[5] <= '9' && strlen(name) < 9 &&
           sscanf(name, "cuda:%d%c", index, &rest) == 1;
}

enum lk_dtype cli_dtype(const struct lk_job_run *run) { return strcmp(run->dtype, "f32") ? LK_BF16 : LK_F32; }

struct lk_pipeline_options cli_pipeline_options(const struct lk_job_run *run) {
    return (struct lk_pipeline_options){
        .compute = cli_dtype(run), .quantize = lk_quantize_named(run->quantize), .transformer = run->transformer};
}

static enum lk_code open_device(const struct lk_job_run *run, struct lk_device **out) {
    int index;
    *out = NULL;
    if (!strcmp(run->device, "cpu")) return lk_device_cpu_create(run->threads, out);
    if (strncmp(run->device, "cuda", 4) || !parse_cuda(run->device, &index))
        return lk_fail(LK_E_USAGE, "--device %s: expected cpu, cuda or cuda:INDEX", run->device);
    enum lk_code rc = lk_device_cuda_create(index, out);
    return rc ? lk_fail_prefix(rc, "--device %s", run->device) : LK_OK;
}

/* What was asked for, or what is free but for what others may come to want. */
static enum lk_code set_budget(const struct lk_job_run *run, struct lk_device *dev) {
    struct lk_device_room room;
    if (!dev->memory->place) {
        if (!run->vram) return LK_OK;
        return lk_fail(
            LK_E_USAGE,
            "--vram: --device %s computes in the machine's memory, of which weights take what is free; leave "
            "it out, or use --device cuda (of plan also sm_80 or sm_90, GPUs that need not be there)",
            run->device);
    }
    dev->budget.bytes = run->vram;
    if (run->vram) return LK_OK;
    LK_TRY(dev->memory->room(dev, 0, &room));
    dev->budget.bytes = room.bytes + room.needed_beside - (room.bytes / 8 < LEFT_FREE ? room.bytes / 8 : LEFT_FREE);
    return LK_OK;
}

enum lk_code cli_device_open(const struct lk_job_run *run, struct lk_device **out) {
    LK_TRY(open_device(run, out));
    enum lk_code rc = set_budget(run, *out);
    if (!rc && (rc = lk_cuda_choose(*out, run->gemm, NULL))) rc = lk_fail_prefix(rc, "--gemm %s", run->gemm);
    if (!rc) {
        rc = lk_cuda_choose(*out, NULL, run->conv);
        if (rc) rc = lk_fail_prefix(rc, "--conv %s", run->conv);
    }
    if (rc) {
        lk_device_free(*out);
        *out = NULL;
    }
    return rc;
}
