/* t2i export: pictures that may be shown to auditors. Small, faces under a mosaic, nothing of the files themselves, and
 * a content advisory. */
#include <math.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/document/files.h"
#include "eval/document/page.h"
#include "eval/document/page_image.h"
#include "models/face/yunet.h"
#include "tools/cli/t2i/t2i.h"
#include "tools/cli/cli.h"

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
