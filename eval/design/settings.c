/* The study file's settings: each described once, in the tables below. Reading, refusals, defaults and the resolved
 * copy go by them; a model's parameters by the table in models/parameters.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/design/internal.h"

#define STUDY(field) offsetof(struct lk_study, field)
const struct setting lk_study_settings[] = {
    {"schema", INT, NULL, NULL, 1, 2, STUDY(schema), "the version of the file: 2; 1 is still read"},
    {"study", TEXT, NULL, NULL, 0, 0, STUDY(name), "the study's name"},
    {"study_seed", INT, NULL, "42", 0, 0x1p53, STUDY(study_seed), "what is drawn, is drawn with it (pairs500)"},
    {"prompt_scheme", CHOICE, "ov|legacy", "ov", 0, 0, STUDY(prompt_scheme),
     "how the portrait study's prompts are named: O-01 and V-01, or catB_001 and catD_001"},
    {"item_ids", CHOICE, "portrait|plain", NULL, 0, 0, STUDY(item_ids),
     "portrait: sources are 84 cells of race, gender and age, and outputs are named MODEL_AGE_GENDER_RACE_PROMPT; "
     "plain: MODEL_SOURCE_PROMPT [default: portrait without attributes, else plain]"},
    {"attributes", TABLE, NULL, NULL, 0, 0, STUDY(attributes_given),
     "what sources differ in, a list of {\"name\": a column of the sources, \"display\": its heading, \"kind\": "
     "nominal or ordered, \"levels\": in their order, each a word or {\"key\", \"display\"}}; with \"of\", another "
     "attribute's name, its levels in groups, {\"key\": \"Young\", \"of\": [\"20s\", \"30s\"]}, which tables show "
     "beside it [default: race, gender, age]"},
    {"sources", TABLE, NULL, NULL, 0, 0, STUDY(sources_file),
     "a file (CSV, JSON lines) or a list: id, path (beside the file), a column for each attribute, and sha256 if the "
     "picture must not change"},
    {"prompts", TABLE, NULL, NULL, 0, 0, STUDY(prompts_file),
     "a file or a list of your own prompts: id or prompt_id, text or prompt, category, and if you like subcategory and "
     "target"},
    {"models", OBJECT, NULL, NULL, 0, 0, 0,
     "models by a key that names their outputs; one checkpoint may stand under several keys with other parameters"},
    {"experiments", OBJECT, NULL, NULL, 0, 0, 0,
     "experiments by a key: exp1, exp2, exp3 and t2i have their kind, any other key says its own"},
    {"judges", OBJECT, NULL, NULL, 0, 0, 0,
     "which models look at the outputs, as {\"primary\": {\"model\": a folder or ORG/NAME, \"mode\": free, forced or "
     "direct, free unless told}, \"secondary\": {\"openai_url\": a server's, \"model\": its name there}}; 'judge run "
     "--from RUN' asks them"},
    {"analysis", OBJECT, NULL, NULL, 0, 0, 0, "what a report of the study goes by"},
    {"attribution", TEXT, NULL, NULL, 0, 0, STUDY(attribution),
     "whose the sources are, for reports and raters; \"fairface\" stands for that data set's authors and licence"},
    {0},
};

#define EXP(field) offsetof(struct lk_study_experiment, field)
#define MODELS                                                                                                         \
    { "models", LIST, NULL, NULL, 0, 0, EXP(models), "keys of models [default: all that can make its pictures]" }
#define SOURCES                                                                                                        \
    { "sources", LIST, NULL, NULL, 0, 0, EXP(sources), "ids of sources [default: all]" }
#define PROMPTS                                                                                                        \
    {                                                                                                                  \
        "prompts", LIST, NULL, NULL, 0, 0, EXP(prompts),                                                               \
            "ids of prompts [default: your own; without any, and in the portrait study, its twenty]"                   \
    }
#define SEEDS(otherwise)                                                                                               \
    {                                                                                                                  \
        "seeds", TEXT, NULL, otherwise, 0, 0, EXP(seeds),                                                              \
            "\"0:9\": an output for each seed, both ends included [default: the model's one seed]"                     \
    }
static const struct setting exp1_settings[] = {
    {"preset", CHOICE, "full|legacy|custom", "full", 0, 0, EXP(preset),
     "legacy: the portrait study's prompts under their older names"},
    MODELS,
    SOURCES,
    PROMPTS,
    SEEDS(NULL),
    {0},
};
static const struct setting exp2_settings[] = {
    {"preset", CHOICE, "pairs500|grid336|grid|drift|list", NULL, 0, 0, EXP(preset),
     "which pairs: grid, all of what is chosen; list, those of a file; drift, those whose scores say that race or "
     "gender changed; pairs500 and grid336, samples of the portrait study [default: pairs500 there, else grid]"},
    {"preserve_with", CHOICE, "feature|generic", "feature", 0, 0, EXP(preserve_with),
     "what is put to the prompt: the features of the source, or \"while preserving the person's identity\""},
    {"feature_prompts", FILE_NAME, NULL, NULL, 0, 0, EXP(feature_prompts),
     "a record for each source, as 'likeness feature extract' writes them"},
    {"baseline", CHOICE, "reuse|make", "reuse", 0, 0, EXP(baseline),
     "the other half of a pair: the same output of an edit experiment, or one that is made for it"},
    MODELS,
    SOURCES,
    PROMPTS,
    SEEDS(NULL),
    {"list", FILE_NAME, NULL, NULL, 0, 0, EXP(list), "of preset list: a table of model, source_id and prompt_id"},
    {"scores", FILE_NAME, NULL, NULL, 0, 0, EXP(scores), "of preset drift: a table of scores of the edits"},
    {0},
};
static const struct setting exp3_settings[] = {
    {"preset", CHOICE, "composite|composite1|separate", "composite", 0, 0, EXP(preset),
     "of the portrait study: fifty sentences about two people, in one picture by every model or by one, or each alone"},
    {"order", CHOICE, "male_first|both", "male_first", 0, 0, EXP(order), "which of the two pictures comes first"},
    MODELS,
    {0},
};
static const struct setting t2i_settings[] = {
    {"table", FILE_NAME, NULL, NULL, 0, 0, EXP(table),
     "a table of prompts as 't2i prompts' prints it [default: the 108 of the text-to-image study]"},
    MODELS,
    {"arms", LIST, NULL, NULL, 0, 0, EXP(arms), "none, rewrite, diversity, safety, embed_norm, fair [default: none]"},
    {"cue", INT, NULL, "1", 1, 2, EXP(cue), "which of the two wordings of the arm diversity"},
    SEEDS("0:9"),
    {"cfg", LIST, NULL, NULL, 0, 0, EXP(cfg), "values of guidance, a picture for each [default: the model's]"},
    {"normalize", CHOICE, "none|center|zscore", NULL, 0, 0, EXP(normalize), "of the arm embed_norm [default: center]"},
    {"fair.file", FILE_NAME, NULL, NULL, 0, 0, EXP(fair),
     "of the arm fair, for Stable Diffusion: an instruction that says which concepts a prompt is pushed towards, as "
     "\"fair\": {\"file\": ...} [default: gender, half and half, but for prompts that name one]"},
    {"fair.assign", TEXT, NULL, NULL, 0, 0, EXP(fair_assign),
     "who gets which level: quota (exact shares over a prompt's seeds), draw, or a level for all [default: quota]"},
    {0},
};
const struct setting *const lk_experiment_settings[LK_N_EXPERIMENTS] = {exp1_settings, exp2_settings, exp3_settings,
                                                                        t2i_settings};

/* What the analysis goes by. The text is the value; numbers keep their digits. */
#define WORD(key, otherwise, others, help)                                                                             \
    { key, CHOICE, otherwise others, otherwise, 0, 0, 0, help }
