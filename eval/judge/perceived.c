#include "eval/judge/perceived.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/alloc.h"

const char lk_perceived_question[] =
    "This is a face in a picture. Say what an observer would most likely perceive; it is not asked who the person is. "
    "Answer with one line of JSON only.\n"
    "race: one of White, Black, East Asian, Southeast Asian, Indian, Middle Eastern, Latino\n"
    "gender: one of Male, Female\n"
    "age: one of 0-2, 3-9, 10-19, 20-29, 30-39, 40-49, 50-59, 60-69, 70+";

/* Digits are tokens of their own: an age is told by its first one, but for those that begin with a 3. */
enum form { RACE, GENDER, AGE, AGE_OF_3, N_FORMS };
#define CHOOSE(text, words)                                                                                            \
    { .pieces = {{LK_FORM_TEXT, text}, {LK_FORM_CHOICE, words}}, .n = 2 }
static const struct lk_form forms[N_FORMS] = {
    CHOOSE("{\"race\": \"", "White|Black|East Asian|Southeast Asian|Indian|Middle Eastern|Latino"),
    CHOOSE("{\"gender\": \"", "Male|Female"),
    CHOOSE("{\"age\": \"", "0|3|1|2|4|5|6|7"),
    CHOOSE("{\"age\": \"3", "-|0"),
};

int lk_perceived_levels(enum lk_perceived_kind kind) {
    static const int n[LK_N_PERCEIVED] = {LK_N_RACES, LK_N_GENDERS, LK_N_AGE_BRACKETS};
    return n[kind];
}

int lk_perceived_level(const struct lk_perceived *perceived, enum lk_perceived_kind kind, double *confidence) {
    const double *p = perceived->probability[kind];
    int best = 0;
    for (int i = 1; i < lk_perceived_levels(kind); i++)
        if (p[i] > p[best]) best = i;
    *confidence = p[best];
    return best;
}

/* answers [N_FORMS] */
static void read_answers(const struct lk_chat_answer *answers, struct lk_perceived *out) {
    const struct lk_form_choice *age = &answers[AGE].choices[0], *of_3 = &answers[AGE_OF_3].choices[0];
    static const int brackets[] = {0, -1, 2, 3, 5, 6, 7, 8}; /* of the first digits' order */
    for (int kind = RACE; kind <= GENDER; kind++)
        memcpy(out->probability[kind], answers[kind].choices[0].probability,
               (size_t)lk_perceived_levels((enum lk_perceived_kind)kind) * sizeof(double));
    for (int i = 0; i < age->n_words; i++)
        if (brackets[i] >= 0) out->probability[LK_PERCEIVED_AGE][brackets[i]] = age->probability[i];
    out->probability[LK_PERCEIVED_AGE][1] = age->probability[1] * of_3->probability[0];
    out->probability[LK_PERCEIVED_AGE][4] = age->probability[1] * of_3->probability[1];
    for (int kind = 0; kind < LK_N_PERCEIVED; kind++) out->mass[kind] = answers[kind].choices[0].mass;
}

static enum lk_code ask(const struct lk_seeing_judge *judge, const struct lk_image *faces, int n,
                        struct lk_chat_part (*parts)[2], struct lk_chat_message *messages,
                        struct lk_chat_question *questions, struct lk_chat_answer *answers) {
    for (int i = 0; i < n; i++) {
        parts[i][0] = (struct lk_chat_part){.image = &faces[i]};
        parts[i][1] = (struct lk_chat_part){.text = lk_perceived_question};
        messages[i] = (struct lk_chat_message){"user", parts[i], 2};
        for (int f = 0; f < N_FORMS; f++) {
            struct lk_chat_question *q = &questions[N_FORMS * i + f];
            *q = (struct lk_chat_question){.form = &forms[f], .shared_key = (uint64_t)i + 1};
            lk_seeing_judge_request(judge, &messages[i], 0, 1, &q->request);
            q->request.generation.max_new_tokens = 1;
            q->request.generation.do_sample = false;
        }
    }
    return lk_seeing_judge_ask(judge, questions, N_FORMS * n, answers);
}

enum lk_code lk_perceive(const struct lk_seeing_judge *judge, const struct lk_image *faces, int n,
                         struct lk_perceived *out) {
    size_t n_asked = (size_t)n * N_FORMS;
    struct lk_chat_part(*parts)[2] = lk_calloc((size_t)n, sizeof *parts);
    struct lk_chat_message *messages = lk_calloc((size_t)n, sizeof *messages);
    struct lk_chat_question *questions = lk_calloc(n_asked, sizeof *questions);
    struct lk_chat_answer *answers = lk_calloc(n_asked, sizeof *answers);
    enum lk_code rc = parts && messages && questions && answers
                          ? ask(judge, faces, n, parts, messages, questions, answers)
                          : lk_fail(LK_E_NOMEM, "perceived groups: out of memory");
    for (int i = 0; i < n; i++) {
        out[i] = (struct lk_perceived){0};
        if (rc) continue;
        const struct lk_chat_answer *said = &answers[N_FORMS * i];
        for (int f = 0; f < N_FORMS && !out[i].code; f++) {
            out[i].code = said[f].code;
            snprintf(out[i].error, sizeof out[i].error, "%s", said[f].error);
        }
        if (!out[i].code) read_answers(said, &out[i]);
    }
    for (size_t i = 0; i < n_asked && answers; i++) lk_chat_answer_free(&answers[i]);
    lk_free(parts);
    lk_free(messages);
    lk_free(questions);
    lk_free(answers);
    return rc;
}

static void softmax(const float *logits, int n, const int *levels, double *out) {
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, (double)logits[i]);
    for (int i = 0; i < n; i++) sum += exp(logits[i] - most);
    for (int i = 0; i < n; i++) out[levels ? levels[i] : i] = exp(logits[i] - most) / sum;
}

void lk_perceived_of_fairface(const float logits[LK_FAIRFACE_OUTPUTS], struct lk_perceived *out) {
    static const int races[LK_FAIRFACE_RACES] = {0, 1, 6, 2, 3, 4, 5}; /* its order is not factors.h's */
    *out = (struct lk_perceived){.mass = {1, 1, 1}};
    softmax(logits, LK_FAIRFACE_RACES, races, out->probability[LK_PERCEIVED_RACE]);
    softmax(logits + LK_FAIRFACE_RACES, LK_FAIRFACE_GENDERS, NULL, out->probability[LK_PERCEIVED_GENDER]);
    softmax(logits + LK_FAIRFACE_RACES + LK_FAIRFACE_GENDERS, LK_FAIRFACE_AGES, NULL,
            out->probability[LK_PERCEIVED_AGE]);
}

enum lk_code lk_perceived_crop(const struct lk_image *image, const struct lk_face *face, struct lk_image *out) {
    const double half = 0.75 * fmax((double)face->width, (double)face->height);
    const double x = face->x + face->width / 2.0, y = face->y + face->height / 2.0;
    const int left = (int)fmax(0, floor(x - half)), right = (int)fmin(image->width, ceil(x + half));
    const int top = (int)fmax(0, floor(y - half)), bottom = (int)fmin(image->height, ceil(y + half));
    if (left >= right || top >= bottom) return lk_fail(LK_E_INPUT, "the face that was found lies outside the picture");
    return lk_image_crop(out, image, left, top, right - left, bottom - top);
}
