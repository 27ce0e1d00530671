#include "eval/document/figure_draw.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "eval/document/files.h"

/* Drawings as pixels, by librsvg, which is looked for at run time: text needs fonts, and those are the machine's. */

enum { TIMES = 2, FORMAT_RGB24 = 1 }; /* pixels for each of the drawing's; cairo's name for 0x00RRGGBB */

struct rectangle {
    double x, y, width, height;
};

/* Of librsvg, and of cairo and GObject, which it links. */
struct library {
    void *(*read)(const uint8_t *data, size_t n, void **error);
    int (*size)(void *handle, double *width, double *height);
    int (*draw)(void *handle, void *cairo, const struct rectangle *viewport, void **error);
    void (*unref)(void *object);
    void *(*surface)(int format, int width, int height);
    unsigned char *(*data)(void *surface);
    int (*stride)(void *surface);
    void (*flush)(void *surface);
    void (*surface_free)(void *surface);
    void *(*begin)(void *surface);
    void (*white)(void *cairo, double r, double g, double b);
    void (*paint)(void *cairo);
    void (*end)(void *cairo);
};

/* Loaded until the program ends. */
static enum lk_code find(struct library *lib) {
    void *library = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *symbol;
        void *to;
    } functions[] = {{"rsvg_handle_new_from_data", &lib->read},
                     {"rsvg_handle_get_intrinsic_size_in_pixels", &lib->size},
                     {"rsvg_handle_render_document", &lib->draw},
                     {"g_object_unref", &lib->unref},
                     {"cairo_image_surface_create", &lib->surface},
                     {"cairo_image_surface_get_data", &lib->data},
                     {"cairo_image_surface_get_stride", &lib->stride},
                     {"cairo_surface_flush", &lib->flush},
                     {"cairo_surface_destroy", &lib->surface_free},
                     {"cairo_create", &lib->begin},
                     {"cairo_set_source_rgb", &lib->white},
                     {"cairo_paint", &lib->paint},
                     {"cairo_destroy", &lib->end}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = library ? dlsym(library, functions[i].symbol) : NULL;
        if (!address)
            return lk_fail(LK_E_USAGE,
                           "--png: expected librsvg 2.52 or later (package librsvg2-2), found %s; without --png charts "
                           "are SVG files",
                           library ? "an older one" : "none");
        memcpy(functions[i].to, &address, sizeof address);
    }
    return LK_OK;
}

static void copy(const struct library *lib, void *surface, struct lk_image *out) {
    const unsigned char *pixels = lib->data(surface);
    int stride = lib->stride(surface);
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            uint32_t rgb;
            memcpy(&rgb, pixels + (size_t)y * (size_t)stride + 4 * (size_t)x, sizeof rgb);
            for (int c = 0; c < 3; c++)
                out->pixels[3 * ((size_t)y * (size_t)out->width + (size_t)x) + (size_t)c] =
                    (uint8_t)(rgb >> (16 - 8 * c));
        }
}

enum lk_code lk_figure_pixels(const struct lk_text *svg, struct lk_image *out) {
    struct library lib;
    double width, height;
    memset(out, 0, sizeof *out);
    LK_TRY(find(&lib));
    void *handle = lib.read((const uint8_t *)svg->bytes, svg->n, NULL);
    if (!handle) return lk_fail(LK_E_INTERNAL, "librsvg cannot read a drawing of %zu bytes", svg->n);
    enum lk_code rc = lib.size(handle, &width, &height) && width >= 1 && height >= 1
                          ? lk_image_new(out, (int)ceil(TIMES * width), (int)ceil(TIMES * height), 3)
                          : lk_fail(LK_E_INTERNAL, "librsvg finds no size of a drawing");
    if (!rc) {
        void *surface = lib.surface(FORMAT_RGB24, out->width, out->height), *cairo = lib.begin(surface);
        const struct rectangle viewport = {0, 0, out->width, out->height};
        lib.white(cairo, 1, 1, 1);
        lib.paint(cairo);
        int drawn = lib.draw(handle, cairo, &viewport, NULL);
        lib.end(cairo);
        lib.flush(surface);
        if (drawn && lib.data(surface))
            copy(&lib, surface, out);
        else
            rc = lk_fail(LK_E_INTERNAL, "librsvg cannot draw %d x %d pixels", out->width, out->height);
        lib.surface_free(surface);
    }
    lib.unref(handle);
    if (rc) lk_image_free(out);
    return rc;
}

