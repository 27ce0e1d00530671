#include "models/common/files.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "weights/lora/lora.h"

static void expect_class(struct lk_config *json, const char *const *classes) {
    const char *found = NULL;
    lk_config_string(json, "_class_name", &found);
    if (!found) return;
    for (int i = 0; classes[i]; i++)
        if (!strcmp(found, classes[i])) return;
    lk_config_problem(json, "_class_name", LK_E_CONFIG_VALUE, "expected \"%s\", got \"%s\"", classes[0], found);
}

enum lk_code lk_model_index_check(const char *folder, const char *const *classes,
                                  const struct lk_component *components) {
    struct lk_config *json;
    char *path;
    LK_TRY(lk_model_path(folder, "model_index.json", &path));
    enum lk_code rc = lk_config_open(&json, path);
    lk_free(path);
    if (rc) return rc;
    expect_class(json, classes);
    lk_config_ignore(json, "_diffusers_version");
    lk_config_ignore(json, "_name_or_path");
    for (const struct lk_component *c = components; c->name; c++) {
        const char *names[2];
        size_t n = 0;
        if (!c->class_name) {
            lk_config_ignore(json, c->name);
            continue;
        }
        lk_config_strings(json, c->name, names, 2, &n);
        if (n != 2 || strcmp(names[1], c->class_name))
            lk_config_problem(json, c->name, LK_E_CONFIG_VALUE, "expected class %s, got %s", c->class_name,
                              n == 2 ? names[1] : "none");
    }
    return lk_config_close(json);
}

enum lk_code lk_component_config(struct lk_config **out, const char *folder, const char *relative,
                                 const char *released) {
    if (!folder) return lk_config_parse(out, released, strlen(released), relative);
    char *path;
    LK_TRY(lk_model_path(folder, relative, &path));
    enum lk_code rc = lk_config_open(out, path);
    lk_free(path);
    return rc;
}

enum lk_code lk_component_open(struct lk_checkpoint *out, const char *folder, const char *component, const char *stem) {
    char *path;
    LK_TRY(lk_model_path(folder, component, &path));
    enum lk_code rc = lk_checkpoint_open(out, path, stem);
    lk_free(path);
    return rc;
}

enum lk_code lk_component_open_variant(struct lk_checkpoint *out, const char *folder, const char *component,
                                       const char *stem, struct lk_file_variant variant) {
    struct lk_error error;
    enum lk_code rc = variant.only ? LK_E_NOT_FOUND : lk_component_open(out, folder, component, stem);
    if (rc != LK_E_NOT_FOUND) return rc;
    lk_error_get(&error, rc);
    char *other = lk_format("%s.%s", stem, variant.name);
    rc = other ? lk_component_open(out, folder, component, other) : lk_fail(LK_E_NOMEM, "%s: out of memory", folder);
    lk_free(other);
    return rc == LK_E_NOT_FOUND && !variant.only ? lk_error_set(&error) : rc;
}

enum lk_code lk_component_open_present(struct lk_checkpoint *out, const char *folder, const char *component,
                                       const char *stem) {
    char *path;
    LK_TRY(lk_model_path(folder, component, &path));
    enum lk_code rc = lk_checkpoint_open_present(out, path, stem);
    lk_free(path);
    return rc;
}

enum lk_code lk_transformer_open(struct lk_checkpoint *out, const char *folder, const char *file) {
    if (!file) return lk_component_open(out, folder, "transformer", "diffusion_pytorch_model");
    LK_TRY(lk_checkpoint_open_file(out, file));
    const size_t n_modules = lk_lora_count(&out->shards[0]);
    if (!n_modules) return LK_OK;
    lk_checkpoint_close(out);
    return lk_fail(LK_E_BIND, "%s: is a LoRA (%zu modules): give it to --lora", file, n_modules);
}

enum lk_code lk_model_check_weights(const char *folder, const char *transformer) {
    static const char *const parts[][3] = {{"transformer", "transformer/config.json", "diffusion_pytorch_model"},
                                           {"unet", "unet/config.json", "diffusion_pytorch_model"},
                                           {"vae", "vae/config.json", "diffusion_pytorch_model"},
                                           {"text_encoder", "text_encoder/config.json", "model"},
                                           {"text_encoder_2", "text_encoder_2/config.json", "model"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct lk_checkpoint checkpoint = {0};
        char *config;
        enum lk_code rc = lk_model_path(folder, parts[i][1], &config);
        if (rc == LK_E_NOT_FOUND) continue;
        LK_TRY(rc);
        lk_free(config);
        rc = !i && transformer ? lk_transformer_open(&checkpoint, folder, transformer)
                               : lk_component_open_variant(&checkpoint, folder, parts[i][0], parts[i][2],
                                                           (struct lk_file_variant){"fp16", false});
        lk_checkpoint_close(&checkpoint);
        LK_TRY(rc);
    }
    return LK_OK;
}

enum lk_code lk_components_identity(const struct lk_checkpoint *checkpoints, int n, const char *first,
                                    lk_identity_fn *identity, char out[65]) {
    char all[8 * 65 + 1] = "";
    for (int i = 0; i < n; i++) {
        char one[65];
        if (!i && *first)
            memcpy(one, first, sizeof one);
        else
            LK_TRY(identity(&checkpoints[i], one));
        strcat(strcat(all, one), "\n");
    }
    lk_sha256(all, strlen(all), out);
    return LK_OK;
}

enum lk_code lk_scheduler_config_read(struct lk_flow_match_config *out, struct lk_config *json) {
    static const char *const must_be_off[] = {"invert_sigmas", "stochastic_sampling", "use_beta_sigmas",
                                              "use_exponential_sigmas", "use_karras_sigmas"};
    struct lk_flow_match_config c = {0};
    int64_t train = 1000, base = 256, most = 4096;
    const char *type = "exponential";
    lk_config_expect_string(json, "_class_name", "FlowMatchEulerDiscreteScheduler");
    lk_config_ignore(json, "_diffusers_version");
    for (size_t i = 0; i < sizeof must_be_off / sizeof *must_be_off; i++)
        lk_config_expect_bool(json, must_be_off[i], false);
    lk_config_int_or(json, "num_train_timesteps", &train, 1000, 1, 1000000);
    lk_config_bool_or(json, "use_dynamic_shifting", &c.use_dynamic_shifting, false);
    lk_config_number_or(json, "shift", &c.shift, 1.0, 1e-6, 1e6);
    lk_config_number_or(json, "shift_terminal", &c.shift_terminal, 0, 0, 1);
    lk_config_string_or(json, "time_shift_type", &type, "exponential");
    lk_config_int_or(json, "base_image_seq_len", &base, 256, 1, 1 << 24);
    lk_config_int_or(json, "max_image_seq_len", &most, 4096, 1, 1 << 24);
    lk_config_number_or(json, "base_shift", &c.base_shift, 0.5, -100, 100);
    lk_config_number_or(json, "max_shift", &c.max_shift, 1.15, -100, 100);
    c.exponential = type && !strcmp(type, "exponential");
    if (type && !c.exponential && strcmp(type, "linear"))
        lk_config_problem(json, "time_shift_type", LK_E_CONFIG_VALUE,
                          "expected \"exponential\" or \"linear\", got \"%s\"", type);
    c.num_train_timesteps = (int)train;
    c.base_image_seq_len = (int)base;
    c.max_image_seq_len = (int)most;
    *out = c;
    return lk_config_close(json);
}
