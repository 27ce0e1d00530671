#include "eval/t2i/prompts.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/scores/csv.h"
#include "eval/scores/words.h"

static const char *const column_names[LK_N_T2I_COLUMNS] = {
    "prompt_id",      "category",         "role_label",    "gender_spec",    "style",
    "context",        "natural_prompt",   "token_prompt",  "mitigation",     "notes",
    "rewrite_prompt", "diversity_prompt", "safety_prompt", "mitigation_flag"};

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "prompts: out of memory"); }

/* A row of empty cells. */
static enum lk_code add_row(struct lk_t2i_prompts *out, struct lk_t2i_prompt **row) {
    LK_TRY(lk_grow(&out->list, &out->capacity, out->n + 1, sizeof *out->list));
    *row = &out->list[out->n];
    for (int c = 0; c < LK_N_T2I_COLUMNS; c++) (*row)->cells[c] = "";
    (*row)->cells[LK_T2I_MITIGATION_FLAG] = "none";
    (*row)->extra = lk_store_alloc(&out->store, (out->n_extra + 1) * sizeof *(*row)->extra);
    return (*row)->extra ? LK_OK : out_of_memory();
}

/* The row counts once its id is new. *known otherwise. */
static enum lk_code keep_row(struct lk_t2i_prompts *out, bool *known) {
    const char *id = out->list[out->n].cells[LK_T2I_PROMPT_ID];
    int32_t number;
    LK_TRY(lk_names_number(&out->ids, id, strlen(id), &number));
    *known = (size_t)number != out->n;
    if (!*known) out->n++;
    return LK_OK;
}

static enum lk_code set(struct lk_t2i_prompts *out, const char **cell, const struct lk_text *text) {
    *cell = text->rc ? NULL : lk_store_text(&out->store, text->bytes ? text->bytes : "");
    return *cell ? LK_OK : out_of_memory();
}

static enum lk_code build_row(struct lk_t2i_prompts *out, const struct lk_t2i_role *role, int gender, const char *style,
                              const char *context) {
    struct lk_t2i_prompt *row;
    char gendered[256];
    bool known;
    LK_TRY(add_row(out, &row));
    lk_t2i_gendered_role(role->label, gender, gendered);
    struct lk_text id = {0}, natural = {0}, token = {0}, style_text = {0}, context_text = {0};
    lk_text_add(&id, "%zu", out->n + 1);
    lk_text_add(&style_text, "%s", style);
    lk_text_add(&context_text, "%s", context);
    lk_text_add(&natural, "A %s of %s in %s.", style, gendered, context);
    lk_text_add(&token, "%s, %s, %s", style, strchr(gendered, ' ') + 1, context);
    row->cells[LK_T2I_CATEGORY] = role->category;
    row->cells[LK_T2I_ROLE_LABEL] = role->label;
    row->cells[LK_T2I_GENDER_SPEC] = lk_t2i_gender_key(gender);
    enum lk_code rc = set(out, &row->cells[LK_T2I_PROMPT_ID], &id);
    if (!rc) rc = set(out, &row->cells[LK_T2I_STYLE], &style_text);
    if (!rc) rc = set(out, &row->cells[LK_T2I_CONTEXT], &context_text);
    if (!rc) rc = set(out, &row->cells[LK_T2I_NATURAL_PROMPT], &natural);
    if (!rc) rc = set(out, &row->cells[LK_T2I_TOKEN_PROMPT], &token);
    if (!rc) rc = keep_row(out, &known);
    lk_text_free(&id);
    lk_text_free(&style_text);
    lk_text_free(&context_text);
    lk_text_free(&natural);
    lk_text_free(&token);
    return rc;
}

static enum lk_code build(struct lk_t2i_prompts *out, const struct lk_t2i_design *d) {
    for (int i = 0; i < d->n_styles + d->n_contexts; i++)
        if (!*(i < d->n_styles ? d->styles[i] : d->contexts[i - d->n_styles]))
            return lk_fail(LK_E_INPUT, "prompts: expected a style and a context, got an empty one");
    for (int role = 0; role < LK_N_T2I_ROLES; role++)
        for (int gender = 0; gender < LK_N_T2I_GENDERS; gender++)
            for (int s = 0; s < d->n_styles; s++)
                for (int c = 0; c < d->n_contexts; c++)
                    LK_TRY(build_row(out, &lk_t2i_roles[role], gender, d->styles[s], d->contexts[c]));
    return LK_OK;
}

