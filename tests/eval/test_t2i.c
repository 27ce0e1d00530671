/* The text-to-image study: its metrics against numpy, scipy and statsmodels, effects that were planted, prompts by
 * every way, and results that depend neither on threads nor on the order of lines. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/study/random.h"
#include "eval/t2i/post_filter.h"
#include "eval/t2i/rebalance.h"
#include "eval/t2i/report.h"
#include "tests/common/html_check.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

#define HEADER "file_path,prompt_id,model_tag,seed,cfg,face_found,gender,gender_conf,race,arm\n"

struct study {
    struct lk_t2i_images images;
    struct lk_t2i_metrics metrics;
};

static void study_free(struct study *study) {
    lk_t2i_metrics_free(&study->metrics);
    lk_t2i_images_free(&study->images);
}

static struct lk_t2i_options uniform_options(int n_replicates, int n_threads) {
    struct lk_t2i_options options = {.how = {42, n_replicates, 0.95, NULL, n_threads}, .alpha = 0.05};
    assert_ok(lk_t2i_distribution_uniform(&options.target));
    options.reference = options.target;
    return options;
}

static enum lk_code compute(struct study *study, const char *labels, const struct lk_t2i_options *options) {
    study->metrics = (struct lk_t2i_metrics){0};
    lk_t2i_images_init(&study->images);
    enum lk_code rc = lk_t2i_images_labels(&study->images, labels, strlen(labels), "labels.csv");
    if (!rc) rc = lk_t2i_images_finish(&study->images);
    if (!rc) rc = lk_t2i_metrics_compute(&study->metrics, &study->images, options);
    if (rc) study_free(study);
    return rc;
}

/* As labels() of tests/golden/generate_t2i.py. */
static void golden_labels(struct lk_text *out, uint64_t *checksum) {
    struct lk_stream stream;
    lk_stream_named(&stream, 42, "t2i/labels");
    *checksum = STATS_CHECKSUM_START;
    lk_text_add(out, HEADER);
    for (int i = 0; i < 2 * 2 * 3 * 12; i++) {
        int arm = i / 12 % 3, seed = i % 12;
        const uint64_t of[] = {12, 10, 8, 3 + 2 * (uint64_t)arm};
        double draws[4];
        for (int d = 0; d < 4; d++) draws[d] = (double)lk_stream_bounded(&stream, of[d]);
        *checksum = stats_checksum(*checksum, draws, 4);
        if (draws[0] == 0) continue;
        lk_text_add(out, "%d.png,p%d,m%d,%d,6.5,", i, i / 36 % 2, i / 72, seed);
        if (draws[1] == 0)
            lk_text_add(out, "false,,,,%s\n", lk_t2i_arm_key(arm));
        else
            lk_text_add(out, "true,%s,,%s,%s\n", lk_t2i_level_name(LK_T2I_GENDER, draws[2] >= 6 - 2 * arm),
                        lk_t2i_level_name(LK_T2I_RACE, (int)draws[3]), lk_t2i_arm_key(arm));
    }
    assert_int_equal(out->rc, LK_OK);
}

static double or_nan(const struct lk_number *number) { return number->undefined ? NAN : number->value; }

static void check_cell(const struct lk_t2i_cell *cell, int row, const double *expected) {
    const double got[] = {or_nan(&cell->spd), cell->percentiles.low, cell->percentiles.high,
                          or_nan(&cell->amplification), cell->fit.statistic};
    for (int i = 0; i < 5; i++) stats_assert_value("cell", row, got[i], expected[i]);
    stats_assert_p("cell p", row, cell->fit.p, expected[5]);
    stats_assert_p("cell adjusted p", row, cell->adjusted, expected[6]);
}

static void check_change(const struct lk_t2i_change *change, int row, const double *expected) {
    const struct lk_spd_change *c = &change->change;
    const double got[] = {or_nan(&c->base), or_nan(&c->other), or_nan(&c->change), change->percentiles.low,
                          change->percentiles.high};
    for (int i = 0; i < 5; i++) stats_assert_value("change", row, got[i], expected[i]);
    stats_assert_p("change p", row, c->test.p, expected[5]);
    stats_assert_p("change adjusted p", row, change->adjusted, expected[6]);
    stats_assert_value("h", row, or_nan(&change->h[0]), expected[7]);
    stats_assert_value("h low", row, change->h[0].low, expected[8]);
    stats_assert_value("h high", row, change->h[0].high, expected[9]);
}

