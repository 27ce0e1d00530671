#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/atomic_file.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/document/files.h"
#include "eval/document/page.h"
#include "eval/document/page_image.h"
#include "eval/document/table_print.h"
#include "eval/hosted/images.h"
#include "eval/scores/csv.h"
#include "eval/scores/dataset.h"
#include "eval/study/random.h"
#include "eval/t2i/post_filter.h"
#include "models/face/yunet.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/t2i/t2i.h"

/* t2i post-filter into a folder: copies of the pictures that are kept, where they lie in the log's folder, with their
 * labels and a log of their own, so that DIR is read as the folder of any run. */

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

/* t2i export: pictures that may be shown to auditors. Small, faces under a mosaic, nothing of the files themselves, and
 * a content advisory. */

enum { SIDE = 256, MAX_FACES = 64, ROW = 6 };
static const char advisory[] =
    "The prompts of these pictures name negative social roles. They were made by a model, show nobody, and say nothing "
    "about real people or groups. They are reduced and faces are covered; the originals are not part of this folder.";

struct exporter {
    const struct cli_arguments *arguments;
    struct lk_t2i_images images;
    struct lk_yunet *net;
    struct lk_text table;
    struct lk_page_image *shown; /* [logged.n] */
    size_t n_shown, n_bad;
};

/* All that may be a face: one that is none costs less than one that is left. */
static enum lk_code find_faces(const struct exporter *e, const char *path, int faces[MAX_FACES][4], size_t *n) {
    const struct lk_yunet_search search = {.min_score = 0.3, .max_overlap = 0.3};
    struct lk_image image;
    struct lk_face *found;
    LK_TRY(lk_image_read(&image, path, 1, 0));
    enum lk_code rc = lk_yunet_detect(e->net, &image, &search, &found, n);
    lk_image_free(&image);
    if (rc) return rc;
    if (*n > MAX_FACES) *n = 0; /* a crowd: the whole picture */
    for (size_t i = 0; i < *n; i++) {
        const float at[4] = {found[i].x, found[i].y, found[i].width, found[i].height};
        for (int k = 0; k < 4; k++) faces[i][k] = (int)fmin(fmax(k < 2 ? floor(at[k]) : ceil(at[k]) + 1, -1e6), 1e6);
    }
    lk_free(found);
    return LK_OK;
}

/* Picture i of the log as FOLDER/images/NUMBER.png, without any text of the file it comes from. */
static enum lk_code export_one(struct exporter *e, size_t i) {
    int faces[MAX_FACES][4], size[2];
    struct lk_image small = {0};
    size_t n;
    const struct lk_t2i_logged *line = &e->images.log[i];
    char *from = cli_t2i_path(e->arguments, &e->images, i);
    char *link = lk_format("images/%05zu.png", e->n_shown + 1), *to = lk_format("%s/%s", e->arguments->output, link);
    enum lk_code rc = from && link && to ? find_faces(e, from, faces, &n) : lk_fail(LK_E_NOMEM, "t2i: out of memory");
    if (!rc) rc = lk_image_read_small(&small, from, SIDE, size);
    if (!rc) {
        lk_image_hide(&small, size, faces[0], n);
        rc = lk_png_write(to, &small, NULL, 0);
    }
    if (!rc) {
        lk_text_add(&e->table, "%s,", link);
        cli_t2i_key(line, &e->table);
        lk_text_add(&e->table, "%s,%zu\r\n", lk_t2i_arm_key(line->arm), n);
        e->shown[e->n_shown++] = (struct lk_page_image){.link = link,
                                                        .alt = line->prompt_id,
                                                        .caption = line->prompt_id,
                                                        .width = small.width,
                                                        .height = small.height};
        link = NULL; /* the page's now */
    }
    lk_image_free(&small);
    lk_free(from);
    lk_free(link);
    lk_free(to);
    return rc ? rc : e->table.rc;
}

static enum lk_code write_page(const struct exporter *e) {
    struct lk_page *page;
    struct lk_text words = {0};
    char *path = lk_format("%s/report.html", e->arguments->output);
    lk_text_add(&words, "Content advisory. %s\n", advisory);
    enum lk_code rc = lk_document_file(e->arguments->output, "ADVISORY", ".txt", &words);
    if (!rc && !path) rc = lk_fail(LK_E_NOMEM, "t2i: out of memory");
    if (!rc) rc = lk_page_new(&page, &(struct lk_page_options){.title = "Pictures for an audit", .advisory = advisory});
    if (!rc) {
        lk_page_section(page, "pictures", "Pictures");
        lk_page_paragraph(page,
                          "%zu pictures, at most %d pixels a side, each under the id of its prompt; pictures.csv "
                          "has seed, CFG and mitigation.",
                          e->n_shown, SIDE);
        lk_page_images(page, "Reduced, faces covered", ROW, e->shown, (int)e->n_shown);
        rc = lk_page_write(page, path);
        lk_page_free(page);
    }
    lk_free(path);
    return rc;
}

