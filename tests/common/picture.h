/* Pictures by recipe, the same in Python (golden/generate_images.py, picture()), and short digests of their bytes. */
#pragma once

#include "engine/image/image.h"

#define TEST_DIGEST_DIGITS 16

/* kind 0: noise; 1: ramps; 2: black and white; 3: rings with a little noise. lk_image_free. */
struct lk_image test_picture(int kind, int seed, int width, int height, int channels);

/* The first digits of the SHA-256. */
void test_digest(const void *bytes, size_t n, char out[TEST_DIGEST_DIGITS + 1]);
/* Fails the test with `what` when the digest is another. */
void test_digest_is(const void *bytes, size_t n, const char *expected, const char *what);
