#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/alloc.h"
#include "eval/design/internal.h"
#include "eval/hosted/images.h"
#include "models/text/chat.h"

/* Study files to begin with: the numbers that the study's documents print. */

const char lk_study_template_names[] = "own|arms|full|exp1|exp2|exp3|t2i";

static const char flux[] = "    \"flux\": {\"path\": \"black-forest-labs/FLUX.2-dev\", \"num_inference_steps\": 50, "
                           "\"guidance_scale\": 4.0, \"seed\": 42, \"dtype\": \"bf16\"}";
static const char step1x[] = "    \"step1x\": {\"path\": \"stepfun-ai/Step1X-Edit-v1p2\", \"num_inference_steps\": 28, "
                             "\"true_cfg_scale\": 6.0, \"seed\": 42, \"dtype\": \"bf16\"}";
static const char qwen[] = "    \"qwen\": {\"path\": \"Qwen/Qwen-Image-Edit-2511\", \"num_inference_steps\": 40, "
                           "\"true_cfg_scale\": 4.0, \"seed\": 0, \"dtype\": \"bf16\"}";
static const char exp1[] = "    \"exp1\": {\"preset\": \"full\"}";
static const char exp2[] = "    \"exp2\": {\"preset\": \"pairs500\", \"preserve_with\": \"feature\", "
                           "\"feature_prompts\": \"features.jsonl\", \"baseline\": \"reuse\"}";
static const char exp3[] =
    "    \"exp3\": {\"preset\": \"composite\", \"order\": \"male_first\", \"models\": [\"flux\", "
    "\"qwen\"]}";
static const char t2i[] = "    \"t2i\": {\"models\": [\"flux\"], \"arms\": [\"none\", \"rewrite\", \"diversity\", "
                          "\"safety\"], \"cue\": 1, \"seeds\": \"0:9\"}";

static const struct {
    const char *name;
    const char *models[4], *experiments[4]; /* each ends in NULL */
} templates[] = {{"full", {flux, step1x, qwen}, {exp1, exp2, exp3}},
                 {"exp1", {flux, step1x, qwen}, {exp1}},
                 {"exp2", {flux, step1x, qwen}, {exp2}},
                 {"exp3", {flux, qwen}, {exp3}},
                 {"t2i", {flux}, {t2i}}};

static void add_members(struct lk_text *out, const char *key, const char *const *members) {
    lk_text_add(out, ",\n  \"%s\": {", key);
    for (int i = 0; i < 4 && members[i]; i++) lk_text_add(out, "%s\n%s", i ? "," : "", members[i]);
    lk_text_add(out, "\n  }");
}

/* A study of one's own: every table that it names is to be written. */
static const char own[] =
    "{\n"
    "  \"schema\": 2,\n"
    "  \"study\": \"own\",\n"
    "  \"study_seed\": 42,\n"
    "  \"attributes\": [\n"
    "    {\"name\": \"skin_type\", \"display\": \"Skin type\", \"kind\": \"ordered\", \"levels\": [\"I\", \"II\", "
    "\"III\", \"IV\", \"V\", \"VI\"]},\n"
    "    {\"name\": \"head_covering\", \"display\": \"Head covering\", \"kind\": \"nominal\",\n"
    "     \"levels\": [{\"key\": \"none\", \"display\": \"No covering\"}, \"hijab\", \"turban\"]}\n"
    "  ],\n"
    "  \"sources\": \"sources.csv\",\n"
    "  \"prompts\": \"prompts.csv\",\n"
    "  \"models\": {\n";
static const char own_models[] =
    "    \"flux\": {\"path\": \"black-forest-labs/FLUX.2-dev\", \"label\": \"FLUX.2-dev\", "
    "\"num_inference_steps\": 50},\n"
    "    \"flux20\": {\"path\": \"black-forest-labs/FLUX.2-dev\", \"label\": \"FLUX.2-dev, 20 steps\", "
    "\"num_inference_steps\": 20},\n"
    "    \"qwen\": {\"path\": \"Qwen/Qwen-Image-Edit-2511\", \"label\": \"Qwen-Edit\", \"seeds\": \"10:12\"}\n";
/* Treatments of one checkpoint: as its authors run it, with a few-step adapter, and with that merged into a folder. */
#define LIGHTNING "Qwen-Image-Edit-2511-Lightning-4steps-V1.0-bf16"
static const char arms_models[] =
    "    \"base\": {\"path\": \"Qwen/Qwen-Image-Edit-2511\", \"label\": \"Qwen-Edit, 40 steps\"},\n"
    "    \"lightning\": {\"path\": \"Qwen/Qwen-Image-Edit-2511\", \"label\": \"Lightning, 4 steps\",\n"
    "                  \"lora\": [{\"file\": \"" LIGHTNING ".safetensors\", \"scale\": 1}], \"preset\": "
    "\"qwen-lightning-4\"},\n"
    "    \"merged\": {\"path\": \"merged\", \"family\": \"qwen-edit-2511\", \"label\": \"Lightning merged, 4 steps\",\n"
    "               \"preset\": \"qwen-lightning-4\"}\n";
static const char own_experiments[] =
    "  },\n"
    "  \"judges\": {\"primary\": {\"model\": \"Qwen/Qwen-Image-Edit-2511\"}},\n"
    "  \"experiments\": {\n"
    "    \"edits\": {\"kind\": \"edit\", \"seeds\": \"0:2\"},\n"
    "    \"kept\": {\"kind\": \"pair\", \"preserve_with\": \"generic\", \"seeds\": \"0:2\"}\n"
    "  }";

