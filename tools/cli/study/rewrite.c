#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/append.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/base/names.h"
#include "eval/document/table_print.h"
#include "eval/intake/audit.h"
#include "eval/study/prompts.h"
#include "tools/cli/cli.h"
#include "tools/cli/edit/job.h"
#include "tools/cli/study/runner.h"

/* The prompts that a study may use: as a table, as texts, by group, and what is to be known of the 50 sentences. */

enum { N_BUILTIN = LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS };

/* The 70 of the program, then the study's own. */
struct table {
    struct lk_prompts builtin;
    const struct lk_study *study; /* NULL: none is named */
    const struct lk_study_prompt *own;
    size_t n_own;
    bool *chosen;
};

static const struct lk_prompt *builtin_of(const struct table *t, size_t i) {
    return i < LK_N_EDIT_PROMPTS ? &t->builtin.edit[i] : i < N_BUILTIN ? &t->builtin.w[i - LK_N_EDIT_PROMPTS] : NULL;
}

static const char *category_of(const struct lk_prompt *p) {
    return p->category < 0 ? "W" : lk_factor_key(LK_FACTOR_CATEGORY, p->category);
}

static bool is_word(const char *word, size_t n, const char *text) {
    return strlen(text) == n && !memcmp(text, word, n);
}

/* Ids in any spelling, or categories, with commas between; NULL: all. */
static enum lk_code choose(struct table *t, const char *ids) {
    for (size_t i = 0; i < N_BUILTIN + t->n_own && !ids; i++) t->chosen[i] = true;
    for (const char *at = ids; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ",");
        bool found = false;
        for (size_t i = 0; i < N_BUILTIN + t->n_own; i++) {
            const struct lk_prompt *p = builtin_of(t, i);
            const struct lk_study_prompt *own = p ? NULL : &t->own[i - N_BUILTIN];
            if (p ? lk_prompt_parse(at, n) == (int)i || is_word(at, n, category_of(p))
                  : is_word(at, n, own->id) || is_word(at, n, own->category))
                found = t->chosen[i] = true;
        }
        char own[300] = "those of the study's own prompts";
        if (t->n_own) lk_study_list_prompts(t->study, own);
        if (!found)
            return lk_fail(LK_E_INPUT,
                           "--ids: no data for \"%.*s\": expected ids as O-01, catB_001 or W-01, categories as O,V, or "
                           "%s",
                           n > 40 ? 40 : (int)n, at, own);
    }
    return LK_OK;
}

static void print_row(const char *const cells[10]) {
    struct lk_text text = {0};
    for (int c = 0; c < 10; c++) {
        lk_print_csv_field(&text, cells[c] ? cells[c] : "", "");
        lk_text_add(&text, c < 9 ? "," : "\n");
    }
    if (!text.rc) fwrite(text.bytes, 1, text.n, stdout);
    lk_text_free(&text);
}

static void print_table(const struct table *t) {
    static const char *const header[10] = {
        "id",     "legacy_id",        "category",   "subcategory",    "subcategory_by_content",
        "target", "other_occupation", "stereotype", "gendered_words", "text"};
    print_row(header);
    for (size_t i = 0; i < N_BUILTIN + t->n_own; i++) {
        const struct lk_prompt *p = builtin_of(t, i);
        char words[16] = "";
        if (!t->chosen[i]) continue;
        if (!p) {
            const struct lk_study_prompt *own = &t->own[i - N_BUILTIN];
            print_row((const char *const[10]){own->id, "", own->category, own->subcategory_printed,
                                              own->subcategory_content, own->target, "", "", "", own->text});
            continue;
        }
        bool w = i >= LK_N_EDIT_PROMPTS;
        if (w) snprintf(words, sizeof words, "%d", p->n_gendered_words);
        print_row((const char *const[10]){
            p->id, p->legacy_id, category_of(p), p->subcategory_printed, p->subcategory_content, p->target,
            p->other_occupation, w ? lk_factor_key(LK_FACTOR_GENDER, p->stereotype_gender) : "", words, p->text});
    }
}

static const char *group_of(const struct lk_prompt *p, bool content) {
    return content ? p->subcategory_content : p->subcategory_printed;
}