static void metrics_against_the_peers(void **state) {
    (void)state;
    static const char target[] =
        "{\"gender\": {\"Male\": 0.5, \"Female\": 0.5}, \"race\": {\"White\": 0.25, \"Black\": "
        "0.25, \"EastAsian\": 0.125, \"SoutheastAsian\": 0.125, \"Indian\": 0.0625, "
        "\"MiddleEastern\": 0.125, \"Latino\": 0.0625}}";
    struct lk_t2i_options options = uniform_options(99, 2);
    struct stats_golden golden;
    struct lk_text labels = {0};
    struct study study;
    uint64_t checksum;
    int row = 0;
    assert_ok(lk_t2i_distribution_read(&options.target, target, sizeof target - 1, "target"));
    stats_golden_open(&golden, "t2i", 10);
    golden_labels(&labels, &checksum);
    assert_ok(compute(&study, labels.bytes, &options));
    for (size_t i = 0; i < study.metrics.n_cells; i++)
        if (!lk_t2i_pooled(&study.metrics.cells[i].scope)) {
            check_cell(&study.metrics.cells[i], row, stats_row(&golden, row));
            row++;
        }
    assert_int_equal(row, 24);
    for (size_t i = 0; i < study.metrics.n_changes; i++)
        if (!lk_t2i_pooled(&study.metrics.changes[i].scope)) {
            check_change(&study.metrics.changes[i], row, stats_row(&golden, row));
            row++;
        }
    assert_int_equal(row, golden.n_cases);
    study_free(&study);
    lk_text_free(&labels);
    stats_golden_finish(&golden, checksum);
}

enum { SEEDS = 30 };

/* Both arms of one prompt; of 64 pictures so many show a man. */
static void plant(struct lk_text *out, int data_set, uint64_t base, uint64_t other) {
    struct lk_stream stream;
    lk_stream_numbered(&stream, 7, "plant|", (uint64_t)data_set);
    lk_text_add(out, HEADER);
    for (int s = 0; s < SEEDS; s++)
        for (int arm = 0; arm < 2; arm++)
            lk_text_add(out, "%d-%d.png,p,m,%d,4,true,%s,,,%s\n", s, arm, s,
                        lk_stream_bounded(&stream, 64) < (arm ? other : base) ? "Male" : "Female",
                        arm ? "diversity" : "none");
}

/* The expected SPD against equal shares of SEEDS pictures, each of a man with probability p. */
static double expected_spd(double p) {
    double sum = 0;
    for (int k = 0; k <= SEEDS; k++) {
        double log_choose = lgamma(SEEDS + 1) - lgamma(k + 1) - lgamma(SEEDS - k + 1);
        sum += exp(log_choose + k * log(p) + (SEEDS - k) * log(1 - p)) * 2 * fabs((double)k / SEEDS - 0.5);
    }
    return sum;
}

static const struct lk_t2i_change *planted_change(const struct lk_t2i_metrics *m) {
    for (size_t i = 0; i < m->n_changes; i++)
        if (!lk_t2i_pooled(&m->changes[i].scope) && m->changes[i].attribute == LK_T2I_GENDER) return &m->changes[i];
    fail_msg("no change of the gender");
    return NULL;
}

/* Means over n data sets of the change, and how often it is found at 5 %, and lies within its interval. */
static void planted(int n, uint64_t base, uint64_t other, double truth, double *mean, int *found, int *covered) {
    struct lk_t2i_options options = uniform_options(59, 1);
    *mean = *found = *covered = 0;
    for (int d = 0; d < n; d++) {
        struct lk_text labels = {0};
        struct study study;
        plant(&labels, d, base, other);
        assert_ok(compute(&study, labels.bytes, &options));
        const struct lk_spd_change *change = &planted_change(&study.metrics)->change;
        *mean += change->change.value / n;
        *found += change->test.p <= 0.05;
        *covered += change->change.low <= truth && truth <= change->change.high;
        study_free(&study);
        lk_text_free(&labels);
    }
}

