/* Refusals in studies of known truth, 84 people of 7 groups and 20 prompts, both with effects of their own: how often a
 * difference between groups is found where there is none, how often intervals hold it, how often one of 5 points is
 * found, and what is left to see of drift where refusals hide it. Seeds are fixed, so that a run cannot fail by chance;
 * with LIKENESS_TEST_FULL there are 2,000 data sets of each kind. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "engine/rng.h"
#include "eval/findings/crossed.h"
#include "eval/intake/audit.h"
#include "eval/stats/special/special.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"

enum { RACES = 7, S = 84, P = 20, RACE = 3 };

/* Standard deviations on the latent scale, that of a single answer 1: of people, of prompts, of a pair, of a group and
 * a prompt. */
struct effects {
    double source, prompt, pair, race_prompt;
};
static const struct effects strong = {.6, .5, .35, .25}, weak = {.3, .3, .2, .1};

static struct lk_rng rng;
static int32_t race[S], gender[S], kinds[P];
static const char *names[S];
static const char *const races[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6"}, *const genders[] = {"f", "m"},
                         *const kind_names[] = {"k0", "k1"}, *const one[] = {"Service"}, *const refused[] = {"Refused"};

static double total(const struct effects *e) {
    return sqrt(1 + e->source * e->source + e->prompt * e->prompt + e->pair * e->pair +
                e->race_prompt * e->race_prompt);
}

static void normals(float *out, size_t n) { lk_rng_normal_f32(&rng, out, n); }

static void begin_set(uint64_t set) {
    lk_rng_seed(&rng, set);
    for (int i = 0; i < S; i++) race[i] = i % RACES, gender[i] = i / RACES % 2, names[i] = "someone";
    for (int k = 0; k < P; k++) kinds[k] = k >= P / 2;
}

/* Latent scores without the noise of single answers, in units of the whole standard deviation: eta [S, P]. */
static void draw_latent(const struct effects *e, double *eta) {
    static float source[S], prompt[P], pair[S * P], mixed[RACES * P];
    const double sd = total(e);
    normals(source, S), normals(prompt, P), normals(pair, S * P), normals(mixed, RACES * P);
    for (int i = 0; i < S; i++)
        for (int k = 0; k < P; k++)
            eta[i * P + k] = (e->source * source[i] + e->prompt * prompt[k] + e->pair * pair[i * P + k] +
                              e->race_prompt * mixed[race[i] * P + k]) /
                             sd;
}

static double noise(const struct effects *e) { return 1 / total(e); }

/* One data set: refused with probability `rate`, of one group `planted`. */
static void draw(const struct effects *e, double rate, double planted, double *y) {
    static double eta[S * P];
    static float single[S * P];
    draw_latent(e, eta);
    normals(single, S * P);
    for (int i = 0; i < S; i++)
        for (int k = 0; k < P; k++)
            y[i * P + k] =
                eta[i * P + k] + noise(e) * single[i * P + k] < lk_normal_quantile(race[i] == RACE ? planted : rate);
}

static struct lk_outcomes outcomes_of(const double *y) {
    return (struct lk_outcomes){.n_sources = S,
                                .n_prompts = P,
                                .n_models = 1,
                                .n_outcomes = 1,
                                .n_attributes = 2,
                                .y = y,
                                .attributes = {{race, RACES}, {gender, 2}},
                                .kinds = {kinds, 2},
                                .attribute_names = {"race", "gender"},
                                .level_names = {races, genders},
                                .kind_names = kind_names,
                                .model_names = one,
                                .outcome_names = refused,
                                .source_names = names,
                                .prompt_names = names};
}

/* As the report asks, each of the three factors at 5 %. */
static const struct lk_claims_options how = {
    .alpha = 0.15, .seed = 1, .n_relabel = 999, .apart = true, .ranges = true, .measured = true};

struct seen {
    int n, any, named, held, intervals, range_held;
};

static struct seen simulate(const struct effects *e, double rate, double planted, int n, uint64_t seed) {
    static double y[S * P];
    struct seen seen = {.n = n};
    const double difference = planted - rate;
    for (int d = 0; d < n; d++) {
        struct lk_claims claims;
        bool any = false;
        begin_set(100000 * seed + (uint64_t)d);
        draw(e, rate, planted, y);
        const struct lk_outcomes o = outcomes_of(y);
        assert_ok(lk_claims_of(&o, &how, &claims));
        assert_true(fabs(claims.family_alpha - 0.05) < 1e-12);
        for (size_t i = 0; i < claims.n_cells; i++) {
            const struct lk_claim_cell *c = &claims.cells[i];
            if (c->family != LK_CLAIM_GROUP || c->attribute != 0 || c->p > 0.05) continue;
            any = true;
            seen.named += c->level == RACE;
        }
        seen.any += any;
        for (size_t i = 0; i < claims.n_measured; i++) {
            const struct lk_claim *x = &claims.measured[i];
            if (x->attribute != 0 || x->level != RACE || x->no_interval) continue;
            seen.intervals++;
            seen.held += x->low <= difference && difference <= x->high;
        }
        const struct lk_crossed_range *range = lk_claims_range(&claims, LK_CLAIM_GROUP, 0, 0, 0);
        assert_non_null(range);
        seen.range_held += range->number.low <= difference + 1e-12 && range->number.high >= difference;
        lk_claims_free(&claims);
    }
    return seen;
}

/* Observed in 2,000 data sets of each, in percent: any group found, the planted group found, its interval holds, that
 * of the largest difference holds. No difference: 5.3, 1.0, 95.9, 95.3; 5.1, 0.8, 95.4, 95.4; 4.7, 0.9, 99.4, 95.7.
 * From 10 to 15 %: 14.8, 12.8, 93.8, 98.5; 25.9, 23.5, 95.2, 99.0. From 1 to 6 %: 92.4, 92.3, 95.7, 93.8. From 10 to 20
 * and 30 %: 49.1, 47.8, 93.6, 97.9; 95.5, 95.3, 94.0, 95.8. Where hardly anybody is refused (3 %), groups borrow the
 * design effect of all, and intervals are too wide rather than too narrow. */
static const struct {
    const char *name;
    const struct effects *effects;
    double rate, planted;
    double power;    /* share of data sets that must find the planted group */
    double coverage; /* most that the interval may hold */
} kinds_of_sets[] = {{"none, 10 %, strong effects", &strong, .10, .10, 0, .97},
                     {"none, 10 %, weak effects", &weak, .10, .10, 0, .97},
                     {"none, 3 %, weak effects", &weak, .03, .03, 0, 1},
                     {"10 -> 15 %, strong effects", &strong, .10, .15, .10, .97},
                     {"10 -> 15 %, weak effects", &weak, .10, .15, .20, .97},
                     {"1 -> 6 %, weak effects", &weak, .01, .06, .80, 1},
                     {"10 -> 20 %, strong effects", &strong, .10, .20, .35, .97},
                     {"10 -> 30 %, strong effects", &strong, .10, .30, .80, .97}};

static void differences(void **state) {
    const int n = test_is_full() ? 2000 : 40;
    (void)state;
    for (size_t k = 0; k < sizeof kinds_of_sets / sizeof *kinds_of_sets; k++) {
        const bool none = kinds_of_sets[k].rate == kinds_of_sets[k].planted;
        const struct seen s =
            simulate(kinds_of_sets[k].effects, kinds_of_sets[k].rate, kinds_of_sets[k].planted, n, k + 1);
        const double level = (double)s.any / n, coverage = (double)s.held / s.intervals;
        print_message("%-28s any group %5.2f %%, the group %5.2f %%, interval holds %5.2f %% of %d, range %5.2f %%\n",
                      kinds_of_sets[k].name, 100 * level, 100.0 * s.named / n, 100 * coverage, s.intervals,
                      100.0 * s.range_held / n);
        assert_true(s.intervals > 0.95 * n);
        if (test_is_full()) {
            if (none && !(level >= 0.03 && level <= 0.07)) fail_msg("level %g", level);
            if (!(coverage >= 0.93 && coverage <= kinds_of_sets[k].coverage)) fail_msg("coverage %g", coverage);
            if (!(s.named >= kinds_of_sets[k].power * n)) fail_msg("power %g", (double)s.named / n);
            if (!(s.range_held >= 0.93 * n)) fail_msg("range %g", (double)s.range_held / n);
        } else { /* of 40, three standard errors */
            assert_true(!none || level <= 0.2);
            assert_true(coverage >= 0.83 && s.range_held >= 0.87 * n);
            assert_true(s.named >= (kinds_of_sets[k].power - 0.15) * n);
        }
    }
}

/* --- selection --- */

/* Drift of one group is 25 %, of the others 10 %, but requests of that group are refused where it would show. */
static const double drift_rate[2] = {.10, .25}, refusal_rate[2] = {.03, .28};
enum { ALIKE = 90 }; /* correlation of what is refused with what would drift, in percent */

static void draw_selection(double *drift, double *refusal) {
    static double eta[S * P], other[S * P];
    static float a[S * P], b[S * P];
    const double rho = ALIKE / 100.0, rest = sqrt(1 - rho * rho);
    draw_latent(&weak, eta), draw_latent(&weak, other);
    normals(a, S * P), normals(b, S * P);
    for (int i = 0; i < S * P; i++) {
        const double x = eta[i] + noise(&weak) * a[i], z = rho * x + rest * (other[i] + noise(&weak) * b[i]);
        const bool group = race[i / P] == RACE;
        drift[i] = x < lk_normal_quantile(drift_rate[group]);
        refusal[i] = z < lk_normal_quantile(refusal_rate[group]);
    }
}

static struct lk_study *selection_study(void) {
    struct lk_text text = {0};
    struct lk_study *study;
    lk_text_add(&text, "{\"schema\": 2, \"study\": \"asked\", \"attributes\": [{\"name\": \"race\", \"levels\": "
                       "[\"r0\", \"r1\", \"r2\", \"r3\", \"r4\", \"r5\", \"r6\"]}], \"sources\": [");
    for (int i = 0; i < S; i++)
        lk_text_add(&text, "%s{\"id\": \"s%d\", \"path\": \"s.png\", \"race\": \"r%d\"}", i ? ", " : "", i, race[i]);
    lk_text_add(&text, "], \"prompts\": [");
    for (int k = 0; k < P; k++)
        lk_text_add(&text, "%s{\"id\": \"p%d\", \"text\": \"p%d\", \"category\": \"k%d\"}", k ? ", " : "", k, k,
                    kinds[k]);
    lk_text_add(&text, "], \"models\": {\"m\": {\"hosted\": {\"images_url\": \"http://h/v1\", \"model\": \"m\"}}}, "
                       "\"experiments\": {\"exp1\": {}}}");
    test_write(test_path("selection.json"), text.bytes, text.n);
    assert_ok(lk_study_parse(&study, text.bytes, text.n, test_path("selection.json")));
    lk_text_free(&text);
    return study;
}

/* The report's own bounds of race change, by group: made, if none had it, if all had it. */
struct bounds {
    int n;
    double of_made[RACES], low[RACES], high[RACES];
};

static enum lk_code take_bounds(void *context, const struct lk_audit_row *row) {
    struct bounds *b = context;
    const char *outcome = lk_audit_text(row, "Outcome");
    if (!outcome || strcmp(outcome, "Race change") != 0) return LK_OK;
    assert_in_range(b->n, 0, RACES - 1);
    assert_true(lk_audit_number(row, "Of what was made", &b->of_made[b->n]) &&
                lk_audit_number(row, "If none had it", &b->low[b->n]) &&
                lk_audit_number(row, "If all had it", &b->high[b->n]));
    b->n++;
    return LK_OK;
}

/* What the report reads of a run, and its query for the attribute. */
static void bounds_of(const struct lk_study *study, const char *query, const double *drift, const double *refusal,
                      struct bounds *out) {
    static const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};
    struct lk_text manifest = {0};
    struct lk_dataset data = {0};
    struct lk_study_job job;
    struct lk_audit *audit;
    for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
        int32_t at;
        int s, p;
        assert_ok(lk_study_job(study, i, &job));
        assert_int_equal(sscanf(job.name, "m_s%d_p%d", &s, &p), 2);
        const bool gone = refusal[s * P + p] > 0;
        lk_text_add(&manifest, "{\"item_id\":\"%s\",\"status\":\"%s\",\"hosted\":{\"outcome\":\"%s\",\"n_sent\":1}}\n",
                    job.name, gone ? "refused" : "success", gone ? "refused" : "made");
        if (gone) continue;
        assert_ok(lk_dataset_add(&data, job.name, (int32_t)i, job.arm, &at));
        for (int axis = 0; axis < LK_N_AXES; axis++) data.items[at].judge[0][axis] = drift[s * P + p] > 0 ? 5 : 1;
    }
    assert_ok(lk_audit_open(&audit, NULL));
    assert_ok(lk_audit_add_study(audit, study));
    assert_ok(lk_audit_add_manifest(audit, manifest.bytes, manifest.n, "manifest.jsonl"));
    assert_ok(lk_audit_add_scores(audit, &data));
    assert_ok(lk_audit_complete(audit, &settings));
    *out = (struct bounds){0};
    assert_ok(lk_audit_each(audit, query, take_bounds, out));
    assert_int_equal(out->n, RACES);
    lk_audit_close(audit);
    lk_dataset_free(&data);
    lk_text_free(&manifest);
}

