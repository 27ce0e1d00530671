/* Figures made of pictures: the mosaic of 480 outputs as a PNG, and one prompt across the races. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/document/page_image.h"
#include "eval/report/write.h"
#include "eval/study/sampling.h"

enum { TILES_ACROSS = 24, TILES_MAX = 480, TILE = 64, PAGE_SIDE = 1200, PIXELS_MAX = 100000000 };
enum { GREY = 0xe0 }; /* of a tile whose file cannot be read */

/* The outputs that a mosaic is drawn from: baseline edits whose picture is there. */
struct candidates {
    struct lk_sample_item *items;
    const struct lk_item **of;
    int32_t *drawn;
    size_t n;
};

static void candidates_free(struct candidates *c) {
    lk_free(c->items);
    lk_free(c->of);
    lk_free(c->drawn);
}

static bool is_edit(const struct lk_item *item) {
    return item->image && item->arm == LK_ARM_EDITED && item->prompt >= 0 && item->prompt < LK_N_EDIT_PROMPTS;
}

static enum lk_code find_candidates(const struct lk_report *report, const char *folder, struct candidates *c) {
    const struct lk_dataset *data = report->data;
    struct lk_report_place place;
    size_t room = data->n_items ? data->n_items : 1;
    *c = (struct candidates){.items = lk_malloc(room * sizeof *c->items),
                             .of = lk_malloc(room * sizeof *c->of),
                             .drawn = lk_malloc(TILES_MAX * sizeof *c->drawn)};
    if (!c->items || !c->of || !c->drawn) return lk_fail(LK_E_NOMEM, "report: no memory for the mosaic");
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        if (!is_edit(item)) continue;
        lk_report_locate(report, folder, item->image, &place);
        if (!*place.link) continue;
        c->of[c->n] = item;
        c->items[c->n++] = (struct lk_sample_item){.id = item->id};
    }
    return LK_OK;
}

/* The middle square of a picture at the size of a tile. */
static enum lk_code read_tile(const char *file, bool safe, struct lk_image *out) {
    struct lk_image raw = {0}, rgb = {0}, square = {0};
    *out = (struct lk_image){0};
    enum lk_code rc = lk_image_read(&raw, file, 1, PIXELS_MAX);
    if (!rc) rc = lk_image_to_rgb(&rgb, &raw);
    lk_image_free(&raw);
    int side = rgb.width < rgb.height ? rgb.width : rgb.height;
    if (!rc) rc = lk_image_crop(&square, &rgb, (rgb.width - side) / 2, (rgb.height - side) / 2, side, side);
    lk_image_free(&rgb);
    if (!rc) rc = lk_image_resize(out, &square, TILE, TILE, LK_RESAMPLE_LANCZOS);
    lk_image_free(&square);
    if (!rc && safe) lk_image_mosaic(out, 0, 0, TILE, TILE, LK_MOSAIC_WHOLE);
    return rc;
}

static void put(struct lk_image *canvas, const struct lk_image *tile, int column, int row) {
    size_t line = (size_t)TILE * 3;
    for (int y = 0; y < TILE; y++)
        memcpy(canvas->pixels + ((size_t)(row * TILE + y) * (size_t)canvas->width + (size_t)column * TILE) * 3,
               tile->pixels + (size_t)y * line, line);
}

/* Paints the tiles and lists them. */
static enum lk_code paint(const struct lk_report *report, const char *folder, const struct candidates *c, int n,
                          struct lk_image *canvas, struct lk_table *table, struct lk_page *page) {
    struct lk_report_place place;
    memset(canvas->pixels, GREY, (size_t)canvas->width * (size_t)canvas->height * 3);
    for (int i = 0; i < n; i++) {
        const struct lk_item *item = c->of[c->drawn[i]];
        struct lk_image tile;
        lk_report_locate(report, folder, item->image, &place);
        enum lk_code rc = read_tile(place.file, report->options.audit_safe, &tile);
        if (rc == LK_E_INTERNAL) return rc;
        if (rc == LK_E_NOMEM) lk_page_note_unfit(page, place.file);
        if (!rc) put(canvas, &tile, i % TILES_ACROSS, i / TILES_ACROSS);
        lk_image_free(&tile);
        lk_table_row(table);
        lk_table_count(table, i + 1);
        lk_table_count(table, i / TILES_ACROSS + 1);
        lk_table_count(table, i % TILES_ACROSS + 1);
        lk_table_text(table, "%s", item->id);
        lk_table_text(table, "%s", rc == LK_E_NOMEM ? "does not fit into memory" : rc ? "cannot be read" : "");
    }
    return LK_OK;
}

static enum lk_code write_mosaic(const struct lk_report *report, const char *folder, const struct lk_image *canvas,
                                 const struct lk_table *table) {
    char path[LK_DOCUMENT_PATH_MAX + 300], counts[2][32];
    struct lk_text csv = {0};
    snprintf(counts[0], sizeof counts[0], "%lld", (long long)report->run.n_nominal);
    snprintf(counts[1], sizeof counts[1], "%lld", (long long)report->run.n_valid);
    const struct lk_png_text texts[] = {{"Run", report->run.name},
                                        {"Configuration", report->run.configuration},
                                        {"Valid N", counts[1]},
                                        {"Nominal N", counts[0]}};
    snprintf(path, sizeof path, "%s/figure_5.csv", folder);
    lk_table_csv(table, &csv);
    enum lk_code rc = csv.rc ? csv.rc : lk_atomic_write_file(path, csv.bytes, csv.n);
    lk_text_free(&csv);
    snprintf(path, sizeof path, "%s/figure_5.png", folder);
    return rc ? rc : lk_png_write(path, canvas, texts, report->run.n_nominal ? 4 : 3);
}

