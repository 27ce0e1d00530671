/* Who is left out under every quality-control policy, and the tables of human answers with and without them, against a
 * computation that shares no code with ours (golden/generate_policies.py). */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/human/quality.h"
#include "eval/human/ratings.h"
#include "tests/common/report_raters.h"
#include "tests/common/stats_cases.h"
#include "tests/common/test.h"

/* Lines "item", "rater" and "rating" into the dataset. */
static void read_item(char *line) {
    char id[96];
    int judge[LK_N_AXES];
    int32_t at;
    assert_int_equal(
        sscanf(line, "item %95s %d %d %d %d %d", id, &judge[0], &judge[1], &judge[2], &judge[3], &judge[4]), 6);
    assert_ok(lk_dataset_item(&data, id, strlen(id), &at));
    for (int a = 0; a < LK_N_AXES; a++) {
        data.items[at].score[a] = (uint8_t)judge[a];
        data.items[at].judge[0][a] = data.items[at].judge[1][a] = (uint8_t)judge[a];
    }
}

static void read_rater(char *line) {
    char name[16];
    int submitted, code, sessions, pilot;
    int32_t at;
    assert_int_equal(sscanf(line, "rater %15s %d %d %d %d", name, &submitted, &code, &sessions, &pilot), 5);
    assert_ok(lk_dataset_rater(&data, name, strlen(name), &at));
    struct lk_rater *rater = &data.raters[at];
    rater->submitted = submitted, rater->code_valid = code, rater->n_sessions = sessions, rater->is_pilot = pilot;
}

static void read_rating(char *line) {
    char name[16], id[96];
    int checked, right, score[LK_N_AXES], ms;
    assert_int_equal(sscanf(line, "rating %15s %95s %d %d %d %d %d %d %d %d", name, id, &checked, &right, &score[0],
                            &score[1], &score[2], &score[3], &score[4], &ms),
                     10);
    struct lk_rating *rating = rate(name, id, 0);
    rating->is_gold = rating->gold_keyed = checked;
    rating->gold_right = right;
    rating->n_asked = LK_N_AXES;
    rating->duration_ms = 0;
    for (int a = 0; a < LK_N_AXES; a++) {
        has_levels(rating, a, score[a]);
        rating->question_ms[a] = score[a] ? ms : -1;
        rating->duration_ms += score[a] ? ms : 0;
        rating->n_skipped += !score[a];
    }
}

static void expect_excluded(const struct lk_quality_report *quality, char *names) {
    size_t n = 0;
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), n++) {
        int32_t at;
        assert_ok(lk_dataset_rater(&data, name, strlen(name), &at));
        if (!quality->raters[at].excluded) fail_msg("%s is not excluded", name);
    }
    assert_int_equal(quality->n_excluded, n);
}

static void expect_rules(const struct lk_quality_report *quality, char *rules) {
    size_t at = 0;
    for (char *of = strtok(rules, " "); of; of = strtok(NULL, " "), at++) {
        uint32_t bits = 0;
        for (const char *q = strchr(of, 'Q'); q; q = strchr(q + 1, 'Q')) bits |= 1u << (strtol(q + 1, NULL, 10) - 1);
        if (quality->raters[at].rules != bits) fail_msg("rater %zu: %s, got %x", at, of, quality->raters[at].rules);
    }
    assert_int_equal(at, quality->n_raters);
}

static const struct lk_table_row *row_of(const struct lk_table *table, const char *first, const char *second,
                                         int *from) {
    for (int r = *from; r < table->n_rows; r++)
        if (!strcmp(table->rows[r].cells[0].text, first) &&
            (!second || !strcmp(table->rows[r].cells[1].text, second))) {
            *from = r + 1;
            return &table->rows[r];
        }
    fail_msg("%s has no row %s, %s", table->id, first, second);
    return NULL;
}

