/* Calls counted, and made to fail. */
#include "driver/state.h"

#include <string.h>

enum { MOST_NAMES = 256 };

static struct {
    const char *name; /* a function's __func__: one address each */
    uint64_t n;
} calls[MOST_NAMES];
static uint64_t n_all;
static struct {
    const char *name; /* NULL: any */
    uint64_t n;
    CUresult result;
    bool sticky;
    const char *failed;
} fault;

CUresult gpusim_call(const char *name) {
    size_t i = 0;
    while (i + 1 < MOST_NAMES && calls[i].name && calls[i].name != name) i++;
    calls[i].name = name;
    calls[i].n++;
    n_all++;
    if (!fault.n || (fault.name && strcmp(fault.name, name)) || --fault.n) return CUDA_SUCCESS;
    struct gpusim_context *context = gpusim_current();
    fault.failed = name;
    if ((int)fault.result == GPUSIM_DEAD) {
        if (context) gpusim_driver.dead[context->device] = gpusim_driver.died = true;
        return CUDA_SUCCESS;
    }
    if ((int)fault.result == GPUSIM_NEVER && strcmp(name, "ncclAllGather")) {
        gpusim_driver.never = true;
        return CUDA_SUCCESS;
    }
    if (fault.sticky && context) {
        context->error = fault.result;
        gpusim_driver.failed = true;
    }
    return fault.result;
}

uint64_t gpusim_calls(const char *name) {
    uint64_t n = 0;
    gpusim_lock();
    for (size_t i = 0; name && i < MOST_NAMES && calls[i].name; i++)
        if (!strcmp(calls[i].name, name)) n += calls[i].n;
    if (!name) n = n_all;
    gpusim_unlock(CUDA_SUCCESS);
    return n;
}

void gpusim_fail_at(const char *name, uint64_t n, int result, bool sticky) {
    gpusim_lock();
    fault.name = name;
    fault.n = n;
    fault.result = (CUresult)result;
    fault.sticky = sticky;
    fault.failed = NULL;
    gpusim_driver.never = false;
    memset(gpusim_driver.dead, 0, sizeof gpusim_driver.dead);
    for (struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        for (struct gpusim_stream *s = c->streams; s; s = s->next)
            for (struct gpusim_item *i = s->first; i; i = i->next) i->never = false;
    gpusim_unlock(CUDA_SUCCESS);
}

const char *gpusim_failed_call(void) { return fault.failed; }
