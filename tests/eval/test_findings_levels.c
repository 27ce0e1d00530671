/* How often the report's tests find something where there is nothing, and how often its intervals hold the truth, in
 * studies of known truth: latent normal outcomes with people, prompts, models, their interactions and single pictures
 * as random effects. The truth of a contrast is the same contrast of the true rates.
 *
 *     test_findings_levels [NAME [DATA SETS [RELABELLINGS]]]
 *
 * NAME: the cells of which this is a part, as "12 a group, 10 a kind". 1 relabelling: for the intervals alone.
 *
 * Seeds are fixed, so that a run cannot fail by chance; with LIKENESS_TEST_FULL there are 2,000 data sets of each cell,
 * whose numbers stand in bench/RESULTS.md. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/rng.h"
#include "eval/findings/crossed.h"
#include "eval/stats/special/special.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"

enum { RACES = 7, MODELS = 3, MAX_S = 84, MAX_P = 20, CELLS = MODELS * MAX_S * MAX_P };

/* Standard deviations on the latent scale; of a single picture 1. */
static const double of_source = 0.6, of_prompt = 0.5, of_source_model = 0.35, of_prompt_model = 0.35,
                    of_source_prompt = 0.35, of_race_prompt = 0.35, of_race_prompt_model = 0.2, of_source_kind = 0.25;

/* Nothing differs; one group does, in all models alike; groups, genders, kinds, subcategories and models do. */
enum truth { NOTHING, ONE_GROUP, EVERYTHING };
struct design {
    const char *name;
    int per_race, per_kind;
    double rate;
};

static const char *only = "";
static int n_sets, n_relabel = 499;
static struct lk_rng rng;
static double y[CELLS], truth_y[CELLS];
static int32_t race[MAX_S], gender[MAX_S], age[MAX_S], kinds[MAX_P], subcategories[MAX_P];
static const char *const races[] = {"R0", "R1", "R2", "R3", "R4", "R5", "R6"}, *const genders[] = {"F", "M"},
                         *const ages[] = {"A0", "A1", "A2"}, *const kind_names[] = {"K0", "K1"},
                         *const subcategory_names[] = {"K0 / a", "K0 / b", "K0 / c", "K1 / a", "K1 / b", "K1 / c"},
                         *const models[] = {"M0", "M1", "M2"}, *const outcome_names[] = {"change"};
static const char *names[MAX_S];

static double total(void) {
    return sqrt(1 + of_source * of_source + of_prompt * of_prompt + of_source_model * of_source_model +
                of_prompt_model * of_prompt_model + of_source_prompt * of_source_prompt +
                of_race_prompt * of_race_prompt + of_race_prompt_model * of_race_prompt_model +
                of_source_kind * of_source_kind);
}

static double shift(enum truth truth, int source, int prompt, int model) {
    double x = 0;
    if (truth != NOTHING) x += truth == ONE_GROUP ? 1.5 * (race[source] == 0) : 1.0 * (race[source] == 0);
    if (truth == EVERYTHING)
        x += 0.3 * gender[source] + 0.5 * kinds[prompt] + 0.5 * (subcategories[prompt] == 0) + 0.4 * (model == 1);
    return x;
}