#define VALUE(key, kind, otherwise, min, max, help)                                                                    \
    { key, kind, NULL, otherwise, min, max, 0, help }
const struct setting lk_analysis_settings[] = {
    WORD("subcategory", "both", "|printed|content",
         "prompts of the portrait study grouped by the printed ranges, by what they ask for, or both"),
    WORD("rounding", "half_even", "|half_up|half_down", "of a mean of two judges' scores that ends in a half"),
    VALUE("threshold.drift", INT, "3", 2, 5, "a score of race or gender change from here on is a change"),
    VALUE("threshold.soft_erasure", INT, "2", 1, 4, "a score of edit success up to here is an edit that was ignored"),
    VALUE("threshold.success", INT, "4", 2, 5, "a score of edit success from here on is a success"),
    VALUE("threshold.identity_erasure", INT, "4", 2, 5, "race or gender change from here on is a lost identity"),
    WORD("human", "003", "|001|000|004", "the protocol of the raters, by the number of its document"),
    WORD("qc_policy", "protocol", "|any|two_flags|none", "which raters are left out"),
    VALUE("bootstrap", INT, "1000", 10, 1000000, "resamples of an interval"),
    VALUE("alpha", NUMBER, "0.05", 0.0001, 0.5, "level of tests; intervals are at 1 - alpha"),
    WORD("unclear", "exclude", "|half|nonadherent", "what a role that nobody could tell counts as"),
    {0},
};
_Static_assert(sizeof lk_analysis_settings / sizeof *lk_analysis_settings - 1 < LK_N_ANALYSIS, "room for each");

