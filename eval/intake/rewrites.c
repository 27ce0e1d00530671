/* Rewritten prompts in the store: a unit is a source and a prompt of a model, whatever the number of seeds; and the
 * words that name a group which the rewriter added, removed and kept. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "eval/intake/internal.h"
#include "eval/scores/group_words.h"

const char lk_audit_rewrite_schema[] =
    "CREATE TABLE rewrite(unit INTEGER PRIMARY KEY, model_key TEXT, experiment TEXT, source_id TEXT, source2_id TEXT, "
    "prompt_id TEXT, arm TEXT, style TEXT, rewriter TEXT, original TEXT, prompt TEXT, tries INTEGER, failed INTEGER, "
    "other_language INTEGER, length_ratio REAL, UNIQUE(model_key, experiment, source_id, source2_id, prompt_id, arm));"
    "CREATE TABLE group_word(category TEXT, level TEXT, position INTEGER);"
    "CREATE TABLE rewrite_word(unit INTEGER, category TEXT, level TEXT, what TEXT, agrees INTEGER);"
    "CREATE INDEX rewrite_word_units ON rewrite_word(unit, category, level);";

bool lk_audit_any_rewrite(const struct lk_audit *a) { return a->any_rewrite; }

/* "any" of a category stands before its levels. */
static enum lk_code add_levels(struct lk_audit *a) {
    for (int i = 0; i < lk_n_group_words; i++) {
        const struct lk_group_word word = *lk_group_word(i);
        if (!i || strcmp(lk_group_word(i - 1)->category, word.category) != 0)
            LK_TRY(lk_sql_run(&a->sql, "INSERT INTO group_word VALUES(?1,'any',?2)", "ti", word.category,
                              (int64_t)(2 * i)));
        LK_TRY(lk_sql_run(&a->sql, "INSERT INTO group_word VALUES(?1,?2,?3)", "tti", word.category, word.level,
                          (int64_t)(2 * i + 1)));
    }
    return LK_OK;
}

/* The attributes whose levels the words of a category are about, by their names. */
static bool is_about(const char *attribute, const char *category) {
    static const char *const names[][4] = {
        {"gender", "gender", "sex", NULL}, {"race", "race", "ethnicity", NULL}, {"age", "age", "age_group", NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int k = 1; !strcmp(names[i][0], category) && names[i][k]; k++)
            if (!strcasecmp(names[i][k], attribute)) return true;
    return false;
}

/* 1: the word names what the source's label is, 0: another, -1: the source has no such label. */
static int agrees(const struct lk_study *study, const struct lk_study_source *source,
                  const struct lk_group_word *word) {
    int n, is = -1;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    for (int i = 0; i < n && is < 0; i++) {
        const struct lk_attribute *t = &attributes[i];
        if (t->of || !is_about(t->name, word->category)) continue;
        is = lk_group_word_is(word->category, word->level, t->keys[source->level[i]]);
        if (is < 0) is = lk_group_word_is(word->category, word->level, t->displays[source->level[i]]);
    }
    return is;
}

static enum lk_code add_word(struct lk_audit *a, int64_t unit, const char *category, const char *level,
                             const char *what, int is) {
    return lk_sql_run(&a->sql,
                      is < 0 ? "INSERT INTO rewrite_word VALUES(?1,?2,?3,?4,NULL)"
                             : "INSERT INTO rewrite_word VALUES(?1,?2,?3,?4,?5)",
                      is < 0 ? "ittt" : "ittti", unit, category, level, what, (int64_t)is);
}

static enum lk_code add_words(struct lk_audit *a, const struct lk_study *study, const struct lk_study_job *job,
                              int64_t unit) {
    const uint64_t before = lk_group_words(job->original_prompt), after = lk_group_words(job->final_prompt);
    const struct lk_study_source *source = lk_study_source(study, job->sources[0]);
    char category[20] = "";
    int any = -2; /* of the category: what its added words are together; -2: none is added */
    for (int i = 0; i <= lk_n_group_words; i++) {
        const struct lk_group_word word = *lk_group_word(i);
        if (strcmp(word.category, category) != 0) {
            if (any > -2) LK_TRY(add_word(a, unit, category, "any", "added", any));
            snprintf(category, sizeof category, "%s", word.category);
            any = -2;
        }
        const bool was = before >> i & 1, is = after >> i & 1;
        if (i == lk_n_group_words || (!was && !is)) continue;
        const int agreed = job->n_sources == 1 ? agrees(study, source, &word) : -1;
        LK_TRY(add_word(a, unit, word.category, word.level, was && is ? "kept" : is ? "added" : "removed", agreed));
        if (is && !was) any = any == -2 ? agreed : any == 0 || agreed == 0 ? 0 : any;
    }
    return LK_OK;
}

enum lk_code lk_audit_add_rewrite(struct lk_audit *a, const struct lk_study *study, const struct lk_study_job *job) {
    const char *sources[2] = {"", ""};
    if (!job->rewrite) return LK_OK;
    if (!a->any_rewrite) LK_TRY(add_levels(a));
    a->any_rewrite = true;
    for (int i = 0; i < job->n_sources; i++) sources[i] = lk_study_source(study, job->sources[i])->id;
    cJSON *record = cJSON_Parse(job->rewrite->record);
    const cJSON *tries = cJSON_GetObjectItemCaseSensitive(record, "tries");
    const double n_before = (double)strlen(job->original_prompt), n_after = (double)strlen(job->final_prompt);
    enum lk_code rc =
        lk_sql_run(&a->sql,
                   "INSERT OR IGNORE INTO rewrite(model_key, experiment, source_id, source2_id, prompt_id, arm, style, "
                   "rewriter, original, prompt, tries, failed, other_language, length_ratio) "
                   "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
                   "ttttttttttiiid", job->model_key, job->experiment, sources[0], sources[1], job->prompt->id,
                   lk_factor_key(LK_FACTOR_ARM, job->arm), job->rewriter->style, job->rewriter->name,
                   job->original_prompt, job->rewrite->prompt,
                   cJSON_IsNumber(tries) ? (int64_t)tries->valuedouble : (int64_t)0, (int64_t)!job->rewrite->prompt,
                   (int64_t)(lk_other_language(job->original_prompt) || lk_other_language(job->final_prompt)),
                   n_before > 0 ? n_after / n_before : 1);
    cJSON_Delete(record);
    if (rc || !sqlite3_changes(a->sql.db) || !job->rewrite->prompt || !job->n_sources) return rc;
    return add_words(a, study, job, sqlite3_last_insert_rowid(a->sql.db));
}
