/* The first sentences of the text-to-image page, for people who read no table. */
#pragma once

#include "eval/document/page.h"
#include "eval/t2i/metrics.h"

/* Whom each model's base pictures show more often than the target has them, the furthest first; which mitigations
 * change that; of all prompts together, or of those that name no gender. LK_E_NOMEM. */
enum lk_code lk_t2i_findings(const struct lk_t2i_metrics *metrics, struct lk_page *page);
