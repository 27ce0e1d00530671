/* A survey served on 127.0.0.1 with a clock of our own, and visitors of it. What is not as expected fails the test. */
#pragma once

#include "tests/common/survey.h"
#include "tools/cli/survey/http.h"

#define SITE_START INT64_C(1768608000000) /* 2026-01-17 */

struct site {
    struct test_survey t;
    struct survey_server server;
    struct survey_listener *listener;
    int port;
    int64_t now;
};

struct visitor {
    const struct site *site;
    char cookie[65], form[65];
};

void site_serve(struct site *s);
void site_open(struct site *s, const char *name, int n_items, const char *more); /* as test_survey_open */
void site_close(struct site *s);
/* One request. headers: further lines, each with its end. body NULL: a GET. */
char *site_ask(const struct visitor *v, const char *path, const char *headers, const char *body);
int site_status_of(const char *reply);
void site_expect(const struct visitor *v, const char *path, const char *headers, const char *body, int status,
                 const char *part);
/* A page as every page must be: nothing from elsewhere, the headers that hold a browser to it. */
void site_expect_page(const struct visitor *v, const char *path);
void site_take(const char *from, const char *mark, size_t n, char *out); /* what follows the mark, up to a quote */
char *site_post_entry(const struct site *site, const char *query);       /* the welcome page's form */
void site_enter(struct visitor *v, const struct site *site, const char *query);
void site_post(const struct visitor *v, const char *path, const char *fields, int status, const char *part);
void site_consent(const struct visitor *v); /* guide and consent */
