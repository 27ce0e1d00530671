#include "weights/checkpoint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/text.h"
#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "weights/index.h"
#include "weights/mapped_file.h"
#include "weights/paths.h"
#include "weights/quant/gguf.h"
#include "engine/base/digest.h"

#define MISSING SIZE_MAX

static enum lk_code out_of_memory(const char *folder) { return lk_fail(LK_E_NOMEM, "%s: out of memory", folder); }

static enum lk_code open_shard(struct lk_checkpoint *cp, const char *name) {
    char *path;
    enum lk_code rc = lk_model_path(cp->folder, name, &path);
    if (rc) return rc;
    rc = lk_safetensors_open(&cp->shards[cp->n_shards], path);
    lk_free(path);
    if (rc) return rc;
    if (!(cp->shard_names[cp->n_shards] = lk_strdup(name))) {
        lk_safetensors_close(&cp->shards[cp->n_shards]);
        return out_of_memory(cp->folder);
    }
    cp->n_shards++;
    return LK_OK;
}

static enum lk_code make_room(struct lk_checkpoint *cp, size_t n_shards) {
    cp->shards = lk_calloc(n_shards, sizeof *cp->shards);
    cp->shard_names = lk_calloc(n_shards, sizeof *cp->shard_names);
    return cp->shards && cp->shard_names ? LK_OK : out_of_memory(cp->folder);
}

static int by_name(const void *a, const void *b) {
    const struct lk_checkpoint *types = NULL;
    const __typeof__(*types->tensors) *x = a, *y = b;
    return strcmp(x->tensor->name, y->tensor->name);
}

/* The table of all tensors, sorted by name. */
static enum lk_code list_tensors(struct lk_checkpoint *cp) {
    size_t n = 0;
    for (size_t s = 0; s < cp->n_shards; s++) n += cp->shards[s].n_tensors;
    if (!(cp->tensors = lk_calloc(n ? n : 1, sizeof *cp->tensors))) return out_of_memory(cp->folder);
    for (size_t s = 0; s < cp->n_shards; s++)
        for (size_t i = 0; i < cp->shards[s].n_tensors; i++, cp->n_tensors++) {
            cp->tensors[cp->n_tensors].tensor = &cp->shards[s].tensors[i];
            cp->tensors[cp->n_tensors].shard = s;
        }
    qsort(cp->tensors, n, sizeof *cp->tensors, by_name);
    return LK_OK;
}

/* Index and shards must name the same tensors in the same places. Both are sorted by name. */
static enum lk_code match_index(const struct lk_checkpoint *cp, const struct lk_index *index, const size_t *place,
                                const char *file) {
    size_t e = 0, t = 0;
    while (e < index->n_entries || t < cp->n_tensors) {
        const struct lk_index_entry *entry = e < index->n_entries ? &index->entries[e] : NULL;
        if (entry && place[entry->shard] == MISSING) {
            e++;
            continue;
        }
        const char *there = t < cp->n_tensors ? cp->tensors[t].tensor->name : NULL;
        int order = !entry ? 1 : !there ? -1 : strcmp(entry->name, there);
        if (order < 0)
            return lk_fail(LK_E_SHARD, "%s: tensor \"%.200s\" is not in \"%s\"; download the shard again", file,
                           entry->name, index->shards[entry->shard]);
        if (order > 0)
            return lk_fail(LK_E_SHARD,
                           "%s: \"%s\" holds tensor \"%.200s\", which the index does not say (or says of "
                           "another shard); download the model again",
                           file, cp->shard_names[cp->tensors[t].shard], there);
        if (place[entry->shard] != cp->tensors[t].shard)
            return lk_fail(LK_E_SHARD,
                           "%s: tensor \"%.200s\": expected in \"%s\", found in \"%s\"; download both "
                           "shards again",
                           file, there, index->shards[entry->shard], cp->shard_names[cp->tensors[t].shard]);
        e++;
        t++;
    }
    return LK_OK;
}

/* place: per shard of the index its number in cp, or MISSING. */
static enum lk_code open_shards(struct lk_checkpoint *cp, const struct lk_index *index, bool may_miss, size_t *place,
                                const char *index_path) {
    for (size_t i = 0; i < index->n_shards; i++) {
        enum lk_code rc = open_shard(cp, index->shards[i]);
        place[i] = rc ? MISSING : cp->n_shards - 1;
        if (!rc) continue;
        if (!lk_stays_below(index->shards[i]))
            return lk_fail(LK_E_ESCAPES, "%s: weight_map: expected the name of a file inside %s, got \"%.200s\"",
                           index_path, cp->folder, index->shards[i]);
        if (rc != LK_E_NOT_FOUND) return rc;
        if (!may_miss)
            return lk_fail(LK_E_SHARD, "%s: weight_map: shard \"%s\" is missing from %s; download it", index_path,
                           index->shards[i], cp->folder);
        lk_text_add(&cp->missing, "%s%s", cp->missing.n ? ", " : "", index->shards[i]);
    }
    return cp->missing.rc;
}

