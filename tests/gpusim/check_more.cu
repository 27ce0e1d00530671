/* More planted defects with clean twins; see check_core.cu. */
#define TWIN(name)                                                                                                     \
    extern "C" __global__ void name##_bad(int *a, int *b, int *c, int n) { name<1>(a, b, c, n); }                      \
    extern "C" __global__ void name##_ok(int *a, int *b, int *c, int n) { name<0>(a, b, c, n); }
#define DEFECT(name)                                                                                                   \
    template <int bad> __device__ __forceinline__ void name(int *a, int *b, int *c, int n);                            \
    TWIN(name)                                                                                                         \
    template <int bad> __device__ __forceinline__ void name(int *a, int *b, int *c, int n)
#define T (int)threadIdx.x
#define I (int)(blockIdx.x * blockDim.x + threadIdx.x)

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
