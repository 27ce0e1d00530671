#include "eval/document/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/atomic_file.h"
#include "eval/data/data.h"

enum lk_code lk_document_folder(const char *folder) {
    char path[LK_DOCUMENT_PATH_MAX];
    size_t n = strlen(folder);
    if (!n || n >= sizeof path)
        return lk_fail(LK_E_USAGE, "report: expected a folder's path of 1 to %zu bytes, got %zu", sizeof path - 1, n);
    memcpy(path, folder, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i]) continue;
        char end = path[i];
        path[i] = 0;
        struct stat st;
        if (mkdir(path, 0777) && errno != EEXIST)
            return lk_fail_errno(errno, "report: %s: cannot make the folder", path);
        if (!stat(path, &st) && !S_ISDIR(st.st_mode))
            return lk_fail(LK_E_IO, "report: %s: expected a folder, found a file; name another one", path);
        path[i] = end;
    }
    return LK_OK;
}

enum lk_code lk_document_file(const char *folder, const char *name, const char *ending, struct lk_text *text) {
    char path[LK_DOCUMENT_PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    enum lk_code rc = text->rc;
    if (!rc) rc = lk_atomic_write_file(path, text->bytes ? text->bytes : "", text->n);
    lk_text_free(text);
    return rc;
}

enum lk_code lk_document_table_files(const struct lk_table *table, const char *folder) {
    static const struct {
        const char *ending;
        void (*write)(const struct lk_table *, struct lk_text *);
    } formats[] = {
        {".csv", lk_table_csv}, {".json", lk_table_json}, {".md", lk_table_markdown}, {".tex", lk_table_latex}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct lk_text text = {0};
        formats[i].write(table, &text);
        LK_TRY(lk_document_file(folder, table->id, formats[i].ending, &text));
    }
    return LK_OK;
}

/* A rule of the page's style sheet with its colours in place of their names, which other programs do not know. The
 * first place where a colour is set is the light one. */
static void plain_rule(struct lk_text *out, const char *css, const char *rule, size_t n) {
    for (size_t i = 0; i < n;) {
        char name[32];
        size_t length = strcspn(rule + i, ")");
        const char *colour = NULL;
        if (!strncmp(rule + i, "var(--", 6) && length < sizeof name - 2) {
            snprintf(name, sizeof name, "%.*s: ", (int)(length - 4), rule + i + 4);
            colour = strstr(css, name);
        }
        if (colour) {
            colour += strlen(name);
            lk_text_bytes(out, colour, strcspn(colour, ";"));
        } else
            lk_text_bytes(out, rule + i, 1);
        i += colour ? length + 1 : 1;
    }
}

static void style(struct lk_text *out, const char *css) {
    lk_text_add(out, "<style>\nsvg { font-family: sans-serif; background: #fff; }\n");
    for (const char *line = css; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (!strncmp(line, "svg .", 5) || !strncmp(line, "svg text", 8)) {
            plain_rule(out, css, line, strcspn(line, "\n"));
            lk_text_add(out, "\n");
        }
    lk_text_add(out, "</style>\n");
}

static enum lk_code png_file(const struct lk_text *svg, const char *folder, const char *name) {
    char path[LK_DOCUMENT_PATH_MAX + 300];
    struct lk_image image;
    LK_TRY(svg->rc);
    LK_TRY(lk_figure_pixels(svg, &image));
    snprintf(path, sizeof path, "%s/%s.png", folder, name);
    enum lk_code rc = lk_png_write(path, &image, NULL, 0);
    lk_image_free(&image);
    return rc;
}

enum lk_code lk_document_drawing(const struct lk_figure *figure, const char *folder, const char *name, bool png) {
    const struct lk_run *run = figure->data->run;
    const char *svg = figure->wide.bytes, *inside = strchr(svg, '>') + 1;
    struct lk_data_file css;
    struct lk_text text = {0};
    if (!lk_data_find("page_style", &css)) return lk_fail(LK_E_INTERNAL, "the program has no data page_style");
    lk_text_bytes(&text, svg, (size_t)(inside - svg));
    if (run) {
        lk_text_html(&text, "\n<metadata>Run %s", run->name);
        lk_text_add(&text, "; configuration %s; ", run->configuration);
        if (run->n_nominal) lk_text_add(&text, "nominal N %lld; ", (long long)run->n_nominal);
        lk_text_add(&text, "valid N %lld</metadata>", (long long)run->n_valid);
    }
    lk_text_add(&text, "\n");
    style(&text, css.text);
    lk_text_bytes(&text, inside, figure->wide.n - (size_t)(inside - svg));
    enum lk_code rc = png ? png_file(&text, folder, name) : LK_OK;
    if (rc) lk_text_free(&text);
    return rc ? rc : lk_document_file(folder, name, ".svg", &text);
}

enum lk_code lk_document_figure_files(const struct lk_figure *figure, const char *folder, bool png) {
    LK_TRY(lk_document_table_files(figure->data, folder));
    return lk_document_drawing(figure, folder, figure->data->id, png);
}
