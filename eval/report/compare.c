#include "eval/report/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/digest.h"
#include "eval/document/files.h"
#include "eval/document/page.h"
#include "eval/document/table_print.h"
#include "eval/scores/fields.h"
#include "eval/stats/models/cluster_means.h"
#include "eval/stats/special/special.h"
#include "eval/stats/tests/multiple.h"

int lk_report_experiment(const struct lk_item *item) {
    return item->prompt >= LK_N_EDIT_PROMPTS ? 3 : item->arm == LK_ARM_PRESERVED ? 2 : 1;
}

enum lk_code lk_report_items(const struct lk_dataset *data, const struct lk_run *run, int experiment, int model,
                             struct lk_table **out) {
    struct lk_table *table;
    LK_TRY(lk_table_new(out, "items", "Scores of every output", "item_id"));
    table = *out;
    for (int human = 0; human < 2; human++)
        for (int a = 0; a < LK_N_AXES; a++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", human ? "human_" : "", lk_factor_key(LK_FACTOR_AXIS, a));
            lk_table_column(table, name, LK_ALIGN_RIGHT);
        }
    table->run = run;
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if ((experiment && lk_report_experiment(item) != experiment) || (model >= 0 && item->model != model)) continue;
        lk_table_row(table);
        lk_table_text(table, "%s", item->id);
        for (int c = 0; c < 2 * LK_N_AXES; c++) {
            int score = c < LK_N_AXES ? item->score[c] : item->human_majority[c - LK_N_AXES];
            if (score)
                lk_table_count(table, score);
            else
                lk_table_none(table, NULL);
        }
    }
    enum lk_code rc = lk_table_finish(table);
    if (!rc) return LK_OK;
    lk_table_free(table);
    *out = NULL;
    return rc;
}

enum lk_code lk_report_items_write(const struct lk_dataset *data, const struct lk_run *run, const char *folder) {
    struct lk_table *table;
    struct lk_text text = {0};
    LK_TRY(lk_report_items(data, run, 0, -1, &table));
    lk_table_csv(table, &text);
    lk_table_free(table);
    return lk_document_file(folder, "items", ".csv", &text);
}

static enum lk_code read_item(struct lk_dataset *data, const struct lk_fields *fields) {
    const struct lk_field *id = lk_fields_find(fields, "item_id");
    int32_t at;
    if (!id) return lk_fail(LK_E_INPUT, "item_id: missing");
    LK_TRY(lk_dataset_item(data, id->text, id->n, &at));
    for (int a = 0; a < LK_N_AXES; a++) {
        const struct lk_field *field = lk_fields_find(fields, lk_factor_key(LK_FACTOR_AXIS, a));
        if (field && !(data->items[at].score[a] = (uint8_t)lk_field_level(field)))
            return lk_fail(LK_E_INPUT, "%s: expected a level from 1 to 5, got %s", field->name, lk_field_shown(field));
    }
    return LK_OK;
}

enum lk_code lk_report_items_read(struct lk_dataset *data, const char *text, size_t n, const char *name) {
    struct lk_records records;
    bool more = true;
    int column;
    LK_TRY(lk_records_open(&records, text, n, name));
    enum lk_code rc = records.is_csv ? lk_csv_require(&records.csv, "item_id", &column)
                                     : lk_fail(LK_E_INPUT, "%s: expected a table as report writes it", name);
    while (!rc && !(rc = lk_records_next_strict(&records, &more)) && more) {
        rc = read_item(data, &records.fields);
        if (rc) rc = lk_fail_prefix(rc, "%s: line %zu", name, records.line);
    }
    lk_records_close(&records);
    return rc;
}

/* What both runs have, and a measure's differences among them. */
struct pairs {
    const struct lk_item *(*list)[2];
    size_t n;
    double *change;
    int32_t *source;
};

static enum lk_code find_partner(const struct lk_dataset *data, const struct lk_item *item, int32_t *at) {
    const char *arm = strrchr(item->id, '.');
    char other[256];
    LK_TRY(lk_dataset_find(data, item->id, strlen(item->id), at));
    if (*at >= 0 || item->prompt >= LK_N_EDIT_PROMPTS) return LK_OK;
    snprintf(other, sizeof other, "%.*s%s", arm ? (int)(arm - item->id) : 200, item->id,
             item->arm == LK_ARM_EDITED ? ".preserved" : ".edited");
    return lk_dataset_find(data, other, strlen(other), at);
}

