#include "models/face/yunet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "models/face/net_file.h"

enum { N_BLOCKS = 5, N_LEVELS = 3, FIRST_STRIDE = 8, MULTIPLE = 32, SIDE = 640 };
enum head { CLASS, BOX, OBJECT, POINTS, N_HEADS };
static const int head_channels[N_HEADS] = {1, 4, 1, 2 * LK_FACE_POINTS};

/* A convolution with its batch norm folded in: 3x3 over all channels with stride 2, 1x1, or 3x3 within each channel. */
struct conv {
    int in, out;
    float *w, *b; /* [out, in, 3, 3], [out, in] or [out, 3, 3]; [out] */
};
struct unit {
    struct conv point, deep;
    bool relu;
};

struct lk_yunet {
    struct conv stem;
    struct unit first, block[N_BLOCKS][2], lateral[N_LEVELS], shared[N_LEVELS], head[N_HEADS][N_LEVELS];
};

/* --- weights --- */

/* in, out: -1 for the file's own. */
static enum lk_code read_unit(struct lk_net_file *r, struct unit *u, int in, int out, bool relu, const char *name) {
    char norm[112];
    int64_t channels = 0;
    LK_TRY(lk_net_take(r, &u->point.w, true, 4, (int64_t[]){out, in, 1, 1}, &channels, "%s.conv1.weight", name));
    u->relu = relu;
    u->point.in = in, u->point.out = u->deep.in = u->deep.out = (int)channels;
    LK_TRY(lk_net_take(r, &u->point.b, true, 1, (int64_t[]){channels}, NULL, "%s.conv1.bias", name));
    LK_TRY(lk_net_take(r, &u->deep.w, true, 4, (int64_t[]){channels, 1, 3, 3}, NULL, "%s.conv2.weight", name));
    LK_TRY(lk_net_take(r, &u->deep.b, true, 1, (int64_t[]){channels}, NULL, "%s.conv2.bias", name));
    snprintf(norm, sizeof norm, "%s.bn", name);
    return relu ? lk_net_fold(r, u->deep.w, u->deep.b, u->deep.out, 9, false, norm) : LK_OK;
}

static enum lk_code read_net(struct lk_net_file *r, struct lk_yunet *net) {
    static const char *const heads[N_HEADS] = {"cls", "bbox", "obj", "kps"};
    char name[96];
    int64_t channels = 0;
    LK_TRY(lk_net_take(r, &net->stem.w, true, 4, (int64_t[]){-1, 3, 3, 3}, &channels, "backbone.model0.conv1.weight"));
    net->stem.in = 3, net->stem.out = (int)channels;
    LK_TRY(lk_net_take(r, &net->stem.b, true, 1, (int64_t[]){channels}, NULL, "backbone.model0.conv1.bias"));
    LK_TRY(lk_net_fold(r, net->stem.w, net->stem.b, net->stem.out, 27, false, "backbone.model0.bn1"));
    LK_TRY(read_unit(r, &net->first, net->stem.out, -1, true, "backbone.model0.conv2"));
    int at = net->first.deep.out;
    for (int i = 0; i < 2 * N_BLOCKS; i++) {
        struct unit *u = &net->block[i / 2][i % 2];
        snprintf(name, sizeof name, "backbone.model%d.conv%d", i / 2 + 1, i % 2 + 1);
        LK_TRY(read_unit(r, u, at, i < 4 ? -1 : at, true, name)); /* levels are added: one width from the second on */
        at = u->deep.out;
    }
    for (int i = 0; i < N_LEVELS; i++) {
        snprintf(name, sizeof name, "neck.lateral_convs.%d", i);
        LK_TRY(read_unit(r, &net->lateral[i], at, at, true, name));
        snprintf(name, sizeof name, "bbox_head.multi_level_share_convs.%d.0", i);
        LK_TRY(read_unit(r, &net->shared[i], at, -1, true, name));
        for (int h = 0; h < N_HEADS; h++) {
            snprintf(name, sizeof name, "bbox_head.multi_level_%s.%d", heads[h], i);
            LK_TRY(read_unit(r, &net->head[h][i], net->shared[i].deep.out, head_channels[h], false, name));
        }
    }
    return LK_OK;
}

