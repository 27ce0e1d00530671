/* The parameters of a job, each described once: a line of the table in parameters.c says its name, type, range, place
 * and families. Command line, refusals, recipes inside pictures, `show` and `rerun` are readings of that table. A new
 * parameter is such a line, a field in lk_request (or lk_job_run) and the family (or tool) that reads the field.
 *
 *     struct lk_job job;
 *     lk_job_init(&job);
 *     const struct lk_parameter *p = lk_parameter_named("guidance-scale");
 *     if ((rc = lk_parameter_parse(p, &job, "--guidance-scale", "2.5"))) return rc;   // sets the value and its bit
 *     if ((rc = lk_job_complete(&job, pipeline, NULL))) return rc;   // refuses, then the family's defaults for the
 * rest job.request.images = ...; rc = lk_pipeline_edit(pipeline, dev, &job.request, &result); lk_job_free(&job);
 */
#pragma once

#include "models/pipeline.h"

/* How a job is run, beside what is asked for. */
struct lk_job_run {
    const char *dtype, *device;
    const char *transformer;         /* a file with other weights of it, or NULL */
    const char *variant;             /* of files, "fp16", or NULL */
    const char *loras[LK_MAX_LORAS]; /* FILE[=SCALE] */
    int n_loras;
    const char *quantize;    /* how weights are packed as they are read; "none" */
    const char *gemm, *conv; /* "own", or one of NVIDIA's libraries */
    const char *rng;
    int threads;         /* 0: all cores */
    uint64_t vram;       /* bytes of a GPU's memory that the process may take; 0: what is free, less some */
    uint64_t host_ram;   /* bytes of the host's memory that may be pinned for weights; 0: what is free, less some */
    const char *weights; /* "own" of each device, or "sharded" over several */
    bool exif_transpose;
};

struct lk_job {
    struct lk_request request;
    struct lk_job_run run;
    uint64_t given;     /* bit i: lk_parameters[i] was given */
    uint64_t owned;     /* bit i: its text is this job's own */
    const char *beside; /* the file that lk_job_read reads it of: paths lie beside it; NULL: they are as written */
};

enum lk_parameter_kind {
    LK_PARAMETER_FLAG,   /* bool */
    LK_PARAMETER_INT,    /* int */
    LK_PARAMETER_INT64,  /* int64_t, or uint64_t below 2^63 */
    LK_PARAMETER_BYTES,  /* uint64_t: a number with K, M, G or T (1024) */
    LK_PARAMETER_NUMBER, /* double */
    LK_PARAMETER_INTS,   /* int[LK_MAX_OUT_LAYERS], then their number, int */
    LK_PARAMETER_TEXT,   /* const char *, UTF-8 */
    LK_PARAMETER_FILE,   /* const char *, a path */
    LK_PARAMETER_CHOICE, /* const char *, one of `choices` */
    LK_PARAMETER_TEXTS,  /* const char *[LK_MAX_TEXTS], then their number, int; given again for more */
};

enum lk_parameter_place { LK_IN_REQUEST, LK_IN_RUN };

enum lk_parameter_record {
    LK_RECORD_NEVER,  /* changes no bit of a picture */
    LK_RECORD_USED,   /* in a recipe where the family has it and it does something */
    LK_RECORD_ALWAYS, /* in every recipe; what a family does not read is carried along */
};

/* Bits of lk_parameter.families and lk_family.bit. */
enum lk_family_bit {
    LK_FOR_FLUX2 = 1,
    LK_FOR_QWEN = 2,
    LK_FOR_STEP1X = 4,
    LK_FOR_SD = 8,
    LK_FOR_SDXL = 16,
    LK_FOR_CASCADE = 32,
    LK_FOR_BOTH_SD = LK_FOR_SD | LK_FOR_SDXL,
    LK_FOR_EDITING = LK_FOR_FLUX2 | LK_FOR_QWEN | LK_FOR_STEP1X,
    LK_FOR_ALL = LK_FOR_EDITING | LK_FOR_BOTH_SD | LK_FOR_CASCADE
};

