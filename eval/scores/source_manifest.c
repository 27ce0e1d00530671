#include "eval/scores/source_manifest.h"

#include "eval/scores/fields.h"

/* Of the record being read, for messages. */
struct place {
    const char *name;
    size_t line;
    const char *source;
};

static enum lk_code wrong(const struct place *at, const char *field, const char *expected, const struct lk_field *got) {
    return lk_fail(LK_E_INPUT, "%s: line %zu, %s: %s: expected %s, got \"%.60s\"", at->name, at->line, at->source,
                   field, expected, lk_field_shown(got));
}

static enum lk_code check_factor(const struct lk_fields *fields, const struct place *at, enum lk_factor factor,
                                 int level) {
    const struct lk_field *field = lk_fields_find(fields, lk_factor_name(factor));
    if (!field || lk_factor_parse(factor, field->text, field->n) == level) return LK_OK;
    return wrong(at, field->name, lk_factor_key(factor, level), field);
}

static enum lk_code check_labels(const struct lk_fields *fields, const struct place *at, int source) {
    int race, gender, age;
    char expected[8] = {(char)('0' + (source + 1) / 100), (char)('0' + (source + 1) / 10 % 10),
                        (char)('0' + (source + 1) % 10)};
    const struct lk_field *ordinal = lk_fields_find(fields, "ordinal");
    lk_source_factors(source, &race, &gender, &age);
    if (ordinal && lk_field_count(ordinal, LK_N_SOURCES) != source + 1) return wrong(at, "ordinal", expected, ordinal);
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
            return wrong(at, names[i], "true, for a chosen source fulfils all six", criteria[i] ? criteria[i] : whole);
    return LK_OK;
}

static enum lk_code read_source(struct lk_source_manifest *out, const struct lk_fields *fields, struct place *at) {
    const struct lk_field *id = lk_fields_find(fields, "id");
    if (!id) id = lk_fields_find(fields, "source_id");
    int source = id ? lk_source_parse(id->text, id->n) : -1;
    if (source < 0) return wrong(at, "id", "a source such as Black_Male_40s", id);
    at->source = id->text;
    const struct lk_field *pool = lk_fields_find(fields, "pool");
    bool named = pool && pool->n == 2 && (pool->text[0] == 'V' || pool->text[0] == 'v');
    const char *digit = !pool ? "" : named ? pool->text + 1 : pool->n == 1 ? pool->text : "";
    if (*digit < '1' || *digit > '0' + LK_N_POOLS) return wrong(at, "pool", "V1 to V7", pool);
    if (out->pool[source]) return wrong(at, "id", "each source once", id);
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
