#include "models/step1x/instructions.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "weights/config.h"
#include "engine/base/digest.h"

static const char *const calls[] = {"rewrite", "describe", "score", "reflect", "score1", "score2"};
static const char *const roles[] = {"system", "user"};
static const char *const placeholders[] = {"{instruction}", "{language}", "{description}", "{score}", "{reason}"};
static const char *const test_values[] = {"make it snow", "英文", "D", "5.0", "R"};

const struct lk_step1x_instruction_rules lk_step1x_released_rules = {{
    {{{0}, "bc13eaa419b56ca0"}, {{1, 3}, "9458537aa11c8887"}},
    {{{0, 1}, "ec8c0afcc07f88bf"}, {{1, 2}, "bfce0d8016c0d2b6"}},
    {{{0}, "045139c403408462"}, {{1, 1, 1}, "587239a217eb38ee"}},
    {{{0}, "98a650d2966a0b43"}, {{1, 0, 0, 1, 1}, "10f07d8407653492"}},
    {{{0}, "823a7992906b603f"}, {{1}, "1c0756098d07c404"}},
    {{{0}, "fdef398702c195d9"}, {{0}, "896e7320ff3b429d"}},
}};

/* The placeholder that text begins with, LK_STEP1X_N_VALUES for none. */
static int placeholder_at(const char *text) {
    int i = 0;
    while (i < LK_STEP1X_N_VALUES && strncmp(text, placeholders[i], strlen(placeholders[i]))) i++;
    return i;
}

enum lk_code lk_step1x_fill(const char *text, const char *const values[LK_STEP1X_N_VALUES], char **out) {
    size_t n = 1;
    for (const char *at = text; *at;) {
        int i = placeholder_at(at);
        n += i < LK_STEP1X_N_VALUES ? strlen(values[i]) : 1;
        at += i < LK_STEP1X_N_VALUES ? strlen(placeholders[i]) : 1;
    }
    char *end = *out = lk_malloc(n);
    if (!end) return lk_fail(LK_E_NOMEM, "instructions: out of memory for %zu bytes", n);
    while (*text) {
        int i = placeholder_at(text);
        if (i < LK_STEP1X_N_VALUES) {
            end = stpcpy(end, values[i]);
            text += strlen(placeholders[i]);
        } else {
            *end++ = *text++;
        }
    }
    *end = 0;
    return LK_OK;
}

static void check_text(struct lk_config *json, const char *key, const char *text,
                       const struct lk_step1x_instruction_rule *rule, const char *filled) {
    int times[LK_STEP1X_N_VALUES + 1] = {0};
    char digest[65];
    for (const char *at = text; *at; at++) times[placeholder_at(at)]++;
    for (int i = 0; i < LK_STEP1X_N_VALUES; i++)
        if (times[i] != rule->times[i])
            lk_config_problem(json, key, LK_E_CHECKSUM, "expected %s %d times, got %d", placeholders[i], rule->times[i],
                              times[i]);
    lk_sha256(filled, strlen(filled), digest);
    if (strncmp(digest, rule->digest, 16))
        lk_config_problem(json, key, LK_E_CHECKSUM,
                          "expected the authors' text, whose SHA-256 with test values begins with %s, got %.16s; "
                          "make the file anew with tests/golden/generate_step1x_thinking.py --prompts",
                          rule->digest, digest);
}

static enum lk_code read_text(struct lk_config *json, const char *key, const struct lk_step1x_instruction_rule *rule,
                              char **out) {
    const char *text = NULL;
    char *filled;
    lk_config_string(json, key, &text);
    if (!text) return LK_OK; /* the problem is recorded */
    *out = lk_strdup(text);
    if (!*out) return lk_fail(LK_E_NOMEM, "instructions: out of memory");
    LK_TRY(lk_step1x_fill(text, test_values, &filled));
    check_text(json, key, text, rule, filled);
    lk_free(filled);
    return LK_OK;
}

static enum lk_code read_texts(struct lk_step1x_instructions *out, struct lk_config *json,
                               const struct lk_step1x_instruction_rules *rules) {
    for (int i = 0; i < LK_STEP1X_N_CALLS; i++) {
        for (int j = 0; j < LK_STEP1X_N_ROLES; j++) {
            char key[32];
            snprintf(key, sizeof key, "%s_%s", calls[i], roles[j]);
            enum lk_code rc = read_text(json, key, &rules->of[i][j], &out->texts[i][j]);
            if (!rc) continue;
            lk_config_discard(json);
            return rc;
        }
    }
    return lk_config_close(json);
}

enum lk_code lk_step1x_instructions_read(struct lk_step1x_instructions *out, const char *path,
                                         const struct lk_step1x_instruction_rules *rules) {
    struct lk_config *json;
    *out = (struct lk_step1x_instructions){0};
    if (!path)
        return lk_fail(LK_E_USAGE,
                       "prompts_file: thinking and reflection need the authors' instructions, which this program does "
                       "not have: a JSON file that tests/golden/generate_step1x_thinking.py --prompts makes from their "
                       "code");
    LK_TRY(lk_config_open(&json, path));
    enum lk_code rc = read_texts(out, json, rules);
    if (rc) lk_step1x_instructions_free(out);
    return rc;
}

void lk_step1x_instructions_free(struct lk_step1x_instructions *instructions) {
    for (int i = 0; i < LK_STEP1X_N_CALLS; i++)
        for (int j = 0; j < LK_STEP1X_N_ROLES; j++) lk_free(instructions->texts[i][j]);
    *instructions = (struct lk_step1x_instructions){0};
}
