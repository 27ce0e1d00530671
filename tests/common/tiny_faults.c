/* The linker puts these in the place of the calls that write, in tests that say so (tests/CMakeLists.txt). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/common/tiny_study.h"

static struct tiny_faults *f; /* NULL until they are set for the first time */

/* Errno that this call is to give, 0: none, or TINY_SHORT. */
static int fault(void) {
    if (!f) return 0;
    long long n = atomic_fetch_add(&f->n_calls, 1) + 1;
    return n == f->at ? f->what : 0;
}

static bool fails(void) {
    int what = fault();
    if (what == TINY_KILL) kill(0, SIGKILL);
    if (what > 0) errno = what;
    return what > 0;
}

/* How much of n bytes can be written; -1 with errno. */
static ssize_t part(size_t n, bool *die) {
    int what = fault();
    *die = what == TINY_KILL;
    long long all = f ? atomic_fetch_add(&f->n_bytes, (long long)n) + (long long)n : 0;
    if (f && f->room && all > f->room) what = ENOSPC;
    if (what > 0) errno = what;
    return what > 0 ? -1 : what ? (ssize_t)(n / 2 ? n / 2 : n) : (ssize_t)n;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    return flags & O_CREAT && fails() ? -1 : __real_open(path, flags, 0666);
}
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) { return fails() ? -1 : __real_fsync(fd); }
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode) { return fails() ? -1 : __real_mkdir(path, mode); }
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) {
    if (f && *f->poison && strstr(to, f->poison)) {
        usleep(200000); /* so that the worker has taken more, if it does */
        raise(SIGSEGV);
    }
    return fails() ? -1 : __real_rename(from, to);
}
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n) {
    bool die;
    ssize_t m = part(n, &die), done = m < 0 ? -1 : __real_write(fd, bytes, (size_t)m);
    if (die) kill(0, SIGKILL);
    return done;
}
static ssize_t faulty_pwrite(int fd, const void *bytes, size_t n, off_t at) {
    bool die;
    ssize_t m = part(n, &die), done = m < 0 ? -1 : pwrite(fd, bytes, (size_t)m, at);
    if (die) kill(0, SIGKILL);
    return done;
}
static int faulty_ftruncate(int fd, off_t n) { return fails() ? -1 : ftruncate(fd, n); }
static int faulty_unlink(const char *path) { return fails() ? -1 : unlink(path); }

void tiny_faults_set(long long at, int what, long long room) {
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)faulty_pwrite);
    vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)faulty_pwrite);
    vfs->xSetSystemCall(vfs, "ftruncate", (sqlite3_syscall_ptr)faulty_ftruncate);
    vfs->xSetSystemCall(vfs, "unlink", (sqlite3_syscall_ptr)faulty_unlink);
    f = tiny_faults;
    atomic_store(&f->n_calls, 0);
    atomic_store(&f->n_bytes, 0);
    f->at = at;
    f->what = what;
    f->room = room;
}
