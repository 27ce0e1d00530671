/* The lists of images behind the numbers. */
#include <string.h>

#include "eval/document/page_parts.h"
#include "eval/document/table_print.h"

void lk_page_image_list(struct lk_page *page, const char *key, const char *title, const int32_t *numbers, size_t n) {
    struct lk_text *out = &page->lists;
    if (page->rc) return;
    lk_page_name(page, &page->keys, key);
    lk_text_add(out, "<details class=\"list\"><summary>");
    lk_text_escaped(out, title);
    lk_text_add(out, "</summary>\n<p class=\"numbers\" id=\"images-");
    lk_print_fragment(out, key);
    lk_text_add(out, "\">Of the outputs below");
    for (size_t i = 0; i < n; i++) lk_text_add(out, " %d", (int)numbers[i]);
    lk_text_add(out, "</p>\n</details>\n");
}

static void element(struct lk_text *out, const char *name, const char *text) {
    lk_text_add(out, "<%s>", name);
    lk_text_escaped(out, text);
    lk_text_add(out, "</%s>", name);
}

static void picture(struct lk_page *page, struct lk_text *out, const char *what, const struct lk_page_image *image) {
    bool full = page->options.images == LK_PAGE_LINKED && image->link; /* the small one leads to the whole */
    if (page->rc || (!image->file && !image->link)) return;
    lk_text_add(out, full ? "<figure><a href=\"" : "<figure>");
    if (full) page->rc = lk_page_href(out, image->link);
    if (full) lk_text_add(out, "\">");
    if (!page->rc) page->rc = lk_page_img(page, out, image);
    if (full) lk_text_add(out, "</a>");
    element(out, "figcaption", image->caption ? image->caption : what);
    lk_text_add(out, "</figure>");
}

static void item_element(struct lk_page *page, struct lk_text *out, const struct lk_page_item *item) {
    const int number = (int)++page->n_items;
    lk_text_add(out, "<article class=\"item\" id=\"item-%d\"><h3>%d. ", number, number);
    lk_text_escaped(out, item->id);
    lk_text_add(out, "</h3>");
    lk_text_add(out, "<div class=\"pair\">");
    picture(page, out, "Source", &item->source);
    picture(page, out, "Output", &item->output);
    lk_text_add(out, "</div>");
    if (item->prompt) element(out, "p", item->prompt);
    if (item->n_scores > 0) {
        lk_text_add(out, "<dl>");
        for (int i = 0; i < item->n_scores; i++) {
            lk_text_add(out, "<div>");
            element(out, "dt", item->scores[i].axis);
            element(out, "dd", item->scores[i].value);
            lk_text_add(out, "</div>");
        }
        lk_text_add(out, "</dl>");
    }
    if (item->words && item->words[0]) element(out, "blockquote", item->words);
    if (item->again) element(out, "pre", item->again);
    lk_text_add(out, "</article>\n");
}

int32_t lk_page_item(struct lk_page *page, const struct lk_page_item *item) {
    if (page->rc) return 0;
    item_element(page, &page->items, item);
    return page->n_items;
}

void lk_page_item_here(struct lk_page *page, const struct lk_page_item *item) {
    if (page->rc) return;
    if (!page->in_items) lk_text_add(&page->body, "<div class=\"items\">\n");
    page->in_items = true;
    item_element(page, &page->body, item);
}
