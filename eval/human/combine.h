/* Several raters' answers about one item made one. Attention checks and excluded raters are left out. */
#pragma once

#include "engine/base/status.h"
#include "eval/scores/dataset.h"

enum { LK_MIN_RATINGS = 2 };

/* Sets human_mean, human_majority, human_unresolved and n_ratings of every item, per axis from the ratings that have a
 * score there. Mean: of two or more. Majority: the value of more than half; without one the median, a half between two
 * levels to the even one, and the axis's bit in human_unresolved. LK_E_NOMEM. */
enum lk_code lk_combine(struct lk_dataset *data);

/* The value of more than half of n levels, 0 without one; *median as above. counts: how often each level 1..5 was
 * given. n 0: both 0. */
int lk_majority(const int counts[6], int n, int *median);

/* Questions answered in classes: an axis (lk_rating.answer_class), or one of these. */
enum { LK_QUESTION_ROLE = LK_N_AXES, LK_QUESTION_PREFERENCE };
enum { LK_CLASS_UNRESOLVED = -1, LK_CLASS_NONE = -2 };

/* The class that more than half of an item's raters gave: out [n_items], LK_CLASS_UNRESOLVED without a majority,
 * LK_CLASS_NONE below two answers. from_levels: an axis answered on five levels counts as the class of its level. */
enum lk_code lk_combine_classes(const struct lk_dataset *data, int question, bool from_levels, int8_t *out);
