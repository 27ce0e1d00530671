/* What was asked for: criteria, prompts, parameters, experiments, rubric, occupations: constants of the design, from
 * the data files that are part of the program. And what it was asked of: the pools that the chosen sources are from,
 * feature prompts of some of them. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "eval/data/data.h"
#include "eval/report/build.h"

/* A data file of the program's own, parsed; NULL only for memory. */
static cJSON *parse_data(const char *name) {
    struct lk_data_file file;
    if (!lk_data_find(name, &file)) return NULL;
    return cJSON_ParseWithLength(file.text, file.n_bytes);
}

static const char *string_of(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(value) ? value->valuestring : "";
}

static enum lk_code constant_tables(struct lk_report *report) {
    static const char *const criteria[] = {
        "Frontal Face",
        "Face oriented toward camera, no profiles",
        "Clear Focus",
        "Sharp image without motion blur",
        "Proper Lighting",
        "Even illumination, no harsh shadows",
        "Identifiable Features",
        "Facial features clearly visible",
        "Neutral Expression",
        "Neutral or mild expression",
        "Upright Posture",
        "Head in upright position",
        NULL,
    };
    static const char *const parameters[] = {
        "Model ID",
        "FLUX.2-dev",
        "Step1X-Edit-v1p2",
        "Qwen-Image-Edit-2511",
        "Inference Steps",
        "50",
        "28",
        "40",
        "Guidance Scale",
        "4.0",
        "–",
        "1.0",
        "True CFG Scale",
        "–",
        "6.0",
        "4.0",
        "Default Seed",
        "42",
        "42",
        "0",
        "Precision",
        "bfloat16",
        "bfloat16",
        "bfloat16",
        NULL,
    };
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_1", "Image selection criteria", "Criterion|Description"));
    lk_table_text_rows(table, criteria, 2);
    LK_TRY(lk_report_add(report, LK_SECTION_DESIGN, table));
    LK_TRY(lk_table_new(&table, "table_5", "Inference parameters of each model", "Parameter|FLUX.2|Step1X|Qwen"));
    lk_table_text_rows(table, parameters, 4);
    lk_table_note(table, "The study's parameters; what an output was made with stands in its own metadata.");
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code table_6(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_6", "Overview of three experiments", "Exp|Comparison|Goal|Scale"));
    const struct {
        const char *comparison, *goal;
        int64_t scale;
    } rows[] = {{"Input vs. Baseline", "Detect Soft Erasure & drift", LK_N_SOURCES * LK_N_EDIT_PROMPTS * LK_N_MODELS},
                {"Input vs. Ours", "Test identity preservation", LK_N_SOURCES * 6 - 4},
                {"WinoBias prompts", "Gender stereotype analysis", 2 * LK_N_W_PROMPTS}};
    for (int i = 0; i < 3; i++) {
        lk_table_row(table);
        lk_table_text(table, "%d", i + 1);
        lk_table_text(table, "%s", rows[i].comparison);
        lk_table_text(table, "%s", rows[i].goal);
        lk_table_count(table, rows[i].scale);
    }
    lk_table_note(table, "Nominal: 84 sources x 20 prompts x 3 models; 84 x 6 - 4 pairs; 50 sentences x 2 models.");
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code table_prompts(struct lk_report *report, const char *id, const char *caption, int from, int to) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, id, caption, "ID|Prompt Text"));
    const char *group = "";
    for (int p = from; p < to; p++) {
        const struct lk_prompt *prompt = &report->prompts.edit[p];
        if (strcmp(group, prompt->subcategory_printed)) {
            char heading[64];
            group = prompt->subcategory_printed;
            snprintf(heading, sizeof heading, "%s Subcategory", group);
            lk_table_heading(table, heading);
        }
        lk_table_row(table);
        lk_table_text(table, "%s", prompt->id);
        lk_table_text(table, "%s", prompt->text);
    }
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code table_7(struct lk_report *report) {
    cJSON *rubric = parse_data("rubric");
    if (!rubric) return lk_fail(LK_E_NOMEM, "report: out of memory");
    struct lk_table *table;
    enum lk_code rc = lk_table_new(
        &table, "table_7", "Scoring rubric of every axis; age accuracy applies to V-03 alone", "Axis|1|2|3|4|5");
    const cJSON *axis;
    if (!rc) {
        cJSON_ArrayForEach(axis, cJSON_GetObjectItemCaseSensitive(rubric, "axes")) {
            const cJSON *level;
            lk_table_row(table);
            lk_table_text(table, "%s", string_of(axis, "name"));
            cJSON_ArrayForEach(level, cJSON_GetObjectItemCaseSensitive(axis, "levels"))
                lk_table_text(table, "%s", string_of(level, "text"));
        }
        rc = lk_report_add(report, LK_SECTION_DESIGN, table);
    }
    cJSON_Delete(rubric);
    return rc;
}

