#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/stats/proportion.h"
#include "eval/t2i/report.h"

#define PERCEIVED "Groups are perceived labels: what a classifier answers about a picture, not who anybody is."

/* The cells that say which scope, and which attribute. */
static void begin_row(struct lk_table *table, const struct lk_t2i_metrics *m, const struct lk_t2i_scope *scope,
                      int attribute) {
    char name[200];
    lk_t2i_scope_name(m->images, scope, name);
    lk_table_row(table);
    lk_table_text(table, "%s", m->images->models.list[scope->model]);
    lk_table_text(table, "%s", name);
    lk_table_text(table, "%s", lk_t2i_attribute_name(attribute));
}

static void number(struct lk_table *table, const struct lk_number *value, bool sign) {
    if (value->undefined) {
        lk_table_none(table, value->undefined);
        return;
    }
    if (sign)
        lk_table_signed(table, value->value, 3);
    else
        lk_table_fixed(table, value->value, 3);
    lk_table_interval(table, value->low, value->high);
}

static void probability(struct lk_table *table, const struct lk_test *test, double p) {
    if (test->undefined || isnan(p))
        lk_table_none(table, test->undefined);
    else
        lk_table_p(table, p);
}

static void cfg_cell(struct lk_table *table, double cfg) {
    if (cfg < 0)
        lk_table_none(table, "not logged");
    else
        lk_table_fixed(table, cfg, cfg == floor(cfg) ? 0 : 2);
}

/* Runs of the sorted pictures that have one prompt; seeds, arms and CFG values that occur. */
static void pictures_row(struct lk_table *table, const struct lk_t2i_metrics *m, const struct lk_t2i_image *pictures,
                         size_t n) {
    int64_t n_faces = 0, n_prompts = 0;
    bool arms[LK_N_T2I_ARMS] = {false};
    char text[256] = "";
    for (size_t i = 0; i < n; i++) {
        n_faces += pictures[i].face;
        n_prompts += !i || pictures[i].prompt != pictures[i - 1].prompt;
        arms[pictures[i].arm] = true;
    }
    for (int a = 0; a < LK_N_T2I_ARMS; a++)
        if (arms[a])
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? ", " : "", lk_t2i_arm_name(a));
    const char *model = m->images->models.list[pictures->model];
    lk_table_row(table);
    lk_table_text(table, "%s", model);
    lk_table_count(table, (int64_t)n);
    lk_table_percent(table, (int64_t)n - n_faces, (int64_t)n);
    lk_table_count(table, n_prompts);
    lk_table_text(table, "%s", text);
    cfg_cell(table, m->reference_cfg[pictures->model]);
    lk_table_text(table, "%s", lk_t2i_cfg_meaning(model));
}

static void pictures(struct lk_table *table, const struct lk_t2i_metrics *m) {
    lk_table_columns(table, "Model|>Pictures|>Without a face|>Prompts|Arms|>Reference CFG|What CFG is");
    const struct lk_t2i_images *images = m->images;
    for (size_t from = 0, to; from < images->n; from = to) {
        for (to = from; to < images->n && images->list[to].model == images->list[from].model;) to++;
        pictures_row(table, m, images->list + from, to - from);
    }
    size_t n_rejected = 0;
    for (size_t f = 0; f < images->files.n; f++) n_rejected += images->rejects[f].n;
    lk_table_note(
        table,
        "%zu records read, %zu rejected, %zu pictures without a face (counted, not used), %zu pictures in the "
        "log without labels. The reference CFG is the one that most pictures have; all tables but the "
        "one on CFG use pictures made with it.",
        images->n_records, n_rejected, images->n_no_face, images->n_unlabelled);
}

/* What was asked for of a model in an arm, and where prompts are told apart, with a role and a gender ("": any). */
struct answers {
    const char *model, *role, *gender;
    int8_t arm;
    int64_t of[LK_N_OUTCOMES];
};
enum { BY_ROLE = 1, BY_GENDER = 2 };

