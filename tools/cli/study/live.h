/* Pages for this machine alone, shown to who has the link with the token: what those of the selection and of a run
 * share. */
#pragma once

#include <pthread.h>

#include "eval/design/selection.h"
#include "tools/cli/study/runner.h"
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

/* serve study: the pages of a run while it goes on. They change nothing. */
enum { LIVE_PICTURES = 12, LIVE_FAILURES = 20 };
#define LIVE_PREVIEW "preview.png" /* in the run's folder: where study run --preview puts what the page shows */

struct live_site {
    struct local_site site; /* of live_local_site */
    const char *folder;
    int64_t (*now)(void);
};
extern const struct local_site live_local_site;

/* What a page shows. */
struct live_view {
    struct lk_journal_counts counts;
    struct live_picture {
        int64_t index, ended_ms;
        char name[LK_STUDY_NAME_BYTES], digest[9];
    } latest[LIVE_PICTURES]; /* the last one first */
    int n_latest, n_failures;
    struct lk_text failures; /* of the first of them, as lines of a list */
    double per_hour;         /* over the last hour, or as long as it has run in that; 0: none */
    int64_t now_ms;
    char preview[48];   /* "step 3 of 8" of the job in hand, as LIVE_PREVIEW says it; "": none */
    int64_t preview_ms; /* when it was written */
};
void live_page(const struct live_site *site, const struct live_view *view, struct lk_text *out);

/* The selection's pages: one per cell, with seven candidates side by side. */
struct selection_server {
    struct local_site site; /* of selection_site */
    struct lk_selection *selection;
    pthread_mutex_t lock; /* of the selection */
    const char *actor;
    char *pictures[LK_N_SOURCES][LK_N_POOLS]; /* absolute paths */
};

extern const struct local_site selection_site;
