/* Writes a component's weights as bitsandbytes stores them, so that diffusers and this program read them. */
#pragma once

#include "weights/checkpoint.h"
#include "weights/quant/quantize.h"

/* folder/STEM.safetensors, or shards with an index where the weights take more than shard_bytes. Weights of linear
 * layers are quantised (how: nf4 or nf4-mse), but for those of modules in `kept` (lk_bind_keeps); others are copied. At
 * most one shard is in memory. LK_E_BIND for a weight with NaN or Inf, or one that is quantised already. */
enum lk_code lk_quantize_write(const struct lk_checkpoint *checkpoint, const char *folder, const char *stem,
                               enum lk_quantize how, const char *const *kept, uint64_t shard_bytes);
/* The same with adapters in the weights (lk_loras_merge), which keep their dtypes; "likeness.merged" of each shard's
 * metadata says which. LK_E_BIND where an adapted weight is neither bf16 nor f32. */
struct lk_loras;
enum lk_code lk_merge_write(const struct lk_checkpoint *checkpoint, const char *folder, const char *stem,
                            const struct lk_loras *loras, uint64_t shard_bytes);
/* The text of config.json with the "quantization_config" that such weights need: lk_free. */
enum lk_code lk_quantize_config(const char *config, const char *const *kept, const char *name, char **out);