/* 5, 3 and 2 prompts of ten are of one subcategory, 3 and 2 of five. */
static struct lk_outcomes design(const struct design *d, enum truth truth) {
    const int n_s = RACES * d->per_race, n_p = 2 * d->per_kind;
    for (int i = 0; i < n_s; i++)
        race[i] = i % RACES, gender[i] = i / RACES % 2, age[i] = i / RACES / 2 % 3, names[i] = "someone";
    for (int k = 0; k < n_p; k++) {
        const int at = k % d->per_kind;
        kinds[k] = k / d->per_kind;
        subcategories[k] = 3 * kinds[k] + (d->per_kind == 10 ? (at >= 5) + (at >= 8) : at >= 3);
    }
    for (int m = 0; m < MODELS; m++)
        for (int i = 0; i < n_s; i++)
            for (int k = 0; k < n_p; k++)
                truth_y[(m * n_s + i) * n_p + k] =
                    lk_normal_cdf(lk_normal_quantile(d->rate) + shift(truth, i, k, m) / total());
    return (struct lk_outcomes){.n_sources = n_s,
                                .n_prompts = n_p,
                                .n_models = MODELS,
                                .n_outcomes = 1,
                                .n_attributes = d->per_race >= 6 ? 3 : 2,
                                .y = y,
                                .attributes = {{race, RACES}, {gender, 2}, {age, 3}},
                                .kinds = {kinds, 2},
                                .subcategories = {subcategories, 6},
                                .attribute_names = {"race", "gender", "age"},
                                .level_names = {races, genders, ages},
                                .kind_names = kind_names,
                                .subcategory_names = subcategory_names,
                                .model_names = models,
                                .outcome_names = outcome_names,
                                .source_names = names,
                                .prompt_names = names};
}

static void normals(float *out, int n) { lk_rng_normal_f32(&rng, out, (size_t)n); }

static void draw(const struct lk_outcomes *o, const struct design *d, enum truth truth) {
    static float s[MAX_S], p[MAX_P], sm[MAX_S * MODELS], pm[MAX_P * MODELS], sp[MAX_S * MAX_P], rp[RACES * MAX_P],
        rpm[RACES * MAX_P * MODELS], sk[MAX_S * 2], e[CELLS];
    const int n_s = o->n_sources, n_p = o->n_prompts;
    const double cut = -lk_normal_quantile(d->rate) * total();
    normals(s, n_s), normals(p, n_p), normals(sm, n_s * MODELS), normals(pm, n_p * MODELS), normals(sp, n_s * n_p);
    normals(rp, RACES * n_p), normals(rpm, RACES * n_p * MODELS), normals(sk, n_s * 2), normals(e, MODELS * n_s * n_p);
    for (int m = 0; m < MODELS; m++)
        for (int i = 0; i < n_s; i++)
            for (int k = 0; k < n_p; k++) {
                const int at = (m * n_s + i) * n_p + k;
                const double eta = of_source * s[i] + of_prompt * p[k] + of_source_model * sm[i * MODELS + m] +
                                   of_prompt_model * pm[k * MODELS + m] + of_source_prompt * sp[i * n_p + k] +
                                   of_race_prompt * rp[race[i] * n_p + k] +
                                   of_race_prompt_model * rpm[(race[i] * n_p + k) * MODELS + m] +
                                   of_source_kind * sk[i * 2 + kinds[k]] + shift(truth, i, k, m) + e[at];
                y[at] = eta > cut;
            }
}

/* --- what is counted --- */

enum asked {
    RACE, /* families: any cell at 5 %, and how often there was a test */
    GENDER,
    AGE,
    KIND,
    SUBCATEGORY,
    MODEL,
    RACE_BY_MODEL,    /* a group that differs in all models alike is said to be the affair of some */
    RACE_IN_A_KIND,   /* races within one kind of prompts, as the research questions ask */
    OTHERS,           /* intervals: a race against the others, in each model and in their mean */
    OTHERS_OF_GENDER, /* genders, ages */
    KINDS,
    OF_SUBCATEGORY, /* against the others of its kind */
    MODEL_PAIR,
    RANGE_OF_RACE, /* largest minus smallest rate */
    RANGE_OF_OTHERS,
    RANGE_OF_KINDS,
    RATE, /* of a race in one model */
    N_ASKED
};
static const char *const asked_names[N_ASKED] = {
    "race",         "gender",         "age",           "kind",         "subcategory", "models",
    "race x model", "race in a kind", "race - others", "gender, age",  "kinds",       "subcategories",
    "two models",   "races' range",   "ages' range",   "kinds' range", "rate"};
