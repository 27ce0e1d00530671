/* One component of a model in the Hugging Face layout: a folder with config.json and either one safetensors file or an
 * index.json with shards. Also: where a model is (folder or HF cache). Nothing here touches the network or writes to a
 * cache. */
#pragma once

#include "engine/base/text.h"
#include "weights/safetensors.h"

/* Resolves what the user wrote: an existing folder (~ and $NAME are expanded), or ORG/NAME[@revision] in the HF cache
 * (HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub; models--ORG--NAME/refs/<revision> -> snapshots/<commit>; a commit hash may stand for the
 * revision; "main" by default). out gets a malloc'ed (lk_malloc) path. LK_E_NOT_FOUND / LK_E_REVISION name every place
 * looked at. */
enum lk_code lk_model_find(const char *model, char **out);

/* A path inside a model folder: no absolute names, no "..", and the resolved file must lie inside the folder or in the
 * HF cache: below the cache's folder for a snapshot (the library links blobs into a store that all repositories share),
 * behind a blob's name for a folder with links to blobs. LK_E_ESCAPES otherwise, LK_E_NOT_FOUND when there is no such
 * file, LK_E_INPUT for a loop of links. *out is folder/relative, so that messages keep the name the user knows. */
enum lk_code lk_model_path(const char *folder, const char *relative, char **out);
/* For the whole program, before it has threads: links may lead out of a model's folder. Off at the start. */
void lk_model_follow_links(bool allowed);
/* The digest that the HF library has kept of a file, in hex: 64 digits are SHA-256, 40 the SHA-1 of a git blob. From
 * the blob's name, or from what is beside the files of a --local-dir; "" when there is none. LK_E_NOMEM. */
enum lk_code lk_model_digest(const char *folder, const char *relative, char digest[65]);

struct lk_checkpoint {
    char *folder, *file; /* file: of lk_checkpoint_open_file, else NULL */
    struct lk_safetensors *shards;
    char **shard_names;
    size_t n_shards;
    struct {
        const struct lk_st_tensor *tensor;
        size_t shard;
    } * tensors; /* sorted by name */
    size_t n_tensors;
    /* Of lk_checkpoint_rename: the tensors under their new names, and memory of some. */
    struct lk_st_tensor *renamed;
    size_t n_renamed;
    void **owned;
    size_t n_owned, owned_capacity;
    struct lk_text missing; /* names of shards that are not there, after lk_checkpoint_open_present */
};

/* Opens folder/STEM.safetensors or the shards named by folder/STEM.safetensors.index.json. stem:
 * "diffusion_pytorch_model" or "model". Every tensor of the index must be in its shard and the other way round;
 * duplicates between shards refused; so is a folder with both kinds. Reads headers only. LK_E_NOT_FOUND, LK_E_INDEX,
 * LK_E_JSON*, LK_E_SHARD, LK_E_ESCAPES, LK_E_ST_*. */
enum lk_code lk_checkpoint_open(struct lk_checkpoint *out, const char *folder, const char *stem);
/* The same, but shards may be missing: their tensors are not there then. For who does not need them; binding says which
 * are missing when it needs one. */
enum lk_code lk_checkpoint_open_present(struct lk_checkpoint *out, const char *folder, const char *stem);
void lk_checkpoint_close(struct lk_checkpoint *checkpoint);
/* A checkpoint of one file, safetensors or GGUF (by its first bytes). A prefix that all names have, as
 * "model.diffusion_model.", is dropped. */
enum lk_code lk_checkpoint_open_file(struct lk_checkpoint *out, const char *path);
/* For messages: the folder, or the one file. */
const char *lk_checkpoint_place(const struct lk_checkpoint *checkpoint);
/* Place in checkpoint->tensors, -1: not there. */
ptrdiff_t lk_checkpoint_find_index(const struct lk_checkpoint *checkpoint, const char *name);
const struct lk_st_tensor *lk_checkpoint_find(const struct lk_checkpoint *checkpoint, const char *name);
/* lk_mapped_check on every shard. */
enum lk_code lk_checkpoint_check(const struct lk_checkpoint *checkpoint);
/* A short stable identity of the weights: SHA-256 (hex, 65 bytes with NUL) over file sizes, names, shapes, dtypes and
 * the first and last 512 bytes of each tensor; the same wherever the files lie. It tells models apart; damage in the
 * middle of a tensor is for lk_verify to find. */
enum lk_code lk_checkpoint_identity(const struct lk_checkpoint *checkpoint, char out[65]);
/* As versions before 0.2 told it of a model in an HF cache: over the names of its blobs too. For their recipes. */
enum lk_code lk_checkpoint_identity_of_cache(const struct lk_checkpoint *checkpoint, char out[65]);
