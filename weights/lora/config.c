/* LoraConfig of PEFT: in the header of files that diffusers wrote, under names that begin with "transformer.", or in
 * adapter_config.json of a PEFT folder. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "weights/lora/internal.h"

#define MOST_BYTES (1 << 20)

/* Of no meaning for inference, or told by the tensors. */
static const char *const known[] = {
    "task_type",       "auto_mapping",      "peft_version",        "base_model_name_or_path",
    "revision",        "inference_mode",    "lora_dropout",        "target_modules",
    "exclude_modules", "init_lora_weights", "layers_to_transform", "layers_pattern",
    "megatron_core",   "qalora_group_size", "runtime_config",      "ensure_weight_tying"};
/* That change what an adapter is: only null, false, "none" or empty are read. */
static const char *const refused[] = {
    "use_dora",     "lora_bias",         "modules_to_save",   "fan_in_fan_out",          "megatron_config",
    "loftq_config", "eva_config",        "corda_config",      "lora_ga_config",          "velora_config",
    "use_qalora",   "layer_replication", "target_parameters", "alora_invocation_tokens", "monteclora_config",
    "arrow_config", "use_bdlora",        "kasa_config",       "trainable_token_indices", "bias"};

static bool is_one_of(const char *const *list, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i], key)) return true;
    return false;
}
#define IS_ONE_OF(list, key) is_one_of(list, sizeof(list) / sizeof *(list), key)

/* null, false, "none", {} or []. */
static bool is_nothing(struct lk_json *j) {
    const char *text;
    const char next = lk_json_peek(j);
    if (next == '"') return lk_json_string(j, &text) && !strcmp(text, "none");
    if (next == '{' || next == '[') {
        bool empty = true;
        lk_json_enter(j, next);
        while (lk_json_next(j)) {
            empty = false;
            if (next == '{' && !lk_json_key(j, &text)) break;
            lk_json_skip(j);
        }
        return empty;
    }
    lk_json_skip(j);
    return next == 'n' || next == 'f';
}

static void read_pattern(struct lk_json *j, struct lk_lora_config *c, bool of_rank) {
    const char *key;
    if (lk_json_peek(j) == 'n') {
        lk_json_skip(j);
        return;
    }
    lk_json_enter(j, '{');
    while (lk_json_next(j) && lk_json_key(j, &key)) {
        struct lk_lora_pattern p = {.module = lk_strdup(key), .of_rank = of_rank};
        if (!lk_json_number(j, &p.value) || !p.module ||
            lk_grow(&c->patterns, &c->capacity, c->n_patterns + 1, sizeof *c->patterns)) {
            lk_free(p.module);
            lk_json_fail(j, LK_E_NOMEM, "out of memory");
            return;
        }
        c->patterns[c->n_patterns++] = p;
    }
}

static void read_flag(struct lk_json *j, bool *out) {
    *out = lk_json_peek(j) == 't';
    lk_json_skip(j);
}

static void read_member(struct lk_json *j, struct lk_lora_config *c, const char *key) {
    const char *text;
    double rank;
    char name[64];
    snprintf(name, sizeof name, "%s", key); /* the reader's goes when a value has keys */
    if (!strcmp(name, "r")) {
        if (!lk_json_number(j, &rank)) return;
        if (!(rank >= 1 && rank <= LK_LORA_MAX_RANK) || rank != (double)(int64_t)rank)
            lk_json_fail(j, LK_E_BIND, "\"r\": expected a rank from 1 to %d, got %g", LK_LORA_MAX_RANK, rank);
        else
            c->rank = (int64_t)rank;
    } else if (!strcmp(name, "lora_alpha")) {
        if (lk_json_number(j, &c->alpha) && !(c->alpha > 0))
            lk_json_fail(j, LK_E_BIND, "\"lora_alpha\": expected a number above 0, got %g", c->alpha);
    } else if (!strcmp(name, "rank_pattern") || !strcmp(name, "alpha_pattern")) {
        read_pattern(j, c, name[0] == 'r');
    } else if (!strcmp(name, "use_rslora")) {
        read_flag(j, &c->stabilised);
    } else if (!strcmp(name, "peft_type")) {
        if (lk_json_string(j, &text) && strcmp(text, "LORA") != 0)
            lk_json_fail(j, LK_E_BIND, "\"peft_type\": expected LORA, got %.64s: only plain LoRA is read", text);
    } else if (IS_ONE_OF(refused, name)) {
        if (!is_nothing(j)) lk_json_fail(j, LK_E_BIND, "\"%s\" is set: only plain LoRA is read", name);
    } else if (IS_ONE_OF(known, name)) {
        lk_json_skip(j);
    } else {
        lk_json_fail(j, LK_E_BIND, "\"%s\": this program does not know the field, and so not what it changes", name);
    }
}

