/* The summary's sentences on data whose truth is known: nothing is claimed of data without effects, and a planted
 * effect is named. Data sets and seeds are fixed, so that a run cannot fail by chance; with LIKENESS_TEST_FULL there
 * are 200 of each kind. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/human/quality.h"
#include "eval/report/build.h"
#include "eval/report/findings/findings.h"
#include "tests/common/planted.h"
#include "tests/common/simulated_gpu.h"
#include "tests/common/test.h"

enum kind { NOTHING, RACE, GENDER, SKIN_TONE, MITIGATION, N_KINDS };
static const char *const names[N_KINDS] = {"nothing", "race", "gender", "skin tone", "mitigation"};
static const double equal_skin[5] = {0.05, 0.15, 0.6, 0.15, 0.05}, lighter_skin[5] = {0.03, 0.1, 0.6, 0.19, 0.08};

static struct lk_dataset data;

static int set_up(void **state) {
    (void)state;
    lk_dataset_init(&data);
    assert_ok(planted_items(&data));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lk_dataset_free(&data);
    return 0;
}

/* Race change in a quarter of the outputs; two of a source correlate by 0.09. By race from 10 % to 45 %; 16 points more
 * in women; skin lighter in 27 % and darker in 13 %; the feature prompt repairs a third. */
static struct planted design_of(enum kind kind) {
    static const double by_race[LK_N_RACES] = {0.10, 0.25, 0.20, 0.25, 0.45, 0.30, 0.15};
    struct planted design = {.shared = 0.3, .judge_error = {0.1, 0.2}, .noise = 0.3, .skin = equal_skin};
    for (int r = 0; r < LK_N_RACES; r++) {
        design.soft_erasure[r] = 0.2;
        design.repaired[r] = kind == MITIGATION ? 0.33 : 0;
        for (int m = 0; m < LK_N_MODELS; m++)
            design.race_drift[r][m] = kind == RACE ? by_race[r] : kind == GENDER ? 0.18 : 0.25;
    }
    if (kind == GENDER) design.female_drift = 0.16;
    if (kind == SKIN_TONE) design.skin = lighter_skin;
    return design;
}

/* What the sentences must say, and whether they claim anything else. */
static bool is_right(enum kind kind, const struct lk_findings *findings,
                     char sentences[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES], int n) {
    static const char *const claims[N_KINDS] = {NULL, "All models: race change, Indian ",
                                                "All models: race change, Female ",
                                                "Skin is lighter than the source's in ", "With the feature prompt "};
    bool nothing = !strncmp(sentences[0], "Nothing found: ", 15);
    assert_true(n >= 3 && n <= LK_FINDING_SENTENCES);
    assert_int_equal(nothing, findings->n_found == 0);
    if (kind == NOTHING) return nothing;
    bool named = false;
    for (int i = 1; i < n; i++) named |= !strncmp(sentences[i], claims[kind], strlen(claims[kind]));
    return named && !nothing;
}

/* Observed in 200 data sets each: right of nothing 193 (by the raters of 1,000 outputs 196), race 194, gender 192, skin
 * tone 200, mitigation 200; nothing else is claimed beside the planted in 194, 180, 191 and 190. */
static void sentences_are_right(void **state) {
    (void)state;
    struct lk_report_options options;
    lk_report_options_init(&options);
    options.n_bootstrap = 200;
    int n_sets = test_is_full() ? 200 : 8;
    for (enum kind kind = NOTHING; kind < N_KINDS; kind++) {
        struct planted design = design_of(kind);
        int right[2] = {0}, alone = 0;
        for (int set = 0; set < n_sets; set++) {
            assert_ok(planted_scores(&data, &design, 33 + kind, (uint64_t)set));
            for (int source = LK_SCORES_JUDGE; source <= (kind == NOTHING ? LK_SCORES_HUMAN : LK_SCORES_JUDGE);
                 source++) {
                struct lk_findings findings;
                char sentences[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES];
                assert_ok(lk_findings_of(&data, &options, (enum lk_score_source)source, &findings));
                right[source] += is_right(kind, &findings, sentences, lk_findings_sentences(&findings, sentences));
                alone += source == LK_SCORES_JUDGE && findings.n_found == (kind != NOTHING);
                for (int i = 0; i < LK_N_FINDINGS; i++) {
                    const struct lk_number *effect = &findings.list[i].effect;
                    assert_true(effect->low <= effect->value + 1e-12 && effect->value - 1e-12 <= effect->high);
                }
                lk_findings_free(&findings);
            }
        }
        printf("%-12s planted: right in %d of %d; nothing else in %d\n", names[kind], right[LK_SCORES_JUDGE], n_sets,
               alone);
        if (kind == NOTHING) printf("by the raters of 1,000 outputs: right in %d\n", right[LK_SCORES_HUMAN]);
        assert_true(right[LK_SCORES_JUDGE] >= 0.95 * n_sets - 1);
        assert_true(alone >= 0.85 * n_sets);
        if (kind == NOTHING) assert_true(right[LK_SCORES_HUMAN] >= 0.85 * n_sets);
    }
}