static void a_known_change_is_recovered(void **state) {
    (void)state;
    double expected = expected_spd(38 / 64.0) - expected_spd(58 / 64.0), mean;
    int found, covered;
    planted(100, 58, 38, 2 * (6.0 - 26.0) / 64, &mean, &found, &covered);
    /* a share's standard deviation is at most 0.09, of an SPD twice that, of two arms' difference over 100: 0.026 */
    assert_true(fabs(mean - expected) < 3 * 0.026);
    assert_true(expected < -0.55 && found >= 55 && covered >= 88);
}

static void no_change_is_found_at_the_nominal_rate(void **state) {
    (void)state;
    double mean;
    int found, covered;
    planted(300, 45, 45, 0, &mean, &found, &covered);
    /* 5 % of 300 and three standard deviations; p is conservative, since few values of the SPD can occur */
    assert_true(found <= 15 + 12 && found >= 2);
    assert_true(fabs(mean) < 3 * 0.26 / sqrt(300.0));
    assert_true(covered >= 270);
}

/* All tables, one behind the other. */
static char *tables_of(const struct lk_t2i_metrics *metrics) {
    struct lk_text text = {0};
    for (int t = 0; t < LK_N_T2I_TABLES; t++) {
        struct lk_table *table;
        assert_ok(lk_t2i_table(metrics, (enum lk_t2i_table)t, &table));
        lk_table_csv(table, &text);
        lk_table_free(table);
    }
    assert_int_equal(text.rc, LK_OK);
    return text.bytes;
}

static void threads_and_order_do_not_matter(void **state) {
    (void)state;
    struct lk_text labels = {0}, turned = {0};
    uint64_t ignored;
    golden_labels(&labels, &ignored);
    lk_text_add(&turned, HEADER);
    for (int model = 0; model < 2; model++) /* the first lines of a model and prompt number them */
        for (int prompt = 0; prompt < 2; prompt++) {
            char part[32], *end = labels.bytes + labels.n;
            snprintf(part, sizeof part, ",p%d,m%d,", prompt, model);
            for (char *line = end; line > labels.bytes + strlen(HEADER); end = line) {
                for (line = end - 1; line[-1] != '\n';) line--;
                char *at = strstr(line, part);
                if (at && at < end) lk_text_bytes(&turned, line, (size_t)(end - line));
            }
        }
    assert_int_equal(turned.n, labels.n);
    char *first = NULL;
    for (int threads = 1; threads <= 5; threads++) {
        struct lk_t2i_options options = uniform_options(50, threads < 5 ? threads : 1);
        struct study study;
        assert_ok(compute(&study, threads < 5 ? labels.bytes : turned.bytes, &options));
        char *tables = tables_of(&study.metrics);
        if (first) assert_string_equal(tables, first);
        if (first)
            lk_free(tables);
        else
            first = tables;
        study_free(&study);
    }
    lk_free(first);
    lk_text_free(&labels);
    lk_text_free(&turned);
}

static void the_page_is_well_formed(void **state) {
    (void)state;
    struct lk_t2i_options options = uniform_options(20, 2);
    struct lk_text labels = {0};
    struct study study;
    uint64_t ignored;
    golden_labels(&labels, &ignored);
    for (int s = 0; s < 12; s++) /* a second CFG */
        lk_text_add(&labels, "high%d.png,p0,m0,%d,9,true,Male,0.8,White,none\n", s, s);
    assert_ok(compute(&study, labels.bytes, &options));
    assert_true(study.metrics.n_cfg > 0);
    struct lk_t2i_report_options report = {"<Depicted> & \"perceived\"", "", "", "", false};
    assert_ok(lk_t2i_report_write(&study.metrics, &report, test_path("t2i")));
    size_t n;
    char *page = test_read(test_path("t2i/report.html"), &n);
    struct html_counts counts;
    html_check(page, &counts);
    assert_true(counts.n_svgs >= 2 * (2 * 2 + 2 + 2)); /* each in two widths: heat maps, forests, CFG */
    assert_non_null(strstr(page, "Content advisory"));
    assert_non_null(strstr(page, "erceived labels"));
    free(page);
    study_free(&study);
    lk_text_free(&labels);
}

