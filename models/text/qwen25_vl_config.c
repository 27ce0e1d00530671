/* Qwen2.5-VL: text_encoder/config.json. */
#include "models/text/qwen25_vl.h"

#include <string.h>

#include "weights/quant/config.h"

#define MAX_LAYERS 1000

static void ignore_all(struct lk_config *json, const char *const *keys, size_t n) {
    for (size_t i = 0; i < n; i++) lk_config_ignore(json, keys[i]);
}
#define IGNORE_ALL(json, keys) ignore_all(json, keys, sizeof(keys) / sizeof *(keys))

/* Of every configuration object that transformers writes. */
static const char *const bookkeeping[] = {"architectures", "dtype", "torch_dtype", "transformers_version",
                                          "_name_or_path"};

/* Of the language model, without meaning for inference. Sliding windows are inert as long as they are not used, which
 * is asked for. */
static const char *const inert_text[] = {
    "attention_dropout", "initializer_range", "use_cache",      "max_position_embeddings", "bos_token_id",
    "eos_token_id",      "pad_token_id",      "sliding_window", "max_window_layers"};

/* What the language model has and a config with "text_config" may repeat at the top, where nothing reads it. */
static const char *const text_keys[] = {"vocab_size",          "hidden_size",  "intermediate_size", "num_hidden_layers",
                                        "num_attention_heads", "hidden_act",   "rms_norm_eps",      "rope_theta",
                                        "num_key_value_heads", "rope_scaling", "layer_types",       "rope_parameters",
                                        "use_sliding_window"};

/* Token ids that a "text_config" of transformers 4 repeats. */
static const char *const repeated_ids[] = {"image_token_id", "video_token_id", "vision_token_id", "vision_end_token_id",
                                           "vision_start_token_id"};

static void read_sections(struct lk_config *rope, struct lk_qwen25_vl_config *c) {
    int64_t sections[3] = {0}, sum = 0;
    size_t n = 0;
    lk_config_ints(rope, "mrope_section", sections, 3, &n);
    for (size_t i = 0; i < n; i++) {
        if (sections[i] < 0 || sections[i] > c->head_dim) {
            lk_config_problem(rope, "mrope_section", LK_E_CONFIG_VALUE, "expected entries from 0 to %lld, got %lld",
                              (long long)c->head_dim / 2, (long long)sections[i]);
            return;
        }
        c->mrope_section[i] = (int)sections[i];
        sum += sections[i];
    }
    if (n != 3)
        lk_config_problem(rope, "mrope_section", LK_E_CONFIG_VALUE, "expected 3 entries, got %zu", n);
    else if (sum != c->head_dim / 2)
        lk_config_problem(rope, "mrope_section", LK_E_CONFIG_VALUE, "expected a sum of head_dim / 2 = %lld, got %lld",
                          (long long)c->head_dim / 2, (long long)sum);
}

/* "mrope" is what "default" was called before transformers gave every model its own default. */
static void expect_default_rope(struct lk_config *rope, const char *key) {
    const char *type = NULL;
    lk_config_string_or(rope, key, &type, "default");
    if (type && strcmp(type, "default") && strcmp(type, "mrope"))
        lk_config_problem(rope, key, LK_E_CONFIG_VALUE,
                          "expected \"default\" or \"mrope\", got \"%.80s\": this program implements only these", type);
}

/* "rope_scaling" with "rope_theta" beside it (transformers 4), or "rope_parameters" with it inside (5). */
static void read_rope(struct lk_config *text, struct lk_qwen25_vl_config *c) {
    bool old = lk_config_has(text, "rope_scaling");
    const char *key = old ? "rope_scaling" : "rope_parameters", *other = old ? "rope_parameters" : "rope_scaling";
    lk_config_expect_null(text, other);
    struct lk_config *rope = lk_config_object(text, key, true);
    expect_default_rope(rope, "rope_type");
    expect_default_rope(rope, "type");
    lk_config_number(lk_config_has(rope, "rope_theta") ? rope : text, "rope_theta", &c->rope_theta, 1, 1e12);
    read_sections(rope, c);
}

