/* Running a study: a supervisor, which computes nothing, and workers, each a process with a device of its own that
 * takes jobs from the journal in pieces. In a worker one thread edits, another writes pictures and journal. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "eval/design/study.h"
#include "eval/hosted/images.h"
#include "eval/study/journal.h"
#include "tools/cli/core/options.h"
#include "tools/cli/edit/job.h"

#define STUDY_MAX_WORKERS 64
#define STUDY_MAX_PIECE   64

/* What a worker says of itself, in memory that all share. */
struct study_slot {
    atomic_int model, step, n_steps;
    atomic_llong n_done, parts; /* jobs; millionths of one, of those that are under way */
    atomic_llong step_us, changed_us;
    struct lk_error error; /* why it ended before its time */
};
struct study_shared {
    atomic_int stop; /* the supervisor wants workers to end after the step */
    struct study_slot slots[STUDY_MAX_WORKERS];
};

struct study_run {
    const struct lk_study *study;
    const char *folder, *records; /* pictures go below the one, journal and manifest into the other */
    char *journal;
    struct lk_job_run machine; /* device and threads of a worker come from here */
    uint64_t machine_given;    /* lk_job.given of what the command line says of the machine */
    const char *devices[STUDY_MAX_WORKERS];
    int n_workers;
    int piece, jobs_per_visit; /* 0: by the device */
    struct cli_preview preview;
    bool json;
    int messages; /* a pipe to the supervisor: lines that begin with 'J' (JSON) or 'W' (a warning) */
    struct study_shared *shared;
};

/* Whose seconds are told; the last one is what has no name here. */
enum { STUDY_TRANSFORMER = 4, STUDY_N_STAGES = 7 };
extern const char *const study_stages[STUDY_N_STAGES];

/* A source's id, of the portrait study that of its cell, whether it has a source or not. */
void study_source_name(const struct lk_study *study, int source, char out[64]);

/* Jobs of a study in its order: all, a shard, a sample. */
struct study_list {
    const struct lk_study *study;
    int shard, n_shards;
    int64_t *indexes;
    size_t n;
    struct lk_study_job *job; /* room for one */
};
/* shard: "I/N", NULL: all. LK_E_USAGE for anything else, LK_E_INPUT for a study without jobs. */
enum lk_code study_list_make(struct study_list *list, const struct lk_study *study, const char *shard);
void study_list_free(struct study_list *list);
/* The journal of these jobs, made if it is not there. */
enum lk_code study_journal_open(const char *path, const struct study_list *list, struct lk_journal **out);
/* LK_E_CHANGED unless the journal at `path` is of this study. */
enum lk_code study_journal_check(const struct lk_journal *journal, const char *path, const struct lk_study *study);
/* Calls with the journal of the run in `folder` if it has one of its own, else with each shard's. */
typedef enum lk_code study_journal_fn(void *context, struct lk_journal *journal, const char *path);
enum lk_code study_each_journal(const char *folder, study_journal_fn *fn, void *context);
/* With each shard's alone; *n grows by as many. */
enum lk_code study_each_shard(const char *folder, study_journal_fn *fn, void *context, int *n);
/* What the journals in a run's folder say together. */
enum lk_code study_count(const char *folder, struct lk_journal_counts *out);
/* LK_E_CHANGED when the journal at `path` notes another model: the configs or weights that differ are named. weights:
 * filled in when it notes one. */
enum lk_code study_identity_check(struct lk_journal *journal, const char *path, const char *model,
                                  const struct lk_pipeline *pipeline, char weights[65], bool *noted);
/* LK_E_CHANGED when the study gives a model other adapters than its pictures in the journal at `path` were made with.
 */
enum lk_code study_identity_adapters(struct lk_journal *journal, const char *path, const struct lk_study *study);
/* Notes it with the model's first picture. */
enum lk_code study_identity_note(struct lk_journal *journal, const char *path, const char *model,
                                 const struct lk_pipeline *pipeline, const char *weights);
/* Opens the models that the journal at `path` notes, as the study beside it has them, and checks them; says what is not
 * here. looked_at: what other journals noted and was checked, to be freed by the caller; what is the same is not
 * checked again. */
