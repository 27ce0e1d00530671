/* Inside of a study. Private to eval/design. */
#pragma once

#include "engine/base/names.h"
#include "engine/base/store.h"
#include "eval/design/study.h"
#include "eval/scores/dataset.h"
#include "eval/scores/feature_prompts.h"
#include "eval/study/prompts.h"
#include "eval/t2i/fair.h"

/* The table of a study file's settings. Private to eval/design. */

/* TABLE: the name of a file, or the table itself. */
enum kind { TEXT, FILE_NAME, TABLE, CHOICE, INT, NUMBER, FLAG, LIST, OBJECT };

struct setting {
    const char *key;
    enum kind kind;
    const char *choices;   /* "full|custom" */
    const char *otherwise; /* the default; NULL: none */
    double min, max;
    size_t offset;
    const char *help;
};

/* Each ends with a key of NULL. */
extern const struct setting lk_study_settings[];
extern const struct setting *const lk_experiment_settings[LK_N_EXPERIMENTS];
extern const struct setting lk_analysis_settings[], lk_model_settings[], lk_hosted_settings[], lk_rewrite_settings[],
    lk_drawn_settings[];
/* A key of "analysis" that version 1 had, and that nothing reads. */
bool lk_study_has_no_effect(const char *key);
/* The members of "analysis"; defaults without a study. */
void lk_study_write_analysis(const struct lk_study *s, struct lk_text *out);

enum { LK_STUDY_MAX_BYTES = 1 << 24 }; /* of a study file or a table that it names */

struct lk_study_list {
    const char **values;
    size_t n;
};

/* "0:9" as numbers, both ends included. */
struct lk_study_seeds {
    bool given;
    int64_t first, last;
};

/* A value of the study file as it stands there; NULL: not given. */
struct lk_study_span {
    const char *text;
    size_t n;
};

/* One entry of "experiments". What a kind of experiment does not have stays at its default. */
struct lk_study_experiment {
    const char *key;
    enum lk_experiment kind;
    const char *preset, *preserve_with, *order, *baseline;
    const char *feature_prompts, *list, *scores, *table; /* files as written; NULL */
    struct lk_study_list models, sources, prompts, arms, cfg;
    int64_t cue;
    const char *seeds; /* "0:9" */
    struct lk_study_seeds range;
    const char *fair, *fair_assign; /* of the arm fair: a file; NULL: gender; and "quota", "draw" or a level; NULL:
                                       quota */
    const char *normalize;          /* of the arm embed_norm: "center", "zscore" or "none"; NULL: "center" */
    bool model[LK_STUDY_MAX_MODELS];
    struct lk_feature_prompts features; /* of pairs */
};

struct lk_study_model {
    const char *key, *label, *family;
    bool allow_steps, allow_cut;
    const char *path, *weights_identity; /* path as it is to be opened */
    const char *written, *seeds;
    struct lk_study_hosted hosted;
    struct lk_study_seeds range; /* instead of the experiment's */
    struct lk_study_adapter adapters[LK_MAX_LORAS];
    int n_adapters;
    struct lk_study_rewriter rewriter;
    const char *mask;            /* a path with {source} in it, or NULL */
    struct lk_study_mask *masks; /* of each source */
    struct lk_study_drawn drawn; /* instead */
    struct lk_job job;
    /* Its parameters as ids of jobs have them, in three parts between which the prompt and the seed stand; text NULL:
     * they are written anew for each job. */
    struct lk_written_parameters {
        const char *text;
        size_t n, gap[2], length[2]; /* where a gap begins, and how long what stands there is */
        bool seed_first;
    } parameters;
};

/* A job before its texts are made. */
struct job_key {
    int8_t experiment, model, arm, swapped;
    int32_t source[2];                   /* -1: none */
    int32_t prompt;                      /* of lk_study.prompts */
    int32_t pair;                        /* of pairs500: 0..499; -1 */
    int32_t seed;                        /* behind the first of the range; -1: the model's own */
    int16_t cfg;                         /* t2i: number in the list; -1 */
    int8_t mitigation;                   /* t2i; -1 */
    int8_t fair_rule;                    /* of the arm fair: its rule, -1: none hits */
    int8_t fair[LK_FAIR_MAX_ATTRIBUTES]; /* and the level of each of its attributes */
    const char *final_prompt;            /* NULL: the prompt's text, or in the preserved arm that there is none */
};

enum { LK_N_ANALYSIS = 24 };