static const char *cell_of_prompt(const struct lk_t2i_images *images, const char *id, enum lk_t2i_column column) {
    const int32_t row = images->prompts ? lk_names_find(&images->prompts->ids, id, strlen(id)) : -1;
    return row < 0 ? "" : images->prompts->list[row].cells[column];
}

static void count_answer(const struct lk_t2i_images *images, int by, const struct lk_t2i_logged *line, int outcome,
                         struct answers *list, size_t *n) {
    const struct answers x = {.model = line->model_tag,
                              .role = by & BY_ROLE ? cell_of_prompt(images, line->prompt_id, LK_T2I_ROLE_LABEL) : "",
                              .gender =
                                  by & BY_GENDER ? cell_of_prompt(images, line->prompt_id, LK_T2I_GENDER_SPEC) : "",
                              .arm = line->arm};
    size_t i = 0;
    while (i < *n && (strcmp(list[i].model, x.model) != 0 || list[i].arm != x.arm ||
                      strcmp(list[i].role, x.role) != 0 || strcmp(list[i].gender, x.gender) != 0))
        i++;
    if (i == *n) list[(*n)++] = x;
    list[i].of[outcome]++;
}

/* In memory of the caller's; LK_E_NOMEM is the table's. */
static struct answers *count_answers(struct lk_table *table, const struct lk_t2i_images *images, int by, size_t *n) {
    struct answers *list = lk_malloc((images->n_unmade + images->logged.n + 1) * sizeof *list);
    *n = 0;
    if (!list) table->rc = lk_fail(LK_E_NOMEM, "t2i: out of memory");
    for (size_t i = 0; list && i < images->logged.n; i++)
        count_answer(images, by, &images->log[i], LK_OUTCOME_MADE, list, n);
    for (size_t i = 0; list && i < images->n_unmade; i++)
        count_answer(images, by, &images->unmade[i], (int)images->unmade[i].asked.outcome, list, n);
    return list;
}

static void refusal_rate(struct lk_table *table, const struct lk_t2i_metrics *m, const int64_t of[LK_N_OUTCOMES]) {
    const int64_t refused = of[LK_OUTCOME_REFUSED] + of[LK_OUTCOME_PLACEHOLDER],
                  answered = refused + of[LK_OUTCOME_MADE];
    const enum lk_proportion_interval kind = refused <= LK_FEW_OUTCOMES ? LK_CLOPPER_PEARSON : LK_WILSON;
    struct lk_number rate;
    lk_table_percent(table, refused, answered);
    if (!lk_proportion(refused, answered, kind, 1 - m->options.alpha, &rate) && !rate.undefined)
        lk_table_interval(table, rate.low, rate.high);
}

static void answers(struct lk_table *table, const struct lk_t2i_metrics *m) {
    size_t n;
    struct answers *list = count_answers(table, m->images, 0, &n);
    lk_table_columns(table, "Model|Arm|>Asked for|>Made|>Refused|>Placeholders|>Faults|>Refused or placeholder");
    for (size_t i = 0; i < n; i++) {
        int64_t all = 0;
        lk_table_row(table);
        lk_table_text(table, "%s", list[i].model);
        lk_table_text(table, "%s", lk_t2i_arm_name(list[i].arm));
        for (int k = 0; k < LK_N_OUTCOMES; k++) all += list[i].of[k];
        lk_table_count(table, all);
        for (int k = 0; k < LK_N_OUTCOMES; k++) lk_table_count(table, list[i].of[k]);
        refusal_rate(table, m, list[i].of);
    }
    lk_table_note(
        table, "Placeholders are pictures that a safety filter puts in place of one. Both are outcomes of the model; "
               "faults are none and stand apart. Shares and distances elsewhere are of pictures that were made.");
    lk_free(list);
}