static void expect_number(const struct lk_cell *cell, const char *what, const char *expected) {
    if (!strcmp(expected, "-")) {
        if (cell->kind != LK_CELL_NONE) fail_msg("%s: expected none, got %s", what, cell->text);
    } else {
        assert_int_equal(cell->kind, LK_CELL_NUMBER);
        stats_assert_close(what, 0, cell->value, strtod(expected, NULL), 1e-10, 1e-12);
    }
}

static void underscores(char *text) {
    for (; *text; text++)
        if (*text == '_') *text = ' ';
}

/* A line "value", "p" or "rate" of the policy that the report is of; returns whether it was one. */
static bool expect_line(const struct lk_report *report, const char *policy, const char *line) {
    char kind[8], name[32], result[64], of[64], with[40], without[40];
    int k[2], n[2], from = 0;
    if (sscanf(line, "%7s %31s %63s %63s %39s %39s", kind, name, result, of, with, without) == 6 &&
        strcmp(kind, "rate") != 0 && !strcmp(name, policy)) {
        underscores(result), underscores(of);
        bool is_p = !strcmp(kind, "p"), is_test = is_p || !strcmp(result, "Kruskal–Wallis H") ||
                                                  !strcmp(result, "Mann–Whitney U") || !strcmp(result, "Wilcoxon T");
        const struct lk_table *table = table_of(report, is_test ? "t_qc_tests" : "t_qc_results");
        const struct lk_cell *cells = row_of(table, result, of, &from)->cells;
        expect_number(&cells[is_test ? 4 + is_p : 2], result, with);
        if (is_test) cells = row_of(table, result, of, &from)->cells;
        expect_number(&cells[is_test ? 4 + is_p : 3], result, without);
        return true;
    }
    if (sscanf(line, "rate %31s %63s %d %d %d %d", name, of, &k[0], &n[0], &k[1], &n[1]) != 6 || strcmp(name, policy))
        return false;
    underscores(of);
    const struct lk_cell *cells =
        row_of(table_of(report, "t_qc_results"), "Rate by the raters' majority", of, &from)->cells;
    for (int i = 0; i < 2; i++)
        if (cells[2 + i].n != n[i] || cells[2 + i].count != k[i])
            fail_msg("%s, %s: expected %d of %d, got %d of %d", policy, of, k[i], n[i], (int)cells[2 + i].count,
                     (int)cells[2 + i].n);
    return true;
}

static void tables_under_every_policy(void **state) {
    (void)state;
    size_t n;
    char *text = test_read("golden/data/policies.txt", &n), *end;
    int n_compared = 0;
    for (char *line = text; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        if (!strncmp(line, "item ", 5)) read_item(line);
        if (!strncmp(line, "rater ", 6)) read_rater(line);
        if (!strncmp(line, "rating ", 7)) read_rating(line);
    }
    lk_dataset_pair(&data);
    lk_ratings_count(&data);
    for (int policy = LK_POLICY_ANY; policy <= LK_POLICY_COMPLETION; policy++) {
        struct lk_quality_options how;
        struct lk_quality_report quality;
        struct lk_report *report;
        char excluded[64];
        lk_quality_defaults(LK_PROTOCOL_000, &how);
        how.policy = policy;
        assert_ok(lk_quality_check(&data, &how, &quality));
        lk_quality_exclude(&data, &quality, true);
        assert_ok(lk_combine(&data));
        options.quality = &quality;
        options.policy = policy;
        assert_ok(lk_report_build(&report, &data, &options));
        int length = snprintf(excluded, sizeof excluded, "excluded %s", lk_quality_policy_name(policy));
        for (char *line = text; line < text + n; line += strlen(line) + 1) {
            char *copy = strdup(line);
            if (!strncmp(copy, excluded, (size_t)length)) expect_excluded(&quality, copy + length);
            if (!strncmp(copy, "rules ", 6)) expect_rules(&quality, copy + 6);
            n_compared += expect_line(report, lk_quality_policy_name(policy), copy);
            free(copy);
        }
        lk_report_free(report);
        lk_quality_report_free(&quality);
    }
    assert_int_equal(n_compared, 4 * (1 + (9 + 3) * LK_N_AXES + 8));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_under_every_policy, raters_begin, raters_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
