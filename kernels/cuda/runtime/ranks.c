#include "kernels/cuda/runtime/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/nccl.h"
#include "kernels/cuda/runtime/peers.h"

#define OVER        INT32_MAX           /* wanted by a rank whose jobs are done */
#define PROBE_BYTES ((size_t)256 << 10) /* of each rank, gathered when the group is opened */
#define N_POLLS     1000                /* at once, before the host sleeps between them */
#define POLL_US     20
#define GATE_NS     50000000 /* between looks at the gate */

struct rank {
    const struct lk_cuda_device *cuda;
    lk_nccl_comm comm; /* NULL: given back, or there are peers */
    lk_cu_event waited;
    char name[128];
    double heard;         /* when its thread last came by here */
    bool named;           /* as silent, in this run */
    bool joined, waiting; /* has a placement for the run; is at the gate */
    int wanted;
    int64_t n_sent; /* all-gathers of the stage */
    uint64_t order;
};

struct lk_cuda_ranks {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_open;
    bool peers;   /* they pull; else they are in step, by NCCL */
    int n_loaded; /* ranks that have their shares of the stage */
    int chosen;
    bool lost;             /* the error is of a GPU that answers no more */
    uint64_t round;        /* of meetings at the gate */
    struct lk_error error; /* of the first rank that failed */
    struct rank rank[LK_MAX_RANKS];
};

static double patience_s = 600, silence_s = 8;
void lk_cuda_ranks_patience(double seconds, double silence) { patience_s = seconds, silence_s = silence; }

bool lk_cuda_ranks_in_step(const struct lk_cuda_device *cuda) { return cuda->ranks && !cuda->ranks->peers; }

static struct rank *mine(const struct lk_cuda_device *cuda) { return &cuda->ranks->rank[cuda->rank]; }

/* --- one fails, all fail --- */

/* The error of the first rank that failed, which is this one if none has before; its own part in the group ends. */
static enum lk_code fail(struct lk_cuda_device *cuda, enum lk_code rc, bool lost) {
    struct lk_cuda_ranks *g = cuda->ranks;
    pthread_mutex_lock(&g->lock);
    if (!g->error.code) {
        lk_error_get(&g->error, lk_fail_prefix(rc, "rank %d of %d, %s", cuda->rank, g->n, mine(cuda)->name));
        if (lost) lk_log(LK_LOG_ERROR, "%s", g->error.text); /* here: a driver may hang when the process ends */
        g->lost = lost;
    }
    cuda->lost = g->lost;
    lk_nccl_comm comm = mine(cuda)->comm;
    mine(cuda)->comm = NULL;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    if (comm) lk_nccl()->abort(comm);
    if (!cuda->lost && cuda->placed.copies) lk_cuda()->stream_synchronize(cuda->placed.copies); /* it reads others' */
    return lk_error_set(&g->error);
}

static bool failed(struct lk_cuda_device *cuda) {
    struct lk_cuda_ranks *g = cuda->ranks;
    pthread_mutex_lock(&g->lock);
    bool is = g->error.code != LK_OK;
    mine(cuda)->heard = lk_log_now();
    pthread_mutex_unlock(&g->lock);
    return is;
}

/* For a rank that waits since `began`, under the lock: the others' threads that have been silent since. */
static void name_silent(struct lk_cuda_device *cuda, double began) {
    struct lk_cuda_ranks *g = cuda->ranks;
    const double now = mine(cuda)->heard = lk_log_now();
    for (int r = 0; r < g->n; r++) {
        struct rank *other = &g->rank[r];
        if (other->named || now - (other->heard > began ? other->heard : began) < silence_s) continue;
        other->named = true;
        lk_log(LK_LOG_WARNING,
               "rank %d of %d, %s: nothing has been heard of its thread for %g s (a slow disk, or a driver call that "
               "does not return); the others wait for it, up to %g s",
               r, g->n, other->name, silence_s, patience_s);
    }
}

/* For a rank that waits: whether its GPU answers, and the others' threads. */
static enum lk_code listen(struct lk_cuda_device *cuda, double began, bool *lost) {
    pthread_mutex_lock(&cuda->ranks->lock);
    name_silent(cuda, began);
    pthread_mutex_unlock(&cuda->ranks->lock);
    return lk_cuda_pulse_look(cuda, silence_s, lost);
}

static enum lk_code too_long(const char *what) {
    return lk_fail(LK_E_DEVICE,
                   "%s: nothing has come of it for %g s; another GPU or the link between them does not answer "
                   "(NCCL_DEBUG=INFO says more)",
                   what, patience_s);
}

