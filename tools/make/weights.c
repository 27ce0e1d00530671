#include "tools/make/family.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/bf16.h"

static void group_norm(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    make_norm(list, n, prefix, name);
    make_bias(list, n, prefix, name);
}

static void resnet(struct make_list *list, int64_t in, int64_t out, const char *prefix) {
    group_norm(list, in, prefix, "norm1");
    make_conv(list, out, in, 3, prefix, "conv1");
    group_norm(list, out, prefix, "norm2");
    make_conv(list, out, out, 3, prefix, "conv2");
    if (in != out) make_conv(list, out, in, 1, prefix, "conv_shortcut");
}

static void mid_block(struct make_list *list, int64_t c, const char *side) {
    char p[96];
    for (int i = 0; i < 2; i++) {
        snprintf(p, sizeof p, "%s.mid_block.resnets.%d.", side, i);
        resnet(list, c, c, p);
    }
    snprintf(p, sizeof p, "%s.mid_block.attentions.0.", side);
    group_norm(list, c, p, "group_norm");
    static const char *const square[] = {"to_q", "to_k", "to_v", "to_out.0"};
    for (int i = 0; i < 4; i++) {
        make_linear(list, c, c, 1, p, square[i]);
        make_bias(list, c, p, square[i]);
    }
}

void make_autoencoder_kl(struct make_list *list, const struct make_autoencoder_kl *f) {
    int64_t z = f->latent_channels, in = f->levels[0], top = f->levels[3];
    char p[96];
    list->dtype = LK_F32;
    make_conv(list, in, 3, 3, "encoder.", "conv_in");
    for (int level = 0; level < 4; level++) {
        for (int i = 0; i < f->layers_per_block; i++, in = f->levels[level]) {
            snprintf(p, sizeof p, "encoder.down_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, f->levels[level], p);
        }
        snprintf(p, sizeof p, "encoder.down_blocks.%d.downsamplers.0.", level);
        if (level < 3) make_conv(list, in, in, 3, p, "conv");
    }
    mid_block(list, top, "encoder");
    group_norm(list, top, "encoder.", "conv_norm_out");
    make_conv(list, 2 * z, top, 3, "encoder.", "conv_out");
    if (f->quant_convs) {
        make_conv(list, 2 * z, 2 * z, 1, "", "quant_conv");
        make_conv(list, z, z, 1, "", "post_quant_conv");
    }
    make_conv(list, top, z, 3, "decoder.", "conv_in");
    mid_block(list, top, "decoder");
    in = top;
    for (int level = 0; level < 4; level++) {
        int64_t out = f->levels[3 - level];
        for (int i = 0; i <= f->layers_per_block; i++, in = out) {
            snprintf(p, sizeof p, "decoder.up_blocks.%d.resnets.%d.", level, i);
            resnet(list, in, out, p);
        }
        snprintf(p, sizeof p, "decoder.up_blocks.%d.upsamplers.0.", level);
        if (level < 3) make_conv(list, out, out, 3, p, "conv");
    }
    group_norm(list, in, "decoder.", "conv_norm_out");
    /* Quiet enough that few pixels are clipped: a clipped pixel hides a difference. */
    make_add(list, MAKE_LINEAR, 0.3, MAKE_SHAPE(3, in, 3, 3), "decoder.conv_out.weight");
    make_bias(list, 3, "decoder.", "conv_out");
    if (!f->batch_norm) return;
    make_add(list, MAKE_BIAS, 1, MAKE_SHAPE(4 * z), "bn.running_mean");
    make_add(list, MAKE_VARIANCE, 1, MAKE_SHAPE(4 * z), "bn.running_var");
    make_add(list, MAKE_COUNT, 1, MAKE_SHAPE(0), "bn.num_batches_tracked");
}

#define QUANTILES 65536

void make_add(struct make_list *list, enum make_fill fill, double gain, const int64_t shape[5], const char *name_format,
              ...) {
    if (list->failed) return;
    list->failed = lk_grow(&list->tensors, &list->capacity, list->n + 1, sizeof *list->tensors);
    if (list->failed) return;
    char name[256];
    va_list args;
    va_start(args, name_format);
    vsnprintf(name, sizeof name, name_format, args);
    va_end(args);
    struct make_tensor t = {.dtype = fill == MAKE_COUNT ? LK_I64 : list->dtype, .fill = fill, .gain = gain};
    while (t.n_dims < 5 && shape[t.n_dims]) {
        t.shape[t.n_dims] = shape[t.n_dims];
        t.n_dims++;
    }
    if (!(t.name = lk_strdup(name))) {
        list->failed = lk_fail(LK_E_NOMEM, "out of memory for the name %s", name);
        return;
    }
    list->tensors[list->n++] = t;
}

void make_list_free(struct make_list *list) {
    for (size_t i = 0; i < list->n; i++) lk_free(list->tensors[i].name);
    lk_free(list->tensors);
    *list = (struct make_list){0};
}

void make_linear(struct make_list *list, int64_t out, int64_t in, double gain, const char *prefix, const char *name) {
    make_add(list, MAKE_LINEAR, gain, MAKE_SHAPE(out, in), "%s%s.weight", prefix, name);
}

void make_norm(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    make_add(list, MAKE_NORM, 1, MAKE_SHAPE(n), "%s%s.weight", prefix, name);
}

void make_bias(struct make_list *list, int64_t n, const char *prefix, const char *name) {
    make_add(list, MAKE_BIAS, 1, MAKE_SHAPE(n), "%s%s.bias", prefix, name);
}

void make_linear_bias(struct make_list *list, int64_t out, int64_t in, const char *prefix, const char *name) {
    make_linear(list, out, in, 1, prefix, name);
    make_bias(list, out, prefix, name);
}

void make_conv(struct make_list *list, int64_t out, int64_t in, int64_t k, const char *prefix, const char *name) {
    make_add(list, MAKE_LINEAR, 1, MAKE_SHAPE(out, in, k, k), "%s%s.weight", prefix, name);
    make_bias(list, out, prefix, name);
}

void make_number(cJSON *object, const char *key, double value) {
    if (object) cJSON_AddNumberToObject(object, key, value);
}

void make_numbers(cJSON *object, const char *key, const int *values, int n) {
    if (object) cJSON_AddItemToObject(object, key, cJSON_CreateIntArray(values, n));
}

static struct lk_tensor tensor_of(const struct make_tensor *t, void *data) {
    return lk_tensor_make(data, t->dtype, t->n_dims, t->shape);
}

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The stream of a tensor: FNV-1a of its name, so that adding a tensor changes no other. */
static uint64_t stream_of(const char *name, uint64_t seed) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash ^ (seed * 0x9e3779b97f4a7c15u);
}