struct lk_draw lk_draw_begin(struct lk_figure *figure, bool narrow) {
    return (struct lk_draw){.out = narrow ? &figure->narrow : &figure->wide,
                            .width = narrow ? LK_DRAW_NARROW : LK_DRAW_WIDE,
                            .size = narrow ? 12 : 13,
                            .narrow = narrow};
}

/* ` NAME="12.3"` */
static void attribute(struct lk_draw *d, const char *name, double value) {
    char text[LK_NUMBER_MAX];
    lk_print_fixed(text, value, 1, false);
    size_t n = strlen(text);
    if (n > 2 && !strcmp(text + n - 2, ".0")) text[n - 2] = '\0';
    lk_text_add(d->out, " %s=\"%s\"", name, text);
}

static void class_attribute(struct lk_draw *d, const char *class_name) {
    if (class_name) lk_text_add(d->out, " class=\"%s\"", class_name);
}

void lk_draw_open(struct lk_draw *d, const struct lk_figure_head *head, double height) {
    char mark = d->narrow ? 'n' : 'w';
    d->height = ceil(height);
    lk_text_add(d->out, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" role=\"img\" aria-labelledby=\"",
                d->narrow ? "narrow" : "wide");
    lk_print_fragment(d->out, head->id);
    lk_text_add(d->out, "-%ct ", mark);
    lk_print_fragment(d->out, head->id);
    lk_text_add(d->out,
                "-%cd\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" font-size=\"%.0f\">\n<title id=\"",
                mark, d->width, d->height, d->width, d->height, d->size);
    lk_print_fragment(d->out, head->id);
    lk_text_html(d->out, "-%ct\">%s</title>\n<desc id=\"", mark, head->title ? head->title : "");
    lk_print_fragment(d->out, head->id);
    lk_text_html(d->out, "-%cd\">%s</desc>\n", mark, head->description ? head->description : "");
}

void lk_draw_close(struct lk_draw *d) { lk_text_add(d->out, "</svg>\n"); }

/* Widths in thousandths of the size: those of a wide sans serif (DejaVu Sans), since the reader's font is not known. */
double lk_draw_text_width(const char *utf8, double size) {
    double units = 0;
    for (size_t left = strlen(utf8); left;) {
        uint32_t c;
        size_t n = lk_utf8_decode(utf8, left, &c);
        if (!n) n = 1;
        if (c >= 0x1100)
            units += c >= 0x2000 && c < 0x2e80 ? 800 : 1000;
        else if (c < 0x80 && strchr("iljtfrI.,:;'|!()[] -/", (int)c))
            units += 375;
        else if (c < 0x80 && strchr("MW%mw@", (int)c))
            units += 930;
        else
            units += c >= 'A' && c <= 'Z' ? 720 : 620;
        utf8 += n;
        left -= n;
    }
    return units * size / 1000;
}

static void box(struct lk_draw *d, double x, double y, double w, double h) {
    lk_text_add(d->out, "<rect");
    attribute(d, "x", x);
    attribute(d, "y", y);
    attribute(d, "width", w > 0 ? w : 0);
    attribute(d, "height", h > 0 ? h : 0);
}

void lk_draw_rect(struct lk_draw *d, double x, double y, double w, double h, const char *class_name) {
    box(d, x, y, w, h);
    class_attribute(d, class_name);
    lk_text_add(d->out, "/>\n");
}

void lk_draw_fill_rect(struct lk_draw *d, double x, double y, double w, double h, uint32_t rgb) {
    box(d, x, y, w, h);
    lk_text_add(d->out, " fill=\"#%06x\"/>\n", (unsigned)rgb);
}

void lk_draw_line(struct lk_draw *d, double x1, double y1, double x2, double y2, const char *class_name) {
    lk_text_add(d->out, "<line");
    attribute(d, "x1", x1);
    attribute(d, "y1", y1);
    attribute(d, "x2", x2);
    attribute(d, "y2", y2);
    class_attribute(d, class_name);
    lk_text_add(d->out, "/>\n");
}

void lk_draw_circle(struct lk_draw *d, double x, double y, double r, const char *class_name) {
    lk_text_add(d->out, "<circle");
    attribute(d, "cx", x);
    attribute(d, "cy", y);
    attribute(d, "r", r);
    class_attribute(d, class_name);
    lk_text_add(d->out, "/>\n");
}