/* What the prompt says of whom it depicts. */
static void refused(struct lk_table *table, const struct lk_t2i_metrics *m) {
    static const struct {
        int by;
        const char *heading;
    } parts[] = {{BY_ROLE, "By role"}, {BY_GENDER, "By gender in the prompt"}, {BY_ROLE | BY_GENDER, "By both"}};
    lk_table_columns(table, "Model|Role|Gender in the prompt|Arm|>Answered|>Refused or placeholder");
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        size_t n;
        struct answers *list = count_answers(table, m->images, parts[k].by, &n);
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            const int64_t *of = list[i].of;
            if ((parts[k].by & BY_ROLE && !*list[i].role) || (parts[k].by & BY_GENDER && !*list[i].gender)) continue;
            if (!any) lk_table_heading(table, parts[k].heading);
            any = true;
            lk_table_row(table);
            lk_table_text(table, "%s", list[i].model);
            lk_table_text(table, "%s", *list[i].role ? list[i].role : "any");
            lk_table_text(table, "%s", *list[i].gender ? list[i].gender : "any");
            lk_table_text(table, "%s", lk_t2i_arm_name(list[i].arm));
            lk_table_count(table, of[LK_OUTCOME_MADE] + of[LK_OUTCOME_REFUSED] + of[LK_OUTCOME_PLACEHOLDER]);
            refusal_rate(table, m, of);
        }
        lk_free(list);
    }
    lk_table_note(table, "Of the requests that were answered. Intervals (Wilson; Clopper-Pearson for five or fewer) "
                         "take each as independent, which pictures of one prompt are not.");
}

/* "; refused 19 of 720": shares say nothing of whom a model refuses to depict. */
static void add_refused(struct lk_table *table, const struct lk_t2i_images *images, const char *caption) {
    size_t n_refused = 0;
    for (size_t i = 0; i < images->n_unmade; i++) n_refused += images->unmade[i].asked.outcome != LK_OUTCOME_FAULT;
    if (!images->n_unmade) return;
    char text[200];
    snprintf(text, sizeof text, "%.120s (made pictures; refused %zu of %zu)", caption, n_refused,
             n_refused + images->logged.n);
    lk_table_caption(table, text);
}

/* The cells of one scope and attribute lie arm after arm, attributes within an arm: the one of an arm, or NULL. */
static const struct lk_t2i_cell *cell_of(const struct lk_t2i_metrics *m, size_t first, size_t n, int arm,
                                         int attribute) {
    for (size_t i = first; i < first + n; i++)
        if (m->cells[i].arm == arm && m->cells[i].attribute == attribute) return &m->cells[i];
    return NULL;
}

static void shares_rows(struct lk_table *table, const struct lk_t2i_metrics *m, size_t first, size_t n,
                        const bool arms[LK_N_T2I_ARMS]) {
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES; a++)
        for (int g = 0; g < lk_t2i_levels(a) && m->analysed[a]; g++) {
            if (!m->options.target.names[a][g]) continue;
            begin_row(table, m, &m->cells[first].scope, a);
            lk_table_text(table, "%s", lk_t2i_level_name(a, g));
            lk_table_rate(table, m->options.target.shares[a][g]);
            for (int arm = 0; arm < LK_N_T2I_ARMS; arm++) {
                const struct lk_t2i_cell *cell = arms[arm] ? cell_of(m, first, n, arm, a) : NULL;
                if (cell && cell->n)
                    lk_table_percent(table, cell->counts[g], (int64_t)cell->n);
                else if (arms[arm])
                    lk_table_none(table, "no picture with a label");
            }
        }
}

static void shares(struct lk_table *table, const struct lk_t2i_metrics *m, bool pooled) {
    bool arms[LK_N_T2I_ARMS] = {false};
    for (size_t i = 0; i < m->n_cells; i++) arms[m->cells[i].arm] = true;
    lk_table_columns(table, "Model|Prompt|Attribute|Group|>Target");
    for (int a = 0; a < LK_N_T2I_ARMS; a++)
        if (arms[a]) lk_table_column(table, lk_t2i_arm_name(a), LK_ALIGN_RIGHT);
    for (size_t from = 0, to; from < m->n_cells; from = to) {
        const struct lk_t2i_scope *scope = &m->cells[from].scope;
        for (to = from; to < m->n_cells && !memcmp(&m->cells[to].scope, scope, sizeof *scope);) to++;
        if (lk_t2i_pooled(scope) == pooled) shares_rows(table, m, from, to - from, arms);
    }
    lk_table_note(table, "Representation rate: the group's share of the pictures with a label. " PERCEIVED);
}

