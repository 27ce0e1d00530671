/* What launches call. */
#include "check/state.h"

#include <stdio.h>
#include <stdlib.h>

static void memory(void *context, struct gpusim_warp *warp, const struct gpusim_op *op,
                   const struct gpusim_memory_event *event) {
    (void)context;
    switch (event->space) {
    case GPUSIM_SHARED:
        if (event->access == GPUSIM_ACCESS_BARRIER)
            check_mbarrier(warp, op, event);
        else
            check_shared(warp, op, event);
        break;
    case GPUSIM_GLOBAL:
    case GPUSIM_CONST:
        check_global(warp, op, event);
        break;
    case GPUSIM_LOCAL:
        check_local(warp, op, event);
        break;
    default:
        break;
    }
}

static void launch_begin(void *context, struct gpusim_launch *launch) {
    (void)context;
    if (gpusim_settings()->checks == GPUSIM_CHECKS_ALL) check_fences_begin(launch);
}
static void launch_end(void *context, struct gpusim_launch *launch) {
    (void)context, (void)launch;
    check_fences_end();
    check_blocks_done();
}
static void async_wait(void *context, struct gpusim_warp *warp, uint32_t mask, uint32_t keep) {
    (void)context;
    check_shared_wait(warp, mask, keep);
}

static const struct gpusim_hooks written_only = {.launch_begin = launch_begin,
                                                 .launch_end = launch_end,
                                                 .block_begin = check_block_begin,
                                                 .memory = memory,
                                                 .frame_enter = check_frame_enter,
                                                 .frame_write = check_frame_write};
static const struct gpusim_hooks everything = {.launch_begin = launch_begin,
                                               .launch_end = launch_end,
                                               .block_begin = check_block_begin,
                                               .memory = memory,
                                               .barrier_arrive = check_barrier_arrive,
                                               .barrier_release = check_barrier_release,
                                               .warp_sync = check_warp_sync,
                                               .async_wait = async_wait,
                                               .frame_enter = check_frame_enter,
                                               .frame_write = check_frame_write,
                                               .fence = check_fence};

const struct gpusim_hooks *gpusim_check_start(void) {
    enum gpusim_checks checks = gpusim_settings()->checks;
    if (checks == GPUSIM_CHECKS_NONE) return NULL;
    gpusim_memory_on_new = check_memory_new;
    return checks == GPUSIM_CHECKS_ALL ? &everything : &written_only;
}

void gpusim_check_exit(void) {
    int code = gpusim_settings()->exit_code;
    if (!code || !gpusim_report_count()) return;
    fflush(NULL);
    _Exit(code);
}
