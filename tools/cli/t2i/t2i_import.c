/* t2i import: the log of pictures of a model that is not run here, with their digests and what came of each. */

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/document/table_print.h"
#include "eval/hosted/placeholder.h"
#include "tools/cli/t2i/t2i.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

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
