/* The study as one file: made and checked. */
#include "tools/cli/study/study.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/atomic_file.h"
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
    if (!rc && a->output)
        rc = lk_atomic_write_file(a->output, text.bytes, text.n);
    else if (!rc)
        fwrite(text.bytes, 1, text.n, stdout);
    lk_text_free(&text);
    return rc;
}

enum lk_code cli_study(const struct cli_arguments *a) {
    static const struct {
        const char *name;
        enum lk_code (*run)(const struct cli_arguments *, struct lk_study *);
    } actions[] = {
        {"check", check}, {"jobs", study_jobs}, {"plan", study_plan}, {"prompts", study_prompts}, {"run", study_run}};
    if (!strcmp(a->positional, "new")) return begin(a);
    if (!strcmp(a->positional, "prompts") && !a->more[0]) return study_prompts(a, NULL);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        struct lk_study *study;
        if (strcmp(actions[i].name, a->positional)) continue;
        if (!a->more[0]) return lk_fail(LK_E_USAGE, "study %s: expected a study file", a->positional);
        LK_TRY(lk_study_open(&study, a->more[0]));
        enum lk_code rc = actions[i].run(a, study);
        lk_study_close(study);
        return rc;
    }
    return lk_fail(LK_E_USAGE, "study: expected new, check, jobs, plan, prompts or run, got \"%.40s\"", a->positional);
}
