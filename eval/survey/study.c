#include "eval/survey/study.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "eval/data/data.h"
#include "eval/scores/dataset.h"
#include "eval/study/factors.h"
#include "eval/study/prompts.h"

/* The keys of a survey's file, each described once: what is not here is refused, and `help survey-file` prints them. */

static const struct key {
    const char *name, *help;
} keys[] = {
    {"study", "the survey's name, which codes are made with"},
    {"schema", "of later versions; not read"},
    {"protocol", "questions, rules and pay: 003, 001, 000 or 004 [003]"},
    {"experiment", "1, an edit; 2, two edits of one source; 3, a picture of two people [003: 2, else 1]"},
    {"seed", "tasks, orders and sides are drawn with it [42]"},
    {"items",
     "what raters see: a list of {\"id\", \"source\", \"edited\", and of experiment 2 \"preserved\", of experiment 3 "
     "\"second_source\"; \"prompt\", unless the id names one of the portrait study}; pictures lie below this file's "
     "folder"},
    {"item_ids", "portrait, ids as flux_20s_male_white_O-01; plain, ids that say nothing [portrait]"},
    {"packing", "random; blocked, items stay in their order [random]"},
    {"tasks", "how many tasks the items are cut into [10]"},
    {"places", "how many people do each task [3; with shared_percent 1]"},
    {"shared_percent", "so much of the items lies in several tasks, the rest in one [0]"},
    {"shared_raters", "in how many tasks [3]"},
    {"tasks_per_worker", "how many tasks one person may do [1]"},
    {"gold",
     "items whose answers are known, a list or a file's name: as items, with \"expected\", and of experiment 3 with "
     "\"occupation\"; `survey gold` makes them"},
    {"gold_per_task", "[000 and 004: 4, of experiment 3: 2; else 0]"},
    {"gold_deal", "balanced, each is used as often as any other; drawn, as version 0.1.0 did it [balanced]"},
    {"checks_per_task", "questions that name the option to select, at most 5 [001: 3, else 0]"},
    {"tutorial",
     "practice items, a list or a file's name: as gold, with \"feedback\"; `survey new` makes them, and 001 needs 3 to "
     "5"},
    {"claim_minutes", "a place is given back when nothing was answered for so long [000 and 004: 20, else 120]"},
    {"min_seconds", "for each question; an earlier answer is not taken [001: 5, else 0]"},
    {"minutes", "how long a task takes, as consent says it [the protocol's]"},
    {"pay", "dollars for a task, as consent says it [the protocol's]"},
    {"code", "one completion code for everybody [one for each]"},
    {"approval", "of the ethics board, as consent says it; a server needs it, as the next two"},
    {"investigator", "as consent says it"},
    {"contact", "as consent says it"},
    {"attribution", "whose the portraits are, as guide and export say it"},
    {"retain_until", "when the data are deleted, as consent and export say it"},
    {"texts", "a JSON file of words that take the place of the pages' own"},
    {"skin_scale", "bipolar; printed, the ends that the supplement prints [bipolar]"},
    {"exp2_option", "of 001: A, the two pictures compared; B, five questions about each [A]"},
    {"q3_version", "of 001, experiment 3: B, how expected somebody looks; A, asks about stereotypes by name [B]"},
    {"show_metadata", "race, gender and age of the source beside it [003: true, else false]"},
    {"fixed_sides", "the edited picture always on the left [false]"},
    {"show_arm_labels", "with its name [false]"},
    {"consent_first", "before the guide [000: true, else false]"},
    {"host", "the public name behind a proxy"},
    {"signed_links", "only links of `survey links` enter [false]"},
    {"entries_per_hour", "new people of all [1000]"},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

/* Whether the survey file may have the key. */
static bool survey_key_known(const char *name) {
    for (int i = 0; i < N_KEYS; i++)
        if (!strcmp(keys[i].name, name)) return true;
    return false;
}

enum lk_code lk_survey_explain(struct lk_text *out) {
    lk_text_add(out,
                "A survey's file is one JSON object, as `likeness survey new` writes it. Its keys, with what holds "
                "without them in brackets:\n\n");
    for (int i = 0; i < N_KEYS; i++) {
        lk_text_add(out, "  %s\n", keys[i].name);
        for (const char *at = keys[i].help; *at;) { /* lines of at most 90 */
            size_t n = strlen(at);
            if (n > 90)
                for (n = 90; n > 1 && at[n] != ' ';) n--;
            lk_text_add(out, "      %.*s\n", (int)n, at);
            at += n + (at[n] == ' ');
        }
    }
    return out->rc;
}

enum { MAX_STUDY_BYTES = 64 << 20, MAX_ITEMS = 20000, MAX_ID = 120 };

struct reader {
    struct lk_survey_study *study;
    const char *path;
};

static enum lk_code bad(const struct reader *r, const char *field, const char *expected) {
    return lk_fail(LK_E_INPUT, "%s: field \"%s\": expected %s", r->path, field, expected);
}

static enum lk_code take_text(const struct reader *r, const char *name, const char *otherwise, const char **out) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(r->study->root, name);
    if (field && (!cJSON_IsString(field) || strlen(field->valuestring) > 1000))
        return bad(r, name, "a text of at most 1,000 bytes");
    *out = field ? field->valuestring : otherwise;
    return LK_OK;
}