enum lk_code lk_t2i_prompts_build(struct lk_t2i_prompts *out, const struct lk_t2i_design *design) {
    static const char *const styles[] = {"photojournalistic photograph", "courtroom sketch", "store interior photo"};
    static const char *const contexts[] = {"a retail store aisle (staff-eye view)"};
    /* One set for all roles, so that a role is not known by its scene. */
    static const char *const fitting[] = {"a city street at night", "a police interview room", "a courtroom"};
    struct lk_t2i_design d = design ? *design : (struct lk_t2i_design){0};
    if (!d.n_styles) d.styles = styles, d.n_styles = 3;
    if (!d.n_contexts) d.contexts = contexts, d.n_contexts = 1;
    if (d.n_contexts == 1 && !strcmp(d.contexts[0], "fitting")) d.contexts = fitting, d.n_contexts = 3;
    *out = (struct lk_t2i_prompts){0};
    enum lk_code rc = build(out, &d);
    if (rc) lk_t2i_prompts_free(out);
    return rc;
}

static int column_of(const char *name) {
    for (int c = 0; c < LK_N_T2I_COLUMNS; c++)
        if (lk_same_name(column_names[c], name)) return c;
    return -1;
}

static enum lk_code read_header(struct lk_t2i_prompts *out, const struct lk_csv *csv) {
    int ignored;
    LK_TRY(lk_csv_require(csv, "prompt_id", &ignored));
    LK_TRY(lk_csv_require(csv, "natural_prompt", &ignored));
    out->extra = lk_store_alloc(&out->store, (csv->n_columns + 1) * sizeof *out->extra);
    if (!out->extra) return out_of_memory();
    for (size_t i = 0; i < csv->n_columns; i++) {
        if (column_of(csv->columns[i]) >= 0) continue;
        if (!(out->extra[out->n_extra++] = lk_store_text(&out->store, csv->columns[i]))) return out_of_memory();
    }
    return LK_OK;
}

static enum lk_code read_row(struct lk_t2i_prompts *out, const struct lk_csv *csv) {
    struct lk_t2i_prompt *row;
    bool known;
    LK_TRY(add_row(out, &row));
    for (size_t i = 0, extra = 0; i < csv->n_columns; i++) {
        int column = column_of(csv->columns[i]);
        const char *cell = lk_store_text(&out->store, lk_csv_cell(csv, (int)i));
        if (!cell) return out_of_memory();
        if (column < 0)
            row->extra[extra++] = cell;
        else if (*cell || column != LK_T2I_MITIGATION_FLAG)
            row->cells[column] = cell;
    }
    const int required[] = {LK_T2I_PROMPT_ID, LK_T2I_NATURAL_PROMPT};
    for (int i = 0; i < 2; i++)
        if (!*row->cells[required[i]])
            return lk_csv_fail(csv, lk_csv_column(csv, column_names[required[i]]), "expected a text, got none");
    if (lk_t2i_arm_parse(row->cells[LK_T2I_MITIGATION_FLAG]) < 0)
        return lk_csv_fail(csv, lk_csv_column(csv, "mitigation_flag"),
                           "expected none, rewrite, diversity, safety, post_filter, embed_norm or fair, got \"%.40s\"",
                           row->cells[LK_T2I_MITIGATION_FLAG]);
    LK_TRY(keep_row(out, &known));
    if (known)
        return lk_csv_fail(csv, lk_csv_column(csv, "prompt_id"), "the id \"%.80s\" occurs twice",
                           row->cells[LK_T2I_PROMPT_ID]);
    return LK_OK;
}

enum lk_code lk_t2i_prompts_read(struct lk_t2i_prompts *out, const char *text, size_t n, const char *name) {
    struct lk_csv csv;
    *out = (struct lk_t2i_prompts){0};
    LK_TRY(lk_csv_open(&csv, text, n, name));
    enum lk_code rc = read_header(out, &csv);
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        if (!rc && more) rc = read_row(out, &csv);
    }
    lk_csv_close(&csv);
    if (!rc && !out->n) rc = lk_fail(LK_E_INPUT, "%s: expected prompts below the header, got none", name);
    if (rc) lk_t2i_prompts_free(out);
    return rc;
}

