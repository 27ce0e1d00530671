#pragma once

#include "weights/quant/quantize.h"

/* Makes `folder`, which must not be there: the model with its transformer's weights as bitsandbytes stores them (how:
 * nf4, nf4-mse), so that diffusers reads it too. Other files are hard links where the disk allows it, else copies.
 * What fails on the way leaves its work in `folder`.part. */
enum lk_code lk_model_quantize(const char *model, const char *folder, enum lk_quantize how);

/* The same with adapters in the transformer's weights (weights/lora/lora.h), which stay in their dtypes: LK_E_BIND
 * where they are packed. loras: FILE[=SCALE]. */
enum lk_code lk_model_merge(const char *model, const char *folder, const char *const *loras, int n_loras);
