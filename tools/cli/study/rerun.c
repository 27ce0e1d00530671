/* study rerun: a sample of what was made is made again and must come out the same, bit by bit. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/alloc.h"
#include "engine/base/digest.h"
#include "engine/base/log.h"
#include "tools/cli/cli.h"
#include "tools/cli/study/runner.h"

struct made {
    int64_t index;
    char sha256[65];
};

struct all {
    const struct lk_study *study;
    size_t n_hosted;
    struct lk_study_job job;
    char *models[LK_STUDY_MAX_MODELS]; /* what made them; NULL: not noted */
    struct made *made;
    size_t n, capacity;
};

static enum lk_code add(void *context, const struct lk_journal_row *row) {
    struct all *all = context;
    LK_TRY(lk_study_job(all->study, (size_t)row->entry.index, &all->job));
    if (all->job.hosted) {
        all->n_hosted++;
        return LK_OK;
    }
    LK_TRY(lk_grow(&all->made, &all->capacity, all->n + 1, sizeof *all->made));
    struct made *m = &all->made[all->n++];
    m->index = row->entry.index;
    snprintf(m->sha256, sizeof m->sha256, "%s", row->made.sha256);
    return LK_OK;
}

static enum lk_code read_made(const char *folder, const struct lk_study *study, struct all *all) {
    struct lk_journal *journal = NULL;
    char *path = lk_format("%s/journal.sqlite", folder);
    enum lk_code rc = path ? lk_journal_open(&journal, path, NULL) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = study_journal_check(journal, path, study);
    if (!rc) rc = lk_journal_each(journal, LK_JOB_DONE, false, add, all);
    for (int m = 0; m < lk_study_n_models(study) && !rc; m++)
        rc = lk_journal_model(journal, lk_study_model_key(study, m), NULL, &all->models[m]);
    lk_journal_close(journal);
    lk_free(path);
    if (all->n_hosted)
        lk_log(LK_LOG_WARNING, "%zu pictures of hosted models cannot be made again bit by bit: they are left out",
               all->n_hosted);
    if (!rc && !all->n) rc = lk_fail(LK_E_INPUT, "%s: nothing is made yet that can be made again", folder);
    return rc;
}

/* The sample's jobs in the study's order. */
static enum lk_code choose(const struct all *all, const char *sample, struct study_list *list) {
    int32_t *chosen;
    LK_TRY(cli_draw(sample, all->n, "rerun", &chosen, &list->n));
    for (size_t i = 0; i < list->n; i++) list->indexes[i] = all->made[chosen[i]].index;
    lk_free(chosen);
    return LK_OK;
}

/* The journal of the sample asks for the models of the run. */
static enum lk_code note_models(const struct study_list *list, const char *folder, const struct all *all) {
    struct lk_journal *journal = NULL;
    char *path = lk_format("%s/journal.sqlite", folder), *noted;
    enum lk_code rc = path ? study_journal_open(path, list, &journal) : lk_fail(LK_E_NOMEM, "out of memory");
    for (int m = 0; m < lk_study_n_models(list->study) && !rc; m++) {
        if (!all->models[m]) continue;
        rc = lk_journal_model(journal, lk_study_model_key(list->study, m), all->models[m], &noted);
        lk_free(noted);
    }
    lk_journal_close(journal);
    lk_free(path);
    return rc;
}

struct compared {
    const struct all *all;
    const char *run, *folder;
    size_t at, n, n_other;
};

/* The file in the run is what was recorded; another one, or none, is not what was made. */
static bool is_recorded(const char *path, const char *sha256) {
    char now[65];
    return !lk_digest_file(LK_DIGEST_SHA256, path, now) && !strcmp(now, sha256);
}

static enum lk_code compare(void *context, const struct lk_journal_row *row) {
    struct compared *c = context;
    while (c->all->made[c->at].index != row->entry.index) c->at++;
    bool same = !strcmp(c->all->made[c->at].sha256, row->made.sha256);
    char *path = lk_format("%s/results/%s", c->folder, row->entry.output);
    char *first = lk_format("%s/results/%s", c->run, row->entry.output);
    enum lk_code rc = path && first ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    const bool kept = !rc && is_recorded(first, c->all->made[c->at].sha256);
    c->n++;
    c->n_other += !same || !kept;
    if (!same && !rc) printf("%s: differs, see %s\n", row->entry.name, path);
    if (!kept && !rc) printf("%s: %s: gone, or another picture than was recorded\n", row->entry.name, first);
    if (same && !rc) unlink(path);
    lk_free(path);
    lk_free(first);
    return rc;
}

static enum lk_code compare_all(const char *run, const char *folder, const struct all *all) {
    struct lk_journal *journal;
    struct compared c = {.all = all, .run = run, .folder = folder};
    char *path = lk_format("%s/journal.sqlite", folder);
    enum lk_code rc = path ? lk_journal_open(&journal, path, NULL) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) {
        rc = lk_journal_each(journal, LK_JOB_DONE, false, compare, &c);
        lk_journal_close(journal);
    }
    if (!rc) unlink(path); /* the next sample begins anew */
    lk_free(path);
    if (rc) return rc;
    printf("%zu pictures made again, %zu differ\n", c.n, c.n_other);
    return c.n_other ? lk_fail(LK_E_CHECKSUM, "%s: %zu of %zu pictures made again differ, named above", folder,
                               c.n_other, c.n)
                     : LK_OK;
}

enum lk_code study_rerun(const struct cli_arguments *a, struct lk_study *study) {
    struct all all = {.study = study};
    struct study_list list;
    if (!a->output) return lk_fail(LK_E_USAGE, "--output: missing; usage: likeness study rerun STUDY.json -o DIR");
    LK_TRY(study_list_make(&list, study, NULL));
    char *folder = lk_format("%s/rerun", a->output);
    enum lk_code rc = folder ? read_made(a->output, study, &all) : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) rc = choose(&all, a->study.sample ? a->study.sample : "1%", &list);
    if (!rc) rc = study_folders_make(folder);
    if (!rc) rc = note_models(&list, folder, &all);
    if (!rc) rc = study_run_list(a, &list, folder, folder);
    if (!rc) rc = compare_all(a->output, folder, &all);
    lk_free(folder);
    lk_free(all.made);
    for (int m = 0; m < LK_STUDY_MAX_MODELS; m++) lk_free(all.models[m]);
    study_list_free(&list);
    return rc;
}
