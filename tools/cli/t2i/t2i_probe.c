#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/dataset.h"
#include "eval/scores/level.h"
#include "eval/scores/words.h"
#include "eval/stats/models/silhouette.h"
#include "eval/stats/models/umap.h"
#include "eval/t2i/tokens.h"
#include "models/clip/clip.h"
#include "models/embeds.h"
#include "models/recipe.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/stats/stats.h"
#include "tools/cli/t2i/t2i.h"

/* t2i clip: how alike CLIP finds a log's pictures and what was asked for. */

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
    LK_TRY(cli_output_free(a));
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

/* Probes of the text-to-image study: what goes together, never what causes it. */

static enum lk_code read_table(struct lk_t2i_outcomes *o, const char *folder, const char *table) {
    char *path = lk_format("%s/tables/%s", folder, table), *text;
    size_t n;
    if (!path) return lk_fail(LK_E_NOMEM, "t2i: out of memory");
    enum lk_code rc = lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n);
    if (!rc) {
        rc = lk_t2i_outcomes_read(o, text, n, path);
        lk_free(text);
    }
    lk_free(path);
    return rc;
}

enum lk_code cli_t2i_outcomes(const struct cli_arguments *a, struct lk_t2i_outcomes *o) {
    if (!a->t2i.metrics) return LK_OK;
    LK_TRY(read_table(o, a->t2i.metrics, "t2i_shares.csv"));
    return read_table(o, a->t2i.metrics, "t2i_spd.csv");
}

/* Cosines of the model's own text encoder, and its name. */
static enum lk_code embed(const struct cli_arguments *a, struct lk_t2i_tokens *t, struct lk_text *encoder) {
    const struct lk_pipeline_options options = cli_pipeline_options(&a->job.run);
    struct lk_pipeline *pipeline = NULL;
    struct lk_device *device = NULL;
    struct lk_phrases phrases = {0};
    char model[256];
    enum lk_code rc = cli_device_open(&a->job.run, &device);
    if (!rc) rc = lk_pipeline_open_with(&pipeline, a->model, &options);
    if (!rc) lk_log(LK_LOG_INFO, "%s in %s on %s", lk_pipeline_family(pipeline), a->job.run.dtype, device->name);
    if (!rc) rc = lk_phrases_embed(pipeline, device, t->phrases.list, (int)t->phrases.n, &phrases);
    if (!rc) rc = lk_t2i_tokens_cosines(t, phrases.means, phrases.width);
    lk_recipe_model_name(a->model, model);
    if (!rc)
        lk_text_add(encoder, "text encoder of %s %.12s, %s, %s%s", model, phrases.text_encoder, a->job.run.dtype,
                    phrases.projected ? "text_embeds" : "mean of a phrase's tokens",
                    phrases.canvas ? ", with a gray canvas" : "");
    lk_phrases_free(&phrases);
    lk_pipeline_close(pipeline);
    lk_device_free(device);
    return rc ? rc : encoder->rc;
}

static enum lk_code tokens(const struct cli_arguments *a, const struct lk_t2i_prompts *prompts, struct lk_text *out,
                           struct lk_t2i_tokens *t) {
    const struct cli_list *given = &a->t2i.tokens;
    struct lk_text encoder = {0};
    LK_TRY(lk_t2i_tokens_count(t, prompts, given->n ? given->values : NULL, (size_t)given->n));
    LK_TRY(cli_t2i_outcomes(a, &t->outcomes));
    enum lk_code rc = a->model ? embed(a, t, &encoder) : LK_OK;
    if (!rc && a->t2i.metrics) rc = lk_t2i_tokens_correlate(t);
    if (!rc) rc = lk_t2i_tokens_csv(t, a->model ? encoder.bytes : "", out);
    lk_text_free(&encoder);
    return rc;
}

enum lk_code cli_t2i_tokens(const struct cli_arguments *a) {
    struct lk_t2i_prompts prompts = {0};
    struct lk_t2i_tokens t = {0};
    struct lk_text text = {0};
    if (a->model) LK_TRY(cli_output_free(a));
    enum lk_code rc = cli_t2i_prompts(&a->t2i, &prompts);
    if (!rc) rc = tokens(a, &prompts, &text, &t);
    if (!rc) rc = cli_output_write(a, &text);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%zu prompts, %zu roles, %zu tokens; correlational: says nothing about causes", prompts.n,
               t.n_roles, t.n_tokens);
        if (!a->model) lk_log(LK_LOG_INFO, "no cosines: no text encoder was given; name one with --model");
        if (!a->t2i.metrics) lk_log(LK_LOG_INFO, "no correlations: no results were given; name them with --metrics");
    }
    lk_t2i_tokens_free(&t);
    lk_t2i_prompts_free(&prompts);
    lk_text_free(&text);
    return rc;
}