/* "Authority 5: O-01 O-02 ...", in the order of the first of each. */
static void print_groups(const struct table *t, bool content) {
    for (size_t i = 0; i < LK_N_EDIT_PROMPTS; i++) {
        const char *group = group_of(&t->builtin.edit[i], content);
        bool first = true;
        int n = 0;
        for (size_t k = 0; k < LK_N_EDIT_PROMPTS; k++) {
            bool same = t->chosen[k] && !strcmp(group_of(&t->builtin.edit[k], content), group);
            first &= !same || k >= i;
            n += same;
        }
        if (!first || !t->chosen[i]) continue;
        printf("%s %d:", group, n);
        for (size_t k = i; k < LK_N_EDIT_PROMPTS; k++)
            if (t->chosen[k] && !strcmp(group_of(&t->builtin.edit[k], content), group))
                printf(" %s", t->builtin.edit[k].id);
        printf("\n");
    }
}

static void print_sentences(const struct table *t) {
    int n[LK_N_GENDERS] = {0}, targets[LK_N_GENDERS] = {0}, without = 0;
    for (int i = 0; i < LK_N_W_PROMPTS; i++) {
        const struct lk_prompt *p = &t->builtin.w[i];
        bool first = true;
        for (int k = 0; k < i; k++) first &= strcmp(t->builtin.w[k].target, p->target) != 0;
        n[p->stereotype_gender]++;
        targets[p->stereotype_gender] += first;
        without += !p->n_gendered_words;
    }
    printf("sentences %d: %d male-stereotyped, %d female-stereotyped\n", LK_N_W_PROMPTS, n[0], n[1]);
    printf("target occupations: %d male-stereotyped, %d female-stereotyped\n", targets[0], targets[1]);
    printf("without a gendered word %d:", without);
    for (int i = 0; i < LK_N_W_PROMPTS; i++)
        if (!t->builtin.w[i].n_gendered_words) printf(" %s", t->builtin.w[i].id);
    printf("\n");
}

enum lk_code study_prompts(const struct cli_arguments *a, struct lk_study *study) {
    struct table t = {.own = NULL};
    t.study = study;
    if (study) t.own = lk_study_own_prompts(study, &t.n_own);
    LK_TRY(lk_prompts_load(&t.builtin));
    t.chosen = lk_calloc(N_BUILTIN + t.n_own, sizeof *t.chosen);
    enum lk_code rc = t.chosen ? choose(&t, a->study.ids) : lk_fail(LK_E_NOMEM, "study prompts: out of memory");
    for (size_t i = 0; i < N_BUILTIN + t.n_own && !rc && !strcmp(a->study.show, "text"); i++)
        if (t.chosen[i]) puts(builtin_of(&t, i) ? builtin_of(&t, i)->text : t.own[i - N_BUILTIN].text);
    if (!rc && !strcmp(a->study.show, "table")) print_table(&t);
    if (!rc && (!strcmp(a->study.show, "printed") || !strcmp(a->study.show, "content")))
        print_groups(&t, *a->study.show == 'c');
    if (!rc && !strcmp(a->study.show, "sentences")) print_sentences(&t);
    lk_free(t.chosen);
    lk_prompts_free(&t.builtin);
    return rc;
}

/* study rewrite: the prompts of all models that have a rewriter, before any picture. Seeds of a source and a prompt
 * share a text; what is written already is not asked for again. */

/* A text that is to be made, of the first job that needs it. */
struct wanted {
    size_t job;
    int model;
};

struct state {
    const struct cli_arguments *arguments;
    const struct lk_study *study;
    struct lk_study_job *job;
    struct wanted *list;
    size_t n, capacity, n_jobs, n_written, n_failed;
    struct lk_names keys;
};

static enum lk_code find_wanted(struct state *s) {
    for (size_t i = 0; i < lk_study_n_jobs(s->study); i++) {
        struct lk_text key = {0};
        int32_t number;
        const size_t before = s->keys.n;
        LK_TRY(lk_study_job(s->study, i, s->job));
        if (s->job->rewriter && s->job->rewriter->problem) return lk_fail(LK_E_INPUT, "%s", s->job->rewriter->problem);
        s->n_jobs += s->job->rewriter != NULL;
        if (!s->job->rewriter || !s->job->rewrite_missing) continue;
        enum lk_code rc = lk_study_rewrite_key(s->study, s->job, &key);
        if (!rc) rc = lk_names_number(&s->keys, key.bytes, key.n, &number);
        lk_text_free(&key);
        LK_TRY(rc);
        if (s->keys.n == before) continue;
        LK_TRY(lk_grow(&s->list, &s->capacity, s->n + 1, sizeof *s->list));
        s->list[s->n++] = (struct wanted){i, s->job->model};
    }
    return LK_OK;
}

