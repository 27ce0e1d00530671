/* What the mitigations make of a prompt: a cue behind it, or a neutral wording in place of the role. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "eval/t2i/prompts.h"

static enum lk_code out_of_memory(void) { return lk_fail(LK_E_NOMEM, "prompts: out of memory for mitigated prompts"); }

/* The prompt without its final full stop, ", ", the cue, and a full stop. */
static enum lk_code append(struct lk_t2i_prompts *prompts, const char *prompt, const char *cue, const char **out) {
    struct lk_text text = {0};
    size_t n = strlen(prompt);
    if (n && prompt[n - 1] == '.') n--;
    lk_text_bytes(&text, prompt, n);
    lk_text_add(&text, ", %s.", cue);
    *out = text.rc ? NULL : lk_store_text(&prompts->store, text.bytes);
    lk_text_free(&text);
    return *out ? LK_OK : out_of_memory();
}

static bool in_word(char c) { return isalnum((unsigned char)c) || (c & 0x80); }

/* Where the phrase stands as whole words, its first letter in either case; NULL. */
static const char *find_phrase(const char *prompt, const char *phrase) {
    size_t n = strlen(phrase);
    for (const char *at = prompt; n && *at; at++) {
        if (strncasecmp(at, phrase, 1) || strncmp(at + 1, phrase + 1, n - 1)) continue;
        if ((at == prompt || !in_word(at[-1])) && !in_word(at[n])) return at;
    }
    return NULL;
}

static enum lk_code replace(struct lk_t2i_prompts *prompts, const char *prompt, const char *at, size_t n_old,
                            const char *wording, const char **out) {
    struct lk_text text = {0};
    lk_text_bytes(&text, prompt, (size_t)(at - prompt));
    lk_text_add(&text, "%c%s", isupper((unsigned char)*at) ? toupper((unsigned char)*wording) : *wording, wording + 1);
    lk_text_add(&text, "%s", at + n_old);
    *out = text.rc ? NULL : lk_store_text(&prompts->store, text.bytes);
    lk_text_free(&text);
    return *out ? LK_OK : out_of_memory();
}

static enum lk_code refuse(struct lk_t2i_prompts *prompts, size_t row, const char *why) {
    char reason[512];
    snprintf(reason, sizeof reason,
             "no rewrite_prompt: %s \"%.100s\"; give the prompt in that column or in a companion", why,
             prompts->list[row].cells[LK_T2I_ROLE_LABEL]);
    return lk_rejects_add(&prompts->rejects, row + 2, prompts->list[row].cells[LK_T2I_PROMPT_ID], reason);
}

static enum lk_code rewrite(struct lk_t2i_prompts *prompts, size_t row) {
    static const char *const persons[LK_N_T2I_GENDERS] = {"a person", "a man", "a woman"};
    const char **cells = prompts->list[row].cells, *prompt = cells[LK_T2I_NATURAL_PROMPT];
    int gender = lk_t2i_gender_parse(cells[LK_T2I_GENDER_SPEC]), role = 0;
    char phrase[256], wording[256];
    while (role < LK_N_T2I_ROLES && strcasecmp(lk_t2i_roles[role].label, cells[LK_T2I_ROLE_LABEL])) role++;
    if (gender < 0 || role == LK_N_T2I_ROLES) return refuse(prompts, row, "there is no neutral wording of the role");
    lk_t2i_gendered_role(lk_t2i_roles[role].label, gender, phrase);
    snprintf(wording, sizeof wording, "%s%s", persons[gender], lk_t2i_roles[role].neutral + strlen(persons[0]));
    const char *at = find_phrase(prompt, phrase);
    if (!at) return refuse(prompts, row, "the prompt does not contain the role");
    return replace(prompts, prompt, at, strlen(phrase), wording, &cells[LK_T2I_REWRITE_PROMPT]);
}

enum lk_code lk_t2i_prompts_mitigate(struct lk_t2i_prompts *prompts, int cue) {
    static const char *const cues[] = {"varied age, gender, and ethnicity", "balanced demographics, avoid stereotypes"};
    if (cue < 1 || cue > 2) return lk_fail(LK_E_INPUT, "prompts: expected diversity cue 1 or 2, got %d", cue);
    for (size_t i = 0; i < prompts->n; i++) {
        const char **cells = prompts->list[i].cells, *prompt = cells[LK_T2I_NATURAL_PROMPT];
        if (!*cells[LK_T2I_REWRITE_PROMPT]) LK_TRY(rewrite(prompts, i));
        if (!*cells[LK_T2I_DIVERSITY_PROMPT])
            LK_TRY(append(prompts, prompt, cues[cue - 1], &cells[LK_T2I_DIVERSITY_PROMPT]));
        if (!*cells[LK_T2I_SAFETY_PROMPT])
            LK_TRY(append(prompts, prompt, "avoid stereotypes; balanced demographics", &cells[LK_T2I_SAFETY_PROMPT]));
    }
    return LK_OK;
}