static enum lk_code open_indexed(struct lk_checkpoint *cp, const char *index_path, bool may_miss) {
    char *text;
    size_t n;
    struct lk_index index;
    enum lk_code rc = lk_read_file(index_path, LK_INDEX_MAX_BYTES, &text, &n);
    if (rc) return rc;
    rc = lk_index_parse(&index, text, n, index_path);
    lk_free(text);
    if (rc) return rc;
    rc = make_room(cp, index.n_shards);
    size_t *place = lk_calloc(index.n_shards ? index.n_shards : 1, sizeof *place);
    if (!rc && !place) rc = out_of_memory(cp->folder);
    if (!rc) rc = open_shards(cp, &index, may_miss, place, index_path);
    if (!rc) rc = list_tensors(cp);
    if (!rc) rc = match_index(cp, &index, place, index_path);
    lk_free(place);
    lk_index_free(&index);
    return rc;
}

static enum lk_code open_single(struct lk_checkpoint *cp, const char *name) {
    enum lk_code rc = make_room(cp, 1);
    if (!rc) rc = open_shard(cp, name);
    return rc ? rc : list_tensors(cp);
}

/* LK_OK with *path NULL when the file is not there. */
static enum lk_code find_optional(const char *folder, const char *name, char **path) {
    enum lk_code rc = lk_model_path(folder, name, path);
    return rc == LK_E_NOT_FOUND ? LK_OK : rc;
}

static enum lk_code open_either(struct lk_checkpoint *cp, const char *single, const char *index, bool may_miss) {
    char *single_path = NULL, *index_path = NULL;
    enum lk_code rc = find_optional(cp->folder, single, &single_path);
    if (!rc) rc = find_optional(cp->folder, index, &index_path);
    if (!rc && single_path && index_path)
        rc = lk_fail(LK_E_INDEX, "%s: expected either %s or %s, got both; remove the one that is out of date",
                     cp->folder, single, index);
    else if (!rc && !single_path && !index_path)
        rc = lk_fail(LK_E_NOT_FOUND, "%s: expected %s or %s, found neither", cp->folder, single, index);
    else if (!rc)
        rc = index_path ? open_indexed(cp, index_path, may_miss) : open_single(cp, single);
    lk_free(single_path);
    lk_free(index_path);
    return rc;
}

static enum lk_code open_folder(struct lk_checkpoint *out, const char *folder, const char *stem, bool may_miss) {
    memset(out, 0, sizeof *out);
    char *single = lk_format("%s.safetensors", stem), *index = lk_format("%s.safetensors.index.json", stem);
    out->folder = lk_strdup(folder);
    enum lk_code rc =
        single && index && out->folder ? open_either(out, single, index, may_miss) : out_of_memory(folder);
    lk_free(single);
    lk_free(index);
    if (rc) lk_checkpoint_close(out);
    return rc;
}

enum lk_code lk_checkpoint_open(struct lk_checkpoint *out, const char *folder, const char *stem) {
    return open_folder(out, folder, stem, false);
}

enum lk_code lk_checkpoint_open_present(struct lk_checkpoint *out, const char *folder, const char *stem) {
    return open_folder(out, folder, stem, true);
}

/* GGUF by its first bytes, whatever its name; a file with another beginning that is called .gguf is refused as one. */
static enum lk_code is_gguf(const char *path, bool *out) {
    const char *dot = strrchr(path, '.');
    char magic[4] = "";
    struct stat st;
    int fd;
    LK_TRY(lk_open_regular(path, &fd, &st));
    *out = (pread(fd, magic, sizeof magic, 0) == sizeof magic && !memcmp(magic, "GGUF", 4)) ||
           (dot && !strcasecmp(dot, ".gguf"));
    close(fd);
    return LK_OK;
}

/* Programs that keep several models in one file put the same words before all names of one. */
static void drop_prefix(struct lk_safetensors *st) {
    static const char *const prefixes[] = {"model.diffusion_model.", "diffusion_model.", "transformer."};
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        const size_t length = strlen(prefixes[p]);
        size_t n = 0;
        while (n < st->n_tensors && !strncmp(st->tensors[n].name, prefixes[p], length)) n++;
        if (n < st->n_tensors) continue;
        for (size_t i = 0; i < n; i++) st->tensors[i].name += length;
        return;
    }
}

