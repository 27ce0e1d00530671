/* The text-to-image study: its prompts, what labels of the pictures say, and a filter of the pictures. */
#include "tools/cli/t2i/t2i.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/data/data.h"
#include "eval/design/study.h"
#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "eval/scores/dataset.h"
#include "eval/study/factors.h"
#include "eval/t2i/confusion.h"
#include "eval/t2i/post_filter.h"
#include "eval/t2i/report.h"
#include "models/embeds.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"

/* What names a model's pictures in a log, and which of these models run here. */

void cli_t2i_tag(const char *model, char tag[64]) {
    const unsigned family = lk_family_bit_of(model);
    int preset = 0;
    while (preset < LK_N_MODELS && lk_family_bit_of(lk_preset_family(preset)) != family) preset++;
    snprintf(tag, 64, "%s", preset < LK_N_MODELS ? lk_factor_key(LK_FACTOR_MODEL, preset) : model);
    for (char *c = tag; *c; c++)
        if (*c == '.') *c = '_'; /* a word of a file's name */
}

bool cli_t2i_runs_here(const char *tag) {
    struct lk_model_info info;
    char own[64];
    if (lk_factor_parse(LK_FACTOR_MODEL, tag, strlen(tag)) >= 0) return true; /* by any name of the documents */
    for (int i = 0; lk_model_info(i, &info); i++) {
        cli_t2i_tag(info.name, own);
        if (!strcmp(own, tag)) return true;
    }
    return false;
}

/* A file of the user's, whole. */
struct input {
    char *text;
    size_t n;
};

static enum lk_code read_input(const char *path, struct input *out) {
    return lk_read_file(path, LK_SCORES_MAX_BYTES, &out->text, &out->n);
}

enum lk_code cli_t2i_prompts(const struct cli_t2i_arguments *a, struct lk_t2i_prompts *out) {
    struct input input;
    if (!a->csv)
        return lk_t2i_prompts_build(
            out, &(struct lk_t2i_design){a->styles.values, a->styles.n, a->contexts.values, a->contexts.n});
    LK_TRY(read_input(a->csv, &input));
    enum lk_code rc = lk_t2i_prompts_read(out, input.text, input.n, a->csv);
    lk_free(input.text);
    return rc;
}

static enum lk_code join_prompts(const char *path, struct lk_t2i_prompts *prompts) {
    struct input input;
    LK_TRY(read_input(path, &input));
    enum lk_code rc = lk_t2i_prompts_join(prompts, input.text, input.n, path);
    lk_free(input.text);
    return rc;
}

enum lk_code cli_t2i_print_prompts(const struct cli_arguments *arguments) {
    const struct cli_t2i_arguments *a = &arguments->t2i;
    struct lk_t2i_prompts table = {0};
    struct lk_text text = {0};
    enum lk_t2i_columns columns = !strcmp(a->columns, "printed")     ? LK_T2I_PRINTED_COLUMNS
                                  : !strcmp(a->columns, "companion") ? LK_T2I_COMPANION_COLUMNS
                                                                     : LK_T2I_ALL_COLUMNS;
    if (a->csv && a->styles.n + a->contexts.n)
        return lk_fail(LK_E_USAGE, "t2i prompts: --style and --context are for a table that is built: leave --csv out");
    enum lk_code rc = cli_t2i_prompts(a, &table);
    if (!rc && a->mitigations) rc = join_prompts(a->mitigations, &table);
    if (!rc) rc = lk_t2i_prompts_mitigate(&table, (int)a->cue);
    if (!rc) rc = lk_t2i_prompts_csv(&table, columns, &text);
    if (!rc && columns != LK_T2I_PRINTED_COLUMNS) cli_print_rejects(a->csv, &table.rejects);
    if (!rc) rc = cli_output_write(arguments, &text);
    if (!rc) lk_log(LK_LOG_INFO, "%zu prompts", table.n);
    if (!rc && table.rejects.n && columns != LK_T2I_PRINTED_COLUMNS)
        rc = lk_fail(LK_E_PARTIAL, "%s: %zu records were refused; the others were written", a->csv, table.rejects.n);
    lk_text_free(&text);
    lk_t2i_prompts_free(&table);
    return rc;
}

