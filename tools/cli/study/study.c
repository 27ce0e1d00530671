#include "tools/cli/study/runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "engine/base/log.h"
#include "engine/image/image.h"
#include "eval/design/selection.h"
#include "eval/scores/dataset.h"
#include "tools/cli/audit/audit.h"
#include "tools/cli/cli.h"

/* The choice of a study's sources: candidate pools, the final set, its check. */

enum { MAX_TABLE_BYTES = 1 << 28 };

enum lk_code study_pools(const struct cli_arguments *a) {
    struct lk_text lines = {0};
    char *text;
    size_t n;
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "study pools: expected a table of file, age, gender and race");
    LK_TRY(lk_read_file(a->more[0], MAX_TABLE_BYTES, &text, &n));
    enum lk_code rc = lk_pools_draw(text, n, a->more[0], (uint64_t)a->report.study_seed, &lines);
    if (!rc) rc = cli_output_write(a, &lines);
    lk_text_free(&lines);
    lk_free(text);
    return rc;
}

enum lk_code study_selection_open(const char *pools, const char *action, struct lk_selection **out) {
    *out = NULL;
    if (!pools) return lk_fail(LK_E_USAGE, "%s: expected the file that 'study pools' wrote", action);
    const char *slash = strrchr(pools, '/');
    char *log = lk_format("%.*s%s", slash ? (int)(slash - pools) + 1 : 0, pools, "selection_log.jsonl");
    if (!log) return lk_fail(LK_E_NOMEM, "%s: out of memory", action);
    enum lk_code rc = lk_selection_open(out, pools, log);
    lk_free(log);
    return rc;
}

/* A folder source/ that no final set is in may hold the candidates themselves. */
static enum lk_code check_set(const struct cli_arguments *a) {
    char *sources = lk_format("%s/source", a->output), *manifest = lk_format("%s/source_manifest.json", a->output);
    enum lk_code rc = sources && manifest ? LK_OK : lk_fail(LK_E_NOMEM, "study finalize: out of memory");
    if (!rc && !a->overwrite && !access(sources, F_OK) && access(manifest, F_OK))
        rc = lk_fail(LK_E_USAGE,
                     "--output: %s: has a folder source without a source_manifest.json; name another folder, "
                     "or replace its pictures with --overwrite",
                     a->output);
    lk_free(sources);
    lk_free(manifest);
    return rc;
}

enum lk_code study_finalize(const struct cli_arguments *a) {
    struct lk_selection *selection;
    struct lk_text summary = {0};
    if (!a->output) return lk_fail(LK_E_USAGE, "study finalize: expected -o DIR");
    LK_TRY(check_set(a));
    LK_TRY(study_selection_open(a->more[0], "study finalize", &selection));
    enum lk_code rc = lk_selection_finalize(selection, a->output, &summary);
    if (!rc) fwrite(summary.bytes, 1, summary.n, stdout);
    lk_text_free(&summary);
    lk_selection_close(selection);
    return rc;
}

enum lk_code study_validate(const struct cli_arguments *a) {
    struct lk_text summary = {0};
    if (!a->more[0]) return lk_fail(LK_E_USAGE, "study validate: expected a source_manifest.json");
    enum lk_code rc = lk_source_manifest_validate(a->more[0], &summary);
    if (!rc) fwrite(summary.bytes, 1, summary.n, stdout);
    lk_text_free(&summary);
    return rc;
}

/* The study as one file: made and checked. */

void study_warn_of_leaks(const struct lk_study *study) {
    char source[64];
    const size_t n = lk_study_leaks(study, source);
    if (n)
        lk_log(
            LK_LOG_WARNING,
            "feature prompts that name a demographic group: %zu, the first of %s; the editor is told whom the picture "
            "shows: reword them, or say so where the edits are reported",
            n, source);
}

static void warn_of_colours(const struct lk_study *study) {
    char profile[LK_IMAGE_PROFILE_NAME];
    const char *first;
    const size_t n = lk_study_other_colours(study, &first, profile);
    if (n)
        lk_log(LK_LOG_WARNING,
               "pictures with another colour profile than sRGB: %zu, the first %s (\"%s\"); they are converted to "
               "sRGB, skin too",
               n, first, profile);
}

static void warn_of_unseen(const struct lk_study *study) {
    const char *first, *what;
    const size_t n = lk_study_unseen(study, &first, &what);
    if (n) lk_log(LK_LOG_WARNING, "pictures that models do not see whole: %zu, the first %s has %s", n, first, what);
}

static void warn_of_pairs(const struct lk_study *study) {
    const char *key = lk_study_paired_elsewhere(study);
    if (key)
        lk_log(LK_LOG_WARNING,
               "experiments.%s: its pairs are compared with the edits of another run, which report gets with a second "
               "--from; without such a run say \"baseline\": \"make\"",
               key);
}

