/* Tables 12 and 13 of the portrait study, the overview of one model's metrics, and every rate by every factor. */
#include <stdio.h>

#include "eval/report/build.h"

static const enum lk_measure rate_columns[] = {
    LK_MEASURE_SUCCESS,      LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT,
    LK_MEASURE_GENDER_DRIFT, LK_MEASURE_LIGHTENING,   LK_MEASURE_DARKENING,
    LK_MEASURE_AGE_DRIFT,    LK_MEASURE_AGE_ACCURACY, LK_MEASURE_IDENTITY_ERASURE,
};
enum { N_RATE_COLUMNS = sizeof rate_columns / sizeof *rate_columns };

static void rate_cell(struct lk_report *report, struct lk_table *table, const struct lk_group *group,
                      enum lk_measure measure) {
    struct lk_rate rate = lk_measure_rate(report->data, group, measure, &report->options.thresholds);
    lk_table_percent(table, rate.k, rate.n);
    if (!rate.n) return;
    lk_report_interval(report, table, rate);
    if (rate.k) lk_report_link(report, table, group, measure, LK_SCORES_JUDGE);
}

static enum lk_code table_12(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_12", "Soft erasure and stereotype replacement by model",
                        "Model|>N|>Edit Succ.|>Soft Eras.|>Race Change"));
    const enum lk_measure shown[] = {LK_MEASURE_SUCCESS, LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT};
    int64_t valid = 0;
    for (int model = 0; model < LK_N_MODELS; model++) {
        struct lk_group group = LK_GROUP_ANY;
        group.model = model;
        int64_t n = lk_measure_rate(report->data, &group, LK_MEASURE_SUCCESS, &report->options.thresholds).n;
        valid += n;
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_MODEL, model));
        lk_table_count(table, n);
        for (int i = 0; i < 3; i++) rate_cell(report, table, &group, shown[i]);
    }
    lk_table_note(
        table,
        "Edit success: score at least %d; soft erasure: at most %d; race change: at least %d. N counts outputs "
        "with a valid score. Intervals: Wilson, %g%%, outputs taken as independent; the section on disparities "
        "has intervals that resample the sources.",
        report->options.thresholds.success, report->options.thresholds.soft_erasure, report->options.thresholds.drift,
        100 * (1 - report->options.alpha));
    table->no_data = !valid;
    return lk_report_add(report, LK_SECTION_EDITS, table);
}

/* Races in descending order of the first model that has data. */
static void order_races(struct lk_rate rates[LK_N_RACES][LK_N_MODELS], int order[LK_N_RACES]) {
    int key = 0;
    for (int m = LK_N_MODELS - 1; m >= 0; m--)
        for (int r = 0; r < LK_N_RACES; r++)
            if (rates[r][m].n) key = m;
    for (int r = 0; r < LK_N_RACES; r++) {
        int at = r;
        for (; at > 0 && lk_rate_value(rates[order[at - 1]][key]) < lk_rate_value(rates[r][key]); at--)
            order[at] = order[at - 1];
        order[at] = r;
    }
}

static void disparity_row(struct lk_table *table, struct lk_rate rates[LK_N_RACES][LK_N_MODELS]) {
    double differences[LK_N_MODELS];
    int largest = -1;
    struct lk_rates_range disparities[LK_N_MODELS];
    for (int m = 0; m < LK_N_MODELS; m++) {
        struct lk_rate column[LK_N_RACES];
        for (int r = 0; r < LK_N_RACES; r++) column[r] = rates[r][m];
        differences[m] = lk_rates_range(column, LK_N_RACES, &disparities[m]) ? disparities[m].difference : -1;
        if (differences[m] >= 0 && (largest < 0 || differences[m] > differences[largest])) largest = m;
    }
    lk_table_row(table);
    lk_table_text(table, "Disparity");
    for (int m = 0; m < LK_N_MODELS; m++) {
        if (differences[m] < 0) {
            lk_table_none(table, "fewer than two groups have outputs");
            continue;
        }
        lk_table_points(table, differences[m]);
        if (m == largest) lk_table_bold(table);
    }
}

