/* gpusim: a look-alike of libcuda.so.1 that executes PTX on the CPU. What every part of it uses.
 *
 *   driver/    the CUDA driver API: objects, streams, copies. Owns everything below.
 *   ptx/       text -> tokens -> statements -> ops (struct gpusim_op), once per function.
 *   exec/      runs ops: lanes (ops_*.c), groups of lanes (group.c), blocks (block.c), launches (launch.c), memory
 * (memory.c). numerics/  pure functions of numbers; knows nothing of the rest. check/, counters/  look on through
 * struct gpusim_hooks (exec/hooks.h).
 *
 * Includes go driver -> check, counters -> ptx -> exec -> numerics. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The device that is simulated: an A100-SXM4-80GB. */
enum {
    GPUSIM_WARP = 32,
    GPUSIM_N_SMS = 108,
    GPUSIM_CC_MAJOR = 8,
    GPUSIM_CC_MINOR = 0,
    GPUSIM_REGISTERS_PER_SM = 65536,
    GPUSIM_SHARED_PER_SM = 164 << 10,
    GPUSIM_SHARED_PER_BLOCK = 48 << 10,
    GPUSIM_SHARED_PER_BLOCK_OPTIN = 163 << 10,
    GPUSIM_SHARED_RESERVED = 1 << 10, /* per block */
    GPUSIM_THREADS_PER_SM = 2048,
    GPUSIM_BLOCKS_PER_SM = 32,
    GPUSIM_THREADS_PER_BLOCK = 1024,
    GPUSIM_MAX_WARPS = GPUSIM_THREADS_PER_BLOCK / GPUSIM_WARP,
    GPUSIM_N_BARRIERS = 16,
    GPUSIM_MAX_DEVICES = 8,
};

/* Generic addresses below GPUSIM_LOCAL_WINDOW are never valid, so a null pointer plus a small offset faults. Global
 * memory of device d starts at GPUSIM_DEVICE_BASE + d * GPUSIM_DEVICE_SPAN; pinned host memory has its host address. */
#define GPUSIM_LOCAL_WINDOW  0x00fe00000000ull
#define GPUSIM_SHARED_WINDOW 0x00ff00000000ull
#define GPUSIM_PARAM_WINDOW  0x00fd00000000ull
#define GPUSIM_WINDOW_SPAN   0x000001000000ull
#define GPUSIM_DEVICE_BASE   0x100000000000ull
#define GPUSIM_DEVICE_SPAN   0x020000000000ull

/* Settings, read once from the environment (GPUSIM_SEED, GPUSIM_MEMORY, GPUSIM_DEVICES, GPUSIM_THREADS, GPUSIM_ISA). */
struct gpusim_settings {
    uint64_t seed;
    uint64_t memory_bytes; /* per device */
    int n_devices;
    int n_threads;   /* host threads that run blocks */
    const char *isa; /* NULL: the best that the CPU has */
};
const struct gpusim_settings *gpusim_settings(void);

/* One line on stderr, "gpusim: ...". Never silent: what is not implemented comes here before it returns an error. */
void gpusim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A message kept for the next gpusim_say or returned to JIT log buffers; truncated to 1023 characters. */
struct gpusim_message {
    char text[1024];
};
void gpusim_set(struct gpusim_message *message, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Small pseudo-random numbers (splitmix64). */
static inline uint64_t gpusim_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
