#include "engine/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "engine/base/alloc.h"
#include "engine/base/text.h"

static int open_as(const char *path) {
    int fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* The path, else the same path in the other of Unicode's two forms: Macs write an accent behind its letter, tables and
 * people write the letter with it, and no one sees a difference. */
static int open_either_form(const char *path) {
    int fd = open_as(path);
    if (fd >= 0 || errno != ENOENT) return fd;
    typedef utf8proc_uint8_t *form_fn(const utf8proc_uint8_t *);
    static form_fn *const forms[] = {utf8proc_NFC, utf8proc_NFD};
    for (int i = 0; fd < 0 && i < 2; i++) {
        char *other = (char *)forms[i]((const utf8proc_uint8_t *)path); /* NULL: not UTF-8 */
        if (other && strcmp(other, path) != 0) fd = open_as(other);
        free(other);
    }
    if (fd < 0) errno = ENOENT;
    return fd;
}

enum lk_code lk_open_regular(const char *path, int *out_fd, struct stat *st) {
    int fd = open_either_form(path);
    if (fd < 0) {
        if (errno == ELOOP) return lk_fail(LK_E_INPUT, "%s: symbolic links form a loop", path);
        if (errno == ENXIO || errno == ENODEV) return lk_fail(LK_E_NOT_REGULAR, "%s: expected a regular file", path);
        return lk_fail_errno(errno, "%s: cannot open", path);
    }
    enum lk_code rc = LK_OK;
    if (fstat(fd, st) < 0)
        rc = lk_fail_errno(errno, "%s: cannot stat", path);
    else if (!S_ISREG(st->st_mode))
        rc = lk_fail(LK_E_NOT_REGULAR, "%s: expected a regular file, got a %s", path,
                     S_ISDIR(st->st_mode) ? "folder" : "device, pipe or socket");
    if (rc) {
        close(fd);
        return rc;
    }
    *out_fd = fd;
    return LK_OK;
}

/* Up to n bytes; fewer at the end of the file. */
static enum lk_code read_up_to(int fd, const char *path, char *out, size_t n, size_t *got) {
    *got = 0;
    while (*got < n) {
        ssize_t some = read(fd, out + *got, n - *got);
        if (some < 0 && errno == EINTR) continue;
        if (some < 0) return lk_fail_errno(errno, "%s: cannot read", path);
        if (some == 0) break;
        *got += (size_t)some;
    }
    return LK_OK;
}

char *lk_path_beside(const char *file, const char *written) {
    const char *slash = *written == '/' ? NULL : strrchr(file, '/');
    char *path = lk_format("%.*s%s", slash ? (int)(slash + 1 - file) : 0, file, written);
    if (!path) lk_fail(LK_E_NOMEM, "%s: out of memory for the path %.200s", file, written);
    return path;
}

enum lk_code lk_read_file(const char *path, size_t max_bytes, char **out, size_t *out_bytes) {
    int fd;
    struct stat st;
    *out = NULL;
    *out_bytes = 0;
    enum lk_code rc = lk_open_regular(path, &fd, &st);
    if (rc) return rc;
    char *text = NULL;
    if ((uint64_t)st.st_size > max_bytes)
        rc = lk_fail(LK_E_INPUT, "%s: expected at most %zu bytes, got %lld", path, max_bytes, (long long)st.st_size);
    else if (!(text = lk_malloc((size_t)st.st_size + 1)))
        rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    else
        rc = read_up_to(fd, path, text, (size_t)st.st_size, out_bytes);
    close(fd);
    if (rc) {
        lk_free(text);
        return rc;
    }
    text[*out_bytes] = 0;
    *out = text;
    return LK_OK;
}
