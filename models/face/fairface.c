#include "models/face/fairface.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/alloc.h"
#include "engine/ops.h"
#include "models/face/net_file.h"

enum { SIDE = 224, PICTURE = 800, CHIP = 300, N_LAYERS = 4, MAX_BLOCKS = 6, STEM = 64, LAST = 512 };
static const int n_blocks[N_LAYERS] = {3, 4, 6, 3};

/* A convolution with its batch norm folded in. */
struct conv {
    int in, out, side, stride;
    float *w, *b; /* [out, in, side, side], [out] */
};
struct block {
    struct conv first, second, shortcut; /* shortcut.w NULL: the block's input itself */
};

struct lk_fairface {
    struct conv stem;
    struct block blocks[N_LAYERS][MAX_BLOCKS];
    float *fc, *fc_bias; /* [18, 512], [18] */
    struct lk_device *dev;
};

/* --- weights --- */

static enum lk_code read_conv(struct lk_net_file *r, struct conv *c, const struct conv *shape, const char *name,
                              const char *norm) {
    *c = *shape;
    LK_TRY(lk_net_take(r, &c->w, true, 4, (int64_t[]){c->out, c->in, c->side, c->side}, NULL, "%s.weight", name));
    c->b = lk_calloc((size_t)c->out, sizeof *c->b);
    if (!c->b) return lk_fail(LK_E_NOMEM, "%s: out of memory", r->path);
    return lk_net_fold(r, c->w, c->b, c->out, (size_t)(c->in * c->side * c->side), true, norm);
}

static enum lk_code read_block(struct lk_net_file *r, struct block *b, int in, int out, int stride, const char *at) {
    const struct conv shapes[] = {{in, out, 3, stride, NULL, NULL}, {out, out, 3, 1, NULL, NULL}};
    struct conv *const convs[] = {&b->first, &b->second};
    char name[64], norm[64];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.conv%d", at, i + 1);
        snprintf(norm, sizeof norm, "%s.bn%d", at, i + 1);
        LK_TRY(read_conv(r, convs[i], &shapes[i], name, norm));
    }
    if (stride == 1 && in == out) return LK_OK;
    snprintf(name, sizeof name, "%s.downsample.0", at);
    snprintf(norm, sizeof norm, "%s.downsample.1", at);
    return read_conv(r, &b->shortcut, &(struct conv){in, out, 1, stride, NULL, NULL}, name, norm);
}

static enum lk_code read_net(struct lk_net_file *r, struct lk_fairface *net) {
    char name[32];
    int in = STEM;
    LK_TRY(read_conv(r, &net->stem, &(struct conv){3, STEM, 7, 2, NULL, NULL}, "conv1", "bn1"));
    for (int l = 0; l < N_LAYERS; l++)
        for (int i = 0; i < n_blocks[l]; i++, in = STEM << l) {
            snprintf(name, sizeof name, "layer%d.%d", l + 1, i);
            LK_TRY(read_block(r, &net->blocks[l][i], in, STEM << l, l && !i ? 2 : 1, name));
        }
    LK_TRY(lk_net_take(r, &net->fc, true, 2, (int64_t[]){LK_FAIRFACE_OUTPUTS, LAST}, NULL, "fc.weight"));
    return lk_net_take(r, &net->fc_bias, true, 1, (int64_t[]){LK_FAIRFACE_OUTPUTS}, NULL, "fc.bias");
}

enum lk_code lk_fairface_open(struct lk_fairface **out, const char *path, int n_threads) {
    struct lk_net_file r = {.path = path, .net = "ResNet-34"};
    *out = NULL;
    LK_TRY(lk_safetensors_open(&r.file, path));
    struct lk_fairface *net = lk_calloc(1, sizeof *net);
    enum lk_code rc = net ? read_net(&r, net) : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    if (!rc) rc = lk_net_check_rest(&r);
    if (!rc) rc = lk_device_cpu_create(n_threads, &net->dev);
    lk_safetensors_close(&r.file);
    if (rc)
        lk_fairface_close(net);
    else
        *out = net;
    return rc;
}

static void free_conv(struct conv *c) {
    lk_free(c->w);
    lk_free(c->b);
}

void lk_fairface_close(struct lk_fairface *net) {
    if (!net) return;
    free_conv(&net->stem);
    for (int l = 0; l < N_LAYERS; l++)
        for (int i = 0; i < n_blocks[l]; i++) {
            free_conv(&net->blocks[l][i].first);
            free_conv(&net->blocks[l][i].second);
            free_conv(&net->blocks[l][i].shortcut);
        }
    lk_free(net->fc);
    lk_free(net->fc_bias);
    if (net->dev) lk_device_free(net->dev);
    lk_free(net);
}

/* --- the net --- */

struct planes {
    int64_t side, c;
    float *v; /* [side, side, c] */
};

static struct lk_tensor tensor(const struct planes *p) { return LK_TENSOR(p->v, LK_F32, p->side, p->side, p->c); }

