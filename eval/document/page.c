/* What goes into the page (sections, texts, tables, figures), and the whole page around it. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/data/data.h"
#include "eval/document/page.h"
#include "eval/document/page_parts.h"
#include "eval/document/table_print.h"

/* Links: files beside the page, CSV within the link, and the check that each leads somewhere. */

static void percent_encoded(struct lk_text *out, const char *bytes, size_t n, const char *kept) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr(kept, c));
        if (plain)
            lk_text_bytes(out, bytes + i, 1);
        else
            lk_text_add(out, "%%%02X", c);
    }
}

enum lk_code lk_page_href(struct lk_text *out, const char *path) {
    if (!path[0] || path[0] == '/' || path[0] == '\\')
        return lk_fail(LK_E_INPUT, "report: expected the path of an image relative to the page, got \"%.200s\"", path);
    lk_text_bytes(out, "./", 2); /* so that no name can be read as a scheme or a host */
    percent_encoded(out, path, strlen(path), "-._~/");
    return out->rc;
}

/* href="data:text/csv..." */
static void page_csv_data(struct lk_text *out, const struct lk_text *csv) {
    lk_text_add(out, "data:text/csv;charset=utf-8,");
    percent_encoded(out, csv->bytes ? csv->bytes : "", csv->n, "-._~,/:;()");
}

