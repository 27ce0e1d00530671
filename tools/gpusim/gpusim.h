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

/* What is looked for besides what would crash (GPUSIM_CHECKS). */
enum gpusim_checks {
    GPUSIM_CHECKS_NONE,   /* bounds, alignment, use after free */
    GPUSIM_CHECKS_MEMORY, /* and reads of bytes that nothing wrote */
    GPUSIM_CHECKS_ALL,    /* and races, barriers, warp masks, order of streams, leaks */
};

/* What loading a function at its first look-up waits for (GPUSIM_LAZY). */
enum gpusim_lazy {
    GPUSIM_LAZY_NEVER, /* nothing: modules are loaded whole */
    GPUSIM_LAZY_OWN,   /* until the streams of its context are idle */
    GPUSIM_LAZY_ALL,   /* until all streams of the process are, while no other thread may call the driver */
};

/* Settings, read once from the environment (GPUSIM_SEED, GPUSIM_MEMORY, GPUSIM_PAGES, GPUSIM_DEVICES, GPUSIM_THREADS,
 * GPUSIM_ISA, GPUSIM_MUFU, GPUSIM_CHECKS, GPUSIM_LAZY, GPUSIM_WATCHDOG, GPUSIM_EXIT_CODE, GPUSIM_SAMPLE, GPUSIM_REPORT,
 * GPUSIM_REPORT_KERNELS, GPUSIM_REPORT_BY). */
struct gpusim_settings {
    uint64_t seed;
    uint64_t memory_bytes; /* per device */
    uint64_t pages;        /* bytes that allocations are counted in, a power of two; hardware has 2 MiB */
    int n_devices;
    int n_threads;   /* host threads that run blocks */
    const char *isa; /* NULL: the best that the CPU has */
    uint64_t mufu;   /* seed of approximations' bits (GPUSIM_MUFU); 0: nearly always the f32 next to the true value */
    enum gpusim_checks checks;
    bool shared_unwritten; /* reads of shared memory that nothing wrote pass (GPUSIM_CHECKS=global) */
    uint64_t watchdog;     /* instructions of one warp after which it is stopped; 0: never */
    int driver_version;    /* 13000: of CUDA 13.0 (GPUSIM_DRIVER) */
    int shared_optin;      /* bytes that a block may ask for (GPUSIM_SHARED); others have less than an A100 */
    enum gpusim_lazy lazy;
    int exit_code;   /* of the process when anything was reported; 0: as the program says */
    uint64_t sample; /* blocks of a launch to run, 0: all. Memory is then not filled, what nothing wrote reads as 0, and
                      checks are off unless asked for */
    const char *report;         /* "text", "json", "text:FILE", "json:FILE"; NULL: nothing is counted */
    const char *report_kernels; /* counts only kernels whose name has one of these, between commas; NULL: all */
    bool report_by_shape;       /* a record for each grid, block and shared size, not one for each kernel */
};
const struct gpusim_settings *gpusim_settings(void);

/* Bytes of shared memory of a multiprocessor: one block of the largest kind. */
static inline size_t gpusim_shared_per_sm(void) {
    return (size_t)gpusim_settings()->shared_optin + GPUSIM_SHARED_RESERVED;
}

/* One line on stderr, "gpusim: ...". Never silent: what is not implemented comes here before it returns an error. */
void gpusim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Findings. The names are what the lines on stderr start with. */
#define GPUSIM_REPORTS(X)                                                                                              \
    X(NONE, "none")                                                                                                    \
    X(OUT_OF_BOUNDS, "out-of-bounds")                                                                                  \
    X(USE_AFTER_FREE, "use-after-free")                                                                                \
    X(MISALIGNED, "misaligned")                                                                                        \
    X(READ_ONLY, "write-of-constant")                                                                                  \
    X(UNINITIALISED, "uninitialised-read")                                                                             \
    X(RACE_SHARED, "race-shared") /* warps of a block */                                                               \
    X(RACE_WARP, "race-warp")     /* lanes of a warp */                                                                \
    X(RACE_GLOBAL, "race-global") /* blocks of a launch */                                                             \
    X(ASYNC_UNWAITED, "async-copy-not-waited")                                                                         \
    X(BARRIER_DIVERGENT, "divergent-barrier")   /* lanes of a warp at different barriers */                            \
    X(BARRIER_MISMATCHED, "mismatched-barrier") /* warps at different barriers, or different thread counts */          \
    X(BARRIER_EXITED, "exited-threads-at-barrier")                                                                     \
    X(INACTIVE_LANES, "inactive-lanes")                                                                                \
    X(DEADLOCK, "deadlock")                                                                                            \
    X(STREAM_ORDER, "stream-order")                                                                                    \
    X(BAD_LAUNCH, "bad-launch")                                                                                        \
    X(LEAK, "leak")                                                                                                    \
    X(TRAP, "trap")                                                                                                    \
    X(ASSERT, "assert")                                                                                                \
    X(INSTRUCTION, "bad-instruction")                                                                                  \
    X(STACK, "stack-overflow")                                                                                         \
    X(NO_MEMORY, "no-host-memory")
