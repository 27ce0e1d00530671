/* Reviewers' decisions, and answers to the older study's questions: every record is read whole or named, and what was
 * read stands within its bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/alloc.h"
#include "eval/judge/legacy.h"
#include "eval/judge/review.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void check_decision(const struct lk_decision *d) {
    check(d->axis >= 0 && d->axis < LK_N_REVIEW_AXES && d->line && *d->item_id && *d->reviewer);
    check(d->score == LK_REVIEW_WITHDRAWN || *lk_review_score_text(d->axis, d->score));
    check(!lk_review_check(d));
}

/* A decision about each item that is named stands at most once per axis; swapping twice changes nothing. */
static void apply(const struct lk_review *review) {
    struct lk_dataset data;
    struct lk_review_counts counts;
    size_t n = 0;
    lk_dataset_init(&data);
    for (size_t i = 0; i < review->n && i < 50; i++) {
        int32_t at;
        check(!lk_dataset_item(&data, review->list[i].item_id, strlen(review->list[i].item_id), &at));
    }
    check(!lk_review_apply(&data, review, &counts));
    for (size_t i = 0; i < data.n_items; i++) n += (size_t)__builtin_popcount(data.items[i].reviewed_axes);
    check(n == counts.n_standing && counts.n_unknown <= review->n);
    lk_review_swap(&data);
    lk_review_swap(&data);
    for (size_t i = 0; i < data.n_items; i++)
        for (int a = 0; a < LK_N_AXES; a++) check(data.items[i].score[a] == 0 && data.items[i].reviewed[a] <= 5);
    lk_dataset_free(&data);
}

static void read_review(const uint8_t *bytes, size_t size) {
    struct lk_review review = {0};
    enum lk_code rc = lk_review_read(&review, (const char *)bytes, size, "input");
    check(!rc || rc == LK_E_INPUT || rc == LK_E_JSON);
    check(review.n + review.n_invalid + review.n_open == review.n_records || rc);
    check(review.rejects.n == review.n_invalid);
    for (size_t i = 0; i < review.n; i++) check_decision(&review.list[i]);
    apply(&review);
    lk_review_free(&review);
}

static void read_legacy(const uint8_t *bytes, size_t size, bool pairwise) {
    struct lk_legacy legacy = {.pairwise = pairwise};
    enum lk_code rc = lk_legacy_read(&legacy, (const char *)bytes, size, "input");
    check(!rc || rc == LK_E_INPUT || rc == LK_E_JSON);
    check(legacy.rejects.n == legacy.n_invalid && legacy.n_invalid <= legacy.n_records);
    for (size_t i = 0; i < legacy.items.n_items; i++) {
        const struct lk_legacy_answer *answer = &legacy.list[i];
        int n = answer->order[0] >= 0 || answer->order[1] >= 0;
        for (int q = 0; q < LK_N_LEGACY; q++) {
            n += answer->classes[q] >= 0;
            check(isnan(answer->confidence[q]) || (answer->confidence[q] >= 0 && answer->confidence[q] <= 1));
            check(answer->classes[q] < 0 || *lk_legacy_word((enum lk_legacy_question)q, answer->classes[q]));
        }
        check(n > 0 && lk_legacy_preference(answer) <= 2);
    }
    lk_legacy_free(&legacy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_review(data, size);
    read_legacy(data, size, false);
    read_legacy(data, size, true);
    check(lk_alloc_live() == 0);
    return 0;
}
