/* What makes a judge's scores say nothing, whatever the tests say of them. */
#pragma once

#include "engine/base/text.h"
#include "eval/judge/answers.h"
#include "eval/scores/dataset.h"

/* Sentences, a line each; none where there is nothing to say. Of each judge the axes on which all its scores are one
 * and the same, and those on which it would rather have said something else than a digit (low_mass of its answers) in
 * more than a twentieth of them. names: as displayed, "" or NULL: not known. LK_E_NOMEM. */
enum lk_code lk_judge_doubts(const struct lk_dataset *data, const char *const names[LK_N_JUDGES], struct lk_text *out);

/* Reading back what the pixel judge said of a run: it scores two axes of five, so its lines are no judge's answers. */
/* JSON lines or a JSON array of {"item_id", "judge": "pixel", "scores": {"edit_success", "skin_tone"}}; a score may be
 * missing or null, and any other axis is a fault. Counts and rejects as lk_judge_answers_read. */
enum lk_code lk_pixel_scores_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                  const struct lk_judge_import *import, struct lk_judge_report *report);
