#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "models/recipe.h"
#include "weights/config.h"

/* A string of the config, kept beyond its close. */
static void keep(struct lk_config *c, const char *key, char **out) {
    const char *value = NULL;
    lk_config_string(c, key, &value);
    if (value && !(*out = lk_strdup(value))) lk_config_problem(c, key, LK_E_NOMEM, "out of memory");
}

static enum lk_code read_fields(struct lk_recipe *r, const char *name) {
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
    lk_config_ignore(c, "configs"); /* read below, as these are */
    lk_config_ignore(c, "images");
    lk_config_ignore(c, "loras");
    lk_config_ignore(c, "rewrite");
    lk_config_ignore(c, "masked");
    lk_config_ignore(c, "packed");
    lk_config_ignore(c, "cache");
    lk_config_ignore(c, "merged"); /* as the weights' identity has it */
    lk_config_int_or(c, "n_cut_ids", &r->n_cut_ids, 0, 0, INT32_MAX);
    lk_config_ignore(c, "sigmas");
    return lk_config_close(c);
}

static bool read_image_int(const cJSON *image, const char *key, int *out) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(image, key);
    if (!cJSON_IsNumber(value) || value->valuedouble < 0 || value->valuedouble > 65535) return false;
    *out = (int)value->valuedouble;
    return true;
}

static bool read_image(struct lk_recipe *r, const cJSON *image) {
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "file"));
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "sha256"));
    if (!file || !sha256 || r->n_images == LK_MAX_REFERENCES) return false;
    const char *profile = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(image, "converted_from"));
    int i = r->n_images++;
    if (profile && !(r->images[i].converted_from = lk_strdup(profile))) return false;
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

static bool read_lora(struct lk_recipe *r, const cJSON *lora) {
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(lora, "file"));
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(lora, "sha256"));
    const cJSON *scale = cJSON_GetObjectItemCaseSensitive(lora, "scale");
    if (!file || !sha256 || !cJSON_IsNumber(scale) || r->n_loras == LK_MAX_LORAS) return false;
    int i = r->n_loras++;
    r->loras[i].file = lk_strdup(file);
    r->loras[i].sha256 = lk_strdup(sha256);
    r->loras[i].scale = scale->valuedouble;
    return r->loras[i].file && r->loras[i].sha256;
}

static bool read_mask(struct lk_recipe *r, const cJSON *mask) {
    const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(mask, "file"));
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(mask, "sha256"));
    const cJSON *edited = cJSON_GetObjectItemCaseSensitive(mask, "edited");
    if (!file || !sha256 || !cJSON_IsNumber(edited)) return false;
    r->mask.file = lk_strdup(file);
    r->mask.sha256 = lk_strdup(sha256);
    r->mask.edited = edited->valuedouble;
    return r->mask.file && r->mask.sha256;
}

/* The steps that a gate of the step cache computed. */
static bool read_computed(struct lk_recipe *r, const cJSON *list) {
    const cJSON *step;
    if (r->n_cached == LK_MAX_CACHES || !cJSON_IsArray(list)) return false;
    bool *to = r->cache.computed[r->n_cached];
    cJSON_ArrayForEach(step, list) {
        if (!cJSON_IsNumber(step) || !(step->valuedouble >= 0 && step->valuedouble < LK_MAX_STEPS)) return false;
        to[step->valueint] = true;
    }
    r->n_computed[r->n_cached++] = cJSON_GetArraySize(list);
    r->cache.n = r->n_cached;
    return true;
}

static bool read_packed(struct lk_recipe *r, const cJSON *packed) {
    const char *as = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(packed, "as"));
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(packed, "pixels_sha256"));
    if (!as || !sha256 || !read_image_int(packed, "quality", &r->packed.quality)) return false;
    r->packed.as = lk_strdup(as);
    r->packed.pixels_sha256 = lk_strdup(sha256);
    return r->packed.as && r->packed.pixels_sha256;
}

