/* What a study file names: the table of sources and the user's prompts. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/digest.h"
#include "engine/base/json.h"
#include "eval/design/internal.h"
#include "eval/scores/fields.h"
#include "eval/scores/words.h"

/* Of the record being read, for messages. */
struct place {
    const char *file;
    size_t line;
    const struct lk_csv *csv; /* NULL: JSON */
};

/* A column that is not there is named once, with those that are: lk_study_note drops what repeats. */
static enum lk_code wrong(const struct place *at, const char *field, const char *expected, const struct lk_field *got) {
    static const char *const others[][2] = {
        {"id", "source_id"}, {"id", "prompt_id"}, {"path", "file"}, {"text", "prompt"}};
    bool there = got || !at->csv;
    for (size_t i = 0; !there && i < at->csv->n_columns; i++) {
        const char *column = at->csv->columns[i];
        there = lk_same_name(column, field);
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            there |= !strcmp(field, others[k][0]) && lk_same_name(column, others[k][1]);
    }
    int ignored;
    if (!there) return lk_csv_require(at->csv, field, &ignored);
    return lk_field_wrong(at->file, at->line, field, expected, got);
}

static enum lk_code out_of_memory(const char *file) { return lk_fail(LK_E_NOMEM, "%s: out of memory", file); }

static const struct lk_field *either(const struct lk_fields *fields, const char *a, const char *b) {
    const struct lk_field *field = lk_fields_find(fields, a);
    return field ? field : lk_fields_find(fields, b);
}

static enum lk_code read_factor(const struct lk_fields *fields, const struct place *at, enum lk_factor factor,
                                int *out) {
    const struct lk_field *field = lk_fields_find(fields, lk_factor_name(factor));
    char expected[200] = "";
    *out = field ? lk_factor_parse(factor, field->text, field->n) : -1;
    if (*out >= 0) return LK_OK;
    for (int i = 0; i < lk_factor_levels(factor); i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", i ? ", " : "",
                 lk_factor_key(factor, i));
    return wrong(at, lk_factor_name(factor), expected, field);
}

/* The cell, from the three factors or from the id; where both are given they agree. */
static enum lk_code read_cell(const struct lk_fields *fields, const struct place *at, int *out) {
    const struct lk_field *id = either(fields, "id", "source_id");
    int race, gender, age, named = id ? lk_source_parse(id->text, id->n) : -1;
    if (id && named < 0) return wrong(at, "id", "a source such as Black_Male_40s", id);
    *out = named;
    if (id && !lk_fields_find(fields, "race") && !lk_fields_find(fields, "gender") && !lk_fields_find(fields, "age"))
        return LK_OK;
    LK_TRY(read_factor(fields, at, LK_FACTOR_RACE, &race));
    LK_TRY(read_factor(fields, at, LK_FACTOR_GENDER, &gender));
    LK_TRY(read_factor(fields, at, LK_FACTOR_AGE, &age));
    *out = lk_source(race, gender, age);
    char expected[48];
    lk_source_id(*out, expected);
    return !id || named == *out ? LK_OK : wrong(at, "id", expected, id);
}

static const char *beside(struct lk_study *s, const char *table, const char *written) {
    char *path = lk_path_beside(table, written);
    const char *kept = path ? lk_store_text(&s->store, path) : NULL;
    lk_free(path);
    return kept;
}

/* A picture that the same run, or somebody else, has hashed is hashed once more: it may have been replaced. */
static enum lk_code fill_source(struct lk_study *s, const struct lk_fields *fields, const struct place *at,
                                const char *id, struct lk_study_source *source) {
    const struct lk_field *path = either(fields, "path", "file"), *digest = lk_fields_find(fields, "sha256");
    source->id = lk_store_text(&s->store, id);
    source->written = lk_store_copy(&s->store, path->text, path->n);
    source->file = beside(s, at->file, path->text);
    if (!source->id || !source->written || !source->file) return out_of_memory(at->file);
    enum lk_code rc = lk_digest_file(LK_DIGEST_SHA256, source->file, source->sha256);
    if (rc == LK_E_NOMEM) return rc;
    if (rc)
        source->sha256[0] = 0;
    else if (digest && strcmp(digest->text, source->sha256))
        return lk_fail(LK_E_CHANGED, "%s: line %zu: %s: expected the picture with SHA-256 %.64s, got %s", at->file,
                       at->line, source->file, digest->text, source->sha256);
    return LK_OK;
}

/* Of the portrait study: one of its 84 cells. */
static enum lk_code read_portrait(struct lk_study *s, const struct lk_fields *fields, const struct place *at) {
    int cell = -1;
    char id[48];
    const struct lk_field *path = either(fields, "path", "file");
    LK_TRY(read_cell(fields, at, &cell));
    struct lk_study_source *source = &s->sources[cell];
    if (!path) return wrong(at, "path", "a picture's path", path);
    lk_source_id(cell, id);
    if (!source->id) return fill_source(s, fields, at, id, source);
    lk_text_add(&s->lacking, "%s: line %zu: %s: expected one source of this cell, got %s and %s\n", at->file, at->line,
                id, source->written, path->text);
    s->n_lacking++;
    return s->lacking.rc;
}