static enum lk_code table_13(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_13", "Race change rates by race and model; disparity = max – min", "Race"));
    struct lk_rate rates[LK_N_RACES][LK_N_MODELS];
    int64_t valid = 0;
    for (int m = 0; m < LK_N_MODELS; m++) {
        lk_table_column(table, lk_factor_short(LK_FACTOR_MODEL, m), LK_ALIGN_RIGHT);
        for (int r = 0; r < LK_N_RACES; r++) {
            struct lk_group group = LK_GROUP_ANY;
            group.model = m;
            group.race = r;
            rates[r][m] = lk_measure_rate(report->data, &group, LK_MEASURE_RACE_DRIFT, &report->options.thresholds);
            valid += rates[r][m].n;
        }
    }
    int order[LK_N_RACES] = {0};
    order_races(rates, order);
    for (int i = 0; i < LK_N_RACES; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, order[i]));
        for (int m = 0; m < LK_N_MODELS; m++) {
            struct lk_group group = LK_GROUP_ANY;
            group.model = m;
            group.race = order[i];
            rate_cell(report, table, &group, LK_MEASURE_RACE_DRIFT);
        }
    }
    disparity_row(table, rates);
    lk_table_note(table,
                  "Share of outputs whose race change is at least %d. Descending by the first model with data. The "
                  "disparity is taken between unrounded rates.",
                  report->options.thresholds.drift);
    table->no_data = !valid;
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

/* Every measure of one model with its race disparity and the two groups. */
static enum lk_code table_metrics(struct lk_report *report, int model) {
    struct lk_table *table;
    char id[64], caption[128];
    snprintf(id, sizeof id, "t_000_3_1_%s", lk_factor_key(LK_FACTOR_MODEL, model));
    snprintf(caption, sizeof caption, "Metrics of %s", lk_factor_display(LK_FACTOR_MODEL, model));
    LK_TRY(lk_table_new(&table, id, caption, "Metric|>Overall Rate|>Race Disparity|Highest|Lowest"));
    int64_t valid = 0;
    for (int i = 0; i < N_RATE_COLUMNS; i++) {
        struct lk_group group = LK_GROUP_ANY;
        group.model = model;
        struct lk_rate rates[LK_N_RACES];
        struct lk_rates_range disparity;
        for (int r = 0; r < LK_N_RACES; r++) {
            struct lk_group of_race = lk_group_with(group, LK_FACTOR_RACE, r);
            rates[r] = lk_measure_rate(report->data, &of_race, rate_columns[i], &report->options.thresholds);
            valid += rates[r].n;
        }
        lk_table_row(table);
        lk_table_text(table, "%s", lk_measure_name(rate_columns[i]));
        rate_cell(report, table, &group, rate_columns[i]);
        if (!lk_rates_range(rates, LK_N_RACES, &disparity)) {
            for (int c = 0; c < 3; c++) lk_table_none(table, "fewer than two races have outputs");
            continue;
        }
        lk_table_points(table, disparity.difference);
        const int levels[2] = {disparity.highest, disparity.lowest};
        for (int c = 0; c < 2; c++) {
            const struct lk_rate *rate = &rates[levels[c]];
            int64_t tenths = lk_percent_tenths(rate->k, rate->n);
            lk_table_text(table, "%s %lld.%lld%%", lk_factor_display(LK_FACTOR_RACE, levels[c]), (long long)tenths / 10,
                          (long long)tenths % 10);
        }
    }
    table->no_data = !valid;
    return lk_report_add(report, LK_SECTION_EDITS, table);
}

static void rates_row(struct lk_report *report, struct lk_table *table, const char *label,
                      const struct lk_group *group) {
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_count(table, lk_measure_rate(report->data, group, LK_MEASURE_SUCCESS, &report->options.thresholds).n);
    for (int i = 0; i < N_RATE_COLUMNS; i++) rate_cell(report, table, group, rate_columns[i]);
}

static enum lk_code begin_rates(struct lk_table **table, const char *id, const char *caption) {
    LK_TRY(lk_table_new(table, id, caption, "Group|>N"));
    for (int i = 0; i < N_RATE_COLUMNS; i++) lk_table_column(*table, lk_measure_name(rate_columns[i]), LK_ALIGN_RIGHT);
    return LK_OK;
}

