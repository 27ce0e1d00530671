/* Human exports, gold keys and participants, then the combination of raters and the quality rules over whatever came of
 * them. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/alloc.h"
#include "eval/human/combine.h"
#include "eval/human/quality.h"
#include "eval/human/ratings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void check_ratings(const struct lk_dataset *data) {
    for (size_t i = 0; i < data->n_ratings; i++) {
        const struct lk_rating *r = &data->ratings[i];
        check(r->rater >= 0 && (size_t)r->rater < data->n_raters && r->item < (int32_t)data->n_items);
        check(r->item >= 0 || r->is_gold);
        check(r->n_skipped <= r->n_asked && r->n_asked && r->confidence >= 0 && r->confidence <= 5);
        check(r->preference >= -1 && r->preference <= 2 && r->role >= -1 && r->role <= 2 && r->skin_magnitude <= 5);
        check(r->gold_keyed || !r->gold_right);
        for (int a = 0; a < LK_N_AXES; a++)
            check(r->score[a] <= 5 && r->answer_class[a] >= -1 && r->answer_class[a] <= 2 && r->question_ms[a] >= -1);
    }
}

static void use(struct lk_dataset *data) {
    static int8_t classes[1 << 16];
    struct lk_quality_options options;
    struct lk_quality_report report;
    lk_ratings_count(data);
    for (int p = 0; p < 4; p++) {
        lk_quality_defaults((enum lk_protocol)p, &options);
        check(!lk_quality_check(data, &options, &report));
        check(report.n_excluded <= data->n_raters);
        lk_quality_exclude(data, &report, true);
        check(!lk_combine(data));
        lk_quality_exclude(data, &report, false);
        lk_quality_report_free(&report);
    }
    check(!lk_combine(data));
    for (size_t i = 0; i < data->n_items; i++)
        for (int a = 0; a < LK_N_AXES; a++) {
            const struct lk_item *item = &data->items[i];
            bool rated = !isnan(item->human_mean[a]);
            check(!rated || (item->human_mean[a] >= 1 && item->human_mean[a] <= 5));
            check(rated == (item->human_majority[a] >= 1) && item->human_majority[a] <= 5);
        }
    if (data->n_items > sizeof classes) return;
    for (int q = 0; q <= LK_QUESTION_PREFERENCE; q++) check(!lk_combine_classes(data, q, true, classes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lk_dataset set;
    lk_dataset_init(&set);
    struct lk_ratings_import import = {.data = &set, .gold_tolerance = 1};
    const char *text = (const char *)data;
    if (lk_ratings_gold(&import, text, size, "input")) check(*lk_error_text());
    if (lk_ratings_read(&import, text, size, "input")) check(*lk_error_text());
    check(import.rejects.n == import.n_invalid);
    size_t n_left_out = import.n_rejected + import.n_unfinished + import.n_previews;
    check(set.n_ratings + import.n_revisions + import.n_invalid + n_left_out == import.n_records);
    if (lk_ratings_participants(&import, text, size, "input", NULL)) check(*lk_error_text());
    check_ratings(&set);
    use(&set);
    lk_ratings_import_free(&import);
    lk_dataset_free(&set);
    check(lk_alloc_live() == 0);
    return 0;
}