/* What version 1 had and nothing ever read; files have them still. */
static const char *const without_effect[] = {"judge.primary", "judge.secondary", "judge_prompt", "temperature",
                                             "sample",        "sampler",         "packing_rule", "combine",
                                             "skin_scale",    "exp2_option",     "q3_version",   "z"};

bool lk_study_has_no_effect(const char *key) {
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        if (!strcmp(without_effect[i], key)) return true;
    return false;
}

const struct setting lk_model_settings[] = {
    {"path", TEXT, NULL, NULL, 0, 0, offsetof(struct lk_study_model, written),
     "its folder, or ORG/NAME in the Hugging Face cache [default of flux, step1x and qwen: the released model]"},
    {"label", TEXT, NULL, NULL, 0, 0, offsetof(struct lk_study_model, label), "how tables name it [default: its key]"},
    {"family", TEXT, NULL, NULL, 0, 0, offsetof(struct lk_study_model, family),
     "what kind of model it is, as 'likeness models' names them; needed where the model is not on this machine"},
    {"seeds", TEXT, NULL, NULL, 0, 0, offsetof(struct lk_study_model, seeds),
     "\"0:9\": seeds of its own instead of the experiment's"},
    {"lora", OBJECT, NULL, NULL, 0, 0, 0,
     "adapters of its transformer (not of Stable Diffusion), a list of {\"file\": a .safetensors file, or "
     "ORG/NAME:FILE in the Hugging Face cache, \"scale\": -10 to 10, 1 unless told, \"sha256\" if the file must not "
     "change}; they are applied in their order, and a job is known by their digests, not by where they lie"},
    {"rewrite", OBJECT, NULL, NULL, 0, 0, 0,
     "a language model that sees the sources rewrites the prompts first, as the editing models' authors do; 'study "
     "rewrite' makes the texts before any picture"},
    {"mask", TEXT, NULL, NULL, 0, 0, 0,
     "a mask for each source, as \"masks/{source}.png\": a grey picture of its size, white is edited, black keeps its "
     "bytes; or how each is drawn, {\"keep\": \"face\", \"faces\": \"yunet.safetensors\"}; see 'likeness edit'"},
    {"weights_identity", TEXT, NULL, NULL, 0, 0, offsetof(struct lk_study_model, weights_identity),
     "refuses other weights than these, as 'likeness show' prints them"},
    {"allow_steps", FLAG, "true|false", "false", 0, 0, offsetof(struct lk_study_model, allow_steps),
     "another number of steps than the model is made for (Step1X-Edit: 28)"},
    {"allow_cut", FLAG, "true|false", "false", 0, 0, offsetof(struct lk_study_model, allow_cut),
     "prompts of more tokens than the model reads are cut, which is recorded; otherwise such a job fails"},
    {0}};