/* Equal rates are nobody's highest, and a study without raters says nothing of them. */
static void equal_rates_and_empty_sources(void **state) {
    (void)state;
    struct lk_report_options options;
    struct lk_findings findings;
    char sentences[LK_FINDING_SENTENCES][LK_SENTENCE_BYTES];
    lk_report_options_init(&options);
    for (size_t i = 0; i < data.n_items; i++) {
        memset(data.items[i].score, 3, LK_N_AXES);
        memset(data.items[i].judge, 3, sizeof data.items[i].judge);
        memset(data.items[i].human_majority, 0, LK_N_AXES);
    }
    assert_ok(lk_findings_of(&data, &options, LK_SCORES_JUDGE, &findings));
    assert_int_equal(findings.n_found, 0);
    int n = lk_findings_sentences(&findings, sentences);
    for (int i = 0; i < n; i++) assert_null(strstr(sentences[i], "highest"));
    for (int i = 0; i < LK_N_FINDINGS; i++)
        assert_true(findings.list[i].highest == -1 && findings.list[i].lowest == -1);
    lk_findings_free(&findings);
    assert_ok(lk_findings_of(&data, &options, LK_SCORES_HUMAN, &findings));
    assert_int_equal(lk_findings_sentences(&findings, sentences), 0);
    lk_findings_free(&findings);
}

/* Largest differences of groups and kinds of prompts are the claims' own, for people and prompts like these. */
static void largest_differences_are_of_people_and_prompts(void **state) {
    (void)state;
    struct lk_report_options options;
    struct planted design = design_of(RACE);
    struct lk_findings findings;
    lk_report_options_init(&options);
    options.n_bootstrap = 20;
    assert_ok(planted_scores(&data, &design, 9, 0));
    assert_ok(lk_findings_of(&data, &options, LK_SCORES_JUDGE, &findings));
    for (int i = 0; i < LK_N_FINDING_FACTORS * LK_N_OUTCOMES; i++) {
        const int factor = i % LK_N_FINDING_FACTORS;
        const bool kinds = lk_finding_factors[factor] == LK_FACTOR_CATEGORY;
        const struct lk_crossed_range *range = lk_claims_range(&findings.claims, kinds ? LK_CLAIM_KIND : LK_CLAIM_GROUP,
                                                               kinds ? 0 : factor, i / LK_N_FINDING_FACTORS, -1);
        if (lk_finding_factors[factor] == LK_FACTOR_MODEL) continue;
        assert_non_null(range);
        assert_memory_equal(&findings.list[i].effect, &range->number, sizeof range->number);
    }
    lk_findings_free(&findings);
}

