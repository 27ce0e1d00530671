#include "kernels/cuda/runtime/readers.h"

#include <pthread.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/placement.h"

#define MAX_TICKETS 4096 /* sent and not yet on the device */

struct ticket {
    struct lk_cuda_readers *readers;
    const void *from;
    size_t bytes;
    bool filled;
};

struct lk_cuda_readers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t *threads;
    int n_threads, n_slots;
    size_t slot_bytes;
    unsigned char *slots;             /* pinned */
    uint64_t n_sent, n_taken, n_left; /* tickets so far: sent, taken by a thread, given back */
    uint64_t n_forgotten;             /* the first ones: not to be read */
    int n_reading;                    /* threads */
    bool stopped;
    struct ticket tickets[MAX_TICKETS];
};

/* A ticket's slot is free when the one that had it before was given back. */
static bool may_take(const struct lk_cuda_readers *r) {
    return r->n_taken < r->n_sent && r->n_taken < r->n_left + (uint64_t)r->n_slots;
}

static void *read_on(void *context) {
    struct lk_cuda_readers *r = context;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->stopped && !may_take(r)) pthread_cond_wait(&r->changed, &r->lock);
        if (r->stopped) break;
        uint64_t i = r->n_taken++;
        struct ticket *t = &r->tickets[i % MAX_TICKETS];
        if (i >= r->n_forgotten) {
            r->n_reading++;
            pthread_mutex_unlock(&r->lock);
            memcpy(r->slots + (i % (uint64_t)r->n_slots) * r->slot_bytes, t->from, t->bytes);
            pthread_mutex_lock(&r->lock);
            r->n_reading--;
        }
        t->filled = true;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* On the copy stream, before the copy and after it. */
static void wait_filled(void *user) {
    struct ticket *t = user;
    struct lk_cuda_readers *r = t->readers;
    pthread_mutex_lock(&r->lock);
    while (!t->filled && !r->stopped) pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}
static void give_back(void *user) {
    struct ticket *t = user;
    struct lk_cuda_readers *r = t->readers;
    pthread_mutex_lock(&r->lock);
    r->n_left++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void stop(struct lk_cuda_readers *r) {
    pthread_mutex_lock(&r->lock);
    r->stopped = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void lk_cuda_readers_forget(struct lk_cuda_readers *r) {
    pthread_mutex_lock(&r->lock);
    r->n_forgotten = r->n_sent;
    while (r->n_reading) pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

bool lk_cuda_readers_failed(const struct lk_cuda_readers *r) { return r->stopped; }

static int start(struct lk_cuda_readers *r, const struct lk_cuda_near *near) {
    pthread_t *thread = &r->threads[r->n_threads];
    const int error = pthread_create(thread, NULL, read_on, r);
    if (!error && near->n) pthread_setaffinity_np(*thread, sizeof near->cpus, &near->cpus);
    return error;
}

enum lk_code lk_cuda_readers_open(struct lk_cuda_readers **out, const struct lk_cuda_near *near, int n_threads,
                                  size_t slot_bytes) {
    void *slots;
    struct lk_cuda_readers *r = *out = lk_calloc(1, sizeof *r);
    if (!r) return lk_fail(LK_E_NOMEM, "readers of weights: out of memory");
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->n_slots = n_threads + LK_SPARE_SLOTS;
    r->slot_bytes = slot_bytes;
    size_t bytes = (size_t)r->n_slots * slot_bytes;
    r->threads = lk_calloc((size_t)n_threads, sizeof *r->threads);
    enum lk_code rc = r->threads ? LK_OK : lk_fail(LK_E_NOMEM, "readers of weights: out of memory");
    if (!rc) rc = lk_cuda_host_alloc(near, bytes, &slots);
    if (!rc) r->slots = slots;
    for (; !rc && r->n_threads < n_threads; r->n_threads++)
        if (start(r, near)) {
            rc = lk_fail(LK_E_NOMEM, "thread %d of %d that reads weights could not be started", r->n_threads + 1,
                         n_threads);
            break;
        }
    if (rc) {
        lk_cuda_readers_close(r);
        *out = NULL;
    }
    return rc;
}

void lk_cuda_readers_close(struct lk_cuda_readers *r) {
    if (!r) return;
    stop(r);
    for (int i = 0; i < r->n_threads; i++) pthread_join(r->threads[i], NULL);
    if (r->slots) lk_cuda()->host_free(r->slots);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    lk_free(r->threads);
    lk_free(r);
}

static enum lk_code send_piece(struct lk_cuda_readers *r, lk_cu_stream stream, lk_cu_address to, const void *from,
                               size_t bytes) {
    pthread_mutex_lock(&r->lock);
    bool full = r->n_sent - r->n_left >= MAX_TICKETS - 1;
    pthread_mutex_unlock(&r->lock);
    if (full) LK_TRY(LK_CU(stream_synchronize, (stream), "weights on their way"));
    uint64_t i = r->n_sent;
    struct ticket *t = &r->tickets[i % MAX_TICKETS];
    *t = (struct ticket){.readers = r, .from = from, .bytes = bytes};
    pthread_mutex_lock(&r->lock);
    r->n_sent++;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    const void *slot = r->slots + (i % (uint64_t)r->n_slots) * r->slot_bytes;
    LK_TRY(LK_CU(launch_host, (stream, wait_filled, t), "weights of %zu bytes", bytes));
    LK_TRY(LK_CU(copy_to_device, (to, slot, bytes, stream), "weights of %zu bytes", bytes));
    return LK_CU(launch_host, (stream, give_back, t), "weights of %zu bytes", bytes);
}

enum lk_code lk_cuda_readers_send(struct lk_cuda_readers *r, lk_cu_stream stream, lk_cu_address to, const void *from,
                                  size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < r->slot_bytes ? bytes - done : r->slot_bytes;
        enum lk_code rc = send_piece(r, stream, to + done, (const unsigned char *)from + done, n);
        if (rc) {
            stop(r);
            return rc;
        }
        done += n;
    }
    return LK_OK;
}
