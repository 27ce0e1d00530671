/* The table of a study file's settings. Private to eval/design. */
#pragma once

#include "eval/design/internal.h"

/* TABLE: the name of a file, or the table itself. */
enum kind { TEXT, FILE_NAME, TABLE, CHOICE, INT, NUMBER, FLAG, LIST, OBJECT };

struct setting {
    const char *key;
    enum kind kind;
    const char *choices;   /* "full|custom" */
    const char *otherwise; /* the default; NULL: none */
    double min, max;
    size_t offset;
    const char *help;
};

/* Each ends with a key of NULL. */
extern const struct setting lk_study_settings[];
extern const struct setting *const lk_experiment_settings[LK_N_EXPERIMENTS];
extern const struct setting lk_analysis_settings[], lk_model_settings[], lk_hosted_settings[], lk_rewrite_settings[],
    lk_drawn_settings[];
/* A key of "analysis" that version 1 had, and that nothing reads. */
bool lk_study_has_no_effect(const char *key);
/* The members of "analysis"; defaults without a study. */
void lk_study_write_analysis(const struct lk_study *s, struct lk_text *out);
