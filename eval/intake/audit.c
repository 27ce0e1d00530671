#include "eval/intake/audit.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "eval/intake/internal.h"
#include "eval/intake/tables.h"
#include "eval/scores/json_lines.h"
#include "eval/study/prompts.h"

static const int64_t MAX_STEPS = 20000000000; /* minutes */
static const char schema[] =
    "CREATE TABLE attribute(name TEXT, display TEXT, kind TEXT, level TEXT, position INTEGER, level_display TEXT);"
    "CREATE TABLE prompt(prompt_id TEXT PRIMARY KEY, text TEXT, category TEXT, subcategory TEXT, target TEXT, position "
    "INTEGER, asks_age INTEGER);"
    "CREATE TABLE model(model_key TEXT PRIMARY KEY, display TEXT, family TEXT, position INTEGER, treatment TEXT);"
    "CREATE TABLE output(item INTEGER PRIMARY KEY, item_id TEXT UNIQUE, job_id TEXT, experiment TEXT, kind TEXT, "
    "model_key TEXT, source_id "
    "TEXT, source2_id TEXT, prompt_id TEXT, arm TEXT, pair TEXT, seed INTEGER, status TEXT, reason TEXT, path TEXT, "
    "sha256 TEXT, seconds REAL, model_row INTEGER, source_row INTEGER, prompt_row INTEGER);"
    "CREATE TABLE answer(item INTEGER PRIMARY KEY, outcome TEXT, stage TEXT, code TEXT, http_status INTEGER, words "
    "TEXT, revised_prompt TEXT, n_sent INTEGER, asked_at TEXT, api_model TEXT, n_asked INTEGER, n_refused INTEGER);"
    "CREATE TABLE score(item INTEGER, axis TEXT, who TEXT, kind TEXT, value REAL);"
    "CREATE TABLE measure(measure TEXT PRIMARY KEY, measure_display TEXT, axis TEXT, low REAL, high REAL, outside "
    "INTEGER, measure_position INTEGER);"
    "CREATE TABLE outcome(item INTEGER, measure TEXT, who TEXT, value REAL);"
    "CREATE TABLE alternative(item INTEGER, measure TEXT, who TEXT, value REAL);"
    "CREATE TABLE masked(item INTEGER PRIMARY KEY, what TEXT, edited REAL, kept_exact INTEGER, seam REAL, source_seam "
    "REAL);"
    "CREATE TABLE cached(item INTEGER PRIMARY KEY, computed REAL);";

enum lk_code lk_audit_open(struct lk_audit **out, const char *path) {
    struct lk_audit *a = lk_calloc(1, sizeof *a);
    *out = NULL;
    if (!a) return lk_fail(LK_E_NOMEM, "out of memory for the audit");
    a->alpha = 0.05;
    a->max_steps = MAX_STEPS;
    a->sql.one_thread = true;
    if (path) unlink(path);
    /* Without a path a file of its own that SQLite makes when its memory is full, and removes. */
    enum lk_code rc = lk_sql_attach(&a->sql, path ? path : "", path ? path : "audit", schema);
    if (!rc) rc = lk_sql_execute(&a->sql, "PRAGMA cache_size=-524288; PRAGMA synchronous=OFF"); /* 512 MiB */
    if (!rc) rc = lk_sql_execute(&a->sql, lk_audit_rewrite_schema);
    if (!rc) rc = lk_audit_functions(a);
    if (!rc) rc = lk_audit_resampled(a);
    if (rc)
        lk_audit_close(a);
    else
        *out = a;
    return rc;
}

void lk_audit_close(struct lk_audit *a) {
    if (!a) return;
    lk_sql_close(&a->sql);
    lk_free(a);
}

