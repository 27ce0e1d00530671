#include "weights/verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "weights/paths.h"
#include "weights/verify_list.h"

#define MAX_THREADS 64

struct work {
    struct lk_verify_file **files; /* largest first */
    size_t n_files;
    atomic_size_t next;
    const char *folder;
    pthread_mutex_t lock;
    struct lk_error error; /* the first that is not about one file's contents */
};

static void verify_file(struct work *w, struct lk_verify_file *file) {
    char *path = lk_format("%s/%s", w->folder, file->path);
    enum lk_code rc = path ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", w->folder);
    if (!rc) rc = lk_digest_file(strlen(file->expected) == 40 ? LK_DIGEST_GIT_BLOB : LK_DIGEST_SHA256, path, file->got);
    lk_free(path);
    if (rc == LK_E_NOMEM || rc == LK_E_INTERNAL) {
        pthread_mutex_lock(&w->lock);
        if (!w->error.code) lk_error_get(&w->error, rc);
        pthread_mutex_unlock(&w->lock);
    }
    if (rc)
        file->result = LK_VERIFY_UNREADABLE;
    else
        file->result = strcmp(file->got, file->expected) ? LK_VERIFY_DIFFERS : LK_VERIFY_OK;
}

static void *worker(void *context) {
    struct work *w = context;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n_files;) verify_file(w, w->files[i]);
    return NULL;
}

static int larger_first(const void *a, const void *b) {
    const struct lk_verify_file *x = *(struct lk_verify_file *const *)a, *y = *(struct lk_verify_file *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->expected, y->expected);
}

static bool is_weights(const struct lk_verify_file *file) {
    static const char suffix[] = ".safetensors";
    size_t n = strlen(file->path);
    return n >= sizeof suffix && !strcmp(file->path + n - sizeof suffix + 1, suffix);
}

/* Two weight files of one snapshot never have the same bytes: one of the links points to the other's blob, and its
 * digest, which is the blob's name, says nothing. files: in the order of larger_first. */
static void find_shared(struct lk_verify_file **files, size_t n_files) {
    for (size_t i = 0; i + 1 < n_files; i++) {
        struct lk_verify_file *pair[2] = {files[i], files[i + 1]};
        if (!is_weights(pair[0]) || !is_weights(pair[1]) || strcmp(pair[0]->expected, pair[1]->expected)) continue;
        for (int k = 0; k < 2; k++)
            if (pair[k]->result == LK_VERIFY_OK) pair[k]->result = LK_VERIFY_SHARED;
    }
}

static bool is_bad(const struct lk_verify_file *file) {
    return file->result == LK_VERIFY_NO_DIGEST ? is_weights(file) : file->result != LK_VERIFY_OK;
}

/* The calling thread works too; threads that cannot be had are done without. */
static void run(struct work *w, int n_threads) {
    pthread_t threads[MAX_THREADS];
    int n = 0;
    if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
    while (n < n_threads - 1 && (size_t)n + 1 < w->n_files && !pthread_create(&threads[n], NULL, worker, w)) n++;
    worker(w);
    while (n > 0) pthread_join(threads[--n], NULL);
}

static enum lk_code verify_files(struct lk_verify_report *report, const char *folder, const char *manifest,
                                 int n_threads) {
    struct work w = {.folder = folder, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.files = lk_calloc(report->n_files, sizeof *w.files);
    if (!w.files) return lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
    size_t n_known = 0;
    for (size_t i = 0; i < report->n_files; i++) {
        struct lk_verify_file *file = &report->files[i];
        if (file->expected[0]) n_known++;
        if (file->expected[0] && file->result != LK_VERIFY_UNREADABLE) w.files[w.n_files++] = file;
    }
    if (!n_known) {
        lk_free(w.files);
        if (manifest)
            return lk_fail(LK_E_CHECKSUM,
                           "%s: no line names a file that is in %s; expected lines as sha256sum prints them there",
                           manifest, folder);
        return lk_fail(
            LK_E_CHECKSUM,
            "%s: no digest is known for any file: it is no snapshot of a Hugging Face cache and no manifest "
            "was given; make one where the files are known to be good: find . -type f -exec sha256sum {} + > "
            "MANIFEST",
            folder);
    }
    if (w.n_files) qsort(w.files, w.n_files, sizeof *w.files, larger_first);
    run(&w, n_threads);
    if (!manifest) find_shared(w.files, w.n_files);
    lk_free(w.files);
    return w.error.code ? lk_error_set(&w.error) : LK_OK;
}

enum lk_code lk_verify(struct lk_verify_report *out, const char *folder, const char *manifest_path, int n_threads) {
    enum lk_code rc = lk_verify_list(out, folder, !manifest_path);
    if (rc) return rc;
    if (manifest_path) rc = lk_verify_add_manifest(out, folder, manifest_path);
    if (!rc) rc = verify_files(out, folder, manifest_path, n_threads);
    if (rc) {
        lk_verify_free(out);
        return rc;
    }
    for (size_t i = 0; i < out->n_files; i++) out->n_bad += is_bad(&out->files[i]);
    return LK_OK;
}

void lk_verify_free(struct lk_verify_report *report) {
    for (size_t i = 0; i < report->n_files; i++) lk_free(report->files[i].path);
    lk_free(report->files);
    memset(report, 0, sizeof *report);
}
