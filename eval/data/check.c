#include <cjson/cJSON.h>
#include <string.h>

#include "engine/base/digest.h"
#include "eval/data/data.h"

static const struct {
    const char *name, *sha256, *member, *what;
} files[] = {
    {"prompts_exp1", "7ffc937716a02270ffe91f0b831ee420c18e10be2b81b9b979ec09e55a326076", "prompts", "prompts"},
    {"prompts_winobias", "26063055eeb69b8110120793a58a81334d948683af0e0893332d14b731a2db49", "prompts", "sentences"},
    {"rubric", "8c4d6a2623d9a7618e23e7aff6d61a197be52f548a52c207365fa41c48b626b4", "axes", "axes"},
    {"questionnaires", "1ef430f4a7f3359cca6168a866e39279529d1b502032ff33ad448373883546b8", "instruments",
     "instruments"},
    {"paper_tables", "74d3aaeb284a1dca06e87acb5e4724bd92937b707f2a7083b5f1eb81b6de67d4", "tables", "tables"},
};

enum lk_code lk_data_check(struct lk_text *out) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct lk_data_file file;
        char sha256[65];
        if (!lk_data_find(files[i].name, &file))
            return lk_fail(LK_E_INTERNAL, "%s.json is not part of this program", files[i].name);
        lk_sha256(file.text, file.n_bytes, sha256);
        if (strcmp(sha256, files[i].sha256))
            return lk_fail(LK_E_CHANGED, "%s.json in this program: expected SHA-256 %s, got %s; install it anew",
                           files[i].name, files[i].sha256, sha256);
        if (!out) continue;
        cJSON *root = cJSON_ParseWithLength(file.text, file.n_bytes);
        lk_text_add(out, "%s.json  %d %s\n", files[i].name,
                    cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, files[i].member)), files[i].what);
        cJSON_Delete(root);
    }
    return out ? out->rc : LK_OK;
}
