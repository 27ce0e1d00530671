#include "eval/report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/report/build.h"
#include "eval/stats/proportion.h"

void lk_report_options_init(struct lk_report_options *o) {
    *o = (struct lk_report_options){
        .title = "Portrait edits: audit",
        .run = "",
        .date = "",
        .judges = {"", ""},
        .label = "",
        .attribution = "",
        .thresholds = LK_THRESHOLDS_DEFAULT,
        .n_bootstrap = 1000,
        .study_seed = 42,
        .alpha = 0.05,
        .n_examples = 3,
        .figure_prompt = -1,
        .figure_gender = -1,
        .figure_age = -1,
    };
    static const char *const printed[] = {"Black_Female_30s", "Indian_Male_50s", "White_Male_60s"};
    for (int i = 0; i < 3; i++) o->examples[i] = (int8_t)lk_source_parse(printed[i], strlen(printed[i]));
}

static enum lk_code no_memory(void) { return lk_fail(LK_E_NOMEM, "report: out of memory"); }

static struct lk_report_entry *append(struct lk_report *report) {
    if (lk_grow(&report->entries, &report->entries_capacity, report->n_entries + 1, sizeof *report->entries))
        return NULL;
    return &report->entries[report->n_entries++];
}

/* Those that show scores of judges; of tables in others the one who fills them knows. */
static bool shows_judges(enum lk_section section) {
    return section != LK_SECTION_HUMAN && section != LK_SECTION_EXAMPLES && section != LK_SECTION_DESIGN;
}

enum lk_code lk_report_add(struct lk_report *report, enum lk_section section, struct lk_table *table) {
    if (shows_judges(section)) lk_report_note_kin(report, table);
    enum lk_code rc = lk_table_finish(table);
    struct lk_report_entry *entry = rc ? NULL : append(report);
    if (!entry) {
        lk_table_free(table);
        return rc ? rc : no_memory();
    }
    *entry = (struct lk_report_entry){section, table, NULL};
    return LK_OK;
}

enum lk_code lk_report_add_figure(struct lk_report *report, enum lk_section section, struct lk_figure *figure) {
    struct lk_figure *copy = lk_malloc(sizeof *copy);
    struct lk_report_entry *entry = copy ? append(report) : NULL;
    if (!entry) {
        lk_free(copy);
        lk_figure_free(figure);
        return no_memory();
    }
    *copy = *figure;
    *entry = (struct lk_report_entry){section, NULL, copy};
    return LK_OK;
}

bool lk_report_has_items(const struct lk_report *report, const struct lk_group *group) {
    return lk_measure_rate(report->data, group, LK_MEASURE_SUCCESS, &report->options.thresholds).n > 0;
}

void lk_report_number(struct lk_table *table, const struct lk_number *number, int decimals) {
    if (number->undefined) {
        lk_table_none(table, number->undefined);
        return;
    }
    lk_table_fixed(table, number->value, decimals);
    if (isfinite(number->value)) lk_table_interval(table, number->low, number->high);
}

void lk_report_interval(struct lk_report *report, struct lk_table *table, struct lk_rate rate) {
    struct lk_number number;
    if (!lk_proportion(rate.k, rate.n, LK_WILSON, 1 - report->options.alpha, &number) && !number.undefined)
        lk_table_interval(table, number.low, number.high);
}

static void add_images(struct lk_report *report, struct lk_table *table, const struct lk_report_images *images,
                       const char *key) {
    enum lk_code rc = lk_grow(&report->images, &report->images_capacity, report->n_images + 1, sizeof *report->images);
    if (!rc) report->images[report->n_images++] = *images;
    if (!rc) lk_table_link(table, key);
    if (rc && !table->rc) table->rc = rc;
}

void lk_report_link(struct lk_report *report, struct lk_table *table, const struct lk_group *group,
                    enum lk_measure measure, enum lk_score_source source) {
    const struct lk_report_images images = {.group = *group, .measure = measure, .source = source};
    bool held = report->options.embed_images || report->options.audit_safe;
    bool plain =
        group->race >= 0 && group->model >= 0 && group->gender < 0 && group->category < 0 && source == LK_SCORES_JUDGE;
    char key[160];
    if (held && !plain) return;
    lk_report_images_key(&images, key);
    add_images(report, table, &images, key);
}

