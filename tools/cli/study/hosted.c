/* A study's models that are asked over the network: the questions of a piece, and pictures that are the same for
 * different prompts or people, which are a filter's. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "engine/base/log.h"
#include "eval/hosted/images.h"
#include "eval/study/random.h"
#include "tools/cli/study/runner.h"

struct study_hosted {
    const struct lk_study_hosted *of;
    struct lk_images_server *server;
    bool seed_tried;
};

static void say_waiting(const char *why) { lk_log(LK_LOG_INFO, "%s", why); }

enum lk_code study_hosted_open(struct study_hosted **out, const struct study_run *run,
                               const struct lk_study_hosted *of) {
    struct study_hosted *h = *out = lk_calloc(1, sizeof *h);
    if (!h) return lk_fail(LK_E_NOMEM, "out of memory for a hosted model");
    h->of = of;
    return lk_images_open(&h->server,
                          &(struct lk_images_settings){.url = of->images_url,
                                                       .option = "images_url",
                                                       .model = of->model,
                                                       .key = getenv("OPENAI_API_KEY"),
                                                       .set = of->set,
                                                       .n_set = of->n_set,
                                                       .seed_field = of->seed_field,
                                                       .fetch_urls = of->fetch_urls,
                                                       .requests_per_minute = of->requests_per_minute / run->n_workers,
                                                       .waiting = say_waiting});
}

void study_hosted_close(struct study_hosted *h) {
    if (h) lk_images_close(h->server);
    lk_free(h);
}

static struct lk_image_question question_of(const struct study_job *job) {
    return (struct lk_image_question){.prompt = job->study.final_prompt,
                                      .images = job->images,
                                      .n_images = job->study.n_sources,
                                      .seed = job->study.job.request.seed};
}

static bool is_refused(const struct lk_asked *asked) {
    return asked->outcome == LK_OUTCOME_REFUSED || asked->outcome == LK_OUTCOME_PLACEHOLDER;
}

/* A refusal is asked about again as often as the study says, and every answer is kept. The first one stays the outcome:
 * only refusals are asked about again, so that a share of all answers would be too low. */
static enum lk_code repeat(struct study_hosted *h, struct study_job *job, enum lk_code (*tick)(void)) {
    const struct lk_image_question question = question_of(job);
    job->n_asked = 1;
    job->n_refused = is_refused(&job->answer.asked);
    for (int64_t k = 0; k < h->of->repeat_refused && is_refused(&job->answer.asked); k++) {
        struct lk_image_answer again;
        enum lk_code rc = lk_images_ask(h->server, &question, 1, 1, tick, &again);
        if (!rc && again.code == LK_E_IO) rc = lk_images_state(h->server);
        if (!rc && again.asked.outcome != LK_OUTCOME_FAULT) {
            job->n_asked++;
            job->n_refused += is_refused(&again.asked);
        }
        lk_text_add(&job->repeats, "%s", job->repeats.n ? "," : "");
        lk_asked_json(&again.asked, &job->repeats);
        lk_image_answer_free(&again);
        if (rc) return rc;
    }
    return job->repeats.rc;
}

/* Whether a seed that is sent decides the picture: the first one that is made is asked for again. */
static enum lk_code try_seed(struct study_hosted *h, struct study_job *job, enum lk_code (*tick)(void)) {
    const struct lk_image_question question = question_of(job);
    struct lk_picture_signs first, second;
    struct lk_image_answer again;
    if (!h->of->seed_field || h->seed_tried || job->answer.asked.outcome != LK_OUTCOME_MADE) return LK_OK;
    h->seed_tried = true;
    enum lk_code rc = lk_images_ask(h->server, &question, 1, 1, tick, &again);
    if (!rc && again.asked.outcome == LK_OUTCOME_MADE) {
        rc = lk_picture_signs_of(&job->answer.image, &first);
        if (!rc) rc = lk_picture_signs_of(&again.image, &second);
        if (!rc) job->seed_honoured = strcmp(first.sha256, second.sha256) ? -1 : 1;
        if (job->seed_honoured < 0)
            lk_log(LK_LOG_WARNING, "%s: two requests with seed %llu gave two pictures: its seeds number repeats only",
                   h->of->model, (unsigned long long)question.seed);
    }
    lk_image_answer_free(&again);
    return rc;
}

/* A piece that is asked about. */
struct asking {
    const struct study_hosted *hosted;
    struct study_job *const *jobs;
    struct lk_image_answer *answers;
    void (*ended)(void *context, struct study_job *job);
    void *context;
    bool over[STUDY_MAX_PIECE];
};

