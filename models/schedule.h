/* The noise levels of a job where it does not take the model's own: a list of its own, another scheduler's config, a
 * shift, or a preset that has what a few-step distillation was trained with. */
#pragma once

#include "engine/flow_match.h"
#include "models/parameters.h"

/* "1,0.75,0.5": at most LK_MAX_STEPS numbers in (0, 1], each smaller than the one before, as f32; out may be NULL.
 * LK_E_USAGE that begins with `flag`. */
enum lk_code lk_sigmas_read(const char *flag, const char *text, float *out, int *n);

/* lk_parameter.read of the parameters below: whether the text is a value. Of a scheduler it is a file, or its JSON:
 * *own gets what stands for either, a config with every field in one order. */
enum lk_code lk_sigmas_check(const char *flag, const char *text, char **own);
enum lk_code lk_flow_shift_check(const char *flag, const char *text, char **own);
enum lk_code lk_scheduler_load(const char *flag, const char *text, char **own);

/* The request's scheduler: the model's unless it says otherwise. */
enum lk_code lk_request_scheduler(const struct lk_request *request, const struct lk_flow_match_config *model,
                                  struct lk_flow_match_config *out);

/* What a preset stands for is given where the job has not: steps, guidance, schedule. Then as many steps as there are
 * input sigmas. LK_E_USAGE for a preset of another family, and where sigmas and steps do not fit. */
enum lk_code lk_schedule_complete(struct lk_job *job, const struct lk_pipeline *pipeline);
