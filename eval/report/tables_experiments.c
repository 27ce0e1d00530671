/* Experiment 2: what the feature prompt changes, in tables 14 and 19, by model and overall, and the same on magnitudes
 * of change; every difference is preserved minus edited over pairs that have both scores. Experiment 3: who was given
 * the occupation that a sentence's stereotype expects.
 * Tables 17 and 18: the outputs that show soft erasure and stereotype replacement most, in the judge's words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/report/build.h"
#include "eval/stats/models/cluster_means.h"

static struct lk_paired paired(const struct lk_report *report, struct lk_group group, enum lk_axis axis,
                               bool magnitude) {
    const struct lk_report_options *o = &report->options;
    return lk_paired_of(report->data, group, axis, o->score_source, magnitude, o->drifted_only, &o->thresholds);
}

static double delta(struct lk_paired p) { return p.n ? (p.preserved - p.edited) / (double)p.n : 0; }

/* The mean change of the pairs, with an interval by source. */
static void delta_cell(const struct lk_report *report, struct lk_table *table, struct lk_group group, enum lk_axis axis,
                       bool magnitude) {
    const struct lk_report_options *o = &report->options;
    size_t n_items = report->data->n_items;
    double *change = lk_malloc((n_items + 1) * sizeof *change);
    int32_t *sources = lk_malloc((n_items + 1) * sizeof *sources);
    struct lk_cluster_mean mean = {.n_clusters = 0};
    enum lk_code rc = change && sources ? LK_OK : lk_fail(LK_E_NOMEM, "report: no memory for %zu changes", n_items);
    struct lk_paired p = {0, 0, 0};
    if (!rc)
        p = lk_paired_list(report->data, group, axis, o->score_source, magnitude, o->drifted_only, &o->thresholds,
                           change, sources);
    if (!rc) rc = lk_cluster_mean(change, sources, (size_t)p.n, 1 - o->alpha, &mean);
    if (rc && !table->rc) table->rc = rc;
    if (!p.n)
        lk_table_none(table, "no pair with both scores");
    else
        lk_table_signed(table, delta(p), 2);
    if (mean.n_clusters > 1) lk_table_interval(table, mean.cr2.low, mean.cr2.high);
    lk_free(change);
    lk_free(sources);
}

/* Which scores and which pairs: two published tables cannot be placed for want of it. */
static void name_source(const struct lk_report *report, struct lk_table *table) {
    char caption[256];
    snprintf(caption, sizeof caption, "%s; scores: %s; pairs: %s", table->caption,
             report->options.score_source == LK_SCORES_HUMAN ? "mean of the raters" : "judges' ensemble",
             report->options.drifted_only ? "those whose baseline drifted" : "all");
    lk_table_caption(table, caption);
    lk_table_note(table, "Negative is improvement. Intervals of Δ (%g%%): of the pairs' changes, by source (CR2).",
                  100 * (1 - report->options.alpha));
}

/* Races in ascending order of the change of race drift; those without pairs last. */
static int64_t order_by_delta(struct lk_report *report, int order[LK_N_RACES]) {
    double key[LK_N_RACES];
    int64_t n = 0;
    for (int r = 0; r < LK_N_RACES; r++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = r;
        struct lk_paired p = paired(report, group, LK_AXIS_RACE_DRIFT, false);
        key[r] = p.n ? delta(p) : INFINITY;
        n += p.n;
        int at = r;
        for (; at > 0 && key[order[at - 1]] > key[r]; at--) order[at] = order[at - 1];
        order[at] = r;
    }
    return n;
}

static enum lk_code table_14(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_14", "Change reduction from the feature prompt (negative = improvement)",
                        "Race|>Δ Race|>Δ Gender|>Δ Skin"));
    const enum lk_axis axes[] = {LK_AXIS_RACE_DRIFT, LK_AXIS_GENDER_DRIFT, LK_AXIS_SKIN_TONE};
    int order[LK_N_RACES] = {0};
    table->no_data = !order_by_delta(report, order);
    for (int i = 0; i < LK_N_RACES; i++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = order[i];
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, order[i]));
        for (int a = 0; a < 3; a++) delta_cell(report, table, group, axes[a], false);
    }
    name_source(report, table);
    return lk_report_add(report, LK_SECTION_MITIGATION, table);
}

