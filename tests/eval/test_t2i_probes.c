/* Probes of the text-to-image study: counts by hand, and what scipy, scikit-learn and umap-learn say of the same inputs
 * (tests/golden/generate_t2i_probes.py). */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/stats/models/umap.h"
#include "eval/study/random.h"
#include "eval/t2i/attention.h"
#include "eval/t2i/tokens.h"
#include "tests/common/test.h"

/* Block `name` of the golden file, n numbers (free()). */
static double *golden(const char *name, size_t n) {
    size_t n_bytes;
    char *text = test_read("golden/data/t2i_probes.txt", &n_bytes), head[64];
    snprintf(head, sizeof head, "\n%s %zu\n", name, n);
    char *at = strstr(text, head);
    if (!at) fail_msg("no block \"%s\" of %zu numbers", name, n);
    double *values = malloc(n * sizeof *values);
    at += strlen(head);
    for (size_t i = 0; i < n; i++) values[i] = strtod(at, &at);
    free(text);
    return values;
}

static void read_prompts(const char *text, struct lk_t2i_prompts *prompts) {
    assert_ok(lk_t2i_prompts_read(prompts, text, strlen(text), "prompts.csv"));
}

static void check_pair(const struct lk_t2i_tokens *t, size_t role, size_t token, const int64_t counts[3], double pmi) {
    const struct lk_t2i_together *pair = &t->pairs[role * t->n_tokens + token];
    const int64_t got[] = {pair->n_role, pair->n_token, pair->n_both};
    for (int i = 0; i < 3; i++)
        if (got[i] != counts[i])
            fail_msg("%s, %s: count %d is %lld for %lld", t->phrases.list[role], t->tokens[token], i, (long long)got[i],
                     (long long)counts[i]);
    if (isnan(pmi) ? !isnan(pair->pmi) : !(fabs(pair->pmi - pmi) < 1e-12))
        fail_msg("%s, %s: PMI %g for %g", t->phrases.list[role], t->tokens[token], pair->pmi, pmi);
}

/* Words, not parts of words: no man among many, no male in a female. */
static void counts_by_hand(void **state) {
    (void)state;
    static const char table[] = "prompt_id,role_label,natural_prompt\n"
                                "1,a thief,A photo of a thief in a store.\n"
                                "2,a thief,A photo of a Male thief in a store.\n"
                                "3,a thief,A photo of a female thief in a store.\n"
                                "4,an inmate,A sketch of a male inmate in a cell.\n"
                                "5,an inmate,\"A sketch of a male inmate, a man, in a yard.\"\n"
                                "6,a hacker,Many are in a hackerspace: a hacker.\n";
    static const char *const tokens[] = {"male", "female", "man", "in a store", "old"};
    struct lk_t2i_prompts prompts;
    struct lk_t2i_tokens t;
    struct lk_text csv = {0};
    read_prompts(table, &prompts);
    assert_ok(lk_t2i_tokens_count(&t, &prompts, tokens, 5));
    assert_int_equal(t.n_roles, 3);
    check_pair(&t, 0, 0, (int64_t[]){3, 3, 1}, log2(2.0 / 3.0)); /* 6 * 1 / (3 * 3) */
    check_pair(&t, 0, 1, (int64_t[]){3, 1, 1}, 1);
    check_pair(&t, 0, 2, (int64_t[]){3, 1, 0}, NAN);
    check_pair(&t, 0, 3, (int64_t[]){3, 3, 3}, 1);
    check_pair(&t, 0, 4, (int64_t[]){3, 0, 0}, NAN);
    check_pair(&t, 1, 0, (int64_t[]){2, 3, 2}, 1);
    check_pair(&t, 1, 2, (int64_t[]){2, 1, 1}, log2(3));
    check_pair(&t, 2, 0, (int64_t[]){1, 3, 0}, NAN);
    check_pair(&t, 2, 2, (int64_t[]){1, 1, 0}, NAN);
    assert_ok(lk_t2i_tokens_csv(&t, "", &csv));
    assert_non_null(strstr(csv.bytes, "\npair,thief,female,6,3,1,1,1,,,,"));
    assert_non_null(strstr(csv.bytes, "\npair,thief,man,6,3,1,0,,,,"));
    assert_null(strstr(csv.bytes, "spearman,"));
    lk_text_free(&csv);
    lk_t2i_tokens_free(&t);
    assert_fails(lk_t2i_tokens_count(&t, &prompts, (const char *const[]){"man", "Man"}, 2), LK_E_INPUT, "twice");
    assert_fails(lk_t2i_tokens_count(&t, &prompts, (const char *const[]){""}, 1), LK_E_INPUT, "expected words");
    lk_t2i_prompts_free(&prompts);
    read_prompts("prompt_id,natural_prompt\n1,A thief.\n", &prompts);
    assert_fails(lk_t2i_tokens_count(&t, &prompts, NULL, 0), LK_E_INPUT, "role_label");
    lk_t2i_prompts_free(&prompts);
}

