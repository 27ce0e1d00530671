/* t2i post-filter into a folder: copies of the pictures that are kept, where they lie in the log's folder, with their
 * labels and a log of their own, so that DIR is read as the folder of any run. */
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "eval/document/files.h"
#include "eval/scores/csv.h"
#include "eval/scores/dataset.h"
#include "eval/t2i/post_filter.h"
#include "tools/cli/cli.h"
#include "tools/cli/t2i/t2i.h"

enum { MOST_PICTURE_BYTES = 1 << 30 };

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "t2i post-filter: out of memory"); }

/* Below the folder and nowhere else. */
static bool lies_below(const char *path) {
    bool below = *path && *path != '/';
    for (const char *at = path; below && at; at = strchr(at, '/'), at += at ? 1 : 0)
        below = strncmp(at, "../", 3) != 0 && strcmp(at, "..") != 0;
    return below;
}

static enum lk_code copy_picture(const char *folder, const char *path, const char *to) {
    char *from = lk_format("%s/%s", folder, path), *whole = lk_format("%s/%s", to, path), *bytes = NULL;
    size_t n = 0;
    enum lk_code rc = from && whole ? lk_read_file(from, MOST_PICTURE_BYTES, &bytes, &n) : out_of_memory();
    if (!rc) {
        char *slash = strrchr(whole, '/');
        *slash = 0;
        rc = lk_document_folder(whole);
        *slash = '/';
    }
    if (!rc) rc = lk_atomic_write_file(whole, bytes, n);
    lk_free(bytes);
    lk_free(from);
    lk_free(whole);
    return rc;
}

/* The paths that the kept labels name. */
static enum lk_code read_paths(const struct lk_text *labels, struct lk_names *paths) {
    struct lk_csv csv;
    int column;
    int32_t ignored;
    LK_TRY(lk_csv_open(&csv, labels->bytes, labels->n, "labels"));
    enum lk_code rc = lk_csv_require(&csv, "file_path", &column);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        const char *path = !rc && more ? lk_csv_cell(&csv, column) : "";
        if (!rc && more && !lies_below(path))
            rc = lk_fail(LK_E_INPUT,
                         "t2i post-filter: \"%.200s\": expected a path in the log's folder, to be copied to the same "
                         "place in --output; name a FILE.csv there instead",
                         path);
        if (!rc && more) rc = lk_names_number(paths, path, strlen(path), &ignored);
    }
    lk_csv_close(&csv);
    return rc;
}

static enum lk_code write_file(const struct cli_arguments *arguments, const char *name, const struct lk_text *text) {
    struct cli_arguments a = *arguments;
    char *path = lk_format("%s/%s", arguments->output, name);
    a.output = path;
    enum lk_code rc = path ? cli_output_write(&a, text) : out_of_memory();
    lk_free(path);
    return rc;
}

enum lk_code cli_t2i_filtered_folder(const struct cli_arguments *a, const struct lk_text *labels) {
    struct lk_names paths = {0};
    struct lk_text text = {0};
    struct stat of_log, of_output;
    char *log = NULL, *folder = a->t2i.log ? lk_strdup(a->t2i.log) : NULL,
         *slash = folder ? strrchr(folder, '/') : NULL;
    size_t n = 0;
    if (!a->t2i.log)
        return lk_fail(LK_E_USAGE, "t2i post-filter: expected --in DIR, whose pictures are copied to the folder "
                                   "--output; name a FILE.csv for their labels alone");
    if (!folder) return out_of_memory();
    if (slash) slash[slash == folder] = 0;
    const char *from = slash ? folder : ".";
    enum lk_code rc = lk_document_folder(a->output);
    if (!rc && !stat(from, &of_log) && !stat(a->output, &of_output) && of_log.st_ino == of_output.st_ino &&
        of_log.st_dev == of_output.st_dev)
        rc = lk_fail(LK_E_USAGE, "--output: %s: is the folder that --in reads; name another folder", a->output);
    if (!rc) rc = read_paths(labels, &paths);
    if (!rc) rc = lk_read_file(a->t2i.log, LK_SCORES_MAX_BYTES, &log, &n);
    if (!rc) rc = lk_t2i_post_filter_log(&paths, log, n, a->t2i.log, &text);
    if (!rc) rc = write_file(a, "labels.csv", labels); /* which says if another run's are there */
    for (size_t i = 0; i < paths.n && !rc; i++) rc = copy_picture(from, paths.list[i], a->output);
    if (!rc) rc = write_file(a, "generation_log.csv", &text);
    lk_names_free(&paths);
    lk_text_free(&text);
    lk_free(log);
    lk_free(folder);
    return rc;
}
