#include "eval/scores/feature_prompts.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "eval/scores/fields.h"
#include "eval/scores/source_manifest.h"

/* Of the record being read, for messages. */
struct place {
    const char *name;
    size_t line;
    const char *source;
};

static enum lk_code wrong(const struct place *at, const char *field, const char *expected, const char *got) {
    return lk_fail(LK_E_INPUT, "%s: line %zu, %s: %s: expected %s, got \"%.60s\"", at->name, at->line, at->source,
                   field, expected, got);
}

static enum lk_code check_factor(const struct lk_fields *fields, const struct place *at, enum lk_factor factor,
                                 int level) {
    const struct lk_field *field = lk_fields_find(fields, lk_factor_name(factor));
    if (!field || lk_factor_parse(factor, field->text, field->n) == level) return LK_OK;
    return wrong(at, field->name, lk_factor_key(factor, level), lk_field_shown(field));
}

static enum lk_code check_labels(const struct lk_fields *fields, const struct place *at, int source) {
    int race, gender, age;
    char expected[8] = {(char)('0' + (source + 1) / 100), (char)('0' + (source + 1) / 10 % 10),
                        (char)('0' + (source + 1) % 10)};
    const struct lk_field *ordinal = lk_fields_find(fields, "ordinal");
    lk_source_factors(source, &race, &gender, &age);
    if (ordinal && lk_field_count(ordinal, LK_N_SOURCES) != source + 1)
        return wrong(at, "ordinal", expected, lk_field_shown(ordinal));
    LK_TRY(check_factor(fields, at, LK_FACTOR_RACE, race));
    LK_TRY(check_factor(fields, at, LK_FACTOR_GENDER, gender));
    return check_factor(fields, at, LK_FACTOR_AGE, age);
}

/* All six or none: a chosen source fulfils each. */
static enum lk_code check_criteria(const struct lk_fields *fields, const struct place *at) {
    static const char *const names[] = {"criteria.frontal_face",       "criteria.clear_focus",
                                        "criteria.proper_lighting",    "criteria.identifiable_features",
                                        "criteria.neutral_expression", "criteria.upright_posture"};
    const struct lk_field *whole = lk_fields_find(fields, "criteria"), *criteria[6];
    bool any = whole || lk_fields_find_open(fields, "criteria");
    for (int i = 0; i < 6; i++) {
        criteria[i] = lk_fields_find(fields, names[i]);
        any |= criteria[i] || lk_fields_find_open(fields, names[i]);
    }
    for (int i = 0; i < 6 && any; i++)
        if (!criteria[i] || lk_field_bool(criteria[i]) != 1)
            return wrong(at, names[i], "true, for a chosen source fulfils all six",
                         lk_field_shown(criteria[i] ? criteria[i] : whole));
    return LK_OK;
}

static enum lk_code read_source(struct lk_source_manifest *out, const struct lk_fields *fields, struct place *at) {
    const struct lk_field *id = lk_fields_find(fields, "id");
    if (!id) id = lk_fields_find(fields, "source_id");
    int source = id ? lk_source_parse(id->text, id->n) : -1;
    if (source < 0) return wrong(at, "id", "a source such as Black_Male_40s", lk_field_shown(id));
    at->source = id->text;
    const struct lk_field *pool = lk_fields_find(fields, "pool");
    bool named = pool && pool->n == 2 && (pool->text[0] == 'V' || pool->text[0] == 'v');
    const char *digit = !pool ? "" : named ? pool->text + 1 : pool->n == 1 ? pool->text : "";
    if (*digit < '1' || *digit > '0' + LK_N_POOLS) return wrong(at, "pool", "V1 to V7", lk_field_shown(pool));
    if (out->pool[source]) return wrong(at, "id", "each source once", lk_field_shown(id));
    LK_TRY(check_labels(fields, at, source));
    LK_TRY(check_criteria(fields, at));
    out->pool[source] = (int8_t)(*digit - '0');
    out->count[*digit - '1']++;
    out->n++;
    return LK_OK;
}

enum lk_code lk_source_manifest_read(struct lk_source_manifest *out, const char *text, size_t n, const char *name) {
    struct lk_records records;
    bool more = false;
    *out = (struct lk_source_manifest){.n = 0};
    enum lk_code rc = lk_records_open(&records, text, n, name);
    if (!rc) rc = lk_records_next_strict(&records, &more);
    while (!rc && more) {
        struct place at = {name, records.line, "a source"};
        rc = read_source(out, &records.fields, &at);
        if (!rc) rc = lk_records_next_strict(&records, &more);
    }
    lk_records_close(&records);
    if (!rc && !out->n) rc = lk_fail(LK_E_INPUT, "%s: expected chosen sources with id and pool, got none", name);
    return rc;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || (unsigned char)c >= 0x80; }

/* The bytes of the word at text if it begins with one of the words and ends there; 0 otherwise. */
static size_t word_at(const char *text, const char *const *words) {
    for (int i = 0; words[i]; i++) {
        size_t n = strlen(words[i]);
        if (!strncasecmp(text, words[i], n) && !is_word(text[n])) return n;
    }
    return 0;
}

