/* Binding: a model says which tensors it wants, with shapes; the report says everything that does not fit, at once.
 *
 *     struct lk_bind *b;
 *     lk_bind_begin(&b, checkpoint, "transformer", LK_BF16);
 *     for (i...) lk_bind_tensor(b, &w->block[i].to_q, 2, (int64_t[]){D, D}, "transformer_blocks.%d.attn.to_q.weight",
 * i); lk_bind_ignore(b, "vision_tower."); rc = lk_bind_finish(b, &memory, &totals);
 *
 * With checkpoint NULL nothing is read: tensors get shape, the compute dtype and an address of their own that lies
 * nowhere, which is what the plan device needs, and any machine can count a model that it could never load. */
#pragma once

#include "weights/checkpoint.h"
#include "weights/quant/quantize.h"

struct lk_bind;

/* An address that nothing lies at and that no other call gives, for so many bytes; no address of a process is as high.
 */
void *lk_bind_nowhere(size_t bytes);

/* What was bound. */
struct lk_bind_totals {
    uint64_t parameters;
    uint64_t weight_bytes; /* as stored after binding */
    size_t n_tensors;
    unsigned quantized; /* bit i: some are of the dtype LK_FIRST_QUANTIZED + i */
};

/* compute: LK_F32 or LK_BF16, the dtype of activations. A checkpoint tensor is used in place when it is bf16, or f32
 * with f32 compute; f32 and f16 tensors under bf16 compute are converted (nearest even) into memory that the binding
 * owns; f16 under f32 compute is widened. component: for messages. */
enum lk_code lk_bind_begin(struct lk_bind **out, const struct lk_checkpoint *checkpoint, const char *component,
                           enum lk_dtype compute);
/* From now on weights of linear layers are quantised as they are bound, where the checkpoint has not done it. Those of
 * modules whose path is one of `kept` (ends in NULL), ends in one or has one as a part stay as they are: the rule of
 * diffusers' llm_int8_skip_modules. A weight with NaN or Inf is refused then. */
void lk_bind_quantize(struct lk_bind *bind, enum lk_quantize how, const char *const *kept);
bool lk_bind_keeps(const char *name, const char *const *kept); /* name: "blocks.0.proj.weight" */
/* From now on linear layers get adapters of these files (lk_bind_adapter), which outlive what is bound; NULL: none.
 * rules: other names of the layers, or NULL. */
struct lk_loras;
struct lk_rename;
void lk_bind_loras(struct lk_bind *bind, struct lk_loras *loras, const struct lk_rename *rules, size_t n_rules);
/* Asks for the adapter of a linear layer [rows, columns], "blocks.0.to_q": after lk_bind_finish down [R, columns] and
 * up [rows, R] are in the compute dtype, or as they were where no file has one. */
void lk_bind_adapter(struct lk_bind *bind, const char *module, int64_t rows, int64_t columns, struct lk_tensor *down,
                     struct lk_tensor *up);
/* Asks for a tensor. Problems are collected, not returned; *out is complete after lk_bind_finish. One of two dimensions
 * is the weight of a linear layer: where the checkpoint has it quantised, *out is (engine/quantized.h). Others are
 * turned into bf16 then. */
void lk_bind_tensor(struct lk_bind *bind, struct lk_tensor *out, int n_dims, const int64_t *shape,
                    const char *name_format, ...) __attribute__((format(printf, 5, 6)));
/* A table of rows that are looked up: never quantised in memory. */
void lk_bind_embedding(struct lk_bind *bind, struct lk_tensor *out, int64_t rows, int64_t columns, const char *name);
/* LK_BIND(b, &w->to_q, LK_SHAPE(D, D), "transformer_blocks.%d.attn.to_q.weight", i) */
#define LK_SHAPE(...)                                                                                                  \
    { __VA_ARGS__ }
#define LK_BIND(bind, out, shape, ...)                                                                                 \
    lk_bind_tensor((bind), (out), (int)(sizeof((int64_t[])shape) / sizeof(int64_t)), (int64_t[])shape, __VA_ARGS__)
/* The first of these prefixes ("" allowed) under which `probe` exists is put before every later name. List ends in
 * NULL. */
void lk_bind_prefix(struct lk_bind *bind, const char *probe, const char *const *prefixes);
/* Tensors whose full name begins with prefix are known and not wanted. */
void lk_bind_ignore(struct lk_bind *bind, const char *prefix);
/* Reports missing, unexpected, wrong-shape and wrong-dtype tensors together (LK_E_BIND; the first few of each kind by
 * name, then a count), LK_E_CHANGED or LK_E_IO when the files are no longer what was opened, LK_E_NOMEM, or LK_OK.
 * Frees `bind` in either case. *owned (lk_free) gets the memory of converted tensors, NULL if none. totals may be NULL.
 */
enum lk_code lk_bind_finish(struct lk_bind *bind, void **owned, struct lk_bind_totals *totals);
