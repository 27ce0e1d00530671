#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "eval/judge/answers.h"
#include "eval/judge/legacy.h"
#include "eval/judge/prompt.h"
#include "tools/cli/audit/audit.h"

static enum lk_code print_line(cJSON *line, bool ok) {
    char *text = line && ok ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    if (!text) return lk_fail(LK_E_NOMEM, "judge import: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

/* What judges were asked. */
struct asked {
    const struct lk_judge_prompts *prompts;
    const struct lk_judge_ask *ask;
    struct cli_pairs pairs; /* of --pairs or --from; n 0: items are what their ids say */
};

static enum lk_code message_of(const struct asked *asked, const char *item_id, struct lk_judge_message *out) {
    const int32_t at = lk_names_find(&asked->pairs.ids, item_id, strlen(item_id));
    if (at < 0) return lk_judge_message(asked->prompts, item_id, asked->ask, out);
    return cli_pair_message(&asked->pairs.list[at], asked->prompts, asked->ask, out);
}

/* The version of the item's question, and the digest of its text. */
static enum lk_code add_prompt(cJSON *line, const struct asked *asked, const char *item_id, bool *ok) {
    struct lk_judge_message message;
    LK_TRY(message_of(asked, item_id, &message));
    *ok = line && cJSON_AddStringToObject(line, "item_id", item_id) &&
          cJSON_AddStringToObject(line, "prompt_version", lk_judge_prompt_name(asked->ask->prompt)) &&
          cJSON_AddStringToObject(line, "prompt_sha256", message.sha256);
    lk_judge_message_free(&message);
    return LK_OK;
}

static bool add_scores(cJSON *line, const struct lk_item *item) {
    static const char *const roles[] = {"male", "female", "unclear"};
    if (item->judge_role[0] != LK_ROLE_NONE && !cJSON_AddStringToObject(line, "assigned", roles[item->judge_role[0]]))
        return false;
    cJSON *scores = item->judge[0][0] ? cJSON_AddObjectToObject(line, "scores") : NULL;
    for (int a = 0; a < LK_N_AXES && item->judge[0][0]; a++)
        if (!scores || !cJSON_AddNumberToObject(scores, lk_factor_key(LK_FACTOR_AXIS, a), item->judge[0][a]))
            return false;
    return !*item->evidence || cJSON_AddStringToObject(line, "evidence_summary", item->evidence);
}

static enum lk_code print_scores(const struct lk_dataset *data, const struct asked *asked) {
    for (size_t i = 0; i < data->n_items; i++) {
        const struct lk_item *item = &data->items[i];
        bool ok = true;
        if (!item->judge[0][0] && item->judge_role[0] == LK_ROLE_NONE) continue;
        cJSON *line = cJSON_CreateObject();
        enum lk_code rc = add_prompt(line, asked, item->id, &ok);
        if (rc) cJSON_Delete(line);
        LK_TRY(rc);
        LK_TRY(print_line(line, ok && add_scores(line, item)));
    }
    return LK_OK;
}

static bool add_confidence(cJSON *to, const char *key, double value) {
    return isnan(value) || cJSON_AddNumberToObject(to, key, value);
}

static bool add_classes(cJSON *line, const struct lk_legacy_answer *answer) {
    cJSON *confidence = cJSON_CreateObject();
    bool ok = confidence != NULL;
    for (int q = 0; q < LK_N_LEGACY && ok; q++) {
        const char *key = lk_legacy_key((enum lk_legacy_question)q);
        if (answer->classes[q] < 0) continue;
        ok = cJSON_AddStringToObject(line, key, lk_legacy_word((enum lk_legacy_question)q, answer->classes[q])) &&
             add_confidence(confidence, key, answer->confidence[q]);
    }
    if (ok && confidence->child && cJSON_AddItemToObject(line, "confidence", confidence)) return true;
    cJSON_Delete(confidence);
    return ok;
}

static bool add_preference(cJSON *line, const struct lk_legacy_answer *answer) {
    int arm = lk_legacy_preference(answer);
    const char *word = arm < 0 ? NULL : arm == 2 ? "same" : lk_factor_key(LK_FACTOR_ARM, arm);
    bool changed = answer->order[0] >= 0 && answer->order[1] >= 0 && answer->order[0] != answer->order[1];
    return (word ? cJSON_AddStringToObject(line, "preference", word) : cJSON_AddNullToObject(line, "preference")) &&
           cJSON_AddBoolToObject(line, "changed_with_order", changed) &&
           add_confidence(line, "confidence_edited_first", answer->order_confidence[0]) &&
           add_confidence(line, "confidence_preserved_first", answer->order_confidence[1]);
}

static enum lk_code print_legacy(const struct lk_legacy *legacy, const struct asked *asked) {
    const struct lk_judge_ask *ask = asked->ask;
    size_t n_single = 0;
    for (size_t i = 0; i < legacy->items.n_items; i++) {
        const struct lk_legacy_answer *answer = &legacy->list[i];
        bool ok = true;
        cJSON *line = cJSON_CreateObject();
        enum lk_code rc = add_prompt(line, asked, legacy->items.items[i].id, &ok);
        if (rc) cJSON_Delete(line);
        LK_TRY(rc);
        LK_TRY(print_line(line, ok && (ask->pairwise ? add_preference(line, answer) : add_classes(line, answer))));
        n_single += ask->pairwise && lk_legacy_preference(answer) < 0;
    }
    if (n_single) lk_log(LK_LOG_WARNING, "%zu pairs were asked in one order only and have no preference", n_single);
    return LK_OK;
}

/* n_valid counts records. */
static enum lk_code conclude(const char *path, size_t n_records, size_t n_refused) {
    if (!n_records) return lk_fail(LK_E_INPUT, "%s: expected answers, got none", path);
    if (!n_refused) return LK_OK;
    return lk_fail(n_refused < n_records ? LK_E_PARTIAL : LK_E_INPUT, "%s: %zu of %zu answers were refused%s", path,
                   n_refused, n_records, n_refused < n_records ? "; the others were read" : "");
}

static enum lk_code import_legacy(const char *path, const char *text, size_t n, const struct asked *asked) {
    struct lk_legacy legacy = {.pairwise = asked->ask->pairwise};
    enum lk_code rc = lk_legacy_read(&legacy, text, n, path);
    if (!rc) rc = print_legacy(&legacy, asked);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%s: %zu answers matched, %zu repeated, %zu invalid", path,
               legacy.n_records - legacy.n_repeated - legacy.n_invalid, legacy.n_repeated, legacy.n_invalid);
        cli_print_rejects(path, &legacy.rejects);
        rc = conclude(path, legacy.n_records, legacy.n_invalid);
    }
    lk_legacy_free(&legacy);
    return rc;
}

