/* The text-to-image study's jobs: models, prompts of its table, mitigated arms, CFG values, seeds. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "eval/design/internal.h"
#include "eval/t2i/prompts.h"

/* Arms that are made, and the prompt of each. */
static const struct {
    enum lk_t2i_arm arm;
    enum lk_t2i_column prompt;
} made[] = {{LK_T2I_NONE, LK_T2I_NATURAL_PROMPT},
            {LK_T2I_REWRITE, LK_T2I_REWRITE_PROMPT},
            {LK_T2I_DIVERSITY, LK_T2I_DIVERSITY_PROMPT},
            {LK_T2I_SAFETY, LK_T2I_SAFETY_PROMPT},
            {LK_T2I_EMBED_NORM, LK_T2I_NATURAL_PROMPT}};
enum { N_ARMS = sizeof made / sizeof *made, MAX_SEEDS = 100000 };

static const char field_arms[] = "experiments.t2i.arms", field_seeds[] = "experiments.t2i.seeds",
                  field_cfg[] = "experiments.t2i.cfg";

static enum lk_code take_arms(struct lk_study *s, bool arms[N_ARMS]) {
    const struct lk_study_list *list = &s->experiments[LK_EXP_T2I].arms;
    for (size_t i = 0; i < list->n; i++) {
        const int parsed = lk_t2i_arm_parse(list->values[i]);
        int arm = 0;
        while (arm < N_ARMS && (int)made[arm].arm != parsed) arm++;
        if (arm == N_ARMS)
            return lk_study_bad(s, field_arms, "expected none, rewrite, diversity, safety or embed_norm, got \"%.60s\"",
                                list->values[i]);
        arms[arm] = true;
    }
    if (!list->n) arms[LK_T2I_NONE] = true;
    return LK_OK;
}

/* "a:b", both ends included. */
static enum lk_code take_seeds(struct lk_study *s) {
    struct lk_study_experiment *x = &s->experiments[LK_EXP_T2I];
    const char *colon = strchr(x->seeds, ':');
    int64_t max = (int64_t)1 << 53;
    if (!colon || lk_read_int("", x->seeds, (size_t)(colon - x->seeds), 0, max, &x->first_seed) ||
        lk_read_int("", colon + 1, strlen(colon + 1), x->first_seed, x->first_seed + MAX_SEEDS - 1, &x->last_seed))
        return lk_study_bad(s, field_seeds,
                            "expected two whole numbers as 0:9, both included and at most 100,000 of them, got "
                            "\"%.60s\"",
                            x->seeds);
    return LK_OK;
}

static enum lk_code take_cfg(struct lk_study *s) {
    const struct lk_study_list *list = &s->experiments[LK_EXP_T2I].cfg;
    double value;
    for (size_t i = 0; i < list->n; i++)
        if (lk_read_number("", list->values[i], 0, 1000, &value))
            return lk_study_bad(s, field_cfg, "expected numbers from 0 to 1000, got %.60s", list->values[i]);
    if (list->n > 1000) return lk_study_bad(s, field_cfg, "expected at most 1000 numbers, got %zu", list->n);
    return LK_OK;
}

static enum lk_code read_table(struct lk_study *s, struct lk_t2i_prompts *table) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP_T2I];
    char *text;
    size_t n;
    if (!x->table) {
        LK_TRY(lk_t2i_prompts_build(table, NULL));
    } else {
        LK_TRY(lk_study_read_file(s, "experiments.t2i.table", x->table, &text, &n));
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
static enum lk_code add_rows(struct lk_study *s, const struct lk_t2i_prompts *table) {
    const char *file = s->experiments[LK_EXP_T2I].table;
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

static enum lk_code add_jobs(struct lk_study *s, size_t n_rows, const bool arms[N_ARMS]) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP_T2I];
    struct job_key key = {.experiment = LK_EXP_T2I, .source = {-1, -1}, .pair = -1};
    int n_cfg = x->cfg.n ? (int)x->cfg.n : 1, n_seeds = (int)(x->last_seed - x->first_seed + 1);
    for (int m = 0; m < LK_N_MODELS; m++)
        for (size_t row = 0; row < n_rows && x->model[m]; row++)
            for (int arm = 0; arm < N_ARMS; arm++)
                for (int c = 0; c < n_cfg && arms[arm]; c++)
                    for (int seed = 0; seed < n_seeds; seed++) {
                        key.model = (int8_t)m;
                        key.prompt = (int32_t)(s->first_t2i + row * N_ARMS + (size_t)arm);
                        key.mitigation = (int8_t)made[arm].arm;
                        key.cfg = x->cfg.n ? (int16_t)c : -1;
                        key.seed = seed;
                        LK_TRY(lk_study_add_job(s, &key));
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

enum lk_code lk_study_expand_t2i(struct lk_study *s) {
    struct lk_t2i_prompts table = {0};
    bool arms[N_ARMS] = {false};
    LK_TRY(take_arms(s, arms));
    LK_TRY(take_seeds(s));
    LK_TRY(take_cfg(s));
    LK_TRY(lk_study_take_models(s, LK_EXP_T2I, s->models[0].given ? "flux" : "step1x, qwen"));
    enum lk_code rc = read_table(s, &table);
    if (!rc) rc = add_rows(s, &table);
    if (!rc) rc = hash_base(s);
    if (!rc) rc = add_jobs(s, table.n, arms);
    lk_t2i_prompts_free(&table);
    return rc;
}

/* The guidance of FLUX.2 is a value that it is fed, that of the others a true one. */
static const struct lk_parameter *guidance_of(int model) {
    return lk_parameter_named(model == 0 ? "guidance-scale" : "true-cfg-scale");
}

void lk_study_set_t2i(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP_T2I];
    out->mitigation = lk_t2i_arm_key(key->mitigation);
    if (key->mitigation == LK_T2I_EMBED_NORM) {
        const char *how = x->normalize ? x->normalize : "center";
        out->normalize = strcmp(how, "none") ? how : NULL;
    }
    out->job.request.seed = (uint64_t)(x->first_seed + key->seed);
    if (key->cfg >= 0) lk_parameter_parse(guidance_of(key->model), &out->job, "", x->cfg.values[key->cfg]);
    out->cfg = key->model == 0 ? out->job.request.guidance_scale : out->job.request.true_cfg_scale;
    if (!*out->final_prompt) {
        out->final_prompt = NULL;
        out->problem = "its prompt has no wording of this arm";
    }
}

/* flux_17_rewrite_s3_cfg6.5: the CFG only where it varies. */
void lk_study_name_t2i(const struct lk_study *s, const struct job_key *key, char out[LK_STUDY_NAME_BYTES]) {
    const struct lk_study_experiment *x = &s->experiments[LK_EXP_T2I];
    snprintf(out, LK_STUDY_NAME_BYTES, "%s_%s_%s_s%lld%s%s", lk_factor_key(LK_FACTOR_MODEL, key->model),
             s->prompts[key->prompt].id, lk_t2i_arm_key(key->mitigation), (long long)(x->first_seed + key->seed),
             key->cfg >= 0 ? "_cfg" : "", key->cfg >= 0 ? x->cfg.values[key->cfg] : "");
}
