/* Small surveys on disk, and a client of a survey's server. */
#pragma once

#include <stdbool.h>

#include "eval/survey/survey.h"

/* A study of n items in a new folder under TEST_TMPDIR; more: further fields of the file, each with a comma behind it;
 * experiment as the protocol has it. Fails the test on any failure. */
struct test_survey {
    char folder[512], file[600], store[600];
    struct lk_survey_study *study;
    struct lk_survey *survey;
};
void test_survey_open(struct test_survey *t, const char *name, int n_items, const char *more);
void test_survey_close(struct test_survey *t);
/* A participant up to the dashboard, and in a task (-1: none). */
void test_survey_person(struct test_survey *t, const char *id, int task, int64_t now, char token[65],
                        struct lk_survey_visitor *who);
/* The item's every question answered with its option number `option`, or the last below it. */
enum lk_survey_verdict test_survey_answer_all(struct test_survey *t, const struct lk_survey_visitor *who, int position,
                                              int option, int64_t now);
/* Whether the bytes of any file of the store hold this. */
bool test_survey_store_has(const struct test_survey *t, const char *what);

/* One HTTP exchange with 127.0.0.1:port; sent as it is. The reply, headers and body, in free()-able memory; "" when the
 * connection closed without one. */
char *test_http(int port, const char *request, size_t n);