enum lk_code lk_study_template(const char *name, struct lk_text *out) {
    const bool arms = !strcmp(name, "arms");
    if (arms || !strcmp(name, "own")) {
        lk_text_add(out, "%s%s%s,\n  \"analysis\": {", own, arms ? arms_models : own_models, own_experiments);
        lk_study_write_analysis(NULL, out);
        lk_text_add(out, "\n  }\n}\n");
        return out->rc;
    }
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        if (strcmp(templates[i].name, name)) continue;
        lk_text_add(
            out, "{\n  \"schema\": 2,\n  \"study\": \"%s\",\n  \"study_seed\": 42,\n  \"prompt_scheme\": \"ov\"", name);
        if (strcmp(name, "t2i")) lk_text_add(out, ",\n  \"sources\": \"sources.csv\"");
        add_members(out, "models", templates[i].models);
        add_members(out, "experiments", templates[i].experiments);
        lk_text_add(out, ",\n  \"analysis\": {");
        lk_study_write_analysis(NULL, out);
        lk_text_add(out, "\n  }\n}\n");
        return out->rc;
    }
    return lk_fail(LK_E_USAGE, "--template: expected %s, got \"%.60s\"", lk_study_template_names, name);
}

/* The columns of the tables that the file names: a line each. */
static void add_tables(const struct lk_study *s, struct lk_text *out) {
    if (s->sources_file) {
        lk_text_add(out, "%s, a line a source: %spath", s->sources_file, s->portrait ? "" : "id, ");
        for (int a = 0; a < s->n_attributes; a++) {
            const struct lk_attribute *of = &s->attributes[a];
            if (of->of) continue;
            lk_text_add(out, ", %s (", of->name);
            for (int i = 0; i < of->n; i++) lk_text_add(out, "%s%s", i ? ", " : "", of->keys[i]);
            lk_text_add(out, ")");
        }
        lk_text_add(out, "; sha256 if the picture must not change\n");
    }
    if (s->prompts_file)
        lk_text_add(out,
                    "%s, a line a prompt: id, text, category (a word of yours); subcategory and target if you like\n",
                    s->prompts_file);
}

enum lk_code lk_study_tables(const char *text, size_t n, struct lk_text *out) {
    struct lk_study *s = lk_calloc(1, sizeof *s);
    if (!s || !(s->file = lk_strdup("study.json")) || !(s->folder = lk_strdup("."))) {
        lk_study_close(s);
        return lk_fail(LK_E_NOMEM, "study new: out of memory");
    }
    enum lk_code rc = lk_study_settings_read(s, text, n);
    if (!rc) rc = lk_study_read_attributes(s);
    if (!rc) add_tables(s, out);
    lk_study_close(s);
    return rc ? rc : out->rc;
}

/* A model of a study that does not run here: it is asked over the network. */

enum lk_code lk_study_complete_hosted(struct lk_study *s, struct lk_study_model *m) {
    struct lk_study_hosted *h = &m->hosted;
    char field[100];
    if (m->written || m->family || m->weights_identity) {
        snprintf(field, sizeof field, "models.%s", m->key);
        return lk_study_bad(s, field, "expected hosted alone, without path, family and weights_identity, got both");
    }
    snprintf(field, sizeof field, "models.%s.hosted.model", m->key);
    if (!h->model) return lk_study_bad(s, field, "expected the model's name at the service, got nothing");
    snprintf(field, sizeof field, "models.%s.hosted.images_url", m->key);
    if (!h->images_url) return lk_study_bad(s, field, "expected an address as https://api.openai.com/v1, got nothing");
    const bool web = !strncasecmp(h->images_url, "http://", 7) || !strncasecmp(h->images_url, "https://", 8);
    if (!web || strpbrk(h->images_url, "?#@"))
        return lk_study_bad(s, field,
                            "expected http://HOST:PORT/v1 or https://... without user, password and \"?\"; the key "
                            "goes into OPENAI_API_KEY");
    h->requests_per_minute = h->per_minute ? strtod(h->per_minute, NULL) : 0;
    if (!m->label) m->label = m->key;
    m->family = "hosted";
    m->path = m->written = h->images_url;
    return LK_OK;
}

void lk_study_write_hosted(const struct lk_study_hosted *h, bool places, struct lk_text *out) {
    lk_text_add(out, "{\"images_url\": ");
    lk_text_json(out, h->images_url);
    lk_text_add(out, ", \"model\": ");
    lk_text_json(out, h->model);
    lk_text_add(out, ", \"set\": {");
    for (int i = 0; i < h->n_set; i++) {
        lk_text_add(out, "%s\"%s\": ", i ? ", " : "", h->set[i].key);
        if (h->set[i].text)
            lk_text_json(out, h->set[i].value);
        else
            lk_text_add(out, "%s", h->set[i].value);
    }
    lk_text_add(out, "}, \"seed_field\": %s", h->seed_field ? "true" : "false");
    if (places && h->per_minute) lk_text_add(out, ", \"requests_per_minute\": %s", h->per_minute);
    if (places)
        lk_text_add(out, ", \"repeat_refused\": %lld, \"fetch_urls\": %s", (long long)h->repeat_refused,
                    h->fetch_urls ? "true" : "false");
    lk_text_add(out, "}");
}

/* "judges" of a study: which models look at its outputs. They decide no pixel, so that they may change at any time. */

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
