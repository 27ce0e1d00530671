/* Masks of a model's entry: a file for each source, "masks/{source}.png". */
#include "models/common/mask.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/design/internal.h"

static const char placeholder[] = "{source}";

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
    if (!m->mask || out->problem) return;
    if (key->source[0] < 0) {
        out->problem = "its model has a mask, and a picture from text alone has no source to keep";
        return;
    }
    out->mask = &m->masks[key->source[0]];
    out->job.request.mask = out->mask->file;
    if (!*out->mask->sha256) out->problem = "its mask's file cannot be read";
}

enum lk_code lk_study_check_mask(const struct lk_study_model *m, int source, const struct lk_image *image) {
    struct lk_image mask;
    if (!m->mask) return LK_OK;
    LK_TRY(lk_mask_read(m->masks[source].file, image, &mask));
    lk_image_free(&mask);
    return LK_OK;
}
