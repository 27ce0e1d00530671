/* A study in one file: sources, prompts, models with their parameters and experiments; and the jobs that it comes to,
 * in fixed order. Nothing here opens a model's weights.
 *
 *     struct lk_study *study;
 *     LK_TRY(lk_study_open(&study, "study.json"));
 *     struct lk_study_job job;
 *     for (size_t i = 0; i < lk_study_n_jobs(study); i++) {
 *         LK_TRY(lk_study_job(study, i, &job));
 *         if (job.problem) continue;                       // it cannot be made: job.problem says why
 *         use(job.name, job.model_path, &job.job);         // job.job.request.prompt is the final prompt
 *     }
 *     lk_study_close(study);
 *
 * The order is experiments, in each of them models, then sources, then prompts, then seeds, all as the file has them.
 * The portrait study's 84 sources stand in the order of factors.h. */
#pragma once

#include "engine/base/text.h"
#include "eval/study/factors.h"
#include "models/face/face_mask.h"
#include "models/parameters.h"

struct lk_study;

enum { LK_STUDY_MAX_MODELS = 64, LK_STUDY_MAX_EXPERIMENTS = 16, LK_MAX_ATTRIBUTES = 16, LK_MAX_LEVELS = 100 };

/* Kinds of experiments: edits of a source, pairs of an edit without and with a prompt that keeps the person, edits of
 * two sources, pictures from text alone. */
enum lk_experiment { LK_EXP1, LK_EXP2, LK_EXP3, LK_EXP_T2I, LK_N_EXPERIMENTS };
const char *lk_experiment_key(int kind);  /* how the documents name an experiment of the kind: "exp1" .. "t2i" */
const char *lk_experiment_kind(int kind); /* "edit", "pair", "composite", "t2i" */

/* What sources differ in: "race", "skin_type". Levels are in the order of every table. */
struct lk_attribute {
    const char *name, *display;
    bool ordered;
    int n;
    const char **keys, **displays; /* [n] */
    /* Groups of another attribute's levels, as age groups of ages: which, and the group of each of its levels. Sources
     * have no column of it. NULL: it stands for itself. */
    const struct lk_attribute *of;
    const int8_t *group;
};

/* The models of the portrait study, by their level of LK_FACTOR_MODEL: family as lk_pipeline_family has it. */
const char *lk_preset_family(int model); /* "flux2-dev" */

/* A prompt of the study: one of the 70 that the program has, of the user's own set, or of the t2i table. */
struct lk_study_prompt {
    const char *id;                                        /* "O-01"; as it is named in this study's scheme */
    const char *text;                                      /* byte for byte */
    const char *category;                                  /* "O", "V", "W", or the user's word */
    const char *subcategory_printed, *subcategory_content; /* "" where there is none */
    const char *target;                                    /* "" where there is none */
    int number;                                            /* lk_prompt_parse; -1 of a user's own */
};

/* An adapter (LoRA) of a model's transformer; those of one model are applied in their order. */
struct lk_study_adapter {
    const char *file; /* as opened: a path, or ORG/NAME[@REVISION][:FILE] */
    double scale;
    char sha256[65], found[65]; /* that the study asks for, else the file's; the file's. "": not known */
    const char *problem;        /* why it cannot be used; NULL: none */
};

/* The mask of a source in a model's jobs. */
struct lk_study_mask {
    const char *file; /* as opened */
    char sha256[65];  /* of the file; "" when it cannot be read */
};

/* A mask that is drawn for each source in a model's jobs (models/face/face_mask.h). */
struct lk_study_drawn {
    struct lk_face_mask_recipe recipe; /* what NULL: none is drawn */
    const char *faces;                 /* the net's file as opened; NULL: by hand */
    char net_sha256[65];
    const char *text;    /* all that decides its bits beside the source, as JSON */
    const char *problem; /* why none can be drawn; NULL: none */
};

/* How a model's prompts are rewritten before its pictures are made. */
struct lk_study_rewriter {
    const char *prompts, *model, *file; /* as opened: the authors' texts (NULL: nothing is rewritten), who rewrites, the
                                           list of what came of it */
    const char *on_failure;             /* "fail" or "keep" */
    double temperature;                 /* 0: the most likely tokens; what is drawn, is drawn with study_seed */
    char name[256];                     /* of the model, as recorded */
    char sha256[65];                    /* of the texts */
    const char *style, *problem;        /* why the texts cannot be used; NULL: none */
};

