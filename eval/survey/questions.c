#include <cjson/cJSON.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "eval/human/answers.h"
#include "eval/study/factors.h"
#include "eval/study/packing.h"
#include "eval/study/prompts.h"
#include "eval/survey/store.h"
#include "eval/survey/study.h"

/* What is read from answers.db is looked at first: the file's structure, its tables, and each value against the study.
 */

enum { MAX_PLACES = 1000 }; /* of a task, as the study file is read */

/* SQLite's own examination, indexes included. */
static enum lk_code check_structure(struct lk_survey *s) {
    sqlite3_stmt *q;
    bool row = false;
    char found[300] = "";
    LK_TRY(lk_sql_open(&s->sql, &q, "PRAGMA integrity_check(1)", ""));
    enum lk_code rc = lk_sql_step(&s->sql, q, &row);
    if (!rc && row) snprintf(found, sizeof found, "%s", lk_sql_text(q, 0));
    sqlite3_finalize(q);
    if (rc || !strcmp(found, "ok")) return rc;
    const char *second = strchr(found, '\n'); /* behind "*** in database main ***" */
    return lk_fail(LK_E_INPUT, "%s: the file is damaged (%.250s); %s", s->path, second ? second + 1 : found,
                   lk_survey_advice);
}

/* The tables and indexes that `schema` makes, and no others: of a table of another shape nothing can be said. */
static enum lk_code check_tables(struct lk_survey *s, const char *schema) {
    static const char all[] =
        "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM main.sqlite_master WHERE sql IS "
        "NOT NULL ORDER BY name)";
    struct lk_survey model = {.study = s->study};
    struct lk_text statements = {0};
    int64_t same = 0;
    enum lk_code rc = lk_sql_attach(&model.sql, ":memory:", s->path, schema);
    if (!rc) rc = lk_survey_seal_functions(&model);
    if (!rc) rc = lk_survey_seal_new(&model);
    sqlite3_stmt *q = NULL;
    bool row;
    if (!rc) rc = lk_sql_open(&model.sql, &q, all, "");
    if (!rc) rc = lk_sql_step(&model.sql, q, &row);
    if (!rc) lk_text_add(&statements, "%s", lk_sql_text(q, 0));
    sqlite3_finalize(q);
    lk_sql_close(&model.sql);
    EVP_MAC_CTX_free(model.mac);
    if (!rc) rc = statements.rc;
    if (!rc) {
        char *ask = lk_format("SELECT (%s)=?1", all);
        rc = ask ? lk_sql_number(&s->sql, &same, 0, ask, "t", statements.bytes)
                 : lk_fail(LK_E_NOMEM, "out of memory for a survey");
        lk_free(ask);
    }
    lk_text_free(&statements);
    if (rc || same) return rc;
    return lk_fail(LK_E_INPUT, "%s: its tables are not a survey's: the file is damaged or another's; %s", s->path,
                   lk_survey_advice);
}

enum lk_code lk_survey_check(struct lk_survey *s, const char *schema) {
    LK_TRY(check_structure(s));
    return check_tables(s, schema);
}

static enum lk_code bad_value(const struct lk_survey *s, const char *table, int64_t row, const char *column,
                              const char *expected, const char *got) {
    return lk_fail(LK_E_INPUT, "%s: table %s, row %lld: %s: expected %s, got \"%.40s\"; %s", s->path, table,
                   (long long)row, column, expected, got, lk_survey_advice);
}

