#include "eval/intake/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/names.h"
#include "eval/intake/internal.h"
#include "eval/report/measures.h"

static const enum lk_measure outcomes[] = {LK_MEASURE_SOFT_ERASURE, LK_MEASURE_RACE_DRIFT, LK_MEASURE_GENDER_DRIFT,
                                           LK_MEASURE_LIGHTENING, LK_MEASURE_AGE_DRIFT};
enum { N_OUTCOMES = sizeof outcomes / sizeof *outcomes, N_CONVENTIONS = 5, FIRST_OF_PEOPLE = 3, MAX_SENTENCES = 8 };
static const struct {
    const char *who, *name;
} conventions[N_CONVENTIONS] = {{"primary", "the primary judge alone"},
                                {"secondary", "the secondary judge alone"},
                                {"rounded", "the judges' rounded mean"},
                                {"reviewed", "reviewers' decisions"},
                                {"raters", "raters"}};

/* Numbers by the rows of a table of the store, from 1 on. */
struct rows {
    int32_t *of;
    size_t n, capacity;
};

struct lk_audit_findings {
    struct lk_outcomes outcomes;
    struct lk_claims claims;
    double *y;                                            /* of the judges, and of each convention */
    bool known[N_CONVENTIONS + 1];                        /* those with outcomes */
    int32_t *levels;                                      /* of attributes and kinds */
    const char **names;                                   /* of sources, prompts, models, kinds */
    struct lk_names source_names, prompts, kinds, models; /* in the order of the study */
    struct lk_names subcategories;                        /* "kind / subcategory" */
    const char *outcome_names[N_OUTCOMES];
    struct lk_claims_options options;
    double *filled; /* while it is read: sums, then means */
    int *n_filled;
    struct rows rows[3]; /* of models, sources and prompts */
    /* What hosted models refused, judged by itself: where a model, a source or a prompt is refused most, little else is
     * known, and that must not leave it out. n_outcomes 0: no model was asked over the network. */
    struct lk_outcomes asked;
    struct lk_claims refusals;
    double *refused; /* [n_models, n_sources, n_prompts] */
};
static const char *const refused_name[] = {"Refused"};

/* Its number by the row of its table, -1: it is not asked about. */
static int of_row(const struct rows *rows, const struct lk_audit_row *row, int column) {
    const int64_t i = sqlite3_column_int64(row->statement, column);
    return i > 0 && (size_t)i <= rows->n ? rows->of[i - 1] : -1;
}

/* A name of a row that is not there yet gets the next number. */
static enum lk_code number(struct lk_names *names, const struct lk_audit_row *row, const char *column, int32_t *out) {
    const char *text = lk_audit_text(row, column);
    return lk_names_number(names, text ? text : "", text ? strlen(text) : 0, out);
}

/* What it is and where it stands in its own table. */
static enum lk_code number_row(struct lk_names *names, struct rows *rows, const struct lk_audit_row *row,
                               const char *column) {
    int32_t i;
    double at = 0;
    LK_TRY(number(names, row, column, &i));
    if (!lk_audit_number(row, "at", &at) || at < 1) return LK_OK;
    LK_TRY(lk_grow(&rows->of, &rows->capacity, (size_t)at, sizeof *rows->of));
    while (rows->n < (size_t)at) rows->of[rows->n++] = -1;
    rows->of[(size_t)at - 1] = i;
    return LK_OK;
}

static enum lk_code take_model(void *context, const struct lk_audit_row *row) {
    struct lk_audit_findings *f = context;
    return number_row(&f->models, &f->rows[0], row, "model_key");
}

static enum lk_code take_prompt(void *context, const struct lk_audit_row *row) {
    struct lk_audit_findings *f = context;
    int32_t kind;
    LK_TRY(number_row(&f->prompts, &f->rows[2], row, "prompt_id"));
    return number(&f->kinds, row, "category", &kind);
}

static enum lk_code take_source(void *context, const struct lk_audit_row *row) {
    struct lk_audit_findings *f = context;
    return number_row(&f->source_names, &f->rows[1], row, "source_id");
}

/* The sum and the number of a cell's seeds. */
static enum lk_code take_outcome(void *context, const struct lk_audit_row *row) {
    struct lk_audit_findings *f = context;
    const struct lk_outcomes *o = &f->outcomes;
    const int k = sqlite3_column_int(row->statement, 0), m = of_row(&f->rows[0], row, 1),
              s = of_row(&f->rows[1], row, 2), p = of_row(&f->rows[2], row, 3);
    if (m < 0 || s < 0 || p < 0) return LK_OK;
    const size_t cell =
        (((size_t)k * (size_t)o->n_models + (size_t)m) * (size_t)o->n_sources + (size_t)s) * (size_t)o->n_prompts +
        (size_t)p;
    f->filled[cell] += sqlite3_column_double(row->statement, 4);
    f->n_filled[cell]++;
    return LK_OK;
}