/* What became of a prompt: its new text, or why there is none; and how, as JSON (models/rewrite/rewrite.h). */
struct lk_study_rewritten {
    const char *prompt, *failed, *weights, *record;
};

struct lk_study_source {
    const char *id; /* "Black_Male_40s"; NULL: the portrait study has no source of this cell */
    int8_t level[LK_MAX_ATTRIBUTES];
    const char *file;    /* as opened */
    const char *written; /* as the table of sources has it */
    char sha256[65];     /* of the file; "" when it cannot be read */
};

/* A model behind the OpenAI images API instead of one that runs here. */
struct lk_images_option;
struct lk_study_hosted {
    const char *images_url, *model;
    const struct lk_images_option *set; /* [n_set], eval/hosted/images.h */
    int n_set;
    int64_t repeat_refused; /* how often a refusal is asked about again; its first answer is the outcome */
    const char *per_minute; /* as written; NULL */
    double requests_per_minute;
    bool given, seed_field, fetch_urls;
};

enum { LK_STUDY_NAME_BYTES = 256, LK_STUDY_FAIR_BYTES = 128 };

/* Texts live as long as the study, or in the struct itself. */
struct lk_study_job {
    /* SHA-256 (hex) over all that decides its pixels: model, parameters that change a picture, seed, sources' bytes,
     * the final prompt. Two jobs that ask for the same pixels have one id; names differ always. "" with a problem. */
    char id[65];
    char name[LK_STUDY_NAME_BYTES];       /* flux_20s_male_white_O-01, qwen_pair_latino_20s_W-07, ... */
    char output[LK_STUDY_NAME_BYTES * 2]; /* exp1/flux/O/flux_20s_male_white_O-01.png, below the results' folder */
    char pair[LK_STUDY_NAME_BYTES];       /* what both arms of a pair share: "P001", else the name without the arm */
    char baseline[LK_STUDY_NAME_BYTES];   /* of a preserved one the name of the job of the other arm; "" otherwise */
    enum lk_experiment kind;
    const char *experiment; /* its key */
    enum lk_arm arm;
    int model; /* below lk_study_n_models */
    const char *model_key, *family;
    const char *model_path;               /* for lk_pipeline_open: a folder, or ORG/NAME */
    const char *weights_identity;         /* that the study asks for; NULL: any */
    const struct lk_study_hosted *hosted; /* NULL: it runs here */
    const struct lk_study_adapter *adapters;
    int n_adapters;
    const struct lk_study_mask *mask;   /* a file; NULL: none */
    const struct lk_study_drawn *drawn; /* NULL: none; else its file's name, not yet a path, is job.request.mask */
    /* NULL: nothing is rewritten. Then the prompt before it, and what became of it, NULL while it is missing. */
    const struct lk_study_rewriter *rewriter;
    const char *original_prompt;
    const struct lk_study_rewritten *rewrite;
    bool rewrite_missing;
    int n_sources;  /* 0 (t2i), 1, or 2: male, female (swapped: female, male) */
    int sources[2]; /* below lk_study_n_sources; in the portrait study 0..83 */
    const char *source_files[2];
    const struct lk_study_prompt *prompt;
    const char *feature_prompt; /* NULL in the edited arm */
    const char *final_prompt;   /* NULL with a problem that concerns it */
    const char *problem;        /* why it cannot be made: no source, no feature prompt; NULL: none */
    const char *mitigation;     /* of t2i: "none", "rewrite", ...; NULL otherwise */
    double cfg;                 /* of t2i: the guidance; 0 otherwise */
    /* Of t2i's arm embed_norm "center" or "zscore": what is made of the embeddings of all base prompts before this
     * one's is used (models/embeds.h); NULL: nothing. */
    const char *normalize;
    /* Of t2i's arm fair: the rule that hit (-1: none), and the attributes, their levels, and what a
     * classifier calls these, joined by "+". */
    int fair_rule;
    const char *fair_assign, *fair_sha256; /* of the instruction; NULL in other arms */
    char fair_attribute[LK_STUDY_FAIR_BYTES], fair_level[LK_STUDY_FAIR_BYTES], fair_label[LK_STUDY_FAIR_BYTES];
    /* In the portrait study, of a prompt of the documents: the item as the documents would name it, whichever model
     * made it; "" otherwise. */
    char documented[LK_STUDY_NAME_BYTES];
    /* Complete but for images and progress; its texts are the study's: do not lk_job_free it. Parameters of the machine
     * (device, vram, threads) are defaults unless the model's entry in the study file has them. */
    struct lk_job job;
};

