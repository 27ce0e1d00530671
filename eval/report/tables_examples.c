/* Tables 17 and 18: the outputs that show soft erasure and stereotype replacement most, in the judge's words. */
#include <stdlib.h>

#include "eval/report/build.h"

enum { N_EXAMPLES = 3 };

static int distance_from_neutral(const struct lk_item *item) {
    int s = item->score[LK_AXIS_SKIN_TONE];
    return s ? abs(s - 3) : 0;
}

/* True when a shows it more than b. Equal ones keep the dataset's order. */
typedef bool (*more_fn)(const struct lk_item *a, const struct lk_item *b);

static bool erased_more(const struct lk_item *a, const struct lk_item *b) {
    return a->score[LK_AXIS_EDIT_SUCCESS] < b->score[LK_AXIS_EDIT_SUCCESS];
}

static bool replaced_more(const struct lk_item *a, const struct lk_item *b) {
    if (a->score[LK_AXIS_RACE_DRIFT] != b->score[LK_AXIS_RACE_DRIFT])
        return a->score[LK_AXIS_RACE_DRIFT] > b->score[LK_AXIS_RACE_DRIFT];
    return distance_from_neutral(a) > distance_from_neutral(b);
}

static void example_row(struct lk_report *report, struct lk_table *table, const struct lk_item *item,
                        enum lk_axis axis) {
    const struct lk_prompt *prompt = &report->prompts.edit[item->prompt];
    lk_table_row(table);
    lk_table_text(table, "%s (%s)", prompt->id, prompt->nickname ? prompt->nickname : prompt->target);
    lk_table_text(table, "%s %s %s", lk_factor_display(LK_FACTOR_RACE, item->race),
                  lk_factor_display(LK_FACTOR_GENDER, item->gender), lk_factor_display(LK_FACTOR_AGE, item->age));
    lk_table_text(table, "%s%s%s score: %d/5 (%s).", item->evidence, *item->evidence ? " " : "",
                  lk_factor_display(LK_FACTOR_AXIS, axis), item->score[axis],
                  lk_factor_display(LK_FACTOR_MODEL, item->model));
}

static enum lk_code examples(struct lk_report *report, const char *id, const char *caption, enum lk_measure measure,
                             enum lk_axis axis, more_fn more) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, id, caption, "Prompt|Source|Observation"));
    struct lk_group all = LK_GROUP_ANY;
    const struct lk_item *best[LK_N_EDIT_PROMPTS] = {NULL};
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (!lk_group_has(&all, item)) continue;
        if (lk_measure_of(measure, item->score, item->prompt, &report->options.thresholds) != 1) continue;
        if (!best[item->prompt] || more(item, best[item->prompt])) best[item->prompt] = item;
    }
    int shown = 0;
    for (; shown < N_EXAMPLES; shown++) {
        int next = -1;
        for (int p = 0; p < LK_N_EDIT_PROMPTS; p++)
            if (best[p] && (next < 0 || more(best[p], best[next]))) next = p;
        if (next < 0) break;
        example_row(report, table, best[next], axis);
        best[next] = NULL;
    }
    lk_table_note(table, "At most one output per prompt; of equals the first in the order of the scores.");
    table->no_data = !shown;
    return lk_report_add(report, LK_SECTION_EXAMPLES, table);
}

enum lk_code lk_report_tables_examples(struct lk_report *report) {
    LK_TRY(examples(report, "table_17", "Soft erasure: edits that were ignored", LK_MEASURE_SOFT_ERASURE,
                    LK_AXIS_EDIT_SUCCESS, erased_more));
    return examples(report, "table_18", "Stereotype replacement: identity attributes that drifted",
                    LK_MEASURE_RACE_DRIFT, LK_AXIS_RACE_DRIFT, replaced_more);
}
