/* Drawings as pixels, by librsvg, which is looked for at run time: text needs fonts, and those are the machine's. */
#include "eval/document/files.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

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
