/* The one table of commands and options: the parser, --help, the completions and the man page are made from it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/parameters.h"

enum cli_command {
    CLI_EDIT,
    CLI_EMBED,
    CLI_PLAN,
    CLI_CHAT,
    CLI_REWRITE,
    CLI_MASK,
    CLI_MODELS,
    CLI_VERIFY,
    CLI_QUANTIZE,
    CLI_LORA,
    CLI_SHOW,
    CLI_RERUN,
    CLI_DEVICES,
    CLI_SELFTEST,
    CLI_BENCH,
    CLI_STUDY,
    CLI_FEATURE,
    CLI_JUDGE,
    CLI_REVIEW,
    CLI_RATINGS,
    CLI_REPORT,
    CLI_STATS,
    CLI_SAMPLE,
    CLI_SERVE,
    CLI_SURVEY,
    CLI_T2I,
    CLI_COMPLETIONS,
    CLI_HELP,
    CLI_N_COMMANDS,
};

#define CLI_MAX_IMAGES LK_MAX_REFERENCES
#define CLI_MAX_LIST   32
#define CLI_MAX_SEEDS  1000
#define CLI_MAX_MORE   17

/* Of stats, beside study_seed and alpha of report: NULL, false, 0 and -1 stand for an option that was not given. */
struct cli_stats_options {
    const char *value, *by, *x, *y, *item, *rater, *cluster, *columns;
    const char *weights, *level, *alternative, *zero_method, *method, *interval;
    bool exact, correction, no_correction;
    int64_t resamples;   /* 0 */
    double power;        /* 0 */
    double null, p1, p2; /* -1 */
};

/* What a command line says. The job has the parameters of edits, and bits that say which were given; another field that
 * was not given holds the default of cli_arguments_init. Strings point into argv. */
