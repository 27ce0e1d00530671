/* mask: a picture that says where an edit may change a source, around or inside of the faces in it. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "models/face/face_mask.h"
#include "models/face/yunet.h"
#include "tools/cli/cli.h"

struct found {
    struct lk_face *faces;
    size_t n;
    double (*boxes)[4];
    int n_boxes;
    char net[65];
};

static enum lk_code add_face(struct found *f, const struct lk_face *face) {
    const double box[4] = {face->x, face->y, face->width, face->height};
    memcpy(f->boxes[f->n_boxes++], box, sizeof box);
    return LK_OK;
}

/* The faces that --several chooses. */
static enum lk_code find_faces(const struct cli_arguments *a, const struct lk_image *source, struct found *f) {
    const struct lk_yunet_search search = {.min_score = 0.6, .max_overlap = 0.3};
    struct lk_yunet *net;
    size_t largest = 0;
    if (!a->report.faces)
        return lk_fail(LK_E_USAGE, "--faces: missing: the weights of YuNet, a .safetensors file, which finds faces");
    LK_TRY(lk_yunet_open(&net, a->report.faces));
    enum lk_code rc = lk_digest_file(LK_DIGEST_SHA256, a->report.faces, f->net);
    if (!rc) rc = lk_yunet_detect(net, source, &search, &f->faces, &f->n);
    lk_yunet_close(net);
    LK_TRY(rc);
    if (!f->n) return lk_fail(LK_E_INPUT, "%s: expected a face, found none", a->positional);
    if (f->n > 1 && !strcmp(a->mask.several, "refuse"))
        return lk_fail(LK_E_INPUT, "%s: expected one face, found %zu; --several all or largest says which are meant",
                       a->positional, f->n);
    if (!(f->boxes = lk_calloc(f->n, sizeof *f->boxes))) return lk_fail(LK_E_NOMEM, "mask: out of memory");
    for (size_t i = 1; i < f->n; i++)
        if (f->faces[i].width * f->faces[i].height > f->faces[largest].width * f->faces[largest].height) largest = i;
    if (!strcmp(a->mask.several, "largest")) return add_face(f, &f->faces[largest]);
    for (size_t i = 0; i < f->n; i++) LK_TRY(add_face(f, &f->faces[i]));
    return LK_OK;
}

static enum lk_code read_box(const char *option, const char *text, struct found *f) {
    double *box;
    int end = 0;
    if (!(f->boxes = lk_calloc(1, sizeof *f->boxes))) return lk_fail(LK_E_NOMEM, "mask: out of memory");
    box = f->boxes[0];
    f->n_boxes = 1;
    if (sscanf(text, "%lf,%lf,%lf,%lf%n", &box[0], &box[1], &box[2], &box[3], &end) == 4 && !text[end]) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected face or X,Y,WIDTH,HEIGHT, got \"%.60s\"", option, text);
}

/* How it was made, in the file: a reader of the study needs no other. */
static char *describe(const struct cli_arguments *a, const struct found *f, const char *sha256) {
    struct lk_text out = {0};
    lk_text_add(&out, "{\"source_sha256\":\"%s\",\"%s\":[", sha256, a->mask.keep ? "keep" : "edit");
    for (int i = 0; i < f->n_boxes; i++)
        lk_text_add(&out, "%s[%.9g,%.9g,%.9g,%.9g]", i ? "," : "", f->boxes[i][0], f->boxes[i][1], f->boxes[i][2],
                    f->boxes[i][3]);
    lk_text_add(&out, "],\"grow\":%.9g,\"shape\":\"%s\"", a->mask.grow, a->mask.shape);
    if (*f->net) lk_text_add(&out, ",\"surest\":%.9g,\"net_sha256\":\"%s\"", (double)f->faces[0].score, f->net);
    lk_text_add(&out, "}");
    if (!out.rc) return out.bytes;
    lk_text_free(&out);
    return NULL;
}

enum lk_code cli_mask(const struct cli_arguments *a) {
    const char *what = a->mask.keep ? a->mask.keep : a->mask.edit;
    const struct lk_face_mask how = {a->mask.keep != NULL, !strcmp(a->mask.shape, "ellipse"), a->mask.grow};
    struct lk_image source = {0}, mask = {0};
    struct found f = {0};
    struct stat from, to;
    char sha256[65];
    if (!a->mask.keep == !a->mask.edit)
        return lk_fail(LK_E_USAGE, "mask: expected --keep or --edit, got %s", a->mask.keep ? "both" : "neither");
    if (!a->output) return lk_fail(LK_E_USAGE, "--output: missing: the mask's file");
    if (!stat(a->positional, &from) && !stat(a->output, &to) && from.st_ino == to.st_ino && from.st_dev == to.st_dev)
        return lk_fail(LK_E_USAGE, "--output: %s: is the source itself; name another file", a->output);
    enum lk_code rc = lk_image_read(&source, a->positional, 1, 0);
    if (!rc) rc = lk_digest_file(LK_DIGEST_SHA256, a->positional, sha256);
    if (!rc)
        rc = strcmp(what, "face") ? read_box(a->mask.keep ? "--keep" : "--edit", what, &f) : find_faces(a, &source, &f);
    if (!rc) rc = lk_face_mask_draw(&mask, source.width, source.height, (const double(*)[4])f.boxes, f.n_boxes, &how);
    char *text = rc ? NULL : describe(a, &f, sha256);
    const struct lk_png_text texts[] = {{"likeness mask", text}};
    if (!rc) rc = text ? lk_png_write(a->output, &mask, texts, 1) : lk_fail(LK_E_NOMEM, "mask: out of memory");
    if (!rc) puts(a->output);
    lk_free(text);
    lk_free(f.faces);
    lk_free(f.boxes);
    lk_image_free(&source);
    lk_image_free(&mask);
    return rc;
}
