/* What was found, judged once more under other conventions. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/findings/internal.h"

/* The same cell under a convention, its difference as the claim has it; NULL: it was not judged there. */
static const struct lk_claim_cell *same_cell(const struct lk_claims *claims, const struct lk_claim *x, bool *turned) {
    for (size_t i = 0; i < claims->n_cells; i++) {
        const struct lk_claim_cell *c = &claims->cells[i];
        const bool swapped = c->level == x->against && c->against == x->level && x->family == LK_CLAIM_MODEL;
        if (c->family != x->family || c->attribute != x->attribute || c->outcome != x->outcome || c->model != x->model)
            continue;
        if (!swapped && (c->level != x->level || c->against != x->against)) continue;
        *turned = swapped || (c->difference > 0) != (x->difference > 0);
        return c;
    }
    return NULL;
}

/* Conventions that do not find a claim, and the one that does so most. */
struct lost {
    const char *name;
    double p; /* -1: there was nothing to judge it by */
    int n;
    bool turned; /* one finds the opposite */
};

static void look(const struct lk_claims *claims, const struct lk_claim *x, const char *name, struct lost *lost) {
    bool turned = false;
    const struct lk_claim_cell *c = same_cell(claims, x, &turned);
    const bool found = c && c->p <= claims->family_alpha && !turned;
    if (c && turned && c->p <= claims->family_alpha) lost->turned = true, lost->name = name;
    if (found) return;
    const double p = c ? c->p : -1;
    if (!lost->n++ || (!lost->turned && p > lost->p)) lost->name = name, lost->p = p;
}

/* Of the other models at the ends of a pair those that the convention finds there as well. */
static void look_at_others(const struct lk_claims *there, struct lk_claim *x) {
    for (int m = 0; m < 64 && x->family == LK_CLAIM_MODEL; m++) {
        const uint64_t bit = (uint64_t)1 << m;
        struct lk_claim pair = *x;
        for (int end = 0; end < 2; end++) {
            uint64_t *too = end ? &x->higher_too : &x->lower_too;
            bool turned = false;
            if (!(*too & bit)) continue;
            pair.level = end ? m : x->level, pair.against = end ? x->against : m;
            const struct lk_claim_cell *c = same_cell(there, &pair, &turned);
            if (!c || turned || c->p > there->family_alpha) *too &= ~bit;
        }
    }
}

/* That a difference is larger on one kind of prompts stands where the convention says so of the same. */
static void look_at_kind(const struct lk_claims *there, struct lk_claim *x) {
    bool stands = false;
    for (size_t i = 0; i < there->n_found && x->by_kind; i++) {
        const struct lk_claim *y = &there->list[i];
        stands |= y->family == x->family && y->attribute == x->attribute && y->outcome == x->outcome &&
                  y->model == x->model && y->level == x->level && y->by_kind && y->kind == x->kind;
    }
    x->by_kind = stands;
}

static void say(struct lk_claim *x, const struct lost *lost) {
    char p[LK_NUMBER_MAX];
    if (!lost->n) return;
    if (lost->turned) {
        snprintf(x->lost, sizeof x->lost, "the opposite with %.100s: no direction", lost->name);
        x->found = false;
        return;
    }
    lk_print_p(p, lost->p < 0 ? 1 : lost->p);
    const int n =
        lost->p < 0
            ? snprintf(x->lost, sizeof x->lost, "too few outputs or cases to tell with %.80s", lost->name)
            : snprintf(x->lost, sizeof x->lost, "not with %.80s (p %s%s)", lost->name, *p == '<' ? "" : "= ", p);
    if (lost->n > 1) snprintf(x->lost + n, sizeof x->lost - (size_t)n, " and %d more", lost->n - 1);
}

/* What a convention finds and the default does not. */
static void only_there(const struct lk_outcomes *o, const struct lk_claims *there, const char *name,
                       struct lk_claims *claims) {
    for (size_t i = 0; i < there->n_found; i++) {
        const struct lk_claim *x = &there->list[i];
        bool turned = false;
        const struct lk_claim_cell *c = same_cell(claims, x, &turned);
        if (c && c->p <= claims->family_alpha && !turned) continue;
        lk_text_add(&claims->notes, "Only with %s: ", name);
        lk_claim_sentence(o, x, &claims->notes);
        lk_text_add(&claims->notes, "\n");
    }
}

enum lk_code lk_claims_conventions(const struct lk_outcomes *outcomes, const struct lk_claims_options *options,
                                   const struct lk_convention *conventions, int n, struct lk_claims *claims) {
    struct lk_claims_options quick = *options;
    quick.ranges = false;
    if (!quick.n_relabel) quick.n_relabel = 999; /* enough to say whether it is found */
    struct lost *lost = lk_calloc(claims->n_found + 1, sizeof *lost);
    enum lk_code rc = lost ? LK_OK : lk_fail(LK_E_NOMEM, "findings: out of memory");
    for (int k = 0; k < n && !rc; k++) {
        struct lk_outcomes o = *outcomes;
        struct lk_claims there;
        o.y = conventions[k].y;
        rc = lk_claims_of(&o, &quick, &there);
        for (size_t i = 0; i < claims->n_found && !rc; i++) {
            look(&there, &claims->list[i], conventions[k].name, &lost[i]);
            look_at_others(&there, &claims->list[i]);
            look_at_kind(&there, &claims->list[i]);
        }
        if (!rc) only_there(outcomes, &there, conventions[k].name, claims);
        lk_claims_free(&there);
    }
    for (size_t i = 0; i < claims->n_found && !rc; i++) say(&claims->list[i], &lost[i]);
    lk_free(lost);
    if (!rc) { /* what has no direction stands behind what is found */
        size_t kept = 0;
        for (size_t i = 0; i < claims->n_found; i++) {
            const struct lk_claim x = claims->list[i];
            if (!x.found) continue;
            memmove(claims->list + kept + 1, claims->list + kept, (i - kept) * sizeof x);
            claims->list[kept++] = x;
        }
        claims->n_found = kept;
    }
    return rc ? rc : claims->notes.rc;
}