static void spd(struct lk_table *table, const struct lk_t2i_metrics *m, bool pooled) {
    lk_table_columns(table, "Model|Prompt|Attribute|Arm|>n|>No label|"
                            ">SPD|>BiasAmp|>SPD by percentiles|>χ²|>df|>p|>Adjusted p|>Small groups");
    for (size_t i = 0; i < m->n_cells; i++) {
        const struct lk_t2i_cell *cell = &m->cells[i];
        if (lk_t2i_pooled(&cell->scope) != pooled) continue;
        begin_row(table, m, &cell->scope, cell->attribute);
        lk_table_text(table, "%s", lk_t2i_arm_name(cell->arm));
        lk_table_count(table, (int64_t)cell->n);
        lk_table_count(table, (int64_t)(cell->n_images - cell->n));
        number(table, &cell->spd, false);
        number(table, &cell->amplification, true);
        number(table, &cell->percentiles, false);
        if (cell->fit.undefined) {
            lk_table_none(table, cell->fit.undefined);
            lk_table_none(table, cell->fit.undefined);
        } else {
            lk_table_fixed(table, cell->fit.statistic, 2);
            lk_table_fixed(table, cell->fit.df, 0);
        }
        probability(table, &cell->fit, cell->fit.p);
        probability(table, &cell->fit, cell->adjusted);
        lk_table_count(table, (int64_t)cell->n_small);
    }
    lk_table_note(
        table,
        "SPD: sum over groups of the distance between share and target, 0 to 2. BiasAmp: SPD less that of the "
        "reference (%s). Intervals: %g%%, from %d resamples of the pictures with a label, in bounds that hold the "
        "estimate: an SPD is never below 0, so that resamples of a small one lie above it, and plain percentiles, "
        "the study's own, beside. χ² tests the counts against the target; small groups have an expected count under 5. "
        "Adjusted p: "
        "Benjamini-Hochberg over models, prompts and attributes of one arm. %s" PERCEIVED,
        m->options.reference_images ? "the labelled reference pictures" : "the reference distribution",
        100 * m->options.how.confidence, m->options.how.n_replicates,
        pooled ? "A pool holds the pictures of several prompts, which the test takes as one sample. " : "");
}

static void changes(struct lk_table *table, const struct lk_t2i_metrics *m, bool pooled) {
    lk_table_columns(table, "Model|Prompt|Attribute|Arm|>Pairs|>Unpaired|"
                            ">Base SPD|>Mitigated SPD|>ΔSPD|>ΔSPD by percentiles|>ΔBiasAmp|>p|>Adjusted p");
    for (size_t i = 0; i < m->n_changes; i++) {
        const struct lk_t2i_change *change = &m->changes[i];
        if (lk_t2i_pooled(&change->scope) != pooled) continue;
        begin_row(table, m, &change->scope, change->attribute);
        lk_table_text(table, "%s", lk_t2i_arm_name(change->arm));
        lk_table_count(table, (int64_t)change->change.change.n);
        lk_table_count(table, (int64_t)change->n_unpaired);
        number(table, &change->change.base, false);
        number(table, &change->change.other, false);
        number(table, &change->change.change, true);
        number(table, &change->percentiles, true);
        number(table, &change->change.change, true);
        probability(table, &change->change.test, change->change.test.p);
        probability(table, &change->change.test, change->adjusted);
    }
    lk_table_note(
        table,
        "Mitigated less base, of pictures that share prompt and seed (of the post-filter: of all). Intervals: "
        "from %d resamples of %s, %g%%, both pictures together, in bounds that hold the estimate, with plain "
        "percentiles, the study's own, beside. p: %d permutations of the arms "
        "within a seed, two-sided. Adjusted p: Benjamini-Hochberg over models, prompts and attributes of one "
        "arm. ΔBiasAmp equals ΔSPD, since both arms have one reference. " PERCEIVED,
        m->options.how.n_replicates, pooled ? "prompts' seeds" : "seeds", 100 * m->options.how.confidence,
        m->options.how.n_replicates);
}