/* Who the edits are asked of, about what and by which model: in the study's order. */
static enum lk_code read_names(struct lk_audit *audit, struct lk_audit_findings *f) {
    LK_TRY(lk_audit_each(
        audit,
        "SELECT DISTINCT model_key, model_row AS at FROM item WHERE arm='edited' AND source2_id IS NULL ORDER BY "
        "model_position",
        take_model, f));
    LK_TRY(lk_audit_each(
        audit,
        "SELECT DISTINCT prompt_id, category, prompt_row AS at FROM item WHERE arm='edited' AND source2_id IS NULL "
        "ORDER BY prompt_position",
        take_prompt, f));
    return lk_audit_each(audit,
                         "SELECT DISTINCT i.source_id, i.source_row AS at FROM item i JOIN source s USING(source_id) "
                         "WHERE arm='edited' AND "
                         "source2_id IS NULL ORDER BY s.position",
                         take_source, f);
}

static const struct lk_study_source *find_source(const struct lk_study *study, const char *id) {
    for (int i = 0; i < lk_study_n_sources(study); i++) {
        const struct lk_study_source *source = lk_study_source(study, i);
        if (source->id && !strcmp(source->id, id)) return source;
    }
    return NULL;
}

struct kinds {
    struct lk_audit_findings *f;
    int32_t *of, *subcategory;
};

static enum lk_code take_kind(void *context, const struct lk_audit_row *row) {
    struct kinds *k = context;
    const char *prompt = lk_audit_text(row, "prompt_id"), *kind = lk_audit_text(row, "category");
    const int32_t p = prompt ? lk_names_find(&k->f->prompts, prompt, strlen(prompt)) : -1;
    if (p < 0) return LK_OK;
    k->of[p] = lk_names_find(&k->f->kinds, kind ? kind : "", kind ? strlen(kind) : 0);
    return number(&k->f->subcategories, row, "subcategory", &k->subcategory[p]);
}

static enum lk_code fill_factors(struct lk_audit *audit, const struct lk_study *study, struct lk_audit_findings *f) {
    struct lk_outcomes *o = &f->outcomes;
    int n_attributes;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n_attributes);
    const size_t n_s = (size_t)o->n_sources, n_p = (size_t)o->n_prompts;
    f->levels = lk_calloc(n_s * (size_t)n_attributes + 2 * n_p + 1, sizeof *f->levels);
    f->names = lk_calloc((size_t)o->n_models + 1, sizeof *f->names);
    if (!f->levels || !f->names) return lk_fail(LK_E_NOMEM, "report: out of memory");
    o->n_attributes = n_attributes;
    for (int a = 0; a < n_attributes; a++) {
        int32_t *of = f->levels + (size_t)a * n_s;
        for (size_t s = 0; s < n_s; s++) {
            const struct lk_study_source *source = find_source(study, f->source_names.list[s]);
            of[s] = source ? source->level[a] : 0;
        }
        o->attributes[a] = (struct lk_levels){of, attributes[a].n};
        o->attribute_names[a] = attributes[a].display;
        o->level_names[a] = (const char *const *)attributes[a].displays;
    }
    int32_t *kinds = f->levels + n_s * (size_t)n_attributes;
    o->kinds = (struct lk_levels){.of = kinds, .count = (int)f->kinds.n};
    for (int m = 0; m < o->n_models; m++)
        for (int k = 0; k < lk_study_n_models(study); k++)
            if (!strcmp(lk_study_model_key(study, k), f->models.list[m])) f->names[m] = lk_study_model_label(study, k);
    for (int k = 0; k < N_OUTCOMES; k++) f->outcome_names[k] = lk_measure_name(outcomes[k]);
    o->model_names = f->names;
    o->source_names = f->source_names.list, o->prompt_names = f->prompts.list, o->kind_names = f->kinds.list;
    o->outcome_names = f->outcome_names;
    LK_TRY(lk_audit_each(audit,
                         "SELECT prompt_id, category, category || ' / ' || iif(subcategory = '', 'none', subcategory) "
                         "AS subcategory FROM prompt",
                         take_kind, &(struct kinds){f, kinds, kinds + n_p}));
    o->subcategories = (struct lk_levels){.of = kinds + n_p, .count = (int)f->subcategories.n};
    o->subcategory_names = f->subcategories.list;
    return LK_OK;
}

