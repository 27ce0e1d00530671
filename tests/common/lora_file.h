/* A LoRA file in the making, and a small model to bind it to. */
#pragma once

#include "weights/lora/lora.h"

#define LORA_MOST 16

struct lora_file {
    struct lk_st_named tensors[LORA_MOST];
    size_t n;
    const char *metadata, *config; /* adapter_config.json beside it */
};

/* Of ones in f32; of any numbers in other dtypes. At most 4096 bytes, or shapes whose data nobody looks at. */
struct lk_tensor lora_filled(enum lk_dtype dtype, int n_dims, const int64_t *shape);
#define LORA_SHAPE(...)                                                                                                \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }
void lora_put(struct lora_file *f, const char *key, struct lk_tensor tensor);
void lora_put_pair(struct lora_file *f, const char *a, const char *b, int64_t rank, int64_t n, int64_t k);
/* Its path, until the next call. */
const char *lora_write(const struct lora_file *f);

/* Three layers: blocks.0.to_q and to_k [8, 6], which are the halves of b.0.qk, and norm_out.linear [4, 8], which is
 * last.1 with its halves exchanged. */
#define LORA_LAYERS 3
struct lora_model {
    struct lk_loras *loras;
    struct lk_tensor down[LORA_LAYERS], up[LORA_LAYERS];
};
enum lk_code lora_bind(struct lora_model *m, const char *const *asked, int n, enum lk_dtype compute, bool with_data);
/* In f32. scale: "" or "=0.5". */
enum lk_code lora_bind_file(struct lora_model *m, const struct lora_file *f, const char *scale);

#define Q_A "transformer.blocks.0.to_q.lora_A.weight"
#define Q_B "transformer.blocks.0.to_q.lora_B.weight"