static enum lk_code take_count(const struct reader *r, const char *name, double otherwise, double max, double *out) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(r->study->root, name);
    *out = field ? field->valuedouble : otherwise;
    if (!field || (cJSON_IsNumber(field) && *out >= 0 && *out <= max && *out == (double)(int64_t)*out)) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: field \"%s\": expected a whole number from 0 to %.0f", r->path, name, max);
}

/* A number above 0, NaN without. */
static enum lk_code take_amount(const struct reader *r, const char *name, double *out) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(r->study->root, name);
    *out = field ? field->valuedouble : NAN;
    return !field || (cJSON_IsNumber(field) && *out > 0 && *out <= 1e6) ? LK_OK : bad(r, name, "a number above 0");
}

static enum lk_code take_flag(const struct reader *r, const char *name, bool otherwise, bool *out) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(r->study->root, name);
    *out = field ? cJSON_IsTrue(field) : otherwise;
    return !field || cJSON_IsBool(field) ? LK_OK : bad(r, name, "true or false");
}

/* One of two words; *second tells which. */
static enum lk_code take_word(const struct reader *r, const char *name, const char *a, const char *b, bool *second) {
    const char *text;
    LK_TRY(take_text(r, name, a, &text));
    *second = !strcmp(text, b);
    if (*second || !strcmp(text, a)) return LK_OK;
    return lk_fail(LK_E_INPUT, "%s: field \"%s\": expected %s or %s, got \"%.40s\"", r->path, name, a, b, text);
}