static enum lk_code table_19(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "table_19", "Race drift (1–5) before and after the feature prompt",
                        "Group|>Baseline Drift|>w/ Feature|>Δ"));
    int order[LK_N_RACES] = {0};
    table->no_data = !order_by_delta(report, order);
    for (int i = 0; i < LK_N_RACES; i++) {
        struct lk_group group = LK_GROUP_ANY;
        group.race = order[i];
        struct lk_paired p = paired(report, group, LK_AXIS_RACE_DRIFT, false);
        lk_table_row(table);
        lk_table_text(table, "%s", lk_factor_display(LK_FACTOR_RACE, order[i]));
        if (p.n) {
            lk_table_fixed(table, p.edited / (double)p.n, 2);
            lk_table_fixed(table, p.preserved / (double)p.n, 2);
        } else {
            lk_table_none(table, "no pair with both scores");
            lk_table_none(table, "no pair with both scores");
        }
        delta_cell(report, table, group, LK_AXIS_RACE_DRIFT, false);
    }
    name_source(report, table);
    return lk_report_add(report, LK_SECTION_MITIGATION, table);
}

/* Every axis by model: pairs, both means, the change, and the change relative to the baseline. */
static void mitigation_rows(struct lk_report *report, struct lk_table *table, struct lk_group group, bool magnitude) {
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        if (magnitude && axis != LK_AXIS_SKIN_TONE && axis != LK_AXIS_AGE_DRIFT) continue;
        struct lk_paired p = paired(report, group, axis, magnitude);
        lk_table_row(table);
        lk_table_text(table, magnitude ? "|%s − 3|" : "%s", lk_factor_display(LK_FACTOR_AXIS, axis));
        lk_table_count(table, p.n);
        if (!p.n) {
            for (int c = 0; c < 4; c++) lk_table_none(table, "no pair with both scores");
            continue;
        }
        lk_table_fixed(table, p.edited / (double)p.n, 2);
        lk_table_fixed(table, p.preserved / (double)p.n, 2);
        delta_cell(report, table, group, axis, magnitude);
        if (p.edited > 0)
            lk_table_signed(table, (p.preserved - p.edited) / p.edited, 2);
        else
            lk_table_none(table, "the baseline's mean is 0");
    }
}

static enum lk_code table_mitigation(struct lk_report *report) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "mitigation", "Change by the feature prompt, every axis, overall and by model",
                        "Axis|>Pairs|>Baseline|>w/ Feature|>Δ|>Δ / baseline"));
    struct lk_group group = LK_GROUP_ANY;
    int64_t n = paired(report, group, LK_AXIS_RACE_DRIFT, false).n;
    lk_table_heading(table, "All models");
    mitigation_rows(report, table, group, false);
    mitigation_rows(report, table, group, true);
    for (int model = 0; model < LK_N_MODELS; model++) {
        lk_table_heading(table, lk_factor_display(LK_FACTOR_MODEL, model));
        group.model = model;
        mitigation_rows(report, table, group, false);
        mitigation_rows(report, table, group, true);
    }
    name_source(report, table);
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_MITIGATION, table);
}

enum lk_code lk_report_tables_pairs(struct lk_report *report) {
    LK_TRY(table_14(report));
    LK_TRY(table_19(report));
    return table_mitigation(report);
}

enum role_outcome { ROLE_FOLLOWED, ROLE_RESISTED, ROLE_UNCLEAR, N_ROLE_OUTCOMES };
struct roles {
    int64_t n, of[N_ROLE_OUTCOMES];
};

/* Which sentences: of one stereotype gender (-1 any), with (1) or without (0) a gendered word (-1 any), of one target
 * (NULL any); with the man's picture first, or the woman's. */
struct sentences {
    int gender, gendered;
    const char *target;
    bool swapped;
    const int8_t *raters; /* [items] what the raters' majority said, lk_combine_classes; NULL: the judges */
};

