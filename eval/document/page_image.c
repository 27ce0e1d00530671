#include "eval/document/page_image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/data/data.h"
#include "eval/document/files.h"
#include "eval/document/page_parts.h"

enum lk_code lk_document_folder(const char *folder) {
    char path[LK_DOCUMENT_PATH_MAX];
    size_t n = strlen(folder);
    if (!n || n >= sizeof path)
        return lk_fail(LK_E_USAGE, "report: expected a folder's path of 1 to %zu bytes, got %zu", sizeof path - 1, n);
    memcpy(path, folder, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i]) continue;
        char end = path[i];
        path[i] = 0;
        struct stat st;
        if (mkdir(path, 0777) && errno != EEXIST)
            return lk_fail_errno(errno, "report: %s: cannot make the folder", path);
        if (!stat(path, &st) && !S_ISDIR(st.st_mode))
            return lk_fail(LK_E_IO, "report: %s: expected a folder, found a file; name another one", path);
        path[i] = end;
    }
    return LK_OK;
}

enum lk_code lk_document_file(const char *folder, const char *name, const char *ending, struct lk_text *text) {
    char path[LK_DOCUMENT_PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    enum lk_code rc = text->rc;
    if (!rc) rc = lk_atomic_write_file(path, text->bytes ? text->bytes : "", text->n);
    lk_text_free(text);
    return rc;
}

enum lk_code lk_document_table_files(const struct lk_table *table, const char *folder) {
    static const struct {
        const char *ending;
        void (*write)(const struct lk_table *, struct lk_text *);
    } formats[] = {
        {".csv", lk_table_csv}, {".json", lk_table_json}, {".md", lk_table_markdown}, {".tex", lk_table_latex}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct lk_text text = {0};
        formats[i].write(table, &text);
        LK_TRY(lk_document_file(folder, table->id, formats[i].ending, &text));
    }
    return LK_OK;
}

/* A rule of the page's style sheet with its colours in place of their names, which other programs do not know. The
 * first place where a colour is set is the light one. */
static void plain_rule(struct lk_text *out, const char *css, const char *rule, size_t n) {
    for (size_t i = 0; i < n;) {
        char name[32];
        size_t length = strcspn(rule + i, ")");
        const char *colour = NULL;
        if (!strncmp(rule + i, "var(--", 6) && length < sizeof name - 2) {
            snprintf(name, sizeof name, "%.*s: ", (int)(length - 4), rule + i + 4);
            colour = strstr(css, name);
        }
        if (colour) {
            colour += strlen(name);
            lk_text_bytes(out, colour, strcspn(colour, ";"));
        } else
            lk_text_bytes(out, rule + i, 1);
        i += colour ? length + 1 : 1;
    }
}

static void style(struct lk_text *out, const char *css) {
    lk_text_add(out, "<style>\nsvg { font-family: sans-serif; background: #fff; }\n");
    for (const char *line = css; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, "svg .", 5) || !strncmp(line, "svg text", 8)) {
            plain_rule(out, css, line, strcspn(line, "\n"));
            lk_text_add(out, "\n");
        }
    lk_text_add(out, "</style>\n");
}

static enum lk_code png_file(const struct lk_text *svg, const char *folder, const char *name) {
    char path[LK_DOCUMENT_PATH_MAX + 300];
    struct lk_image image;
    LK_TRY(svg->rc);
    LK_TRY(lk_figure_pixels(svg, &image));
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    enum lk_code rc = lk_png_write(path, &image, NULL, 0);
    lk_image_free(&image);
    return rc;
}

enum lk_code lk_document_drawing(const struct lk_figure *figure, const char *folder, const char *name, bool png) {
    const struct lk_run *run = figure->data->run;
    const char *svg = figure->wide.bytes, *inside = strchr(svg, '>') + 1;
    struct lk_data_file css;
    struct lk_text text = {0};
    if (!lk_data_find("page_style", &css)) return lk_fail(LK_E_INTERNAL, "the program has no data page_style");
    lk_text_bytes(&text, svg, (size_t)(inside - svg));
    if (run) {
        lk_text_html(&text, "\n<metadata>Run %s", run->name);
        lk_text_add(&text, "; configuration %s; ", run->configuration);
        if (run->n_nominal) lk_text_add(&text, "nominal N %lld; ", (long long)run->n_nominal);
        lk_text_add(&text, "valid N %lld</metadata>", (long long)run->n_valid);
    }
    lk_text_add(&text, "\n");
    style(&text, css.text);
    lk_text_bytes(&text, inside, figure->wide.n - (size_t)(inside - svg));
    enum lk_code rc = png ? png_file(&text, folder, name) : LK_OK;
    if (rc) lk_text_free(&text);
    return rc ? rc : lk_document_file(folder, name, ".svg", &text);
}

enum lk_code lk_document_figure_files(const struct lk_figure *figure, const char *folder, bool png) {
    LK_TRY(lk_document_table_files(figure->data, folder));
    return lk_document_drawing(figure, folder, figure->data->id, png);
}

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
