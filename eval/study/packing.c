#include "eval/study/packing.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "eval/study/random.h"

enum lk_code lk_pack_hits(int64_t n_items, int n_raters, int per_hit, int gold_per_hit, enum lk_packing rule,
                          struct lk_hits *out) {
    *out = (struct lk_hits){0};
    if (n_items < 1 || n_items > INT32_MAX || n_raters < 1 || n_raters > 1000 || per_hit < 1)
        return lk_fail(LK_E_INPUT, "packing: expected at least 1 item, rater and item per HIT, got %lld, %d and %d",
                       (long long)n_items, n_raters, per_hit);
    int64_t answers = n_items * n_raters;
    if (rule == LK_PACKING_PACKED) {
        int room = per_hit - gold_per_hit;
        if (gold_per_hit < 0 || room < 1)
            return lk_fail(LK_E_INPUT, "packing: %d gold items leave no room in a HIT of %d", gold_per_hit, per_hit);
        out->n_hits = (n_items + room - 1) / room;
        out->n_assignments = out->n_hits * n_raters;
        return LK_OK;
    }
    out->n_hits =
        rule == LK_PACKING_SEED ? (2 * answers + per_hit) / (2 * (int64_t)per_hit) : (answers + per_hit - 1) / per_hit;
    out->n_assignments = out->n_hits;
    return LK_OK;
}

void lk_pack_tasks(size_t n, bool blocked, uint64_t seed, int32_t *out) {
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)i;
    if (blocked) return;
    struct lk_stream stream;
    lk_stream_named(&stream, seed, "tasks");
    lk_stream_shuffle(&stream, out, n);
}

/* stream(seed, "KIND|a|b"); ids may be longer than any fixed buffer. */
static enum lk_code labelled(struct lk_stream *stream, uint64_t seed, const char *kind, const char *a, const char *b) {
    int n = snprintf(NULL, 0, "%s|%s|%s", kind, a, b);
    char *label = lk_malloc((size_t)n + 1);
    if (!label) return lk_fail(LK_E_NOMEM, "out of memory for the label of a random stream");
    snprintf(label, (size_t)n + 1, "%s|%s|%s", kind, a, b);
    lk_stream_named(stream, seed, label);
    lk_free(label);
    return LK_OK;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Gold item g goes behind item gaps[g]; the gaps differ, so no two are adjacent and none is first. */
enum lk_code lk_task_order(uint64_t seed, const char *participant, const char *task, size_t n_items, size_t n_gold,
                           int32_t *out) {
    struct lk_stream stream;
    if (n_gold > n_items || n_items > INT32_MAX)
        return lk_fail(LK_E_INPUT, "task %s: %zu gold items do not fit between %zu items", task, n_gold, n_items);
    LK_TRY(labelled(&stream, seed, "order", participant, task));
    int32_t *work = lk_malloc((2 * n_items + n_gold) * sizeof *work);
    if (!work) return lk_fail(LK_E_NOMEM, "out of memory for the order of a task");
    int32_t *order = work, *gaps = work + n_items, *gold = gaps + n_items;
    for (size_t i = 0; i < n_items; i++) order[i] = gaps[i] = (int32_t)i;
    for (size_t i = 0; i < n_gold; i++) gold[i] = -1 - (int32_t)i;
    lk_stream_shuffle(&stream, order, n_items);
    lk_stream_shuffle(&stream, gaps, n_items);
    lk_stream_shuffle(&stream, gold, n_gold);
    qsort(gaps, n_gold, sizeof *gaps, ascending);
    for (size_t i = 0, g = 0, at = 0; i < n_items; i++) {
        out[at++] = order[i];
        if (g < n_gold && gaps[g] == (int32_t)i) out[at++] = gold[g++];
    }
    lk_free(work);
    return LK_OK;
}

enum lk_code lk_left_arm(uint64_t seed, const char *participant, const char *item, int *out) {
    struct lk_stream stream;
    LK_TRY(labelled(&stream, seed, "side", participant, item));
    *out = (int)lk_stream_bounded(&stream, 2);
    return LK_OK;
}