/* Judges or raters alone have a summary of their own, and the page begins with it. */
static void each_source_has_its_summary(void **state) {
    (void)state;
    struct lk_report_options options;
    struct planted design = design_of(RACE);
    lk_report_options_init(&options);
    options.n_bootstrap = 20;
    for (int human = 0; human < 2; human++) {
        struct lk_report *report;
        assert_ok(planted_scores(&data, &design, 9, 0));
        for (size_t i = 0; i < data.n_items; i++) {
            memset(human ? data.items[i].score : data.items[i].human_majority, 0, LK_N_AXES);
            for (int a = 0; a < LK_N_AXES && !human; a++) data.items[i].human_mean[a] = NAN;
            if (human) memset(data.items[i].judge, 0, sizeof data.items[i].judge);
        }
        assert_ok(lk_report_build(&report, &data, &options));
        assert_int_equal(lk_report_table(report, "findings") != NULL, !human);
        assert_int_equal(lk_report_table(report, "findings_raters") != NULL, human);
        const struct lk_table *table = lk_report_table(report, human ? "findings_raters" : "findings");
        assert_int_equal(table->n_rows, LK_N_FINDINGS);
        assert_ok(lk_report_write(report, test_path("findings")));
        size_t n;
        char *page = test_read(test_path("findings/report.html"), &n);
        const char *lead = strstr(page, "<p class=\"lead\">");
        assert_non_null(lead);
        assert_true(lead < strstr(page, "<table"));
        assert_non_null(strstr(lead, human ? " in the raters&#39; answers" : " in the judges&#39; scores"));
        /* what has no data is named, with the reason, and not shown; what has, is */
        assert_null(strstr(page, ">no data<"));
        assert_non_null(strstr(page, " tables are not shown for want of data: this run has no "));
        assert_int_equal(strstr(page, "this run has no judges&#39; scores, ") != NULL, human);
        assert_non_null(strstr(page, human ? "<dt>Valid N</dt><dd>1,000<" : "<dt>Valid N</dt><dd>5,540<"));
        assert_int_equal(strstr(page, "<table id=\"t_round\"") != NULL, !human);
        assert_non_null(strstr(page, "<table id=\"table_14\""));
        assert_int_equal(strstr(page, "scores are averaged") != NULL, !human);
        assert_int_equal(strstr(page, ", judges&#39; ensemble</th>") != NULL, !human);
        assert_int_equal(strstr(page, ", human mean</th>") != NULL, human);
        if (human) {
            assert_int_equal(lk_report_table(report, "t_000_15_4")->n_columns, 2);
            assert_null(strstr(page, "VLM (N="));
            assert_null(strstr(page, "VLM − human"));
        }
        free(page);
        if (!human) { /* the scale of a heat map is that of its values */
            char *svg = test_read(test_path("findings/tables/f_race_drift_by_race_prompt_data.svg"), &n);
            assert_null(strstr(svg, ">100.0%<"));
            free(svg);
        }
        lk_report_free(report);
    }
}

/* All that is printed of a report's tables and figures. */
static char *all_tables(const struct lk_report_options *options, const char *of_raters, struct lk_text *table) {
    struct lk_report *report;
    struct lk_text text = {0};
    assert_ok(lk_report_build(&report, &data, options));
    for (size_t i = 0; i < report->n_entries; i++) {
        const struct lk_report_entry *entry = &report->entries[i];
        lk_table_csv(entry->table ? entry->table : entry->figure->data, &text);
        lk_table_json(entry->table ? entry->table : entry->figure->data, &text);
        if (entry->table) lk_table_html(entry->table, &text);
        if (entry->figure) lk_text_bytes(&text, entry->figure->wide.bytes, entry->figure->wide.n);
    }
    lk_table_csv(lk_report_table(report, of_raters), table);
    lk_report_free(report);
    assert_ok(text.rc);
    assert_ok(table->rc);
    return text.bytes;
}

/* With a rater's exclusion and without, every table is made, and is the same when it is made again. */
static void tables_of_both_versions_twice(void **state) {
    (void)state;
    struct lk_rater_quality raters[PLANTED_RATERS] = {{.excluded = true}};
    struct lk_quality_report quality = {.raters = raters, .n_raters = PLANTED_RATERS, .n_excluded = 1};
    struct planted design = design_of(RACE);
    struct lk_report_options options;
    struct lk_text of_raters[2] = {{0}, {0}};
    lk_report_options_init(&options);
    options.n_bootstrap = 20;
    options.quality = &quality;
    assert_ok(planted_scores(&data, &design, 9, 0));
    for (int all = 0; all < 2; all++) {
        struct lk_text again = {0};
        lk_quality_exclude(&data, &quality, !all);
        assert_ok(lk_combine(&data));
        char *first = all_tables(&options, "t_rel", &of_raters[all]);
        char *second = all_tables(&options, "t_rel", &again);
        assert_true(strlen(first) > 1000000);
        assert_string_equal(first, second);
        lk_free(first);
        lk_free(second);
        lk_text_free(&again);
    }
    assert_string_not_equal(of_raters[0].bytes, of_raters[1].bytes);
    for (int all = 0; all < 2; all++) lk_text_free(&of_raters[all]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_are_right),
        cmocka_unit_test(equal_rates_and_empty_sources),
        cmocka_unit_test(largest_differences_are_of_people_and_prompts),
        cmocka_unit_test(each_source_has_its_summary),
        cmocka_unit_test(tables_of_both_versions_twice),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
