/* Writes a checkpoint with random weights in the layout of a released one: for the tests, the demo and the benchmarks.
 *
 *     make_checkpoint --family flux2|qwen_edit|step1x|qwen25_vl --preset tiny|small|wide [--released-vae] [--seed N]
 * DIR
 *
 * Preset deep, of qwen_edit alone, is wide with so many layers that it has 12 GB, and a tokenizer that makes as
 * many tokens of a chat about pictures as the released one. The same arguments give the same bytes. DIR must be new or
 * empty. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "tools/make/family.h"

static enum lk_code make_folder(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
    if (mkdir(path, 0777) == 0) return LK_OK;
    if (errno != EEXIST) return lk_fail_errno(errno, "%s", path);
    if (*name) return LK_OK;
    DIR *dir = opendir(path);
    if (!dir) return lk_fail_errno(errno, "%s", path);
    int n = 0;
    while (readdir(dir)) n++;
    closedir(dir);
    return n <= 2 ? LK_OK : lk_fail(LK_E_USAGE, "%s: expected a new or empty folder", path);
}

/* Takes over `json`. */
static enum lk_code write_json(const char *folder, const char *name, cJSON *json) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = json ? cJSON_Print(json) : NULL;
    enum lk_code rc =
        text ? lk_atomic_write_file(path, text, strlen(text)) : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    cJSON_free(text);
    cJSON_Delete(json);
    return rc;
}

/* The folder that a file stands in. */
static enum lk_code make_parent(const char *folder, const char *path) {
    char parent[64];
    const char *slash = strchr(path, '/');
    if (!slash) return LK_OK;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return make_folder(folder, parent);
}

static enum lk_code make(const char *folder, const struct make_family *family, const void *size, uint64_t shard_bytes,
                         uint64_t seed) {
    enum lk_code rc = make_folder(folder, "");
    for (int i = 0; i < MAKE_MAX_FILES && family->files[i].path && !rc; i++) {
        rc = make_parent(folder, family->files[i].path);
        if (!rc) rc = write_json(folder, family->files[i].path, family->files[i].json(size));
    }
    for (int i = 0; i < MAKE_MAX_WEIGHTS && family->weights[i].stem && !rc; i++) {
        char path[4096];
        struct make_list list = {0};
        snprintf(path, sizeof path, "%s/%s", folder, family->weights[i].component);
        family->weights[i].tensors(&list, size);
        rc = make_write(&list, path, family->weights[i].stem, seed, shard_bytes);
        make_list_free(&list);
    }
    return rc;
}

static enum lk_code choose(const struct make_family **family, void **size, uint64_t *shard_bytes, const char *name,
                           const char *preset, bool released_vae) {
    static const struct make_family *const families[] = {&make_family_flux2, &make_family_qwen_edit,
                                                         &make_family_step1x, &make_family_qwen25_vl};
    static const struct {
        const char *preset;
        uint64_t bytes;
    } shards[] = {{"tiny", 1 << 20}, {"small", 64 << 20}, {"wide", 1 << 30}, {"deep", 1 << 30}};
    *family = NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!strcmp(families[i]->name, name)) *family = families[i];
    if (!*family)
        return lk_fail(LK_E_USAGE, "--family: expected flux2, qwen_edit, step1x or qwen25_vl, got \"%.64s\"", name);
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++)
        if (!strcmp(shards[i].preset, preset)) *shard_bytes = shards[i].bytes;
    if (!*shard_bytes || (!strcmp(preset, "deep") && *family != &make_family_qwen_edit))
        return lk_fail(LK_E_USAGE, "--preset: expected tiny, small or wide (qwen_edit: or deep), got \"%.64s\"",
                       preset);
    *size = lk_calloc(1, (*family)->size_bytes);
    if (!*size) return lk_fail(LK_E_NOMEM, "out of memory");
    return (*family)->choose(*size, preset, released_vae);
}

static enum lk_code run(int argc, char **argv) {
    const char *folder = NULL, *preset = "tiny", *family = "flux2";
    uint64_t seed = 0;
    bool released_vae = false;
    uint64_t asked_bytes = 0;
    for (int i = 1; i < argc; i++) {
        bool valued = i + 1 < argc;
        if (!strcmp(argv[i], "--released-vae")) {
            released_vae = true;
        } else if (!strcmp(argv[i], "--preset") && valued) {
            preset = argv[++i];
        } else if (!strcmp(argv[i], "--family") && valued) {
            family = argv[++i];
        } else if (!strcmp(argv[i], "--seed") && valued) {
            char *end;
            seed = strtoull(argv[++i], &end, 10);
            if (*end || end == argv[i]) return lk_fail(LK_E_USAGE, "--seed: expected a number, got \"%s\"", argv[i]);
        } else if (!strcmp(argv[i], "--shard-bytes") && valued) {
            char *end;
            asked_bytes = strtoull(argv[++i], &end, 10);
            if (*end || !asked_bytes)
                return lk_fail(LK_E_USAGE, "--shard-bytes: expected a number, got \"%s\"", argv[i]);
        } else if (argv[i][0] != '-' && !folder) {
            folder = argv[i];
        } else {
            return lk_fail(LK_E_USAGE, "%s: not understood", argv[i]);
        }
    }
    if (!folder)
        return lk_fail(LK_E_USAGE, "usage: make_checkpoint [--family flux2|qwen_edit|step1x|qwen25_vl] "
                                   "[--preset tiny|small|wide|deep] [--released-vae] [--seed N] "
                                   "[--shard-bytes N] DIR");
    const struct make_family *chosen;
    void *size = NULL;
    uint64_t shard_bytes = 0;
    enum lk_code rc = choose(&chosen, &size, &shard_bytes, family, preset, released_vae);
    if (asked_bytes) shard_bytes = asked_bytes;
    if (!rc) rc = make(folder, chosen, size, shard_bytes, seed);
    lk_free(size);
    return rc;
}

int main(int argc, char **argv) {
    enum lk_code rc = run(argc, argv);
    if (rc) fprintf(stderr, "make_checkpoint: %s\n", lk_error_text());
    return lk_exit_code(rc);
}