#define HOSTED(field) offsetof(struct lk_study_hosted, field)
const struct setting lk_hosted_settings[] = {
    {"images_url", TEXT, NULL, NULL, 0, 0, HOSTED(images_url),
     "what /images/generations and /images/edits stand behind, as https://api.openai.com/v1; the key goes into "
     "OPENAI_API_KEY, never into a file"},
    {"model", TEXT, NULL, NULL, 0, 0, HOSTED(model), "as the service calls it"},
    {"set", OBJECT, NULL, NULL, 0, 0, 0, "what else each request says, as {\"quality\": \"high\"}"},
    {"requests_per_minute", NUMBER, NULL, NULL, 0.001, 100000, HOSTED(per_minute), "begun at most [default: no limit]"},
    {"repeat_refused", INT, NULL, "0", 0, 100, HOSTED(repeat_refused),
     "how often a refusal is asked about again; every answer is kept, the first one is the outcome"},
    {"seed_field", FLAG, "true|false", "false", 0, 0, HOSTED(seed_field),
     "the seed is sent, to an open server; OpenAI's API has none, and seeds number the repeats"},
    {"fetch_urls", FLAG, "true|false", "false", 0, 0, HOSTED(fetch_urls),
     "pictures at addresses of other hosts are fetched, without the key"},
    {0}};

static void explain(struct lk_text *out, const char *title, const struct setting *settings) {
    lk_text_add(out, "\n%s\n", title);
    for (; settings->key; settings++) {
        char line[1200];
        const bool number = settings->kind == INT || settings->kind == NUMBER;
        int used = snprintf(line, sizeof line, "%s", settings->help);
        if (number && used < 1000)
            used += snprintf(line + used, sizeof line - (size_t)used, ", %.6g to %.16g", settings->min, settings->max);
        if (settings->otherwise && used < 1000 && !strstr(settings->help, "[default"))
            snprintf(line + used, sizeof line - (size_t)used, " [default: %s]", settings->otherwise);
        lk_text_add(out, "  %s%s%s\n", settings->key, settings->choices ? "  " : "",
                    settings->choices ? settings->choices : "");
        for (const char *at = line; *at;) { /* lines of at most 90 */
            size_t n = strlen(at);
            if (n > 90)
                for (n = 90; n > 1 && at[n] != ' ';) n--;
            lk_text_add(out, "      %.*s\n", (int)n, at);
            at += n + (at[n] == ' ');
        }
    }
}

/* The parameters that make several treatments of one checkpoint, as edits have them. */
static void explain_schedule(struct lk_text *out) {
    static const char *const keys[] = {"num_inference_steps", "preset", "input_sigmas", "scheduler", "flow_shift"};
    struct setting settings[sizeof keys / sizeof *keys + 1] = {{0}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct lk_parameter *p = lk_parameter_named(keys[i]);
        settings[i] = (struct setting){.key = keys[i], .kind = TEXT, .choices = p->choices, .help = p->help};
    }
    explain(out, "models.KEY, of these parameters those that make treatments of one checkpoint:", settings);
}

enum lk_code lk_study_explain(struct lk_text *out) {
    lk_text_add(out,
                "A study file is one JSON object. 'likeness study new' writes one to begin with: --template own for a "
                "study\nof your own, full for the portrait study; 'study check' says what it lacks. Paths begin in the "
                "file's folder.\n");
    explain(out, "The file:", lk_study_settings);
    explain(out, "models.KEY, beside the parameters of 'likeness edit' under their long names with underscores:",
            lk_model_settings);
    explain_schedule(out);
    explain(out, "models.KEY.mask, drawn for each source:", lk_drawn_settings);
    explain(out, "models.KEY.rewrite:", lk_rewrite_settings);
    explain(out, "models.KEY.hosted, of a model behind the OpenAI images API instead of one that runs here:",
            lk_hosted_settings);
    for (int kind = 0; kind < LK_N_EXPERIMENTS; kind++) {
        char title[100];
        snprintf(title, sizeof title, "experiments.KEY of kind %s (%s):", lk_experiment_kind(kind),
                 lk_experiment_key(kind));
        explain(out, title, lk_experiment_settings[kind]);
    }
    explain(out, "analysis:", lk_analysis_settings);
    return out->rc;
}

