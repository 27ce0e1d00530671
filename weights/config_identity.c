#include "weights/config_identity.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/store.h"
#include "engine/base/text.h"

#define MAX_FILES 32

/* A file may be opened several times, of which each reads a part. */
struct file {
    const char *name; /* in the folder */
    struct lk_text lines;
};

static _Thread_local struct {
    const char *folder;        /* NULL: nobody is recording */
    const char *also, *prefix; /* the second one; NULL: there is none */
    struct lk_store texts;
    struct file files[MAX_FILES];
    int n;
    enum lk_code rc;
} recorder;

enum lk_code lk_config_identity_begin(const char *folder) {
    if (recorder.folder) return lk_fail(LK_E_INTERNAL, "%s: opened while %s is", folder, recorder.folder);
    recorder.folder = lk_store_copy(&recorder.texts, folder, strlen(folder));
    return recorder.folder ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
}

enum lk_code lk_config_identity_also(const char *folder, const char *prefix) {
    if (!recorder.folder) return LK_OK;
    recorder.also = lk_store_copy(&recorder.texts, folder, strlen(folder));
    recorder.prefix = prefix;
    return recorder.also ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
}

/* The file's name in a folder; NULL: it is elsewhere. */
static const char *name_in(const char *folder, const char *path) {
    const size_t n = folder ? strlen(folder) : 0;
    return n && !strncmp(path, folder, n) && path[n] == '/' ? path + n + 1 : NULL;
}

bool lk_config_identity_wants(const char *path) {
    return name_in(recorder.folder, path) || name_in(recorder.also, path);
}

void lk_config_identity_add(const char *path, const char *lines) {
    const char *name = name_in(recorder.folder, path), *also = name ? NULL : name_in(recorder.also, path);
    char prefixed[256];
    int i = 0;
    if (also) {
        snprintf(prefixed, sizeof prefixed, "%s%s", recorder.prefix, also);
        name = prefixed;
    }
    while (name && i < recorder.n && strcmp(recorder.files[i].name, name)) i++;
    if (!name || recorder.rc) return;
    if (i == MAX_FILES) {
        recorder.rc = lk_fail(LK_E_INTERNAL, "%s: more than %d configs", recorder.folder, MAX_FILES);
        return;
    }
    struct file *f = &recorder.files[i];
    if (i == recorder.n && !(f->name = lk_store_copy(&recorder.texts, name, strlen(name)))) {
        recorder.rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
        return;
    }
    if (i == recorder.n) recorder.n++;
    lk_text_add(&f->lines, "%s", lines);
    recorder.rc = f->lines.rc;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

/* Over the lines in sorted order, each once. */
static enum lk_code digest(struct file *f, char out[65]) {
    struct lk_text sorted = {0};
    size_t n = 0, i = 0;
    for (const char *at = f->lines.bytes; (at = strchr(at, '\n')); at++) n++;
    char **lines = lk_calloc(n + 1, sizeof *lines), *rest = f->lines.bytes, *line;
    if (!lines) return lk_fail(LK_E_NOMEM, "%s: out of memory", f->name);
    while ((line = strtok_r(rest, "\n", &rest))) lines[i++] = line;
    qsort(lines, i, sizeof *lines, by_text);
    for (size_t k = 0; k < i; k++)
        if (!k || strcmp(lines[k], lines[k - 1])) lk_text_add(&sorted, "%s\n", lines[k]);
    if (!sorted.rc) lk_sha256(sorted.bytes ? sorted.bytes : "", sorted.n, out);
    lk_free(lines);
    return lk_text_free(&sorted);
}

static enum lk_code write_all(struct lk_text *out) {
    qsort(recorder.files, (size_t)recorder.n, sizeof *recorder.files, by_name);
    lk_text_add(out, "{");
    for (int i = 0; i < recorder.n; i++) {
        char sha256[65];
        LK_TRY(digest(&recorder.files[i], sha256));
        if (i) lk_text_add(out, ",");
        lk_text_json(out, recorder.files[i].name);
        lk_text_add(out, ":\"%s\"", sha256);
    }
    lk_text_add(out, "}");
    return out->rc;
}

enum lk_code lk_config_identity_end(enum lk_code rc, char **text) {
    struct lk_text out = {0};
    *text = NULL;
    if (!rc) rc = recorder.rc;
    if (!rc) rc = write_all(&out);
    for (int i = 0; i < recorder.n; i++) lk_text_free(&recorder.files[i].lines);
    lk_store_free(&recorder.texts);
    memset(&recorder, 0, sizeof recorder);
    if (rc)
        lk_text_free(&out);
    else
        *text = out.bytes;
    return rc;
}

static void name_difference(struct lk_text *out, const char *folder, const char *file, const cJSON *expected,
                            const cJSON *got) {
    const char *before = cJSON_GetStringValue(expected), *now = cJSON_GetStringValue(got);
    if (before && now && !strcmp(before, now)) return;
    lk_text_add(out, "%s%s/%s: expected what was read then (SHA-256 %.12s), got %.12s", out->n ? "; " : "", folder,
                file, before ? before : "none", now ? now : "none");
}

enum lk_code lk_config_identity_check(const char *maker, const char *folder, const char *expected, const char *got,
                                      lk_config_counts_fn *counts) {
    struct lk_text differ = {0};
    const cJSON *item;
    cJSON *before = cJSON_Parse(expected), *now = cJSON_Parse(got ? got : "{}");
    enum lk_code rc = cJSON_IsObject(before) && cJSON_IsObject(now)
                          ? LK_OK
                          : lk_fail(LK_E_METADATA, "%s: field \"configs\": expected an object of digests", maker);
    if (!rc) {
        cJSON_ArrayForEach(item, before) if (!counts || counts(item->string))
            name_difference(&differ, folder, item->string, item, cJSON_GetObjectItemCaseSensitive(now, item->string));
        cJSON_ArrayForEach(item, now) if ((!counts || counts(item->string)) &&
                                          !cJSON_GetObjectItemCaseSensitive(before, item->string))
            name_difference(&differ, folder, item->string, NULL, item);
        rc = differ.rc;
    }
    if (!rc && differ.n)
        rc = lk_fail(LK_E_CHANGED,
                     "%s: another configuration than it was made with: %s; put the file back, or take "
                     "the model as it was",
                     maker, differ.bytes);
    lk_text_free(&differ);
    cJSON_Delete(before);
    cJSON_Delete(now);
    return rc;
}
