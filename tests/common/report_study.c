#include "tests/common/report_study.h"

#include <math.h>

#include "eval/study/random.h"
#include "tests/common/test.h"

struct lk_item *add_item(struct lk_dataset *data, int model, int source, int prompt, int arm) {
    char who[48], id[96];
    int race, gender, age;
    int32_t at;
    lk_source_factors(source, &race, &gender, &age);
    lk_source_id(source, who);
    int n = snprintf(id, sizeof id, "%s_%s_%s_%s_%s%s", lk_factor_key(LK_FACTOR_MODEL, model),
                     lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                     lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt), arm ? ".preserved" : "");
    assert_ok(lk_dataset_item(data, id, (size_t)n, &at));
    assert_int_equal(data->items[at].source, source);
    return &data->items[at];
}

struct lk_report_options options_of(int64_t n_bootstrap) {
    struct lk_report_options options;
    lk_report_options_init(&options);
    options.n_bootstrap = n_bootstrap;
    return options;
}

struct lk_report *build(struct lk_dataset *data, const struct lk_report_options *options) {
    struct lk_report *report;
    assert_ok(lk_report_build(&report, data, options));
    return report;
}

const struct lk_table *study_table(const struct lk_report *report, const char *id) {
    const struct lk_table *table = lk_report_table(report, id);
    if (!table) fail_msg("no table %s", id);
    return table;
}

/* The n-th row (from 0) after the heading whose first cell is this text. heading NULL: any. */
const struct lk_table_row *find_row(const struct lk_table *table, const char *heading, const char *first) {
    bool inside = !heading;
    for (int r = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (heading && row->heading && row->n_cells == 1) inside = !strcmp(row->cells[0].text, heading);
        if (inside && !row->heading && !strcmp(row->cells[0].text, first)) return row;
    }
    fail_msg("%s: no row %s under %s", table->id, first, heading ? heading : "(any)");
    return NULL;
}

void score(struct lk_item *item, int success, int skin, int race, int gender, int age) {
    const int values[LK_N_AXES] = {success, skin, race, gender, age};
    for (int a = 0; a < LK_N_AXES; a++) item->score[a] = (uint8_t)values[a];
}

void assert_near(double value, double expected, double relative) {
    if (!(fabs(value - expected) <= relative * fabs(expected))) fail_msg("expected %.17g, got %.17g", expected, value);
}

/* scipy.stats.chi2_contingency and statsmodels.stats.proportion.proportions_ztest on the published counts. */
static int clamp(int value) { return value < 1 ? 1 : value > 5 ? 5 : value; }

void small_study(struct lk_dataset *data, int n_sources, int n_prompts, int n_models) {
    struct lk_stream stream;
    lk_stream_named(&stream, 7, "report tests");
    lk_dataset_init(data);
    for (int model = 0; model < n_models; model++)
        for (int s = 0; s < n_sources; s++)
            for (int p = 0; p < n_prompts; p++)
                for (int arm = 0; arm < 2; arm++) {
                    int source = s * (LK_N_SOURCES / n_sources);
                    struct lk_item *item = add_item(data, model, source, p * 19 / (n_prompts - 1), arm);
                    int drift = item->race > 3 && lk_stream_bounded(&stream, 3) == 0 && !arm ? 2 : 0;
                    for (int a = 0; a < LK_N_AXES; a++) {
                        int level = a == LK_AXIS_EDIT_SUCCESS                          ? 4
                                    : a == LK_AXIS_SKIN_TONE || a == LK_AXIS_AGE_DRIFT ? 3
                                                                                       : 2;
                        int base =
                            level + (int)lk_stream_bounded(&stream, 3) - 1 + (a == LK_AXIS_RACE_DRIFT ? drift : 0);
                        item->judge[0][a] = (uint8_t)clamp(base);
                        item->judge[1][a] = (uint8_t)clamp(base + (int)lk_stream_bounded(&stream, 4) - 1);
                        item->human_mean[a] = clamp(base) + (double)lk_stream_bounded(&stream, 3) / 4;
                    }
                }
    lk_dataset_pair(data);
    lk_ensemble_apply(data, &(struct lk_ensemble){.rounding = LK_HALF_EVEN}, NULL);
}