/* The items of --pairs or --from: an answer about another one is unknown. */
static enum lk_code add_known(struct lk_dataset *data, const struct cli_report_arguments *a, struct asked *asked) {
    const char *path = cli_pairs_name(a);
    if (!path) return LK_OK;
    LK_TRY(cli_known_read(data, a));
    enum lk_code rc = cli_pairs_of(&asked->pairs, a, false);
    if (!rc) cli_print_rejects(path, &asked->pairs.rejects);
    for (size_t i = 0; i < asked->pairs.n && !rc; i++) {
        int32_t at;
        const char *id = asked->pairs.list[i].item_id;
        rc = lk_dataset_item(data, id, strlen(id), &at);
        if (rc == LK_E_INPUT) rc = LK_OK; /* no item's id */
    }
    return rc;
}

static enum lk_code check_digest(const void *context, const char *item_id, const char *sha256) {
    const struct asked *asked = context;
    struct lk_judge_message message;
    LK_TRY(message_of(asked, item_id, &message));
    bool same = !strcmp(message.sha256, sha256);
    lk_judge_message_free(&message);
    return same ? LK_OK
                : lk_fail(LK_E_INPUT, "prompt_sha256: an answer to another text than the %s prompt of this item",
                          lk_judge_prompt_name(asked->ask->prompt));
}

static enum lk_code import_scores(const struct cli_arguments *a, const char *path, const char *text, size_t n,
                                  struct asked *asked) {
    struct lk_dataset data;
    struct lk_judge_report report = {0};
    const struct lk_judge_import import = {
        .known_only = cli_pairs_name(&a->report), .check_digest = check_digest, .context = asked};
    lk_dataset_init(&data);
    enum lk_code rc = add_known(&data, &a->report, asked);
    if (!rc) rc = lk_judge_answers_read(&data, text, n, path, &import, &report);
    if (!rc) rc = print_scores(&data, asked);
    if (!rc) {
        lk_log(LK_LOG_INFO, "%s: %zu answers matched, %zu repeated, %zu unknown, %zu invalid", path, report.n_matched,
               report.n_repeated, report.n_unknown, report.n_invalid);
        if (report.n_refused) lk_log(LK_LOG_INFO, "%s: %zu of the invalid are refusals", path, report.n_refused);
        if (report.n_mended)
            lk_log(LK_LOG_WARNING, "%s: %zu answers had raw line ends in strings or trailing commas, which were read",
                   path, report.n_mended);
        cli_print_rejects(path, &report.rejects);
        rc = conclude(path, report.n_records, report.n_invalid + report.n_unknown);
    }
    lk_judge_report_free(&report);
    lk_dataset_free(&data);
    return rc;
}

enum lk_code cli_judge_import(const struct cli_arguments *a) {
    struct lk_judge_prompts *prompts;
    const struct lk_judge_ask ask = {.prompt = (enum lk_judge_prompt)lk_judge_prompt_parse(a->review.judge_prompt),
                                     .pairwise = a->review.pairwise};
    const char *path = a->more[0];
    char *text;
    size_t n;
    if (!path) return lk_fail(LK_E_USAGE, "judge import: expected one FILE of answers");
    if (ask.pairwise && ask.prompt != LK_JUDGE_PROMPT_LEGACY)
        return lk_fail(LK_E_USAGE, "--pairwise: needs --judge-prompt legacy");
    LK_TRY(lk_read_file(path, LK_SCORES_MAX_BYTES, &text, &n));
    enum lk_code rc = lk_judge_prompts_load(&prompts);
    if (!rc) {
        struct asked asked = {.prompts = prompts, .ask = &ask};
        rc = ask.prompt == LK_JUDGE_PROMPT_LEGACY ? import_legacy(path, text, n, &asked)
                                                  : import_scores(a, path, text, n, &asked);
        cli_pairs_free(&asked.pairs);
        lk_judge_prompts_free(prompts);
    }
    lk_free(text);
    return rc;
}
