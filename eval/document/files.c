#include "eval/document/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/atomic_file.h"

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