/* Notes a name, for page_check_names. */
static void page_name(struct lk_page *page, struct lk_page_names *names, const char *name) {
    if (page->rc) return;
    if (names->n == names->capacity) {
        int capacity = names->capacity ? 2 * names->capacity : 64;
        const char **list = lk_store_alloc(&page->store, (size_t)capacity * sizeof *list);
        if (!list) {
            page->rc = lk_fail(LK_E_NOMEM, "report: no memory for %d names; free memory and try again", capacity);
            return;
        }
        if (names->n) memcpy(list, names->list, (size_t)names->n * sizeof *list);
        names->list = list;
        names->capacity = capacity;
    }
    if (!(names->list[names->n] = lk_store_text(&page->store, name)))
        page->rc = lk_fail(LK_E_NOMEM, "report: no memory for the name \"%.40s\"; free memory and try again", name);
    else
        names->n++;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static enum lk_code no_double(struct lk_page_names *names, const char *what) {
    if (names->n > 1) qsort(names->list, (size_t)names->n, sizeof *names->list, by_text);
    for (int i = 1; i < names->n; i++)
        if (!strcmp(names->list[i - 1], names->list[i]))
            return lk_fail(LK_E_INTERNAL, "report: two %s are named \"%.200s\"", what, names->list[i]);
    return LK_OK;
}

/* LK_E_INTERNAL when an id occurs twice or a link has no list. */
static enum lk_code page_check_names(struct lk_page *page) {
    LK_TRY(no_double(&page->ids, "sections, tables or figures"));
    LK_TRY(no_double(&page->keys, "image lists"));
    for (int i = 0; i < page->links.n; i++)
        if (!page->keys.n ||
            !bsearch(&page->links.list[i], page->keys.list, (size_t)page->keys.n, sizeof *page->keys.list, by_text))
            return lk_fail(LK_E_INTERNAL, "report: a cell leads to the images \"%.200s\", and there is no such list",
                           page->links.list[i]);
    return LK_OK;
}

/* What goes into the page: sections, texts, tables, figures. */

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
    page_name(page, &page->ids, "main"); /* ids of the page's own */
    page_name(page, &page->ids, "behind");
    page_name(page, &page->ids, "dialog-title");
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

/* Closes the section that is open, if one is. */
static void page_section_end(struct lk_page *page) {
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
    page_name(page, &page->ids, id);
    page_section_end(page);
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
        page_csv_data(out, &csv);
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
    page_name(page, &page->ids, table->id);
    for (int r = 0; r < table->n_rows; r++)
        for (int c = 0; c < table->rows[r].n_cells; c++)
            if (table->rows[r].cells[c].link) page_name(page, &page->links, table->rows[r].cells[c].link);
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
    page_name(page, &page->ids, figure->id);
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

/* The lists of images behind the numbers. */

void lk_page_image_list(struct lk_page *page, const char *key, const char *title, const int32_t *numbers, size_t n) {
    struct lk_text *out = &page->lists;
    if (page->rc) return;
    page_name(page, &page->keys, key);
    lk_text_html(out, "<details class=\"list\"><summary>%s</summary>\n<p class=\"numbers\" id=\"images-", title);
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
    lk_text_html(out, "<article class=\"item\" id=\"item-%d\"><h3>%d. %s</h3><div class=\"pair\">", number, number,
                 item->id);
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

/* 'sha256-...' of what stands in a <style> or <script>, so that nothing else can run. */
static enum lk_code source_hash(struct lk_text *out, const struct lk_data_file *file) {
    unsigned char digest[EVP_MAX_MD_SIZE], text[4 * ((EVP_MAX_MD_SIZE + 2) / 3) + 1];
    unsigned n = 0;
    if (EVP_Digest(file->text, file->n_bytes, digest, &n, EVP_sha256(), NULL) != 1)
        return lk_fail(LK_E_NOMEM, "report: no memory for a digest; free memory and try again");
    EVP_EncodeBlock(text, digest, (int)n);
    lk_text_add(out, "'sha256-%s'", (const char *)text);
    return out->rc;
}

static enum lk_code head(const struct lk_page *page, struct lk_text *out, const struct lk_data_file *style,
                         const struct lk_data_file *script) {
    lk_text_add(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src %sdata:; style-src ",
        page->options.images == LK_PAGE_LINKED ? "'self' file: " : "");
    LK_TRY(source_hash(out, style));
    lk_text_add(out, "; script-src ");
    LK_TRY(source_hash(out, script));
    lk_text_add(out,
                "; base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
                "<meta name=\"generator\" content=\"likeness %s\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
                LIKENESS_VERSION);
    lk_text_html(out, "%s</title>\n<style>", page->options.title);
    lk_text_bytes(out, style->text, style->n_bytes);
    lk_text_add(out, "</style>\n</head>\n");
    return out->rc;
}

static void fact(struct lk_text *out, const char *name, const char *value) {
    if (!value) return;
    lk_text_add(out, "<div><dt>%s</dt><dd>", name);
    lk_text_html(out, "%s</dd></div>\n", value);
}

static void facts(const struct lk_page_options *options, struct lk_text *out) {
    char nominal[LK_NUMBER_MAX], valid[LK_NUMBER_MAX];
    lk_print_count(nominal, options->n_nominal);
    lk_print_count(valid, options->n_valid);
    lk_text_add(out, "<dl class=\"facts\">\n");
    fact(out, "Run", options->run);
    fact(out, "Configuration", options->config_hash);
    fact(out, "Nominal N", options->n_nominal ? nominal : NULL);
    fact(out, "Valid N", valid);
    fact(out, "Date", options->date);
    lk_text_add(out, "</dl>\n");
}

static void top(const struct lk_page *page, struct lk_text *out) {
    lk_text_html(out,
                 "<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n<div "
                 "class=\"sheet\">\n<header>\n<h1>%s</h1>\n",
                 page->options.title);
    facts(&page->options, out);
    if (page->options.advisory) {
        lk_text_html(out, "<p class=\"advisory\" role=\"note\"><b>Content advisory.</b> %s</p>\n",
                     page->options.advisory);
    }
    if (page->options.images == LK_PAGE_AUDIT_SAFE)
        lk_text_add(out,
                    "<p class=\"remark\">Pictures are reduced and faces covered by a mosaic; the originals are not "
                    "part of this page.</p>\n");
    lk_text_add(out, "<div class=\"tools\"></div>\n</header>\n");
}

enum lk_code lk_page_text(struct lk_page *page, struct lk_text *out) {
    struct lk_data_file style, script;
    if (page->rc) return page->rc;
    page_section_end(page);
    const struct lk_text *parts[] = {&page->contents, &page->body, &page->lists, &page->items};
    for (int i = 0; i < 4; i++)
        if (parts[i]->rc) return parts[i]->rc;
    LK_TRY(page_check_names(page));
    if (!lk_data_find("page_style", &style) || !lk_data_find("page_script", &script))
        return lk_fail(LK_E_INTERNAL, "the program has no data page_style and page_script");
    LK_TRY(head(page, out, &style, &script));
    top(page, out);
    lk_text_add(out, "<div class=\"columns\">\n<nav aria-label=\"Contents\">\n<h2>Contents</h2>\n<ol>\n");
    lk_text_bytes(out, page->contents.bytes, page->contents.n);
    if (page->keys.n) lk_text_add(out, "<li><a href=\"#behind\">Images behind the numbers</a></li>\n");
    lk_text_add(out, "</ol>\n</nav>\n<main id=\"main\" tabindex=\"-1\">\n");
    lk_text_bytes(out, page->body.bytes, page->body.n);
    if (page->keys.n) {
        lk_text_add(out,
                    "<section id=\"behind\" class=\"behind\">\n<h2>Images behind the numbers</h2>\n"
                    "<details class=\"list\"><summary>Which outputs a number is of, %d lists</summary>\n",
                    page->keys.n);
        lk_text_bytes(out, page->lists.bytes, page->lists.n);
        lk_text_add(out,
                    "</details>\n<details class=\"list\"><summary>The outputs, %d</summary>\n<div class=\"items\">\n",
                    (int)page->n_items);
        lk_text_bytes(out, page->items.bytes ? page->items.bytes : "", page->items.n);
        lk_text_add(out, "</div>\n</details>\n</section>\n");
    }
    lk_text_add(out, "<footer>\n");
    facts(&page->options, out);
    lk_text_add(out, "</footer>\n</main>\n</div>\n</div>\n<script>");
    lk_text_bytes(out, script.text, script.n_bytes);
    lk_text_add(out, "</script>\n</body>\n</html>\n");
    return out->rc;
}

enum lk_code lk_page_write(struct lk_page *page, const char *path) {
    struct lk_text text = {0};
    enum lk_code rc = lk_page_text(page, &text);
    if (!rc) rc = lk_atomic_write_file(path, text.bytes, text.n);
    lk_text_free(&text);
    if (!rc) rc = page->findings.rc;
    const char *slash = strrchr(path, '/');
    char *beside =
        rc || !page->findings.n ? NULL : lk_format("%.*sfindings.txt", slash ? (int)(slash - path) + 1 : 0, path);
    if (!rc && page->findings.n)
        rc = beside ? lk_atomic_write_file(beside, page->findings.bytes, page->findings.n)
                    : lk_fail(LK_E_NOMEM, "%s: out of memory", path);
    lk_free(beside);
    return rc;
}
