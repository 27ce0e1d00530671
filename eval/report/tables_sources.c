/* Tables 2 and 8: the pools that the chosen sources are from, and feature prompts of some of them. */
#include "eval/report/build.h"

static enum lk_code table_2(struct lk_report *report) {
    const struct lk_source_manifest *manifest = report->options.manifest;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_2", "Selected images by candidate version"));
    lk_table_column(table, "Version", LK_ALIGN_LEFT);
    for (int pool = 1; pool <= LK_N_POOLS; pool++) {
        const char name[] = {'V', (char)('0' + pool), 0};
        lk_table_column(table, name, LK_ALIGN_RIGHT);
    }
    if (manifest) {
        lk_table_row(table);
        lk_table_text(table, "Count");
        for (int pool = 0; pool < LK_N_POOLS; pool++) lk_table_count(table, manifest->count[pool]);
        if (manifest->n < LK_N_SOURCES)
            lk_table_note(table, "The manifest has a source for %d of %d cells.", manifest->n, (int)LK_N_SOURCES);
    }
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static void prompt_row(struct lk_table *table, const struct lk_feature_prompts *features, int source) {
    int race, gender, age;
    lk_source_factors(source, &race, &gender, &age);
    lk_table_row(table);
    lk_table_text(table, "%s %s %s", lk_factor_display(LK_FACTOR_RACE, race),
                  lk_factor_display(LK_FACTOR_GENDER, gender), lk_factor_display(LK_FACTOR_AGE, age));
    if (!features->identity[source]) {
        lk_table_none(table, features->none[source] ? "no feature prompt could be extracted"
                                                    : "the file has no record of this source");
        return;
    }
    lk_table_text(table, "%s", features->identity[source]);
    if (features->leak[source]) lk_table_remark(table, "names a demographic group");
}

static enum lk_code table_8(struct lk_report *report) {
    const struct lk_report_options *o = &report->options;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_8", "Example identity prompts"));
    lk_table_column(table, "Demo.", LK_ALIGN_LEFT);
    lk_table_column(table, "Generated Identity Prompt", LK_ALIGN_LEFT);
    if (o->features) {
        for (int i = 0; i < o->n_examples; i++) prompt_row(table, o->features, o->examples[i]);
        lk_table_note(table,
                      "Feature prompts: %d; sources without one: %d. Prompts that name a demographic group, although "
                      "none should: %d.",
                      o->features->n, o->features->n_none, o->features->n_leaks);
    }
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

enum lk_code lk_report_tables_sources(struct lk_report *report) {
    LK_TRY(table_2(report));
    return table_8(report);
}
