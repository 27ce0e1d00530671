#include "engine/rope_table.h"

#include <math.h>

#include "engine/bf16.h"

static float inverse_frequency(double theta, int j, int dim) {
    return 1.0f / (float)pow((float)theta, (float)(2 * j) / (float)dim);
}

void lk_rope_table(const float *ids, int64_t n, const int *axes_dims, int n_axes, double theta, float *cos_out,
                   float *sin_out) {
    int64_t width = 0, first = 0;
    for (int axis = 0; axis < n_axes; axis++) width += axes_dims[axis] / 2;
    for (int axis = 0; axis < n_axes; axis++) {
        for (int j = 0; j < axes_dims[axis] / 2; j++) {
            double frequency = 1.0 / pow(theta, 2.0 * j / axes_dims[axis]);
            for (int64_t i = 0; i < n; i++) {
                double angle = (double)ids[i * n_axes + axis] * frequency;
                cos_out[i * width + first + j] = (float)cos(angle);
                sin_out[i * width + first + j] = (float)sin(angle);
            }
        }
        first += axes_dims[axis] / 2;
    }
}

void lk_rope_table_lm(int64_t position0, int64_t n, int head_dim, double theta, bool round_bf16, float *cos_out,
                      float *sin_out) {
    int half = head_dim / 2;
    for (int j = 0; j < half; j++) {
        float inv_freq = inverse_frequency(theta, j, head_dim);
        for (int64_t i = 0; i < n; i++) {
            float angle = (float)(position0 + i) * inv_freq;
            float c = (float)cos(angle), s = (float)sin(angle);
            cos_out[i * half + j] = round_bf16 ? lk_round_bf16(c) : c;
            sin_out[i * half + j] = round_bf16 ? lk_round_bf16(s) : s;
        }
    }
}

void lk_rope_table_f32(const int32_t *ids, int64_t n, const int *axes_dims, int n_axes, double theta, float *cos_out,
                       float *sin_out) {
    int64_t width = 0, first = 0;
    for (int axis = 0; axis < n_axes; axis++) width += axes_dims[axis] / 2;
    for (int axis = 0; axis < n_axes; axis++) {
        for (int j = 0; j < axes_dims[axis] / 2; j++) {
            float frequency = inverse_frequency(theta, j, axes_dims[axis]);
            for (int64_t i = 0; i < n; i++) {
                float angle = (float)ids[i * n_axes + axis] * frequency;
                cos_out[i * width + first + j] = (float)cos(angle);
                sin_out[i * width + first + j] = (float)sin(angle);
            }
        }
        first += axes_dims[axis] / 2;
    }
}

void lk_rope_table_mrope(const int32_t *ids, int64_t n, const int *sections, int n_axes, int head_dim, double theta,
                         bool round_bf16, float *cos_out, float *sin_out) {
    int half = head_dim / 2;
    for (int axis = 0, j = 0; axis < n_axes; axis++) {
        for (int last = j + sections[axis]; j < last && j < half; j++) {
            float frequency = inverse_frequency(theta, j, head_dim);
            for (int64_t i = 0; i < n; i++) {
                float angle = (float)ids[i * n_axes + axis] * frequency;
                float c = (float)cos(angle), s = (float)sin(angle);
                cos_out[i * half + j] = round_bf16 ? lk_round_bf16(c) : c;
                sin_out[i * half + j] = round_bf16 ? lk_round_bf16(s) : s;
            }
        }
    }
}

void lk_rope_table_grid(int height, int width, int head_dim, double theta, bool round_bf16, float *cos_out,
                        float *sin_out) {
    int half = head_dim / 2, quarter = head_dim / 4;
    for (int j = 0; j < half; j++) {
        float frequency = inverse_frequency(theta, j < quarter ? 2 * j : 2 * (j - quarter) + 1, head_dim);
        for (int64_t i = 0; i < (int64_t)height * width; i++) {
            float angle = (float)(j < quarter ? i / width : i % width) * frequency;
            float c = (float)cos(angle), s = (float)sin(angle);
            cos_out[i * half + j] = round_bf16 ? lk_round_bf16(c) : c;
            sin_out[i * half + j] = round_bf16 ? lk_round_bf16(s) : s;
        }
    }
}
