/* Simulated participants, for a dry run of everything behind the pages. What they see is planted: outputs of the edited
 * arm drift where the source is not White (race 4, skin 4), those of the preserved arm do not; one answer in ten is a
 * level off. */
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/study/factors.h"
#include "eval/study/random.h"
#include "eval/survey/store.h"

enum { QUESTION_MS = 4000 };

struct pilot {
    struct lk_survey *s;
    struct lk_survey_visitor who;
    int64_t now;
    struct lk_stream stream;
};

/* The option that stands for the level planted, or for the side or person. */
static const char *option_of(struct pilot *p, const struct lk_survey_item *item, const struct lk_survey_question *q,
                             int left_arm) {
    static const int drifted[LK_N_AXES] = {5, 4, 4, 1, 3}, kept[LK_N_AXES] = {5, 3, 1, 1, 3};
    int arm = q->picture < 0 ? LK_ARM_EDITED : q->picture ? 1 - left_arm : left_arm;
    bool drifts = arm == LK_ARM_EDITED && item->race > 0;
    const char *first = q->options[0].value;
    if (!strcmp(first, "A") || !strcmp(first, "left")) return q->options[left_arm == LK_ARM_PRESERVED ? 0 : 1].value;
    int axis = lk_survey_axis_of(q->axis), level = axis < 0 ? 3 : (drifts ? drifted : kept)[axis];
    if (!strcmp(q->axis, "skin_change_magnitude")) level = drifts ? 3 : 1;
    if (!lk_stream_bounded(&p->stream, 10)) level += level == 5 ? -1 : 1;
    if (axis >= 0) return lk_survey_option_of(q, level);
    return first[0] >= '1' && first[0] <= '5' ? q->options[level - 1].value : first;
}

static enum lk_code answer_item(struct pilot *p, const struct lk_survey_item *item, int position) {
    struct lk_survey_questions questions;
    struct lk_survey_given given[LK_SURVEY_MAX_QUESTIONS];
    char expected[LK_SURVEY_MAX_QUESTIONS][16];
    int64_t lease;
    int left_arm;
    enum lk_survey_verdict verdict = LK_SURVEY_INVALID;
    LK_TRY(lk_survey_left_arm(p->s->study, p->who.worker, item, &left_arm));
    LK_TRY(lk_survey_show(p->s, &p->who, position, p->now, &lease));
    LK_TRY(lk_survey_questions_of(p->s->study, item, &questions));
    for (int i = 0; i < questions.n; i++) {
        const struct lk_survey_question *q = &questions.list[i];
        const char *right = lk_survey_expected(item, q, left_arm, expected[i]);
        given[i] = (struct lk_survey_given){q->key, right ? right : option_of(p, item, q, left_arm)};
    }
    p->now += (int64_t)questions.n * (QUESTION_MS + p->s->study->min_ms);
    enum lk_code rc = lk_survey_answer(p->s, &p->who, lease, position, given, (size_t)questions.n, p->now, &verdict);
    lk_survey_questions_free(&questions);
    if (!rc && verdict) rc = lk_fail(LK_E_INTERNAL, "pilot: item %s was refused", item->id);
    return rc;
}

static enum lk_code work(struct pilot *p) {
    size_t n = lk_survey_task_length(p->s->study, p->who.place);
    const struct lk_survey_item **items = lk_malloc(n * sizeof *items);
    if (!items) return lk_fail(LK_E_NOMEM, "out of memory for a task");
    enum lk_code rc = lk_survey_task_items(p->s->study, p->who.worker, p->who.place, items);
    for (size_t i = 0; i < n && !rc; i++) rc = answer_item(p, items[i], (int)i);
    lk_free(items);
    enum lk_survey_verdict verdict = LK_SURVEY_DONE;
    if (!rc) rc = lk_survey_submit(p->s, &p->who, p->now, &verdict);
    if (!rc && verdict) rc = lk_fail(LK_E_INTERNAL, "pilot: a complete task was refused");
    return rc;
}

static enum lk_code take_part(struct pilot *p, int number) {
    char id[32], token[65];
    enum lk_survey_verdict verdict = LK_SURVEY_CONFLICT;
    snprintf(id, sizeof id, "pilot-%d", number);
    LK_TRY(lk_survey_enter(p->s, id, true, p->now, token));
    LK_TRY(lk_survey_visitor(p->s, token, p->now, &p->who));
    if (p->who.claim) return LK_OK; /* of an earlier dry run */
    LK_TRY(lk_survey_guided(p->s, &p->who, true, p->now));
    LK_TRY(lk_survey_consent(p->s, &p->who, p->s->consent_sha256, p->now));
    for (int t = 0; t < p->s->study->n_tasks && verdict; t++)
        LK_TRY(lk_survey_claim(p->s, &p->who, (number + t) % p->s->study->n_tasks, p->now, &verdict));
    if (verdict)
        return lk_fail(LK_E_INPUT, "pilot: no place is left for participant %d; have fewer, or a survey of more tasks",
                       number + 1);
    LK_TRY(lk_survey_visitor(p->s, token, p->now, &p->who));
    return work(p);
}

enum lk_code lk_survey_pilot(struct lk_survey *s, int n, int64_t now) {
    struct pilot p = {.s = s};
    int64_t n_real;
    LK_TRY(lk_sql_number(&s->sql, &n_real, 0, lk_survey_of_people, ""));
    if (n_real)
        return lk_fail(LK_E_INPUT,
                       "pilot: people have answered this survey (%lld answers): simulated ones would count among them; "
                       "give the dry run a --store of its own",
                       (long long)n_real);
    /* A dry run need not survive a power cut. */
    sqlite3_exec(s->sql.db, "PRAGMA synchronous=OFF", NULL, NULL, NULL);
    enum lk_code rc = LK_OK;
    for (int i = 0; i < n && !rc; i++) {
        p.now = now;
        lk_stream_numbered(&p.stream, s->study->seed, "pilot|", (uint64_t)i);
        rc = take_part(&p, i);
    }
    sqlite3_exec(s->sql.db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    return rc;
}
