/* Convolution as a matrix product: rows are output pixels, columns output channels, K runs over (ky, kx, c_in), so that
 * a row of A is kh kw runs of neighbouring channels. Pixels are gathered a K block at a time while they are packed;
 * there is no buffer of patches. Enlargement 2x2 and zero padding happen in the gather. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm/linear_store.h"

/* What the gathers need, and the epilogue as a linear layer over pixels. */
struct conv {
    const unsigned char *x, *w;
    int64_t h_in, w_in, c_in; /* before enlargement */
    int64_t w_out, kt, kh, kw;
    int64_t stride, upsample, pad_top, pad_left;
    size_t x_size, w_size; /* bytes per element */
    struct lk_tensor y, residual;
    struct lk_linear epilogue;
};

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Elements [k, k + n) of the patch under output pixel `pixel`. Few channels make this most of the work: one division by
 * each width, none inside the loop. */
static void gather_pixels(const void *context, int64_t pixel, int64_t k, int64_t n, void *out) {
    const struct conv *conv = context;
    const int64_t height = conv->upsample * conv->h_in, width = conv->upsample * conv->w_in;
    const int shift = conv->upsample == 2; /* upsample is 1 or 2 */
    int64_t tap = k / conv->c_in, c = k - tap * conv->c_in;
    int64_t ky = tap / conv->kw, kx = tap - ky * conv->kw;
    int64_t row = pixel / conv->w_out, column = pixel - row * conv->w_out;
    int64_t top = row * conv->stride - conv->pad_top, left = column * conv->stride - conv->pad_left;
    unsigned char *to = out;
    while (n > 0) {
        int64_t run = min64(conv->c_in - c, n), y = top + ky, x = left + kx;
        size_t bytes = (size_t)run * conv->x_size;
        if (y >= 0 && y < height && x >= 0 && x < width) {
            int64_t from = ((y >> shift) * conv->w_in + (x >> shift)) * conv->c_in + c;
            memcpy(to, conv->x + (size_t)from * conv->x_size, bytes);
        } else {
            memset(to, 0, bytes);
        }
        to += bytes;
        n -= run;
        c = 0;
        if (++kx == conv->kw) {
            kx = 0;
            ky++;
        }
    }
}

/* Elements [k, k + n) of filter `row`, from [C_in, kt, kh, kw] order, last kt only, to (ky, kx, c_in) order. */
static void gather_weights(const void *context, int64_t row, int64_t k, int64_t n, void *out) {
    const struct conv *conv = context;
    int64_t taps = conv->kh * conv->kw, tap = k / conv->c_in, c = k % conv->c_in;
    for (int64_t i = 0; i < n; i++) {
        int64_t from = ((row * conv->c_in + c + 1) * conv->kt - 1) * taps + tap;
        if (conv->w_size == sizeof(uint16_t))
            ((uint16_t *)out)[i] = ((const uint16_t *)conv->w)[from];
        else
            ((float *)out)[i] = ((const float *)conv->w)[from];
        if (++c == conv->c_in) {
            c = 0;
            tap++;
        }
    }
}

static struct lk_tensor pixels_by_channels(const struct lk_tensor *t) {
    return LK_TENSOR(t->data, t->dtype, t->shape[0] * t->shape[1], t->shape[2]);
}

/* As rows of pixels; one row for all lies 0 elements apart. */
static struct lk_tensor residual_rows(const struct lk_conv2d *op) {
    if (op->residual->n_dims == 3) return pixels_by_channels(op->residual);
    struct lk_tensor rows = pixels_by_channels(op->y);
    rows.data = op->residual->data;
    rows.ld = 0;
    return rows;
}

static struct lk_gemm product(const struct lk_conv2d *op, struct conv *conv) {
    const struct lk_tensor *x = op->x, *w = op->w;
    const struct lk_filters f = lk_filters_of(op);
    *conv = (struct conv){.x = x->data,
                          .w = w->data,
                          .h_in = x->shape[0],
                          .w_in = x->shape[1],
                          .c_in = x->shape[2],
                          .w_out = op->y->shape[1],
                          .kt = f.kt,
                          .kh = f.kh,
                          .kw = f.kw,
                          .stride = op->stride,
                          .upsample = op->upsample,
                          .pad_top = op->pad_top,
                          .pad_left = op->pad_left,
                          .x_size = lk_dtype_size(x->dtype),
                          .w_size = lk_dtype_size(w->dtype),
                          .y = pixels_by_channels(op->y)};
    conv->epilogue = (struct lk_linear){.y = &conv->y, .bias = op->bias};
    if (op->residual) {
        conv->residual = residual_rows(op);
        conv->epilogue.residual = &conv->residual;
    }
    struct lk_gemm g = {.m = conv->y.shape[0],
                        .n = w->shape[0],
                        .k = conv->c_in * conv->kh * conv->kw,
                        .a = {.dtype = x->dtype, .row = gather_pixels, .context = conv},
                        .b = {.dtype = w->dtype, .row = gather_weights, .context = conv},
                        .store = lk_linear_store(),
                        .store_context = &conv->epilogue};
    if (op->taps_first || conv->kt * conv->kh * conv->kw == 1) /* in the order of K */
        g.b = (struct lk_gemm_operand){.dtype = w->dtype, .data = w->data, .ld = g.k};
    return g;
}

size_t lk_cpu_conv2d_scratch(const struct lk_device *dev, const struct lk_conv2d *op) {
    struct conv conv;
    struct lk_gemm g = product(op, &conv);
    return lk_gemm_scratch(&g, dev->n_threads);
}

enum lk_code lk_cpu_conv2d(struct lk_device *dev, const struct lk_conv2d *op, void *scratch) {
    struct conv conv;
    struct lk_gemm g = product(op, &conv);
    lk_gemm_run(&g, dev->n_threads, scratch);
    return LK_OK;
}