static enum lk_code make_pairs(const struct lk_compare *how, struct pairs *p) {
    const struct lk_dataset *a = how->runs[0], *b = how->runs[1];
    size_t n = a->n_items + 1;
    *p = (struct pairs){.list = lk_malloc(n * sizeof *p->list),
                        .change = lk_malloc(n * sizeof *p->change),
                        .source = lk_malloc(n * sizeof *p->source)};
    if (!p->list || !p->change || !p->source) return lk_fail(LK_E_NOMEM, "compare: no memory for %zu outputs", n);
    for (size_t i = 0; i < a->n_items; i++) {
        int32_t at;
        if (a->items[i].gender < 0) continue; /* of two people: no measure is of it */
        LK_TRY(find_partner(b, &a->items[i], &at));
        if (at < 0) continue;
        p->source[p->n] = a->items[i].source;
        p->list[p->n][0] = &a->items[i];
        p->list[p->n++][1] = &b->items[at];
    }
    return p->n ? LK_OK : lk_fail(LK_E_INPUT, "compare: no output is in both runs");
}

static void pairs_free(struct pairs *p) {
    lk_free(p->list);
    lk_free(p->change);
    lk_free(p->source);
}

/* One measure over the outputs of one group. */
struct difference {
    struct lk_rate rates[2];
    struct lk_cluster_mean mean;
    struct lk_equivalence equivalence;
    double p, adjusted;
};

static enum lk_code find_difference(const struct lk_compare *how, const struct pairs *p, struct lk_group group,
                                    enum lk_measure measure, struct difference *out) {
    *out = (struct difference){.p = 1};
    for (size_t i = 0; i < p->n; i++) {
        int value[2];
        group.arm = p->list[i][0]->arm;
        for (int r = 0; r < 2; r++)
            value[r] = lk_measure_of(measure, p->list[i][r]->score, p->list[i][r]->prompt, &how->thresholds);
        bool counts = value[0] >= 0 && value[1] >= 0 && lk_group_has(&group, p->list[i][0]);
        p->change[i] = counts ? value[1] - value[0] : NAN;
        for (int r = 0; r < 2 && counts; r++) out->rates[r].k += value[r], out->rates[r].n++;
    }
    LK_TRY(lk_cluster_mean(p->change, p->source, p->n, 1 - how->alpha, &out->mean));
    out->equivalence = lk_cluster_equivalence(&out->mean, how->margin);
    if (out->mean.cr2_error > 0) out->p = lk_t_two_sided(out->mean.cr2.value / out->mean.cr2_error, out->mean.cr2_df);
    return LK_OK;
}

static const char *verdict(const struct lk_compare *how, const struct difference *d) {
    bool differs = d->adjusted <= how->alpha, equal = d->equivalence.p <= how->alpha;
    return d->equivalence.undefined ? ""
           : differs && equal       ? "differs, but by less than the margin"
           : differs                ? "differs"
           : equal                  ? "equivalent"
                                    : "not decided";
}

static void difference_row(const struct lk_compare *how, struct lk_table *table, const char *name,
                           const struct difference *d) {
    const struct lk_number *change = &d->mean.cr2;
    lk_table_row(table);
    lk_table_text(table, "%s", name);
    lk_table_count(table, d->rates[0].n);
    for (int r = 0; r < 2; r++) lk_table_percent(table, d->rates[r].k, d->rates[r].n);
    if (d->equivalence.undefined) {
        for (int c = 0; c < 5; c++) lk_table_none(table, d->equivalence.undefined);
        return;
    }
    lk_table_points(table, change->value);
    lk_table_interval(table, change->low, change->high);
    lk_table_p(table, d->p);
    lk_table_p(table, d->adjusted);
    lk_table_p(table, d->equivalence.p);
    lk_table_text(table, "%s", verdict(how, d));
}

/* All measures of a group, corrected together. */
static enum lk_code find_all(const struct lk_compare *how, const struct pairs *p, struct lk_group group,
                             struct difference out[LK_N_MEASURES]) {
    double values[LK_N_MEASURES];
    size_t n = 0;
    for (int m = 0; m < LK_N_MEASURES; m++) {
        LK_TRY(find_difference(how, p, group, (enum lk_measure)m, &out[m]));
        if (!out[m].equivalence.undefined) values[n++] = out[m].p;
    }
    LK_TRY(lk_adjust_p(values, n, LK_ADJUST_HOLM, values));
    n = 0;
    for (int m = 0; m < LK_N_MEASURES; m++)
        if (!out[m].equivalence.undefined) out[m].adjusted = values[n++];
    return LK_OK;
}

