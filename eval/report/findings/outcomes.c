#include "eval/report/findings/outcomes.h"

#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"

const char *const lk_convention_names[LK_N_CONVENTIONS] = {
    [LK_CONVENTION_PRIMARY] = "the primary judge alone",
    [LK_CONVENTION_SECONDARY] = "the secondary judge alone",
    [LK_CONVENTION_HALF_EVEN] = "halves rounded to even",
    [LK_CONVENTION_HALF_UP] = "halves rounded up",
    [LK_CONVENTION_HALF_DOWN] = "halves rounded down",
    [LK_CONVENTION_DRIFT_LOWER] = "drift from one level lower",
    [LK_CONVENTION_DRIFT_HIGHER] = "drift from one level higher"};

static const enum lk_factor attributes[] = {LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_AGE_GROUP};
enum { N_ATTRIBUTES = sizeof attributes / sizeof *attributes, MAX_NAMES = LK_N_SOURCES };

static char source_ids[LK_N_SOURCES][48];
static const char *names_of_levels[N_ATTRIBUTES][16], *names_of_kinds[2], *names_of_models[LK_N_MODELS],
    *names_of_outcomes[LK_N_OUTCOMES], *names_of_sources[LK_N_SOURCES], *names_of_prompts[LK_N_EDIT_PROMPTS];

/* Names are the same in every report. */
static void make_names(void) {
    for (int a = 0; a < N_ATTRIBUTES; a++)
        for (int l = 0; l < lk_factor_levels(attributes[a]); l++)
            names_of_levels[a][l] = lk_factor_display(attributes[a], l);
    for (int k = 0; k < 2; k++) names_of_kinds[k] = lk_factor_display(LK_FACTOR_CATEGORY, k);
    for (int m = 0; m < LK_N_MODELS; m++) names_of_models[m] = lk_factor_display(LK_FACTOR_MODEL, m);
    for (int o = 0; o < LK_N_OUTCOMES; o++) names_of_outcomes[o] = lk_measure_name(lk_outcomes[o]);
    for (int s = 0; s < LK_N_SOURCES; s++) {
        lk_source_id(s, source_ids[s]);
        names_of_sources[s] = source_ids[s];
    }
    for (int p = 0; p < LK_N_EDIT_PROMPTS; p++) names_of_prompts[p] = lk_prompt_id(p);
}

enum lk_code lk_outcomes_make(struct lk_findings *findings) {
    struct lk_outcomes *o = &findings->outcomes;
    int32_t *at = findings->levels = lk_malloc((N_ATTRIBUTES * LK_N_SOURCES + LK_N_EDIT_PROMPTS) * sizeof *at);
    if (!at) return lk_fail(LK_E_NOMEM, "report: out of memory");
    make_names();
    *o = (struct lk_outcomes){.n_sources = LK_N_SOURCES,
                              .n_prompts = LK_N_EDIT_PROMPTS,
                              .n_models = LK_N_MODELS,
                              .n_outcomes = LK_N_OUTCOMES,
                              .n_attributes = N_ATTRIBUTES,
                              .kind_names = names_of_kinds,
                              .model_names = names_of_models,
                              .outcome_names = names_of_outcomes,
                              .source_names = names_of_sources,
                              .prompt_names = names_of_prompts};
    for (int a = 0; a < N_ATTRIBUTES; a++, at += LK_N_SOURCES) {
        for (int s = 0; s < LK_N_SOURCES; s++) {
            int race, gender, age;
            lk_source_factors(s, &race, &gender, &age);
            at[s] = a == 0 ? race : a == 1 ? gender : lk_age_group(age);
        }
        o->attributes[a] = (struct lk_levels){at, lk_factor_levels(attributes[a])};
        o->attribute_names[a] = a == 2 ? "age group" : lk_factor_name(attributes[a]);
        o->level_names[a] = names_of_levels[a];
    }
    for (int p = 0; p < LK_N_EDIT_PROMPTS; p++) at[p] = p / 10;
    o->kinds = (struct lk_levels){at, 2};
    return LK_OK;
}

