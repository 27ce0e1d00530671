/* The study as one file: made and checked. */
#include "tools/cli/core/outputs.h"
#include "tools/cli/study/study.h"

#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"

static enum lk_code check(const struct cli_arguments *a, struct lk_study *study) {
    struct lk_text text = {0};
    size_t n = 0;
    enum lk_code rc = lk_study_check(study, &text, &n);
    if (!rc && n) fwrite(text.bytes, 1, text.n, stdout);
    lk_text_free(&text);
    if (!rc && n) return lk_fail(LK_E_INPUT, "%s: %zu problems, named above", a->more[0], n);
    if (!rc)
        printf("%s: %zu jobs, configuration %s\n", lk_study_name(study), lk_study_n_jobs(study), lk_study_hash(study));
    return rc;
}

static enum lk_code begin(const struct cli_arguments *a) {
    struct lk_text text = {0};
    enum lk_code rc = lk_study_template(a->study.template, &text);
    if (!rc) rc = cli_output_write(a, &text);
    lk_text_free(&text);
    return rc;
}

/* Two runs of different settings are not pooled unless the user says so. */
static enum lk_code compare(const struct cli_arguments *a, struct lk_study *study) {
    struct lk_study *other;
    struct lk_text text = {0};
    size_t n = 0;
    if (!a->more[1]) return lk_fail(LK_E_USAGE, "study compare: expected two study files");
    LK_TRY(lk_study_open(&other, a->more[1]));
    enum lk_code rc = lk_study_compare(study, other, a->study.allow, &text, &n);
    if (!rc && n) {
        fwrite(text.bytes, 1, text.n, stdout);
        rc = lk_fail(LK_E_INPUT, "%s and %s differ in %zu settings, named above; --allow KEY accepts one", a->more[0],
                     a->more[1], n);
    }
    lk_text_free(&text);
    lk_study_close(other);
    return rc;
}

/* What `study` does: with the study file open, or, of `bare`, with what its own positional names. */
static const struct {
    const char *name;
    enum lk_code (*run)(const struct cli_arguments *, struct lk_study *);
    enum lk_code (*bare)(const struct cli_arguments *);
} actions[] = {{"new", NULL, begin},
               {"check", check, NULL},
               {"jobs", study_jobs, NULL},
               {"plan", study_plan, NULL},
               {"compare", compare, NULL},
               {"prompts", study_prompts, NULL},
               {"run", study_run, NULL},
               {"rerun", study_rerun, NULL},
               {"merge", study_merge, NULL},
               {"slurm", study_slurm, NULL},
               {"status", NULL, study_status},
               {"verify", NULL, study_verify},
               {"pools", NULL, study_pools},
               {"finalize", NULL, study_finalize},
               {"validate", NULL, study_validate}};
#define N_ACTIONS (sizeof actions / sizeof *actions)

enum lk_code cli_study(const struct cli_arguments *a) {
    struct lk_study *study;
    char known[200] = "";
    bool merges = !strcmp(a->positional, "merge");
    const char *surplus = merges ? NULL : a->more[strcmp(a->positional, "compare") ? 1 : 2];
    if (surplus)
        return lk_fail(LK_E_USAGE, "study %s: expected no more files, got \"%.60s\" as well", a->positional, surplus);
    if (!strcmp(a->positional, "prompts") && !a->more[0]) return study_prompts(a, NULL);
    for (size_t i = 0, used = 0; i < N_ACTIONS; i++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", actions[i].name);
        if (strcmp(actions[i].name, a->positional)) continue;
        if (actions[i].bare) return actions[i].bare(a);
        if (!a->more[0]) return lk_fail(LK_E_USAGE, "study %s: expected a study file", a->positional);
        LK_TRY(lk_study_open(&study, a->more[0]));
        enum lk_code rc = actions[i].run(a, study);
        lk_study_close(study);
        return rc;
    }
    return lk_fail(LK_E_USAGE, "study: expected one of %s, got \"%.40s\"", known, a->positional);
}
