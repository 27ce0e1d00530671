#include "tests/common/clock_driver.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/placement.h"
#include "tests/common/test.h"

#define NOWHERE     ((uintptr_t)1 << 61) /* where weights are that are only planned; nothing is read there */
#define SPAN        ((uintptr_t)1 << 45)
#define MEMORY      (80e9)
#define MOST_HERE   ((size_t)65 << 20) /* staging and the report */
#define CALL_S      4e-6               /* a launch or a copy on the host */
#define HOST_BYTES  4e9                /* a second, from a mapped file that is in memory to pinned memory */
#define DISK_BYTES  2e9                /* a second, the first time */
#define CHUNK       ((uintptr_t)1 << 20)
#define MOST_CHUNKS ((size_t)1 << 21)

struct lk_cu_stream_s {
    double now;
};
struct lk_cu_event_s {
    double at;
    bool recorded;
};
struct clock_driver clock_driver;
static bool in_memory[MOST_CHUNKS]; /* chunks of the weights' files */
static struct lk_cost counted;      /* up to the last launch */

static double later(double a, double b) { return a > b ? a : b; }

/* The host issues something that takes so long on a stream. */
static void issue(lk_cu_stream stream, double seconds) {
    clock_driver.host += CALL_S;
    stream->now = later(stream->now, clock_driver.host) + seconds;
}

static lk_cu_result nothing(lk_cu_context context) { return (void)context, 0; }
static lk_cu_result settle(lk_cu_stream stream) { return clock_driver.host = later(clock_driver.host, stream->now), 0; }
static lk_cu_result wait_host(lk_cu_event event) { return clock_driver.host = later(clock_driver.host, event->at), 0; }
static lk_cu_result give(lk_cu_address *address, size_t bytes) { return (void)bytes, *address = NOWHERE + SPAN, 0; }
static lk_cu_result take(lk_cu_address address) { return (void)address, 0; }
static lk_cu_result tell_memory(size_t *available, size_t *total) { return *available = *total = (size_t)MEMORY, 0; }
static lk_cu_result give_host(void **block, size_t bytes, unsigned flags) {
    (void)flags;
    *block = bytes > MOST_HERE ? (void *)(NOWHERE + 2 * SPAN) : lk_calloc(1, bytes);
    return *block ? 0 : 2;
}
static lk_cu_result take_host(void *block) {
    if ((uintptr_t)block < NOWHERE) lk_free(block);
    return 0;
}
static lk_cu_result keep_pages(void *pages, size_t bytes, unsigned flags) {
    return (void)pages, (void)bytes, (void)flags, 0;
}
static lk_cu_result leave_pages(void *pages) { return (void)pages, 0; }
static lk_cu_result new_stream(lk_cu_stream *out, unsigned flags) {
    return (void)flags, *out = lk_calloc(1, sizeof **out), *out ? 0 : 2;
}
static lk_cu_result new_event(lk_cu_event *out, unsigned flags) {
    return (void)flags, *out = lk_calloc(1, sizeof **out), *out ? 0 : 2;
}
static lk_cu_result end_stream(lk_cu_stream stream) { return lk_free(stream), 0; }
static lk_cu_result end_event(lk_cu_event event) { return lk_free(event), 0; }
static lk_cu_result record(lk_cu_event event, lk_cu_stream stream) {
    *event = (struct lk_cu_event_s){stream->now, true};
    return 0;
}
static lk_cu_result wait(lk_cu_stream stream, lk_cu_event event, unsigned flags) {
    (void)flags;
    assert_true(event->recorded);
    stream->now = later(stream->now, event->at);
    return 0;
}
static lk_cu_result call(lk_cu_stream stream, void (*function)(void *), void *user) {
    (void)stream;
    function(user);
    return 0;
}
static lk_cu_result copy(lk_cu_address to, const void *from, size_t bytes, lk_cu_stream stream) {
    (void)to, (void)from;
    issue(stream, (double)bytes / lk_device_rates("sm_80").bus_bytes);
    clock_driver.n_copies++;
    return 0;
}
static lk_cu_result copy_back(void *to, lk_cu_address from, size_t bytes, lk_cu_stream stream) {
    (void)from;
    memset(to, 0, bytes);
    issue(stream, (double)bytes / lk_device_rates("sm_80").bus_bytes);
    return 0;
}
static lk_cu_result set(lk_cu_address to, unsigned char value, size_t n, lk_cu_stream stream) {
    return (void)to, (void)value, (void)n, issue(stream, 0), 0;
}

