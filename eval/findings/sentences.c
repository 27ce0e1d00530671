/* Findings in words: model, outcome, who, both rates, their difference. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/table_print.h"
#include "eval/findings/crossed.h"

static void percent(struct lk_text *out, double rate) {
    char text[LK_NUMBER_MAX];
    lk_print_fixed(text, 100 * rate, 1, false);
    lk_text_add(out, "%s%%", text);
}

void lk_claim_effect(const struct lk_claim *c, struct lk_text *out) {
    char value[LK_NUMBER_MAX], low[LK_NUMBER_MAX], high[LK_NUMBER_MAX];
    lk_print_fixed(value, 100 * fabs(c->difference), 1, false);
    const bool turned = c->difference < 0;
    lk_print_fixed(low, 100 * (turned ? -c->high : c->low), 1, false);
    lk_print_fixed(high, 100 * (turned ? -c->low : c->high), 1, false);
    if (c->no_interval)
        lk_text_add(out, "%s pp (no interval: %s)", value, c->no_interval);
    else
        lk_text_add(out, "%s pp [%s, %s]", value, low, high);
}

/* "race change" within a sentence. */
static void add_outcome(struct lk_text *out, const char *name) {
    const bool word = name[0] >= 'A' && name[0] <= 'Z' && name[1] >= 'a' && name[1] <= 'z';
    lk_text_add(out, "%c%s", word ? name[0] + 'a' - 'A' : name[0], name[0] ? name + 1 : "");
}

const struct lk_levels *lk_claim_levels(const struct lk_outcomes *o, const struct lk_claim *c,
                                        const char *const **names) {
    const bool of_prompts = c->family == LK_CLAIM_KIND, subcategory = of_prompts && c->attribute == LK_SUBCATEGORIES;
    *names = subcategory ? o->subcategory_names : of_prompts ? o->kind_names : o->level_names[c->attribute];
    return subcategory ? &o->subcategories : of_prompts ? &o->kinds : &o->attributes[c->attribute];
}

/* The name of the other level where there are two; of subcategories, two of one kind. */
static const char *other_level(const struct lk_outcomes *o, const struct lk_claim *c) {
    const char *const *names;
    const struct lk_levels *levels = lk_claim_levels(o, c, &names);
    const bool of_prompts = c->family == LK_CLAIM_KIND, within = of_prompts && c->attribute == LK_SUBCATEGORIES;
    const int n = of_prompts ? o->n_prompts : o->n_sources, level = c->level;
    int other = -1, kind = -1;
    for (int i = 0; i < n && within; i++)
        if (levels->of[i] == level) kind = o->kinds.of[i];
    for (int i = 0; i < n; i++) {
        if (levels->of[i] == level || levels->of[i] == other || (within && o->kinds.of[i] != kind)) continue;
        if (other >= 0) return "the others";
        other = levels->of[i];
    }
    return other >= 0 ? names[other] : "the others";
}

/* "; Step1X is lower than FLUX and Qwen too": what else stands at one end of the pair. */
static void add_others(const struct lk_outcomes *o, int model, const char *what, uint64_t others, struct lk_text *out) {
    enum { NAMED = 4 };
    int n = 0, said = 0;
    for (int m = 0; m < o->n_models && m < 64; m++) n += (int)(others >> m & 1);
    if (!n) return;
    lk_text_add(out, "; %s is %s than ", o->model_names[model], what);
    for (int m = 0; m < o->n_models && m < 64 && said < NAMED; m++) {
        if (!(others >> m & 1)) continue;
        lk_text_add(out, "%s%s", !said ? "" : said + 1 == n ? " and " : ", ", o->model_names[m]);
        said++;
    }
    if (n > said) lk_text_add(out, " and %d more", n - said);
    lk_text_add(out, " too");
}

/* "; larger on prompts of kind scene (52.0% and 14.0%) than on the rest (21.0% and 11.0%)" */
static void add_kind(const struct lk_outcomes *o, const struct lk_claim *c, struct lk_text *out) {
    lk_text_add(out, "; larger on prompts of kind %s (", o->kind_names[c->kind]);
    percent(out, c->kind_rate);
    lk_text_add(out, " and ");
    percent(out, c->kind_other);
    lk_text_add(out, ") than on the rest (");
    percent(out, c->rest_rate);
    lk_text_add(out, " and ");
    percent(out, c->rest_other);
    lk_text_add(out, ")");
}

