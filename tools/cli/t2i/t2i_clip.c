/* t2i clip: how alike CLIP finds a log's pictures and what was asked for. */
#include <math.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/document/table_print.h"
#include "models/clip/clip.h"
#include "models/recipe.h"
#include "tools/cli/cli.h"
#include "tools/cli/t2i/t2i.h"

struct probe {
    const struct cli_arguments *arguments;
    struct lk_t2i_prompts prompts;
    struct lk_t2i_images log;
    struct lk_clip *clip;
    float *prompts_as; /* [prompts.n, LK_CLIP_WIDTH_MAX] of natural_prompt */
    float *words_as;   /* [tokens.n, LK_CLIP_WIDTH_MAX] */
    size_t n_bad, n_cut, n_of[LK_N_T2I_ARMS];
    double sum[LK_N_T2I_ARMS];
};

static enum lk_code embed_texts(struct probe *p) {
    const struct cli_list *words = &p->arguments->t2i.tokens;
    p->prompts_as = lk_calloc(p->prompts.n + 1, LK_CLIP_WIDTH_MAX * sizeof *p->prompts_as);
    p->words_as = lk_calloc((size_t)words->n + 1, LK_CLIP_WIDTH_MAX * sizeof *p->words_as);
    if (!p->prompts_as || !p->words_as) return lk_fail(LK_E_NOMEM, "t2i clip: out of memory");
    for (size_t i = 0; i < p->prompts.n; i++) {
        int n_cut;
        LK_TRY(cli_signals_check());
        LK_TRY(lk_clip_text(p->clip, p->prompts.list[i].cells[LK_T2I_NATURAL_PROMPT],
                            p->prompts_as + i * LK_CLIP_WIDTH_MAX, &n_cut));
        p->n_cut += n_cut > 0;
    }
    for (int k = 0; k < words->n; k++) {
        int n_cut;
        LK_TRY(lk_clip_text(p->clip, words->values[k], p->words_as + (ptrdiff_t)k * LK_CLIP_WIDTH_MAX, &n_cut));
    }
    return LK_OK;
}

static enum lk_code prompt_of(const struct probe *p, const struct lk_t2i_logged *line, size_t *out) {
    const int32_t at = lk_names_find(&p->prompts.ids, line->prompt_id, strlen(line->prompt_id));
    if (at < 0)
        return lk_fail(LK_E_INPUT, "%s: prompt_id \"%.80s\" is not in the table of prompts; name the table with --csv",
                       p->arguments->t2i.log, line->prompt_id);
    *out = (size_t)at;
    return LK_OK;
}

static enum lk_code add_picture(struct probe *p, size_t i, struct lk_text *out) {
    const struct lk_t2i_logged *line = &p->log.log[i];
    const struct cli_list *words = &p->arguments->t2i.tokens;
    struct lk_image image = {0};
    float as[LK_CLIP_WIDTH_MAX];
    size_t prompt = 0;
    LK_TRY(prompt_of(p, line, &prompt));
    char *path = cli_t2i_path(p->arguments, &p->log, i);
    enum lk_code rc = path ? lk_image_read(&image, path, 1, 0) : LK_E_NOMEM;
    if (!rc && (rc = lk_clip_image(p->clip, &image, as))) lk_fail_prefix(rc, "%s", path);
    lk_image_free(&image);
    lk_free(path);
    if (rc && rc != LK_E_NOMEM && rc != LK_E_INTERNAL) {
        lk_log(LK_LOG_WARNING, "%s", lk_error_text());
        p->n_bad++;
        return LK_OK;
    }
    LK_TRY(rc);
    const double cosine = lk_clip_cosine(p->clip, as, p->prompts_as + prompt * LK_CLIP_WIDTH_MAX);
    lk_print_csv_field(out, p->log.logged.list[i], "");
    lk_text_add(out, ",");
    cli_t2i_key(line, out);
    lk_text_add(out, "%s,%.6f", lk_t2i_arm_key(line->arm), cosine);
    for (int k = 0; k < words->n; k++)
        lk_text_add(out, ",%.6f", lk_clip_cosine(p->clip, as, p->words_as + (ptrdiff_t)k * LK_CLIP_WIDTH_MAX));
    lk_text_add(out, "\r\n");
    p->n_of[line->arm]++;
    p->sum[line->arm] += cosine;
    return out->rc;
}

static enum lk_code add_pictures(struct probe *p, struct lk_text *out) {
    const struct cli_list *words = &p->arguments->t2i.tokens;
    lk_text_add(out, "file_path,prompt_id,model_tag,seed,cfg,arm,cosine");
    for (int k = 0; k < words->n; k++) {
        lk_text_add(out, ",");
        lk_print_csv_field(out, words->values[k], "");
    }
    lk_text_add(out, "\r\n");
    size_t ignored;
    for (size_t i = 0; i < p->log.logged.n; i++) LK_TRY(prompt_of(p, &p->log.log[i], &ignored));
    for (size_t i = 0; i < p->log.logged.n; i++) {
        LK_TRY(cli_signals_check());
        LK_TRY(add_picture(p, i, out));
    }
    if (p->n_bad && p->n_bad == p->log.logged.n)
        return lk_fail(LK_E_INPUT, "%s: none of its %zu pictures can be read", p->arguments->t2i.log, p->n_bad);
    return out->rc;
}

static enum lk_code say(const struct probe *p) {
    char model[256], identity[65];
    LK_TRY(lk_clip_identity(p->clip, identity));
    lk_recipe_model_name(p->arguments->model, model);
    for (int arm = 0; arm < LK_N_T2I_ARMS; arm++)
        if (p->n_of[arm])
            lk_log(LK_LOG_INFO, "%s: mean cosine of picture and prompt %.4f, %zu pictures", lk_t2i_arm_key(arm),
                   p->sum[arm] / (double)p->n_of[arm], p->n_of[arm]);
    lk_log(LK_LOG_INFO, "by %s, weights %.12s, f32", model, identity);
    if (p->n_cut)
        lk_log(LK_LOG_WARNING, "%zu prompts are longer than the 75 tokens that CLIP reads; it saw their beginning",
               p->n_cut);
    return p->n_bad ? lk_fail(LK_E_PARTIAL, "%s: %zu of %zu pictures cannot be read; the others were written",
                              p->arguments->t2i.log, p->n_bad, p->log.logged.n)
                    : LK_OK;
}

enum lk_code cli_t2i_clip(const struct cli_arguments *a) {
    struct probe p = {.arguments = a};
    struct lk_text text = {0};
    if (!a->t2i.log) return lk_fail(LK_E_USAGE, "t2i clip: expected --log LOG.csv|DIR");
    LK_TRY(cli_t2i_output_free(a));
    lk_t2i_images_init(&p.log);
    enum lk_code rc = cli_t2i_prompts(&a->t2i, &p.prompts);
    if (!rc) rc = cli_t2i_log(a, &p.log);
    if (!rc) rc = lk_clip_open(&p.clip, a->model, a->job.run.threads);
    if (!rc) cli_signals_install();
    if (!rc) rc = embed_texts(&p);
    if (!rc) rc = add_pictures(&p, &text);
    if (!rc) rc = cli_output_write(a, &text);
    if (!rc) rc = say(&p);
    lk_clip_close(p.clip);
    lk_free(p.prompts_as);
    lk_free(p.words_as);
    lk_t2i_images_free(&p.log);
    lk_t2i_prompts_free(&p.prompts);
    lk_text_free(&text);
    return rc;
}
