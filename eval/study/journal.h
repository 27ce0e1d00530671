/* What is done of a run of many jobs and what is left: one SQLite file that survives a kill at any moment and that
 * several runners may share. A job is queued, leased by a worker, done, failed or refused: a model that is asked over
 * the network said no, which is an answer like a picture.
 *
 *     struct lk_journal *j;
 *     LK_TRY(lk_journal_open(&j, "out/journal.sqlite", &list));   // made from the list when it is not there
 *     while (!(rc = lk_journal_take(j, model, 16, leases, &n, &n_others)) && n)
 *         ... of each: lk_journal_end(j, &leases[k], &made, &kept)
 *     lk_journal_close(j);
 *
 * A lease is a promise with an end: it is over when its time is up, or at once when the worker's process is gone on the
 * same machine. Nothing is counted against a job for it; a supervisor that sees a worker crash tells the journal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/base/text.h"

enum lk_job_state { LK_JOB_QUEUED, LK_JOB_LEASED, LK_JOB_DONE, LK_JOB_FAILED, LK_JOB_REFUSED, LK_JOB_STATES };

#define LK_JOB_ATTEMPTS       3 /* of a job that fails, or that a worker dies of: so many times in all */
#define LK_JOURNAL_MAX_MODELS 64
#define LK_JOURNAL_KEY_BYTES  48

struct lk_journal;

/* A job as the journal knows it. */
struct lk_journal_entry {
    int64_t index; /* in the study */
    const char *id, *name, *output;
    int model; /* below LK_JOURNAL_MAX_MODELS */
};

/* The jobs of a study, or of a shard of it: which of them and in what order. */
struct lk_journal_list {
    const char *study;   /* SHA-256 of its configuration */
    int shard, n_shards; /* 1 of 1: all of it */
    size_t n;
    const char *const *models; /* keys [n_models] */
    int n_models;
    /* Job k of the list; the strings are copied. */
    enum lk_code (*job)(void *context, size_t k, struct lk_journal_entry *out);
    /* The manifest's line of job k, which another study has made: `old` with what this study says of it. */
    enum lk_code (*line)(void *context, size_t k, const char *old, struct lk_text *out);
    void *context;
};

/* list NULL: the file must be there and have its jobs (LK_E_NOT_FOUND), whatever study it is of; it may be one that
 * cannot be written. When it is of another study than the list, it is of the list's from now on: a job that both have,
 * by id and output, keeps its state, the others of the list are queued, and what is made and no longer asked for is
 * kept apart. LK_E_CHANGED when it is of another shard. */
enum lk_code lk_journal_open(struct lk_journal **out, const char *path, const struct lk_journal_list *list);
void lk_journal_close(struct lk_journal *j); /* NULL is allowed */
/* The configuration's SHA-256 that the journal is of. */
const char *lk_journal_study(const struct lk_journal *j);

/* Under which name a process of this machine holds leases. */
#define LK_JOURNAL_OWNER_BYTES 64
void lk_journal_owner(int pid, char out[LK_JOURNAL_OWNER_BYTES]);

struct lk_journal_lease {
    int64_t index;
    int attempts, crashes; /* before this one */
};

/* Jobs of these models [LK_JOURNAL_MAX_MODELS] are taken in the order of their ids from now on, which are digests: that
 * order knows no group of sources. A service that changes while it is asked then changes for all groups alike. */
void lk_journal_shuffle(struct lk_journal *j, const bool *models);
/* Leases up to `most` queued jobs of one model in the study's order: of `model` if it has any, else of the first model
 * that has. A job that a worker died of comes last and alone. *n_others: jobs that other workers hold, which may come
 * back; with *n == 0 and *n_others == 0 the run is over. */
enum lk_code lk_journal_take(struct lk_journal *j, int model, int most, struct lk_journal_lease *out, int *n,
                             int64_t *n_others);
/* All leases of this process last for another while. */
enum lk_code lk_journal_renew(struct lk_journal *j);

/* What came of a job. */
struct lk_journal_made {
    int64_t started_ms; /* since 1970 */
    double seconds;
    const char *stages; /* seconds of each, JSON */
    int64_t peak_bytes;
    const char *sha256; /* of the file; NULL: the job has failed */
    int64_t bytes;
    int code; /* of the failure */
    const char *error;
    const char *line; /* its line in the manifest, without newline */
    bool refused;     /* the model refused, or sent a placeholder (whose sha256 it is): final, asked only once */
};
/* Whether a job that failed so would fail again: what it asks for, its pictures or its numbers are to blame. A file
 * that is not there, or changed under the reader, may be there the next time, as memory and a disk may. */
