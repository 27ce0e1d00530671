/* An arena hands out memory by moving a mark; a forward pass takes a mark and releases back to it. Its memory comes
 * from a device (host memory, GPU memory) or from nowhere: a counting arena gives addresses that must not be touched
 * and only measures the peak, which is how the plan device learns what a run needs. */
#pragma once

#include "engine/tensor.h"

#define LK_ARENA_ALIGN 256

struct lk_arena {
    unsigned char *base;
    size_t capacity;
    size_t used;
    size_t peak;
    bool host;     /* base may be dereferenced: redzones and poisoning under AddressSanitizer */
    bool counting; /* no memory behind it */
};

/* Over memory of the caller's. */
void lk_arena_init(struct lk_arena *arena, void *base, size_t capacity, bool host);
void lk_arena_init_counting(struct lk_arena *arena);

/* LK_E_FIT when the arena is full; the message says how much was asked, used and there. */
enum lk_code lk_arena_alloc(struct lk_arena *arena, size_t bytes, void **out);
/* A dense tensor in the arena. Contents undefined. */
enum lk_code lk_arena_tensor(struct lk_arena *arena, struct lk_tensor *out, enum lk_dtype dtype, int n_dims,
                             const int64_t *shape);
#define LK_NEW(arena, out, dtype, ...)                                                                                 \
    lk_arena_tensor((arena), (out), (dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                \
                    (int64_t[]){__VA_ARGS__})

/* Whether an address lies in what is handed out now. */
bool lk_arena_holds(const struct lk_arena *arena, const void *address);

size_t lk_arena_mark(const struct lk_arena *arena);
void lk_arena_release(struct lk_arena *arena, size_t mark);
