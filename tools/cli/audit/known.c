#include "tools/cli/audit/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "tools/cli/study/runner.h"

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

static uint64_t first_bits(const char *sha256) {
    char bits[17];
    snprintf(bits, sizeof bits, "%.16s", sha256);
    return strtoull(bits, NULL, 16);
}

static enum lk_code note_picture(void *context, const struct lk_journal_row *row) {
    struct cli_made *made = context;
    const uint64_t bits = row->made.sha256 ? first_bits(row->made.sha256) : 0;
    const size_t before = made->items.n;
    int32_t i;
    LK_TRY(lk_names_number(&made->items, row->entry.name, strlen(row->entry.name), &i));
    LK_TRY(lk_grow(&made->digests, &made->capacity, made->items.n, sizeof *made->digests));
    made->digests[i] = made->items.n > before || made->digests[i] == bits ? bits : 0;
    return LK_OK;
}

static enum lk_code note_pictures(void *made, struct lk_journal *journal, const char *path) {
    (void)path;
    return lk_journal_each(journal, LK_JOB_DONE, false, note_picture, made);
}

enum lk_code cli_made_read(struct cli_made *made, const struct cli_list *runs) {
    enum lk_code rc = LK_OK;
    for (int i = 0; i < runs->n && (!rc || rc == LK_E_NOT_FOUND); i++)
        rc = study_each_journal(runs->values[i], note_pictures, made);
    return rc == LK_E_NOT_FOUND ? LK_OK : rc;
}

bool cli_made_has(const void *made, const char *item_id, const char *sha256) {
    const struct cli_made *m = made;
    char edited[300]; /* as raters' answers leave out that it is the baseline */
    int32_t i = lk_names_find(&m->items, item_id, strlen(item_id));
    snprintf(edited, sizeof edited, "%.250s.edited", item_id);
    if (i < 0) i = lk_names_find(&m->items, edited, strlen(edited));
    return i < 0 || !m->digests[i] || m->digests[i] == first_bits(sha256);
}

void cli_made_free(struct cli_made *made) {
    lk_names_free(&made->items);
    lk_free(made->digests);
    *made = (struct cli_made){0};
}
