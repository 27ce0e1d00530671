/* More planted defects with clean twins; see check_core.cu. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/pipeline>

#include "check_defects.h"

namespace cg = cooperative_groups;

/* ---- memory ---- */
DEFECT(oob_write) {
    b[I - bad] = I; // @oob_write
}
DEFECT(oob_local) {
    int l[8];
#pragma unroll 1
    for (int k = 0; k < 8; k++) l[k ^ (a[T] & 1)] = k;
    b[I] = l[(T & 7) + 64 * bad]; // @oob_local
}
DEFECT(oob_vector) {
    int4 v = *(int4 *)(a + (T / 4 * 4 + 4 * bad) % 132); // @oob_vector
    b[I] = v.x + v.y + v.z + v.w;
}
DEFECT(oob_atomic) {
    atomicAdd(&b[I + bad], 1); // @oob_atomic
}
DEFECT(misaligned_shared) {
    __shared__ __align__(16) int s[160];
    s[T] = I;
    __syncthreads();
    int at = T / 2 * 2 % 120 + bad * (a[T] == 0);
    int2 v = *(int2 *)&s[at]; // @misaligned_shared
    b[I] = v.x + v.y;
}
DEFECT(uninitialised_local) {
    int l[8];
    int count = bad ? 4 : 8;
#pragma unroll 1
    for (int k = 0; k < count; k++) l[k ^ (a[T] & 1)] = k;
    b[I] = l[T & 7]; // @uninitialised_local
}
DEFECT(uninitialised_atomic) {
    if (!bad) c[I] = 0;
    atomicAdd(&c[I], 1); // @uninitialised_atomic
}
DEFECT(uninitialised_tail) {
    extern __shared__ char bytes[];
    bytes[T] = (char)T;
    if (!bad || T) bytes[128 + T] = (char)T;
    __syncthreads();
    b[I] = *(int *)(bytes + T / 4 * 4) + *(short *)(bytes + 128 + T / 2 * 2); // @uninitialised_tail
}

/* ---- races within a block ---- */
DEFECT(race_war) {
    __shared__ int s[128];
    s[T] = I;
    __syncthreads();
    int v = s[T ^ 64]; // @race_war
    if (!bad) __syncthreads();
    s[T] = v; // @race_war
    __syncthreads();
    b[I] = s[T];
}
DEFECT(race_waw) {
    __shared__ int s[128];
    s[bad ? T % 64 : T] = I; // @race_waw
    __syncthreads();
    b[I] = s[T % 64];
}
DEFECT(race_halves) {
    __shared__ unsigned short s[256];
    if (T % 32 == 0) s[T / 32 / (1 + bad)] = (unsigned short)(T + 1); // @race_halves
    __syncthreads();
    b[I] = s[0];
}
DEFECT(race_lanes_war) {
    __shared__ int s[32];
    s[T] = I;
    __syncwarp();
    int v = s[T ^ 1];
    if (!bad) __syncwarp();
    s[T] = v; // @race_lanes_war
    __syncwarp();
    b[I] = s[T];
}
DEFECT(race_instruction) {
    __shared__ int s[32];
    s[bad ? T / 2 : T] = I; // @race_instruction
    __syncwarp();
    b[I] = s[T / 2];
}
DEFECT(race_instruction_global) {
    b[bad ? I / 2 * 2 : I] = I; // @race_instruction_global
}
DEFECT(race_half_warp) {
    __shared__ int s[32];
    s[T] = I;
    if (T < 16)
        __syncwarp(0x0000ffffu);
    else
        __syncwarp(0xffff0000u);
    b[I] = s[T ^ (bad ? 16 : 8)]; // @race_half_warp
}
DEFECT(race_divergent_lanes) {
    __shared__ int s[32];
    if (T < 16) s[T] = I;
    if (!bad) __syncwarp();
    if (T >= 16) b[I] = s[T - 16]; // @race_divergent_lanes
}
DEFECT(race_named) {
    __shared__ int s[128];
    s[T] = 0;
    __syncthreads();
    s[T] = I; // @race_named
    if (T < 64)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    b[I] = s[T ^ (bad ? 64 : 32)]; // @race_named
}
DEFECT(race_producer) { /* half of the block fills, the other half reads; bad: the second fill does not wait */
    __shared__ int s[64];
    for (int k = 0; k < 2; k++) {
        if (T < 64) {
            if (k && !bad) asm volatile("bar.sync 3, 128;" ::: "memory");
            s[T] = I + k; // @race_producer
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + k) : "memory");
        } else {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + k) : "memory");
            b[I] += s[127 - T]; // @race_producer
            if (!k && !bad) asm volatile("bar.arrive 3, 128;" ::: "memory");
        }
    }
}
DEFECT(race_atomic_shared) {
    __shared__ int s[1];
    if (T == 0) s[0] = 0;
    __syncthreads();
    if (T % 32 == 0) atomicAdd(s, 1); // @race_atomic_shared
    __syncwarp();
    if (!bad) __syncthreads();
    b[I] = s[0]; // @race_atomic_shared
}
DEFECT(race_epilogue) { /* a tile is used again without a barrier after the last reads */
    __shared__ int s[128];
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 3; k++) {
        s[T] = I + k; // @race_epilogue
        __syncthreads();
        sum += s[(T + 33) % 128]; // @race_epilogue
        if (!bad) __syncthreads();
    }
    b[I] = sum;
}

