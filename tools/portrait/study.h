/* A study of drawn editors, as files: what a run of models would leave, without models. */
#pragma once

#include "tools/portrait/editor.h"

/* Writes into folder (which is made when it is missing) run/ITEM.png for each of the 84 sources, each chosen prompt of
 * the study and each family, by the family's editor, and images.jsonl, which names sources/SOURCE.png as make_portraits
 * writes them. chosen [EDITS_N_STUDY]. The seed decides strength and slips. */
enum lk_code portrait_study(const char *folder, const bool *chosen, int size, uint64_t seed, double strength,
                            double slips);