static void relu(const struct planes *p) {
    for (int64_t i = 0, n = p->side * p->side * p->c; i < n; i++) p->v[i] = p->v[i] > 0 ? p->v[i] : 0;
}

/* y takes its shape from c; residual NULL: none. */
static enum lk_code apply(struct lk_device *dev, const struct conv *c, const struct planes *x, struct planes *y,
                          const struct planes *residual) {
    const int pad = c->side / 2;
    y->side = (x->side + 2 * pad - c->side) / c->stride + 1;
    y->c = c->out;
    struct lk_tensor in = tensor(x), out = tensor(y), add = residual ? tensor(residual) : (struct lk_tensor){0};
    struct lk_tensor w = LK_TENSOR(c->w, LK_F32, c->out, c->in, c->side, c->side), b = LK_TENSOR(c->b, LK_F32, c->out);
    return lk_conv2d(dev, &(struct lk_conv2d){.y = &out,
                                              .x = &in,
                                              .w = &w,
                                              .bias = &b,
                                              .residual = residual ? &add : NULL,
                                              .stride = c->stride,
                                              .upsample = 1,
                                              .pad_top = pad,
                                              .pad_left = pad,
                                              .pad_bottom = pad,
                                              .pad_right = pad});
}

/* The largest of each 3 x 3 with stride 2; what lies outside is none. */
static void pool(const struct planes *x, struct planes *y) {
    y->side = (x->side - 1) / 2 + 1;
    y->c = x->c;
    for (int64_t i = 0; i < y->side * y->side * y->c; i++) {
        const int64_t c = i % y->c, left = i / y->c % y->side * 2 - 1, top = i / y->c / y->side * 2 - 1;
        float most = -INFINITY;
        for (int64_t at = 0; at < 9; at++) {
            const int64_t u = left + at % 3, v = top + at / 3;
            if (u >= 0 && v >= 0 && u < x->side && v < x->side) most = fmaxf(most, x->v[(v * x->side + u) * x->c + c]);
        }
        y->v[i] = most;
    }
}

/* spare [3]; the result is in *x. */
static enum lk_code run_block(struct lk_device *dev, const struct block *b, struct planes *x, struct planes *spare) {
    struct planes *residual = x;
    LK_TRY(apply(dev, &b->first, x, &spare[0], NULL));
    relu(&spare[0]);
    if (b->shortcut.w) {
        residual = &spare[1];
        LK_TRY(apply(dev, &b->shortcut, x, residual, NULL));
    }
    LK_TRY(apply(dev, &b->second, &spare[0], &spare[2], residual));
    relu(&spare[2]);
    struct planes old = *x;
    *x = spare[2];
    spare[2] = old;
    return LK_OK;
}

static enum lk_code new_buffers(struct lk_device *dev, struct planes buffers[4]) {
    const int64_t most = SIDE / 2 * (SIDE / 2) * STEM;
    for (int i = 0; i < 4; i++) {
        struct lk_tensor t;
        LK_TRY(LK_NEW(&dev->arena, &t, LK_F32, most));
        buffers[i] = (struct planes){.v = t.data};
    }
    return LK_OK;
}

static void read_pixels(const struct lk_image *rgb, struct planes *out) {
    static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    out->side = SIDE;
    out->c = 3;
    for (int i = 0; i < SIDE * SIDE * 3; i++) out->v[i] = ((float)rgb->pixels[i] / 255 - mean[i % 3]) / std[i % 3];
}

static enum lk_code run_net(const struct lk_fairface *net, const struct lk_image *rgb, float *logits) {
    struct planes at[4];
    LK_TRY(new_buffers(net->dev, at));
    read_pixels(rgb, &at[0]);
    LK_TRY(apply(net->dev, &net->stem, &at[0], &at[1], NULL));
    relu(&at[1]);
    pool(&at[1], &at[0]);
    for (int l = 0; l < N_LAYERS; l++)
        for (int i = 0; i < n_blocks[l]; i++) LK_TRY(run_block(net->dev, &net->blocks[l][i], &at[0], &at[1]));
    const int64_t n = at[0].side * at[0].side;
    for (int o = 0; o < LK_FAIRFACE_OUTPUTS; o++) {
        double sum = net->fc_bias[o];
        for (int c = 0; c < LAST; c++) {
            double mean = 0;
            for (int64_t p = 0; p < n; p++) mean += (double)at[0].v[p * LAST + c];
            sum += mean / (double)n * net->fc[o * LAST + c];
        }
        logits[o] = (float)sum;
    }
    return LK_OK;
}

enum lk_code lk_fairface_classify(struct lk_fairface *net, const struct lk_image *chip,
                                  float logits[LK_FAIRFACE_OUTPUTS]) {
    struct lk_image rgb, small = {0};
    LK_TRY(lk_image_to_rgb(&rgb, chip));
    enum lk_code rc = lk_image_resize(&small, &rgb, SIDE, SIDE, LK_RESAMPLE_BILINEAR);
    if (!rc) rc = lk_device_prepare(net->dev, (size_t)32 << 20);
    if (!rc) {
        size_t mark = lk_arena_mark(&net->dev->arena);
        rc = run_net(net, &small, logits);
        lk_arena_release(&net->dev->arena, mark);
    }
    lk_image_free(&rgb);
    lk_image_free(&small);
    return rc;
}