static enum lk_code read_arrays(struct lk_recipe *r, const char *name) {
    cJSON *root = cJSON_Parse(r->text);
    const cJSON *images = cJSON_GetObjectItemCaseSensitive(root, "images"), *item;
    const cJSON *sigmas = cJSON_GetObjectItemCaseSensitive(root, "sigmas");
    const cJSON *mask = cJSON_GetObjectItemCaseSensitive(root, "masked");
    const cJSON *cache = cJSON_GetObjectItemCaseSensitive(root, "cache"),
                *computed = cJSON_GetObjectItemCaseSensitive(cache, "computed"),
                *packed = cJSON_GetObjectItemCaseSensitive(root, "packed");
    int n_gates = 0;
    bool ok = cJSON_IsArray(images) && cJSON_IsArray(sigmas) && (!mask || read_mask(r, mask)) &&
              (!packed || read_packed(r, packed));
    const cJSON *configs = cJSON_GetObjectItemCaseSensitive(root, "configs");
    if (configs) ok = ok && (r->configs = cJSON_PrintUnformatted(configs));
    const cJSON *rewrite = cJSON_GetObjectItemCaseSensitive(root, "rewrite");
    if (rewrite) ok = ok && (r->rewrite = cJSON_PrintUnformatted(rewrite));
    if (ok) {
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "loras")) ok = ok && read_lora(r, item);
        cJSON_ArrayForEach(item, computed) ok = ok && read_computed(r, item);
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(cache, "gates")) if (n_gates < LK_MAX_CACHES &&
                                                                                       cJSON_IsString(item))
            snprintf(r->cache_gates[n_gates++], sizeof *r->cache_gates, "%s", item->valuestring);
        cJSON_ArrayForEach(item, images) ok = ok && read_image(r, item);
        cJSON_ArrayForEach(item, sigmas) {
            ok = ok && cJSON_IsNumber(item) && r->n_sigmas <= LK_MAX_STEPS;
            if (ok) r->sigmas[r->n_sigmas++] = item->valuedouble;
        }
        r->cache.n_steps = r->n_sigmas - 1;
    }
    cJSON_Delete(root);
    return ok ? LK_OK
              : lk_fail(LK_E_METADATA, "%s: the recipe's images, loras, mask, sigmas or configs are damaged", name);
}

enum lk_code lk_recipe_parse(struct lk_recipe *out, const char *text, const char *name) {
    *out = (struct lk_recipe){.text = lk_strdup(text)};
    lk_job_init(&out->job);
    enum lk_code rc = out->text ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", name);
    if (!rc) rc = read_fields(out, name);
    if (!rc) rc = read_arrays(out, name);
    if (rc) lk_recipe_free(out);
    return rc;
}

enum lk_code lk_recipe_read(struct lk_recipe *out, const char *path) {
    *out = (struct lk_recipe){0};
    struct lk_png_text *texts;
    enum lk_code rc = lk_picture_text_read(path, &texts);
    if (rc) return rc;
    const char *found = NULL;
    int n = 0;
    for (const struct lk_png_text *t = texts; t->key; t++) {
        if (strcmp(t->key, "likeness")) continue;
        found = t->text;
        n++;
    }
    if (n == 1)
        rc = lk_recipe_parse(out, found, path);
    else if (n)
        rc = lk_fail(LK_E_METADATA,
                     "%s: expected one recipe (text chunk \"likeness\"), got %d: nothing says which made the picture",
                     path, n);
    else
        rc = lk_fail(LK_E_METADATA,
                     "%s: no recipe inside (no text chunk \"likeness\"): not made by this program, or "
                     "saved again by another",
                     path);
    lk_png_text_free(texts);
    return rc;
}

/* Where things lay, and what is compared with the model before the edit. */
static bool may_differ(const char *key) {
    static const char *const free_keys[] = {"model", "weights_identity", "configs", "file", "packed"};
    const struct lk_parameter *p = lk_parameter_named(key);
    for (size_t i = 0; i < sizeof free_keys / sizeof *free_keys; i++)
        if (!strcmp(key, free_keys[i])) return true;
    return p && p->machine;
}

static void tell(const char *file, const char *field, const cJSON *before, const cJSON *now) {
    char *expected = cJSON_PrintUnformatted(before), *got = now ? cJSON_PrintUnformatted(now) : NULL;
    lk_log(LK_LOG_WARNING, "%s: field \"%s\": expected %.200s as recorded, got %.200s", file, field,
           expected ? expected : "?", got ? got : "nothing");
    cJSON_free(expected);
    cJSON_free(got);
}

/* How many values of `before` are others in `now`. */
static int compare(const char *file, const char *above, const cJSON *before, const cJSON *now) {
    const cJSON *item;
    int n = 0, i = 0;
    if (now && before->type == now->type && cJSON_GetArraySize(before) && cJSON_GetArraySize(now)) {
        cJSON_ArrayForEach(item, before) {
            char field[256];
            const bool named = cJSON_IsObject(before);
            if (named && may_differ(item->string)) continue;
            if (named)
                snprintf(field, sizeof field, "%.200s%s%.50s", above, *above ? "." : "", item->string);
            else
                snprintf(field, sizeof field, "%.200s[%d]", above, i);
            n += compare(file, field, item,
                         named ? cJSON_GetObjectItemCaseSensitive(now, item->string) : cJSON_GetArrayItem(now, i));
            i++;
        }
        if (cJSON_IsObject(before) || cJSON_GetArraySize(before) == cJSON_GetArraySize(now)) return n;
    } else if (now && cJSON_Compare(before, now, true)) {
        return n;
    }
    tell(file, above, before, now);
    return n + 1;
}

