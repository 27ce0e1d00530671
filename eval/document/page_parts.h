/* Shared by page*.c only. */
#pragma once

#include "eval/document/page.h"
#include "engine/base/store.h"

/* Names to be compared when the page is written. */
struct lk_page_names {
    const char **list;
    int n, capacity;
};

struct lk_page {
    struct lk_page_options options; /* texts in the store */
    struct lk_store store;
    struct lk_text contents, body, lists, items, findings;
    struct lk_page_names ids, links, keys;
    int32_t n_items;
    bool in_section, in_fold, in_items;
    const char *unfit; /* the first picture that did not fit into memory */
    enum lk_code rc;
};

/* href="..." of a file beside the page, percent-encoded and always relative. LK_E_INPUT for an absolute path. */
enum lk_code lk_page_href(struct lk_text *out, const char *path);

/* <img> in the page's way of showing pictures, or a note that it is missing. */
enum lk_code lk_page_img(struct lk_page *page, struct lk_text *out, const struct lk_page_image *image);
/* The image as a JPEG data URI, at most `side` pixels a side, in mosaic when `safe`. LK_E_NOMEM; a file that cannot be
 * read gives LK_OK and *found false. */
enum lk_code lk_page_embed(struct lk_text *out, const struct lk_page_image *image, int side, bool safe, bool *found,
                           int size[2]);
