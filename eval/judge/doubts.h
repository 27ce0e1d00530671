/* What makes a judge's scores say nothing, whatever the tests say of them. */
#pragma once

#include "engine/base/text.h"
#include "eval/scores/dataset.h"

/* Sentences, a line each; none where there is nothing to say. Of each judge the axes on which all its scores are one
 * and the same, and those on which it would rather have said something else than a digit (low_mass of its answers) in
 * more than a twentieth of them. names: as displayed, "" or NULL: not known. LK_E_NOMEM. */
enum lk_code lk_judge_doubts(const struct lk_dataset *data, const char *const names[LK_N_JUDGES], struct lk_text *out);