struct cli_arguments {
    enum cli_command command;
    const struct cli_verb *verb; /* of a command that has verbs; NULL: --help alone was asked for */
    bool help, version;
    const char *positional;         /* what a command without verbs works on; NULL if none */
    const char *more[CLI_MAX_MORE]; /* what a verb works on, in the order of its operands; NULL beyond the last */
    const char *model;
    const char *images[CLI_MAX_IMAGES];
    int n_images;
    struct lk_job job;
    bool auto_quantize; /* of edit and plan: job.run.quantize is to be chosen for the device */
    const char *system; /* NULL: the model's default */
    struct cli_rewrite_arguments {
        const char *prompts, *model; /* NULL: not given */
        double temperature;
    } rewrite;
    bool replay_cache;
    int64_t n_seeds;    /* of a range as --seed; 0: no range */
    int64_t num_images; /* of edit: with one seed after another; 0: not given */
    struct cli_mask_arguments {
        const char *keep, *edit, *shape, *several; /* keep, edit NULL: not given */
        double grow;
        bool invert;
    } mask;
    const char *output;
    bool overwrite;
    const char *dump_steps;
    const char *jobs;    /* a list of edits */
    const char *preview; /* a file, rewritten after steps */
    int64_t preview_every;
    int64_t quality;        /* of a JPEG or WebP; 0: the default */
    int64_t jobs_per_visit; /* of edit --jobs and study run */
    const char *manifest;
    const char *format;        /* of quantize */
    int64_t max_new_tokens;    /* 0: the model's */
    int64_t top_k;             /* -1: the model's */
    double temperature, top_p; /* -1: the model's */
    double repetition_penalty; /* -1: the model's */
    int64_t references;
    int64_t cases; /* per op */
    struct cli_report_arguments {
        const char *check, *faces; /* of judge; NULL: none */
        const char *query, *save;  /* report: a SELECT over the store; the store as a file */
        const char *gallery;       /* report: a page of the pictures of the query's rows; NULL: none */
        const char *pairs, *study_file, *primary, *secondary, *primary_name, *secondary_name, *pixel, *scores;
        struct cli_list {
            const char *values[CLI_MAX_LIST];
            int n;
        } ratings, legacy, runs, pictures;
        const char *allow; /* NULL: nothing */
        const char *participants, *completion_code, *gold, *images;
        const char *rejects; /* NULL: only the first are named, on stderr */
        const char *protocol, *qc_policy, *rounding, *prompts_as, *subcategory, *score_source; /* protocol NULL: the
                                                                                                  ratings' or the
                                                                                                  study's; qc_policy
                                                                                                  NULL: the protocol's
                                                                                                */
        int64_t bootstrap, study_seed, gold_tolerance, nominal;
        double alpha, margin;
        int64_t success, soft_erasure, drift, identity; /* thresholds */
        const char *unclear;
        const char *title, *run, *date, *label;
        const char *feature_prompts, *sources;                  /* sources NULL: the three printed */
        const char *figure_prompt, *figure_gender, *figure_age; /* NULL: those with most outputs */
        bool embed_images, audit_safe, png, data_folder, secondary_only, drifted_only;
    } report;
    struct cli_review_arguments {
        const char *file, *note, *time, *salt;
        const char *judge_prompt;
        const char *slot, *mode; /* of judge run; slot NULL: not given */
        const char *server;      /* NULL: the model is asked in this process */
        double requests_per_minute;
        int64_t batch;
        bool pairwise;
    } review;
    struct cli_stats_options stats;
    struct cli_t2i_arguments {
        struct cli_list labels, styles, contexts, tokens, cfg, arms, set;
        const char *log, *ref, *target, *ref_labels, *csv, *mitigations, *attribute, *columns, *labeler, *classifier,
            *embeds, *normalize, *fair, *fair_assign, *metrics, *maps, *in, *seeds, *post_filter, *images_url;
        double tolerance;
        int64_t cue, neighbours, max_attempts; /* max_attempts 0: ten times what is wanted */
        int64_t repeat_refused;
        bool seed_field, fetch_urls;
    } t2i;
    struct cli_study_arguments {
        const char *container, *claim;                       /* of k8s; NULL: not given */
        const char *devices, *shard, *sample, *ids, *prefer; /* NULL: not given */
        const char *allow;                                   /* NULL: not given */
        const char *template, *show;
        int64_t queue, tasks;
        bool retry_failed, requeue, send_pictures, all;
    } study;
    struct cli_bench_arguments {
        const char *output_format;
        int64_t repetitions, gpus;
        double price;
    } bench;
    struct cli_survey_arguments {
        const char *bind, *store, *verify, *platform, *block, *token_file, *protocol; /* NULL: not given */
        int64_t port, pilot, raters, shared;
        double pay, minutes, fee, bonus;
        bool preview, comments;
    } survey;
    const char *sampler;
    int64_t each; /* of sample; 0: not given */
    bool all_budgets, greedy, quiet, verbose, json, man, large, follow_links, allow_other, allow_steps;
};

enum cli_kind {
    CLI_FLAG,   /* bool */
    CLI_INT,    /* int64_t */
    CLI_NUMBER, /* double */
    CLI_TEXT,   /* const char * */
    CLI_FILE,   /* const char *, a path */
    CLI_FOLDER, /* const char *, a path */
    CLI_FILES,  /* may be given several times: images, n_images */
    CLI_LIST,   /* struct cli_list: paths, may be given several times */
    CLI_CHOICE, /* const char *, one of `choices` */
    CLI_SIZE,   /* WIDTHxHEIGHT: the job's width and height */
    CLI_INTS,   /* a parameter alone: numbers with commas between */
    CLI_BYTES,  /* uint64_t: a number with K, M, G or T (1024) */
};

struct cli_option {
    const char *name;  /* "num-inference-steps" */
    const char *alias; /* another long name, or NULL */
    char letter;       /* 's', or 0 */
    enum cli_kind kind;
    const char *group;     /* heading in the help */
    const char *value;     /* placeholder, NULL for a flag */
    const char *otherwise; /* the default as the help says it, NULL if none */
    const char *help;
    unsigned commands;                    /* bit 1 << cli_command: where it may be given */
    unsigned required;                    /* where it must be given */
    bool once;                            /* two different values are refused; of others the last one counts */
    double min, max;                      /* inclusive; of int, number and size */
    const char *choices;                  /* "bf16|f32"; of a text: what completions offer */
    size_t offset;                        /* of the field in struct cli_arguments */
    const char *field;                    /* its name there, as report.query; NULL: a parameter's */
    const struct lk_parameter *parameter; /* its reading, instead of kind, range and offset; NULL: none */
};

