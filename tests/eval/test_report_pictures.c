/* Figures 5 and 6: the mosaic holds the outputs that the study's stream draws, and one prompt stands across the seven
 * races in canonical order. */
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "eval/document/page_image.h"
#include "eval/report/report.h"
#include "eval/study/sampling.h"
#include "tests/common/test.h"

enum { TILE = 64, ACROSS = 24 };
static char folder[3000], pictures[3][3100], missing[3100], broken[3100];

/* A picture of one colour each, of different shapes. */
static int prepare(void **state) {
    (void)state;
    static const int sides[3][2] = {{80, 100}, {64, 64}, {130, 90}};
    snprintf(folder, sizeof folder, "%s", test_path("report_pictures"));
    mkdir(folder, 0777);
    for (int i = 0; i < 3; i++) {
        struct lk_image image;
        if (lk_image_new(&image, sides[i][0], sides[i][1], 3)) return -1;
        for (int p = 0; p < sides[i][0] * sides[i][1]; p++)
            for (int c = 0; c < 3; c++) image.pixels[3 * p + c] = (uint8_t)(p * (i + 1) * (c + 3) % 251);
        snprintf(pictures[i], sizeof pictures[i], "%s/p%d.png", folder, i);
        if (lk_png_write(pictures[i], &image, NULL, 0)) return -1;
        lk_image_free(&image);
    }
    snprintf(missing, sizeof missing, "%s/not-there.png", folder);
    snprintf(broken, sizeof broken, "%s/broken.png", folder);
    test_write(broken, "no picture", 10);
    return 0;
}

/* All outputs of the first n_prompts prompts; the picture of an item follows from its number. */
static void study(struct lk_dataset *data, int n_prompts, int n_models) {
    lk_dataset_init(data);
    for (int model = 0; model < n_models; model++)
        for (int source = 0; source < LK_N_SOURCES; source++)
            for (int prompt = 0; prompt < n_prompts; prompt++) {
                char id[96];
                int race, gender, age;
                int32_t at;
                lk_source_factors(source, &race, &gender, &age);
                int n = snprintf(id, sizeof id, "%s_%s_%s_%s_%s", lk_factor_key(LK_FACTOR_MODEL, model),
                                 lk_factor_key(LK_FACTOR_AGE, age), lk_factor_key(LK_FACTOR_GENDER, gender),
                                 lk_factor_key(LK_FACTOR_RACE, race), lk_prompt_id(prompt));
                assert_ok(lk_dataset_item(data, id, (size_t)n, &at));
                struct lk_item *item = &data->items[at];
                item->score[LK_AXIS_EDIT_SUCCESS] = 4;
                item->source_image = pictures[0];
                item->image = at % 50 == 49 ? missing : pictures[at % 3];
            }
}

static void write_report(struct lk_dataset *data, struct lk_report_options *options, const char *out) {
    struct lk_report *report;
    options->n_bootstrap = 10;
    assert_ok(lk_report_build(&report, data, options));
    assert_ok(lk_report_write(report, out));
    lk_report_free(report);
}

static char *text_of(const char *out, const char *name) {
    char path[3300];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", out, name);
    return test_read(path, &n);
}

/* What a tile of the picture must be: its middle square, resized. */
static void expect_tile(const struct lk_image *canvas, int tile, const char *picture, bool safe) {
    struct lk_image image, square, expected;
    assert_ok(lk_image_read(&image, picture, 1, 0));
    int side = image.width < image.height ? image.width : image.height;
    assert_ok(lk_image_crop(&square, &image, (image.width - side) / 2, (image.height - side) / 2, side, side));
    assert_ok(lk_image_resize(&expected, &square, TILE, TILE, LK_RESAMPLE_LANCZOS));
    if (safe) lk_image_mosaic(&expected, 0, 0, TILE, TILE, LK_MOSAIC_WHOLE);
    for (int y = 0; y < TILE; y++)
        assert_memory_equal(canvas->pixels + 3 * ((tile / ACROSS * TILE + y) * canvas->width + tile % ACROSS * TILE),
                            expected.pixels + 3 * y * TILE, 3 * TILE);
    lk_image_free(&image), lk_image_free(&square), lk_image_free(&expected);
}

static const struct lk_item *item_named(const struct lk_dataset *data, const char *id, size_t n) {
    int32_t at;
    assert_ok(lk_dataset_find(data, id, n, &at));
    assert_true(at >= 0);
    return &data->items[at];
}

