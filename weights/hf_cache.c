#include "weights/checkpoint.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "weights/mapped_file.h"
#include "engine/base/text.h"
#include "weights/paths.h"

#define MAX_LINKS 8 /* one behind another */

static enum lk_code out_of_memory(const char *model) { return lk_fail(LK_E_NOMEM, "%s: out of memory", model); }

static bool is_folder(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One part of ORG/NAME or of a revision: letters, digits, . _ - and not only dots. */
static bool plain_part(const char *text, size_t n) {
    bool only_dots = true;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i])) return false;
        if (text[i] != '.') only_dots = false;
    }
    return n && !only_dots;
}

/* ORG/NAME[@revision]; a revision may have slashes ("refs/pr/1"). */
static bool split(const char *model, size_t *org, size_t *name, const char **revision) {
    *org = strcspn(model, "/@");
    if (model[*org] != '/') return false;
    const char *second = model + *org + 1;
    *name = strcspn(second, "@");
    *revision = second[*name] ? second + *name + 1 : "main";
    if (!plain_part(model, *org) || !plain_part(second, *name)) return false;
    for (const char *part = *revision;;) {
        size_t n = strcspn(part, "/");
        if (!plain_part(part, n)) return false;
        if (!part[n]) return true;
        part += n + 1;
    }
}

/* The cache folder as huggingface_hub finds it; *why names the variable it came from. */
static char *cache_folder(const char **why) {
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"}};
    const char *found = NULL, *below = "/.cache/huggingface/hub";
    *why = "HOME";
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !*value) continue;
        *why = places[i].variable;
        found = value;
        below = places[i].below;
    }
    char *folder = lk_expand_path(found ? found : "~");
    char *cache = folder ? lk_format("%s%s", folder, below) : NULL;
    lk_free(folder);
    return cache;
}

static bool is_commit(const char *text, size_t n) {
    if (n < 7 || n > 64) return false;
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)text[i])) return false;
    return true;
}

/* The commit a revision stands for: what refs/<revision> says, or the revision itself. */
static enum lk_code find_commit(const char *model, const char *repository, const char *revision, char **out) {
    char *ref = lk_format("%s/refs/%s", repository, revision), *text = NULL;
    size_t n;
    *out = NULL;
    if (!ref) return out_of_memory(model);
    enum lk_code rc = lk_read_file(ref, 4096, &text, &n);
    if (rc == LK_E_NOT_FOUND || rc == LK_E_NOT_REGULAR) {
        rc = LK_OK;
        text = lk_strdup(revision);
        if (!text) rc = out_of_memory(model);
    } else if (!rc) {
        while (n && isspace((unsigned char)text[n - 1])) text[--n] = 0;
        if (!is_commit(text, n)) {
            rc = lk_fail(LK_E_REVISION, "%s: expected a commit hash; download the model again", ref);
        }
    }
    lk_free(ref);
    if (rc)
        lk_free(text);
    else
        *out = text;
    return rc;
}

static enum lk_code find_snapshot(const char *model, const char *repository, const char *revision, char **out) {
    char *commit;
    enum lk_code rc = find_commit(model, repository, revision, &commit);
    if (rc) return rc;
    char *snapshot = lk_format("%s/snapshots/%s", repository, commit);
    if (!snapshot) {
        rc = out_of_memory(model);
    } else if (!is_folder(snapshot)) {
        rc = lk_fail(LK_E_REVISION,
                     "%s: revision \"%s\" is not in the cache: neither %s/refs/%s names a snapshot that is there, nor "
                     "is there %s; download that revision",
                     model, revision, repository, revision, snapshot);
        lk_free(snapshot);
    }
    lk_free(commit);
    if (!rc) *out = snapshot;
    return rc;
}

/* ORG/NAME[@revision] in the cache. */
static enum lk_code find_in_cache(const char *model, char **out) {
    size_t org, name;
    const char *revision, *why;
    if (!split(model, &org, &name, &revision))
        return lk_fail(LK_E_NOT_FOUND, "\"%s\": no such folder, and not ORG/NAME[@revision] of a model in the cache",
                       model);
    char *cache = cache_folder(&why);
    char *repository =
        cache ? lk_format("%s/models--%.*s--%.*s", cache, (int)org, model, (int)name, model + org + 1) : NULL;
    enum lk_code rc;
    if (!repository)
        rc = out_of_memory(model);
    else if (!is_folder(repository))
        rc = lk_fail(LK_E_NOT_FOUND,
                     "%s: no such model: looked at the folder %s and at %s (cache %s, from %s); download the model or "
                     "set HF_HUB_CACHE",
                     model, model, repository, cache, why);
    else
        rc = find_snapshot(model, repository, revision, out);
    lk_free(cache);
    lk_free(repository);
    return rc;
}

enum lk_code lk_model_find(const char *model, char **out) {
    struct stat st;
    *out = NULL;
    bool there = *model && stat(model, &st) == 0, loop = *model && !there && errno == ELOOP;
    char *path = there ? lk_strdup(model) : lk_expand_path(model);
    if (!path) return out_of_memory(model);
    if (!there && strcmp(path, model)) there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) {
        *out = path;
        return LK_OK;
    }
    lk_free(path);
    if (there) return lk_fail(LK_E_NOT_REGULAR, "%s: expected a model folder, got a file", model);
    if (loop) return lk_fail(LK_E_INPUT, "%s: symbolic links form a loop", model);
    return find_in_cache(model, out);
}

static bool lies_in(const char *path, const char *folder, size_t n) {
    while (n && folder[n - 1] == '/') n--;
    return !strncmp(path, folder, n) && path[n] == '/';
}

