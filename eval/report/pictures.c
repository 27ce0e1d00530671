/* Images of a report: a mosaic by prompt and race, and the outputs behind the cells of its tables. */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
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

enum lk_code lk_raters_answers(const struct lk_dataset *data, struct lk_raters_answers *out) {
    out->first = lk_calloc(data->n_items + 2, sizeof *out->first);
    out->at = lk_malloc((data->n_ratings + 1) * sizeof *out->at);
    if (!out->first || !out->at) return lk_fail(LK_E_NOMEM, "report: no memory for the raters' answers");
    for (int pass = 0; pass < 2; pass++) {
        for (size_t r = 0; r < data->n_ratings; r++) {
            const struct lk_rating *rating = &data->ratings[r];
            if (rating->item < 0 || rating->is_gold || data->raters[rating->rater].excluded) continue;
            if (pass)
                out->at[out->first[rating->item + 1]++] = r;
            else
                out->first[rating->item + 2]++;
        }
        for (size_t i = 2; i < data->n_items + 2 && !pass; i++) out->first[i] += out->first[i - 1];
    }
    return LK_OK;
}

void lk_raters_answers_free(struct lk_raters_answers *raters) {
    lk_free(raters->first);
    lk_free(raters->at);
}

/* "4 of 5; judges 4, 3; raters 3, 4, 4"; false when nobody scored it. */
static bool print_score(const struct lk_report *report, const struct lk_raters_answers *raters,
                        const struct lk_item *at, int axis, char out[160]) {
    size_t index = (size_t)(at - report->data->items);
    int n = 0;
    if (at->score[axis]) n = snprintf(out, 160, "%d of 5", at->score[axis]);
    if (at->judge[0][axis] && at->judge[1][axis])
        n += snprintf(out + n, 160 - (size_t)n, "; judges %d, %d", at->judge[0][axis], at->judge[1][axis]);
    for (size_t k = raters->first[index], m = 0; k < raters->first[index + 1] && n < 120; k++) {
        int score = report->data->ratings[raters->at[k]].score[axis];
        if (score) n += snprintf(out + n, 160 - (size_t)n, "%s%d", m++ ? ", " : n ? "; raters " : "raters ", score);
    }
    return n > 0;
}

/* Of a PNG that is linked, which holds its recipe. */
static const char *print_commands(const struct lk_report_place *source, const struct lk_report_place *output,
                                  char out[5 * PATH_MAX]) {
    const char *dot = strrchr(output->link, '.');
    if (!dot || strcmp(dot, ".png") || strchr(output->link, '\'') || strchr(source->link, '\'')) return NULL;
    snprintf(out, 5 * PATH_MAX, "likeness show '%.4000s'\nlikeness rerun '%.4000s' -m MODEL%s%.4000s%s -o again.png",
             output->link, output->link, *source->link ? " -r '" : "", source->link, *source->link ? "'" : "");
    return out;
}

int32_t lk_report_item(const struct lk_report *report, const struct lk_raters_answers *raters, const char *folder,
                       struct lk_page *page, const struct lk_item *at, const char *prompt, bool here) {
    static const char *const roles[] = {"the man", "the woman", "unclear"};
    struct lk_page_score scores[LK_N_AXES + 1];
    struct lk_report_place source, output;
    char alt[2][160], values[LK_N_AXES][160], commands[5 * PATH_MAX];
    bool linked = !report->options.embed_images && !report->options.audit_safe;
    int n = 0;
    for (int a = 0; a < LK_N_AXES; a++)
        if (print_score(report, raters, at, a, values[a]))
            scores[n++] = (struct lk_page_score){lk_factor_display(LK_FACTOR_AXIS, a), values[a]};
    if (at->role >= 0) scores[n++] = (struct lk_page_score){"Who has the occupation", roles[at->role]};
    lk_report_locate(report, folder, at->source_image, &source);
    lk_report_locate(report, folder, at->image, &output);
    if (at->job < 0) { /* the documents' study */
        snprintf(alt[0], sizeof alt[0], "Source: %s, %s, %s", lk_factor_display(LK_FACTOR_RACE, at->race),
                 at->gender < 0 ? "two people" : lk_factor_display(LK_FACTOR_GENDER, at->gender),
                 lk_factor_display(LK_FACTOR_AGE, at->age));
        snprintf(alt[1], sizeof alt[1], "Output of %s for prompt %s", lk_factor_display(LK_FACTOR_MODEL, at->model),
                 lk_prompt_id(at->prompt));
    } else {
        snprintf(alt[0], sizeof alt[0], "Source of %.140s", at->id);
        snprintf(alt[1], sizeof alt[1], "Output %.140s", at->id);
    }
    const struct lk_page_item item = {.id = at->id,
                                      .prompt = prompt ? prompt : lk_report_prompt(report, at->prompt),
                                      .source = lk_report_shown(&source, alt[0], NULL),
                                      .output = lk_report_shown(&output, alt[1], NULL),
                                      .scores = scores,
                                      .n_scores = n,
                                      .words = at->evidence,
                                      .again = linked ? print_commands(&source, &output, commands) : NULL};
    if (!here) return lk_page_item(page, &item);
    lk_page_item_here(page, &item);
    return 0;
}

