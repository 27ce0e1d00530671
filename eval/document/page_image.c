#include "eval/document/page_image.h"

#include "engine/base/alloc.h"
#include "eval/document/page_parts.h"

#define SIDE_DEFAULT 256
#define QUALITY      80
#define BLOCKS_FACE  7 /* along a face: below what recognition needs */
#define PIXELS_MAX   ((int64_t)100000000)
#define FACE_MARGIN  6 /* the box grows by 1/6 on each side, for detectors cut it close */

static void flatten(struct lk_image *image, int x0, int y0, int x1, int y1) {
    uint64_t sum[4] = {0}, n = (uint64_t)(x1 - x0) * (uint64_t)(y1 - y0);
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            for (int c = 0; c < image->channels; c++)
                sum[c] +=
                    image->pixels[((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels + (size_t)c];
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            for (int c = 0; c < image->channels; c++)
                image->pixels[((size_t)y * (size_t)image->width + (size_t)x) * (size_t)image->channels + (size_t)c] =
                    (uint8_t)((2 * sum[c] + n) / (2 * n));
}

static int64_t clip(int64_t value, int64_t most) { return value < 0 ? 0 : value > most ? most : value; }

void lk_image_mosaic(struct lk_image *image, int left, int top, int width, int height, int across) {
    int64_t x0 = clip(left, image->width), x1 = clip((int64_t)left + width, image->width);
    int64_t y0 = clip(top, image->height), y1 = clip((int64_t)top + height, image->height);
    if (x0 >= x1 || y0 >= y1 || across < 1) return;
    int64_t longer = x1 - x0 > y1 - y0 ? x1 - x0 : y1 - y0, block = (longer + across - 1) / across;
    for (int64_t y = y0; y < y1; y += block)
        for (int64_t x = x0; x < x1; x += block)
            flatten(image, (int)x, (int)y, (int)(x + block < x1 ? x + block : x1),
                    (int)(y + block < y1 ? y + block : y1));
}

static int scaled(int value, int side, int longest) {
    int result = (int)(((int64_t)value * side + longest / 2) / longest);
    return result < 1 ? 1 : result;
}

enum lk_code lk_image_read_small(struct lk_image *out, const char *file, int side, int original[2]) {
    struct lk_image raw = {0}, rgb = {0};
    enum lk_code rc = lk_image_read(&raw, file, 1, PIXELS_MAX);
    if (!rc) rc = lk_image_to_rgb(&rgb, &raw);
    lk_image_free(&raw);
    if (rc) return rc;
    original[0] = rgb.width;
    original[1] = rgb.height;
    int longest = rgb.width > rgb.height ? rgb.width : rgb.height;
    if (longest <= side) {
        *out = rgb;
        return LK_OK;
    }
    rc = lk_image_resize(out, &rgb, scaled(rgb.width, side, longest), scaled(rgb.height, side, longest),
                         LK_RESAMPLE_LANCZOS);
    lk_image_free(&rgb);
    return rc;
}

/* False: nothing of it lies in the picture. */
static bool hide_face(struct lk_image *image, const int original[2], const int face[4]) {
    bool inside = face[2] > 0 && face[3] > 0 && face[0] < original[0] && face[1] < original[1] &&
                  (int64_t)face[0] + face[2] > 0 && (int64_t)face[1] + face[3] > 0;
    if (!inside) return false;
    int64_t box[4]; /* left, top, right, bottom, grown by the margin, in pixels of the small picture */
    for (int i = 0; i < 4; i++) {
        int axis = i % 2, side = axis ? image->height : image->width;
        int64_t margin = face[2 + axis] / FACE_MARGIN + 1, at = face[axis];
        at = clip(i < 2 ? at - margin : at + face[2 + axis] + margin, original[axis]);
        box[i] = (at * side + (i < 2 ? 0 : original[axis] - 1)) / original[axis];
    }
    lk_image_mosaic(image, (int)box[0], (int)box[1], (int)(box[2] - box[0]), (int)(box[3] - box[1]), BLOCKS_FACE);
    return true;
}

void lk_image_hide(struct lk_image *small, const int size[2], const int *faces, size_t n) {
    bool hidden = false;
    for (size_t i = 0; i < n; i++) hidden |= hide_face(small, size, faces + 4 * i);
    if (!hidden) lk_image_mosaic(small, 0, 0, small->width, small->height, LK_MOSAIC_WHOLE);
}

enum lk_code lk_page_embed(struct lk_text *out, const struct lk_page_image *image, int side, bool safe, bool *found,
                           int size[2]) {
    struct lk_image small = {0};
    int original[2];
    void *jpeg;
    size_t n;
    *found = false;
    if (!image->file) return LK_OK;
    enum lk_code rc = lk_image_read_small(&small, image->file, side > 0 ? side : SIDE_DEFAULT, original);
    if (rc == LK_E_NOMEM || rc == LK_E_INTERNAL) return rc;
    if (rc) return LK_OK; /* the page says that it is missing */
    if (safe) lk_image_hide(&small, original, image->face, 1);
    rc = lk_jpeg_encode(image->file, &small, QUALITY, &jpeg, &n);
    size[0] = small.width;
    size[1] = small.height;
    lk_image_free(&small);
    if (rc) return rc;
    lk_text_add(out, "data:image/jpeg;base64,");
    lk_text_base64(out, jpeg, n);
    lk_free(jpeg);
    *found = true;
    return out->rc;
}

void lk_page_note_unfit(struct lk_page *page, const char *file) {
    if (!page->unfit && !(page->unfit = lk_store_text(&page->store, file)))
        page->rc = lk_fail(LK_E_NOMEM, "%s: no memory for its name; free memory and try again", file);
}

const char *lk_page_unfit(const struct lk_page *page) { return page->unfit; }

enum lk_code lk_page_img(struct lk_page *page, struct lk_text *out, const struct lk_page_image *image) {
    const char *alt = image->alt ? image->alt : "";
    int size[2] = {image->width, image->height};
    bool found = image->link != NULL, unfit = false;
    struct lk_text src = {0};
    enum lk_code rc;
    if (page->options.images == LK_PAGE_LINKED)
        rc = found ? lk_page_href(&src, image->link) : LK_OK;
    else
        rc = lk_page_embed(&src, image, image->side ? image->side : page->options.image_side,
                           page->options.images == LK_PAGE_AUDIT_SAFE && !image->is_safe, &found, size);
    if (rc == LK_E_NOMEM && page->options.images != LK_PAGE_LINKED) {
        lk_page_note_unfit(page, image->file);
        unfit = true;
        rc = page->rc;
    }
    if (!rc && found) {
        lk_text_add(out, "<img loading=\"lazy\" decoding=\"async\" src=\"%s\"", src.bytes);
        if (size[0] > 0 && size[1] > 0) lk_text_add(out, " width=\"%d\" height=\"%d\"", size[0], size[1]);
        lk_text_html(out, " alt=\"%s\">", alt);
    } else if (!rc) {
        lk_text_html(out, "<span class=\"missing\">%s", alt);
        lk_text_add(out, "%simage %s</span>", alt[0] ? ": " : "", unfit ? "does not fit into memory" : "missing");
    }
    if (!rc) rc = src.rc ? src.rc : out->rc;
    lk_text_free(&src);
    return rc;
}
