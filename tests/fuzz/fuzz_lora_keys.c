/* The input is a key of a LoRA file. The module and the adapter's name lie in it, and the flattened name has no dot. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "weights/lora/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_lora_key key;
    char *text = lk_strndup((const char *)data, size);
    if (!text) return 0;
    const size_t n = strlen(text);
    char *flat = lk_malloc(n + 5);
    lk_lora_key_split(text, &key);
    if (key.module + key.length > n || key.adapter + key.adapter_length > n) abort();
    if (strncmp(text, key.prefix, strlen(key.prefix)) != 0 || key.module != strlen(key.prefix)) abort();
    if ((key.role == LK_LORA_OTHER) != (key.what != NULL) || !key.suffix) abort();
    if (key.role != LK_LORA_OTHER && key.length == n) abort();
    if (flat) {
        lk_lora_key_flatten(text + key.module, key.length, flat);
        if (strlen(flat) < key.length || strlen(flat) > key.length + 4 || strchr(flat, '.')) abort();
    }
    lk_free(flat);
    lk_free(text);
    return 0;
}
