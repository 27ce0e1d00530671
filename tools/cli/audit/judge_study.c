/* The judges that a study names, each asked about the pictures of its run; their answers lie in RUN/judges. */
#include <string.h>
#include <sys/stat.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/design/study.h"
#include "eval/document/files.h"
#include "tools/cli/audit/known.h"
#include "tools/cli/audit/judge.h"

static const char *const slots[] = {"primary", "secondary"};
enum { N_SLOTS = sizeof slots / sizeof *slots };

static char *answers_of(const char *run, int slot) { return lk_format("%s/judges/%s.jsonl", run, slots[slot]); }

char *cli_judge_answers_found(const char *run, int slot) {
    struct stat st;
    char *path = answers_of(run, slot);
    if (path && !stat(path, &st) && S_ISREG(st.st_mode)) return path;
    lk_free(path);
    return NULL;
}

static enum lk_code ask(const struct cli_arguments *a, const struct lk_study_judge *judge, int slot) {
    struct cli_arguments one = *a;
    const char *run = a->report.runs.values[0];
    char *path = answers_of(run, slot), *folder = lk_format("%s/judges", run);
    enum lk_code rc = path && folder ? LK_OK : lk_fail(LK_E_NOMEM, "judge run: out of memory");
    one.model = judge->model;
    one.review.server = judge->openai_url;
    one.review.mode = judge->mode;
    one.review.slot = slots[slot];
    if (!one.output) one.output = path;
    if (!rc && !a->output) rc = lk_document_folder(folder);
    if (!rc) lk_log(LK_LOG_INFO, "the %s judge, %s: %s", slots[slot], judge->model, one.output);
    if (!rc) rc = cli_judge_run(&one);
    lk_free(folder);
    lk_free(path);
    return rc;
}

enum lk_code cli_judge_study(const struct cli_arguments *a) {
    const char *run = a->report.runs.values[0];
    struct lk_study *study = NULL;
    struct lk_error partly = {0};
    int n_asked = 0;
    if (a->output && !a->review.slot)
        return lk_fail(LK_E_USAGE, "--output: goes with --slot; without it the answers lie in %s/judges", run);
    enum lk_code rc = cli_run_study(&study, run, a->report.study_file);
    for (int slot = 0; slot < N_SLOTS && !rc; slot++) {
        const struct lk_study_judge *judge = lk_study_judge(study, slot);
        if (!judge || (a->review.slot && strcmp(a->review.slot, slots[slot]))) continue;
        n_asked++;
        rc = ask(a, judge, slot);
        if (rc != LK_E_PARTIAL) continue;
        lk_error_get(&partly, rc); /* some of its answers are missing: the other judge is asked all the same */
        rc = LK_OK;
    }
    if (!rc && !n_asked)
        rc = lk_fail(LK_E_USAGE,
                     "judge run: %s names no %s%sjudge: give --slot, --model and --output, or the study "
                     "file \"judges\" "
                     "('likeness help study-file')",
                     a->report.study_file ? a->report.study_file : run, a->review.slot ? a->review.slot : "",
                     a->review.slot ? " " : "");
    lk_study_close(study);
    return rc || !partly.code ? rc : lk_error_set(&partly);
}