/* All rates by each factor alone, outputs of the baseline arm. */
static enum lk_code table_by_factor(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(begin_rates(&table, "rates_by_factor", "All rates by every factor"));
    struct lk_group all = LK_GROUP_ANY;
    rates_row(report, table, "All", &all);
    for (int factor = 0; factor <= LK_FACTOR_CATEGORY; factor++) {
        char heading[64];
        snprintf(heading, sizeof heading, "By %s", lk_factor_name(factor));
        lk_table_heading(table, heading);
        for (int level = 0; level < lk_factor_levels(factor); level++) {
            struct lk_group group = lk_group_with(all, factor, level);
            rates_row(report, table, lk_factor_display(factor, level), &group);
        }
    }
    table->no_data = !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

static enum lk_code table_by_prompt(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(begin_rates(&table, "rates_by_prompt", "All rates by prompt and subcategory"));
    struct lk_group all = LK_GROUP_ANY;
    for (int prompt = 0; prompt < LK_N_EDIT_PROMPTS; prompt++) {
        struct lk_group group = all;
        char label[96];
        group.prompt = prompt;
        snprintf(label, sizeof label, "%s %s", report->prompts.edit[prompt].id, report->prompts.edit[prompt].target);
        rates_row(report, table, label, &group);
    }
    for (int by_content = 1; by_content >= 0; by_content--) {
        if (report->options.subcategories == (by_content ? LK_SUBCATEGORIES_PRINTED : LK_SUBCATEGORIES_CONTENT))
            continue;
        lk_table_heading(table, by_content ? "Subcategories by content" : "Subcategories by the printed id ranges");
        for (int s = 0; s < LK_N_SUBCATEGORIES; s++) {
            struct lk_group group = all;
            group.subcategory = s;
            group.by_content = by_content;
            rates_row(report, table, lk_subcategory_name(s), &group);
        }
    }
    lk_table_note(table,
                  "The printed id ranges put unlike prompts together (a kindergarten teacher under Authority); the "
                  "grouping by content is the one to read.");
    table->no_data = !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

/* Race x another factor for one measure, as a matrix. */
static enum lk_code table_crossed(struct lk_report *report, enum lk_factor factor, enum lk_measure measure) {
    struct lk_table *table;
    char id[96], caption[128];
    snprintf(id, sizeof id, "%s_race_by_%s", lk_measure_key(measure), lk_factor_name(factor));
    snprintf(caption, sizeof caption, "%s by race and %s", lk_measure_name(measure), lk_factor_name(factor));
    LK_TRY(lk_table_new(&table, id, caption, "Race"));
    struct lk_group all = LK_GROUP_ANY;
    for (int level = 0; level < lk_factor_levels(factor); level++)
        lk_table_column(table, lk_factor_short(factor, level), LK_ALIGN_RIGHT);
    for (int race = 0; race < LK_N_RACES; race++) {
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, race));
        for (int level = 0; level < lk_factor_levels(factor); level++) {
            struct lk_group group = lk_group_with(lk_group_with(all, LK_FACTOR_RACE, race), factor, level);
            rate_cell(report, table, &group, measure);
        }
    }
    table->no_data = !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

/* Race disparity of a category's race change, with the groups. */
static enum lk_code table_categories(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_000_15_5", "Race disparity of race change by category",
                        "Category|>Disparity|max group|min group"));
    struct lk_group all = LK_GROUP_ANY;
    for (int category = 0; category < 2; category++) {
        struct lk_rate rates[LK_N_RACES];
        struct lk_rates_range disparity;
        for (int r = 0; r < LK_N_RACES; r++) {
            struct lk_group group = lk_group_with(lk_group_with(all, LK_FACTOR_CATEGORY, category), LK_FACTOR_RACE, r);
            rates[r] = lk_measure_rate(report->data, &group, LK_MEASURE_RACE_DRIFT, &report->options.thresholds);
        }
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_CATEGORY, category));
        if (!lk_rates_range(rates, LK_N_RACES, &disparity)) {
            for (int c = 0; c < 3; c++) lk_table_none(table, "fewer than two races have outputs");
            continue;
        }
        lk_table_points(table, disparity.difference);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, disparity.highest));
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, disparity.lowest));
    }
    table->no_data = !lk_report_has_items(report, &all);
    return lk_report_add(report, LK_SECTION_DISPARITY, table);
}

enum lk_code lk_report_tables_rates(struct lk_report *report) {
    LK_TRY(table_12(report));
    for (int model = 0; model < LK_N_MODELS; model++) LK_TRY(table_metrics(report, model));
    LK_TRY(table_13(report));
    LK_TRY(table_categories(report));
    LK_TRY(table_by_factor(report));
    LK_TRY(table_by_prompt(report));
    const enum lk_measure crossed[] = {LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT, LK_MEASURE_LIGHTENING,
                                       LK_MEASURE_IDENTITY_ERASURE};
    const enum lk_factor factors[] = {LK_FACTOR_GENDER, LK_FACTOR_CATEGORY, LK_FACTOR_MODEL};
    for (int m = 0; m < 4; m++)
        for (int f = 0; f < 3; f++)
            if (crossed[m] != LK_MEASURE_RACE_DRIFT || factors[f] != LK_FACTOR_MODEL)
                LK_TRY(table_crossed(report, factors[f], crossed[m]));
    return LK_OK;
}
