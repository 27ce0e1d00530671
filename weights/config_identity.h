/* What decides a model's output beside its weights: the values that readers took from its configs, scheduler, processor
 * and tokenizer. Every lk_config and tokenizer that this thread opens below `folder` adds itself, so that no model can
 * forget a file.
 *
 *     LK_TRY(lk_config_identity_begin(folder));
 *     rc = ... open the model ...
 *     rc = lk_config_identity_end(rc, &text);   // {"scheduler/scheduler_config.json":"<sha256>",...}
 *
 * A digest is over lines "key value" of what was read, defaults included, in sorted order: spaces, the order of keys
 * and fields that the reader ignores (_name_or_path, _diffusers_version) do not change it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

/* One at a time in a thread. */
enum lk_code lk_config_identity_begin(const char *folder);
/* Files below a second folder count too, with `prefix` before their names. */
enum lk_code lk_config_identity_also(const char *folder, const char *prefix);
/* Gives rc back, or LK_E_NOMEM. *text: a JSON object, file names sorted, lk_malloc'ed; NULL unless LK_OK. */
enum lk_code lk_config_identity_end(enum lk_code rc, char **text);

/* For readers: whether the file at `path` counts, and the lines that were read of it. */
bool lk_config_identity_wants(const char *path);
void lk_config_identity_add(const char *path, const char *lines);

/* LK_E_CHANGED when files differ between two such texts: "MAKER: another configuration than it was made with:
 * FOLDER/FILE: expected ..., got ...", each of them named. counts: which files are compared; NULL: all. LK_E_METADATA:
 * expected is no such text. */
typedef bool lk_config_counts_fn(const char *file);
enum lk_code lk_config_identity_check(const char *maker, const char *folder, const char *expected, const char *got,
                                      lk_config_counts_fn *counts);
