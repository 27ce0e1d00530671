#include "models/text/generation_config.h"

/* Below it, logits divided by the temperature could leave the range of a float. */
#define MIN_TEMPERATURE 1e-8
#define MAX_TEMPERATURE 1e4
#define MIN_PENALTY     1e-2
#define MAX_PENALTY     1e2
#define MAX_TOKENS      (1 << 24)
#define MAX_ID          (1 << 24)

void lk_generation_config_init(struct lk_generation_config *config) {
    *config = (struct lk_generation_config){
        .temperature = 1, .top_k = 50, .top_p = 1, .repetition_penalty = 1, .bos_token_id = -1, .pad_token_id = -1};
}

/* Outputs, caches, beams and drafts: the ids do not depend on them, or only with settings that are refused. */
static void ignore_inert(struct lk_config *json) {
    static const char *const inert[] = {"_from_model_config",
                                        "_commit_hash",
                                        "transformers_version",
                                        "attn_implementation",
                                        "use_cache",
                                        "cache_implementation",
                                        "cache_config",
                                        "length_penalty",
                                        "early_stopping",
                                        "output_attentions",
                                        "output_hidden_states",
                                        "output_scores",
                                        "output_logits",
                                        "return_dict_in_generate",
                                        "num_assistant_tokens",
                                        "num_assistant_tokens_schedule",
                                        "assistant_confidence_threshold",
                                        "assistant_lookbehind",
                                        "target_lookbehind",
                                        "disable_compile",
                                        "prefill_chunk_size"};
    for (size_t i = 0; i < sizeof inert / sizeof *inert; i++) lk_config_ignore(json, inert[i]);
}

static void expect_int_or_null(struct lk_config *json, const char *key, int64_t value) {
    if (lk_config_has(json, key)) lk_config_expect_int(json, key, value);
    lk_config_ignore(json, key);
}

/* What would change the ids and is not implemented, at the values that switch it off. */
static void expect_off(struct lk_config *json) {
    static const char *const null_keys[] = {"min_p",
                                            "top_h",
                                            "max_time",
                                            "stop_strings",
                                            "bad_words_ids",
                                            "force_words_ids",
                                            "constraints",
                                            "forced_bos_token_id",
                                            "forced_eos_token_id",
                                            "exponential_decay_length_penalty",
                                            "suppress_tokens",
                                            "begin_suppress_tokens",
                                            "sequence_bias",
                                            "watermarking_config",
                                            "penalty_alpha",
                                            "dola_layers",
                                            "prompt_lookup_num_tokens"};
    static const char *const zero_keys[] = {"min_length",       "min_new_tokens", "no_repeat_ngram_size",
                                            "epsilon_cutoff",   "eta_cutoff",     "encoder_no_repeat_ngram_size",
                                            "diversity_penalty"};
    static const char *const one_keys[] = {
        "num_beams",     "num_beam_groups", "num_return_sequences", "typical_p", "encoder_repetition_penalty",
        "guidance_scale"};
    static const char *const false_keys[] = {"remove_invalid_values", "renormalize_logits", "token_healing", "use_mtp",
                                             "is_assistant"};
    for (size_t i = 0; i < sizeof null_keys / sizeof *null_keys; i++) lk_config_expect_null(json, null_keys[i]);
    for (size_t i = 0; i < sizeof zero_keys / sizeof *zero_keys; i++) expect_int_or_null(json, zero_keys[i], 0);
    for (size_t i = 0; i < sizeof one_keys / sizeof *one_keys; i++) expect_int_or_null(json, one_keys[i], 1);
    for (size_t i = 0; i < sizeof false_keys / sizeof *false_keys; i++) {
        if (lk_config_has(json, false_keys[i])) lk_config_expect_bool(json, false_keys[i], false);
        lk_config_ignore(json, false_keys[i]);
    }
}

static void read_stop_ids(struct lk_config *json, struct lk_generation_config *c) {
    if (lk_config_has(json, "eos_token_id"))
        lk_config_int_or_ints(json, "eos_token_id", c->stop_ids, LK_MAX_STOP_IDS, &c->n_stop_ids);
    lk_config_ignore(json, "eos_token_id");
    for (size_t i = 0; i < c->n_stop_ids; i++)
        if (c->stop_ids[i] < 0 || c->stop_ids[i] > MAX_ID)
            lk_config_problem(json, "eos_token_id", LK_E_CONFIG_VALUE, "expected ids of 0 to %d, got %lld", MAX_ID,
                              (long long)c->stop_ids[i]);
}

enum lk_code lk_generation_config_read(struct lk_generation_config *out, struct lk_config *json) {
    struct lk_generation_config c;
    lk_generation_config_init(&c);
    ignore_inert(json);
    expect_off(json);
    lk_config_bool_or(json, "do_sample", &c.do_sample, c.do_sample);
    lk_config_number_or(json, "temperature", &c.temperature, c.temperature, 0, MAX_TEMPERATURE);
    if (c.do_sample && c.temperature < MIN_TEMPERATURE)
        lk_config_problem(json, "temperature", LK_E_CONFIG_VALUE,
                          "expected at least %g with \"do_sample\": true, got %g", MIN_TEMPERATURE, c.temperature);
    lk_config_int_or(json, "top_k", &c.top_k, c.top_k, 0, MAX_ID);
    lk_config_number_or(json, "top_p", &c.top_p, c.top_p, 0, 1);
    lk_config_number_or(json, "repetition_penalty", &c.repetition_penalty, c.repetition_penalty, MIN_PENALTY,
                        MAX_PENALTY);
    lk_config_int_or(json, "max_new_tokens", &c.max_new_tokens, 0, 1, MAX_TOKENS);
    lk_config_int_or(json, "max_length", &c.max_length, 0, 1, MAX_TOKENS);
    lk_config_int_or(json, "bos_token_id", &c.bos_token_id, -1, 0, MAX_ID);
    lk_config_int_or(json, "pad_token_id", &c.pad_token_id, -1, 0, MAX_ID);
    read_stop_ids(json, &c);
    *out = c;
    return lk_config_close(json);
}

static enum lk_code check_range(const char *name, double value, double min, double max) {
    if (value >= min && value <= max) return LK_OK;
    return lk_fail(LK_E_USAGE, "%s: expected %g to %g, got %g", name, min, max, value);
}

enum lk_code lk_generation_config_check(const struct lk_generation_config *c) {
    if (c->do_sample) LK_TRY(check_range("temperature", c->temperature, MIN_TEMPERATURE, MAX_TEMPERATURE));
    LK_TRY(check_range("top_k", (double)c->top_k, 0, MAX_ID));
    LK_TRY(check_range("top_p", c->top_p, 0, 1));
    LK_TRY(check_range("repetition_penalty", c->repetition_penalty, MIN_PENALTY, MAX_PENALTY));
    return check_range("max_new_tokens", (double)c->max_new_tokens, 0, MAX_TOKENS);
}
