/* The generated pictures of the text-to-image study: what was asked for (model, prompt, arm, CFG, seed) and what a
 * classifier perceives in each.
 *
 *     struct lk_t2i_images images;
 *     lk_t2i_images_init(&images);
 *     images.prompts = &prompts;                                   // or NULL: any prompt_id
 *     if (log) rc = lk_t2i_images_log(&images, log, n, "log.csv");
 *     rc = lk_t2i_images_labels(&images, text, n, "labels.csv");   // as often as there are files
 *     rc = lk_t2i_images_finish(&images);
 *     lk_t2i_images_free(&images); */
#pragma once

#include "engine/base/names.h"
#include "eval/hosted/asked.h"
#include "eval/scores/rejects.h"
#include "eval/t2i/distribution.h"
#include "eval/t2i/prompts.h"

/* What fair instructions ask of pictures: numbers of lk_t2i_images.fair_levels, -1 behind the last. */
enum { LK_T2I_MAX_FAIR = 4 };
struct lk_t2i_fair {
    int16_t of[LK_T2I_MAX_FAIR];
};

struct lk_t2i_image {
    int32_t model, prompt; /* numbers of names */
    int8_t arm;
    bool face;
    int8_t level[LK_N_T2I_ATTRIBUTES];     /* -1: none perceived */
    float confidence[LK_N_T2I_ATTRIBUTES]; /* NaN: not given */
    double cfg;                            /* -1: not known */
    int64_t seed;
    int32_t file, line; /* where its labels stand: files' number, from 1 */
    struct lk_t2i_fair fair;
};

/* A line of the generator's log. */
struct lk_t2i_logged {
    const char *prompt_id, *model_tag;
    int64_t seed; /* -1 */
    double cfg;   /* NaN */
    int8_t arm;
    bool canvas, labelled;
    struct lk_t2i_fair fair;
    bool asked_known; /* it has the column "outcome" */
    struct lk_asked asked;
    const char *path;   /* of what is not made; "": no picture */
    const char *sha256; /* of the picture's file; "": not said */
    const char *more;   /* cells of the columns `more`, as CSV, a comma before each */
};

struct lk_t2i_images {
    const struct lk_t2i_prompts *prompts; /* NULL: not known */
    struct lk_t2i_image *list;            /* sorted by model, prompt, arm, CFG, seed once finished */
    size_t n, capacity;
    struct lk_names models;      /* "sdxl", "qwen (canvas)": pictures of the two modes are never pooled */
    struct lk_names ids;         /* prompts: those of the table first, in its order */
    struct lk_names files;       /* of labels */
    struct lk_names fair_levels; /* "ATTRIBUTE\tLEVEL\tLABEL": levels that fair instructions ask for */
    struct lk_names logged;      /* paths in the log; number i is log[i] */
    struct lk_t2i_logged *log;
    size_t log_capacity;
    struct lk_text more; /* names of the log's columns that mean nothing here, as CSV, a comma before each */
    /* Lines that are no picture: refused, placeholders, faults. They are counted, and never labelled. */
    struct lk_t2i_logged *unmade;
    size_t n_unmade, unmade_capacity;
    size_t n_records, n_no_face, n_unlabelled; /* read; kept, but without a face; logged, but without labels */
    struct lk_rejects *rejects;                /* [files.n]: records that say nothing usable, by file */
    size_t rejects_capacity;
    struct lk_store texts;
};

void lk_t2i_images_init(struct lk_t2i_images *images);
/* The generator's log: prompt_id, model_tag, seed, cfg, file_path, and more columns, of which arm, mode (text or
 * canvas) and what a fair instruction asked for (fair_attribute, fair_level, fair_label) are read, and of a model that
 * is asked over the network what came of it (eval/hosted/asked.h): what is refused needs no file_path. LK_E_INPUT with
 * line and column. Before any labels. */
enum lk_code lk_t2i_images_log(struct lk_t2i_images *images, const char *text, size_t n, const char *name);
/* labels.csv (eval/scores/labels.h), with an arm and a mode if it has those columns. What a record does not say is
 * taken from the log's line of the same file_path. LK_E_INPUT with line and column for a table that is not understood;
 * a record without prompt, model or seed, of a prompt that is not in the table, or at odds with the log, is rejected
 * and named. */
enum lk_code lk_t2i_images_labels(struct lk_t2i_images *images, const char *text, size_t n, const char *name);
/* Sorts, and rejects what has the same model, prompt, arm, CFG and seed as an earlier record. LK_E_INPUT when nothing
 * is left. */
enum lk_code lk_t2i_images_finish(struct lk_t2i_images *images);
void lk_t2i_images_free(struct lk_t2i_images *images);

/* How a model's CFG is meant: "guidance value" of FLUX.2, "true guidance scale" of Step1X and Qwen, ... */
const char *lk_t2i_cfg_meaning(const char *model);
