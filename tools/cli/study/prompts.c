/* The prompts that a study may use: as a table, as texts, by group, and what is to be known of the 50 sentences. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/document/table_print.h"
#include "eval/study/prompts.h"
#include "tools/cli/study/study.h"

enum { N_BUILTIN = LK_N_EDIT_PROMPTS + LK_N_W_PROMPTS };

/* The 70 of the program, then the study's own. */
struct table {
    struct lk_prompts builtin;
    const struct lk_study *study; /* NULL: none is named */
    const struct lk_study_prompt *own;
    size_t n_own;
    bool *chosen;
};

static const struct lk_prompt *builtin_of(const struct table *t, size_t i) {
    return i < LK_N_EDIT_PROMPTS ? &t->builtin.edit[i] : i < N_BUILTIN ? &t->builtin.w[i - LK_N_EDIT_PROMPTS] : NULL;
}

static const char *category_of(const struct lk_prompt *p) {
    return p->category < 0 ? "W" : lk_factor_key(LK_FACTOR_CATEGORY, p->category);
}

static bool is_word(const char *word, size_t n, const char *text) {
    return strlen(text) == n && !memcmp(text, word, n);
}

/* Ids in any spelling, or categories, with commas between; NULL: all. */
static enum lk_code choose(struct table *t, const char *ids) {
    for (size_t i = 0; i < N_BUILTIN + t->n_own && !ids; i++) t->chosen[i] = true;
    for (const char *at = ids; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ",");
        bool found = false;
        for (size_t i = 0; i < N_BUILTIN + t->n_own; i++) {
            const struct lk_prompt *p = builtin_of(t, i);
            const struct lk_study_prompt *own = p ? NULL : &t->own[i - N_BUILTIN];
            if (p ? lk_prompt_parse(at, n) == (int)i || is_word(at, n, category_of(p))
                  : is_word(at, n, own->id) || is_word(at, n, own->category))
                found = t->chosen[i] = true;
        }
        char own[300] = "those of the study's own prompts";
        if (t->n_own) lk_study_list_prompts(t->study, own);
        if (!found)
            return lk_fail(LK_E_INPUT,
                           "--ids: no data for \"%.*s\": expected ids as O-01, catB_001 or W-01, categories as O,V, or "
                           "%s",
                           n > 40 ? 40 : (int)n, at, own);
    }
    return LK_OK;
}

static void print_row(const char *const cells[10]) {
    struct lk_text text = {0};
    for (int c = 0; c < 10; c++) {
        lk_print_csv_field(&text, cells[c] ? cells[c] : "", "");
        lk_text_add(&text, c < 9 ? "," : "\n");
    }
    if (!text.rc) fwrite(text.bytes, 1, text.n, stdout);
    lk_text_free(&text);
}

static void print_table(const struct table *t) {
    static const char *const header[10] = {
        "id",     "legacy_id",        "category",   "subcategory",    "subcategory_by_content",
        "target", "other_occupation", "stereotype", "gendered_words", "text"};
    print_row(header);
    for (size_t i = 0; i < N_BUILTIN + t->n_own; i++) {
        const struct lk_prompt *p = builtin_of(t, i);
        char words[16] = "";
        if (!t->chosen[i]) continue;
        if (!p) {
            const struct lk_study_prompt *own = &t->own[i - N_BUILTIN];
            print_row((const char *const[10]){own->id, "", own->category, own->subcategory_printed,
                                              own->subcategory_content, own->target, "", "", "", own->text});
            continue;
        }
        bool w = i >= LK_N_EDIT_PROMPTS;
        if (w) snprintf(words, sizeof words, "%d", p->n_gendered_words);
        print_row((const char *const[10]){
            p->id, p->legacy_id, category_of(p), p->subcategory_printed, p->subcategory_content, p->target,
            p->other_occupation, w ? lk_factor_key(LK_FACTOR_GENDER, p->stereotype_gender) : "", words, p->text});
    }
}

static const char *group_of(const struct lk_prompt *p, bool content) {
    return content ? p->subcategory_content : p->subcategory_printed;
}

/* "Authority 5: O-01 O-02 ...", in the order of the first of each. */
static void print_groups(const struct table *t, bool content) {
    for (size_t i = 0; i < LK_N_EDIT_PROMPTS; i++) {
        const char *group = group_of(&t->builtin.edit[i], content);
        bool first = true;
        int n = 0;
        for (size_t k = 0; k < LK_N_EDIT_PROMPTS; k++) {
            bool same = t->chosen[k] && !strcmp(group_of(&t->builtin.edit[k], content), group);
            first &= !same || k >= i;
            n += same;
        }
        if (!first || !t->chosen[i]) continue;
        printf("%s %d:", group, n);
        for (size_t k = i; k < LK_N_EDIT_PROMPTS; k++)
            if (t->chosen[k] && !strcmp(group_of(&t->builtin.edit[k], content), group))
                printf(" %s", t->builtin.edit[k].id);
        printf("\n");
    }
}

static void print_sentences(const struct table *t) {
    int n[LK_N_GENDERS] = {0}, targets[LK_N_GENDERS] = {0}, without = 0;
    for (int i = 0; i < LK_N_W_PROMPTS; i++) {
        const struct lk_prompt *p = &t->builtin.w[i];
        bool first = true;
        for (int k = 0; k < i; k++) first &= strcmp(t->builtin.w[k].target, p->target) != 0;
        n[p->stereotype_gender]++;
        targets[p->stereotype_gender] += first;
        without += !p->n_gendered_words;
    }
    printf("sentences %d: %d male-stereotyped, %d female-stereotyped\n", LK_N_W_PROMPTS, n[0], n[1]);
    printf("target occupations: %d male-stereotyped, %d female-stereotyped\n", targets[0], targets[1]);
    printf("without a gendered word %d:", without);
    for (int i = 0; i < LK_N_W_PROMPTS; i++)
        if (!t->builtin.w[i].n_gendered_words) printf(" %s", t->builtin.w[i].id);
    printf("\n");
}

enum lk_code study_prompts(const struct cli_arguments *a, struct lk_study *study) {
    struct table t = {.own = NULL};
    t.study = study;
    if (study) t.own = lk_study_own_prompts(study, &t.n_own);
    LK_TRY(lk_prompts_load(&t.builtin));
    t.chosen = lk_calloc(N_BUILTIN + t.n_own, sizeof *t.chosen);
    enum lk_code rc = t.chosen ? choose(&t, a->study.ids) : lk_fail(LK_E_NOMEM, "study prompts: out of memory");
    for (size_t i = 0; i < N_BUILTIN + t.n_own && !rc && !strcmp(a->study.show, "text"); i++)
        if (t.chosen[i]) puts(builtin_of(&t, i) ? builtin_of(&t, i)->text : t.own[i - N_BUILTIN].text);
    if (!rc && !strcmp(a->study.show, "table")) print_table(&t);
    if (!rc && (!strcmp(a->study.show, "printed") || !strcmp(a->study.show, "content")))
        print_groups(&t, *a->study.show == 'c');
    if (!rc && !strcmp(a->study.show, "sentences")) print_sentences(&t);
    lk_free(t.chosen);
    lk_prompts_free(&t.builtin);
    return rc;
}
