#include <cjson/cJSON.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "tools/cli/edit/recipe.h"
#include "weights/config.h"

/* A string of the config, kept beyond its close. */
static void keep(struct lk_config *c, const char *key, char **out) {
    const char *value = NULL;
    lk_config_string(c, key, &value);
    if (value && !(*out = lk_strdup(value))) lk_config_problem(c, key, LK_E_NOMEM, "out of memory");
}

static enum lk_code read_fields(struct cli_recipe *r, const char *name) {
    struct lk_config *c;
    enum lk_code rc = lk_config_parse(&c, r->text, strlen(r->text), name);
    if (rc) return rc;
    lk_config_expect_int(c, "format", 1);
    keep(c, "version", &r->version);
    keep(c, "family", &r->family);
    keep(c, "model", &r->model);
    keep(c, "weights_identity", &r->weights_identity);
    keep(c, "noise_sha256", &r->noise_sha256);
    keep(c, "isa", &r->isa);
    lk_config_int(c, "numerics_version", &r->numerics_version, 1, INT32_MAX);
    lk_job_read(&r->job, c, r->text, true);
    if (lk_config_has(c, "quantization")) keep(c, "quantization", &r->quantization);
    if (lk_config_has(c, "text_encoder_isa")) keep(c, "text_encoder_isa", &r->text_encoder_isa);
    lk_config_ignore(c, "best_round"); /* what came of it, like the sigmas */
    lk_config_ignore(c, "rounds");
    lk_config_ignore(c, "images"); /* read below: arrays of objects */
    lk_config_ignore(c, "sigmas");
    return lk_config_close(c);
}

static bool read_image_int(const cJSON *image, const char *key, int *out) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(image, key);
    if (!cJSON_IsNumber(value) || value->valuedouble < 0 || value->valuedouble > 65535) return false;
    *out = (int)value->valuedouble;
    return true;
}

static bool read_image(struct cli_recipe *r, const cJSON *image) {
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "file"));
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "sha256"));
    if (!file || !sha256 || r->n_images == LK_MAX_REFERENCES) return false;
    int i = r->n_images++;
    r->images[i].file = lk_strdup(file);
    r->images[i].sha256 = lk_strdup(sha256);
    return r->images[i].file && r->images[i].sha256 &&
           read_image_int(image, "source_width", &r->images[i].source_width) &&
           read_image_int(image, "source_height", &r->images[i].source_height) &&
           read_image_int(image, "width", &r->images[i].width) &&
           read_image_int(image, "height", &r->images[i].height) &&
           read_image_int(image, "crop_left", &r->images[i].crop_left) &&
           read_image_int(image, "crop_top", &r->images[i].crop_top);
}

static enum lk_code read_arrays(struct cli_recipe *r, const char *name) {
    cJSON *root = cJSON_Parse(r->text);
    const cJSON *images = cJSON_GetObjectItemCaseSensitive(root, "images"), *item;
    const cJSON *sigmas = cJSON_GetObjectItemCaseSensitive(root, "sigmas");
    bool ok = cJSON_IsArray(images) && cJSON_IsArray(sigmas);
    if (ok) {
        cJSON_ArrayForEach(item, images) ok = ok && read_image(r, item);
        cJSON_ArrayForEach(item, sigmas) {
            ok = ok && cJSON_IsNumber(item) && r->n_sigmas <= LK_MAX_STEPS;
            if (ok) r->sigmas[r->n_sigmas++] = item->valuedouble;
        }
    }
    cJSON_Delete(root);
    return ok ? LK_OK : lk_fail(LK_E_METADATA, "%s: the recipe's images or sigmas are damaged", name);
}

enum lk_code cli_recipe_parse(struct cli_recipe *out, const char *text, const char *name) {
    *out = (struct cli_recipe){.text = lk_strdup(text)};
    lk_job_init(&out->job);
    enum lk_code rc = out->text ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    if (!rc) rc = read_fields(out, name);
    if (!rc) rc = read_arrays(out, name);
    if (rc) cli_recipe_free(out);
    return rc;
}

enum lk_code cli_recipe_read(struct cli_recipe *out, const char *png_path) {
    *out = (struct cli_recipe){0};
    struct lk_png_text *texts;
    enum lk_code rc = lk_png_text_read(png_path, &texts);
    if (rc) return rc;
    const char *found = NULL;
    int n = 0;
    for (const struct lk_png_text *t = texts; t->key; t++) {
        if (strcmp(t->key, "likeness")) continue;
        found = t->text;
        n++;
    }
    if (n == 1)
        rc = cli_recipe_parse(out, found, png_path);
    else if (n)
        rc = lk_fail(LK_E_METADATA,
                     "%s: expected one recipe (text chunk \"likeness\"), got %d: nothing says which made the picture",
                     png_path, n);
    else
        rc = lk_fail(LK_E_METADATA,
                     "%s: no recipe inside (no text chunk \"likeness\"): not made by this program, or "
                     "saved again by another",
                     png_path);
    lk_png_text_free(texts);
    return rc;
}

void cli_recipe_free(struct cli_recipe *r) {
    char *strings[] = {r->text,    r->model,        r->family,       r->weights_identity, r->isa,
                       r->version, r->noise_sha256, r->quantization, r->text_encoder_isa};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) lk_free(strings[i]);
    for (int i = 0; i < r->n_images; i++) {
        lk_free(r->images[i].file);
        lk_free(r->images[i].sha256);
    }
    lk_job_free(&r->job);
    *r = (struct cli_recipe){0};
}
