/* The selection's pages: one per cell, with seven candidates side by side. */
#pragma once

#include <pthread.h>

#include "eval/design/selection.h"
#include "tools/cli/survey/http.h"

struct selection_server {
    struct lk_selection *selection;
    pthread_mutex_t lock; /* of the selection */
    const char *actor;
    char token[65], form_token[65];           /* who has the first may look and choose; the second is in the forms */
    char *pictures[LK_N_SOURCES][LK_N_POOLS]; /* absolute paths */
};

/* Of the server's context; as survey_respond. */
enum lk_code selection_respond(const struct survey_server *server, struct survey_request *request,
                               struct survey_reply *reply);
/* The first cell from `source` on that is not done; `source` itself when all are. */
int selection_next_open(const struct lk_selection *selection, int source);
void selection_page(const struct selection_server *s, int source, struct lk_text *out);
void selection_refused(const char *said, struct lk_text *out);
