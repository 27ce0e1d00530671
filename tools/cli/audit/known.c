#include "tools/cli/audit/known.h"

#include <unistd.h>

#include "engine/base/alloc.h"

enum lk_code cli_run_study(struct lk_study **study, const char *run, const char *file) {
    *study = NULL;
    if (file) return lk_study_open(study, file);
    char *path = lk_format("%s/study.json", run);
    if (!path) return lk_fail(LK_E_NOMEM, "--from: out of memory");
    enum lk_code rc = access(path, F_OK) ? lk_fail(LK_E_NOT_FOUND,
                                                   "--from %s: expected a folder that 'likeness study run' filled, got "
                                                   "%s",
                                                   run, access(run, F_OK) ? "none" : "one without study.json")
                                         : lk_study_open(study, path);
    lk_free(path);
    return rc;
}

enum lk_code cli_known_study(struct lk_study **study, const struct cli_report_arguments *a) {
    *study = NULL;
    return a->runs.n ? cli_run_study(study, a->runs.values[0], NULL) : LK_OK;
}

enum lk_code cli_known_items(struct lk_dataset *data, const struct lk_study *study) {
    if (!study || lk_study_is_documented(study)) return LK_OK;
    struct lk_study_job *job = lk_malloc(sizeof *job);
    enum lk_code rc = job ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory for the outputs of a study");
    for (size_t i = 0; i < lk_study_n_jobs(study) && !rc; i++) {
        int32_t at;
        rc = lk_study_job(study, i, job);
        if (!rc) rc = lk_dataset_add(data, job->name, (int32_t)i, job->arm, &at);
        if (!rc) data->items[at].prompt = (int16_t)job->prompt->number;
    }
    lk_free(job);
    return rc;
}

bool cli_known_is_made(const char *run, const struct lk_study_job *job) {
    char *path = lk_format("%s/results/%s", run, job->output);
    const bool made = path && !access(path, R_OK);
    lk_free(path);
    return made;
}

enum lk_code cli_known_read(struct lk_dataset *data, const struct cli_report_arguments *a) {
    struct lk_study *study;
    enum lk_code rc = cli_known_study(&study, a);
    if (!rc) rc = cli_known_items(data, study);
    lk_study_close(study);
    return rc;
}