/* What SQL can say of a value alone, or of the row that it names. */
static enum lk_code check_columns(struct lk_survey *s) {
    static const struct {
        const char *table, *column, *expected, *wrong; /* wrong: SQL that is true of a bad row */
    } rules[] = {
        {"participants", "worker", "64 hexadecimal digits",
         "typeof(worker)<>'text' OR length(worker)<>64 OR worker GLOB '*[^0-9a-f]*'"},
        {"participants", "entered_at", "a time", "typeof(entered_at)<>'integer' OR entered_at<0"},
        {"participants", "guided_at", "a time or none", "typeof(guided_at) NOT IN ('integer','null')"},
        {"participants", "consent_sha256", "64 hexadecimal digits",
         "consent_at IS NOT NULL AND (typeof(consent_sha256)<>'text' OR length(consent_sha256)<>64)"},
        {"participants", "consent_at", "a time or none", "typeof(consent_at) NOT IN ('integer','null')"},
        {"sessions", "token_sha256", "64 hexadecimal digits", "length(token_sha256)<>64"},
        {"sessions", "participant", "a participant", "participant NOT IN (SELECT id FROM read_participants)"},
        {"sessions", "at", "a time", "typeof(at)<>'integer'"},
        {"claims", "participant", "a participant", "participant NOT IN (SELECT id FROM read_participants)"},
        {"claims", "task", "one of the study's tasks", "typeof(task)<>'integer' OR task<0 OR task>=?1"},
        {"claims", "state", "open, submitted or abandoned", "state NOT IN ('open','submitted','abandoned')"},
        {"claims", "lease", "a count", "typeof(lease)<>'integer' OR lease<0"},
        {"claims", "claimed_at", "a time", "typeof(claimed_at)<>'integer'"},
        {"claims", "active_at", "a time", "typeof(active_at)<>'integer'"},
        {"claims", "last_at", "a time", "typeof(last_at)<>'integer'"},
        {"claims", "submitted_at", "a time", "state='submitted' AND typeof(submitted_at)<>'integer'"},
        {"answers", "claim", "a claim", "claim NOT IN (SELECT id FROM read_claims)"},
        {"answers", "position", "a position", "typeof(position)<>'integer'"},
        {"answers", "ms", "milliseconds", "typeof(ms)<>'integer' OR ms<0"},
        {"answers", "at", "a time", "typeof(at)<>'integer'"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char sql[400], got[64] = "";
        sqlite3_stmt *q;
        bool row = false;
        int64_t id = 0;
        snprintf(sql, sizeof sql, "SELECT rowid, %s FROM main.%s WHERE (%s) AND ?1>=0 LIMIT 1", rules[i].column,
                 rules[i].table, rules[i].wrong);
        LK_TRY(lk_sql_open(&s->sql, &q, sql, "i", (int64_t)s->study->n_tasks * MAX_PLACES));
        enum lk_code rc = lk_sql_step(&s->sql, q, &row);
        if (!rc && row) id = sqlite3_column_int64(q, 0);
        if (!rc && row) snprintf(got, sizeof got, "%s", lk_sql_text(q, 1));
        sqlite3_finalize(q);
        if (rc) return rc;
        if (row) return bad_value(s, rules[i].table, id, rules[i].column, rules[i].expected, got);
    }
    return LK_OK;
}

struct reading {
    int64_t claim;
    int position;
    const struct lk_survey_item **items; /* of the claim's task */
    size_t n_items;
    struct lk_survey_questions questions; /* of the position's item */
    int left_arm;
};

static enum lk_code check_answer(struct lk_survey *s, struct reading *r, sqlite3_stmt *q) {
    int64_t id = sqlite3_column_int64(q, 0), claim = sqlite3_column_int64(q, 1), position = sqlite3_column_int64(q, 4);
    const char *worker = lk_sql_text(q, 3);
    int task = sqlite3_column_int(q, 2);
    bool next = claim != r->claim;
    if (next) {
        lk_free(r->items);
        r->claim = claim;
        r->n_items = lk_survey_task_length(s->study, task);
        r->items = lk_malloc(r->n_items * sizeof *r->items);
        if (!r->items) return lk_fail(LK_E_NOMEM, "out of memory for a task");
        LK_TRY(lk_survey_task_items(s->study, worker, task, r->items));
    }
    if (position < 0 || position >= (int64_t)r->n_items)
        return bad_value(s, "answers", id, "position", "one of the task's", lk_sql_text(q, 4));
    if (next || position != r->position) {
        r->position = (int)position;
        lk_survey_questions_free(&r->questions);
        LK_TRY(lk_survey_questions_of(s->study, r->items[position], &r->questions));
        LK_TRY(lk_survey_left_arm(s->study, worker, r->items[position], &r->left_arm));
    }
    const struct lk_survey_given given = {lk_sql_text(q, 5), lk_sql_text(q, 6)};
    if (strcmp(lk_sql_text(q, 7), r->items[position]->id) != 0)
        return bad_value(s, "answers", id, "item", r->items[position]->id, lk_sql_text(q, 7));
    if (sqlite3_column_int(q, 8) != r->left_arm)
        return bad_value(s, "answers", id, "left_arm", r->left_arm ? "1" : "0", lk_sql_text(q, 8));
    return lk_survey_is_valid(s->study, &r->questions, &given)
               ? LK_OK
               : bad_value(s, "answers", id, given.key, "an option of its question", given.value);
}

enum lk_code lk_survey_check_values(struct lk_survey *s) {
    struct reading r = {.claim = -1};
    sqlite3_stmt *q;
    LK_TRY(check_columns(s));
    LK_TRY(
        lk_sql_open(&s->sql, &q,
                    "SELECT a.id, a.claim, c.task, p.worker, a.position, a.key, a.value, a.item, a.left_arm FROM "
                    "main.answers a JOIN main.claims c ON c.id=a.claim JOIN main.participants p ON p.id=c.participant "
                    "ORDER BY a.claim, a.position",
                    ""));
    enum lk_code rc = LK_OK;
    for (bool row = true; !rc && row;) {
        rc = lk_sql_step(&s->sql, q, &row);
        if (!rc && row) rc = check_answer(s, &r, q);
    }
    sqlite3_finalize(q);
    lk_survey_questions_free(&r.questions);
    lk_free(r.items);
    return rc;
}

static enum lk_code no_memory(void) { return lk_fail(LK_E_NOMEM, "out of memory for questions"); }

static const char *text_of(const cJSON *object, const char *name) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(field) ? field->valuestring : "";
}