static enum lk_code add_group(const struct lk_compare *how, const struct pairs *p, struct lk_table *table,
                              const char *heading, struct lk_group group, struct difference out[LK_N_MEASURES]) {
    LK_TRY(find_all(how, p, group, out));
    if (heading && !out[0].rates[0].n) return LK_OK;
    if (heading) lk_table_heading(table, heading);
    for (int m = 0; m < LK_N_MEASURES; m++) difference_row(how, table, lk_measure_name(m), &out[m]);
    return LK_OK;
}

/* factor -1: of all outputs. out: of the last group. */
static enum lk_code compare_table(const struct lk_compare *how, const struct pairs *p, int factor,
                                  struct lk_table **table, struct difference out[LK_N_MEASURES]) {
    const struct lk_group all = LK_GROUP_ANY;
    char id[64], caption[160];
    snprintf(id, sizeof id, "compare_%s", factor < 0 ? "all" : lk_factor_name((enum lk_factor)factor));
    snprintf(caption, sizeof caption, "The two runs, output by output%s%s", factor < 0 ? "" : ", by ",
             factor < 0 ? "" : lk_factor_name((enum lk_factor)factor));
    LK_TRY(lk_table_new(table, id, caption, "Measure|>Pairs|>A|>B|>B − A|>p by source|>Holm|>p of equivalence|Result"));
    enum lk_code rc = factor < 0 ? add_group(how, p, *table, NULL, all, out) : LK_OK;
    for (int level = 0; factor >= 0 && level < lk_factor_levels((enum lk_factor)factor) && !rc; level++)
        rc = add_group(how, p, *table, lk_factor_display((enum lk_factor)factor, level),
                       lk_group_with(all, (enum lk_factor)factor, level), out);
    lk_table_note(*table,
                  "A: %s; B: %s. Intervals (%g%%) and tests by source (CR2); Holm: corrected for the measures of a "
                  "group. Equivalent: two one-sided tests at %g%% place the difference within ±%g points; not decided: "
                  "neither a difference nor equivalence is shown.",
                  how->names[0], how->names[1], 100 * (1 - how->alpha), 100 * how->alpha, 100 * how->margin);
    if (!rc) rc = lk_table_finish(*table);
    if (rc) lk_table_free(*table);
    return rc;
}

static enum lk_code forest(const struct lk_compare *how, const struct difference all[LK_N_MEASURES],
                           struct lk_figure *figure) {
    struct lk_figure_forest_row rows[LK_N_MEASURES];
    char note[160], below[80], above[80];
    for (int m = 0; m < LK_N_MEASURES; m++) {
        const struct lk_number *change = &all[m].mean.cr2;
        rows[m] = (struct lk_figure_forest_row){.label = lk_measure_name(m),
                                                .value = {.value = change->value,
                                                          .low = change->low,
                                                          .high = change->high,
                                                          .none = all[m].equivalence.undefined != NULL}};
    }
    snprintf(note, sizeof note, "Intervals (%g%%) by source. The margin of equivalence is %g points.",
             100 * (1 - how->alpha), 100 * how->margin);
    snprintf(below, sizeof below, "fewer in %.60s", how->names[1]);
    snprintf(above, sizeof above, "more in %.60s", how->names[1]);
    return lk_figure_forest(&(struct lk_figure_forest){.head = {.id = "f_compare",
                                                                .title = "Differences between the two runs",
                                                                .description = "A row per measure: the second run's "
                                                                               "rate minus the first's, with its "
                                                                               "interval, beside zero.",
                                                                .note = note},
                                                       .unit = LK_UNIT_POINTS,
                                                       .value_name = "Difference",
                                                       .row_name = "Measure",
                                                       .rows = rows,
                                                       .n_rows = LK_N_MEASURES,
                                                       .below = below,
                                                       .above = above},
                            figure);
}