static bool is_digest(const char *text, size_t n) {
    return (n == 40 || n == 64) && strspn(text, "0123456789abcdef") == n;
}

/* What a link names, in place of `path`; false at the end of a chain. */
static bool follow(char path[PATH_MAX]) {
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    char *slash = strrchr(path, '/');
    if (n <= 0) return false;
    target[n] = 0;
    char *end = *target != '/' && slash ? slash + 1 : path;
    if ((size_t)(end - path) + (size_t)n >= PATH_MAX) return false;
    strcpy(end, target);
    return true;
}

/* For .../models--ORG--NAME/blobs/DIGEST: the repository's folder without links. */
static bool repository_of_blob(const char *path, char repository[PATH_MAX]) {
    char folder[PATH_MAX];
    const char *name = strrchr(path, '/'), *last;
    const size_t n = name ? (size_t)(name - path) : 0;
    if (n < 7 || strncmp(path + n - 6, "/blobs", 6) || !is_digest(name + 1, strlen(name + 1))) return false;
    snprintf(folder, sizeof folder, "%.*s", (int)n - 6, path);
    return realpath(folder, repository) && (last = strrchr(repository, '/')) && !strncmp(last, "/models--", 9);
}

/* The repository through whose blobs the links of a file lead; the blob's name is the digest. */
static bool find_blob(const char *path, char repository[PATH_MAX], char digest[65]) {
    char at[PATH_MAX];
    *digest = 0;
    if (strlen(path) >= sizeof at) return false;
    strcpy(at, path);
    for (int i = 0; i < MAX_LINKS && follow(at); i++) {
        if (!repository_of_blob(at, repository)) continue;
        snprintf(digest, 65, "%s", strrchr(at, '/') + 1);
        return true;
    }
    return false;
}

/* STORE/xx/HASH, where the cache marks STORE as what its repositories share. */
static bool is_shared_blob(const char *real) {
    char mark[PATH_MAX];
    const char *name = strrchr(real, '/');
    const size_t n = name ? (size_t)(name - real) : 0;
    if (n < 3 || real[n - 3] != '/') return false;
    int length = snprintf(mark, sizeof mark, "%.*s.huggingface-shared-blobs", (int)n - 2, real);
    return length < PATH_MAX && !access(mark, F_OK);
}

/* Where a cache keeps files: anywhere below its own folder, and where its folders of blobs lead. repository: the n
 * bytes of .../models--ORG--NAME. */
static bool lies_in_cache(const char *real, const char *repository, size_t n) {
    char blobs[PATH_MAX], moved[PATH_MAX];
    size_t above = n;
    while (above && repository[above - 1] != '/') above--;
    if (lies_in(real, repository, above) || is_shared_blob(real)) return true;
    int length = snprintf(blobs, sizeof blobs, "%.*s/blobs", (int)n, repository);
    return length < PATH_MAX && realpath(blobs, moved) && lies_in(real, moved, strlen(moved));
}

static bool follow_links;

void lk_model_follow_links(bool allowed) { follow_links = allowed; }

static enum lk_code check_inside(const char *folder, const char *relative, const char *path, const char *real,
                                 const char *real_folder) {
    char digest[65], repository[PATH_MAX];
    if (follow_links || lies_in(real, real_folder, strlen(real_folder))) return LK_OK;
    const size_t n = lk_hf_repository(real_folder);
    bool in = n ? lies_in_cache(real, real_folder, n)
                : find_blob(path, repository, digest) && lies_in_cache(real, repository, strlen(repository));
    if (in) return LK_OK;
    return lk_fail(LK_E_ESCAPES,
                   "%s: \"%s\" leads to %s, outside the model folder; put the file itself there, or allow it with "
                   "--follow-links",
                   folder, relative, real);
}

/* Of a folder that `hf download --local-dir` has filled: the second line of FILE.metadata. */
static enum lk_code read_local_digest(const char *folder, const char *relative, char digest[65]) {
    char *text = NULL, *path = lk_format("%s/.cache/huggingface/download/%s.metadata", folder, relative);
    size_t n;
    enum lk_code rc = path ? lk_read_file(path, 4096, &text, &n) : out_of_memory(folder);
    if (!rc) {
        const char *line = text + strcspn(text, "\n");
        if (*line) line++;
        size_t length = strcspn(line, "\r\n");
        if (is_digest(line, length)) snprintf(digest, 65, "%.*s", (int)length, line);
    }
    lk_free(text);
    lk_free(path);
    return rc == LK_E_NOMEM ? rc : LK_OK;
}

enum lk_code lk_model_digest(const char *folder, const char *relative, char digest[65]) {
    char repository[PATH_MAX], path[PATH_MAX];
    *digest = 0;
    if (snprintf(path, sizeof path, "%s/%s", folder, relative) >= PATH_MAX) return LK_OK;
    return find_blob(path, repository, digest) ? LK_OK : read_local_digest(folder, relative, digest);
}

enum lk_code lk_model_path(const char *folder, const char *relative, char **out) {
    *out = NULL;
    if (!lk_stays_below(relative))
        return lk_fail(LK_E_ESCAPES, "%s: expected a file name inside the model folder, got \"%.200s\"", folder,
                       relative);
    char *path = lk_format("%s/%s", folder, relative), *real = NULL, *real_folder = NULL;
    enum lk_code rc = path ? LK_OK : out_of_memory(folder);
    if (!rc) rc = lk_real_path(path, path, &real);
    if (!rc) rc = lk_real_path(folder, folder, &real_folder);
    if (!rc) rc = check_inside(folder, relative, path, real, real_folder);
    lk_free(real);
    lk_free(real_folder);
    if (rc)
        lk_free(path);
    else
        *out = path;
    return rc;
}
