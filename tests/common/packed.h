/* Tiny edits with the transformer's weights in every form that is read: as they are, packed as they are read, and in
 * one file as people publish them, fp8 with a scale for each matrix or GGUF of several types. */
#pragma once

#include "tests/common/tiny_edit.h"

enum packed_form { PACKED_BF16, PACKED_Q8, PACKED_NF4, PACKED_GGUF, PACKED_FP8, PACKED_FORMS };
extern const char *const packed_names[PACKED_FORMS];

/* How tiny_edits[family] is opened in this form with n_loras adapters, two at most; to be used before the next call.
 * plain: instead of the file, the bf16 weights that it stands for by the definition of its format. */
struct lk_pipeline_options packed_options(int family, enum packed_form form, int n_loras, bool plain);
