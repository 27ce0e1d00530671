/* What goes into the page: sections, texts, tables, figures. */
#include "eval/document/page.h"

#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/page_parts.h"
#include "eval/document/table_print.h"

static enum lk_code no_memory(struct lk_page *page) {
    return page->rc = lk_fail(LK_E_NOMEM, "report: no memory; free memory and try again");
}

static const char *keep(struct lk_page *page, const char *text) {
    const char *copy = lk_store_text(&page->store, text);
    if (text && !copy) no_memory(page);
    return copy;
}

enum lk_code lk_page_new(struct lk_page **out, const struct lk_page_options *options) {
    struct lk_page *page = lk_calloc(1, sizeof *page);
    *out = NULL;
    if (!page) return lk_fail(LK_E_NOMEM, "report: no memory; free memory and try again");
    page->options = *options;
    page->options.title = keep(page, options->title ? options->title : "Report");
    page->options.run = keep(page, options->run);
    page->options.config_hash = keep(page, options->config_hash);
    page->options.date = keep(page, options->date);
    page->options.advisory = keep(page, options->advisory);
    page->options.csv_folder = keep(page, options->csv_folder);
    lk_page_name(page, &page->ids, "main"); /* ids of the page's own */
    lk_page_name(page, &page->ids, "behind");
    lk_page_name(page, &page->ids, "dialog-title");
    if (page->rc) {
        lk_page_free(page);
        return LK_E_NOMEM;
    }
    *out = page;
    return LK_OK;
}

void lk_page_free(struct lk_page *page) {
    if (!page) return;
    lk_text_free(&page->contents);
    lk_text_free(&page->body);
    lk_text_free(&page->findings);
    lk_text_free(&page->lists);
    lk_text_free(&page->items);
    lk_store_free(&page->store);
    lk_free(page);
}

static void items_end(struct lk_page *page) {
    if (page->in_items) lk_text_add(&page->body, "</div>\n");
    page->in_items = false;
}

void lk_page_section_end(struct lk_page *page) {
    items_end(page);
    if (page->in_fold) lk_text_add(&page->body, "</details>\n");
    if (page->in_section) lk_text_add(&page->body, "</section>\n");
    page->in_fold = page->in_section = false;
}

void lk_page_fold(struct lk_page *page, const char *label) {
    if (page->rc || page->in_fold) return;
    page->in_fold = true;
    lk_text_html(&page->body, "<details class=\"fold\"><summary>%s</summary>\n", label);
}

void lk_page_section(struct lk_page *page, const char *id, const char *title) {
    if (page->rc) return;
    lk_page_name(page, &page->ids, id);
    lk_page_section_end(page);
    page->in_section = true;
    lk_text_add(&page->body, "<section id=\"");
    lk_print_fragment(&page->body, id);
    lk_text_html(&page->body, "\">\n<h2>%s</h2>\n", title);
    lk_text_add(&page->contents, "<li><a href=\"#");
    lk_print_fragment(&page->contents, id);
    lk_text_html(&page->contents, "\">%s</a></li>\n", title);
}

void lk_page_subsection(struct lk_page *page, const char *title) {
    if (page->rc) return;
    items_end(page);
    lk_text_html(&page->body, "<h3>%s</h3>\n", title);
}

void lk_page_code(struct lk_page *page, const char *label, const char *text) {
    if (page->rc) return;
    lk_text_html(&page->body, "<details class=\"code\"><summary>%s</summary>\n<pre>%s</pre></details>\n", label, text);
}

static void paragraph(struct lk_page *page, const char *open, const char *format, va_list args) {
    if (page->rc) return;
    const char *text = lk_store_format(&page->store, format, args);
    if (!text) {
        no_memory(page);
        return;
    }
    lk_text_add(&page->body, "%s", open);
    lk_text_html(&page->body, "%s</p>\n", text);
}

void lk_page_paragraph(struct lk_page *page, const char *format, ...) {
    va_list args;
    va_start(args, format);
    paragraph(page, "<p>", format, args);
    va_end(args);
}

void lk_page_remark(struct lk_page *page, const char *format, ...) {
    va_list args;
    va_start(args, format);
    paragraph(page, "<p class=\"remark\">", format, args);
    va_end(args);
}

void lk_page_lead(struct lk_page *page, const char *text) {
    if (page->rc) return;
    lk_text_add(&page->findings, "%s\n", text);
    lk_text_html(&page->body, "<p class=\"lead\">%s</p>\n", text);
}

