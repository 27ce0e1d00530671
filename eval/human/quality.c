#include "eval/human/quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/human/answers.h"
#include "eval/human/combine.h"
#include "eval/study/prompts.h"

enum { N_LEVELS = 5, MAX_CLASSES = 3 };

int lk_majority(const int counts[6], int n, int *median) {
    int majority = 0, seen = 0, low = 0, high = 0;
    for (int level = 1; level <= N_LEVELS; level++) {
        if (2 * counts[level] > n) majority = level;
        seen += counts[level];
        if (!low && seen >= (n + 1) / 2) low = level;
        if (!high && seen >= n / 2 + 1) high = level;
    }
    int sum = low + high;
    *median = sum % 2 == 0 ? sum / 2 : sum % 4 == 1 ? (sum - 1) / 2 : (sum + 1) / 2;
    return majority;
}

static bool counts_for_items(const struct lk_dataset *data, const struct lk_rating *rating) {
    return rating->item >= 0 && !rating->is_gold && (rating->rater < 0 || !data->raters[rating->rater].excluded);
}

enum lk_code lk_combine(struct lk_dataset *data) {
    int(*counts)[LK_N_AXES][N_LEVELS + 1] = lk_calloc(data->n_items, sizeof *counts);
    if (!counts) return lk_fail(LK_E_NOMEM, "out of memory to combine the raters");
    for (size_t i = 0; i < data->n_items; i++) data->items[i].n_ratings = 0;
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        bool any = false;
        if (!counts_for_items(data, rating)) continue;
        for (int a = 0; a < LK_N_AXES; a++) {
            any = any || rating->score[a];
            counts[rating->item][a][rating->score[a]]++; /* [0]: no score */
        }
        struct lk_item *item = &data->items[rating->item];
        if (any && item->n_ratings < UINT8_MAX) item->n_ratings++;
    }
    for (size_t i = 0; i < data->n_items; i++) {
        struct lk_item *item = &data->items[i];
        item->human_unresolved = 0;
        for (int a = 0; a < LK_N_AXES; a++) {
            const int *c = counts[i][a];
            int n = c[1] + c[2] + c[3] + c[4] + c[5], sum = c[1] + 2 * c[2] + 3 * c[3] + 4 * c[4] + 5 * c[5], median;
            item->human_mean[a] = n < LK_MIN_RATINGS ? NAN : (double)sum / n;
            item->human_majority[a] = 0;
            if (n < LK_MIN_RATINGS) continue;
            int majority = lk_majority(c, n, &median);
            item->human_majority[a] = (uint8_t)(majority ? majority : median);
            if (!majority) item->human_unresolved |= (uint8_t)(1u << a);
        }
    }
    lk_free(counts);
    return LK_OK;
}

/* The class of one rating, -1 when it has none. */
static int class_of(const struct lk_rating *rating, int question, bool from_levels) {
    if (question == LK_QUESTION_ROLE) return rating->role;
    if (question == LK_QUESTION_PREFERENCE) return rating->preference;
    if (rating->answer_class[question] >= 0) return rating->answer_class[question];
    return from_levels && rating->score[question] ? lk_class_of_level(question, rating->score[question]) : -1;
}

enum lk_code lk_combine_classes(const struct lk_dataset *data, int question, bool from_levels, int8_t *out) {
    int(*counts)[MAX_CLASSES] = lk_calloc(data->n_items, sizeof *counts);
    if (!counts) return lk_fail(LK_E_NOMEM, "out of memory to combine the raters");
    for (size_t r = 0; r < data->n_ratings; r++) {
        const struct lk_rating *rating = &data->ratings[r];
        int given = class_of(rating, question, from_levels);
        if (given >= 0 && counts_for_items(data, rating)) counts[rating->item][given]++;
    }
    for (size_t i = 0; i < data->n_items; i++) {
        const int *c = counts[i];
        int n = c[0] + c[1] + c[2];
        out[i] = n < LK_MIN_RATINGS ? LK_CLASS_NONE : LK_CLASS_UNRESOLVED;
        for (int k = 0; n >= LK_MIN_RATINGS && k < MAX_CLASSES; k++)
            if (2 * c[k] > n) out[i] = (int8_t)k;
    }
    lk_free(counts);
    return LK_OK;
}