static void end_job(struct asking *a, int i) {
    a->over[i] = true;
    a->ended(a->context, a->jobs[i]);
}

/* Answers that nothing more is asked about are kept at once. */
static void take_answer(void *context, int i) {
    struct asking *a = context;
    struct study_job *job = a->jobs[i];
    const struct lk_study_hosted *of = a->hosted->of;
    job->answer = a->answers[i];
    a->answers[i] = (struct lk_image_answer){0};
    job->asked = true;
    const bool made = job->answer.asked.outcome == LK_OUTCOME_MADE;
    if (made ? !of->seed_field || a->hosted->seed_tried : !of->repeat_refused) end_job(a, i);
}

enum lk_code study_hosted_ask(struct study_hosted *h, struct study_job *const *jobs, int n, enum lk_code (*tick)(void),
                              void (*ended)(void *context, struct study_job *job), void *context) {
    struct lk_image_question questions[STUDY_MAX_PIECE];
    struct lk_image_answer *answers = lk_calloc((size_t)n + 1, sizeof *answers);
    struct asking a = {.hosted = h, .jobs = jobs, .answers = answers, .ended = ended, .context = context};
    if (!answers) return lk_fail(LK_E_NOMEM, "out of memory for answers");
    for (int i = 0; i < n; i++) questions[i] = question_of(jobs[i]);
    enum lk_code rc = lk_images_ask_each(h->server, questions, n, n, tick, take_answer, &a, answers);
    for (int i = 0; i < n; i++) {
        struct study_job *job = jobs[i];
        if (a.over[i] || job->asked) continue;
        job->answer = answers[i];
        job->asked = !rc && answers[i].code != LK_E_IO; /* otherwise it is asked another time */
        if (job->asked && answers[i].code) {
            lk_fail(answers[i].code, "%s", answers[i].error);
            lk_error_get(&job->queued.error, answers[i].code);
        }
    }
    lk_free(answers);
    struct lk_error error;
    for (int i = 0; i < n && !rc; i++)
        if (!a.over[i] && jobs[i]->asked && !(rc = repeat(h, jobs[i], tick))) rc = try_seed(h, jobs[i], tick);
    if (!rc) rc = lk_images_state(h->server);
    lk_error_get(&error, rc);
    for (int i = 0; i < n; i++) {
        if (a.over[i]) continue;
        if (jobs[i]->asked)
            end_job(&a, i);
        else
            lk_image_answer_free(&jobs[i]->answer);
    }
    return rc ? lk_error_set(&error) : LK_OK;
}

/* Members behind the outcome of the first answer. */
enum lk_code study_hosted_json(const struct study_job *job, struct lk_text *out) {
    struct lk_picture_signs signs;
    lk_asked_json(&job->answer.asked, out);
    if (out->rc) return out->rc;
    out->n--; /* the brace */
    if (job->answer.image.pixels) {
        LK_TRY(lk_picture_signs_of(&job->answer.image, &signs));
        lk_text_add(out, ",\"pixels_sha256\":\"%s\",\"sharpness\":%.6g", signs.sha256, signs.sharpness);
    }
    if (job->repeats.n)
        lk_text_add(out, ",\"n_asked\":%d,\"n_refused\":%d,\"repeats\":[%s]", job->n_asked, job->n_refused,
                    job->repeats.bytes);
    if (job->seed_honoured) lk_text_add(out, ",\"seed_honoured\":%s", job->seed_honoured > 0 ? "true" : "false");
    lk_text_add(out, "}");
    return out->rc;
}

/* --- the same picture for different prompts or people --- */

struct repeated {
    const struct lk_study *study;
    struct lk_picture_signs *signs;
    int64_t *indexes;
    size_t n, signs_capacity, indexes_capacity;
    struct lk_study_job job;
};

