/* Classifier-free guidance row by row (struct lk_guidance has the formulas).
 * Layout: dense rows; a team of threads has a row (rows.h).
 * Tile: one row per team; up to 32 elements of a thread and prediction stay in registers. Shared memory: 256 bytes.
 * sm_80 or newer.
 * Deterministic: sums of squares are taken in double in an order that depends on the row's length only. */
#include "kernels/cuda/rows.cuh"

/* d = r(cond - uncond); RESCALE: r(uncond + r(scale d)). */
template <class T> __device__ __forceinline__ float combined(const lk_cuda_guidance &args, float cond, float uncond) {
    const float d = rounded<T>(cond - uncond);
    return args.rescale ? rounded<T>(uncond + rounded<T>(args.scale * d)) : d;
}

template <class T>
__device__ __forceinline__ float row_factor(const lk_cuda_guidance &args, double of_cond, double of_combined) {
    const float norm = rounded<T>((float)sqrt(of_combined));
    if (args.rescale) return rounded<T>(rounded<T>((float)sqrt(of_cond)) / norm);
    if (norm < 1.0f) return 1.0f;
    return rounded<T>((float)pow((double)norm, (double)rounded<T>(args.power)));
}

template <bool WHOLE, class T> __device__ __forceinline__ void guidance(const lk_cuda_guidance &args) {
    const team_row r = my_row(args.n_rows, args.n);
    const int64_t n = args.n;
    const T *cond = (const T *)args.cond + r.row * n, *uncond = (const T *)args.uncond + r.row * n;
    T *y = (T *)args.y + r.row * n;
    const kept_row<T> kept = keep<WHOLE>(r, cond);
    double of_cond = 0.0, of_combined = 0.0;
    for_each_vector<WHOLE>(r, cond, kept, [&](int first, int left, const elements<width<T>> &c) {
        const elements<width<T>> u = load_vector<WHOLE>(uncond + first, left); /* zeros past the row's end combine to
                                                                                  zero */
#pragma unroll
        for (int i = 0; i < width<T>; i++) {
            const double of = (double)combined<T>(args, c.v[i], u.v[i]);
            of_combined = fma(of, of, of_combined); /* exact squares */
            of_cond = fma((double)c.v[i], (double)c.v[i], of_cond);
        }
    });
    of_combined = team_sum(of_combined);
    of_cond = team_sum(of_cond);
    const float factor = row_factor<T>(args, of_cond, of_combined);
    for_each_vector<WHOLE>(r, cond, kept, [&](int first, int left, const elements<width<T>> &c) {
        const elements<width<T>> u = load_vector<WHOLE>(uncond + first, left);
        elements<width<T>> out;
#pragma unroll
        for (int i = 0; i < width<T>; i++) {
            const float d = combined<T>(args, c.v[i], u.v[i]);
            out.v[i] = args.rescale ? d * factor : u.v[i] + rounded<T>(rounded<T>(d * args.scale) / factor);
        }
        store_vector<WHOLE>(y + first, left, out);
    });
}
LK_ROW_VARIANTS(guidance, lk_cuda_guidance)