/* 40 men of 50 in the base, 26 after a rewrite, 40 with a safety prompt: what the page begins with. */
static void sentences_say_who_and_what_helps(void **state) {
    (void)state;
    struct lk_t2i_options options = uniform_options(200, 1);
    struct lk_text labels = {0};
    struct study study;
    lk_text_add(&labels, HEADER);
    for (int s = 0; s < 50; s++) {
        lk_text_add(&labels, "a%d.png,p,m,%d,4,true,%s,0.9,,none\n", s, s, s < 40 ? "Male" : "Female");
        lk_text_add(&labels, "b%d.png,p,m,%d,4,true,%s,0.9,,rewrite\n", s, s, s < 26 ? "Male" : "Female");
        lk_text_add(&labels, "c%d.png,p,m,%d,4,true,%s,0.9,,safety\n", s, s, s < 10 ? "Female" : "Male");
    }
    assert_ok(compute(&study, labels.bytes, &options));
    assert_ok(lk_t2i_report_write(&study.metrics, &(struct lk_t2i_report_options){"T", "", "", "", false},
                                  test_path("t2i-findings")));
    size_t n;
    char *text = test_read(test_path("t2i-findings/findings.txt"), &n);
    assert_non_null(strstr(text, "1 of 1 comparisons with the target find other shares; 1 of 2 of a mitigation"));
    assert_non_null(strstr(text, "m, all prompts: gender, Male 80.0% of 50 pictures, target 50.0%; distance from the "
                                 "target (SPD) 0.60 ["));
    assert_non_null(strstr(text, "m, all prompts: gender, Rewrite brings pictures nearer to the target: SPD -0.56 ["));
    assert_null(strstr(text, "Safety"));
    free(text);
    study_free(&study);
    lk_text_free(&labels);
}

static void cfg_and_confidence(void **state) {
    (void)state;
    struct lk_t2i_options options = uniform_options(50, 1);
    struct lk_text labels = {0};
    struct study study;
    lk_text_add(&labels, HEADER);
    for (int s = 0; s < 20; s++) { /* balanced at 4, men only at 9; confident women are few */
        lk_text_add(&labels, "a%d.png,p,m,%d,4,true,%s,%s,,none\n", s, s, s % 2 ? "Male" : "Female",
                    s % 2 ? "0.9" : "0.6");
        lk_text_add(&labels, "b%d.png,p,m,%d,9,true,Male,0.9,,none\n", s, s);
        if (s < 10) lk_text_add(&labels, "c%d.png,p,m,%d,4,true,Male,,,safety\n", s, s);
    }
    assert_ok(compute(&study, labels.bytes, &options));
    const struct lk_t2i_metrics *m = &study.metrics;
    assert_true(m->reference_cfg[0] == 4);
    for (size_t i = 0; i < m->n_cfg; i++) {
        const struct lk_t2i_cfg *row = &m->cfg[i];
        if (row->arm != LK_T2I_NONE) continue;
        assert_int_equal(row->reference, row->cfg == 4);
        assert_int_equal(row->safe, row->cfg == 4);
        if (row->cfg == 9) assert_true(row->change.value == 1 && row->spd.value == 1);
        if (row->cfg == 4) assert_true(!row->change.undefined && row->change.value == 0);
    }
    for (size_t i = 0; i < m->n_sensitivity; i++) {
        const struct lk_t2i_sensitivity *row = &m->sensitivity[i];
        if (row->arm == LK_T2I_SAFETY)
            assert_int_equal(row->n, row->threshold ? 0 : 10); /* no confidence is none that is high enough */
        else
            assert_int_equal(row->n, row->threshold < 2 ? 20 : 10);
    }
    assert_int_equal(planted_change(m)->change.change.n, 10);
    assert_int_equal(planted_change(m)->n_unpaired, 10);
    study_free(&study);
    lk_text_free(&labels);
}

static void use_nothing(void *context, const struct lk_figure *figure) {
    (void)context;
    (void)figure;
}

