/* The page: one file that is well-formed, leads nowhere outside, holds hostile texts as texts, and has the same bytes
 * each time. The samples stay in the scratch folder, to be looked at in a browser (test_report_html.sh). */
#include <sys/stat.h>

#include <openssl/evp.h>

#include "engine/base/alloc.h"
#include "eval/document/page_image.h"
#include "eval/document/page_parts.h"
#include "tests/common/html_check.h"
#include "tests/common/report_sample.h"
#include "tests/common/test.h"

static char folder[4000];

static int prepare(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", test_path("report_page"));
    mkdir(folder, 0777);
    return sample_pictures(folder) ? -1 : 0;
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) n++;
    return n;
}

static void sample_is_well_formed(void **state) {
    (void)state;
    static const char *const names[] = {"linked", "embedded", "audit_safe"};
    for (int mode = 0; mode < 3; mode++) {
        struct lk_text once = {0}, again = {0};
        struct html_counts counts;
        char path[4100];
        assert_ok(sample_page(folder, (enum lk_page_images)mode, &once));
        assert_ok(sample_page(folder, (enum lk_page_images)mode, &again));
        assert_string_equal(once.bytes, again.bytes);
        html_check(once.bytes, &counts);
        assert_int_equal(counts.n_svgs, 2 * SAMPLE_FIGURES);
        assert_int_equal(counts.n_tables, SAMPLE_FIGURES + 3);
        assert_int_equal(counts.n_images, 24 + 16 - 1);
        assert_int_equal(counts.n_scripts, 1);
        assert_int_equal(count(once.bytes, "class=\"missing\""), 1);
        assert_null(strstr(once.bytes, "https://"));
        assert_int_equal(count(once.bytes, "http://"), count(once.bytes, "xmlns=\"http://www.w3.org/2000/svg\""));
        assert_int_equal(count(once.bytes, "src=\"data:image/jpeg;base64,"), mode ? 39 : 0);
        assert_int_equal(count(once.bytes, ".png"), mode ? 0 : 39 + 15); /* 15 lead to the whole */
        assert_int_equal(count(once.bytes, "loading=\"lazy\""), 39);
        snprintf(path, sizeof path, "%s/%s.html", folder, names[mode]);
        test_write(path, once.bytes, once.n);
        lk_text_free(&once);
        lk_text_free(&again);
    }
}

static void hostile_texts_stay_texts(void **state) {
    (void)state;
    static const char *const evil[] = {"<script>alert(1)</script>",
                                       "\"><img src=x onerror=alert(1)>",
                                       "' onclick='x",
                                       "</title></style><b>",
                                       "a\xe2\x80\xa8_\xff\xc0\xaf",
                                       "\x01\x7f -->]]>",
                                       "{{x}} `${y}` \\u003c",
                                       "javascript:alert(1)"};
    for (size_t i = 0; i < sizeof evil / sizeof *evil; i++) {
        const char *e = evil[i];
        struct lk_page *page;
        struct lk_table *table;
        struct lk_text text = {0};
        assert_ok(lk_page_new(
            &page, &(struct lk_page_options){.title = e, .run = e, .config_hash = e, .date = e, .advisory = e}));
        assert_ok(lk_table_new(&table, e, e, NULL));
        lk_table_column(table, e, LK_ALIGN_LEFT);
        lk_table_row(table), lk_table_text(table, "%s", e), lk_table_link(table, e), lk_table_remark(table, "%s", e);
        lk_table_note(table, "%s", e);
        assert_ok(lk_table_finish(table));
        char section[64];
        snprintf(section, sizeof section, "section %s", e);
        lk_page_section(page, section, e);
        lk_page_subsection(page, e);
        lk_page_paragraph(page, "%s", e);
        lk_page_remark(page, "%s", e);
        lk_page_table(page, table);
        const struct lk_page_image image = {.link = e, .alt = e, .caption = e};
        const struct lk_page_score score = {e, e};
        lk_page_images(page, e, 3, &image, 1);
        int32_t number = lk_page_item(page, &(struct lk_page_item){.id = e,
                                                                   .prompt = e,
                                                                   .source = image,
                                                                   .output = image,
                                                                   .scores = &score,
                                                                   .n_scores = 1,
                                                                   .words = e,
                                                                   .again = e});
        assert_int_equal(number, 1);
        lk_page_image_list(page, e, e, &number, 1);
        struct lk_figure figure;
        const int64_t counts[1][5] = {{1, 2, 3, 4, 5}};
        char id[64];
        snprintf(id, sizeof id, "figure %s", e);
        assert_ok(lk_figure_likert(&(struct lk_figure_likert){.head = {id, e, e, e},
                                                              .row_name = e,
                                                              .rows = &e,
                                                              .n_rows = 1,
                                                              .levels = {e, e, e, e, e},
                                                              .counts = counts},
                                   &figure));
        lk_page_figure(page, &figure);
        assert_ok(lk_page_text(page, &text));
        struct html_counts seen;
        html_check(text.bytes, &seen);
        assert_int_equal(seen.n_scripts, 1);
        assert_int_equal(seen.n_images, 3);
        lk_figure_free(&figure);
        lk_table_free(table);
        lk_page_free(page);
        lk_text_free(&text);
    }
}