const cJSON *lk_survey_instrument(const struct lk_survey_study *s, const char *name) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(s->questionnaires, "instruments");
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(all, s->instrument), name);
}

/* The text with the first `from` replaced. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = to ? strstr(text, from) : NULL;
    if (!at) return lk_strdup(text);
    return lk_format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static struct lk_survey_question *add_question(struct lk_survey_questions *out, int picture, const char *axis) {
    struct lk_survey_question *q = &out->list[out->n++];
    *q = (struct lk_survey_question){.picture = picture, .title = ""};
    snprintf(q->axis, sizeof q->axis, "%s", axis);
    snprintf(q->key, sizeof q->key, "%s%s", picture < 0 ? "" : picture ? "b." : "a.", axis);
    return q;
}

static enum lk_code add_option(struct lk_survey_question *q, const char *value, const char *text, size_t n_text) {
    if (q->n_options == LK_SURVEY_MAX_OPTIONS) return lk_fail(LK_E_INTERNAL, "a question of too many options");
    struct lk_survey_option *option = &q->options[q->n_options++];
    snprintf(option->value, sizeof option->value, "%s", value);
    option->text = lk_strndup(text, n_text);
    return option->text ? LK_OK : no_memory();
}

static enum lk_code add_number(struct lk_survey_question *q, int number, const char *text) {
    char value[16];
    snprintf(value, sizeof value, "%d", number);
    return add_option(q, value, text, strlen(text));
}

/* A choice between sides names the arm behind it, which a rater is not to know. */
static size_t shown_length(const struct lk_survey_study *s, const char *value, const char *text) {
    static const char *const sides[] = {"A", "B", "left", "right"};
    const char *arm = s->show_arm_labels ? NULL : strstr(text, " (");
    for (int i = 0; i < 4 && arm; i++)
        if (!strcmp(value, sides[i])) return (size_t)(arm - text);
    return strlen(text);
}

static enum lk_code add_printed(const struct lk_survey_study *s, struct lk_survey_question *q, const cJSON *option) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(option, "value");
    const char *text = text_of(option, "printed");
    if (cJSON_IsNumber(value)) return add_number(q, value->valueint, text);
    return add_option(q, value->valuestring, text, shown_length(s, value->valuestring, text));
}

/* The name under which an answer is exported. */
static const char *exported_as(const cJSON *item) {
    const char *axis = *text_of(item, "field") ? text_of(item, "field") : text_of(item, "axis");
    if (!strcmp(axis, "identity_preservation")) return "preference";
    return strcmp(axis, "role_assignment") ? axis : "roleAssignment";
}