/* The file of the table, with the attribute's name. */
static char *bounds_query(void) {
    struct lk_text out = {0};
    char *text = test_read("../eval/intake/tables/refusal_bounds.sql", NULL);
    for (char *at = text; *at;) {
        const bool name = !strncmp(at, "$attribute", 10), display = !strncmp(at, "$display", 8);
        lk_text_bytes(&out, name || display ? "race" : at, name || display ? 4 : 1);
        at += name ? 10 : display ? 8 : 1;
    }
    free(text);
    return out.bytes;
}

/* Whether the group is named. */
static bool named(const double *y) {
    const struct lk_outcomes o = outcomes_of(y);
    struct lk_claims claims;
    bool found = false;
    assert_ok(lk_claims_of(&o, &how, &claims));
    for (size_t i = 0; i < claims.n_cells; i++) {
        const struct lk_claim_cell *c = &claims.cells[i];
        found |= c->family == LK_CLAIM_GROUP && c->attribute == 0 && c->level == RACE && c->p <= 0.05;
    }
    lk_claims_free(&claims);
    return found;
}

static void refusals_hide_drift(void **state) {
    static double drift[S * P], refusal[S * P], made[S * P];
    const int n = test_is_full() ? 2000 : 10;
    int n_all = 0, n_made = 0, n_refused = 0, n_held = 0;
    double seen = 0, true_difference = 0;
    (void)state;
    begin_set(0);
    struct lk_study *study = selection_study();
    char *query = bounds_query();
    for (int d = 0; d < n; d++) {
        struct bounds b;
        double truth[RACES] = {0}, others = 0, of_others = 0;
        begin_set(9000000 + (uint64_t)d);
        draw_selection(drift, refusal);
        for (int i = 0; i < S * P; i++) {
            truth[race[i / P]] += drift[i] * RACES / (S * P);
            made[i] = refusal[i] > 0 ? NAN : drift[i];
        }
        bounds_of(study, query, drift, refusal, &b);
        bool held = true;
        for (int r = 0; r < RACES; r++) {
            held &= b.low[r] <= truth[r] + 1e-12 && truth[r] <= b.high[r] + 1e-12;
            others += r == RACE ? 0 : b.of_made[r] / (RACES - 1), of_others += r == RACE ? 0 : truth[r] / (RACES - 1);
        }
        n_held += held;
        seen += (b.of_made[RACE] - others) / n, true_difference += (truth[RACE] - of_others) / n;
        n_all += named(drift), n_made += named(made), n_refused += named(refusal);
    }
    print_message(
        "drift of all %.1f pp, of what was made %.1f pp; the group is named by all in %.1f %%, by what was made "
        "in %.1f %%, by refusals in %.1f %%; bounds hold all seven rates in %d of %d\n",
        100 * true_difference, 100 * seen, 100.0 * n_all / n, 100.0 * n_made / n, 100.0 * n_refused / n, n_held, n);
    assert_int_equal(n_held, n);
    assert_true(true_difference > 0.12 && fabs(seen) < 0.04);
    assert_true(n_made <= 0.15 * n + 1 && n_all >= 0.7 * n && n_refused >= 0.7 * n);
    lk_study_close(study);
    lk_free(query);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(differences), cmocka_unit_test(refusals_hide_drift)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