enum lk_code study_identity_verify(struct lk_journal *journal, const char *path, char *looked_at[LK_STUDY_MAX_MODELS]);
/* LK_E_CONFLICT when two journals note different models. */
enum lk_code study_identity_compare(const char *journal, const char *noted, const char *other_journal,
                                    const char *other, const char *model);
/* The study with all its defaults and tables, as FOLDER/study.json. */
enum lk_code study_resolved_write(const struct lk_study *study, const char *folder);
/* LK_E_IO: somebody took the run's folder away. */
enum lk_code study_moved(const char *folder);
/* A folder and those above it. */
enum lk_code study_folders_make(const char *path);
/* Pictures that are no longer asked for make room for those of jobs of the same name. */
enum lk_code study_put_aside(struct lk_journal *journal, const char *folder);
char *study_kept_path(const char *folder, const char *id, const char *output); /* NULL: no memory */
/* Makes the jobs, with the command line's devices: pictures below `folder`, journal and manifest in `records`, which is
 * there. */
struct cli_arguments;
enum lk_code study_run_list(const struct cli_arguments *a, const struct study_list *list, const char *folder,
                            const char *records);
/* All jobs of a model. */
int64_t study_nominal(const int64_t of[LK_JOB_STATES]);
/* Says what there is of each model; LK_E_PARTIAL when some failed. */
enum lk_code study_conclude(const struct lk_journal_counts *counts, bool json);

/* A job on its way through a worker. */
struct study_job {
    struct lk_journal_lease lease;
    struct lk_study_job study;
    struct lk_job job;         /* complete */
    struct lk_image images[2]; /* borrowed */
    struct lk_recipe_run run;
    struct lk_queued queued;
    struct lk_image_answer answer; /* of a hosted model, the first one */
    struct lk_text repeats;        /* further answers, as JSON with commas between */
    int n_asked, n_refused;        /* answers in all; refusals among them */
    bool asked;                    /* it has an answer, or a fault of its own */
    char *mask;                    /* the file of one that was drawn, with its digest */
    char mask_sha256[65];
    int seed_honoured; /* asked twice with one seed: 1 the same picture, -1 another, 0 not tried */
    double stage_s[STUDY_N_STAGES];
    int n_steps;
    int64_t started_ms;
    struct study_piece *piece;
};

/* masks.c: masks that are drawn for the sources of a model, each a file beside the results, MODEL/SOURCE.png in
 * masks/. */
struct lk_yunet;
struct study_masks {
    struct lk_yunet *net; /* NULL: not open */
};
void study_masks_free(struct study_masks *masks);
/* Draws the job's mask for the source that it has read, and names it in its request. LK_E_INPUT: no face, several. */
enum lk_code study_mask_draw(struct study_masks *masks, const struct study_run *run, struct study_job *job);

/* What is computed together. */
struct study_piece {
    struct study_job jobs[STUDY_MAX_PIECE];
    int n;
    void *worker;
    int n_unwritten; /* with the writer; under its lock */
    int n_done;      /* jobs */
    int steps;       /* of all jobs, that were done */
    double steps_s;
};

/* A model that is asked over the network. */
struct study_hosted;
/* *out is to be closed in any case. */
enum lk_code study_hosted_open(struct study_hosted **out, const struct study_run *run,
                               const struct lk_study_hosted *of);
void study_hosted_close(struct study_hosted *hosted);
/* Asks about n jobs with their pictures. ended: told of each that has an answer or a fault of its own, of an answer as
 * soon as it is there: it is not asked for again, whatever comes of the others. LK_E_IO when nothing more can be asked.
 */
enum lk_code study_hosted_ask(struct study_hosted *hosted, struct study_job *const *jobs, int n,
                              enum lk_code (*tick)(void), void (*ended)(void *context, struct study_job *job),
                              void *context);
/* What the manifest has of the answers of a job: "hosted". */
enum lk_code study_hosted_json(const struct study_job *job, struct lk_text *out);
/* Finds placeholders among what is made: the same picture for different prompts, of edits for different sources. */
enum lk_code study_hosted_compare(const struct lk_study *study, struct lk_journal *journal, const char *folder);
/* LK_E_USAGE when pictures of people would leave this machine without the user's word. */
enum lk_code study_hosted_consent(const struct study_list *list, bool send_pictures);

/* What is shown while workers run. */
struct study_progress {
    int64_t total, before; /* jobs; ended before this run */
    double started_s, shown_s;
};

