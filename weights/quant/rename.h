/* Other names for a checkpoint's tensors: files of the same weights under the names of another program. */
#pragma once

#include "weights/checkpoint.h"

/* Module `from` ("blocks.%d.qkv") is `to` ("layers.%d.to_q"), or n_taken of its n_parts equal shares of rows, from
 * the part-th on; with n_parts 1 and `swapped` its two halves of rows lie the other way round. What follows a module's
 * name (".weight",
 * ".weight_scale") stays; a module that ends in a whole tensor's name, as "norm.scale", gets one as `to`. */
struct lk_rename {
    const char *from, *to;
    int part, n_taken, n_parts;
    bool swapped;
};

/* What of a name follows the module that a pattern names, "" or from a dot or underscore on; *number is what its %d
 * stands for. NULL: another module. */
const char *lk_rename_match(const char *name, const char *pattern, int *number);
/* The pattern with a number for its %d, if it has one. */
void lk_rename_fill(const char *pattern, int number, char *out, size_t size);

/* Every tensor gets its names by the first rules that fit; others keep theirs. A name that begins with prefix loses it
 * first. LK_E_BIND where rows cannot be shared out, LK_E_NOMEM. */
enum lk_code lk_checkpoint_rename(struct lk_checkpoint *checkpoint, const char *prefix, const struct lk_rename *rules,
                                  size_t n_rules);

/* Leaves the tensors whose names begin with prefix and with none of `without` (ends in NULL). */
void lk_checkpoint_keep(struct lk_checkpoint *checkpoint, const char *prefix, const char *const *without);

/* After lk_checkpoint_rename: the matrix of this name, if it is one, with rows and columns exchanged. LK_E_NOMEM. */
enum lk_code lk_checkpoint_transpose(struct lk_checkpoint *checkpoint, const char *name);
