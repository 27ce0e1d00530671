#include "tools/cli/audit/sample_json.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"

bool cli_is_short(const struct cli_pool *pool, const struct lk_stratum *stratum, int each) {
    return stratum->n < (size_t)each && (stratum->size || !pool->study);
}

/* Of prompts those alone that came. */
static bool add_column(cJSON *counts, const struct cli_sample_record *record, int column, int *n) {
    const struct lk_sample_column *c = &record->pool->columns[column];
    const bool all = strcmp(c->name, "prompt") != 0;
    cJSON *levels = cJSON_AddObjectToObject(counts, c->name);
    memset(n, 0, (size_t)c->n * sizeof *n);
    for (size_t i = 0; i < record->n; i++) {
        const int level = record->items[i].item->level[column];
        if (level >= 0) n[level]++;
    }
    for (int level = 0; level < c->n && levels; level++)
        if ((all || n[level]) && !cJSON_AddNumberToObject(levels, c->keys[level], n[level])) return false;
    return levels != NULL;
}

static bool add_counts(cJSON *root, const struct cli_sample_record *record) {
    cJSON *counts = cJSON_AddObjectToObject(root, "counts");
    size_t most = 1;
    for (int k = 0; k < record->pool->n_columns; k++)
        if ((size_t)record->pool->columns[k].n > most) most = (size_t)record->pool->columns[k].n;
    int *n = lk_malloc(most * sizeof *n);
    bool ok = counts && n;
    for (int k = 0; k < record->pool->n_columns && ok; k++) ok = add_column(counts, record, k, n);
    lk_free(n);
    return ok;
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
            !cJSON_AddStringToObject(item, "item_id", drawn->item->id) ||
            !cJSON_AddStringToObject(item, "stratum", drawn->stratum))
            return false;
    }
    return items != NULL;
}

static bool add_short(cJSON *root, const struct cli_sample_record *record) {
    cJSON *list = cJSON_AddArrayToObject(root, "short_strata");
    for (int i = 0; record->sample && i < record->sample->n_strata && list; i++) {
        const struct lk_stratum *stratum = &record->sample->strata[i];
        if (!cli_is_short(record->pool, stratum, record->each)) continue;
        cJSON *object = append_object(list);
        if (!object || !cJSON_AddStringToObject(object, "stratum", stratum->name) ||
            !cJSON_AddNumberToObject(object, "n", (double)stratum->n) ||
            !cJSON_AddNumberToObject(object, "wanted", record->each))
            return false;
    }
    return list != NULL;
}

enum lk_code cli_sample_json(const struct cli_sample_record *record) {
    char seed[32]; /* a double does not hold every seed */
    snprintf(seed, sizeof seed, "%lld", record->seed);
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "design", record->design) &&
              cJSON_AddStringToObject(root, "sampler", record->sampler) && cJSON_AddRawToObject(root, "seed", seed) &&
              cJSON_AddStringToObject(root, "input_sha256", record->pool->sha256) &&
              cJSON_AddNumberToObject(root, "n_input", (double)record->pool->n) &&
              cJSON_AddNumberToObject(root, "n", (double)record->n) && add_counts(root, record) &&
              add_short(root, record) && add_items(root, record);
    char *text = ok ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    if (!text) return lk_fail(LK_E_NOMEM, "sample: out of memory");
    puts(text);
    cJSON_free(text);
    return LK_OK;
}