static bool loses_bits(const struct lk_recipe *r) {
    return r->packed.as && !(!strcmp(r->packed.as, "webp") && r->packed.quality == 100);
}

/* The digest of the pixels that a picture was made with: of the file's own where nothing was lost. */
static void pixels_digest(const struct lk_recipe *r, const struct lk_image *image, char sha256[65]) {
    if (loses_bits(r))
        snprintf(sha256, 65, "%s", r->packed.pixels_sha256);
    else
        lk_sha256(image->pixels, (size_t)image->width * (size_t)image->height * (size_t)image->channels, sha256);
}

/* Of a file that loses bits the pixels before it was written are compared, and the file's own where the other one is
 * written in the same way. */
static enum lk_code compare_pixels(const struct lk_recipe *r, const char *path, const struct lk_recipe *made,
                                   const char *other, int *n) {
    struct lk_image a = {0}, b = {0};
    char before[65], now[65];
    const char *as = loses_bits(r) ? r->packed.as : NULL, *made_as = loses_bits(made) ? made->packed.as : NULL;
    const bool alike = as ? made_as && !strcmp(as, made_as) && r->packed.quality == made->packed.quality : !made_as;
    enum lk_code rc = lk_image_read(&a, path, 0, 0);
    if (!rc) rc = lk_image_read(&b, other, 0, 0);
    if (!rc) pixels_digest(r, &a, before);
    if (!rc) pixels_digest(made, &b, now);
    const bool same =
        !rc && a.width == b.width && a.height == b.height && a.channels == b.channels && !strcmp(before, now);
    if (!rc &&
        (!same || (alike && memcmp(a.pixels, b.pixels, (size_t)a.width * (size_t)a.height * (size_t)a.channels)))) {
        lk_log(LK_LOG_WARNING, "%s: its pixels are others than those of %s", other, path);
        ++*n;
    } else if (!rc && as && !alike) {
        lk_log(
            LK_LOG_WARNING,
            "%s: its format loses bits: compared were the pixels before it was written, by the digest in its recipe, "
            "not those in the file; with -o NAME.%s --quality %d both are",
            path, !strcmp(as, "jpeg") ? "jpg" : as, r->packed.quality);
    }
    lk_image_free(&a);
    lk_image_free(&b);
    return rc;
}

enum lk_code lk_recipe_compare(const struct lk_recipe *recipe, const char *recipe_path, const char *png_path) {
    struct lk_recipe made;
    LK_TRY(lk_recipe_read(&made, png_path));
    cJSON *before = cJSON_Parse(recipe->text), *now = cJSON_Parse(made.text);
    int n = before && now ? compare(recipe_path, "", before, now) : 0;
    enum lk_code rc = before && now ? compare_pixels(recipe, recipe_path, &made, png_path, &n)
                                    : lk_fail(LK_E_NOMEM, "%s: out of memory", png_path);
    cJSON_Delete(before);
    cJSON_Delete(now);
    lk_recipe_free(&made);
    if (rc || !n) return rc;
    return lk_fail(LK_E_CONFLICT,
                   "%s: made again from %s, but %d thing%s came out otherwise, named above: it is no proof of that "
                   "picture; --allow-other accepts it",
                   png_path, recipe_path, n, n == 1 ? "" : "s");
}

void lk_recipe_free(struct lk_recipe *r) {
    char *strings[] = {r->text,      r->model,        r->family,       r->weights_identity, r->isa,
                       r->version,   r->noise_sha256, r->quantization, r->text_encoder_isa, r->configs,
                       r->mask.file, r->mask.sha256,  r->rewrite,      r->packed.as,        r->packed.pixels_sha256};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) lk_free(strings[i]);
    for (int i = 0; i < r->n_loras; i++) {
        lk_free(r->loras[i].file);
        lk_free(r->loras[i].sha256);
    }
    for (int i = 0; i < r->n_images; i++) {
        lk_free(r->images[i].file);
        lk_free(r->images[i].sha256);
        lk_free(r->images[i].converted_from);
    }
    lk_job_free(&r->job);
    *r = (struct lk_recipe){0};
}
