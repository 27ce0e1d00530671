/* Pages for this machine alone, shown to who has the link with the token: what those of the selection and of a run
 * share. */
#pragma once

#include "tools/cli/survey/http.h"

struct local_site {
    const char *name, *command;     /* for sentences: "selection", "serve selection" */
    char token[65], form_token[65]; /* who has the first may look; the second is in the forms */
    enum lk_code (*get)(struct local_site *site, const char *path, struct survey_reply *reply);
    /* NULL: nothing can be written. `now`: ms since 1970. */
    enum lk_code (*post)(struct local_site *site, const char *path, const struct survey_form *form, int64_t now,
                         struct survey_reply *reply);
};

/* As survey_respond; the server's context is a struct local_site. */
enum lk_code local_respond(const struct survey_server *server, struct survey_request *request,
                           struct survey_reply *reply);
enum lk_code local_refuse(const struct local_site *site, struct survey_reply *reply, int status, const char *said);
/* A page from its doctype to <body>; refresh: for browsers without a script. */
void local_begin(struct lk_text *out, const char *title, bool refresh);
/* A file that the program carries. */
enum lk_code local_file(const struct local_site *site, const char *name, const char *type, struct survey_reply *reply);
/* bind: what the user said of the address, NULL for nothing. */
enum lk_code local_check_bind(const struct local_site *site, const char *bind);
/* Makes the tokens, prints the link and serves until a signal comes. */
enum lk_code local_serve(struct local_site *site, int port);