static enum lk_code read_outcomes(struct lk_audit *audit, struct lk_audit_findings *f) {
    struct lk_outcomes *o = &f->outcomes;
    const size_t n = (size_t)N_OUTCOMES * (size_t)o->n_models * (size_t)o->n_sources * (size_t)o->n_prompts;
    f->y = lk_calloc(n * (N_CONVENTIONS + 1) + 1, sizeof *f->y);
    f->n_filled = lk_malloc((n + 1) * sizeof *f->n_filled);
    if (!f->y || !f->n_filled) return lk_fail(LK_E_NOMEM, "report: out of memory");
    for (int c = 0; c <= N_CONVENTIONS; c++) {
        const char *who = c ? conventions[c - 1].who : "judges";
        struct lk_text sql = {0};
        lk_text_add(&sql, "SELECT CASE measure");
        for (int k = 0; k < N_OUTCOMES; k++) lk_text_add(&sql, " WHEN '%s' THEN %d", lk_measure_key(outcomes[k]), k);
        lk_text_add(&sql,
                    " END AS k, model_row, source_row, prompt_row, value FROM %s JOIN output USING(item) WHERE "
                    "who='%s' AND arm='edited' AND source2_id IS NULL AND k IS NOT NULL",
                    c && strcmp(who, "raters") ? "alternative" : "outcome", who);
        f->filled = f->y + n * (size_t)c;
        memset(f->n_filled, 0, n * sizeof *f->n_filled);
        const enum lk_code rc = sql.rc ? sql.rc : lk_audit_each(audit, sql.bytes, take_outcome, f);
        lk_text_free(&sql);
        LK_TRY(rc);
        for (size_t i = 0; i < n; i++) {
            f->filled[i] = f->n_filled[i] ? f->filled[i] / f->n_filled[i] : NAN;
            f->known[c] |= f->n_filled[i] > 0;
        }
    }
    o->y = f->y;
    return LK_OK;
}

static enum lk_code take_refused(void *context, const struct lk_audit_row *row) {
    struct lk_audit_findings *f = context;
    const struct lk_outcomes *o = &f->outcomes;
    const char *model = lk_audit_text(row, "model_key"), *source = lk_audit_text(row, "source_id"),
               *prompt = lk_audit_text(row, "prompt_id");
    double value;
    if (!model || !source || !prompt || !lk_audit_number(row, "value", &value)) return LK_OK;
    const int32_t m = lk_names_find(&f->models, model, strlen(model)),
                  s = lk_names_find(&f->source_names, source, strlen(source)),
                  p = lk_names_find(&f->prompts, prompt, strlen(prompt));
    if (m < 0 || s < 0 || p < 0) return LK_OK;
    f->refused[(m * o->n_sources + s) * o->n_prompts + p] = value;
    f->asked.n_outcomes = 1;
    return LK_OK;
}

/* The families of both questions share the level. */
static enum lk_code find_refusals(struct lk_audit *audit, struct lk_audit_findings *f,
                                  struct lk_claims_options *options) {
    const size_t n = (size_t)f->outcomes.n_models * (size_t)f->outcomes.n_sources * (size_t)f->outcomes.n_prompts;
    f->refused = lk_malloc((n + 1) * sizeof *f->refused);
    if (!f->refused) return lk_fail(LK_E_NOMEM, "report: out of memory");
    for (size_t i = 0; i < n; i++) f->refused[i] = NAN;
    f->asked = f->outcomes;
    f->asked.n_outcomes = 0;
    f->asked.y = f->refused;
    f->asked.outcome_names = refused_name;
    LK_TRY(lk_audit_each(audit,
                         "SELECT model_key, source_id, prompt_id, avg(value) AS value FROM outcome JOIN item "
                         "USING(item) WHERE who='asked' AND arm='edited' AND source2_id IS NULL GROUP BY model_key, "
                         "source_id, prompt_id",
                         take_refused, f));
    if (!f->asked.n_outcomes) return LK_OK;
    if (f->known[0]) options->n_families_beside += f->outcomes.n_attributes + 2 + (f->subcategories.n > f->kinds.n);
    struct lk_claims_options each = *options; /* what one service refuses says nothing of another */
    each.apart = each.ranges = each.measured = true;
    return lk_claims_of(&f->asked, &each, &f->refusals);
}

bool lk_audit_refusals(const struct lk_audit_findings *f, const struct lk_outcomes **outcomes,
                       const struct lk_claims **claims) {
    *outcomes = &f->asked, *claims = &f->refusals;
    return f->asked.n_outcomes > 0;
}