static enum lk_code read_level(const struct lk_attribute *a, const struct lk_fields *fields, const struct place *at,
                               int8_t *out) {
    const struct lk_field *field = lk_fields_find(fields, a->name);
    char expected[300] = "";
    const int level = field ? lk_attribute_parse(a, field->text, field->n) : -1;
    *out = (int8_t)level;
    if (level >= 0) return LK_OK;
    for (int i = 0; i < a->n; i++) {
        const size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s%s", i ? ", " : "", a->keys[i]);
    }
    return wrong(at, a->name, expected, field);
}

static enum lk_code read_source(struct lk_study *s, const struct lk_fields *fields, const struct place *at) {
    if (s->portrait) return read_portrait(s, fields, at);
    const struct lk_field *id = either(fields, "id", "source_id"), *path = either(fields, "path", "file");
    int32_t number;
    if (!id || !lk_study_is_word(id->text, id->n, 60)) return wrong(at, "id", "1 to 60 letters, digits, - or _", id);
    if (!path) return wrong(at, "path", "a picture's path", path);
    LK_TRY(lk_names_number(&s->source_ids, id->text, id->n, &number));
    if (number < s->n_sources) return wrong(at, "id", "each source once", id);
    LK_TRY(lk_grow(&s->sources, &s->sources_capacity, (size_t)s->n_sources + 1, sizeof *s->sources));
    struct lk_study_source *source = &s->sources[s->n_sources++];
    *source = (struct lk_study_source){0};
    for (int a = 0; a < s->n_attributes; a++) {
        const struct lk_attribute *of = s->attributes[a].of; /* which comes before */
        if (of)
            source->level[a] = s->attributes[a].group[source->level[of - s->attributes]];
        else
            LK_TRY(read_level(&s->attributes[a], fields, at, &source->level[a]));
    }
    return fill_source(s, fields, at, id->text, source);
}

typedef enum lk_code record_fn(struct lk_study *s, const struct lk_fields *fields, const struct place *at);

static enum lk_code read_records(struct lk_study *s, const char *text, size_t n, const char *file, record_fn *record) {
    struct lk_records records;
    bool more = false;
    enum lk_code rc = lk_records_open(&records, text, n, file);
    if (!rc) rc = lk_records_next_strict(&records, &more);
    while (!rc && more) {
        const struct place at = {file, records.line, records.is_csv ? &records.csv : NULL};
        rc = lk_study_note(s, record(s, &records.fields, &at));
        if (!rc) rc = lk_records_next_strict(&records, &more);
    }
    lk_records_close(&records);
    return rc;
}

/* Every cell of the portrait study, with a source or without. */
static enum lk_code add_cells(struct lk_study *s) {
    LK_TRY(lk_grow(&s->sources, &s->sources_capacity, LK_N_SOURCES, sizeof *s->sources));
    for (s->n_sources = 0; s->n_sources < LK_N_SOURCES; s->n_sources++) {
        int level[3];
        struct lk_study_source *source = &s->sources[s->n_sources];
        *source = (struct lk_study_source){0};
        lk_source_factors(s->n_sources, &level[0], &level[1], &level[2]);
        for (int a = 0; a < 3; a++) source->level[a] = (int8_t)level[a];
    }
    return LK_OK;
}

enum lk_code lk_study_read_sources(struct lk_study *s) {
    char *text;
    size_t n;
    if (s->portrait) LK_TRY(add_cells(s));
    if (s->sources_given.text) {
        const char *slash = strrchr(s->file, '/');
        char *here = lk_format("%s/%s", s->folder, slash ? slash + 1 : s->file);
        enum lk_code rc = here ? read_records(s, s->sources_given.text, s->sources_given.n, here, read_source)
                               : out_of_memory(s->file);
        lk_free(here);
        return rc;
    }
    if (!s->sources_file) return LK_OK;
    const char *path = lk_study_resolve(s, s->sources_file);
    if (!path) return LK_E_NOMEM;
    LK_TRY(lk_study_read_optional(s, "sources", s->sources_file, &text, &n));
    enum lk_code rc = !text ? LK_OK : read_records(s, text, n, path, read_source);
    lk_free(text);
    return rc;
}

static enum lk_code add_prompt(struct lk_study *s, const struct lk_study_prompt *prompt) {
    LK_TRY(lk_grow(&s->prompts, &s->prompts_capacity, s->n_prompts + 1, sizeof *s->prompts));
    s->prompts[s->n_prompts++] = *prompt;
    return LK_OK;
}

