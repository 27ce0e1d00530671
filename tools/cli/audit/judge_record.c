#include "tools/cli/audit/judge_record.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "eval/judge/legacy.h"

enum { DIGITS = 5 };
static const double low_mass = 0.9;

bool judge_record_low_mass(const struct lk_seen *v) {
    for (int a = 0; v->valid && a < LK_N_AXES; a++)
        if (v->thought[a].n_words == DIGITS && v->thought[a].mass < low_mass) return true;
    return false;
}

static bool add_text(cJSON *to, const char *key, const char *text) {
    return cJSON_AddStringToObject(to, key, text) != NULL;
}

static bool add_head(cJSON *line, const struct judge_record *r, const struct lk_judge_item *item) {
    return add_text(line, "item_id", item->item_id) && add_text(line, "slot", r->slot) &&
           add_text(line, "judge", r->family) && add_text(line, "model", r->model) &&
           add_text(line, "weights_identity", r->weights_identity) &&
           (!r->configs || cJSON_AddRawToObject(line, "configs", r->configs)) && add_text(line, "dtype", r->dtype) &&
           cJSON_AddBoolToObject(line, "quantized", r->quantized != 0) && add_text(line, "mode", r->mode) &&
           add_text(line, "prompt_version", r->prompt_version) &&
           add_text(line, "prompt_sha256", item->message->sha256) &&
           (!*item->edited_sha256 || add_text(line, "edited_sha256", item->edited_sha256)) &&
           (!r->order || add_text(line, "order", r->order)) && (!r->check || add_text(line, "judge_check", r->check)) &&
           (!r->server || add_text(line, "server", r->server));
}

static bool add_attempts(cJSON *line, const struct lk_seen *v) {
    cJSON *list = cJSON_AddArrayToObject(line, "attempts");
    for (int i = 0; list && i < v->n_attempts; i++) {
        const struct lk_attempt *attempt = &v->attempts[i];
        cJSON *one = cJSON_CreateObject();
        if (!one || !cJSON_AddItemToArray(list, one)) return false;
        if (!cJSON_AddNumberToObject(one, "seed", (double)attempt->seed) ||
            !add_text(one, "raw", attempt->raw ? attempt->raw : "") ||
            (*attempt->error && !add_text(one, "error", attempt->error)))
            return false;
    }
    return list != NULL;
}

static bool add_scores(cJSON *line, const struct lk_seen *v) {
    cJSON *scores = cJSON_AddObjectToObject(line, "scores");
    for (int a = 0; scores && a < LK_N_AXES; a++)
        if (!cJSON_AddNumberToObject(scores, lk_factor_key(LK_FACTOR_AXIS, a), v->answer.score[a])) return false;
    return scores && (!v->answer.evidence || add_text(line, "evidence_summary", v->answer.evidence));
}

/* The axes at which the model would rather have said something else than a digit. */
static bool add_low_mass(cJSON *line, const struct lk_seen *v) {
    cJSON *list = judge_record_low_mass(v) ? cJSON_AddArrayToObject(line, "low_mass") : NULL;
    for (int a = 0; list && a < LK_N_AXES; a++) {
        const struct lk_form_choice *t = &v->thought[a];
        if (t->n_words != DIGITS || t->mass >= low_mass) continue;
        if (!cJSON_AddItemToArray(list, cJSON_CreateString(lk_factor_key(LK_FACTOR_AXIS, a)))) return false;
    }
    return list || !judge_record_low_mass(v);
}