struct lk_parameter {
    const char *name;  /* "num-inference-steps", the option without its dashes */
    const char *key;   /* "num_inference_steps" in JSON */
    const char *alias; /* another long name, or NULL */
    char letter;       /* 's', or 0 */
    enum lk_parameter_kind kind;
    enum lk_parameter_place place;
    enum lk_parameter_record record;
    unsigned families;     /* which read it */
    bool machine;          /* says where the job runs, not what comes of it: rerun has it from its own command line */
    const char *label;     /* as `show` names it; NULL: not shown */
    const char *a1111;     /* its name in A1111's text; NULL: none, or the text is made with it by hand */
    const char *group;     /* heading in the help */
    const char *unit;      /* what the value is, as the help shows it; NULL for a flag */
    const char *initial;   /* of a run: the default, as parsed; a request has the family's */
    const char *otherwise; /* the default in words where the above does not say it */
    const char *help;
    const char *choices; /* "bf16|f32"; of a text: what completions offer */
    double min, max;     /* inclusive; of numbers */
    double idle;         /* of numbers: what people write for models that do not read it, and means nothing; 0: none */
    /* Of a text that is not taken as it is: refuses it (LK_E_USAGE beginning with `flag`, or what is wrong in a file),
     * or sets *own to what is taken instead, which becomes the job's own. NULL: every text. */
    enum lk_code (*read)(const char *flag, const char *text, char **own);
    size_t offset; /* in struct lk_job */
};

#define LK_MAX_TEXTS      8
#define LK_MAX_PARAMETERS 64 /* the bits of lk_job.given */
/* In the order in which recipes have them. */
extern const struct lk_parameter lk_parameters[];
extern const size_t lk_n_parameters;

/* NULL for a name (without dashes) or key that the table does not have. */
const struct lk_parameter *lk_parameter_named(const char *name);

void lk_job_init(struct lk_job *job); /* nothing given; the run has its defaults, the request none */
void lk_job_free(struct lk_job *job); /* the texts that it owns */

/* Reads a value as a user wrote it and notes that it was given. Texts are borrowed. A flag takes "on" and "off".
 * LK_E_USAGE that begins with `flag`, which is how the user named it. */
enum lk_code lk_parameter_parse(const struct lk_parameter *p, struct lk_job *job, const char *flag, const char *text);
bool lk_job_given(const struct lk_job *job, const struct lk_parameter *p);
/* Whether `text` is the parameter's idle value: "1.0". */
bool lk_parameter_is_idle(const struct lk_parameter *p, const char *text);
/* p's value of another job, as given; texts are borrowed from it. */
void lk_parameter_copy(const struct lk_parameter *p, struct lk_job *to, const struct lk_job *from);
bool lk_parameter_equal(const struct lk_parameter *p, const struct lk_job *a, const struct lk_job *b);
/* The value as text, "-" for none; cut to `size`. */
void lk_parameter_print(const struct lk_parameter *p, const struct lk_job *job, char *out, size_t size);

/* Refuses what was given and the pipeline's family does not have; the request then has the family's defaults where
 * nothing was given. The job comes from the command line (LK_E_USAGE, naming the flag), or from the recipe in the file
 * `recipe` (LK_E_METADATA, naming file and key). */
enum lk_code lk_job_complete(struct lk_job *job, const struct lk_pipeline *pipeline, const char *recipe);
/* Whether a recipe of this job, complete, has p. */
bool lk_parameter_recorded(const struct lk_parameter *p, const struct lk_job *job, const struct lk_pipeline *pipeline);

/* Whether a value names a file: of kind FILE always, of a scheduler unless it is a name or a config. */
bool lk_parameter_is_path(const struct lk_parameter *p, const char *text);
struct cJSON;
/* Adds p's value under its key; false when memory is out. */
bool lk_parameter_write(const struct lk_parameter *p, const struct lk_job *job, struct cJSON *object);
struct lk_config;
/* The parameters in an object, whose text is `text`, as given. Problems are recorded in the config; in a `whole` recipe
 * it is one when a parameter is missing that every recipe has. Texts become the job's own. */
void lk_job_read(struct lk_job *job, struct lk_config *config, const char *text, bool whole);

/* The default in words: "512", "50 (flux2-dev), 40 (qwen-edit-2511)"; "" where there is nothing to say. */
void lk_parameter_default(const struct lk_parameter *p, char *out, size_t size);
/* Of a model's name, as "flux2-dev"; all of them for a name that is not known. */
unsigned lk_family_bit_of(const char *model);
/* "FLUX.2, Step1X-Edit"; "" for all. */
void lk_parameter_families(const struct lk_parameter *p, char *out, size_t size);

/* Values as users write them, for what is not in the table too; LK_E_USAGE beginning with `flag`. */
enum lk_code lk_read_int(const char *flag, const char *text, size_t length, int64_t min, int64_t max, int64_t *out);
enum lk_code lk_read_number(const char *flag, const char *text, double min, double max, double *out);
enum lk_code lk_read_bytes(const char *flag, const char *text, uint64_t *out);
enum lk_code lk_read_choice(const char *flag, const char *text, const char *choices, const char **out);