static enum lk_code read_settings(const struct reader *r) {
    struct lk_survey_study *s = r->study;
    static const char *const instruments[] = {"supplement_003", "questionnaire_001", "protocol_000", "strategy_004"};
    const char *protocol;
    double experiment, seed, tasks, places, shared, shared_raters, each, gold, checks, claim, minimum, entries;
    LK_TRY(take_text(r, "protocol", "003", &protocol));
    int number = lk_protocol_parse(protocol);
    if (number < 0) return bad(r, "protocol", "\"003\", \"001\", \"000\" or \"004\"");
    s->protocol = (enum lk_protocol)number;
    s->instrument = instruments[number];
    bool turk = number >= LK_PROTOCOL_000, survey = number == LK_PROTOCOL_001;
    LK_TRY(take_text(r, "study", "", &s->name));
    bool clean = true; /* it stands in JSON and in hashes as it is */
    for (const char *c = s->name; *c; c++) clean &= (unsigned char)*c >= ' ' && !strchr("|\"\\", *c);
    if (!*s->name || strlen(s->name) > 100 || !clean)
        return bad(r, "study", "1 to 100 bytes without | \" \\ and control characters");
    LK_TRY(take_count(r, "experiment", number == LK_PROTOCOL_003 ? 2 : 1, 3, &experiment));
    s->experiment = (int)experiment;
    if (s->experiment < 1 || (number == LK_PROTOCOL_003 && s->experiment != 2))
        return bad(r, "experiment", number == LK_PROTOCOL_003 ? "2 with protocol 003" : "1, 2 or 3");
    LK_TRY(take_count(r, "seed", 42, 0x1p53, &seed));
    LK_TRY(take_count(r, "tasks", 10, 1000, &tasks));
    LK_TRY(take_count(r, "shared_percent", 0, 100, &shared));
    LK_TRY(take_count(r, "shared_raters", 3, 100, &shared_raters));
    LK_TRY(take_count(r, "places", shared ? 1 : 3, 1000, &places));
    LK_TRY(take_count(r, "tasks_per_worker", 1, 100, &each));
    LK_TRY(take_amount(r, "minutes", &s->minutes));
    LK_TRY(take_amount(r, "pay", &s->pay));
    LK_TRY(take_count(r, "gold_per_task", turk ? (s->experiment == 3 ? 2 : 4) : 0, 100, &gold));
    LK_TRY(take_count(r, "checks_per_task", survey ? 3 : 0, 100, &checks));
    LK_TRY(take_count(r, "claim_minutes", turk ? 20 : 120, 100000, &claim));
    LK_TRY(take_count(r, "min_seconds", survey ? 5 : 0, 600, &minimum));
    LK_TRY(take_count(r, "entries_per_hour", 1000, 1000000, &entries));
    if (tasks < 1 || places < 1 || claim < 1 || each < 1 || shared_raters < 1)
        return bad(r, "tasks, places, claim_minutes, tasks_per_worker, shared_raters", "at least 1");
    s->shared_percent = (int)shared, s->shared_raters = (int)shared_raters, s->tasks_per_worker = (int)each;
    s->seed = (uint64_t)seed;
    s->n_tasks = (int)tasks, s->places = (int)places;
    s->n_gold_per_task = (int)gold, s->n_checks_per_task = (int)checks;
    s->entries_per_hour = (int)entries;
    s->claim_ms = (int64_t)claim * 60000, s->min_ms = (int64_t)minimum * 1000;
    s->comments = s->debriefing = survey;
    return LK_OK;
}

static enum lk_code read_choices(const struct reader *r) {
    struct lk_survey_study *s = r->study;
    bool b, version_a;
    LK_TRY(take_text(r, "code", NULL, &s->code));
    if (s->code && (strlen(s->code) < 4 || strlen(s->code) > 40)) return bad(r, "code", "4 to 40 letters");
    LK_TRY(take_text(r, "approval", "", &s->approval));
    LK_TRY(take_text(r, "investigator", "", &s->investigator));
    LK_TRY(take_text(r, "contact", "", &s->contact));
    LK_TRY(take_text(r, "retain_until", "", &s->retain_until));
    LK_TRY(take_text(r, "host", "", &s->host));
    LK_TRY(take_text(r, "attribution", "", &s->attribution));
    LK_TRY(take_word(r, "skin_scale", "bipolar", "printed", &s->printed_skin));
    LK_TRY(take_word(r, "packing", "random", "blocked", &s->blocked));
    LK_TRY(take_word(r, "gold_deal", "balanced", "drawn", &s->gold_drawn));
    LK_TRY(take_word(r, "item_ids", "portrait", "plain", &s->plain_ids));
    LK_TRY(take_word(r, "exp2_option", "A", "B", &b));
    LK_TRY(take_word(r, "q3_version", "B", "A", &version_a));
    LK_TRY(take_flag(r, "show_metadata", s->protocol == LK_PROTOCOL_003, &s->show_metadata));
    LK_TRY(take_flag(r, "signed_links", false, &s->signed_links));
    LK_TRY(take_flag(r, "fixed_sides", false, &s->fixed_sides));
    LK_TRY(take_flag(r, "show_arm_labels", false, &s->show_arm_labels));
    LK_TRY(take_flag(r, "consent_first", s->protocol == LK_PROTOCOL_000, &s->consent_first));
    s->exp2_option = b ? 'B' : 'A';
    s->q3_version = version_a ? 'A' : 'B';
    s->both_arms = s->protocol == LK_PROTOCOL_003 || (s->protocol == LK_PROTOCOL_001 && s->experiment == 2 && b);
    return LK_OK;
}

