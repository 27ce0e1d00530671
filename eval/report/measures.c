#include "eval/report/measures.h"

#include <math.h>
#include <stdlib.h>

#include "eval/study/prompts.h"

static const struct {
    const char *key, *name;
    enum lk_axis axis;
} measures[LK_N_MEASURES] = {
    [LK_MEASURE_SUCCESS] = {"edit_success", "Edit success", LK_AXIS_EDIT_SUCCESS},
    [LK_MEASURE_SOFT_ERASURE] = {"soft_erasure", "Soft erasure", LK_AXIS_EDIT_SUCCESS},
    [LK_MEASURE_RACE_DRIFT] = {"race_drift", "Race change", LK_AXIS_RACE_DRIFT},
    [LK_MEASURE_GENDER_DRIFT] = {"gender_drift", "Gender change", LK_AXIS_GENDER_DRIFT},
    [LK_MEASURE_LIGHTENING] = {"skin_lightening", "Skin lightening", LK_AXIS_SKIN_TONE},
    [LK_MEASURE_DARKENING] = {"skin_darkening", "Skin darkening", LK_AXIS_SKIN_TONE},
    [LK_MEASURE_AGE_DRIFT] = {"age_drift", "Age change", LK_AXIS_AGE_DRIFT},
    [LK_MEASURE_AGE_ACCURACY] = {"age_accuracy", "Age accuracy (V-03)", LK_AXIS_AGE_DRIFT},
    [LK_MEASURE_IDENTITY_ERASURE] = {"identity_erasure", "Identity erasure", LK_AXIS_RACE_DRIFT},
};

const char *lk_measure_name(enum lk_measure measure) { return measures[measure].name; }

const char *lk_measure_key(enum lk_measure measure) { return measures[measure].key; }

struct lk_measure_span lk_measure_span(enum lk_measure measure, const struct lk_thresholds *t) {
    const int lows[LK_N_MEASURES] = {[LK_MEASURE_SUCCESS] = t->success,
                                     [LK_MEASURE_SOFT_ERASURE] = 1,
                                     [LK_MEASURE_RACE_DRIFT] = t->drift,
                                     [LK_MEASURE_GENDER_DRIFT] = t->drift,
                                     [LK_MEASURE_LIGHTENING] = 4,
                                     [LK_MEASURE_DARKENING] = 1,
                                     [LK_MEASURE_AGE_DRIFT] = 3,
                                     [LK_MEASURE_AGE_ACCURACY] = 3,
                                     [LK_MEASURE_IDENTITY_ERASURE] = t->identity};
    const int highs[LK_N_MEASURES] = {[LK_MEASURE_SUCCESS] = 5,         [LK_MEASURE_SOFT_ERASURE] = t->soft_erasure,
                                      [LK_MEASURE_RACE_DRIFT] = 5,      [LK_MEASURE_GENDER_DRIFT] = 5,
                                      [LK_MEASURE_LIGHTENING] = 5,      [LK_MEASURE_DARKENING] = 2,
                                      [LK_MEASURE_AGE_DRIFT] = 3,       [LK_MEASURE_AGE_ACCURACY] = 3,
                                      [LK_MEASURE_IDENTITY_ERASURE] = 5};
    return (struct lk_measure_span){measures[measure].axis, lows[measure], highs[measure],
                                    measure == LK_MEASURE_AGE_DRIFT, measure == LK_MEASURE_IDENTITY_ERASURE};
}

int lk_measure_of(enum lk_measure measure, const uint8_t *score, int prompt, const struct lk_thresholds *thresholds) {
    const struct lk_measure_span span = lk_measure_span(measure, thresholds);
    const int gender = score[LK_AXIS_GENDER_DRIFT];
    int s = score[span.axis];
    if (!s || (span.identity && !gender)) return -1;
    if (span.axis == LK_AXIS_AGE_DRIFT && (measure == LK_MEASURE_AGE_ACCURACY) != (prompt == LK_PROMPT_V03)) return -1;
    if (span.identity && gender > s) s = gender;
    return (s >= span.low && s <= span.high) != span.outside;
}

const char *lk_subcategory_name(int subcategory) {
    static const char *const names[LK_N_SUBCATEGORIES] = {"Authority", "Service", "Appearance-associated",
                                                          "Physical",  "Aging",   "Situational"};
    return names[subcategory];
}

int lk_subcategory_of(int prompt, bool by_content) {
    static const int8_t printed[LK_N_EDIT_PROMPTS] = {0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 5, 5};
    static const int8_t content[LK_N_EDIT_PROMPTS] = {0, 0, 0, 1, 1, 0, 0, 2, 2, 1, 3, 3, 4, 4, 3, 5, 5, 3, 5, 5};
    return by_content ? content[prompt] : printed[prompt];
}

