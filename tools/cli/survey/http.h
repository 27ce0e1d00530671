/* The survey's pages over HTTP. Requests are read and answered without a socket (routes.c, page*.c, and the readers of
 * server.c), so that tests and the fuzzer can call them; server.c brings them to libmicrohttpd, and those of other
 * pages (tools/cli/study/selection.c) too. */
#pragma once

#include <pthread.h>

#include "eval/survey/survey.h"

enum { SURVEY_MAX_FIELDS = 40, SURVEY_MAX_BODY = 16384, SURVEY_MAX_URI = 2048, SURVEY_COOKIE_BYTES = 64 };

struct survey_form {
    struct survey_field {
        const char *name, *value;
    } fields[SURVEY_MAX_FIELDS];
    int n;
};
/* application/x-www-form-urlencoded, decoded in place. False: too many fields, a bad escape, a NUL or other control
 * character but tab and line ends, or no UTF-8. */
bool survey_form_read(char *text, struct survey_form *out);
/* "" when there is none of that name. */
const char *survey_form_value(const struct survey_form *form, const char *name);
/* A whole number 0..max, -1 when it is none. */
int64_t survey_number(const char *text, int64_t max);

struct survey_request {
    const char *method;
    char *uri;        /* as sent; changed by decoding */
    char *body;       /* NUL-terminated, changed by decoding; NULL without */
    uint32_t address; /* who asks; 0: from this machine, where a proxy stands */
    const char *host, *origin, *cookie, *accept, *authorization, *content_type; /* headers, NULL without */
};
struct survey_reply {
    int status;
    const char *type;
    struct lk_text body;
    const char *file;  /* a picture to send in the body's place */
    char *path;        /* NULL, or what holds its name: freed with the body */
    char location[64]; /* of a 303 */
    char cookie[65];   /* a new session */
    bool may_be_kept;  /* by the browser: pictures, style, script */
};

/* How often each address has entered in this hour; two addresses may share a place. In memory alone. */
enum { SURVEY_ADDRESSES = 1024, SURVEY_ENTRIES_OF_ADDRESS = 120 };
struct survey_entries {
    int64_t hour;
    int n[SURVEY_ADDRESSES];
};

/* Who has typed the admin token, in memory alone: a restart ends every session. */
enum { SURVEY_ADMINS = 8 };
struct survey_admins {
    pthread_mutex_t lock;
    struct survey_admin {
        char token[65];
        int64_t until; /* 0: closed */
    } list[SURVEY_ADMINS];
};

struct survey_server {
    /* survey_respond, or that of another server, which has its own context and neither survey nor study. */
    enum lk_code (*respond)(const struct survey_server *server, struct survey_request *request,
                            struct survey_reply *reply);
    void *context;
    struct lk_survey *survey;
    struct lk_survey *reader; /* the same store, opened again for what only reads; NULL: survey */
    const struct lk_survey_study *study;
    int64_t (*now)(void *context);
    void *clock;
    char host[80];        /* what a request must name, with its port: "127.0.0.1:8080"; set by survey_listen, as: */
    char cookie_name[32]; /* of this port and kind of pages alone: cookies know no ports */
    bool local;           /* the machine's own browsers alone: "localhost" names it too */
    bool preview;         /* nobody is let in */
    struct survey_entries *entries; /* NULL: not counted */
    struct survey_admins *admins;   /* NULL: nobody may type the admin token */
};
/* The name of our cookie: with a public name, behind a proxy that speaks TLS, one that no other host can set. Before
 * survey_listen "survey". */
const char *survey_cookie_name(const struct survey_server *server);
/* The 64 digits of the cookie of this name in a Cookie header (NULL: none); false when it has none. */
bool survey_cookie(const char *header, const char *name, char out[SURVEY_COOKIE_BYTES + 1]);
/* The name that the browser asks for is this server's, and so is the page that sends a form. */
bool survey_is_ours(const struct survey_server *server, const struct survey_request *request);
/* The folder of a survey's answers: `store`, or without one STUDY.survey beside STUDY.json. The caller frees it; NULL:
 * out of memory. */
