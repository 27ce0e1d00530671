#include "engine/base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"

#define BUFFER_BYTES ((size_t)1 << 20)

static void to_hex(const unsigned char *digest, size_t n, char out[65]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[2 * n] = 0;
}

static enum lk_code cannot(const char *path) {
    return lk_fail(LK_E_NOMEM, "%s: cannot hash: no memory, or the system's OpenSSL does not allow it", path);
}

/* Read, not mapped: a failing disk then is an error of one file and no signal. */
static enum lk_code add_contents(EVP_MD_CTX *context, int fd, const char *path, void *buffer) {
    for (;;) {
        ssize_t n = read(fd, buffer, BUFFER_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return lk_fail_errno(errno, "%s: cannot read", path);
        if (n == 0) return LK_OK;
        if (!EVP_DigestUpdate(context, buffer, (size_t)n)) return cannot(path);
    }
}

static enum lk_code digest(EVP_MD_CTX *context, enum lk_digest kind, int fd, const struct stat *st, const char *path,
                           char out[65]) {
    unsigned char value[EVP_MAX_MD_SIZE];
    unsigned int n_value = 0;
    char head[40] = "";
    int n_head = 0;
    if (kind == LK_DIGEST_GIT_BLOB) n_head = snprintf(head, sizeof head, "blob %lld", (long long)st->st_size) + 1;
    void *buffer = lk_malloc(BUFFER_BYTES);
    if (!buffer) return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    enum lk_code rc = LK_OK;
    if (!EVP_DigestInit_ex(context, kind == LK_DIGEST_GIT_BLOB ? EVP_sha1() : EVP_sha256(), NULL) ||
        !EVP_DigestUpdate(context, head, (size_t)n_head))
        rc = cannot(path);
    if (!rc) rc = add_contents(context, fd, path, buffer);
    if (!rc && !EVP_DigestFinal_ex(context, value, &n_value)) rc = cannot(path);
    if (!rc) to_hex(value, n_value, out);
    lk_free(buffer);
    return rc;
}

enum lk_code lk_digest_file(enum lk_digest kind, const char *path, char out[65]) {
    int fd;
    struct stat st;
    out[0] = 0;
    enum lk_code rc = lk_open_regular(path, &fd, &st);
    if (rc) return rc;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context)
        rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    else
        rc = digest(context, kind, fd, &st, path, out);
    EVP_MD_CTX_free(context);
    close(fd);
    return rc;
}

void lk_sha256(const void *bytes, size_t n_bytes, char out[65]) {
    unsigned char value[EVP_MAX_MD_SIZE];
    unsigned int n_value = 0;
    out[0] = 0;
    if (EVP_Digest(bytes, n_bytes, value, &n_value, EVP_sha256(), NULL)) to_hex(value, n_value, out);
}
