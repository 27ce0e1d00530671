/* The lists of images behind the numbers. */
#include <string.h>

#include "eval/document/page_parts.h"
#include "eval/document/table_print.h"

void lk_page_image_list(struct lk_page *page, const char *key, const char *title) {
    struct lk_text *out = &page->lists;
    if (page->rc) return;
    lk_page_name(page, &page->keys, key);
    if (page->in_list) lk_text_add(out, "</div>\n</details>\n");
    page->in_list = true;
    lk_text_add(out, "<details class=\"list\"><summary>");
    lk_text_escaped(out, title);
    lk_text_add(out, "</summary>\n<div class=\"items\" id=\"images-");
    lk_print_fragment(out, key);
    lk_text_add(out, "\">\n");
}

static void element(struct lk_text *out, const char *name, const char *text) {
    lk_text_add(out, "<%s>", name);
    lk_text_escaped(out, text);
    lk_text_add(out, "</%s>", name);
}

static void picture(struct lk_page *page, const char *what, const struct lk_page_image *image) {
    struct lk_text *out = &page->lists;
    if (page->rc || (!image->file && !image->link)) return;
    lk_text_add(out, "<figure>");
    page->rc = lk_page_img(page, out, image);
    element(out, "figcaption", image->caption ? image->caption : what);
    lk_text_add(out, "</figure>");
}

void lk_page_item(struct lk_page *page, const struct lk_page_item *item) {
    struct lk_text *out = &page->lists;
    if (page->rc) return;
    if (!page->in_list) {
        page->rc = lk_fail(LK_E_INTERNAL, "report: item \"%.200s\" before the first image list", item->id);
        return;
    }
    page->n_items++;
    lk_text_add(out, "<article class=\"item\">");
    element(out, "h4", item->id);
    lk_text_add(out, "<div class=\"pair\">");
    picture(page, "Source", &item->source);
    picture(page, "Output", &item->output);
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
    lk_text_add(out, "</article>\n");
}
