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
    if (!rc && n) {
        fwrite(text.bytes, 1, text.n, stdout);
        rc = lk_fail(LK_E_INPUT, "%s: %zu problems, the first: %.*s", a->more[0], n, (int)strcspn(text.bytes, "\n"),
                     text.bytes);
    }
    lk_text_free(&text);
    if (!rc) rc = study_can_run(a, study);
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
        rc = lk_fail(LK_E_INPUT, "%s and %s differ in %zu settings; --allow KEY accepts one, as the first: %.*s",
                     a->more[0], a->more[1], n, (int)strcspn(text.bytes, "\n"), text.bytes);
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
               {"prune", NULL, study_prune},
               {"verify", NULL, study_verify},
               {"pools", NULL, study_pools},
               {"finalize", NULL, study_finalize},
               {"validate", NULL, study_validate}};
#define N_ACTIONS (sizeof actions / sizeof *actions)

static bool has_word(const char *words, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

/* What only some actions read is not passed over by the others. */
static enum lk_code check_arguments(const struct cli_arguments *a) {
    const struct cli_study_arguments *s = &a->study;
    const struct {
        bool given;
        const char *name, *of;
    } options[] = {{s->devices, "devices", "plan run rerun slurm"},
                   {s->shard, "shard", "jobs run"},
                   {s->queue, "queue", "run rerun"},
                   {s->retry_failed, "retry-failed", "run"},
                   {s->send_pictures, "send-pictures", "run"},
                   {s->sample, "sample", "rerun"},
                   {s->requeue, "requeue", "verify"},
                   {s->prefer, "prefer", "merge"},
                   {s->allow, "allow", "compare"},
                   {s->ids, "ids", "prompts"}};
    const bool two = !strcmp(a->positional, "compare"), none = !strcmp(a->positional, "new");
    const char *surplus = strcmp(a->positional, "merge") ? a->more[none ? 0 : two ? 2 : 1] : NULL;
    if (surplus)
        return lk_fail(LK_E_USAGE, "study %s: expected no %sfiles, got \"%.60s\"%s", a->positional, none ? "" : "more ",
                       surplus, none ? "" : " as well");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !has_word(options[i].of, a->positional))
            return lk_fail(LK_E_USAGE, "--%s: not of study %s; it belongs to study %s", options[i].name, a->positional,
                           options[i].of);
    return LK_OK;
}

enum lk_code cli_study(const struct cli_arguments *a) {
    struct lk_study *study;
    char known[200] = "";
    for (size_t i = 0, used = 0; i < N_ACTIONS; i++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", actions[i].name);
        if (strcmp(actions[i].name, a->positional)) continue;
        LK_TRY(check_arguments(a));
        if (actions[i].bare) return actions[i].bare(a);
        if (actions[i].run == study_prompts && !a->more[0]) return study_prompts(a, NULL);
        if (!a->more[0]) return lk_fail(LK_E_USAGE, "study %s: expected a study file", a->positional);
        LK_TRY(lk_study_open(&study, a->more[0]));
        enum lk_code rc = actions[i].run(a, study);
        lk_study_close(study);
        return rc;
    }
    return lk_fail(LK_E_USAGE, "study: expected one of %s, got \"%.40s\"", known, a->positional);
}