static enum lk_code add_attributes(struct lk_audit *a, const struct lk_study *study) {
    struct lk_text table = {0}, item = {0};
    int n;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    enum lk_code rc = LK_OK;
    lk_text_add(&table, "CREATE TABLE source(source_id TEXT PRIMARY KEY, file TEXT, sha256 TEXT, position INTEGER");
    lk_text_add(&item, "CREATE VIEW item AS SELECT o.*, m.display AS model, m.position AS model_position, p.category, "
                       "p.subcategory, p.text AS prompt_text, p.position AS prompt_position");
    for (int i = 0; i < n; i++) { /* names are words */
        lk_text_add(&table, ", \"%s\" TEXT", attributes[i].name);
        lk_text_add(&item, ", s.\"%s\"", attributes[i].name);
        for (int k = 0; k < attributes[i].n && !rc; k++)
            rc = lk_sql_run(&a->sql, "INSERT INTO attribute VALUES(?1,?2,?3,?4,?5,?6)", "ttttit", attributes[i].name,
                            attributes[i].display, attributes[i].ordered ? "ordered" : "nominal", attributes[i].keys[k],
                            (int64_t)k, attributes[i].displays[k]);
    }
    lk_text_add(&table, ")");
    lk_text_add(&item, " FROM output o LEFT JOIN model m ON m.rowid = o.model_row LEFT JOIN prompt p ON p.rowid = "
                       "o.prompt_row LEFT JOIN source s ON s.rowid = o.source_row");
    if (!rc) rc = table.rc ? table.rc : item.rc;
    if (!rc) rc = lk_sql_run(&a->sql, table.bytes, "");
    if (!rc) rc = lk_sql_run(&a->sql, item.bytes, "");
    if (!rc)
        rc = lk_sql_run(&a->sql,
                        "CREATE VIEW measured AS SELECT i.*, m.measure, m.measure_display, m.measure_position, r.who, "
                        "r.value FROM outcome r JOIN measure m USING(measure) JOIN item i USING(item)",
                        "");
    /* Of each baseline output that was asked for: refused, made, and of what was made and judged, ignored. */
    if (!rc)
        rc = lk_sql_run(&a->sql,
                        "CREATE VIEW asked AS SELECT i.*, 1 AS place, 'Refused' AS what, r.value AS x FROM outcome r "
                        "JOIN item i USING(item) WHERE r.who = 'asked' AND i.arm = 'edited' "
                        "UNION ALL SELECT i.*, 2, 'Made', 1 - r.value FROM outcome r JOIN item i USING(item) "
                        "WHERE r.who = 'asked' AND i.arm = 'edited' "
                        "UNION ALL SELECT i.*, 3, 'Ignored, of made', s.value FROM outcome r JOIN item i "
                        "USING(item) JOIN outcome s ON s.item = r.item AND s.measure = 'soft_erasure' AND "
                        "s.who = 'judges' WHERE r.who = 'asked' AND i.arm = 'edited' AND r.value = 0",
                        "");
    lk_text_free(&table);
    lk_text_free(&item);
    return rc ? rc : lk_audit_add_views(a, study);
}

static enum lk_code add_sources(struct lk_audit *a, const struct lk_study *study) {
    struct lk_text sql = {0};
    int n;
    const struct lk_attribute *attributes = lk_study_attributes(study, &n);
    enum lk_code rc = LK_OK;
    lk_text_add(&sql, "UPDATE source SET file=?2, sha256=?3, position=?4");
    for (int i = 0; i < n; i++) lk_text_add(&sql, ", \"%s\"=json_extract(?5, '$[%d]')", attributes[i].name, i);
    lk_text_add(&sql, " WHERE source_id=?1");
    for (int k = 0; k < lk_study_n_sources(study) && !rc; k++) {
        const struct lk_study_source *source = lk_study_source(study, k);
        struct lk_text levels = {0};
        if (!source->id) continue;
        for (int i = 0; i < n; i++) {
            lk_text_add(&levels, "%s", i ? "," : "[");
            lk_text_json(&levels, attributes[i].keys[source->level[i]]);
        }
        lk_text_add(&levels, n ? "]" : "[]");
        rc = levels.rc ? levels.rc : sql.rc;
        if (!rc) rc = lk_sql_run(&a->sql, "INSERT INTO source(source_id) VALUES(?1)", "t", source->id);
        if (!rc)
            rc = lk_sql_run(&a->sql, sql.bytes, n ? "tttit" : "ttti", source->id, source->file, source->sha256,
                            (int64_t)k, levels.bytes);
        lk_text_free(&levels);
    }
    lk_text_free(&sql);
    return rc;
}

