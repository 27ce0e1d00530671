#include "tests/common/report_sample.h"

#include <stdio.h>
#include <string.h>

#include "engine/image/image.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

static const char *const races[] = {"White",  "Black",          "East Asian", "Southeast Asian",
                                    "Indian", "Middle Eastern", "Latino"};
static const char *const models[] = {"FLUX.2-dev", "Step1X-Edit", "Qwen-Edit"};
static const char *const axes[] = {"Edit success", "Skin tone", "Race drift", "Gender drift", "Age drift"};

static const int changed[7][3] = {{3, 5, 8},    {40, 21, 23}, {23, 15, 18}, {36, 19, 21},
                                  {44, 24, 28}, {43, 22, 25}, {36, 20, 22}};

static struct lk_figure_value rate(int64_t k, int64_t n) {
    double p = (double)k / (double)n, half = 0.02 + 0.1 * p;
    return (struct lk_figure_value){.value = p, .low = p > half ? p - half : 0.0001, .high = p + half, .k = k, .n = n};
}

static struct lk_figure_value number(double value, double half) {
    return (struct lk_figure_value){
        .value = value, .low = half > 0 ? value - half : 0, .high = half > 0 ? value + half : 0};
}

static enum lk_code bars(struct lk_figure *out) {
    struct lk_figure_value values[21];
    for (int i = 0; i < 21; i++) values[i] = rate(changed[i / 3][i % 3], 240);
    values[20].none = true;
    return lk_figure_bars(
        &(struct lk_figure_bars){
            .head = {"f_rate", "Race change by race and model",
                     "Horizontal bars of the share of outputs with race drift of 3 or more, for seven races and three "
                     "models. White is lowest for every model.",
                     "Whiskers: 95% intervals (invented numbers)."},
            .unit = LK_UNIT_PERCENT,
            .value_name = "outputs with race drift of 3 or more",
            .group_name = "Race",
            .groups = races,
            .n_groups = 7,
            .series = models,
            .n_series = 3,
            .values = values},
        out);
}

static enum lk_code heat(struct lk_figure *out) {
    static char names[20][8];
    const char *prompts[20];
    struct lk_figure_value values[140];
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "%c-%02d", i < 10 ? 'O' : 'V', i % 10 + 1);
        prompts[i] = names[i];
    }
    for (int i = 0; i < 140; i++) values[i] = number(1.2 + 0.02 * (double)((i * 37) % 140), 0);
    values[17].none = true;
    return lk_figure_heat(
        &(struct lk_figure_heat){.head = {"f_heat", "Mean race drift by prompt and race",
                                          "A grid of 20 prompts by seven races; darker cells have a higher mean score.",
                                          NULL},
                                 .decimals = 2,
                                 .value_name = "mean score",
                                 .row_name = "Prompt",
                                 .rows = prompts,
                                 .n_rows = 20,
                                 .columns = races,
                                 .n_columns = 7,
                                 .values = values,
                                 .low = 1,
                                 .high = 5},
        out);
}

static enum lk_code forest(struct lk_figure *out) {
    const struct lk_figure_forest_row rows[] = {
        {"All models", {.none = true}, true},
        {"Black against White", number(0.154, 0.05), false},
        {"Middle Eastern against White", number(0.167, 0.052), false},
        {"East Asian against White", number(0.083, 0.041), false},
        {"FLUX.2-dev", {.none = true}, true},
        {"Female against Male", number(-0.012, 0.031), false},
        {"70+ against 20s", {.none = true}, false},
    };
    return lk_figure_forest(&(struct lk_figure_forest){.head = {"f_forest", "Disparities in race change",
                                                                "Differences of rates with intervals beside zero.",
                                                                "Intervals are clustered by source."},
                                                       .unit = LK_UNIT_POINTS,
                                                       .value_name = "difference in percentage points",
                                                       .row_name = "Comparison",
                                                       .rows = rows,
                                                       .n_rows = LENGTH(rows),
                                                       .below = "less change",
                                                       .above = "more change"},
                            out);
}

static enum lk_code likert(struct lk_figure *out) {
    const int64_t counts[5][5] = {
        {12, 31, 88, 240, 129}, {3, 22, 160, 215, 100}, {310, 120, 40, 20, 10}, {400, 61, 20, 11, 8}, {0, 0, 0, 0, 0}};
    return lk_figure_likert(&(struct lk_figure_likert){.head = {"f_likert", "Answers of the raters by axis",
                                                                "Stacked shares of the five answers around the middle.",
                                                                "Half of the middle answer lies on each side."},
                                                       .row_name = "Axis",
                                                       .rows = axes,
                                                       .n_rows = 5,
                                                       .levels = {"1", "2", "3", "4", "5"},
                                                       .counts = counts},
                            out);
}

