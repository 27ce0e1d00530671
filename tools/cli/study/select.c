/* The choice of a study's sources: candidate pools, the final set, its check. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/file.h"
#include "eval/design/selection.h"
#include "tools/cli/cli.h"
#include "tools/cli/study/study.h"

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