/* Reads the study file strictly, its tables of sources and prompts, and hashes the sources' files (one that is missing
 * is no error here). Every message names file, field, expected and got. LK_E_JSON and the like, LK_E_CONFIG_*,
 * LK_E_INPUT, LK_E_NOT_FOUND. */
enum lk_code lk_study_open(struct lk_study **out, const char *path);
/* The same; of a study that cannot be opened all that is wrong with it, its tables and its pictures is added to
 * problems, a line each, as far as one thing does not hide another. Without that the message names the first. */
enum lk_code lk_study_open_listing(struct lk_study **out, const char *path, struct lk_text *problems,
                                   size_t *n_problems);
/* The same of a text; path names an existing file, for messages and for where relative paths begin. */
enum lk_code lk_study_parse(struct lk_study **out, const char *text, size_t n, const char *path);
void lk_study_close(struct lk_study *study); /* NULL is allowed */

const char *lk_study_name(const struct lk_study *study);
/* The file with all defaults filled in, a study file itself, and its SHA-256 (hex). Two runs of one configuration may
 * be merged. */
const char *lk_study_resolved(const struct lk_study *study);
const char *lk_study_hash(const struct lk_study *study);
/* The files of experiments: each as the resolved copy names it, below its own folder, and where it is. */
typedef enum lk_code lk_study_input_fn(void *context, const char *name, const char *path);
enum lk_code lk_study_each_input(const struct lk_study *study, lk_study_input_fn *fn, void *context);
const struct lk_study_source *lk_study_source(const struct lk_study *study, int source);
int lk_study_n_sources(const struct lk_study *study);
const struct lk_attribute *lk_study_attributes(const struct lk_study *study, int *n);
/* Whether sources are the 84 cells of race, gender and age, which items are named by. */
bool lk_study_is_portrait(const struct lk_study *study);
/* Whether it is the documents' study: its cells, models and prompts, a seed for each model. Then an item's id says all
 * that is to be known of the item, to readers of files as to judges; otherwise the study says it. */
bool lk_study_is_documented(const struct lk_study *study);
/* Of "analysis", as text: "rounding", ... */
const char *lk_study_setting(const struct lk_study *study, const char *key);
/* Whose the sources are, a sentence or two; "" when the file does not say it. */
const char *lk_study_attribution(const struct lk_study *study);
int lk_study_n_models(const struct lk_study *study);
const char *lk_study_model_path(const struct lk_study *study, int model);
const char *lk_study_model_key(const struct lk_study *study, int model); /* "flux": in names of items */
const char *lk_study_model_family(const struct lk_study *study, int model);
const char *lk_study_model_label(const struct lk_study *study, int model); /* "FLUX.2-dev": in tables */
/* Its adapters: how many. */
int lk_study_adapters(const struct lk_study *study, int model, const struct lk_study_adapter **out);
/* What is done with the checkpoint, in words: steps, schedule, adapters. LK_E_NOMEM. */
enum lk_code lk_study_treatment(const struct lk_study *study, int model, struct lk_text *out);
/* LK_E_CONFIG_VALUE or LK_E_BIND for the first adapter of a model with jobs that is not there, is not the one that the
 * study asks for, or is not of that model (if the model is here). */
enum lk_code lk_study_check_adapters(const struct lk_study *study);
/* NULL: its prompts stay as they are. */
const struct lk_study_rewriter *lk_study_model_rewriter(const struct lk_study *study, int model);
/* What the rewritten prompt of a job with a rewriter depends on: jobs with one key have one. LK_E_NOMEM. */
enum lk_code lk_study_rewrite_key(const struct lk_study *study, const struct lk_study_job *job, struct lk_text *out);
uint64_t lk_study_seed(const struct lk_study *study);
/* Which model judges the outputs, by slot: 0 primary, 1 secondary. NULL: the study names none. */
struct lk_study_judge {
    const char *model;      /* as it is to be opened; of openai_url its name there */
    const char *openai_url; /* NULL: it runs here */
    const char *mode;       /* "free", "forced" or "direct" */
};
const struct lk_study_judge *lk_study_judge(const struct lk_study *study, int slot);
/* Whether it can be opened, where it runs here: LK_OK, or why not. */
enum lk_code lk_study_check_judge(const struct lk_study *study, int slot);
/* NULL: it runs here. */
const struct lk_study_hosted *lk_study_model_hosted(const struct lk_study *study, int model);
int lk_study_n_experiments(const struct lk_study *study);
const char *lk_study_experiment_key(const struct lk_study *study, int experiment);
enum lk_experiment lk_study_experiment_kind(const struct lk_study *study, int experiment);
/* Whether an edit is made with several seeds, which are a factor then. */
bool lk_study_has_seeds(const struct lk_study *study);