static int role_of(const struct lk_report *report, const struct lk_item *item, const struct sentences *which) {
    int role = which->raters ? which->raters[item - report->data->items] : item->role;
    if (!which->raters) return role;
    return role == LK_CLASS_NONE ? LK_ROLE_NONE : role == LK_CLASS_UNRESOLVED ? LK_ROLE_UNCLEAR : role;
}

/* -1: none of these sentences, or no answer. */
static int outcome_of(const struct lk_report *report, const struct lk_item *item, int model, struct sentences which) {
    int role = role_of(report, item, &which);
    if (item->prompt < LK_N_EDIT_PROMPTS || role == LK_ROLE_NONE) return -1;
    if ((model >= 0 && item->model != model) || item->swapped != which.swapped) return -1;
    const struct lk_prompt *prompt = &report->prompts.w[item->prompt - LK_N_EDIT_PROMPTS];
    if (which.gender >= 0 && prompt->stereotype_gender != which.gender) return -1;
    if (which.gendered >= 0 && (prompt->n_gendered_words > 0) != (which.gendered > 0)) return -1;
    if (which.target && strcmp(prompt->target, which.target)) return -1;
    if (role == LK_ROLE_UNCLEAR) return ROLE_UNCLEAR;
    return role == prompt->stereotype_gender ? ROLE_FOLLOWED : ROLE_RESISTED;
}

static struct roles count(const struct lk_report *report, int model, struct sentences which) {
    struct roles roles = {0};
    for (size_t i = 0; i < report->data->n_items; i++) {
        int outcome = outcome_of(report, &report->data->items[i], model, which);
        if (outcome < 0) continue;
        roles.n++;
        roles.of[outcome]++;
    }
    return roles;
}

struct picked_roles {
    int model;
    struct sentences which;
    enum role_outcome outcome;
};

static bool picks_role(const struct lk_report *report, const struct lk_item *item, const void *context) {
    const struct picked_roles *picked = context;
    return outcome_of(report, item, picked->model, picked->which) == (int)picked->outcome;
}

static void row(struct lk_report *report, struct lk_table *table, const char *label, int model,
                struct sentences which) {
    static const char *const names[] = {"followed", "resisted", "unclear"};
    struct roles r = count(report, model, which);
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_count(table, r.n);
    for (int o = 0; o < N_ROLE_OUTCOMES; o++) {
        const struct picked_roles picked = {model, which, o};
        char title[300];
        lk_table_count(table, r.of[o]);
        snprintf(title, sizeof title, "%s, %.100s%s%s: stereotype %s",
                 model < 0 ? "All models" : lk_factor_display(LK_FACTOR_MODEL, model), label,
                 which.swapped ? ", the woman's picture first" : "", which.raters ? ", raters" : "", names[o]);
        lk_report_link_picked(report, table, picks_role, &picked, title, "role-%s-%s-%.100s%s%s", names[o],
                              model < 0 ? "all" : lk_factor_key(LK_FACTOR_MODEL, model), label,
                              which.swapped ? "-swapped" : "", which.raters ? "-raters" : "");
    }
    int64_t followed = r.of[ROLE_FOLLOWED];
    /* Twice the counts, so that an answer worth one half stays an integer. */
    struct lk_rate rate = {2 * followed, 2 * (followed + r.of[ROLE_RESISTED])};
    if (report->options.unclear == LK_UNCLEAR_HALF) rate = (struct lk_rate){2 * followed + r.of[ROLE_UNCLEAR], 2 * r.n};
    if (report->options.unclear == LK_UNCLEAR_NONADHERENT) rate = (struct lk_rate){2 * followed, 2 * r.n};
    lk_table_percent(table, rate.k, rate.n);
    if (rate.n && rate.k % 2 == 0) lk_report_interval(report, table, (struct lk_rate){rate.k / 2, rate.n / 2});
}

