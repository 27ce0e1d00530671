#include "engine/base/atomic_file.h"
#include "eval/t2i/report.h"
#include "eval/t2i/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "eval/document/files.h"
#include "eval/document/table_print.h"
#include "engine/base/digest.h"

enum { MAX_ROWS_ON_PAGE = 300 };

static void json_text(struct lk_text *out, const char *name, const char *value) {
    lk_text_add(out, " \"%s\": ", name);
    lk_text_json(out, value);
    lk_text_add(out, ",\n");
}

static void json_distribution(struct lk_text *out, const char *name, const struct lk_t2i_distribution *d) {
    lk_text_add(out, " \"%s\": {", name);
    for (int a = 0, first = 1; a < LK_N_T2I_ATTRIBUTES; a++) {
        if (!d->has[a]) continue;
        lk_text_add(out, "%s\n  \"%s\": {", first ? "" : ",", lk_t2i_attribute_key(a));
        first = 0;
        for (int g = 0, n = 0; g < lk_t2i_levels(a); g++) {
            if (!d->names[a][g]) continue;
            lk_text_add(out, "%s\"%s\": ", n++ ? ", " : "", lk_t2i_level_name(a, g));
            lk_text_number(out, d->shares[a][g]);
        }
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n },\n");
}

/* The resolved options, and their SHA-256. */
static enum lk_code configuration(const struct lk_t2i_metrics *m, const struct lk_t2i_report_options *options,
                                  struct lk_text *out, char hash[65]) {
    const struct lk_t2i_options *o = &m->options;
    lk_text_add(out, "{\n");
    json_text(out, "program", "likeness " LIKENESS_VERSION);
    json_text(out, "run", options->run);
    json_text(out, "title", options->title);
    json_text(out, "date", options->date);
    json_text(out, "label", options->label);
    json_distribution(out, "target", &o->target);
    if (o->reference_images)
        json_text(out, "reference", "labelled pictures");
    else
        json_distribution(out, "reference", &o->reference);
    lk_text_add(out, " \"prompt_table\": %s,\n \"bootstrap\": %d,\n \"study_seed\": \"%" PRIu64 "\",\n \"alpha\": ",
                m->images->prompts ? "true" : "false", o->how.n_replicates, o->how.seed);
    lk_text_number(out, o->alpha);
    lk_text_add(out, "\n}\n");
    if (out->rc) return lk_fail(out->rc, "t2i: out of memory for the configuration");
    lk_sha256(out->bytes, out->n, hash);
    return LK_OK;
}

struct writer {
    const struct lk_t2i_metrics *metrics;
    const struct lk_run *run;
    struct lk_page *page;
    const char *tables; /* folder */
    bool png;
    enum lk_code rc;
};

/* In files, and in the page unless it is empty or too long there. */
static void put_table(struct writer *w, enum lk_t2i_table which) {
    struct lk_table *table = NULL;
    if (w->rc || (w->rc = lk_t2i_table(w->metrics, which, &table))) return;
    table->run = w->run;
    w->rc = lk_document_table_files(table, w->tables);
    if (table->n_rows > MAX_ROWS_ON_PAGE)
        lk_page_remark(w->page, "%s: %d rows, in tables/%s.csv.", table->caption, table->n_rows, table->id);
    else if (table->n_rows)
        lk_page_table(w->page, table);
    lk_table_free(table);
}

static void put_figure(void *context, const struct lk_figure *figure) {
    struct writer *w = context;
    if (w->rc) return;
    lk_page_figure(w->page, figure);
    figure->data->run = w->run;
    w->rc = lk_document_figure_files(figure, w->tables, w->png);
}

static void put_figures(struct writer *w,
                        enum lk_code (*make)(const struct lk_t2i_metrics *, lk_t2i_use_figure, void *)) {
    enum lk_code rc = w->rc ? w->rc : make(w->metrics, put_figure, w);
    if (!w->rc) w->rc = rc;
}

static void put_base(struct writer *w) {
    lk_page_section(w->page, "section-shares", "Who is depicted");
    lk_page_paragraph(w->page,
                      "Shares of perceived groups among the pictures of each model, beside the target, and their "
                      "distance from it. Mitigated arms stand beside the base.");
    put_table(w, LK_T2I_TABLE_SHARES_POOLED);
    put_table(w, LK_T2I_TABLE_SPD_POOLED);
}

