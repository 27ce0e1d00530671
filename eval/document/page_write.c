/* The whole page around its parts. */
#include <string.h>

#include <openssl/evp.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "eval/data/data.h"
#include "eval/document/page_parts.h"
#include "eval/document/table_print.h"

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
    lk_text_escaped(out, page->options.title);
    lk_text_add(out, "</title>\n<style>");
    lk_text_bytes(out, style->text, style->n_bytes);
    lk_text_add(out, "</style>\n</head>\n");
    return out->rc;
}

static void fact(struct lk_text *out, const char *name, const char *value) {
    if (!value) return;
    lk_text_add(out, "<div><dt>%s</dt><dd>", name);
    lk_text_escaped(out, value);
    lk_text_add(out, "</dd></div>\n");
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
    lk_text_add(
        out, "<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n<div class=\"sheet\">\n<header>\n<h1>");
    lk_text_escaped(out, page->options.title);
    lk_text_add(out, "</h1>\n");
    facts(&page->options, out);
    if (page->options.advisory) {
        lk_text_add(out, "<p class=\"advisory\" role=\"note\"><b>Content advisory.</b> ");
        lk_text_escaped(out, page->options.advisory);
        lk_text_add(out, "</p>\n");
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
    lk_page_section_end(page);
    const struct lk_text *parts[] = {&page->contents, &page->body, &page->lists, &page->items};
    for (int i = 0; i < 4; i++)
        if (parts[i]->rc) return parts[i]->rc;
    LK_TRY(lk_page_check_names(page));
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