enum lk_code lk_cuda_await(struct lk_cuda_device *cuda, lk_cu_event event, const char *what) {
    if (!cuda->ranks) return LK_CU(event_synchronize, (event), "%s", what);
    const double began = lk_log_now();
    for (int n = 0;; n++) {
        const lk_cu_result result = lk_cuda()->event_query(event);
        lk_nccl_result error = 0;
        bool lost = false;
        if (failed(cuda)) return fail(cuda, LK_E_DEVICE, false);
        if (!result) return LK_OK;
        enum lk_code rc = LK_OK;
        if (result != LK_CU_ERROR_NOT_READY) rc = lk_cuda_check(result, lk_cuda_symbols.event_query, "%s", what);
        if (!rc && mine(cuda)->comm)
            rc = lk_nccl_check(lk_nccl()->async_error(mine(cuda)->comm, &error), "ncclCommGetAsyncError", what);
        if (!rc && error != LK_NCCL_IN_PROGRESS) rc = lk_nccl_check(error, "an all-gather", what);
        if (!rc && lk_log_now() - began > patience_s) {
            rc = too_long(what);
            lost = cuda->ranks->peers; /* with NCCL it ends by an abort */
        }
        if (!rc && n > N_POLLS) rc = listen(cuda, began, &lost);
        if (rc) return fail(cuda, rc, lost);
        if (n > N_POLLS) usleep(POLL_US);
    }
}

enum lk_code lk_cuda_await_stream(struct lk_cuda_device *cuda, lk_cu_stream stream) {
    if (cuda->ranks) {
        LK_TRY(LK_CU(event_record, (mine(cuda)->waited, stream), "%s", cuda->device.name));
        LK_TRY(lk_cuda_await(cuda, mine(cuda)->waited, "waiting for the ranks"));
    }
    return LK_CU(stream_synchronize, (stream), "%s", cuda->device.name);
}

static enum lk_code all_gather(const struct lk_cuda_device *cuda, lk_cu_address from, lk_cu_address to, size_t bytes,
                               lk_cu_stream stream) {
    return lk_nccl_check(lk_nccl()->all_gather((const void *)(uintptr_t)from, (void *)(uintptr_t)to, bytes,
                                               LK_NCCL_INT8, mine(cuda)->comm, stream),
                         "ncclAllGather", "weights of the ranks");
}

/* Each rank begins with another one's share, so that not all read the same GPU. */
static enum lk_code pull(const struct lk_cuda_device *cuda, const struct lk_range *unit,
                         const struct lk_cuda_gather *gather) {
    const struct lk_cuda_ranks *g = cuda->ranks;
    for (int i = 1; i <= g->n; i++) {
        const int r = (cuda->rank + i) % g->n;
        const uint64_t first = gather->share * (uint64_t)r, left = gather->bytes > first ? gather->bytes - first : 0;
        if (!left) continue;
        const lk_cu_address from = lk_cuda_placed_share(g->rank[r].cuda, unit);
        if (!from) return lk_fail(LK_E_INTERNAL, "rank %d has no share of weights that this one reads", r);
        LK_TRY(LK_CU(copy_on_devices,
                     (gather->to + first, from, left < gather->share ? left : gather->share, cuda->placed.copies),
                     "weights of rank %d", r));
    }
    return LK_OK;
}

enum lk_code lk_cuda_ranks_gather(struct lk_cuda_device *cuda, const struct lk_range *unit,
                                  const struct lk_cuda_gather *gather) {
    struct lk_cuda_ranks *g = cuda->ranks;
    if (failed(cuda)) return fail(cuda, LK_E_DEVICE, false);
    enum lk_code rc =
        g->peers ? pull(cuda, unit, gather)
                 : all_gather(cuda, lk_cuda_placed_share(cuda, unit), gather->to, gather->share, cuda->placed.copies);
    if (rc || g->peers) return rc ? fail(cuda, rc, false) : LK_OK;
    pthread_mutex_lock(&g->lock);
    mine(cuda)->n_sent++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return LK_OK;
}

/* --- the gate --- */

/* What ranks must have alike: the stages, and what is gathered in which order. */
static uint64_t order_of(const struct lk_placement *p) {
    uint64_t digest = 0;
    for (int i = 0; i < p->itinerary.n_stages; i++) {
        const struct lk_stage_placement *s = &p->stages[i];
        digest = lk_hash_bytes(digest, p->itinerary.stages[i].name, strlen(p->itinerary.stages[i].name));
        for (size_t k = 0; k < s->n_stays; k++) {
            const uint64_t share = lk_unit_share(&p->itinerary, s->stays[k].unit, p->n_ranks);
            digest = lk_hash_bytes(digest, (const char *)&share, sizeof share);
        }
    }
    return digest;
}