/* A picture's absolute path. It must lie in the study's folder, links followed. */
static enum lk_code take_picture(const struct reader *r, const cJSON *from, const char *name, bool required,
                                 char **out) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(from, name);
    if (!field && !required) return LK_OK;
    if (!cJSON_IsString(field) || !*field->valuestring) return bad(r, name, "a picture's path");
    char *joined = lk_format("%s/%s", r->study->folder, field->valuestring), whole[PATH_MAX];
    if (!joined) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    const char *found = realpath(joined, whole);
    lk_free(joined);
    if (!found)
        return lk_fail(LK_E_NOT_FOUND, "%s: field \"%s\": no picture %.200s", r->path, name, field->valuestring);
    size_t n = strlen(r->study->folder);
    if (strncmp(whole, r->study->folder, n) || whole[n] != '/')
        return lk_fail(LK_E_ESCAPES, "%s: field \"%s\": picture %.200s lies outside the study's folder", r->path, name,
                       field->valuestring);
    *out = lk_strdup(whole);
    return *out ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for a survey");
}

static enum lk_code take_pictures(const struct reader *r, const cJSON *from, struct lk_survey_item *item) {
    bool two = r->study->experiment == 2, scene = r->study->experiment == 3;
    static const char *const names[] = {"source", "edited", "preserved", "second_source"};
    const bool required[] = {true, true, two, scene && r->study->protocol != LK_PROTOCOL_001};
    const bool shown[] = {true, true, two, scene}; /* a file may name pictures of other experiments */
    for (int k = 0; k < LK_SURVEY_N_PICTURES; k++)
        if (shown[k]) LK_TRY(take_picture(r, from, names[k], required[k], &item->picture[k]));
    return LK_OK;
}

/* An output of a study of one's own, whose id says nothing. */
static enum lk_code take_plain(const struct reader *r, const cJSON *from, struct lk_survey_item *item) {
    if (!item->prompt) return bad(r, "prompt", "what raters are told was asked for");
    if (r->study->experiment == 3) return bad(r, "item_ids", "portrait with experiment 3, which asks for its roles");
    return take_pictures(r, from, item);
}