/* 1,008 outputs of which 20 have no picture: 480 different tiles, those of the stream, in its order. */
static void mosaic_holds_what_is_drawn(void **state) {
    (void)state;
    for (int safe = 0; safe < 2; safe++) {
        struct lk_dataset data;
        struct lk_report_options options;
        struct lk_image canvas;
        char out[3200], path[3300], *csv;
        lk_report_options_init(&options);
        options.audit_safe = safe;
        study(&data, 4, 3);
        snprintf(out, sizeof out, "%s/mosaic%d", folder, safe);
        write_report(&data, &options, out);
        snprintf(path, sizeof path, "%s/figure_5.png", out);
        assert_ok(lk_image_read(&canvas, path, 1, 0));
        assert_int_equal(canvas.width, ACROSS * TILE);
        assert_int_equal(canvas.height, 20 * TILE);

        struct lk_sample_item *items = calloc(data.n_items, sizeof *items);
        int32_t drawn[480];
        size_t n = 0;
        for (size_t i = 0; i < data.n_items; i++)
            if (data.items[i].image != missing) items[n++].id = data.items[i].id;
        assert_int_equal(n, 1008 - 20);
        assert_ok(lk_mosaic_draw(items, n, 480, options.study_seed, drawn));
        csv = text_of(out, "figure_5.csv");
        char *line = strchr(csv, '\n') + 1;
        for (int tile = 0; tile < 480; tile++, line = strchr(line, '\n') + 1) {
            char start[160];
            const char *id = items[drawn[tile]].id;
            int length =
                snprintf(start, sizeof start, "%d,%d,%d,%s,,", tile + 1, tile / ACROSS + 1, tile % ACROSS + 1, id);
            assert_memory_equal(line, start, (size_t)length);
            if (tile % 37 == 0) expect_tile(&canvas, tile, item_named(&data, id, strlen(id))->image, safe);
        }
        assert_int_equal(*line, 0);
        char *html = text_of(out, "report.html");
        assert_non_null(strstr(html, "Mosaic of 480 outputs, 24 across and 20 down"));
        assert_int_equal(strstr(html, "src=\"./figure_5.png\"") != NULL, !safe);
        assert_int_equal(strstr(html, "../p0.png") != NULL, !safe);
        struct lk_png_text *texts;
        assert_ok(lk_png_text_read(path, &texts));
        assert_string_equal(texts[0].text, options.title);
        lk_png_text_free(texts);
        free(items), free(csv), free(html);
        lk_image_free(&canvas);
        lk_dataset_free(&data);
    }
}

/* Fewer than 480: all of them; what cannot be read stays grey and is named. */
static void small_mosaic_holds_all(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_report_options options;
    struct lk_image canvas;
    char out[3200], path[3300];
    lk_report_options_init(&options);
    options.run = "a run";
    study(&data, 1, 1);
    data.items[7].image = broken;
    snprintf(out, sizeof out, "%s/small", folder);
    write_report(&data, &options, out);
    snprintf(path, sizeof path, "%s/figure_5.png", out);
    assert_ok(lk_image_read(&canvas, path, 1, 0));
    assert_int_equal(canvas.width, ACROSS * TILE);
    assert_int_equal(canvas.height, 4 * TILE); /* 83 */
    char *csv = text_of(out, "figure_5.csv"), *line = strchr(csv, '\n') + 1,
         *at = strstr(csv, ",cannot be read,a run,");
    assert_non_null(at);
    int tile = 0;
    for (; (line = strchr(line, '\n') + 1) <= at; tile++) continue;
    const uint8_t *pixel = canvas.pixels + 3 * ((tile / ACROSS * TILE + 9) * canvas.width + tile % ACROSS * TILE + 9);
    assert_int_equal(pixel[0], 0xe0);
    assert_null(strstr(at + 1, ",cannot be read,"));
    free(csv);
    lk_image_free(&canvas);
    lk_dataset_free(&data);
}