static enum lk_code shift(struct lk_figure *out) {
    const double before[] = {1.47, 2.89, 1.97, 2.32, 2.71, 2.21, 2.54},
                 after[] = {1.41, 1.41, 1.41, 1.44, 1.48, 1.42, 1.46};
    struct lk_figure_value from[7], to[7];
    for (int i = 0; i < 7; i++) {
        from[i] = number(before[i], 0.14);
        to[i] = number(after[i], 0.09);
    }
    to[3].none = true;
    return lk_figure_shift(
        &(struct lk_figure_shift){.head = {"f_shift", "Race drift before and after the feature prompt",
                                           "Two points per race, the second lower in each.", NULL},
                                  .decimals = 2,
                                  .value_name = "mean race drift, 1 to 5",
                                  .row_name = "Race",
                                  .from_name = "Baseline",
                                  .to_name = "With feature prompt",
                                  .rows = races,
                                  .n_rows = 7,
                                  .from = from,
                                  .to = to,
                                  .has_reference = true,
                                  .reference = 1,
                                  .reference_name = "no drift"},
        out);
}

enum lk_code sample_figure(int i, struct lk_figure *out) {
    enum lk_code (*const all[SAMPLE_FIGURES])(struct lk_figure *) = {bars, heat, forest, likert, shift};
    return all[i](out);
}

enum lk_code sample_pictures(const char *folder) {
    for (int i = 0; i < 12; i++) {
        struct lk_image image;
        char path[4096];
        LK_TRY(lk_image_new(&image, 120, 120, 3));
        for (int y = 0; y < 120; y++)
            for (int x = 0; x < 120; x++) {
                int dx = x - 60, dy = y - 52;
                bool face = dx * dx * 10 + dy * dy * 6 < 9000;
                uint8_t *p = image.pixels + 3 * (120 * y + x);
                p[0] = (uint8_t)(face ? 230 - 13 * i : 90 + x / 2);
                p[1] = (uint8_t)(face ? 190 - 12 * i : 110 + y / 3);
                p[2] = (uint8_t)(face ? 160 - 11 * i : 140);
                if (face && dy > -14 && dy < -6 && (dx * dx > 100 && dx * dx < 330)) p[0] = p[1] = p[2] = 30;
            }
        snprintf(path, sizeof path, "%s/portrait_%d.png", folder, i);
        enum lk_code rc = lk_png_write(path, &image, NULL, 0);
        lk_image_free(&image);
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code table_by_race(struct lk_page *page) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "by_race",
                        "Race change by race and model. Disparity is the largest minus the smallest.", "Race"));
    for (int m = 0; m < 3; m++) lk_table_column(table, models[m], LK_ALIGN_RIGHT);
    for (int r = 0; r < 7; r++) {
        lk_table_row(table);
        lk_table_text(table, "%s", races[r]);
        for (int m = 0; m < 3; m++) {
            struct lk_figure_value v = rate(changed[r][m], 240);
            lk_table_percent(table, changed[r][m], 240);
            lk_table_interval(table, v.low, v.high);
            if (r == 4) lk_table_link(table, m == 0 ? "flux/Indian" : "others");
        }
    }
    lk_table_row(table);
    lk_table_text(table, "Disparity");
    lk_table_points(table, 41.0 / 240);
    lk_table_bold(table);
    lk_table_points(table, 19.0 / 240);
    lk_table_none(table, "one group has no valid items");
    lk_table_note(table, "Valid N is 240 per cell. Intervals: 95%%, clustered by source (invented numbers).");
    enum lk_code rc = lk_table_finish(table);
    if (!rc) lk_page_table(page, table);
    lk_table_free(table);
    return rc;
}

static enum lk_code wide_table(struct lk_page *page) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "tests", "Tests of the human answers", NULL));
    static const char *const columns[] = {"Test", "Axis", "Groups", "n", "Statistic", "p", "Adjusted p", "Effect"};
    for (int c = 0; c < LENGTH(columns); c++)
        lk_table_column(table, columns[c], c < 3 ? LK_ALIGN_LEFT : LK_ALIGN_RIGHT);
    for (int t = 0; t < 3; t++) {
        static const char *const names[] = {"Kruskal-Wallis H", "Mann-Whitney U", "Wilcoxon signed-rank"};
        lk_table_heading(table, names[t]);
        for (int a = 0; a < 5; a++) {
            lk_table_row(table);
            lk_table_text(table, "%s", names[t]);
            lk_table_text(table, "%s", axes[a]);
            lk_table_text(table, "%s", t ? "White against all others, in the order of the questionnaire" : "7 races");
            lk_table_count(table, 1000 + 500 * t);
            lk_table_fixed(table, 24.7 - 3.3 * a + 1000 * t, 1);
            lk_table_p(table, a ? 0.0123 * a : 0.00002);
            lk_table_p(table, a ? 0.02 * a : 0.0001);
            if (a == 3)
                lk_table_none(table, "all values equal");
            else
                lk_table_signed(table, 0.3 - 0.1 * a, 2);
        }
    }
    enum lk_code rc = lk_table_finish(table);
    if (!rc) lk_page_table(page, table);
    lk_table_free(table);
    return rc;
}

