/* A small net's file: one safetensors file with the names of the original's state, f32, each tensor copied, batch norms
 * folded into the convolutions before them. */
#pragma once

#include "weights/safetensors.h"

struct lk_net_file {
    struct lk_safetensors file;
    const char *path, *net; /* "YuNet", for messages */
    size_t n_used;          /* tensors of the file that are the net's */
};

/* The tensor's values (lk_free); *out NULL where it may be missing and is. A channel of -1 is the file's: *rows gets
 * that of dimension 0. LK_E_BIND, LK_E_NOMEM. */
enum lk_code lk_net_take(struct lk_net_file *r, float **out, bool needed, int n_dims, const int64_t *shape,
                         int64_t *rows, const char *format, ...) __attribute__((format(printf, 7, 8)));
/* w [n_out, per_channel] and b [n_out] as if the norm behind them were theirs, its eps 1e-5; nothing to do where it is
 * not needed and not there. */
enum lk_code lk_net_fold(struct lk_net_file *r, float *w, float *b, int n_out, size_t per_channel, bool needed,
                         const char *norm);
/* Training keeps a count beside each norm; anything else that was not asked for is of another net: LK_E_BIND. */
enum lk_code lk_net_check_rest(const struct lk_net_file *r);