/* Inverse of the normal distribution's cumulative function, by bisection on erfc: slow, but used 65,536 times once. */
static double normal_quantile(double p) {
    double low = -6, high = 6;
    for (int i = 0; i < 40; i++) {
        double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / 1.4142135623730951) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* Normals are drawn from 65,536 equally likely quantiles: 16 random bits each, four to a step of the generator, which
 * fills gigabytes in seconds. */
static const float *quantiles(void) {
    static float table[QUANTILES];
    static bool ready;
    if (!ready)
        for (int i = 0; i < QUANTILES / 2; i++) {
            table[i] = (float)normal_quantile((i + 0.5) / QUANTILES);
            table[QUANTILES - 1 - i] = -table[i];
        }
    ready = true;
    return table;
}

static double value_of(const struct make_tensor *t, double normal, int64_t index) {
    double fan_in = 1;
    for (int d = 1; d < t->n_dims; d++) fan_in *= (double)t->shape[d];
    switch (t->fill) {
    case MAKE_NORM:
        return 1 + 0.1 * normal;
    case MAKE_BIAS:
        return 0.05 * normal;
    case MAKE_VARIANCE:
        return exp(0.5 * normal);
    case MAKE_TIME: {
        int64_t half = t->shape[1] / 2;
        double omega = exp(-log(10000.0) * (double)(index % half) / (double)half);
        return t->gain / sqrt(fan_in) * normal * fmin(1, 0.005 / omega);
    }
    default:
        return t->gain / sqrt(fan_in) * normal;
    }
}

/* LINEAR weights in bf16, nearly all bytes of a checkpoint: a table of finished values. */
static void fill_linear_bf16(const struct make_tensor *t, uint16_t *out, int64_t n, uint64_t state) {
    static uint16_t table[QUANTILES];
    const float *q = quantiles();
    for (int i = 0; i < QUANTILES; i++) table[i] = lk_f32_to_bf16((float)value_of(t, q[i], 0));
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t bits = splitmix64(&state);
        for (int k = 0; k < 4; k++) out[i + k] = table[(bits >> (16 * k)) & 0xffff];
    }
    for (uint64_t bits = splitmix64(&state); i < n; i++, bits >>= 16) out[i] = table[bits & 0xffff];
}

