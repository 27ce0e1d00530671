#include "eval/report/observations.h"

#include <string.h>

#include "engine/base/alloc.h"

static enum lk_code make(size_t n, struct lk_observations *out) {
    memset(out, 0, sizeof *out);
    out->value = lk_malloc(n * (sizeof *out->value + 5 * sizeof *out->race));
    if (!out->value) return lk_fail(LK_E_NOMEM, "report: no memory for %zu observations", n);
    out->race = (int32_t *)(void *)(out->value + n);
    out->model = out->race + n;
    out->prompt = out->model + n;
    out->category = out->prompt + n;
    out->source = out->category + n;
    return LK_OK;
}

void lk_observations_free(struct lk_observations *o) {
    lk_free(o->value);
    memset(o, 0, sizeof *o);
}

static void add(struct lk_observations *o, const struct lk_item *item, double value) {
    size_t i = o->n++;
    o->value[i] = value;
    o->race[i] = item->race;
    o->model[i] = item->model;
    o->prompt[i] = item->prompt;
    o->category[i] = item->prompt / 10;
    o->source[i] = item->source;
}

static bool has_age(const struct lk_item *item, enum lk_axis axis) {
    return axis != LK_AXIS_AGE_DRIFT || item->prompt != LK_PROMPT_V03;
}

enum lk_code lk_observe_scores(const struct lk_dataset *data, const struct lk_group *group, enum lk_axis axis,
                               enum lk_score_source source, struct lk_observations *out) {
    LK_TRY(make(data->n_items, out));
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        double value;
        if (lk_group_has(group, item) && has_age(item, axis) && lk_item_score(item, axis, source, &value))
            add(out, item, value);
    }
    return LK_OK;
}

enum lk_code lk_observe_measure(const struct lk_dataset *data, const struct lk_group *group, enum lk_measure measure,
                                enum lk_score_source source, const struct lk_thresholds *thresholds,
                                struct lk_observations *out) {
    LK_TRY(make(data->n_items, out));
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!lk_group_has(group, item)) continue;
        int value = lk_measure_of(measure, lk_item_levels(item, source), item->prompt, thresholds);
        if (value >= 0) add(out, item, value);
    }
    return LK_OK;
}

enum lk_code lk_observe_changes(const struct lk_dataset *data, struct lk_group group, enum lk_axis axis,
                                enum lk_score_source source, struct lk_observations *out) {
    LK_TRY(make(data->n_items, out));
    group.arm = LK_ARM_EDITED;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        double edited, preserved;
        if (item->partner < 0 || !lk_group_has(&group, item) || !has_age(item, axis)) continue;
        if (lk_item_score(item, axis, source, &edited) &&
            lk_item_score(&data->items[item->partner], axis, source, &preserved))
            add(out, item, preserved - edited);
    }
    return LK_OK;
}

void lk_observations_by_race(const struct lk_observations *o, double *values, size_t sizes[LK_N_RACES]) {
    size_t n = 0;
    for (int race = 0; race < LK_N_RACES; race++) {
        size_t first = n;
        for (size_t i = 0; i < o->n; i++)
            if (o->race[i] == race) values[n++] = o->value[i];
        sizes[race] = n - first;
    }
}

size_t lk_observations_source_means(const struct lk_observations *o, double means[LK_N_SOURCES],
                                    int32_t races[LK_N_SOURCES]) {
    double sum[LK_N_SOURCES] = {0}, count[LK_N_SOURCES] = {0};
    int32_t race[LK_N_SOURCES] = {0};
    for (size_t i = 0; i < o->n; i++) {
        sum[o->source[i]] += o->value[i];
        count[o->source[i]]++;
        race[o->source[i]] = o->race[i];
    }
    size_t n = 0;
    for (int s = 0; s < LK_N_SOURCES; s++) {
        if (count[s] == 0) continue;
        means[n] = sum[s] / count[s];
        races[n++] = race[s];
    }
    return n;
}
