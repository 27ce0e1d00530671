/* One HTML file with everything in it: style, script, tables, figures; no network, readable without the script, on
 * paper and by keyboard. The bytes depend on what is put in only: the date is the caller's.
 *
 *     struct lk_page *page;
 *     LK_TRY(lk_page_new(&page, &(struct lk_page_options){.title = "Audit", .run = "run 7", .date = "2026-01-31",
 * ...})); lk_page_section(page, "models", "Results by model"); lk_page_table(page, table); lk_page_figure(page,
 * &figure); number = lk_page_item(page, &item); lk_page_image_list(page, "flux/race_change", "FLUX.2-dev: race
 * change, 225 of 1,680", &number, 1); rc = lk_page_write(page, "out/report.html");      // the first failure of all of
 * the above lk_page_free(page);
 *
 * Every text is escaped; what is not UTF-8 becomes U+FFFD. Calls after a failure do nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "eval/document/figure.h"
#include "eval/document/table.h"

enum lk_page_images {
    LK_PAGE_LINKED,     /* by their paths relative to the page (the default) */
    LK_PAGE_EMBEDDED,   /* as small JPEGs within the page */
    LK_PAGE_AUDIT_SAFE, /* embedded with faces, or where no face is given the whole picture, in mosaic; never a link */
};

struct lk_page_options {
    const char *title;
    const char *run, *config_hash, *date; /* in the header and the foot; NULL leaves the line out */
    int64_t n_nominal, n_valid;           /* shown side by side; n_nominal 0: nobody said, and the line is left out */
    const char *advisory;                 /* a content advisory at the top; NULL */
    const char *csv_folder; /* tables link "FOLDER/ID.csv" beside the page; NULL: the CSV is in the link */
    enum lk_page_images images;
    int image_side; /* of embedded ones, longest side in pixels; 0 is 256 */
};

/* A picture. `link` is relative to the page, "/" between folders, not percent-encoded. */
struct lk_page_image {
    const char *file; /* where this process reads it, to embed it; NULL or unreadable: a note in its place */
    const char *link; /* from the page; NULL as above when images are linked */
    const char *alt, *caption;
    int face[4];       /* left, top, width, height in pixels of the upright picture; width 0: not known */
    int width, height; /* of the file, so that the page does not jump while it loads; 0 unknown */
    int side;          /* of this one when it is embedded; 0: the page's */
    bool is_safe;      /* nobody can be recognised in the file itself */
};

/* What is shown of one item when a reader asks for the images behind a number. */
struct lk_page_score {
    const char *axis, *value; /* "Race drift", "4 of 5" */
};
struct lk_page_item {
    const char *id, *prompt;
    struct lk_page_image source, output;
    const struct lk_page_score *scores;
    int n_scores;
    const char *words; /* the judge's; NULL */
    const char *again; /* the commands that show how it was made, and make it again; NULL */
};

struct lk_page;
/* Texts are copied. LK_E_NOMEM. */
enum lk_code lk_page_new(struct lk_page **out, const struct lk_page_options *options);
void lk_page_free(struct lk_page *page);

/* A new section, with its line in the contents; id is unique in the page. Subsections follow within it. */
void lk_page_section(struct lk_page *page, const char *id, const char *title);
/* What follows in the section is folded away until a reader, or a printer, wants it. */
void lk_page_fold(struct lk_page *page, const char *label);
void lk_page_subsection(struct lk_page *page, const char *title);
void lk_page_paragraph(struct lk_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lk_page_remark(struct lk_page *page, const char *format, ...) __attribute__((format(printf, 2, 3))); /* set off */
void lk_page_lead(struct lk_page *page, const char *text);   /* a sentence of the summary, in larger type */
void lk_page_leads(struct lk_page *page, const char *lines); /* one a line, each with its end; NULL: none */
/* A command or a program's text below what it belongs to, folded away. */
void lk_page_code(struct lk_page *page, const char *label, const char *text);
void lk_page_table(struct lk_page *page, const struct lk_table *table);
void lk_page_figure(struct lk_page *page, const struct lk_figure *figure);
/* A mosaic of n pictures in rows of at most `columns`. */
void lk_page_images(struct lk_page *page, const char *caption, int columns, const struct lk_page_image *images, int n);

/* The images behind the cells whose link is `key`: each item stands in the page once, after all else, and lists name it
 * by its number, which lk_page_item gives: 1, 2, ... Nothing of them is loaded before a reader asks. */
int32_t lk_page_item(struct lk_page *page, const struct lk_page_item *item);
/* One that stands where it is put, beside those before it, and in no list. */
void lk_page_item_here(struct lk_page *page, const struct lk_page_item *item);
void lk_page_image_list(struct lk_page *page, const char *key, const char *title, const int32_t *numbers, size_t n);

/* Writes the page whole or not at all, and beside it the sentences of the summary, a line each, as findings.txt, if
 * there are any. LK_E_INTERNAL when a cell leads to a list that there is not, or two lists,
 * sections, tables or figures have the same id; LK_E_INPUT for a link that is not relative; LK_E_IO, LK_E_DISK_FULL. */
enum lk_code lk_page_write(struct lk_page *page, const char *path);
/* A picture that does not fit into memory is left out, with a note in its place: the first such file, or NULL. */
const char *lk_page_unfit(const struct lk_page *page);
void lk_page_note_unfit(struct lk_page *page, const char *file);
/* The same into memory. */
enum lk_code lk_page_text(struct lk_page *page, struct lk_text *out);