struct counts {
    int n[N_ASKED], hit[N_ASKED]; /* hit: found, or held */
};

static void count(struct counts *c, enum asked what, bool hit) { c->n[what]++, c->hit[what] += hit; }

static bool holds(double low, double high, double x) { return low <= x + 1e-12 && x <= high + 1e-12; }

/* Of the families that may be wrong only by chance. */
static void count_families(const struct lk_claims *claims, enum truth truth, struct counts *c) {
    for (int f = 0; f < claims->n_families; f++) {
        const struct lk_claims_family *family = &claims->families[f];
        const enum asked what = family->family == LK_CLAIM_MODEL  ? MODEL
                                : family->family == LK_CLAIM_KIND ? (family->attribute ? SUBCATEGORY : KIND)
                                                                  : (enum asked)(RACE + family->attribute);
        bool any = false;
        if (truth == EVERYTHING || (truth == ONE_GROUP && what == RACE)) continue;
        for (size_t i = 0; i < claims->n_cells; i++) {
            const struct lk_claim_cell *x = &claims->cells[i];
            any |= x->family == family->family && x->attribute == family->attribute && x->p <= 0.05;
        }
        count(c, what, any);
    }
}

static void count_interaction(const struct lk_claims *claims, struct counts *c) {
    bool mean = false, said = false;
    for (size_t i = 0; i < claims->n_cells; i++) {
        const struct lk_claim_cell *x = &claims->cells[i];
        mean |= x->family == LK_CLAIM_GROUP && x->attribute == 0 && x->model < 0 && x->level == 0 && x->p <= 0.05;
    }
    for (size_t i = 0; i < claims->n_found && mean; i++) {
        const struct lk_claim *x = &claims->list[i];
        said |= x->family == LK_CLAIM_GROUP && x->attribute == 0 && x->level == 0 && (x->model >= 0 || !x->alike);
    }
    count(c, RACE_BY_MODEL, said);
}

static void count_intervals(const struct lk_claims *claims, const struct lk_claims *truth, struct counts *c) {
    assert_int_equal(claims->n_measured, truth->n_measured);
    for (size_t i = 0; i < claims->n_measured; i++) {
        const struct lk_claim *x = &claims->measured[i];
        if (!x->no_interval)
            count(c,
                  x->family == LK_CLAIM_KIND ? (x->attribute ? OF_SUBCATEGORY : KINDS)
                  : x->attribute             ? OTHERS_OF_GENDER
                                             : OTHERS,
                  holds(x->low, x->high, truth->measured[i].difference));
    }
}

static void count_ranges(const struct lk_claims *claims, const struct lk_claims *truth, struct counts *c) {
    assert_int_equal(claims->n_ranges, truth->n_ranges);
    for (size_t i = 0; i < claims->n_ranges; i++) {
        const struct lk_claims_range *x = &claims->ranges[i];
        const struct lk_number *number = &x->range.number;
        if (!number->undefined && !number->no_interval)
            count(c,
                  x->family == LK_CLAIM_KIND ? RANGE_OF_KINDS
                  : x->attribute             ? RANGE_OF_OTHERS
                                             : RANGE_OF_RACE,
                  holds(number->low, number->high, truth->ranges[i].range.number.value));
    }
}

static double mean_where(const double *table, const struct lk_outcomes *o, int model, int32_t of_race) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < o->n_sources; i++)
        for (int k = 0; k < o->n_prompts && race[i] == of_race; k++, n++)
            sum += table[(model * o->n_sources + i) * o->n_prompts + k];
    return sum / n;
}