const struct lk_cuda_driver *__wrap_lk_cuda(void);
const struct lk_cuda_driver *__wrap_lk_cuda(void) {
    static const struct lk_cuda_driver driver = {
        .context_set = nothing,
        .stream_synchronize = settle,
        .event_synchronize = wait_host,
        .memory_alloc = give,
        .memory_free = take,
        .memory_info = tell_memory,
        .host_alloc = give_host,
        .host_free = take_host,
        .host_register = keep_pages,
        .host_unregister = leave_pages,
        .stream_create = new_stream,
        .event_create = new_event,
        .stream_destroy = end_stream,
        .event_destroy = end_event,
        .event_record = record,
        .stream_wait = wait,
        .copy_to_device = copy,
        .copy_to_host = copy_back,
        .set_bytes = set,
        .launch_host = call,
    };
    return &driver;
}

/* Copies from and to places that are none are passed over; from a file that is not in memory yet they wait for it. */
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n) {
    const uintptr_t start = (uintptr_t)from;
    if ((uintptr_t)to < NOWHERE && start < NOWHERE) return memmove(to, from, n);
    if (start < NOWHERE || start - NOWHERE >= SPAN) return to;
    clock_driver.host += (double)n / HOST_BYTES;
    for (uintptr_t c = (start - NOWHERE) / CHUNK; n && c <= (start - NOWHERE + n - 1) / CHUNK; c++) {
        assert_true(c < MOST_CHUNKS);
        if (in_memory[c]) continue;
        in_memory[c] = true;
        clock_driver.read_bytes += CHUNK;
        clock_driver.host += CHUNK / DISK_BYTES;
    }
    return to;
}

void __wrap_lk_cuda_host_copy(const struct lk_cuda_near *near, void *to, const void *from, size_t bytes);
void __wrap_lk_cuda_host_copy(const struct lk_cuda_near *near, void *to, const void *from, size_t bytes) {
    (void)near;
    __wrap_memcpy(to, from, bytes);
}

/* As long as what the op has counted since the last launch. */
enum lk_code __wrap_lk_cuda_launch(struct lk_device *dev, const char *module, const char *kernel,
                                   const struct lk_cuda_grid *grid, const void *args);
enum lk_code __wrap_lk_cuda_launch(struct lk_device *dev, const char *module, const char *kernel,
                                   const struct lk_cuda_grid *grid, const void *args) {
    const struct lk_device_rates rates = lk_device_rates("sm_80");
    const double flops = (double)(dev->cost.flops - counted.flops), bytes = (double)(dev->cost.bytes - counted.bytes);
    (void)module, (void)grid, (void)args;
    counted = dev->cost;
    clock_driver_run(dev, later(flops / (strstr(kernel, "attention") ? rates.attention_flops : rates.gemm_flops),
                                bytes / rates.memory_bytes));
    clock_driver.n_launches++;
    return LK_OK;
}

double clock_driver_now(const struct lk_device *dev) { return ((const struct lk_cuda_device *)dev)->stream->now; }

void clock_driver_run(struct lk_device *dev, double seconds) {
    issue(lk_cuda_device_of(dev)->stream, seconds);
    clock_driver.kernels_s += seconds;
}

void clock_driver_open(struct lk_device *dev) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    memset(in_memory, 0, sizeof in_memory);
    counted = dev->cost;
    cuda->weights = lk_calloc(1, sizeof *cuda->weights);
    cuda->weights->epoch = lk_weights_epoch();
    cuda->context = (lk_cu_context)(void *)cuda; /* any but none */
    cuda->report = NOWHERE + 3 * SPAN;
    assert_int_equal(new_stream(&cuda->stream, 0), 0);
    assert_ok(lk_staging_open(&cuda->staging, sizeof(struct lk_cuda_report)));
}

void clock_driver_close(struct lk_device *dev) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    cuda->context = NULL;
    lk_cuda_placed_drop(cuda);
    lk_staging_close(&cuda->staging);
    end_stream(cuda->stream);
    dev->arena_block = NULL; /* nowhere */
}