/* Per axis: probabilities of 1 to 5, their sum among all tokens, mean and entropy. */
static bool add_thoughts(cJSON *line, const struct lk_seen *v) {
    static const char *const names[] = {"probabilities", "mass", "expected", "entropy"};
    cJSON *parts[4];
    for (int i = 0; i < 4; i++)
        if (!(parts[i] = cJSON_AddObjectToObject(line, names[i]))) return false;
    for (int a = 0; a < LK_N_AXES; a++) {
        const struct lk_form_choice *t = &v->thought[a];
        const char *key = lk_factor_key(LK_FACTOR_AXIS, a);
        if (t->n_words != DIGITS) continue;
        cJSON *five = cJSON_CreateDoubleArray(t->probability, DIGITS);
        if (!five || !cJSON_AddItemToObject(parts[0], key, five) || !cJSON_AddNumberToObject(parts[1], key, t->mass) ||
            !cJSON_AddNumberToObject(parts[2], key, lk_thought_expected(t)) ||
            !cJSON_AddNumberToObject(parts[3], key, lk_thought_entropy(t)))
            return false;
    }
    return add_low_mass(line, v);
}

static double confidence_of(const struct lk_form_choice *t) { return t->n_words ? t->probability[t->chosen] : 0; }

static bool add_role(cJSON *line, const struct lk_seen *v) {
    return add_text(line, "assigned", lk_legacy_word(LK_LEGACY_ROLE, v->answer.role)) &&
           (!v->answer.presentation || cJSON_AddNumberToObject(line, "gender_presentation", v->answer.presentation)) &&
           (!v->thought[0].n_words || cJSON_AddNumberToObject(line, "confidence", confidence_of(&v->thought[0])));
}

static bool add_preferred(cJSON *line, const struct lk_seen *v) {
    static const char *const words[] = {"A", "B", "Same"};
    return add_text(line, "preferred", words[v->thought[0].chosen]) &&
           cJSON_AddNumberToObject(line, "confidence", confidence_of(&v->thought[0]));
}

static bool add_classes(cJSON *line, const struct lk_seen *v) {
    static const char *const words[3][3] = {{"yes", "partial", "no"}, {"yes", "no"}, {"yes", "no"}};
    static const enum lk_legacy_question questions[] = {LK_LEGACY_EDIT, LK_LEGACY_GENDER, LK_LEGACY_RACE};
    cJSON *confidence = cJSON_CreateObject();
    bool ok = confidence != NULL;
    for (int q = 0; q < 3 && ok; q++) {
        const char *key = lk_legacy_key(questions[q]);
        ok = add_text(line, key, words[q][v->thought[q].chosen]) &&
             cJSON_AddNumberToObject(confidence, key, confidence_of(&v->thought[q]));
    }
    if (ok && cJSON_AddItemToObject(line, "confidence", confidence)) return true;
    cJSON_Delete(confidence);
    return false;
}

static bool add_answer(cJSON *line, const struct lk_judge_item *item, const struct lk_seen *v) {
    if (v->refused) return add_text(line, "refusal", v->attempts[v->n_attempts - 1].raw);
    if (!v->valid) return cJSON_AddTrueToObject(line, "failed") != NULL;
    switch (item->message->question) {
    case LK_ASKED_ROLE:
    case LK_ASKED_PRESENTATION:
        return add_role(line, v);
    case LK_ASKED_EDIT:
        return add_classes(line, v);
    case LK_ASKED_PAIR:
        return add_preferred(line, v);
    default:
        return add_scores(line, v) && add_thoughts(line, v);
    }
}

enum lk_code judge_record_add(const struct judge_record *record, const struct lk_judge_item *item,
                              const struct lk_seen *verdict, struct lk_text *lines) {
    cJSON *line = cJSON_CreateObject();
    const struct lk_attempt *last = &verdict->attempts[verdict->n_attempts - 1];
    bool axes = item->message->question == LK_ASKED_AXES;
    bool ok = line && add_head(line, record, item) &&
              cJSON_AddBoolToObject(line, "constrained", strcmp(record->mode, "free") || (!axes && item->legacy)) &&
              cJSON_AddNumberToObject(line, "seed", (double)last->seed) && add_attempts(line, verdict) &&
              (item->legacy || add_text(line, "raw", last->raw ? last->raw : "")) && add_answer(line, item, verdict);
    char *text = ok ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "judge run: out of memory");
    lk_text_add(lines, "%s\n", text);
    cJSON_free(text);
    return lines->rc;
}
