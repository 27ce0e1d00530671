/* y[i] = table[ids[i]]. An id outside the table is reported and gives zeros.
 * Layout: dense rows; a thread takes 16 bytes of neighbouring elements (elementwise.h).
 * Tile: up to 256 threads, 2048 elements. Shared memory: none. sm_80 or newer.
 * Deterministic: every element is computed alone; of several bad ids any may be the one reported. */
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/report.h"

template <class T> __device__ __forceinline__ void embedding(const lk_cuda_embedding &args) {
    for_each_run<width<T>>(args.rows, args.n, [&](int64_t row, int64_t column, int n) {
        const int id = args.ids[row];
        elements<width<T>> y = {};
        if (id < 0 || id >= args.vocabulary) {
            lk_cuda_report *report = (lk_cuda_report *)args.report;
            atomicExch(&report->bad_id, id);
            atomicExch(&report->has_bad_id, 1);
        } else {
            y = load_weight<width<T>>(args.table, id * args.ld_table + column, n, args.table_bf16, args.vector);
        }
        store((T *)args.y + row * args.ld_y + column, n, args.vector, y);
    });
}
LK_VARIANTS(embedding, lk_cuda_embedding)
