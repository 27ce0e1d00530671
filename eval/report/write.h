/* Inside of writing a report. */
#pragma once

#include <limits.h>

#include "eval/report/build.h"
#include "eval/document/files.h"
#include "eval/document/page.h"

/* The resolved options as JSON, and how much of the design is covered. */
enum lk_code lk_report_configuration(const struct lk_report *report, struct lk_text *out);
/* An image's file, and its path as the page names it; both empty when it is not there. */
struct lk_report_place {
    char file[2 * LK_DOCUMENT_PATH_MAX], link[2 * PATH_MAX];
};
/* folder: absolute and without links; path: as the dataset has it, or NULL. */
void lk_report_locate(const struct lk_report *report, const char *folder, const char *path,
                      struct lk_report_place *out);
struct lk_page_image lk_report_shown(const struct lk_report_place *place, const char *alt, const char *caption);
const char *lk_report_prompt(const struct lk_report *report, int prompt); /* its text, NULL for -1 */

/* Ratings of each item, one item after the other: those of item i are at[first[i]] to at[first[i + 1] - 1]. */
struct lk_raters_answers {
    size_t *first, *at;
};
/* Free in any case. LK_E_NOMEM. */
enum lk_code lk_raters_answers(const struct lk_dataset *data, struct lk_raters_answers *out);
void lk_raters_answers_free(struct lk_raters_answers *raters);
/* Puts an output beside its source with all its scores into the page, and gives its number there; or, with `here`,
 * where the page has got to, and gives 0. Reads report->data and the options of pictures alone. prompt NULL: the
 * documents' of the item. */
int32_t lk_report_item(const struct lk_report *report, const struct lk_raters_answers *raters, const char *folder,
                       struct lk_page *page, const struct lk_item *item, const char *prompt, bool here);
enum lk_page_images lk_report_shows(const struct lk_report_options *options);

/* Figure 5: figure_5.png and figure_5.csv into the folder, and the picture into the page; nothing without images. */
enum lk_code lk_report_figure_5(const struct lk_report *report, const char *folder, struct lk_page *page);
/* Figure 6: one prompt across the seven races, into the page. */
void lk_report_figure_6(const struct lk_report *report, const char *folder, struct lk_page *page);

/* The mosaic and the lists of images behind cells. folder: where the page will be. */
enum lk_code lk_report_pictures(const struct lk_report *report, const char *folder, struct lk_page *page);