/* A word of a role may be a token too: then both are one phrase, and their cosine is 1. */
static void equal_phrases_are_alike(void **state) {
    (void)state;
    static const double means[] = {0.3, -2, 0.1, 3, 1, 7, -0.3, 2, -0.1};
    struct lk_t2i_prompts prompts;
    struct lk_t2i_tokens t;
    read_prompts("prompt_id,role_label,natural_prompt\n1,a thief,A thief.\n2,a hacker,A hacker.\n", &prompts);
    assert_ok(lk_t2i_tokens_count(&t, &prompts, (const char *const[]){"other", "thief"}, 2));
    assert_int_equal(t.phrases.n, 3);
    assert_ok(lk_t2i_tokens_cosines(&t, means, 3));
    assert_true(fabs(t.pairs[1].cosine - 1) < 1e-15);
    assert_true(fabs(t.pairs[0].cosine + 1) < 1e-15);
    assert_true(fabs(t.pairs[3].cosine - (0.9 - 2 + 0.7) / sqrt(59 * 4.1)) < 1e-15);
    lk_t2i_tokens_free(&t);
    lk_t2i_prompts_free(&prompts);
}

enum { ROLES = 12, PROMPTS = 5 };

static void correlations_against_scipy(void **state) {
    (void)state;
    struct lk_text table = {0}, spd = {0}, csv = {0};
    struct lk_t2i_prompts prompts;
    struct lk_t2i_tokens t;
    double means[(ROLES + 1) * 3], *expected = golden("spearman", 2 * LK_N_T2I_MEASURES);
    lk_text_add(&table, "prompt_id,role_label,natural_prompt\n");
    lk_text_add(&spd, "Model,Prompt,Attribute,Arm,n,SPD\n");
    for (int i = 0; i < ROLES * PROMPTS; i++) {
        const char *role = lk_t2i_roles[i / PROMPTS].label;
        lk_text_add(&table, "p%d,%s,A %sperson: %s.\n", i, role, i % PROMPTS < (i / PROMPTS * 7 + 3) % 6 ? "male " : "",
                    role);
        lk_text_add(&spd, "m,p%d %s,Perceived gender,Base,9,%.17g\n", i, role,
                    (i / PROMPTS * 37 + i % PROMPTS * 11) % 41 / 20.5);
        lk_text_add(&spd, "m,p%d %s,Perceived gender,Rewrite,9,%d\n", i, role, i);
    }
    for (int i = 0; i < (ROLES + 1) * 3; i++) means[i] = ((i / 3 * 29 + i % 3 * 17) % 23 - 11) / 7.0;
    read_prompts(table.bytes, &prompts);
    assert_ok(lk_t2i_tokens_count(&t, &prompts, (const char *const[]){"male"}, 1));
    assert_ok(lk_t2i_tokens_cosines(&t, means, 3));
    assert_ok(lk_t2i_outcomes_read(&t.outcomes, spd.bytes, spd.n, "t2i_spd.csv"));
    assert_ok(lk_t2i_tokens_correlate(&t));
    assert_int_equal(t.outcomes.names.n, 1);
    for (int m = 0; m < LK_N_T2I_MEASURES; m++) {
        if (!(fabs(t.tests[m].statistic - expected[2 * m]) < 1e-10 && fabs(t.tests[m].p - expected[2 * m + 1]) < 1e-8))
            fail_msg("measure %d: rho %.17g, p %.17g for %.17g, %.17g", m, t.tests[m].statistic, t.tests[m].p,
                     expected[2 * m], expected[2 * m + 1]);
        assert_true(t.adjusted[m] >= t.tests[m].p && t.adjusted[m] <= 1);
    }
    assert_int_equal(t.tests[LK_T2I_PMI].n, 10); /* two roles never meet the word */
    assert_ok(lk_t2i_tokens_csv(&t, "some encoder", &csv));
    assert_non_null(strstr(csv.bytes, "\nspearman,,male,,,,,,,some encoder,m,Perceived gender,SPD,cosine,12,"));
    static const char unknown[] = "Model,Prompt,Attribute,Arm,SPD\nm,p99 a thief,Perceived gender,Base,1\n";
    assert_fails(lk_t2i_outcomes_read(&t.outcomes, unknown, strlen(unknown), "t2i_spd.csv"), LK_E_INPUT,
                 "line 2, column 2");
    assert_fails(lk_t2i_outcomes_read(&t.outcomes, "Model,SPD\n", 10, "t2i_spd.csv"), LK_E_INPUT, "Prompt");
    free(expected);
    lk_text_free(&table);
    lk_text_free(&spd);
    lk_text_free(&csv);
    lk_t2i_tokens_free(&t);
    lk_t2i_prompts_free(&prompts);
}

