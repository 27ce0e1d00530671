#include "weights/verify_list.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "weights/checkpoint.h"
#include "weights/mapped_file.h"
#include "engine/base/text.h"
#include "weights/paths.h"

#define MAX_DEPTH          16
#define MAX_MANIFEST_BYTES ((size_t)16 << 20)

static enum lk_code out_of_memory(const char *folder) { return lk_fail(LK_E_NOMEM, "%s: out of memory", folder); }

static bool is_hex(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)text[i])) return false;
    return true;
}

static void set_expected(struct lk_verify_file *file, const char *hex, size_t n) {
    for (size_t i = 0; i < n; i++) file->expected[i] = (char)tolower((unsigned char)hex[i]);
    file->expected[n] = 0;
}

/* Takes `path` over, also when it fails. */
static enum lk_code add(struct lk_verify_report *report, const char *folder, char *path, struct lk_verify_file **out) {
    if (lk_grow(&report->files, &report->capacity, report->n_files + 1, sizeof *report->files)) {
        lk_free(path);
        return out_of_memory(folder);
    }
    *out = &report->files[report->n_files++];
    **out = (struct lk_verify_file){.path = path, .result = LK_VERIFY_NO_DIGEST};
    return LK_OK;
}

/* Size, and the digest that the HF library has kept. */
static enum lk_code look_at(struct lk_verify_file *file, const char *folder, bool kept_digests) {
    char *path = NULL;
    struct stat st;
    enum lk_code rc = lk_model_path(folder, file->path, &path);
    if (!rc && (stat(path, &st) < 0 || !S_ISREG(st.st_mode))) rc = LK_E_NOT_REGULAR;
    if (!rc) file->bytes = (uint64_t)st.st_size;
    if (!rc && kept_digests) rc = lk_model_digest(folder, file->path, file->expected);
    lk_free(path);
    if (rc == LK_E_NOMEM) return rc;
    if (rc) file->result = LK_VERIFY_UNREADABLE;
    return LK_OK;
}

static enum lk_code list_folder(struct lk_verify_report *report, const char *folder, const char *below, int depth,
                                bool kept_digests);

/* One entry of a folder; `relative` is taken over. */
static enum lk_code list_entry(struct lk_verify_report *report, const char *folder, char *relative, int depth,
                               bool kept_digests) {
    struct stat st;
    char *path = relative ? lk_format("%s/%s", folder, relative) : NULL;
    if (!path) {
        lk_free(relative);
        return out_of_memory(folder);
    }
    bool is_folder = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
    lk_free(path);
    if (is_folder) {
        enum lk_code rc = list_folder(report, folder, relative, depth + 1, kept_digests);
        lk_free(relative);
        return rc;
    }
    struct lk_verify_file *file;
    enum lk_code rc = add(report, folder, relative, &file);
    return rc ? rc : look_at(file, folder, kept_digests);
}

static enum lk_code list_folder(struct lk_verify_report *report, const char *folder, const char *below, int depth,
                                bool kept_digests) {
    if (depth > MAX_DEPTH) return lk_fail(LK_E_INPUT, "%s/%s: folders nested deeper than %d", folder, below, MAX_DEPTH);
    char *path = *below ? lk_format("%s/%s", folder, below) : lk_strdup(folder);
    if (!path) return out_of_memory(folder);
    DIR *dir = opendir(path);
    enum lk_code rc = dir ? LK_OK : lk_fail_errno(errno, "%s: cannot list the folder", path);
    for (struct dirent *entry; !rc && (errno = 0, entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *relative = *below ? lk_format("%s/%s", below, entry->d_name) : lk_strdup(entry->d_name);
        rc = list_entry(report, folder, relative, depth, kept_digests);
        errno = 0;
    }
    if (dir && !rc && errno) rc = lk_fail_errno(errno, "%s: cannot list the folder", path);
    if (dir) closedir(dir);
    lk_free(path);
    return rc;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct lk_verify_file *)a)->path, ((const struct lk_verify_file *)b)->path);
}