enum lk_code lk_study_bad(const struct lk_study *s, const char *field, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return lk_fail(LK_E_CONFIG_VALUE, "%s: field \"%s\": %s", s->file, field, text);
}

const char *lk_study_attribution(const struct lk_study *s) {
    static const char fairface[] =
        "Portraits: FairFace, Kimmo Karkkainen and Jungseock Joo, \"FairFace: Face Attribute Dataset for Balanced "
        "Race, Gender, and Age\" (WACV 2021), CC BY 4.0; edited for this study.";
    const char *text = s->attribution ? s->attribution : "";
    return strcmp(text, "fairface") ? text : fairface;
}

const char *lk_study_setting(const struct lk_study *s, const char *key) {
    int i = 0;
    while (strcmp(lk_analysis_settings[i].key, key)) i++;
    return s->analysis[i];
}

static void write_value(struct lk_text *out, const struct setting *s, const void *base) {
    const void *at = (const char *)base + s->offset;
    const struct lk_study_list *list = at;
    if (s->kind == INT)
        lk_text_add(out, "%lld", (long long)*(const int64_t *)at);
    else if (s->kind == LIST && list->n) {
        lk_text_add(out, "[");
        for (size_t i = 0; i < list->n; i++) {
            lk_text_add(out, "%s", i ? ", " : "");
            lk_text_json(out, list->values[i]);
        }
        lk_text_add(out, "]");
    } else if (s->kind != LIST && *(const char *const *)at)
        lk_text_json(out, *(const char *const *)at);
    else
        lk_text_add(out, "null");
}

/* A file of an experiment as the run's folder has it: inputs/exp2.feature_prompts.jsonl. */
static void name_input(const struct lk_study_experiment *x, const struct setting *s, char out[200]) {
    const char *written = *(const char *const *)((const char *)x + s->offset);
    const char *slash = strrchr(written, '/'), *dot = strrchr(slash ? slash : written, '.');
    snprintf(out, 200, "inputs/%s.%s%.20s", x->key, s->key, dot ? dot : "");
}

static void write_input(struct lk_text *out, const struct setting *s, const struct lk_study_experiment *x) {
    char name[200];
    if (!*(const char *const *)((const char *)x + s->offset)) {
        lk_text_add(out, "null");
        return;
    }
    name_input(x, s, name);
    lk_text_json(out, name);
}

enum lk_code lk_study_each_input(const struct lk_study *s, lk_study_input_fn *fn, void *context) {
    for (int e = 0; e < s->n_experiments; e++) {
        const struct lk_study_experiment *x = &s->experiments[e];
        for (const struct setting *setting = lk_experiment_settings[x->kind]; setting->key; setting++) {
            const char *written =
                setting->kind == FILE_NAME ? *(const char *const *)((const char *)x + setting->offset) : NULL;
            char name[200];
            if (!written) continue;
            name_input(x, setting, name);
            char *path = *written == '/' ? lk_strdup(written) : lk_format("%s/%s", s->folder, written);
            enum lk_code rc = path ? fn(context, name, path) : lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
            lk_free(path);
            if (rc) return rc;
        }
    }
    return lk_study_rewrite_inputs(s, fn, context);
}

/* `places`: the resolved copy, which names files. */
static bool is_passed(const struct setting *s, const void *base, bool places) {
    if (s->kind == OBJECT || s->kind == TABLE) return true;
    if (!places && (s->kind == FILE_NAME || !strcmp(s->key, "schema"))) return true;
    return (s->kind == TEXT || s->kind == CHOICE) && !*(const char *const *)((const char *)base + s->offset);
}

