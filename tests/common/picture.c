#include "tests/common/picture.h"

#include <openssl/sha.h>

#include "tests/common/test.h"

static uint8_t sample(int kind, int seed, unsigned x, unsigned y, unsigned c, unsigned channels, uint64_t r) {
    if (channels % 2 == 0 && c == channels - 1) {
        const uint8_t alphas[4] = {0, 255, (uint8_t)(r >> 56), 128};
        return alphas[(r >> 8) & 3];
    }
    switch (kind) {
    case 0:
        return (uint8_t)(r >> 56);
    case 1:
        return (uint8_t)(x * (1 + (unsigned)seed % 7) + y * (1 + (unsigned)seed / 7 % 5) + c * 40);
    case 2:
        return r >> 63 ? 255 : 0;
    default:
        return (uint8_t)(((((x * x + y * y * 3) >> 4) + c * 60) & 239) + (r >> 60));
    }
}

struct lk_image test_picture(int kind, int seed, int width, int height, int channels) {
    struct lk_image image;
    assert_ok(lk_image_new(&image, width, height, channels));
    uint64_t state = (uint64_t)seed;
    uint8_t *to = image.pixels;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *to++ =
                    sample(kind, seed, (unsigned)x, (unsigned)y, (unsigned)c, (unsigned)channels, test_random(&state));
    return image;
}

void test_digest(const void *bytes, size_t n, char out[TEST_DIGEST_DIGITS + 1]) {
    unsigned char sha[SHA256_DIGEST_LENGTH];
    SHA256(bytes, n, sha);
    for (int i = 0; i < TEST_DIGEST_DIGITS / 2; i++) snprintf(out + 2 * i, 3, "%02x", sha[i]);
}

void test_digest_is(const void *bytes, size_t n, const char *expected, const char *what) {
    char got[TEST_DIGEST_DIGITS + 1];
    test_digest(bytes, n, got);
    if (strcmp(got, expected) != 0) fail_msg("%s: digest %s, expected %s", what, got, expected);
}
