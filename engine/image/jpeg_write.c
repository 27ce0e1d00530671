/* JPEG writing: baseline, libjpeg's default tables and 4:2:0 chroma. */
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/image/internal.h"
#include "engine/image/jpeg_memory.h"

#define ENCODER_BYTES_MAX ((size_t)64 << 20)
#define BUFFER_BYTES      16384

struct encoder {
    struct lk_jpeg_job job;
    struct jpeg_compress_struct cinfo;
    struct jpeg_destination_mgr destination;
    struct lk_atomic_file *file; /* NULL: into `bytes` */
    unsigned char *bytes;
    size_t n_bytes, capacity;
    const unsigned char *exif;
    size_t n_exif;
    unsigned char buffer[BUFFER_BYTES];
};

static void start(j_compress_ptr cinfo) {
    struct encoder *e = (struct encoder *)cinfo->client_data;
    e->destination.next_output_byte = e->buffer;
    e->destination.free_in_buffer = BUFFER_BYTES;
}

static enum lk_code append(struct encoder *e, size_t n) {
    LK_TRY(lk_grow(&e->bytes, &e->capacity, e->n_bytes + n, 1));
    memcpy(e->bytes + e->n_bytes, e->buffer, n);
    e->n_bytes += n;
    return LK_OK;
}

static void write_out(struct encoder *e, size_t n) {
    enum lk_code rc = e->file ? lk_atomic_write(e->file, e->buffer, n) : append(e, n);
    if (rc) lk_jpeg_leave((j_common_ptr)&e->cinfo, rc);
}

/* libjpeg says "full" by calling this, whatever free_in_buffer holds. */
static boolean empty(j_compress_ptr cinfo) {
    write_out((struct encoder *)cinfo->client_data, BUFFER_BYTES);
    start(cinfo);
    return TRUE;
}

static void finish(j_compress_ptr cinfo) {
    struct encoder *e = (struct encoder *)cinfo->client_data;
    write_out(e, BUFFER_BYTES - e->destination.free_in_buffer);
}

/* A block that is longer than a segment goes on in the next, behind the same head. */
static void write_exif(struct encoder *e) {
    static const char head[6] = "Exif\0";
    enum { SEGMENT = 65533 - sizeof head };
    for (size_t at = 0; at < e->n_exif; at += SEGMENT) {
        const size_t n = e->n_exif - at < SEGMENT ? e->n_exif - at : SEGMENT;
        jpeg_write_m_header(&e->cinfo, JPEG_APP0 + 1, (unsigned)(sizeof head + n));
        for (size_t i = 0; i < sizeof head; i++) jpeg_write_m_byte(&e->cinfo, head[i]);
        for (size_t i = 0; i < n; i++) jpeg_write_m_byte(&e->cinfo, e->exif[at + i]);
    }
}

static enum lk_code encode(struct encoder *e, const struct lk_image *image, int quality) {
    if (setjmp(e->job.jump)) return e->job.code;
    e->cinfo.err = &e->job.error;
    e->cinfo.client_data = &e->job; /* the first field of e */
    jpeg_create_compress(&e->cinfo);
    lk_jpeg_use_memory((j_common_ptr)&e->cinfo, &e->job, ENCODER_BYTES_MAX);
    e->destination = (struct jpeg_destination_mgr){
        .init_destination = start, .empty_output_buffer = empty, .term_destination = finish};
    e->cinfo.dest = &e->destination;
    e->cinfo.image_width = (JDIMENSION)image->width;
    e->cinfo.image_height = (JDIMENSION)image->height;
    e->cinfo.input_components = image->channels;
    e->cinfo.in_color_space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->cinfo);
    jpeg_set_quality(&e->cinfo, quality, TRUE);
    jpeg_start_compress(&e->cinfo, TRUE);
    write_exif(e);
    size_t row = (size_t)image->width * (size_t)image->channels;
    while (e->cinfo.next_scanline < e->cinfo.image_height) {
        JSAMPROW from = image->pixels + e->cinfo.next_scanline * row;
        jpeg_write_scanlines(&e->cinfo, &from, 1);
    }
    jpeg_finish_compress(&e->cinfo);
    return LK_OK;
}

/* Whether the arguments are fit to be encoded, and an encoder for them. */
static enum lk_code make_encoder(struct encoder **out, const char *name, const struct lk_image *image, int quality) {
    LK_TRY(lk_image_check_size(name, image->width, image->height, INT64_MAX));
    if (quality < 1 || quality > 100)
        return lk_fail(LK_E_USAGE, "%s: expected a JPEG quality of 1 to 100, got %d", name, quality);
    if (image->channels == 2 || image->channels == 4)
        return lk_fail(LK_E_IMAGE, "%s: JPEG holds no alpha; write a PNG, or convert to RGB first", name);
    if (!(*out = lk_calloc(1, sizeof **out)))
        return lk_fail(LK_E_NOMEM, "%s: no memory to write it; free memory and try again", name);
    lk_jpeg_job_init(&(*out)->job, name);
    return LK_OK;
}

enum lk_code lk_jpeg_write(const char *path, const struct lk_image *image, int quality) {
    struct encoder *e;
    LK_TRY(make_encoder(&e, path, image, quality));
    enum lk_code rc = lk_atomic_open(&e->file, path);
    if (!rc) {
        rc = encode(e, image, quality);
        jpeg_destroy_compress(&e->cinfo);
        if (rc)
            lk_atomic_discard(e->file);
        else
            rc = lk_atomic_commit(e->file);
    }
    lk_free(e);
    return rc;
}

enum lk_code lk_image_jpeg_encode(const char *name, const struct lk_image *image, int quality, const void *exif,
                                  size_t n_exif, void **out, size_t *n_bytes) {
    struct encoder *e;
    *out = NULL;
    *n_bytes = 0;
    LK_TRY(make_encoder(&e, name, image, quality));
    e->exif = exif;
    e->n_exif = n_exif;
    enum lk_code rc = encode(e, image, quality);
    jpeg_destroy_compress(&e->cinfo);
    if (rc)
        lk_free(e->bytes);
    else {
        *out = e->bytes;
        *n_bytes = e->n_bytes;
    }
    lk_free(e);
    return rc;
}

enum lk_code lk_jpeg_encode(const char *name, const struct lk_image *image, int quality, void **out, size_t *n_bytes) {
    return lk_image_jpeg_encode(name, image, quality, NULL, 0, out, n_bytes);
}
