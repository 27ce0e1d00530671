/* Inside of relabellings. Private to eval/stats/crossed. */
#pragma once

#include "eval/stats/crossed/relabel.h"

/* t and difference [n_columns, n_levels] under these labels; room: doubles to work in, each thread's own. */
typedef void lk_statistic_fn(const void *context, double *room, const int32_t *labels, double *t, double *difference);

/* Fills all of out but n_columns and n_levels, which are given. Labels move within strata[n], any numbers. Relabellings
 * that are drawn are shared among threads, each by its own stream: the same bits for any number of them. */
enum lk_code lk_relabel(int n, const int32_t *labels, const int32_t *strata, const struct lk_relabel *how,
                        lk_statistic_fn *statistic, const void *context, size_t n_room, struct lk_relabelled *out);
/* |difference| / sqrt(V), V of V_S + V_P - V_SP, never below the larger of V_S and V_P; without variance infinite, or 0
 * where there is no difference either. */
double lk_studentised(double difference, double source, double prompt, double cell);
