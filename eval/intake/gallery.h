/* The pictures that a query's rows are of, as one page: what a number of a report is made of.
 *
 *     rc = lk_audit_gallery(audit, &data, &options,
 *                           "SELECT item_id, counted FROM rates_by_model WHERE row = 'Race change'", "pictures.html",
 *                           &summary);
 */
#pragma once

#include "eval/intake/audit.h"
#include "eval/report/report.h"

enum { LK_GALLERY_MAX = 20000 }; /* outputs */

struct lk_gallery {
    size_t n;       /* outputs that are shown */
    double counted; /* sum of the column of this name, 0 without one */
    bool has_counted;
};
/* One row an output: item_id, and if there is one, counted, by which they are put together, the largest first. data
 * has the pictures and the scores; of the options those of pictures, title and date are used. LK_E_INPUT: a query
 * without item_id, with an output twice, with none or more than LK_GALLERY_MAX. LK_E_PARTIAL: a picture does not fit
 * into memory, and the page is without it. */
enum lk_code lk_audit_gallery(struct lk_audit *audit, struct lk_dataset *data, const struct lk_report_options *options,
                              const char *sql, const char *path, struct lk_gallery *out);