static struct lk_page *plain_page(void) {
    struct lk_page *page;
    assert_ok(lk_page_new(&page, &(struct lk_page_options){.title = "t", .csv_folder = "tables"}));
    return page;
}

static void dead_links_and_doubles(void **state) {
    (void)state;
    struct lk_text text = {0};
    struct lk_page *page = plain_page();
    struct lk_table *table;
    assert_ok(lk_table_new(&table, "t 1", "x", "a"));
    lk_table_row(table), lk_table_text(table, "b"), lk_table_link(table, "nowhere");
    assert_ok(lk_table_finish(table));
    lk_page_table(page, table);
    assert_fails(lk_page_text(page, &text), LK_E_INTERNAL, "\"nowhere\"");
    lk_page_image_list(page, "nowhere", "x", NULL, 0);
    assert_ok(lk_page_text(page, &text));
    assert_non_null(strstr(text.bytes, "href=\"./tables/t%201.csv\""));
    lk_page_image_list(page, "nowhere", "x", NULL, 0);
    assert_fails(lk_page_text(page, &text), LK_E_INTERNAL, "two image lists");
    lk_page_free(page);

    page = plain_page();
    lk_page_table(page, table);
    lk_page_section(page, "t 1", "x");
    assert_fails(lk_page_text(page, &text), LK_E_INTERNAL, "are named \"t 1\"");
    lk_page_free(page);
    lk_table_free(table);

    page = plain_page();
    lk_page_images(page, "x", 4, &(struct lk_page_image){.link = "/etc/passwd"}, 1);
    assert_fails(lk_page_text(page, &text), LK_E_INPUT, "relative to the page");
    lk_page_free(page);

    lk_text_free(&text);
}

/* In the page for an audit no block of a face shows more than one colour before compression. */
static void mosaics(void **state) {
    (void)state;
    struct lk_image image;
    assert_ok(lk_image_new(&image, 50, 40, 3));
    for (int i = 0; i < 50 * 40 * 3; i++) image.pixels[i] = (uint8_t)(i * 7919 >> 3);
    uint8_t corner = image.pixels[0], *p = image.pixels;
    lk_image_mosaic(&image, 10, -5, 30, 30, 3);
    assert_int_equal(p[0], corner);
    for (int y = 0; y < 25; y++)
        for (int x = 10; x < 40; x++)
            for (int c = 0; c < 3; c++) {
                int x0 = 10 + (x - 10) / 10 * 10, y0 = y / 10 * 10;
                assert_int_equal(p[(y * 50 + x) * 3 + c], p[(y0 * 50 + x0) * 3 + c]);
            }
    assert_true(p[(0 * 50 + 10) * 3] != p[(0 * 50 + 9) * 3] || p[(1 * 50 + 10) * 3] != p[(1 * 50 + 9) * 3]);
    lk_image_mosaic(&image, 60, 60, 10, 10, 3);
    lk_image_mosaic(&image, INT32_MIN, 0, INT32_MAX, 10, 3);
    lk_image_free(&image);
}