static void read_layer_types(struct lk_config *text, const struct lk_qwen25_vl_config *c) {
    const char *types[MAX_LAYERS];
    size_t n = 0;
    if (!lk_config_has(text, "layer_types")) {
        lk_config_ignore(text, "layer_types");
        return;
    }
    lk_config_strings(text, "layer_types", types, MAX_LAYERS, &n);
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(types[i], "full_attention")) continue;
        lk_config_problem(text, "layer_types", LK_E_CONFIG_VALUE,
                          "expected \"full_attention\" only, got \"%.80s\": this program implements no other",
                          types[i]);
        return;
    }
    if ((int64_t)n != c->num_hidden_layers)
        lk_config_problem(text, "layer_types", LK_E_CONFIG_VALUE, "expected num_hidden_layers = %lld entries, got %zu",
                          (long long)c->num_hidden_layers, n);
}

static void read_text(struct lk_config *text, struct lk_qwen25_vl_config *c) {
    IGNORE_ALL(text, inert_text);
    lk_config_expect_string(text, "hidden_act", "silu");
    lk_config_expect_bool(text, "use_sliding_window", false);
    lk_config_int(text, "vocab_size", &c->vocab_size, 1, 1 << 24);
    lk_config_int(text, "hidden_size", &c->hidden_size, 1, 1 << 20);
    lk_config_int(text, "intermediate_size", &c->intermediate_size, 1, 1 << 22);
    lk_config_int(text, "num_hidden_layers", &c->num_hidden_layers, 1, MAX_LAYERS);
    lk_config_int(text, "num_attention_heads", &c->num_attention_heads, 1, 4096);
    lk_config_int(text, "num_key_value_heads", &c->num_key_value_heads, 1, 4096);
    lk_config_number(text, "rms_norm_eps", &c->rms_norm_eps, 0, 1);
    int64_t heads = c->num_attention_heads, kv_heads = c->num_key_value_heads;
    c->head_dim = heads ? c->hidden_size / heads : 0;
    if (heads && (c->hidden_size % heads || c->head_dim % 2 || c->head_dim < 2 || c->head_dim > 512))
        lk_config_problem(text, "num_attention_heads", LK_E_CONFIG_VALUE,
                          "expected heads of an even size up to 512, got hidden_size / num_attention_heads = %lld / "
                          "%lld",
                          (long long)c->hidden_size, (long long)heads);
    if (kv_heads && heads % kv_heads)
        lk_config_problem(text, "num_key_value_heads", LK_E_CONFIG_VALUE, "expected a divisor of num_attention_heads");
    read_layer_types(text, c);
    read_rope(text, c);
}

static void read_full_attention(struct lk_config *json, struct lk_qwen25_vl_vision_config *v) {
    int64_t blocks[LK_QWEN25_VL_MAX_DEPTH];
    size_t n = 0;
    lk_config_ints(json, "fullatt_block_indexes", blocks, LK_QWEN25_VL_MAX_DEPTH, &n);
    for (size_t i = 0; i < n; i++) {
        if (blocks[i] < 0 || blocks[i] >= v->depth) {
            lk_config_problem(json, "fullatt_block_indexes", LK_E_CONFIG_VALUE,
                              "expected indices from 0 to depth - 1 = %lld, got %lld", (long long)v->depth - 1,
                              (long long)blocks[i]);
            return;
        }
        v->full_attention[blocks[i]] = true;
    }
}

static void check_vision(struct lk_config *json, const struct lk_qwen25_vl_vision_config *v) {
    int64_t heads = v->num_heads, head_dim = heads ? v->hidden_size / heads : 0;
    if (heads && (v->hidden_size % heads || head_dim % 4 || head_dim < 4 || head_dim > 512))
        lk_config_problem(json, "num_heads", LK_E_CONFIG_VALUE,
                          "expected heads whose size is a multiple of 4 up to 512, got hidden_size / num_heads = %lld "
                          "/ %lld",
                          (long long)v->hidden_size, (long long)heads);
    if (v->window_size < v->spatial_merge_size * v->patch_size)
        lk_config_problem(json, "window_size", LK_E_CONFIG_VALUE,
                          "expected at least spatial_merge_size * patch_size = %lld, got %lld",
                          (long long)(v->spatial_merge_size * v->patch_size), (long long)v->window_size);
}