static const char *const policies[] = {"any", "two_flags", "none", "completion"};
static const char *const protocols[] = {"003", "001", "000", "004"};

static int index_of(const char *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], name)) return i;
    return -1;
}

const char *lk_protocol_name(enum lk_protocol protocol) { return protocols[protocol]; }
const char *lk_quality_policy_name(enum lk_quality_policy policy) { return policies[policy]; }
int lk_protocol_parse(const char *name) { return index_of(protocols, 4, name); }
int lk_quality_policy_parse(const char *name) { return index_of(policies, 4, name); }

const char *lk_quality_rule_name(enum lk_quality_rule rule) {
    static const char *const names[] = {"Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8", "Q9", "Q10", "Q11", "Q12"};
    return names[rule];
}

const char *lk_quality_rule_text(enum lk_quality_rule rule) {
    static const char *const texts[] = {"accuracy on gold items",
                                        "repeated participation or pilot",
                                        "duration below half the estimate",
                                        "near-zero variance",
                                        "all answers identical",
                                        "diagonal pattern",
                                        "fast answer",
                                        "speeder",
                                        "straight-liner",
                                        "incomplete",
                                        "unfinished task",
                                        "no valid completion code"};
    return texts[rule];
}

void lk_quality_defaults(enum lk_protocol protocol, struct lk_quality_options *out) {
    static const enum lk_quality_policy policy[] = {LK_POLICY_COMPLETION, LK_POLICY_ANY, LK_POLICY_TWO_FLAGS,
                                                    LK_POLICY_TWO_FLAGS};
    static const int durations[4][3] = {{1500, 1500, 1500}, {1200, 1200, 1200}, {600, 800, 375}, {600, 800, 375}};
    *out = (struct lk_quality_options){.protocol = protocol,
                                       .policy = policy[protocol],
                                       .gold_percent = 80,
                                       .variance = 0.05,
                                       .diagonal_percent = 80,
                                       .fast_ms = 2000,
                                       .speeder_ms = 3000,
                                       .straight_percent = 80,
                                       .skipped_percent = 10,
                                       .expected_excluded = 0.10};
    memcpy(out->duration_s, durations[protocol], sizeof out->duration_s);
}

/* A rater's ratings in the order of the answers: by task and position where all have one, else as recorded. */
struct sequence {
    const struct lk_rating *ratings;
    int32_t *order; /* [n] */
    size_t n;
    double *times; /* room for LK_N_AXES times n */
};

static int by_rater(const void *a, const void *b, void *ratings) {
    const struct lk_rating *all = ratings;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (all[x].rater != all[y].rater) return all[x].rater < all[y].rater ? -1 : 1;
    return (x > y) - (x < y);
}

static int by_position(const void *a, const void *b, void *ratings) {
    const struct lk_rating *all = ratings;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (all[x].task != all[y].task) return all[x].task < all[y].task ? -1 : 1;
    if (all[x].position != all[y].position) return all[x].position < all[y].position ? -1 : 1;
    return (x > y) - (x < y);
}

static int by_task(const void *a, const void *b, void *ratings) {
    const struct lk_rating *all = ratings;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (all[x].task != all[y].task) return all[x].task < all[y].task ? -1 : 1;
    return (x > y) - (x < y);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The level given on an axis, 0 when it was answered in classes or not at all. */
static int level_of(const struct lk_rating *rating, int axis) {
    if (axis == LK_AXIS_SKIN_TONE && rating->skin_magnitude) return rating->skin_magnitude;
    return rating->answer_class[axis] >= 0 ? 0 : rating->score[axis];
}

static void look_at_answers(const struct sequence *s, struct lk_rater_quality *q) {
    int counts[6] = {0}, last = 0;
    long sum = 0, squares = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct lk_rating *rating = &s->ratings[s->order[i]];
        if (rating->is_gold) {
            q->n_gold += rating->gold_keyed;
            q->n_gold_right += rating->gold_keyed && rating->gold_right;
            continue;
        }
        for (int a = 0; a < LK_N_AXES; a++) {
            int level = level_of(rating, a);
            if (!level) continue;
            sum += level;
            squares += level * level;
            q->n_answers++;
            if (++counts[level] > q->n_most_common) q->n_most_common = counts[level];
            if (last) {
                q->n_steps++;
                q->n_up += level == last % 5 + 1;
                q->n_down += last == level % 5 + 1;
            }
            last = level;
        }
    }
    double n = q->n_answers;
    q->variance = q->n_answers ? (n * (double)squares - (double)sum * (double)sum) / (n * n) : NAN;
}

