/* Gwet's agreement coefficient of any number of raters, AC1 without weights and AC2 with them (Gwet 2014, Handbook of
 * Inter-Rater Reliability). Where nearly all labels are one, kappa is near 0 however well raters agree; this is not.
 * Peer: irrCAC.raw.CAC(ratings, weights, categories).gwet(). */
#pragma once

#include "eval/stats/agreement/kappa.h"

struct lk_gwet {
    struct lk_number ac;       /* with Student's 95 % interval over items, cut at -1 and 1; n: items with a rating */
    double standard_error, p;  /* p against 0, two-sided; 1 where the error is 0 or there is one item */
    double observed, expected; /* weighted agreement; expected by chance */
    double prevalence;         /* the share of the label that is given most */
    size_t n_compared;         /* items with two ratings or more */
};

/* counts [n_items, n_labels]: how many raters gave each label, of the full list of levels, used or not. Items with one
 * rating count for how common labels are. LK_E_INPUT: fewer than 1 or more than 1,024 labels, a negative count or one
 * above 65,535. */
enum lk_code lk_gwet_ac(const int32_t *counts, size_t n_items, int n_labels, enum lk_weights weights,
                        struct lk_gwet *out);