struct lk_study;
/* What a command or a verb runs; the second kind with operand 1, opened. */
typedef enum lk_code cli_action(const struct cli_arguments *arguments);
typedef enum lk_code cli_study_action(const struct cli_arguments *arguments, struct lk_study *study);

/* A verb is a command of its own: `likeness study run`. Its row is all that the parser, help, usage, completions and
 * manual page know of it. */
struct cli_verb {
    const char *name;     /* "": the command without a verb */
    const char *summary;  /* one line */
    const char *operands; /* "STUDY.json [DIR]...", NULL: none */
    /* Names of the options that the verb reads, with blanks between: "output! seed". NAME! must be given. @request
     * stands for the parameters of pictures that the command takes. */
    const char *options;
    const char *text;            /* what it does, beyond the summary; NULL: nothing */
    const char *const *examples; /* pairs: what, command; ends in NULL; NULL: none of its own */
    const struct cli_says {
        const char *option, *value, *help; /* value NULL: the option's own */
    } * says;                              /* in place of the options' words; the last has no option; NULL: none */
    cli_action *run;
    cli_study_action *with_study;
};

/* Rows of a table of verbs; what else a verb has stands behind. */
#define VERB(name_, run_, summary_)       .name = name_, .summary = summary_, .run = run_
#define STUDY_VERB(name_, run_, summary_) .name = name_, .summary = summary_, .with_study = run_
#define EXAMPLES(...)                                                                                                  \
    (const char *const[]) { __VA_ARGS__, NULL }
#define SAYS(...)                                                                                                      \
    (const struct cli_says[]) {                                                                                        \
        __VA_ARGS__, { 0 }                                                                                             \
    }

struct cli_command_info {
    const char *name;
    const char *summary;          /* one line */
    const struct cli_verb *verbs; /* the last one has no name; NULL: the command has none */
    const char *positional;       /* of a command without verbs */
    bool positional_required;
    const char *usage;           /* after "likeness NAME "; NULL: made from the verb */
    const char *text;            /* what it does, paragraphs of wrapped text */
    const char *const *examples; /* pairs: what, command; ends in NULL */
    bool parallel;               /* computes with several threads */
    cli_action *run;             /* NULL: the verb's */
};

/* The verbs of a command, the last one without a name; NULL: it has none. */
const struct cli_verb *cli_verbs(enum cli_command command);
/* NULL: the command has no such verb. */
const struct cli_verb *cli_verb_named(enum cli_command command, const char *name);
/* Whether the option may be given to the command and its verb (NULL: none yet). */
bool cli_takes(enum cli_command command, const struct cli_verb *verb, const struct cli_option *option);
bool cli_requires(enum cli_command command, const struct cli_verb *verb, const struct cli_option *option);
/* The option in the verb's words. */
struct cli_option cli_option_of_verb(const struct cli_verb *verb, const struct cli_option *option);
/* How many operands the verb takes. */
void cli_operands(const struct cli_verb *verb, int *least, int *most);

/* Option i of the table, NULL behind the last. */
const struct cli_option *cli_option(size_t i);

extern const struct cli_command_info cli_commands[CLI_N_COMMANDS];

void cli_arguments_init(struct cli_arguments *arguments);

/* Reads argv[1..argc). LK_E_USAGE with a message that names the flag. Prints nothing. */
enum lk_code cli_arguments_parse(struct cli_arguments *arguments, int argc, const char *const *argv);

/* The name nearest to what was typed, or NULL when none is near. */
const char *cli_suggest(const char *typed, const char *const *names, size_t n_names);
