/* Quality control of raters: every rule is computed and listed, a policy decides what excludes.
 *
 *     struct lk_quality_report report;
 *     LK_TRY(lk_quality_check(&data, &options, &report));   // rules_hit of every rater, and the report
 *     lk_quality_exclude(&data, &report, true);             // results without the excluded raters:
 *     LK_TRY(lk_combine(&data));                            // ... and lk_quality_exclude(.., false) for all of them */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "eval/scores/dataset.h"

/* In the order of the study's table; a rule's bit in rules_hit is 1 << rule. */
enum lk_quality_rule {
    LK_Q1_GOLD,      /* accuracy on attention checks below 80 % */
    LK_Q2_REPEATED,  /* more than one session, a pilot participant; protocol 003: more than one task */
    LK_Q3_DURATION,  /* a HIT in less than half the estimated time */
    LK_Q4_VARIANCE,  /* population variance of the five-level answers <= 0.05 */
    LK_Q5_IDENTICAL, /* all of them equal */
    LK_Q6_DIAGONAL,  /* 80 % of the steps between them +1 (5 wraps to 1), or -1 */
    LK_Q7_FAST,      /* an answer in less than 2 s: flags the answer, never the rater */
    LK_Q8_SPEEDER,   /* median time per question below 3 s */
    LK_Q9_STRAIGHT,  /* more than 80 % of the five-level answers the same value, over all axes together */
    LK_Q10_SKIPPED,  /* more than 10 % of the questions skipped */
    LK_Q11_UNFINISHED,
    LK_Q12_NO_CODE,
    LK_N_QUALITY_RULES,
};

enum lk_protocol { LK_PROTOCOL_003, LK_PROTOCOL_001, LK_PROTOCOL_000, LK_PROTOCOL_004, LK_N_PROTOCOLS };
/* any: one excluding rule (Q1, Q2, Q8..Q12). two_flags: two rules of all but Q7, or Q1 alone. completion: Q11 or Q12.
 */
enum lk_quality_policy { LK_POLICY_ANY, LK_POLICY_TWO_FLAGS, LK_POLICY_NONE, LK_POLICY_COMPLETION };

struct lk_quality_options {
    enum lk_protocol protocol;
    enum lk_quality_policy policy;
    int gold_percent;         /* 80 */
    int duration_s[3];        /* estimates for experiments 1, 2, 3 */
    double variance;          /* 0.05 */
    int diagonal_percent;     /* 80 */
    int fast_ms, speeder_ms;  /* 2000, 3000 */
    int straight_percent;     /* 80 */
    int skipped_percent;      /* 10 */
    double expected_excluded; /* 0.10 */
};

/* The protocol's thresholds and policy. */
void lk_quality_defaults(enum lk_protocol protocol, struct lk_quality_options *out);
const char *lk_protocol_name(enum lk_protocol protocol);
const char *lk_quality_policy_name(enum lk_quality_policy policy);
int lk_protocol_parse(const char *name);       /* "003", "001", "000", "004"; -1 when it is none */
int lk_quality_policy_parse(const char *name); /* "any", "two_flags", "none", "completion"; -1 when it is none */
const char *lk_quality_rule_name(enum lk_quality_rule rule); /* "Q1" */
const char *lk_quality_rule_text(enum lk_quality_rule rule); /* "accuracy on gold items" */

/* Those of a rater's broken rules for which the policy excludes the rater; 0: it does not. */
uint32_t lk_quality_excluding(uint32_t rules, enum lk_quality_policy policy);

struct lk_rater_quality {
    uint32_t rules; /* as rules_hit */
    bool excluded;  /* by the policy */
    int n_gold, n_gold_right;
    int n_answers;              /* five-level answers, without those to attention checks */
    double variance;            /* of them, NaN without any */
    int n_most_common;          /* how often the most frequent level */
    int n_steps, n_up, n_down;  /* between consecutive answers, and those by +1 and -1 */
    int n_timed, n_fast;        /* questions with a time, and those below fast_ms */
    double median_ms;           /* per question, NaN without times */
    double least_duration_part; /* the shortest task's time / its estimate, NaN without times */
    int n_tasks;
};

struct lk_quality_report {
    struct lk_rater_quality *raters; /* [n_raters] in the dataset's order */
    size_t n_raters, n_excluded;
    size_t n_hit[LK_N_QUALITY_RULES];
    double excluded_rate, expected_rate; /* of the raters */
};

enum lk_code lk_quality_check(struct lk_dataset *data, const struct lk_quality_options *options,
                              struct lk_quality_report *out);
/* Sets every rater's `excluded` as the report says, or to false. */
void lk_quality_exclude(struct lk_dataset *data, const struct lk_quality_report *report, bool on);
void lk_quality_report_free(struct lk_quality_report *report);
