#include "weights/quant/write.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/text.h"
#include "engine/bf16.h"
#include "engine/f16.h"
#include "engine/quantized.h"
#include "weights/bind.h"
#include "weights/lora/lora.h"

/* One file in the making. */
struct shard {
    struct lk_st_named *tensors;
    size_t n, capacity;
    void **owned; /* names and memory */
    size_t n_owned, owned_capacity;
    uint64_t bytes;
};

struct writer {
    const struct lk_checkpoint *checkpoint;
    const char *folder, *stem;
    enum lk_quantize how;
    const char *const *kept;
    const struct lk_loras *loras;
    struct shard shard;
    cJSON *map; /* NULL: one file */
    int i_shard, n_shards;
    size_t n_merged;
    const char *metadata; /* of every shard */
};

static enum lk_code no_memory(const struct writer *w) { return lk_fail(LK_E_NOMEM, "%s: out of memory", w->folder); }

/* p is freed with the shard; NULL if it cannot be noted (it is freed then) or is NULL. */
static void *keep(struct shard *s, void *p) {
    if (p && lk_grow(&s->owned, &s->owned_capacity, s->n_owned + 1, sizeof *s->owned)) {
        lk_free(p);
        return NULL;
    }
    if (p) s->owned[s->n_owned++] = p;
    return p;
}

static enum lk_code add(struct writer *w, const char *name, const char *part, struct lk_tensor t) {
    struct shard *s = &w->shard;
    char *full = keep(s, lk_format("%s%s", name, part));
    if (!full || lk_grow(&s->tensors, &s->capacity, s->n + 1, sizeof *s->tensors)) return no_memory(w);
    s->tensors[s->n++] = (struct lk_st_named){full, t};
    s->bytes += lk_tensor_bytes(&t);
    return LK_OK;
}

static bool is_quantized_here(const struct writer *w, const struct lk_st_tensor *t) {
    const size_t n = strlen(t->name);
    return w->how && t->tensor.n_dims == 2 && n > 7 && !strcmp(t->name + n - 7, ".weight") &&
           !lk_bind_keeps(t->name, w->kept);
}

static uint64_t bytes_after(const struct writer *w, const struct lk_st_tensor *t) {
    const int64_t n = lk_tensor_numel(&t->tensor);
    if (!is_quantized_here(w, t)) return lk_tensor_bytes(&t->tensor);
    return (uint64_t)(n + 1) / 2 + (uint64_t)((n + LK_QUANTIZE_BLOCK - 1) / LK_QUANTIZE_BLOCK) * 4;
}

/* The bf16 values of a plain tensor at any address. */
static bool to_bf16(const struct lk_tensor *t, uint16_t *out) {
    const int64_t n = lk_tensor_numel(t);
    const unsigned char *from = t->data;
    if (t->dtype == LK_BF16) {
        memcpy(out, from, (size_t)n * sizeof *out);
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        float value;
        uint16_t half;
        if (t->dtype == LK_F32) {
            memcpy(&value, from + 4 * i, sizeof value);
        } else {
            memcpy(&half, from + 2 * i, sizeof half);
            value = lk_f16_to_f32(half);
        }
        out[i] = lk_f32_to_bf16(value);
    }
    return t->dtype == LK_F32 || t->dtype == LK_F16;
}

static enum lk_code add_quantized(struct writer *w, const struct lk_st_tensor *t) {
    struct shard *s = &w->shard;
    char have[96];
    const int64_t n = lk_tensor_numel(&t->tensor), n_scales = (n + LK_QUANTIZE_BLOCK - 1) / LK_QUANTIZE_BLOCK;
    if (t->tensor.dtype != LK_BF16 && t->tensor.dtype != LK_F32 && t->tensor.dtype != LK_F16)
        return lk_fail(LK_E_BIND, "%s: %s: expected f32, bf16 or f16, got %s: quantise the model that it was made from",
                       w->checkpoint->folder, t->name, lk_tensor_describe(&t->tensor, have));
    uint16_t *values = lk_malloc((size_t)n * sizeof *values), *scales = lk_malloc((size_t)n_scales * sizeof *scales);
    unsigned char *codes = keep(s, lk_malloc((size_t)(n + 1) / 2));
    float *absmax = keep(s, lk_malloc((size_t)n_scales * sizeof *absmax));
    char *state = keep(s, lk_format("{\"quant_type\": \"nf4\", \"blocksize\": %d, \"dtype\": \"bfloat16\", \"shape\": "
                                    "[%lld, %lld]}",
                                    LK_QUANTIZE_BLOCK, (long long)t->tensor.shape[0], (long long)t->tensor.shape[1]));
    enum lk_code rc = values && scales && codes && absmax && state ? LK_OK : no_memory(w);
    int64_t bad = -1;
    if (!rc && to_bf16(&t->tensor, values)) bad = lk_quantize(w->how, values, n, LK_QUANTIZE_BLOCK, codes, scales);
    if (bad >= 0)
        rc = lk_fail(LK_E_BIND, "%s: %s: element %lld is NaN or Inf: it cannot be quantised; run `verify`",
                     w->checkpoint->folder, t->name, (long long)bad);
    for (int64_t i = 0; !rc && i < n_scales; i++) absmax[i] = lk_bf16_to_f32(scales[i]);
    lk_free(values);
    lk_free(scales);
    if (!rc) rc = add(w, t->name, "", LK_TENSOR(codes, LK_U8, (n + 1) / 2, 1));
    if (!rc) rc = add(w, t->name, ".absmax", LK_TENSOR(absmax, LK_F32, n_scales));
    if (!rc) rc = add(w, t->name, ".quant_map", LK_TENSOR((void *)(uintptr_t)lk_nf4_levels, LK_F32, 16));
    if (!rc) rc = add(w, t->name, ".quant_state.bitsandbytes__nf4", LK_TENSOR(state, LK_U8, (int64_t)strlen(state)));
    return rc;
}

