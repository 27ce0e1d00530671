#include "engine/arena.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

/* Fake addresses of a counting arena start here, so that an address is never NULL. */
#define COUNTING_BASE ((uintptr_t)1 << 44)

static size_t round_up(size_t n) { return (n + LK_ARENA_ALIGN - 1) / LK_ARENA_ALIGN * LK_ARENA_ALIGN; }

void lk_arena_init(struct lk_arena *arena, void *base, size_t capacity, bool host) {
    *arena = (struct lk_arena){.base = base, .capacity = capacity, .host = host};
    if (host && base) POISON(base, capacity);
}

void lk_arena_init_counting(struct lk_arena *arena) {
    *arena = (struct lk_arena){.capacity = SIZE_MAX / 4, .counting = true};
}

enum lk_code lk_arena_alloc(struct lk_arena *arena, size_t bytes, void **out) {
    *out = NULL;
    /* One unit more than asked: a gap between neighbours, which AddressSanitizer keeps poisoned. */
    size_t need = bytes > SIZE_MAX / 4 ? SIZE_MAX / 2 : round_up(bytes) + LK_ARENA_ALIGN;
    if (need > arena->capacity - arena->used)
        return lk_fail(LK_E_FIT,
                       "activation memory: asked for %zu bytes with %zu of %zu in use; give a larger memory budget",
                       bytes, arena->used, arena->capacity);
    if (arena->counting) {
        *out = (void *)(COUNTING_BASE + arena->used);
    } else {
        *out = arena->base + arena->used;
        if (arena->host) UNPOISON(*out, bytes);
    }
    arena->used += need;
    if (arena->used > arena->peak) arena->peak = arena->used;
    return LK_OK;
}

enum lk_code lk_arena_tensor(struct lk_arena *arena, struct lk_tensor *out, enum lk_dtype dtype, int n_dims,
                             const int64_t *shape) {
    size_t bytes = lk_dtype_size(dtype);
    for (int i = 0; i < n_dims; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, (size_t)shape[i], &bytes))
            return lk_fail(LK_E_INTERNAL, "tensor with dimension %d = %lld", i, (long long)shape[i]);
    void *data;
    enum lk_code rc = lk_arena_alloc(arena, bytes, &data);
    *out = lk_tensor_make(data, dtype, n_dims, shape);
    return rc;
}

bool lk_arena_holds(const struct lk_arena *arena, const void *address) {
    uintptr_t base = arena->counting ? COUNTING_BASE : (uintptr_t)arena->base;
    return (uintptr_t)address - base < arena->used;
}

size_t lk_arena_mark(const struct lk_arena *arena) { return arena->used; }

void lk_arena_release(struct lk_arena *arena, size_t mark) {
    if (arena->host && arena->base) POISON(arena->base + mark, arena->used - mark);
    arena->used = mark;
}