void lk_report_link_picked(struct lk_report *report, struct lk_table *table, lk_report_picks picks, const void *context,
                           const char *title, const char *key_format, ...) {
    const struct lk_dataset *data = report->data;
    if (report->options.embed_images || report->options.audit_safe || table->rc) return;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < data->n_items; i++) n += picks(report, &data->items[i], context);
    if (!n) return;
    va_list args;
    va_start(args, key_format);
    const char *key = lk_store_format(&report->store, key_format, args);
    va_end(args);
    int32_t *items = lk_store_alloc(&report->store, n * sizeof *items);
    const struct lk_report_images images = {
        .key = key, .title = lk_store_text(&report->store, title), .items = items, .n = n};
    if (!key || !items || !images.title) {
        table->rc = no_memory();
        return;
    }
    for (size_t i = 0; i < data->n_items; i++)
        if (picks(report, &data->items[i], context)) items[at++] = (int32_t)i;
    add_images(report, table, &images, key);
}

void lk_report_images_key(const struct lk_report_images *images, char key[160]) {
    const struct lk_group *g = &images->group;
    const int levels[] = {g->gender, g->age, g->age_group, g->category};
    static const enum lk_factor factors[] = {LK_FACTOR_GENDER, LK_FACTOR_AGE, LK_FACTOR_AGE_GROUP, LK_FACTOR_CATEGORY};
    if (images->key) {
        snprintf(key, 160, "%s", images->key);
        return;
    }
    int n = snprintf(key, 160, "%s-%s-%s", g->model < 0 ? "all" : lk_factor_key(LK_FACTOR_MODEL, g->model),
                     g->race < 0 ? "all" : lk_factor_key(LK_FACTOR_RACE, g->race), lk_measure_key(images->measure));
    for (int i = 0; i < 4; i++)
        if (levels[i] >= 0) n += snprintf(key + n, 160 - (size_t)n, "-%s", lk_factor_key(factors[i], levels[i]));
    if (g->prompt >= 0) n += snprintf(key + n, 160 - (size_t)n, "-%s", lk_prompt_id(g->prompt));
    if (g->subcategory >= 0)
        n += snprintf(key + n, 160 - (size_t)n, "-%s-%s", lk_subcategory_name(g->subcategory),
                      g->by_content ? "content" : "printed");
    if (images->source == LK_SCORES_HUMAN) snprintf(key + n, 160 - (size_t)n, "-raters");
}

const struct lk_table *lk_report_table(const struct lk_report *report, const char *id) {
    for (size_t i = 0; i < report->n_entries; i++)
        if (report->entries[i].table && !strcmp(report->entries[i].table->id, id)) return report->entries[i].table;
    return NULL;
}

enum lk_code lk_report_build(struct lk_report **out, struct lk_dataset *data, const struct lk_report_options *options) {
#define PART(name) lk_report_##name,
    enum lk_code (*const parts[])(struct lk_report *) = {LK_REPORT_PARTS(PART)};
#undef PART
    struct lk_report *report = lk_calloc(1, sizeof *report);
    *out = NULL;
    if (!report) return no_memory();
    report->data = data;
    report->options = *options;
    if (!lk_scores_any(data, LK_SCORES_JUDGE) && lk_scores_any(data, LK_SCORES_HUMAN))
        report->options.score_source = LK_SCORES_HUMAN;
    enum lk_code rc = lk_prompts_load(&report->prompts);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !rc; i++) rc = parts[i](report);
    if (!rc) rc = lk_report_name_run(report);
    if (rc)
        lk_report_free(report);
    else
        *out = report;
    return rc;
}

void lk_report_free(struct lk_report *report) {
    if (!report) return;
    for (size_t i = 0; i < report->n_entries; i++) {
        lk_table_free(report->entries[i].table);
        if (report->entries[i].figure) lk_figure_free(report->entries[i].figure);
        lk_free(report->entries[i].figure);
    }
    lk_free(report->entries);
    lk_free(report->images);
    lk_prompts_free(&report->prompts);
    lk_store_free(&report->store);
    lk_free(report);
}
