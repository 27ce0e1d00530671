#include "engine/base/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "engine/base/process.h"
#include "engine/base/text.h"

#define BUFFER_BYTES (64 * 1024)

/* A call that a signal has cut short is made again. */
#define RETRY(result, call)                                                                                            \
    do result = (call);                                                                                                \
    while (result < 0 && errno == EINTR)

struct lk_atomic_file {
    int fd; /* -1 of a folder */
    bool is_folder;
    char *path;
    char *temporary; /* in the same folder: rename works within one file system only */
    size_t folder_length;
    size_t buffered;
    unsigned char buffer[BUFFER_BYTES];
};

/* Files of this thread that wait for the end of its batch. */
static _Thread_local struct {
    bool open;
    struct lk_atomic_file **files;
    size_t n, capacity;
} batch;

static void free_file(struct lk_atomic_file *file) {
    lk_free(file->path);
    lk_free(file->temporary);
    lk_free(file);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* One folder is open at a time: there may be no more descriptors, which is why it is removed. */
static void remove_tree(const char *path) { nftw(path, remove_one, 1, FTW_DEPTH | FTW_PHYS); }

/* Removes what processes of this user and host that have ended without a word left in the folder. */
static void sweep(const struct lk_atomic_file *file) {
    static atomic_uint_least64_t swept; /* a batch writes into one folder: it is looked through once */
    struct stat st;
    struct dirent *entry;
    char start[32];
    size_t n_start = (size_t)snprintf(start, sizeof start, ".lk-%08x-", lk_host_number());
    uint64_t id = lk_hash_bytes(2, file->path, file->folder_length);
    if (atomic_exchange(&swept, id) == id) return;
    snprintf(file->temporary, file->folder_length + 64, "%.*s.", (int)file->folder_length, file->path);
    DIR *folder = opendir(file->temporary);
    while (folder && (entry = readdir(folder))) {
        long pid;
        unsigned number;
        int n = 0;
        if (strncmp(entry->d_name, start, n_start)) continue;
        if (sscanf(entry->d_name + n_start, "%ld-%u.tmp%n", &pid, &number, &n) != 2 || !n ||
            entry->d_name[n_start + (size_t)n] || !lk_process_is_gone(pid))
            continue;
        if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid()) continue;
        if (S_ISREG(st.st_mode)) unlinkat(dirfd(folder), entry->d_name, 0);
        char *tree = S_ISDIR(st.st_mode) ? lk_format("%s/%s", file->temporary, entry->d_name) : NULL;
        if (tree) remove_tree(tree);
        lk_free(tree);
    }
    if (folder) closedir(folder);
}

/* The temporary name does not contain the final one, which may be as long as a name can be. */
static enum lk_code open_temporary(struct lk_atomic_file *file) {
    static atomic_uint counter;
    size_t room = file->folder_length + 64;
    if (!(file->temporary = lk_malloc(room)))
        return lk_fail(LK_E_NOMEM, "%s: no memory to write it; free memory and try again", file->path);
    sweep(file);
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(file->temporary, room, "%.*s.lk-%08x-%ld-%u.tmp", (int)file->folder_length, file->path,
                 lk_host_number(), (long)getpid(), atomic_fetch_add(&counter, 1));
        if (file->is_folder && !mkdir(file->temporary, 0777)) return LK_OK;
        if (!file->is_folder) RETRY(file->fd, open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (file->fd >= 0) return LK_OK;
        if (errno != EEXIST) break;
    }
    return lk_fail_errno(errno, "%s: cannot create a file in its folder", file->path);
}

