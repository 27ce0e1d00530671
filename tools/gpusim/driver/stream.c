/* Streams and events: queues of work and the order in which it is done. Which ready stream goes next is drawn from the
 * seed. */
#include "driver/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct gpusim_stream *gpusim_stream_new(struct gpusim_context *context, bool blocking, int priority, unsigned flags) {
    struct gpusim_stream *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->context = context;
    s->blocking = blocking;
    s->priority = priority;
    s->flags = flags;
    s->id = ++gpusim_driver.next_id;
    s->order = gpusim_order_stream(context, !context->legacy, blocking);
    s->next = context->streams;
    context->streams = s;
    return s;
}

static void item_free(struct gpusim_item *item) {
    gpusim_gather_over(item);
    free(item->params);
    free(item->staged);
    free(item->operation);
    free(item);
}

void gpusim_stream_free(struct gpusim_context *context, struct gpusim_stream *stream) {
    for (struct gpusim_stream **link = &context->streams; *link; link = &(*link)->next)
        if (*link == stream) {
            *link = stream->next;
            break;
        }
    while (stream->first) {
        struct gpusim_item *next = stream->first->next;
        item_free(stream->first);
        stream->first = next;
    }
    free(stream);
}

struct gpusim_stream *gpusim_stream_of(struct gpusim_context *context, CUstream handle) {
    if ((uintptr_t)handle <= 1) return context->legacy;
    if ((uintptr_t)handle == 2) return context->per_thread;
    for (struct gpusim_stream *s = context->streams; s; s = s->next)
        if (s == handle) return s;
    return NULL;
}

struct gpusim_item *gpusim_item_new(struct gpusim_context *context, enum gpusim_work kind) {
    struct gpusim_item *item = calloc(1, sizeof *item);
    if (!item) return NULL;
    item->kind = kind;
    item->context = context;
    return item;
}

static void name_of(const struct gpusim_item *item, char *out, size_t n) {
    static const char *const names[] = {"kernel",        "copy",      "memset", "event record", "wait for an event",
                                        "host function", "all-gather"};
    bool kernel = item->kind == GPUSIM_WORK_LAUNCH;
    snprintf(out, n, "%s%s%s", names[item->kind], kernel ? " " : "", kernel ? item->launch.function->name : "");
}

void gpusim_enqueue(struct gpusim_stream *stream, struct gpusim_item *item) {
    char name[64];
    item->sequence = ++gpusim_driver.sequence;
    name_of(item, name, sizeof name);
    item->operation = gpusim_order_operation(stream->order, item->sequence, name);
    if (item->kind == GPUSIM_WORK_RECORD) gpusim_order_record(stream->order, &item->event->order);
    item->stream = stream;
    item->never = gpusim_driver.never;
    gpusim_driver.never = false;
    if (stream->last && stream->first)
        stream->last->next = item;
    else
        stream->first = item;
    stream->last = item;
}

static bool is_dead(uint64_t address) {
    const struct gpusim_allocation *a = gpusim_memory_find(address);
    return a && a->device >= 0 && gpusim_driver.dead[a->device];
}

/* Does a test keep the item from being done? */
static bool is_held(const struct gpusim_item *item) {
    if (item->never || gpusim_driver.dead[item->context->device]) return true;
    return item->kind == GPUSIM_WORK_COPY && (is_dead(item->source) || is_dead(item->target));
}

/* May the stream's next item start? The legacy stream and the blocking ones wait for each other. */
static bool ready(const struct gpusim_stream *stream) {
    const struct gpusim_item *item = stream->first;
    const struct gpusim_context *context = stream->context;
    if (!item || is_held(item)) return false;
    if (item->kind == GPUSIM_WORK_WAIT && item->event->done < item->event_version) return false;
    if (item->kind == GPUSIM_WORK_GATHER && !gpusim_gather_ready(item)) return false;
    if (stream == context->legacy) {
        for (const struct gpusim_stream *s = context->streams; s; s = s->next)
            if (s != stream && s->blocking && s->first && s->first->sequence < item->sequence) return false;
    } else if (stream->blocking && context->legacy->first && context->legacy->first->sequence < item->sequence)
        return false;
    return true;
}

