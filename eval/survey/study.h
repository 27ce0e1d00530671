/* A survey as its file describes it: pictures, tasks, questions and texts. Nothing here changes while it is served.
 *
 *     struct lk_survey_study *study;
 *     LK_TRY(lk_survey_study_read(&study, "study.json"));
 *     ...
 *     lk_survey_study_free(study);
 *
 * Strings belong to the study. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "eval/human/quality.h"

struct cJSON;

enum { LK_SURVEY_MAX_QUESTIONS = 10, LK_SURVEY_MAX_OPTIONS = 8, LK_SURVEY_N_PICTURES = 4, LK_SURVEY_MAX_A_TASK = 1000 };
enum lk_survey_picture { LK_PICTURE_SOURCE, LK_PICTURE_EDITED, LK_PICTURE_PRESERVED, LK_PICTURE_SECOND_SOURCE };
enum lk_survey_kind { LK_SURVEY_ITEM, LK_SURVEY_GOLD, LK_SURVEY_CHECK };

struct lk_survey_item {
    enum lk_survey_kind kind;
    const char *id;                              /* of an item without its arm: "flux_20s_male_black_O-01" */
    const char *prompt;                          /* as raters see it */
    const char *occupation;                      /* experiment 3, NULL otherwise */
    char *picture[LK_SURVEY_N_PICTURES];         /* absolute paths within the study's folder; NULL: none */
    const char *sha256[2];                       /* of each arm's picture, as the file says; NULL: it does not */
    int race, gender, age, model, prompt_number; /* levels, -1 not known */
    int pair;                                    /* 1.. in the order of the file */
    const struct cJSON *expected;                /* fields of lk_human_answers_read; NULL without */
    char choice[2];                              /* of a check: the option to select */
    const char *feedback;                        /* of a tutorial item */
};

struct lk_survey_study {
    char *folder; /* absolute */
    const char *name;
    enum lk_protocol protocol;
    const char *instrument; /* "supplement_003" */
    int experiment;         /* 1, 2, 3 */
    bool both_arms;         /* five questions on each of the two pictures */
    uint64_t seed;
    int n_tasks, places, n_gold_per_task, n_checks_per_task, entries_per_hour;
    int64_t claim_ms, min_ms; /* idle time after which a place reopens; least time per question */
    const char *code;         /* the completion code; NULL: one per participant */
    const char *approval, *investigator, *contact, *retain_until, *host; /* "" when not given, as: */
    const char *attribution;                                             /* of the portraits */
    int shared_percent, shared_raters; /* of the items, and how many tasks have each of these */
    int tasks_per_worker;
    double minutes, pay; /* of a task, in dollars, as participants are told; NaN: not given */
    bool blocked;        /* items stay in their order */
    bool gold_drawn;     /* for each task, not dealt round */
    bool signed_links;   /* who enters must bring lk_survey_link of the id */
    bool plain_ids;      /* items of a study of one's own, whose ids say nothing */
    bool printed_skin, show_metadata, fixed_sides, show_arm_labels, consent_first, comments, debriefing;
    char exp2_option, q3_version;

    struct lk_survey_item *items, *gold, *checks, *tutorial;
    size_t n_items, n_gold, n_checks, n_tutorial;
    int32_t *packed; /* [n_packed]: task after task; an item that several raters share stands in several tasks */
    size_t n_packed;

    struct cJSON *root, *questionnaires, *rubric, *texts, *own_texts, *gold_list, *tutorial_list;
    struct lk_prompts *prompts;
};

struct lk_text;
enum lk_code lk_survey_explain(struct lk_text *out); /* each key, what it is for and what holds without it */
enum lk_code lk_survey_study_read(struct lk_survey_study **out, const char *path);
void lk_survey_study_free(struct lk_survey_study *study);
/* A text of the pages; "" when there is none of that name. */
const char *lk_survey_text(const struct lk_survey_study *study, const char *name);
/* instruments.INSTRUMENT.NAME of the questionnaires, NULL without. */
const struct cJSON *lk_survey_instrument(const struct lk_survey_study *study, const char *name);

/* Fills packed, once items, gold and settings are read. */
enum lk_code lk_survey_pack(struct lk_survey_study *study, const char *path);
/* Each task has `places`; place task + n_tasks * seat is one of them. How many items and checks it has. */
size_t lk_survey_task_length(const struct lk_survey_study *study, int place);
/* In the order in which a participant sees them: out [lk_survey_task_length]. */
enum lk_code lk_survey_task_items(const struct lk_survey_study *study, const char *worker, int place,
                                  const struct lk_survey_item **out);
