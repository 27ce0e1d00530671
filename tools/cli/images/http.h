/* What http.c and door.c share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "tools/cli/images/api.h"
#include "tools/cli/survey/visits.h"

enum route { ROUTE_HEALTH, ROUTE_MODELS, ROUTE_GENERATIONS, ROUTE_EDITS };

struct images_request {
    struct images_listener *listener;
    struct MHD_Connection *connection;
    int socket, number;
    enum route route;
    bool has_place, gathered;
    struct lk_text body;
    struct images_fields *fields;
    struct images_ask ask;
    struct images_answer answer;
    atomic_bool gone;
    struct images_request *next;
};

struct images_listener {
    const struct images_settings *settings;
    struct MHD_Daemon *daemon;
    int port;
    pthread_t keeper;
    struct visits visits;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t gathered;
    struct images_request *first, **last, *running;
    int n_places, n_asleep, n_requests;
    double took_s; /* the last one */
    bool keeps, stopping;
};

void images_answer_error(struct images_request *r, int status, const char *text);
const char *images_header(const struct images_request *r, const char *name);
/* A request's first lines: its route and its place in the line, or an error. */
void images_look_at(struct images_request *r, const char *path, const char *method);