/* --- the chip --- */

/* Between four pixels, cut off to bytes; black where one of them is not there. */
static void sample(const struct lk_image *rgb, double x, double y, uint8_t out[3]) {
    const double left = floor(x), top = floor(y), u = x - left, v = y - top;
    if (left < 0 || top < 0 || left + 1 >= rgb->width || top + 1 >= rgb->height) {
        out[0] = out[1] = out[2] = 0;
        return;
    }
    const uint8_t *a = rgb->pixels + 3 * ((size_t)top * (size_t)rgb->width + (size_t)left);
    const uint8_t *b = a + 3 * (size_t)rgb->width;
    for (int c = 0; c < 3; c++)
        out[c] = (uint8_t)((1 - v) * ((1 - u) * a[c] + u * a[c + 3]) + v * ((1 - u) * b[c] + u * b[c + 3]));
}

/* To a longest side of 800 as dlib's bilinear resize. */
static enum lk_code reduce(const struct lk_image *rgb, struct lk_image *out) {
    const int longest = rgb->width > rgb->height ? rgb->width : rgb->height;
    const int w = (int)((int64_t)PICTURE * rgb->width / longest), h = (int)((int64_t)PICTURE * rgb->height / longest);
    LK_TRY(lk_image_new(out, w > 1 ? w : 2, h > 1 ? h : 2, 3));
    const double sx = (rgb->width - 1.0) / (out->width - 1.0), sy = (rgb->height - 1.0) / (out->height - 1.0);
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            /* The last row and column have no neighbour beyond them: just before them is as near. */
            double at_x = fmin(x * sx, rgb->width - 1 - 1e-9), at_y = fmin(y * sy, rgb->height - 1 - 1e-9);
            sample(rgb, at_x, at_y, out->pixels + 3 * ((size_t)y * (size_t)out->width + (size_t)x));
        }
    return LK_OK;
}

/* Where dlib's template has the middle of the eye on the picture's left and right, in the chip. */
#define IN_CHIP(a, b) ((0.25 + ((a) + (b)) / 2) / 1.5 * CHIP)
static const double eyes[2][2] = {
    {IN_CHIP(0.1205750620789, 0.3340850613712), IN_CHIP(0.2137274526848, 0.2290642403242)},
    {IN_CHIP(0.8595674595992, 0.6460604764104), IN_CHIP(0.2134981538014, 0.2289674387677)}};

enum lk_code lk_fairface_chip(const struct lk_image *image, const struct lk_face *face, struct lk_image *chip) {
    struct lk_image rgb, reduced = {0};
    const float(*eye)[2] = face->points;
    if (!(fabsf(eye[0][0] - eye[1][0]) + fabsf(eye[0][1] - eye[1][1]) >= 1))
        return lk_fail(LK_E_INPUT, "faces: both eyes of the face that was found lie in one place");
    LK_TRY(lk_image_to_rgb(&rgb, image));
    enum lk_code rc = rgb.width < 2 || rgb.height < 2 ? lk_fail(LK_E_IMAGE_SIZE, "faces: a picture of one row")
                                                      : reduce(&rgb, &reduced);
    if (!rc) rc = lk_image_new(chip, CHIP, CHIP, 3);
    if (rc) {
        lk_image_free(&rgb);
        lk_image_free(&reduced);
        return rc;
    }
    const double sx = (double)reduced.width / rgb.width, sy = (double)reduced.height / rgb.height;
    const double from[2] = {eye[0][0] * sx, eye[0][1] * sy}, to[2] = {eye[1][0] * sx, eye[1][1] * sy};
    const double ex = eyes[1][0] - eyes[0][0], ey = eyes[1][1] - eyes[0][1], n = ex * ex + ey * ey;
    /* The similarity (a, b; -b, a) that takes the template's eyes to the face's. */
    const double dx = to[0] - from[0], dy = to[1] - from[1];
    const double a = (ex * dx + ey * dy) / n, b = (ex * dy - ey * dx) / n;
    /* dlib lays the chip's 299 steps over a box of its scaled side less one. */
    const double scale = sqrt(a * a + b * b), step = (CHIP - 1 / scale) / (CHIP - 1);
    for (int y = 0; y < CHIP; y++)
        for (int x = 0; x < CHIP; x++) {
            const double u = (x - (CHIP - 1) / 2.0) * step + CHIP / 2 - eyes[0][0];
            const double v = (y - (CHIP - 1) / 2.0) * step + CHIP / 2 - eyes[0][1];
            sample(&reduced, from[0] + a * u - b * v, from[1] + b * u + a * v,
                   chip->pixels + 3 * ((size_t)y * CHIP + (size_t)x));
        }
    lk_image_free(&rgb);
    lk_image_free(&reduced);
    return LK_OK;
}