/* What stands on top: how many differ, each of them, how many are equivalent. */
static void lead(const struct lk_compare *how, const struct difference all[LK_N_MEASURES], struct lk_page *page) {
    int n = 0, n_differ = 0, n_equal = 0;
    char text[1024];
    for (int m = 0; m < LK_N_MEASURES; m++) {
        bool tested = !all[m].equivalence.undefined;
        n += tested;
        n_differ += tested && all[m].adjusted <= how->alpha;
        n_equal += tested && all[m].equivalence.p <= how->alpha;
    }
    snprintf(text, sizeof text,
             n_differ ? "%.100s differs from %.100s in %d of %d measures (Holm, %g%%)."
                      : "No difference between %.100s and %.100s is shown: %d of %d measures "
                        "differ (Holm, %g%%).",
             how->names[1], how->names[0], n_differ, n, 100 * how->alpha);
    lk_page_lead(page, text);
    for (int m = 0; m < LK_N_MEASURES; m++) {
        char value[LK_NUMBER_MAX], low[LK_NUMBER_MAX], high[LK_NUMBER_MAX];
        if (all[m].equivalence.undefined || all[m].adjusted > how->alpha) continue;
        lk_print_fixed(value, 100 * all[m].mean.cr2.value, 1, true);
        lk_print_fixed(low, 100 * all[m].mean.cr2.low, 1, false);
        lk_print_fixed(high, 100 * all[m].mean.cr2.high, 1, false);
        snprintf(text, sizeof text, "%s: %.40s pp [%.40s, %.40s].", lk_measure_name(m), value, low, high);
        lk_page_lead(page, text);
    }
    snprintf(text, sizeof text,
             "Equivalent within %g points: %d of %d measures. That no difference is shown is not equivalence.",
             100 * how->margin, n_equal, n);
    lk_page_lead(page, text);
}

static enum lk_code put_tables(const struct lk_compare *how, const struct pairs *p, const struct lk_run *run,
                               const char *tables, struct lk_page *page) {
    static const int factors[] = {-1, LK_FACTOR_MODEL, LK_FACTOR_RACE, LK_FACTOR_GENDER, LK_FACTOR_CATEGORY};
    struct difference differences[LK_N_MEASURES];
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        struct lk_table *table;
        struct lk_figure figure;
        LK_TRY(compare_table(how, p, factors[f], &table, differences));
        enum lk_code rc = LK_OK;
        if (!f) {
            lead(how, differences, page);
            rc = forest(how, differences, &figure);
            if (!rc) {
                figure.data->run = run;
                lk_page_figure(page, &figure);
                rc = lk_document_figure_files(&figure, tables, how->png);
                lk_figure_free(&figure);
            }
            lk_page_table(page, table);
            lk_page_section(page, "section-groups", "By group");
        } else
            lk_page_table(page, table);
        table->run = run;
        if (!rc) rc = lk_document_table_files(table, tables);
        lk_table_free(table);
        LK_TRY(rc);
    }
    return LK_OK;
}

static enum lk_code write_all(const struct lk_compare *how, const struct pairs *p, const char *folder) {
    char name[300], both[160], hash[65], tables[LK_DOCUMENT_PATH_MAX + 8], path[LK_DOCUMENT_PATH_MAX + 16];
    const struct lk_dataset *a = how->runs[0], *b = how->runs[1];
    struct lk_page *page;
    snprintf(name, sizeof name, "%.100s against %.100s", how->names[0], how->names[1]);
    snprintf(both, sizeof both, "%s %s", how->hashes[0], how->hashes[1]);
    lk_sha256(both, strlen(both), hash);
    const struct lk_run run = {name, hash, (int64_t)(a->n_items > b->n_items ? a->n_items : b->n_items), (int64_t)p->n};
    snprintf(tables, sizeof tables, "%s/tables", folder);
    snprintf(path, sizeof path, "%s/report.html", folder);
    if (strlen(tables) >= LK_DOCUMENT_PATH_MAX)
        return lk_fail(LK_E_USAGE, "report: %.80s...: the path is too long", folder);
    LK_TRY(lk_document_folder(tables));
    LK_TRY(lk_page_new(&page, &(struct lk_page_options){.title = how->title,
                                                        .run = run.name,
                                                        .config_hash = hash,
                                                        .date = *how->date ? how->date : NULL,
                                                        .n_nominal = run.n_nominal,
                                                        .n_valid = run.n_valid,
                                                        .csv_folder = "tables"}));
    lk_page_section(page, "section-summary", "Summary");
    enum lk_code rc = put_tables(how, p, &run, tables, page);
    if (!rc) rc = lk_page_write(page, path);
    lk_page_free(page);
    return rc;
}

enum lk_code lk_report_compare(const struct lk_compare *how, const char *folder) {
    struct pairs p;
    enum lk_code rc = make_pairs(how, &p);
    if (!rc) rc = lk_document_folder(folder);
    if (!rc) {
        lk_atomic_batch_begin();
        rc = lk_atomic_batch_end(write_all(how, &p, folder));
    }
    pairs_free(&p);
    return rc;
}