static enum lk_code add_builtin(struct lk_study *s) {
    static const char *const legacy_categories[] = {"B", "D"};
    bool legacy = !strcmp(s->prompt_scheme, "legacy");
    for (int i = 0; i < LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS; i++) {
        const struct lk_prompt *p = i < LK_N_EDIT_PROMPTS ? &s->builtin.edit[i] : &s->builtin.w[i - LK_N_EDIT_PROMPTS];
        bool w = p->category < 0;
        LK_TRY(add_prompt(
            s, &(struct lk_study_prompt){.id = legacy && p->legacy_id ? p->legacy_id : p->id,
                                         .text = p->text,
                                         .category = w        ? "W"
                                                     : legacy ? legacy_categories[p->category]
                                                              : lk_factor_key(LK_FACTOR_CATEGORY, p->category),
                                         .subcategory_printed = p->subcategory_printed ? p->subcategory_printed : "",
                                         .subcategory_content = p->subcategory_content ? p->subcategory_content : "",
                                         .target = p->target,
                                         .number = i}));
    }
    return LK_OK;
}

int32_t lk_study_find_prompt(const struct lk_study *s, const char *id) {
    const int32_t own = lk_names_find(&s->own_ids, id, strlen(id));
    return own < 0 ? lk_prompt_parse(id, strlen(id)) : LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS + own;
}

static const char *kept(struct lk_study *s, const struct lk_field *field) {
    return field ? lk_store_copy(&s->store, field->text, field->n) : "";
}

static enum lk_code read_prompt(struct lk_study *s, const struct lk_fields *fields, const struct place *at) {
    const struct lk_field *id = either(fields, "id", "prompt_id"), *text = either(fields, "text", "prompt"),
                          *category = lk_fields_find(fields, "category");
    if (!id || !lk_study_is_word(id->text, id->n, 40)) return wrong(at, "id", "1 to 40 letters, digits, - or _", id);
    if (s->portrait && lk_prompt_parse(id->text, id->n) >= 0) return wrong(at, "id", "one that no line before has", id);
    if (lk_names_find(&s->own_ids, id->text, id->n) >= 0) return wrong(at, "id", "one that no line before has", id);
    if (!text || !text->text[strspn(text->text, " \t\r\n")]) return wrong(at, "text", "a prompt", text);
    if (!category || !lk_study_is_word(category->text, category->n, 40))
        return wrong(at, "category", "1 to 40 letters, digits, - or _", category);
    struct lk_study_prompt prompt = {.id = kept(s, id),
                                     .text = kept(s, text),
                                     .category = kept(s, category),
                                     .subcategory_printed = kept(s, lk_fields_find(fields, "subcategory")),
                                     .subcategory_content =
                                         kept(s, either(fields, "subcategory_by_content", "subcategory")),
                                     .target = kept(s, lk_fields_find(fields, "target")),
                                     .number = -1};
    if (!prompt.id || !prompt.text || !prompt.category || !prompt.subcategory_printed || !prompt.subcategory_content ||
        !prompt.target)
        return out_of_memory(at->file);
    int32_t number;
    LK_TRY(lk_names_number(&s->own_ids, id->text, id->n, &number));
    return add_prompt(s, &prompt);
}

/* Of an object {"prompts": [...]} the list; otherwise the file is the list. */
static enum lk_code find_list(const char *file, const char **text, size_t *n) {
    struct lk_json j;
    const char *key, *list = NULL;
    size_t n_list = 0;
    lk_json_init(&j, *text, *n, file);
    if (lk_json_peek(&j) != '{') {
        lk_json_finish(&j);
        return LK_OK;
    }
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        bool wanted = !strcmp(key, "prompts") && lk_json_peek(&j) == '[';
        const char *from = (const char *)j.at;
        if (lk_json_skip(&j) && wanted) list = from, n_list = (size_t)((const char *)j.at - from);
    }
    if (!list) { /* JSON lines */
        lk_json_finish(&j);
        return LK_OK;
    }
    lk_json_end(&j);
    LK_TRY(lk_json_finish(&j));
    *text = list;
    *n = n_list;
    return LK_OK;
}

enum lk_code lk_study_read_prompts(struct lk_study *s) {
    char *text;
    size_t n, n_list;
    LK_TRY(add_builtin(s));
    if (s->prompts_given.text) return read_records(s, s->prompts_given.text, s->prompts_given.n, s->file, read_prompt);
    if (!s->prompts_file) return LK_OK;
    const char *path = lk_study_resolve(s, s->prompts_file);
    if (!path) return LK_E_NOMEM;
    LK_TRY(lk_study_read_file(s, "prompts", s->prompts_file, &text, &n));
    const char *list = text;
    n_list = n;
    enum lk_code rc = find_list(path, &list, &n_list);
    if (!rc) rc = read_records(s, list, n_list, path, read_prompt);
    lk_free(text);
    return rc;
}
