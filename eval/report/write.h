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

/* Figure 5: figure_5.png and figure_5.csv into the folder, and the picture into the page; nothing without images. */
enum lk_code lk_report_figure_5(const struct lk_report *report, const char *folder, struct lk_page *page);
/* Figure 6: one prompt across the seven races, into the page. */
void lk_report_figure_6(const struct lk_report *report, const char *folder, struct lk_page *page);

/* The mosaic and the lists of images behind cells. folder: where the page will be. */
enum lk_code lk_report_pictures(const struct lk_report *report, const char *folder, struct lk_page *page);
