/* The figures: they show the numbers that their tables carry, at the places that the axes say, in colours that can be
 * read and told apart, and no text leaves the picture. */
#include <math.h>

#include "engine/base/alloc.h"
#include "eval/data/data.h"
#include "eval/document/figure_draw.h"
#include "eval/document/files.h"
#include "tests/common/html_check.h"
#include "tests/common/report_sample.h"
#include "tests/common/test.h"

/* The value of an attribute of the element that starts at `at`. */
static double number_of(const char *at, const char *name) {
    char key[32];
    snprintf(key, sizeof key, " %s=\"", name);
    const char *found = strstr(at, key);
    assert_non_null(found);
    assert_true(found < strchr(at, '>'));
    return strtod(found + strlen(key), NULL);
}

static bool has(const char *at, const char *part) {
    const char *found = strstr(at, part);
    return found && found < strchr(at, '>');
}

static void tables_carry_what_is_shown(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLE_FIGURES; i++) {
        struct lk_figure figure;
        assert_ok(sample_figure(i, &figure));
        html_check(figure.wide.bytes, NULL);
        html_check(figure.narrow.bytes, NULL);
        assert_non_null(strstr(figure.wide.bytes, "role=\"img\" aria-labelledby=\"f_"));
        for (int r = 0; r < figure.data->n_rows; r++)
            for (int c = 1; c < figure.data->rows[r].n_cells; c++) {
                const struct lk_cell *cell = &figure.data->rows[r].cells[c];
                if (cell->kind != LK_CELL_NUMBER || (i == 3 && cell->value == 0)) continue;
                if (strstr(figure.wide.bytes, cell->text) && strstr(figure.narrow.bytes, cell->text)) continue;
                fail_msg("%s: row %d: \"%s\" is not in the figure", figure.id, r, cell->text);
            }
        lk_figure_free(&figure);
    }
}