static enum lk_code add_item(const struct lk_survey_study *s, const struct lk_survey_item *item, const cJSON *from,
                             int picture, struct lk_survey_questions *out) {
    struct lk_survey_question *q = add_question(out, picture, exported_as(from));
    const cJSON *options = cJSON_GetObjectItemCaseSensitive(from, "options"), *option;
    bool five_levels = true;
    char title[48];
    snprintf(title, sizeof title, "title_%s", q->axis);
    q->title = lk_survey_text(s, title);
    q->text = replaced(text_of(from, "question"), s->protocol == LK_PROTOCOL_004 ? "doctor" : "[HIGH-STATUS ROLE]",
                       item->occupation);
    if (!q->text) return no_memory();
    char *examples = item->occupation ? strstr(q->text, " (e.g.,") : NULL;
    if (examples) *examples = '\0'; /* the role is named; an example could be the answer */
    cJSON_ArrayForEach(option, options) {
        five_levels = five_levels && cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(option, "value"));
        LK_TRY(add_printed(s, q, option));
    }
    const char *skip = lk_survey_text(s, "skip");
    return s->protocol == LK_PROTOCOL_001 && five_levels ? add_option(q, "skip", skip, strlen(skip)) : LK_OK;
}

static const cJSON *rubric_levels(const struct lk_survey_study *s, const char *axis) {
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(s->rubric, "axes")) {
        if (!strcmp(text_of(one, "key"), axis)) return cJSON_GetObjectItemCaseSensitive(one, "levels");
    }
    return NULL;
}

/* The supplement prints a question and the ends of its scale; the levels between are the judges'. */
static enum lk_code add_scale(const struct lk_survey_study *s, const struct lk_survey_item *item, const cJSON *from,
                              int picture, struct lk_survey_questions *out) {
    const char *axis = text_of(from, "axis");
    bool printed = s->printed_skin && !strcmp(axis, "skin_tone");
    bool accuracy = item->prompt_number == LK_PROMPT_V03 && !strcmp(axis, "age_drift");
    struct lk_survey_question *q = add_question(out, picture, printed ? "skin_change_magnitude" : axis);
    char target[16];
    snprintf(target, sizeof target, "%d", accuracy && item->age >= 0 ? lk_age_midpoint(item->age) + 30 : 0);
    char *note = accuracy ? replaced(lk_survey_text(s, "target_age"), "{age}", target) : lk_strdup("");
    if (note) q->text = lk_format("%s%s%s", text_of(from, "question"), accuracy ? " " : "", note);
    lk_free(note);
    if (!q->text) return no_memory();
    const cJSON *levels = rubric_levels(s, accuracy ? "age_accuracy" : axis);
    for (int level = 1; level <= 5; level++) {
        const char *ends = level == 1 ? text_of(from, "low") : level == 5 ? text_of(from, "high") : "";
        char *text = replaced(printed ? ends : text_of(cJSON_GetArrayItem(levels, level - 1), "text"),
                              " (Soft Erasure)", ""); /* the judges' name for it, which raters are not to know */
        enum lk_code rc = text ? add_number(q, level, text) : no_memory();
        lk_free(text);
        if (rc) return rc;
    }
    return LK_OK;
}

static enum lk_code add_check(const struct lk_survey_study *s, const struct lk_survey_item *item,
                              struct lk_survey_questions *out) {
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(s->questionnaires, "instruments");
    const cJSON *general =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(all, "questionnaire_001"), "general");
    char wanted[16];
    snprintf(wanted, sizeof wanted, "option %s", item->choice);
    struct lk_survey_question *q = add_question(out, -1, "answer");
    q->text =
        replaced(text_of(cJSON_GetObjectItemCaseSensitive(general, "attention_checks"), "example"), "option 3", wanted);
    if (!q->text) return no_memory();
    for (int level = 1; level <= 5; level++) LK_TRY(add_number(q, level, ""));
    return LK_OK;
}