static enum lk_code run(struct exporter *e) {
    const struct cli_arguments *a = e->arguments;
    if (!a->t2i.log || !a->report.faces || !a->output)
        return lk_fail(LK_E_USAGE, "t2i export: expected --log FILE, --faces FILE and --output DIR");
    LK_TRY(cli_t2i_log(a, &e->images));
    LK_TRY(lk_yunet_open(&e->net, a->report.faces));
    e->shown = lk_calloc(e->images.logged.n + 1, sizeof *e->shown);
    char *folder = lk_format("%s/images", a->output);
    enum lk_code rc =
        e->shown && folder ? lk_document_folder(folder) : lk_fail(LK_E_NOMEM, "t2i export: out of memory");
    lk_free(folder);
    cli_signals_install();
    lk_text_add(&e->table, "file_path,prompt_id,model_tag,seed,cfg,arm,faces\r\n");
    for (size_t i = 0; i < e->images.logged.n && !rc && !(rc = cli_signals_check()); i++) {
        rc = export_one(e, i);
        if (!rc || rc == LK_E_NOMEM || rc == LK_E_INTERNAL || rc == LK_E_IO || rc == LK_E_DISK_FULL) continue;
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        e->n_bad++;
        rc = LK_OK;
    }
    if (rc) return rc;
    if (!e->n_shown) return lk_fail(LK_E_INPUT, "%s: none of its %zu pictures can be read", a->t2i.log, e->n_bad);
    LK_TRY(lk_document_file(a->output, "pictures", ".csv", &e->table));
    LK_TRY(write_page(e));
    lk_log(LK_LOG_INFO, "%zu pictures", e->n_shown);
    return e->n_bad ? lk_fail(LK_E_PARTIAL, "%s: %zu of %zu pictures cannot be read; the others were exported",
                              a->t2i.log, e->n_bad, e->images.logged.n)
                    : LK_OK;
}

enum lk_code cli_t2i_export(const struct cli_arguments *arguments) {
    struct exporter e = {.arguments = arguments};
    lk_t2i_images_init(&e.images);
    enum lk_code rc = run(&e);
    for (size_t i = 0; i < e.n_shown; i++) lk_free((char *)(uintptr_t)e.shown[i].link);
    lk_free(e.shown);
    lk_yunet_close(e.net);
    lk_text_free(&e.table);
    lk_t2i_images_free(&e.images);
    return rc;
}

/* t2i import: the log of pictures of a model that is not run here, with their digests and what came of each. */

/* A picture of the log that can be read. */
struct picture {
    const struct lk_t2i_logged *line;
    const char *path;
    int width, height;
    char sha256[65];
};

struct import {
    const struct cli_arguments *arguments;
    struct lk_t2i_images log;
    struct picture *pictures;       /* [n] */
    struct lk_picture_signs *signs; /* [n] */
    size_t n, n_bad, of[LK_N_OUTCOMES], n_blurred;
};

static enum lk_code look_at(struct import *m, size_t i) {
    const struct lk_t2i_logged *line = &m->log.log[i];
    struct picture *picture = &m->pictures[m->n];
    struct lk_picture_signs *signs = &m->signs[m->n];
    struct lk_image image = {0};
    const char *tag = line->model_tag, *path = m->log.logged.list[i];
    if (line->arm == LK_T2I_EMBED_NORM && !cli_t2i_runs_here(tag))
        return lk_fail(LK_E_INPUT, "%s: the arm embed_norm is made by models that run here, and \"%.60s\" is none",
                       path, tag);
    char name[256], *whole = cli_t2i_path(m->arguments, &m->log, i);
    enum lk_code rc = whole ? lk_recipe_image_read(whole, NULL, true, &image, name, picture->sha256) : LK_E_NOMEM;
    lk_free(whole);
    if (rc) return rc;
    picture->line = line, picture->path = path;
    picture->width = image.width, picture->height = image.height;
    rc = lk_picture_signs_of(&image, signs);
    signs->model = line->model_tag, signs->prompt = line->prompt_id;
    char asked[400];
    snprintf(asked, sizeof asked, "%.200s %d %d %g", line->prompt_id, line->arm, line->canvas, line->cfg);
    signs->asked = lk_fnv1a64(asked);
    lk_image_free(&image);
    m->n += !rc;
    return rc;
}