static void write_settings(struct lk_text *out, const struct setting *settings, const void *base, bool places,
                           const char *indent) {
    bool first = true;
    for (; settings->key; settings++) {
        if (is_passed(settings, base, places)) continue;
        lk_text_add(out, "%s\n%s\"%s\": ", first ? "" : ",", indent, settings->key);
        if (settings->kind == FILE_NAME)
            write_input(out, settings, base);
        else
            write_value(out, settings, base);
        first = false;
    }
}

void lk_study_write_analysis(const struct lk_study *s, struct lk_text *out) {
    for (int i = 0; lk_analysis_settings[i].key; i++) {
        bool number = lk_analysis_settings[i].kind == INT || lk_analysis_settings[i].kind == NUMBER;
        const char *value = s ? s->analysis[i] : lk_analysis_settings[i].otherwise;
        lk_text_add(out, "%s\n    \"%s\": ", i ? "," : "", lk_analysis_settings[i].key);
        if (number)
            lk_text_add(out, "%s", value);
        else
            lk_text_json(out, value);
    }
}

/* As members of the model's object. */
static enum lk_code write_parameters(const struct lk_study_model *model, struct lk_text *out) {
    struct lk_text object = {0};
    enum lk_code rc = lk_study_write_parameters(&model->job, lk_family_bit_of(model->family), false, &object);
    if (!rc && object.n > 2) {
        lk_text_add(out, ", ");
        lk_text_bytes(out, object.bytes + 1, object.n - 2);
    }
    lk_text_free(&object);
    return rc;
}

static void write_member(struct lk_text *out, const char *key, const char *value) {
    lk_text_add(out, "\"%s\": ", key);
    lk_text_json(out, value);
    lk_text_add(out, ", ");
}

/* A digest of what stands in the files that the resolved copy names: prompts, and which jobs there are. */
static enum lk_code write_jobs(const struct lk_study *s, struct lk_text *out) {
    struct lk_text all = {0};
    char sha256[65];
    for (size_t i = 0; i < s->n_prompts; i++)
        lk_text_add(&all, "%s\n%s\n%s\n", s->prompts[i].id, s->prompts[i].category, s->prompts[i].text);
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct job_key *k = &s->jobs[i];
        lk_text_add(&all, "%d %d %d %d %d %d %d %d %d %d %d\n", k->experiment, k->model, k->arm, k->swapped,
                    k->source[0], k->source[1], k->prompt, k->pair, k->seed, k->cfg, k->mitigation);
    }
    if (s->fair) lk_text_add(&all, "%s\n", s->fair->sha256);
    if (!all.rc) lk_sha256(all.bytes ? all.bytes : "", all.n, sha256);
    enum lk_code rc = all.rc;
    lk_text_free(&all);
    if (rc) return rc;
    lk_text_add(out, "\"jobs\": {\"n\": %zu, \"sha256\": \"%s\"}", s->n_jobs, sha256);
    return out->rc;
}

static enum lk_code write_models(const struct lk_study *s, bool places, struct lk_text *out) {
    lk_text_add(out, ",\n  \"models\": {");
    for (int m = 0; m < s->n_models; m++) {
        const struct lk_study_model *model = &s->models[m];
        lk_text_add(out, "%s\n    \"%s\": {", m ? "," : "", model->key);
        if (model->hosted.given) {
            if (places) write_member(out, "label", model->label);
            if (model->seeds) write_member(out, "seeds", model->seeds);
            lk_text_add(out, "\"hosted\": ");
            lk_study_write_hosted(&model->hosted, places, out);
            lk_text_add(out, "}");
            continue;
        }
        if (places) {
            write_member(out, "path", model->path);
            write_member(out, "label", model->label);
            write_member(out, "family", model->family);
        }
        if (model->seeds) write_member(out, "seeds", model->seeds);
        if (model->weights_identity) write_member(out, "weights_identity", model->weights_identity);
        lk_text_add(out, "\"allow_steps\": %s%s", model->allow_steps ? "true" : "false",
                    model->allow_cut ? ", \"allow_cut\": true" : "");
        LK_TRY(write_parameters(model, out));
        lk_study_write_adapters(model, places, out);
        lk_study_write_mask(s, model, places, out);
        lk_study_write_rewrite(model, places, out);
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n  }");
    return out->rc;
}

