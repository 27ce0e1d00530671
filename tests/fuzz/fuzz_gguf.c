/* The input is the beginning of a GGUF file, which ends with it. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "weights/quant/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_safetensors st;
    int64_t live = lk_alloc_live();
    if (!lk_gguf_parse(&st, data, size, size, "fuzz")) {
        for (size_t i = 0; i < st.n_tensors; i++) {
            const struct lk_st_tensor *t = &st.tensors[i];
            if (t->end - t->begin != lk_tensor_bytes(&t->tensor) || st.data_offset + t->end > size) abort();
            if (i && strcmp(t[-1].name, t->name) >= 0) abort();
        }
        lk_safetensors_close(&st);
    }
    if (lk_alloc_live() != live) abort();
    return 0;
}