static enum lk_code add_picture(void *context, const struct lk_journal_row *row) {
    struct repeated *r = context;
    LK_TRY(lk_study_job(r->study, (size_t)row->entry.index, &r->job));
    if (!r->job.hosted) return LK_OK;
    cJSON *line = cJSON_Parse(row->made.line);
    const cJSON *hosted = cJSON_GetObjectItemCaseSensitive(line, "hosted"),
                *sharpness = cJSON_GetObjectItemCaseSensitive(hosted, "sharpness");
    const char *sha256 = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(hosted, "pixels_sha256"));
    /* An edit that changes nothing is the same for all prompts of a source: ignored, not refused. */
    const char *source = r->job.n_sources ? lk_study_source(r->study, r->job.sources[0])->id : r->job.prompt->id;
    enum lk_code rc = LK_OK;
    if (sha256) rc = lk_grow(&r->signs, &r->signs_capacity, r->n + 1, sizeof *r->signs);
    if (sha256 && !rc) rc = lk_grow(&r->indexes, &r->indexes_capacity, r->n + 1, sizeof *r->indexes);
    if (sha256 && !rc) {
        char cfg[32];
        snprintf(cfg, sizeof cfg, "%g", r->job.cfg);
        r->signs[r->n] = (struct lk_picture_signs){.model = r->job.model_key,
                                                   .prompt = source,
                                                   .asked = lk_fnv1a64(r->job.final_prompt ? r->job.final_prompt : "") ^
                                                            31 * lk_fnv1a64(source) ^ 37 * lk_fnv1a64(cfg),
                                                   .sharpness = cJSON_IsNumber(sharpness) ? sharpness->valuedouble : 0};
        snprintf(r->signs[r->n].sha256, sizeof r->signs[r->n].sha256, "%.64s", sha256);
        r->indexes[r->n++] = row->entry.index;
    }
    cJSON_Delete(line);
    return rc;
}

/* The picture moves out of the results, and its line and state say what it is. */
static enum lk_code relabel(const struct repeated *r, struct lk_journal *journal, const char *folder, int64_t index,
                            struct lk_study_job *job) {
    LK_TRY(lk_study_job(r->study, (size_t)index, job));
    char *from = lk_format("%s/results/%s", folder, job->output),
         *to = lk_format("%s/placeholders/%s", folder, job->output);
    char *above = to ? lk_strdup(to) : NULL;
    enum lk_code rc = from && to && above ? LK_OK : lk_fail(LK_E_NOMEM, "out of memory");
    if (!rc) *strrchr(above, '/') = 0;
    if (!rc) rc = study_folders_make(above);
    if (!rc && rename(from, to)) lk_log(LK_LOG_WARNING, "%s: cannot be put among the placeholders", from);
    if (!rc)
        rc = lk_journal_relabel(journal, index, "a repeated picture in place of one", study_record_placeholder,
                                &(struct study_relabelled){r->study, job});
    lk_free(above);
    lk_free(from);
    lk_free(to);
    return rc;
}

enum lk_code study_hosted_compare(const struct lk_study *study, struct lk_journal *journal, const char *folder) {
    bool any = false;
    for (int m = 0; m < lk_study_n_models(study); m++) any |= lk_study_model_hosted(study, m) != NULL;
    if (!any) return LK_OK;
    struct repeated *r = lk_calloc(1, sizeof *r);
    if (!r) return lk_fail(LK_E_NOMEM, "out of memory for a comparison of pictures");
    r->study = study;
    enum lk_code rc = lk_journal_each(journal, LK_JOB_DONE, true, add_picture, r);
    if (!rc) rc = lk_picture_signs_compare(r->signs, r->n);
    for (size_t i = 0; i < r->n && !rc; i++)
        if (r->signs[i].placeholder == LK_PLACEHOLDER_REPEATED)
            rc = relabel(r, journal, folder, r->indexes[i], &r->job);
    for (size_t i = 0; i < r->n && !rc; i++) { /* a suspicion only: it stays what it is */
        if (!r->signs[i].blurred) continue;
        rc = lk_study_job(study, (size_t)r->indexes[i], &r->job);
        if (!rc)
            lk_log(LK_LOG_WARNING, "%s: far less sharp than the model's other pictures; look at it (likeness review)",
                   r->job.name);
    }
    if (!rc) lk_picture_signs_repeats(r->signs, r->n);
    lk_free(r->signs);
    lk_free(r->indexes);
    lk_free(r);
    return rc;
}

/* --- consent --- */

enum lk_code study_hosted_consent(const struct study_list *list, bool send_pictures) {
    struct lk_study_job *job = list->job;
    for (size_t i = 0; i < list->n && !send_pictures; i++) {
        LK_TRY(lk_study_job(list->study, (size_t)list->indexes[i], job));
        if (!job->hosted || !job->n_sources) continue;
        return lk_fail(LK_E_USAGE,
                       "%s: pictures of people would be sent to %s; --send-pictures says that their licence and those "
                       "whom they show allow it",
                       job->name, job->hosted->images_url);
    }
    return LK_OK;
}