/* ---- copies in flight ---- */
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory")
#define COMMIT()       asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n)        asm volatile("cp.async.wait_group " #n ";" ::: "memory")
DEFECT(async_barrier) {
    __shared__ int s[128];
    s[T] = 0;
    __syncthreads();
    COPY((unsigned)__cvta_generic_to_shared(&s[T]), a + I); // @async_barrier
    COMMIT();
    WAIT(0);
    if (!bad) __syncthreads();
    b[I] = s[T ^ 64]; // @async_barrier
}
DEFECT(async_group) {
    __shared__ int s[2][128];
    for (int k = 0; k < 2; k++) {
        COPY((unsigned)__cvta_generic_to_shared(&s[k][T]), a + I);
        COMMIT();
    }
    WAIT(1);
    __syncthreads();
    int v = s[bad][T]; // @async_group
    WAIT(0);
    b[I] = v;
}
DEFECT(async_overwrite) {
    __shared__ int s[128];
    COPY((unsigned)__cvta_generic_to_shared(&s[T]), a + I);
    COMMIT();
    if (!bad) WAIT(0);
    s[T] = 5; // @async_overwrite
    WAIT(0);
    b[I] = s[T];
}
DEFECT(async_refill) { /* the next copy goes over what other warps may still read */
    __shared__ int s[128];
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        COPY((unsigned)__cvta_generic_to_shared(&s[T]), a + I); // @async_refill
        COMMIT();
        WAIT(0);
        __syncthreads();
        sum += s[T ^ 64]; // @async_refill
        if (!bad) __syncthreads();
    }
    b[I] = sum;
}

/* ---- races between blocks ---- */
DEFECT(race_blocks_waw) {
    b[bad ? T : I] = I; // @race_blocks_waw
}
DEFECT(race_blocks_sum) {
    if (T == 0) {
        if (bad)
            b[0] += a[I] + (int)blockIdx.x + 1; // @race_blocks_sum
        else
            atomicAdd(&b[0], a[I] + (int)blockIdx.x + 1);
    }
}
DEFECT(race_blocks_last) { /* the last block sums what the others wrote */
    __shared__ int last;
    if (T == 0) {
        b[1 + blockIdx.x] = I + 1;
        if (!bad) __threadfence();
        last = atomicAdd(&b[0], 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (last && T == 0) {
        int sum = 0;
        for (int k = 0; k < (int)gridDim.x; k++) sum += ((int *)b)[1 + k]; // @race_blocks_last
        b[1 + gridDim.x] = sum;
    }
}

/* ---- barriers ---- */
DEFECT(barrier_count) {
    int threads = bad && T >= 32 && T < 64 ? 128 : 64;
    if (T < 64) asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); // @barrier_count
    b[I] = T;
}
DEFECT(barrier_warps) {
    if (bad && T < 32) {
        b[I] = 2;
        asm volatile("bar.sync 0; // first warp" ::: "memory");
    } else {
        b[I] = 3;
        asm volatile("bar.sync 0; // others" ::: "memory"); // @barrier_warps
    }
    b[I] += 1;
}
DEFECT(barrier_loop) {
    int rounds = bad && T % 32 == 5 ? 3 : 4;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) __syncthreads(); // @barrier_loop
    b[I] = rounds;
}
DEFECT(barrier_twice) {
    if (T < 32)
        asm volatile("bar.arrive 1, 96;" ::: "memory"); // @barrier_twice
    if (bad && T < 32) asm volatile("bar.arrive 1, 96;" ::: "memory"); // @barrier_twice
    if (T >= 32 && (bad ? T < 64 : T < 96)) asm volatile("bar.sync 1, 96;" ::: "memory"); // @barrier_twice
    b[I] = T;
}
DEFECT(barrier_never) {
    if (T < 64) asm volatile("bar.sync 3, %0;" ::"r"(bad ? 128 : 64) : "memory"); // @barrier_never
    b[I] = T;
}

