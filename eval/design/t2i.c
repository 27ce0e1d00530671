/* The text-to-image study's jobs: models, prompts of its table, mitigated arms, CFG values, seeds. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/json.h"
#include "eval/design/internal.h"
#include "eval/t2i/prompts.h"

/* Arms that are made, and the prompt of each. */
static const struct {
    enum lk_t2i_arm arm;
    enum lk_t2i_column prompt;
} made[] = {{LK_T2I_NONE, LK_T2I_NATURAL_PROMPT},        {LK_T2I_REWRITE, LK_T2I_REWRITE_PROMPT},
            {LK_T2I_DIVERSITY, LK_T2I_DIVERSITY_PROMPT}, {LK_T2I_SAFETY, LK_T2I_SAFETY_PROMPT},
            {LK_T2I_EMBED_NORM, LK_T2I_NATURAL_PROMPT},  {LK_T2I_FAIR, LK_T2I_NATURAL_PROMPT}};
enum { N_ARMS = sizeof made / sizeof *made };

static const char *field_of(const struct lk_study_experiment *x, const char *key, char out[100]) {
    snprintf(out, 100, "experiments.%s.%s", x->key, key);
    return out;
}

static enum lk_code take_arms(struct lk_study *s, const struct lk_study_experiment *x, bool arms[N_ARMS]) {
    const struct lk_study_list *list = &x->arms;
    char field[100];
    for (size_t i = 0; i < list->n; i++) {
        const int parsed = lk_t2i_arm_parse(list->values[i]);
        int arm = 0;
        while (arm < N_ARMS && (int)made[arm].arm != parsed) arm++;
        if (arm == N_ARMS)
            return lk_study_bad(s, field_of(x, "arms", field),
                                "expected none, rewrite, diversity, safety, embed_norm or fair, got \"%.60s\"",
                                list->values[i]);
        arms[arm] = true;
    }
    if (!list->n) arms[LK_T2I_NONE] = true;
    return LK_OK;
}

static enum lk_code take_cfg(struct lk_study *s, const struct lk_study_experiment *x) {
    const struct lk_study_list *list = &x->cfg;
    double value;
    char field[100];
    field_of(x, "cfg", field);
    for (size_t i = 0; i < list->n; i++)
        if (lk_read_number("", list->values[i], 0, 1000, &value))
            return lk_study_bad(s, field, "expected numbers from 0 to 1000, got %.60s", list->values[i]);
    if (list->n > 1000) return lk_study_bad(s, field, "expected at most 1000 numbers, got %zu", list->n);
    return LK_OK;
}

static enum lk_code read_table(struct lk_study *s, const struct lk_study_experiment *x, struct lk_t2i_prompts *table) {
    char *text, field[100];
    size_t n;
    if (!x->table) {
        LK_TRY(lk_t2i_prompts_build(table, NULL));
    } else {
        LK_TRY(lk_study_read_file(s, field_of(x, "table", field), x->table, &text, &n));
        enum lk_code rc = lk_t2i_prompts_read(table, text, n, x->table);
        lk_free(text);
        if (rc) return rc;
    }
    return lk_t2i_prompts_mitigate(table, (int)x->cue);
}