char *survey_store(const char *survey, const char *store);
/* survey new. */
struct cli_arguments;
enum lk_code survey_new(const struct cli_arguments *arguments);
enum lk_code survey_gold(const struct cli_arguments *arguments);
enum lk_code survey_hit(const struct cli_arguments *arguments);
enum lk_code survey_cost(const struct cli_arguments *arguments);
enum lk_code survey_codes(const struct cli_arguments *arguments, const struct lk_survey_study *study,
                          struct lk_survey *survey);
enum lk_code survey_pay(const struct cli_arguments *arguments, const struct lk_survey_study *study,
                        struct lk_survey *survey);
/* Files in a folder, which is made for the owner alone when it is not there: between begin and end they are all new, or
 * none is. end gives rc or what failed. */
struct survey_folder {
    const char *path;
    bool made;
};
enum lk_code survey_folder_begin(struct survey_folder *folder, const char *path);
enum lk_code survey_folder_write(const struct survey_folder *folder, const char *name, const struct lk_text *text);
enum lk_code survey_folder_end(const struct survey_folder *folder, enum lk_code rc);
/* Fills the reply; LK_E_NOMEM, LK_E_IO: what the caller answers with 500. The caller frees reply->body. */
enum lk_code survey_respond(const struct survey_server *server, struct survey_request *request,
                            struct survey_reply *reply);

/* What routes.c hands to the pages. */
struct survey_page {
    const struct survey_server *server;
    const struct lk_survey_study *study;
    const struct survey_form *query, *form;
    uint32_t address;
    struct lk_survey_visitor who;
    char token[65], form_token[65];
    int64_t now;
    struct survey_reply *reply;
};
void page_text(struct lk_text *out, const char *text); /* with entities */
/* As lk_text_html, with these entities. */
void page_html(struct lk_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Into the page, as lk_text_html; {name} stands for a text of the study's. */
void page_add(const struct survey_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_begin(const struct survey_page *page, const char *title_name, const char *body_class);
void page_end(const struct survey_page *page);
void page_note(const struct survey_page *page, const char *class, const char *name); /* a paragraph of the texts */
enum lk_code page_go(struct survey_page *page, const char *where);                   /* 303 */
void page_form(const struct survey_page *page, const char *action, const char *id);  /* with the hidden token */
void page_question(const struct survey_page *page, const struct lk_survey_question *q, const char *prefix,
                   const char *given);
/* The protocol's guidelines and examples for these questions; those that would name the item's answer are left out. */
void page_guidelines(const struct survey_page *page, const struct lk_survey_questions *questions,
                     const struct lk_survey_item *item);
/* enum lk_survey_picture in the order in which a page has them, as "stab" in an address. */
extern const int page_picture_kinds[LK_SURVEY_N_PICTURES];
void page_pictures(const struct survey_page *page, const struct lk_survey_item *item, const char *folder, int number,
                   int picture);

/* id: who is asked to come in; NULL: nobody. bad: the link has no usable one. */
enum lk_code page_welcome(struct survey_page *page, const char *id, bool bad);
enum lk_code page_guide(struct survey_page *page, bool answered);
/* Whether the form answers the guide's attention check rightly, where the protocol has one. */
bool page_guide_check(const struct survey_page *page);
enum lk_code page_consent(struct survey_page *page, bool missing);
enum lk_code page_tasks(struct survey_page *page, bool refused);
enum lk_code page_item(struct survey_page *page, int position);
/* The next practice item, and, answered, what its answers are worth. */
enum lk_code page_practice(struct survey_page *page, bool answered);
enum lk_code page_left(struct survey_page *page); /* the session has ended */
enum lk_code page_done(struct survey_page *page);
/* /admin and what lies below it: pages and exports for who bears the token or has a session, the form that opens one,
 * and its end. */
enum lk_code page_admin_enter(struct survey_page *page, const struct survey_request *request, const char *path);
/* To who is on the list of those who may not take part. */
enum lk_code page_blocked(struct survey_page *page);
/* A status with a sentence of the study's texts. */
enum lk_code page_refused(struct survey_page *page, int status, const char *name);

/* Serves until survey_stop. address: IPv4; every one of this machine's ("0.0.0.0") needs a study with a public name.
 * LK_E_USAGE for an address that is none or could serve nobody, LK_E_IO when it is taken. */
struct survey_listener;
enum lk_code survey_listen(struct survey_listener **out, struct survey_server *server, const char *address, int port);
int survey_port(const struct survey_listener *listener);
void survey_stop(struct survey_listener *listener);