/* ---- lanes ---- */
DEFECT(shuffle_mask) {
    b[I] = __shfl_xor_sync(bad ? 0x0000ffffu : 0xffffffffu, I, 1); // @shuffle_mask
}
DEFECT(vote_inactive) {
    int v = 0;
    if (!bad || T % 2) v = (int)__ballot_sync(0xffffffffu, T > 3); // @vote_inactive
    b[I] = v;
}
DEFECT(reduce_inactive) {
    if (bad && T == 31) return;
    b[I] = __reduce_add_sync(0xffffffffu, T); // @reduce_inactive
}
DEFECT(syncwarp_mask) {
    unsigned mask = __ballot_sync(0xffffffffu, T < 16 || !bad);
    if (T <= 16 || !bad) {
        b[I] = T;
        __syncwarp(mask); // @syncwarp_mask
    }
}
DEFECT(mma_inactive) {
    float d[4] = {0, 0, 0, 0};
    if (bad && T >= 24) return;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(T)); // @mma_inactive
    b[I] = (int)(d[0] + d[1] + d[2] + d[3]);
}
DEFECT(ldmatrix_inactive) {
    __shared__ __align__(16) int s[128];
    int v = 0;
    for (int k = 0; k < 4; k++) s[T + 32 * k] = k;
    __syncwarp();
    if (!bad || T < 31) {
        unsigned at = (unsigned)__cvta_generic_to_shared(&s[T % 8 * 4]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v) : "r"(at) : "memory"); // @ldmatrix_inactive
    }
    b[I] = v;
}

/* ---- signals through shared memory ---- */
DEFECT(signal_fence) { /* the first warp signals the others with a word; bad: without a fence */
    __shared__ int s[32];
    __shared__ volatile int ready;
    if (T == 0) ready = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = I; // @signal_fence
        __syncwarp();
        if (T == 0) {
            if (!bad) __threadfence_block();
            ready = 1;
        }
    } else {
        while (!ready) {
        }
        __threadfence_block();
        b[I] = s[T % 32]; // @signal_fence
    }
}
DEFECT(signal_acquire) { /* the same with release and acquire; bad: the reader's load is relaxed */
    __shared__ int s[32], ready;
    unsigned at = (unsigned)__cvta_generic_to_shared(&ready);
    if (T == 0) ready = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = I; // @signal_acquire
        __syncwarp();
        if (T == 0) asm volatile("red.release.cta.shared.add.u32 [%0], 1;" ::"r"(at) : "memory");
    } else {
        int go = 0;
        while (!go)
            if (bad)
                asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(go) : "r"(at) : "memory");
            else
                asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(go) : "r"(at) : "memory");
        b[I] = s[T % 32]; // @signal_acquire
    }
}
DEFECT(signal_later) { /* a release says nothing of what comes after it */
    __shared__ int s[32], ready;
    unsigned at = (unsigned)__cvta_generic_to_shared(&ready);
    if (T == 0) ready = 0;
    __syncthreads();
    if (T < 32) {
        if (!bad) s[T] = I;
        __syncwarp();
        if (T == 0) asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(at) : "memory");
        if (bad) s[T] = I; // @signal_later
    } else {
        int go = 0;
        while (!go) asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(go) : "r"(at) : "memory");
        b[I] = s[T % 32]; // @signal_later
    }
}
DEFECT(signal_overwritten) { /* a relaxed store ends what a release began */
    __shared__ int s[32], ready;
    unsigned at = (unsigned)__cvta_generic_to_shared(&ready);
    if (T == 0) ready = 0;
    __syncthreads();
    if (T < 32) {
        s[T] = I; // @signal_overwritten
        __syncwarp();
        if (T == 0) asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(at) : "memory");
    } else if (T < 64) {
        int go = 0;
        while (go != 1) asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(go) : "r"(at) : "memory");
        if (bad)
            asm volatile("st.relaxed.cta.shared.u32 [%0], 2;" ::"r"(at) : "memory");
        else
            asm volatile("red.relaxed.cta.shared.add.u32 [%0], 1;" ::"r"(at) : "memory");
    } else {
        int go = 0;
        while (go < 2) asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(go) : "r"(at) : "memory");
        asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(go) : "r"(at) : "memory");
        b[I] = s[T % 32]; // @signal_overwritten
    }
}
DEFECT(tile) { /* tiles of two warps; bad: reads what another tile wrote */
    __shared__ int s[128];
    auto block = cg::this_thread_block();
    auto pair = cg::tiled_partition<64>(block);
    s[T] = 0;
    block.sync();
    s[T] = I; // @tile
    pair.sync();
    b[I] = s[T ^ (bad ? 64 : 32)]; // @tile
}
DEFECT(tile_unsynced) { /* bad: the tile is used again without a barrier */
    __shared__ int s[128];
    auto block = cg::this_thread_block();
    auto pair = cg::tiled_partition<64>(block);
    int sum = 0;
    s[T] = 0;
    block.sync();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        s[T] = I + k; // @tile_unsynced
        pair.sync();
        sum += s[T ^ 32]; // @tile_unsynced
        if (!bad) pair.sync();
    }
    b[I] = sum;
}
DEFECT(tile_reduce) { /* exchanges between the warps of a tile; bad: the sum is passed on without a barrier */
    __shared__ int s[2];
    auto block = cg::this_thread_block();
    auto pair = cg::tiled_partition<64>(block);
    if (T < 2) s[T] = 0;
    block.sync();
    int sum = cg::reduce(pair, T, cg::plus<int>());
    sum += pair.shfl(sum, 40) + (pair.any(T == 3) ? 1 : 0);
    if (T % 64 == 63) s[T / 64] = sum; // @tile_reduce
    if (bad)
        __syncwarp();
    else
        pair.sync();
    b[I] = s[T / 64]; // @tile_reduce
}