static enum lk_code empty_table(struct lk_page *page) {
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "empty", "Filters of quality control", "Rule|>Excluded"));
    enum lk_code rc = lk_table_finish(table);
    if (!rc) lk_page_table(page, table);
    lk_table_free(table);
    return rc;
}

static void lists(struct lk_page *page, const char *folder) {
    char names[12][32], files[12][4200];
    for (int i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "portrait_%d.png", i);
        snprintf(files[i], sizeof files[i], "%s/portrait_%d.png", folder, i);
    }
    struct lk_page_image tiles[24];
    for (int i = 0; i < 24; i++)
        tiles[i] = (struct lk_page_image){.file = files[i % 12],
                                          .link = names[i % 12],
                                          .alt = "Edited portrait",
                                          .width = 120,
                                          .height = 120,
                                          .face = {20, 15, 80, 80}};
    lk_page_section(page, "mosaic", "Mosaic of outputs");
    lk_page_images(page, "Twenty-four outputs drawn at random.", 8, tiles, 24);
    int32_t numbers[8];
    for (int i = 0; i < 8; i++) {
        char id[64];
        const struct lk_page_score scores[] = {
            {"Edit success", "5 of 5"}, {"Skin tone", "4 of 5"}, {"Race drift", "3 of 5"}};
        snprintf(id, sizeof id, "flux_50s_male_indian_O-%02d.edited", i + 1);
        numbers[i] = lk_page_item(
            page, &(struct lk_page_item){
                      .id = id,
                      .prompt = "Portray the person as a highly trained medical specialist.",
                      .source = tiles[i],
                      .output = i == 5 ? (struct lk_page_image){.file = "no such file", .alt = "Output"} : tiles[i + 1],
                      .scores = scores,
                      .n_scores = 3,
                      .words = "The skin tone is lighter than in the source; the nose is narrower."});
    }
    lk_page_image_list(page, "flux/Indian", "FLUX.2-dev, Indian: race change, 44 of 240", numbers, 8);
    lk_page_image_list(page, "others", "Other models, Indian: race change", NULL, 0);
}

enum lk_code sample_page(const char *folder, enum lk_page_images images, struct lk_text *out) {
    struct lk_page *page;
    LK_TRY(lk_page_new(&page, &(struct lk_page_options){.title = "What the edits did to the people",
                                                        .run = "sample",
                                                        .config_hash = "3f9a1c0be7d24586",
                                                        .date = "2026-01-31",
                                                        .n_nominal = 5040,
                                                        .n_valid = 5030,
                                                        .advisory = "Some pictures show stereotypes.",
                                                        .images = images}));
    static const char *const titles[SAMPLE_FIGURES] = {"Rates", "Prompts", "Disparities", "Answers", "Mitigation"};
    static const char *const ids[SAMPLE_FIGURES] = {"rates", "prompts", "disparities", "answers", "mitigation"};
    enum lk_code rc = LK_OK;
    lk_page_section(page, "summary", "Summary");
    lk_page_paragraph(page,
                      "Race change was seen in %d of 240 outputs of FLUX.2-dev for Indian sources and in %d of 240 "
                      "for White ones. All numbers of this page are invented.",
                      44, 3);
    lk_page_remark(page, "The seeds' tests treat the 84 sources as independent; both readings are given.");
    rc = table_by_race(page);
    for (int i = 0; i < SAMPLE_FIGURES && !rc; i++) {
        struct lk_figure figure;
        lk_page_section(page, ids[i], titles[i]);
        if ((rc = sample_figure(i, &figure))) break;
        lk_page_figure(page, &figure);
        lk_figure_free(&figure);
    }
    lk_page_section(page, "tests_section", "Tests");
    lk_page_subsection(page, "Human answers");
    if (!rc) rc = wide_table(page);
    if (!rc) rc = empty_table(page);
    lists(page, folder);
    if (!rc) rc = lk_page_text(page, out);
    lk_page_free(page);
    return rc;
}
