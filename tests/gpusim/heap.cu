/* The device heap and alloca. */
extern "C" __global__ void fill_and_sum(int *out, int n) { /* each thread has a block of its own, and gives it back */
    int *p = (int *)malloc((size_t)n * sizeof *p), sum = 0;
    if (!p) {
        out[blockIdx.x * blockDim.x + threadIdx.x] = -1;
        return;
    }
    for (int i = 0; i < n; i++) p[i] = i * (int)threadIdx.x;
    for (int i = 0; i < n; i++) sum += p[n - 1 - i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    free(p);
}
extern "C" __global__ void make(int **kept) { /* for `use`, in a later launch */
    kept[threadIdx.x] = (int *)malloc(16);
    if (kept[threadIdx.x]) *kept[threadIdx.x] = (int)threadIdx.x + 1;
}
extern "C" __global__ void use(int **kept, int *out, int give_back) {
    out[threadIdx.x] = *kept[threadIdx.x];
    if (give_back) free(kept[threadIdx.x]);
}
extern "C" __global__ void room(int *out, size_t bytes) { /* how often the heap has so much */
    int n = 0;
    while (n < 1000 && malloc(bytes)) n++;
    out[threadIdx.x] = n;
}
extern "C" __global__ void unwritten(int *out) { out[0] = *(int *)malloc(4); }
extern "C" __global__ void over_the_end(int *out) {
    char *p = (char *)malloc(10);
    p[threadIdx.x + 10 + out[0]] = 1;
}
extern "C" __global__ void after_free(int *out) {
    int *p = (int *)malloc(4);
    *p = 1;
    free(p);
    out[0] = *(volatile int *)p;
}
extern "C" __global__ void free_twice(int *out) {
    void *p = malloc(4);
    free(p);
    if (out[0] == 0) free(p);
}
extern "C" __global__ void free_inside(int *out) { free((char *)malloc(64) + 16 + out[0]); }

__device__ __noinline__ int sum_of(int n, int step) {
    int *p = (int *)alloca((size_t)n * sizeof *p), sum = 0;
    for (int i = 0; i < n; i++) p[i] = i * step;
    for (int i = 0; i < n; i++) sum += p[n - 1 - i];
    return sum;
}
extern "C" __global__ void stack(int *out, int n, int rounds) { /* lanes take different sizes, calls give back */
    int sum = 0, *mine = (int *)alloca((threadIdx.x + 1) * sizeof *mine);
    for (unsigned i = 0; i <= threadIdx.x; i++) mine[i] = (int)i;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) sum += sum_of(n + (int)threadIdx.x, 2);
    for (unsigned i = 0; i <= threadIdx.x; i++) sum += mine[i];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void stack_unwritten(int *out, int n) {
    int *p = (int *)alloca((size_t)n * sizeof *p);
    if (out[0]) p[n - 1] = 1;
    out[1] = *(volatile int *)&p[n - 1];
}

extern "C" __global__ void wide(unsigned __int128 *x) { /* .b128 registers, as inline assembly has them */
    asm volatile("{\n\t.reg .b128 %%q<2>;\n\t.reg .b64 lo, hi;\n\tld.global.b128 %%q0, [%0];\n\t"
                 "mov.b128 {lo, hi}, %%q0;\n\tadd.u64 lo, lo, 1;\n\tmov.b128 %%q1, {hi, lo};\n\tmov.b128 %%q0, %%q1;\n\t"
                 "st.global.b128 [%0], %%q0;\n\t}" ::"l"(x + threadIdx.x)
                 : "memory");
}