void lk_claim_sentence(const struct lk_outcomes *o, const struct lk_claim *c, struct lk_text *out) {
    const bool kind = c->family == LK_CLAIM_KIND;
    if (c->family == LK_CLAIM_MODEL) {
        lk_text_add(out, "%s, %s against %s: ", o->outcome_names[c->outcome], o->model_names[c->level],
                    o->model_names[c->against]);
        percent(out, c->rate);
        lk_text_add(out, " and ");
        percent(out, c->other);
    } else {
        const char *const *names;
        (void)lk_claim_levels(o, c, &names);
        const char *model = c->model >= 0     ? o->model_names[c->model]
                            : o->n_models > 1 ? "All models"
                                              : o->model_names[0];
        lk_text_add(out, "%s: ", model);
        add_outcome(out, o->outcome_names[c->outcome]);
        lk_text_add(out, ", %s%s ",
                    !kind                              ? ""
                    : c->attribute == LK_SUBCATEGORIES ? "prompts of subcategory "
                                                       : "prompts of kind ",
                    names[c->level]);
        percent(out, c->rate);
        lk_text_add(out, ", %s ", other_level(o, c));
        percent(out, c->other);
    }
    lk_text_add(out, ": ");
    lk_claim_effect(c, out);
    if (c->adjusted) lk_text_add(out, ", adjusted for the other attributes");
    if (c->share_seen > 0 && c->share_seen < 1 - 1e-9)
        lk_text_add(out, ", adjusted for missing outputs (%.0f%% are there)", floor(100 * c->share_seen));
    if (c->found && !c->no_interval && c->low <= 0 && c->high >= 0)
        lk_text_add(out, "; with so few people or prompts its interval is wide and holds 0");
    if (c->by_kind) add_kind(o, c, out);
    if (c->model < 0 && c->family != LK_CLAIM_MODEL && o->n_models > 1 && c->found)
        lk_text_add(out, c->too_few ? "; too few people or prompts to tell whether models differ in it"
                         : c->alike ? "; alike in all models, as far as seen"
                                    : "; models differ in it");
    if (c->family == LK_CLAIM_MODEL) {
        add_others(o, c->level, "higher", c->lower_too, out);
        add_others(o, c->against, "lower", c->higher_too, out);
    }
    if (*c->lost) lk_text_add(out, "; %s", c->lost);
    lk_text_add(out, ".");
}

void lk_claims_family_sentence(const struct lk_claims *claims, const struct lk_claims_family *f, struct lk_text *out) {
    double least = INFINITY, most = 0;
    if (*f->refused) {
        lk_text_add(out, "By %s nothing is said: %s%s.", f->name, f->refused,
                    strstr(f->refused, "one prompt") && f->family == LK_CLAIM_GROUP
                        ? " (report --prompts-as fixed compares for these prompts alone)"
                        : "");
        return;
    }
    for (size_t i = 0; i < claims->n; i++) {
        const struct lk_claim *c = &claims->list[i];
        if (c->family != f->family || c->attribute != f->attribute) continue;
        if (c->found) return;
        if (c->detectable <= 0) continue;
        least = fmin(least, c->detectable), most = fmax(most, c->detectable);
    }
    lk_text_add(out, "By %s no difference was found", f->name);
    char low[LK_NUMBER_MAX], high[LK_NUMBER_MAX];
    lk_print_fixed(low, 100 * least, 0, false);
    lk_print_fixed(high, 100 * most, 0, false);
    if (least >= 1 && most > 0)
        lk_text_add(out, "; with so few people or prompts none could have been");
    else if (most > 1)
        lk_text_add(
            out, "; one of %s pp or more would have been in some outcomes, none in others, with 80%% probability", low);
    else if (most > 0)
        lk_text_add(out, "; one of %s%s%s pp%s would have been, with 80%% probability", low,
                    strcmp(low, high) ? " to " : "", strcmp(low, high) ? high : "",
                    strcmp(low, high) ? ", by the outcome," : "");
    lk_text_add(out, ".");
}