/* Members whose keys begin with the prefix, which is taken off; others are another component's. */
static enum lk_code read_object(struct lk_lora_config *c, const char *text, size_t n, const char *prefix,
                                const char *name) {
    struct lk_json j;
    const char *key;
    lk_json_init(&j, text, n, name);
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        if (strncmp(key, prefix, strlen(prefix)) != 0)
            lk_json_skip(&j);
        else
            read_member(&j, c, key + strlen(prefix));
    }
    lk_json_end(&j);
    return lk_json_finish(&j);
}

/* The text under a key of a header's metadata; *out NULL: there is none. */
static enum lk_code metadata_text(const char *metadata, const char *wanted, const char *path, char **out) {
    struct lk_json j;
    const char *key, *text;
    *out = NULL;
    lk_json_init(&j, metadata, strlen(metadata), path);
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        if (strcmp(key, wanted) != 0)
            lk_json_skip(&j);
        else if (lk_json_string(&j, &text) && !(*out = lk_strdup(text)))
            lk_json_fail(&j, LK_E_NOMEM, "out of memory");
    }
    return lk_json_finish(&j);
}

static enum lk_code read_metadata(struct lk_lora_config *c, const char *path, const char *metadata,
                                  const char *prefix) {
    char *config;
    enum lk_code rc = metadata_text(metadata, "lora_adapter_metadata", path, &config);
    char *name = lk_format("%s: lora_adapter_metadata", path);
    if (!rc && !name) rc = lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    if (!rc && config) {
        c->source = "its header's lora_adapter_metadata";
        rc = read_object(c, config, strlen(config), prefix, name);
    }
    lk_free(name);
    lk_free(config);
    return rc;
}

enum lk_code lk_lora_merged(const struct lk_safetensors *st, char **out) {
    *out = NULL;
    if (!st->metadata_json) return LK_OK;
    LK_TRY(metadata_text(st->metadata_json, "likeness.merged", "metadata", out));
    if (!*out || (**out == '[' && !lk_json_check(*out, strlen(*out), "likeness.merged"))) return LK_OK;
    lk_free(*out);
    *out = NULL;
    return LK_OK;
}

static enum lk_code read_beside(struct lk_lora_config *c, const char *path) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    char *config = lk_format("%.*sadapter_config.json", folder, path), *text = NULL;
    size_t n;
    if (!config) return lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    enum lk_code rc = lk_read_file(config, MOST_BYTES, &text, &n);
    if (rc == LK_E_NOT_FOUND) {
        lk_free(config);
        return LK_OK;
    }
    if (!rc) {
        c->source = "adapter_config.json beside it";
        rc = read_object(c, text, n, "", config);
    }
    lk_free(text);
    lk_free(config);
    return rc;
}

enum lk_code lk_lora_config_read(struct lk_lora_config *out, const char *path, const char *metadata,
                                 const char *prefix) {
    *out = (struct lk_lora_config){0};
    if (metadata) LK_TRY(read_metadata(out, path, metadata, prefix));
    return out->source ? LK_OK : read_beside(out, path);
}

void lk_lora_config_free(struct lk_lora_config *c) {
    for (size_t i = 0; i < c->n_patterns; i++) lk_free(c->patterns[i].module);
    lk_free(c->patterns);
    *c = (struct lk_lora_config){0};
}

static bool fits(const char *pattern, const char *module, size_t length) {
    const bool whole = pattern[0] == '^';
    const size_t n = strlen(pattern + whole);
    if (n > length || memcmp(module + length - n, pattern + whole, n) != 0) return false;
    return n == length || (!whole && module[length - n - 1] == '.');
}

void lk_lora_config_of(const struct lk_lora_config *c, const char *module, size_t length, double *rank, double *alpha) {
    bool found[2] = {false, false};
    *rank = (double)c->rank;
    *alpha = c->alpha;
    for (size_t i = 0; i < c->n_patterns; i++) {
        const struct lk_lora_pattern *p = &c->patterns[i];
        if (found[p->of_rank] || !fits(p->module, module, length)) continue;
        found[p->of_rank] = true;
        *(p->of_rank ? rank : alpha) = p->value;
    }
}