void lk_cuda_ranks_join(struct lk_cuda_device *cuda, const struct lk_placement *placement) {
    pthread_mutex_lock(&cuda->ranks->lock);
    mine(cuda)->order = order_of(placement);
    mine(cuda)->joined = true;
    pthread_mutex_unlock(&cuda->ranks->lock);
}

static int64_t most_sent(const struct lk_cuda_ranks *g) {
    int64_t most = 0;
    for (int r = 0; r < g->n; r++) most = g->rank[r].n_sent > most ? g->rank[r].n_sent : most;
    return most;
}

static bool all_here(const struct lk_cuda_ranks *g) {
    for (int r = 0; r < g->n; r++)
        if (!g->rank[r].waiting || g->rank[r].n_sent < most_sent(g)) return false;
    return true;
}

/* Where to go from here. */
static enum lk_code choose(struct lk_cuda_ranks *g) {
    g->chosen = OVER;
    for (int r = 0; r < g->n; r++) g->chosen = g->rank[r].wanted < g->chosen ? g->rank[r].wanted : g->chosen;
    for (int r = 1; r < g->n && g->chosen != OVER; r++)
        if (g->rank[r].order != g->rank[0].order || !g->rank[r].joined)
            return lk_fail(LK_E_USAGE,
                           "ranks 0 and %d read other weights, or in another order; jobs that share weights must be "
                           "alike in all but prompt, seed, pictures and their sizes",
                           r);
    for (int r = 0; r < g->n; r++) {
        g->rank[r].waiting = false;
        g->rank[r].n_sent = 0;
        g->rank[r].named = false;
        if (g->chosen == OVER) g->rank[r].joined = false;
    }
    g->n_loaded = 0;
    g->round++;
    return LK_OK;
}

/* Until something changes, or some milliseconds have passed: whether something has. */
static bool wait_change(struct lk_cuda_ranks *g) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GATE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_cond_timedwait(&g->changed, &g->lock, &until) != ETIMEDOUT;
}

/* A while, under the lock, which others have meanwhile; for how long nothing has changed counts from *began. */
static enum lk_code wait_on(struct lk_cuda_device *cuda, double *began, bool *lost) {
    struct lk_cuda_ranks *g = cuda->ranks;
    if (wait_change(g)) {
        *began = lk_log_now();
        return LK_OK;
    }
    pthread_mutex_unlock(&g->lock);
    enum lk_code rc = listen(cuda, *began, lost);
    if (!rc && lk_log_now() - *began > patience_s) rc = too_long("waiting for the other ranks");
    pthread_mutex_lock(&g->lock);
    return rc;
}

/* Until all ranks are at the gate, gathering meanwhile what others still need. Under the lock. */
static enum lk_code meet(struct lk_cuda_device *cuda, bool *lost) {
    struct lk_cuda_ranks *g = cuda->ranks;
    const uint64_t round = g->round;
    double began = lk_log_now();
    enum lk_code rc = LK_OK;
    mine(cuda)->waiting = true;
    pthread_cond_broadcast(&g->changed);
    while (!rc && !g->error.code && g->round == round) {
        if (all_here(g)) {
            rc = choose(g);
            pthread_cond_broadcast(&g->changed);
        } else if (mine(cuda)->n_sent < most_sent(g)) {
            pthread_mutex_unlock(&g->lock);
            rc = lk_cuda_placed_serve(cuda);
            pthread_mutex_lock(&g->lock);
        } else {
            rc = wait_on(cuda, &began, lost);
        }
    }
    return rc ? rc : g->error.code;
}

enum lk_code lk_cuda_ranks_gate(struct lk_cuda_device *cuda, int wanted) {
    struct lk_cuda_ranks *g = cuda->ranks;
    enum lk_code rc;
    bool lost = false;
    int chosen;
    LK_TRY(lk_cuda_placed_stop(cuda));
    do {
        pthread_mutex_lock(&g->lock);
        mine(cuda)->wanted = wanted;
        rc = meet(cuda, &lost);
        chosen = g->chosen;
        pthread_mutex_unlock(&g->lock);
        if (!rc && chosen != OVER) rc = lk_cuda_placed_enter(cuda, chosen, chosen == wanted);
    } while (!rc && chosen != wanted);
    return rc ? fail(cuda, rc, lost) : LK_OK;
}

