/* Inside of writing a report. */
#pragma once

#include "eval/report/build.h"
#include "eval/report/files.h"
#include "eval/report/page.h"

/* The resolved options as JSON, and how much of the design is covered. */
enum lk_code lk_report_configuration(const struct lk_report *report, struct lk_text *out);
/* The mosaic and the lists of images behind cells. folder: where the page will be. */
enum lk_code lk_report_pictures(const struct lk_report *report, const char *folder, struct lk_page *page);
