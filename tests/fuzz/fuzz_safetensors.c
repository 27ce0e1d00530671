/* The input is a whole file. A header that is accepted must describe the file completely. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/alloc.h"
#include "engine/base/json.h"
#include "weights/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_safetensors st;
    int64_t live = lk_alloc_live();
    if (!lk_safetensors_parse(&st, data, size, size, "fuzz")) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < st.n_tensors; i++) {
            const struct lk_st_tensor *t = &st.tensors[i];
            char shape[96];
            lk_tensor_describe(&t->tensor, shape);
            if (t->begin > t->end || t->end > size - st.data_offset) abort();
            if (t->end - t->begin != lk_tensor_bytes(&t->tensor)) abort();
            if (!lk_utf8_valid(t->name, strlen(t->name)) || lk_safetensors_find(&st, t->name) != t) abort();
            bytes += t->end - t->begin;
        }
        if (bytes != size - st.data_offset) abort();
        lk_safetensors_close(&st);
    }
    if (lk_alloc_live() != live) abort();
    return 0;
}
