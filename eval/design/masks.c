/* Masks of a model's entry: a file for each source, "masks/{source}.png", or how one is drawn for each. */
#include "models/common/mask.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/design/settings.h"
#include "models/face/yunet.h"

static const char placeholder[] = "{source}";

#define DRAWN(field) offsetof(struct lk_study_drawn, field)
const struct setting lk_drawn_settings[] = {
    {"keep", TEXT, NULL, NULL, 0, 0, 0,
     "what an edit may not touch: face, or a box X,Y,WIDTH,HEIGHT in pixels; as 'likeness mask' draws it"},
    {"edit", TEXT, NULL, NULL, 0, 0, 0, "the opposite, instead of keep: what an edit may change alone"},
    {"faces", FILE_NAME, NULL, NULL, 0, 0, DRAWN(faces), "weights of the face detector YuNet; needed for a face"},
    {"grow", NUMBER, NULL, "0.25", 0, 10, 0, "how far a box is grown on each side, by its width and height"},
    {"shape", CHOICE, "ellipse|box", "ellipse", 0, 0, 0, "of what is kept or edited"},
    {"several", CHOICE, "refuse|all|largest", "refuse", 0, 0, 0, "of a source with more than one face"},
    {"feather", INT, NULL, "0", 0, 512, 0, "mask_feather of edits"},
    {"paste", FLAG, "true|false", "true", 0, 0, 0, "false: mask_paste off of edits"},
    {0}};

/* A member's text; *ok false where it is another thing, or is no choice. */
static const char *text_of(struct lk_study *s, const cJSON *object, const char *key, const char *choices,
                           const char *otherwise, bool *ok) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    const char *text = item ? cJSON_GetStringValue(item) : otherwise, *choice;
    if (item && (!text || !*text)) *ok = false;
    if (text && *ok && choices && lk_read_choice(key, text, choices, &choice)) *ok = false;
    return text && *ok ? lk_store_text(&s->store, text) : NULL;
}

/* Its digest is part of what the jobs are; one that cannot be read is a problem of theirs. */
static enum lk_code hash_net(struct lk_study *s, struct lk_study_drawn *d) {
    struct lk_yunet *net;
    const bool face = !strcmp(d->recipe.what, "face");
    enum lk_code rc = LK_OK;
    if (!face && d->faces) d->faces = NULL; /* nothing is looked for */
    if (face && !d->faces) rc = lk_fail(LK_E_CONFIG_VALUE, "faces: missing: the weights of YuNet, which finds faces");
    if (face && !rc && !(rc = lk_yunet_open(&net, d->faces))) lk_yunet_close(net);
    if (face && !rc) rc = lk_digest_file(LK_DIGEST_SHA256, d->faces, d->net_sha256);
    if (rc == LK_E_NOMEM) return rc;
    if (rc && !(d->problem = lk_store_text(&s->store, lk_error_text())))
        return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    return LK_OK;
}

/* As text: with the net's place, or with its digest. */
static void write_drawn(const struct lk_study_drawn *d, bool places, struct lk_text *out) {
    lk_text_add(out, "{\"%s\": ", d->recipe.how.keep ? "keep" : "edit");
    lk_text_json(out, d->recipe.what);
    if (d->faces) lk_text_add(out, places ? ", \"faces\": " : ", \"net_sha256\": ");
    if (d->faces) lk_text_json(out, places ? d->faces : d->net_sha256);
    lk_text_add(out, ", \"grow\": %.17g, \"shape\": \"%s\", \"several\": \"%s\"}", d->recipe.how.grow,
                d->recipe.how.ellipse ? "ellipse" : "box", d->recipe.several);
}

