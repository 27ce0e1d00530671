/* Images of a report: a mosaic by prompt and race, and the outputs behind the cells of its tables. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/report/write.h"

enum { MOSAIC_PROMPTS = 6 }; /* rows of a mosaic */

/* "../images/a.png": from one folder to a file, both absolute and without links. */
static bool relative(const char *folder, const char *file, char *out, size_t size) {
    size_t common = 0, i = 0;
    for (; folder[i] && folder[i] == file[i]; i++)
        if (folder[i] == '/') common = i + 1;
    if (!folder[i] && file[i] == '/') common = i + 1;
    size_t n = 0;
    out[0] = 0;
    for (const char *at = common > strlen(folder) ? "" : folder + common; *at;) {
        if (n + 4 > size) return false;
        memcpy(out + n, "../", 4);
        n += 3;
        at += strcspn(at, "/");
        if (*at) at++;
    }
    return (size_t)snprintf(out + n, size - n, "%s", file + common) < size - n;
}

/* The folder's true path and the file's own name, which may be a symbolic link. */
static bool absolute(const char *file, char out[PATH_MAX]) {
    char folder[2 * LK_DOCUMENT_PATH_MAX];
    const char *slash = strrchr(file, '/');
    struct stat st;
    if (stat(file, &st)) return false;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - file) : 1, slash ? file : ".");
    if (!realpath(folder, out)) return false;
    size_t n = strlen(out);
    return (size_t)snprintf(out + n, PATH_MAX - n, "%s%s", n > 1 ? "/" : "", slash ? slash + 1 : file) < PATH_MAX - n;
}

void lk_report_locate(const struct lk_report *report, const char *folder, const char *path,
                      struct lk_report_place *out) {
    char real[PATH_MAX];
    const char *images = report->options.images;
    out->file[0] = out->link[0] = 0;
    if (!path) return;
    if (images && path[0] != '/')
        snprintf(out->file, sizeof out->file, "%s/%s", images, path);
    else
        snprintf(out->file, sizeof out->file, "%s", path);
    if (!absolute(out->file, real) || !relative(folder, real, out->link, sizeof out->link)) out->link[0] = 0;
}

struct lk_page_image lk_report_shown(const struct lk_report_place *place, const char *alt, const char *caption) {
    return (struct lk_page_image){.file = *place->file ? place->file : NULL,
                                  .link = *place->link ? place->link : NULL,
                                  .alt = alt,
                                  .caption = caption};
}

const char *lk_report_prompt(const struct lk_report *report, int prompt) {
    if (prompt < 0) return NULL;
    return prompt < LK_N_EDIT_PROMPTS ? report->prompts.edit[prompt].text
                                      : report->prompts.w[prompt - LK_N_EDIT_PROMPTS].text;
}

static void item(const struct lk_report *report, const char *folder, struct lk_page *page, const struct lk_item *at) {
    static const char *const levels[] = {"1 of 5", "2 of 5", "3 of 5", "4 of 5", "5 of 5"};
    struct lk_page_score scores[LK_N_AXES];
    struct lk_report_place source, output;
    char alt[2][160];
    int n = 0;
    for (int a = 0; a < LK_N_AXES; a++)
        if (at->score[a])
            scores[n++] = (struct lk_page_score){lk_factor_display(LK_FACTOR_AXIS, a), levels[at->score[a] - 1]};
    lk_report_locate(report, folder, at->source_image, &source);
    lk_report_locate(report, folder, at->image, &output);
    snprintf(alt[0], sizeof alt[0], "Source: %s, %s, %s", lk_factor_display(LK_FACTOR_RACE, at->race),
             lk_factor_display(LK_FACTOR_GENDER, at->gender), lk_factor_display(LK_FACTOR_AGE, at->age));
    snprintf(alt[1], sizeof alt[1], "Output of %s for prompt %s", lk_factor_display(LK_FACTOR_MODEL, at->model),
             lk_prompt_id(at->prompt));
    lk_page_item(page, &(struct lk_page_item){.id = at->id,
                                              .prompt = lk_report_prompt(report, at->prompt),
                                              .source = lk_report_shown(&source, alt[0], NULL),
                                              .output = lk_report_shown(&output, alt[1], NULL),
                                              .scores = scores,
                                              .n_scores = n,
                                              .words = at->evidence});
}