static void sort(struct lk_verify_report *report) {
    if (report->n_files) qsort(report->files, report->n_files, sizeof *report->files, by_path);
}

enum lk_code lk_verify_list(struct lk_verify_report *out, const char *folder, bool kept_digests) {
    memset(out, 0, sizeof *out);
    enum lk_code rc = list_folder(out, folder, "", 0, kept_digests);
    sort(out);
    if (rc) lk_verify_free(out);
    return rc;
}

/* sha256sum writes names with a backslash or a newline escaped, behind a backslash at the line's begin. In place; false
 * for an escape that it does not make. */
static bool unescape(char *name) {
    char *to = name;
    for (const char *from = name; *from; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        from++;
        if (*from != '\\' && *from != 'n' && *from != 'r') return false;
        *to++ = *from == 'n' ? '\n' : *from == 'r' ? '\r' : '\\';
    }
    *to = 0;
    return true;
}

/* "HEX  NAME" or "HEX *NAME"; false when the line is neither. */
static bool split_line(char *line, const char **hex, char **name) {
    bool escaped = *line == '\\';
    if (escaped) line++;
    if (strlen(line) < 67 || !is_hex(line, 64) || line[64] != ' ' || (line[65] != ' ' && line[65] != '*')) return false;
    *hex = line;
    *name = line + 66;
    if (!strncmp(*name, "./", 2)) *name += 2;
    return escaped ? unescape(*name) : true;
}

/* n_sorted: the files that the folder has; behind them come those that only the manifest names. */
static enum lk_code add_line(struct lk_verify_report *report, size_t n_sorted, const char *folder, const char *hex,
                             char *name) {
    struct lk_verify_file key = {.path = name};
    struct lk_verify_file *file = n_sorted ? bsearch(&key, report->files, n_sorted, sizeof key, by_path) : NULL;
    if (!lk_stays_below(name))
        return lk_fail(LK_E_ESCAPES, "expected a file inside the model folder, got \"%.200s\"", name);
    if (file && file->expected[0]) return lk_fail(LK_E_INPUT, "\"%.200s\" occurs twice", name);
    if (!file) {
        char *path = lk_strdup(name);
        enum lk_code rc = path ? add(report, folder, path, &file) : out_of_memory(folder);
        if (rc) return rc;
        file->result = LK_VERIFY_UNREADABLE;
    }
    set_expected(file, hex, 64);
    return LK_OK;
}

static enum lk_code add_lines(struct lk_verify_report *report, const char *folder, const char *manifest_path,
                              char *text) {
    size_t n_sorted = report->n_files, number = 0;
    for (char *line = text, *next; line; line = next) {
        const char *hex;
        char *name;
        number++;
        if ((next = strchr(line, '\n'))) *next++ = 0;
        line[strcspn(line, "\r")] = 0;
        if (!*line) continue;
        if (!split_line(line, &hex, &name))
            return lk_fail(LK_E_INPUT, "%s: line %zu: expected 64 hexadecimal digits, two spaces and a file name",
                           manifest_path, number);
        enum lk_code rc = add_line(report, n_sorted, folder, hex, name);
        if (rc) return lk_fail_prefix(rc, "%s: line %zu", manifest_path, number);
    }
    return LK_OK;
}

enum lk_code lk_verify_add_manifest(struct lk_verify_report *report, const char *folder, const char *manifest_path) {
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(manifest_path, MAX_MANIFEST_BYTES, &text, &n);
    if (rc) return rc;
    if (strlen(text) != n)
        rc = lk_fail(LK_E_INPUT, "%s: byte %zu: expected text, got NUL", manifest_path, strlen(text));
    else
        rc = add_lines(report, folder, manifest_path, text);
    lk_free(text);
    sort(report);
    return rc;
}