/* What keeps the study from being run whole, a line each into out: tables that are not there, cells that the
 * experiments need and that have no source, or two; files that are no picture, or one picture under two names; sources
 * without a feature prompt; models that cannot be opened or are of another family (their configs are read, no weights).
 * Fails only when memory is out. */
enum lk_code lk_study_check(const struct lk_study *study, struct lk_text *out, size_t *n_problems);

/* The first of its tables that is not there or cell that has two sources, in a line, and how many there are; "" and 0.
 */
const char *lk_study_lacking(const struct lk_study *study, size_t *n);

/* The first pairs whose other half, an edit with the same seed, the study's edit experiments do not make, in a line;
 * NULL. They are lacking too. */
const char *lk_study_unpaired(const struct lk_study *study);
/* The key of an experiment of pairs whose other halves no experiment of the study makes; NULL. */
const char *lk_study_paired_elsewhere(const struct lk_study *study);

/* Two models of one experiment that are the same in all that decides the pixels, a line each pair. LK_E_NOMEM. */
enum lk_code lk_study_same_models(const struct lk_study *study, struct lk_text *out);

/* The feature prompts that name a demographic group, over all experiments, and a source that has one; 0 and "". */
size_t lk_study_leaks(const struct lk_study *study, char source[64]);
/* Attributes of which the report will not speak, since a level has fewer than LK_LEAST_SOURCES sources: their number,
 * the first one's name, its level and how many sources that has. */
enum { LK_LEAST_SOURCES = 3 };
int lk_study_few_sources(const struct lk_study *study, const char **attribute, const char **level, int *n);
/* Sources whose colour profile is not sRGB's (engine/image/image.h): their number, the first one's file and profile. */
size_t lk_study_other_colours(const struct lk_study *study, const char **first, char profile[LK_IMAGE_PROFILE_NAME]);
/* The same of sources that models do not see whole (lk_image_file_unseen). */
size_t lk_study_unseen(const struct lk_study *study, const char **first, const char **what);

/* The settings in which two studies differ, a line each into out; such runs must not be pooled unless the keys are
 * allowed ("rounding,models.qwen.seed"; NULL: none). Names, sources and prompts of one's own are not settings. */
enum lk_code lk_study_compare(const struct lk_study *a, const struct lk_study *b, const char *allowed,
                              struct lk_text *out, size_t *n_different);

/* A study file of the documents' own numbers, with every setting written out: "full" (exp1, exp2 and exp3), "exp1",
 * "exp2", "exp3" or "t2i". LK_E_USAGE for another name. */
enum lk_code lk_study_template(const char *name, struct lk_text *out);
/* The columns that the tables of a study file need, by its attributes: a line for each table that it names. */
enum lk_code lk_study_tables(const char *text, size_t n, struct lk_text *out);
extern const char lk_study_template_names[]; /* "full|exp1|..." */

/* 1 to max letters, digits, - or _: names of files are made of it. */
bool lk_study_is_word(const char *text, size_t n, size_t max);

/* What each key of a study file means, as text for a terminal. */
enum lk_code lk_study_explain(struct lk_text *out);

/* The prompts of the file that "prompts" names. */
const struct lk_study_prompt *lk_study_own_prompts(const struct lk_study *study, size_t *n);

/* "K-01, H-01, S-01 and 5 more": the ids of its own prompts, before which the portrait study has the documents'. */
void lk_study_list_prompts(const struct lk_study *study, char out[300]);

/* Text i of t2i's base prompts; NULL behind the last. */
const char *lk_study_base_prompt(const struct lk_study *study, size_t i);

size_t lk_study_n_jobs(const struct lk_study *study);
/* Job i < lk_study_n_jobs. LK_E_NOMEM. */
enum lk_code lk_study_job(const struct lk_study *study, size_t i, struct lk_study_job *out);