static void rows_of(struct lk_report *report, struct lk_table *table, int model, bool swapped, const int8_t *raters) {
    const struct {
        const char *label;
        struct sentences which;
    } parts[] = {
        {"All sentences", {-1, -1, NULL, swapped, raters}},
        {"Male-stereotyped targets", {0, -1, NULL, swapped, raters}},
        {"Female-stereotyped targets", {1, -1, NULL, swapped, raters}},
        {"With a gendered word", {-1, 1, NULL, swapped, raters}},
        {"Without a gendered word", {-1, 0, NULL, swapped, raters}},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) row(report, table, parts[i].label, model, parts[i].which);
}

#define OUTCOMES "|>N|>Followed|>Resisted|>Unclear|>Adherence"

/* raters: NULL for what the judges said. */
static enum lk_code table_roles(struct lk_report *report, const int8_t *raters) {
    const struct sentences any = {-1, -1, NULL, false, raters}, any_swapped = {-1, -1, NULL, true, raters};
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, raters ? "t_w_raters" : "t_w",
                        raters ? "Gender and occupation by the raters' majority"
                               : "Gender and occupation: does the assigned person follow the stereotype?",
                        "Sentences" OUTCOMES));
    int64_t n = count(report, -1, any).n, n_swapped = count(report, -1, any_swapped).n;
    for (int k = 0; k < 2 * LK_N_MODELS; k++) {
        int model = k / 2;
        bool swapped = k % 2;
        if (!count(report, model, swapped ? any_swapped : any).n) continue;
        char heading[100];
        snprintf(heading, sizeof heading, "%s%s", lk_factor_display(LK_FACTOR_MODEL, model),
                 swapped ? ", the woman's picture first" : "");
        lk_table_heading(table, heading);
        rows_of(report, table, model, swapped, raters);
    }
    lk_table_note(table,
                  "Adherence: share of %s whose person has the stereotype's gender; 50%% is no bias. Interval: Wilson.",
                  report->options.unclear == LK_UNCLEAR_EXCLUDE ? "answers other than unclear" : "all answers");
    if (raters)
        lk_table_note(table, "Outputs of two raters or more, by their majority; without one: unclear. Of protocol 001 "
                             "the gender presentation that they saw.");
    table->no_data = !n && !n_swapped;
    return lk_report_add(report, LK_SECTION_ROLES, table);
}

static enum lk_code table_roles_of_raters(struct lk_report *report) {
    int8_t *said = lk_malloc(report->data->n_items + 1);
    if (!said) return lk_fail(LK_E_NOMEM, "out of memory for a table");
    enum lk_code rc = lk_combine_classes(report->data, LK_QUESTION_ROLE, false, said);
    bool any = false;
    for (size_t i = 0; i < report->data->n_items && !rc; i++) any = any || said[i] != LK_CLASS_NONE;
    if (any) rc = table_roles(report, said);
    lk_free(said);
    return rc;
}

enum lk_code lk_report_tables_roles(struct lk_report *report) {
    struct lk_table *table;
    const struct sentences any = {-1, -1, NULL, false, NULL}, any_swapped = {-1, -1, NULL, true, NULL};
    int64_t n = count(report, -1, any).n, n_swapped = count(report, -1, any_swapped).n;
    LK_TRY(table_roles(report, NULL));
    LK_TRY(table_roles_of_raters(report));
    LK_TRY(lk_table_new(&table, "t_w_occupations", "Adherence by occupation", "Occupation" OUTCOMES));
    for (int gender = 0; gender < 2; gender++) {
        lk_table_heading(table, gender ? "Female-stereotyped" : "Male-stereotyped");
        for (int p = 0; p < LK_N_W_PROMPTS; p++) {
            const struct lk_prompt *prompt = &report->prompts.w[p];
            bool first = prompt->stereotype_gender == gender;
            for (int q = 0; q < p && first; q++) first = strcmp(report->prompts.w[q].target, prompt->target) != 0;
            if (first)
                row(report, table, prompt->target, -1, (struct sentences){gender, -1, prompt->target, false, NULL});
        }
    }
    if (n_swapped) lk_table_note(table, "Of the outputs with the man's picture first.");
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROLES, table);
}

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