static enum lk_code add_job(struct lk_audit *a, const struct lk_study *study, const struct lk_study_job *job,
                            int64_t position) {
    const char *sources[2] = {NULL, NULL};
    for (int i = 0; i < job->n_sources; i++) sources[i] = lk_study_source(study, job->sources[i])->id;
    LK_TRY(lk_sql_run(&a->sql, "INSERT OR IGNORE INTO prompt VALUES(?1,?2,?3,?4,?5,?6,?7)", "tttttii", job->prompt->id,
                      job->prompt->text, job->prompt->category, job->prompt->subcategory_content, job->prompt->target,
                      position, (int64_t)(job->prompt->number == LK_PROMPT_V03)));
    return lk_sql_run(&a->sql,
                      "INSERT INTO output VALUES(NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,'missing',?12,?13,NULL,NULL,"
                      "(SELECT rowid FROM model WHERE model_key=?5),(SELECT rowid FROM source WHERE source_id=?6),"
                      "(SELECT rowid FROM prompt WHERE prompt_id=?8))",
                      "ttttttttttitt", job->name, job->id, job->experiment, lk_experiment_kind(job->kind),
                      job->model_key, sources[0], sources[1], job->prompt->id, lk_factor_key(LK_FACTOR_ARM, job->arm),
                      job->pair, (int64_t)job->job.request.seed, job->problem, job->output);
}

static enum lk_code add_model(struct lk_audit *a, const struct lk_study *study, int m) {
    struct lk_text treatment = {0};
    enum lk_code rc = lk_study_treatment(study, m, &treatment);
    if (!rc)
        rc = lk_sql_run(&a->sql, "INSERT INTO model VALUES(?1,?2,?3,?4,?5)", "tttit", lk_study_model_key(study, m),
                        lk_study_model_label(study, m), lk_study_model_family(study, m), (int64_t)m, treatment.bytes);
    lk_text_free(&treatment);
    return rc;
}

static enum lk_code add_study(struct lk_audit *a, const struct lk_study *study) {
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the audit");
    a->seed = lk_study_seed(study);
    if (!rc) rc = add_attributes(a, study);
    if (!rc) rc = add_sources(a, study);
    for (int m = 0; m < lk_study_n_models(study) && !rc; m++) rc = add_model(a, study, m);
    for (size_t i = 0; i < lk_study_n_jobs(study) && !rc; i++) {
        rc = lk_study_job(study, i, job);
        if (!rc) rc = add_job(a, study, job, (int64_t)i);
        if (!rc) rc = lk_audit_add_rewrite(a, study, job);
    }
    lk_free(job);
    return rc;
}

enum lk_code lk_audit_add_study(struct lk_audit *a, const struct lk_study *study) {
    LK_TRY(lk_sql_begin(&a->sql));
    return lk_sql_end(&a->sql, add_study(a, study));
}

/* What a hosted model said. */
static enum lk_code add_answer(struct lk_audit *a, const char *item, const cJSON *hosted) {
    static const char *const keys[] = {"outcome", "stage", "code", "words", "revised_prompt", "asked_at", "api_model"};
    static const char *const numbers[] = {"http_status", "n_sent", "n_asked", "n_refused"};
    const char *t[7];
    int64_t n[4];
    for (int i = 0; i < 7; i++) t[i] = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(hosted, keys[i]));
    for (int i = 0; i < 4; i++) {
        const cJSON *number = cJSON_GetObjectItemCaseSensitive(hosted, numbers[i]);
        const double value = cJSON_IsNumber(number) ? number->valuedouble : 0;
        n[i] = value > 0 && value < 1e9 ? (int64_t)value : 0;
    }
    return lk_sql_run(
        &a->sql,
        "INSERT OR REPLACE INTO answer SELECT item,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12 FROM output WHERE item_id=?1",
        "ttttittittii", item, t[0], t[1], t[2], n[0], t[3], t[4], n[1], t[5], t[6], n[2], n[3]);
}

