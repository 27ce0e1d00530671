/* Models of a study that are one and the same: every picture of theirs would be made twice. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"

/* All that decides a model's pixels but the seed, which experiments may have. */
static enum lk_code describe(const struct lk_study *s, const struct lk_study_model *m, struct lk_text *out) {
    char whole[PATH_MAX];
    if (m->hosted.given) {
        lk_study_write_hosted(&m->hosted, true, out);
        return out->rc;
    }
    struct lk_job job = m->job;
    job.request.seed = 0;
    lk_text_add(out, "%s\n%s\n%s\n", realpath(m->path, whole) ? whole : m->path, m->family,
                m->weights_identity ? m->weights_identity : "");
    LK_TRY(lk_study_write_parameters(&job, lk_family_bit_of(m->family), false, out));
    lk_study_write_adapters(m, true, out);
    lk_study_write_mask(s, m, true, out);
    lk_study_write_rewrite(m, true, out);
    return out->rc;
}

static bool share_seed(const struct lk_study *s, int e, int a, int b) {
    struct lk_study_seeds range[2] = {*lk_study_seeds_of(s, e, a), *lk_study_seeds_of(s, e, b)};
    for (int k = 0; k < 2; k++)
        if (!range[k].given) range[k].first = range[k].last = (int64_t)s->models[k ? b : a].job.request.seed;
    return range[0].first <= range[1].last && range[1].first <= range[0].last;
}

static bool same_jobs(const struct lk_study *s, int a, int b) {
    for (int e = 0; e < s->n_experiments; e++)
        if (s->experiments[e].model[a] && s->experiments[e].model[b] && share_seed(s, e, a, b)) return true;
    return false;
}

enum lk_code lk_study_same_models(const struct lk_study *s, struct lk_text *out) {
    struct lk_text *texts = lk_calloc((size_t)s->n_models + 1, sizeof *texts);
    enum lk_code rc = texts ? LK_OK : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (int b = 0; b < s->n_models && !rc; b++) {
        rc = describe(s, &s->models[b], &texts[b]);
        for (int a = 0; a < b && !rc; a++)
            if (texts[a].n == texts[b].n && !memcmp(texts[a].bytes, texts[b].bytes, texts[a].n) && same_jobs(s, a, b))
                lk_text_add(out,
                            "models.%s and models.%s are the same in all that decides the pixels (checkpoint, "
                            "parameters, seeds): each picture of theirs is made twice and no finding can tell them "
                            "apart; leave one out, or give it other parameters\n",
                            s->models[a].key, s->models[b].key);
    }
    for (int m = 0; m < s->n_models && texts; m++) lk_text_free(&texts[m]);
    lk_free(texts);
    return rc ? rc : out->rc;
}