enum lk_code lk_yunet_open(struct lk_yunet **out, const char *path) {
    struct lk_net_file r = {.path = path, .net = "YuNet"};
    *out = NULL;
    LK_TRY(lk_safetensors_open(&r.file, path));
    struct lk_yunet *net = lk_calloc(1, sizeof *net);
    enum lk_code rc = net ? read_net(&r, net) : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    if (!rc) rc = lk_net_check_rest(&r);
    lk_safetensors_close(&r.file);
    if (rc)
        lk_yunet_close(net);
    else
        *out = net;
    return rc;
}

static void free_unit(struct unit *u) {
    float *const all[] = {u->point.w, u->point.b, u->deep.w, u->deep.b};
    for (int i = 0; i < 4; i++) lk_free(all[i]);
}

void lk_yunet_close(struct lk_yunet *net) {
    if (!net) return;
    lk_free(net->stem.w);
    lk_free(net->stem.b);
    free_unit(&net->first);
    for (int i = 0; i < 2 * N_BLOCKS; i++) free_unit(&net->block[i / 2][i % 2]);
    for (int i = 0; i < N_LEVELS; i++) {
        free_unit(&net->lateral[i]);
        free_unit(&net->shared[i]);
        for (int h = 0; h < N_HEADS; h++) free_unit(&net->head[h][i]);
    }
    lk_free(net);
}

/* --- layers --- */

struct planes {
    int c, h, w;
    float *v; /* [c, h, w] */
};

static enum lk_code planes_new(struct planes *p, int c, int h, int w) {
    *p = (struct planes){c, h, w, lk_malloc((size_t)c * (size_t)h * (size_t)w * sizeof(float))};
    return p->v ? LK_OK : lk_fail(LK_E_NOMEM, "faces: out of memory for %d x %d x %d", c, h, w);
}

static float *plane(const struct planes *p, int c) { return p->v + (size_t)c * (size_t)p->h * (size_t)p->w; }

/* Adds in's 3x3 neighbourhoods times w to out; zeros around. out has in's size over the stride. */
static void add_3x3(const struct planes *in, int c, const float w[9], int stride, float *out, int out_h, int out_w) {
    for (int y = 0; y < out_h; y++)
        for (int k = 0; k < 9; k++) {
            int from = y * stride + k / 3 - 1, dx = k % 3 - 1;
            if (from < 0 || from >= in->h) continue;
            const float *row = plane(in, c) + (size_t)from * (size_t)in->w;
            for (int x = dx < 0; x < out_w && x * stride + dx < in->w; x++)
                out[(size_t)y * (size_t)out_w + (size_t)x] += w[k] * row[x * stride + dx];
        }
}

static void fill(const struct planes *p, int c, float value) {
    for (size_t i = 0, n = (size_t)p->h * (size_t)p->w; i < n; i++) plane(p, c)[i] = value;
}

static void relu(const struct planes *p) {
    for (size_t i = 0, n = (size_t)p->c * (size_t)p->h * (size_t)p->w; i < n; i++) p->v[i] = p->v[i] > 0 ? p->v[i] : 0;
}

static enum lk_code apply_stem(const struct conv *c, const struct planes *in, struct planes *out) {
    LK_TRY(planes_new(out, c->out, in->h / 2, in->w / 2));
    for (int o = 0; o < c->out; o++) {
        fill(out, o, c->b[o]);
        for (int i = 0; i < c->in; i++) add_3x3(in, i, c->w + (o * c->in + i) * 9, 2, plane(out, o), out->h, out->w);
    }
    relu(out);
    return LK_OK;
}

static enum lk_code apply(const struct unit *u, const struct planes *in, struct planes *out) {
    struct planes middle;
    const size_t n = (size_t)in->h * (size_t)in->w;
    LK_TRY(planes_new(&middle, u->point.out, in->h, in->w));
    enum lk_code rc = planes_new(out, u->deep.out, in->h, in->w);
    for (int o = 0; o < u->deep.out && !rc; o++) {
        float *to = plane(&middle, o);
        fill(&middle, o, u->point.b[o]);
        for (int i = 0; i < u->point.in; i++) {
            const float w = u->point.w[o * u->point.in + i], *from = plane(in, i);
            for (size_t p = 0; p < n; p++) to[p] += w * from[p];
        }
        fill(out, o, u->deep.b[o]);
        add_3x3(&middle, o, u->deep.w + o * 9, 1, plane(out, o), out->h, out->w);
    }
    if (!rc && u->relu) relu(out);
    lk_free(middle.v);
    return rc;
}