/* Of an edit under a mask: what it keeps or edits, if the study drew it, and what came of it. */
static enum lk_code add_mask(struct lk_audit *a, const char *item, const cJSON *line, const cJSON *masked) {
    const cJSON *drawn = cJSON_GetObjectItemCaseSensitive(line, "mask_drawn"),
                *edited = cJSON_GetObjectItemCaseSensitive(masked, "edited"),
                *seam = cJSON_GetObjectItemCaseSensitive(masked, "seam"),
                *source = cJSON_GetObjectItemCaseSensitive(masked, "seam_of_source");
    const char *keep = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(drawn, "keep")),
               *edit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(drawn, "edit"));
    const bool has_seam = cJSON_IsNumber(seam) && cJSON_IsNumber(source);
    char what[60] = "file";
    if (keep || edit) snprintf(what, sizeof what, "%s %.40s", keep ? "keep" : "edit", keep ? keep : edit);
    return lk_sql_run(&a->sql,
                      has_seam
                          ? "INSERT OR REPLACE INTO masked SELECT item,?2,?3,?4,?5,?6 FROM output WHERE item_id=?1"
                          : "INSERT OR REPLACE INTO masked SELECT item,?2,?3,?4,NULL,NULL FROM output WHERE item_id=?1",
                      has_seam ? "ttdidd" : "ttdi", item, what, cJSON_IsNumber(edited) ? edited->valuedouble : 0.0,
                      (int64_t)cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(masked, "kept_exact")),
                      has_seam ? seam->valuedouble : 0.0, has_seam ? source->valuedouble : 0.0);
}

/* The share of an output's steps that its cache computed, over all gates. */
static enum lk_code add_computed(struct lk_audit *a, const char *item, const cJSON *line) {
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(line, "steps"), *one,
                *list = cJSON_GetObjectItemCaseSensitive(line, "computed_steps");
    double sum = 0;
    int n = 0;
    cJSON_ArrayForEach(one, list) {
        sum += cJSON_IsNumber(one) ? one->valuedouble : 0;
        n++;
    }
    if (!n || !cJSON_IsNumber(steps) || !(steps->valuedouble > 0)) return LK_OK;
    return lk_sql_run(&a->sql, "INSERT OR REPLACE INTO cached SELECT item,?2 FROM output WHERE item_id=?1", "td", item,
                      sum / (n * steps->valuedouble));
}

static enum lk_code add_line(struct lk_audit *a, const struct lk_json_record *record, const char *name) {
    cJSON *line = cJSON_ParseWithLength(record->text, record->n);
    const char *const keys[] = {"item_id", "status", "error", "output_path", "output_sha256"};
    const char *text[5];
    for (int i = 0; i < 5; i++) text[i] = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, keys[i]));
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(line, "seconds");
    enum lk_code rc = text[0] && text[1] ? LK_OK
                                         : lk_fail(LK_E_INPUT, "%s: line %zu: expected \"item_id\" and \"status\"",
                                                   name, record->line);
    if (!rc)
        rc = lk_sql_run(&a->sql,
                        "UPDATE output SET status=?2, reason=?3, path=?4, sha256=?5, seconds=?6 WHERE item_id=?1",
                        "tttttd", text[0], strcmp(text[1], "success") ? text[1] : "made", text[2], text[3], text[4],
                        cJSON_IsNumber(seconds) ? seconds->valuedouble : 0.0);
    if (!rc && sqlite3_changes(a->sql.db) != 1)
        rc = lk_fail(LK_E_INPUT, "%s: line %zu: field \"item_id\": expected an output of the study, got \"%.200s\"",
                     name, record->line, text[0]);
    const cJSON *hosted = cJSON_GetObjectItemCaseSensitive(line, "hosted");
    if (!rc && cJSON_IsObject(hosted)) rc = add_answer(a, text[0], hosted);
    if (!rc) rc = add_computed(a, text[0], line);
    const cJSON *masked = cJSON_GetObjectItemCaseSensitive(line, "masked");
    if (!rc && cJSON_IsObject(masked)) rc = add_mask(a, text[0], line, masked);
    cJSON_Delete(line);
    return rc;
}

enum lk_code lk_audit_add_manifest(struct lk_audit *a, const char *text, size_t n, const char *name) {
    struct lk_json_lines lines;
    struct lk_json_record record;
    bool more = true;
    LK_TRY(lk_sql_begin(&a->sql));
    lk_json_lines_open(&lines, text, n, name);
    enum lk_code rc;
    while (!(rc = lk_json_lines_next(&lines, &record, &more)) && more)
        if ((rc = add_line(a, &record, name))) break;
    return lk_sql_end(&a->sql, rc);
}

static const char identity[] = "identity"; /* the axis of the larger of race and gender change */

