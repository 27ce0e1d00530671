/* PNG writing: one filter, one compression level, no time stamps, so that the bytes depend on pixels and texts only. */
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "engine/image/internal.h"

#define COMPRESSION_LEVEL 6

struct encoder {
    const char *path;
    struct lk_atomic_file *file; /* NULL: into `memory` */
    struct lk_text memory;
    png_structp png;
    png_infop info;
    enum lk_code code; /* of a failure that has its message already */
    bool out_of_memory;
    char text[200];
    struct lk_png_text_chunk chunk;
};

static void on_error(png_structp png, png_const_charp text) {
    struct encoder *e = png_get_error_ptr(png);
    snprintf(e->text, sizeof e->text, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
    struct encoder *e = png_get_mem_ptr(png);
    void *block = lk_malloc(bytes);
    if (!block) e->out_of_memory = true;
    return block;
}

static void release(png_structp png, png_voidp block) {
    (void)png;
    lk_free(block);
}

static void write_bytes(png_structp png, png_bytep bytes, size_t n) {
    struct encoder *e = png_get_io_ptr(png);
    if (e->file) {
        e->code = lk_atomic_write(e->file, bytes, n);
    } else {
        lk_text_bytes(&e->memory, (const char *)bytes, n);
        e->code = e->memory.rc;
    }
    if (e->code) png_error(png, "write");
}

static void flush(png_structp png) { (void)png; }

static enum lk_code encode(struct encoder *e, const struct lk_image *image, const struct lk_png_text *texts,
                           int n_texts) {
    static const int types[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(e->png))) {
        if (e->code) return e->code;
        if (e->out_of_memory) return lk_fail(LK_E_NOMEM, "%s: PNG: out of memory; free memory and try again", e->path);
        return lk_fail(LK_E_INTERNAL, "%s: PNG: %s", e->path, e->text);
    }
    png_set_write_fn(e->png, e, write_bytes, flush);
    png_set_IHDR(e->png, e->info, (png_uint_32)image->width, (png_uint_32)image->height, 8, types[image->channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(e->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_PAETH);
    png_set_compression_level(e->png, COMPRESSION_LEVEL);
    png_write_info(e->png, e->info);
    for (int i = 0; i < n_texts; i++) {
        enum lk_code rc = lk_png_text_encode(&texts[i], e->path, &e->chunk);
        if (rc) return rc;
        png_write_chunk(e->png, (png_const_bytep)e->chunk.type, e->chunk.data, e->chunk.n_bytes);
        lk_free(e->chunk.data);
        e->chunk.data = NULL;
    }
    size_t row = (size_t)image->width * (size_t)image->channels;
    for (size_t y = 0; y < (size_t)image->height; y++) png_write_row(e->png, image->pixels + y * row);
    png_write_end(e->png, NULL);
    return LK_OK;
}

/* To where `e` says. */
static enum lk_code write_image(struct encoder *e, const struct lk_image *image, const struct lk_png_text *texts,
                                int n_texts) {
    e->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, e, on_error, on_warning, e, allocate, release);
    if (e->png) e->info = png_create_info_struct(e->png);
    enum lk_code rc = e->info ? encode(e, image, texts, n_texts)
                              : lk_fail(LK_E_NOMEM, "%s: PNG: out of memory; free memory and try again", e->path);
    if (e->png) png_destroy_write_struct(&e->png, &e->info);
    lk_free(e->chunk.data);
    return rc;
}

enum lk_code lk_png_encode_with(const char *name, const struct lk_image *image, const struct lk_png_text *texts,
                                int n_texts, void **out, size_t *n_bytes) {
    struct encoder e = {.path = name};
    *out = NULL;
    *n_bytes = 0;
    LK_TRY(lk_image_check_size(name, image->width, image->height, INT64_MAX));
    enum lk_code rc = write_image(&e, image, texts, n_texts);
    if (rc) {
        lk_text_free(&e.memory);
        return rc;
    }
    *out = e.memory.bytes;
    *n_bytes = e.memory.n;
    return LK_OK;
}

enum lk_code lk_png_encode(const char *name, const struct lk_image *image, void **out, size_t *n_bytes) {
    return lk_png_encode_with(name, image, NULL, 0, out, n_bytes);
}

enum lk_code lk_png_write(const char *path, const struct lk_image *image, const struct lk_png_text *texts,
                          int n_texts) {
    struct encoder e = {.path = path};
    enum lk_code rc = lk_image_check_size(path, image->width, image->height, INT64_MAX);
    if (rc || (rc = lk_atomic_open(&e.file, path))) return rc;
    rc = write_image(&e, image, texts, n_texts);
    if (!rc) return lk_atomic_commit(e.file);
    lk_atomic_discard(e.file);
    return rc;
}