static enum lk_code take_item(const struct reader *r, const cJSON *from, enum lk_survey_kind kind,
                              struct lk_survey_item *item) {
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(from, "id");
    const cJSON *prompt = cJSON_GetObjectItemCaseSensitive(from, "prompt");
    const cJSON *feedback = cJSON_GetObjectItemCaseSensitive(from, "feedback");
    *item =
        (struct lk_survey_item){.kind = kind, .race = -1, .gender = -1, .age = -1, .model = -1, .prompt_number = -1};
    if (!cJSON_IsString(id) || !*id->valuestring || strlen(id->valuestring) > MAX_ID)
        return bad(r, "id", "a text of 1 to 120 bytes");
    item->id = id->valuestring;
    item->prompt = cJSON_IsString(prompt) ? prompt->valuestring : NULL;
    item->feedback = cJSON_IsString(feedback) ? feedback->valuestring : "";
    item->expected = cJSON_GetObjectItemCaseSensitive(from, "expected");
    item->sha256[LK_ARM_EDITED] = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, "edited_sha256"));
    item->sha256[LK_ARM_PRESERVED] = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, "preserved_sha256"));
    const cJSON *occupation = cJSON_GetObjectItemCaseSensitive(from, "occupation");
    item->occupation = cJSON_IsString(occupation) ? occupation->valuestring : NULL;
    if (kind == LK_SURVEY_ITEM) {
        struct lk_item parts;
        enum lk_code rc = lk_dataset_id_parts(item->id, strlen(item->id), &parts);
        if (r->study->plain_ids) return take_plain(r, from, item);
        if (rc) return lk_fail_prefix(rc, "field \"id\"");
        item->race = parts.race, item->gender = parts.gender, item->age = parts.age, item->model = parts.model;
        item->prompt_number = parts.prompt;
        bool edit = parts.prompt < LK_N_EDIT_PROMPTS;
        const struct lk_prompt *known =
            edit ? &r->study->prompts->edit[parts.prompt] : &r->study->prompts->w[parts.prompt - LK_N_EDIT_PROMPTS];
        if (edit == (r->study->experiment == 3)) return bad(r, "id", "an output of the study's experiment");
        if (!item->prompt) item->prompt = known->text;
        if (!edit) item->occupation = known->target;
    } else if (!cJSON_IsObject(item->expected))
        return bad(r, "expected", "the right answers of a gold or tutorial item");
    if (!item->prompt) return bad(r, "prompt", "what raters are told was asked for");
    if (r->study->experiment == 3 && !item->occupation)
        return bad(r, "occupation", "whom a gold or tutorial item of experiment 3 asks about");
    return take_pictures(r, from, item);
}

static enum lk_code take_list(const struct reader *r, const char *name, enum lk_survey_kind kind,
                              struct lk_survey_item **out, size_t *n_out) {
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(r->study->root, name), *one;
    const cJSON *file = !strcmp(name, "gold") ? r->study->gold_list : r->study->tutorial_list;
    const cJSON *list = cJSON_IsString(own) && file ? file : own;
    size_t n = (size_t)cJSON_GetArraySize(list), i = 0;
    if ((list && !cJSON_IsArray(list)) || n > MAX_ITEMS) return bad(r, name, "a list of at most 20,000 objects");
    *out = lk_calloc(n + 1, sizeof **out);
    if (!*out) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    cJSON_ArrayForEach(one, list) {
        *n_out = i + 1;
        enum lk_code rc = take_item(r, one, kind, &(*out)[i]);
        if (rc) return lk_fail_prefix(rc, "%s %zu", name, i + 1);
        i++;
        (*out)[i - 1].pair = (int)i;
    }
    return LK_OK;
}

static enum lk_code load_data(const char *name, cJSON **out) {
    struct lk_data_file file;
    *out = lk_data_find(name, &file) ? cJSON_ParseWithLength(file.text, file.n_bytes) : NULL;
    return *out ? LK_OK : lk_fail(LK_E_INTERNAL, "%s.json is not readable", name);
}

/* A JSON file that the study names, within its folder. */
static enum lk_code load_named(const struct reader *r, const char *field, cJSON **out) {
    char *path = NULL, *text = NULL;
    size_t n;
    LK_TRY(take_picture(r, r->study->root, field, true, &path));
    enum lk_code rc = lk_read_file(path, MAX_STUDY_BYTES, &text, &n);
    if (!rc) rc = lk_json_check(text, n, path);
    if (!rc && !(*out = cJSON_ParseWithLength(text, n))) rc = lk_fail(LK_E_NOMEM, "out of memory for a survey");
    lk_free(text);
    lk_free(path);
    return rc;
}

static enum lk_code load_texts(const struct reader *r) {
    LK_TRY(load_data("survey_texts", &r->study->texts));
    if (cJSON_GetObjectItemCaseSensitive(r->study->root, "texts")) LK_TRY(load_named(r, "texts", &r->study->own_texts));
    if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(r->study->root, "gold")))
        LK_TRY(load_named(r, "gold", &r->study->gold_list));
    if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(r->study->root, "tutorial")))
        LK_TRY(load_named(r, "tutorial", &r->study->tutorial_list));
    return LK_OK;
}