/* The mean of the judges' indicators where the ensemble has a score. */
static double of_judges(const struct lk_item *item, enum lk_measure measure, const struct lk_report_options *options,
                        const struct lk_thresholds *thresholds) {
    const int whole = lk_measure_of(measure, item->score, item->prompt, thresholds);
    double sum = 0;
    int n = 0;
    for (int j = 0; j < LK_N_JUDGES && whole >= 0 && !options->with_review; j++) {
        const int value = lk_measure_of(measure, item->judge[j], item->prompt, thresholds);
        if (value >= 0) sum += value, n++;
    }
    return whole < 0 ? NAN : n ? sum / n : whole;
}

static double of_item(const struct lk_item *item, enum lk_measure measure, const struct lk_report_options *options,
                      enum lk_score_source source, enum lk_convention_of_scores convention) {
    static const enum lk_rounding roundings[] = {LK_HALF_EVEN, LK_HALF_UP, LK_HALF_DOWN};
    struct lk_thresholds thresholds = options->thresholds;
    uint8_t score[LK_N_AXES];
    if (convention == LK_CONVENTION_DRIFT_LOWER) thresholds.drift--;
    if (convention == LK_CONVENTION_DRIFT_HIGHER) thresholds.drift++;
    if (source == LK_SCORES_HUMAN) {
        const int value = lk_measure_of(measure, lk_item_levels(item, source), item->prompt, &thresholds);
        return value < 0 ? NAN : value;
    }
    if (convention == LK_CONVENTION_DEFAULT || convention >= LK_CONVENTION_DRIFT_LOWER)
        return of_judges(item, measure, options, &thresholds);
    if (convention <= LK_CONVENTION_SECONDARY)
        memcpy(score, item->judge[convention - LK_CONVENTION_PRIMARY], sizeof score);
    for (int a = 0; a < LK_N_AXES && convention >= LK_CONVENTION_HALF_EVEN; a++) {
        const struct lk_ensemble how = {roundings[convention - LK_CONVENTION_HALF_EVEN], options->secondary_only};
        bool review;
        score[a] = (uint8_t)lk_ensemble_score(item->judge[0][a], item->judge[1][a], &how, &review);
    }
    const int value = lk_measure_of(measure, score, item->prompt, &thresholds);
    return value < 0 ? NAN : value;
}

double lk_outcome_of(const struct lk_item *item, enum lk_measure measure, const struct lk_report_options *options,
                     enum lk_score_source source) {
    return of_item(item, measure, options, source, LK_CONVENTION_DEFAULT);
}

bool lk_outcomes_fill(const struct lk_dataset *data, const struct lk_report_options *options,
                      enum lk_score_source source, enum lk_convention_of_scores convention, double *y) {
    const struct lk_group all = LK_GROUP_ANY;
    bool known = false, two = false;
    for (int i = 0; i < LK_N_OUTCOME_CELLS; i++) y[i] = NAN;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(&all, item) || item->prompt < 0 || item->prompt >= LK_N_EDIT_PROMPTS) continue;
        for (int o = 0; o < LK_N_OUTCOMES; o++) {
            const double value = of_item(item, lk_outcomes[o], options, source, convention);
            y[((o * LK_N_MODELS + item->model) * LK_N_SOURCES + item->source) * LK_N_EDIT_PROMPTS + item->prompt] =
                value;
            known |= !isnan(value);
        }
        for (int a = 0; a < LK_N_AXES; a++) two |= item->judge[0][a] && item->judge[1][a];
    }
    const bool of_two = convention >= LK_CONVENTION_PRIMARY && convention <= LK_CONVENTION_HALF_DOWN;
    return known && (!of_two || (two && source == LK_SCORES_JUDGE && !options->with_review));
}
