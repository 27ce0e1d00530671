/* "judges" of a study: which models look at its outputs. They decide no pixel, so that they may change at any time. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "eval/design/internal.h"
#include "models/text/chat.h"

static const char *const slots[LK_N_JUDGES] = {"primary", "secondary"};

static enum lk_code read_judge(struct lk_study *s, const char *field, const cJSON *from, struct lk_study_judge *out) {
    const char *model = NULL, *url = NULL, *mode = "free";
    const cJSON *item;
    char inner[160];
    if (!cJSON_IsObject(from)) return lk_study_bad(s, field, "expected {\"model\": ...}, got something else");
    cJSON_ArrayForEach(item, from) {
        const char *text = cJSON_GetStringValue(item);
        const char **to = !strcmp(item->string, "model")        ? &model
                          : !strcmp(item->string, "openai_url") ? &url
                          : !strcmp(item->string, "mode")       ? &mode
                                                                : NULL;
        snprintf(inner, sizeof inner, "%s.%.60s", field, item->string);
        if (!to) return lk_study_bad(s, inner, "unknown; expected model, openai_url or mode");
        if (!text || !*text) return lk_study_bad(s, inner, "expected a text, got something else");
        *to = text;
    }
    snprintf(inner, sizeof inner, "%s.model", field);
    if (!model) return lk_study_bad(s, inner, "expected a folder, ORG/NAME or a server's name of a model, got nothing");
    snprintf(inner, sizeof inner, "%s.mode", field);
    if (strcmp(mode, "free") && strcmp(mode, "forced") && strcmp(mode, "direct"))
        return lk_study_bad(s, inner, "expected free|forced|direct, got \"%.40s\"", mode);
    if (url && strcmp(mode, "free"))
        return lk_study_bad(s, inner, "expected free of a model on a server, which fills in no form, got \"%s\"", mode);
    const char *kept = lk_store_text(&s->store, model);
    *out = (struct lk_study_judge){.model = url || !kept ? kept : lk_study_found(s, kept),
                                   .openai_url = url ? lk_store_text(&s->store, url) : NULL,
                                   .mode = lk_store_text(&s->store, mode)};
    return out->model && out->mode && (!url || out->openai_url) ? LK_OK
                                                                : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
}

enum lk_code lk_study_read_judges(struct lk_study *s, const char *text, size_t n) {
    cJSON *root = cJSON_ParseWithLength(text, n);
    enum lk_code rc = !root ? lk_fail(LK_E_NOMEM, "%s: out of memory", s->file)
                      : cJSON_IsObject(root)
                          ? LK_OK
                          : lk_study_bad(s, "judges", "expected {\"primary\": ..., \"secondary\": ...}");
    const cJSON *item, *object = rc ? NULL : root;
    cJSON_ArrayForEach(item, object) {
        char field[80];
        int slot = 0;
        while (slot < LK_N_JUDGES && strcmp(slots[slot], item->string)) slot++;
        snprintf(field, sizeof field, "judges.%.40s", item->string);
        rc = slot == LK_N_JUDGES ? lk_study_bad(s, field, "unknown; expected primary or secondary")
                                 : read_judge(s, field, item, &s->judges[slot]);
        if (rc) break;
    }
    cJSON_Delete(root);
    return rc;
}

void lk_study_write_judges(const struct lk_study *s, struct lk_text *out) {
    lk_text_add(out, ",\n  \"judges\": {");
    for (int j = 0, n = 0; j < LK_N_JUDGES; j++) {
        const struct lk_study_judge *judge = &s->judges[j];
        if (!judge->model) continue;
        lk_text_add(out, "%s\n    \"%s\": {\"model\": ", n++ ? "," : "", slots[j]);
        lk_text_json(out, judge->model);
        if (judge->openai_url) {
            lk_text_add(out, ", \"openai_url\": ");
            lk_text_json(out, judge->openai_url);
        }
        lk_text_add(out, ", \"mode\": \"%s\"}", judge->mode);
    }
    lk_text_add(out, "\n  }");
}

enum lk_code lk_study_check_judge(const struct lk_study *s, int slot) {
    struct lk_chat *chat;
    const struct lk_study_judge *judge = lk_study_judge(s, slot);
    if (!judge || judge->openai_url) return LK_OK; /* none, or one that is elsewhere */
    enum lk_code rc = lk_chat_open(&chat, judge->model, LK_BF16);
    if (rc) return lk_fail_prefix(rc, "judges.%s", slots[slot]);
    lk_chat_close(chat);
    return LK_OK;
}

const struct lk_study_judge *lk_study_judge(const struct lk_study *s, int slot) {
    return s->judges[slot].model ? &s->judges[slot] : NULL;
}
