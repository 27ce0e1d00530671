/* Sizes: FLUX.2 at 1024 x 1024 with one reference, 4,096 + 4,096 + 512 tokens of width 6,144; its text encoder and VAE.
 */
#include <math.h>
#include <string.h>

#include "bench/kernels_model.h"
#include "engine/base/alloc.h"
#include "kernels/cpu/cpu.h"

void (*model_on_tensor)(uint64_t address, uint64_t bytes);
bool model_fill_all;

#define PIECE  ((int64_t)1 << 20) /* elements that are uploaded at once */
#define VALUES ((int64_t)1 << 16) /* that differ */

/* About normal values. */
static void pattern(const struct lk_tensor *values, int64_t n) {
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            sum += (double)(state >> 40) / 16777216.0 - 0.5;
        }
        lk_cpu_set(values, i, (float)(sum * sqrt(3.0)));
    }
}

static enum lk_code fill(struct lk_device *dev, const struct lk_tensor *given) {
    const struct lk_tensor bytes = LK_TENSOR(given->data, LK_U8, (int64_t)lk_tensor_bytes(given));
    const struct lk_tensor *t = lk_tensor_is_quantized(given) ? &bytes : given;
    const size_t size = lk_dtype_size(t->dtype);
    const int64_t n = lk_tensor_numel(t), piece = n < PIECE ? n : PIECE, differ = n < VALUES ? n : VALUES;
    unsigned char *host = lk_calloc((size_t)piece, size);
    if (!host) return lk_fail(LK_E_NOMEM, "values of a tensor: out of memory");
    const struct lk_tensor values = LK_TENSOR(host, t->dtype, piece);
    if (t->dtype == LK_F32 || t->dtype == LK_BF16) pattern(&values, differ);
    for (int64_t i = differ; i < piece; i += differ)
        memcpy(host + (size_t)i * size, host, (size_t)(piece - i < differ ? piece - i : differ) * size);
    enum lk_code rc = LK_OK;
    for (int64_t i = 0; i < n && !rc; i += piece) {
        const struct lk_tensor part =
            LK_TENSOR((unsigned char *)t->data + (size_t)i * size, t->dtype, n - i < piece ? n - i : piece);
        rc = lk_upload(dev, &part, host);
    }
    lk_free(host);
    return rc;
}

