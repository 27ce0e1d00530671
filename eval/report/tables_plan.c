/* What the study's protocols plan: the two tiers, the samples, HITs and what they cost, and the load of a participant.
 * Numbers come from the design and the calculators, so that a changed plan shows here. */
#include <math.h>
#include <stdio.h>

#include "eval/report/build.h"
#include "eval/document/table_print.h"
#include "eval/stats/tests/sample_size.h"
#include "eval/study/packing.h"

enum { N_RATERS = 3, N_PAIRS = LK_N_SOURCES * 6 - 4, PAIRS_PER_TASK = 50, USUAL_PER_HIT = 40 };

/* In cents, half up. */
struct amount {
    char text[32];
};
static struct amount dollars(double value) {
    struct amount amount;
    long long cents = llround(100 * value);
    snprintf(amount.text, sizeof amount.text, "$%lld.%02lld", cents / 100, cents % 100);
    return amount;
}

static enum lk_code table_9(struct lk_report *report) {
    const struct lk_cost_plan *plan = lk_cost_plan("003");
    const struct lk_cost_line *task = &plan->lines[0];
    struct lk_table *table;
    struct lk_study_cost cost;
    char items[LK_NUMBER_MAX];
    lk_cost(plan, &cost);
    lk_print_count(items, 2 * N_PAIRS);
    LK_TRY(lk_table_new(&table, "table_9", "Configuration of the human study (protocol 003)", "Parameter|Value"));
    lk_table_text_rows(table, (const char *const[]){"Platform", "Prolific", "Total items", items, NULL}, 2);
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {{"Items per task", 2 * PAIRS_PER_TASK},
                  {"Total tasks", N_PAIRS / PAIRS_PER_TASK},
                  {"Annotators per task", N_RATERS},
                  {"Total participants", task->n}};
    for (int i = 0; i < 4; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", counts[i].name);
        lk_table_count(table, counts[i].value);
    }
    lk_table_row(table);
    lk_table_text(table, "Estimated duration");
    lk_table_text(table, "%lld–%lld minutes per task", llround(task->seconds_min / 60),
                  llround(task->seconds_max / 60));
    lk_table_row(table);
    lk_table_text(table, "Compensation");
    lk_table_text(table, "%s per task", dollars(task->pay).text);
    lk_table_row(table);
    lk_table_text(table, "Total cost");
    lk_table_text(table, "$%lld (incl. platform fees)", llround(cost.total));
    lk_table_note(
        table,
        "Items are outputs, two per pair. Pay by the hour: %s to %s; the floor of $7.25 an hour is %s for the "
        "longest time, and the pay is %s it.",
        dollars(cost.hourly_min[0]).text, dollars(cost.hourly_max[0]).text, dollars(cost.floor[0]).text,
        cost.below_floor[0] ? "below" : "not below");
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

/* "VLM (A, B)" */
static void judges_cell(const struct lk_report *report, struct lk_table *table) {
    const char *first = report->options.judges[0], *second = report->options.judges[1];
    bool both = first && *first && second && *second;
    const char *only = first && *first ? first : second && *second ? second : "not named";
    if (both)
        lk_table_text(table, "VLM (%s, %s)", first, second);
    else
        lk_table_text(table, "VLM (%s)", only);
}

struct tiers {
    const char *id, *caption, *main_results, *validation;
};

static enum lk_code table_tiers(struct lk_report *report, const struct tiers *tiers) {
    static const char *const platforms[] = {"Prolific", "Prolific", "AMT", "AMT"};
    static const char *const samples[] = {"pairs of both arms", "sample", "stratified sample", "stratified sample"};
    enum lk_protocol protocol = report->options.protocol;
    int64_t judged = 0, rated = 0;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        judged += item->score[LK_AXIS_EDIT_SUCCESS] || item->role != LK_ROLE_NONE;
        rated += item->n_ratings > 0;
    }
    struct lk_table *table;
    char n[2][LK_NUMBER_MAX];
    lk_print_count(n[0], judged);
    lk_print_count(n[1], rated);
    LK_TRY(lk_table_new(&table, tiers->id, tiers->caption, "Tier|Method|Coverage|Purpose"));
    lk_table_row(table);
    lk_table_text(table, "Tier 1");
    if (judged) {
        judges_cell(report, table);
        lk_table_text(table, "%s images", n[0]);
    } else {
        for (int c = 0; c < 2; c++) lk_table_none(table, "no judge's scores in this run");
    }
    lk_table_text(table, "%s", tiers->main_results);
    lk_table_row(table);
    lk_table_text(table, "Tier 2");
    lk_table_text(table, "Human (%s)", platforms[protocol]);
    if (rated)
        lk_table_text(table, "%s images (%s)", n[1], samples[protocol]);
    else
        lk_table_none(table, "no raters");
    lk_table_text(table, "%s", tiers->validation);
    lk_table_note(table, "Images with a valid answer in this run, all experiments.");
    table->no_data = !judged && !rated;
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code table_scale(struct lk_report *report) {
    static const struct {
        const char *name, *focus;
        int n_models, n_images;
    } rows[] = {{"Exp1: Identity Drift", "Demographic attribute preservation", LK_N_MODELS,
                 LK_N_SOURCES * LK_N_EDIT_PROMPTS * LK_N_MODELS},
                {"Exp2: Preservation", "Effectiveness of identity-preserving prompts", LK_N_MODELS, N_PAIRS},
                {"Exp3: Stereotype", "Gender bias in occupational roles", 2, 2 * LK_N_W_PROMPTS}};
    struct lk_table *table;
    int64_t total = 0;
    LK_TRY(lk_table_new(&table, "t_000_1_3", "Scale per experiment", "Experiment|Models|Images|Evaluation Focus"));
    for (int i = 0; i < 3; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", rows[i].name);
        lk_table_count(table, rows[i].n_models);
        lk_table_count(table, rows[i].n_images);
        lk_table_text(table, "%s", rows[i].focus);
        total += rows[i].n_images;
    }
    lk_table_row(table);
    lk_table_text(table, "Total");
    lk_table_text(table, "%s", "");
    lk_table_count(table, total);
    lk_table_text(table, "%s", "");
    lk_table_note(table, "Nominal new outputs. The older protocol prints 5,030, 107 and 50, which no design gives.");
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

/* What the older protocols give to raters. */
struct rated {
    const char *name;
    int n_strata, per_stratum, per_hit;
};
static const struct rated protocol_000[3] = {
    {"Exp1", LK_N_RACES *LK_N_GENDERS *LK_N_AGE_GROUPS *LK_N_MODELS, 4, USUAL_PER_HIT},
    {"Exp2", LK_N_RACES *LK_N_GENDERS *LK_N_AGE_GROUPS, 8, USUAL_PER_HIT},
    {"Exp3", 1, LK_N_W_PROMPTS, 25},
};
static const struct rated protocol_004[3] = {
    {"Exp1", LK_N_RACES *LK_N_GENDERS *LK_N_AGE_GROUPS *LK_N_MODELS, 4, USUAL_PER_HIT},
    {"Exp2", LK_N_RACES *LK_N_GENDERS *LK_N_AGE_GROUPS, 8, USUAL_PER_HIT},
    {"Exp3", 1, 2 * LK_N_W_PROMPTS, USUAL_PER_HIT},
};

/* An experiment's work for raters, or the sum of all; what a sum does not have is 0. */
struct work {
    const char *name;
    int64_t n_strata, per_stratum, n_raters, per_hit, images, answers, hits;
    double pay, subtotal;
};

/* The three experiments of a protocol and the sum. */
static enum lk_code work_of(const struct rated protocol[3], const struct lk_cost_plan *plan, struct work out[4]) {
    struct work *total = &out[3];
    *total = (struct work){.name = "Total"};
    for (int i = 0; i < 3; i++) {
        const struct rated *rated = &protocol[i];
        struct lk_hits packed = {0, 0};
        int64_t images = (int64_t)rated->n_strata * rated->per_stratum;
        double pay = plan->lines[i].pay;
        LK_TRY(lk_pack_hits(images, N_RATERS, rated->per_hit, 0, LK_PACKING_SEED, &packed));
        out[i] =
            (struct work){rated->name, rated->n_strata,   rated->per_stratum, N_RATERS, rated->per_hit,
                          images,      N_RATERS * images, packed.n_hits,      pay,      (double)packed.n_hits * pay};
        total->images += images;
        total->answers += out[i].answers;
        total->hits += packed.n_hits;
        total->subtotal += out[i].subtotal;
    }
    return LK_OK;
}

static void count_cell(struct lk_table *table, int64_t n) {
    if (n)
        lk_table_count(table, n);
    else
        lk_table_text(table, "%s", "");
}

enum lk_code lk_report_power(int64_t n, double alpha, char out[256]) {
    struct lk_number power, needed;
    double low = 0.2, high = 1; /* the smallest rate that is found with a power of 0.8 */
    LK_TRY(lk_power_proportions(0.2, 0.15, alpha, (double)n, &power));
    LK_TRY(lk_sample_size_proportions(0.2, 0.15, alpha, 0.8, LK_Z_EXACT, &needed));
    while (high - low > 1e-6) {
        struct lk_number at;
        LK_TRY(lk_power_proportions(0.2, (low + high) / 2, alpha, (double)n, &at));
        *(at.value < 0.8 ? &low : &high) = (low + high) / 2;
    }
    snprintf(out, 256,
             "%lld outputs a race tell 20%% from 15%% with power %.2f (two-sided, %g%%); a power of 0.80 takes %zu a "
             "race, or a difference as large as 20%% against %.0f%%; outputs of one source are worth less than as many "
             "of different ones",
             (long long)n, power.value, 100 * alpha, needed.n, ceil(100 * high));
    return LK_OK;
}

static enum lk_code table_sample_sizes(struct lk_report *report) {
    struct lk_table *table;
    struct work work[4];
    char power[256];
    LK_TRY(work_of(protocol_000, lk_cost_plan("000"), work));
    LK_TRY(lk_table_new(&table, "t_000_9_2", "Sample sizes of the human evaluation (protocol 000)",
                        "Experiment|Strata|Samples/Stratum|Total Images|Raters|Total Evals"));
    for (int i = 0; i < 4; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", work[i].name);
        count_cell(table, work[i].n_strata);
        count_cell(table, work[i].per_stratum);
        count_cell(table, work[i].images);
        count_cell(table, work[i].n_raters);
        count_cell(table, work[i].answers);
    }
    enum lk_code rc = lk_report_power(work[0].images / LK_N_RACES, report->options.alpha, power);
    if (rc) {
        lk_table_free(table);
        return rc;
    }
    lk_table_note(table,
                  "Strata of experiment 1: race, gender, age group, model; of experiment 2 without the model, where 8 "
                  "per stratum is every output of the grid. Experiment 1: %s.",
                  power);
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static void hits_cell(struct lk_table *table, const struct work *work) {
    if (!work->per_hit)
        lk_table_text(table, "%lld HITs", (long long)work->hits);
    else if (work->per_hit != USUAL_PER_HIT)
        lk_table_text(table, "%lld (%lld/HIT)", (long long)work->hits, (long long)work->per_hit);
    else
        lk_table_count(table, work->hits);
}

static enum lk_code table_hits_000(struct lk_report *report) {
    const struct lk_cost_plan *plan = lk_cost_plan("000");
    struct lk_table *table;
    struct lk_study_cost cost, packed;
    struct work work[4];
    lk_cost(plan, &cost);
    lk_cost(lk_cost_plan("000-packed"), &packed);
    LK_TRY(work_of(protocol_000, plan, work));
    LK_TRY(lk_table_new(&table, "t_000_10_2", "HITs and cost (protocol 000)",
                        "Experiment|Images|Raters|HITs (40/HIT)|Payment/HIT|Subtotal"));
    for (int i = 0; i < 4; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", work[i].name);
        count_cell(table, work[i].images);
        count_cell(table, work[i].n_raters);
        hits_cell(table, &work[i]);
        lk_table_text(table, "%s", work[i].pay > 0 ? dollars(work[i].pay).text : "");
        lk_table_text(table, "%s", dollars(work[i].subtotal).text);
    }
    lk_table_note(table,
                  "With the platform's fee of %.0f%%: %s; with the bonus: %s. 25 HITs are too few for 1,008 "
                  "answers. With room for gold items and whole HITs, %lld assignments: %s, with fee %s.",
                  100 * plan->fee_rate, dollars(cost.total).text, dollars(cost.total_with_bonus).text,
                  (long long)packed.n, dollars(packed.subtotal).text, dollars(packed.total).text);
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code table_hits_004(struct lk_report *report) {
    const struct lk_cost_plan *plan = lk_cost_plan("004");
    struct lk_table *table;
    struct lk_study_cost cost;
    struct work work[4];
    lk_cost(plan, &cost);
    LK_TRY(work_of(protocol_004, plan, work));
    LK_TRY(lk_table_new(&table, "t_004_5_2", "HITs (protocol 004)", "Exp|Images|×Raters|Total Evals|HITs (40/HIT)"));
    for (int i = 0; i < 4; i++) {
        lk_table_row(table);
        lk_table_text(table, "%s", work[i].name);
        count_cell(table, work[i].images);
        count_cell(table, work[i].n_raters);
        count_cell(table, work[i].answers);
        count_cell(table, work[i].hits);
    }
    lk_table_note(table, "At %s per HIT: %s, with the platform's fee %s.", dollars(plan->lines[0].pay).text,
                  dollars(cost.subtotal).text, dollars(cost.total).text);
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

static enum lk_code constant_tables(struct lk_report *report) {
    static const char *const earlier[] = {"Zhao et al. (2021)",
                                          "DALLE-2 gender bias",
                                          "300",
                                          "3",
                                          "MTurk",
                                          "Bianchi et al. (2023)",
                                          "Stable Diffusion stereotypes",
                                          "500",
                                          "5",
                                          "MTurk",
                                          "Our study (Exp1)",
                                          "I2I identity drift",
                                          "504",
                                          "3",
                                          "AMT",
                                          NULL};
    static const char *const load[] = {"Exp1",
                                       "5",
                                       "50 image pairs",
                                       "250",
                                       "Exp2",
                                       "5 (pairwise) or 10 (independent)",
                                       "30 image triplets",
                                       "150 or 300",
                                       "Exp3",
                                       "4",
                                       "40 image pairs",
                                       "160",
                                       NULL};
    static const char *const survey[] = {
        "Session duration", "10-15 minutes",   "Images per HIT", "40", "Time per image",
        "15-20 seconds",    "Payment per HIT", "$1.50-2.00",     NULL};
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_000_9_3", "Samples of earlier work, as the protocol cites them",
                        "Study|Task|N (Images)|Raters|Method"));
    lk_table_text_rows(table, earlier, 5);
    LK_TRY(lk_report_add(report, LK_SECTION_DESIGN, table));
    LK_TRY(lk_table_new(&table, "t_001_meta", "Load per participant (protocol 001)",
                        "Experiment|Questions|Stimuli per Participant|Total Ratings per Participant"));
    lk_table_text_rows(table, load, 4);
    LK_TRY(lk_report_add(report, LK_SECTION_DESIGN, table));
    LK_TRY(lk_table_new(&table, "t_004_5_1", "Survey parameters (protocol 004)", "Parameter|Value"));
    lk_table_text_rows(table, survey, 2);
    return lk_report_add(report, LK_SECTION_DESIGN, table);
}

enum lk_code lk_report_tables_plan(struct lk_report *report) {
    static const struct tiers tiers[] = {
        {"t_000_1_2", "Two tiers of evaluation (protocol 000)", "Main results for all experiments",
         "VLM validation + inter-rater reliability"},
        {"t_004_1_1", "Two tiers of evaluation (protocol 004)", "Main Results", "VLM Validation"},
    };
    LK_TRY(table_9(report));
    for (int i = 0; i < 2; i++) LK_TRY(table_tiers(report, &tiers[i]));
    LK_TRY(table_scale(report));
    LK_TRY(table_sample_sizes(report));
    LK_TRY(table_hits_000(report));
    LK_TRY(table_hits_004(report));
    return constant_tables(report);
}