/* Of one judge the judges, it alone and its rounded mean are the same. */
static enum lk_code judge_conventions(struct lk_audit_findings *f) {
    const struct lk_outcomes *o = &f->outcomes;
    const size_t n = (size_t)N_OUTCOMES * (size_t)o->n_models * (size_t)o->n_sources * (size_t)o->n_prompts;
    const bool two = f->known[1] && f->known[2];
    struct lk_convention list[N_CONVENTIONS];
    int n_list = 0;
    for (int c = 0; c < N_CONVENTIONS; c++)
        if (f->known[c + 1] && (two || c >= FIRST_OF_PEOPLE))
            list[n_list++] = (struct lk_convention){conventions[c].name, f->y + n * (size_t)(c + 1)};
    return lk_claims_conventions(o, &f->options, list, n_list, &f->claims);
}

enum lk_code lk_audit_findings(struct lk_audit *audit, const struct lk_study *study,
                               const struct lk_claims_options *options, struct lk_audit_findings **out) {
    struct lk_audit_findings *f = *out = lk_calloc(1, sizeof *f);
    if (!f) return lk_fail(LK_E_NOMEM, "report: out of memory");
    f->options = *options;
    LK_TRY(read_names(audit, f));
    f->outcomes.n_sources = (int)f->source_names.n;
    f->outcomes.n_prompts = (int)f->prompts.n;
    f->outcomes.n_models = (int)f->models.n;
    f->outcomes.n_outcomes = N_OUTCOMES;
    LK_TRY(fill_factors(audit, study, f));
    LK_TRY(read_outcomes(audit, f));
    LK_TRY(find_refusals(audit, f, &f->options));
    if (!f->known[0]) return LK_OK;
    LK_TRY(lk_claims_of(&f->outcomes, &f->options, &f->claims));
    return judge_conventions(f);
}

void lk_audit_findings_free(struct lk_audit_findings *f) {
    if (!f) return;
    lk_claims_free(&f->claims);
    lk_claims_free(&f->refusals);
    lk_free(f->refused);
    lk_free(f->n_filled);
    for (int i = 0; i < 3; i++) lk_free(f->rows[i].of);
    lk_names_free(&f->source_names);
    lk_names_free(&f->prompts);
    lk_names_free(&f->kinds);
    lk_names_free(&f->subcategories);
    lk_names_free(&f->models);
    lk_free(f->levels);
    lk_free(f->names);
    lk_free(f->y);
    lk_free(f);
}

/* --- the page --- */

static void lead(struct lk_page *page, struct lk_text *text) {
    if (!text->rc && text->n) lk_page_lead(page, text->bytes);
    text->n = 0;
}