static void read_vision(struct lk_config *json, struct lk_qwen25_vl_vision_config *v) {
    static const char *const inert[] = {"initializer_range", "tokens_per_second"};
    static const char *const model_types[] = {"qwen2_5_vl_vision", "qwen2_5_vl"};
    const char *model_type = NULL;
    IGNORE_ALL(json, bookkeeping);
    IGNORE_ALL(json, inert);
    lk_config_string_or(json, "model_type", &model_type, model_types[0]);
    if (model_type && strcmp(model_type, model_types[0]) && strcmp(model_type, model_types[1]))
        lk_config_problem(json, "model_type", LK_E_CONFIG_VALUE, "expected \"%s\" or \"%s\", got \"%.80s\"",
                          model_types[0], model_types[1], model_type);
    lk_config_expect_string(json, "hidden_act", "silu");
    lk_config_int(json, "depth", &v->depth, 1, LK_QWEN25_VL_MAX_DEPTH);
    lk_config_int(json, "hidden_size", &v->hidden_size, 1, 1 << 16);
    lk_config_int(json, "num_heads", &v->num_heads, 1, 4096);
    lk_config_int(json, "intermediate_size", &v->intermediate_size, 1, 1 << 20);
    lk_config_int(json, "out_hidden_size", &v->out_hidden_size, 1, 1 << 20);
    lk_config_int_or(json, "in_channels", &v->in_channels, 3, 1, 64);
    lk_config_int(json, "patch_size", &v->patch_size, 1, 256);
    lk_config_int(json, "temporal_patch_size", &v->temporal_patch_size, 1, 64);
    lk_config_int(json, "spatial_merge_size", &v->spatial_merge_size, 1, 16);
    lk_config_int(json, "window_size", &v->window_size, 1, 1 << 16);
    /* Older names, which transformers never read. */
    lk_config_expect_int(json, "in_chans", v->in_channels);
    lk_config_expect_int(json, "spatial_patch_size", v->patch_size);
    read_full_attention(json, v);
    struct lk_config *rope = lk_config_object(json, "rope_parameters", false);
    lk_config_expect_string(rope, "rope_type", "axial");
    lk_config_expect_int(rope, "rope_theta", LK_QWEN25_VL_VISION_THETA);
    check_vision(json, v);
}

static void read_token(struct lk_config *json, const char *key, const struct lk_qwen25_vl_config *c, int32_t *out) {
    int64_t id = 0;
    lk_config_int(json, key, &id, 0, c->vocab_size - 1);
    *out = (int32_t)id;
}

enum lk_code lk_qwen25_vl_config_read(struct lk_qwen25_vl_config *out, struct lk_config *json) {
    struct lk_qwen25_vl_config c = {0};
    bool text_tied = false;
    IGNORE_ALL(json, bookkeeping);
    lk_config_ignore(json, "video_token_id");
    lk_config_ignore(json, "vision_token_id");
    lk_quantization_config_read(json);
    lk_config_expect_string(json, "model_type", "qwen2_5_vl");
    lk_config_bool_or(json, "tie_word_embeddings", &c.tie_word_embeddings, false);
    struct lk_config *text = lk_config_object(json, "text_config", false);
    if (text) {
        IGNORE_ALL(json, inert_text);
        IGNORE_ALL(json, text_keys);
        lk_config_bool_or(text, "tie_word_embeddings", &text_tied, false);
        lk_config_expect_string(text, "model_type", "qwen2_5_vl_text");
        IGNORE_ALL(text, bookkeeping);
        IGNORE_ALL(text, repeated_ids);
    }
    read_text(text ? text : json, &c);
    c.tie_word_embeddings = c.tie_word_embeddings || text_tied;
    read_token(json, "image_token_id", &c, &c.image_token_id);
    read_token(json, "vision_start_token_id", &c, &c.vision_start_token_id);
    read_token(json, "vision_end_token_id", &c, &c.vision_end_token_id);
    struct lk_config *vision = lk_config_object(json, "vision_config", true);
    if (vision) read_vision(vision, &c.vision);
    if (vision && c.vision.out_hidden_size != c.hidden_size)
        lk_config_problem(vision, "out_hidden_size", LK_E_CONFIG_VALUE,
                          "expected the language model's hidden_size = %lld, got %lld", (long long)c.hidden_size,
                          (long long)c.vision.out_hidden_size);
    *out = c;
    return lk_config_close(json);
}
