/* The format's names of dtypes. */
#pragma once

#include <string.h>

#include "engine/tensor.h"

static const char *const lk_st_dtype_names[LK_DTYPE_COUNT] = {
    [LK_F32] = "F32", [LK_BF16] = "BF16", [LK_F16] = "F16",         [LK_F64] = "F64",
    [LK_U8] = "U8",   [LK_I8] = "I8",     [LK_I16] = "I16",         [LK_I32] = "I32",
    [LK_I64] = "I64", [LK_BOOL] = "BOOL", [LK_F8_E4M3] = "F8_E4M3", [LK_F8_E5M2] = "F8_E5M2",
};

static inline bool lk_st_dtype_parse(const char *text, enum lk_dtype *out) {
    for (int i = 0; i < LK_DTYPE_COUNT; i++)
        if (lk_st_dtype_names[i] && !strcmp(text, lk_st_dtype_names[i])) {
            *out = (enum lk_dtype)i;
            return true;
        }
    return false;
}