/* The embedded picture decoded again: few colours within the face, and the whole in mosaic when the face is not in it.
 */
static double variance(const struct lk_image *image, int left, int top, int side) {
    double sum = 0, squares = 0, n = 0;
    for (int y = top; y < top + side; y++)
        for (int x = left; x < left + side; x++, n++) {
            double v = image->pixels[image->width * y + x];
            sum += v;
            squares += v * v;
        }
    return squares / n - sum / n * (sum / n);
}

/* Two faces of a picture of twice the size: within each grown box every block is flat, the rest is as it was. */
static void blocks_of_faces_are_flat(void **state) {
    (void)state;
    struct lk_image image, before;
    uint64_t seed = 5;
    const int size[2] = {400, 400}, faces[2][4] = {{60, 60, 102, 102}, {260, 220, 102, 102}}, none[4] = {0};
    const int left[2] = {21, 121}, top[2] = {21, 101}; /* (60 - 18) / 2; to 21 + 69, so blocks of 10 */
    assert_ok(lk_image_new(&image, 200, 200, 1));
    assert_ok(lk_image_new(&before, 200, 200, 1));
    for (int i = 0; i < 200 * 200; i++) before.pixels[i] = image.pixels[i] = (uint8_t)test_random(&seed);
    lk_image_hide(&image, size, faces[0], 2);
    size_t n_same = 0;
    for (int f = 0; f < 2; f++)
        for (int b = 0; b < 49; b++) {
            const int x = left[f] + b % 7 * 10, y = top[f] + b / 7 * 10;
            assert_true(variance(&before, x, y, 9) > 1000);
            if (variance(&image, x, y, 9) != 0) fail_msg("face %d, block %d", f, b);
        }
    for (int y = 0; y < 200; y++)
        for (int x = 0; x < 200; x++) {
            bool in = false;
            for (int f = 0; f < 2; f++) in |= x >= left[f] && x < left[f] + 70 && y >= top[f] && y < top[f] + 70;
            n_same += !in && image.pixels[200 * y + x] == before.pixels[200 * y + x];
        }
    assert_int_equal(n_same, 200 * 200 - 2 * 70 * 70);
    memcpy(image.pixels, before.pixels, 200 * 200);
    lk_image_hide(&image, size, none, 1);
    for (int b = 0; b < 225; b++) assert_true(variance(&image, b % 15 * 13, b / 15 * 13, 13) == 0);
    lk_image_free(&image);
    lk_image_free(&before);
}