struct lk_study {
    struct lk_store store;
    char *file, *folder; /* absolute folder */
    const char *name, *prompt_scheme, *sources_file, *prompts_file;
    int64_t schema, study_seed;
    const char *analysis[LK_N_ANALYSIS];       /* JSON values, by the table in settings.c */
    struct lk_study_judge judges[LK_N_JUDGES]; /* model NULL: none */
    const char *item_ids;                      /* "portrait" or "plain" */
    const char *attribution;                   /* NULL: none */
    bool portrait;                             /* sources are the 84 cells of the portrait study */
    struct lk_attribute attributes[LK_MAX_ATTRIBUTES];
    int n_attributes;
    struct lk_study_span attributes_given, sources_given, prompts_given; /* inside of the study file */
    struct lk_study_model models[LK_STUDY_MAX_MODELS];
    int n_models;
    struct lk_study_experiment experiments[LK_STUDY_MAX_EXPERIMENTS];
    int n_experiments;
    struct lk_study_source *sources;
    int n_sources;
    size_t sources_capacity;
    struct lk_names source_ids; /* of sources that are no cells */
    struct lk_text lacking;     /* a line for each table that is not there, and each source of a cell that has one */
    size_t n_lacking;
    struct lk_text faults; /* a line for each thing that is wrong with the file or its tables, and the first one's code
                            */
    size_t n_faults;
    enum lk_code fault;
    const char *unpaired; /* the first pairs without their other half, in a line; NULL */
    struct lk_prompts builtin;
    struct lk_study_prompt *prompts; /* 70 of the program, then the user's, then those of t2i */
    size_t n_prompts, prompts_capacity, first_t2i;
    struct lk_names own_ids;
    struct {
        struct lk_names keys; /* lk_study_rewrite_key */
        struct lk_study_rewritten *list;
        size_t capacity;
    } rewrites;
    struct job_key *jobs;
    size_t n_jobs, jobs_capacity;
    struct lk_fair *fair;           /* of t2i's arm of that name; NULL */
    char base_prompts[65];          /* their digest: of t2i's table, where the arm embed_norm depends on them */
    struct lk_text asked, resolved; /* all settings; with the places of models and sources */
    char hash[65];
};