/* Does one item of some ready stream. False: nothing is ready. */
static bool step(void) {
    struct gpusim_stream *chosen = NULL;
    uint32_t n = 0;
    for (struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        for (struct gpusim_stream *s = c->streams; s; s = s->next)
            if (ready(s) && gpusim_random(&gpusim_driver.random) % ++n == 0) chosen = s;
    if (!chosen) return false;
    struct gpusim_item *item = chosen->first;
    chosen->first = item->next;
    if (!chosen->first) chosen->last = NULL;
    CUresult result = item->context->error ? CUDA_SUCCESS : gpusim_do(item);
    if (item->kind == GPUSIM_WORK_RECORD && item->context->error) item->event->done = item->event_version;
    if (result && !item->context->error) {
        item->context->error = result;
        gpusim_driver.failed = true;
    }
    item_free(item);
    return true;
}

/* Other threads queue what an all-gather still waits for, where they may call, or end what a test has held. */
static bool wait_for_others(void) {
    bool waiting = false;
    if (gpusim_driver.loading) return false;
    for (struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        for (struct gpusim_stream *s = c->streams; s; s = s->next)
            waiting |= s->first && (s->first->kind == GPUSIM_WORK_GATHER || is_held(s->first));
    if (!waiting) return false;
    gpusim_unlock(CUDA_SUCCESS);
    usleep(100);
    gpusim_lock();
    return true;
}

CUresult gpusim_drain(struct gpusim_context *context, struct gpusim_stream *stream) {
    for (;;) {
        bool busy = stream && stream->first;
        for (struct gpusim_stream *s = context->streams; s && !stream; s = s->next) busy |= s->first != NULL;
        if (!busy || (!step() && !wait_for_others())) break;
    }
    if (stream)
        gpusim_order_host_stream(stream->order);
    else
        gpusim_order_host_group(context);
    return context->error;
}

CUresult gpusim_drain_event(struct gpusim_context *context, struct gpusim_event *event, uint64_t version) {
    while (event->done < version && (step() || wait_for_others())) {
    }
    return context->error;
}

void gpusim_some_work(struct gpusim_context *context) {
    (void)context;
    while (gpusim_random(&gpusim_driver.random) % 4 == 0 && step()) {
    }
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    ENTER_CONTEXT_AS("cuStreamCreate");
    if (!out || flags > 1) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (priority > 0) priority = 0;
    if (priority < -5) priority = -5;
    struct gpusim_stream *s = gpusim_stream_new(context, !flags, priority, flags);
    if (s) *out = s;
    LEAVE(s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags) { return cuStreamCreateWithPriority(out, flags, 0); }

#define STREAM()                                                                                                       \
    ENTER_CONTEXT();                                                                                                   \
    struct gpusim_stream *s = gpusim_stream_of(context, stream);                                                       \
    if (!s) LEAVE(CUDA_ERROR_INVALID_HANDLE)

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    STREAM();
    if (s == context->legacy || s == context->per_thread) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    CUresult result = gpusim_drain(context, s);
    gpusim_stream_free(context, s);
    LEAVE(result);
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    STREAM();
    LEAVE(gpusim_drain(context, s));
}
EXPORT CUresult cuStreamQuery(CUstream stream) {
    STREAM();
    if (s->first) step();
    if (context->error) LEAVE(context->error);
    if (s->first) LEAVE(CUDA_ERROR_NOT_READY);
    gpusim_order_host_stream(s->order);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuStreamGetPriority(CUstream stream, int *priority) {
    STREAM();
    if (!priority) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *priority = s->priority;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
    STREAM();
    if (!flags) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *flags = s->flags;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
    STREAM();
    if (!id) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *id = s->id;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *out) {
    STREAM();
    if (!out) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *out = s->context;
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    STREAM();
    if (!status) LEAVE(CUDA_ERROR_INVALID_VALUE);
    *status = 0;
    LEAVE(CUDA_SUCCESS);
}

static bool is_event(const struct gpusim_event *event) {
    for (const struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        for (const struct gpusim_event *e = c->events; e; e = e->next)
            if (e == event) return true;
    return false;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    STREAM();
    if (flags > 1) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_event(event)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    gpusim_order_wait(s->order, &event->order);
    if (event->done >= event->recorded) LEAVE(CUDA_SUCCESS);
    struct gpusim_item *item = gpusim_item_new(context, GPUSIM_WORK_WAIT);
    if (!item) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    item->event = event;
    item->event_version = event->recorded;
    gpusim_enqueue(s, item);
    gpusim_some_work(context);
    LEAVE(CUDA_SUCCESS);
}

static CUresult host_work(const char *name, CUstream stream, CUhostFn function, CUstreamCallback callback, void *user) {
    ENTER_CONTEXT_AS(name);
    struct gpusim_stream *s = gpusim_stream_of(context, stream);
    if (!s) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    struct gpusim_item *item = gpusim_item_new(context, GPUSIM_WORK_HOST);
    if (!item) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    item->host = function;
    item->callback = callback;
    item->user = user;
    gpusim_enqueue(s, item);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user) {
    return function ? host_work(__func__, stream, function, NULL, user) : CUDA_ERROR_INVALID_VALUE;
}
EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user, unsigned flags) {
    return callback && !flags ? host_work(__func__, stream, NULL, callback, user) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags) {
    ENTER_CONTEXT();
    if (!out || flags > 7) LEAVE(CUDA_ERROR_INVALID_VALUE);
    struct gpusim_event *event = calloc(1, sizeof *event);
    if (!event) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    event->context = context;
    event->flags = flags;
    event->next = context->events;
    context->events = event;
    *out = event;
    LEAVE(CUDA_SUCCESS);
}

/* Work that is queued may still name the event: it is done first. */
void gpusim_event_drop(struct gpusim_context *context, struct gpusim_event *event) {
    gpusim_drain_event(context, event, event->recorded);
    for (struct gpusim_context *c = gpusim_driver.contexts; c; c = c->next)
        for (struct gpusim_stream *s = c->streams; s; s = s->next)
            for (struct gpusim_item *i = s->first; i; i = i->next)
                if (i->event == event && i->kind == GPUSIM_WORK_WAIT) i->kind = GPUSIM_WORK_HOST, i->event = NULL;
    for (struct gpusim_event **link = &context->events; *link; link = &(*link)->next)
        if (*link == event) {
            *link = event->next;
            break;
        }
    free(event);
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    ENTER();
    if (!is_event(event)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    gpusim_event_drop(event->context, event);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    STREAM();
    if (!is_event(event) || event->context != context) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    struct gpusim_item *item = gpusim_item_new(context, GPUSIM_WORK_RECORD);
    if (!item) LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    item->event = event;
    item->event_version = ++event->recorded;
    gpusim_enqueue(s, item);
    gpusim_some_work(context);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : cuEventRecord(event, stream);
}
EXPORT CUresult cuEventQuery(CUevent event) {
    ENTER_CONTEXT();
    if (!is_event(event)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (event->done < event->recorded) step();
    if (context->error) LEAVE(context->error);
    if (event->done < event->recorded) LEAVE(CUDA_ERROR_NOT_READY);
    gpusim_order_host_event(&event->order);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuEventSynchronize(CUevent event) {
    ENTER_CONTEXT();
    if (!is_event(event)) LEAVE(CUDA_ERROR_INVALID_HANDLE);
    gpusim_order_host_event(&event->order);
    LEAVE(gpusim_drain_event(context, event, event->recorded));
}
EXPORT CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end) {
    ENTER();
    if (!ms) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!is_event(start) || !is_event(end) || (start->flags & 2) || (end->flags & 2) || !start->recorded ||
        !end->recorded)
        LEAVE(CUDA_ERROR_INVALID_HANDLE);
    if (start->done < start->recorded || end->done < end->recorded) LEAVE(CUDA_ERROR_NOT_READY);
    *ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) * 1e-6);
    LEAVE(CUDA_SUCCESS);
}
EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    return cuEventElapsedTime_v2(ms, start, end);
}