/* With adapters in it where there are some for it; else as it is. */
static enum lk_code add_merged(struct writer *w, const struct lk_st_tensor *t) {
    const size_t n = strlen(t->name), module = n > 7 && !strcmp(t->name + n - 7, ".weight") ? n - 7 : 0;
    char *layer = w->loras && module && t->tensor.n_dims == 2 ? lk_strndup(t->name, module) : NULL;
    if (!layer) return add(w, t->name, "", t->tensor);
    const bool plain = t->tensor.dtype == LK_BF16 || t->tensor.dtype == LK_F32;
    struct lk_tensor copy = t->tensor;
    bool merged = false;
    enum lk_code rc = LK_OK;
    if (plain) {
        copy.data = keep(&w->shard, lk_malloc(lk_tensor_bytes(&copy)));
        if (copy.data) memcpy(copy.data, t->tensor.data, lk_tensor_bytes(&copy));
        rc = copy.data ? lk_loras_merge(w->loras, layer, &copy, &merged) : no_memory(w);
    }
    if (!rc) rc = add(w, t->name, "", copy);
    w->n_merged += merged;
    lk_free(layer);
    return rc;
}

static enum lk_code write_shard(struct writer *w) {
    char *name = w->map ? lk_format("%s-%05d-of-%05d.safetensors", w->stem, w->i_shard + 1, w->n_shards)
                        : lk_format("%s.safetensors", w->stem);
    char *path = name ? lk_format("%s/%s", w->folder, name) : NULL;
    enum lk_code rc = path ? LK_OK : no_memory(w);
    for (size_t i = 0; w->map && !rc && i < w->shard.n; i++)
        if (!cJSON_AddStringToObject(w->map, w->shard.tensors[i].name, name)) rc = no_memory(w);
    if (!rc) rc = lk_safetensors_write(path, w->shard.tensors, w->shard.n, w->metadata);
    if (!rc) rc = lk_checkpoint_check(w->checkpoint);
    lk_free(name);
    lk_free(path);
    for (size_t i = 0; i < w->shard.n_owned; i++) lk_free(w->shard.owned[i]);
    w->shard.n = w->shard.n_owned = 0;
    w->shard.bytes = 0;
    w->i_shard++;
    return rc;
}

static enum lk_code write_index(const struct writer *w, uint64_t total) {
    char *path = lk_format("%s/%s.safetensors.index.json", w->folder, w->stem), *text = cJSON_PrintUnformatted(w->map);
    char *all =
        text ? lk_format("{\"metadata\":{\"total_size\":%llu},\"weight_map\":%s}\n", (unsigned long long)total, text)
             : NULL;
    enum lk_code rc = path && all ? lk_atomic_write_file(path, all, strlen(all)) : no_memory(w);
    lk_free(path);
    cJSON_free(text);
    lk_free(all);
    return rc;
}

static enum lk_code write_all(struct writer *w, uint64_t shard_bytes, uint64_t total) {
    for (size_t i = 0; i < w->checkpoint->n_tensors; i++) {
        const struct lk_st_tensor *t = w->checkpoint->tensors[i].tensor;
        if (w->map && w->shard.n && w->shard.bytes + bytes_after(w, t) > shard_bytes) LK_TRY(write_shard(w));
        if (is_quantized_here(w, t))
            LK_TRY(add_quantized(w, t));
        else
            LK_TRY(add_merged(w, t));
    }
    LK_TRY(write_shard(w));
    return w->map ? write_index(w, total) : LK_OK;
}