/* "FILE: field "experiments.exp1.preset": ..." */
enum lk_code lk_study_bad(const struct lk_study *s, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Something is wrong, as rc and the last error say: noted, so that the rest is looked at too. LK_OK, or rc where it
 * ends everything (no memory). */
enum lk_code lk_study_note(struct lk_study *s, enum lk_code rc);
/* A path of the study file, absolute or below its folder; NULL when memory is out (message set). */
const char *lk_study_resolve(struct lk_study *s, const char *written);
/* The file of a field, whole: lk_free. */
enum lk_code lk_study_read_file(struct lk_study *s, const char *field, const char *written, char **out, size_t *n);
/* The same; a file that is not there is noted as lacking, and *out is NULL. */

/* What was written, if nothing beside the study file has that name: another folder, or a name in the cache. NULL:
 * LK_E_NOMEM. */
const char *lk_study_found(struct lk_study *s, const char *written);
enum lk_code lk_study_read_optional(struct lk_study *s, const char *field, const char *written, char **out, size_t *n);

/* settings.c: the text of the study file into the study; all settings of a study as text, and their digest. */
enum lk_code lk_study_settings_read(struct lk_study *s, const char *text, size_t n);
void lk_study_order_version_1(struct lk_study *s); /* study.c */
enum lk_code lk_study_settings_write(struct lk_study *s);

/* masks.c: "lora" of a model's entry, as text of the file; the same as a member of the model's object. */
enum lk_code lk_study_read_adapters(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                    size_t n);
void lk_study_write_adapters(const struct lk_study_model *m, bool places, struct lk_text *out);
/* Why the first of them cannot be used; NULL. */
const char *lk_study_adapter_problem(const struct lk_study_model *m);
/* The model from its configs, with the shapes of its adapters. */
enum lk_code lk_study_open_configs(const struct lk_study_model *m, struct lk_pipeline **out);

/* judges.c: "judges" as text of the file; the same as a member of the study's object. */
enum lk_code lk_study_read_judges(struct lk_study *s, const char *text, size_t n);
void lk_study_write_judges(const struct lk_study *s, struct lk_text *out);

/* masks.c: "mask" of a model's entry that is an object; after the sources; the member of the model's object; of a job;
 * LK_OK or why the source's mask is none. */
enum lk_code lk_study_read_drawn(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                 size_t n);
enum lk_code lk_study_find_masks(struct lk_study *s);
void lk_study_write_mask(const struct lk_study *s, const struct lk_study_model *m, bool places, struct lk_text *out);
void lk_study_set_mask(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out);
struct lk_image;
enum lk_code lk_study_check_mask(const struct lk_study *s, const struct lk_study_model *m, int source,
                                 const struct lk_image *image);

/* rewrites.c: "rewrite" of a model's entry as text of the file, the same as a member of the model's object, its files;
 * the lists of rewritten prompts; of a job. */
enum lk_code lk_study_read_rewrite(struct lk_study *s, struct lk_study_model *m, const char *field, const char *text,
                                   size_t n);
void lk_study_write_rewrite(const struct lk_study_model *m, bool places, struct lk_text *out);
enum lk_code lk_study_rewrite_inputs(const struct lk_study *s, lk_study_input_fn *fn, void *context);
enum lk_code lk_study_read_rewrites(struct lk_study *s);
enum lk_code lk_study_set_rewrite(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out);

/* attributes.c: those of the file, or the portrait study's. */
enum lk_code lk_study_read_attributes(struct lk_study *s);
void lk_study_write_attributes(const struct lk_study *s, struct lk_text *out);
/* The level that a text names by key or display, in any letter case; -1. */
int lk_attribute_parse(const struct lk_attribute *attribute, const char *text, size_t n);
/* "0:9" of a field. */
enum lk_code lk_study_read_seeds(const struct lk_study *s, const char *field, const char *text,
                                 struct lk_study_seeds *out);
/* Of a model whose key, path, label and family are as the file has them: where it is opened, how it is displayed and
 * what it is. */
enum lk_code lk_study_complete_names(struct lk_study *s, struct lk_study_model *model);
/* 0..2: a model of the portrait study by its key; -1. */
int lk_study_preset_model(const char *key);
/* What a hosted model must say of itself, checked, and its pixels' share of a job's id. */
enum lk_code lk_study_complete_hosted(struct lk_study *s, struct lk_study_model *model);
void lk_study_write_hosted(const struct lk_study_hosted *hosted, bool places, struct lk_text *out);
int lk_study_find_model(const struct lk_study *s, const char *key);
int32_t lk_study_find_source(const struct lk_study *s, const char *id, size_t n);

enum lk_code lk_study_read_sources(struct lk_study *s);
enum lk_code lk_study_read_prompts(struct lk_study *s);
/* Prompts of the t2i table behind the others, and its jobs. */
enum lk_code lk_study_expand_t2i(struct lk_study *s, int experiment);
void lk_study_name_t2i(const struct lk_study *s, const struct job_key *key, char out[LK_STUDY_NAME_BYTES]);
void lk_study_set_t2i(const struct lk_study *s, const struct job_key *key, struct lk_study_job *out);
/* "fair" of an experiment: {"file": ..., "assign": ...}. */
enum lk_code lk_study_read_fair(struct lk_study *s, struct lk_study_experiment *x, const char *text, size_t n);

enum lk_code lk_study_expand(struct lk_study *s);
/* The seeds of a model's jobs in an experiment; its own come first. */
const struct lk_study_seeds *lk_study_seeds_of(const struct lk_study *s, int experiment, int model);
/* listed.c: pairs whose other half no edit experiment of the study makes, noted as lacking. */
enum lk_code lk_study_find_unpaired(struct lk_study *s);
/* "Black_Male_40s", or as the table of sources has it. */
void lk_study_name_source(const struct lk_study *s, int source, char out[64]);
enum lk_code lk_study_add_job(struct lk_study *s, const struct job_key *key);
/* The models of an experiment: those listed, else those of the study whose family is in `families`. */
enum lk_code lk_study_take_models(struct lk_study *s, int experiment, unsigned families);
/* Pairs as drift or list: -1 into chosen [model][source][prompt] for each pair. */
enum lk_code lk_study_choose_listed(struct lk_study *s, int experiment, int32_t *chosen);
size_t lk_study_cell(const struct lk_study *s, int model, int source, int32_t prompt);
/* The preserved arm's prompt; none where its source has no feature prompt. */
enum lk_code lk_study_make_prompt(struct lk_study *s, struct job_key *key);
/* trim(identity), a full stop if it has none, a space, the prompt as it is: lk_free; NULL when memory is out. */
char *lk_study_prepend(const char *identity, const char *prompt);
/* Index in prompts of an id in any spelling, among those that experiments 1 to 3 use; -1. */
int32_t lk_study_find_prompt(const struct lk_study *s, const char *id);
/* The parameters that decide what is made, as a JSON object. */

/* Writes them once for each model whose jobs differ in prompt and seed alone: a million jobs have ids soon. */
enum lk_code lk_study_keep_parameters(struct lk_study *s);
enum lk_code lk_study_write_parameters(const struct lk_job *job, unsigned families, bool prompt, struct lk_text *out);
