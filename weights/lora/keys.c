#include "weights/lora/keys.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Of each at most one is taken off, the longest first. */
static const char *const prefixes[] = {
    "model.diffusion_model.", "base_model.model.", "lora_transformer_", "diffusion_model.",
    "transformer.",           "lora_unet_",        "lycoris_",          "unet."};
static const struct {
    const char *prefix;
    int component; /* -1: of models that take none */
} text_encoders[] = {{"lora_te_", 1},      {"lora_te1_", 1},       {"lora_te2_", 2},       {"lora_te3_", -1},
                     {"text_encoder.", 1}, {"text_encoder_2.", 2}, {"text_encoders.", -1}, {"te.", -1}};

static const struct {
    const char *ending; /* NAME stands for an adapter's name */
    const char *suffix;
    enum lk_lora_role role;
} roles[] = {
    {".lora_A.weight", "lora_A", LK_LORA_A},
    {".lora_B.weight", "lora_B", LK_LORA_B},
    {".lora_down.weight", "lora_down", LK_LORA_A},
    {".lora_up.weight", "lora_up", LK_LORA_B},
    {".lora.down.weight", "lora.down", LK_LORA_A},
    {".lora.up.weight", "lora.up", LK_LORA_B},
    {".lora_linear_layer.down.weight", "lora_linear_layer.down", LK_LORA_A},
    {".lora_linear_layer.up.weight", "lora_linear_layer.up", LK_LORA_B},
    {"_lora.down.weight", "_lora.down", LK_LORA_A},
    {"_lora.up.weight", "_lora.up", LK_LORA_B},
    {".lora_A", "lora_A (no .weight)", LK_LORA_A},
    {".lora_B", "lora_B (no .weight)", LK_LORA_B},
    {".alpha", "alpha", LK_LORA_ALPHA},
};

/* What else is published, by a part of its keys. The first that fits counts. */
static const struct {
    const char *part, *what;
} others[] = {
    {"lora_magnitude_vector", "DoRA"},
    {".dora_scale", "DoRA"},
    {".hada_t", "LoHa of a convolution"},
    {".hada_w", "LoHa"},
    {".lokr_t", "LoKr of a convolution"},
    {".lokr_w", "LoKr"},
    {".lora_mid.", "LoRA of a convolution"},
    {".lora_B.bias", "bias of an adapter"},
    {".lora_up.bias", "bias of an adapter"},
    {".lora_embedding_", "LoRA of an embedding"},
    {".boft_", "BOFT"},
    {".oft_", "OFT"},
    {".ia3_", "IA3"},
    {".a1.weight", "GLoRA"},
    {".a2.weight", "GLoRA"},
    {".b1.weight", "GLoRA"},
    {".b2.weight", "GLoRA"},
    {".reshape_weight", "reshaped adapter"},
    {".diff_b", "difference of whole biases"},
    {".diff", "difference of whole weights"},
    {".w_norm", "difference of norms"},
    {".b_norm", "difference of norms"},
    {".set_weight", "whole weight"},
    {".proj_down", "nunchaku's own LoRA"},
    {".proj_up", "nunchaku's own LoRA"},
    {".smooth_factor", "nunchaku's own LoRA"},
    {".qweight", "packed weight"},
    {".scale", "scale of another program"},
    {".weight", "whole weight"},
    {".bias", "whole bias"},
};

static bool ends_in(const char *text, size_t n, const char *ending) {
    const size_t length = strlen(ending);
    return n > length && !memcmp(text + n - length, ending, length);
}

/* "MODULE.lora_A.NAME.weight": where the name is, or 0. */
static size_t adapter_name(const char *key, size_t n, const char *role, size_t *length) {
    static const char weight[] = ".weight";
    const size_t tail = sizeof weight - 1;
    if (!ends_in(key, n, weight)) return 0;
    size_t from = n - tail;
    while (from && (isalnum((unsigned char)key[from - 1]) || key[from - 1] == '_')) from--;
    *length = n - tail - from;
    const size_t role_length = strlen(role);
    if (!*length || from <= role_length || memcmp(key + from - role_length, role, role_length) != 0) return 0;
    return from;
}

