/* Reading back what the pixel judge said of a run: it scores two axes of five, so its lines are no judge's answers. */
#pragma once

#include "eval/judge/answers.h"

/* JSON lines or a JSON array of {"item_id", "judge": "pixel", "scores": {"edit_success", "skin_tone"}}; a score may be
 * missing or null, and any other axis is a fault. Counts and rejects as lk_judge_answers_read. */
enum lk_code lk_pixel_scores_read(struct lk_dataset *data, const char *text, size_t n, const char *name,
                                  const struct lk_judge_import *import, struct lk_judge_report *report);