static enum lk_code new_tensor(struct lk_device *dev, struct lk_tensor *t, enum lk_dtype dtype, int n_dims,
                               const int64_t *shape) {
    LK_TRY(lk_arena_tensor(&dev->arena, t, dtype, n_dims, shape));
    if (model_on_tensor) model_on_tensor((uint64_t)(uintptr_t)t->data, lk_tensor_bytes(t));
    return model_fill_all ? fill(dev, t) : LK_OK;
}
#define NEW(t, dtype, ...)                                                                                             \
    LK_TRY(new_tensor(dev, (t), (dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                    \
                      (int64_t[]){__VA_ARGS__}))

/* What an op will take from the arena for itself; call it last. */
#define NOTE_SCRATCH(op_name, op)                                                                                      \
    do {                                                                                                               \
        size_t at_ = (dev->arena.used + LK_ARENA_ALIGN - 1) / LK_ARENA_ALIGN * LK_ARENA_ALIGN;                         \
        size_t bytes_ = dev->table->op_name.scratch ? dev->table->op_name.scratch(dev, op) : 0;                        \
        if (model_on_tensor && bytes_) model_on_tensor((uint64_t)(uintptr_t)(dev->arena.base + at_), bytes_);          \
    } while (0)

/* M, N, K, rank of an adapter or 0, 1: bias, 1: gate and residual */
static enum lk_code linear(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor y, x, w, bias, gate, residual, low, up;
    NEW(&x, LK_BF16, s[0], s[2]);
    NEW(&w, LK_BF16, s[1], s[2]);
    NEW(&y, LK_BF16, s[0], s[1]);
    NEW(&bias, LK_BF16, s[1]);
    NEW(&gate, LK_BF16, s[1]);
    struct lk_linear op = {.y = &y, .x = &x, .w = &w};
    if (s[3]) {
        NEW(&low, LK_BF16, s[0], s[3]);
        NEW(&up, LK_BF16, s[1], s[3]);
        op.low = &low;
        op.up = &up;
    }
    if (s[4]) op.bias = &bias;
    if (s[5]) {
        NEW(&residual, LK_BF16, s[0], s[1]);
        op.gate = &gate;
        op.residual = &residual;
    }
    NOTE_SCRATCH(linear, &op);
    return lk_linear(dev, &op);
}

/* M, N, K, unused, dtype of the weight, elements to a scale */
static enum lk_code packed(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor y, x, w, scales;
    NEW(&x, LK_BF16, s[0], s[2]);
    NEW(&w, (enum lk_dtype)s[4], s[1], s[2]);
    NEW(&scales, LK_F32, s[1] * s[2] / s[5]);
    NEW(&y, LK_BF16, s[0], s[1]);
    w.scales = (struct lk_scales){scales.data, LK_F32, (int32_t)s[5]};
    struct lk_linear op = {.y = &y, .x = &x, .w = &w};
    NOTE_SCRATCH(linear, &op);
    return lk_linear(dev, &op);
}

/* S_q, S_k, heads, key/value heads, head_dim, 1: causal */
static enum lk_code attention(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor q, k, v, out;
    NEW(&q, LK_BF16, s[0], s[2], s[4]);
    NEW(&k, LK_BF16, s[1], s[3], s[4]);
    NEW(&v, LK_BF16, s[1], s[3], s[4]);
    NEW(&out, LK_BF16, s[0], s[2], s[4]);
    const struct lk_tensor *read[] = {&q, &k, &v}; /* values on which the kernel branches */
    for (int i = 0; i < 3 && !model_fill_all; i++) LK_TRY(fill(dev, read[i]));
    struct lk_attention op = {&out, &q, &k, &v, 1.0f / sqrtf((float)s[4]), s[5]};
    NOTE_SCRATCH(attention, &op);
    return lk_attention(dev, &op);
}

/* rows, D, 1: shift and scale (else weight-free) */
static enum lk_code layer_norm(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y, shift, scale;
    NEW(&x, LK_BF16, s[0], s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    NEW(&shift, LK_BF16, s[1]);
    NEW(&scale, LK_BF16, s[1]);
    struct lk_layer_norm op = {.y = &y, .x = &x, .eps = 1e-6f};
    if (s[2]) op.shift = &shift, op.scale = &scale;
    return lk_layer_norm(dev, &op);
}

/* rows, D */
static enum lk_code rms_norm(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y, w;
    NEW(&x, LK_BF16, s[0], s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    NEW(&w, LK_BF16, s[1]);
    return lk_rms_norm(dev, &(struct lk_rms_norm){.y = &y, .x = &x, .w = &w, .eps = 1e-5f});
}

/* S, heads, head_dim, 1: pairs (j, j + head_dim / 2), 1: norm, elements of a row of the tensor x is a window of */
static enum lk_code norm_rope(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor all, x, w, cos, sin;
    int64_t d = s[1] * s[2], row = s[5] ? s[5] : d;
    NEW(&all, LK_BF16, s[0], row);
    NEW(&w, LK_BF16, s[2]);
    NEW(&cos, LK_F32, s[0], s[2] / 2);
    NEW(&sin, LK_F32, s[0], s[2] / 2);
    struct lk_tensor window = lk_tensor_cols(&all, 0, d);
    x = LK_VIEW(&window, s[0], s[1], s[2]);
    struct lk_norm_rope op = {.x = &x, .norm_w = s[4] ? &w : NULL, .cos = &cos, .sin = &sin, .eps = 1e-6f};
    op.pairing = s[3] ? LK_ROPE_HALF : LK_ROPE_INTERLEAVED;
    return lk_norm_rope(dev, &op);
}

/* rows, N */
static enum lk_code gated_act(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y;
    NEW(&x, LK_BF16, s[0], 2 * s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    return lk_gated_act(dev, &(struct lk_gated_act){.y = &y, .x = &x, .act = LK_ACT_SILU});
}
static enum lk_code activation(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y;
    NEW(&x, LK_BF16, s[0], s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    return lk_activation(dev, &(struct lk_activation){&y, &x, LK_ACT_GELU_TANH});
}
static enum lk_code add(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor a, b, y;
    NEW(&a, LK_BF16, s[0], s[1]);
    NEW(&b, LK_BF16, s[0], s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    return lk_add(dev, &(struct lk_add){&y, &a, &b});
}
static enum lk_code copy(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y;
    NEW(&x, LK_F32, s[0], s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    return lk_copy(dev, &(struct lk_copy){&y, &x});
}
static enum lk_code euler_step(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, v;
    NEW(&x, LK_F32, s[0], s[1]);
    NEW(&v, LK_F32, s[0], s[1]);
    return lk_euler_step(dev, &(struct lk_euler_step){&x, &v, -0.02f});
}
static enum lk_code guidance(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor y, cond, uncond;
    NEW(&y, LK_BF16, s[0], s[1]);
    NEW(&cond, LK_BF16, s[0], s[1]);
    NEW(&uncond, LK_BF16, s[0], s[1]);
    return lk_guidance(dev, &(struct lk_guidance){&y, &cond, &uncond, LK_GUIDANCE_RESCALE, 4.0f, 0.0f});
}
static enum lk_code l2_norm(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y, w;
    NEW(&x, LK_BF16, s[0], s[1]);
    NEW(&y, LK_BF16, s[0], s[1]);
    NEW(&w, LK_BF16, s[1]);
    LK_TRY(fill(dev, &x)); /* zeros take a longer way */
    return lk_l2_norm(dev, &(struct lk_l2_norm){&y, &x, &w, LK_ACT_SILU});
}

#define GROUPS 32 /* of group norm */

static enum lk_code new_group_sums(struct lk_device *dev, struct lk_tensor *t, int64_t n_pixels) {
    *t = lk_group_sums(NULL, GROUPS, n_pixels);
    LK_TRY(new_tensor(dev, t, t->dtype, t->n_dims, t->shape));
    /* Means and squares as floats. Zeros would be a variance of 0, and the norm's activation would take a longer way.
     */
    const struct lk_tensor values = LK_TENSOR(t->data, LK_F32, 2 * lk_tensor_numel(t));
    return model_fill_all ? fill(dev, &values) : LK_OK;
}

/* H, W, C_in, C_out, kernel, stride (2: padded at the bottom and right only) or -2: enlarged twofold before. 3x3 to
 * whole groups: with the sums for a group norm. */
static enum lk_code conv2d(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y, w, bias, sums;
    int stride = s[5] > 0 ? (int)s[5] : 1, upsample = s[5] < 0 ? 2 : 1, pad = (int)s[4] / 2;
    NEW(&x, LK_BF16, s[0], s[1], s[2]);
    NEW(&w, LK_BF16, s[3], s[2], s[4], s[4]);
    NEW(&bias, LK_BF16, s[3]);
    NEW(&y, LK_BF16, s[0] * upsample / stride, s[1] * upsample / stride, s[3]);
    struct lk_conv2d op = {.y = &y, .x = &x, .w = &w, .bias = &bias, .stride = stride, .upsample = upsample};
    op.pad_bottom = op.pad_right = pad;
    op.pad_top = op.pad_left = stride == 2 ? 0 : pad;
    if (s[4] == 3 && s[3] % GROUPS == 0) {
        LK_TRY(new_group_sums(dev, &sums, y.shape[0] * y.shape[1]));
        op.group_sums = &sums;
    }
    NOTE_SCRATCH(conv2d, &op);
    return lk_conv2d(dev, &op);
}

/* H, W, C, 1: with the sums that a convolution leaves */
static enum lk_code group_norm(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y, w, b, sums;
    NEW(&x, LK_BF16, s[0], s[1], s[2]);
    NEW(&y, LK_BF16, s[0], s[1], s[2]);
    NEW(&w, LK_BF16, s[2]);
    NEW(&b, LK_BF16, s[2]);
    struct lk_group_norm op = {
        .y = &y, .x = &x, .w = &w, .b = &b, .n_groups = GROUPS, .eps = 1e-6f, .act = LK_ACT_SILU};
    if (s[3]) {
        LK_TRY(new_group_sums(dev, &sums, s[0] * s[1]));
        op.sums = &sums;
    }
    NOTE_SCRATCH(group_norm, &op);
    return lk_group_norm(dev, &op);
}
static enum lk_code pack_latents(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor tokens, latents;
    NEW(&latents, LK_BF16, s[0], s[1], s[2]);
    NEW(&tokens, LK_BF16, s[0] / 2 * (s[1] / 2), 4 * s[2]);
    return lk_pack_latents(dev, &(struct lk_pack_latents){&tokens, &latents, false});
}
static enum lk_code pixels(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor x, y;
    NEW(&x, LK_BF16, s[0], s[1], 3);
    NEW(&y, LK_U8, s[0], s[1], 3);
    return lk_pixels(dev, &(struct lk_pixels){&y, &x});
}
static enum lk_code posterior_sample(struct lk_device *dev, const int64_t *s) {
    struct lk_tensor z, moments, noise;
    NEW(&moments, LK_BF16, s[0], s[1], 2 * s[2]);
    NEW(&noise, LK_BF16, s[0], s[1], s[2]);
    NEW(&z, LK_BF16, s[0], s[1], s[2]);
    return lk_posterior_sample(dev, &(struct lk_posterior_sample){&z, &moments, &noise});
}

const struct model_case model_cases[] = {
    {"linear", "single block, q k v and MLP in", linear, {8704, 55296, 6144}},
    {"linear", "single block, q k v and MLP in, LoRA of rank 64", linear, {8704, 55296, 6144, 64}},
    {"linear", "LoRA of rank 64, down", linear, {8704, 64, 6144}},
    {"linear", "single block, out, gate, residual", linear, {8704, 6144, 24576, 0, 0, 1}},
    {"linear", "double block, q (image)", linear, {8192, 6144, 6144}},
    {"linear", "double block, q (text)", linear, {512, 6144, 6144}},
    {"linear", "double block, MLP in (image)", linear, {8192, 36864, 6144}},
    {"linear", "double block, MLP out (image)", linear, {8192, 6144, 18432, 0, 0, 1}},
    {"linear", "modulation, one row", linear, {1, 36864, 6144}},
    {"linear", "context embedder", linear, {512, 6144, 15360}},
    {"linear", "x embedder", linear, {8192, 6144, 128}},
    {"linear", "proj_out", linear, {4096, 128, 6144}},
    {"linear", "text encoder, MLP gate", linear, {512, 32768, 5120}},
    {"linear", "Qwen-Image-Edit, MLP in, bias", linear, {8192, 12288, 3072, 0, 1}},
    {"linear", "Qwen-Image-Edit, MLP out, gate", linear, {8192, 3072, 12288, 0, 1, 1}},
    {"linear", "Qwen-Image-Edit, q", linear, {8192, 3072, 3072, 0, 1}},
    {"linear", "Qwen-Image-Edit, q, LoRA of rank 64", linear, {8192, 3072, 3072, 64, 1}},
    {"linear", "LoRA of rank 64, down, width 3072", linear, {8192, 64, 3072}},
    {"linear", "Step1X-Edit, single block, q k v and MLP in", linear, {8832, 21504, 3072, 0, 1}},
    {"linear", "Step1X-Edit, single block, out", linear, {8832, 3072, 15360, 0, 1, 1}},
    {"linear", "unpacked from NF4, one row", packed, {1, 6144, 6144, 0, LK_NF4, 64}},
    {"linear", "unpacked from Q8, one row", packed, {1, 6144, 6144, 0, LK_Q8, 64}},
    {"attention", "DiT", attention, {8704, 8704, 48, 48, 128, 0}},
    {"attention", "Qwen-Image-Edit, Step1X-Edit", attention, {8832, 8832, 24, 24, 128, 0}},
    {"attention", "text encoder, causal", attention, {512, 512, 32, 8, 128, 1}},
    {"attention", "vision tower, head 80", attention, {4096, 4096, 16, 16, 80, 0}},
    {"attention", "SD 1.5, head 40", attention, {4096, 4096, 8, 8, 40, 0}},
    {"attention", "SD 1.5, head 160", attention, {256, 256, 8, 8, 160, 0}},
    {"attention", "VAE mid block", attention, {16384, 16384, 1, 1, 512, 0}},
    {"layer_norm", "modulated", layer_norm, {8704, 6144, 1}},
    {"rms_norm", "text encoder", rms_norm, {512, 5120}},
    {"norm_rope", "q of the single block (window)", norm_rope, {8704, 48, 128, 0, 1, 55296}},
    {"norm_rope", "text encoder, q", norm_rope, {512, 32, 128, 1, 0}},
    {"gated_act", "MLP", gated_act, {8704, 18432}},
    {"activation", "gelu", activation, {8192, 12288}},
    {"add", "", add, {8704, 6144}},
    {"copy", "f32 to bf16", copy, {8704, 6144}},
    {"euler_step", "f32", euler_step, {4096, 128}},
    {"guidance", "Qwen-Image-Edit", guidance, {4096, 64}},
    {"pack_latents", "", pack_latents, {128, 128, 32}},
    {"conv2d", "VAE 3x3 at 1024", conv2d, {1024, 1024, 128, 128, 3, 1}},
    {"conv2d", "VAE 3x3 at 512", conv2d, {512, 512, 256, 256, 3, 1}},
    {"conv2d", "VAE 3x3 at 128", conv2d, {128, 128, 512, 512, 3, 1}},
    {"conv2d", "VAE enlarging to 1024", conv2d, {512, 512, 256, 256, 3, -2}},
    {"conv2d", "VAE stride 2", conv2d, {1024, 1024, 128, 128, 3, 2}},
    {"conv2d", "VAE 1x1", conv2d, {512, 512, 512, 256, 1, 1}},
    {"conv2d", "VAE in, 3 channels", conv2d, {1024, 1024, 3, 128, 3, 1}},
    {"conv2d", "VAE out, 3 channels", conv2d, {1024, 1024, 128, 3, 3, 1}},
    {"group_norm", "VAE at 1024", group_norm, {1024, 1024, 128, 1}},
    {"group_norm", "VAE at 512", group_norm, {512, 512, 512, 1}},
    {"group_norm", "VAE at 128", group_norm, {128, 128, 512, 1}},
    {"group_norm", "VAE at 1024, without sums", group_norm, {1024, 1024, 128}},
    {"l2_norm", "Qwen-Image VAE at 1024", l2_norm, {1048576, 96}},
    {"pixels", "to u8", pixels, {1024, 1024}},
    {"posterior_sample", "", posterior_sample, {128, 128, 32}},
};
const size_t n_model_cases = sizeof model_cases / sizeof *model_cases;

const struct model_case tiny_cases[] = {
    {"linear", "", linear, {40, 64, 32}},
    {"linear", "bias, gate, residual", linear, {40, 64, 32, 0, 1, 1}},
    {"linear", "adapter", linear, {40, 64, 32, 32}},
    {"linear", "one row", linear, {1, 64, 32}},
    {"linear", "unpacked, one row", packed, {1, 64, 32, 0, LK_NF4, 64}},
    {"attention", "", attention, {64, 64, 2, 2, 64, 0}},
    {"attention", "causal", attention, {32, 32, 4, 2, 128, 1}},
    {"layer_norm", "modulated", layer_norm, {16, 64, 1}},
    {"rms_norm", "", rms_norm, {16, 64}},
    {"norm_rope", "", norm_rope, {16, 2, 64, 0, 1}},
    {"gated_act", "", gated_act, {16, 64}},
    {"activation", "", activation, {16, 64}},
    {"add", "", add, {16, 64}},
    {"copy", "f32 to bf16", copy, {16, 64}},
    {"euler_step", "f32", euler_step, {16, 64}},
    {"guidance", "", guidance, {16, 64}},
    {"pack_latents", "", pack_latents, {8, 8, 16}},
    {"conv2d", "3x3", conv2d, {8, 8, 16, 32, 3, 1}},
    {"conv2d", "enlarging", conv2d, {8, 8, 16, 32, 3, -2}},
    {"conv2d", "stride 2", conv2d, {8, 8, 16, 32, 3, 2}},
    {"group_norm", "", group_norm, {8, 8, 64}},
    {"group_norm", "with sums", group_norm, {8, 8, 128, 1}},
    {"l2_norm", "", l2_norm, {64, 96}},
    {"pixels", "to u8", pixels, {8, 8}},
    {"posterior_sample", "", posterior_sample, {8, 8, 16}},
};
const size_t n_tiny_cases = sizeof tiny_cases / sizeof *tiny_cases;
