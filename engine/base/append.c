#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/append.h"

enum { LOCK_TRIES = 30 }; /* a tenth of a second each */

/* The file's length, and whether its last line has no end. */
static enum lk_code look_at(int fd, const char *path, off_t *length, bool *cut_off) {
    struct stat st;
    char last = '\n';
    if (fstat(fd, &st)) return lk_fail_errno(errno, "%s: cannot look at it", path);
    if (!S_ISREG(st.st_mode)) return lk_fail(LK_E_NOT_REGULAR, "%s: expected a regular file", path);
    if (st.st_size && pread(fd, &last, 1, st.st_size - 1) != 1) return lk_fail_errno(errno, "%s: cannot read", path);
    *length = st.st_size;
    *cut_off = last != '\n';
    return LK_OK;
}

static enum lk_code write_all(int fd, const char *path, const char *bytes, size_t n) {
    while (n) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return lk_fail_errno(errno, "%s: cannot write", path);
        bytes += written;
        n -= (size_t)written;
    }
    return LK_OK;
}

enum lk_code lk_append_lines(const char *path, const char *lines, size_t n) {
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return lk_fail_errno(errno, "%s: cannot open", path);
    bool cut_off = false;
    off_t length = -1;
    enum lk_code rc = look_at(fd, path, &length, &cut_off);
    if (!rc && cut_off) rc = write_all(fd, path, "\n", 1);
    if (!rc) rc = write_all(fd, path, lines, n);
    if (!rc && fsync(fd) && errno != EINVAL) rc = lk_fail_errno(errno, "%s: cannot sync", path);
    if (rc && length >= 0 && ftruncate(fd, length)) /* all of the lines or none */
        rc = lk_fail_prefix(rc, "%s: holds the first of the new lines, perhaps half of one", path);
    if (close(fd) && !rc) rc = lk_fail_errno(errno, "%s: cannot close", path);
    return rc;
}

enum lk_code lk_append_lock(struct lk_append_lock *lock, const char *path) {
    struct stat st;
    *lock = (struct lk_append_lock){.made = stat(path, &st) != 0};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) return lk_fail_errno(errno, "%s: cannot open", path);
    /* Workers of a run that was killed may still be ending. */
    int failed = flock(fd, LOCK_EX | LOCK_NB);
    for (int i = 0; failed && errno == EWOULDBLOCK && i < LOCK_TRIES; i++) {
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        failed = flock(fd, LOCK_EX | LOCK_NB);
    }
    if (failed) {
        lock->lockless = errno != EWOULDBLOCK;
        if (!lock->lockless) {
            close(fd);
            return lk_fail(LK_E_IO,
                           "%s: another process is writing this file; wait until it ends, or name another file", path);
        }
    }
    lock->path = path;
    lock->fd = fd;
    return LK_OK;
}

void lk_append_unlock(struct lk_append_lock *lock) {
    struct stat st;
    if (!lock->path) return;
    if (lock->made && !fstat(lock->fd, &st) && S_ISREG(st.st_mode) && !st.st_size) unlink(lock->path);
    close(lock->fd);
    lock->path = NULL;
}

size_t lk_whole_lines(const char *text, size_t n) {
    while (n && text[n - 1] != '\n') n--;
    return n;
}

enum lk_code lk_cut_half_line(const char *path, size_t n_whole, size_t n) {
    if (n_whole == n || !truncate(path, (off_t)n_whole)) return LK_OK;
    return lk_fail_errno(errno, "%s: cannot be cut to whole lines", path);
}
