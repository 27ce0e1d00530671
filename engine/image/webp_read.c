/* WebP decoding through libwebp; of an animation the first frame. */
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "engine/base/alloc.h"
#include "engine/image/internal.h"

bool lk_webp_has_signature(const unsigned char *bytes, size_t n_bytes) {
    return n_bytes >= 12 && !memcmp(bytes, "RIFF", 4) && !memcmp(bytes + 8, "WEBP", 4);
}

static enum lk_code damaged(const char *name, VP8StatusCode status) {
    if (status == VP8_STATUS_OUT_OF_MEMORY)
        return lk_fail(LK_E_NOMEM, "%s: WebP: out of memory; free memory and try again", name);
    return lk_fail(LK_E_IMAGE, "%s: WebP: %s; get it again or convert it", name,
                   status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED ? "the file is truncated"
                   : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "it has a feature that libwebp does not know"
                                                              : "the file is damaged");
}

static enum lk_code decode_still(struct lk_image *image, const unsigned char *bytes, size_t n_bytes, const char *name) {
    const int stride = image->width * image->channels;
    const size_t size = (size_t)stride * (size_t)image->height;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return lk_fail(LK_E_INTERNAL, "%s: another version of libwebp", name);
    config.output.colorspace = image->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){image->pixels, stride, size};
    VP8StatusCode status = WebPDecode(bytes, n_bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return status == VP8_STATUS_OK ? LK_OK : damaged(name, status);
}

static enum lk_code decode_first_frame(struct lk_image *image, const unsigned char *bytes, size_t n_bytes,
                                       const char *name) {
    const WebPData data = {bytes, n_bytes};
    const size_t n = (size_t)image->width * (size_t)image->height, channels = (size_t)image->channels;
    uint8_t *frame;
    int timestamp;
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, NULL);
    const bool read = decoder && WebPAnimDecoderGetNext(decoder, &frame, &timestamp);
    for (size_t i = 0; i < n && read; i++) memcpy(image->pixels + i * channels, frame + 4 * i, channels);
    WebPAnimDecoderDelete(decoder);
    return read ? LK_OK : damaged(name, VP8_STATUS_BITSTREAM_ERROR);
}

enum lk_code lk_image_webp_decode(struct lk_image *out, const unsigned char *bytes, size_t n_bytes, const char *name,
                                  int64_t max_pixels) {
    WebPBitstreamFeatures features;
    VP8StatusCode status = WebPGetFeatures(bytes, n_bytes, &features);
    if (status != VP8_STATUS_OK) return damaged(name, status);
    LK_TRY(lk_image_check_size(name, features.width, features.height, max_pixels));
    enum lk_code rc = lk_image_new(out, features.width, features.height, features.has_alpha ? 4 : 3);
    if (rc) return lk_fail_prefix(rc, "%s", name);
    rc = (features.has_animation ? decode_first_frame : decode_still)(out, bytes, n_bytes, name);
    if (rc) lk_image_free(out);
    return rc;
}

enum lk_code lk_webp_chunk(const unsigned char *bytes, size_t n_bytes, const char *type, unsigned char **out,
                           size_t *n_out) {
    const WebPData data = {bytes, n_bytes};
    WebPDemuxer *demuxer = WebPDemux(&data);
    WebPChunkIterator chunk;
    enum lk_code rc = LK_OK;
    *out = NULL;
    *n_out = 0;
    if (demuxer && WebPDemuxGetChunk(demuxer, type, 1, &chunk)) {
        *out = lk_malloc(chunk.chunk.size + 1);
        if (*out)
            memcpy(*out, chunk.chunk.bytes, *n_out = chunk.chunk.size);
        else
            rc = lk_fail(LK_E_NOMEM, "image: no memory for its %s chunk; free memory and try again", type);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    WebPDemuxDelete(demuxer);
    return rc;
}