/* In place of x. */
static enum lk_code replace(const struct unit *u, struct planes *x) {
    struct planes out = {0};
    enum lk_code rc = apply(u, x, &out);
    lk_free(x->v);
    *x = out;
    return rc;
}

/* The largest of each 2x2, in place: what is written is read no more. */
static void pool(struct planes *x) {
    const size_t w = (size_t)x->w;
    float *to = x->v;
    for (int c = 0; c < x->c; c++)
        for (int y = 0; y < x->h / 2; y++)
            for (int i = 0; i < x->w / 2; i++) {
                const float *at = plane(x, c) + (size_t)(2 * y) * w + (size_t)(2 * i);
                *to++ = fmaxf(fmaxf(at[0], at[1]), fmaxf(at[w], at[w + 1]));
            }
    x->h /= 2, x->w /= 2;
}

static void add_doubled(const struct planes *x, const struct planes *half) {
    for (int c = 0; c < x->c; c++)
        for (int y = 0; y < x->h; y++)
            for (int i = 0; i < x->w; i++) plane(x, c)[y * x->w + i] += plane(half, c)[y / 2 * half->w + i / 2];
}

/* The levels that heads look at, of strides 8, 16 and 32. */
static enum lk_code features(const struct lk_yunet *net, const struct planes *picture, struct planes level[N_LEVELS]) {
    struct planes x = {0};
    enum lk_code rc = apply_stem(&net->stem, picture, &x);
    if (!rc) rc = replace(&net->first, &x);
    if (!rc) pool(&x);
    for (int i = 0; i < N_BLOCKS && !rc; i++) {
        int at = i - (N_BLOCKS - N_LEVELS);
        for (int k = 0; k < 2 && !rc; k++) rc = replace(&net->block[i][k], &x);
        if (!rc && at >= 0) {
            rc = planes_new(&level[at], x.c, x.h, x.w);
            if (!rc) memcpy(level[at].v, x.v, (size_t)x.c * (size_t)x.h * (size_t)x.w * sizeof *x.v);
        }
        if (!rc && i > 0 && i < N_BLOCKS - 1) pool(&x);
    }
    lk_free(x.v);
    for (int i = N_LEVELS - 1; i >= 0 && !rc; i--) {
        rc = replace(&net->lateral[i], &level[i]);
        if (!rc && i) add_doubled(&level[i - 1], &level[i]);
    }
    return rc;
}

/* --- faces --- */

struct found {
    struct lk_face *list;
    size_t n, capacity;
};

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static enum lk_code read_cells(const struct planes out[N_HEADS], int stride, double min_score, struct found *found) {
    for (int y = 0; y < out->h; y++)
        for (int x = 0; x < out->w; x++) {
            const size_t at = (size_t)(y * out->w + x);
            double score = sqrt(sigmoid(out[CLASS].v[at]) * sigmoid(out[OBJECT].v[at])), box[4];
            if (!(score >= min_score)) continue;
            for (int k = 0; k < 4; k++) box[k] = plane(&out[BOX], k)[at];
            double width = exp(box[2]) * stride, height = exp(box[3]) * stride;
            struct lk_face face = {.x = (float)((x + box[0]) * stride - width / 2),
                                   .y = (float)((y + box[1]) * stride - height / 2),
                                   .width = (float)width,
                                   .height = (float)height,
                                   .score = (float)score};
            for (int k = 0; k < 2 * LK_FACE_POINTS; k++)
                face.points[k / 2][k % 2] = (float)((plane(&out[POINTS], k)[at] + (k % 2 ? y : x)) * stride);
            LK_TRY(lk_grow(&found->list, &found->capacity, found->n + 1, sizeof *found->list));
            found->list[found->n++] = face;
        }
    return LK_OK;
}

static enum lk_code look(const struct lk_yunet *net, const struct planes *level, int i, double min_score,
                         struct found *found) {
    struct planes shared = {0}, out[N_HEADS] = {{0}};
    enum lk_code rc = apply(&net->shared[i], level, &shared);
    for (int h = 0; h < N_HEADS && !rc; h++) rc = apply(&net->head[h][i], &shared, &out[h]);
    if (!rc) rc = read_cells(out, FIRST_STRIDE << i, min_score, found);
    lk_free(shared.v);
    for (int h = 0; h < N_HEADS; h++) lk_free(out[h].v);
    return rc;
}