static enum lk_code read_distribution(const char *path, struct lk_t2i_distribution *out) {
    struct input input;
    if (!strcmp(path, "uniform")) return lk_t2i_distribution_uniform(out);
    LK_TRY(read_input(path, &input));
    enum lk_code rc = lk_t2i_distribution_read(out, input.text, input.n, path);
    lk_free(input.text);
    return rc;
}

typedef enum lk_code images_fn(struct lk_t2i_images *images, const char *text, size_t n, const char *name);

static enum lk_code read_into(struct lk_t2i_images *images, const char *path, images_fn *read) {
    struct input input;
    LK_TRY(read_input(path, &input));
    enum lk_code rc = read(images, input.text, input.n, path);
    lk_free(input.text);
    return rc;
}

/* Says what was read, and what was not. */
static void print_images(const struct lk_t2i_images *images) {
    lk_log(LK_LOG_INFO, "%zu records, %zu pictures, %zu of them without a face", images->n_records, images->n,
           images->n_no_face);
    if (images->n_unmade)
        lk_log(LK_LOG_INFO, "%zu more were asked for and not made: refused, placeholders or faults", images->n_unmade);
    if (images->n_unlabelled) lk_log(LK_LOG_WARNING, "%zu pictures in the log have no labels", images->n_unlabelled);
    cli_print_unread("labels", &images->unread);
    for (size_t f = 0; f < images->files.n; f++) cli_print_rejects(images->files.list[f], &images->rejects[f]);
}

static enum lk_code read_images(const struct cli_t2i_arguments *a, struct lk_t2i_images *images) {
    if (a->log) LK_TRY(read_into(images, a->log, lk_t2i_images_log));
    for (int i = 0; i < a->labels.n; i++) LK_TRY(read_into(images, a->labels.values[i], lk_t2i_images_labels));
    enum lk_code rc = lk_t2i_images_finish(images);
    print_images(images);
    return rc;
}

/* Equal shares, as a file to begin with. */
enum lk_code cli_t2i_reference(const struct cli_arguments *arguments) {
    struct lk_data_file file;
    struct lk_text text = {0};
    if (!lk_data_find("uniform", &file)) return lk_fail(LK_E_INTERNAL, "the program has no data \"uniform\"");
    lk_text_bytes(&text, file.text, file.n_bytes);
    enum lk_code rc = cli_output_write(arguments, &text);
    lk_text_free(&text);
    return rc;
}

/* All that metrics are made from. */
struct study {
    struct lk_t2i_prompts prompts;
    struct lk_t2i_images images, reference;
    struct lk_t2i_options options;
};

static enum lk_code read_study(const struct cli_arguments *arguments, struct study *s) {
    const struct cli_t2i_arguments *a = &arguments->t2i;
    if (a->csv) LK_TRY(cli_t2i_prompts(a, &s->prompts));
    if (a->csv) s->images.prompts = &s->prompts;
    LK_TRY(read_distribution(a->ref, &s->options.reference));
    LK_TRY(read_distribution(a->target ? a->target : a->ref, &s->options.target));
    if (a->ref_labels) {
        LK_TRY(read_into(&s->reference, a->ref_labels, lk_t2i_images_labels));
        LK_TRY(lk_t2i_images_finish(&s->reference));
        s->options.reference_images = &s->reference;
    }
    s->options.alpha = arguments->report.alpha;
    s->options.how = (struct lk_resampling)LK_RESAMPLING;
    s->options.how.seed = (uint64_t)arguments->report.study_seed;
    s->options.how.n_replicates = (int)arguments->report.bootstrap;
    s->options.how.confidence = 1 - arguments->report.alpha;
    s->options.how.n_threads = arguments->job.run.threads;
    return read_images(a, &s->images);
}

static void print_number(const struct lk_number *number) {
    if (number->undefined)
        printf("  %22s", "-");
    else
        printf("  %+6.3f [%+.3f, %+.3f]", number->value, number->low, number->high);
}