void lk_draw_text(struct lk_draw *d, double x, double y, char anchor, const char *class_name, const char *text) {
    lk_text_add(d->out, "<text");
    attribute(d, "x", x);
    attribute(d, "y", y);
    if (anchor != 's') lk_text_add(d->out, " text-anchor=\"%s\"", anchor == 'm' ? "middle" : "end");
    class_attribute(d, class_name);
    lk_text_html(d->out, ">%s</text>\n", text);
}

/* Bytes of `text` that make one line of `width`: broken at a space, within a word only when it is the first. */
static size_t line_bytes(const char *text, double width, double size, bool *cut) {
    char line[256];
    size_t n = strlen(text), best = 0;
    *cut = false;
    for (size_t at = 0; at <= n && at < sizeof line - 1; at++) {
        bool end = at == n || text[at] == ' ';
        if (!end) continue;
        memcpy(line, text, at);
        line[at] = '\0';
        if (at && lk_draw_text_width(line, size) > width) break;
        best = at;
    }
    if (best || !n) return best;
    *cut = true;
    for (size_t at = 0; at < n && at < sizeof line - 4;) {
        uint32_t c;
        size_t step = lk_utf8_decode(text + at, n - at, &c);
        if (!step) step = 1;
        memcpy(line, text, at + step);
        line[at + step] = '\0';
        if (at && lk_draw_text_width(line, size) > width - 0.7 * size) break;
        at += step;
        best = at;
    }
    return best;
}

int lk_draw_paragraph(struct lk_draw *d, double x, double y, char anchor, const char *class_name, const char *text,
                      double width, double size, int lines) {
    int n = 0;
    while (*text && n < lines) {
        bool cut;
        size_t bytes = line_bytes(text, width, size, &cut);
        const char *rest = text + bytes + strspn(text + bytes, " ");
        char line[264];
        snprintf(line, sizeof line, "%.*s%s", (int)bytes, text, *rest && (cut || n + 1 == lines) ? "\xe2\x80\xa6" : "");
        if (d) lk_draw_text(d, x, y + n * 1.15 * size, anchor, class_name, line);
        n++;
        if (cut) break;
        text = rest;
    }
    return n;
}

static void data_attribute(struct lk_draw *d, const char *name, double value) {
    lk_text_add(d->out, " data-%s=\"", name);
    lk_text_number(d->out, value);
    lk_text_add(d->out, "\"");
}

static void data_attributes(struct lk_draw *d, const struct lk_figure_value *v, const char *const names[3]) {
    if (!v || v->none) return;
    data_attribute(d, names[0], v->n ? (double)v->k / (double)v->n : v->value);
    if (!lk_figure_has_interval(v)) return;
    data_attribute(d, names[1], v->low);
    data_attribute(d, names[2], v->high);
}

void lk_draw_group(struct lk_draw *d, const char *a, const char *b, const char *text,
                   const struct lk_figure_value *value, const struct lk_figure_value *to) {
    lk_text_add(d->out, "<g");
    data_attributes(d, value, (const char *const[]){"value", "low", "high"});
    data_attributes(d, to, (const char *const[]){"to", "to-low", "to-high"});
    lk_text_html(d->out, "><title>%s", a);
    if (b) {
        lk_text_html(d->out, ", %s", b);
    }
    lk_text_html(d->out, ": %s</title>\n", text);
}

void lk_draw_group_end(struct lk_draw *d) { lk_text_add(d->out, "</g>\n"); }

double lk_legend(struct lk_draw *d, const char *const *names, int n, const char *swatch, double y, bool draw) {
    double x = 0, line = 1.6 * d->size, mark = 0.85 * d->size, top = y;
    for (int i = 0; i < n; i++) {
        double width = mark + 6 + lk_draw_text_width(names[i], d->size) + 16;
        if (x > 0 && x + width > d->width) {
            x = 0;
            top += line;
        }
        if (draw) {
            char class_name[32];
            snprintf(class_name, sizeof class_name, "%s%d", swatch, i + 1);
            lk_draw_rect(d, x, top + 0.3 * d->size, mark, mark, class_name);
            lk_draw_text(d, x + mark + 6, top + 1.08 * d->size, 's', NULL, names[i]);
        }
        x += width;
    }
    return top + line + 4 - y;
}