static int by_score(const void *a, const void *b) {
    const struct lk_face *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    if (x->y != y->y) return x->y < y->y ? -1 : 1;
    return (x->x > y->x) - (x->x < y->x);
}

static double overlap(const struct lk_face *a, const struct lk_face *b) {
    double w = fmin((double)a->x + a->width, (double)b->x + b->width) - fmax(a->x, b->x);
    double h = fmin((double)a->y + a->height, (double)b->y + b->height) - fmax(a->y, b->y);
    if (!(w > 0 && h > 0)) return 0;
    return w * h / ((double)a->width * a->height + (double)b->width * b->height - w * h);
}

static void keep_the_surest(struct found *found, double max_overlap) {
    size_t kept = 0;
    if (found->n) qsort(found->list, found->n, sizeof *found->list, by_score);
    for (size_t i = 0; i < found->n; i++) {
        bool new = true;
        for (size_t k = 0; k < kept && new; k++) new = overlap(&found->list[k], &found->list[i]) <= max_overlap;
        if (new) found->list[kept++] = found->list[i];
    }
    found->n = kept;
}

/* Blue, green, red from 0 to 255, with zeros right and below up to whole cells of the coarsest level. */
static enum lk_code picture_of(const struct lk_image *image, struct planes *out) {
    struct lk_image rgb = {0};
    const int h = (image->height + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    const int w = (image->width + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    LK_TRY(lk_image_to_rgb(&rgb, image));
    enum lk_code rc = planes_new(out, 3, h, w);
    for (int c = 0; c < 3 && !rc; c++) {
        fill(out, c, 0);
        for (int y = 0; y < rgb.height; y++)
            for (int x = 0; x < rgb.width; x++)
                plane(out, c)[y * w + x] = rgb.pixels[3 * ((size_t)y * (size_t)rgb.width + (size_t)x) + 2 - (size_t)c];
    }
    lk_image_free(&rgb);
    return rc;
}

static enum lk_code search_picture(const struct lk_yunet *net, const struct lk_image *image,
                                   const struct lk_yunet_search *search, struct found *found) {
    struct planes picture = {0}, level[N_LEVELS] = {{0}};
    enum lk_code rc = picture_of(image, &picture);
    if (!rc) rc = features(net, &picture, level);
    for (int i = 0; i < N_LEVELS && !rc; i++) rc = look(net, &level[i], i, search->min_score, found);
    lk_free(picture.v);
    for (int i = 0; i < N_LEVELS; i++) lk_free(level[i].v);
    if (!rc) keep_the_surest(found, search->max_overlap);
    return rc;
}

static void enlarge(struct lk_face *face, double sx, double sy) {
    face->x = (float)(face->x * sx), face->width = (float)(face->width * sx);
    face->y = (float)(face->y * sy), face->height = (float)(face->height * sy);
    for (int k = 0; k < LK_FACE_POINTS; k++) {
        face->points[k][0] = (float)(face->points[k][0] * sx);
        face->points[k][1] = (float)(face->points[k][1] * sy);
    }
}

enum lk_code lk_yunet_detect(const struct lk_yunet *net, const struct lk_image *image,
                             const struct lk_yunet_search *search, struct lk_face **faces, size_t *n) {
    const int side = search->max_side ? search->max_side : SIDE;
    const int longest = image->width > image->height ? image->width : image->height;
    struct lk_image reduced = {0};
    struct found found = {0};
    *faces = NULL, *n = 0;
    if (longest > side) {
        int w = (int)fmax(1, round((double)image->width * side / longest));
        int h = (int)fmax(1, round((double)image->height * side / longest));
        LK_TRY(lk_image_resize(&reduced, image, w, h, LK_RESAMPLE_BICUBIC));
    }
    const struct lk_image *seen = reduced.pixels ? &reduced : image;
    const double sx = (double)image->width / seen->width, sy = (double)image->height / seen->height;
    enum lk_code rc = search_picture(net, seen, search, &found);
    lk_image_free(&reduced);
    if (rc) {
        lk_free(found.list);
        return rc;
    }
    for (size_t i = 0; i < found.n; i++) enlarge(&found.list[i], sx, sy);
    *faces = found.list, *n = found.n;
    return LK_OK;
}
