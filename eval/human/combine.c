#include "eval/human/combine.h"

#include <math.h>

#include "engine/base/alloc.h"
#include "eval/human/answers.h"

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
