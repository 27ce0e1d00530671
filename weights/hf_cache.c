#include "weights/checkpoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "weights/mapped_file.h"
#include "engine/base/text.h"
#include "weights/paths.h"

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

/* The cache folder by the environment; *why names the variable it came from. */
static char *cache_folder(const char **why) {
    const char *value;
    if ((value = getenv(*why = "HF_HUB_CACHE")) && *value) return lk_strdup(value);
    if ((value = getenv(*why = "HF_HOME")) && *value) return lk_format("%s/hub", value);
    if ((value = getenv(*why = "XDG_CACHE_HOME")) && *value) return lk_format("%s/huggingface/hub", value);
    value = getenv(*why = "HOME");
    return lk_format("%s/.cache/huggingface/hub", value ? value : "");
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

enum lk_code lk_model_find(const char *model, char **out) {
    size_t org, name;
    const char *revision, *why;
    struct stat st;
    *out = NULL;
    if (*model && stat(model, &st) == 0) {
        if (!S_ISDIR(st.st_mode)) return lk_fail(LK_E_NOT_REGULAR, "%s: expected a model folder, got a file", model);
        return (*out = lk_strdup(model)) ? LK_OK : out_of_memory(model);
    }
    if (*model && errno == ELOOP) return lk_fail(LK_E_INPUT, "%s: symbolic links form a loop", model);
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

static bool lies_in(const char *path, const char *folder, size_t n) {
    while (n && folder[n - 1] == '/') n--;
    return !strncmp(path, folder, n) && path[n] == '/';
}

static enum lk_code check_inside(const char *folder, const char *relative, const char *real, const char *real_folder) {
    size_t repository = lk_hf_repository(real_folder);
    if (lies_in(real, real_folder, strlen(real_folder))) return LK_OK;
    if (repository && lies_in(real, real_folder, repository) && !strncmp(real + repository, "/blobs/", 7)) return LK_OK;
    return lk_fail(LK_E_ESCAPES, "%s: \"%s\" leads to %s, outside the model folder; put the file itself there", folder,
                   relative, real);
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
    if (!rc) rc = check_inside(folder, relative, real, real_folder);
    lk_free(real);
    lk_free(real_folder);
    if (rc)
        lk_free(path);
    else
        *out = path;
    return rc;
}