/* "f0,f1,...": the columns of the file whose first cell is a number, but the group's. */
static enum lk_code find_columns(const char *file, const char *by, struct lk_text *out) {
    struct lk_csv csv;
    char *text;
    size_t n;
    bool more = false;
    double ignored;
    LK_TRY(lk_read_file(file, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_csv_open(&csv, text, n, file);
    if (!rc) {
        rc = lk_csv_next(&csv, &more);
        for (size_t i = 0; i < csv.n_columns && !rc && more; i++) {
            const char *cell = lk_csv_cell(&csv, (int)i);
            if (!lk_same_name(csv.columns[i], by) && lk_decimal_of_text(cell, strlen(cell), &ignored))
                lk_text_add(out, "%s%s", out->n ? "," : "", csv.columns[i]);
        }
        lk_csv_close(&csv);
    }
    lk_free(text);
    if (!rc && !out->rc && !out->n)
        rc = lk_fail(LK_E_INPUT, "%s: expected columns of numbers beside \"%.64s\", got none", file, by);
    return rc ? rc : out->rc;
}

/* Lines of latent_silhouette.csv: all rows, then each group. points [n, width] */
static enum lk_code silhouettes(const struct stats_features *f, const char *space, const double *points, int width,
                                const struct lk_number *trust, struct lk_text *out) {
    struct lk_number all, *of = lk_calloc((size_t)f->levels.n, sizeof *of);
    if (!of) return lk_fail(LK_E_NOMEM, "t2i latents: out of memory");
    enum lk_code rc = lk_silhouette(points, f->n, width, f->groups, f->levels.n, &all, of);
    for (int g = -1; g < f->levels.n && !rc; g++) {
        const struct lk_number *value = g < 0 ? &all : &of[g];
        lk_text_add(out, "%s,", space);
        lk_print_csv_field(out, g < 0 ? "" : f->levels.names[g], "");
        lk_text_add(out, ",%zu,", value->n);
        if (!value->undefined) lk_text_number(out, value->value);
        lk_text_add(out, ",");
        if (g < 0 && trust && !trust->undefined) lk_text_number(out, trust->value);
        lk_text_add(out, "\r\n");
        if (g < 0 && !value->undefined) lk_log(LK_LOG_INFO, "silhouette of the %s: %.3f", space, value->value);
    }
    lk_free(of);
    return rc;
}

/* Where the files go: with --output PICTURE.png beside it, named after it. */
struct place {
    char *folder, *name; /* the picture's, without .png */
    char *features, *silhouette;
};

static enum lk_code draw(const struct cli_arguments *a, const struct place *at, const struct stats_features *f,
                         const double *points) {
    struct lk_figure figure;
    struct lk_text note = {0};
    lk_text_add(&note, "UMAP of %zu pictures, %lld neighbours, seed %lld. Correlational: says nothing about causes.",
                f->n, (long long)a->t2i.neighbours, (long long)a->report.study_seed);
    const struct lk_figure_scatter scatter = {
        .head = {"latent_umap", "Pictures in the space of their features", "Each point is a picture.", NULL},
        .caption = note.bytes,
        .group_name = a->stats.by,
        .groups = f->levels.names,
        .n_groups = f->levels.n,
        .points = points,
        .of = f->groups,
        .n = (int)f->n};
    enum lk_code rc = note.rc ? note.rc : lk_figure_scatter(&scatter, &figure);
    lk_text_free(&note);
    if (rc) return rc;
    /* Where there is no librsvg the SVG is written all the same. */
    rc = lk_document_drawing(&figure, at->folder, at->name, false);
    if (!rc) rc = lk_document_drawing(&figure, at->folder, at->name, true);
    lk_figure_free(&figure);
    return rc;
}

static enum lk_code latents(const struct cli_arguments *a, const struct place *at, struct stats *s) {
    struct stats_features f;
    struct lk_number trust;
    struct lk_text points_csv = {0}, silhouette_csv = {0};
    const int k = (int)a->t2i.neighbours;
    LK_TRY(stats_read(s));
    LK_TRY(stats_features(s, &f));
    if (f.levels.n > LK_FIGURE_MARKS)
        return lk_fail(LK_E_INPUT, "%s: \"%.64s\": expected at most %d groups, got %d", s->file, s->by.name,
                       LK_FIGURE_MARKS, f.levels.n);
    double *points = stats_alloc(s, f.n, 2 * sizeof *points);
    if (!points) return LK_E_NOMEM;
    enum lk_code rc = lk_umap(f.features, f.n, s->n_columns, k, (uint64_t)a->report.study_seed, points);
    if (rc) return lk_fail_prefix(rc, "%s", s->file);
    LK_TRY(lk_trustworthiness(f.features, f.n, s->n_columns, points, k, &trust));
    LK_TRY(lk_document_folder(at->folder));
    lk_text_add(&points_csv, "line,group,x,y\r\n");
    for (size_t i = 0; i < f.n; i++) {
        lk_text_add(&points_csv, "%zu,", f.lines[i]);
        lk_print_csv_field(&points_csv, f.levels.names[f.groups[i]], "");
        lk_text_add(&points_csv, ",%.17g,%.17g\r\n", points[2 * i], points[2 * i + 1]);
    }
    lk_text_add(&silhouette_csv, "space,group,n,silhouette,trustworthiness\r\n");
    rc = lk_document_file(at->folder, at->name, ".csv", &points_csv);
    if (!rc) rc = silhouettes(&f, "features", f.features, s->n_columns, NULL, &silhouette_csv);
    if (!rc) rc = silhouettes(&f, "projection", points, 2, &trust, &silhouette_csv);
    if (!rc) rc = lk_document_file(at->folder, at->silhouette, ".csv", &silhouette_csv);
    lk_text_free(&silhouette_csv);
    if (rc) return rc;
    lk_log(LK_LOG_INFO,
           "%zu pictures, %d features, %d groups; trustworthiness of the projection: %.3f; correlational: "
           "says nothing about causes",
           f.n, s->n_columns, f.levels.n, trust.undefined ? NAN : trust.value);
    if (s->missing)
        lk_log(LK_LOG_WARNING, "%s: lines left out, for want of a group or a number: %zu", s->file, s->missing);
    return draw(a, at, &f, points);
}

/* --output PICTURE.png, or a folder for files with names of their own. */
static enum lk_code find_place(const char *output, struct place *at) {
    static const char ending[] = ".png";
    const char *slash = strrchr(output, '/');
    const size_t n = strlen(output), m = sizeof ending - 1;
    const bool named = n > m && !strcmp(output + n - m, ending) && (!slash || slash[1] != '.');
    const char *base = named && slash ? slash + 1 : output;
    const int length = named ? (int)(output + n - m - base) : 0;
    at->folder = !named   ? lk_strdup(output)
                 : !slash ? lk_strdup(".")
                          : lk_format("%.*s", (int)(slash - output), output);
    at->name = named ? lk_format("%.*s", length, base) : lk_strdup("latent_umap");
    const bool usual = at->name && !strcmp(at->name, "latent_umap");
    at->features = usual ? lk_strdup("latents") : lk_format("%s_latents", at->name ? at->name : "");
    at->silhouette = usual ? lk_strdup("latent_silhouette") : lk_format("%s_silhouette", at->name ? at->name : "");
    return at->folder && at->name && at->features && at->silhouette ? LK_OK
                                                                    : lk_fail(LK_E_NOMEM, "t2i latents: out of memory");
}

static enum lk_code keep_input(const struct place *at, const char *input) {
    const char *const names[] = {at->name, at->silhouette};
    struct stat in, out;
    for (int i = 0; i < 2; i++) {
        char *path = lk_format("%s/%s.csv", at->folder, names[i]);
        const bool same =
            path && !stat(input, &in) && !stat(path, &out) && in.st_ino == out.st_ino && in.st_dev == out.st_dev;
        enum lk_code rc = !path ? lk_fail(LK_E_NOMEM, "t2i latents: out of memory")
                          : same
                              ? lk_fail(LK_E_USAGE, "--output: would replace %s, which --in reads; name another", path)
                              : LK_OK;
        lk_free(path);
        LK_TRY(rc);
    }
    return LK_OK;
}

static enum lk_code make(const struct cli_arguments *a, const struct place *at) {
    struct cli_stats_options options = a->stats;
    struct lk_text columns = {0};
    char *made = a->model ? lk_format("%s/%s.csv", at->folder, at->features) : NULL;
    if (a->model && !made) return lk_fail(LK_E_NOMEM, "t2i latents: out of memory");
    struct cli_arguments in_folder = *a;
    in_folder.output = at->folder;
    struct stats s = {.o = &options, .test = "latents", .file = made ? made : a->t2i.in};
    enum lk_code rc = made ? cli_t2i_features(&in_folder, at->features) : keep_input(at, a->t2i.in);
    if (!rc && !options.columns) rc = find_columns(s.file, options.by, &columns);
    if (!options.columns) options.columns = columns.bytes;
    if (!rc) rc = latents(a, at, &s);
    stats_free(&s);
    lk_free(made);
    lk_text_free(&columns);
    return rc;
}

enum lk_code cli_t2i_latents(const struct cli_arguments *a) {
    if (!a->t2i.in || !a->stats.by || !a->output)
        return lk_fail(LK_E_USAGE, "t2i latents: expected --in FEATURES.csv, or DIR with --model, --by COLUMN and "
                                   "--output DIR or PICTURE.png");
    struct place at = {0};
    enum lk_code rc = find_place(a->output, &at);
    if (!rc && strcmp(at.name, "latent_umap") != 0) rc = cli_output_free(a); /* a picture that is named */
    if (!rc) rc = make(a, &at);
    lk_free(at.folder);
    lk_free(at.name);
    lk_free(at.features);
    lk_free(at.silhouette);
    return rc;
}