static enum lk_code table_15(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_15", "Occupations of the WinoBias sentences", "Category|Occupations"));
    cJSON *data = parse_data("prompts_winobias");
    const cJSON *lists = cJSON_GetObjectItemCaseSensitive(data, "occupations");
    for (int gender = 0; gender < 2; gender++) {
        struct lk_text text = {NULL, 0, 0, LK_OK};
        const cJSON *name;
        int n = 0;
        for (int p = 0; p < LK_N_W_PROMPTS; p++) n += report->prompts.w[p].stereotype_gender == gender;
        cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(lists, gender ? "female" : "male"))
            lk_text_add(&text, "%s%s", text.n ? ", " : "", cJSON_IsString(name) ? name->valuestring : "");
        lk_table_row(table);
        lk_table_text(table, "%s-stereotyped (%d)", gender ? "Female" : "Male", n);
        lk_table_text(table, "%s", text.rc || !text.bytes ? "" : text.bytes);
        if (text.rc && !table->rc) table->rc = text.rc;
        lk_text_free(&text);
    }
    lk_table_note(table, "The number in brackets counts sentences; each row lists 20 occupations.");
    bool ok = data != NULL;
    cJSON_Delete(data);
    enum lk_code rc = lk_report_add(report, LK_SECTION_DESIGN, table);
    return rc || ok ? rc : lk_fail(LK_E_NOMEM, "report: out of memory");
}

static enum lk_code table_16(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_16", "The 50 WinoBias sentences and the occupation whose stereotype they test",
                        "ID|Prompt Text|Target"));
    for (int p = 0; p < LK_N_W_PROMPTS; p++) {
        const struct lk_prompt *prompt = &report->prompts.w[p];
        if (p == 0 || report->prompts.w[p - 1].stereotype_gender != prompt->stereotype_gender)
            lk_table_heading(table, prompt->stereotype_gender ? "Female-Stereotyped Occupations (W-26 to W-50)"
                                                              : "Male-Stereotyped Occupations (W-01 to W-25)");
        lk_table_row(table);
        lk_table_text(table, "%s", prompt->id);
        lk_table_text(table, "%s", prompt->text);
        lk_table_text(table, "%s", prompt->target);
    }
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code table_2(struct lk_report *report) {
    const struct lk_source_manifest *manifest = report->options.manifest;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_2", "Selected images by candidate version", "Version"));
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
    if (!features->of[source].identity) {
        lk_table_none(table, features->of[source].none ? "no feature prompt could be extracted"
                                                       : "the file has no record of this source");
        return;
    }
    lk_table_text(table, "%s", features->of[source].identity);
    if (features->of[source].leak) lk_table_remark(table, "names a demographic group");
}

static enum lk_code table_8(struct lk_report *report) {
    const struct lk_report_options *o = &report->options;
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_8", "Example identity prompts", "Demo.|Generated Identity Prompt"));
    if (o->features) {
        for (int i = 0; i < o->n_examples; i++) prompt_row(table, o->features, o->examples[i]);
        lk_table_note(table,
                      "Feature prompts: %d; sources without one: %d. Prompts that name a demographic group, although "
                      "none should: %d.",
                      o->features->n, o->features->n_none, o->features->n_leaks);
    }
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

enum lk_code lk_report_tables_design(struct lk_report *report) {
    LK_TRY(table_6(report));
    LK_TRY(constant_tables(report));
    LK_TRY(table_prompts(report, "table_3", "Occupational stereotype prompts", 0, 10));
    LK_TRY(table_prompts(report, "table_4", "Vulnerability attribute prompts", 10, LK_N_EDIT_PROMPTS));
    LK_TRY(table_7(report));
    LK_TRY(table_15(report));
    LK_TRY(table_16(report));
    LK_TRY(table_2(report));
    return table_8(report);
}