bool lk_group_has(const struct lk_group *g, const struct lk_item *item) {
    if (item->prompt < 0 || item->prompt >= LK_N_EDIT_PROMPTS) return false;
    if (g->race >= 0 && item->race != g->race) return false;
    if (g->gender >= 0 && item->gender != g->gender) return false;
    if (g->age >= 0 && item->age != g->age) return false;
    if (g->age_group >= 0 && lk_age_group(item->age) != g->age_group) return false;
    if (g->model >= 0 && item->model != g->model) return false;
    if (g->category >= 0 && item->prompt / 10 != g->category) return false;
    if (g->arm >= 0 && item->arm != g->arm) return false;
    if (g->prompt >= 0 && item->prompt != g->prompt) return false;
    return g->subcategory < 0 || lk_subcategory_of(item->prompt, g->by_content) == g->subcategory;
}

struct lk_group lk_group_with(struct lk_group group, enum lk_factor factor, int level) {
    switch (factor) {
    case LK_FACTOR_RACE:
        group.race = level;
        break;
    case LK_FACTOR_GENDER:
        group.gender = level;
        break;
    case LK_FACTOR_AGE:
        group.age = level;
        break;
    case LK_FACTOR_AGE_GROUP:
        group.age_group = level;
        break;
    case LK_FACTOR_MODEL:
        group.model = level;
        break;
    case LK_FACTOR_CATEGORY:
        group.category = level;
        break;
    case LK_FACTOR_ARM:
        group.arm = level;
        break;
    case LK_FACTOR_AXIS:
    case LK_N_FACTORS:
        break;
    }
    return group;
}

struct lk_rate lk_measure_rate(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                               const struct lk_thresholds *thresholds) {
    return lk_measure_rate_by(data, group, measure, LK_SCORES_JUDGE, thresholds);
}

const uint8_t *lk_item_levels(const struct lk_item *item, enum lk_score_source source) {
    return source == LK_SCORES_HUMAN ? item->human_majority : item->score;
}

bool lk_scores_any(const struct lk_dataset *data, enum lk_score_source source) {
    for (size_t i = 0; i < data->n_items; i++)
        for (int a = 0; a < LK_N_AXES; a++)
            if (lk_item_levels(&data->items[i], source)[a]) return true;
    return false;
}

struct lk_rate lk_measure_rate_by(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                                  enum lk_score_source source, const struct lk_thresholds *thresholds) {
    struct lk_rate rate = {0, 0};
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(group, item)) continue;
        int value = lk_measure_of(measure, lk_item_levels(item, source), item->prompt, thresholds);
        if (value < 0) continue;
        rate.k += value;
        rate.n++;
    }
    return rate;
}

double lk_rate_value(struct lk_rate rate) { return rate.n ? (double)rate.k / (double)rate.n : 0; }

bool lk_rates_range(const struct lk_rate *rates, int n_levels, struct lk_rates_range *out) {
    *out = (struct lk_rates_range){0, -1, -1};
    int used = 0;
    for (int i = 0; i < n_levels; i++) {
        if (!rates[i].n) continue;
        used++;
        if (out->highest < 0 || lk_rate_value(rates[i]) > lk_rate_value(rates[out->highest])) out->highest = i;
        if (out->lowest < 0 || lk_rate_value(rates[i]) < lk_rate_value(rates[out->lowest])) out->lowest = i;
    }
    if (used < 2) return false;
    out->difference = lk_rate_value(rates[out->highest]) - lk_rate_value(rates[out->lowest]);
    return true;
}

bool lk_item_score(const struct lk_item *item, enum lk_axis axis, enum lk_score_source source, double *out) {
    *out = source == LK_SCORES_HUMAN ? item->human_mean[axis] : item->score[axis];
    return source == LK_SCORES_HUMAN ? !isnan(*out) : *out != 0;
}

struct lk_mean lk_mean_of(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                          enum lk_score_source source) {
    struct lk_mean mean = {0, 0};
    double value;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(group, item) || !lk_item_score(item, axis, source, &value)) continue;
        mean.sum += value;
        mean.n++;
    }
    return mean;
}

struct lk_paired lk_paired_of(const struct lk_dataset *data, struct lk_group group, enum lk_axis axis,
                              enum lk_score_source source, bool magnitude, bool drifted_only,
                              const struct lk_thresholds *thresholds) {
    return lk_paired_list(data, group, axis, source, magnitude, drifted_only, thresholds, NULL, NULL);
}

struct lk_paired lk_paired_list(const struct lk_dataset *data, struct lk_group group, enum lk_axis axis,
                                enum lk_score_source source, bool magnitude, bool drifted_only,
                                const struct lk_thresholds *thresholds, double *change, int32_t *sources) {
    struct lk_paired paired = {0, 0, 0};
    group.arm = LK_ARM_EDITED;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        double edited, preserved;
        if (item->partner < 0 || !lk_group_has(&group, item)) continue;
        if (!lk_item_score(item, axis, source, &edited)) continue;
        if (!lk_item_score(&data->items[item->partner], axis, source, &preserved)) continue;
        if (drifted_only && item->score[LK_AXIS_RACE_DRIFT] < thresholds->drift &&
            item->score[LK_AXIS_GENDER_DRIFT] < thresholds->drift)
            continue;
        if (magnitude) edited = fabs(edited - 3), preserved = fabs(preserved - 3);
        paired.edited += edited;
        paired.preserved += preserved;
        if (change) change[paired.n] = preserved - edited;
        if (sources) sources[paired.n] = item->source;
        paired.n++;
    }
    return paired;
}