enum { ROWS = 60, FEATURES = 5, NEIGHBOURS = 10 };

/* rows() of the generator. */
static void make_rows(double rows[ROWS * FEATURES]) {
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < FEATURES; k++)
            rows[i * FEATURES + k] = (i * 131 + k * 57 + i * i * (k + 3)) % 101 / 100.0 + (i / 20 == k ? 6 : 0);
}

static void neighbours_as_umap_learn(void **state) {
    (void)state;
    double rows[ROWS * FEATURES], *kernel = golden("knn", 2 * ROWS), *graph = golden("graph", ROWS * ROWS);
    double *got = calloc(ROWS * ROWS, sizeof *got);
    struct lk_neighbours nb;
    struct lk_umap_edge *edges;
    size_t n_edges;
    make_rows(rows);
    assert_ok(lk_neighbours_find(rows, ROWS, FEATURES, NEIGHBOURS, &nb));
    for (int i = 0; i < ROWS; i++)
        if (!(fabs(nb.sigma[i] - kernel[i]) <= 1e-5 && fabs(nb.rho[i] - kernel[ROWS + i]) <= 1e-5))
            fail_msg("row %d: sigma %g, rho %g for %g, %g", i, nb.sigma[i], nb.rho[i], kernel[i], kernel[ROWS + i]);
    assert_ok(lk_umap_graph(&nb, &edges, &n_edges));
    for (size_t e = 0; e < n_edges; e++) {
        double *cell = &got[edges[e].from * ROWS + edges[e].to];
        assert_true(*cell == 0 && edges[e].weight > 0); /* each once */
        *cell = edges[e].weight;
    }
    for (int i = 0; i < ROWS * ROWS; i++)
        if (!(fabs(got[i] - graph[i]) <= 1e-5))
            fail_msg("edge %d to %d: %g for %g", i / ROWS, i % ROWS, got[i], graph[i]);
    lk_free(edges);
    lk_neighbours_free(&nb);
    free(kernel);
    free(graph);
    free(got);
}

static void trust_as_scikit_learn(void **state) {
    (void)state;
    static const int k[] = {5, 10, 20};
    double rows[ROWS * FEATURES], points[2 * ROWS], *expected = golden("trust", 3);
    struct lk_number trust;
    make_rows(rows);
    for (int i = 0; i < ROWS; i++) {
        points[2 * i] = (i * 17 + i / 20 * 40) % 89 / 10.0 + i * i / 977.0;
        points[2 * i + 1] = i * 7 % 31 / 10.0 + i * i * i / 99991.0;
    }
    for (int c = 0; c < 3; c++) {
        assert_ok(lk_trustworthiness(rows, ROWS, FEATURES, points, k[c], &trust));
        if (trust.undefined || !(fabs(trust.value - expected[c]) < 1e-12))
            fail_msg("%d neighbours: %.17g for %.17g", k[c], trust.value, expected[c]);
    }
    assert_ok(lk_trustworthiness(rows, ROWS, FEATURES, points, ROWS / 2, &trust));
    assert_non_null(trust.undefined);
    free(expected);
}

enum { POINTS = 150, WIDE = 20 };

/* Three clusters that were planted are there in the projection, near and apart. */
static void clusters_stay_apart(void **state) {
    (void)state;
    static double rows[POINTS * WIDE], points[2][2 * POINTS], other[2 * POINTS];
    struct lk_stream stream;
    struct lk_number trust;
    double inside = 0, apart = INFINITY;
    lk_stream_named(&stream, 7, "clusters");
    for (int i = 0; i < POINTS * WIDE; i++) {
        double sum = 0; /* about normal */
        for (int k = 0; k < 12; k++) sum += (double)lk_stream_bounded(&stream, 1000) / 1000;
        rows[i] = sum - 6 + (i % WIDE == i / WIDE % 3 ? 8 : 0);
    }
    assert_ok(lk_umap(rows, POINTS, WIDE, 15, 42, points[0]));
    assert_ok(lk_umap(rows, POINTS, WIDE, 15, 42, points[1]));
    assert_ok(lk_umap(rows, POINTS, WIDE, 15, 43, other));
    assert_memory_equal(points[0], points[1], sizeof points[0]);
    assert_memory_not_equal(points[0], other, sizeof other);
    assert_ok(lk_trustworthiness(rows, POINTS, WIDE, points[0], 15, &trust));
    if (!(trust.value >= 0.9)) fail_msg("trustworthiness %g", trust.value);
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j < i; j++) {
            const double d = hypot(points[0][2 * i] - points[0][2 * j], points[0][2 * i + 1] - points[0][2 * j + 1]);
            if (i % 3 == j % 3)
                inside = fmax(inside, d);
            else
                apart = fmin(apart, d);
        }
    if (!(apart > 0.5)) fail_msg("clusters %g wide lie %g apart", inside, apart);
}