/* A count leads to its outputs: which they are, what judges and raters said, how each was made. */
static void behind_every_count(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_report_options options;
    struct lk_rating *rating;
    char out[3200];
    lk_report_options_init(&options);
    study(&data, 1, 1);
    const char *ids[] = {"ann", "bob"};
    for (int r = 0; r < 2; r++) {
        int32_t rater;
        assert_ok(lk_dataset_rater(&data, ids[r], 3, &rater));
        assert_ok(lk_dataset_rating(&data, &rating));
        rating->item = 0;
        rating->rater = rater;
        rating->score[LK_AXIS_EDIT_SUCCESS] = (uint8_t)(2 + r);
        data.raters[r].excluded = r;
    }
    data.items[0].human_majority[LK_AXIS_RACE_DRIFT] = 4;
    data.items[0].n_ratings = 1;
    data.items[0].judge[0][LK_AXIS_EDIT_SUCCESS] = 4;
    data.items[0].judge[1][LK_AXIS_EDIT_SUCCESS] = 5;
    snprintf(out, sizeof out, "%s/behind", folder);
    write_report(&data, &options, out);
    char *html = text_of(out, "report.html");
    int n = 0;
    for (const char *at = html; (at = strstr(at, "<article class=\"item\"")); at++) n++;
    assert_int_equal(n, data.n_items);
    assert_non_null(strstr(html, "<dd>4 of 5; judges 4, 5; raters 2</dd>"));
    assert_non_null(strstr(html, "<a href=\"./../p0.png\"><img loading=\"lazy\""));
    assert_non_null(strstr(html, "likeness rerun &#39;../p1.png&#39; -m MODEL -r &#39;../p0.png&#39; -o again.png"));
    static const char *const keys[] = {"flux-all-edit_success",
                                       "all-Black-edit_success",
                                       "all-all-edit_success-Male",
                                       "all-all-edit_success-O-01",
                                       "all-all-edit_success-Authority-content",
                                       "all-Black-edit_success-Male",
                                       "all-Black-edit_success-O",
                                       "all-all-race_drift-raters"};
    for (int k = 0; k < 8; k++) {
        char link[96], list[96];
        snprintf(link, sizeof link, "class=\"drill\" href=\"#images-%s\"", keys[k]);
        snprintf(list, sizeof list, "id=\"images-%s\">Of the outputs below ", keys[k]);
        if (!strstr(html, link)) fail_msg("no cell leads to %s", keys[k]);
        if (!strstr(html, list)) fail_msg("no list %s", keys[k]);
    }
    assert_non_null(strstr(html, "Race change by the raters&#39; majority, 1 of 1"));
    assert_non_null(strstr(html, "<dt>Valid N</dt>"));
    assert_null(strstr(html, "Nominal N")); /* nobody said it */
    free(html);
    lk_dataset_free(&data);
}

/* Cells from..to of every row of a table lead to a list where they are above 0, and nowhere where they are not; returns
 * how many do. */
static int linked_cells(const struct lk_report *report, const char *id, int from, int to) {
    const struct lk_table *table = lk_report_table(report, id);
    int n = 0;
    if (!table) fail_msg("no table %s", id);
    for (int r = 0; r < table->n_rows; r++)
        for (int c = from; c <= to && !table->rows[r].heading; c++) {
            const struct lk_cell *cell = &table->rows[r].cells[c];
            if ((cell->link != NULL) != (cell->kind == LK_CELL_NUMBER && cell->value > 0))
                fail_msg("%s: row %d, cell %d (%s) leads to %s", id, r, c, cell->text, cell->link ? cell->link : "-");
            n += cell->link != NULL;
        }
    return n;
}