static enum lk_code read_drawn(struct lk_study *s, struct lk_study_model *m, const char *field, const cJSON *object) {
    struct lk_study_drawn *d = &m->drawn;
    const cJSON *item, *grow = cJSON_GetObjectItemCaseSensitive(object, "grow"),
                       *feather = cJSON_GetObjectItemCaseSensitive(object, "feather"),
                       *paste = cJSON_GetObjectItemCaseSensitive(object, "paste");
    bool ok = true;
    cJSON_ArrayForEach(item, object) {
        int i = 0;
        while (lk_drawn_settings[i].key && strcmp(lk_drawn_settings[i].key, item->string)) i++;
        if (!lk_drawn_settings[i].key)
            return lk_study_bad(s, field,
                                "expected keep or edit, faces, grow, shape, several, feather and paste, got \"%.60s\"",
                                item->string);
    }
    const char *keep = text_of(s, object, "keep", NULL, NULL, &ok), *edit = text_of(s, object, "edit", NULL, NULL, &ok),
               *shape = text_of(s, object, "shape", "ellipse|box", "ellipse", &ok);
    d->recipe.several = text_of(s, object, "several", "refuse|all|largest", "refuse", &ok);
    d->faces = text_of(s, object, "faces", NULL, NULL, &ok);
    if (!ok || !keep == !edit)
        return lk_study_bad(s, field,
                            "expected {\"keep\": \"face\", \"faces\": \"yunet.safetensors\"}, or edit instead of "
                            "keep, with shape (ellipse, box) and several (refuse, all, largest), got something else");
    d->recipe.what = keep ? keep : edit;
    d->recipe.how = (struct lk_face_mask){keep != NULL, shape && !strcmp(shape, "ellipse"), 0.25};
    if (grow) d->recipe.how.grow = grow->valuedouble;
    if (grow && (!cJSON_IsNumber(grow) || !(d->recipe.how.grow >= 0 && d->recipe.how.grow <= 10)))
        return lk_study_bad(s, field, "grow: expected a number from 0 to 10");
    if (feather && (!cJSON_IsNumber(feather) || !(feather->valuedouble >= 0 && feather->valuedouble <= 512) ||
                    feather->valuedouble != feather->valueint))
        return lk_study_bad(s, field, "feather: expected a whole number from 0 to 512");
    if (paste && !cJSON_IsBool(paste)) return lk_study_bad(s, field, "paste: expected true or false");
    if (feather && feather->valueint && paste && cJSON_IsFalse(paste))
        return lk_study_bad(s, field, "feather: nothing is mixed with \"paste\": false; leave one of them out");
    char pixels[16];
    snprintf(pixels, sizeof pixels, "%d", feather ? feather->valueint : 0);
    if (feather) LK_TRY(lk_parameter_parse(lk_parameter_named("mask_feather"), &m->job, field, pixels));
    if (paste && cJSON_IsFalse(paste))
        LK_TRY(lk_parameter_parse(lk_parameter_named("mask_paste"), &m->job, field, "off"));
    if (d->faces && !(d->faces = lk_study_resolve(s, d->faces))) return LK_E_NOMEM;
    LK_TRY(hash_net(s, d));
    struct lk_text text = {0};
    write_drawn(d, false, &text);
    d->text = text.rc ? NULL : lk_store_text(&s->store, text.bytes);
    lk_text_free(&text);
    return d->text ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
}

enum lk_code lk_study_read_drawn(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                 size_t n) {
    cJSON *object = cJSON_ParseWithLength(text, n);
    const enum lk_code rc =
        object ? read_drawn(s, m, field, object) : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    cJSON_Delete(object);
    return rc;
}

/* The pattern with the source's id in its place; kept by the study. */
static const char *name_of(struct lk_study *s, const char *pattern, const char *id) {
    const char *at = strstr(pattern, placeholder);
    char *name =
        at ? lk_format("%.*s%s%s", (int)(at - pattern), pattern, id, at + sizeof placeholder - 1) : lk_strdup(pattern);
    const char *kept = name ? lk_store_text(&s->store, name) : NULL;
    lk_free(name);
    if (!kept) lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    return kept;
}