static enum lk_code draw_mosaic(const struct lk_report *report, const char *folder, const struct candidates *c, int n,
                                struct lk_page *page) {
    struct lk_image canvas = {0};
    struct lk_table *table;
    int across = n < TILES_ACROSS ? n : TILES_ACROSS, down = (n + TILES_ACROSS - 1) / TILES_ACROSS;
    LK_TRY(lk_table_new(&table, "figure_5", "The outputs of the mosaic", ">Tile|>Row|>Column|Item|Remark"));
    table->run = &report->run;
    enum lk_code rc = lk_image_new(&canvas, across * TILE, down * TILE, 3);
    if (!rc) rc = paint(report, folder, c, n, &canvas, table, page);
    if (!rc) rc = lk_table_finish(table);
    if (!rc) rc = write_mosaic(report, folder, &canvas, table);
    lk_image_free(&canvas);
    lk_table_free(table);
    if (rc) return rc;
    char file[LK_DOCUMENT_PATH_MAX + 300], alt[128], caption[512];
    snprintf(file, sizeof file, "%s/figure_5.png", folder);
    snprintf(alt, sizeof alt, "Mosaic of %d outputs, %d across and %d down", n, across, down);
    snprintf(caption, sizeof caption,
             "Figure 5. %d of %zu outputs of the baseline arm, drawn at random over prompts and models%s "
             "(figure_5.png; figure_5.csv names each).",
             n, c->n, report->options.audit_safe ? ", faces covered" : "");
    lk_page_images(page, caption, 1,
                   &(struct lk_page_image){.file = file,
                                           .link = "figure_5.png",
                                           .alt = alt,
                                           .width = across * TILE,
                                           .height = down * TILE,
                                           .side = PAGE_SIDE,
                                           .is_safe = report->options.audit_safe},
                   1);
    return LK_OK;
}

enum lk_code lk_report_figure_5(const struct lk_report *report, const char *folder, struct lk_page *page) {
    struct candidates c;
    enum lk_code rc = find_candidates(report, folder, &c);
    size_t n = c.n < TILES_MAX ? c.n : TILES_MAX;
    if (!rc && n) rc = lk_mosaic_draw(c.items, c.n, n, report->options.study_seed, c.drawn);
    if (!rc && n) rc = draw_mosaic(report, folder, &c, (int)n, page);
    candidates_free(&c);
    return rc;
}

/* What Figure 6 shows. */
struct choice {
    int prompt, gender, age;
};

/* The prompt, gender and age that most races and models have outputs for; of equals the first. False without any. */
static bool choose(const struct lk_report *report, struct choice *out) {
    const struct lk_report_options *o = &report->options;
    int counts[LK_N_EDIT_PROMPTS][LK_N_GENDERS][LK_N_AGES] = {{{0}}}, most = 0;
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (is_edit(item)) counts[item->prompt][item->gender][item->age]++;
    }
    for (int p = 0; p < LK_N_EDIT_PROMPTS; p++)
        for (int g = 0; g < LK_N_GENDERS; g++)
            for (int a = 0; a < LK_N_AGES; a++) {
                bool wanted = (o->figure_prompt < 0 || o->figure_prompt == p) &&
                              (o->figure_gender < 0 || o->figure_gender == g) &&
                              (o->figure_age < 0 || o->figure_age == a);
                if (!wanted || counts[p][g][a] <= most) continue;
                most = counts[p][g][a];
                *out = (struct choice){p, g, a};
            }
    return most > 0;
}

/* One picture per race, of a model's outputs or (model -1) of the sources. NULL where there is none. */
static const char *picture_of(const struct lk_report *report, const struct choice *c, int model, int race) {
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (item->race != race || item->gender != c->gender || item->age != c->age) continue;
        if (model < 0 && item->source_image) return item->source_image;
        if (model >= 0 && item->model == model && item->prompt == c->prompt && is_edit(item)) return item->image;
    }
    return NULL;
}

static void across_races(const struct lk_report *report, const char *folder, struct lk_page *page,
                         const struct choice *c, int model) {
    struct lk_report_place place[LK_N_RACES];
    struct lk_page_image images[LK_N_RACES];
    char alt[LK_N_RACES][160];
    const char *name = model < 0 ? "Sources" : lk_factor_display(LK_FACTOR_MODEL, model);
    bool any = false;
    for (int race = 0; race < LK_N_RACES; race++) {
        const char *path = picture_of(report, c, model, race);
        any |= path != NULL;
        lk_report_locate(report, folder, path, &place[race]);
        snprintf(alt[race], sizeof alt[race], "%s: %s", lk_factor_display(LK_FACTOR_RACE, race),
                 model < 0 ? "source" : name);
        images[race] = lk_report_shown(&place[race], alt[race], lk_factor_display(LK_FACTOR_RACE, race));
    }
    if (any) lk_page_images(page, name, LK_N_RACES, images, LK_N_RACES);
}

void lk_report_figure_6(const struct lk_report *report, const char *folder, struct lk_page *page) {
    struct choice c;
    if (!choose(report, &c)) return;
    lk_page_subsection(page, "Figure 6: one prompt across the races");
    lk_page_paragraph(page, "%s, %s, prompt %s: %s", lk_factor_display(LK_FACTOR_GENDER, c.gender),
                      lk_factor_display(LK_FACTOR_AGE, c.age), lk_prompt_id(c.prompt),
                      lk_report_prompt(report, c.prompt));
    for (int model = -1; model < LK_N_MODELS; model++) across_races(report, folder, page, &c, model);
}