static void put_mitigations(struct writer *w) {
    lk_page_section(w->page, "section-mitigations", "Mitigations");
    if (!w->metrics->n_changes) {
        lk_page_paragraph(w->page, "No model has pictures of a mitigation beside base pictures at one CFG.");
    } else {
        lk_page_paragraph(
            w->page, "Each mitigation against the same prompts without it: negative ΔSPD is nearer to the target.");
    }
    put_figures(w, lk_t2i_figures_forest);
    put_table(w, LK_T2I_TABLE_CHANGES_POOLED);
    put_table(w, LK_T2I_TABLE_EFFECTS_POOLED);
    if (w->metrics->images->fair_levels.n) put_table(w, LK_T2I_TABLE_FAIR);
}

static void put_prompts(struct writer *w) {
    lk_page_section(w->page, "section-prompts", "Prompt by prompt");
    lk_page_paragraph(w->page, "With 10 to 50 pictures a prompt, intervals are wide; read them before the numbers.");
    put_figures(w, lk_t2i_figures_heat);
    put_table(w, LK_T2I_TABLE_SPD);
    put_table(w, LK_T2I_TABLE_CHANGES);
    put_table(w, LK_T2I_TABLE_SHARES);
    put_table(w, LK_T2I_TABLE_EFFECTS);
}

static void put_robustness(struct writer *w) {
    lk_page_section(w->page, "section-robustness", "Robustness");
    lk_page_paragraph(w->page, "How far results depend on the classifier's confidence and on CFG.");
    put_table(w, LK_T2I_TABLE_SENSITIVITY);
    if (!w->metrics->n_cfg)
        lk_page_paragraph(w->page, "No model has pictures of more than one CFG: there is no sensitivity to report.");
    put_figures(w, lk_t2i_figures_cfg);
    put_table(w, LK_T2I_TABLE_CFG);
    put_table(w, LK_T2I_TABLE_REJECTED);
}

static void put_summary(struct writer *w, const char *label) {
    if (*label) lk_page_remark(w->page, "%s", label);
    lk_page_section(w->page, "section-summary", "Summary");
    w->rc = lk_t2i_findings(w->metrics, w->page);
    lk_page_section(w->page, "section-pictures", "Pictures");
    lk_page_paragraph(
        w->page, "Gender, age, race and skin tone are perceived labels throughout: what a classifier answers about "
                 "a generated picture. They are no statement about anybody's identity.");
    put_table(w, LK_T2I_TABLE_PICTURES);
    if (w->metrics->images->n_unmade) put_table(w, LK_T2I_TABLE_ANSWERS);
    if (w->metrics->images->n_unmade && w->metrics->images->prompts) put_table(w, LK_T2I_TABLE_REFUSED);
}

static enum lk_code write_page(const struct lk_t2i_metrics *m, const struct lk_t2i_report_options *o,
                               const struct lk_run *run, const char *folder, const char *tables) {
    struct writer w = {.metrics = m, .run = run, .tables = tables, .png = o->png};
    struct lk_page_options options = {
        .title = o->title,
        .run = run->name,
        .config_hash = run->configuration,
        .date = *o->date ? o->date : NULL,
        .n_nominal = run->n_nominal,
        .n_valid = run->n_valid,
        .advisory = "The prompts name negative social roles, and the numbers say whom models depict in them. They "
                    "describe models; they say nothing about real people or groups.",
        .csv_folder = "tables"};
    LK_TRY(lk_page_new(&w.page, &options));
    put_summary(&w, o->label);
    put_base(&w);
    put_mitigations(&w);
    put_prompts(&w);
    put_robustness(&w);
    char path[LK_DOCUMENT_PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/report.html", folder);
    if (!w.rc) w.rc = lk_page_write(w.page, path);
    lk_page_free(w.page);
    return w.rc;
}

static enum lk_code write_all(const struct lk_t2i_metrics *metrics, const struct lk_t2i_report_options *options,
                              const char *folder) {
    const struct lk_t2i_images *images = metrics->images;
    char tables[LK_DOCUMENT_PATH_MAX + 8], hash[65];
    snprintf(tables, sizeof tables, "%s/tables", folder);
    LK_TRY(lk_document_folder(tables));
    struct lk_run run = {*options->run ? options->run : options->title, hash,
                         (int64_t)(images->n_records + images->n_unlabelled), (int64_t)(images->n - images->n_no_face)};
    struct lk_text text = {0};
    enum lk_code rc = configuration(metrics, options, &text, hash);
    if (rc) {
        lk_text_free(&text);
        return rc;
    }
    LK_TRY(lk_document_file(folder, "configuration", ".json", &text));
    return write_page(metrics, options, &run, folder, tables);
}

enum lk_code lk_t2i_report_write(const struct lk_t2i_metrics *metrics, const struct lk_t2i_report_options *options,
                                 const char *folder) {
    LK_TRY(lk_document_folder(folder));
    lk_atomic_batch_begin();
    return lk_atomic_batch_end(write_all(metrics, options, folder));
}
