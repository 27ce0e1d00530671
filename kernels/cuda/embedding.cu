/* y[i] = table[ids[i]]. An id outside the table is reported and gives zeros.
 * Layout: dense rows; a thread takes 16 bytes of neighbouring elements of the eight rows whose ids lie in one sector of
 * 32 bytes, so that a warp asks for all of that sector; the reads of its rows are under way together.
 * Tile: 128 threads, 1024 elements of 8 rows (more groups of 8 where rows are short). Shared memory: none. sm_80 or
 * newer.
 * Deterministic: every element is computed alone; of several bad ids any may be the one reported. */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/runtime/report.h"

constexpr int ROWS = LK_CUDA_EMBEDDING_ROWS;

__device__ __forceinline__ void report_bad(void *of_device, int id) {
    lk_cuda_report *report = (lk_cuda_report *)of_device;
    atomicExch(&report->bad_id, id);
    atomicExch(&report->has_bad_id, 1);
}

/* Whole vectors of a table with y's dtype: row i of the group comes from `from + id * ld_table`, which is NULL beyond
 * the row's end, and goes to `to + i * ld_y`. */
template <class T>
__device__ __forceinline__ void copy_rows(const lk_cuda_embedding &args, T *to, const T *from, int id, int first,
                                          int end) {
    uint4 rows[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int of_row = __shfl_sync(0xffffffffu, id, i, ROWS);
        rows[i] = make_uint4(0, 0, 0, 0);
        if (from && of_row >= 0) rows[i] = *(const uint4 *)(from + of_row * args.ld_table);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const unsigned words[4] = {rows[i].x, rows[i].y, rows[i].z, rows[i].w};
        if (from && i >= first && i < end) store_words(to + i * args.ld_y, words);
    }
}

template <class T> __device__ __forceinline__ void embedding(const lk_cuda_embedding &args) {
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * width<T>;
    const int n = (int)min(args.n - column, (int64_t)width<T>);
    const int64_t n_groups = (args.rows + args.before + ROWS - 1) / ROWS, groups_at_once = gridDim.y * blockDim.y;
    for (int64_t block = blockIdx.y * blockDim.y; block < n_groups; block += groups_at_once) {
        /* Of this group's rows [first, end) exist; thread i has the id of row i modulo ROWS. */
        const int64_t row = (block + threadIdx.y) * ROWS - args.before;
        const int first = row < 0 ? (int)-row : 0, mine = threadIdx.x % ROWS;
        const int end = (int)max(min(args.rows - row, (int64_t)ROWS), (int64_t)0);
        int id = -1;
        if (mine >= first && mine < end) {
            id = args.ids[row + mine];
            if (id < 0 || id >= args.vocabulary) {
                report_bad(args.report, id);
                id = -1;
            }
        }
        T *to = (T *)args.y + row * args.ld_y + column;
        if (args.vector && args.n % width<T> == 0 && args.table_bf16 == (sizeof(T) == sizeof(bf16))) {
            copy_rows<T>(args, to, n > 0 ? (const T *)args.table + column : nullptr, id, first, end);
            continue;
        }
#pragma unroll 1
        for (int i = 0; i < ROWS; i++) {
            const int of_row = __shfl_sync(0xffffffffu, id, i, ROWS);
            elements<width<T>> y = {};
            if (of_row >= 0 && n > 0)
                y = load_weight<width<T>>(args.table, of_row * args.ld_table + column, n, args.table_bf16, args.vector);
            if (i >= first && i < end) store(to + i * args.ld_y, n, args.vector, y);
        }
    }
}
LK_VARIANTS(embedding, lk_cuda_embedding)
