/* Kernels whose memory traffic, bank conflicts, tensor work and divergence can be counted by hand. */
#include <stdint.h>

extern "C" __global__ void copy_words(const uint32_t *from, uint32_t *to, int stride, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i * stride + offset];
}

extern "C" __global__ void copy_vectors(const uint4 *from, uint4 *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

/* Lane i of a warp reads word (i * stride) % 1024 of shared memory, rounds times. */
extern "C" __global__ void shared_words(uint32_t *to, int stride, int rounds) {
    __shared__ volatile uint32_t words[1024];
    uint32_t sum = 0;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = i;
    __syncthreads();
    for (int r = 0; r < rounds; r++) sum += words[threadIdx.x * stride % 1024];
    to[threadIdx.x] = sum;
}

/* Rows of 8 x 8 matrices, pitch bytes apart. */
extern "C" __global__ void matrix_rows(uint32_t *to, int pitch) {
    extern __shared__ __align__(128) uint8_t bytes[];
    uint32_t at = (uint32_t)__cvta_generic_to_shared(bytes) + (threadIdx.x % 32) * pitch, a, b, c, d;
    for (int i = threadIdx.x; i < 32 * pitch / 4; i += blockDim.x) ((uint32_t *)bytes)[i] = i;
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
    to[threadIdx.x] = a + b + c + d;
}

/* Each lane copies 16 bytes to shared memory, pitch bytes apart, and 16 back. */
extern "C" __global__ void async_copy(const uint4 *from, uint4 *to, int pitch) {
    extern __shared__ __align__(128) uint8_t bytes[];
    uint32_t at = (uint32_t)__cvta_generic_to_shared(bytes) + threadIdx.x * pitch;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from + threadIdx.x));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    to[threadIdx.x] = *(uint4 *)(bytes + threadIdx.x * pitch);
}

extern "C" __global__ void products(float *to, int rounds) {
    float d[4] = {0, 0, 0, 0};
    uint32_t a = threadIdx.x, b = 1;
    for (int r = 0; r < rounds; r++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
    to[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

/* More than 64 registers, so that not all of a multiprocessor are enough for 1024 threads. */
extern "C" __global__ void reverse(float *p) {
    float all[96];
    for (int i = 0; i < 96; i++) all[i] = p[i * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 96; i++) p[i * blockDim.x + threadIdx.x] = all[95 - i];
}

/* `lanes` lanes of each warp go the long way: 64 additions in double. */
extern "C" __global__ void diverge(double *to, int lanes) {
    double x = 1;
    if (threadIdx.x % 32 < lanes) {
#pragma unroll 64
        for (int i = 0; i < 64; i++) asm volatile("add.rn.f64 %0, %0, %0;" : "+d"(x));
    }
    to[threadIdx.x] = x;
}

extern "C" __global__ void add_atomically(uint32_t *to, int stride) {
    __shared__ uint32_t words[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = 0;
    __syncthreads();
    atomicAdd(&words[threadIdx.x * stride], 1u);
    __syncthreads();
    atomicAdd(&to[threadIdx.x * stride], words[threadIdx.x]);
}