static enum lk_code add_score(struct lk_audit *a, int64_t item, int axis, const char *who, const char *kind,
                              double value) {
    const char *texts[] = {axis < LK_N_AXES ? lk_factor_key(LK_FACTOR_AXIS, axis) : identity, who, kind};
    bool row;
    sqlite3_bind_int64(a->insert, 1, item);
    for (int i = 0; i < 3; i++) sqlite3_bind_text(a->insert, i + 2, texts[i], -1, SQLITE_STATIC);
    sqlite3_bind_double(a->insert, 5, value);
    enum lk_code rc = lk_sql_step(&a->sql, a->insert, &row);
    sqlite3_reset(a->insert);
    return rc;
}

/* Five levels, and of race and gender the larger, which is what identity is lost by. */
static enum lk_code add_levels(struct lk_audit *a, int64_t item, const uint8_t level[LK_N_AXES], const char *who,
                               const char *kind) {
    const uint8_t race = level[LK_AXIS_RACE_DRIFT], gender = level[LK_AXIS_GENDER_DRIFT];
    for (int axis = 0; axis < LK_N_AXES; axis++)
        if (level[axis]) LK_TRY(add_score(a, item, axis, who, kind, level[axis]));
    if (!race || !gender) return LK_OK;
    return add_score(a, item, LK_N_AXES, who, kind, race > gender ? race : gender);
}

/* What reviewers decided, and the identity that follows from it. */
static enum lk_code add_decisions(struct lk_audit *a, int64_t row, const struct lk_item *item) {
    const unsigned identity_axes = 1u << LK_AXIS_RACE_DRIFT | 1u << LK_AXIS_GENDER_DRIFT;
    uint8_t level[LK_N_AXES];
    for (int axis = 0; axis < LK_N_AXES; axis++) {
        const bool decided = item->reviewed_axes >> axis & 1;
        level[axis] = decided ? item->reviewed[axis] : item->score[axis];
        if (decided) LK_TRY(add_score(a, row, axis, "reviewers", "review", level[axis]));
    }
    const uint8_t race = level[LK_AXIS_RACE_DRIFT], gender = level[LK_AXIS_GENDER_DRIFT];
    if (!(item->reviewed_axes & identity_axes) || !race || !gender) return LK_OK;
    return add_score(a, row, LK_N_AXES, "reviewers", "review", race > gender ? race : gender);
}

/* rows [n_items of data]: the number of each item's output. */
static enum lk_code add_scores(struct lk_audit *a, const struct lk_dataset *data, int64_t *rows) {
    static const char *const slots[LK_N_JUDGES] = {"primary", "secondary"};
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        uint8_t raters[LK_N_AXES];
        LK_TRY(lk_sql_number(&a->sql, &rows[i], 0, "SELECT item FROM output WHERE item_id=?1", "t", item->id));
        for (int j = 0; j < LK_N_JUDGES; j++) LK_TRY(add_levels(a, rows[i], item->judge[j], slots[j], "judge"));
        LK_TRY(add_levels(a, rows[i], item->score, "ensemble", "ensemble"));
        LK_TRY(add_decisions(a, rows[i], item));
        for (int axis = 0; axis < LK_N_AXES; axis++)
            raters[axis] = item->human_unresolved & 1 << axis ? 0 : item->human_majority[axis];
        LK_TRY(add_levels(a, rows[i], raters, "raters", "raters"));
    }
    for (size_t i = 0; i < data->n_ratings; i++) {
        const struct lk_rating *r = &data->ratings[i];
        if (r->item < 0 || r->rater < 0 || r->is_gold || data->raters[r->rater].excluded) continue;
        LK_TRY(add_levels(a, rows[r->item], r->score, data->raters[r->rater].id, "rater"));
    }
    return LK_OK;
}

enum lk_code lk_audit_add_scores(struct lk_audit *a, const struct lk_dataset *data) {
    int64_t *rows = lk_malloc((data->n_items + 1) * sizeof *rows);
    enum lk_code rc = rows ? lk_sql_begin(&a->sql) : lk_fail(LK_E_NOMEM, "out of memory for the audit");
    if (!rc) {
        rc = lk_sql_open(&a->sql, &a->insert, "INSERT INTO score VALUES(?1,?2,?3,?4,?5)", "");
        if (!rc) rc = add_scores(a, data, rows);
        sqlite3_finalize(a->insert);
        a->insert = NULL;
        rc = lk_sql_end(&a->sql, rc);
    }
    lk_free(rows);
    return rc;
}