static void refusals(void **state) {
    (void)state;
    double rows[ROWS * FEATURES], points[2 * ROWS];
    make_rows(rows);
    assert_fails(lk_umap(rows, 3, FEATURES, 2, 1, points), LK_E_INPUT, "expected 4 to 20000 rows, got 3");
    assert_fails(lk_umap(rows, ROWS, FEATURES, ROWS, 1, points), LK_E_INPUT, "neighbours");
    assert_fails(lk_umap(rows, ROWS, FEATURES, 1, 1, points), LK_E_INPUT, "neighbours");
    rows[7] = NAN;
    assert_fails(lk_umap(rows, ROWS, FEATURES, 5, 1, points), LK_E_INPUT, "umap: features");
    for (int i = 0; i < ROWS * FEATURES; i++) rows[i] = 3; /* one place for all: no direction is found, and no NaN */
    assert_ok(lk_umap(rows, ROWS, FEATURES, 5, 1, points));
    for (int i = 0; i < 2 * ROWS; i++) assert_true(isfinite(points[i]));
}

/* Four prompts, of which one has no picture: means over pictures and heads, and orders that can be seen. */
static void attention_by_hand(void **state) {
    (void)state;
    struct lk_t2i_prompts prompts;
    struct lk_t2i_attention t;
    struct lk_text csv = {0};
    static const char layers[1][LK_T2I_LAYER] = {"double.0"};
    static const int first[2] = {0, 2};
    static const double pictures[4][2] = {{0.1, 0.3}, {0.3, 0.5}, {0.5, 0.1}, {0.25, 0.75}};
    static const size_t of[4] = {0, 0, 1, 3};
    static const char spd[] = "Model,Prompt,Attribute,Arm,SPD\nm,a,Perceived gender,Base,0.1\n"
                              "m,b,Perceived gender,Base,0.5\nm,c,Perceived gender,Base,0.7\n"
                              "m,d,Perceived gender,Base,0.9\n";
    read_prompts("prompt_id,role_label,natural_prompt\na,a thief,A\nb,a thief,B\nc,a thief,C\nd,a thief,D\n", &prompts);
    assert_ok(lk_t2i_attention_init(&t, &prompts));
    assert_ok(lk_t2i_outcomes_read(&t.outcomes, spd, sizeof spd - 1, "t2i_spd.csv"));
    for (int i = 0; i < 4; i++) {
        struct lk_t2i_seen a = {.n_tokens = 2, .n_layers = 1, .first = first, .layers = layers};
        const double shares[2] = {pictures[i][0] / 2, pictures[i][1] / 2};
        a.weights = pictures[i], a.shares = shares;
        assert_ok(lk_t2i_attention_add(&t, of[i], &a));
    }
    assert_ok(lk_t2i_attention_csv(&t, &csv));
    static const char *const lines[] = {
        "\nprompt,a,,,2,2,0.29999999999999999,0.14999999999999999,", /* (0.1 + 0.3 + 0.3 + 0.5) / 4 */
        "\nprompt,b,,,1,2,0.29999999999999999,",
        "\nprompt,d,,,1,2,0.5,0.25,,,,,,,,,correlational: says nothing about causes\r\n",
        "\nhead,,double.0,0,4,,0.31666666666666", /* (0.2 + 0.5 + 0.25) / 3 */
        "\nhead,,double.0,1,4,,0.41666666666666", /* (0.4 + 0.1 + 0.75) / 3 */
        "\nspearman,,double.0,0,,,,,m,Perceived gender,SPD,3,0.5,",
        "\nspearman,,double.0,1,,,,,m,Perceived gender,SPD,3,0.5,"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(csv.bytes, lines[i])) fail_msg("%s not in\n%s", lines[i], csv.bytes);
    assert_null(strstr(csv.bytes, "\nprompt,c"));
    assert_true(strstr(csv.bytes, "\nspearman,,,,") < strstr(csv.bytes, "\nspearman,,double.0"));
    lk_text_free(&csv);
    lk_t2i_attention_free(&t);
    lk_t2i_prompts_free(&prompts);
}