static void find_role(const char *key, size_t n, struct lk_lora_key *out) {
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (!ends_in(key, n, roles[i].ending)) continue;
        out->role = roles[i].role;
        out->suffix = roles[i].suffix;
        out->length = n - strlen(roles[i].ending);
        return;
    }
    for (int b = 0; b < 2; b++) {
        const char *role = b ? ".lora_B." : ".lora_A.";
        const size_t name = adapter_name(key, n, role, &out->adapter_length);
        if (!name) continue;
        out->role = b ? LK_LORA_B : LK_LORA_A;
        out->suffix = b ? "lora_B.NAME" : "lora_A.NAME";
        out->length = name - strlen(role);
        out->adapter = name;
        return;
    }
    out->adapter_length = 0;
    out->role = LK_LORA_OTHER;
    out->what = "unknown";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!strstr(key, others[i].part)) continue;
        out->what = others[i].what;
        return;
    }
}

static void split(const char *key, bool whole, struct lk_lora_key *out) {
    const size_t n = strlen(key);
    *out = (struct lk_lora_key){.prefix = "", .suffix = "", .length = n};
    find_role(key, n, out);
    for (size_t i = 0; i < sizeof text_encoders / sizeof *text_encoders; i++) {
        const size_t length = strlen(text_encoders[i].prefix);
        if (strncmp(key, text_encoders[i].prefix, length) != 0) continue;
        if (whole && text_encoders[i].component > 0 && out->length > length) {
            out->component = text_encoders[i].component;
            out->prefix = text_encoders[i].prefix;
            out->module = length;
            out->length -= length;
            return;
        }
        out->role = LK_LORA_OTHER;
        out->what = "adapter of the text encoder; only the transformer's are read";
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !*out->prefix; i++) {
        const size_t length = strlen(prefixes[i]);
        if (out->length <= length || strncmp(key, prefixes[i], length) != 0) continue;
        out->prefix = prefixes[i];
        out->module = length;
        out->length -= length;
    }
}

void lk_lora_key_split(const char *key, struct lk_lora_key *out) { split(key, false, out); }
void lk_lora_key_split_whole(const char *key, struct lk_lora_key *out) { split(key, true, out); }

const char *lk_lora_component(int component) {
    static const char *const names[] = {"", "text_encoder.", "text_encoder_2."};
    return names[component];
}

void lk_lora_key_flatten_whole(const struct lk_lora_key *key, const char *text, char *out) {
    static const char model[] = "text_model", processor[] = "_processor", last[] = "_to_out";
    const char *module = text + key->module, *component = lk_lora_component(key->component);
    size_t n = key->length, m = sizeof model; /* with what follows it */
    if (key->component && n > m && !memcmp(module, model, m - 1) && (module[m - 1] == '.' || module[m - 1] == '_'))
        module += m, n -= m;
    lk_lora_key_flatten(component, strlen(component), out);
    out += strlen(out);
    lk_lora_key_flatten(module, n, out);
    char *old = key->component ? NULL : strstr(out, processor);
    if (!old) return;
    memmove(old, old + sizeof processor - 1, strlen(old + sizeof processor - 1) + 1);
    const size_t length = strlen(out);
    if (length > sizeof last - 1 && !strcmp(out + length - (sizeof last - 1), last)) strcat(out, "_0");
}

void lk_lora_key_flatten(const char *module, size_t length, char *out) {
    static const char cut[] = "sformer_blocks";
    if (length > sizeof cut && !memcmp(module, cut, sizeof cut - 1)) {
        memcpy(out, "tran", 4);
        out += 4;
    }
    for (size_t i = 0; i < length; i++) out[i] = module[i] == '.' ? '_' : module[i];
    out[length] = 0;
}