static enum lk_code open_new(struct lk_atomic_file **out, const char *path, bool is_folder) {
    const char *slash = strrchr(path, '/');
    size_t folder_length = slash ? (size_t)(slash - path) + 1 : 0, length = strlen(path);
    if (length == folder_length || folder_length > INT32_MAX / 2)
        return lk_fail(LK_E_NOT_REGULAR, "\"%s\": expected the name of a %s to write", path,
                       is_folder ? "folder" : "file");
    struct lk_atomic_file *file = lk_malloc(sizeof *file);
    if (!file) return lk_fail(LK_E_NOMEM, "%s: no memory to write it; free memory and try again", path);
    file->fd = -1;
    file->is_folder = is_folder;
    file->folder_length = folder_length;
    file->buffered = 0;
    file->temporary = NULL;
    file->path = lk_strdup(path);
    enum lk_code rc = file->path ? open_temporary(file)
                                 : lk_fail(LK_E_NOMEM, "%s: no memory to write it; free memory and try again", path);
    if (rc) {
        free_file(file);
        return rc;
    }
    *out = file;
    return LK_OK;
}

enum lk_code lk_atomic_open(struct lk_atomic_file **out, const char *path) {
    struct stat st;
    *out = NULL;
    if (!lstat(path, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return lk_fail(LK_E_NOT_REGULAR, "%s: expected a regular file or none, got a folder or device; name a file",
                       path);
    return open_new(out, path, false);
}

enum lk_code lk_atomic_open_folder(struct lk_atomic_file **out, const char *path) {
    struct stat st;
    size_t length = strlen(path);
    *out = NULL;
    if (!lstat(path, &st)) return lk_fail(LK_E_USAGE, "%s: is there already: name another folder, or remove it", path);
    while (length > 1 && path[length - 1] == '/') length--;
    char *name = lk_format("%.*s", (int)length, path);
    enum lk_code rc = name ? open_new(out, name, true) : lk_fail(LK_E_NOMEM, "%s: no memory to write it", path);
    lk_free(name);
    return rc;
}

const char *lk_atomic_folder(const struct lk_atomic_file *file) { return file->temporary; }

static enum lk_code write_all(struct lk_atomic_file *file, const unsigned char *bytes, size_t n_bytes) {
    while (n_bytes) {
        ssize_t n = write(file->fd, bytes, n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return lk_fail_errno(errno, "%s: cannot write", file->path);
        bytes += n;
        n_bytes -= (size_t)n;
    }
    return LK_OK;
}

static enum lk_code flush(struct lk_atomic_file *file) {
    size_t n = file->buffered;
    file->buffered = 0;
    return write_all(file, file->buffer, n);
}

enum lk_code lk_atomic_write(struct lk_atomic_file *file, const void *bytes, size_t n_bytes) {
    enum lk_code rc;
    if (n_bytes > BUFFER_BYTES - file->buffered && (rc = flush(file))) return rc;
    if (n_bytes > BUFFER_BYTES) return write_all(file, bytes, n_bytes);
    if (n_bytes) memcpy(file->buffer + file->buffered, bytes, n_bytes);
    file->buffered += n_bytes;
    return LK_OK;
}

/* After the rename nothing may be allocated any more: the temporary name has become free to hold the folder's. Some
 * file systems cannot sync a folder and say EINVAL; the rename is as durable there as it gets. */
static enum lk_code sync_folder(const struct lk_atomic_file *file) {
    file->temporary[file->folder_length] = 0;
    int fd, failed;
    RETRY(fd, open(file->folder_length ? file->temporary : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return errno == EACCES ? LK_OK : lk_fail_errno(errno, "%s: written, cannot open its folder", file->path);
    enum lk_code rc = LK_OK;
    RETRY(failed, fsync(fd));
    if (failed && errno != EINVAL && errno != ENOTSUP)
        rc = lk_fail_errno(errno, "%s: written, cannot sync its folder", file->path);
    close(fd);
    return rc;
}

static enum lk_code put_in_place(const struct lk_atomic_file *file) {
    int failed;
    RETRY(failed, rename(file->temporary, file->path));
    return failed ? lk_fail_errno(errno, "%s: cannot put it in place", file->path) : LK_OK;
}

/* What a batch, or what is in a folder, reaches the disk. */
static enum lk_code sync_all(const struct lk_atomic_file *any) {
    int fd, failed;
    RETRY(fd, open(any->temporary, O_RDONLY | O_CLOEXEC));
    if (fd < 0) return lk_fail_errno(errno, "%s: cannot sync", any->path);
    RETRY(failed, syncfs(fd));
    enum lk_code rc = failed ? lk_fail_errno(errno, "%s: cannot sync", any->path) : LK_OK;
    close(fd);
    return rc;
}

/* What is written and synced, unless rc says otherwise, gets its name. */
static enum lk_code finish(struct lk_atomic_file *file, enum lk_code rc) {
    if (!rc) rc = put_in_place(file);
    if (rc) {
        lk_atomic_discard(file);
        return rc;
    }
    rc = sync_folder(file);
    free_file(file);
    return rc;
}

enum lk_code lk_atomic_commit(struct lk_atomic_file *file) {
    /* A folder's place was free when it was begun; rename replaces an empty one only. */
    if (file->is_folder) return finish(file, sync_all(file));
    enum lk_code rc = flush(file);
    int fd = file->fd, failed = 0;
    if (!rc && batch.open)
        rc = lk_grow(&batch.files, &batch.capacity, batch.n + 1, sizeof *batch.files);
    else if (!rc)
        RETRY(failed, fsync(fd));
    if (failed) rc = lk_fail_errno(errno, "%s: cannot sync", file->path);
    file->fd = -1;
    if (close(fd) && !rc && errno != EINTR) /* closed all the same, and synced before */
        rc = lk_fail_errno(errno, "%s: cannot write", file->path);
    if (!rc && batch.open) {
        batch.files[batch.n++] = file;
        return LK_OK;
    }
    return finish(file, rc);
}

void lk_atomic_batch_begin(void) { batch.open = true; }

/* The length of the folder that holds all of the batch's files, its slash included. */
static size_t common_folder(void) {
    const char *first = batch.files[0]->path;
    size_t n = batch.files[0]->folder_length;
    for (size_t i = 1; i < batch.n; i++)
        while (n && (batch.files[i]->folder_length < n || memcmp(batch.files[i]->path, first, n)))
            for (n--; n && first[n - 1] != '/';) n--;
    return n;
}

/* Whether all that is in `other`, but for temporary files of this process, has its like in `folder`. */
static bool holds_all(const char *folder, const char *other) {
    char own[64];
    snprintf(own, sizeof own, ".lk-%08x-%ld-", lk_host_number(), (long)getpid());
    DIR *entries = opendir(other);
    bool all = entries != NULL;
    for (struct dirent *e; all && (e = readdir(entries));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strncmp(e->d_name, own, strlen(own))) continue;
        char *a = lk_format("%s/%s", folder, e->d_name), *b = lk_format("%s/%s", other, e->d_name);
        struct stat at, bt;
        all = a && b && !lstat(a, &at) && !lstat(b, &bt) && S_ISDIR(at.st_mode) == S_ISDIR(bt.st_mode) &&
              (!S_ISDIR(at.st_mode) || holds_all(a, b));
        lk_free(a);
        lk_free(b);
    }
    if (entries) closedir(entries);
    return all;
}

/* A second name for the batch's file in `folder`, at its path behind n bytes; the folders between are as in `old`. */
static bool link_into(const char *folder, const char *old, const struct lk_atomic_file *file, size_t n) {
    char *place = lk_format("%s/%s", folder, file->path + n);
    bool good = place != NULL;
    for (char *slash = good ? place + strlen(folder) : NULL; good && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        char *like = lk_format("%s%s", old, place + strlen(folder));
        struct stat st;
        good = like && !stat(like, &st) && (!mkdir(place, 0777) ? !chmod(place, st.st_mode & 07777) : errno == EEXIST);
        lk_free(like);
        *slash = '/';
    }
    good = good && !link(file->temporary, place);
    lk_free(place);
    return good;
}

/* The folder of the batch's files, without links, if it may be replaced as a whole: ours, and not where this process,
 * and so the shell that has started it, is at home. NULL: it may not. */
static char *replaceable(size_t n, struct stat *st) {
    char *path = n > 1 && batch.n > 1 ? lk_strndup(batch.files[0]->path, n - 1) : NULL;
    char *real = path ? realpath(path, NULL) : NULL, *home = getcwd(NULL, 0);
    size_t length = real ? strlen(real) : 0;
    bool may = real && home && !stat(real, st) && st->st_uid == geteuid() && strncmp(strrchr(real, '/'), "/.lk-", 5) &&
               (strncmp(home, real, length) || (home[length] && home[length] != '/'));
    free(home);
    lk_free(path);
    if (may) return real;
    free(real);
    return NULL;
}

/* All of the batch at one moment; false: nothing has changed. */
static bool switch_folders(void) {
    struct lk_atomic_file *made = NULL;
    struct stat st;
    size_t n = common_folder();
    char *real = replaceable(n, &st);
    bool done = real && !open_new(&made, real, true) && !chmod(made->temporary, st.st_mode & 07777);
    for (size_t i = 0; done && i < batch.n; i++) done = link_into(made->temporary, real, batch.files[i], n);
    done = done && holds_all(made->temporary, real) && !sync_all(made) &&
           !renameat2(AT_FDCWD, made->temporary, AT_FDCWD, real, RENAME_EXCHANGE);
    /* What somebody has put into the old folder since goes back into its place with it. */
    if (done && !holds_all(real, made->temporary))
        done = renameat2(AT_FDCWD, made->temporary, AT_FDCWD, real, RENAME_EXCHANGE) != 0;
    if (done) {
        sync_folder(made); /* cuts off its name */
        made->temporary[made->folder_length] = '.';
    }
    if (made) remove_tree(made->temporary);
    if (made) free_file(made);
    free(real);
    return done;
}

enum lk_code lk_atomic_batch_end(enum lk_code rc) {
    size_t n_placed = 0;
    if (!rc && batch.n && switch_folders()) {
        for (size_t i = 0; i < batch.n; i++) free_file(batch.files[i]);
        batch.n = 0;
    }
    if (!rc && batch.n) rc = sync_all(batch.files[0]);
    while (!rc && n_placed < batch.n)
        if (!(rc = put_in_place(batch.files[n_placed]))) n_placed++;
    if (rc && n_placed) lk_fail_prefix(rc, "%zu of %zu files are new, the others as they were", n_placed, batch.n);
    for (size_t i = 0; i < batch.n; i++) {
        const struct lk_atomic_file *file = batch.files[i], *next = i + 1 < n_placed ? batch.files[i + 1] : NULL;
        if (i >= n_placed) {
            lk_atomic_discard(batch.files[i]);
            continue;
        }
        bool last = !next || next->folder_length != file->folder_length ||
                    memcmp(next->path, file->path, file->folder_length) != 0;
        enum lk_code synced = last ? sync_folder(file) : LK_OK;
        if (!rc) rc = synced;
        free_file(batch.files[i]);
    }
    lk_free(batch.files);
    memset(&batch, 0, sizeof batch);
    return rc;
}

void lk_atomic_discard(struct lk_atomic_file *file) {
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    if (file->is_folder)
        remove_tree(file->temporary);
    else
        unlink(file->temporary);
    free_file(file);
}

enum lk_code lk_atomic_write_file(const char *path, const void *bytes, size_t n_bytes) {
    struct lk_atomic_file *file;
    enum lk_code rc = lk_atomic_open(&file, path);
    if (rc) return rc;
    if ((rc = lk_atomic_write(file, bytes, n_bytes))) {
        lk_atomic_discard(file);
        return rc;
    }
    return lk_atomic_commit(file);
}
