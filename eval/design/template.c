/* Study files to begin with: the numbers that the study's documents print. */
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/design/settings.h"

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