/* A mask that cannot be read is a problem of its source's jobs, as a source is. */
static enum lk_code find_masks(struct lk_study *s, struct lk_study_model *m) {
    const size_t bytes = (size_t)s->n_sources * sizeof *m->masks;
    if (!(m->masks = lk_store_alloc(&s->store, bytes + 1))) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    memset(m->masks, 0, bytes);
    for (int i = 0; i < s->n_sources; i++) {
        struct lk_study_mask *mask = &m->masks[i];
        if (!s->sources[i].id) continue;
        if (!(mask->file = name_of(s, m->mask, s->sources[i].id))) return LK_E_NOMEM;
        const enum lk_code rc = lk_digest_file(LK_DIGEST_SHA256, mask->file, mask->sha256);
        if (rc == LK_E_NOMEM) return rc;
        if (rc) mask->sha256[0] = 0;
    }
    return LK_OK;
}

enum lk_code lk_study_find_masks(struct lk_study *s) {
    for (int m = 0; m < s->n_models; m++)
        if (s->models[m].mask) LK_TRY(find_masks(s, &s->models[m]));
    return LK_OK;
}

void lk_study_write_mask(const struct lk_study *s, const struct lk_study_model *m, bool places, struct lk_text *out) {
    struct lk_text all = {0};
    char sha256[65] = "";
    if (m->drawn.recipe.what) {
        lk_text_add(out, ", \"mask\": ");
        write_drawn(&m->drawn, places, out);
    }
    if (!m->mask) return;
    for (int i = 0; i < s->n_sources; i++) lk_text_add(&all, "%s\n", m->masks[i].sha256);
    lk_sha256(all.bytes ? all.bytes : "", all.n, sha256);
    lk_text_add(out, ", \"mask\": ");
    lk_text_json(out, places ? m->mask : sha256); /* it does not matter where they lie */
    if (all.rc) out->rc = all.rc;
    lk_text_free(&all);
}

void lk_study_set_mask(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    const struct lk_study_model *m = &s->models[key->model];
    const bool drawn = m->drawn.recipe.what != NULL;
    if ((!m->mask && !drawn) || out->problem) return;
    if (key->source[0] < 0) {
        out->problem = "its model has a mask, and a picture from text alone has no source to keep";
        return;
    }
    if (drawn) {
        out->drawn = &m->drawn;
        out->problem = m->drawn.problem;
        out->job.request.mask = s->sources[key->source[0]].id;
        return;
    }
    out->mask = &m->masks[key->source[0]];
    out->job.request.mask = out->mask->file;
    if (!*out->mask->sha256) out->problem = "its mask's file cannot be read";
}

/* Whether the mask that a job is going to draw can be drawn. */
static enum lk_code check_drawn(const struct lk_study *s, const struct lk_study_model *m, int source,
                                const struct lk_image *image) {
    const struct lk_study_source *of = &s->sources[source];
    struct lk_yunet *net = NULL;
    struct lk_image mask;
    char *text;
    if (m->drawn.problem) return LK_OK; /* told with the model */
    if (m->drawn.faces) LK_TRY(lk_yunet_open(&net, m->drawn.faces));
    const enum lk_code rc =
        lk_face_mask_make(&mask, &text, &m->drawn.recipe, image, of->file, of->sha256, net, m->drawn.net_sha256);
    if (net) lk_yunet_close(net);
    lk_image_free(&mask);
    lk_free(text);
    return rc;
}

enum lk_code lk_study_check_mask(const struct lk_study *s, const struct lk_study_model *m, int source,
                                 const struct lk_image *image) {
    struct lk_image mask;
    if (m->drawn.recipe.what) return check_drawn(s, m, source, image);
    if (!m->mask) return LK_OK;
    LK_TRY(lk_mask_read(m->masks[source].file, image, &mask, &(int64_t){0}));
    lk_image_free(&mask);
    return LK_OK;
}