/* Weights are known when the model is open: other ones than those that wrote the list would mix two rewriters. */
static enum lk_code check_weights(struct state *s, int model, const struct lk_rewriter *r) {
    for (size_t i = 0; i < lk_study_n_jobs(s->study); i++) {
        LK_TRY(lk_study_job(s->study, i, s->job));
        if (s->job->model != model || !s->job->rewrite || !strcmp(s->job->rewrite->weights, r->weights)) continue;
        return lk_fail(LK_E_CHANGED,
                       "%s: written by %s with weights %s, which has weights %s now; name another file in "
                       "\"models.%s.rewrite\"",
                       s->job->rewriter->file, r->name, s->job->rewrite->weights, r->weights,
                       lk_study_model_key(s->study, model));
    }
    return LK_OK;
}

struct batch {
    struct lk_rewrite jobs[LK_REWRITE_SLOTS];
    struct lk_image images[LK_REWRITE_SLOTS][2];
    size_t of[LK_REWRITE_SLOTS];
    char *prompts[LK_REWRITE_SLOTS];
    int n;
};

static void batch_free(struct batch *b) {
    for (int i = 0; i < b->n; i++) {
        lk_rewrite_free(&b->jobs[i]);
        lk_free(b->prompts[i]);
        for (int k = 0; k < 2; k++) lk_image_free(&b->images[i][k]);
    }
    b->n = 0;
}

static enum lk_code add(struct state *s, struct batch *b, size_t job) {
    LK_TRY(lk_study_job(s->study, job, s->job));
    const int at = b->n++;
    b->of[at] = job;
    b->jobs[at] = (struct lk_rewrite){.images = b->images[at], .n_images = s->job->n_sources};
    b->jobs[at].prompt = b->prompts[at] = lk_strdup(s->job->original_prompt);
    if (!b->prompts[at]) return lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    for (int k = 0; k < s->job->n_sources; k++)
        LK_TRY(lk_image_read(&b->images[at][k], s->job->source_files[k], s->job->job.run.exif_transpose, 0));
    return LK_OK;
}

static void add_line(const struct state *s, const struct lk_rewriter *r, const struct lk_rewrite *made,
                     struct lk_text *out) {
    lk_text_add(out, "{\"sources\":[");
    for (int k = 0; k < s->job->n_sources; k++)
        lk_text_add(out, "%s\"%s\"", k ? "," : "", lk_study_source(s->study, s->job->sources[k])->sha256);
    lk_text_add(out, "],\"source_ids\":[");
    for (int k = 0; k < s->job->n_sources; k++) {
        char id[64];
        study_source_name(s->study, s->job->sources[k], id);
        lk_text_add(out, "%s\"%s\"", k ? "," : "", id);
    }
    lk_text_add(out, "],\"prompt_id\":");
    lk_text_json(out, s->job->prompt->id);
    lk_text_add(out, ",\"rewrite\":");
    lk_rewrite_record(r, made, out);
    lk_text_add(out, "}\n");
}

static enum lk_code run_batch(struct state *s, const struct lk_rewriter *r, const char *file, struct batch *b) {
    struct lk_text lines = {0};
    enum lk_code rc = lk_rewrite(r, b->jobs, b->n, cli_signals_check);
    for (int i = 0; i < b->n && !rc; i++) {
        rc = lk_study_job(s->study, b->of[i], s->job);
        if (!rc) add_line(s, r, &b->jobs[i], &lines);
        s->n_failed += !b->jobs[i].text;
        if (!rc && !b->jobs[i].text) lk_log(LK_LOG_WARNING, "%s: %s", s->job->name, b->jobs[i].error);
    }
    if (!rc) rc = lines.rc;
    if (!rc && lines.n) rc = lk_append_lines(file, lines.bytes, lines.n);
    if (!rc) s->n_written += (size_t)b->n;
    lk_text_free(&lines);
    batch_free(b);
    return rc;
}

