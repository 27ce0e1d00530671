/* JPEG decoding with libjpeg-turbo's default settings (accurate integer DCT, smooth chroma upsampling), which are
 * Pillow's. The whole file is in memory: a request for more data means that it is truncated. */
#include <string.h>

#include "engine/image/internal.h"
#include "engine/image/jpeg_memory.h"

#include "engine/base/alloc.h"

/* Encoders write about 10 scans, 20 when they search for the smallest file. */
#define SCANS_MAX    100
#define SCANS_ALWAYS 20
/* Beyond SCANS_ALWAYS: pixels times scans, each of which walks over all blocks. 40 of a 100-megapixel picture. */
#define SCANNED_PIXELS_MAX ((int64_t)4000000000)
/* Every 8x8 block of the least finely sampled component (up to 32 x 32 pixels) costs a bit or more: a file shorter than
 * this many pixels per byte cannot hold what it declares. */
#define PIXELS_PER_BYTE_MAX 8192
#define DECODER_BYTES       ((size_t)16 << 20) /* tables, row buffers, edge blocks of narrow images */

struct decoder {
    struct lk_jpeg_job job;
    struct jpeg_decompress_struct cinfo;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    int64_t max_pixels;
    struct lk_image image;
};

static void do_nothing(j_decompress_ptr cinfo) { (void)cinfo; }

static boolean no_more_bytes(j_decompress_ptr cinfo) {
    (void)cinfo;
    return FALSE;
}

static void skip_bytes(j_decompress_ptr cinfo, long n) {
    size_t left = cinfo->src->bytes_in_buffer, skip = n < 0 ? 0 : (size_t)n > left ? left : (size_t)n;
    cinfo->src->next_input_byte += skip;
    cinfo->src->bytes_in_buffer -= skip;
}

static void check_scans(j_common_ptr cinfo) {
    j_decompress_ptr d = (j_decompress_ptr)cinfo;
    const struct lk_jpeg_job *job = cinfo->client_data;
    int64_t n_max = SCANNED_PIXELS_MAX / ((int64_t)d->image_width * d->image_height);
    if (n_max < SCANS_ALWAYS) n_max = SCANS_ALWAYS;
    if (n_max > SCANS_MAX) n_max = SCANS_MAX;
    if (d->input_scan_number > n_max)
        lk_jpeg_leave(cinfo, lk_fail(LK_E_IMAGE,
                                     "%s: JPEG: expected at most %d scans at this size, got more; save it again as a "
                                     "baseline JPEG",
                                     job->name, (int)n_max));
}

static void leave_truncated(struct decoder *d) {
    lk_jpeg_leave((j_common_ptr)&d->cinfo,
                  lk_fail(LK_E_IMAGE,
                          "%s: JPEG: expected more data, got the end of the file: it is truncated; get it again",
                          d->job.name));
}

static void read_header(struct decoder *d, size_t n_bytes) {
    j_decompress_ptr cinfo = &d->cinfo;
    const char *name = d->job.name;
    int found;
    do found = jpeg_read_header(cinfo, FALSE);
    while (found == JPEG_HEADER_TABLES_ONLY);
    if (found == JPEG_SUSPENDED) leave_truncated(d);
    int64_t width = cinfo->image_width, height = cinfo->image_height;
    enum lk_code rc = lk_image_check_size(name, width, height, d->max_pixels);
    if (!rc && cinfo->num_components != 1 && cinfo->num_components != 3 && cinfo->num_components != 4)
        rc = lk_fail(LK_E_IMAGE, "%s: JPEG: SOF: expected 1, 3 or 4 components, got %d; convert it first", name,
                     cinfo->num_components);
    if (!rc && width * height / PIXELS_PER_BYTE_MAX > (int64_t)n_bytes)
        rc = lk_fail(LK_E_IMAGE,
                     "%s: JPEG: SOF: declares %lld x %lld pixels, but %zu bytes cannot hold them; get it again", name,
                     (long long)width, (long long)height, n_bytes);
    if (rc) lk_jpeg_leave((j_common_ptr)cinfo, rc);
    cinfo->out_color_space = cinfo->num_components == 1   ? JCS_GRAYSCALE
                             : cinfo->num_components == 3 ? JCS_RGB
                                                          : JCS_CMYK;
}

static void read_rows(struct decoder *d) {
    j_decompress_ptr cinfo = &d->cinfo;
    if (!jpeg_start_decompress(cinfo)) leave_truncated(d);
    size_t width = cinfo->output_width, n = (size_t)cinfo->num_components;
    uint8_t *rows = d->image.unconverted ? d->image.unconverted : d->image.pixels;
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW to = rows + cinfo->output_scanline * width * n;
        if (jpeg_read_scanlines(cinfo, &to, 1) != 1) leave_truncated(d);
    }
    if (d->image.unconverted) {
        /* Adobe stores inverted inks and most others follow; Pillow assumes it for all CMYK files. */
        for (size_t i = 0; i < width * cinfo->output_height * 4; i++) rows[i] = (uint8_t)(255 - rows[i]);
        lk_image_convert(d->image.pixels, rows, width * cinfo->output_height, d->image.channels);
    }
    /* All rows are there: what follows the last of them may be missing, as Pillow allows. */
    jpeg_finish_decompress(cinfo);
}

static enum lk_code decode(struct decoder *d, const unsigned char *bytes, size_t n_bytes) {
    if (setjmp(d->job.jump)) return d->job.code;
    d->cinfo.err = &d->job.error;
    d->cinfo.client_data = &d->job;
    jpeg_create_decompress(&d->cinfo);
    lk_jpeg_use_memory((j_common_ptr)&d->cinfo, &d->job, DECODER_BYTES);
    d->source = (struct jpeg_source_mgr){.next_input_byte = bytes,
                                         .bytes_in_buffer = n_bytes,
                                         .init_source = do_nothing,
                                         .fill_input_buffer = no_more_bytes,
                                         .skip_input_data = skip_bytes,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = do_nothing};
    d->cinfo.src = &d->source;
    d->progress.progress_monitor = check_scans;
    d->cinfo.progress = &d->progress;
    read_header(d, n_bytes);
    int width = (int)d->cinfo.image_width, height = (int)d->cinfo.image_height, n = d->cinfo.num_components;
    enum lk_code rc = lk_image_new(&d->image, width, height, n == 1 ? 1 : 3);
    if (rc) return lk_fail_prefix(rc, "%s", d->job.name);
    if (n == 4 && !(d->image.unconverted = lk_malloc((size_t)width * (size_t)height * 4)))
        return lk_fail(LK_E_NOMEM, "%s: no memory for its inks; free memory and try again", d->job.name);
    /* A progressive file's coefficients take 2 bytes per sample, 4:4:4 CMYK being the most. */
    d->job.bytes_max = DECODER_BYTES + (size_t)width * (size_t)height * (size_t)n * 2;
    read_rows(d);
    return LK_OK;
}

enum lk_code lk_image_jpeg_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                  int64_t max_pixels) {
    struct decoder *d = lk_calloc(1, sizeof *d);
    if (!d) return lk_fail(LK_E_NOMEM, "%s: no memory to decode it; free memory and try again", name);
    lk_jpeg_job_init(&d->job, name);
    d->max_pixels = max_pixels;
    enum lk_code rc = decode(d, bytes, n_bytes);
    jpeg_destroy_decompress(&d->cinfo);
    if (!rc)
        *out = d->image;
    else
        lk_image_free(&d->image);
    lk_free(d);
    return rc;
}
