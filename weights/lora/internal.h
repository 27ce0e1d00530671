/* Shared by the parts of weights/lora. */
#pragma once

#include "weights/lora/lora.h"

struct lk_lora_module {
    const char *flat; /* lk_lora_key_flatten of its name */
    const char *name; /* in the key of a or b, `length` bytes */
    size_t length;
    const struct lk_st_tensor *a, *b, *alpha;
    int64_t rank;
    float s; /* scale * alpha / rank */
};

/* What a file's metadata, or the adapter_config.json beside it, say of its modules. */
struct lk_lora_config {
    const char *source; /* NULL: there is nothing */
    int64_t rank;       /* 0: not said; so alpha */
    double alpha;
    bool stabilised; /* s = alpha / sqrt(rank) */
    struct lk_lora_pattern {
        char *module; /* a name, or its last parts; a leading ^: from its start */
        double value;
        bool of_rank;
    } * patterns;
    size_t n_patterns, capacity;
};

/* metadata: text of the header's "__metadata__", or NULL. */
enum lk_code lk_lora_config_read(struct lk_lora_config *out, const char *path, const char *metadata);
void lk_lora_config_free(struct lk_lora_config *config);
/* Of a module: values as they are said, 0 where nothing is. */
void lk_lora_config_of(const struct lk_lora_config *config, const char *module, size_t length, double *rank,
                       double *alpha);