bool lk_names_group(const char *prompt) {
    static const char *const groups[] = {"African",  "Asian",          "Caucasian", "Indian",    "Latino", "Latina",
                                         "Hispanic", "Middle Eastern", "race",      "ethnicity", NULL};
    static const char *const colours[] = {"Black", "White", NULL};
    static const char *const people[] = {"man", "woman", "male", "female", "person", "people", NULL};
    for (const char *at = prompt; *at; at++) {
        if (at > prompt && is_word(at[-1])) continue;
        if (word_at(at, groups)) return true;
        size_t n = word_at(at, colours);
        if (!n) continue;
        const char *next = at + n + strspn(at + n, " \t\n-");
        if (next > at + n && word_at(next, people)) return true;
    }
    return false;
}

int lk_count_sentences(const char *text) {
    int n = 0;
    bool open = false;
    for (; *text; text++) {
        bool space = isspace((unsigned char)*text), mark = strchr(".!?", *text) != NULL;
        if (!space && !mark) open = true;
        size_t blank = strspn(text + 1, " \t\r\n");
        bool ends = mark && (!text[1] || (blank && !islower((unsigned char)text[1 + blank])));
        if (!open || !ends) continue;
        n++;
        open = false;
    }
    return n + open;
}

static enum lk_code read_flag(const struct lk_fields *fields, const struct place *at, const char *name, bool *out) {
    const struct lk_field *field = lk_fields_find(fields, name);
    int value = field ? lk_field_bool(field) : 0;
    *out = value > 0;
    return value >= 0 ? LK_OK : wrong(at, name, "true or false", lk_field_shown(field));
}

static bool is_text(const struct lk_field *field) {
    return field && (field->kind == '"' || field->kind == 'c') && field->text[strspn(field->text, " \t\r\n")];
}

static enum lk_code read_prompt(struct lk_feature_prompts *out, const struct lk_fields *fields, const struct place *at,
                                struct lk_feature *source) {
    static const char *const names[] = {"skin_tone", "face_shape",           "eyes",           "nose", "lips",
                                        "hair",      "distinctive_features", "identity_prompt"};
    static const char straight[] = "Maintain the person's", curly[] = "Maintain the person\xe2\x80\x99s";
    const struct lk_field *field = NULL;
    for (int i = 0; i < 8; i++) {
        field = lk_fields_find(fields, names[i]);
        if (!is_text(field)) return wrong(at, names[i], "a text", lk_field_shown(field));
    }
    const char *text = field->text + strspn(field->text, " \t\r\n");
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) n--;
    if (strncmp(text, straight, sizeof straight - 1) != 0 && strncmp(text, curly, sizeof curly - 1) != 0)
        return wrong(at, "identity_prompt", "it to begin with \"Maintain the person's\"", text);
    if (lk_count_sentences(text) > 2) return wrong(at, "identity_prompt", "one or two sentences", text);
    source->identity = lk_store_copy(&out->texts, text, n);
    if (!source->identity) return lk_fail(LK_E_NOMEM, "%s: out of memory for feature prompts", at->name);
    LK_TRY(read_flag(fields, at, "label_leak", &source->leak));
    source->leak |= lk_names_group(source->identity);
    out->n++;
    out->n_leaks += source->leak;
    return LK_OK;
}

static enum lk_code read_record(struct lk_feature_prompts *out, const struct lk_fields *fields, struct place *at,
                                const struct lk_source_ids *ids) {
    const struct lk_field *id = lk_fields_find(fields, "source_id");
    const int32_t number = id ? ids->find(ids->context, id->text, id->n) : -1;
    if (number < 0)
        return wrong(at, "source_id",
                     ids == &lk_portrait_ids ? "a source such as Black_Male_40s" : "a source of the study",
                     lk_field_shown(id));
    struct lk_feature *source = &out->of[number];
    at->source = id->text;
    if (source->identity || source->none) return wrong(at, "source_id", "each source once", id->text);
    LK_TRY(read_flag(fields, at, "no_feature_prompt", &source->none));
    out->n_none += source->none;
    return source->none ? LK_OK : read_prompt(out, fields, at, source);
}

static int32_t find_cell(const void *context, const char *id, size_t n) {
    (void)context;
    return lk_source_parse(id, n);
}

const struct lk_source_ids lk_portrait_ids = {LK_N_SOURCES, find_cell, NULL};

enum lk_code lk_feature_prompts_read(struct lk_feature_prompts *out, const char *text, size_t n, const char *name,
                                     const struct lk_source_ids *ids) {
    struct lk_records records;
    bool more = false;
    *out = (struct lk_feature_prompts){.n_sources = ids->n};
    if (!(out->of = lk_store_alloc(&out->texts, (size_t)(ids->n + 1) * sizeof *out->of)))
        return lk_fail(LK_E_NOMEM, "%s: out of memory for feature prompts", name);
    enum lk_code rc = lk_records_open(&records, text, n, name);
    if (!rc) rc = lk_records_next_strict(&records, &more);
    while (!rc && more) {
        struct place at = {name, records.line, "a source"};
        rc = read_record(out, &records.fields, &at, ids);
        if (!rc) rc = lk_records_next_strict(&records, &more);
    }
    lk_records_close(&records);
    if (!rc && !out->n && !out->n_none) rc = lk_fail(LK_E_INPUT, "%s: expected feature prompts, got none", name);
    return rc;
}

void lk_feature_prompts_free(struct lk_feature_prompts *prompts) {
    lk_store_free(&prompts->texts);
    *prompts = (struct lk_feature_prompts){.n = 0};
}