/* As the tables of rates have it: the people of one group, prompts of all kinds. */
static void count_rates(const struct lk_outcomes *o, struct counts *c) {
    static double z[MAX_S * MAX_P];
    static const int32_t zeros[MAX_S];
    static int64_t outputs[MAX_S];
    const struct lk_levels one = {zeros, 1};
    struct lk_residual_maker prompts;
    assert_ok(lk_residual_maker(o->n_prompts, &one, 1, &prompts));
    for (int32_t r = 0; r < 2; r++) {
        struct lk_crossed_table table = {.n_prompts = o->n_prompts, .z = z, .share_seen = 1};
        struct lk_crossed_rate rate;
        for (int i = 0; i < o->n_sources; i++) {
            if (race[i] != r) continue;
            memcpy(z + table.n_sources * o->n_prompts, y + i * o->n_prompts, (size_t)o->n_prompts * sizeof *z);
            outputs[table.n_sources++] = o->n_prompts;
        }
        assert_ok(lk_crossed_rates(&table, &one, &prompts, outputs, 0.95, &rate, NULL));
        if (!rate.undefined) count(c, RATE, holds(rate.low, rate.high, mean_where(truth_y, o, 0, r)));
    }
    lk_residual_maker_free(&prompts);
}

/* Races over the prompts of the first kind, in the mean of models. */
static void count_in_a_kind(const struct lk_outcomes *o, struct counts *c) {
    static double z[MAX_S * MAX_P];
    const int n_s = o->n_sources, n_k = o->n_prompts / 2;
    const double *const list[] = {z};
    const struct lk_levels kind = {kinds, 1};
    struct lk_relabelled r;
    bool any = false;
    memset(z, 0, sizeof z);
    for (int m = 0; m < MODELS; m++)
        for (int i = 0; i < n_s; i++)
            for (int k = 0; k < n_k; k++) z[i * n_k + k] += y[(m * n_s + i) * o->n_prompts + k] / MODELS;
    assert_ok(lk_relabel_sources(&(struct lk_crossed_tables){n_s, n_k, 1, list}, &o->attributes[0], o->attributes + 1,
                                 o->n_attributes - 1, &kind, &(struct lk_relabel){.n = n_relabel, .seed = 1}, &r));
    assert_null(r.refused);
    for (int l = 0; l < RACES; l++) any |= r.p[l] <= 0.05;
    count(c, RACE_IN_A_KIND, any);
    lk_relabelled_free(&r);
}

/* Of two models there is one pair, which chance did not choose. */
static void count_pair(struct lk_outcomes o, struct counts *c) {
    const struct lk_claims_options how = {.alpha = 0.05 * (o.n_attributes + 3), .seed = 1, .n_relabel = 1};
    struct lk_claims claims;
    o.n_models = 2;
    assert_ok(lk_claims_of(&o, &how, &claims));
    for (size_t i = 0; i < claims.n; i++) {
        const struct lk_claim *x = &claims.list[i];
        if (x->family != LK_CLAIM_MODEL || x->no_interval) continue;
        double truth = 0;
        for (int32_t r = 0; r < RACES; r++)
            truth += (mean_where(truth_y, &o, x->level, r) - mean_where(truth_y, &o, x->against, r)) / RACES;
        count(c, MODEL_PAIR, holds(x->low, x->high, truth));
    }
    lk_claims_free(&claims);
}

static struct counts simulate(const struct design *d, enum truth truth, int n, uint64_t seed) {
    struct counts c = {0};
    struct lk_outcomes o = design(d, truth);
    /* each family at 5 %, ranges at 95 % */
    const struct lk_claims_options each = {.alpha = 0.05 * (o.n_attributes + 3),
                                           .seed = 1,
                                           .n_relabel = n_relabel,
                                           .measured = true},
                                   ranges = {
                                       .alpha = 0.05, .seed = 1, .n_relabel = 1, .ranges = true, .measured = true};
    struct lk_claims claims, of_truth;
    o.y = truth_y;
    assert_ok(lk_claims_of(&o, &ranges, &of_truth));
    o.y = y;
    for (int i = 0; i < n; i++) {
        lk_rng_seed(&rng, 1000000 * seed + (uint64_t)i);
        draw(&o, d, truth);
        assert_ok(lk_claims_of(&o, &each, &claims));
        assert_true(fabs(claims.family_alpha - 0.05) < 1e-12);
        count_families(&claims, truth, &c);
        if (truth == ONE_GROUP) count_interaction(&claims, &c);
        if (truth == NOTHING) count_in_a_kind(&o, &c);
        count_intervals(&claims, &of_truth, &c);
        lk_claims_free(&claims);
        assert_ok(lk_claims_of(&o, &ranges, &claims));
        count_ranges(&claims, &of_truth, &c);
        lk_claims_free(&claims);
        count_rates(&o, &c);
        count_pair(o, &c);
    }
    lk_claims_free(&of_truth);
    return c;
}

