#include "tools/cli/audit/sample_json.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "eval/scores/dataset.h"
#include "eval/study/prompts.h"

static const enum lk_factor factors[] = {LK_FACTOR_RACE,      LK_FACTOR_GENDER, LK_FACTOR_AGE,
                                         LK_FACTOR_AGE_GROUP, LK_FACTOR_MODEL,  LK_FACTOR_CATEGORY};
enum { N_COUNTED = sizeof factors / sizeof *factors };

/* The item's level of each factor, -1 for one that it has not. */
static void levels_of(const struct lk_item *item, int out[N_COUNTED]) {
    bool edit = item->prompt < LK_N_EDIT_PROMPTS;
    const int levels[N_COUNTED] = {
        item->race, item->gender, item->age, lk_age_group(item->age), item->model, edit ? item->prompt / 10 : -1};
    memcpy(out, levels, sizeof levels);
}

struct counts {
    int of[N_COUNTED][8];
    int prompt[LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS];
};

static enum lk_code count(const struct cli_sample_record *record, struct counts *c) {
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < record->n; i++) {
        struct lk_item item;
        int levels[N_COUNTED];
        LK_TRY(lk_dataset_id_parts(record->items[i].item_id, strlen(record->items[i].item_id), &item));
        levels_of(&item, levels);
        for (int f = 0; f < N_COUNTED; f++)
            if (levels[f] >= 0) c->of[f][levels[f]]++;
        c->prompt[item.prompt]++;
    }
    return LK_OK;
}

static bool add_counts(cJSON *root, const struct counts *c) {
    cJSON *counts = cJSON_AddObjectToObject(root, "counts");
    for (int f = 0; f < N_COUNTED && counts; f++) {
        cJSON *levels = cJSON_AddObjectToObject(counts, lk_factor_name(factors[f]));
        for (int level = 0; level < lk_factor_levels(factors[f]); level++)
            if (!cJSON_AddNumberToObject(levels, lk_factor_key(factors[f], level), c->of[f][level])) return false;
    }
    cJSON *prompts = cJSON_AddObjectToObject(counts, "prompt");
    for (int p = 0; p < LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS && prompts; p++)
        if (c->prompt[p] && !cJSON_AddNumberToObject(prompts, lk_prompt_id(p), c->prompt[p])) return false;
    return prompts != NULL;
}

static cJSON *append_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    if (cJSON_AddItemToArray(array, object)) return object;
    cJSON_Delete(object);
    return NULL;
}

static bool add_items(cJSON *root, const struct cli_sample_record *record) {
    cJSON *items = cJSON_AddArrayToObject(root, "items");
    for (size_t i = 0; i < record->n && items; i++) {
        const struct cli_drawn *drawn = &record->items[i];
        cJSON *item = append_object(items);
        char pair[16];
        snprintf(pair, sizeof pair, "P%03d", drawn->pair);
        if (!item || (drawn->pair && !cJSON_AddStringToObject(item, "pair_id", pair)) ||
            !cJSON_AddStringToObject(item, "item_id", drawn->item_id) ||
            !cJSON_AddStringToObject(item, "stratum", drawn->stratum))
            return false;
    }
    return items != NULL;
}

static bool add_short(cJSON *root, const struct cli_sample_record *record) {
    cJSON *list = cJSON_AddArrayToObject(root, "short_strata");
    for (size_t i = 0; i < record->n_short && list; i++) {
        cJSON *object = append_object(list);
        if (!object || !cJSON_AddStringToObject(object, "stratum", record->short_strata[i].stratum) ||
            !cJSON_AddNumberToObject(object, "n", (double)record->short_strata[i].n) ||
            !cJSON_AddNumberToObject(object, "wanted", (double)record->short_strata[i].wanted))
            return false;
    }
    return list != NULL;
}

enum lk_code cli_sample_json(const struct cli_sample_record *record) {
    struct counts counts;
    char seed[32]; /* a double does not hold every seed */
    LK_TRY(count(record, &counts));
    snprintf(seed, sizeof seed, "%lld", record->seed);
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "design", record->design) &&
              cJSON_AddStringToObject(root, "sampler", record->sampler) && cJSON_AddRawToObject(root, "seed", seed) &&
              cJSON_AddStringToObject(root, "input_sha256", record->input_sha256) &&
              cJSON_AddNumberToObject(root, "n_input", (double)record->n_input) &&
              cJSON_AddNumberToObject(root, "n", (double)record->n) && add_counts(root, &counts) &&
              add_short(root, record) && add_items(root, record);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}