static void print_metrics(const struct lk_t2i_metrics *m) {
    for (size_t i = 0; i < m->n_cells; i++) {
        const struct lk_t2i_cell *cell = &m->cells[i];
        char name[200];
        if (!lk_t2i_pooled(&cell->scope)) continue;
        lk_t2i_scope_name(m->images, &cell->scope, name);
        lk_log_text(stdout, m->images->models.list[cell->scope.model], false);
        printf(", %s: %s, %s: %zu pictures, SPD", name, lk_t2i_arm_key(cell->arm),
               lk_t2i_attribute_key(cell->attribute), cell->n);
        print_number(&cell->spd);
        putchar('\n');
    }
}

/* The distances, of all prompts together and of each, as one file. */
static enum lk_code write_distances(const struct cli_arguments *arguments, const struct lk_t2i_metrics *metrics) {
    struct lk_text text = {0};
    enum lk_code rc = LK_OK;
    for (int k = 0; k < 2 && !rc; k++) {
        struct lk_table *table;
        struct lk_text part = {0};
        if ((rc = lk_t2i_table(metrics, k ? LK_T2I_TABLE_SPD : LK_T2I_TABLE_SPD_POOLED, &table))) break;
        lk_table_csv(table, &part);
        const char *rows = k && part.n ? strchr(part.bytes, '\n') + 1 : part.bytes; /* one header */
        if (!(rc = part.rc)) lk_text_add(&text, "%s", rows);
        lk_text_free(&part);
        lk_table_free(table);
    }
    if (!rc) rc = cli_output_write(arguments, &text);
    lk_text_free(&text);
    return rc;
}

static bool is_csv(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".csv");
}

enum lk_code cli_t2i_metrics(const struct cli_arguments *arguments) {
    const struct cli_t2i_arguments *a = &arguments->t2i;
    if (!a->labels.n || !a->ref || !arguments->output)
        return lk_fail(LK_E_USAGE,
                       "t2i metrics: expected --labels FILE, --ref FILE or uniform, and --output DIR or FILE.csv");
    struct study study = {0};
    struct lk_t2i_metrics metrics = {0};
    const struct cli_report_arguments *r = &arguments->report;
    struct lk_t2i_report_options options = {r->title ? r->title : "Text-to-image: who is depicted", r->run, r->date,
                                            r->label, r->png};
    enum lk_code rc = read_study(arguments, &study);
    if (!rc) rc = lk_t2i_metrics_compute(&metrics, &study.images, &study.options);
    if (!rc)
        rc = is_csv(arguments->output) ? write_distances(arguments, &metrics)
                                       : lk_t2i_report_write(&metrics, &options, arguments->output);
    if (!rc && !is_csv(arguments->output)) rc = cli_findings_print(arguments->output);
    if (!rc) print_metrics(&metrics);
    size_t n_refused = 0;
    for (size_t f = 0; f < study.images.files.n; f++) n_refused += study.images.rejects[f].n;
    if (!rc && n_refused)
        rc = lk_fail(LK_E_PARTIAL, "%s: %zu of %zu records were refused; %s is of the others",
                     arguments->t2i.log ? arguments->t2i.log : study.images.files.list[0], n_refused,
                     study.images.n_records, arguments->output);
    lk_t2i_metrics_free(&metrics);
    lk_t2i_images_free(&study.images);
    lk_t2i_images_free(&study.reference);
    lk_t2i_prompts_free(&study.prompts);
    return rc;
}

/* The attribute asked for, or the only one of the target. */
static enum lk_code attribute_of(const char *name, const struct lk_t2i_distribution *target, int *out) {
    int n = 0;
    *out = name ? lk_t2i_attribute_parse(name) : -1;
    for (int a = 0; a < LK_N_T2I_ATTRIBUTES && !name; a++)
        if (target->has[a]) {
            *out = a;
            n++;
        }
    return n > 1
               ? lk_fail(LK_E_USAGE, "t2i post-filter: the target has several attributes: choose one with --attribute")
               : LK_OK;
}

