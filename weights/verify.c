#include "weights/verify.h"

#include <openssl/sha.h>
#include <stdio.h>

void lk_sha256(const void *bytes, size_t n_bytes, char out[65]) {
    unsigned char digest[SHA256_DIGEST_LENGTH] = {0};
    SHA256(bytes, n_bytes, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