static void look_at_times(const struct sequence *s, const struct lk_quality_options *o, struct lk_rater_quality *q) {
    for (size_t i = 0; i < s->n; i++) {
        const struct lk_rating *rating = &s->ratings[s->order[i]];
        int n_before = q->n_timed;
        for (int a = 0; a < LK_N_AXES; a++)
            if (rating->question_ms[a] >= 0) s->times[q->n_timed++] = rating->question_ms[a];
        int n_answered = rating->n_asked - rating->n_skipped;
        if (q->n_timed == n_before && rating->duration_ms >= 0 && n_answered > 0) /* the record's time, evenly */
            for (int k = 0; k < n_answered && k < LK_N_AXES; k++)
                s->times[q->n_timed++] = (double)rating->duration_ms / n_answered;
    }
    for (int i = 0; i < q->n_timed; i++) q->n_fast += s->times[i] < o->fast_ms;
    q->median_ms = NAN;
    if (!q->n_timed) return;
    qsort(s->times, (size_t)q->n_timed, sizeof *s->times, ascending);
    q->median_ms = (s->times[(q->n_timed - 1) / 2] + s->times[q->n_timed / 2]) / 2;
}

static int experiment_of(const struct lk_dataset *data, const struct lk_rating *rating) {
    if (rating->role != LK_ROLE_NONE) return 2;
    if (rating->item >= 0 && data->items[rating->item].prompt >= LK_N_EDIT_PROMPTS) return 2;
    return rating->preference >= 0;
}

/* Each task's time against the estimate of its experiment. The order has a task's ratings together where tasks are
 * recorded; a task with a record without a time has none. */
static void look_at_tasks(const struct lk_dataset *data, const struct sequence *s, const struct lk_quality_options *o,
                          struct lk_rater_quality *q) {
    q->least_duration_part = NAN;
    for (size_t i = 0; i < s->n;) {
        int32_t task = s->ratings[s->order[i]].task;
        double ms = 0;
        int experiment = 0;
        for (; i < s->n && s->ratings[s->order[i]].task == task; i++) {
            const struct lk_rating *rating = &s->ratings[s->order[i]];
            ms += rating->duration_ms < 0 ? NAN : rating->duration_ms;
            int e = experiment_of(data, rating);
            if (e > experiment) experiment = e;
        }
        double part = ms / (1000.0 * o->duration_s[experiment]);
        q->n_tasks += task >= 0; /* a record without a task says nothing of how many there were */
        if (!isnan(part) && !(part >= q->least_duration_part)) q->least_duration_part = part;
    }
}

static uint32_t rules_of(const struct lk_rater *rater, const struct lk_rater_quality *q,
                         const struct lk_quality_options *o) {
    const long n = q->n_answers;
    const bool hit[LK_N_QUALITY_RULES] = {
        [LK_Q1_GOLD] =
            100L * q->n_gold_right<(long)o->gold_percent * q->n_gold, [LK_Q2_REPEATED] = rater->n_sessions> 1 ||
            rater->is_pilot || (o->protocol == LK_PROTOCOL_003 && q->n_tasks > 1),
        [LK_Q3_DURATION] =
            rater->submitted && q->least_duration_part<0.5, [LK_Q4_VARIANCE] = n> 1 && q->variance <= o->variance,
        [LK_Q5_IDENTICAL] = n > 1 && q->n_most_common == n,
        [LK_Q6_DIAGONAL] = q->n_steps && (100L * q->n_up >= (long)o->diagonal_percent * q->n_steps ||
                                          100L * q->n_down >= (long)o->diagonal_percent * q->n_steps),
        [LK_Q7_FAST] = q->n_fast > 0,
        [LK_Q8_SPEEDER] =
            q->median_ms<o->speeder_ms, [LK_Q9_STRAIGHT] = n> 1 && 100L * q->n_most_common > o->straight_percent * n,
        [LK_Q10_SKIPPED] = 100L * rater->n_skipped > (long)o->skipped_percent * rater->n_questions,
        [LK_Q11_UNFINISHED] = !rater->submitted,
        [LK_Q12_NO_CODE] = !rater->code_valid,
    };
    uint32_t rules = 0;
    for (int r = 0; r < LK_N_QUALITY_RULES; r++)
        if (hit[r]) rules |= 1u << r;
    return rules;
}