enum lk_code cli_t2i_target(const struct cli_arguments *arguments, struct lk_t2i_distribution *target, int *attribute) {
    LK_TRY(read_distribution(arguments->t2i.target, target));
    return attribute_of(arguments->t2i.attribute, target, attribute);
}

static enum lk_code filter(const struct cli_arguments *arguments, struct lk_t2i_images *images, bool *kept,
                           const struct lk_t2i_distribution *target, struct lk_t2i_post_filtered *out) {
    const struct cli_t2i_arguments *a = &arguments->t2i;
    struct lk_t2i_post_filter how = {.tolerance = a->tolerance, .seed = (uint64_t)arguments->report.study_seed};
    struct input input;
    struct lk_text text = {0};
    LK_TRY(attribute_of(a->attribute, target, &how.attribute));
    LK_TRY(lk_t2i_post_filter(images, target, &how, kept, out));
    for (size_t i = 0; i < out->failed.n; i++)
        lk_log(LK_LOG_WARNING, "%s: %s", out->failed.list[i].item, out->failed.list[i].reason);
    if (!out->n_sets)
        return lk_fail(LK_E_INPUT, "%s: expected pictures of the base arm, got none", a->labels.values[0]);
    if (out->n_failed == out->n_sets)
        return lk_fail(LK_E_INPUT, "%s: none of %zu sets of pictures can be filtered", a->labels.values[0],
                       out->n_sets);
    LK_TRY(read_input(a->labels.values[0], &input));
    enum lk_code rc = lk_t2i_post_filter_csv(images, kept, 0, input.text, input.n, &text);
    lk_free(input.text);
    if (!rc)
        rc = is_csv(arguments->output) ? cli_output_write(arguments, &text) : cli_t2i_filtered_folder(arguments, &text);
    lk_text_free(&text);
    if (rc) return rc;
    lk_log(LK_LOG_INFO, "%zu of %zu pictures with a label kept, in %zu of %zu sets of one model, prompt and cfg",
           out->n_kept, out->n_before, out->n_sets - out->n_failed, out->n_sets);
    return out->n_failed ? lk_fail(LK_E_PARTIAL, "%s: %zu of %zu sets of pictures cannot be filtered; the others were",
                                   a->labels.values[0], out->n_failed, out->n_sets)
                         : LK_OK;
}

enum lk_code cli_t2i_post_filter(const struct cli_arguments *arguments) {
    const struct cli_t2i_arguments *a = &arguments->t2i;
    if (a->labels.n != 1 || !a->target || !arguments->output)
        return lk_fail(LK_E_USAGE,
                       "t2i post-filter: expected one --labels FILE, --target FILE or uniform, and --output DIR or "
                       "FILE.csv");
    struct lk_t2i_images images;
    struct lk_t2i_distribution target;
    struct lk_t2i_post_filtered result = {0};
    bool *kept = NULL;
    lk_t2i_images_init(&images);
    enum lk_code rc = read_distribution(a->target, &target);
    if (!rc) rc = read_images(a, &images);
    if (!rc && !(kept = lk_calloc(images.n, sizeof *kept))) rc = lk_fail(LK_E_NOMEM, "t2i: out of memory");
    if (!rc) rc = filter(arguments, &images, kept, &target, &result);
    lk_free(kept);
    lk_rejects_free(&result.failed);
    lk_t2i_images_free(&images);
    return rc;
}

enum lk_code cli_t2i_log(const struct cli_arguments *arguments, struct lk_t2i_images *images) {
    return read_into(images, arguments->t2i.log, lk_t2i_images_log);
}

char *cli_t2i_path(const struct cli_arguments *arguments, const struct lk_t2i_images *images, size_t i) {
    return lk_path_beside(arguments->t2i.log, images->logged.list[i]);
}