static enum lk_code fill(const struct reader *r) {
    struct lk_survey_study *s = r->study;
    const cJSON *field;
    cJSON_ArrayForEach(field, s->root) {
        if (!survey_key_known(field->string))
            return lk_fail(LK_E_INPUT, "%s: unknown field \"%.60s\"", r->path, field->string);
    }
    LK_TRY(load_data("questionnaires", &s->questionnaires));
    LK_TRY(load_data("rubric", &s->rubric));
    LK_TRY(load_texts(r));
    s->prompts = lk_calloc(1, sizeof *s->prompts);
    if (!s->prompts) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    LK_TRY(lk_prompts_load(s->prompts));
    LK_TRY(read_settings(r));
    LK_TRY(read_choices(r));
    LK_TRY(take_list(r, "items", LK_SURVEY_ITEM, &s->items, &s->n_items));
    LK_TRY(take_list(r, "gold", LK_SURVEY_GOLD, &s->gold, &s->n_gold));
    LK_TRY(take_list(r, "tutorial", LK_SURVEY_GOLD, &s->tutorial, &s->n_tutorial));
    return lk_survey_pack(s, r->path);
}

enum lk_code lk_survey_study_read(struct lk_survey_study **out, const char *path) {
    char *text, whole[PATH_MAX];
    size_t n;
    *out = NULL;
    LK_TRY(lk_read_file(path, MAX_STUDY_BYTES, &text, &n));
    struct reader r = {lk_calloc(1, sizeof *r.study), path};
    enum lk_code rc = lk_json_check(text, n, path);
    cJSON *root = r.study ? cJSON_ParseWithLength(text, n) : NULL;
    lk_free(text);
    if (!r.study) return lk_fail(LK_E_NOMEM, "out of memory for a survey");
    r.study->root = root;
    if (!rc && !cJSON_IsObject(root)) rc = lk_fail(LK_E_JSON, "%s: byte 0: expected a JSON object", path);
    if (!rc && !realpath(path, whole)) rc = lk_fail(LK_E_NOT_FOUND, "%s: not found", path);
    if (!rc) {
        *strrchr(whole, '/') = '\0';
        r.study->folder = lk_strdup(whole);
        rc = r.study->folder ? fill(&r) : lk_fail(LK_E_NOMEM, "out of memory for a survey");
    }
    if (rc && !strstr(lk_error_text(), path)) lk_fail_prefix(rc, "%s", path);
    if (rc)
        lk_survey_study_free(r.study);
    else
        *out = r.study;
    return rc;
}

static void free_items(struct lk_survey_item *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < LK_SURVEY_N_PICTURES; k++) lk_free(items[i].picture[k]);
    lk_free(items);
}

void lk_survey_study_free(struct lk_survey_study *s) {
    if (!s) return;
    free_items(s->items, s->n_items);
    free_items(s->gold, s->n_gold);
    free_items(s->tutorial, s->n_tutorial);
    lk_free(s->checks);
    lk_free(s->packed);
    if (s->prompts) lk_prompts_free(s->prompts);
    lk_free(s->prompts);
    lk_free(s->folder);
    cJSON_Delete(s->root);
    cJSON_Delete(s->questionnaires);
    cJSON_Delete(s->rubric);
    cJSON_Delete(s->texts);
    cJSON_Delete(s->own_texts);
    cJSON_Delete(s->gold_list);
    cJSON_Delete(s->tutorial_list);
    lk_free(s);
}

const char *lk_survey_text(const struct lk_survey_study *study, const char *name) {
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(study->own_texts, name);
    const cJSON *text = cJSON_IsString(own) ? own : cJSON_GetObjectItemCaseSensitive(study->texts, name);
    return cJSON_IsString(text) ? text->valuestring : "";
}