/* A word of a file's name. */
static bool is_word(const char *text) {
    return *text && strlen(text) <= 40 &&
           !text[strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")];
}

/* A prompt of each arm in a row; "" where there is none. */
static enum lk_code add_rows(struct lk_study *s, const char *file, const struct lk_t2i_prompts *table) {
    s->first_t2i = s->n_prompts;
    LK_TRY(lk_grow(&s->prompts, &s->prompts_capacity, s->n_prompts + table->n * N_ARMS, sizeof *s->prompts));
    for (size_t i = 0; i < table->n; i++) {
        const struct lk_t2i_prompt *row = &table->list[i];
        if (!is_word(row->cells[LK_T2I_PROMPT_ID]))
            return lk_fail(LK_E_INPUT,
                           "%s: field \"prompt_id\": expected 1 to 40 letters, digits, - or _, got \"%.60s\"",
                           file ? file : "t2i", row->cells[LK_T2I_PROMPT_ID]);
        for (int arm = 0; arm < N_ARMS; arm++) {
            struct lk_study_prompt *p = &s->prompts[s->n_prompts++];
            *p = (struct lk_study_prompt){.id = lk_store_text(&s->store, row->cells[LK_T2I_PROMPT_ID]),
                                          .text = lk_store_text(&s->store, row->cells[made[arm].prompt]),
                                          .category = lk_t2i_arm_key(made[arm].arm),
                                          .subcategory_printed = lk_store_text(&s->store, row->cells[LK_T2I_CATEGORY]),
                                          .subcategory_content = "",
                                          .target = lk_store_text(&s->store, row->cells[LK_T2I_ROLE_LABEL]),
                                          .number = -1};
            if (!p->id || !p->text || !p->subcategory_printed || !p->target)
                return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
        }
    }
    return LK_OK;
}

enum lk_code lk_study_read_fair(struct lk_study *s, struct lk_study_experiment *x, const char *text, size_t n) {
    struct lk_json j;
    const char *key, *value;
    char field[100];
    if (*text == 'n') return LK_OK; /* null: as if it were not there, as in copies of studies of earlier versions */
    lk_json_init(&j, text, n, field_of(x, "fair", field));
    lk_json_enter(&j, '{');
    while (lk_json_next(&j) && lk_json_key(&j, &key)) {
        const bool file = !strcmp(key, "file");
        if (!file && strcmp(key, "assign") != 0)
            lk_json_fail(&j, LK_E_CONFIG_KEY, "\"%.60s\": unknown; expected file, assign", key);
        else if (lk_json_string(&j, &value) &&
                 !(*(file ? &x->fair : &x->fair_assign) = lk_store_text(&s->store, value)))
            lk_json_fail(&j, LK_E_NOMEM, "out of memory");
    }
    lk_json_end(&j);
    const enum lk_code rc = lk_json_finish(&j);
    return rc ? lk_fail_prefix(rc, "%s", s->file) : LK_OK;
}

static enum lk_code read_fair(struct lk_study *s, const struct lk_study_experiment *x) {
    char *text = NULL, field[100];
    size_t n = strlen(lk_fair_gender);
    s->fair = lk_calloc(1, sizeof *s->fair);
    if (!s->fair) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    if (x->fair) LK_TRY(lk_study_read_file(s, field_of(x, "fair.file", field), x->fair, &text, &n));
    enum lk_code rc = lk_fair_read(s->fair, text ? text : lk_fair_gender, n, x->fair ? x->fair : "fair");
    lk_free(text);
    if (!rc && x->fair_assign && lk_fair_check_assign(s->fair, x->fair_assign))
        rc = lk_study_bad(s, field_of(x, "fair.assign", field), "%s", lk_error_text());
    return rc;
}

/* Jobs of the arm fair, a seed each: the key has all else. */
static enum lk_code add_fair(struct lk_study *s, struct job_key *key, int n_seeds) {
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    const struct lk_study_prompt *prompt = &s->prompts[key->prompt];
    int hit;
    LK_TRY(lk_fair_rule(s->fair, prompt->text, &hit));
    key->fair_rule = (int8_t)hit;
    const struct lk_fair_rule *rule = key->fair_rule < 0 ? NULL : &s->fair->rules[key->fair_rule];
    const int n = rule ? rule->n_attributes : 0;
    int32_t *levels = lk_malloc((size_t)(n + 1) * (size_t)n_seeds * sizeof *levels);
    if (!levels) return lk_fail(LK_E_NOMEM, "%s: out of memory", s->file);
    for (int i = 0; i < n; i++)
        lk_fair_deal(s->fair, rule->attributes[i], x->fair_assign ? x->fair_assign : "quota", (uint64_t)s->study_seed,
                     prompt->id, levels + (size_t)i * (size_t)n_seeds, (size_t)n_seeds);
    enum lk_code rc = LK_OK;
    for (int seed = 0; seed < n_seeds && !rc; seed++) {
        for (int i = 0; i < n; i++) key->fair[i] = (int8_t)levels[(size_t)i * (size_t)n_seeds + (size_t)seed];
        key->seed = seed;
        rc = lk_study_add_job(s, key);
    }
    lk_free(levels);
    return rc;
}

static int count_seeds(const struct lk_study *s, const struct lk_study_experiment *x, int model) {
    const struct lk_study_seeds *range = s->models[model].range.given ? &s->models[model].range : &x->range;
    return (int)(range->last - range->first + 1);
}

static enum lk_code add_jobs(struct lk_study *s, int e, size_t n_rows, const bool arms[N_ARMS]) {
    const struct lk_study_experiment *x = &s->experiments[e];
    struct job_key key = {.experiment = (int8_t)e, .source = {-1, -1}, .pair = -1};
    const int n_cfg = x->cfg.n ? (int)x->cfg.n : 1;
    for (int m = 0; m < s->n_models; m++)
        for (size_t row = 0; row < n_rows && x->model[m]; row++)
            for (int arm = 0; arm < N_ARMS; arm++)
                for (int c = 0; c < n_cfg && arms[arm]; c++) {
                    const int n_seeds = count_seeds(s, x, m);
                    key.model = (int8_t)m;
                    key.prompt = (int32_t)(s->first_t2i + row * N_ARMS + (size_t)arm);
                    key.mitigation = (int8_t)made[arm].arm;
                    key.cfg = x->cfg.n ? (int16_t)c : -1;
                    key.fair_rule = -1;
                    if (made[arm].arm == LK_T2I_FAIR) LK_TRY(add_fair(s, &key, n_seeds));
                    for (int seed = 0; seed < n_seeds && made[arm].arm != LK_T2I_FAIR; seed++) {
                        key.seed = seed;
                        LK_TRY(lk_study_add_job(s, &key));
                    }
                }
    return LK_OK;
}

const char *lk_study_base_prompt(const struct lk_study *s, size_t i) {
    const size_t at = s->first_t2i + i * N_ARMS;
    return s->first_t2i && at < s->n_prompts ? s->prompts[at].text : NULL;
}

static enum lk_code hash_base(struct lk_study *s) {
    struct lk_text all = {0};
    const char *text;
    for (size_t i = 0; (text = lk_study_base_prompt(s, i)); i++) lk_text_bytes(&all, text, strlen(text) + 1);
    if (!all.rc) lk_sha256(all.bytes ? all.bytes : "", all.n, s->base_prompts);
    return lk_text_free(&all);
}

enum lk_code lk_study_expand_t2i(struct lk_study *s, int e) {
    struct lk_study_experiment *x = &s->experiments[e];
    struct lk_t2i_prompts table = {0};
    bool arms[N_ARMS] = {false};
    char field[100];
    unsigned made_for = 0;
    const unsigned flux = lk_family_bit_of(lk_preset_family(0));
    if (s->first_t2i)
        return lk_study_bad(s, field_of(x, "kind", field), "expected one experiment of pictures from text, got two");
    for (int m = 0; m < s->n_models; m++) made_for |= lk_family_bit_of(s->models[m].family) & flux;
    LK_TRY(take_arms(s, x, arms));
    LK_TRY(lk_study_read_seeds(s, field_of(x, "seeds", field), x->seeds, &x->range));
    LK_TRY(take_cfg(s, x));
    LK_TRY(lk_study_take_models(s, e, made_for ? made_for : LK_FOR_ALL));
    enum lk_code rc = read_table(s, x, &table);
    bool fair = false;
    for (int arm = 0; arm < N_ARMS; arm++) fair = fair || (arms[arm] && made[arm].arm == LK_T2I_FAIR);
    if (!rc && !fair && (x->fair || x->fair_assign))
        rc = lk_study_bad(s, field_of(x, x->fair ? "fair.file" : "fair.assign", field),
                          "goes with the arm fair: name it in \"arms\" (t2i generate: --arm fair)");
    if (x->fair && !strcmp(x->fair, "gender")) x->fair = NULL; /* the program's own */
    if (!rc && fair) rc = read_fair(s, x);
    if (!rc) rc = add_rows(s, x->table, &table);
    if (!rc) rc = hash_base(s);
    if (!rc) rc = add_jobs(s, e, table.n, arms);
    lk_t2i_prompts_free(&table);
    return rc;
}

/* The name of a family's guidance: a value that FLUX.2 is fed, Stable Diffusion's own, or that of true CFG. */
static bool is_fed(const struct lk_study_job *job) {
    return lk_parameter_named("guidance-scale")->families & lk_family_bit_of(job->family);
}

_Static_assert(sizeof((struct lk_request *)0)->concepts == LK_FAIR_MAX_CONCEPTS * sizeof(char *), "as many concepts");

_Static_assert(sizeof((struct lk_study_job *)0)->fair_level > LK_FAIR_MAX_ATTRIBUTES * (LK_FAIR_MAX_NAME + 1), "room");

/* Names joined by "+". */
static void join(char out[LK_STUDY_FAIR_BYTES], const char *name) {
    const size_t n = strlen(out);
    snprintf(out + n, LK_STUDY_FAIR_BYTES - n, "%s%s", n ? "+" : "", name);
}

static void set_fair(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    struct lk_request *request = &out->job.request;
    const char *assign = s->experiments[key->experiment].fair_assign;
    out->fair_rule = key->fair_rule;
    out->fair_assign = assign ? assign : "quota";
    out->fair_sha256 = s->fair->sha256;
    if (!(lk_parameter_named("concept")->families & lk_family_bit_of(out->family))) {
        out->problem = "the arm fair is for Stable Diffusion: its model has no concepts";
        return;
    }
    if (key->fair_rule < 0) return;
    const struct lk_fair_rule *rule = &s->fair->rules[key->fair_rule];
    request->n_concepts = lk_fair_concepts(s->fair, key->fair_rule, key->fair, request->concepts);
    request->concept_momentum_scale = s->fair->momentum_scale;
    request->concept_momentum_beta = s->fair->momentum_beta;
    for (int i = 0; i < rule->n_attributes; i++) {
        const struct lk_fair_attribute *a = &s->fair->attributes[rule->attributes[i]];
        join(out->fair_attribute, a->name);
        join(out->fair_level, a->levels[key->fair[i]]);
        join(out->fair_label, a->labels[key->fair[i]]);
    }
}

/* Once its guidance is known: what the sampler would refuse in each of the jobs. */
static const char *fair_problem(const struct lk_study_job *job) {
    const struct lk_request *request = &job->job.request;
    if (!request->n_concepts) return NULL;
    if (lk_job_given(&job->job, lk_parameter_named("guidance-scale")) && request->guidance_scale <= 1)
        return "the arm fair goes with a guidance above 1: without guidance concepts do nothing";
    if (request->guidance_rescale > 0) return "the arm fair does not go with guidance_rescale; leave one out";
    return NULL;
}

void lk_study_set_t2i(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    const bool fed = is_fed(out);
    out->mitigation = lk_t2i_arm_key(key->mitigation);
    if (out->hosted) {
        if (key->mitigation == LK_T2I_EMBED_NORM || key->mitigation == LK_T2I_FAIR || key->cfg >= 0)
            out->problem = "a hosted model takes a prompt alone: no guidance, no embeddings, no concepts";
        else if (!*out->final_prompt)
            out->final_prompt = NULL, out->problem = "its prompt has no wording of this arm";
        return;
    }
    if (key->mitigation == LK_T2I_EMBED_NORM) {
        const char *how = x->normalize ? x->normalize : "center";
        out->normalize = strcmp(how, "none") ? how : NULL;
    }
    if (key->mitigation == LK_T2I_FAIR) set_fair(s, key, out);
    if (key->cfg >= 0)
        lk_parameter_parse(lk_parameter_named(fed ? "guidance-scale" : "true-cfg-scale"), &out->job, "",
                           x->cfg.values[key->cfg]);
    if (!out->problem && (out->problem = fair_problem(out)))
        out->job.request.n_concepts = 0; /* so that it has a plan */
    out->cfg = fed ? out->job.request.guidance_scale : out->job.request.true_cfg_scale;
    if (!*out->final_prompt) {
        out->final_prompt = NULL;
        out->problem = "its prompt has no wording of this arm";
    }
}

/* flux_17_rewrite_s3_cfg6.5: the CFG only where it varies. */
void lk_study_name_t2i(const struct lk_study *s, const struct job_key *key, char out[LK_STUDY_NAME_BYTES]) {
    const struct lk_study_experiment *x = &s->experiments[key->experiment];
    const struct lk_study_seeds *own = &s->models[key->model].range, *range = own->given ? own : &x->range;
    snprintf(out, LK_STUDY_NAME_BYTES, "%s_%s_%s_s%lld%s%s", s->models[key->model].key, s->prompts[key->prompt].id,
             lk_t2i_arm_key(key->mitigation), (long long)(range->first + key->seed), key->cfg >= 0 ? "_cfg" : "",
             key->cfg >= 0 ? x->cfg.values[key->cfg] : "");
}