static const struct design designs[] = {
    {"12 a group, 10 a kind, 10 %", 12, 10, 0.1}, {"12 a group, 5 a kind, 10 %", 12, 5, 0.1},
    {"7 a group, 10 a kind, 10 %", 7, 10, 0.1},   {"7 a group, 5 a kind, 10 %", 7, 5, 0.1},
    {"3 a group, 10 a kind, 10 %", 3, 10, 0.1},   {"3 a group, 5 a kind, 10 %", 3, 5, 0.1},
    {"12 a group, 10 a kind, 40 %", 12, 10, 0.4}, {"12 a group, 5 a kind, 40 %", 12, 5, 0.4},
    {"7 a group, 10 a kind, 40 %", 7, 10, 0.4},   {"7 a group, 5 a kind, 40 %", 7, 5, 0.4},
    {"3 a group, 10 a kind, 40 %", 3, 10, 0.4},   {"3 a group, 5 a kind, 40 %", 3, 5, 0.4},
    {"12 a group, 10 a kind, 2 %", 12, 10, 0.02}, {"3 a group, 5 a kind, 2 %", 3, 5, 0.02}};

/* Levels of at most 7 %, intervals that hold in 93 % and more: of each cell where there are enough data sets, else,
 * with room for chance, of all together. */
static void check(const char *name, const struct counts *c, double most, double least) {
    for (int a = 0; a < N_ASKED; a++) {
        const double share = c->n[a] ? (double)c->hit[a] / c->n[a] : 0;
        if (!c->n[a]) continue;
        if (a <= RACE_IN_A_KIND && share > most) fail_msg("%s: %s is found in %g", name, asked_names[a], share);
        if (a > RACE_IN_A_KIND && share < least) fail_msg("%s: %s holds in %g", name, asked_names[a], share);
    }
}

static void levels_and_coverage(void **state) {
    static const char *const truths[] = {"nothing", "one group", "everything"};
    struct counts all = {{0}, {0}};
    (void)state;
    for (size_t k = 0; k < sizeof designs / sizeof *designs; k++) {
        if (!strstr(designs[k].name, only)) continue;
        for (int t = NOTHING; t <= EVERYTHING; t++) {
            const struct counts c = simulate(&designs[k], (enum truth)t, n_sets, 3 * k + (size_t)t + 1);
            printf("%s, %s:", designs[k].name, truths[t]);
            for (int a = 0; a < N_ASKED; a++) {
                all.n[a] += c.n[a], all.hit[a] += c.hit[a];
                if (c.n[a]) printf(" %s %.1f (%d);", asked_names[a], 100.0 * c.hit[a] / c.n[a], c.n[a]);
            }
            printf("\n");
            fflush(stdout);
            if (n_sets >= 1000) check(designs[k].name, &c, 0.07, 0.93);
        }
    }
    check("all", &all, 0.12, 0.9);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_and_coverage)};
    only = argc > 1 ? argv[1] : "";
    n_sets = argc > 2 ? atoi(argv[2]) : test_is_full() ? 2000 : 4;
    if (argc > 3) n_relabel = atoi(argv[3]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