/* The arm that a participant sees as A or on the left: lk_arm. */
enum lk_code lk_survey_left_arm(const struct lk_survey_study *study, const char *worker,
                                const struct lk_survey_item *item, int *out);

struct lk_survey_option {
    char value[24];
    char *text;
};
struct lk_survey_question {
    int picture;                 /* 0 the left one or A, 1 the right one or B, -1 all */
    char axis[32];               /* "race_drift", "preference", "roleAssignment", "answer" */
    char key[40];                /* as forms and the store name it: "a.race_drift" */
    const char *title;           /* neutral, "" without: the documents' own name what is measured */
    const struct cJSON *printed; /* the item as the documents print it; NULL for a check */
    char *text;
    struct lk_survey_option options[LK_SURVEY_MAX_OPTIONS];
    int n_options;
};
struct lk_survey_questions {
    struct lk_survey_question list[LK_SURVEY_MAX_QUESTIONS];
    int n;
};
/* LK_E_NOMEM. */
enum lk_code lk_survey_questions_of(const struct lk_survey_study *study, const struct lk_survey_item *item,
                                    struct lk_survey_questions *out);
void lk_survey_questions_free(struct lk_survey_questions *questions);
int lk_survey_axis_of(const char *name); /* "edit_success", "editQuality"; -1 when it is none */
/* The option of a question about one of the five axes that stands for a level 1..5; NULL when it is about another. */
const char *lk_survey_option_of(const struct lk_survey_question *q, int level);
/* The option that a gold item, check or tutorial item expects as the answer to its question q, NULL when any will do.
 */
const char *lk_survey_expected(const struct lk_survey_item *item, const struct lk_survey_question *q, int left_arm,
                               char text[16]);
/* Minutes of a task, at least and at most, and its pay in dollars: the study's own, or those of its protocol; NaN: not
 * known. */
void lk_survey_terms(const struct lk_survey_study *study, double minutes[2], double *pay);
/* What every participant is asked to agree to, a line each, and its SHA-256. */
enum lk_code lk_survey_consent_text(const struct lk_survey_study *study, char **out, char sha256[65]);

/* Builds n gold items of an experiment into the survey's folder: pictures into FOLDER/gold, the list, which a survey
 * file names as its "gold", into FOLDER/gold_exp1.json or gold_exp2.json. Experiment 1: the source itself, a person of
 * another race, of another gender (where the sources have two), a request that was not carried out, and outputs that
 * were picked by hand as perfect, in turn; experiment 2: one of the two pictures blurred; experiment 3: the picture is
 * one of the two persons' own portrait. LK_E_INPUT: no sources, or of experiment 3 of one gender alone. */
struct lk_survey_picked {
    const char *id, *source, *edited; /* "flux_20s_male_black_O-01" and its pictures */
    const char *prompt;               /* NULL: the documents' one that the id names */
};
struct lk_survey_gold_source {
    const char *id, *path; /* id: a name of files */
    const int8_t *level;   /* [n_attributes] */
};
struct lk_survey_gold {
    const char *folder;
    int experiment, n;
    uint64_t seed;
    const struct lk_survey_gold_source *sources;
    size_t n_sources;
    int n_attributes, race, gender; /* which attributes raters are asked about; -1: none. Gender: level 0 is male */
    const char *const *prompts;     /* [n_prompts]; none: the documents' occupations */
    size_t n_prompts;
    const struct lk_survey_picked *picked;
    size_t n_picked;
};
enum lk_code lk_survey_gold(const struct lk_survey_gold *gold);
/* Whether the sources have two levels of the attribute (-1: no). */
bool lk_survey_gold_varied(const struct lk_survey_gold *gold, int attribute);

/* Builds three practice items out of a study's own sources, four where two of them have one race and different genders,
 * into FOLDER/practice and FOLDER/practice_expN.json, which a study file names as its "tutorial"; of experiment 3
 * three, for which there must be two such. */
struct lk_survey_portrait {
    const char *path;
    int race, gender; /* levels, -1 not known */
};
struct lk_survey_practice {
    const char *folder;
    int experiment;
    const struct lk_survey_portrait *sources;
    size_t n_sources, first, second; /* the two: set, as: */
    int n;                           /* how many items there are */
};
enum lk_code lk_survey_practice(struct lk_survey_practice *practice);
