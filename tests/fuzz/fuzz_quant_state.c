/* The input is the JSON that bitsandbytes keeps beside a weight. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "weights/quant/bnb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_bnb_state state;
    int64_t live = lk_alloc_live();
    if (!lk_bnb_state_parse(&state, data, size, "fuzz")) {
        if (state.block < 32 || state.block > 256 || state.block & (state.block - 1)) abort();
        if (state.n_dims != 2 || state.shape[0] < 1 || state.shape[1] < 1 || state.shape[0] > INT32_MAX) abort();
        if (state.nested && (state.nested_block != 256 || !isfinite(state.nested_offset))) abort();
    }
    if (lk_alloc_live() != live) abort();
    return 0;
}