static enum lk_code all_calls(void) {
    static const char labels[] = HEADER "a,1,m,0,4,true,Male,0.9,,none\nb,1,m,1,4,true,Female,0.9,,none\n"
                                        "c,1,m,0,4,true,Male,0.9,,safety\nd,1,m,0,9,true,Male,0.9,,none\n"
                                        "e,99,m,0,9,true,Male,0.9,,none\n";
    static const char log[] = "prompt_id,model_tag,seed,cfg,file_path\n1,m,0,4,a\n1,m,1,4,b\n1,m,0,4,c\n1,m,0,9,d\n";
    static const char style[] = "x";
    const char *const styles[] = {style};
    struct lk_t2i_options options = {.how = {42, 2, 0.95, NULL, 1}};
    struct lk_t2i_prompts prompts;
    struct lk_t2i_images images;
    struct lk_t2i_metrics metrics = {0};
    struct lk_t2i_post_filtered filtered = {0};
    struct lk_text text = {0};
    struct lk_table *table = NULL;
    bool kept[8] = {false};
    lk_t2i_images_init(&images);
    LK_TRY(lk_t2i_distribution_uniform(&options.target));
    options.reference = options.target;
    LK_TRY(lk_t2i_prompts_build(&prompts, &(struct lk_t2i_design){styles, 1, styles, 1}));
    images.prompts = &prompts;
    enum lk_code rc = lk_t2i_prompts_mitigate(&prompts, 1);
    if (!rc) rc = lk_t2i_prompts_csv(&prompts, LK_T2I_ALL_COLUMNS, &text);
    if (!rc) rc = lk_t2i_images_log(&images, log, sizeof log - 1, "log.csv");
    if (!rc) rc = lk_t2i_images_labels(&images, labels, sizeof labels - 1, "labels.csv");
    if (!rc) rc = lk_t2i_images_finish(&images);
    if (!rc) rc = lk_t2i_metrics_compute(&metrics, &images, &options);
    if (!rc) rc = lk_t2i_figures_heat(&metrics, use_nothing, NULL);
    if (!rc) rc = lk_t2i_figures_forest(&metrics, use_nothing, NULL);
    if (!rc) rc = lk_t2i_figures_cfg(&metrics, use_nothing, NULL);
    if (!rc) rc = lk_t2i_table(&metrics, LK_T2I_TABLE_CHANGES, &table);
    struct lk_t2i_post_filter how = {LK_T2I_GENDER, 0.05, 42};
    if (!rc) rc = lk_t2i_post_filter(&images, &options.target, &how, kept, &filtered);
    if (!rc) rc = lk_t2i_post_filter_csv(&images, kept, 0, labels, sizeof labels - 1, &text);
    lk_rejects_free(&filtered.failed);
    lk_table_free(table);
    lk_text_free(&text);
    lk_t2i_metrics_free(&metrics);
    lk_t2i_images_free(&images);
    lk_t2i_prompts_free(&prompts);
    return rc;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    test_every_allocation(all_calls, 200);
}

/* Wikipedia's example of the method: 100,000 votes, 10 seats. Then ties, and every way to share few pictures. */
static void quotas_by_largest_remainder(void **state) {
    (void)state;
    const double votes[] = {0.47, 0.16, 0.158, 0.12, 0.061, 0.031},
                 equal[] = {1 / 7., 1 / 7., 1 / 7., 1 / 7., 1 / 7., 1 / 7., 1 / 7.};
    const int64_t seats[] = {5, 2, 1, 1, 1, 0};
    int64_t quotas[7];
    lk_quotas(votes, 6, 10, quotas);
    assert_memory_equal(quotas, seats, sizeof seats);
    lk_quotas(equal, 7, 10, quotas);
    for (int g = 0; g < 7; g++) assert_int_equal(quotas[g], g < 3 ? 2 : 1);
    for (int c = 0; c < 200; c++) { /* no other way is nearer; of equal ones the first has more */
        struct lk_stream s = stats_stream("quotas", c);
        const int a = 1 + (int)lk_stream_bounded(&s, 9), b = 1 + (int)lk_stream_bounded(&s, 9),
                  n = 1 + (int)lk_stream_bounded(&s, 12), whole = a + b + 1 + (int)lk_stream_bounded(&s, 9);
        const double target[] = {a / (double)whole, b / (double)whole, (whole - a - b) / (double)whole};
        int64_t best = INT64_MAX, at[3] = {0};
        for (int x = n; x >= 0; x--)
            for (int y = n - x; y >= 0; y--) {
                const int64_t d[] = {x * whole - n * a, y * whole - n * b, (n - x - y) * whole - n * (whole - a - b)};
                const int64_t distance = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                if (distance >= best) continue;
                best = distance;
                at[0] = x, at[1] = y, at[2] = n - x - y;
            }
        lk_quotas(target, 3, n, quotas);
        assert_memory_equal(quotas, at, sizeof at);
    }
}

