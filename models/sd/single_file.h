/* Which family a single file with all weights is of. */
#pragma once

#include "models/family.h"

/* By the names in it; LK_E_MODEL_UNKNOWN for other models than Stable Diffusion 1.5 and SDXL base, by name. */
enum lk_code lk_sd_single_file_family(const char *path, const struct lk_family **out);