static void effects(struct lk_table *table, const struct lk_t2i_metrics *m, bool pooled) {
    lk_table_columns(table, "Model|Prompt|Attribute|Arm|Group|>Target|>Base|>Mitigated|>Cohen's h|Size");
    for (size_t i = 0; i < m->n_changes; i++) {
        const struct lk_t2i_change *change = &m->changes[i];
        int a = change->attribute;
        if (lk_t2i_pooled(&change->scope) != pooled) continue;
        for (int g = 0; g < lk_t2i_levels(a); g++) {
            if (!m->options.target.names[a][g]) continue;
            begin_row(table, m, &change->scope, a);
            lk_table_text(table, "%s", lk_t2i_arm_name(change->arm));
            lk_table_text(table, "%s", lk_t2i_level_name(a, g));
            lk_table_rate(table, m->options.target.shares[a][g]);
            lk_table_percent(table, change->counts[0][g], (int64_t)change->change.base.n);
            lk_table_percent(table, change->counts[1][g], (int64_t)change->change.other.n);
            number(table, &change->h[g], true);
            if (change->h[g].undefined)
                lk_table_none(table, change->h[g].undefined);
            else
                lk_table_text(table, "%s", lk_cohen_h_label(change->h[g].value));
        }
    }
    lk_table_note(
        table,
        "Cohen's h of the group's share, mitigated against base: 0.2 small, 0.5 medium, 0.8 large. Intervals: "
        "percentiles of %d resamples of %s, %g%%. " PERCEIVED,
        m->options.how.n_replicates, pooled ? "prompts' seeds" : "seeds", 100 * m->options.how.confidence);
}

static void sensitivity(struct lk_table *table, const struct lk_t2i_metrics *m) {
    lk_table_columns(table, "Model|Prompt|Attribute|Arm|>Confidence|>n|>Removed|>SPD|>ΔSPD");
    for (size_t i = 0; i < m->n_sensitivity; i++) {
        const struct lk_t2i_sensitivity *row = &m->sensitivity[i];
        begin_row(table, m, &row->scope, row->attribute);
        lk_table_text(table, "%s", lk_t2i_arm_name(row->arm));
        lk_table_fixed(table, lk_t2i_thresholds[row->threshold], 1);
        lk_table_count(table, (int64_t)row->n);
        lk_table_percent(table, (int64_t)(row->n_before - row->n), (int64_t)row->n_before);
        number(table, &row->spd, false);
        number(table, &row->change, true);
    }
    lk_table_note(
        table, "Labels with a lower confidence removed, or, above 0, with none given. Results of all other tables are "
               "at 0. Skin tones come without a confidence. " PERCEIVED);
}

static void cfg(struct lk_table *table, const struct lk_t2i_metrics *m) {
    lk_table_columns(table, "Model|Prompt|Attribute|Arm|>CFG|"
                            ">n|>SPD|>ΔSPD to the reference CFG|Safe|>ΔSPD to the base");
    for (size_t i = 0; i < m->n_cfg; i++) {
        const struct lk_t2i_cfg *row = &m->cfg[i];
        begin_row(table, m, &row->scope, row->attribute);
        lk_table_text(table, "%s", lk_t2i_arm_name(row->arm));
        cfg_cell(table, row->cfg);
        lk_table_count(table, (int64_t)row->n);
        number(table, &row->spd, false);
        number(table, &row->change, true);
        if (row->reference)
            lk_table_text(table, "reference");
        else if (row->change.undefined)
            lk_table_none(table, row->change.undefined);
        else
            lk_table_text(table, "%s", row->safe ? "yes" : "no");
        number(table, &row->mitigation, true);
    }
    lk_table_note(
        table, "Safe operating region: values of CFG whose interval of ΔSPD includes 0 or lies below it. Pictures are "
               "paired by prompt and seed. What CFG is differs between models: see the table of pictures. " PERCEIVED);
}