static void fill(const struct make_tensor *t, void *data, uint64_t seed) {
    struct lk_tensor shape = tensor_of(t, data);
    int64_t n = lk_tensor_numel(&shape);
    uint64_t state = stream_of(t->name, seed);
    if (t->fill == MAKE_COUNT) {
        *(int64_t *)data = 1000;
    } else if (t->fill == MAKE_LINEAR && t->dtype == LK_BF16) {
        fill_linear_bf16(t, data, n, state);
    } else {
        const float *q = quantiles();
        for (int64_t i = 0; i < n; i++) {
            float value = (float)value_of(t, q[splitmix64(&state) >> 48], i);
            if (t->dtype == LK_BF16)
                ((uint16_t *)data)[i] = lk_f32_to_bf16(value);
            else
                ((float *)data)[i] = value;
        }
    }
}

static enum lk_code write_shard(const struct make_list *list, size_t first, size_t n, const char *path, uint64_t seed) {
    struct lk_st_named *named = lk_calloc(n, sizeof *named);
    enum lk_code rc = named ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    for (size_t i = 0; i < n && !rc; i++) {
        const struct make_tensor *t = &list->tensors[first + i];
        struct lk_tensor shape = tensor_of(t, NULL);
        size_t bytes = lk_tensor_bytes(&shape);
        void *data = lk_malloc(bytes);
        if (!data) {
            rc = lk_fail(LK_E_NOMEM, "%s: out of memory for %s (%zu bytes)", path, t->name, bytes);
            break;
        }
        fill(t, data, seed);
        named[i] = (struct lk_st_named){t->name, tensor_of(t, data)};
    }
    if (!rc) rc = lk_safetensors_write(path, named, n, "{\"format\":\"pt\"}");
    for (size_t i = 0; named && i < n; i++) lk_free(named[i].tensor.data);
    lk_free(named);
    return rc;
}

/* How many tensors from `first` on go into one shard, and their bytes. */
static size_t shard_length(const struct make_list *list, size_t first, uint64_t max_bytes, uint64_t *bytes) {
    size_t n = 0;
    *bytes = 0;
    for (; first + n < list->n; n++) {
        struct lk_tensor shape = tensor_of(&list->tensors[first + n], NULL);
        uint64_t more = lk_tensor_bytes(&shape);
        if (n && *bytes + more > max_bytes) break;
        *bytes += more;
    }
    return n;
}

static enum lk_code write_index(const char *folder, const char *stem, cJSON *map, uint64_t total_bytes) {
    char path[4096], total[32];
    snprintf(path, sizeof path, "%s/%s.safetensors.index.json", folder, stem);
    snprintf(total, sizeof total, "%llu", (unsigned long long)total_bytes);
    cJSON *root = cJSON_CreateObject();
    cJSON *metadata = root ? cJSON_AddObjectToObject(root, "metadata") : NULL;
    bool made = metadata && cJSON_AddRawToObject(metadata, "total_size", total);
    if (made) made = cJSON_AddItemReferenceToObject(root, "weight_map", map);
    char *text = made ? cJSON_Print(root) : NULL;
    enum lk_code rc =
        text ? lk_atomic_write_file(path, text, strlen(text)) : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    cJSON_free(text);
    cJSON_Delete(root);
    return rc;
}

enum lk_code make_write(const struct make_list *list, const char *folder, const char *stem, uint64_t seed,
                        uint64_t max_shard_bytes) {
    if (list->failed) return list->failed;
    uint64_t bytes, total = 0;
    size_t n_shards = 0;
    for (size_t first = 0; first < list->n; n_shards++)
        first += shard_length(list, first, max_shard_bytes, &bytes), total += bytes;
    cJSON *map = cJSON_CreateObject();
    enum lk_code rc = map ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
    size_t first = 0;
    for (size_t shard = 1; shard <= n_shards && !rc; shard++) {
        char file[256], path[4096];
        if (n_shards == 1)
            snprintf(file, sizeof file, "%s.safetensors", stem);
        else
            snprintf(file, sizeof file, "%s-%05zu-of-%05zu.safetensors", stem, shard, n_shards);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        size_t n = shard_length(list, first, max_shard_bytes, &bytes);
        rc = write_shard(list, first, n, path, seed);
        for (size_t i = first; i < first + n && !rc; i++)
            if (!cJSON_AddStringToObject(map, list->tensors[i].name, file))
                rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
        first += n;
    }
    if (!rc && n_shards > 1) rc = write_index(folder, stem, map, total);
    cJSON_Delete(map);
    return rc;
}