/* Layers with more heads count no more than others. */
static void attention_of_uneven_layers(void **state) {
    (void)state;
    struct lk_t2i_prompts prompts;
    struct lk_t2i_attention t;
    struct lk_text csv = {0};
    static const char layers[2][LK_T2I_LAYER] = {"mid.attentions.0.block.0", "up.0.attentions.0.block.10"};
    static const int first[3] = {0, 1, 4};
    static const double weights[4] = {0.5, 0.125, 0.25, 0.375}, shares[4] = {0.75, 0.25, 0.25, 0.25};
    const struct lk_t2i_seen seen = {1, 2, layers, first, weights, shares};
    read_prompts("prompt_id,role_label,natural_prompt\na,a thief,A\n", &prompts);
    assert_ok(lk_t2i_attention_init(&t, &prompts));
    assert_ok(lk_t2i_attention_add(&t, 0, &seen));
    assert_ok(lk_t2i_attention_csv(&t, &csv));
    assert_non_null(strstr(csv.bytes, "\nprompt,a,,,1,1,0.375,0.5,"));
    assert_non_null(strstr(csv.bytes, "\nhead,,mid.attentions.0.block.0,0,1,,0.5,0.75,"));
    assert_non_null(strstr(csv.bytes, "\nhead,,up.0.attentions.0.block.10,2,1,,0.375,0.25,"));
    lk_text_free(&csv);
    lk_t2i_attention_free(&t);
    lk_t2i_prompts_free(&prompts);
}

static char *csv_of(const struct lk_t2i_prompts *prompts, enum lk_t2i_columns which) {
    struct lk_text text = {0};
    assert_ok(lk_t2i_prompts_csv(prompts, which, &text));
    return text.bytes;
}

static void prompts_by_every_way_are_the_same(void **state) {
    (void)state;
    struct lk_t2i_prompts built, read;
    assert_ok(lk_t2i_prompts_build(&built, NULL));
    assert_int_equal(built.n, 108);
    char *printed = csv_of(&built, LK_T2I_PRINTED_COLUMNS);
    assert_ok(lk_t2i_prompts_mitigate(&built, 2));
    char *all = csv_of(&built, LK_T2I_ALL_COLUMNS), *companion = csv_of(&built, LK_T2I_COMPANION_COLUMNS);
    for (int way = 0; way < 3; way++) { /* at run time, from the companion, from the table */
        const char *text = way == 2 ? all : printed;
        assert_ok(lk_t2i_prompts_read(&read, text, strlen(text), "prompts.csv"));
        if (way == 1) assert_ok(lk_t2i_prompts_join(&read, companion, strlen(companion), "companion.csv"));
        assert_ok(lk_t2i_prompts_mitigate(&read, way ? 1 : 2)); /* the other cue has nothing left to fill */
        char *again = csv_of(&read, LK_T2I_ALL_COLUMNS);
        assert_string_equal(again, all);
        lk_free(again);
        lk_t2i_prompts_free(&read);
    }
    for (size_t i = 0; i < built.n; i++) { /* no rewritten prompt names the role */
        const char *const *cells = built.list[i].cells;
        char role[64];
        snprintf(role, sizeof role, "%s in", strchr(cells[LK_T2I_ROLE_LABEL], ' '));
        assert_non_null(strstr(cells[LK_T2I_NATURAL_PROMPT], role));
        assert_null(strstr(cells[LK_T2I_REWRITE_PROMPT], role));
        assert_non_null(strstr(cells[LK_T2I_DIVERSITY_PROMPT], "), balanced demographics, avoid stereotypes."));
    }
    assert_string_equal(built.list[17].cells[LK_T2I_PROMPT_ID], "18");
    lk_free(printed);
    lk_free(all);
    lk_free(companion);
    lk_t2i_prompts_free(&built);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prompts_by_every_way_are_the_same),
        cmocka_unit_test(counts_by_hand),
        cmocka_unit_test(equal_phrases_are_alike),
        cmocka_unit_test(correlations_against_scipy),
        cmocka_unit_test(attention_by_hand),
        cmocka_unit_test(attention_of_uneven_layers),
        cmocka_unit_test(neighbours_as_umap_learn),
        cmocka_unit_test(trust_as_scikit_learn),
        cmocka_unit_test(clusters_stay_apart),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