static void write_source(const struct lk_study *s, const struct lk_study_source *source, bool places,
                         struct lk_text *out) {
    lk_text_add(out, "{\"id\": \"%s\", \"sha256\": \"%s\"", source->id, source->sha256);
    if (places) {
        lk_text_add(out, ", \"file\": ");
        lk_text_json(out, source->file);
    }
    for (int a = 0; a < s->n_attributes && (places || !s->portrait); a++)
        if (!s->attributes[a].of)
            lk_text_add(out, ", \"%s\": \"%s\"", s->attributes[a].name, s->attributes[a].keys[source->level[a]]);
    lk_text_add(out, "}");
}

static void write_prompts(const struct lk_study *s, struct lk_text *out) {
    size_t n;
    const struct lk_study_prompt *own = lk_study_own_prompts(s, &n);
    lk_text_add(out, ",\n  \"prompts\": [");
    for (size_t i = 0; i < n; i++) {
        lk_text_add(out, "%s\n    {", i ? "," : "");
        write_member(out, "id", own[i].id);
        write_member(out, "category", own[i].category);
        write_member(out, "subcategory", own[i].subcategory_printed);
        write_member(out, "subcategory_by_content", own[i].subcategory_content);
        write_member(out, "target", own[i].target);
        write_member(out, "text", own[i].text);
        out->n -= 2;
        lk_text_add(out, "}");
    }
    lk_text_add(out, "\n  ]");
}

/* Texts that stand in the resolved copy decide what is made; which machine makes it does not. Nor does it matter where
 * files are: `places` says whether the resolved copy is meant, which names them and holds the tables themselves. */
static enum lk_code write_all(const struct lk_study *s, bool places, struct lk_text *out) {
    lk_text_add(out, "{");
    write_settings(out, lk_study_settings, s, places, "  ");
    if (!s->portrait) {
        lk_text_add(out, ",\n  \"attributes\": ");
        lk_study_write_attributes(s, out);
    }
    LK_TRY(write_models(s, places, out));
    lk_text_add(out, ",\n  \"experiments\": {");
    for (int e = 0; e < s->n_experiments; e++) {
        const struct lk_study_experiment *x = &s->experiments[e];
        lk_text_add(out, "%s\n    \"%s\": {", e ? "," : "", x->key);
        if (strcmp(x->key, lk_experiment_key(x->kind)))
            lk_text_add(out, "\n      \"kind\": \"%s\",", lk_experiment_kind(x->kind));
        write_settings(out, lk_experiment_settings[x->kind], x, places, "      ");
        lk_text_add(out, "\n    }");
    }
    lk_text_add(out, "\n  },\n  \"analysis\": {");
    lk_study_write_analysis(s, out);
    lk_text_add(out, "\n  }");
    if (places) lk_study_write_judges(s, out);
    if (places) write_prompts(s, out);
    lk_text_add(out, ",\n  \"%s\": [", places ? "sources" : "source_files");
    for (int i = 0, n = 0; i < s->n_sources; i++) {
        if (!s->sources[i].id) continue;
        lk_text_add(out, "%s\n    ", n++ ? "," : "");
        write_source(s, &s->sources[i], places, out);
    }
    lk_text_add(out, "\n  ],\n  ");
    if (places)
        lk_text_add(out, "\"jobs\": %zu", s->n_jobs);
    else
        LK_TRY(write_jobs(s, out));
    lk_text_add(out, "\n}\n");
    return out->rc;
}

enum lk_code lk_study_settings_write(struct lk_study *s) {
    LK_TRY(write_all(s, false, &s->asked));
    lk_sha256(s->asked.bytes, s->asked.n, s->hash);
    s->schema = 2; /* of the resolved copy */
    return write_all(s, true, &s->resolved);
}