/* A picture that cannot be read is named; the others are looked at beside each other. */
static enum lk_code look_at_all(struct import *m) {
    m->pictures = lk_calloc(m->log.logged.n + 1, sizeof *m->pictures);
    m->signs = lk_calloc(m->log.logged.n + 1, sizeof *m->signs);
    if (!m->pictures || !m->signs) return lk_fail(LK_E_NOMEM, "t2i import: out of memory");
    for (size_t i = 0; i < m->log.logged.n; i++) {
        enum lk_code rc = look_at(m, i);
        if (rc == LK_E_INTERNAL) return rc;
        if (!rc) continue;
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        m->n_bad++;
    }
    return lk_picture_signs_compare(m->signs, m->n);
}

static void add_line(struct import *m, const struct lk_t2i_logged *line, const char *path,
                     const struct picture *picture, const struct lk_asked *asked, struct lk_text *out) {
    cli_t2i_key(line, out);
    lk_print_csv_field(out, path, "");
    lk_text_add(out, ",%s,", lk_t2i_arm_key(line->arm));
    if (picture) lk_text_add(out, "%d,%d", picture->width, picture->height);
    lk_text_add(out, "%s,%s,%s", picture ? "" : ",", line->canvas ? "canvas" : "text", picture ? picture->sha256 : "");
    lk_asked_csv(asked, out);
    lk_text_add(out, "%s\r\n", line->more);
    m->of[asked->outcome]++;
}

/* Pictures in the order of the log, then what is none. */
static enum lk_code add_lines(struct import *m, struct lk_text *out) {
    lk_text_add(out, "prompt_id,model_tag,seed,cfg,file_path,arm,width,height,mode,sha256");
    lk_asked_csv_header(out);
    lk_text_add(out, "%s\r\n", m->log.more.n ? m->log.more.bytes : "");
    for (size_t i = 0; i < m->n; i++) {
        const struct picture *p = &m->pictures[i];
        struct lk_asked asked = p->line->asked;
        if (m->signs[i].placeholder) {
            asked.outcome = LK_OUTCOME_PLACEHOLDER;
            asked.cells[LK_ASKED_STAGE] = "placeholder";
            asked.cells[LK_ASKED_CODE] = lk_placeholder_key(m->signs[i].placeholder);
        }
        if (m->signs[i].blurred)
            lk_log(LK_LOG_WARNING, "%s: far less sharp than the model's other pictures; look at it (likeness review)",
                   p->path);
        m->n_blurred += m->signs[i].blurred;
        add_line(m, p->line, p->path, p, &asked, out);
    }
    for (size_t i = 0; i < m->log.n_unmade; i++) {
        const struct lk_t2i_logged *line = &m->log.unmade[i];
        add_line(m, line, line->path, NULL, &line->asked, out);
    }
    return out->rc;
}

static enum lk_code import(struct import *m, struct lk_text *out) {
    const char *log = m->arguments->t2i.log;
    if (!log) return lk_fail(LK_E_USAGE, "t2i import: expected --log FILE");
    LK_TRY(cli_t2i_log(m->arguments, &m->log));
    LK_TRY(look_at_all(m));
    if (!m->n && !m->log.n_unmade)
        return lk_fail(LK_E_INPUT, "%s: none of its %zu pictures can be read", log, m->n_bad);
    LK_TRY(add_lines(m, out));
    LK_TRY(cli_output_write(m->arguments, out));
    lk_picture_signs_repeats(m->signs, m->n);
    if (m->of[LK_OUTCOME_REFUSED] + m->of[LK_OUTCOME_PLACEHOLDER] + m->of[LK_OUTCOME_FAULT])
        lk_log(LK_LOG_INFO, "%zu made, %zu refused, %zu placeholders, %zu faults", m->of[LK_OUTCOME_MADE],
               m->of[LK_OUTCOME_REFUSED], m->of[LK_OUTCOME_PLACEHOLDER], m->of[LK_OUTCOME_FAULT]);
    return m->n_bad ? lk_fail(LK_E_PARTIAL, "%s: %zu of %zu pictures cannot be read; the others were written", log,
                              m->n_bad, m->log.logged.n)
                    : LK_OK;
}

enum lk_code cli_t2i_import(const struct cli_arguments *arguments) {
    struct import m = {.arguments = arguments};
    struct lk_text text = {0};
    lk_t2i_images_init(&m.log);
    enum lk_code rc = import(&m, &text);
    lk_text_free(&text);
    lk_free(m.pictures);
    lk_free(m.signs);
    lk_t2i_images_free(&m.log);
    return rc;
}