static enum lk_code cut_half_line(const char *file) {
    char *text;
    size_t n;
    enum lk_code rc = lk_read_file(file, (size_t)1 << 30, &text, &n);
    if (rc) return rc;
    const size_t whole = lk_whole_lines(text, n);
    lk_free(text);
    return lk_cut_half_line(file, whole, n);
}

static enum lk_code run_model(struct state *s, int model, struct batch *b) {
    const struct lk_study_rewriter *of = lk_study_model_rewriter(s->study, model);
    struct cli_arguments a = *s->arguments;
    struct lk_append_lock lock;
    struct cli_rewriter r;
    a.rewrite = (struct cli_rewrite_arguments){of->prompts, of->model, of->temperature};
    a.job.request.seed = lk_study_seed(s->study);
    LK_TRY(lk_append_lock(&lock, of->file));
    enum lk_code rc = cli_rewriter_open(&r, &a, of->model);
    if (!rc) rc = check_weights(s, model, &r.rewriter);
    if (!rc) rc = cut_half_line(of->file);
    for (size_t i = 0; i < s->n && !rc; i++) {
        if (s->list[i].model != model) continue;
        rc = add(s, b, s->list[i].job);
        if (!rc && b->n == LK_REWRITE_SLOTS) {
            rc = run_batch(s, &r.rewriter, of->file, b);
            lk_log_progress("rewriting", (int)s->n_written, (int)s->n, lk_log_now());
        }
    }
    if (!rc) rc = run_batch(s, &r.rewriter, of->file, b);
    lk_log_progress_end();
    batch_free(b);
    cli_rewriter_close(&r);
    lk_append_unlock(&lock);
    return rc;
}

static enum lk_code run(struct state *s, struct batch *b) {
    LK_TRY(find_wanted(s));
    if (!s->n_jobs)
        return lk_fail(LK_E_INPUT, "%s: no model has a \"rewrite\"; 'likeness help study-file' explains it",
                       lk_study_name(s->study));
    for (int m = 0; m < lk_study_n_models(s->study); m++) {
        bool any = false;
        for (size_t i = 0; i < s->n; i++) any |= s->list[i].model == m;
        if (any) LK_TRY(run_model(s, m, b));
    }
    printf("%zu prompts rewritten, %zu without a usable text; %zu jobs\n", s->n_written, s->n_failed, s->n_jobs);
    if (!s->n_failed) return LK_OK;
    return lk_fail(s->n_failed < s->n_written ? LK_E_PARTIAL : LK_E_INPUT, "%zu of %zu prompts could not be rewritten",
                   s->n_failed, s->n_written);
}

/* Whom the texts name, before any picture: the report as it is without outputs. The study is read again, with the new
 * texts. */
static enum lk_code write_report(const struct cli_arguments *a) {
    const struct lk_audit_settings settings = {LK_THRESHOLDS_DEFAULT, 0.05, false};
    struct lk_audit *audit = NULL;
    struct lk_study *study;
    struct lk_report_options options;
    LK_TRY(lk_study_open(&study, a->more[0]));
    enum lk_code rc = lk_audit_open(&audit, NULL);
    if (!rc) rc = lk_audit_add_study(audit, study);
    if (!rc) rc = lk_audit_complete(audit, &settings);
    lk_report_options_init(&options);
    options.title = lk_study_name(study);
    options.run = "";
    options.alpha = settings.alpha;
    options.study_seed = lk_study_seed(study);
    if (!rc) rc = lk_any_report_write(audit, study, &options, a->output);
    lk_audit_close(audit);
    lk_study_close(study);
    return rc;
}

enum lk_code study_rewrite(const struct cli_arguments *a, struct lk_study *study) {
    struct state s = {.arguments = a, .study = study, .job = lk_malloc(sizeof *s.job)};
    struct batch *b = lk_calloc(1, sizeof *b);
    cli_signals_install();
    struct lk_error failed = {0};
    enum lk_code rc = s.job && b ? run(&s, b) : lk_fail(LK_E_NOMEM, "rewrite: out of memory");
    if (rc) lk_error_get(&failed, rc);
    if (a->output && (!rc || s.n_failed)) rc = write_report(a);
    if (!rc && failed.code) rc = lk_error_set(&failed);
    lk_free(s.job);
    lk_free(s.list);
    lk_free(b);
    lk_names_free(&s.keys);
    return rc;
}