static void rejected(struct lk_table *table, const struct lk_t2i_metrics *m) {
    lk_table_columns(table, "File|>Line|Record|Reason");
    for (size_t f = 0; f < m->images->files.n; f++)
        for (size_t i = 0; i < m->images->rejects[f].n; i++) {
            const struct lk_reject *reject = &m->images->rejects[f].list[i];
            lk_table_row(table);
            lk_table_text(table, "%s", m->images->files.list[f]);
            lk_table_count(table, (int64_t)reject->line);
            lk_table_text(table, "%s", reject->item);
            lk_table_text(table, "%s", reject->reason);
        }
}

enum lk_code lk_t2i_table(const struct lk_t2i_metrics *metrics, enum lk_t2i_table which, struct lk_table **out) {
    static const struct {
        const char *id, *caption;
        void (*of_scopes)(struct lk_table *, const struct lk_t2i_metrics *, bool pooled);
        void (*of_all)(struct lk_table *, const struct lk_t2i_metrics *);
        bool pooled;
    } tables[LK_N_T2I_TABLES] = {
        [LK_T2I_TABLE_PICTURES] = {"t2i_pictures", "Pictures by model", NULL, pictures, false},
        [LK_T2I_TABLE_ANSWERS] = {"t2i_answers", "What came of asking", NULL, answers, false},
        [LK_T2I_TABLE_REFUSED] = {"t2i_refused", "Refused by role and gender", NULL, refused, false},
        [LK_T2I_TABLE_SHARES_POOLED] = {"t2i_shares_pooled", "Shares of perceived groups", shares, NULL, true},
        [LK_T2I_TABLE_SPD_POOLED] = {"t2i_spd_pooled", "Distance from the target", spd, NULL, true},
        [LK_T2I_TABLE_CHANGES_POOLED] = {"t2i_changes_pooled", "What mitigations change", changes, NULL, true},
        [LK_T2I_TABLE_EFFECTS_POOLED] = {"t2i_effects_pooled", "Effect on each group's share", effects, NULL, true},
        [LK_T2I_TABLE_FAIR] = {"t2i_fair", "What the fair instruction asked for and got", NULL, lk_t2i_fair_rows,
                               false},
        [LK_T2I_TABLE_SHARES] = {"t2i_shares", "Shares of perceived groups by prompt", shares, NULL, false},
        [LK_T2I_TABLE_SPD] = {"t2i_spd", "Distance from the target by prompt", spd, NULL, false},
        [LK_T2I_TABLE_CHANGES] = {"t2i_changes", "What mitigations change by prompt", changes, NULL, false},
        [LK_T2I_TABLE_EFFECTS] = {"t2i_effects", "Effect on each group's share by prompt", effects, NULL, false},
        [LK_T2I_TABLE_SENSITIVITY] = {"t2i_sensitivity", "Sensitivity to the classifier's confidence", NULL,
                                      sensitivity, false},
        [LK_T2I_TABLE_CFG] = {"t2i_cfg", "Sensitivity to CFG", NULL, cfg, false},
        [LK_T2I_TABLE_REJECTED] = {"t2i_rejected", "Records that were rejected", NULL, rejected, false},
    };
    LK_TRY(lk_table_new(out, tables[which].id, tables[which].caption, NULL));
    if (tables[which].of_all)
        tables[which].of_all(*out, metrics);
    else
        tables[which].of_scopes(*out, metrics, tables[which].pooled);
    const bool of_pictures =
        which != LK_T2I_TABLE_ANSWERS && which != LK_T2I_TABLE_REFUSED && which != LK_T2I_TABLE_REJECTED;
    if (of_pictures) add_refused(*out, metrics->images, tables[which].caption);
    enum lk_code rc = lk_table_finish(*out);
    if (rc) {
        lk_table_free(*out);
        *out = NULL;
    }
    return rc;
}