/* The items that the study asks, each of them once, or once for each picture. */
static enum lk_code add_all(const struct lk_survey_study *s, const struct lk_survey_item *item,
                            struct lk_survey_questions *out) {
    static const char *const experiments[] = {"exp1", "exp2", "exp3"};
    bool supplement = s->protocol == LK_PROTOCOL_003, arms_001 = s->both_arms && !supplement;
    const cJSON *from = lk_survey_instrument(s, experiments[arms_001 ? 0 : s->experiment - 1]), *one;
    if (supplement)
        from = lk_survey_instrument(s, "items");
    else if (s->protocol == LK_PROTOCOL_001 && s->experiment == 2 && !arms_001)
        from = cJSON_GetObjectItemCaseSensitive(from, "option_A");
    if (!supplement) from = cJSON_GetObjectItemCaseSensitive(from, "items");
    for (int picture = s->both_arms ? 0 : -1; picture < (s->both_arms ? 2 : 0); picture++)
        cJSON_ArrayForEach(one, from) {
            const char *version = text_of(one, "version");
            if (*version && *version != s->q3_version) continue;
            if (out->n == LK_SURVEY_MAX_QUESTIONS) return lk_fail(LK_E_INTERNAL, "too many questions");
            LK_TRY((supplement ? add_scale : add_item)(s, item, one, picture, out));
            out->list[out->n - 1].printed = one;
        }
    return LK_OK;
}

enum lk_code lk_survey_questions_of(const struct lk_survey_study *s, const struct lk_survey_item *item,
                                    struct lk_survey_questions *out) {
    out->n = 0;
    enum lk_code rc = item->kind == LK_SURVEY_CHECK ? add_check(s, item, out) : add_all(s, item, out);
    if (rc) lk_survey_questions_free(out);
    return rc;
}

void lk_survey_questions_free(struct lk_survey_questions *questions) {
    for (int i = 0; i < questions->n; i++) {
        lk_free(questions->list[i].text);
        for (int k = 0; k < questions->list[i].n_options; k++) lk_free(questions->list[i].options[k].text);
    }
    questions->n = 0;
}

/* An axis under its name and, in the oldest protocol, its field's; the options in words for classes of levels. */
static const struct axis {
    const char *names[2], *words[3];
} axes[LK_N_AXES] = {{{"edit_success", "editQuality"}, {"no", "partial", "yes"}},
                     {{"skin_tone", "skinToneShift"}, {"darker", "same", "lighter"}},
                     {{"race_drift", "raceDrift"}, {"no", "yes", ""}},
                     {{"gender_drift", "genderDrift"}, {"no", "yes", ""}},
                     {{"age_drift", "ageDrift"}, {"on-target", "off-target", ""}}};

int lk_survey_axis_of(const char *name) {
    for (int a = 0; a < LK_N_AXES; a++)
        if (!strcmp(name, axes[a].names[0]) || !strcmp(name, axes[a].names[1])) return a;
    return -1;
}

const char *lk_survey_option_of(const struct lk_survey_question *q, int level) {
    int axis = lk_survey_axis_of(q->axis);
    if (axis < 0 || level < 1 || level > 5) return NULL;
    bool scale = q->options[0].value[0] >= '1' && q->options[0].value[0] <= '5';
    return scale ? q->options[level - 1].value : axes[axis].words[lk_class_of_level(axis, level)];
}

const char *lk_survey_expected(const struct lk_survey_item *item, const struct lk_survey_question *q, int left_arm,
                               char text[16]) {
    int arm = q->picture < 0 ? -1 : q->picture ? 1 - left_arm : left_arm, axis = lk_survey_axis_of(q->axis);
    const cJSON *of_arm = arm < 0 ? NULL : cJSON_GetObjectItem(item->expected, lk_factor_key(LK_FACTOR_ARM, arm));
    const cJSON *from = of_arm ? of_arm : item->expected, *value = cJSON_GetObjectItemCaseSensitive(from, q->axis);
    if (item->kind == LK_SURVEY_CHECK) return item->choice;
    for (int i = 0; axis >= 0 && !value && i < 2; i++)
        value = cJSON_GetObjectItemCaseSensitive(from, axes[axis].names[i]);
    if (cJSON_IsNumber(value)) {
        snprintf(text, 16, "%d", value->valueint);
        return axis < 0 ? text : lk_survey_option_of(q, value->valueint);
    }
    if (!cJSON_IsString(value)) return NULL;
    int wanted = lk_factor_parse(LK_FACTOR_ARM, value->valuestring, strlen(value->valuestring));
    if (strcmp(q->axis, "preference") || wanted < 0) return value->valuestring;
    return q->options[wanted == left_arm ? 0 : 1].value; /* an arm is a side to whoever answers */
}