enum gpusim_report_kind {
#define X(name, text) GPUSIM_REPORT_##name,
    GPUSIM_REPORTS(X)
#undef X
};

/* One finding; what is unknown is 0 or empty. */
struct gpusim_report {
    enum gpusim_report_kind kind;
    char kernel[256];
    uint32_t ptx_line; /* from 1 */
    char file[256];    /* source, from -lineinfo */
    uint32_t line;
    char at_file[256]; /* where that line was inlined (one level), empty: nowhere */
    uint32_t at_line;
    bool has_block, has_thread;
    uint32_t block[3], thread[3];
    char space[8];       /* "global", "shared", "local" ... when there is an address */
    uint64_t address;    /* global: device address; shared, local: offset */
    uint64_t allocation; /* its ordinal: the process's first allocation is 1 */
    uint64_t allocation_base, allocation_bytes;
    char what[512]; /* in words */
};
/* For tests: these are exported from libcuda.so.1. */
__attribute__((visibility("default"))) const char *gpusim_report_name(enum gpusim_report_kind kind);
/* "KIND: kernel K, PTX line N (FILE:LINE, inlined at FILE:LINE), block (x,y,z), thread (x,y,z), SPACE address A,
 * allocation I of B bytes at BASE: WHAT", leaving out what is unknown. */
__attribute__((visibility("default"))) void gpusim_report_text(const struct gpusim_report *report, char *out, size_t n);
/* Prints the report as one line and keeps it. */
void gpusim_report_emit(const struct gpusim_report *report);

/* How many reports there were, and the last one (false: none). */
__attribute__((visibility("default"))) uint64_t gpusim_report_count(void);
__attribute__((visibility("default"))) bool gpusim_report_last(struct gpusim_report *out);

/* For tests too. Calls of a function of the driver since the process began, by its exported name ("cuMemAlloc_v2");
 * copies of all forms are "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD", "cuMemcpy", "cuMemcpy2D", sets "cuMemset",
 * launches "cuLaunchKernel", streams "cuStreamCreate", modules "cuModuleLoadData". NULL: of all that need cuInit. */
__attribute__((visibility("default"))) uint64_t gpusim_calls(const char *name);
/* The n-th call of that function from now (1: the next; NULL: of any) does nothing and returns `result`, a CUresult;
 * `sticky`: so does, as after a fault of a kernel, every later call that needs the context. GPUSIM_NEVER: what the call
 * queues never ends; GPUSIM_DEAD: nothing that is queued on its context's device, or copied from or to it, does from
 * then on. The call after this one ends all three; 0 for n: no more than that. The name must stay. */
enum { GPUSIM_NEVER = -1, GPUSIM_DEAD = -2 };
__attribute__((visibility("default"))) void gpusim_fail_at(const char *name, uint64_t n, int result, bool sticky);
/* The function that was made to fail, NULL: none since the last gpusim_fail_at. */
__attribute__((visibility("default"))) const char *gpusim_failed_call(void);
/* The most bytes of device memory in use at once since the last call of this with the device (which starts afresh),
 * modules' variables among them (-1: of pinned host memory); another capacity than GPUSIM_MEMORY's; and the most that
 * one allocation may have, as where the free memory is in pieces (0: all that is free); and the pages that allocations
 * are counted in, a power of two, while there are none (0: GPUSIM_PAGES). */
__attribute__((visibility("default"))) uint64_t gpusim_memory_peak(int device);
__attribute__((visibility("default"))) void gpusim_memory_limit(uint64_t bytes);
__attribute__((visibility("default"))) void gpusim_memory_piece(uint64_t bytes);
__attribute__((visibility("default"))) void gpusim_memory_pages(uint64_t bytes);

/* Collectives, for the look-alike of NCCL, which numbers its ranks; codes are those of the driver. The calls count, and
 * can be made to fail, as "ncclCommInitAll", "ncclAllGather", "ncclCommGetAsyncError" and "ncclCommDestroy";
 * ncclAllGather with GPUSIM_NEVER is one that never ends for any rank. A rank that leaves passes over what it has
 * queued. */
struct gpusim_ranks;
__attribute__((visibility("default"))) int gpusim_ranks_new(int n, struct gpusim_ranks **out);
__attribute__((visibility("default"))) void gpusim_ranks_leave(struct gpusim_ranks *group, int rank);
__attribute__((visibility("default"))) int gpusim_ranks_error(void);
__attribute__((visibility("default"))) int gpusim_all_gather(struct gpusim_ranks *group, int rank, const void *from,
                                                             void *to, size_t bytes, void *stream);

/* For programs that put many tensors into one allocation: kernels launched from now on may use, of the allocations in
 * which these ranges begin, nothing else, so that an access past a tensor into the next one is out of bounds. n 0: they
 * may use everything again. At most GPUSIM_MAX_RANGES (with more, everything). Only where memory is checked. */
enum { GPUSIM_MAX_RANGES = 32 };
struct gpusim_range {
    uint64_t start, bytes;
};
__attribute__((visibility("default"))) void gpusim_tensors(const struct gpusim_range *ranges, size_t n);

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