enum lk_code lk_cuda_ranks_loaded(struct lk_cuda_device *cuda) {
    struct lk_cuda_ranks *g = cuda->ranks;
    bool lost = false;
    if (!g->peers) return LK_OK;
    enum lk_code rc = lk_cuda_await_stream(cuda, cuda->stream);
    double began = lk_log_now();
    pthread_mutex_lock(&g->lock);
    g->n_loaded++;
    pthread_cond_broadcast(&g->changed);
    while (!rc && !g->error.code && g->n_loaded < g->n) rc = wait_on(cuda, &began, &lost);
    if (!rc) rc = g->error.code;
    pthread_mutex_unlock(&g->lock);
    return rc ? fail(cuda, rc, lost) : LK_OK;
}

bool lk_cuda_joined(const struct lk_device *dev) {
    const struct lk_cuda_device *cuda = (const struct lk_cuda_device *)dev;
    return cuda->ranks && mine(cuda)->joined;
}

enum lk_code lk_cuda_leave(struct lk_device *dev, enum lk_code rc) {
    struct lk_cuda_device *cuda = lk_cuda_device_of(dev);
    if (!cuda->ranks) return rc;
    if (!rc) rc = LK_CU(context_set, (cuda->context), "%s", dev->name);
    return rc ? fail(cuda, rc, false) : lk_cuda_ranks_gate(cuda, OVER);
}

/* --- opening --- */

void lk_cuda_ranks_close(struct lk_cuda_device *cuda) {
    struct lk_cuda_ranks *g = cuda->ranks;
    if (!g) return;
    struct rank *me = mine(cuda);
    if (me->comm) (g->error.code ? lk_nccl()->abort : lk_nccl()->destroy)(me->comm);
    if (me->waited && !cuda->lost) lk_cuda()->event_destroy(me->waited);
    if (!cuda->lost) lk_cuda_pulse_close(cuda);
    cuda->ranks = NULL;
    if (--g->n_open) return;
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    lk_free(g);
}

static lk_cu_address own_part(const struct lk_cuda_ranks *g, lk_cu_address block) {
    return block + PROBE_BYTES * (size_t)g->n;
}

/* A rank's part of the probe: bytes of its own number. */
static enum lk_code begin_probe(struct lk_cuda_device *cuda, lk_cu_address block) {
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", cuda->device.name));
    LK_TRY(LK_CU(event_create, (&mine(cuda)->waited, LK_CU_EVENT_DISABLE_TIMING), "%s", cuda->device.name));
    LK_TRY(lk_cuda_pulse_open(cuda));
    LK_TRY(LK_CU(set_bytes, (own_part(cuda->ranks, block), (unsigned char)(cuda->rank + 1), PROBE_BYTES, cuda->stream),
                 "probe of the ranks"));
    return cuda->ranks->peers ? lk_cuda_await_stream(cuda, cuda->stream) : LK_OK;
}

/* Then it gets those of all. */
static enum lk_code exchange(struct lk_cuda_device *cuda, const lk_cu_address *blocks) {
    const struct lk_cuda_ranks *g = cuda->ranks;
    const lk_cu_address block = blocks[cuda->rank];
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", cuda->device.name));
    if (!g->peers) return all_gather(cuda, own_part(g, block), block, PROBE_BYTES, cuda->stream);
    for (int r = 0; r < g->n; r++)
        LK_TRY(LK_CU(copy_on_devices,
                     (block + PROBE_BYTES * (size_t)r, own_part(g, blocks[r]), PROBE_BYTES, cuda->stream),
                     "probe of the ranks"));
    return LK_OK;
}

static enum lk_code end_probe(struct lk_cuda_device *cuda, lk_cu_address block) {
    unsigned char *slot;
    LK_TRY(LK_CU(context_set, (cuda->context), "%s", cuda->device.name));
    LK_TRY(lk_cuda_await_stream(cuda, cuda->stream));
    for (int r = 0; r < cuda->ranks->n; r++) {
        LK_TRY(lk_staging_slot(&cuda->staging, &slot));
        LK_TRY(LK_CU(copy_to_host, (slot, block + PROBE_BYTES * (size_t)r, PROBE_BYTES, cuda->stream), "probe"));
        LK_TRY(lk_cuda_wait(cuda, NULL));
        for (size_t i = 0; i < PROBE_BYTES; i++)
            if (slot[i] != r + 1)
                return lk_fail(LK_E_DEVICE,
                               "%s: other bytes came than rank %d has; peer access between these GPUs does not work "
                               "(NCCL_P2P_DISABLE=1 does without it, by NCCL)",
                               cuda->device.name, r);
    }
    return LK_OK;
}