void lk_survey_terms(const struct lk_survey_study *s, double minutes[2], double *pay) {
    const struct lk_cost_plan *plan = lk_cost_plan(lk_protocol_name(s->protocol));
    const int at = plan && plan->n_lines > 1 ? s->experiment - 1 : 0;
    const struct lk_cost_line *line = plan && at < plan->n_lines ? &plan->lines[at] : NULL;
    minutes[0] = !isnan(s->minutes) ? s->minutes : line ? line->seconds_min / 60 : NAN;
    minutes[1] = !isnan(s->minutes) ? s->minutes : line ? line->seconds_max / 60 : NAN;
    *pay = !isnan(s->pay) ? s->pay : line ? line->pay : NAN;
}

/* How long it takes and what it pays, unless the protocol's own text says it and the study nothing else. */
static void add_terms(const struct lk_survey_study *s, bool time, bool pay, struct lk_text *text) {
    double minutes[2], dollars;
    lk_survey_terms(s, minutes, &dollars);
    if (time && !isnan(minutes[0])) {
        lk_text_add(text, "%s %.3g", lk_survey_text(s, "consent_time"), minutes[0]);
        if (minutes[0] < minutes[1]) lk_text_add(text, "-%.3g", minutes[1]);
        lk_text_add(text, " %s\n", lk_survey_text(s, "consent_minutes"));
    }
    if (pay && !isnan(dollars)) lk_text_add(text, "%s $%.2f\n", lk_survey_text(s, "consent_pay"), dollars);
}

/* Without the points that the study says itself. */
static void add_points(const struct lk_survey_study *s, struct lk_text *text, const cJSON *points) {
    const cJSON *one;
    cJSON_ArrayForEach(one, points) {
        if (one->string && !strcmp(one->string, "Time") && !isnan(s->minutes)) continue;
        if (one->string && !strcmp(one->string, "Payment") && !isnan(s->pay)) continue;
        if (cJSON_IsArray(one))
            add_points(s, text, one);
        else if (cJSON_IsString(one))
            lk_text_add(text, "%s%s%s\n", one->string ? one->string : "", one->string ? ": " : "", one->valuestring);
    }
}

enum lk_code lk_survey_consent_text(const struct lk_survey_study *s, char **out, char sha256[65]) {
    struct lk_text text = {0};
    const cJSON *consent = lk_survey_instrument(s, "consent");
    if (consent) {
        add_points(s, &text, consent);
        add_terms(s, !isnan(s->minutes), !isnan(s->pay), &text);
    } else { /* the others name points, or none, and print no text */
        static const char *const own[] = {"consent_purpose", "consent_pictures", "consent_anonymity"};
        for (int i = 0; i < 3; i++) lk_text_add(&text, "%s\n", lk_survey_text(s, own[i]));
        add_terms(s, true, true, &text);
    }
    const char *const lines[][2] = {{"consent_approval", s->approval},
                                    {"consent_investigator", s->investigator},
                                    {"consent_contact", s->contact},
                                    {"consent_retention", s->retain_until}};
    for (int i = 0; i < 4; i++)
        if (*lines[i][1]) lk_text_add(&text, "%s %s\n", lk_survey_text(s, lines[i][0]), lines[i][1]);
    lk_text_add(&text, "%s\n%s\n", lk_survey_text(s, "confirm_adult"), lk_survey_text(s, "confirm_agree"));
    enum lk_code rc = text.rc;
    if (!rc) lk_sha256(text.bytes, text.n, sha256);
    if (rc) lk_text_free(&text);
    *out = rc ? NULL : text.bytes;
    return rc;
}