void lk_page_leads(struct lk_page *page, const char *lines) {
    for (const char *at = lines; at && *at; at += strcspn(at, "\n") + 1) {
        char *line = lk_format("%.*s", (int)strcspn(at, "\n"), at);
        if (!line) page->rc = LK_E_NOMEM;
        if (line) lk_page_lead(page, line);
        lk_free(line);
    }
}

/* <a href="...">CSV</a>: a file beside the page, or the bytes in the link. */
static void file_href(struct lk_page *page, const char *id, const char *ending) {
    struct lk_text path = {0};
    lk_text_add(&path, "%s/%s%s", page->options.csv_folder, id, ending);
    lk_text_add(&page->body, "href=\"");
    page->rc = path.rc ? path.rc : lk_page_href(&page->body, path.bytes);
    lk_text_free(&path);
}

/* svg: it is a figure's, whose drawing is a file too. */
static void csv_link(struct lk_page *page, const struct lk_table *table, bool svg) {
    struct lk_text *out = &page->body;
    lk_text_add(out, "<p class=\"files\"><a ");
    if (page->options.csv_folder) {
        file_href(page, table->id, ".csv");
    } else {
        struct lk_text csv = {0};
        lk_table_csv(table, &csv);
        lk_text_add(out, "download=\"");
        lk_print_fragment(out, table->id);
        lk_text_add(out, ".csv\" href=\"");
        lk_page_csv_data(out, &csv);
        if (csv.rc) page->rc = csv.rc;
        lk_text_free(&csv);
    }
    lk_text_html(out, "\">CSV, full precision<span class=\"hidden\">: %s</span></a>", table->caption);
    if (svg && page->options.csv_folder && !page->rc) {
        lk_text_add(out, " \302\267 <a ");
        file_href(page, table->id, ".svg");
        lk_text_html(out, "\">SVG<span class=\"hidden\">: %s</span></a>", table->caption);
    }
    lk_text_add(out, "</p>\n");
}

static void scroll_open(struct lk_text *out, const char *label) {
    lk_text_html(out, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">\n", label);
}

static void table_element(struct lk_page *page, const struct lk_table *table, bool svg) {
    if (page->rc) return;
    if (table->rc) {
        page->rc = table->rc;
        return;
    }
    lk_page_name(page, &page->ids, table->id);
    for (int r = 0; r < table->n_rows; r++)
        for (int c = 0; c < table->rows[r].n_cells; c++)
            if (table->rows[r].cells[c].link) lk_page_name(page, &page->links, table->rows[r].cells[c].link);
    scroll_open(&page->body, table->caption);
    lk_table_html(table, &page->body);
    lk_text_add(&page->body, "</div>\n");
    csv_link(page, table, svg);
}

void lk_page_table(struct lk_page *page, const struct lk_table *table) {
    if (page->rc) return;
    lk_text_add(&page->body, "<div class=\"table\">\n");
    table_element(page, table, false);
    lk_text_add(&page->body, "</div>\n");
}

void lk_page_figure(struct lk_page *page, const struct lk_figure *figure) {
    struct lk_text *out = &page->body;
    if (page->rc) return;
    lk_page_name(page, &page->ids, figure->id);
    lk_text_add(out, "<figure id=\"");
    lk_print_fragment(out, figure->id);
    lk_text_add(out, "\">\n");
    scroll_open(out, figure->title);
    lk_text_bytes(out, figure->wide.bytes, figure->wide.n);
    lk_text_bytes(out, figure->narrow.bytes, figure->narrow.n);
    lk_text_html(out, "</div>\n<figcaption><b>%s</b>", figure->title);
    if (figure->note) {
        lk_text_html(out, " <span>%s</span>", figure->note);
    }
    lk_text_add(out, "</figcaption>\n<details><summary>The numbers of this figure</summary>\n");
    table_element(page, figure->data, true);
    lk_text_add(out, "</details>\n</figure>\n");
}

void lk_page_images(struct lk_page *page, const char *caption, int columns, const struct lk_page_image *images, int n) {
    struct lk_text *out = &page->body;
    if (page->rc) return;
    columns = columns < 1 ? 1 : columns > 24 ? 24 : columns;
    lk_text_add(out, "<figure class=\"pictures\">\n<ul class=\"mosaic across-%d\">\n", columns);
    for (int i = 0; i < n && !page->rc; i++) {
        lk_text_add(out, "<li>");
        page->rc = lk_page_img(page, out, &images[i]);
        if (images[i].caption) {
            lk_text_html(out, "<span class=\"label\">%s</span>", images[i].caption);
        }
        lk_text_add(out, "</li>\n");
    }
    lk_text_html(out, "</ul>\n<figcaption>%s</figcaption>\n</figure>\n", caption ? caption : "");
}