/* NCCL's first collective makes the connections. What comes is compared, since wrong weights would be wrong pictures.
 */
static enum lk_code probe(struct lk_device *const *devs, int n) {
    lk_cu_address blocks[LK_MAX_RANKS] = {0};
    enum lk_code rc = LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        rc = LK_CU(context_set, (lk_cuda_device_of(devs[i])->context), "%s", devs[i]->name);
        if (!rc) rc = lk_cuda_alloc(lk_cuda_device_of(devs[i]), PROBE_BYTES * (size_t)(n + 1), "probe", &blocks[i]);
    }
    const bool group = !lk_cuda_device_of(devs[0])->ranks->peers;
    for (int i = 0; i < n && !rc; i++) rc = begin_probe(lk_cuda_device_of(devs[i]), blocks[i]);
    if (!rc && group) rc = lk_nccl_check(lk_nccl()->group_start(), "ncclGroupStart", "probe of the ranks");
    if (!rc) {
        for (int i = 0; i < n && !rc; i++) rc = exchange(lk_cuda_device_of(devs[i]), blocks);
        const lk_nccl_result result = group ? lk_nccl()->group_end() : 0;
        if (!rc) rc = lk_nccl_check(result, "ncclGroupEnd", "probe of the ranks");
    }
    for (int i = 0; i < n && !rc; i++) rc = end_probe(lk_cuda_device_of(devs[i]), blocks[i]);
    struct lk_error error;
    lk_error_get(&error, rc);
    for (int i = 0; i < n; i++) {
        if (rc) fail(lk_cuda_device_of(devs[i]), rc, false);
        if (!blocks[i] || lk_cuda_device_of(devs[i])->lost) continue;
        lk_cuda()->context_set(lk_cuda_device_of(devs[i])->context);
        lk_cuda()->memory_free(blocks[i]);
    }
    return rc ? lk_error_set(&error) : LK_OK;
}

static enum lk_code connect(struct lk_device *const *devs, int n) {
    int ordinals[LK_MAX_RANKS];
    lk_nccl_comm comms[LK_MAX_RANKS] = {0};
    struct lk_cuda_ranks *g = lk_calloc(1, sizeof *g);
    if (!g) return lk_fail(LK_E_NOMEM, "ranks: out of memory");
    for (int i = 0; i < n; i++) ordinals[i] = lk_cuda_device_of(devs[i])->ordinal;
    g->peers = lk_cuda_peers_open(devs, n);
    enum lk_code rc = g->peers ? LK_OK : lk_nccl_open();
    if (!rc && !g->peers) rc = lk_nccl_check(lk_nccl()->init_all(comms, n, ordinals), "ncclCommInitAll", "ranks");
    if (rc) {
        lk_free(g);
        return rc;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&g->lock, NULL);
    g->n = g->n_open = n;
    for (int i = 0; i < n; i++) {
        struct lk_cuda_device *cuda = lk_cuda_device_of(devs[i]);
        g->rank[i].cuda = cuda;
        g->rank[i].comm = comms[i];
        memcpy(g->rank[i].name, devs[i]->name, sizeof g->rank[i].name);
        cuda->ranks = g;
        cuda->rank = i;
        devs[i]->budget.n_ranks = n;
        devs[i]->budget.rank = i;
    }
    return probe(devs, n);
}

enum lk_code lk_device_cuda_ranks(const int *indexes, int n, struct lk_device **out) {
    int n_devices;
    enum lk_code rc = n >= 2 && n <= LK_MAX_RANKS
                          ? lk_cuda_info(-1, &n_devices, NULL)
                          : lk_fail(LK_E_USAGE, "ranks: expected 2 to %d GPUs, got %d", LK_MAX_RANKS, n);
    for (int i = 0; i < n; i++) out[i] = NULL;
    for (int i = 0; i < n && !rc; i++)
        for (int k = 0; k < i && !rc; k++)
            if (indexes[k] == indexes[i]) rc = lk_fail(LK_E_USAGE, "ranks: cuda:%d is there twice", indexes[i]);
    for (int i = 0; i < n && !rc; i++) rc = lk_device_cuda_create(indexes[i], &out[i]);
    if (!rc) rc = connect(out, n);
    for (int i = 0; i < n && !rc; i++) rc = lk_cuda_measure_beside(lk_cuda_device_of(out[i]));
    if (!rc) return LK_OK;
    struct lk_error error;
    lk_error_get(&error, rc);
    for (int i = 0; i < n; i++) {
        lk_device_free(out[i]);
        out[i] = NULL;
    }
    return lk_error_set(&error);
}
