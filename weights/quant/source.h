/* Weights that a checkpoint holds quantised. Which they are is told by their companions, tensors whose names begin with
 * the weight's, never by a config. */
#pragma once

#include "weights/checkpoint.h"

/* A weight as it lies in the checkpoint. Its codes are used where they are; its scales are made by
 * lk_quant_source_scales. */
struct lk_quant_source {
    struct lk_tensor tensor; /* [N, K] of a quantised dtype; scales: dtype and block, no data */
    int64_t n_scales;
    const unsigned char *scales; /* f32, at any address; with a nested map its codes */
    const unsigned char *nested_map, *nested_scales;
    float nested_offset;
};

/* The companions of NAME, all tensors NAME.*: [first, first + n) of checkpoint->tensors. */
size_t lk_quant_companions(const struct lk_checkpoint *checkpoint, const char *name, size_t *first);

/* Reads the companions of `weight` as bitsandbytes writes them. LK_E_BIND names the tensor and what is wrong with it;
 * scales are not looked at. */
enum lk_code lk_bnb_read(struct lk_quant_source *out, const struct lk_st_tensor *weight,
                         const struct lk_checkpoint *checkpoint, size_t first, size_t n);

/* An fp8 weight with the one scale that may lie beside it, or a weight in blocks of GGUF, which hold theirs. known[i]
 * is set of the companions. */
enum lk_code lk_f8_read(struct lk_quant_source *out, const struct lk_st_tensor *weight,
                        const struct lk_checkpoint *checkpoint, bool *known);
/* LK_E_BIND, naming it, for a weight in a form that is known and not read; LK_OK otherwise. */
enum lk_code lk_quant_refuse(const struct lk_st_tensor *weight, const struct lk_checkpoint *checkpoint);
/* The same for one that is not there under its name. */
enum lk_code lk_quant_refuse_missing(const char *name, const struct lk_checkpoint *checkpoint);

/* bf16 where that keeps every scale as it is, else f32; LK_E_BIND when one is not finite. Reads them all. */
enum lk_code lk_quant_source_scale_dtype(struct lk_quant_source *source, const char *name);
/* All of them in that dtype into out. */
void lk_quant_source_scales(const struct lk_quant_source *source, void *out);