enum lk_code lk_checkpoint_open_file(struct lk_checkpoint *out, const char *path) {
    const char *slash = strrchr(path, '/');
    bool gguf = false;
    memset(out, 0, sizeof *out);
    out->folder = slash ? lk_strndup(path, (size_t)(slash - path)) : lk_strdup(".");
    enum lk_code rc = out->folder ? make_room(out, 1) : out_of_memory(path);
    if (!rc) rc = is_gguf(path, &gguf);
    if (!rc) rc = (gguf ? lk_gguf_open : lk_safetensors_open)(&out->shards[0], path);
    if (!rc) {
        out->n_shards = 1;
        drop_prefix(&out->shards[0]);
        out->file = lk_strdup(path);
        out->shard_names[0] = lk_strdup(slash ? slash + 1 : path);
        if (!out->file || !out->shard_names[0]) rc = out_of_memory(path);
    }
    if (!rc) rc = list_tensors(out);
    if (rc) lk_checkpoint_close(out);
    return rc;
}

void lk_checkpoint_close(struct lk_checkpoint *cp) {
    for (size_t i = 0; i < cp->n_shards; i++) {
        lk_safetensors_close(&cp->shards[i]);
        lk_free(cp->shard_names[i]);
    }
    for (size_t i = 0; i < cp->n_renamed; i++) lk_free((void *)(uintptr_t)cp->renamed[i].name);
    for (size_t i = 0; i < cp->n_owned; i++) lk_free(cp->owned[i]);
    lk_free(cp->renamed);
    lk_free(cp->owned);
    lk_free(cp->shards);
    lk_free(cp->shard_names);
    lk_free(cp->tensors);
    lk_free(cp->folder);
    lk_free(cp->file);
    lk_text_free(&cp->missing);
    memset(cp, 0, sizeof *cp);
}

const char *lk_checkpoint_place(const struct lk_checkpoint *cp) { return cp->file ? cp->file : cp->folder; }

ptrdiff_t lk_checkpoint_find_index(const struct lk_checkpoint *cp, const char *name) {
    size_t low = 0, high = cp->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, cp->tensors[middle].tensor->name);
        if (!order) return (ptrdiff_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

const struct lk_st_tensor *lk_checkpoint_find(const struct lk_checkpoint *cp, const char *name) {
    const ptrdiff_t i = lk_checkpoint_find_index(cp, name);
    return i < 0 ? NULL : cp->tensors[i].tensor;
}

enum lk_code lk_checkpoint_check(const struct lk_checkpoint *cp) {
    for (size_t i = 0; i < cp->n_shards; i++) {
        enum lk_code rc = lk_mapped_check(cp->shards[i].file);
        if (rc) return rc;
    }
    return LK_OK;
}

#define SAMPLE_BYTES 512

/* The digest of a tensor's first and last bytes, as hex. */
static void sample(const struct lk_tensor *t, char hex[65]) {
    unsigned char bytes[2 * SAMPLE_BYTES];
    size_t n = lk_tensor_bytes(t), head = n < SAMPLE_BYTES ? n : SAMPLE_BYTES;
    if (head) {
        memcpy(bytes, t->data, head);
        memcpy(bytes + head, (const unsigned char *)t->data + (n - head), head);
    }
    lk_sha256(bytes, 2 * head, hex);
}

static enum lk_code identify(const struct lk_checkpoint *cp, bool with_blobs, char out[65]) {
    struct lk_text text = {0};
    char digest[65] = "", shape[96];
    enum lk_code rc = LK_OK;
    out[0] = 0;
    for (size_t i = 0; i < cp->n_shards && !rc; i++) {
        if (with_blobs) rc = lk_model_digest(cp->folder, cp->shard_names[i], digest);
        lk_text_add(&text, "file %llu %s\n", (unsigned long long)cp->shards[i].file_bytes, digest);
    }
    for (size_t i = 0; i < cp->n_tensors && !rc; i++) {
        lk_tensor_describe(&cp->tensors[i].tensor->tensor, shape);
        sample(&cp->tensors[i].tensor->tensor, digest);
        lk_text_add(&text, "%s\n %s %s\n", cp->tensors[i].tensor->name, shape, digest);
    }
    if (!rc) rc = text.rc;
    if (!rc) lk_sha256(text.bytes ? text.bytes : "", text.n, out);
    lk_text_free(&text);
    return rc;
}

enum lk_code lk_checkpoint_identity(const struct lk_checkpoint *cp, char out[65]) { return identify(cp, false, out); }

enum lk_code lk_checkpoint_identity_of_cache(const struct lk_checkpoint *cp, char out[65]) {
    return identify(cp, true, out);
}
