/* What a labeller perceives in pictures whose people are known: the 84 sources of the study, a labelled data set. */
#pragma once

#include "engine/base/text.h"
#include "eval/scores/labels.h"
#include "eval/t2i/distribution.h"

struct lk_t2i_confusion {
    /* Of each known level how many are perceived as what; the last column: no face or no label. */
    int64_t counts[LK_N_T2I_ATTRIBUTES][LK_T2I_MAX_LEVELS][LK_T2I_MAX_LEVELS + 1];
    int64_t n_right[LK_N_T2I_ATTRIBUTES], n[LK_N_T2I_ATTRIBUTES]; /* n: known and perceived or not */
    size_t n_unknown;                                             /* perceived pictures that `known` lacks */
};

/* Joined by file_path, letter by letter. Attributes that no picture is perceived to have are not
 * counted. LK_E_INPUT: no picture is in both, or one twice in `known`. */
enum lk_code lk_t2i_confuse(const struct lk_labels *known, const struct lk_labels *perceived,
                            struct lk_t2i_confusion *out);
/* attribute,known,perceived,n,share: of each known level that occurs a line for every perceived one, "" for none.
 * share: of the known level's. */
enum lk_code lk_t2i_confusion_csv(const struct lk_t2i_confusion *confusion, struct lk_text *out);