void cli_t2i_key(const struct lk_t2i_logged *line, struct lk_text *out) {
    char seed[24] = "", cfg[40] = "";
    if (line->seed >= 0) snprintf(seed, sizeof seed, "%lld", (long long)line->seed);
    if (!isnan(line->cfg)) snprintf(cfg, sizeof cfg, "%.17g", line->cfg);
    const char *const cells[] = {line->prompt_id, line->model_tag, seed, cfg};
    for (int k = 0; k < 4; k++) {
        lk_print_csv_field(out, cells[k], "");
        lk_text_add(out, ",");
    }
}

/* The arm of that name, of models that run here. */
enum lk_code cli_t2i_embed_norm(const struct cli_arguments *arguments) {
    const struct cli_t2i_arguments *a = &arguments->t2i;
    const char *how = a->normalize ? a->normalize : "center";
    const bool none = !strcmp(how, "none"), zscore = !strcmp(how, "zscore");
    if (!a->embeds || !arguments->output)
        return lk_fail(LK_E_USAGE, "t2i embed-norm: expected --embeds FILE and --output FILE.safetensors");
    LK_TRY(cli_output_free(arguments));
    return lk_embeds_normalize(a->embeds, arguments->output,
                               none     ? LK_EMBEDS_NONE
                               : zscore ? LK_EMBEDS_ZSCORE
                                        : LK_EMBEDS_CENTER);
}

/* With the log of a folder in its place, and a place for the output. */
enum lk_code cli_t2i(const struct cli_arguments *given) {
    struct cli_arguments a = *given;
    struct stat st;
    const bool in = a.t2i.in && (a.model || strcmp(a.verb->name, "latents") != 0), logged = in || a.t2i.log;
    if (in && a.t2i.log) return lk_fail(LK_E_USAGE, "t2i %s: --in is --log by another name: give one", a.verb->name);
    if (in) a.t2i.log = a.t2i.in;
    char *log = NULL, *place = a.output ? lk_strdup(a.output) : NULL, *slash = place ? strrchr(place, '/') : NULL;
    if (a.t2i.log && !stat(a.t2i.log, &st) && S_ISDIR(st.st_mode))
        a.t2i.log = log = lk_format("%s/generation_log.csv", a.t2i.log);
    if (slash) slash[slash == place] = 0;
    enum lk_code rc =
        (logged && !a.t2i.log) || (a.output && !place) ? lk_fail(LK_E_NOMEM, "t2i: out of memory") : LK_OK;
    if (!rc && slash) rc = lk_document_folder(place);
    if (!rc) rc = a.verb->run(&a);
    lk_free(place);
    lk_free(log);
    return rc;
}

static enum lk_code read_labels(struct lk_labels *labels, const char *path) {
    char *text;
    size_t n;
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_labels_read(labels, text, n, path);
    lk_free(text);
    return rc;
}

enum lk_code cli_t2i_confusion(const struct cli_arguments *a) {
    struct lk_labels known = {0}, perceived = {0};
    struct lk_t2i_confusion confusion;
    struct lk_text text = {0};
    if (a->t2i.labels.n != 1 || !a->t2i.ref_labels)
        return lk_fail(LK_E_USAGE, "t2i confusion: expected one --labels FILE and --ref-labels FILE, what is known");
    enum lk_code rc = read_labels(&known, a->t2i.ref_labels);
    if (!rc) rc = read_labels(&perceived, a->t2i.labels.values[0]);
    if (!rc) rc = lk_t2i_confuse(&known, &perceived, &confusion);
    if (!rc) rc = lk_t2i_confusion_csv(&confusion, &text);
    if (!rc) rc = cli_output_write(a, &text);
    for (int k = 0; k < LK_N_T2I_ATTRIBUTES && !rc; k++)
        if (confusion.n[k])
            lk_log(LK_LOG_INFO, "perceived %s: %lld of %lld as known", lk_t2i_attribute_key(k),
                   (long long)confusion.n_right[k], (long long)confusion.n[k]);
    if (!rc && confusion.n_unknown)
        lk_log(LK_LOG_WARNING, "%zu labelled pictures are not among the known ones", confusion.n_unknown);
    lk_labels_free(&known);
    lk_labels_free(&perceived);
    lk_text_free(&text);
    return rc;
}
