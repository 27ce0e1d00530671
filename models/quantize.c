/* A model's folder once more, with the transformer's weights in four bits. */
#include "models/quantize.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "models/common/files.h"
#include "models/family.h"
#include "weights/mapped_file.h"
#include "weights/quant/write.h"

#define STEM             "diffusion_pytorch_model"
#define SHARD_BYTES      ((uint64_t)4 << 30)
#define MAX_CONFIG_BYTES ((size_t)1 << 20)
#define MOST_DEPTH       8 /* of folders in a model */

static enum lk_code make_folder(const char *path) {
    return mkdir(path, 0777) ? lk_fail_errno(errno, "%s: cannot make the folder", path) : LK_OK;
}

/* The same file under another name where the disk allows it, else a copy. */
static enum lk_code bring_file(const char *from, const char *to) {
    if (!linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW)) return LK_OK;
    struct lk_mapped_file *file;
    LK_TRY(lk_mapped_open(&file, from));
    enum lk_code rc = lk_atomic_write_file(to, file->data, file->bytes);
    if (!rc) rc = lk_mapped_check(file);
    lk_mapped_close(file);
    return rc;
}

static enum lk_code bring_tree(const char *from, const char *to, int depth);

static enum lk_code bring_entry(const char *from, const char *to, const char *name, int depth) {
    char *source = lk_format("%s/%s", from, name), *target = lk_format("%s/%s", to, name);
    struct stat st;
    enum lk_code rc = source && target ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", from);
    if (!rc && stat(source, &st)) rc = lk_fail_errno(errno, "%s", source);
    if (!rc && S_ISDIR(st.st_mode))
        rc = depth < MOST_DEPTH ? bring_tree(source, target, depth + 1)
                                : lk_fail(LK_E_INPUT, "%s: folders lie too deep in each other", source);
    else if (!rc && S_ISREG(st.st_mode))
        rc = bring_file(source, target);
    lk_free(source);
    lk_free(target);
    return rc;
}

/* All but hidden files and the transformer's folder at the top. */
static enum lk_code bring_tree(const char *from, const char *to, int depth) {
    if (depth) LK_TRY(make_folder(to));
    DIR *folder = opendir(from);
    if (!folder) return lk_fail_errno(errno, "%s: cannot read the folder", from);
    enum lk_code rc = LK_OK;
    for (const struct dirent *e; !rc && (e = readdir(folder));)
        if (e->d_name[0] != '.' && (depth || strcmp(e->d_name, "transformer")))
            rc = bring_entry(from, to, e->d_name, depth);
    closedir(folder);
    return rc;
}

/* kept NULL: as it is. */
static enum lk_code make_config(const char *model, const char *const *kept, char **out) {
    char *path, *text;
    size_t n;
    LK_TRY(lk_model_path(model, "transformer/config.json", &path));
    enum lk_code rc = lk_read_file(path, MAX_CONFIG_BYTES, &text, &n);
    if (!rc && kept) {
        rc = lk_quantize_config(text, kept, path, out);
        lk_free(text);
    } else if (!rc) {
        *out = text;
    }
    lk_free(path);
    return rc;
}

/* What becomes of the transformer: packed, or with adapters in it. */
struct change {
    enum lk_quantize how;
    const char *const *kept;
    const struct lk_loras *loras;
};

static enum lk_code write_model(const char *model, const char *folder, const char *config, const struct change *c) {
    struct lk_checkpoint cp;
    LK_TRY(lk_component_open(&cp, model, "transformer", STEM));
    char *inner = lk_format("%s/transformer", folder), *json = lk_format("%s/transformer/config.json", folder);
    enum lk_code rc = inner && json ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
    if (!rc) rc = bring_tree(model, folder, 0);
    if (!rc) rc = make_folder(inner);
    if (!rc) rc = lk_atomic_write_file(json, config, strlen(config));
    if (!rc && c->loras) rc = lk_merge_write(&cp, inner, STEM, c->loras, SHARD_BYTES);
    if (!rc && !c->loras) rc = lk_quantize_write(&cp, inner, STEM, c->how, c->kept, SHARD_BYTES);
    lk_free(inner);
    lk_free(json);
    lk_checkpoint_close(&cp);
    return rc;
}

static enum lk_code change_model(const char *model, const char *folder, const struct change *c) {
    char *config = NULL;
    struct lk_atomic_file *made;
    LK_TRY(make_config(model, c->loras ? NULL : c->kept, &config));
    enum lk_code rc = lk_atomic_open_folder(&made, folder);
    if (!rc && (rc = write_model(model, lk_atomic_folder(made), config, c)))
        lk_atomic_discard(made);
    else if (!rc)
        rc = lk_atomic_commit(made);
    lk_free(config);
    return rc;
}

enum lk_code lk_model_quantize(const char *model, const char *folder, enum lk_quantize how) {
    struct lk_pipeline *pipeline; /* checks every config, and says which family it is */
    LK_TRY(lk_pipeline_open_configs(&pipeline, model, LK_BF16));
    const char *from = lk_pipeline_folder(pipeline);
    const struct change change = {.how = how, .kept = pipeline->family->kept};
    enum lk_code rc = from ? change_model(from, folder, &change)
                           : lk_fail(LK_E_USAGE, "%s: a model's folder or repository is needed", model);
    lk_pipeline_close(pipeline);
    return rc;
}

enum lk_code lk_model_merge(const char *model, const char *folder, const char *const *loras, int n_loras) {
    struct lk_pipeline *pipeline;
    const struct lk_pipeline_options options = {.compute = LK_BF16, .loras = loras, .n_loras = n_loras};
    if (!n_loras) return lk_fail(LK_E_USAGE, "--lora: missing: what is to be merged?");
    LK_TRY(lk_pipeline_open_with(&pipeline, model, &options));
    const struct change change = {.loras = pipeline->loras};
    enum lk_code rc =
        pipeline->loras->whole
            ? lk_fail(LK_E_USAGE, "lora merge: of %s it is not written; give it to --lora where pictures are made",
                      pipeline->name)
            : change_model(lk_pipeline_folder(pipeline), folder, &change);
    lk_pipeline_close(pipeline);
    return rc;
}
