#include "kernels/cuda/weights.h"

#include <string.h>

#include "engine/alloc.h"
#include "kernels/cuda/cuda.h"

#define ALIGN 256 /* of a copy; as many bytes lie between two */

/* First entry that ends after `host`. */
static size_t position(const struct lk_cuda_weights *w, uintptr_t host) {
    size_t low = 0, high = w->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->entries[middle].host + w->entries[middle].bytes > host)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool grow(void **array, size_t *capacity, size_t n, size_t size) {
    if (n < *capacity) return true;
    size_t wanted = *capacity * 2 + 64;
    void *grown = lk_realloc(*array, wanted * size);
    if (!grown) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

static size_t extent(const struct lk_tensor *t) {
    return (size_t)((t->shape[0] - 1) * t->ld + lk_tensor_row_numel(t)) * lk_dtype_size(t->dtype);
}

/* The entry that has all of t, NULL if there is none. */
static struct lk_cuda_weight *find(const struct lk_cuda_weights *w, const struct lk_tensor *t) {
    uintptr_t host = (uintptr_t)t->data;
    size_t i = position(w, host);
    if (i == w->n || w->entries[i].host > host) return NULL;
    struct lk_cuda_weight *e = &w->entries[i];
    return host - e->host + extent(t) <= e->bytes ? e : NULL;
}

/* Adds a range; one with all that it overlaps. */
static void add(struct lk_cuda_weights *w, uintptr_t host, size_t bytes) {
    size_t first = position(w, host), end = first;
    struct lk_cuda_weight all = {.host = host, .bytes = bytes};
    for (; end < w->n && w->entries[end].host < host + bytes; end++) {
        const struct lk_cuda_weight *e = &w->entries[end];
        uintptr_t last = all.host + all.bytes > e->host + e->bytes ? all.host + all.bytes : e->host + e->bytes;
        if (e->host < all.host) all.host = e->host;
        all.bytes = last - all.host;
    }
    void *entries = w->entries;
    if (!grow(&entries, &w->capacity, w->n + 1, sizeof *w->entries)) {
        w->failed = lk_fail(LK_E_NOMEM, "cuda: out of host memory for the list of weights");
        return;
    }
    w->entries = entries;
    memmove(w->entries + first + 1, w->entries + end, (w->n - end) * sizeof *w->entries);
    w->entries[first] = all;
    w->n = w->n + 1 - (end - first);
}

void lk_cuda_weights_drop(struct lk_cuda_weights *w) {
    for (size_t i = 0; i < w->n_blocks; i++) lk_cuda()->memory_free(w->blocks[i]);
    w->n = w->n_blocks = 0;
    w->failed = LK_OK;
}

/* Forgets everything if memory that held weights was given back since the last look. */
static enum lk_code follow_epoch(const struct lk_cuda_device *cuda) {
    struct lk_cuda_weights *w = cuda->weights;
    uint64_t now = lk_weights_epoch();
    if (w->epoch == now) return LK_OK;
    LK_TRY(LK_CU(stream_synchronize, (cuda->stream), "before weights are dropped"));
    lk_cuda_weights_drop(w);
    w->epoch = now;
    return LK_OK;
}

void lk_cuda_weights_note(const struct lk_cuda_device *cuda, const struct lk_tensor *t) {
    struct lk_cuda_weights *w = cuda->weights;
    enum lk_code rc = follow_epoch(cuda);
    if (rc)
        w->failed = rc;
    else if (!find(w, t))
        add(w, (uintptr_t)t->data, extent(t));
}

static size_t room(const struct lk_cuda_weight *e) { return (e->bytes + ALIGN - 1) / ALIGN * ALIGN + ALIGN; }

/* Uploads what has no copy yet to consecutive places from `block` on. */
static enum lk_code upload(struct lk_cuda_device *cuda, lk_cu_address block) {
    struct lk_cuda_weights *w = cuda->weights;
    for (size_t i = 0; i < w->n; i++) {
        struct lk_cuda_weight *e = &w->entries[i];
        if (e->device) continue;
        LK_TRY(lk_staging_upload(&cuda->staging, cuda->stream, block, (const void *)e->host, e->bytes));
        e->device = block;
        block += room(e);
    }
    return LK_OK;
}

static enum lk_code load(struct lk_cuda_device *cuda) {
    struct lk_cuda_weights *w = cuda->weights;
    size_t total = 0, available = 0, all;
    for (size_t i = 0; i < w->n; i++)
        if (!w->entries[i].device) total += room(&w->entries[i]);
    if (!total) return LK_OK;
    void *blocks = w->blocks;
    if (!grow(&blocks, &w->blocks_capacity, w->n_blocks, sizeof *w->blocks))
        return lk_fail(LK_E_NOMEM, "%s: out of host memory for the list of weights", cuda->device.name);
    w->blocks = blocks;
    LK_TRY(LK_CU(memory_info, (&available, &all), "free memory"));
    lk_cu_address block;
    LK_TRY(LK_CU(memory_alloc, (&block, total), "%s: weights of %zu bytes, with %zu bytes free", cuda->device.name,
                 total, available));
    w->blocks[w->n_blocks++] = block;
    enum lk_code rc = upload(cuda, block);
    if (rc) { /* some of the copies are there: none of them counts */
        lk_cuda()->stream_synchronize(cuda->stream);
        lk_cuda_weights_drop(w);
    }
    return rc;
}

enum lk_code lk_cuda_weights_load(struct lk_cuda_device *cuda) {
    LK_TRY(follow_epoch(cuda));
    enum lk_code failed = cuda->weights->failed;
    cuda->weights->failed = LK_OK;
    if (failed)
        return lk_fail(failed, "%s: the list of weights could not be made: %s", cuda->device.name, lk_error_text());
    return load(cuda);
}

enum lk_code lk_cuda_weights_find(struct lk_cuda_device *cuda, const struct lk_tensor *t, void **out) {
    LK_TRY(follow_epoch(cuda));
    const struct lk_cuda_weight *e = find(cuda->weights, t);
    if (!e || !e->device) {
        lk_cuda_weights_note(cuda, t);
        LK_TRY(lk_cuda_weights_load(cuda));
        e = find(cuda->weights, t);
    }
    *out = (void *)(uintptr_t)(e->device + ((uintptr_t)t->data - e->host));
    return LK_OK;
}