static void audit_safe_hides_faces(void **state) {
    (void)state;
    const struct {
        int face[4];
        bool corner_hidden; /* the corner lies outside the face */
    } cases[] = {{{20, 15, 80, 80}, false},
                 {{0, 0, 0, 0}, true},
                 {{500, 500, 80, 80}, true},
                 {{-90, 0, 80, 80}, true},
                 {{20, 15, INT32_MAX, INT32_MAX}, true}};
    char path[4100];
    snprintf(path, sizeof path, "%s/noise.png", folder);
    struct lk_image noise;
    uint64_t seed = 3;
    assert_ok(lk_image_new(&noise, 200, 200, 1));
    for (int i = 0; i < 200 * 200; i++)
        noise.pixels[i] = (uint8_t)((i / 4 + i / 800) % 2 ? 255 * (test_random(&seed) & 1) : 128);
    assert_ok(lk_png_write(path, &noise, NULL, 0));
    lk_image_free(&noise);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct lk_page_image image = {.file = path, .link = "noise.png", .alt = "x"};
        memcpy(image.face, cases[c].face, sizeof image.face);
        struct lk_text out = {0};
        bool found;
        int size[2];
        assert_ok(lk_page_embed(&out, &image, 200, true, &found, size));
        assert_true(found && size[0] == 200 && size[1] == 200);
        unsigned char *jpeg = malloc(out.n);
        int n = EVP_DecodeBlock(jpeg, (const unsigned char *)out.bytes + 23, (int)out.n - 23);
        struct lk_image seen;
        assert_ok(lk_image_decode(&seen, jpeg, (size_t)n, "embedded", 0, 0));
        int varied_face = 0, varied_corner = 0;
        for (int y = 0; y < 12; y++)
            for (int x = 0; x < 12; x++) {
                const uint8_t *face = seen.pixels + ((y + 60) * 200 + x + 60) * seen.channels,
                              *corner = seen.pixels + (y * 200 + x) * seen.channels;
                varied_face += abs(face[0] - face[seen.channels]) > 60;
                varied_corner += abs(corner[0] - corner[seen.channels]) > 60;
            }
        assert_true(varied_face < 12);
        assert_int_equal(varied_corner < 12, cases[c].corner_hidden);
        lk_image_free(&seen);
        free(jpeg);
        lk_text_free(&out);
    }
}

/* What goes into a page is what the file would hold. */
static void encoded_as_written(void **state) {
    (void)state;
    struct lk_image image;
    char path[4100];
    void *jpeg;
    size_t n, n_file;
    assert_ok(lk_image_new(&image, 300, 200, 3));
    for (int i = 0; i < 300 * 200 * 3; i++) image.pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    snprintf(path, sizeof path, "%s/written.jpg", folder);
    assert_ok(lk_jpeg_write(path, &image, 80));
    assert_ok(lk_jpeg_encode("x", &image, 80, &jpeg, &n));
    char *file = test_read(path, &n_file);
    assert_true(n > 20000 && n == n_file);
    assert_memory_equal(jpeg, file, n);
    free(file);
    lk_free(jpeg);
    assert_fails(lk_jpeg_encode("x", &image, 0, &jpeg, &n), LK_E_USAGE, "quality");
    assert_true(!jpeg && !n);
    lk_image_free(&image);
}

static void out_of_memory(void **state) {
    (void)state;
    int64_t live = lk_alloc_live();
    bool failed = true;
    int64_t n = 1;
    for (; failed; n += 1 + n / 40) {
        struct lk_text text = {0};
        lk_alloc_fail_at(n);
        enum lk_code rc = sample_page(folder, LK_PAGE_AUDIT_SAFE, &text);
        lk_alloc_fail_at(0);
        failed = rc != LK_OK;
        if (failed) assert_int_equal(rc, LK_E_NOMEM);
        lk_text_free(&text);
        assert_int_equal(lk_alloc_live(), live);
    }
    assert_true(n > 100);
}

static void written_whole(void **state) {
    (void)state;
    struct lk_page *page = plain_page();
    char path[4100];
    size_t n;
    lk_page_section(page, "a", "A");
    snprintf(path, sizeof path, "%s/none/page.html", folder);
    assert_fails(lk_page_write(page, path), LK_E_NOT_FOUND, "");
    snprintf(path, sizeof path, "%s/page.html", folder);
    assert_ok(lk_page_write(page, path));
    char *bytes = test_read(path, &n);
    assert_true(n > 1000 && !strcmp(bytes + n - 8, "</html>\n"));
    free(bytes);
    lk_page_free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_is_well_formed),
        cmocka_unit_test(hostile_texts_stay_texts),
        cmocka_unit_test(dead_links_and_doubles),
        cmocka_unit_test(mosaics),
        cmocka_unit_test(blocks_of_faces_are_flat),
        cmocka_unit_test(audit_safe_hides_faces),
        cmocka_unit_test(encoded_as_written),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(written_whole),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
