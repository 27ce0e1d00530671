/* One model behind the OpenAI images API. What a request says is read without a socket (ask.c), so that
 * tests and the fuzzer can call it; http.c brings requests from libmicrohttpd, one after another, to whoever makes the
 * pictures (serve.c).
 *
 *     struct images_listener *l;
 *     LK_TRY(images_listen(&l, &settings));
 *     for (struct images_request *r; going; )
 *         if ((r = images_next(l, 250))) images_answer(l, r, &answer);   // answer: made of images_ask_of(r)
 *     images_stop(l); */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/text.h"
#include "models/parameters.h"
#include "tools/cli/survey/visits.h"

enum {
    IMAGES_MAX_FIELDS = 96,
    IMAGES_MAX_PICTURES = 10,
    IMAGES_MAX_PROMPT = 32000, /* characters */
    IMAGES_MAX_NAME = 200,
    IMAGES_MAX_PIXELS = 1 << 26 /* of a picture, and of those that a request brings together */
};

/* A reply. Of an error: what the API's JSON says. */
struct images_answer {
    int status;          /* 0: none yet */
    struct lk_text body; /* JSON */
    int retry_after_s;   /* 0: not told */
};
/* {"error": {...}} with the type and code of the status; param NULL: no field is to blame. */
void images_refuse(struct images_answer *out, int status, const char *param, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The status of an error: 400 for what the request is to blame for. */
int images_status_of(enum lk_code code);

/* A member of a JSON body or a part of a form, in memory that the body or `fields->block` holds. */
struct images_field {
    const char *name, *value; /* NUL-terminated */
    size_t n;
    const char *file; /* the name that the client gives the file, without folders; NULL: no file */
};
struct images_fields {
    struct images_field list[IMAGES_MAX_FIELDS];
    int n;
    char *block; /* lk_free */
};
/* A form by its Content-Type, taken apart in place; the body is NUL-terminated. LK_E_INPUT: what is wrong with it. */
enum lk_code images_form_read(const char *content_type, char *body, size_t n, struct images_fields *out);
/* An object. An array becomes a field for each element, or of numbers one field with commas between. */
enum lk_code images_json_read(const char *body, size_t n, struct images_fields *out);

/* The model that requests are about, and what the server's command line says of every job. */
struct images_model {
    const char *id, *path; /* both name it */
    const char *family;
    bool takes_images;
    const struct lk_job *job;
};
/* What is asked for. Texts and files are the fields'. */
struct images_ask {
    struct lk_job job; /* not complete; images_ask_free */
    int n;             /* pictures; each has the seed after the one before */
    struct images_file {
        const char *name, *bytes;
        size_t n;
    } images[LK_MAX_REFERENCES], mask;
    int n_images;
};
/* Fills `ask`, or `answer` with the error that names the first bad field. */
void images_ask_read(const struct images_model *model, bool edit, const struct images_fields *fields,
                     struct images_ask *ask, struct images_answer *answer);
void images_ask_free(struct images_ask *ask);

struct images_settings {
    const struct images_model *model;
    const char *address;         /* IPv4 */
    int port;                    /* 0: a free one */
    const char *token;           /* that requests must bear; NULL: none */
    int queue;                   /* requests that may wait while one is made */
    size_t body_bytes;           /* of a request at most */
    int64_t request_ms;          /* in which a request must be whole */
    int64_t (*now)(void *clock); /* milliseconds; never goes back */
    void *clock;
};
struct images_listener;
struct images_request;
/* LK_E_USAGE for an address that is none, or beyond this machine without a token; LK_E_IO where it is taken. Settings
 * outlive the listener. */
enum lk_code images_listen(struct images_listener **out, const struct images_settings *settings);
int images_port(const struct images_listener *listener);
/* The request whose turn it is, or NULL when none has come within wait_ms. One at a time. */
struct images_request *images_next(struct images_listener *listener, int wait_ms);
const struct images_ask *images_ask_of(const struct images_request *request);
int images_number_of(const struct images_request *request);
/* Whether the client has hung up: nobody wants the pictures. From any thread. */
bool images_gone(const struct images_request *request);
/* Ends it; the answer's body is taken over. took_s: what clients that are sent away are told to wait. */
void images_answer(struct images_listener *listener, struct images_request *request, struct images_answer *answer,
                   double took_s);
/* What waits is refused; replies under way are sent first. NULL is allowed. */
void images_stop(struct images_listener *listener);

/* LK_E_FIT where a picture needs more than this machine's room, in bytes; 0: not known. */
enum lk_code images_check_room(const struct lk_plan *plan, uint64_t room);

struct cli_arguments;
enum lk_code cli_serve_images(const struct cli_arguments *arguments);

/* What http.c and door.c share. */
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