/* --devices "0,1,cpu": names of devices and their number into run, in memory that *copy keeps. Those that share weights
 * are one worker's: "cuda:0,1". LK_E_USAGE: what is no device, a GPU named twice. */
enum lk_code study_read_devices(struct study_run *run, const char *list, char **copy);
/* The process of worker `slot`: its exit code. */
int study_work(const struct study_run *run, int slot);

struct study_writer {
    const struct study_run *run;
    struct lk_journal *journal;
    const char *offload; /* of the model that is open, for the record; NULL: none */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct study_job *queue[2 * STUDY_MAX_PIECE];
    int first, n;
    bool closing;
    struct lk_error error; /* of the first failure that concerns all jobs; then nothing is written any more */
    bool told_cut;         /* that prompts are cut */
};
enum lk_code study_writer_open(struct study_writer *w, const struct study_run *run, struct lk_journal *journal);
/* A job has its picture or an error (queued.error): the writer frees the result. */
void study_writer_add(struct study_writer *w, struct study_job *job);
/* Until all of a piece, or (NULL) all there is, has been written. */
void study_writer_wait(struct study_writer *w, const struct study_piece *piece);
/* What went wrong, if anything. */
enum lk_code study_writer_error(struct study_writer *w);
void study_writer_close(struct study_writer *w);

/* A job's line of the manifest. */
struct study_outcome {
    const char *sha256, *error, *quantization, *offload, *weights_identity;
    const char *status, *hosted; /* NULL: success or failed; JSON of the answers of a hosted model */
    const char *configs_sha256;  /* over lk_pipeline_configs; NULL as the above: no model was open */
    const char *mask_sha256;     /* of the file of a mask that was drawn; NULL */
    bool masked, kept_exact;     /* as models/pipeline.h has them, with what follows */
    double mask_edited, seam[2];
    int width, height;                       /* 0: no picture */
    int n_cached, n_computed[LK_MAX_CACHES]; /* gates of a step cache, and the steps of each that were computed */
    double seconds;
    int64_t started_ms;
};
enum lk_code study_record(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job,
                          const struct study_outcome *made);
/* The same of a picture whose line, `old`, was written for an earlier version of the study. */
enum lk_code study_record_again(struct lk_text *out, const struct lk_study *study, const struct lk_study_job *job,
                                const char *old);
/* The same of a picture that is found to be a placeholder: a lk_journal_line_fn. */
struct study_relabelled {
    const struct lk_study *study;
    const struct lk_study_job *job;
};
enum lk_code study_record_placeholder(void *relabelled, int64_t index, const char *old, struct lk_text *out);
/* generation_log.csv, as t2i reads it: a picture made from text alone. The column scheduler is empty for the model's
 * own and "file" for a file of the user's. */
extern const char study_log_header[];
void study_log_line(struct lk_text *out, const struct lk_study_job *job, int width, int height, const char *sha256);
/* Lines in the study's order, and the log of pictures from text, unless they are there and current. */
enum lk_code study_manifest_write(const struct lk_study *study, struct lk_journal *journal, const char *folder);

/* Actions of `study`. */
cli_action study_new; /* a file to begin with */
cli_action study_check, study_pools, study_finalize, study_validate;
cli_action study_prompts_of; /* of operand 1, if there is one */
cli_action study_serve_selection;
cli_action study_serve_run;                         /* a run while it goes on */
cli_action study_status, study_prune, study_verify; /* of a run's folder */
cli_action study_bench; /* `bench study STUDY.json RESULT.json...`: the plan from what was measured */
cli_study_action study_plan, study_jobs, study_rewrite, study_run, study_rerun, study_merge, study_slurm, study_k8s;
cli_study_action study_prompts;                         /* study: NULL when no file was given */
cli_study_action study_compare;                         /* with operand 2 */
cli_study_action study_run_all;                         /* with --all its judges too */
void study_warn_of_leaks(const struct lk_study *study); /* feature prompts that name a demographic group */
/* The pools in a file and the log beside it, selection_log.jsonl. action: "study finalize", for messages. */
struct lk_selection;
enum lk_code study_selection_open(const char *pools, const char *action, struct lk_selection **out);
/* LK_E_USAGE when no job of an experiment and model could be made, whatever it is given. */
enum lk_code study_can_run(const struct cli_arguments *arguments, const struct lk_study *study);
