#include "models/face/face_mask.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"
#include "models/face/yunet.h"

enum { LEAST_SHARE = 100 }; /* one in so many pixels is edited at least */

static bool belongs(const double box[4], const struct lk_face_mask *how, int x, int y) {
    const double half_x = (0.5 + how->grow) * box[2], half_y = (0.5 + how->grow) * box[3];
    const double dx = x + 0.5 - (box[0] + box[2] / 2), dy = y + 0.5 - (box[1] + box[3] / 2);
    if (how->ellipse) return dx * dx / (half_x * half_x) + dy * dy / (half_y * half_y) <= 1;
    return dx >= -half_x && dx < half_x && dy >= -half_y && dy < half_y;
}

enum lk_code lk_face_mask_draw(struct lk_image *out, int width, int height, const double (*boxes)[4], int n,
                               const struct lk_face_mask *how) {
    const int64_t n_pixels = (int64_t)width * height;
    int64_t n_edited = 0;
    *out = (struct lk_image){0};
    if (!(how->grow >= 0 && how->grow <= 10))
        return lk_fail(LK_E_USAGE, "grow: expected a number from 0 to 10, got %g", how->grow);
    for (int i = 0; i < n; i++) {
        bool good = boxes[i][2] > 0 && boxes[i][3] > 0;
        for (int k = 0; k < 4; k++) good = good && isfinite(boxes[i][k]) && fabs(boxes[i][k]) < 1e6;
        if (!good)
            return lk_fail(LK_E_INPUT,
                           "box: expected X,Y,WIDTH,HEIGHT in pixels with width and height above 0, got "
                           "%g,%g,%g,%g",
                           boxes[i][0], boxes[i][1], boxes[i][2], boxes[i][3]);
    }
    LK_TRY(lk_image_new(out, width, height, 1));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            bool in = false;
            for (int i = 0; i < n && !in; i++) in = belongs(boxes[i], how, x, y);
            const bool edited = in != how->keep;
            out->pixels[(size_t)y * (size_t)width + (size_t)x] = edited ? 255 : 0;
            n_edited += edited;
        }
    if (n_edited * LEAST_SHARE >= n_pixels && n_edited < n_pixels) return LK_OK;
    lk_image_free(out);
    return lk_fail(LK_E_INPUT,
                   "mask: expected at least 1 %% of the picture to edit and some to keep, got %.2f %% to edit",
                   100.0 * (double)n_edited / (double)n_pixels);
}

/* --- by a recipe --- */

struct boxes {
    double (*list)[4];
    int n;
    double surest; /* score of a face; 0: by hand */
};

static void add_face(struct boxes *b, const struct lk_face *face) {
    const double box[4] = {face->x, face->y, face->width, face->height};
    memcpy(b->list[b->n++], box, sizeof box);
}

static enum lk_code choose_faces(const struct lk_face_mask_recipe *r, const char *name, const struct lk_face *faces,
                                 size_t n, struct boxes *b) {
    size_t largest = 0;
    if (!n) return lk_fail(LK_E_INPUT, "%s: expected a face, found none", name);
    if (n > 1 && !strcmp(r->several, "refuse"))
        return lk_fail(LK_E_INPUT, "%s: expected one face, found %zu; several (all or largest) says which are meant",
                       name, n);
    if (!(b->list = lk_calloc(n, sizeof *b->list))) return lk_fail(LK_E_NOMEM, "mask: out of memory");
    b->surest = (double)faces[0].score;
    for (size_t i = 1; i < n; i++)
        if (faces[i].width * faces[i].height > faces[largest].width * faces[largest].height) largest = i;
    for (size_t i = 0; i < n; i++)
        if (i == largest || strcmp(r->several, "largest")) add_face(b, &faces[i]);
    return LK_OK;
}

static enum lk_code find_boxes(const struct lk_face_mask_recipe *r, const struct lk_image *source, const char *name,
                               const struct lk_yunet *net, struct boxes *b) {
    const struct lk_yunet_search search = {.min_score = 0.6, .max_overlap = 0.3};
    struct lk_face *faces;
    size_t n;
    double *box;
    int end = 0;
    if (!strcmp(r->what, "face")) {
        if (!net)
            return lk_fail(LK_E_USAGE, "faces: missing: the weights of YuNet, a .safetensors file, which finds faces");
        LK_TRY(lk_yunet_detect(net, source, &search, &faces, &n));
        const enum lk_code rc = choose_faces(r, name, faces, n, b);
        lk_free(faces);
        return rc;
    }
    if (!(b->list = lk_calloc(1, sizeof *b->list))) return lk_fail(LK_E_NOMEM, "mask: out of memory");
    box = b->list[0];
    b->n = 1;
    if (sscanf(r->what, "%lf,%lf,%lf,%lf%n", &box[0], &box[1], &box[2], &box[3], &end) == 4 && !r->what[end])
        return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected face or X,Y,WIDTH,HEIGHT, got \"%.60s\"", r->how.keep ? "keep" : "edit",
                   r->what);
}

/* A reader of the file needs no other. */
static enum lk_code describe(const struct lk_face_mask_recipe *r, const struct boxes *b, const char *source_sha256,
                             const char *net_sha256, char **text) {
    struct lk_text out = {0};
    lk_text_add(&out, "{\"source_sha256\":\"%s\",\"%s\":[", source_sha256, r->how.keep ? "keep" : "edit");
    for (int i = 0; i < b->n; i++)
        lk_text_add(&out, "%s[%.9g,%.9g,%.9g,%.9g]", i ? "," : "", b->list[i][0], b->list[i][1], b->list[i][2],
                    b->list[i][3]);
    lk_text_add(&out, "],\"grow\":%.9g,\"shape\":\"%s\"", r->how.grow, r->how.ellipse ? "ellipse" : "box");
    if (b->surest > 0) lk_text_add(&out, ",\"surest\":%.9g,\"net_sha256\":\"%s\"", b->surest, net_sha256);
    lk_text_add(&out, "}");
    *text = out.rc ? NULL : out.bytes;
    if (out.rc) lk_text_free(&out);
    return *text ? LK_OK : lk_fail(LK_E_NOMEM, "mask: out of memory");
}

enum lk_code lk_face_mask_make(struct lk_image *out, char **text, const struct lk_face_mask_recipe *recipe,
                               const struct lk_image *source, const char *name, const char *source_sha256,
                               const struct lk_yunet *net, const char *net_sha256) {
    struct boxes boxes = {0};
    *out = (struct lk_image){0};
    *text = NULL;
    enum lk_code rc = find_boxes(recipe, source, name, net, &boxes);
    if (!rc)
        rc = lk_face_mask_draw(out, source->width, source->height, (const double(*)[4])boxes.list, boxes.n,
                               &recipe->how);
    if (!rc && (rc = describe(recipe, &boxes, source_sha256, net_sha256, text))) lk_image_free(out);
    lk_free(boxes.list);
    return rc;
}
