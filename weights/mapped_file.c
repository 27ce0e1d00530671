#include "weights/mapped_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/device.h"
#include "engine/base/file.h"
#include "weights/fault_guard.h"
#include "weights/paths.h"

static int64_t mtime_ns(const struct stat *st) {
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static enum lk_code map(struct lk_mapped_file *file, int fd) {
    if (!file->bytes) return LK_OK;
    if (file->bytes > SIZE_MAX) return lk_fail(LK_E_NOMEM, "%s: too large to map", file->path);
    void *data = mmap(NULL, (size_t)file->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return lk_fail_errno(errno, "%s: cannot map", file->path);
    file->data = data;
    enum lk_code rc = lk_fault_guard_add(data, (size_t)file->bytes, file->path);
    if (rc) {
        munmap(data, (size_t)file->bytes);
        return lk_fail_prefix(rc, "%s", file->path);
    }
    return LK_OK;
}

enum lk_code lk_mapped_open(struct lk_mapped_file **out, const char *path) {
    int fd;
    struct stat st;
    *out = NULL;
    enum lk_code rc = lk_open_regular(path, &fd, &st);
    if (rc) return rc;
    struct lk_mapped_file *file = lk_calloc(1, sizeof *file);
    if (!file || !(file->path = lk_strdup(path))) {
        lk_free(file);
        close(fd);
        return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    }
    file->bytes = (uint64_t)st.st_size;
    file->device = (uint64_t)st.st_dev;
    file->inode = (uint64_t)st.st_ino;
    file->mtime_ns = mtime_ns(&st);
    rc = map(file, fd);
    close(fd);
    if (rc) {
        lk_free(file->path);
        lk_free(file);
        return rc;
    }
    *out = file;
    return LK_OK;
}

void lk_mapped_close(struct lk_mapped_file *file) {
    if (!file) return;
    lk_weights_released();
    if (file->data) {
        void *data = (void *)(uintptr_t)file->data;
        lk_fault_guard_remove(data);
        munmap(data, (size_t)file->bytes);
    }
    lk_free(file->path);
    lk_free(file);
}

enum lk_code lk_mapped_check(const struct lk_mapped_file *file) {
    struct stat st;
    if (file) {
        if (stat(file->path, &st) < 0)
            return lk_fail(LK_E_CHANGED,
                           "%s: the file is gone or unreadable since it was opened; run again with the "
                           "file in place",
                           file->path);
        if ((uint64_t)st.st_size != file->bytes || (uint64_t)st.st_dev != file->device ||
            (uint64_t)st.st_ino != file->inode || mtime_ns(&st) != file->mtime_ns)
            return lk_fail(LK_E_CHANGED,
                           "%s: the file changed since it was opened (%llu bytes then, %lld now); run again when "
                           "nothing writes to it",
                           file->path, (unsigned long long)file->bytes, (long long)st.st_size);
    }
    if (lk_fault_guard_faults())
        return lk_fail(LK_E_IO,
                       "%s: could not be read (I/O error, or it was cut while in use); check the disk and run again",
                       lk_fault_guard_name());
    return LK_OK;
}
