/* The text-to-image study's results as files: tables as CSV, JSON, Markdown and LaTeX, and one page with all of them
 * and the figures. The bytes depend on the metrics and these options only. */
#pragma once

#include "eval/document/page.h"
#include "eval/t2i/metrics.h"

struct lk_t2i_report_options {
    const char *title;
    const char *run, *date, *label; /* "" for none; the run is then named by the title */
    bool png;                       /* charts as PNG too */
};

/* folder is made when it is missing: FOLDER/report.html, configuration.json, tables/NAME.csv and so on. */
enum lk_code lk_t2i_report_write(const struct lk_t2i_metrics *metrics, const struct lk_t2i_report_options *options,
                                 const char *folder);

/* The tables; NULL id ends. Each is made by lk_t2i_table. */
enum lk_t2i_table {
    LK_T2I_TABLE_PICTURES,
    LK_T2I_TABLE_ANSWERS,
    LK_T2I_TABLE_REFUSED,
    LK_T2I_TABLE_SHARES_POOLED,
    LK_T2I_TABLE_SPD_POOLED,
    LK_T2I_TABLE_CHANGES_POOLED,
    LK_T2I_TABLE_EFFECTS_POOLED,
    LK_T2I_TABLE_FAIR,
    LK_T2I_TABLE_SHARES,
    LK_T2I_TABLE_SPD,
    LK_T2I_TABLE_CHANGES,
    LK_T2I_TABLE_EFFECTS,
    LK_T2I_TABLE_SENSITIVITY,
    LK_T2I_TABLE_CFG,
    LK_T2I_TABLE_REJECTED,
    LK_N_T2I_TABLES
};
void lk_t2i_fair_rows(struct lk_table *table, const struct lk_t2i_metrics *metrics); /* LK_T2I_TABLE_FAIR */
enum lk_code lk_t2i_table(const struct lk_t2i_metrics *metrics, enum lk_t2i_table which, struct lk_table **out);

/* Figures, each handed to `use` and then freed: heat maps, shares by prompt and group of each model's base pictures;
 * forests, what mitigations change and what CFG changes. */
typedef void (*lk_t2i_use_figure)(void *context, const struct lk_figure *figure);
enum { LK_T2I_HEAT_ROWS = 150 }; /* of more prompts no heat map is drawn */
enum lk_code lk_t2i_figures_heat(const struct lk_t2i_metrics *metrics, lk_t2i_use_figure use, void *context);
enum lk_code lk_t2i_figures_forest(const struct lk_t2i_metrics *metrics, lk_t2i_use_figure use, void *context);
enum lk_code lk_t2i_figures_cfg(const struct lk_t2i_metrics *metrics, lk_t2i_use_figure use, void *context);
