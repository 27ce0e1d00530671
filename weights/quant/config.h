/* What a config.json says of quantised weights. */
#pragma once

#include "weights/config.h"

/* Knows the keys of "quantization_config", if there is one, and refuses what no weights could be read for: a closed
 * set, problems are recorded in `json`. */
void lk_quantization_config_read(struct lk_config *json);
