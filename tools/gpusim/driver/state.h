/* The driver's objects. One lock guards everything: a call holds it from start to end, and work on the simulated device
 * is done by the calls that wait for it (or by others, as the seed says). */
#pragma once

#include "check/check.h"
#include "driver/calls.h"
#include "exec/warp.h"

#include <pthread.h>

struct gpusim_context {
    CUdevice device;
    bool primary;
    uint32_t retained; /* primary: how often */
    uint32_t flags;
    CUresult error; /* sticky: a launch has failed, or a test wants it so */
    struct gpusim_stream *legacy, *per_thread, *streams;
    struct gpusim_loaded *modules;
    struct gpusim_event *events;
    uint64_t id;
    bool peers[GPUSIM_MAX_DEVICES];
    size_t limits[10];
    struct gpusim_context *next;
};

struct gpusim_kernel {
    struct gpusim_function *function;
    struct gpusim_loaded *module;
    int preferred_carveout, cache_config;
    bool loaded; /* by a driver that does it late */
};

struct gpusim_loaded {
    struct gpusim_module *module;
    struct gpusim_kernel *kernels;
    uint32_t n_kernels;
    struct gpusim_context *context;
    struct gpusim_loaded *next;
};

enum gpusim_work {
    GPUSIM_WORK_LAUNCH,
    GPUSIM_WORK_COPY,
    GPUSIM_WORK_SET,
    GPUSIM_WORK_RECORD,
    GPUSIM_WORK_WAIT,
    GPUSIM_WORK_HOST,
    GPUSIM_WORK_GATHER
};

/* Something queued on a stream. */
struct gpusim_item {
    enum gpusim_work kind;
    uint64_t sequence; /* over all streams, in the order of the calls */
    struct gpusim_item *next;
    struct gpusim_context *context;
    struct gpusim_launch launch;
    uint8_t *params;
    /* copies and sets: rows of `width` bytes */
    uint64_t source, target, source_pitch, target_pitch, width, height;
    bool source_host, target_host; /* pageable: the number is a host address */
    uint8_t *staged;               /* pageable source, copied at the call */
    uint32_t value, value_bytes;
    struct gpusim_event *event;
    uint64_t event_version;
    CUhostFn host;
    CUstreamCallback callback;
    void *user;
    CUstream stream;
    struct gpusim_meeting *meeting; /* of an all-gather; the source is the rank's share, of `width` bytes */
    int rank;
    struct gpusim_operation *operation;
    bool never; /* a test wants it so: it does not end */
};

struct gpusim_stream {
    struct gpusim_context *context;
    bool blocking; /* with the legacy stream */
    int priority;
    unsigned flags;
    uint64_t id;
    uint32_t order; /* its number for check/ */
    struct gpusim_item *first, *last;
    struct gpusim_stream *next;
};

struct gpusim_event {
    struct gpusim_context *context;
    unsigned flags;
    uint64_t recorded, done; /* versions: how often recorded, which of these has happened */
    uint64_t time_ns;
    struct gpusim_order order; /* what was done before the last record */
    struct gpusim_event *next;
};

struct gpusim_driver {
    pthread_mutex_t mutex;
    bool initialised, failed; /* failed: some context has had an error; what leaks then says nothing */
    struct gpusim_context *contexts;
    struct gpusim_context *primary[GPUSIM_MAX_DEVICES];
    uint64_t sequence, next_id, n_launches, random;
    const struct gpusim_hooks *hooks;
    bool dead[GPUSIM_MAX_DEVICES]; /* a test wants it so: what is queued there, or reads or writes there, stays queued
                                    */
    bool died;                     /* some device was: what leaks then says nothing */
    bool never;                    /* the same of the next item that is queued */
    bool loading;                  /* a function, under the lock to the end: no other thread may call */
};
extern struct gpusim_driver gpusim_driver;

enum { GPUSIM_STACK_DEEP = 32 };
extern _Thread_local struct gpusim_context *gpusim_stack[GPUSIM_STACK_DEEP];
extern _Thread_local int gpusim_stack_depth;

/* Lock; every exported function starts with ENTER (needs cuInit) or ENTER_CONTEXT (a current context without a sticky
 * error) and ends with LEAVE. */
void gpusim_lock(void);
CUresult gpusim_unlock(CUresult result);
CUresult gpusim_call(const char *name); /* faults.c: counts the call; what it is made to fail with */
struct gpusim_context *gpusim_current(void);
CUresult gpusim_need_context(struct gpusim_context **context);
#define LEAVE(result) return gpusim_unlock(result)
#define ENTER_AS(name)                                                                                                 \
    gpusim_lock();                                                                                                     \
    do {                                                                                                               \
        CUresult injected_ = gpusim_call(name);                                                                        \
        if (injected_) LEAVE(injected_);                                                                               \
    } while (0);                                                                                                       \
    if (!gpusim_driver.initialised) LEAVE(CUDA_ERROR_NOT_INITIALIZED)
#define ENTER() ENTER_AS(__func__)
#define ENTER_CONTEXT_AS(name)                                                                                         \
    ENTER_AS(name);                                                                                                    \
    struct gpusim_context *context;                                                                                    \
    do {                                                                                                               \
        CUresult state_ = gpusim_need_context(&context);                                                               \
        if (state_) LEAVE(state_);                                                                                     \
    } while (0)
#define ENTER_CONTEXT() ENTER_CONTEXT_AS(__func__)

CUresult gpusim_not_supported(const char *what); /* says so on stderr */

/* stream.c: handles 0, 1 and 2 mean the default streams. NULL: no such stream. */
struct gpusim_stream *gpusim_stream_of(struct gpusim_context *context, CUstream handle);
struct gpusim_item *gpusim_item_new(struct gpusim_context *context, enum gpusim_work kind);
void gpusim_enqueue(struct gpusim_stream *stream, struct gpusim_item *item);
/* Runs queued work, drawn from the seed, until the stream is empty (NULL: all streams of the context). */
CUresult gpusim_drain(struct gpusim_context *context, struct gpusim_stream *stream);
CUresult gpusim_drain_event(struct gpusim_context *context, struct gpusim_event *event, uint64_t version);
/* Maybe some. */
void gpusim_some_work(struct gpusim_context *context);
void gpusim_stream_free(struct gpusim_context *context, struct gpusim_stream *stream);
struct gpusim_stream *gpusim_stream_new(struct gpusim_context *context, bool blocking, int priority, unsigned flags);
void gpusim_event_drop(struct gpusim_context *context, struct gpusim_event *event);

/* work.c: does one item. */
CUresult gpusim_do(struct gpusim_item *item);

/* gather.c: an all-gather's item may start; is done; is freed. */
bool gpusim_gather_ready(const struct gpusim_item *item);
CUresult gpusim_gather_do(struct gpusim_item *item);
void gpusim_gather_over(const struct gpusim_item *item);

/* leaks.c: reports what the program has not freed; called before a context ends. */
void gpusim_report_leaks(const struct gpusim_context *context);

void gpusim_module_drop(struct gpusim_loaded *loaded);
uint64_t gpusim_now_ns(void);

/* Blocks of this shape that fit on an SM; 0 when the shape itself is impossible. */
int gpusim_occupancy(const struct gpusim_function *function, uint32_t threads, size_t dynamic_shared);
