/* Links: files beside the page, CSV within the link, and the check that each leads somewhere. */
#include <stdlib.h>
#include <string.h>

#include "eval/document/page_parts.h"

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

void lk_page_csv_data(struct lk_text *out, const struct lk_text *csv) {
    lk_text_add(out, "data:text/csv;charset=utf-8,");
    percent_encoded(out, csv->bytes ? csv->bytes : "", csv->n, "-._~,/:;()");
}

void lk_page_name(struct lk_page *page, struct lk_page_names *names, const char *name) {
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

enum lk_code lk_page_check_names(struct lk_page *page) {
    LK_TRY(no_double(&page->ids, "sections, tables or figures"));
    LK_TRY(no_double(&page->keys, "image lists"));
    for (int i = 0; i < page->links.n; i++)
        if (!page->keys.n ||
            !bsearch(&page->links.list[i], page->keys.list, (size_t)page->keys.n, sizeof *page->keys.list, by_text))
            return lk_fail(LK_E_INTERNAL, "report: a cell leads to the images \"%.200s\", and there is no such list",
                           page->links.list[i]);
    return LK_OK;
}