static void notes(const struct lk_claims *c, struct lk_page *page) {
    for (int i = 0; i < c->n_families; i++)
        if (c->families[i].n_rare && !*c->families[i].refused)
            lk_page_paragraph(page,
                              "By %s, %d outcomes of models are too rare to be asked: fewer than five sources have "
                              "them, or lack them.",
                              c->families[i].name, c->families[i].n_rare);
    for (const char *line = c->notes.n ? c->notes.bytes : ""; *line;) {
        const size_t n = strcspn(line, "\n");
        lk_page_paragraph(page, "%.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void how(const struct lk_audit_findings *f, struct lk_page *page) {
    const struct lk_claims *c = f->known[0] ? &f->claims : &f->refusals;
    const bool fixed = f->options.prompts_are_all;
    lk_page_fold(page, "How this was tested");
    lk_page_paragraph(
        page,
        "Asked is how often an outcome occurs among people%s like those of the study (%d sources, %d "
        "prompts%s). An outcome of two judges is the mean of their indicators, of several seeds the mean; "
        "outputs of one source%s are not taken as independent.",
        fixed ? "" : " and prompts", c->n_sources, c->n_prompts, fixed ? ", which are taken as all there are" : "",
        fixed ? "" : " or one prompt");
    lk_page_paragraph(page,
                      "Each of the %d factors may be wrong with probability %.3g; within a factor the largest of all "
                      "outcomes, models and groups is judged, by relabelling sources or prompts (studentised, Westfall "
                      "and Young), pairs of models by Holm. Intervals beside a name are at %.4g%%.",
                      c->n_families, c->family_alpha, 100 * (1 - c->family_alpha));
    if (f->asked.n_outcomes && f->known[0])
        lk_page_paragraph(page, "Refusals are asked about apart, by the same tests at the same level for each factor; "
                                "the other outcomes are of what was made.");
    if (f->known[0]) notes(&f->claims, page);
    if (f->asked.n_outcomes) notes(&f->refusals, page);
}

/* What was found, in sentences. */
static void say(const struct lk_outcomes *o, const struct lk_claims *c, const char *what, const char *among,
                struct lk_page *page) {
    struct lk_text text = {0};
    int n_asked = 0;
    for (int i = 0; i < c->n_families; i++) n_asked += !*c->families[i].refused;
    if (!n_asked)
        lk_text_add(&text, "The study is too small to say that people, prompts or models like these differ%s.", what);
    else if (c->n_found)
        lk_text_add(&text, "%zu difference%s found%s %s.", c->n_found, c->n_found == 1 ? " was" : "s were", what,
                    among);
    else
        lk_text_add(&text, "No difference was found%s %s.", what, among);
    lead(page, &text);
    for (size_t i = 0; i < c->n; i++) {
        const struct lk_claim *x = &c->list[i];
        if ((!x->found && !*x->lost) || i >= MAX_SENTENCES) continue;
        lk_claim_sentence(o, x, &text);
        lead(page, &text);
    }
    if (c->n_found > MAX_SENTENCES)
        lk_page_paragraph(page, "%zu more stand in the table below.", c->n_found - MAX_SENTENCES);
    for (int i = 0; i < c->n_families; i++) {
        lk_claims_family_sentence(c, &c->families[i], &text);
        if (!text.rc && text.n) lk_page_paragraph(page, "%s", text.bytes);
        text.n = 0;
    }
    lk_text_free(&text);
}

void lk_audit_findings_page(const struct lk_audit_findings *f, struct lk_page *page) {
    const char *among = f->options.prompts_are_all ? "among people like these, for these prompts"
                                                   : "among people and prompts like these";
    if (!f->known[0]) lk_page_lead(page, "Nothing is judged yet, so nothing is compared.");
    if (f->known[0]) say(&f->outcomes, &f->claims, "", among, page);
    if (f->asked.n_outcomes) say(&f->asked, &f->refusals, " in what is refused", among, page);
    if (f->known[0] || f->asked.n_outcomes) how(f, page);
}

/* The rows of one question's claims. */
static void add_rows(struct lk_table *t, const struct lk_outcomes *o, const struct lk_claims *claims) {
    for (size_t i = 0; i < claims->n; i++) {
        const struct lk_claim *x = &claims->list[i];
        const bool model = x->family == LK_CLAIM_MODEL, kind = x->family == LK_CLAIM_KIND;
        const char *const *names = NULL;
        if (!model) (void)lk_claim_levels(o, x, &names);
        lk_table_row(t);
        lk_table_text(t, "%s",
                      model                              ? "model"
                      : !kind                            ? o->attribute_names[x->attribute]
                      : x->attribute == LK_SUBCATEGORIES ? "subcategory of prompts"
                                                         : "kind of prompt");
        lk_table_text(t, "%s", o->outcome_names[x->outcome]);
        lk_table_text(t, "%s", model ? "" : x->model < 0 ? "all" : o->model_names[x->model]);
        if (model)
            lk_table_text(t, "%s against %s", o->model_names[x->level], o->model_names[x->against]);
        else
            lk_table_text(t, "%s", names[x->level]);
        lk_table_rate(t, x->rate);
        lk_table_rate(t, x->other);
        lk_table_points(t, x->difference);
        if (!x->no_interval) lk_table_interval(t, x->low, x->high);
        if (x->no_interval) lk_table_remark(t, "no interval: %s", x->no_interval);
        lk_table_p(t, x->p);
        lk_table_text(t, "%s", x->found ? "yes" : "");
        if (*x->lost) lk_table_remark(t, "%s", x->lost);
        if (x->detectable > 0)
            lk_table_points(t, x->detectable);
        else
            lk_table_none(t, "no variance to tell by");
    }
}

enum lk_code lk_audit_findings_table(const struct lk_audit_findings *f, struct lk_table **out) {
    struct lk_table *t;
    LK_TRY(
        lk_table_new(out, "findings", "What was compared",
                     "Factor|Outcome|Model|Level|>Rate|>Others|>Difference|>Adjusted p|Found|>Would have been found"));
    t = *out;
    add_rows(t, &f->outcomes, &f->claims);
    add_rows(t, &f->asked, &f->refusals);
    lk_table_note(t,
                  "What was found, and of each other outcome what comes nearest. Rates of the level and of the others; "
                  "where attributes are not balanced the difference is adjusted. Intervals at %.4g%%; p adjusted "
                  "within the factor. Would have been found: with 80%% probability.",
                  100 * (1 - (f->known[0] ? &f->claims : &f->refusals)->family_alpha));
    enum lk_code rc = lk_table_finish(t);
    if (rc) lk_table_free(t);
    return rc;
}
