/* Planted defects, each with a clean twin: NAME_bad must be reported at the line marked "@NAME", NAME_ok must pass.
 * a: n ints, set; b: n ints, zero; c: n ints, never written (or freed, or whatever the test says). n = blocks x threads.
 * ptx/check_core.ptx is this file compiled:
 *   nvcc -ptx -lineinfo -arch=compute_80 check_core.cu */
#define TWIN(name)                                                                                                     \
    extern "C" __global__ void name##_bad(int *a, int *b, int *c, int n) { name<1>(a, b, c, n); }                      \
    extern "C" __global__ void name##_ok(int *a, int *b, int *c, int n) { name<0>(a, b, c, n); }
#define DEFECT(name)                                                                                                   \
    template <int bad> __device__ __forceinline__ void name(int *a, int *b, int *c, int n);                            \
    TWIN(name)                                                                                                         \
    template <int bad> __device__ __forceinline__ void name(int *a, int *b, int *c, int n)
#define T (int)threadIdx.x
#define I (int)(blockIdx.x * blockDim.x + threadIdx.x)

DEFECT(oob_read) {
    b[I] = a[I + bad]; // @oob_read
}
DEFECT(oob_shared) {
    extern __shared__ int s[];
    s[T + bad] = I; // @oob_shared
    b[I] = s[T + bad];
}
DEFECT(use_after_free) {
    b[I] = c[I]; // @use_after_free
}
DEFECT(misaligned) {
    int *p = (int *)((char *)a + 2 * bad);
    if (T < 100) b[I] = p[T]; // @misaligned
}
DEFECT(uninitialised) {
    if (!bad || T != 77) c[I] = I;
    b[I] = c[I]; // @uninitialised
}
DEFECT(uninitialised_shared) {
    __shared__ int s[128];
    if (!bad || T % 2 == 0) s[T] = I;
    __syncthreads();
    b[I] = s[127 - T]; // @uninitialised_shared
}
DEFECT(race_raw) {
    __shared__ int s[128];
    s[T] = 0;
    __syncthreads();
    s[T] = I; // @race_raw
    if (!bad) __syncthreads();
    b[I] = s[T ^ 64]; // @race_raw
}
DEFECT(race_lanes) {
    __shared__ int s[32];
    s[T] = I;
    if (!bad) __syncwarp();
    b[I] = s[T ^ 1]; // @race_lanes
}
DEFECT(race_blocks) {
    int j = bad ? (I + (int)blockDim.x / 2) % n : I;
    b[I] = a[I]; // @race_blocks
    a[j] = 1;    // @race_blocks
}
DEFECT(async_wait) {
    __shared__ __align__(16) int s[128];
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[T]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(a + I) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (!bad) asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    b[I] = s[T ^ 64]; // @async_wait
}
DEFECT(barrier_divergent) {
    if (bad && T % 32 < 16) {
        b[I] = 2;
        asm volatile("bar.sync 0; // one side" ::: "memory"); // @barrier_divergent
    } else {
        b[I] = 3;
        asm volatile("bar.sync 0; // other side" ::: "memory"); // @barrier_divergent
    }
    b[I] += 1;
}
DEFECT(barrier_exited) {
    if (bad && T >= 100) return;
    a[I] = T;
    __syncthreads(); // @barrier_exited
    b[I] = a[I];
}
DEFECT(shuffle_inactive) {
    int v = I;
    if (!bad || T < 16) v = __shfl_down_sync(0xffffffffu, v, 1); // @shuffle_inactive
    b[I] = v;
}