uint32_t lk_quality_excluding(uint32_t rules, enum lk_quality_policy policy) {
    const uint32_t completion = 1u << LK_Q11_UNFINISHED | 1u << LK_Q12_NO_CODE, q1 = 1u << LK_Q1_GOLD,
                   fast = 1u << LK_Q7_FAST;
    switch (policy) {
    case LK_POLICY_ANY:
        return rules & (completion | q1 | 1u << LK_Q2_REPEATED | 1u << LK_Q8_SPEEDER | 1u << LK_Q9_STRAIGHT |
                        1u << LK_Q10_SKIPPED);
    case LK_POLICY_TWO_FLAGS:
        if (rules & q1 || __builtin_popcount(rules & ~(1u << LK_Q7_FAST)) >= 2) return rules & ~fast;
        return 0;
    case LK_POLICY_COMPLETION:
        return rules & completion;
    default:
        return 0;
    }
}

static void check_rater(const struct lk_dataset *data, size_t rater, struct sequence *s,
                        const struct lk_quality_options *o, struct lk_rater_quality *q) {
    bool placed = true;
    for (size_t i = 0; i < s->n; i++) placed = placed && s->ratings[s->order[i]].position >= 0;
    if (s->n > 1) qsort_r(s->order, s->n, sizeof *s->order, placed ? by_position : by_task, data->ratings);
    look_at_answers(s, q);
    look_at_times(s, o, q);
    look_at_tasks(data, s, o, q);
    q->rules = rules_of(&data->raters[rater], q, o);
    q->excluded = lk_quality_excluding(q->rules, o->policy) != 0;
}

enum lk_code lk_quality_check(struct lk_dataset *data, const struct lk_quality_options *options,
                              struct lk_quality_report *out) {
    size_t n = data->n_ratings;
    *out = (struct lk_quality_report){.n_raters = data->n_raters, .expected_rate = options->expected_excluded};
    out->raters = lk_calloc(data->n_raters, sizeof *out->raters);
    int32_t *order = lk_malloc(n * sizeof *order);
    double *times = lk_malloc(LK_N_AXES * n * sizeof *times);
    if (!out->raters || !order || !times) {
        lk_free(order);
        lk_free(times);
        lk_quality_report_free(out);
        return lk_fail(LK_E_NOMEM, "out of memory for the quality rules");
    }
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    if (n > 1) qsort_r(order, n, sizeof *order, by_rater, data->ratings);
    size_t at = 0;
    while (at < n && data->ratings[order[at]].rater < 0) at++;
    for (size_t r = 0; r < data->n_raters; r++) {
        struct sequence s = {.ratings = data->ratings, .order = order + at, .times = times};
        while (at + s.n < n && data->ratings[order[at + s.n]].rater == (int32_t)r) s.n++;
        check_rater(data, r, &s, options, &out->raters[r]);
        at += s.n;
        data->raters[r].rules_hit = out->raters[r].rules;
        out->n_excluded += out->raters[r].excluded;
        for (int k = 0; k < LK_N_QUALITY_RULES; k++) out->n_hit[k] += out->raters[r].rules >> k & 1;
    }
    out->excluded_rate = data->n_raters ? (double)out->n_excluded / (double)data->n_raters : 0;
    lk_free(order);
    lk_free(times);
    return LK_OK;
}

void lk_quality_exclude(struct lk_dataset *data, const struct lk_quality_report *report, bool on) {
    for (size_t r = 0; r < data->n_raters; r++)
        data->raters[r].excluded = on && r < report->n_raters && report->raters[r].excluded;
}

void lk_quality_report_free(struct lk_quality_report *report) {
    lk_free(report->raters);
    memset(report, 0, sizeof *report);
}
