#include <cuda_bf16.h>
#include <stdint.h>
// C[M, N] in f32 = A[M, K] B[N, K]^T in bf16; M, N multiples of 128, K of 32. Blocks of 128 x 128 x 32, 8 warps of 64 x
// 32, two stages of cp.async, swizzled rows of 64 bytes.
#define BM 128
#define BN 128
#define BK 32
__device__ __forceinline__ uint32_t sa(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ int sw(int row, int col16) {
    return row * 4 + (col16 ^ ((row >> 1) & 3));
} // in units of 16 bytes, 4 in a row
extern "C" __global__ void __launch_bounds__(256)
    gemm(const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, int M, int N, int K) {
    __shared__ __align__(128) uint4 As[2][BM * 4];
    __shared__ __align__(128) uint4 Bs[2][BN * 4];
    int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
    int wm = (warp & 1) * 64, wn = (warp >> 1) * 32;
    float acc[4][4][4] = {};
    auto load = [&](int s, int k0) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int c = tid + i * 256;
            int row = c >> 2, cc = c & 3;
            asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(sa(&As[s][sw(row, cc)])),
                         "l"(A + (size_t)(m0 + row) * K + k0 + cc * 8));
            asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(sa(&Bs[s][sw(row, cc)])),
                         "l"(B + (size_t)(n0 + row) * K + k0 + cc * 8));
        }
        asm volatile("cp.async.commit_group;");
    };
    load(0, 0);
    int nk = K / BK;
    for (int t = 0; t < nk; t++) {
        if (t + 1 < nk) {
            load((t + 1) & 1, (t + 1) * BK);
            asm volatile("cp.async.wait_group 1;");
        } else
            asm volatile("cp.async.wait_group 0;");
        __syncthreads();
        int s = t & 1;
#pragma unroll
        for (int kk = 0; kk < 2; kk++) {
            uint32_t a[4][4], b[4][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = wm + i * 16 + (lane & 15), cc = kk * 2 + (lane >> 4);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                             : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
                             : "r"(sa(&As[s][sw(row, cc)])));
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int row = wn + j * 16 + (lane & 7) + ((lane >> 4) << 3), cc = kk * 2 + ((lane >> 3) & 1);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                             : "=r"(b[2 * j][0]), "=r"(b[2 * j][1]), "=r"(b[2 * j + 1][0]), "=r"(b[2 * j + 1][1])
                             : "r"(sa(&Bs[s][sw(row, cc)])));
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                                 : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int r = m0 + wm + i * 16 + (lane >> 2) + (e >> 1) * 8, c = n0 + wn + j * 8 + (lane & 3) * 2 + (e & 1);
                C[(size_t)r * N + c] = acc[i][j][e];
            }
}