static enum lk_code complete(struct lk_audit *a, const struct lk_audit_settings *s) {
/* An indicator of each score by its measures. */
#define OF_SCORES                                                                                                      \
    "((s.value BETWEEN m.low AND m.high) <> m.outside) FROM score s JOIN measure m USING(axis) JOIN output o "         \
    "USING(item) JOIN prompt p ON p.rowid = o.prompt_row WHERE s.kind=?2 AND (m.axis<>'age_drift' OR "                 \
    "(m.measure='age_accuracy')=p.asks_age)"
    static const char outcomes[] =
        "INSERT INTO outcome SELECT s.item, m.measure, ?1, avg" OF_SCORES " GROUP BY s.item, m.rowid";
    static const char alternatives[] =
        "INSERT INTO alternative SELECT s.item, m.measure, coalesce(?1, s.who), 1.0 * " OF_SCORES; /* one a score */
    a->alpha = s->alpha;
    LK_TRY(lk_sql_run(&a->sql, "DELETE FROM measure", ""));
    LK_TRY(lk_sql_run(&a->sql, "DELETE FROM outcome", ""));
    for (int m = 0; m < LK_N_MEASURES; m++) {
        const struct lk_measure_span span = lk_measure_span((enum lk_measure)m, &s->thresholds);
        LK_TRY(lk_sql_run(&a->sql, "INSERT INTO measure VALUES(?1,?2,?3,?4,?5,?6,?7)", "tttiiii",
                          lk_measure_key((enum lk_measure)m), lk_measure_name((enum lk_measure)m),
                          span.identity ? identity : lk_factor_key(LK_FACTOR_AXIS, (int)span.axis), (int64_t)span.low,
                          (int64_t)span.high, (int64_t)span.outside, (int64_t)m));
    }
    /* A fault says nothing of the model. What it refuses is neither ignored nor changed: nobody scores it. */
    LK_TRY(
        lk_sql_run(&a->sql,
                   "INSERT INTO measure SELECT 'refused','Refused',NULL,NULL,NULL,NULL,?1 WHERE EXISTS (SELECT 1 FROM "
                   "answer)",
                   "i", (int64_t)LK_N_MEASURES));
    LK_TRY(lk_sql_run(&a->sql,
                      "INSERT INTO outcome SELECT item, 'refused', 'asked', outcome IN ('refused', 'placeholder') FROM "
                      "answer WHERE outcome IN ('made', 'refused', 'placeholder')",
                      ""));
    LK_TRY(lk_sql_run(&a->sql,
                      "DELETE FROM score WHERE item IN (SELECT item FROM outcome WHERE who='asked' AND value=1)", ""));
    LK_TRY(lk_sql_run(&a->sql, outcomes, "tt", "judges", s->published ? "ensemble" : "judge"));
    LK_TRY(lk_sql_run(&a->sql, outcomes, "tt", "raters", "raters"));
    /* What conventions decide: the judges' rounded mean, and each judge alone. */
    LK_TRY(lk_sql_run(&a->sql, "DELETE FROM alternative", ""));
    LK_TRY(lk_sql_run(&a->sql, alternatives, "tt", "rounded", "ensemble"));
    LK_TRY(lk_sql_run(&a->sql, alternatives, "tt", NULL, "judge"));
    /* Reviewers' decisions, and where there is none the judges. */
    LK_TRY(lk_sql_run(&a->sql, alternatives, "tt", "reviewed", "review"));
    LK_TRY(lk_sql_run(&a->sql,
                      "INSERT INTO alternative SELECT item, measure, 'reviewed', value FROM outcome r WHERE "
                      "who='judges' AND EXISTS (SELECT 1 FROM score WHERE kind='review') AND NOT EXISTS (SELECT 1 FROM "
                      "alternative v WHERE v.who='reviewed' AND v.item=r.item AND v.measure=r.measure)",
                      ""));
    return lk_sql_run(&a->sql, "CREATE INDEX IF NOT EXISTS outcome_items ON outcome(item)", "");
}

enum lk_code lk_audit_complete(struct lk_audit *a, const struct lk_audit_settings *settings) {
    LK_TRY(lk_sql_begin(&a->sql));
    return lk_sql_end(&a->sql, complete(a, settings));
}