static int occurrences(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

/* ` data-NAME="` and the number as the CSV writes it, in the drawing and in the CSV. */
static void assert_value(const char *svg, const char *csv, const char *const names[2], double value) {
    char key[2][64], number[40];
    snprintf(number, sizeof number, "%.17g", value == 0 ? 0 : value);
    for (int i = 0; i < 2; i++) snprintf(key[i], sizeof key[i], " data-%s=\"%s\"", names[i], number);
    if (!strstr(svg, key[0]) && !strstr(svg, key[1])) fail_msg("%s is not in the drawing", key[0]);
    if (!strstr(csv, number)) fail_msg("%s is not in the CSV", number);
}

/* A drawing's file has each number of the CSV beside it, no other one, and colours that need no page. */
static void files_carry_the_values_of_the_csv(void **state) {
    (void)state;
    const struct lk_run run = {"run & 7", "0123", 10, 9};
    for (int i = 0; i < SAMPLE_FIGURES; i++) {
        struct lk_figure figure;
        char name[300];
        size_t n;
        int n_values = 0;
        assert_ok(sample_figure(i, &figure));
        figure.data->run = &run;
        assert_ok(lk_document_figure_files(&figure, test_path("."), false));
        snprintf(name, sizeof name, "%s.svg", figure.data->id);
        char *svg = test_read(test_path(name), &n);
        snprintf(name, sizeof name, "%s.csv", figure.data->id);
        char *csv = test_read(test_path(name), &n);
        html_check(svg, NULL);
        assert_non_null(strstr(svg, "<metadata>Run run &amp; 7; configuration 0123; nominal N 10; valid N 9<"));
        assert_null(strstr(svg, "var("));
        assert_non_null(strstr(svg, "svg .point { fill: #1f4e8c; }"));
        for (int r = 0; r < figure.data->n_rows; r++)
            for (int c = 1; c < figure.data->rows[r].n_cells; c++) {
                const struct lk_cell *cell = &figure.data->rows[r].cells[c];
                bool is_n = i == 3 && c == 6, is_change = i == 4 && c == 3;
                if (cell->kind != LK_CELL_NUMBER || is_n || is_change || (i == 3 && cell->value == 0)) continue;
                n_values++;
                assert_value(svg, csv, (const char *const[]){"value", "to"}, cell->value);
                if (cell->low == 0 && cell->high == 0) continue;
                assert_value(svg, csv, (const char *const[]){"low", "to-low"}, cell->low);
                assert_value(svg, csv, (const char *const[]){"high", "to-high"}, cell->high);
            }
        assert_int_equal(occurrences(svg, " data-value=") + occurrences(svg, " data-to="), n_values);
        free(svg);
        free(csv);
        lk_figure_free(&figure);
    }
}

/* Widths of bars are in proportion to the values; a whisker ends where its interval does. */
static void bars_are_in_proportion(void **state) {
    (void)state;
    struct lk_figure figure;
    assert_ok(sample_figure(0, &figure));
    for (int narrow = 0; narrow < 2; narrow++) {
        const char *svg = narrow ? figure.narrow.bytes : figure.wide.bytes;
        double scale = 0, x0 = 0;
        for (int i = 0; i < 20; i++) { /* the 21st has no value */
            const struct lk_cell *cell = &figure.data->rows[i / 3].cells[1 + i % 3];
            char class_name[16];
            snprintf(class_name, sizeof class_name, " class=\"s%d\"", i % 3 + 1);
            if (i == 0) svg = strstr(svg, "<title>White, FLUX.2-dev: 1.3%");
            svg = strstr(svg, "<title>") + 3;
            const char *rect = strstr(svg, "<rect");
            assert_true(has(rect, class_name));
            double width = number_of(rect, "width");
            if (i == 1) { /* a large one gives the scale */
                const char *large = strstr(svg, "<title>Indian, FLUX.2-dev: 18.3%");
                scale = number_of(strstr(large, "<rect"), "width") / (44.0 / 240);
                x0 = number_of(rect, "x");
            }
            if (i == 0) continue;
            assert_true(fabs(width - scale * cell->value) < 0.11);
            const char *whisker = strstr(rect, "<line");
            assert_true(fabs(number_of(whisker, "x1") - x0 - scale * cell->low) < 0.11);
            assert_true(fabs(number_of(whisker, "x2") - x0 - scale * cell->high) < 0.11);
        }
    }
    lk_figure_free(&figure);
}

/* No text reaches beyond the picture, by the estimate of its width. Turned texts are left out. */
static void texts_stay_inside(void **state) {
    (void)state;
    for (int i = 0; i < 2 * SAMPLE_FIGURES; i++) {
        struct lk_figure figure;
        assert_ok(sample_figure(i / 2, &figure));
        const char *svg = i % 2 ? figure.narrow.bytes : figure.wide.bytes, *view = strstr(svg, "viewBox=\"0 0 ") + 13;
        char *end;
        double width = strtod(view, &end), height = strtod(end, NULL), size = i % 2 ? 12 : 13;
        for (const char *at = svg; (at = strstr(at, "<text")); at++) {
            char text[256];
            const char *start = strchr(at, '>') + 1;
            if (!strncmp(at - 13, "rotate(-90)", 11)) continue;
            html_text(start, (size_t)(strstr(start, "</text>") - start), text, sizeof text);
            double x = number_of(at, "x"), y = number_of(at, "y"), w = lk_draw_text_width(text, size) - 1;
            double left = has(at, "\"middle\"") ? x - w / 2 : has(at, "\"end\"") ? x - w : x;
            if (left < -1 || left + w > width + 1 || y > height || y < 0)
                fail_msg("%s: \"%s\" from %.1f to %.1f, line %.1f, of %.0f x %.0f", figure.id, text, left, left + w, y,
                         width, height);
        }
        lk_figure_free(&figure);
    }
}

static double luminance(uint32_t rgb) {
    double y = 0;
    static const double weights[] = {0.2126, 0.7152, 0.0722};
    for (int i = 0; i < 3; i++) {
        double c = (rgb >> (16 - 8 * i) & 255) / 255.0;
        y += weights[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return y;
}

static double contrast(uint32_t a, uint32_t b) {
    double x = luminance(a), y = luminance(b);
    return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

static void scales_are_ordered_and_readable(void **state) {
    (void)state;
    for (int i = 0; i <= 1000; i++) {
        uint32_t s = lk_scale_sequential(i / 1000.0), up = lk_scale_diverging(i / 1000.0),
                 down = lk_scale_diverging(-i / 1000.0);
        assert_true(contrast(s, lk_black_on(s) ? 0 : 0xffffff) >= 4.5);
        assert_true(contrast(up, lk_black_on(up) ? 0 : 0xffffff) >= 4.5);
        assert_true(contrast(down, lk_black_on(down) ? 0 : 0xffffff) >= 4.5);
        if (i % 20) continue;
        double before = (i - 20) / 1000.0;
        if (!i) continue;
        assert_true(luminance(s) < luminance(lk_scale_sequential(before)));
        assert_true(luminance(up) < luminance(lk_scale_diverging(before)));
        assert_true(luminance(down) < luminance(lk_scale_diverging(-before)));
        assert_true(fabs(luminance(up) - luminance(down)) < 0.05);
    }
    assert_int_equal(lk_scale_sequential((double)NAN), lk_scale_sequential(0));
    assert_int_equal(lk_scale_sequential(7), lk_scale_sequential(1));
}

/* A colour of the style sheet, from the n-th place where it is set. */
static uint32_t variable(const char *css, const char *name, int n) {
    char key[32];
    snprintf(key, sizeof key, "--%s: #", name);
    for (const char *at = css; (at = strstr(at, key)); at++)
        if (!n--) return (uint32_t)strtoul(at + strlen(key), NULL, 16);
    fail_msg("no colour %s", name);
    return 0;
}

static void style_has_contrast(void **state) {
    (void)state;
    struct lk_data_file css;
    assert_true(lk_data_find("page_style", &css));
    static const char *const texts[] = {"ink", "soft", "link"}, *const marks[] = {"s1", "s2",    "s3",   "s4",   "s5",
                                                                                  "s6", "point", "rule", "focus"};
    for (int theme = 0; theme < 3; theme++) { /* light, dark by the system, dark by choice */
        uint32_t paper = variable(css.text, "paper", theme), panel = variable(css.text, "panel", theme);
        for (int i = 0; i < 3; i++) {
            assert_true(contrast(variable(css.text, texts[i], theme), paper) >= 4.5);
            assert_true(contrast(variable(css.text, texts[i], theme), panel) >= 4.5);
        }
        assert_true(contrast(variable(css.text, "warn-ink", theme), variable(css.text, "warn", theme)) >= 4.5);
        for (int i = 0; i < 9; i++)
            if (contrast(variable(css.text, marks[i], theme), paper) < 3)
                fail_msg("theme %d: %s has contrast %.2f", theme, marks[i],
                         contrast(variable(css.text, marks[i], theme), paper));
        for (int i = 1; i <= 5; i++) {
            char name[4];
            snprintf(name, sizeof name, "l%d", i);
            uint32_t text = !theme && (i == 1 || i == 5) ? 0xffffff : 0;
            if (contrast(variable(css.text, name, theme), text) < 4.5)
                fail_msg("theme %d: text on %s has contrast %.2f", theme, name,
                         contrast(variable(css.text, name, theme), text));
        }
        if (theme == 2) assert_int_equal(paper, variable(css.text, "paper", 1));
    }
}

static void axes_are_round(void **state) {
    (void)state;
    const struct {
        double low, high;
        int ticks;
        double expected_low, expected_high, step;
    } cases[] = {{0, 0.237, 6, 0, 0.25, 0.05}, {1, 2.89, 6, 1, 3, 0.5}, {-0.3, 12, 4, -5, 15, 5}, {3, 3, 5, 1, 5, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lk_axis axis = {.x0 = 100, .x1 = 200};
        lk_axis_make(&axis, cases[i].low, cases[i].high, cases[i].ticks, LK_UNIT_NUMBER);
        if (fabs(axis.low - cases[i].expected_low) > 1e-9 || fabs(axis.high - cases[i].expected_high) > 1e-9 ||
            fabs(axis.step - cases[i].step) > 1e-9)
            fail_msg("axis %zu: %g to %g by %g", i, axis.low, axis.high, axis.step);
        assert_true(lk_axis_x(&axis, axis.low) == 100 && lk_axis_x(&axis, axis.high) == 200 &&
                    lk_axis_x(&axis, 1e300) == 200);
    }
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) { /* whatever the range: few ticks, and the range lies within */
        double exponent = 40 * test_uniform(&seed) - 28, low = (test_uniform(&seed) - 0.5) * pow(10, exponent);
        double high = low + test_uniform(&seed) * pow(10, fmin(12, 40 * test_uniform(&seed) - 28));
        struct lk_axis axis = {.x0 = 0, .x1 = 1};
        lk_axis_make(&axis, low, high, 6, LK_UNIT_NUMBER);
        double ticks = (axis.high - axis.low) / axis.step, slack = 1e-6 * axis.step;
        if (!(ticks >= 0.5 && ticks < 16 && axis.low <= low + slack && axis.high >= high - slack))
            fail_msg("%g to %g: axis %g to %g by %g", low, high, axis.low, axis.high, axis.step);
    }
}

static void what_cannot_be_drawn(void **state) {
    (void)state;
    struct lk_figure figure;
    const char *one[] = {
        "a very long label without end, which says more than any label of a row should ever say, and then some"};
    struct lk_figure_value value = {.value = (double)NAN};
    struct lk_figure_bars bars = {.head = {.id = "b"},
                                  .value_name = "v",
                                  .group_name = "g",
                                  .groups = one,
                                  .n_groups = 1,
                                  .series = one,
                                  .n_series = 1,
                                  .values = &value};
    assert_fails(lk_figure_bars(&bars, &figure), LK_E_INTERNAL, "figure b");
    value.value = -1;
    assert_fails(lk_figure_bars(&bars, &figure), LK_E_INTERNAL, "begin at zero");
    value.value = 1e300;
    assert_fails(lk_figure_bars(&bars, &figure), LK_E_INTERNAL, "1e12");
    value = (struct lk_figure_value){.value = 0.5, .k = 3, .n = 2};
    assert_fails(lk_figure_bars(&bars, &figure), LK_E_INTERNAL, "within 0 and n");
    value = (struct lk_figure_value){.none = true};
    assert_ok(lk_figure_bars(&bars, &figure));
    html_check(figure.wide.bytes, NULL);
    assert_int_equal(figure.data->rows[0].cells[1].kind, LK_CELL_NONE);
    lk_figure_free(&figure);
    bars.n_series = LK_FIGURE_SERIES + 1;
    assert_fails(lk_figure_bars(&bars, &figure), LK_E_INTERNAL, "series");
    struct lk_figure_heat heat = {.head = {.id = "h"},
                                  .value_name = "v",
                                  .row_name = "r",
                                  .rows = one,
                                  .n_rows = 1,
                                  .columns = one,
                                  .n_columns = 1,
                                  .values = &value,
                                  .diverging = true};
    value = (struct lk_figure_value){.value = 1e12};
    assert_ok(lk_figure_heat(&heat, &figure));
    lk_figure_free(&figure);
    heat.n_columns = 0;
    assert_fails(lk_figure_heat(&heat, &figure), LK_E_INTERNAL, "rows and columns");
    const int64_t counts[1][5] = {{0, -1, 0, 0, 0}};
    struct lk_figure_likert likert = {.head = {.id = "l"},
                                      .row_name = "r",
                                      .rows = one,
                                      .n_rows = 1,
                                      .levels = {"1", "2", "3", "4", "5"},
                                      .counts = counts};
    assert_fails(lk_figure_likert(&likert, &figure), LK_E_INTERNAL, "counts of answers");
    struct lk_figure_forest forest = {.head = {.id = NULL},
                                      .row_name = "r",
                                      .value_name = "v",
                                      .rows = &(struct lk_figure_forest_row){"a", {.value = 1}, false},
                                      .n_rows = 1};
    assert_fails(lk_figure_forest(&forest, &figure), LK_E_INTERNAL, "an id");
}

/* Twenty columns do not fit a telephone with their values: there they are rows. */
static void many_columns_are_rows_on_a_telephone(void **state) {
    (void)state;
    static const char *const rows[] = {"White", "Black"};
    const char *columns[20];
    struct lk_figure_value values[40];
    for (int i = 0; i < 40; i++) values[i] = (struct lk_figure_value){.value = i};
    for (int c = 0; c < 20; c++) columns[c] = "V-03";
    columns[19] = "O-10";
    struct lk_figure_heat heat = {.head = {.id = "many"},
                                  .value_name = "v",
                                  .row_name = "r",
                                  .rows = rows,
                                  .n_rows = 2,
                                  .columns = columns,
                                  .n_columns = 20,
                                  .values = values};
    struct lk_figure figure;
    int64_t live = lk_alloc_live();
    for (int64_t n = 1, failed = 1; failed; n++) {
        lk_alloc_fail_at(n);
        failed = lk_figure_heat(&heat, &figure) != LK_OK;
        lk_alloc_fail_at(0);
        if (failed) assert_int_equal(lk_alloc_live(), live);
    }
    double height[2];
    assert_int_equal(sscanf(strstr(figure.wide.bytes, "viewBox=\"0 0 "), "viewBox=\"0 0 %*f %lf", &height[0]), 1);
    assert_int_equal(sscanf(strstr(figure.narrow.bytes, "viewBox=\"0 0 "), "viewBox=\"0 0 %*f %lf", &height[1]), 1);
    assert_true(height[0] < 250 && height[1] > 20 * 25);
    assert_non_null(strstr(figure.narrow.bytes, "O-10, White: 19")); /* a value stays with its names */
    lk_figure_free(&figure);
}

/* Every panel says what its axis is of, and in what unit; ticks themselves have none. */
static void panels_have_units(void **state) {
    static const char *const panels[] = {"Race change", "Age change"}, *const rows[] = {"Race", "Gender"};
    const struct lk_figure_value values[] = {
        {0.2, 0.1, 0.3, 0, 0, 0}, {0.1, 0, 0.2, 0, 0, 0}, {0.4, 0.3, 0.5, 0, 0, 0}, {.none = true}};
    const bool strong[] = {true, false, true, false};
    struct lk_figure figure;
    (void)state;
    assert_ok(lk_figure_panels(&(struct lk_figure_panels){.head = {.id = "f_panels", .title = "P", .description = "D"},
                                                          .unit = LK_UNIT_POINTS,
                                                          .value_name = "Difference",
                                                          .row_name = "Factor",
                                                          .panels = panels,
                                                          .n_panels = 2,
                                                          .rows = rows,
                                                          .n_rows = 2,
                                                          .values = values,
                                                          .strong = strong},
                               &figure));
    assert_int_equal(occurrences(figure.wide.bytes, ">Difference, pp<"), 2);
    assert_int_equal(occurrences(figure.narrow.bytes, ">Difference, pp<"), 2);
    lk_figure_free(&figure);
}

static void out_of_memory(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    for (int i = 0; i < SAMPLE_FIGURES; i++)
        for (int64_t n = 1, failed = 1; failed; n++) {
            struct lk_figure figure;
            lk_alloc_fail_at(n);
            enum lk_code rc = sample_figure(i, &figure);
            lk_alloc_fail_at(0);
            failed = rc != LK_OK;
            if (failed) assert_int_equal(rc, LK_E_NOMEM);
            if (!failed) lk_figure_free(&figure);
            assert_int_equal(lk_alloc_live(), live);
        }
}

/* A drawing's file as pixels: its size, white where nothing is, and its own colours, blue before red. */
static void drawings_as_pixels(void **state) {
    (void)state;
    static const uint8_t point[] = {0x1f, 0x4e, 0x8c}, white[] = {255, 255, 255};
    for (int i = 0; i < SAMPLE_FIGURES; i++) {
        struct lk_figure figure;
        struct lk_image image;
        double width = 0, height = 0;
        char name[300];
        size_t n_point = 0;
        assert_ok(sample_figure(i, &figure));
        enum lk_code rc = lk_document_figure_files(&figure, test_path("."), true);
        if (rc == LK_E_USAGE) {
            printf("librsvg is not installed\n");
            lk_figure_free(&figure);
            skip();
        }
        assert_ok(rc);
        snprintf(name, sizeof name, "%s.png", figure.data->id);
        assert_ok(lk_image_read(&image, test_path(name), 0, 0));
        assert_int_equal(sscanf(strstr(figure.wide.bytes, "viewBox"), "viewBox=\"0 0 %lf %lf", &width, &height), 2);
        assert_int_equal(image.width, (int)ceil(2 * width));
        assert_int_equal(image.height, (int)ceil(2 * height));
        size_t n_pixels = (size_t)image.width * (size_t)image.height;
        assert_memory_equal(image.pixels + 3 * (n_pixels - 1), white, 3);
        for (size_t p = 0; p < n_pixels; p++) n_point += !memcmp(image.pixels + 3 * p, point, 3);
        bool has_points = strstr(figure.wide.bytes, "\"point\"") || strstr(figure.wide.bytes, "\"to\"");
        if (has_points != (n_point > 0)) fail_msg("%s: %zu pixels of a marker", figure.data->id, n_point);
        lk_image_free(&image);
        lk_figure_free(&figure);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_carry_what_is_shown),
        cmocka_unit_test(files_carry_the_values_of_the_csv),
        cmocka_unit_test(bars_are_in_proportion),
        cmocka_unit_test(texts_stay_inside),
        cmocka_unit_test(scales_are_ordered_and_readable),
        cmocka_unit_test(style_has_contrast),
        cmocka_unit_test(axes_are_round),
        cmocka_unit_test(what_cannot_be_drawn),
        cmocka_unit_test(many_columns_are_rows_on_a_telephone),
        cmocka_unit_test(panels_have_units),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(drawings_as_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