bool lk_journal_is_final(int code);
/* *kept: false when the lease was lost meanwhile; then another worker has the job and nothing is written. A failed job
 * is queued again until its attempts are used up, unless the failure is final; then its line stays. */
enum lk_code lk_journal_end(struct lk_journal *j, const struct lk_journal_lease *lease,
                            const struct lk_journal_made *made, bool *kept);
/* Leases of this process are queued again: it stops. */
enum lk_code lk_journal_give_back(struct lk_journal *j);
/* Makes the manifest's line of a job that failed. */
typedef enum lk_code lk_journal_line_fn(void *context, int64_t index, const char *error, struct lk_text *out);
/* A worker, by lk_journal_owner, has died in the middle of its jobs, `how` says of what. Each has one crash more; those
 * that have had LK_JOB_ATTEMPTS of them are failed. *n: leases that it held. */
enum lk_code lk_journal_crashed(struct lk_journal *j, const char *owner, const char *how, lk_journal_line_fn *line,
                                void *context, int *n);
/* A job that is done is found to be refused after all: its picture is a filter's. line makes its new line from the old
 * one, which is `error` there. */
enum lk_code lk_journal_relabel(struct lk_journal *j, int64_t index, const char *error, lk_journal_line_fn *line,
                                void *context);
/* A job that is done or failed is to be made again, for instance because its output is lost; -1: all that failed. *n:
 * how many. */
enum lk_code lk_journal_requeue(struct lk_journal *j, int64_t index, int64_t *n);

struct lk_journal_counts {
    int64_t of[LK_JOURNAL_MAX_MODELS][LK_JOB_STATES], all[LK_JOB_STATES], total;
    double seconds[LK_JOURNAL_MAX_MODELS]; /* of all that are done */
    char keys[LK_JOURNAL_MAX_MODELS][LK_JOURNAL_KEY_BYTES];
    int64_t n_gone; /* queued jobs that a worker holds whose process is gone, or whose time is up */
    int64_t n_kept; /* made, and no longer asked for */
};
enum lk_code lk_journal_count(struct lk_journal *j, struct lk_journal_counts *out);

/* A job and what came of it; strings until the function returns. */
struct lk_journal_row {
    struct lk_journal_entry entry;
    enum lk_job_state state;
    int attempts, crashes;
    struct lk_journal_made made;
};
/* All jobs in the study's order, or those in one state (-1: all). with_lines: only those that have one. */
typedef enum lk_code lk_journal_row_fn(void *context, const struct lk_journal_row *row);
enum lk_code lk_journal_each(struct lk_journal *j, int state, bool with_lines, lk_journal_row_fn *row, void *context);
/* Up to `most` jobs that are done, the last one first. */
enum lk_code lk_journal_latest(struct lk_journal *j, int most, lk_journal_row_fn *row, void *context);
/* The job of this index, if the journal has it. */
enum lk_code lk_journal_one(struct lk_journal *j, int64_t index, lk_journal_row_fn *row, void *context);

/* What is made and no longer asked for; their index is below 0. free: those alone whose output no job of the study
 * has. */
enum lk_code lk_journal_each_kept(struct lk_journal *j, bool free, lk_journal_row_fn *row, void *context);
/* What is kept and has the output of a job of the study: what it needs to be put aside. */
struct lk_journal_replaced {
    const char *id, *output, *new_id; /* of what is kept; the job's */
    int64_t bytes;                    /* of what is kept */
    bool made;                        /* the job's picture is */
};
typedef enum lk_code lk_journal_replaced_fn(void *context, const struct lk_journal_replaced *r);
enum lk_code lk_journal_each_replaced(struct lk_journal *j, lk_journal_replaced_fn *row, void *context);
/* Forgets what is no longer asked for, and what made the pictures of models that have none left. */
enum lk_code lk_journal_prune(struct lk_journal *j);

/* What made the pictures of a model, by its key, in the caller's words: `text` stays in the journal unless something is
 * there already. *noted: what is there now, lk_malloc'ed; NULL: nothing. text NULL: only looks. */
enum lk_code lk_journal_model(struct lk_journal *j, const char *key, const char *text, char **noted);

/* Whether the manifest that was written last has all that has happened since. */
enum lk_code lk_journal_manifest_is_current(struct lk_journal *j, bool *current);
/* Before the rows are read for it, and after it has been written. */
enum lk_code lk_journal_manifest_begin(struct lk_journal *j);
enum lk_code lk_journal_manifest_end(struct lk_journal *j);
/* Takes over what another journal, in this file, has done or failed of the same jobs, and what it notes of models. */
enum lk_code lk_journal_merge(struct lk_journal *j, const char *path);