/* By hand: three of each of two wanted of five, in the order of seeds, until both are full. */
static void quotas_are_filled_in_the_order_of_seeds(void **state) {
    (void)state;
    static const char labels[] = HEADER "e.png,p,m,4,1,true,Female,,,\n" /* seeds come in any order */
                                        "a.png,p,m,0,1,true,Male,,,\n"
                                        "b.png,p,m,1,1,true,Male,,,\n"
                                        "c.png,p,m,2,1,false,,,,\n"
                                        "d.png,p,m,3,1,true,Male,,,\n"
                                        "x.png,p,m,0,1,true,Female,,,safety\n"
                                        "f.png,p,m,5,1,true,Male,,,\n"
                                        "g.png,p,m,6,1,true,Female,,,\n"
                                        "h.png,p,m,7,1,true,Female,,,\n"
                                        "q.png,q,m,0,1,true,Male,,,\n"
                                        "y.png,q,m,1,1,true,Female,,,safety\n";
    struct lk_t2i_images images;
    struct lk_t2i_distribution target;
    struct lk_t2i_quota quota;
    bool kept[11] = {false};
    lk_t2i_images_init(&images);
    assert_ok(lk_t2i_distribution_uniform(&target));
    assert_ok(lk_t2i_images_labels(&images, labels, sizeof labels - 1, "labels.csv"));
    assert_ok(lk_t2i_images_finish(&images));
    assert_ok(lk_t2i_quota_fill(&images, "p", &target, LK_T2I_GENDER, 5, kept, &quota));
    int64_t n = 0;
    for (size_t i = 0; i < images.n; i++) {
        const bool wanted = images.list[i].prompt == 0 && images.list[i].arm == LK_T2I_NONE &&
                            strchr("01346", '0' + (int)images.list[i].seed) != NULL;
        assert_int_equal(kept[i], wanted);
        n += kept[i];
    }
    assert_int_equal(n, 5);
    assert_true(quota.n_kept == 5 && !quota.n_open);
    assert_true(quota.counts[0] + quota.counts[1] == 5 && llabs(quota.counts[0] - quota.counts[1]) == 1);
    assert_true(fabs(quota.distance - 0.1) < 1e-15);
    assert_ok(lk_t2i_quota_fill(&images, "q", &target, LK_T2I_GENDER, 5, kept, &quota));
    assert_true(quota.n_kept == 1 && quota.n_open == 4 && fabs(quota.distance - 0.5) < 1e-15);
    assert_ok(lk_t2i_quota_fill(&images, "none", &target, LK_T2I_GENDER, 5, kept, &quota));
    assert_true(!quota.n_kept && quota.n_open == 5 && isnan(quota.distance));
    target.has[LK_T2I_RACE] = false;
    assert_fails(lk_t2i_quota_fill(&images, "p", &target, LK_T2I_RACE, 5, kept, &quota), LK_E_INPUT, "race");
    lk_t2i_images_free(&images);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_against_the_peers),
        cmocka_unit_test(quotas_by_largest_remainder),
        cmocka_unit_test(quotas_are_filled_in_the_order_of_seeds),
        cmocka_unit_test(a_known_change_is_recovered),
        cmocka_unit_test(no_change_is_found_at_the_nominal_rate),
        cmocka_unit_test(threads_and_order_do_not_matter),
        cmocka_unit_test(the_page_is_well_formed),
        cmocka_unit_test(cfg_and_confidence),
        cmocka_unit_test(sentences_say_who_and_what_helps),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