static enum lk_code write_weights(struct writer *w, uint64_t shard_bytes) {
    const struct lk_checkpoint *cp = w->checkpoint;
    uint64_t total = 0, in_shard = 0;
    w->n_shards = 1;
    for (size_t i = 0; i < cp->n_tensors; i++) {
        const uint64_t bytes = bytes_after(w, cp->tensors[i].tensor);
        if (in_shard && in_shard + bytes > shard_bytes) {
            w->n_shards++;
            in_shard = 0;
        }
        in_shard += bytes;
        total += bytes;
    }
    if (w->n_shards > 1 && !(w->map = cJSON_CreateObject())) return no_memory(w);
    enum lk_code rc = write_all(w, shard_bytes, total);
    for (size_t i = 0; i < w->shard.n_owned; i++) lk_free(w->shard.owned[i]);
    lk_free(w->shard.owned);
    lk_free(w->shard.tensors);
    cJSON_Delete(w->map);
    return rc;
}

enum lk_code lk_quantize_write(const struct lk_checkpoint *cp, const char *folder, const char *stem,
                               enum lk_quantize how, const char *const *kept, uint64_t shard_bytes) {
    struct writer w = {.checkpoint = cp, .folder = folder, .stem = stem, .how = how, .kept = kept};
    w.metadata = "{\"format\":\"pt\"}";
    return write_weights(&w, shard_bytes);
}

/* {"format": "pt", "likeness.merged": "[{\"sha256\": ..., \"scale\": ...}, ...]"} */
static char *merged_metadata(const struct lk_loras *loras) {
    struct lk_text list = {0}, text = {0};
    for (int i = 0; i < loras->n; i++)
        lk_text_add(&list, "%s{\"sha256\":\"%s\",\"scale\":%.17g}", i ? "," : "[", loras->list[i].sha256,
                    loras->list[i].scale);
    lk_text_add(&list, "]");
    lk_text_add(&text, "{\"format\":\"pt\",\"likeness.merged\":");
    if (!list.rc) lk_text_json(&text, list.bytes);
    lk_text_add(&text, "}");
    if (lk_text_free(&list) || text.rc) {
        lk_text_free(&text);
        return NULL;
    }
    return text.bytes;
}

enum lk_code lk_merge_write(const struct lk_checkpoint *cp, const char *folder, const char *stem,
                            const struct lk_loras *loras, uint64_t shard_bytes) {
    struct writer w = {.checkpoint = cp, .folder = folder, .stem = stem, .loras = loras};
    char *metadata = merged_metadata(loras);
    size_t n = 0;
    for (size_t i = 0; i < loras->n_layers; i++) n += lk_lora_layer_values(loras, i) > 0;
    w.metadata = metadata;
    enum lk_code rc = metadata ? write_weights(&w, shard_bytes) : no_memory(&w);
    lk_free(metadata);
    if (rc || w.n_merged == n) return rc;
    return lk_fail(LK_E_BIND,
                   "%s: %zu of %zu adapted weights are packed, or f16: merge into the model that it was made from",
                   cp->folder, n - w.n_merged, n);
}

enum lk_code lk_quantize_config(const char *config, const char *const *kept, const char *name, char **out) {
    static const char members[] =
        "{\"_load_in_4bit\":true,\"_load_in_8bit\":false,\"bnb_4bit_compute_dtype\":\"bfloat16\","
        "\"bnb_4bit_quant_storage\":\"uint8\",\"bnb_4bit_quant_type\":\"nf4\",\"bnb_4bit_use_double_quant\":false,"
        "\"llm_int8_enable_fp32_cpu_offload\":false,\"llm_int8_has_fp16_weight\":false,"
        "\"load_in_4bit\":true,\"load_in_8bit\":false,\"quant_method\":\"bitsandbytes\"}";
    cJSON *root = cJSON_Parse(config), *about = cJSON_Parse(members);
    cJSON *skip = about ? cJSON_AddArrayToObject(about, "llm_int8_skip_modules") : NULL;
    /* As written: diffusers takes no 6 for a float. */
    bool ok = cJSON_IsObject(root) && skip && cJSON_AddRawToObject(about, "llm_int8_threshold", "6.0");
    for (; ok && *kept; kept++) {
        cJSON *item = cJSON_CreateString(*kept);
        ok = item && cJSON_AddItemToArray(skip, item);
    }
    if (ok && cJSON_HasObjectItem(root, "quantization_config")) {
        cJSON_Delete(root);
        cJSON_Delete(about);
        return lk_fail(LK_E_CONFIG_VALUE, "%s: the weights are quantised already; use the model they were made from",
                       name);
    }
    ok = ok && cJSON_AddItemToObject(root, "quantization_config", about);
    if (ok) about = NULL;
    char *text = ok ? cJSON_Print(root) : NULL;
    *out = text ? lk_format("%s\n", text) : NULL;
    cJSON_free(text);
    cJSON_Delete(root);
    cJSON_Delete(about);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory, or no object of JSON", name);
}
