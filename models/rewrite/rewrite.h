/* Prompts that a language model rewrites before an edit, as the editing models' authors do it: Qwen's edit polisher and
 * FLUX.2's caption upsampling. The model sees the pictures that will be edited.
 *
 *     struct lk_rewriter rewriter;
 *     if ((rc = lk_rewriter_open(&rewriter, "Qwen/Qwen2.5-VL-7B-Instruct", "qwen-edit-2511.json", LK_BF16, dev)))
 * return rc; struct lk_rewrite job = {.images = &photo, .n_images = 1, .prompt = "red hair"}; rc =
 * lk_rewrite(&rewriter, &job, 1, NULL);       // job.text, or NULL and job.error lk_rewrite_free(&job);
 * lk_rewriter_close(&rewriter); */
#pragma once

#include "engine/base/text.h"
#include "models/rewrite/texts.h"
#include "models/text/chat_batch.h"

enum { LK_REWRITE_TRIES = 5, LK_REWRITE_SLOTS = 8 };

struct lk_rewriter {
    struct lk_rewrite_texts texts;
    struct lk_generation_config generation; /* the model's */
    double temperature;                     /* 0: the most likely tokens */
    uint64_t seed;                          /* of what is drawn: of try i, seed + i */
    int n_slots;                            /* asked at a time; changes no text */
    /* What is recorded of the model. */
    char name[256], weights[65];
    const char *dtype, *architecture;
    /* Who answers, as lk_chat_ask; and who refuses a text that would control the model (LK_E_PROMPT). */
    enum lk_code (*ask)(void *context, const struct lk_chat_question *questions, int n, int n_slots,
                        enum lk_code (*tick)(void), struct lk_chat_answer *answers);
    enum lk_code (*check)(void *context, const char *text);
    /* As lk_chat_plan. */
    enum lk_code (*plan)(void *context, const struct lk_device *target, const struct lk_chat_question *questions, int n,
                         int n_slots, struct lk_plan *out);
    void *context;
};

/* model: as lk_chat_open has it. prompts: the file of models/rewrite/texts.h. temperature and seed are then the
 * caller's to set. Close in any case. */
enum lk_code lk_rewriter_open(struct lk_rewriter *out, const char *model, const char *prompts, enum lk_dtype compute,
                              struct lk_device *dev);
/* The same for lk_rewrite_plan alone: no weight is read. */
enum lk_code lk_rewriter_open_plan(struct lk_rewriter *out, const char *model, const char *prompts,
                                   enum lk_dtype compute);
void lk_rewriter_close(struct lk_rewriter *rewriter);

struct lk_rewrite {
    const struct lk_image *images;
    int n_images;
    const char *prompt;
    /* What comes of it. */
    char *text; /* NULL: no usable prompt, `error` says why of the last try */
    char error[512];
    bool refused; /* it could not be asked */
    struct {
        char *reply;
        const char *why;  /* what is wrong with it; NULL: nothing */
        int64_t n_tokens; /* of the reply */
        uint64_t seed;
        bool drawn;
    } tries[LK_REWRITE_TRIES];
    int n_tries;
};

/* Rewrites n prompts. A reply that is no usable prompt is asked for again, LK_REWRITE_TRIES times in all; what becomes
 * of one does not depend on the others. A failure of one is in it alone; LK_E_NOMEM, devices, files and what `tick`
 * gives (NULL: none) end them all. Free each in any case. */
enum lk_code lk_rewrite(const struct lk_rewriter *rewriter, struct lk_rewrite *jobs, int n, enum lk_code (*tick)(void));
/* What the first try of one job takes on `target`. */
enum lk_code lk_rewrite_plan(const struct lk_rewriter *rewriter, const struct lk_device *target, struct lk_rewrite *job,
                             struct lk_plan *out);
void lk_rewrite_free(struct lk_rewrite *job);

/* A JSON object of how the job was rewritten, that it was or was not: what recipes, manifests and lists of rewrites
 * record. No times: equal jobs give equal bytes. */
void lk_rewrite_record(const struct lk_rewriter *rewriter, const struct lk_rewrite *job, struct lk_text *out);
