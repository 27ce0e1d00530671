/* Whether pairs find their other half: the output of an edit experiment that they are compared with. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"

static bool is_reused(const struct lk_study_experiment *x) {
    return x->kind == LK_EXP2 && !strcmp(x->baseline, "reuse");
}

/* Whether the edit has one of the seeds that pairs of these have. */
static bool has_seed(const struct lk_study *s, const struct job_key *edit, const struct lk_study_seeds *of) {
    const struct lk_study_seeds *own = lk_study_seeds_of(s, edit->experiment, edit->model);
    if (edit->seed < 0 || !of->given) return edit->seed < 0 && !of->given;
    return own->first + edit->seed >= of->first && own->first + edit->seed <= of->last;
}

static void write_seeds(const struct lk_study_seeds *seeds, char out[60]) {
    if (seeds->given)
        snprintf(out, 60, "\"%lld:%lld\"", (long long)seeds->first, (long long)seeds->last);
    else
        snprintf(out, 60, "the model's one seed");
}

/* Which edit experiment has the cell, whatever its seeds; -1: none. */
static int edits_of(const struct lk_study *s, const struct job_key *pair) {
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *key = &s->jobs[i];
        if (s->experiments[key->experiment].kind == LK_EXP1 && key->model == pair->model &&
            key->source[0] == pair->source[0] && key->prompt == pair->prompt)
            return key->experiment;
    }
    return -1;
}

static enum lk_code tell(struct lk_study *s, const struct job_key *pair, size_t n) {
    const struct lk_study_experiment *x = &s->experiments[pair->experiment];
    const int edits = edits_of(s, pair);
    char field[100], expected[60], got[60], source[64];
    lk_study_name_source(s, pair->source[0], source);
    write_seeds(lk_study_seeds_of(s, pair->experiment, pair->model), got);
    snprintf(field, sizeof field, "experiments.%s.%s", x->key, edits < 0 ? "baseline" : "seeds");
    const char *lack = n == 1 ? "pair lacks its" : "pairs lack their";
    struct lk_text text = {0};
    if (edits >= 0) {
        write_seeds(lk_study_seeds_of(s, edits, pair->model), expected);
        lk_text_add(&text,
                    "expected seeds that its baseline, experiment \"%s\", has (%s), got %s: %zu %s other "
                    "half; give both experiments the same seeds, or say \"baseline\": \"make\"",
                    s->experiments[edits].key, expected, got, n, lack);
    } else {
        lk_text_add(&text,
                    "expected edits that an edit experiment of the study makes too, got %s of %s by %s: %zu %s "
                    "other half; add them to the edit experiment, or say \"baseline\": \"make\"",
                    s->prompts[pair->prompt].id, source, s->models[pair->model].key, n, lack);
    }
    enum lk_code rc = text.rc;
    if (!rc) {
        lk_study_bad(s, field, "%s", text.bytes);
        if (!s->unpaired) s->unpaired = lk_store_text(&s->store, lk_error_text());
        lk_text_add(&s->lacking, "%s\n", lk_error_text());
        s->n_lacking++;
        rc = s->unpaired ? s->lacking.rc : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    }
    lk_text_free(&text);
    return rc;
}

/* n [lk_study_cell]: how many edits of a cell have seeds of experiment e. */
static enum lk_code check_experiment(struct lk_study *s, int e, int32_t *n) {
    const struct job_key *first = NULL;
    size_t n_lacking = 0;
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *key = &s->jobs[i];
        if (s->experiments[key->experiment].kind == LK_EXP1 && has_seed(s, key, lk_study_seeds_of(s, e, key->model)))
            n[lk_study_cell(s, key->model, key->source[0], key->prompt)]++;
    }
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *key = &s->jobs[i];
        if (key->experiment != e) continue;
        const struct lk_study_seeds *seeds = lk_study_seeds_of(s, e, key->model);
        const int32_t wanted = seeds->given ? (int32_t)(seeds->last - seeds->first + 1) : 1;
        const int32_t found = n[lk_study_cell(s, key->model, key->source[0], key->prompt)];
        if (found >= wanted || key->seed > 0) continue;
        n_lacking += (size_t)(wanted - found);
        if (!first) first = key;
    }
    return first ? tell(s, first, n_lacking) : LK_OK;
}

enum lk_code lk_study_find_unpaired(struct lk_study *s) {
    bool any = false;
    for (int e = 0; e < s->n_experiments; e++) any |= s->experiments[e].kind == LK_EXP1;
    for (int e = 0; e < s->n_experiments && any; e++) { /* without edits here the other half is of another run */
        if (!is_reused(&s->experiments[e])) continue;
        int32_t *n = lk_calloc((size_t)s->n_models * (size_t)s->n_sources * s->n_prompts + 1, sizeof *n);
        enum lk_code rc = n ? check_experiment(s, e, n) : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
        lk_free(n);
        if (rc) return rc;
    }
    return LK_OK;
}

const char *lk_study_paired_elsewhere(const struct lk_study *s) {
    const char *key = NULL;
    for (int e = 0; e < s->n_experiments; e++) {
        if (s->experiments[e].kind == LK_EXP1) return NULL;
        if (is_reused(&s->experiments[e])) key = s->experiments[e].key;
    }
    return key;
}

const char *lk_study_unpaired(const struct lk_study *s) { return s->unpaired; }