/* Roles, older questions, reviewers' decisions, moved thresholds: what is counted there has lists of its own. */
static void behind_counts_that_are_no_rates(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_report_options options;
    struct lk_report *report;
    char out[3200], id[96];
    lk_report_options_init(&options);
    options.n_bootstrap = 10;
    study(&data, 1, 1);
    for (int w = 1; w <= LK_N_W_PROMPTS; w++) {
        int32_t at;
        int n = snprintf(id, sizeof id, "flux_pair_white_20s_W-%02d", w);
        assert_ok(lk_dataset_item(&data, id, (size_t)n, &at));
        data.items[at].role = (int8_t)(w % 7 == 0 ? LK_ROLE_UNCLEAR : LK_ROLE_MALE);
        data.items[at].image = pictures[0];
    }
    for (int i = 0; i < 9; i++) {
        struct lk_item *item = &data.items[i];
        for (int q = 0; q < 3; q++) item->legacy[q] = (int8_t)(q ? i % 2 : i % 3);
        item->legacy_preference = (int8_t)(i % 3);
        item->judge[0][LK_AXIS_EDIT_SUCCESS] = 5, item->judge[1][LK_AXIS_EDIT_SUCCESS] = (uint8_t)(i % 2 ? 2 : 5);
        item->review = (uint8_t)(i % 2 << LK_AXIS_EDIT_SUCCESS);
        item->reviewed_axes = (uint8_t)((i < 4) << LK_AXIS_EDIT_SUCCESS);
        item->reviewed[LK_AXIS_EDIT_SUCCESS] = i % 2 ? 2 : 4;
    }
    for (int k = 0; k < 3; k++) {
        struct lk_rating *rating;
        int32_t rater;
        assert_ok(lk_dataset_rater(&data, "r", 1, &rater));
        assert_ok(lk_dataset_rating(&data, &rating));
        rating->item = k, rating->rater = rater;
        rating->preference = (int8_t)(k < 2 ? LK_ARM_PRESERVED : 2);
        data.items[k].n_ratings = 1;
    }
    assert_ok(lk_report_build(&report, &data, &options));
    assert_int_equal(linked_cells(report, "t_w", 2, 4), 15 - 2); /* nobody resists of women's, or follows of men's */
    assert_true(linked_cells(report, "t_w_occupations", 2, 4) > 40);
    assert_int_equal(linked_cells(report, "review_decisions", 1, 6), 5); /* no decision is as the primary judge said */
    assert_int_equal(linked_cells(report, "review_rates", 1, 2), 2 + 4); /* success; with review soft erasure too */
    assert_int_equal(linked_cells(report, "legacy", 2, 6), 4 * 5);
    assert_int_equal(linked_cells(report, "preference_judge", 2, 3), 4 * 2);
    assert_int_equal(linked_cells(report, "t_judge", 2, 4), 3);
    assert_int_equal(linked_cells(report, "t_judge_groups", 3, 4), 2);
    assert_int_equal(linked_cells(report, "preference", 2, 3), 4 * 2);
    assert_int_equal(linked_cells(report, "thresholds", 2, 5), 2 * 2); /* all models, FLUX.2-dev; at least 4 and 3 */
    assert_int_equal(linked_cells(report, "rate_intervals", 1, 1), 2);
    assert_int_equal(linked_cells(report, "published_12", 3, 3), 1);
    snprintf(out, sizeof out, "%s/others", folder);
    assert_ok(lk_report_write(report, out));
    char *html = text_of(out, "report.html");
    const char *list = strstr(html, "id=\"images-role-unclear-flux-All.20sentences\">Of the outputs below ");
    assert_non_null(list);
    assert_non_null(strstr(html, "FLUX.2-dev, All sentences: stereotype unclear (7)</summary>"));
    int n = 0;
    for (const char *at = strstr(list, "below") + 5; *at == ' '; n++) strtol(at, (char **)&at, 10);
    assert_int_equal(n, 7);
    assert_non_null(strstr(html, "<dt>Who has the occupation</dt><dd>unclear</dd>"));
    assert_non_null(strstr(html, "href=\"#images-judges-differ-edit_success\""));
    static const char *const titles[] = {"Edit Success: the judges give the same score (5)",
                                         "Edit Success: the judges are more than one level apart (4)",
                                         "White, Edit Success: the judges are at most one level apart (5)",
                                         "FLUX.2-dev: Soft erasure, with review (2)",
                                         "All models: Edit success, min (5)",
                                         "White: rated outputs (3)",
                                         "All: a rater prefers ours (2)",
                                         "FLUX.2-dev: a rater prefers neither (1)"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (!strstr(html, titles[i])) fail_msg("no list \"%s\"", titles[i]);
    free(html);
    lk_report_free(report);
    lk_dataset_free(&data);
}

/* The order of the captions below a row of the figure. */
static void one_prompt_across_the_races(void **state) {
    (void)state;
    struct lk_dataset data;
    struct lk_report_options options;
    char out[3200];
    lk_report_options_init(&options);
    options.figure_prompt = 1;
    options.figure_gender = 1;
    options.figure_age = 5;
    study(&data, 2, 2);
    snprintf(out, sizeof out, "%s/across", folder);
    write_report(&data, &options, out);
    char *html = text_of(out, "report.html"), *figure = strstr(html, "Figure 6: one prompt across the races");
    assert_non_null(figure);
    assert_non_null(strstr(figure, "Female, 70+, prompt O-02: "));
    static const char *const rows[] = {"source", "FLUX.2-dev", "Step1X-Edit"};
    for (int row = 0; row < 3; row++)
        for (int race = 0; race < LK_N_RACES; race++) {
            char alt[160];
            snprintf(alt, sizeof alt, "alt=\"%s: %s\"", lk_factor_display(LK_FACTOR_RACE, race), rows[row]);
            char *next = strstr(figure, alt);
            if (!next) fail_msg("row %d, race %d: no %s", row, race, alt);
            figure = next;
        }
    assert_null(strstr(html, "alt=\"White: Qwen-Edit\""));
    free(html);
    lk_dataset_free(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mosaic_holds_what_is_drawn),      cmocka_unit_test(small_mosaic_holds_all),
        cmocka_unit_test(one_prompt_across_the_races),     cmocka_unit_test(behind_every_count),
        cmocka_unit_test(behind_counts_that_are_no_rates),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
