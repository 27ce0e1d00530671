/* What a program has not given back: when a context ends and when the process ends. */
#include "driver/state.h"
#include "exec/heap.h"

#include <stdio.h>

enum { MOST_LINES = 16 };

static void leak(const struct gpusim_allocation *a, const char *what) {
    struct gpusim_report r = {.kind = GPUSIM_REPORT_LEAK};
    if (a) {
        r.allocation = a->id;
        r.allocation_base = a->base;
        r.allocation_bytes = a->bytes;
    }
    snprintf(r.what, sizeof r.what, "%s", what);
    gpusim_report_emit(&r);
}

struct search {
    int device; /* -1: host memory */
    uint32_t n;
    uint64_t bytes;
};
static void look(struct gpusim_allocation *a, void *context) {
    struct search *s = context;
    bool mine = s->device >= 0 ? a->kind == GPUSIM_MEMORY_DEVICE && a->device == s->device
                               : a->kind == GPUSIM_MEMORY_PINNED || a->kind == GPUSIM_MEMORY_REGISTERED;
    if (!mine) return;
    s->bytes += a->bytes;
    if (s->n++ < MOST_LINES)
        leak(a, a->kind == GPUSIM_MEMORY_DEVICE   ? "device memory was not freed"
                : a->kind == GPUSIM_MEMORY_PINNED ? "pinned memory was not freed"
                                                  : "registered memory was not unregistered");
}
static void leaks_of_memory(int device) {
    struct search s = {device, 0, 0};
    char text[128];
    gpusim_memory_each(look, &s);
    uint64_t blocks = 0, bytes = 0;
    if (device >= 0) gpusim_heap_left(device, &blocks, &bytes);
    if (blocks) {
        snprintf(text, sizeof text, "%llu blocks of malloc in kernels, %llu bytes altogether, were not freed",
                 (unsigned long long)blocks, (unsigned long long)bytes);
        leak(NULL, text);
    }
    if (s.n <= MOST_LINES) return;
    snprintf(text, sizeof text, "%u allocations of %llu bytes altogether were not freed", s.n,
             (unsigned long long)s.bytes);
    leak(NULL, text);
}

/* A primary context's modules belong to the CUDA runtime, which loads them for the program. After an error a program
 * may be unable to free anything. */
void gpusim_report_leaks(const struct gpusim_context *context) {
    uint32_t n_streams = 0, n_events = 0, n_modules = 0;
    char text[128];
    bool last = true;
    if (gpusim_settings()->checks < GPUSIM_CHECKS_ALL || context->error || gpusim_driver.died) return;
    for (const struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        last &= c == context || c->device != context->device;
    if (last) leaks_of_memory(context->device);
    for (const struct gpusim_stream *s = context->streams; s; s = s->next)
        n_streams += s != context->legacy && s != context->per_thread;
    for (const struct gpusim_event *e = context->events; e; e = e->next) n_events++;
    for (const struct gpusim_loaded *m = context->modules; m && !context->primary; m = m->next) n_modules++;
    if (!n_streams && !n_events && !n_modules) return;
    snprintf(text, sizeof text, "%u streams and %u events were not destroyed, %u modules not unloaded", n_streams,
             n_events, n_modules);
    leak(NULL, text);
}

/* The last destructor: it may end the process. */
__attribute__((destructor(101))) static void at_exit(void) {
    if (gpusim_driver.initialised && gpusim_settings()->checks == GPUSIM_CHECKS_ALL) {
        for (const struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next) gpusim_report_leaks(c);
        if (!gpusim_driver.failed && !gpusim_driver.died) leaks_of_memory(-1);
    }
    gpusim_check_exit();
}
