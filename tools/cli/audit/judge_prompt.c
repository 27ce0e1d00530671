#include <cjson/cJSON.h>
#include <stdio.h>

#include "eval/judge/prompt.h"
#include "tools/cli/audit/judge.h"
#include "tools/cli/audit/pairs.h"

struct asker {
    struct lk_judge_prompts *prompts;
    const struct cli_pairs *pairs; /* NULL: one item of the command line */
    struct lk_judge_ask ask;
};

static bool add_part(cJSON *content, const struct asker *asker, const struct lk_judge_part *part,
                     const struct cli_pair *pair) {
    cJSON *object = cJSON_CreateObject();
    const char *path = cli_pair_path(asker->pairs, pair, part->image);
    bool ok = object && (part->text ? cJSON_AddStringToObject(object, "text", part->text)
                                    : cJSON_AddStringToObject(object, "image", lk_judge_image_name(part->image)));
    if (ok && path) ok = cJSON_AddStringToObject(object, "path", path) != NULL;
    if (ok && cJSON_AddItemToArray(content, object)) return true;
    cJSON_Delete(object);
    return false;
}

static bool fill(cJSON *line, const struct asker *asker, const struct cli_pair *pair,
                 const struct lk_judge_message *message) {
    if (!cJSON_AddStringToObject(line, "item_id", pair->item_id) ||
        !cJSON_AddStringToObject(line, "prompt_version", lk_judge_prompt_name(asker->ask.prompt)) ||
        !cJSON_AddStringToObject(line, "prompt_sha256", message->sha256))
        return false;
    if (asker->ask.pairwise &&
        !cJSON_AddStringToObject(line, "order", asker->ask.preserved_first ? "preserved_first" : "edited_first"))
        return false;
    cJSON *content = cJSON_AddArrayToObject(line, "content");
    for (int i = 0; i < message->n_parts && content; i++)
        if (!add_part(content, asker, &message->parts[i], pair)) return false;
    return content != NULL;
}

static enum lk_code print_json(const struct asker *asker, const struct cli_pair *pair) {
    struct lk_judge_message message;
    LK_TRY(cli_pair_message(pair, asker->prompts, &asker->ask, &message));
    cJSON *line = cJSON_CreateObject();
    char *text = line && fill(line, asker, pair, &message) ? cJSON_PrintUnformatted(line) : NULL;
    cJSON_Delete(line);
    lk_judge_message_free(&message);
    if (!text) return lk_fail(LK_E_NOMEM, "judge prompt: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}

/* One line an item; of a comparison one for each order. */
static enum lk_code print_item(struct asker *asker, const struct cli_pair *pair) {
    for (int order = 0; order <= (int)asker->ask.pairwise; order++) {
        asker->ask.preserved_first = order;
        LK_TRY(print_json(asker, pair));
    }
    return LK_OK;
}

static enum lk_code print_text(const struct asker *asker, const char *item_id) {
    struct lk_judge_message message;
    LK_TRY(lk_judge_message(asker->prompts, item_id, &asker->ask, &message));
    puts(message.prompt);
    lk_judge_message_free(&message);
    return LK_OK;
}

/* An item that has no such question is named, and the others are asked. */
static enum lk_code print_file(struct asker *asker, const struct cli_report_arguments *a) {
    const char *path = cli_pairs_name(a);
    struct cli_pairs pairs;
    enum lk_code rc = cli_pairs_of(&pairs, a, false);
    size_t n_bad = pairs.rejects.n, n_all = pairs.n + n_bad;
    if (!rc) cli_print_rejects(path, &pairs.rejects);
    asker->pairs = &pairs;
    for (size_t i = 0; i < pairs.n && !rc; i++) {
        if (asker->ask.pairwise && cli_pair_is_preserved(&pairs.list[i])) continue; /* asked with the baseline's */
        const struct cli_pair *pair = &pairs.list[i];
        rc = !asker->ask.pairwise || cli_pair_path(&pairs, pair, LK_JUDGE_PRESERVED)
                 ? print_item(asker, pair)
                 : lk_fail(LK_E_INPUT, "%s names no picture of its preserved arm to compare with", path);
        if (rc != LK_E_INPUT) continue;
        cli_pair_warn(path, pair);
        n_bad++;
        rc = LK_OK;
    }
    if (!rc && !n_all) rc = lk_fail(LK_E_INPUT, "%s: expected lines with item_id and edited, got none", path);
    if (!rc && n_bad)
        rc = lk_fail(n_bad < n_all ? LK_E_PARTIAL : LK_E_INPUT, "%s: %zu of %zu items have no prompt", path, n_bad,
                     n_all);
    cli_pairs_free(&pairs);
    return rc;
}

enum lk_code cli_judge_prompt(const struct cli_arguments *a) {
    struct asker asker = {.ask = {.prompt = (enum lk_judge_prompt)lk_judge_prompt_parse(a->review.judge_prompt),
                                  .pairwise = a->review.pairwise}};
    const char *item = a->more[0];
    if (!item == !cli_pairs_name(&a->report))
        return lk_fail(LK_E_USAGE,
                       "judge prompt: expected one ITEM, or --pairs FILE.jsonl or --from RUN for a line each");
    LK_TRY(lk_judge_prompts_load(&asker.prompts));
    enum lk_code rc = !item     ? print_file(&asker, &a->report)
                      : a->json ? print_item(&asker, &(struct cli_pair){.item_id = item, .asked_as = item})
                                : print_text(&asker, item);
    lk_judge_prompts_free(asker.prompts);
    return rc;
}