static void warn_of_few_sources(const struct lk_study *study) {
    const char *attribute, *level;
    int n;
    const int n_few = lk_study_few_sources(study, &attribute, &level, &n);
    if (n_few)
        lk_log(LK_LOG_WARNING,
               "attributes of which the report will not speak: %d, the first %s: level %s has %d source%s, and %d are "
               "needed",
               n_few, attribute, level, n, n == 1 ? "" : "s", LK_LEAST_SOURCES);
}

static enum lk_code warn_of_same_models(const struct lk_study *study) {
    struct lk_text text = {0};
    enum lk_code rc = lk_study_same_models(study, &text);
    for (const char *at = text.bytes; !rc && at && *at; at += strcspn(at, "\n") + 1)
        lk_log(LK_LOG_WARNING, "%.*s", (int)strcspn(at, "\n"), at);
    lk_text_free(&text);
    return rc;
}

static enum lk_code check(const struct cli_arguments *a, const struct lk_study *study, struct lk_text *text,
                          size_t *n) {
    enum lk_code rc = lk_study_check(study, text, n);
    study_warn_of_leaks(study);
    warn_of_colours(study);
    warn_of_unseen(study);
    warn_of_pairs(study);
    if (!lk_study_is_documented(study)) warn_of_few_sources(study);
    if (!rc) rc = warn_of_same_models(study);
    if (rc || !*n) return rc ? rc : study_can_run(a, study);
    if (!study_can_run(a, study) || strstr(text->bytes, lk_error_text())) return LK_OK;
    lk_text_add(text, "%s\n", lk_error_text());
    ++*n;
    return text->rc;
}

enum lk_code study_check(const struct cli_arguments *a) {
    struct lk_study *study;
    struct lk_text text = {0};
    size_t n = 0;
    enum lk_code rc = lk_study_open_listing(&study, a->more[0], &text, &n);
    const enum lk_code unread = study ? LK_OK : rc;
    if (!rc) rc = check(a, study, &text, &n);
    if (n && (!rc || unread)) {
        fwrite(text.bytes, 1, text.n, stdout);
        rc = lk_fail(unread ? unread : LK_E_INPUT, "%s: %zu problem%s, the first: %.*s", a->more[0], n,
                     n == 1 ? "" : "s", (int)strcspn(text.bytes, "\n"), text.bytes);
    }
    if (!rc)
        printf("%s: %zu jobs, configuration %s\n", lk_study_name(study), lk_study_n_jobs(study), lk_study_hash(study));
    lk_text_free(&text);
    lk_study_close(study);
    return rc;
}

enum lk_code study_new(const struct cli_arguments *a) {
    struct lk_text text = {0};
    struct lk_text tables = {0};
    enum lk_code rc = lk_study_template(a->study.template, &text);
    if (!rc) rc = lk_study_tables(text.bytes, text.n, &tables);
    if (!rc) rc = cli_output_write(a, &text);
    for (const char *at = tables.bytes; !rc && at && *at; at += strcspn(at, "\n") + 1)
        lk_log(LK_LOG_INFO, "%.*s", (int)strcspn(at, "\n"), at);
    lk_text_free(&tables);
    lk_text_free(&text);
    return rc;
}

/* Two runs of different settings are not pooled unless the user says so. */
enum lk_code study_compare(const struct cli_arguments *a, struct lk_study *study) {
    struct lk_study *other;
    struct lk_text text = {0};
    size_t n = 0;
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

enum lk_code study_prompts_of(const struct cli_arguments *a) {
    struct lk_study *study = NULL;
    if (a->more[0]) LK_TRY(lk_study_open(&study, a->more[0]));
    enum lk_code rc = study_prompts(a, study);
    lk_study_close(study);
    return rc;
}

enum lk_code study_run_all(const struct cli_arguments *a, struct lk_study *study) {
    struct cli_arguments judging = *a;
    struct lk_error made = {0};
    if (a->study.all && a->study.shard)
        return lk_fail(LK_E_USAGE, "--all: goes without --shard: judge the pictures when the shards are merged");
    for (int slot = 0; a->study.all && slot < LK_N_JUDGES; slot++) LK_TRY(lk_study_check_judge(study, slot));
    enum lk_code rc = study_run(a, study);
    if (!a->study.all || (rc && rc != LK_E_PARTIAL)) return rc;
    if (rc) lk_error_get(&made, rc); /* what was made is judged all the same */
    judging.report.runs = (struct cli_list){{a->output}, 1};
    judging.report.study_file = a->more[0];
    judging.output = NULL;
    rc = cli_judge_study(&judging);
    return rc || !made.code ? rc : lk_error_set(&made);
}

enum lk_code cli_study(const struct cli_arguments *a) {
    struct lk_study *study;
    if (a->verb->run) return a->verb->run(a);
    LK_TRY(lk_study_open(&study, a->more[0]));
    enum lk_code rc = a->verb->with_study(a, study);
    lk_study_close(study);
    return rc;
}