static void list(const struct lk_report *report, const char *folder, struct lk_page *page,
                 const struct lk_report_images *images) {
    struct lk_group group = LK_GROUP_ANY;
    char key[96], title[256];
    group.race = images->race;
    group.model = images->model;
    struct lk_rate rate = lk_measure_rate(report->data, &group, images->measure, &report->options.thresholds);
    lk_report_images_key(images->race, images->model, images->measure, key);
    snprintf(title, sizeof title, "%s, %s: %s, %lld of %lld",
             images->model < 0 ? "All models" : lk_factor_display(LK_FACTOR_MODEL, images->model),
             images->race < 0 ? "all races" : lk_factor_display(LK_FACTOR_RACE, images->race),
             lk_measure_name(images->measure), (long long)rate.k, (long long)rate.n);
    lk_page_image_list(page, key, title);
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *at = &report->data->items[i];
        if (lk_group_has(&group, at) &&
            lk_measure_of(images->measure, at->score, at->prompt, &report->options.thresholds) == 1)
            item(report, folder, page, at);
    }
}

static bool listed_before(const struct lk_report *report, size_t n) {
    const struct lk_report_images *a = &report->images[n];
    for (size_t i = 0; i < n; i++) {
        const struct lk_report_images *b = &report->images[i];
        if (a->race == b->race && a->model == b->model && a->measure == b->measure) return true;
    }
    return false;
}

/* The first output of a model for a prompt and a race that has an image. */
static const struct lk_item *first_image(const struct lk_report *report, int model, int prompt, int race) {
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *at = &report->data->items[i];
        if (at->image && at->model == model && at->prompt == prompt && at->race == race && at->arm == LK_ARM_EDITED)
            return at;
    }
    return NULL;
}

/* One row: each race's source and output. */
static bool mosaic_row(const struct lk_report *report, const char *folder, struct lk_page *page, int model,
                       int prompt) {
    struct lk_report_place places[LK_N_RACES];
    struct lk_page_image images[LK_N_RACES];
    char alt[LK_N_RACES][160], caption[512];
    int n = 0;
    for (int r = 0; r < LK_N_RACES; r++) {
        const struct lk_item *at = first_image(report, model, prompt, r);
        if (!at) continue;
        lk_report_locate(report, folder, at->image, &places[n]);
        snprintf(alt[n], sizeof alt[n], "%s: output of %s for prompt %s", lk_factor_display(LK_FACTOR_RACE, r),
                 lk_factor_display(LK_FACTOR_MODEL, model), lk_prompt_id(prompt));
        images[n] = lk_report_shown(&places[n], alt[n], lk_factor_display(LK_FACTOR_RACE, r));
        n++;
    }
    if (!n) return false;
    snprintf(caption, sizeof caption, "%s, %s: %s", lk_factor_display(LK_FACTOR_MODEL, model), lk_prompt_id(prompt),
             lk_report_prompt(report, prompt));
    lk_page_images(page, caption, n, images, n);
    return true;
}

static enum lk_code mosaic(const struct lk_report *report, const char *folder, struct lk_page *page) {
    bool any = false;
    for (size_t i = 0; i < report->data->n_items; i++) any |= report->data->items[i].image != NULL;
    if (!any) return LK_OK;
    lk_page_section(page, "section-mosaic", "Outputs side by side");
    lk_report_figure_6(report, folder, page);
    LK_TRY(lk_report_figure_5(report, folder, page));
    lk_page_subsection(page, "Prompt by prompt");
    lk_page_paragraph(page, "One output per race, the first in the order of the scores, for at most %d prompts.",
                      MOSAIC_PROMPTS);
    for (int m = 0; m < LK_N_MODELS; m++) {
        int shown_prompts = 0;
        for (int p = 0; p < LK_N_EDIT_PROMPTS && shown_prompts < MOSAIC_PROMPTS; p++)
            shown_prompts += mosaic_row(report, folder, page, m, p);
    }
    return LK_OK;
}

enum lk_code lk_report_pictures(const struct lk_report *report, const char *folder, struct lk_page *page) {
    char real[PATH_MAX];
    if (!realpath(folder, real)) return lk_fail(LK_E_IO, "report: %s: the folder cannot be found again", folder);
    LK_TRY(mosaic(report, real, page));
    for (size_t i = 0; i < report->n_images; i++)
        if (!listed_before(report, i)) list(report, real, page, &report->images[i]);
    return LK_OK;
}
