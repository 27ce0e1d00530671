/* mask: a picture that says where an edit may change a source, around or inside of the faces in it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "models/common/mask.h"
#include "models/face/face_mask.h"
#include "models/face/yunet.h"
#include "tools/cli/cli.h"

static enum lk_code draw(const struct cli_arguments *a, const struct lk_image *source, struct lk_image *mask,
                         char **text) {
    const char *what = a->mask.keep ? a->mask.keep : a->mask.edit, *faces = a->report.faces;
    const struct lk_face_mask_recipe recipe = {
        {a->mask.keep != NULL, !strcmp(a->mask.shape, "ellipse"), a->mask.grow}, what, a->mask.several};
    struct lk_yunet *net = NULL;
    char sha256[65], net_sha256[65] = "";
    enum lk_code rc = lk_digest_file(LK_DIGEST_SHA256, a->positional, sha256);
    if (!rc && faces && !strcmp(what, "face")) rc = lk_yunet_open(&net, faces);
    if (!rc && net) rc = lk_digest_file(LK_DIGEST_SHA256, faces, net_sha256);
    if (!rc) rc = lk_face_mask_make(mask, text, &recipe, source, a->positional, sha256, net, net_sha256);
    if (net) lk_yunet_close(net);
    return rc;
}

/* Kept and edited exchanged. */
static enum lk_code invert(const char *path, struct lk_image *mask, char **text) {
    struct lk_image size = {0};
    char sha256[65];
    LK_TRY(lk_image_read(&size, path, true, 0));
    enum lk_code rc = lk_mask_read(path, &size, mask, &(int64_t){0});
    lk_image_free(&size);
    if (!rc) rc = lk_digest_file(LK_DIGEST_SHA256, path, sha256);
    if (rc) return rc;
    for (size_t i = 0; i < (size_t)mask->width * (size_t)mask->height; i++)
        mask->pixels[i] = (uint8_t)(255 - mask->pixels[i]);
    *text = lk_format("{\"inverse_of_sha256\":\"%s\"}", sha256);
    return *text ? LK_OK : lk_fail(LK_E_NOMEM, "mask: out of memory");
}

enum lk_code cli_mask(const struct cli_arguments *a) {
    const int n_given = (a->mask.keep != NULL) + (a->mask.edit != NULL) + a->mask.invert;
    struct lk_image source = {0}, mask = {0};
    struct stat from, to;
    char *text = NULL;
    if (n_given != 1)
        return lk_fail(LK_E_USAGE, "mask: expected --keep, --edit or --invert, got %s",
                       n_given ? "more than one" : "none");
    if (!a->output) return lk_fail(LK_E_USAGE, "--output: missing: the mask's file");
    if (!stat(a->positional, &from) && !stat(a->output, &to) && from.st_ino == to.st_ino && from.st_dev == to.st_dev)
        return lk_fail(LK_E_USAGE, "--output: %s: is the source itself; name another file", a->output);
    const char *dot = strrchr(a->output, '.');
    if (!dot || strcasecmp(dot, ".png") != 0)
        return lk_fail(LK_E_USAGE, "--output: %s: expected a name that ends in .png, the format that is written",
                       a->output);
    enum lk_code rc =
        a->mask.invert ? invert(a->positional, &mask, &text) : lk_image_read(&source, a->positional, true, 0);
    if (!rc && !a->mask.invert) rc = draw(a, &source, &mask, &text);
    const struct lk_png_text texts[] = {{"likeness mask", text}};
    if (!rc) rc = lk_png_write(a->output, &mask, texts, 1);
    if (!rc) puts(a->output);
    lk_free(text);
    lk_image_free(&source);
    lk_image_free(&mask);
    return rc;
}
