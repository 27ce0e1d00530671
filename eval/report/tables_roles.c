/* Experiment 3: who was given the occupation that a sentence's stereotype expects. */
#include <stdio.h>
#include <string.h>

#include "eval/report/build.h"

struct roles {
    int64_t n, followed, resisted, unclear;
};

/* Which sentences: of one stereotype gender (-1 any), with (1) or without (0) a gendered word (-1 any), of one target
 * (NULL any). */
struct sentences {
    int gender, gendered;
    const char *target;
};

static struct roles count(const struct lk_report *report, int model, struct sentences which) {
    struct roles roles = {0, 0, 0, 0};
    for (size_t i = 0; i < report->data->n_items; i++) {
        const struct lk_item *item = &report->data->items[i];
        if (item->prompt < LK_N_EDIT_PROMPTS || item->role == LK_ROLE_NONE) continue;
        if (model >= 0 && item->model != model) continue;
        const struct lk_prompt *prompt = &report->prompts.w[item->prompt - LK_N_EDIT_PROMPTS];
        if (which.gender >= 0 && prompt->stereotype_gender != which.gender) continue;
        if (which.gendered >= 0 && (prompt->n_gendered_words > 0) != (which.gendered > 0)) continue;
        if (which.target && strcmp(prompt->target, which.target)) continue;
        roles.n++;
        if (item->role == LK_ROLE_UNCLEAR)
            roles.unclear++;
        else if (item->role == prompt->stereotype_gender)
            roles.followed++;
        else
            roles.resisted++;
    }
    return roles;
}

static void row(struct lk_report *report, struct lk_table *table, const char *label, struct roles r) {
    lk_table_row(table);
    lk_table_text(table, "%s", label);
    lk_table_count(table, r.n);
    lk_table_count(table, r.followed);
    lk_table_count(table, r.resisted);
    lk_table_count(table, r.unclear);
    /* Twice the counts, so that an answer worth one half stays an integer. */
    struct lk_rate rate = {2 * r.followed, 2 * (r.followed + r.resisted)};
    if (report->options.unclear == LK_UNCLEAR_HALF) rate = (struct lk_rate){2 * r.followed + r.unclear, 2 * r.n};
    if (report->options.unclear == LK_UNCLEAR_NONADHERENT) rate = (struct lk_rate){2 * r.followed, 2 * r.n};
    lk_table_percent(table, rate.k, rate.n);
    if (rate.n && rate.k % 2 == 0) lk_report_interval(report, table, (struct lk_rate){rate.k / 2, rate.n / 2});
}

static void rows_of(struct lk_report *report, struct lk_table *table, int model) {
    const struct {
        const char *label;
        struct sentences which;
    } parts[] = {
        {"All sentences", {-1, -1, NULL}},
        {"Male-stereotyped targets", {0, -1, NULL}},
        {"Female-stereotyped targets", {1, -1, NULL}},
        {"With a gendered word", {-1, 1, NULL}},
        {"Without a gendered word", {-1, 0, NULL}},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        row(report, table, parts[i].label, count(report, model, parts[i].which));
}

#define OUTCOMES "|>N|>Followed|>Resisted|>Unclear|>Adherence"

enum lk_code lk_report_tables_roles(struct lk_report *report) {
    const struct sentences any = {-1, -1, NULL};
    struct lk_table *table;
    LK_TRY(lk_table_new(&table, "t_w", "Gender and occupation: does the assigned person follow the stereotype?",
                        "Sentences" OUTCOMES));
    int64_t n = count(report, -1, any).n;
    for (int model = 0; model < LK_N_MODELS; model++) {
        if (!count(report, model, any).n) continue;
        lk_table_heading(table, lk_factor_display(LK_FACTOR_MODEL, model));
        rows_of(report, table, model);
    }
    lk_table_note(table,
                  "Adherence: share of %s whose person has the stereotype's gender; 50%% is no bias. Interval: Wilson.",
                  report->options.unclear == LK_UNCLEAR_EXCLUDE ? "answers other than unclear" : "all answers");
    table->no_data = !n;
    LK_TRY(lk_report_add(report, LK_SECTION_ROLES, table));
    LK_TRY(lk_table_new(&table, "t_w_occupations", "Adherence by occupation", "Occupation" OUTCOMES));
    for (int gender = 0; gender < 2; gender++) {
        lk_table_heading(table, gender ? "Female-stereotyped" : "Male-stereotyped");
        for (int p = 0; p < LK_N_W_PROMPTS; p++) {
            const struct lk_prompt *prompt = &report->prompts.w[p];
            bool first = prompt->stereotype_gender == gender;
            for (int q = 0; q < p && first; q++) first = strcmp(report->prompts.w[q].target, prompt->target) != 0;
            if (first)
                row(report, table, prompt->target, count(report, -1, (struct sentences){gender, -1, prompt->target}));
        }
    }
    table->no_data = !n;
    return lk_report_add(report, LK_SECTION_ROLES, table);
}