static bool is_behind(const struct lk_report *report, const struct lk_report_images *images, const struct lk_item *at) {
    return !images->key && lk_group_has(&images->group, at) &&
           lk_measure_of(images->measure, lk_item_levels(at, images->source), at->prompt,
                         &report->options.thresholds) == 1;
}

/* "FLUX.2-dev, Indian, 20s, O-01: Race change, 44 of 240" */
static void print_title(const struct lk_report *report, const struct lk_report_images *images, char out[320]) {
    const struct lk_group *g = &images->group;
    const int levels[] = {g->gender, g->age, g->age_group, g->category};
    static const enum lk_factor factors[] = {LK_FACTOR_GENDER, LK_FACTOR_AGE, LK_FACTOR_AGE_GROUP, LK_FACTOR_CATEGORY};
    if (images->key) {
        snprintf(out, 320, "%.300s (%zu)", images->title, images->n);
        return;
    }
    struct lk_rate rate =
        lk_measure_rate_by(report->data, g, images->measure, images->source, &report->options.thresholds);
    int n = snprintf(out, 320, "%s, %s", g->model < 0 ? "All models" : lk_factor_display(LK_FACTOR_MODEL, g->model),
                     g->race < 0 ? "all races" : lk_factor_display(LK_FACTOR_RACE, g->race));
    for (int i = 0; i < 4; i++)
        if (levels[i] >= 0) n += snprintf(out + n, 320 - (size_t)n, ", %s", lk_factor_display(factors[i], levels[i]));
    if (g->prompt >= 0) n += snprintf(out + n, 320 - (size_t)n, ", %s", lk_prompt_id(g->prompt));
    if (g->subcategory >= 0) n += snprintf(out + n, 320 - (size_t)n, ", %s", lk_subcategory_name(g->subcategory));
    snprintf(out + n, 320 - (size_t)n, ": %s%s, %lld of %lld", lk_measure_name(images->measure),
             images->source == LK_SCORES_HUMAN ? " by the raters' majority" : "", (long long)rate.k, (long long)rate.n);
}

static bool listed_before(const struct lk_report *report, size_t n) {
    const struct lk_report_images *a = &report->images[n];
    for (const struct lk_report_images *b = report->images; b < a; b++)
        if (a->key || b->key
                ? a->key && b->key && !strcmp(a->key, b->key)
                : a->measure == b->measure && a->source == b->source && a->group.by_content == b->group.by_content &&
                      !memcmp(&a->group, &b->group, offsetof(struct lk_group, by_content)))
            return true;
    return false;
}

/* Every output that a list names, once, then the lists. number [n_items], listed [n_items] */
static void put_lists(const struct lk_report *report, const struct lk_raters_answers *raters, const char *folder,
                      struct lk_page *page, int32_t *number, int32_t *listed) {
    const struct lk_dataset *data = report->data;
    for (size_t k = 0; k < report->n_images; k++)
        for (size_t i = 0; i < report->images[k].n; i++) listed[report->images[k].items[i]] = 1;
    for (size_t i = 0; i < data->n_items; i++) {
        bool wanted = listed[i];
        for (size_t k = 0; k < report->n_images && !wanted; k++)
            wanted = is_behind(report, &report->images[k], &data->items[i]);
        if (wanted) number[i] = lk_report_item(report, raters, folder, page, &data->items[i], NULL, false);
    }
    for (size_t k = 0; k < report->n_images; k++) {
        char key[160], title[320];
        size_t n = 0;
        if (listed_before(report, k)) continue;
        for (size_t i = 0; i < report->images[k].n; i++) listed[n++] = number[report->images[k].items[i]];
        for (size_t i = 0; i < data->n_items; i++)
            if (is_behind(report, &report->images[k], &data->items[i])) listed[n++] = number[i];
        lk_report_images_key(&report->images[k], key);
        print_title(report, &report->images[k], title);
        lk_page_image_list(page, key, title, listed, n);
    }
}

static enum lk_code lists(const struct lk_report *report, const char *folder, struct lk_page *page) {
    struct lk_raters_answers raters = {NULL, NULL};
    int32_t *numbers = lk_calloc(2 * report->data->n_items + 1, sizeof *numbers);
    enum lk_code rc = numbers ? lk_raters_answers(report->data, &raters)
                              : lk_fail(LK_E_NOMEM, "report: no memory for the lists of pictures");
    if (!rc) put_lists(report, &raters, folder, page, numbers, numbers + report->data->n_items);
    lk_raters_answers_free(&raters);
    lk_free(numbers);
    return rc;
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
    return lists(report, real, page);
}