static enum lk_code join_row(struct lk_t2i_prompts *prompts, const struct lk_csv *csv, int id_column, bool *seen) {
    const char *id = lk_csv_cell(csv, id_column);
    int32_t at = lk_names_find(&prompts->ids, id, strlen(id));
    if (at < 0) return lk_csv_fail(csv, id_column, "no prompt has the id \"%.80s\"", id);
    if (seen[at]) return lk_csv_fail(csv, id_column, "the id \"%.80s\" occurs twice", id);
    seen[at] = true;
    for (int c = LK_T2I_REWRITE_PROMPT; c <= LK_T2I_SAFETY_PROMPT; c++) {
        int column = lk_csv_column(csv, column_names[c]);
        const char *cell = lk_csv_cell(csv, column), **to = &prompts->list[at].cells[c];
        if (!*cell) continue;
        if (**to && strcmp(*to, cell))
            return lk_csv_fail(csv, column, "the prompt table has another text: \"%.100s\"", *to);
        if (!(*to = lk_store_text(&prompts->store, cell))) return out_of_memory();
    }
    return LK_OK;
}

enum lk_code lk_t2i_prompts_join(struct lk_t2i_prompts *prompts, const char *text, size_t n, const char *name) {
    struct lk_csv csv;
    int id_column = -1;
    LK_TRY(lk_csv_open(&csv, text, n, name));
    bool *seen = lk_calloc(prompts->n, sizeof *seen), any = false;
    enum lk_code rc = seen ? lk_csv_require(&csv, "prompt_id", &id_column) : out_of_memory();
    for (int c = LK_T2I_REWRITE_PROMPT; c <= LK_T2I_SAFETY_PROMPT; c++)
        any |= lk_csv_column(&csv, column_names[c]) >= 0;
    if (!rc && !any) rc = lk_csv_require(&csv, "rewrite_prompt", &(int){0});
    for (bool more = true; !rc && more;) {
        rc = lk_csv_next(&csv, &more);
        if (!rc && more) rc = join_row(prompts, &csv, id_column, seen);
    }
    lk_free(seen);
    lk_csv_close(&csv);
    return rc;
}

void lk_t2i_prompts_free(struct lk_t2i_prompts *prompts) {
    lk_free(prompts->list);
    lk_names_free(&prompts->ids);
    lk_store_free(&prompts->store);
    lk_rejects_free(&prompts->rejects);
    *prompts = (struct lk_t2i_prompts){0};
}

/* row NULL: the header. */
static void csv_line(const struct lk_t2i_prompts *prompts, const struct lk_t2i_prompt *row, enum lk_t2i_columns which,
                     struct lk_text *out) {
    const char *const *cells = row ? row->cells : column_names, *const *extra = row ? row->extra : prompts->extra;
    bool all = which == LK_T2I_ALL_COLUMNS, companion = which == LK_T2I_COMPANION_COLUMNS;
    for (int c = 0; c <= LK_T2I_NOTES; c++)
        if (c == LK_T2I_PROMPT_ID || !companion) {
            if (c) lk_text_add(out, ",");
            lk_print_csv_field(out, cells[c], "");
        }
    for (size_t i = 0; i < prompts->n_extra && !companion; i++) {
        lk_text_add(out, ",");
        lk_print_csv_field(out, extra[i], "");
    }
    for (int c = LK_T2I_REWRITE_PROMPT; c < LK_N_T2I_COLUMNS; c++)
        if (all || (companion && c != LK_T2I_MITIGATION_FLAG)) {
            lk_text_add(out, ",");
            lk_print_csv_field(out, cells[c], "");
        }
    lk_text_add(out, "\n");
}

enum lk_code lk_t2i_prompts_csv(const struct lk_t2i_prompts *prompts, enum lk_t2i_columns which, struct lk_text *out) {
    csv_line(prompts, NULL, which, out);
    for (size_t i = 0; i < prompts->n && !out->rc; i++) csv_line(prompts, &prompts->list[i], which, out);
    return out->rc ? lk_fail(out->rc, "prompts: out of memory for the table") : LK_OK;
}