/* ---- copies that tell an mbarrier ---- */
#define MBARRIER(op, at) asm volatile(op " [%0];" ::"r"(at) : "memory")
__device__ __forceinline__ void mbarrier_wait(unsigned at, unsigned parity) {
    int done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
}
DEFECT(async_mbarrier) { /* bad: reads its own copy, which the mbarrier has not told of */
    __shared__ int s[128];
    __shared__ long long barrier;
    unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(at) : "memory");
    __syncthreads();
    COPY((unsigned)__cvta_generic_to_shared(&s[T]), a + I);
    MBARRIER("cp.async.mbarrier.arrive.noinc.shared.b64", at);
    if (!bad) mbarrier_wait(at, 0);
    b[I] = s[bad ? T : T ^ 64]; // @async_mbarrier
    if (bad) mbarrier_wait(at, 0);
}
DEFECT(async_mbarrier_other) { /* two stages, each with an mbarrier; bad: waits for the wrong one */
    __shared__ int s[2][128];
    __shared__ long long barrier[2];
    unsigned at = (unsigned)__cvta_generic_to_shared(barrier);
    if (T < 2) asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(at + 8 * T) : "memory");
    __syncthreads();
    for (int k = 0; k < 2; k++) {
        COPY((unsigned)__cvta_generic_to_shared(&s[k][T]), a + I);
        MBARRIER("cp.async.mbarrier.arrive.noinc.shared.b64", at + 8 * k);
        asm volatile("{.reg .b64 t; mbarrier.arrive.shared.b64 t, [%0];}" ::"r"(at + 8 * k) : "memory");
    }
    mbarrier_wait(at, 0);
    b[I] = s[bad][T ^ 64]; // @async_mbarrier_other
    mbarrier_wait(at + 8, 0);
}
DEFECT(async_pipeline) { /* a ring of two stages; bad: three copies in it at once, as globalToShmemAsyncCopy has it */
    __shared__ int s[2][128];
    int sum = 0, filled = 0;
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        for (; filled < k + 2 + bad; filled++) {
            pipe.producer_acquire();
            if (filled < 4) COPY((unsigned)__cvta_generic_to_shared(&s[filled % 2][T]), a + I); // @async_pipeline
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        sum += s[k % 2][T ^ 64];
        pipe.consumer_release();
        __syncthreads();
    }
    b[I] = sum;
}
